"""The wasm runtime: one child process per unit, with limits, and the same result on every machine.

This module never loads the engine into the worker; see wasm_child for what runs, wasi for what a guest can call.
"""

from __future__ import annotations

import json
import math
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

from hearth.base.errors import HearthError
from hearth.base.files import delete_tree
from hearth.base.text import brief
from hearth.base.untrusted_json import read_json
from hearth.protocol.wasi import MAX_MEMORY_BYTES
from hearth.storage.canonical import MAX_INTEGER
from worker.runtimes import walls
from worker.runtimes.base import (
    Level,
    LogBuffer,
    LogSink,
    RunRequest,
    RunResult,
    RunStatus,
    SandboxLimits,
    check_outputs,
    guest_env,
    measure,
    over_cap,
    wasm_no_room,
)
from worker.runtimes.published import copy_folder

CHILD = "worker.runtimes.wasm_child"
PROGRAM_NAME = "main"  # argv[0]; the module's file name is the worker's business and would differ between machines
COMPILE_SECONDS = 60
# What a unit's process may hold beside the memory of its job: Python, the engine, and what that compiles.
ENGINE_BYTES = 256 << 20
# The child ends itself at the deadline; one that cannot (a hang inside the engine) is killed this much later.
KILL_AFTER_SECONDS = 5
# One that is not over when its lease needs the answer is killed this much later: the decline must still be mined.
LATE_SECONDS = 0.5
POLL_SECONDS = 0.1
WALK_SHARE = 4
"""A walk through what a child wrote is followed by four times the processor's time that it took without one."""
MAX_RESULT_BYTES = 64 * 1024
STARTED = {"phase": "run"}
"""What a child says when its guest starts."""
ENDS = frozenset(
    RunStatus(word) for word in ("ok", "exit", "trap", "oom", "timeout", "out_of_fuel", "output_over_cap", "bad_input")
)
"""How a child may say that a run ended."""
TMP_PREFIX = "hearth-wasm-"
NO_MEMORY = b"memory allocation of"
"""What the engine says before it aborts because it was refused memory."""
MAX_LAST_WORDS = 300


