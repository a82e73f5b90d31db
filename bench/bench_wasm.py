"""Measure what WebAssembly is billed against what it takes: `python -m bench.bench_wasm` writes results/wasm.json.

For each call of WASI, small and large, and for the instructions that move many bytes at once: the fuel that one costs
and the nanoseconds that it takes on this machine, in the real engine with the real files. A unit of fuel stands for a
nanosecond (a billed second is 10^9 of them), so `billed` is their ratio: 1 is exact, below 1 the provider works unpaid.
Then what a whole unit takes beyond the same module in a bare engine, and what of it are the walls round its process.
All is timed by processor time, which other programs on the machine lengthen less than the clock on the wall, and the
fastest of several rounds counts. Times are those of the machine named in the file: they are reported, never asserted.
"""

from __future__ import annotations

import json
import resource
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from bench.bench_match import machine
from hearth.base.wasm_engine import engine_of
from hearth.protocol import wasi as preview1
from hearth.protocol.wasi import ENGINE_CONFIG
from worker.runtimes import wasi, wasm_child
from worker.runtimes.base import RunRequest, SandboxLimits
from worker.runtimes.wasi_files import MAX_FDS, MAX_LISTED, Mount, Quota
from worker.runtimes.wasm import WasmRuntime

OUT: Final = Path(__file__).parent / "results" / "wasm.json"
WITHIN: Final = 4
"""The most by which fuel and time may differ, either way."""
ROUNDS: Final = 8
"""How often a case is measured; the fastest counts, which other programs disturbed least."""
ROUND_SECONDS: Final = 0.004
"""How long a case is repeated, at least, in a round."""

IN, JOB, HERE, OUTPUT, TEMPORARY, FIRST = 3, 4, 5, 6, 7, 8
"""Descriptors that a guest starts with, and the first that it opens."""
NAMES: Final = 16_000
MANY: Final = 1024

# Where things lie in the guest's memory.
RESULT, PATHS, IOVEC, IOVECS, SUBSCRIPTIONS, BUFFER = 8, 1024, 8192, 16_384, 65_536, 1 << 20
PAGES: Final = 1024
TEXTS: Final = ("data", "new", "other", "d/" * 29 + "data", "many", "few", "absent")
AT: Final = {text: PATHS + 128 * place for place, text in enumerate(TEXTS)}


@dataclass(frozen=True)
class Case:
    """One line of the table: what is repeated, and what is done once before."""

    name: str
    body: str
    before: str = ""
    args: int = 1


def const(value: int) -> str:
    """Return an i32 constant."""
    return f"(i32.const {value})"


def call(name: str, *values: int) -> str:
    """Return a call whose answer is dropped."""
    kinds = {"i": "i32", "I": "i64"}
    given = " ".join(
        f"({kinds[letter]}.const {value})" for letter, value in zip(preview1.CALLS[name], values, strict=True)
    )
    return f"(drop (call ${name} {given}))"


def open_(text: str, folder: int = IN, *, flags: int = 0, rights: int = 2) -> str:
    """Return a path_open; rights 2 is to read, 66 to read and write, flags 1 is to create, 2 a folder."""
    return call("path_open", folder, 0, AT[text], len(text), flags, rights, 0, 0, RESULT)


def path(name: str, text: str, folder: int, *rest: int) -> str:
    """Return a call of a folder's descriptor and a path."""
    return call(name, folder, AT[text], len(text), *rest)


def iovec(size: int) -> str:
    """Store one buffer of `size` bytes."""
    return f"(i32.store {const(IOVEC)} {const(BUFFER)}) (i32.store {const(IOVEC + 4)} {const(size)})"


def cases() -> Iterator[Case]:
    """Yield every call, small and large where its work depends on what it is given."""
    yield from _numbers()
    yield from _streams_and_files()
    yield from _paths()
    yield from _instructions()


