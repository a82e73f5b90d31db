"""The wasm runtime on the real engine: what a guest can do, how every end is named, and that two runs are equal."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hearth.base.wasm_engine import engine_of
from hearth.protocol.wasi import CHARGES, ENGINE_CONFIG, MAX_MODULE_BYTES
from tests.worker.wasm_tools import ROOT, command, from_c, from_text
from worker.runtimes import base, walls, wasi_abi, wasi_files, wasm, wasm_child
from worker.runtimes.base import OutputRule, RunRequest, RunResult, RunStatus, SandboxLimits

MIB = 1 << 20
COSTLY = "(block (br_if 0 (i64.eqz (local.get 0))) (local.set 0 (i64.add (local.get 0) (i64.const 1))))"
ERROFS, EPERM = "Read-only file system", "Operation not permitted"


@dataclass
class Box:
    """The folders of one unit."""

    root: Path

    def request(self, module: Path, *args: str, limits: dict[str, Any] | None = None, **changes: Any) -> RunRequest:
        base = {
            "wall_seconds": 30,
            "memory_bytes": 64 * MIB,
            "out_bytes": MIB,
            "tmp_bytes": MIB,
            "fuel": 10**10,
            "log_bytes": 64 * 1024,
        }
        request = RunRequest(
            unit=f"test-{os.getpid()}",
            command=args,
            job_dir=self.root / "job",
            in_dir=self.root / "in",
            out_dir=self.root / "out",
            limits=SandboxLimits(**{**base, **(limits or {})}),
            module=module,
        )
        return replace(request, **changes)

    def tree(self) -> dict[str, str]:
        found = [p for name in ("in", "job", "out") for p in sorted((self.root / name).rglob("*"))]
        return {
            str(p.relative_to(self.root)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in found
            if p.is_file() and not p.is_symlink()
        }


def make_box(root: Path) -> Box:
    for name in ("in", "job", "out", "scratch"):
        (root / name).mkdir(parents=True)
    (root / "in" / "data.txt").write_text("hello")
    (root / "job" / "code.txt").write_text("code")
    return Box(root)


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return make_box(tmp_path / "box")


@pytest.fixture(scope="session")
def probe() -> Path:
    return from_c("probe")


def run(box: Box, request: RunRequest, cancel: threading.Event | None = None) -> RunResult:
    return wasm.WasmRuntime(box.root / "scratch").run(request, cancel or threading.Event())


# -- what a guest sees ------------------------------------------------


def test_run__reads_in_and_job_and_writes_out__ok(box: Box, probe: Path) -> None:
    result = run(box, box.request(probe, "files"))
    lines = result.stdout.decode().splitlines()
    assert (result.status, result.exit_code, result.stderr) == (RunStatus.OK, 0, b"")
    assert lines[:3] == ["/in/data.txt: hello", "/job/code.txt: code", "code.txt: code"]
    for expected in (
        "mkdir: ok",
        "rename: ok",
        "/out/sub/../sub/b.txt: alpha",
        "unlink: ok",
        "rmdir full: Directory not empty",
        "/out/sub/b.txt: alphabet",
        "size 8 mtime 1577836800 links 1",
    ):
        assert expected in lines
    assert (box.root / "out" / "sub" / "b.txt").read_text() == "alphabet"
    assert list((box.root / "scratch").iterdir()) == []


def test_run__tries_to_leave_its_folders__every_try_refused_and_nothing_changed(box: Box, probe: Path) -> None:
    secret = box.root / "secret"
    secret.mkdir()
    (secret / "passwd").write_text("root:x:0:0")
    (box.root / "in" / "planted").symlink_to(secret / "passwd")
    (box.root / "in" / "planted_dir").symlink_to(secret)
    before = box.tree()
    result = run(box, box.request(probe, "escape"))
    said = dict(line.split(": ", 1) for line in result.stdout.decode().splitlines())
    assert result.status is RunStatus.OK
    read_only = "write /in,new in /in,write /job,write cwd,unlink /in,rename /in,steal,mkdir /job,truncate"
    assert {name: said[name] for name in read_only.split(",")} == dict.fromkeys(read_only.split(","), ERROFS)
    assert said["/out/../../etc/passwd"] == said["../../../../etc/passwd"] == said["out of /out"] == EPERM
    assert said["/etc/passwd"] == "No such file or directory"
    assert said["symlink"] == said["hard link"] == "Not supported"
    assert said["/in/planted"] == "Symbolic link loop"
    assert said["/in/planted_dir/passwd"] == "Not a directory"
    assert b"root:" not in result.stdout
    after = box.tree()
    assert after.pop("out/done")
    assert after == before


def test_run__same_escapes_with_mounts_writable__succeed(
    box: Box, probe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control: with the one defence (a mount without quota is read-only) removed, the program destroys its input."""
    plain = wasi_files.Mount
    monkeypatch.setattr(
        wasm_child, "Mount", lambda guest, host, quota=None: plain(guest, host, quota or wasi_files.Quota("any", MIB))
    )
    said = run_in_process(box, box.request(probe, "escape")).splitlines()
    for attack in ("write /in", "new in /in", "write /job", "unlink /in", "mkdir /job"):
        assert f"{attack}: ok" in said
    assert not (box.root / "in" / "data.txt").exists()


