"""Run one WebAssembly unit in a process of its own: `python -P -m worker.runtimes.wasm_child LABEL RESULT_FD`.

The request is one JSON object on stdin, the guest's stdout and stderr are this process's, and RESULT_FD receives one
JSON line when the guest starts and one when it ended. A crash, a hang or a memory blow-up of the engine costs this
process, never the worker; a hole in it gives a stranger what `walls` left. The store lives for one run and is dropped
with it, trap or not (CVE-2026-104855).
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hearth.base.text import brief
from hearth.base.wasm_engine import engine_of
from hearth.protocol import wasi as preview1
from hearth.protocol.wasi import ENGINE_CONFIG
from worker.runtimes import walls, wasi, wasi_abi
from worker.runtimes.base import measure, wasm_late, wasm_no_room
from worker.runtimes.wasi_files import MAX_FDS, Mount, OverCap, Quota

if TYPE_CHECKING:
    import wasmtime

MAX_TABLE_ELEMENTS = 1_000_000
NO_LIMIT_FUEL = (1 << 63) - 1
# The engine reserves 4 GiB of addresses for a linear memory so that it needs no bounds checks; only what is written
# counts as data.
ADDRESS_SLACK = 6 << 30
# As far as a container goes ahead of the worker where the machine has no memory left.
OOM_SCORE = 500
MAX_DETAIL = 1000  # characters: a module may name what it imports as long as it likes
# A trap while the memory is this close to its cap is named out of memory: guests that fail to grow abort.
NEARLY_FULL_BYTES = 1 << 20
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4


def engine_id() -> str:
    """Return the engine's name: version of wasmtime and a hash of every setting that matters."""
    from importlib.metadata import version  # slow to load, and asked by the worker only

    text = json.dumps(ENGINE_CONFIG, sort_keys=True).encode()
    return f"wasmtime {version('wasmtime')} config {hashlib.sha256(text).hexdigest()[:16]}"


@dataclass
class LinearMemory:
    """Give WASI bounds-checked access to the guest's exported memory, which may move when it grows."""

    store: wasmtime.Store
    memory: wasmtime.Memory

    def _at(self, pointer: int, size: int) -> int:
        if pointer + size > self.memory.data_len(self.store):
            raise wasi_abi.Errno(wasi_abi.FAULT)
        return ctypes.addressof(self.memory.data_ptr(self.store).contents) + pointer

    def read(self, pointer: int, size: int) -> bytes:
        """Return a copy of guest bytes."""
        return ctypes.string_at(self._at(pointer, size), size) if size else b""

    def write(self, pointer: int, data: bytes) -> None:
        """Copy bytes into the guest."""
        if data:
            ctypes.memmove(self._at(pointer, len(data)), data, len(data))


class ModuleRefused(Exception):
    """Refuse a module before any of its code runs."""


class MemoryShort(Exception):
    """Report a module that asks for more memory at its start than the unit has."""


def load_module(engine: wasmtime.Engine, path: str, memory_bytes: int) -> wasmtime.Module:
    """Compile a module and check that it is a WASI command that this runtime can serve.

    Raises ModuleRefused with the reason, MemoryShort if its initial memory is over the cap.
    """
    import wasmtime

    size = os.path.getsize(path)
    if size > preview1.MAX_MODULE_BYTES:
        raise ModuleRefused(f"the module is {size} bytes, more than {preview1.MAX_MODULE_BYTES}")
    with open(path, "rb") as source:
        code = source.read()
    if code[:8] != b"\0asm\1\0\0\0":
        raise ModuleRefused("not a WebAssembly core module (version 1)")
    try:
        module = wasmtime.Module(engine, code)
    except wasmtime.WasmtimeError as failed:
        raise ModuleRefused(f"invalid or unsupported module: {str(failed).strip()[:500]}") from None
    for wanted in module.imports:
        if wanted.module != preview1.MODULE or wanted.name not in preview1.CALLS:
            name = f"{brief(wanted.module)}.{brief(wanted.name or '')}"
            raise ModuleRefused(f"unknown import {name}: only {preview1.MODULE} is offered")
    exports = {export.name: export.type for export in module.exports}
    if not isinstance(exports.get("_start"), wasmtime.FuncType):
        raise ModuleRefused("no function _start is exported: compile a WASI command")
    memory = exports.get("memory")
    if not isinstance(memory, wasmtime.MemoryType):
        raise ModuleRefused("no memory is exported under the name memory")
    needed = memory.limits.min * preview1.PAGE_BYTES
    if needed > memory_bytes:
        raise MemoryShort(f"the module starts with {needed} bytes of memory, the unit has {memory_bytes}")
    return module