def _numbers() -> Iterator[Case]:
    yield Case("sched_yield", call("sched_yield"))
    yield Case("sock_send (refused)", call("sock_send", 1, 0, 0, 0, RESULT))
    yield Case("path_link (refused)", call("path_link", 3, 0, 0, 0, 6, 0, 0))
    yield Case("proc_raise (refused)", call("proc_raise", 1))
    yield Case("fd_tell (no such descriptor)", call("fd_tell", 999, RESULT))
    for name in ("args", "environ"):
        for count in (1, MANY):
            yield Case(f"{name}_sizes_get, {count}", call(f"{name}_sizes_get", RESULT, RESULT + 4), args=count)
            yield Case(f"{name}_get, {count}", call(f"{name}_get", BUFFER, BUFFER + 65_536), args=count)
    yield Case("clock_res_get", call("clock_res_get", 0, RESULT))
    yield Case("clock_time_get", call("clock_time_get", 0, 0, RESULT))
    for count in (1, MANY):
        yield Case(f"poll_oneoff, {count} clocks", call("poll_oneoff", SUBSCRIPTIONS, BUFFER, count, RESULT))
        yield Case(
            f"poll_oneoff, {count} descriptors",
            call("poll_oneoff", SUBSCRIPTIONS + 48 * MANY, BUFFER, count, RESULT),
        )
    for size in (8, 4096, 1 << 20):
        yield Case(f"random_get, {size} bytes", call("random_get", BUFFER, size))


def _streams_and_files() -> Iterator[Case]:
    yield Case("fd_fdstat_get", call("fd_fdstat_get", 1, BUFFER))
    yield Case("fd_fdstat_set_flags", call("fd_fdstat_set_flags", 1, 0))
    yield Case("fd_fdstat_set_rights", call("fd_fdstat_set_rights", 1, 0, 0))
    yield Case("fd_prestat_get", call("fd_prestat_get", IN, BUFFER))
    yield Case("fd_prestat_dir_name", call("fd_prestat_dir_name", IN, BUFFER, 3))
    reading, writing = open_("data"), open_("new", OUTPUT, flags=1, rights=66)
    for name, values in (
        ("fd_advise", (FIRST, 0, 0, 0)),
        ("fd_sync", (FIRST,)),
        ("fd_datasync", (FIRST,)),
        ("fd_tell", (FIRST, RESULT)),
        ("fd_seek", (FIRST, 0, 2, RESULT)),
        ("fd_filestat_get", (FIRST, BUFFER)),
    ):
        yield Case(name, call(name, *values), reading)
    yield Case("fd_filestat_set_times", call("fd_filestat_set_times", FIRST, 0, 0, 0), writing)
    yield Case(
        "fd_filestat_set_size, up and down",
        call("fd_filestat_set_size", FIRST, 1 << 24) + call("fd_filestat_set_size", FIRST, 0),
        writing,
    )
    yield Case(
        "fd_allocate, and down",
        call("fd_allocate", FIRST, 0, 1 << 24) + call("fd_filestat_set_size", FIRST, 0),
        writing,
    )
    yield Case("fd_read, at the end", call("fd_read", 0, IOVEC, 1, RESULT))
    for size in (1, 4096, 1 << 20, 1 << 24):
        once = iovec(size)
        yield Case(f"fd_pread, {size} bytes", call("fd_pread", FIRST, IOVEC, 1, 0, RESULT), reading + once)
        yield Case(f"fd_pwrite, {size} bytes", call("fd_pwrite", FIRST, IOVEC, 1, 0, RESULT), writing + once)
        yield Case(f"fd_write to stdout, {size} bytes", call("fd_write", 1, IOVEC, 1, RESULT), once)
    back = call("fd_seek", FIRST, 0, 0, RESULT)
    yield Case(
        "fd_seek and fd_read, 4096 bytes", back + call("fd_read", FIRST, IOVEC, 1, RESULT), reading + iovec(4096)
    )
    yield Case(
        "fd_seek and fd_write, 4096 bytes", back + call("fd_write", FIRST, IOVEC, 1, RESULT), writing + iovec(4096)
    )
    yield Case(f"fd_pread, {MANY} buffers", call("fd_pread", FIRST, IOVECS, MANY, 0, RESULT), reading)
    yield Case(f"fd_pwrite, {MANY} buffers", call("fd_pwrite", FIRST, IOVECS, MANY, 0, RESULT), writing)
    yield Case(
        "fd_pwrite, 16 MiB that are cut off again",
        call("fd_pwrite", FIRST, IOVEC, 1, 0, RESULT) + call("fd_filestat_set_size", FIRST, 0),
        writing + iovec(1 << 24),
    )


