"""A sandbox child with a hole in its engine: the real one, walls and all, but a module with a section named `hole` has
what that names run in this process instead, as a stranger who broke out would.

The label ends in -without-NAME for each defence that is left out, see WITHOUT: the controls.
"""

from __future__ import annotations

import ctypes
import errno
import json
import math
import mmap
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from worker.runtimes import walls, wasi, wasi_files, wasm_child

HOLE = b"\x04hole"
PARENT = os.getppid()
STAY_SECONDS = 10
THREADS = 100
FILES = 17_000
SHARED_BYTES = 400 << 20
HOARD_BYTES, BATCH_BYTES = 800 << 20, 100 << 20
REQUEST: dict[str, Any] = {}


# ---- what a stranger does ----


def read_key() -> None:
    os.write(1, Path(words()[0]).read_bytes())


def plant_file() -> None:
    (Path(words()[0]).parent / f"planted-{words()[1]}").write_text("x")


def read_environment() -> None:
    os.write(1, Path(f"/proc/{PARENT}/environ").read_bytes())


def call_out() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.sendto(words()[1].encode(), ("127.0.0.1", int(words()[2])))


def start_process() -> None:
    if os.fork() == 0:
        time.sleep(3)
        os._exit(0)
    time.sleep(3)


def start_threads() -> None:
    threading.stack_size(64 << 10)  # many times the usual 8 MiB would be more than its memory
    try:
        for _ in range(THREADS):
            threading.Thread(target=time.sleep, args=(STAY_SECONDS,), daemon=True).start()
    except RuntimeError as refused:
        raise OSError(errno.EAGAIN, str(refused)) from None
    time.sleep(STAY_SECONDS)


def share_memory() -> None:
    """Write to memory that RLIMIT_DATA does not count, less than what the worker would see as too much."""
    held = mmap.mmap(-1, SHARED_BYTES, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    for page in range(0, SHARED_BYTES, mmap.PAGESIZE):
        held[page] = 1
    time.sleep(STAY_SECONDS)


def hoard_memory() -> None:
    """Write to memory, and make it read-only so that RLIMIT_DATA forgets it."""
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    held = []
    for _ in range(HOARD_BYTES // BATCH_BYTES):
        held.append(mmap.mmap(-1, BATCH_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        for page in range(0, BATCH_BYTES, mmap.PAGESIZE):
            held[-1][page] = 1
        if protect(ctypes.addressof(ctypes.c_char.from_buffer(held[-1])), BATCH_BYTES, mmap.PROT_READ):
            raise OSError(ctypes.get_errno(), "not made read-only")
    time.sleep(STAY_SECONDS)


def fill_tmp() -> None:
    """Make empty files in /tmp, with that open so that the host can tell where they are."""
    tmp = os.open(REQUEST["tmp_dir"], os.O_RDONLY)
    for number in range(FILES):
        os.close(os.open(str(number), os.O_CREAT | os.O_WRONLY, dir_fd=tmp))
    time.sleep(STAY_SECONDS)


def signal_worker() -> None:
    os.kill(PARENT, signal.SIGUSR1)
    time.sleep(STAY_SECONDS)  # Python tells a program of a signal when its main thread runs next


def false_answer() -> None:
    """Say in the child's place what would be a fault of the worker."""
    wasm_child.write_all(int(sys.argv[2]), b'{"phase": "run"}\n{"status": "broken", "detail": "the disk is gone"}\n')
    time.sleep(0.2)
    os._exit(0)


def words() -> list[str]:
    """Return the path of a secret, a token and a port."""
    return list(REQUEST["command"][1:])


# ---- what is left out ----


def _open_anything(base: wasi_files.OpenFolder, path: str) -> wasi_files.Place:
    return wasi_files.Place(base, tuple(path.split("/")), False)


def _no_quota(request: dict[str, Any], plain: Callable[..., Any] = wasm_child.mounts_of) -> list[wasi_files.Mount]:
    return list(plain({**request, "out_bytes": 1 << 40}))


def _never_late(meter: wasm_child.Meter, until: float | None) -> float:
    return math.inf


def _no_fuel(meter: wasm_child.Meter, *values: Any, plain: Callable[..., None] = wasm_child.Meter.__init__) -> None:
    clock, store, _, seconds = values
    plain(meter, clock, store, None, seconds)


def _limits(name: str) -> Callable[[], None]:
    def apply() -> None:
        import wasmtime

        plain = wasmtime.Store.set_limits
        wasmtime.Store.set_limits = lambda store, **limits: plain(store, **{**limits, name: -1})  # type: ignore[method-assign]

    return apply


WITHOUT: dict[str, Callable[[], None]] = {
    "files": lambda: setattr(walls, "shut_files", lambda *_: None),
    "calls": lambda: setattr(walls, "shut_calls", lambda: None),
    "rights": lambda: setattr(walls, "drop_capabilities", lambda: None),
    "paths": lambda: [setattr(module, "locate", _open_anything) for module in (wasi, wasi_files)] and None,
    "quota": lambda: setattr(wasm_child, "mounts_of", _no_quota),
    "clock": lambda: setattr(wasm_child.Meter, "start", _never_late),
    "fuel": lambda: setattr(wasm_child.Meter, "__init__", _no_fuel),
    "memory": _limits("memory_size"),
    "table": _limits("table_elements"),
    "stack": lambda: wasm_child.ENGINE_CONFIG.update(max_wasm_stack=1 << 30),
    "watch": lambda: None,  # the worker's, see test_abuse.ChildWatch
    "descriptors": lambda: setattr(wasi_files, "MAX_FDS", 1 << 20),
}


def main() -> None:
    confine, load_module = wasm_child.confine, wasm_child.load_module

    def keep(request: dict[str, Any]) -> None:
        REQUEST.update(request)
        confine(request)

    def load(engine: Any, path: str, memory_bytes: int) -> Any:
        name = Path(path).read_bytes().partition(HOLE)[2].decode()
        if not name:
            return load_module(engine, path, memory_bytes)
        try:
            globals()[name]()
        except OSError as refused:
            raise wasm_child.ModuleRefused(json.dumps(f"{name}: {refused.strerror}")) from None
        raise wasm_child.ModuleRefused(f"{name}: done")

    wasm_child.confine = keep
    wasm_child.load_module = load
    for name in sys.argv[1].split("-without-")[1:]:
        WITHOUT[name]()
    wasm_child.main()


if __name__ == "__main__":
    main()