def write_all(fd: int, data: bytes) -> None:
    """Write every byte to a pipe."""
    while data:
        data = data[os.write(fd, data) :]


class Clock(threading.Thread):
    """End a guest at its time: the one thread beside the guest's, started before the walls let no other be.

    `bought` returns the seconds by which that is later, as far as the worker has said so by then.
    """

    def __init__(self, engine: wasmtime.Engine, bought: Callable[[], float] = lambda: 0.0) -> None:
        super().__init__(daemon=True)
        self._engine = engine
        self._bought = bought
        self._seconds = 0.0
        self._wound = threading.Event()
        self._stopped = threading.Event()
        self.rang = threading.Event()
        self.bought = 0.0

    def wind(self, seconds: float) -> None:
        """Let the guest have so many seconds from now on."""
        self._seconds = seconds
        self._wound.set()

    def stop(self) -> None:
        """End nothing any more."""
        self._stopped.set()
        self._wound.set()

    def run(self) -> None:
        """Wait for the time, and for the end of it."""
        self._wound.wait()
        end = time.monotonic() + self._seconds
        while not self._stopped.wait(max(0.0, end + self.bought - time.monotonic())):
            if time.monotonic() >= end + self._hear():
                self.rang.set()
                self._engine.increment_epoch()
                return

    def _hear(self) -> float:
        self.bought = self._bought()
        return self.bought


class Bought:
    """Hear from the worker, by the pipe that its request came by, how many seconds were bought for the guest since."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._heard = b""
        self._seconds = 0.0
        os.set_blocking(pipe, False)

    def hear(self) -> float:
        """Return the seconds, as the last whole line says."""
        while True:
            try:
                chunk = os.read(self._pipe, 1 << 12)
            except BlockingIOError:
                break
            if not chunk:
                break
            self._heard += chunk
        *lines, self._heard = self._heard.split(b"\n")
        if lines:
            self._seconds = float(json.loads(lines[-1])["bought"])
        return self._seconds


class Meter:
    """Bound one run: `fuel` (None: not metered) for the guest's instructions and for host calls, and its wall time."""

    def __init__(self, clock: Clock, store: wasmtime.Store, fuel: int | None, wall_seconds: int) -> None:
        self.limit = fuel if fuel is not None else NO_LIMIT_FUEL
        self._clock = clock
        self._store = store
        self._wall_seconds = wall_seconds
        store.set_fuel(self.limit)
        store.set_epoch_deadline(1)

    def start(self, until: float | None) -> float:
        """Start the wall clock, which ends at a time of `time.monotonic` at the latest; return the seconds it has."""
        left = self._wall_seconds if until is None else max(0.0, until - time.monotonic())
        left = min(left, self._wall_seconds)
        self._clock.wind(left)
        return left

    def charge(self, amount: int) -> None:
        """Take the fuel of a host call. Raises OutOfFuel, TimeUp."""
        if self._clock.rang.is_set():
            raise wasi.TimeUp
        left = self._store.get_fuel()
        if left < amount:
            self._store.set_fuel(0)
            raise wasi.OutOfFuel
        self._store.set_fuel(left - amount)

    @property
    def used(self) -> int:
        """Return the fuel that was used."""
        return self.limit - self._store.get_fuel()


def mounts_of(request: dict[str, Any]) -> list[Mount]:
    """Return what the guest sees of the host's folders; a resumed unit starts with what its last attempt left."""
    held = measure(Path(request["out_dir"]))
    return [
        Mount("/in", request["in_dir"]),
        Mount("/job", request["job_dir"]),
        Mount(".", request["job_dir"]),
        Mount("/out", request["out_dir"], Quota("/out", request["out_bytes"], held.size, held.entries)),
        Mount("/tmp", request["tmp_dir"], Quota("/tmp", request["tmp_bytes"])),
    ]