class WasmRuntime:
    """Run WASI commands. `scratch` holds each unit's /tmp while it runs."""

    name = "wasm"

    def __init__(self, scratch: Path | None = None) -> None:
        self._scratch = scratch or Path(tempfile.gettempdir())

    def available(self) -> tuple[bool, str]:
        """Say whether the engine is installed; the reason is its version when it is."""
        try:
            return True, f"wasmtime {version('wasmtime')}"
        except PackageNotFoundError:
            return False, "the Python package wasmtime is not installed"

    def prepare(self, target: str, until: float = math.inf, cancel: threading.Event | None = None) -> RunResult | None:
        """Say whether the module file is there. A run compiles it, once, and refuses what cannot be compiled."""
        return None if Path(target).is_file() else _no_module(Path(target))

    def keeping(self, target: str) -> AbstractContextManager[None]:
        """Do nothing: a module lies in its unit's own folder."""
        return nullcontext()

    def inspect(self, request: RunRequest, cancel: threading.Event) -> RunResult | None:
        """Compile a module in the very sandbox of its run, which then compiles it again: compiled code outlives no
        process that has seen a stranger's bytes."""
        result = self._run(request, cancel, None, only_compile=True)
        # Too little memory for the module's own is a result, and a run's to tell.
        refused = (RunStatus.BAD_INPUT, RunStatus.BROKEN, RunStatus.CANCELLED)
        return result if result.status in refused else None

    def run(self, request: RunRequest, cancel: threading.Event, on_log: LogSink | None = None) -> RunResult:
        """Run one unit and judge its outputs; never raises for anything that the job does."""
        result = self._run(request, cancel, on_log)
        if result.ok:
            status, detail = check_outputs(request.out_dir, request.outputs, request.limits.out_bytes)
            result = replace(result, status=status, detail=detail)
        return result

    def walls_down(self) -> int:
        """Count the walls that this kernel does not put around a module."""
        return sum(row.level is not Level.PASS for row in walls.look())

    def copy_out(self, request: RunRequest, place: str, into: Path, moved: Callable[[], None]) -> None:
        """Copy what a running unit has published: a file that is opened is complete, since it came by a rename."""
        copy_folder(request.out_dir, place, into, request.limits.out_bytes, moved)

    def sweep(self, prefix: str = "") -> int:
        """Kill children whose unit label starts with `prefix` and remove their /tmp; return how many were killed.

        Children die with their worker by themselves (parent-death signal); this is for the one that was missed.
        """
        killed = 0
        for pid, label in children():
            if label.startswith(prefix):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        for left in self._scratch.glob(f"{TMP_PREFIX}{prefix}*"):
            delete_tree(left)
        return killed

    def _run(
        self, request: RunRequest, cancel: threading.Event, on_log: LogSink | None, *, only_compile: bool = False
    ) -> RunResult:
        if request.module is None or not request.module.is_file():
            return _no_module(request.module)
        try:
            env = guest_env(request)
        except HearthError as refused:
            return RunResult(RunStatus.BAD_INPUT, refused.message)
        limits = request.limits
        tmp = tempfile.mkdtemp(prefix=f"{TMP_PREFIX}{request.unit}-", dir=self._scratch)
        message = {
            "module": os.path.abspath(request.module),
            "command": [PROGRAM_NAME, *request.command],
            "env": env,
            "in_dir": os.path.abspath(request.in_dir),
            "job_dir": os.path.abspath(request.job_dir),
            "out_dir": os.path.abspath(request.out_dir),
            "tmp_dir": tmp,
            "seed": request.seed.hex(),
            "wall_seconds": limits.wall_seconds,
            "most_seconds": max(limits.wall_seconds, limits.most_seconds),
            # Both processes read the machine's one monotonic clock. None: no lease waits (JSON has no infinity).
            "until": request.until if math.isfinite(request.until) else None,
            "least_seconds": request.least_seconds,
            "compile_seconds": COMPILE_SECONDS,
            "memory_bytes": _memory_of(request),
            "engine_bytes": ENGINE_BYTES,
            "out_bytes": limits.out_bytes,
            "tmp_bytes": limits.tmp_bytes,
            "fuel": limits.fuel,
            "only_compile": only_compile,
        }
        try:
            return self._supervise(message, request, cancel, on_log)
        finally:
            delete_tree(Path(tmp))

    def _supervise(
        self, message: dict[str, Any], request: RunRequest, cancel: threading.Event, on_log: LogSink | None
    ) -> RunResult:
        """Start the child, follow its three pipes, kill it on cancel, past its time or its bounds, and name the end."""
        begun = time.monotonic()
        child, result_fd = _start(request.unit)
        watch = Watch(child.pid, request, Path(message["tmp_dir"]))
        assert child.stdin and child.stdout and child.stderr
        said = _Said(request.limits, on_log)
        deadline = min(begun + COMPILE_SECONDS, request.until - request.least_seconds + LATE_SECONDS)
        killed: RunStatus | None = None
        excess = ""
        with child, selectors.DefaultSelector() as pipes:
            pipes.register(child.stdout, selectors.EVENT_READ, "stdout")
            pipes.register(child.stderr, selectors.EVENT_READ, "stderr")
            pipes.register(result_fd, selectors.EVENT_READ, "result")
            try:
                line = _Line(child.stdin)
                line.say(message)
                if not request.limits.most_seconds:
                    line.close()
                told = 0
                while pipes.get_map():
                    if killed is None and (cancel.is_set() or time.monotonic() > deadline):
                        killed = RunStatus.CANCELLED if cancel.is_set() else RunStatus.TIMEOUT
                        child.kill()
                    elif killed is None and (excess := watch.excess()):
                        killed = RunStatus.TRAP
                        child.kill()
                    for key, _ in pipes.select(POLL_SECONDS):
                        chunk = os.read(key.fd, 1 << 16)
                        if not chunk:
                            pipes.unregister(key.fileobj)
                        elif key.data == "result":
                            said.answer(chunk)
                        else:
                            said.log(key.data, chunk)
                    if said.running_since is not None:
                        bought = request.bought.seconds
                        if bought != told:
                            line.say({"bought": bought})
                            told = bought
                        end = said.running_since + request.wall_seconds + KILL_AFTER_SECONDS
                        deadline = min(end, request.until + bought + LATE_SECONDS)
            finally:
                line.close()
                child.kill()
                watch.close()
                os.close(result_fd)
        wall = time.monotonic() - (said.running_since or begun)
        result = _name_end(said, child.returncode, killed, request, excess)
        return replace(
            result,
            wall_seconds=wall,
            stdout=said.logs["stdout"].value(),
            stderr=said.logs["stderr"].value(),
            stdout_truncated=said.logs["stdout"].truncated,
            stderr_truncated=said.logs["stderr"].truncated,
            engine=_engine_id(),
        )


