"""Run a real program in each runtime of this machine, end to end through its sandbox (`hearth worker selftest`).

Neither needs a network: the WebAssembly module is compiled from text here, and the container's image is imported from
an archive that holds one small program. Both programs say the same words; the container's also writes them to /out.
"""

from __future__ import annotations

import platform
import struct
import tempfile
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from hearth.base.errors import REINSTALL, ConfigError
from hearth.protocol.runtimes import DOCKER, RUNTIMES, WASM
from worker.gpu.port import Device, GpuInfo
from worker.runtimes.base import Check, Level, OutputRule, RunRequest, RunResult, SandboxLimits
from worker.runtimes.docker import DockerRuntime
from worker.runtimes.docker_engine import runtime_of
from worker.runtimes.docker_images import image_archive
from worker.runtimes.docker_request import GUEST_UIDS
from worker.runtimes.profiles import is_gvisor
from worker.runtimes.wasm import WasmRuntime

WORDS: Final = b"hearth selftest\n"
MODULE: Final = """
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "hearth selftest\\n")
  (data (i32.const 0) "\\10\\00\\00\\00\\10\\00\\00\\00")
  (func (export "_start")
    (if (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable))))
"""
# open("/out/said", O_CREAT|O_WRONLY, 0644), write the words to it and to stdout, then what /proc/self/status says, too;
# exit(0): Linux calls of x86-64.
_MACHINE_CODE: Final = bytes.fromhex(
    "488d3d6e000000 be41000000 baa4010000 b802000000 0f05"  # open
    "89c7 488d3570000000 ba10000000 b801000000 0f05"  # write, to the file
    "bf01000000 b801000000 0f05"  # write, to stdout
    "488d3d3f000000 31f6 b802000000 0f05"  # open the status
    "89c7 4881ec00200000 4889e6 ba00200000 31c0 0f05"  # read it
    "89c2 bf01000000 b801000000 0f05"  # write, to stdout
    "31ff b83c000000 0f05"  # exit
    "2f6f75742f7361696400"  # "/out/said"
    "2f70726f632f73656c662f73746174757300"  # "/proc/self/status"
)
_LOADED_AT: Final = 0x400000
UNIT: Final = "selftest-0-1"
LIMITS: Final = SandboxLimits(wall_seconds=30, memory_bytes=64 << 20, out_bytes=1 << 20, fuel=10**9)


def selftest(docker: DockerRuntime) -> list[Check]:
    """Return one row per runtime: PASS, WARN for one that is not here, FAIL for one that does not do its work."""
    tests: dict[str, Callable[[], Check]] = {WASM.name: _wasm, DOCKER.name: partial(_docker, docker)}
    return [tests[name]() if name in tests else _untested(name) for name in RUNTIMES]


def try_gpus(docker: DockerRuntime, gpus: Sequence[GpuInfo], lent: Collection[str] = ()) -> list[Check]:
    """Give each GPU to a container of ours, and say whether a job's user can open it there; one that is `lent` has
    shown it."""
    rows = []
    for one in gpus:
        name = f"gpu {one.label}"
        # Who has it has shown that it is given.
        held = "a job of this worker has it now" if one.uuid in lent else docker.gpu_held(one.device)
        if held:
            rows.append(Check(name, Level.PASS, f"{one.name}: {held}"))
            continue
        if why := docker.try_gpu(one.device):
            fix = docker.gpu_remedy((one.device,)) or one.device.refresh
            rows.append(Check(name, Level.FAIL, why, fix))
            continue
        rows.append(Check(name, Level.PASS, f"{one.name}: a container got it, and a job's user can open it"))
    return rows


def refuse_failed(row: Check) -> None:
    """Refuse to offer a GPU whose row is a FAIL. Raises ConfigError GPU_NOT_GIVEN."""
    if row.level is Level.FAIL:
        raise ConfigError(
            f"{row.name}: {row.detail}",
            hint=f'{row.fix}; or set offer.gpus = "none"',
            code="GPU_NOT_GIVEN",
            component="worker",
        )


def _untested(name: str) -> Check:
    return Check(name, Level.WARN, "there is no test program for it", "run a job of yours: hearth submit job.yaml")