def link(engine: wasmtime.Engine, host: wasi.Wasi) -> wasmtime.Linker:
    """Return a linker that offers the host's calls and nothing else."""
    import wasmtime

    linker = wasmtime.Linker(engine)
    kinds = {"i": wasmtime.ValType.i32(), "I": wasmtime.ValType.i64()}
    for name, (letters, call) in host.calls().items():
        results = [] if name in preview1.NO_RESULT else [wasmtime.ValType.i32()]
        linker.define_func(preview1.MODULE, name, wasmtime.FuncType([kinds[x] for x in letters], results), call)
    return linker


def enter(linker: wasmtime.Linker, store: wasmtime.Store, module: wasmtime.Module, host: wasi.Wasi) -> None:
    """Instantiate a checked module and call its _start; returns where the guest does."""
    import wasmtime

    exports = linker.instantiate(store, module).exports(store)
    memory = exports["memory"]
    assert isinstance(memory, wasmtime.Memory)
    host.memory = LinearMemory(store, memory)
    start = exports["_start"]
    assert isinstance(start, wasmtime.Func)
    start(store)


def end_of(guest: Callable[[], None], host: wasi.Wasi, limit: int, request: dict[str, Any]) -> dict[str, Any]:
    """Call a guest and return how it ended: {status, detail, exit_code}."""
    import wasmtime

    try:
        guest()
    except wasi.GuestExit as ended:
        if ended.code != 0:
            return {"status": "exit", "exit_code": ended.code, "detail": f"the program exited with {ended.code}"}
    except OverCap as over:
        return {"status": "output_over_cap", "detail": str(over)}
    except wasi.OutOfFuel:
        return {"status": "out_of_fuel", "detail": f"used all of {limit} fuel"}
    except wasi.TimeUp:
        return {"status": "timeout", "detail": f"not done after {request['wall_seconds']} s"}
    except wasi.TooEarly:
        return {
            "status": "trap",
            "detail": "its start function calls the host before its memory can be seen: call it in main",
        }
    except wasmtime.Trap as trap:
        return name_trap(trap, limit, request, host.memory)
    except wasmtime.WasmtimeError as failed:
        return {"status": "trap", "detail": f"not instantiated: {str(failed).strip()[:500]}"}
    return {"status": "ok", "exit_code": 0, "detail": ""}


def run(
    engine: wasmtime.Engine, clock: Clock, request: dict[str, Any], started: Callable[[], None], held: Callable[[], int]
) -> dict[str, Any]:
    """Compile and run one unit by a `clock` of the `engine`; return {status, detail, exit_code, fuel_used}.

    One that is `only_compile` ends there. `started()` is called when the guest's first instruction is next, and starts
    the wall clock; `held()` are the bytes that this process holds. Raises MemoryError where it met its cap.
    """
    import wasmtime

    try:
        module = load_module(engine, request["module"], request["memory_bytes"])
    except ModuleRefused as refused:
        return {"status": "bad_input", "detail": str(refused)}
    except MemoryShort as short:
        return {"status": "oom", "detail": str(short), "fuel_used": 0}
    if held() > request["engine_bytes"]:
        raise MemoryError  # the guest could not have all of its own, or more of it on one machine than on another
    if request["only_compile"]:
        return {"status": "ok", "detail": ""}
    store = wasmtime.Store(engine)
    store.set_limits(
        memory_size=request["memory_bytes"], table_elements=MAX_TABLE_ELEMENTS, instances=1, tables=64, memories=1
    )
    meter = Meter(clock, store, request["fuel"], request["wall_seconds"])
    host = wasi.Wasi(
        args=request["command"],
        env=request["env"],
        mounts=mounts_of(request),
        seed=bytes.fromhex(request["seed"]),
        stdout=lambda data: write_all(1, data),
        stderr=lambda data: write_all(2, data),
        charge=meter.charge,
    )
    linker = link(engine, host)
    left = meter.start(request["until"])
    if left < request["least_seconds"]:
        return {"status": "bad_input", "detail": wasm_late(left, request["wall_seconds"])}
    started()
    answer = end_of(lambda: enter(linker, store, module, host), host, meter.limit, request)
    clock.stop()
    # At the deadline the count of the running loop is in a register and lost; a time is not reproducible anyway.
    if answer["status"] == "timeout":
        answer["detail"] = f"not done after {request['wall_seconds'] + int(clock.bought)} s"
    answer["fuel_used"] = None if answer["status"] == "timeout" else meter.used
    return answer