def _start(unit: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start a child; return it and the descriptor from which its answers are read, which the caller closes."""
    read_fd, write_fd = os.pipe()
    try:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", CHILD, unit, str(write_fd)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(write_fd,),
            # Nothing of the worker's own environment: no key path, no RPC URL.
            env={"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "HEARTH_PARENT": str(os.getpid())},
            cwd="/",
            start_new_session=True,
        )
    except OSError:
        os.close(read_fd)
        raise
    finally:
        os.close(write_fd)
    return child, read_fd


class _Line:
    """What a child is told: its request, and while its guest runs the seconds that were bought for it."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe

    def say(self, message: dict[str, Any]) -> None:
        """Write one line; a child that has ended hears nothing."""
        with suppress(BrokenPipeError, ValueError):
            self._pipe.write(json.dumps(message).encode() + b"\n")
            self._pipe.flush()

    def close(self) -> None:
        """Say nothing more."""
        with suppress(BrokenPipeError):
            self._pipe.close()


class Watch:
    """Look at what a child holds of memory, /out and /tmp.

    An engine without a hole stays within these bounds whatever its module does: what passes them broke out of it. No
    limit of the kernel's holds there: RLIMIT_DATA forgets memory that is written and then made read-only, and none
    counts files.
    """

    def __init__(self, pid: int, request: RunRequest, tmp: Path) -> None:
        # Opened before the child hides from other programs of its user.
        self._status = os.open(f"/proc/{pid}/status", os.O_RDONLY)
        # RLIMIT_DATA, and compiled code, which it does not count, within the engine's own.
        self._memory = _memory_of(request) + 2 * ENGINE_BYTES
        self._folders = (
            ("/out", request.out_dir, request.volume, request.limits.out_bytes),
            ("/tmp", tmp, None, request.limits.tmp_bytes),
        )
        self._room = request.room
        self._next_look = self._next_walk = 0.0

    def close(self) -> None:
        """Look no more."""
        os.close(self._status)

    def excess(self) -> str:
        """Return what the child holds too much of, where it is time to look; "" where there is nothing."""
        now = time.monotonic()
        if now < self._next_look:
            return ""
        self._next_look = now + POLL_SECONDS
        held = memory_of(os.pread(self._status, 1 << 13, 0))
        if held > self._memory:
            return f"it holds {held} bytes of memory, more than the {self._memory} that its limits leave"
        if now >= self._next_walk:
            begun = time.thread_time()
            taken = 0
            for name, folder, volume, cap in self._folders:
                # A sweep removes the folders of a child that it killed, before the child is seen to have ended.
                with suppress(FileNotFoundError):
                    tree = measure(folder, volume)
                    taken += tree.blocks if volume is None else 0
                    if excess := over_cap(tree, cap, name):
                        return excess
            self._room.taken = taken
            self._next_walk = time.monotonic() + WALK_SHARE * (time.thread_time() - begun)
        return ""


def memory_of(status: bytes) -> int:
    """Return the bytes of memory that are a process's own, swapped ones included, from its /proc/PID/status."""
    return sum(
        int(line.split()[1]) << 10
        for line in status.splitlines()
        if line.startswith((b"RssAnon:", b"RssShmem:", b"VmSwap:"))
    )


class _Said:
    """What a child said on its three pipes, within bounds, and when it began to run its guest."""

    def __init__(self, limits: SandboxLimits, on_log: LogSink | None) -> None:
        self.logs = {"stdout": LogBuffer(limits.log_bytes), "stderr": LogBuffer(limits.log_bytes)}
        self.running_since: float | None = None
        self._room = {"stdout": limits.log_bytes, "stderr": limits.log_bytes}
        self._on_log = on_log
        self._answers = b""

    def log(self, name: str, chunk: bytes) -> None:
        """Keep a part of a stream, and pass on what fits in the cap."""
        self.logs[name].write(chunk)
        room = self._room[name]
        if self._on_log is not None and room > 0:
            self._on_log(name, chunk[:room])
            self._room[name] = room - min(room, len(chunk))

    def answer(self, chunk: bytes) -> None:
        """Keep a part of the answers; the first line says that the guest starts."""
        self._answers = (self._answers + chunk)[:MAX_RESULT_BYTES]
        if self.running_since is None and b"\n" in self._answers:
            self.running_since = time.monotonic()

    def last_answer(self) -> RunResult | None:
        """Return how the run ended, by the last line, None where none says so: a last line may be cut off.

        Raises ValueError for what no child of ours says: its module broke out of the engine.
        """
        last = next((line for line in reversed(self._answers.split(b"\n")[:-1]) if line), b"")
        answer: Any = read_json(last) if last else STARTED
        if answer == STARTED:
            return None
        if not isinstance(answer, dict) or not all(isinstance(answer.get(name), str) for name in ("status", "detail")):
            raise ValueError("it is no end of a run")
        if answer["status"] not in ENDS:
            raise ValueError("it names no end of a run")
        numbers = answer.get("exit_code"), answer.get("fuel_used")
        for number in numbers:
            # The result document holds no larger number.
            if number is not None and (type(number) is not int or not 0 <= number <= MAX_INTEGER):
                raise ValueError("it counts what cannot be")
        return RunResult(RunStatus(answer["status"]), answer["detail"], exit_code=numbers[0], fuel_used=numbers[1])


def _memory_of(request: RunRequest) -> int:
    """Return the most bytes of memory that a guest can have."""
    return min(request.limits.memory_bytes, MAX_MEMORY_BYTES)


def _engine_id() -> str:
    from worker.runtimes.wasm_child import engine_id

    return engine_id()


def _no_module(path: Path | None) -> RunResult:
    return RunResult(RunStatus.BAD_INPUT, f"the module file {path} does not exist")


def _name_end(said: _Said, code: int, killed: RunStatus | None, request: RunRequest, excess: str = "") -> RunResult:
    """Name the end of a child: by its own answer, unless it was cancelled, held too much or gave none."""
    if killed is RunStatus.CANCELLED:
        return RunResult(RunStatus.CANCELLED, "cancelled")
    try:
        answer = said.last_answer()
    except ValueError as nonsense:
        excess = excess or f"it answered as none of ours does ({nonsense})"
    if excess:
        return RunResult(
            RunStatus.BAD_INPUT if said.running_since is None else RunStatus.TRAP,
            f"the module broke out of the engine: {excess}",
        )
    if answer is None:
        return _name_death(said, code, killed, request)
    return answer


def _name_death(said: _Said, code: int, killed: RunStatus | None, request: RunRequest) -> RunResult:
    """Name the end of a child that gave no answer.

    A compiler that dies or takes too long is the module's fault. A running guest that takes the engine down is
    a trap. SIGKILL that we did not send, or a Python error, is the machine's trouble and says nothing about the job.
    """
    since = said.running_since
    if killed is RunStatus.TIMEOUT:
        if since is None:
            return RunResult(RunStatus.BAD_INPUT, "the module was not compiled in the time that there was")
        return RunResult(RunStatus.TIMEOUT, f"not done after {request.wall_seconds} s")
    how = f"died by {signal.Signals(-code).name}" if code < 0 else f"ended with {code} and no answer"
    if -code == signal.SIGXCPU:
        return RunResult(RunStatus.TIMEOUT, f"the sandbox process {how}")
    if -code in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP):
        if since is not None:
            return RunResult(RunStatus.TRAP, f"the sandbox process {how}")
        if NO_MEMORY in said.logs["stderr"].value():  # all of it is the engine's: no guest has run
            return RunResult(RunStatus.BAD_INPUT, wasm_no_room(_memory_of(request), ENGINE_BYTES))
        return RunResult(RunStatus.BAD_INPUT, f"the module took the compiler down: the process {how}")
    if code > 0:  # Python's last line says why
        last = said.logs["stderr"].value().decode(errors="replace").strip().rpartition("\n")[2]
        how = f"{how}: {brief(last, MAX_LAST_WORDS)}"
    return RunResult(RunStatus.BROKEN, f"the sandbox process {how}")


def children() -> Iterator[tuple[int, str]]:
    """Yield (pid, unit label) of every sandbox child on this machine."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                argv = (entry / "cmdline").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if CHILD.encode() in argv:
                label = argv[argv.index(CHILD.encode()) + 1 :]
                yield int(entry.name), label[0].decode(errors="replace") if label else ""
