"""A sandbox child that says what it sees of the rules it lives under, for test_profiles.py: the real one, but where it
would compile the module it prints one line of JSON, stays for a moment, to be looked at from outside, and then
holds too much.

The unit's argument is the path of the worker's key. A label that ends in -plain leaves all rules out: the control.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from worker.runtimes import walls, wasm_child

PR_GET_PDEATHSIG, PR_GET_DUMPABLE = 2, 3
MADV_DONTFORK = 10
REQUEST: dict[str, Any] = {}
SEEN: dict[str, Any] = {}


def works(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def look_before() -> None:
    """Ask what no call is left for behind the walls."""
    libc, signal = ctypes.CDLL(None), ctypes.c_int()
    libc.prctl(PR_GET_PDEATHSIG, ctypes.byref(signal), 0, 0, 0)
    SEEN["dumpable"] = libc.prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)
    SEEN["death"] = signal.value
    SEEN["limits"] = {
        name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        for name in ("DATA", "AS", "CPU", "NOFILE", "FSIZE", "CORE")
    }


def fork() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def call(name: str) -> None:
    numbers = {"ptrace": (101, 117), "mount": (165, 40)}[name]
    ctypes.set_errno(0)
    number = numbers[walls.MACHINES[os.uname().machine].column]
    ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 5)
    if ctypes.get_errno() == 38:
        raise OSError(38, "the kernel does not have it")


def hold_too_much() -> None:
    """Put more into /tmp than its cap, and wait for what comes of it."""
    file = os.open(f"{REQUEST['tmp_dir']}/file", os.O_CREAT | os.O_RDWR)
    os.ftruncate(file, REQUEST["tmp_bytes"] + 1)
    time.sleep(0 if sys.argv[1].endswith("-plain") else 10)


def start_thread() -> None:
    try:
        threading.Thread(target=lambda: None).start()
    except RuntimeError as refused:
        raise OSError(str(refused)) from None


def make_hidden() -> None:
    out = os.open(REQUEST["out_dir"], os.O_RDONLY)
    try:
        os.mkdir("hidden", 0o300, dir_fd=out)
    finally:
        os.close(out)


def advise() -> None:
    """Advise on no memory at all that a child is not to have it, which every kernel takes."""
    ctypes.set_errno(0)
    if ctypes.CDLL(None, use_errno=True).madvise(None, ctypes.c_size_t(0), MADV_DONTFORK):
        raise OSError(ctypes.get_errno(), "not taken")


def look(_engine: object, _path: str, _memory: int) -> None:
    key = REQUEST["command"][1]
    SEEN["works"] = {
        "key": works(lambda: os.close(os.open(key, os.O_RDONLY))),
        "socket": works(lambda: socket.socket(socket.AF_UNIX).close()),
        "fork": works(fork),
        "thread": works(start_thread),
        "shared": works(lambda: mmap.mmap(-1, 4096, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS).close()),
        "hidden": works(make_hidden),
        "advice": works(advise),
        **{name: works(lambda name=name: call(name)) for name in ("ptrace", "mount")},  # type: ignore[misc]
    }
    os.write(1, json.dumps(SEEN).encode() + b"\n")
    time.sleep(0.5)
    hold_too_much()
    raise wasm_child.ModuleRefused("looked")


def main() -> None:
    plain = sys.argv[1].endswith("-plain")
    confine, raise_walls = wasm_child.confine, walls.raise_walls

    def keep(request: dict[str, Any]) -> None:
        REQUEST.update(request)
        if not plain:
            confine(request)

    def then(*, threads: Callable[[], None], **paths: list[str]) -> None:
        look_before()
        if plain:
            threads()
        else:
            raise_walls(threads=threads, **paths)

    wasm_child.confine = keep
    walls.raise_walls = then  # type: ignore[assignment]
    wasm_child.load_module = look  # type: ignore[assignment]
    if plain:
        wasm_child.die_with_parent = lambda: None
    wasm_child.main()


if __name__ == "__main__":
    main()