def _paths() -> Iterator[Case]:
    deep = TEXTS[3]
    for what, text in (("1 name", "data"), ("30 names", deep), ("absent", "absent")):
        yield Case(f"path_filestat_get, {what}", call("path_filestat_get", IN, 0, AT[text], len(text), BUFFER))
        yield Case(f"path_readlink, {what}", path("path_readlink", text, IN, BUFFER, 64, RESULT))
    for what, text in (("1 name", "data"), ("30 names", deep)):
        yield Case(f"path_open and fd_close, {what}", open_(text) + call("fd_close", FIRST))
    yield Case("path_open, absent", open_("absent"))
    yield Case("path_open and fd_close, a folder", open_("few", flags=2) + call("fd_close", FIRST))
    yield Case("fd_renumber and path_open", open_("data") + call("fd_renumber", FIRST + 1, FIRST), open_("data"))
    made = open_("new", OUTPUT, flags=1, rights=66)
    yield Case(
        "path_open to create, fd_close, path_unlink_file",
        made + call("fd_close", FIRST) + path("path_unlink_file", "new", OUTPUT),
    )
    yield Case(
        "path_create_directory, path_remove_directory",
        path("path_create_directory", "new", OUTPUT) + path("path_remove_directory", "new", OUTPUT),
    )
    times = call("path_filestat_set_times", OUTPUT, 0, AT["new"], len("new"), 0, 0, 0)
    yield Case("path_filestat_set_times", times, made)
    there = call("path_rename", OUTPUT, AT["new"], 3, OUTPUT, AT["other"], 5)
    back = call("path_rename", OUTPUT, AT["other"], 5, OUTPUT, AT["new"], 3)
    yield Case("path_rename, there and back", there + back, made + call("fd_close", FIRST))
    yield Case("path_rename, with 240 open files", there + back, made * 240)
    few, many = open_("few", flags=2), open_("many", flags=2)
    yield Case("fd_readdir, 3 names", call("fd_readdir", FIRST, BUFFER, 4096, 0, RESULT), few)
    yield Case(f"fd_readdir, {NAMES} names", call("fd_readdir", FIRST, BUFFER, 1 << 20, 0, RESULT), many)
    yield Case(f"fd_readdir, {NAMES} names into 64 bytes", call("fd_readdir", FIRST, BUFFER, 64, 0, RESULT), many)
    begun = many + call("fd_readdir", FIRST, BUFFER, 64, 0, RESULT)
    yield Case(f"fd_readdir, {NAMES} names that are kept", call("fd_readdir", FIRST, BUFFER, 1 << 20, 1, RESULT), begun)
    yield Case("fd_readdir, 1 name that is kept", call("fd_readdir", FIRST, BUFFER, 64, 9, RESULT), begun)
    handles = MAX_LISTED // NAMES + 2
    yield Case(
        f"fd_readdir, {handles} folders of {NAMES} names in turns",
        "".join(call("fd_readdir", FIRST + place, BUFFER, 64, 1, RESULT) for place in range(handles)),
        many * handles,
    )


def _instructions() -> Iterator[Case]:
    yield Case(
        "64 additions", f"(i32.store {const(RESULT)} {'(i32.add (i32.load (i32.const 8)) ' * 64}{const(1)}{')' * 64})"
    )
    for size in (64, 65_536, 1 << 24):
        yield Case(f"memory.fill, {size} bytes", f"(memory.fill {const(BUFFER)} (i32.const 1) {const(size)})")
        yield Case(
            f"memory.copy, {size} bytes", f"(memory.copy {const(BUFFER)} {const(BUFFER + (1 << 24))} {const(size)})"
        )
    for size in (64, 500_000):
        yield Case(f"table.fill, {size} elements", f"(table.fill {const(0)} (ref.null func) {const(size)})")
        yield Case(f"table.copy, {size} elements", f"(table.copy {const(0)} {const(500_000)} {const(size)})")


