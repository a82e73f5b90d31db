"""The profile of system calls on a real engine: each call that no job needs, with ours, the engine's, and none."""

from __future__ import annotations

import errno
import json
import platform
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.require import require
from tests.worker.runtimes.engines import CHOSEN, MIB, NUMPY, rules, runtime_of
from worker.runtimes import docker as subject
from worker.runtimes.base import OutputRule, RunRequest, RunStatus, SandboxLimits

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of system calls are those of x86-64"),
]

# Prints the errno of each call, 0 where it succeeds, -31 where the kernel kills for it.
PROBE = """
import ctypes, json, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(*args):
    ctypes.set_errno(0)
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    return 0 if libc.syscall(*wide) >= 0 else ctypes.get_errno()
def apart(run):
    pid = os.fork()
    if pid == 0:
        os._exit(run() & 127)
    end = os.waitpid(pid, 0)[1]
    return os.WEXITSTATUS(end) if os.WIFEXITED(end) else -os.WTERMSIG(end)
def old():
    code = mmap.mmap(-1, 4096, prot=7)
    code.write(bytes.fromhex("53b814000000cd805bc3"))  # getpid of 32 bits: push rbx, eax=20, int 0x80, pop rbx, ret
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
    return 0
zeros = ctypes.create_string_buffer(256)
file = os.open("/tmp/f", os.O_RDWR | os.O_CREAT)
iov = (ctypes.c_void_p * 2)(ctypes.addressof(zeros), 8)
there = (ctypes.c_void_p * 2)(ctypes.addressof(zeros) + 64, 8)
print(json.dumps({
    "unix": call(41, 1, 1, 0), "inet": call(41, 2, 1, 0), "inet6": call(41, 10, 2, 0), "route": call(41, 16, 3, 0),
    "pair": call(53, 1, 1, 0, zeros), "fallocate": call(285, file, 0, 0, 8192),
    "vsock": call(41, 40, 1, 0), "vsock under high bits": call(41, (1 << 32) | 40, 1, 0),
    "alg": call(41, 38, 5, 0), "netfilter": call(41, 16, 3, 12),
    "io_uring": call(425, 1, zeros), "keep size": call(285, file, 1, 0, 1 << 20), "hole": call(285, file, 3, 0, 4096),
    "ptrace": apart(lambda: call(101, 0, 0, 0, 0)), "process_vm_readv": call(310, os.getpid(), iov, 1, there, 1, 0),
    "modify_ldt": call(154, 0, zeros, 64), "old calls": apart(old),
    "unshare": apart(lambda: call(272, 0x10000000)), "keyctl": call(250, 0, -3, 0),
    "userfaultfd": call(323, 1), "clone3": call(435, zeros, 0), "mount": call(165, zeros, zeros, zeros, 0, zeros),
    "bpf": call(321, 0, zeros, 0), "perf_event_open": call(298, zeros, 0, -1, -1, 0), "setns": call(308, file, 0),
    "add_key": call(248, b"user", b"x", b"x", 1, -3), "request_key": call(249, b"user", b"x", None, 0),
    "clone": apart(lambda: call(56, 0x10000000 | 17, 0, 0, 0, 0)),
}))
"""
own_calls = pytest.mark.skipif(CHOSEN.gvisor, reason="every call is answered by gVisor's own kernel")
NEEDED = ("unix", "inet", "inet6", "route", "pair", "fallocate")
BEYOND_THE_ENGINES = {
    **dict.fromkeys(("vsock", "vsock under high bits", "alg", "netfilter", "keep size", "hole"), errno.EPERM),
    **dict.fromkeys(("ptrace", "modify_ldt"), errno.EPERM),
    "io_uring": errno.ENOSYS,
    "old calls": -31,
}
"""What the profile refuses and how; an engine's own profile may let each of them through to the kernel."""
AS_THE_ENGINES = {
    **dict.fromkeys(("unshare", "keyctl", "userfaultfd", "mount", "bpf", "perf_event_open", "setns"), errno.EPERM),
    **dict.fromkeys(("add_key", "request_key", "clone", "process_vm_readv"), errno.EPERM),
    "clone3": errno.ENOSYS,
}