def run_in_process(box: Box, request: RunRequest) -> str:
    """Run a guest inside this process, for controls that patch the host side."""
    (box.root / "tmp").mkdir(exist_ok=True)
    captured = box.root / "captured"
    read, write = os.dup(1), os.open(captured, os.O_CREAT | os.O_WRONLY)
    os.dup2(write, 1)
    try:
        engine = engine_of(ENGINE_CONFIG)
        clock = wasm_child.Clock(engine)
        clock.start()
        wasm_child.run(
            engine,
            clock,
            {
                "module": str(request.module),
                "until": None,
                "least_seconds": 1,
                "only_compile": False,
                "command": ["main", *request.command],
                "env": {},
                "in_dir": str(request.in_dir),
                "job_dir": str(request.job_dir),
                "out_dir": str(request.out_dir),
                "tmp_dir": str(box.root / "tmp"),
                "seed": "00",
                "wall_seconds": 30,
                "memory_bytes": 64 * MIB,
                "engine_bytes": wasm.ENGINE_BYTES,
                "out_bytes": MIB,
                "tmp_bytes": MIB,
                "fuel": None,
            },
            lambda: None,
            lambda: 0,
        )
    finally:
        os.dup2(read, 1)
        os.close(read)
        os.close(write)
    return captured.read_text()