def text_of(case: Case) -> str:
    """Return a module that does a case's first part once, then its body as often as the global `turns` says."""
    imports = [name for name in preview1.CALLS if f"${name} " in case.before + case.body]
    kinds = {"i": "i32", "I": "i64"}
    lines = [
        f'(import "{preview1.MODULE}" "{name}" (func ${name} (param {" ".join(kinds[x] for x in preview1.CALLS[name])})'
        f" (result i32)))"
        for name in imports
    ]
    data = "".join(f'(data {const(AT[text])} "{text}")' for text in TEXTS)
    iovecs = b"".join(struct.pack("<II", BUFFER + 8 * place, 1) for place in range(MANY))
    clocks = b"".join(struct.pack("<QBxxxxxxxI4xQQH6x", place, 0, 0, 1000, 0, 0) for place in range(MANY))
    descriptors = b"".join(struct.pack("<QBxxxxxxxI28x", place, 1, 1) for place in range(MANY))
    data += (
        f'(data {const(IOVECS)} "{_escaped(iovecs)}") (data {const(SUBSCRIPTIONS)} "{_escaped(clocks + descriptors)}")'
    )
    return f"""(module {" ".join(lines)} (global $turns (import "bench" "turns") i32)
      (memory (export "memory") {PAGES}) (table 1000000 funcref) {data}
      (func (export "before") {case.before})
      (func (export "_start") (local $i i32)
        (loop {case.body} (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if 0 (i32.lt_u (local.get $i) (global.get $turns))))))"""


def _escaped(data: bytes) -> str:
    return "".join(f"\\{byte:02x}" for byte in data)


def fill(root: Path) -> list[Mount]:
    """Make the folders of a unit, and return them as its guest sees them."""
    for name in ("in", "job", "out", "tmp"):
        (root / name).mkdir()
    (root / "in" / "data").write_bytes(bytes(1 << 24))
    below = root / "in" / "/".join("d" * 29)
    below.mkdir(parents=True)
    (below / "data").write_bytes(b"x")
    for name, count in (("many", NAMES), ("few", 3)):
        (root / "in" / name).mkdir()
        for place in range(count):
            (root / "in" / name / f"file-{place * 7919 % count:06}").touch()
    return [
        Mount("/in", str(root / "in")),
        Mount("/job", str(root / "job")),
        Mount(".", str(root / "job")),
        Mount("/out", str(root / "out"), Quota("/out", 1 << 30)),
        Mount("/tmp", str(root / "tmp"), Quota("/tmp", 1 << 30)),
    ]


def measure(case: Case, mounts: list[Mount], sink: int) -> tuple[float, float]:
    """Return the fuel and the nanoseconds of one turn of a case: turns enough for a round, the fastest of ROUNDS."""
    import wasmtime

    engine = engine_of(ENGINE_CONFIG)
    module = wasmtime.Module(engine, wasmtime.wat2wasm(text_of(case)))
    turns = 1
    found: list[tuple[float, float]] = []
    while len(found) < ROUNDS:
        store = wasmtime.Store(engine)
        meter = wasm_child.Meter(wasm_child.Clock(engine), store, None, 600)
        host = wasi.Wasi(
            args=["argument"] * case.args,
            env={f"NAME{place}": "value" for place in range(case.args)},
            mounts=mounts,
            seed=b"",
            stdout=lambda data: wasm_child.write_all(sink, data),
            stderr=lambda data: None,
            charge=meter.charge,
        )
        linker = wasm_child.link(engine, host)
        number = wasmtime.Global(store, wasmtime.GlobalType(wasmtime.ValType.i32(), False), wasmtime.Val.i32(turns))
        linker.define(store, "bench", "turns", number)
        exports = linker.instantiate(store, module).exports(store)
        memory, before, start = exports["memory"], exports["before"], exports["_start"]
        assert isinstance(memory, wasmtime.Memory)
        assert isinstance(before, wasmtime.Func) and isinstance(start, wasmtime.Func)
        host.memory = wasm_child.LinearMemory(store, memory)
        before(store)
        used, began = meter.used, time.thread_time_ns()
        start(store)
        took, used = time.thread_time_ns() - began, meter.used - used
        close = host.calls()["fd_close"][1]
        for fd in range(MAX_FDS):
            close(fd)
        if took < ROUND_SECONDS * 1e9:
            turns *= 2
        else:
            found.append((used / turns, took / turns))
    return min(found, key=lambda one: one[1])


