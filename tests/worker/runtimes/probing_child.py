"""A sandbox child whose compiler is in a stranger's hands, for test_walls.py: the real one, walls and all, but where it
would compile the module it tries what a stranger would try with it, and says on stdout what worked.

The unit's arguments are the path of the worker's key and a port of the worker's on 127.0.0.1. The label ends in
-without-WALL for each wall that is left out: the controls.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import mmap
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from worker.runtimes import walls, wasm_child

PARENT = os.getppid()
MAP_GROWSDOWN = 0x100
MADV_HWPOISON = 100
NO_PAGE = mmap.PAGESIZE
"""An address that no program has, so that the advice finds nothing there."""
REQUEST: dict[str, Any] = {}

# name -> number on x86-64 and arm64, arguments with which the call works or fails by what it is given, not at the door
CALLS: dict[str, tuple[tuple[int, int], tuple[Any, ...]]] = {
    "ptrace": ((101, 117), (16, 0, 0, 0)),
    "process_vm_readv": ((310, 270), (PARENT, 0, 0, 0, 0, 0)),
    "pidfd_open": ((434, 434), (PARENT, 0)),
    "mount": ((165, 40), (b"none", b"/none/such", b"tmpfs", 0, 0)),
    "unshare": ((272, 97), (0,)),
    "setns": ((308, 268), (-1, 0)),
    "chroot": ((161, 51), (b"/none/such",)),
    "add_key": ((248, 217), (b"user", b"hearth", b"x", 1, -3)),
    "keyctl": ((250, 219), (0, -3, 0, 0, 0)),
    "bpf": ((321, 280), (0, 0, 0)),
    "io_uring_setup": ((425, 425), (1, 0)),
    "userfaultfd": ((323, 282), (-1,)),
    "perf_event_open": ((298, 241), (0, 0, -1, -1, 0)),
    "memfd_create": ((319, 279), (b"hearth", 0)),
    "execveat": ((322, 281), (-1, b"", 0, 0, 0)),
    "prctl": ((157, 167), (4, 1, 0, 0, 0)),
    "setuid": ((105, 146), (os.getuid(),)),
    "clone3": ((435, 435), (0, 0)),
}


def kernel_takes(name: str) -> None:
    """Raise OSError where a call is stopped at the door: by a filter, or because this kernel does not have it."""
    numbers, arguments = CALLS[name]
    libc = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_char_p(x) if isinstance(x, bytes) else ctypes.c_long(x) for x in arguments]
    code = 0
    if libc.syscall(ctypes.c_long(numbers[walls.MACHINES[os.uname().machine].column]), *given) < 0:
        code = ctypes.get_errno()
    if code in (1, 38):  # EPERM, ENOSYS
        raise OSError(code, os.strerror(code))


def fork() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def raise_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def say_hello(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
        line.sendall(b"hello")


def thread() -> None:
    done = threading.Event()
    try:
        threading.Thread(target=done.set).start()
    except RuntimeError as refused:
        raise OSError(str(refused)) from None
    assert done.wait(10)


def hidden(out: Path) -> Path:
    """Make a folder that takes files and that nobody but root can list."""
    here = os.open(out, os.O_RDONLY)
    try:
        os.mkdir("hidden", 0o300, dir_fd=here)
    finally:
        os.close(here)
    return out / "hidden"


def take_memory(flags: int) -> None:
    mmap.mmap(-1, 1 << 20, flags | mmap.MAP_ANONYMOUS).close()


def take_page() -> None:
    """Ask the kernel to take a page from the machine for good (MADV_HWPOISON): one that is not there, so none is taken.

    Who may not is refused before the kernel looks at the page.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.madvise(NO_PAGE, mmap.PAGESIZE, MADV_HWPOISON)
    if ctypes.get_errno() != errno.EFAULT:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def read_what_nobody_may(out: Path) -> None:
    """Read a file whose mode lets nobody, as CAP_DAC_OVERRIDE does."""
    here = os.open(out, os.O_RDONLY)
    try:
        os.close(os.open("closed", os.O_CREAT | os.O_WRONLY, 0o000, dir_fd=here))
        os.close(os.open("closed", os.O_RDONLY, dir_fd=here))
    finally:
        os.unlink("closed", dir_fd=here)
        os.close(here)