def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, option: str | None = None) -> bytes:
    """Run a Python program in a container, with another option for seccomp where one is named; return what it said."""
    require("docker", bool(NUMPY), "HEARTH_TEST_IMAGE_PYTHON_NUMPY is not set")
    plain: Callable[..., dict[str, Any]] = subject.container_config

    def asked(*args: Any, **kwargs: Any) -> dict[str, Any]:
        config = plain(*args, **kwargs)
        config["HostConfig"]["SecurityOpt"] = ["no-new-privileges", *([option] if option else [])]
        return config

    if option is not None:
        monkeypatch.setattr(subject, "container_config", asked)
    for name in ("in", "job", "out"):
        (tmp_path / name).mkdir()
    request = RunRequest(
        unit="test-seccomp",
        command=("python3", "-c", program),
        job_dir=tmp_path / "job",
        in_dir=tmp_path / "in",
        out_dir=tmp_path / "out",
        limits=SandboxLimits(wall_seconds=60, memory_bytes=256 * MIB, pids=64),
        image=NUMPY,
        outputs=(OutputRule("/out", required=False),),
    )
    result = runtime_of(rules()).run(request, threading.Event())
    assert result.status is RunStatus.OK, (result, result.stderr)
    return result.stdout


@own_calls
def test_seccomp__calls_that_no_job_needs__refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads(ask(tmp_path, monkeypatch, PROBE))
    assert found == {**dict.fromkeys(NEEDED, 0), **BEYOND_THE_ENGINES, **AS_THE_ENGINES}


@own_calls
def test_seccomp__engines_own_profile__lets_them_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: without ours. A kernel without AF_VSOCK or AF_ALG says so itself, which is another answer than EPERM."""
    found = json.loads(ask(tmp_path, monkeypatch, PROBE, ""))
    same = {name for name, refused in BEYOND_THE_ENGINES.items() if found[name] == refused}
    assert same <= {"vsock", "alg", "io_uring"}, found  # refused by newer engines as well
    assert {name: found[name] for name in NEEDED} == dict.fromkeys(NEEDED, 0)


@own_calls
def test_seccomp__none__what_every_profile_refuses_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: what the engine's profile refuses too is refused by the profile and not by the kernel."""
    found = json.loads(ask(tmp_path, monkeypatch, PROBE, "seccomp=unconfined"))
    for name in ("vsock", "io_uring", "alg", "unshare", "keyctl", "userfaultfd", "clone3", "clone", "process_vm_readv"):
        assert found[name] != {**BEYOND_THE_ENGINES, **AS_THE_ENGINES}[name], (name, found)


ORDINARY = """
import asyncio, concurrent.futures, ctypes, mmap, multiprocessing, os, resource, signal, socket, subprocess, sys
import tempfile, threading, time
import numpy
def square(n):
    return n * n
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(square, range(9))[-1] == 64
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(square, range(9))) == 204
    assert subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True).stdout == "42\\n"
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    assert [name for _, name in socket.if_nameindex()] == ["lo"]
    assert socket.getaddrinfo("127.0.0.1", 80)
    async def main():
        process = await asyncio.create_subprocess_exec("true")
        return await process.wait()
    assert asyncio.run(main()) == 0
    with open("/out/data", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 4096)
    os.mkfifo("/tmp/pipe")
    assert os.memfd_create("x") > 0 and os.getrandom(4) and os.sched_getaffinity(0)
    resource.getrusage(resource.RUSAGE_SELF), signal.sigtimedwait([signal.SIGUSR1], 0)
    a = numpy.random.default_rng(1).random((200, 200))
    assert numpy.allclose(numpy.linalg.inv(a) @ a, numpy.eye(200))
    print("all of it")
"""


def test_seccomp__ordinary_programs__run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(tmp_path, monkeypatch, ORDINARY) == b"all of it\n"