def table(root: Path) -> list[dict[str, Any]]:
    """Measure every case; `billed` is fuel for each nanosecond."""
    mounts = fill(root)
    rows = []
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as reader:
        assert reader.stdin is not None
        for case in cases():
            fuel, took = measure(case, mounts, reader.stdin.fileno())
            rows.append({"case": case.name, "fuel": round(fuel), "ns": round(took), "billed": round(fuel / took, 3)})
        reader.stdin.close()
    return rows


HELLO: Final = """(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1) (data (i32.const 16) "hello\\n") (data (i32.const 0) "\\10\\00\\00\\00\\06\\00\\00\\00")
  (func (export "_start") (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"""
BARE: Final = """
import sys, wasmtime
engine = wasmtime.Engine()
linker, store, wasi = wasmtime.Linker(engine), wasmtime.Store(engine), wasmtime.WasiConfig()
linker.define_wasi()
wasi.inherit_stdout()
store.set_wasi(wasi)
module = wasmtime.Module.from_file(engine, sys.argv[1])
linker.instantiate(store, module).exports(store)["_start"](store)
"""


def bare(module: Path) -> None:
    """Run a module in a process with nothing but the engine, with its own WASI."""
    subprocess.run([sys.executable, "-c", BARE, str(module)], check=True, stdout=subprocess.DEVNULL)


def unit(root: Path, module: Path) -> None:
    """Run a module as a unit."""
    request = RunRequest(
        unit="bench",
        command=(),
        job_dir=root / "job",
        in_dir=root / "in",
        out_dir=root / "out",
        limits=SandboxLimits(wall_seconds=60, memory_bytes=64 << 20, fuel=10**10),
        module=module,
        outputs=(),
    )
    result = WasmRuntime(root / "tmp").run(request, threading.Event())
    if not result.ok or result.stdout != b"hello\n":
        raise click.ClickException(f"{result.status}: {result.detail} {result.stderr.decode()}")


WALLS: Final = """
import time
from worker.runtimes import walls
began = time.process_time()
walls.raise_walls(["/usr"], ["/tmp"], lambda: None)
print(1000 * (time.process_time() - began))
"""


def walls_ms() -> float:
    """Return the milliseconds that raising the walls takes, in a process of their own."""
    said = subprocess.run([sys.executable, "-c", WALLS], check=True, capture_output=True, text=True)
    return float(said.stdout)


def timed(work: Callable[[], None]) -> float:
    """Return the processor time, in milliseconds, of the processes that a piece of work starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def start(root: Path, rounds: int) -> dict[str, Any]:
    """Return what a unit's process takes and the same module's in a bare engine, in turns: the fastest, in ms."""
    import wasmtime

    module = root / "hello.wasm"
    module.write_bytes(wasmtime.wat2wasm(HELLO))
    turns = [(timed(lambda: bare(module)), timed(lambda: unit(root, module)), walls_ms()) for _ in range(rounds)]
    alone, whole, raised = (min(column) for column in zip(*turns, strict=True))
    return {
        "rounds": rounds,
        "bare_engine_ms": round(alone, 1),
        "unit_ms": round(whole, 1),
        "over_bare_ms": round(whole - alone, 1),
        "walls_ms": round(raised, 2),
    }


@click.command()
@click.option("--rounds", default=20, show_default=True, help="Units to run, for the cost of their start.")
def main(rounds: int) -> None:
    """Write the table of what is billed against what it takes, and what starting a unit costs."""
    with tempfile.TemporaryDirectory() as folder:
        rows = table(Path(folder))
        begun = start(Path(folder), rounds)
    result = {"machine": machine(), "start": begun, "within": WITHIN, "calls": rows}
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    for row in rows:
        mark = "" if 1 / WITHIN <= row["billed"] <= WITHIN else "  <-"
        click.echo(f"{row['case']:55} {row['fuel']:>13,} fuel {row['ns']:>13,} ns {row['billed']:>8.2f}{mark}")
    click.echo(json.dumps(begun))


if __name__ == "__main__":
    main()