def make_and_move(folder: Path) -> None:
    """Do what the host's side of WASI does, which names everything from an open folder."""
    here = os.open(folder, os.O_RDONLY)
    for name in ("a", "b"):
        os.mkdir(name, dir_fd=here)
    os.close(os.open("a/file", os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=here))
    os.rename("a/file", "b/file", src_dir_fd=here, dst_dir_fd=here)
    file = os.open("b/file", os.O_RDWR | os.O_TRUNC, dir_fd=here)
    os.pwrite(file, b"text", 0)
    os.ftruncate(file, 2)
    assert os.pread(file, 9, 0) == b"te" and os.fstat(file).st_size == 2
    os.unlink("b/file", dir_fd=here)
    os.rmdir("b", dir_fd=here)
    assert "b" not in os.listdir(here)


def attempts(request: dict[str, Any], key: Path, port: int) -> dict[str, Callable[[], object]]:
    out, job = Path(request["out_dir"]), Path(request["job_dir"])
    theft: dict[str, Callable[[], object]] = {
        "read the key": key.read_bytes,
        "list the key's folder": lambda: os.listdir(key.parent),
        "write beside the key": lambda: (key.parent / "planted").write_text("x"),
        "delete a file beside the key": lambda: os.unlink("other", dir_fd=os.open(key.parent, os.O_PATH)),
        "cut a file beside the key": lambda: os.open(key.parent / "cut", os.O_RDONLY | os.O_TRUNC),
        "read the worker's environment": lambda: Path(f"/proc/{PARENT}/environ").read_bytes(),
        "write into the job": lambda: (job / "planted").write_text("x"),
        "open the key to everybody": lambda: os.chmod(key, 0o644),
        "link the key into the outputs": lambda: os.link(key, out / "stolen"),
        "plant a symbolic link": lambda: os.symlink(key, out / "link"),
        "change the folder": lambda: os.chdir("/"),
        "start a process": fork,
        "signal the worker": lambda: os.kill(PARENT, 0),
        "raise its own limit": raise_limit,
        "open a socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
        "open a local socket": lambda: socket.socket(socket.AF_UNIX).close(),
        "call the worker's port": lambda: say_hello(port),
        "start a thread": thread,
        "hold memory that is shared": lambda: take_memory(mmap.MAP_SHARED),
        "hold memory that grows like a stack": lambda: take_memory(mmap.MAP_PRIVATE | MAP_GROWSDOWN),
        "hide files from their owner": lambda: os.rmdir(hidden(out)),
        "take a page from the machine": take_page,
        "read what nobody may": lambda: read_what_nobody_may(out),
    }
    wanted: dict[str, Callable[[], object]] = {
        "unit: read its inputs": (Path(request["in_dir"]) / "data.txt").read_bytes,
        "unit: read its module": Path(request["module"]).read_bytes,
        "unit: use its outputs": lambda: make_and_move(out),
        "unit: hold memory of its own": lambda: take_memory(mmap.MAP_PRIVATE),
        "unit: sleep": lambda: time.sleep(0.001),
    }
    return theft | {name: lambda name=name: kernel_takes(name) for name in CALLS} | wanted  # type: ignore[misc]


def probe(_engine: object, _path: str, _memory: int) -> None:
    key, port = REQUEST["command"][1:]
    said: dict[str, str] = {}
    for name, attempt in attempts(REQUEST, Path(key), int(port)).items():
        try:
            attempt()
            said[name] = "worked"
        except OSError as refused:
            said[name] = refused.strerror or str(refused)
    os.write(1, json.dumps(said).encode() + b"\n")
    # Last, since it ends this program where it works.
    with contextlib.suppress(OSError):
        os.execv("/bin/sh", ["sh", "-c", "echo another program ran"])
    raise wasm_child.ModuleRefused("probed")


def main() -> None:
    confine = wasm_child.confine

    def keep(request: dict[str, Any]) -> None:
        REQUEST.update(request)
        confine(request)

    wasm_child.confine = keep
    wasm_child.load_module = probe  # type: ignore[assignment]
    for wall in sys.argv[1].split("-without-")[1:]:
        setattr(
            walls, {"files": "shut_files", "calls": "shut_calls", "rights": "drop_capabilities"}[wall], lambda *_: None
        )
    signal.alarm(60)
    wasm_child.main()


if __name__ == "__main__":
    main()