def _wasm() -> Check:
    import wasmtime

    def run(home: Path) -> RunResult:
        module = home / "module"
        module.write_bytes(wasmtime.wat2wasm(MODULE))
        runtime = WasmRuntime(home)
        return runtime.prepare(str(module)) or runtime.run(
            request_in(home, UNIT, LIMITS, module=module), threading.Event()
        )

    return _judged("wasm", run, fix=REINSTALL)


def _docker(runtime: DockerRuntime) -> Check:
    works, why = runtime.available()
    if not works:
        return Check("docker", Level.WARN, why, f"{runtime.how_to_start()} to take containers; hearth worker doctor")
    if platform.machine() != "x86_64":
        fix = "run an image of yours: hearth run IMAGE"
        return Check("docker", Level.WARN, f"{why}; there is no test program for {platform.machine()}", fix)

    def run(home: Path) -> RunResult:
        request = request_in(home, UNIT, LIMITS, command=("/selftest",), outputs=(OutputRule("/out/said"),))
        return runtime.run_archive(_archive(), request)

    return _judged("docker", run, _walls_inside, fix="hearth worker doctor")


def _walls_inside(result: RunResult) -> tuple[list[str], list[str]]:
    """Return the rules of the profile that stand and those that are missing, by what the program saw of itself.

    A rule that its kernel says nothing of is neither: gVisor's has no line on new privileges, and no filter inside.
    """
    lines = result.stdout.removeprefix(WORDS).decode(errors="replace").splitlines()
    found = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    rights = [value for name, value in found.items() if name.startswith("Cap")]
    looks = {
        "user": set(found.get("Uid", ["0"])) <= {str(user) for user in GUEST_UIDS},
        "capabilities": bool(rights) and all(value == ["0" * 16] for value in rights),
    }
    if "NoNewPrivs" in found:
        looks["no new privileges"] = found["NoNewPrivs"] == ["1"]
    if not is_gvisor(runtime_of(result.engine)):
        looks["system calls"] = found.get("Seccomp") == ["2"]
    return [name for name, stands in looks.items() if stands], [name for name, stands in looks.items() if not stands]


def request_in(
    folder: Path,
    unit: str,
    limits: SandboxLimits,
    *,
    module: Path | None = None,
    command: tuple[str, ...] = (),
    outputs: tuple[OutputRule, ...] = (),
    gpus: tuple[Device, ...] = (),
) -> RunRequest:
    """Return the request for a program of ours, whose folders are made in one that is empty."""
    job, given, out = (folder / name for name in ("job", "in", "out"))
    for each in (job, given, out):
        each.mkdir()
    return RunRequest(unit, command, job, given, out, limits, module=module, outputs=outputs, gpus=gpus)


def _judged(
    name: str,
    run: Callable[[Path], RunResult],
    look: Callable[[RunResult], tuple[list[str], list[str]]] | None = None,
    *,
    fix: str,
) -> Check:
    """Run in a folder of its own, and say whether the program said its words and which walls it saw."""
    with tempfile.TemporaryDirectory(prefix="hearth-selftest-") as scratch:
        result = run(Path(scratch))
        written = WORDS
        with suppress(FileNotFoundError):
            written = (Path(scratch) / "out" / "said").read_bytes()
    if not result.ok:
        return Check(name, Level.FAIL, f"{result.status.value}: {result.detail}", fix)
    stand, missing = look(result) if look is not None else ([], [])
    if (result.stdout[: len(WORDS)], written) != (WORDS, WORDS):
        return Check(name, Level.FAIL, f"the program said {result.stdout[:80]!r} and wrote {written[:80]!r}", fix)
    if missing:
        text = f"ran a program with {result.engine}, and walls are missing round it: {', '.join(missing)}"
        return Check(name, Level.FAIL, text, fix)
    seen = f"; it saw round itself: {', '.join(stand)}" if stand else ""
    return Check(name, Level.PASS, f"ran a program with {result.engine}{seen}")


def _archive() -> bytes:
    """Return a tar with one statically linked program, /selftest."""
    code = _MACHINE_CODE + WORDS
    header = struct.pack(
        *("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 62, 1, _LOADED_AT + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    )
    size = 120 + len(code)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _LOADED_AT, _LOADED_AT, size, size, 4096)
    return image_archive({"/selftest": header + segment + code})