def test_run__environment_and_arguments__only_the_specs_and_the_unit(
    box: Box, probe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARTH_PASSWORD_FILE", "/canary/of/the/host")
    request = box.request(probe, "env", "two words", env={"EPOCHS": "3", "EMPTY": ""}, index=7, units=20)
    result = run(box, request)
    assert result.stdout.decode().splitlines() == [
        "arg main",
        "arg env",
        "arg two words",
        "env EPOCHS=3",
        "env EMPTY=",
        "env HEARTH_UNIT=7",
        "env HEARTH_UNITS=20",
    ]


@pytest.mark.parametrize("name", ["LD_PRELOAD", "NVIDIA_VISIBLE_DEVICES", "HEARTH_UNIT", "1BAD", "A=B", ""])
def test_run__env_name_kept_for_the_sandbox__bad_input(box: Box, probe: Path, name: str) -> None:
    result = run(box, box.request(probe, "env", env={name: "x"}))
    assert result.status is RunStatus.BAD_INPUT
    assert repr(name)[1:-1] in result.detail


def test_run__clock_and_random__fixed_and_seeded(box: Box, probe: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    first = run(box, box.request(probe, "clock", seed=b"a" * 32))
    again = run(box, box.request(probe, "clock", seed=b"a" * 32))
    other = run(box, box.request(probe, "clock", seed=b"b" * 32))
    start, slept, first_random = first.stdout.split()
    assert (start, slept) == (b"1577836800", b"3600")  # a sleep of an hour passes at once
    assert time.monotonic() - began < 600
    expected = hashlib.sha256(b"a" * 32 + (0).to_bytes(8, "little")).hexdigest()[:16]
    assert first_random.decode() == expected
    assert again.stdout == first.stdout
    assert other.stdout.split()[2] != first_random


def test_run__folder_listing__in_byte_order_whatever_the_host_says(box: Box, probe: Path) -> None:
    names = [f"{n * 7919 % 1000}-{n}" for n in range(100)]
    for name in names:
        (box.root / "in" / name).touch()
    seen = [line.split()[0] for line in run(box, box.request(probe, "list")).stdout.decode().splitlines()]
    assert seen == [".", "..", *sorted([*names, "data.txt"])]
    assert os.listdir(box.root / "in") != sorted(os.listdir(box.root / "in"))  # else the test shows nothing


def test_run__waits_for_the_clock_in_a_loop__ends_after_a_thousand_steps(box: Box, probe: Path) -> None:
    assert run(box, box.request(probe, "tick")).stdout == b"1000\n"


def test_run__endless_nesting__stopped_where_tools_can_still_walk(box: Box, probe: Path) -> None:
    result = run(box, box.request(probe, "deep"))
    assert result.status is RunStatus.OK
    assert result.stdout.decode().splitlines() == [
        "mkdir: Filename too long",
        "move down: Not supported",
        "move beside: ok",
    ]
    assert (
        max(len(p.relative_to(box.root / "out").parts) for p in (box.root / "out").rglob("*")) == wasi_files.MAX_DEPTH
    )


def test_run__folder_that_is_open_while_it_moves__keeps_its_true_depth(box: Box, probe: Path) -> None:
    result = run(box, box.request(probe, "stale"))
    assert result.status is RunStatus.OK, result
    assert result.stdout.decode().splitlines() == ["move down: Not supported", "one number: 1"]
    assert (
        max(len(p.relative_to(box.root / "out").parts) for p in (box.root / "out").rglob("*")) == wasi_files.MAX_DEPTH
    )


def test_run__same_module_and_input_twice__same_bytes_and_same_fuel(probe: Path, tmp_path: Path) -> None:
    runs = []
    for turn in range(3):
        box = make_box(tmp_path / f"{'deeper/' * turn}box")
        for name in ("b", "a", "c") if turn else ("c", "b", "a"):  # the host's directory order must not show
            (box.root / "in" / name).write_text(name)
        os.utime(box.root / "in" / "a", (turn, turn))
        result = run(box, box.request(probe, "files", seed=b"s"))
        runs.append((result.status, result.fuel_used, result.stdout, box.tree(), result.engine))
    assert runs[0] == runs[1] == runs[2]
    assert runs[0][0] is RunStatus.OK and runs[0][1] > 0


def test_run__nan_arithmetic__canonical(box: Box, probe: Path) -> None:
    assert run(box, box.request(probe, "nan")).stdout.split() == [b"7ff8000000000000"] * 3


def test_run__network_calls__no_socket_exists(box: Box) -> None:
    text = """(module
      (import "wasi_snapshot_preview1" "sock_accept" (func $accept (param i32 i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
      (memory (export "memory") 1)
      (func (export "_start") (call $exit (call $accept (i32.const 3) (i32.const 0) (i32.const 0)))))"""
    result = run(box, box.request(from_text(box.root, text)))
    assert (result.status, result.exit_code) == (RunStatus.EXIT, wasi_abi.NOTSOCK)


@pytest.mark.parametrize("module", ["wasi_snapshot_preview1.sock_open", "env.connect", "wasi_unstable.fd_write"])
def test_run__import_that_is_not_offered__bad_input(box: Box, module: str) -> None:
    space, name = module.split(".")
    text = f'(module (import "{space}" "{name}" (func)) (memory (export "memory") 1) (func (export "_start")))'
    result = run(box, box.request(from_text(box.root, text)))
    assert result.status is RunStatus.BAD_INPUT
    assert module in result.detail


@pytest.mark.parametrize(
    ("call", "status"),
    [
        ("(drop (call $sizes (i32.const 0) (i32.const 4)))", RunStatus.TRAP),
        ("(drop (call $random (i32.const 0) (i32.const 8)))", RunStatus.TRAP),
        ("(drop (call $random (i32.const 0) (i32.const 0)))", RunStatus.OK),
        ("(call $exit (i32.const 3))", RunStatus.EXIT),
    ],
)
def test_run__start_function_that_calls_its_host__is_the_modules_doing(box: Box, call: str, status: RunStatus) -> None:
    """What a cheat gains: nothing. It is told what its module does, at the first try; the machine is not at fault."""
    text = f"""(module
      (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
      (memory (export "memory") 1) (func $early {call}) (start $early) (func (export "_start")))"""
    result = run(box, box.request(from_text(box.root, text), outputs=()))
    assert result.status is status
    if status is RunStatus.TRAP:
        assert "start function" in result.detail and "call it in main" in result.detail


def test_run__folders_listed_through_240_handles__take_no_more_of_the_hosts_memory(
    box: Box, probe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a cheat gains: nothing. The names that its handles would keep are more than the process may hold."""
    monkeypatch.setattr(wasm, "ENGINE_BYTES", 64 * MIB)  # and fewer names than it takes with all of it
    for number in range(1000):
        (box.root / "in" / f"{number:0255}").touch()
    result = run(box, box.request(probe, "handles", limits={"memory_bytes": 20 * MIB}))
    assert (result.status, result.stdout) == (RunStatus.OK, b"240\n"), result


def test_run__pointer_outside_memory__fault_and_no_crash(box: Box) -> None:
    text = """(module
      (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
      (memory (export "memory") 1)
      (func (export "_start")
        (i32.store (i32.const 0) (i32.const 0xfffffff0)) (i32.store (i32.const 4) (i32.const 0x7fffffff))
        (if (i32.ne (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)) (i32.const 21))
          (then unreachable))
        (call $exit (call $random (i32.const 65530) (i32.const 7)))))"""
    result = run(box, box.request(from_text(box.root, text)))
    assert (result.status, result.exit_code) == (RunStatus.EXIT, wasi_abi.FAULT)


def test_run__opens_files_without_end__stopped_at_the_descriptor_cap(box: Box, probe: Path) -> None:
    result = run(box, box.request(probe, "fds"))
    assert result.stdout.startswith(b"248 No file descriptors available\n")


# -- how runs end ------------------------------------------------


def test_run__exits_with_a_code__exit_and_stderr(box: Box, probe: Path) -> None:
    result = run(box, box.request(probe, "exit", "3"))
    assert (result.status, result.exit_code, result.stderr) == (RunStatus.EXIT, 3, b"exiting with 3\n")


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("unreachable", "unreachable"),
        ("(drop (i32.div_u (i32.const 1) (i32.const 0)))", "divide by zero"),
        ("(drop (i32.load (i32.const 70000)))", "out of bounds"),
    ],
)
def test_run__trap__named(box: Box, body: str, word: str) -> None:
    result = run(box, box.request(from_text(box.root, command(body))))
    assert result.status is RunStatus.TRAP
    assert word in result.detail
    assert result.fuel_used is not None


def test_run__endless_recursion__trap(box: Box) -> None:
    text = '(module (memory (export "memory") 1) (func $f (export "_start") (call $f) (call $f)))'
    result = run(box, box.request(from_text(box.root, text)))
    assert result.status is RunStatus.TRAP
    assert "stack" in result.detail


def test_run__trap_in_the_start_section__trap(box: Box) -> None:
    text = '(module (memory (export "memory") 1) (func $s unreachable) (start $s) (func (export "_start")))'
    assert run(box, box.request(from_text(box.root, text))).status is RunStatus.TRAP


def test_run__endless_loop_with_fuel__out_of_fuel_exactly(box: Box) -> None:
    module = from_text(box.root, command("(loop br 0)"))
    result = run(box, box.request(module, limits={"fuel": 1_000_000}))
    assert (result.status, result.fuel_used) == (RunStatus.OUT_OF_FUEL, 1_000_000)


def test_run__host_calls__charged(box: Box) -> None:
    """A guest cannot burn the host's time for next to nothing: each call costs what it would have computed."""
    text = """(module (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
      (memory (export "memory") 1) (func (export "_start") (local $i i32)
        (loop (drop (call $yield)) (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if 0 (i32.lt_u (local.get $i) (i32.const 100))))))"""
    module = from_text(box.root, text)
    result = run(box, box.request(module, outputs=()))
    assert result.status is RunStatus.OK
    assert 0 < result.fuel_used - 100 * CHARGES["call"] < 100 * 20
    limit = result.fuel_used - CHARGES["call"]
    short = run(box, box.request(module, outputs=(), limits={"fuel": limit}))
    assert (short.status, short.fuel_used) == (RunStatus.OUT_OF_FUEL, limit)
    exact = run(box, box.request(module, outputs=(), limits={"fuel": result.fuel_used}))
    assert exact.status is RunStatus.OK


def test_run__folder_listed_again_and_again__is_billed_for_every_name(box: Box, probe: Path) -> None:
    """What a cheat gains: nothing. 20 listings of 100,000 names, which take some 8 s, are 8 s of fuel."""
    for number in range(1000):
        (box.root / "in" / f"{number}").touch()
    result = run(box, box.request(probe, "relist"))
    assert result.status is RunStatus.OK and result.fuel_used is not None
    names = 20 * 1001
    assert names * CHARGES["entry"] < result.fuel_used < 2 * names * CHARGES["entry"]
    short = run(box, box.request(probe, "relist", limits={"fuel": names * CHARGES["entry"]}))
    assert short.status is RunStatus.OUT_OF_FUEL


@pytest.mark.parametrize("yields", [False, True])
def test_run__endless_loop_without_fuel__timeout_by_epoch(box: Box, yields: bool) -> None:
    text = f"""(module (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
      (memory (export "memory") 1) (func (export "_start") (loop {"(drop (call $yield))" if yields else ""} br 0)))"""
    result = run(box, box.request(from_text(box.root, text), limits={"fuel": None, "wall_seconds": 1}))
    assert (result.status, result.fuel_used) == (RunStatus.TIMEOUT, None)
    assert "1 s" in result.detail


def test_child__endless_loop__ends_itself_by_epoch_without_being_killed(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[dict[str, Any]] = []

    def capture(self: wasm.WasmRuntime, message: dict[str, Any], *_: Any) -> RunResult:
        messages.append({**message, "tmp_dir": str(box.root / "scratch")})
        return RunResult(RunStatus.CANCELLED)

    monkeypatch.setattr(wasm.WasmRuntime, "_supervise", capture)
    run(box, box.request(from_text(box.root, command("(loop br 0)")), limits={"fuel": None, "wall_seconds": 1}))
    read, write = os.pipe()
    done = subprocess.run(
        [sys.executable, "-m", wasm.CHILD, "alone", str(write)],
        input=json.dumps(messages[0]).encode(),
        env={"PYTHONPATH": str(ROOT), "HEARTH_PARENT": str(os.getpid())},
        pass_fds=(write,),
        timeout=120,
    )
    os.close(write)
    with os.fdopen(read, "rb") as answers:
        assert json.loads(answers.read().splitlines()[-1])["status"] == "timeout"
    assert done.returncode == 0


def test_run__child_that_ignores_its_deadline__killed_and_named_timeout(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second defence: an engine that hangs is killed from outside."""
    monkeypatch.setattr(wasm, "CHILD", "tests.worker.runtimes.hung_child")
    monkeypatch.setattr(wasm, "KILL_AFTER_SECONDS", 0.5)
    module = from_text(box.root, command("nop"))
    result = run(box, box.request(module, limits={"wall_seconds": 1}))
    assert result.status is RunStatus.TIMEOUT


def test_run__memory_grows_past_the_cap__refused_and_named_out_of_memory(box: Box, probe: Path) -> None:
    result = run(box, box.request(probe, "hog", limits={"memory_bytes": 8 * MIB}))
    assert result.status is RunStatus.OOM
    assert str(8 * MIB) in result.detail


def test_run__memory_bomb_with_a_larger_cap__grows_that_far(box: Box) -> None:
    """Control: the same growth succeeds where the unit was given the memory."""
    body = "(if (i32.eq (memory.grow (i32.const 1000)) (i32.const -1)) (then unreachable))"
    module = from_text(box.root, command(body))
    allowed = box.request(module, limits={"memory_bytes": 1001 * 65536}, outputs=())
    refused = box.request(module, limits={"memory_bytes": 1000 * 65536}, outputs=())
    assert run(box, allowed).status is RunStatus.OK
    assert run(box, refused).status is not RunStatus.OK


def test_run__module_starts_over_the_cap__out_of_memory(box: Box) -> None:
    module = from_text(box.root, command("nop", '(memory (export "memory") 2000)'))
    assert run(box, box.request(module)).status is RunStatus.OOM


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("fill", "/out/x", str(MIB + 1)), "/out would hold"),
        (("fill", "/out/x", str(MIB + 1), "unlinked"), "/out would hold"),
        (("sparse", "/out/x", "100000000000"), "/out would hold"),
        (("fill", "/tmp/x", str(MIB + 1)), "/tmp would hold"),
        (("hold",), "/tmp would hold"),
    ],
)
def test_run__writes_past_a_cap__stopped_at_that_write(box: Box, probe: Path, args: tuple[str, ...], word: str) -> None:
    other = make_box(box.root / "other")
    result = run(box, box.request(probe, *args))
    again = run(other, other.request(probe, *args))
    assert result.status is RunStatus.OUTPUT_OVER_CAP
    assert word in result.detail
    assert result.fuel_used == again.fuel_used  # the same write on every machine
    assert sum(p.stat().st_size for p in (box.root / "out").rglob("*")) <= MIB


def test_run__output_of_an_earlier_attempt__counts(box: Box, probe: Path) -> None:
    (box.root / "out" / "kept").write_bytes(bytes(MIB - 100))
    assert run(box, box.request(probe, "fill", "/out/x", "200")).status is RunStatus.OUTPUT_OVER_CAP
    assert run(box, box.request(probe, "fill", "/out/kept", "200")).status is RunStatus.OK


@pytest.mark.parametrize("args", [("fill", "/out/x", str(MIB - 1)), ("hold", "not"), ("reuse",)])
def test_run__writes_within_the_cap__ok(box: Box, probe: Path, args: tuple[str, ...]) -> None:
    assert run(box, box.request(probe, *args)).status is RunStatus.OK


def test_run__endless_file_names__stopped_at_the_entry_cap(box: Box, probe: Path) -> None:
    result = run(box, box.request(probe, "names"))
    assert result.status is RunStatus.OUTPUT_OVER_CAP
    assert str(wasi_files.MAX_ENTRIES) in result.detail
    assert len(os.listdir(box.root / "out")) == wasi_files.MAX_ENTRIES


def test_run__log_flood__head_and_tail_kept_within_the_cap(box: Box, probe: Path) -> None:
    streamed: list[bytes] = []
    request = box.request(probe, "flood")
    runtime = wasm.WasmRuntime(box.root / "scratch")
    result = runtime.run(request, threading.Event(), lambda stream, chunk: streamed.append(chunk))
    assert result.status is RunStatus.OK and result.stdout_truncated and not result.stderr_truncated
    assert len(result.stdout) <= 64 * 1024 + 64
    assert result.stdout.startswith(b"first line\n") and result.stdout.endswith(b"last line\n")
    assert b"bytes dropped" in result.stdout
    assert 0 < sum(map(len, streamed)) <= 2 * 64 * 1024


def test_run__no_output_at_all__output_missing(box: Box, probe: Path) -> None:
    result = run(box, box.request(probe, "exit", "0"))
    assert (result.status, result.exit_code) == (RunStatus.OUTPUT_MISSING, 0)
    assert "/out is empty" in result.detail


def test_run__named_output_missing__output_missing(box: Box, probe: Path) -> None:
    rules = (OutputRule("/out"), OutputRule("/out/weights.bin"))
    result = run(box, box.request(probe, "env", outputs=rules))
    assert result.status is RunStatus.OUTPUT_MISSING
    assert "/out/weights.bin is missing" in result.detail


def test_run__named_output_over_its_own_cap__output_over_cap(box: Box, probe: Path) -> None:
    rules = (OutputRule("/out/x", max_bytes=99),)
    assert run(box, box.request(probe, "fill", "/out/x", "100", outputs=rules)).status is RunStatus.OUTPUT_OVER_CAP


# -- modules that are refused ------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (command("nop", '(memory (export "memory") i64 1)'), "memory64"),
        (command("nop", '(memory (export "memory") 1 1 shared)'), "threads"),
        (command("nop", '(memory (export "memory") 1) (memory 1)'), "multiple memories"),
        ('(module (type (struct)) (memory (export "memory") 1) (func (export "_start")))', "gc"),
        (command("(drop (i32x4.relaxed_trunc_f32x4_s (v128.const i64x2 0 0)))"), "relaxed"),
        (command("return_call 0"), "tail call"),
        ('(module (memory (export "memory") 1))', "_start"),
        ('(module (func (export "_start")))', "memory"),
        ("(component)", "core module"),
    ],
)
def test_run__module_with_a_feature_that_is_off__bad_input(box: Box, text: str, word: str) -> None:
    result = run(box, box.request(from_text(box.root, text)))
    assert result.status is RunStatus.BAD_INPUT
    assert word in result.detail.replace("tail calls", "tail call")


@pytest.mark.parametrize("content", [b"", b"\0asm", b"\0asm\1\0\0\0\xff\xff\xff", b"#!/bin/sh\n", bytes(1000)])
def test_run__malformed_module__bad_input(box: Box, content: bytes) -> None:
    path = box.root / "bad.wasm"
    path.write_bytes(content)
    assert run(box, box.request(path)).status is RunStatus.BAD_INPUT


def test_run__import_with_an_endless_name__bad_input_in_a_sentence(box: Box) -> None:
    """What a cheat gains: nothing. A reason longer than what a worker reads of it would be no reason at all."""
    text = f'(module (import "{"m" * 80_000}" "{"n" * 80_000}" (func)) (memory (export "memory") 1))'
    result = run(box, box.request(from_text(box.root, text)))
    assert result.status is RunStatus.BAD_INPUT
    assert result.detail.startswith("unknown import mmm") and len(result.detail) < 300


def test_run__module_that_takes_more_memory_to_compile_than_its_job_has__bad_input(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a cheat gains: nothing. The compiler has the memory of its job and a fixed share, not the machine's."""
    module = from_text(box.root, command(f"(local i64) {COSTLY * 6_000}"))
    monkeypatch.setattr(wasm, "ENGINE_BYTES", 48 * MIB)  # and a module of this size, to be done soon
    for memory, stopped in ((16, True), (256, False)):  # while it compiles; by what it leaves to the guest
        result = run(box, box.request(module, limits={"memory_bytes": memory * MIB}))
        assert result.status is RunStatus.BAD_INPUT
        assert "raise resources.memory" in result.detail and f"{memory}MiB" in result.detail
        assert (wasm.NO_MEMORY in result.stderr) is stopped
    monkeypatch.undo()
    assert run(box, box.request(module, outputs=())).status is RunStatus.OK


def test_run__module_over_the_size_cap__bad_input_before_it_is_read(box: Box) -> None:
    path = box.root / "huge.wasm"
    with path.open("wb") as huge:
        huge.write(b"\0asm\1\0\0\0")
        huge.truncate(MAX_MODULE_BYTES + 1)
    refused = run(box, box.request(path))
    assert refused.status is RunStatus.BAD_INPUT
    assert str(MAX_MODULE_BYTES) in refused.detail


def test_prepare__module_that_is_there_or_not__told(box: Box, probe: Path) -> None:
    runtime = wasm.WasmRuntime(box.root / "scratch")
    assert runtime.prepare(str(probe)) is None
    refused = runtime.prepare(str(box.root / "none.wasm"))
    assert refused is not None and refused.status is RunStatus.BAD_INPUT


def test_inspect__module_that_a_run_gives_back__is_refused_and_no_other_and_nothing_runs(
    box: Box, probe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Profit: what is found here costs no bond. What a run ends as a result of its own is left to the run."""
    runtime, never = wasm.WasmRuntime(box.root / "scratch"), threading.Event()
    before = box.tree()
    assert runtime.inspect(box.request(probe, "fill", "/out/x", "1000"), never) is None
    spins = box.request(from_text(box.root, command("(loop (br 0))")), limits={"fuel": None})
    assert runtime.inspect(spins, never) is None
    big = box.request(from_text(box.root, command("nop", '(memory (export "memory") 5000)')))
    assert runtime.inspect(big, never) is None and run(box, big).status is RunStatus.OOM
    assert box.tree() == before and not list((box.root / "scratch").iterdir())
    feature = from_text(box.root, command("return_call 0"))
    costly = from_text(box.root, command(f"(local i64) {COSTLY * 6_000}"))
    monkeypatch.setattr(wasm, "ENGINE_BYTES", 48 * MIB)
    for request in (
        box.request(box.root / "none.wasm"),
        box.request(feature),
        box.request(probe, env={"LD_PRELOAD": "x"}),
        box.request(costly, limits={"memory_bytes": 256 * MIB}),
    ):
        refused = runtime.inspect(request, never)
        assert refused is not None and refused.status is RunStatus.BAD_INPUT
        assert refused.detail == run(box, request).detail
    never.set()
    cancelled = runtime.inspect(box.request(probe), never)
    assert cancelled is not None and cancelled.status is RunStatus.CANCELLED


def test_inspect__until_a_time__ends_at_it(box: Box) -> None:
    module = from_text(box.root, command(f"(local i64) {COSTLY * 60_000}"))
    began = time.monotonic()
    request = box.request(module, until=began + 0.1, least_seconds=0, limits={"memory_bytes": 1 << 30})
    refused = wasm.WasmRuntime(box.root / "scratch").inspect(request, threading.Event())
    assert refused is not None and refused.detail == "the module was not compiled in the time that there was"
    assert 0.1 <= time.monotonic() - began < 5


def test_run__guest_that_spins_past_the_time_of_its_lease__timed_out(box: Box, probe: Path) -> None:
    request = box.request(probe, "spin", limits={"fuel": None}, until=time.monotonic() + 8)
    assert run(box, request).status is RunStatus.TIMEOUT
    assert time.monotonic() < request.until + 2


def test_run__less_left_than_a_run_must_have_once_it_is_compiled__is_not_begun(box: Box, probe: Path) -> None:
    request = box.request(probe, "spin", limits={"fuel": None}, until=time.monotonic() + 20, least_seconds=20)
    result = run(box, request)
    assert result.status is RunStatus.BAD_INPUT
    assert "not compiled in the time" in result.detail or "of 30 s were left" in result.detail
    assert time.monotonic() < request.until - 10


def test_run__module_file_missing__bad_input(box: Box) -> None:
    assert run(box, box.request(box.root / "none.wasm")).status is RunStatus.BAD_INPUT


# -- the child process ------------------------------------------------


Spinning = tuple[threading.Thread, list[RunResult], threading.Event, int]


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HEARTH_RPC", "http://canary")
    return "canary"


@pytest.fixture
def spinning(box: Box, probe: Path) -> Iterator[Spinning]:
    """Start an endless guest in a thread and wait until it runs; yield (thread, results, cancel, pid)."""
    results: list[RunResult] = []
    cancel = threading.Event()
    request = box.request(probe, "spin", limits={"fuel": None, "wall_seconds": 600})
    thread = threading.Thread(target=lambda: results.append(run(box, request, cancel)))
    thread.start()
    while not (box.root / "out" / "done").exists():
        assert thread.is_alive()
        time.sleep(0.02)
    (pid,) = [pid for pid, label in wasm.children() if label == request.unit]
    yield thread, results, cancel, pid
    cancel.set()
    thread.join(30)


def test_run__cancelled__child_gone_and_named(box: Box, spinning: Spinning) -> None:
    thread, results, cancel, pid = spinning
    cancel.set()
    thread.join(30)
    assert results[0].status is RunStatus.CANCELLED
    assert not Path(f"/proc/{pid}").exists()
    assert list((box.root / "scratch").iterdir()) == []


def test_run__child_killed_from_outside__broken_not_the_jobs_fault(box: Box, spinning: Spinning) -> None:
    thread, results, _, pid = spinning
    os.kill(pid, signal.SIGKILL)
    thread.join(30)
    assert results[0].status is RunStatus.BROKEN
    assert "SIGKILL" in results[0].detail


def test_run__engine_crashes_under_the_guest__trap(box: Box, spinning: Spinning) -> None:
    thread, results, _, pid = spinning
    os.kill(pid, signal.SIGABRT)
    thread.join(30)
    assert results[0].status is RunStatus.TRAP
    assert "SIGABRT" in results[0].detail


@pytest.mark.parametrize(
    "answer",
    [
        b"[",
        b"[" * 9_000,
        b"5",
        b'{"status": []}',
        b'{"status": "ok"}',
        b'{"status": "broken", "detail": ""}',
        b'{"status": "cancelled", "detail": ""}',
        b'{"status": "ok", "detail": "\\ud800"}',
        b'{"status": "ok", "detail": "", "fuel_used": "all"}',
        b'{"status": "ok", "detail": "", "fuel_used": true}',
        b'{"status": "ok", "detail": "", "fuel_used": -1}',
        b'{"status": "ok", "detail": "", "exit_code": 1e99}',
    ],
)
def test_name_end__answer_that_no_child_of_ours_gives__is_the_modules_doing(box: Box, answer: bytes) -> None:
    """What breaks out of the engine has the pipe of the answers too: a lie there is no fault of the worker."""
    request = box.request(Path("module"))
    for since, status in ((time.monotonic(), RunStatus.TRAP), (None, RunStatus.BAD_INPUT)):
        said = wasm._Said(request.limits, None)
        said.answer(answer + b"\n")
        said.running_since = since
        ended = wasm._name_end(said, 1, None, request)
        assert (ended.status, "broke out of the engine" in ended.detail) == (status, True), ended


# ---- what a child holds ----

HOARD = """
import ctypes, mmap, sys
held = mmap.mmap(-1, 40 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
held.write(bytes(40 << 20))
at = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(held)))
assert ctypes.CDLL(None).mprotect(at, ctypes.c_size_t(40 << 20), mmap.PROT_READ) == 0
print("held", flush=True)
sys.stdin.read()
"""
"""Hold memory that RLIMIT_DATA forgets: it was written, and is read-only now."""


@pytest.fixture
def hoarder() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", HOARD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        yield process.pid
        process.kill()


def excess_of(pid: int, box: Box, memory_bytes: int) -> str:
    """Look once at what a process holds."""
    watch = wasm.Watch(pid, box.request(Path("module"), limits={"memory_bytes": memory_bytes}), box.root / "scratch")
    try:
        return watch.excess()
    finally:
        watch.close()


def test_watch__memory_that_was_made_read_only__is_too_much(
    hoarder: int, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The profit would be the machine's memory for the pay of a small job, at the cost of the other jobs."""
    monkeypatch.setattr(wasm, "ENGINE_BYTES", 0)
    assert "bytes of memory, more than the 33554432" in excess_of(hoarder, box, 32 * MIB)
    assert excess_of(hoarder, box, 128 * MIB) == ""


def test_held_bytes__memory_that_was_made_read_only__counts(hoarder: int) -> None:
    """The engine's code is such memory: compiled, it must leave the job its own."""
    statm = os.open(f"/proc/{hoarder}/statm", os.O_RDONLY)
    try:
        assert wasm_child.held_bytes(statm) > 40 * MIB
    finally:
        os.close(statm)


@pytest.mark.parametrize("name", ["/out", "/tmp"])
def test_watch__many_small_files__are_too_much(name: str, box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """The profit would be every file that the disk can hold, for a few bytes of the caps."""
    monkeypatch.setattr(base, "MAX_OUTPUT_ENTRIES", 10)
    folder = box.root / {"/out": "out", "/tmp": "scratch"}[name]
    for number in range(10):
        (folder / str(number)).touch()
    assert excess_of(os.getpid(), box, 1 << 32) == ""
    (folder / "10").touch()
    assert excess_of(os.getpid(), box, 1 << 32) == f"{name} holds more than 10 entries"


def test_watch__folder_that_a_sweep_removed__is_nothing_to_name(box: Box) -> None:
    shutil.rmtree(box.root / "scratch")
    assert excess_of(os.getpid(), box, 1 << 32) == ""


def test_name_end__answer_that_was_cut_off__is_none(box: Box) -> None:
    request = box.request(Path("module"))
    said = wasm._Said(request.limits, None)
    said.answer(b'{"phase": "run"}\n{"status": "o')
    assert wasm._name_end(said, -signal.SIGKILL, None, request).status is RunStatus.BROKEN


def test_sweep__child_of_this_label__killed_others_left(box: Box, spinning: Spinning) -> None:
    thread, results, _, _ = spinning
    runtime = wasm.WasmRuntime(box.root / "scratch")
    assert runtime.sweep("no-such-label") == 0
    assert runtime.sweep(f"test-{os.getpid()}") == 1
    thread.join(120)
    assert results[0].status is RunStatus.BROKEN


def test_run__worker_killed__child_dies_with_it(box: Box, probe: Path) -> None:
    program = """
import sys, threading
from pathlib import Path
from worker.runtimes.base import SandboxLimits, RunRequest
from worker.runtimes.wasm import WasmRuntime
root = Path(sys.argv[1])
limits = SandboxLimits(wall_seconds=600, memory_bytes=64 << 20)
WasmRuntime(root / "scratch").run(RunRequest("orphan-" + sys.argv[3], ("spin",), root / "job", root / "in",
    root / "out", limits, module=Path(sys.argv[2])), threading.Event())
"""
    label = f"orphan-{os.getpid()}"
    worker = subprocess.Popen(
        [sys.executable, "-c", program, str(box.root), str(probe), str(os.getpid())],
        env={"PYTHONPATH": str(ROOT)},
    )
    while not (box.root / "out" / "done").exists():
        assert worker.poll() is None
        time.sleep(0.02)
    assert [name for _, name in wasm.children()].count(label) == 1
    worker.kill()
    worker.wait()
    for _ in range(200):
        if label not in [name for _, name in wasm.children()]:
            break
        time.sleep(0.05)
    assert label not in [name for _, name in wasm.children()]


def test_child__what_the_worker_has__not_inherited(
    box: Box, probe: Path, canary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wasm, "CHILD", "tests.worker.runtimes.telling_child")
    with (box.root / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        said = json.loads(run(box, box.request(probe)).stdout)
    assert canary not in json.dumps(said)
    assert set(said["environ"]) - {"LC_CTYPE"} == {"PYTHONPATH", "HEARTH_PARENT"}
    assert said["files"] == ["pipe"] * 4  # the request, both streams, the answers


@pytest.mark.parametrize(
    "answer",
    [
        *("7", "[]", "null", "{}", "[" * 60_000, '{"status": "ok"}', '{"status": "paid", "detail": ""}'),
        *(
            '{"status": ["ok"], "detail": ""}',
            '{"status": "ok", "detail": {}}',
            '{"status": "ok", "detail": "\\ud800"}',
        ),
        '{"status": "ok", "detail": "", "exit_code": true}',
        '{"status": "ok", "detail": "", "fuel_used": 9007199254740992}',
        '{"status": "ok", "detail": "", "fuel_used": -1}',
    ],
    ids=lambda answer: answer[:50],
)
def test_run__answer_that_no_child_gives__is_its_modules_doing(
    box: Box, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """A guest that has broken the engine writes its own answer; what it writes ends its unit and nothing else."""
    monkeypatch.setattr(wasm, "CHILD", "tests.worker.runtimes.answering_child")
    module = box.root / "answer.wasm"
    module.write_text(answer)
    result = run(box, box.request(module))
    assert result.status is RunStatus.TRAP and "broke out of the engine" in result.detail
    assert result.fuel_used is None and result.exit_code is None


def test_run__answer_of_the_form__is_taken(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: the same child is believed where it answers as ours does."""
    monkeypatch.setattr(wasm, "CHILD", "tests.worker.runtimes.answering_child")
    module = box.root / "answer.wasm"
    module.write_text('{"status": "trap", "detail": "unreachable", "fuel_used": 7}')
    result = run(box, box.request(module))
    assert (result.status, result.detail, result.fuel_used) == (RunStatus.TRAP, "unreachable", 7)


def test_child__while_a_guest_runs__is_bounded_and_every_thread_walled_in(spinning: Spinning) -> None:
    _, _, _, pid = spinning
    for thread in Path(f"/proc/{pid}/task").iterdir():
        status = dict(line.split(":\t") for line in (thread / "status").read_text().splitlines())
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2" if walls.has_filters() else "0")
    limits = Path(f"/proc/{pid}/limits").read_text()
    hard = {line[:25].strip(): line[25:].split()[1] for line in limits.splitlines()[1:]}
    assert (hard["Max core file size"], hard["Max open files"]) == ("1", str(2 * wasi_files.MAX_FDS))
    assert int(hard["Max data size"]) == 64 * MIB + wasm.ENGINE_BYTES


def test_engine_id__any_setting_changed__another_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    before = wasm_child.engine_id()
    monkeypatch.setitem(wasm_child.ENGINE_CONFIG, "cranelift_nan_canonicalization", False)
    assert wasm_child.engine_id() != before


def test_import__runtime_module__does_not_load_the_engine() -> None:
    program = "import sys, json, worker.runtimes.wasm; print(json.dumps('wasmtime' in sys.modules))"
    out = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(ROOT)}, capture_output=True, check=True
    )
    assert json.loads(out.stdout) is False