def name_trap(
    trap: wasmtime.Trap, limit: int, request: dict[str, Any], memory: wasi_abi.GuestMemory | None
) -> dict[str, Any]:
    """Tell out of fuel, the deadline and out of memory from the other traps."""
    import wasmtime

    code = trap.trap_code
    if code is wasmtime.TrapCode.OUT_OF_FUEL:
        return {"status": "out_of_fuel", "detail": f"used all of {limit} fuel"}
    if code is wasmtime.TrapCode.INTERRUPT:
        return {"status": "timeout", "detail": f"not done after {request['wall_seconds']} s"}
    message = trap.message.strip().splitlines()
    text = next((line.split(":", 1)[-1].strip() for line in reversed(message) if "wasm trap" in line), "trap")
    if isinstance(memory, LinearMemory):
        size = memory.memory.data_len(memory.store)
        if size + NEARLY_FULL_BYTES > request["memory_bytes"]:
            return {
                "status": "oom",
                "detail": f"trap ({text}) with {size} of {request['memory_bytes']} bytes of memory used",
            }
    return {"status": "trap", "detail": text}


def confine(request: dict[str, Any]) -> None:
    """Limit this process before it sees a byte of the module."""
    memory = request["memory_bytes"]
    cpu = request["most_seconds"] + request["compile_seconds"] + 30
    for kind, value in (
        (resource.RLIMIT_CORE, 1),  # no core file, and unlike 0 none to a program that collects them either: core(5)
        (resource.RLIMIT_NOFILE, 2 * MAX_FDS),
        (resource.RLIMIT_FSIZE, max(request["out_bytes"], request["tmp_bytes"])),
        (resource.RLIMIT_AS, memory + ADDRESS_SLACK),
        (resource.RLIMIT_DATA, memory + request["engine_bytes"]),
        (resource.RLIMIT_CPU, cpu),
    ):
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    offer_memory()
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    os.umask(0o077)


def offer_memory() -> None:
    """Let this process be killed before the worker where the machine has no memory left."""
    path = Path("/proc/self/oom_score_adj")
    if int(path.read_text()) < OOM_SCORE:  # nobody but root may lower what the worker has
        path.write_text(str(OOM_SCORE))


def held_bytes(statm: int) -> int:
    """Return the bytes that count for this process's cap, from its open /proc/self/statm.

    RLIMIT_DATA counts what can be written, and what is resident counts the compiled code too, which cannot.
    """
    _, resident, shared, _, _, data, _ = map(int, os.pread(statm, 256, 0).split())
    return max(data, resident - shared) * resource.getpagesize()


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the worker's thread that started it ends, however it ends."""
    parent = int(os.environ.pop("HEARTH_PARENT"))
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the kernel was asked
        os._exit(1)


def main() -> None:
    """Read the request, run it, answer."""
    die_with_parent()
    result_fd = int(sys.argv[2])
    request = json.loads(sys.stdin.buffer.readline())
    bought = Bought(sys.stdin.fileno())
    confine(request)
    statm = os.open("/proc/self/statm", os.O_RDONLY)
    engine = engine_of(ENGINE_CONFIG)  # loads the engine's library, whose file is out of reach behind the walls
    clock = Clock(engine, bought.hear)
    walls.raise_walls(
        read=[request[name] for name in ("module", "in_dir", "job_dir")],
        write=[request[name] for name in ("out_dir", "tmp_dir")],
        threads=clock.start,
    )

    def say(message: dict[str, Any]) -> None:
        write_all(result_fd, json.dumps(message).encode() + b"\n")

    try:
        answer = run(engine, clock, request, lambda: say({"phase": "run"}), lambda: held_bytes(statm))
    except MemoryError:
        answer = {"status": "bad_input", "detail": wasm_no_room(request["memory_bytes"], request["engine_bytes"])}
    say({**answer, "detail": brief(answer["detail"], MAX_DETAIL)})


if __name__ == "__main__":
    main()
