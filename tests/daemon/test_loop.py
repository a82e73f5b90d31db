"""Pauses that grow, signals that stop, and a process that nobody else looks into."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from hearth.daemon.loop import Backoff, stop_on_signals


def test_backoff__failures_in_a_row__doubles_up_to_the_cap() -> None:
    backoff = Backoff(base=0.5, cap=30.0)
    pauses = [backoff.pause]
    for _ in range(7):
        backoff.failed()
        pauses.append(backoff.pause)
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert backoff.failures == 7


def test_backoff__success__begins_anew() -> None:
    backoff = Backoff(base=0.5, cap=30.0)
    backoff.failed()
    backoff.succeeded()
    assert (backoff.failures, backoff.pause) == (0, 0.5)


def test_backoff__outage_of_days__stays_at_the_cap() -> None:
    backoff = Backoff(base=0.05, cap=60.0)
    backoff.failures = 5_000  # 2**1024 is more than a float holds
    assert backoff.pause == 60.0


@pytest.fixture
def handlers() -> Iterator[None]:
    """Put the process's own handlers back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop_on_signals__told_to_stop__calls_back(handlers: None, number: signal.Signals) -> None:
    told: list[bool] = []
    stop_on_signals(lambda: told.append(True))
    os.kill(os.getpid(), number)
    assert told == [True]


def test_harden__process__leaves_no_core_and_is_not_dumpable() -> None:
    script = (
        "import ctypes, resource; from hearth.daemon.loop import harden; harden();"
        "print(resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(1, 1) 0"  # 3 is PR_GET_DUMPABLE


HEAPS = """
import ctypes, sys, threading
from hearth.daemon.loop import harden
if sys.argv[1] == "hardened":
    harden()
libc = ctypes.CDLL(None)
libc.fdopen.restype, libc.malloc_info.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]
together = threading.Barrier(8)
def work():
    together.wait()
    kept = [bytes(100_000) for _ in range(20)]
    together.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
def mapped():
    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "blocks", "fast", "mapped", "bytes", *"abcde")]
    libc.mallinfo2.restype = Info
    return libc.mallinfo2().mapped
for _ in range(3):
    bytes(8 << 20)
before = mapped()
kept = bytes(4 << 20)
print(mapped() - before, flush=True)
libc.malloc_info(0, libc.fdopen(1, b"w"))
libc.fflush(None)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="glibc alone has these heaps")
@pytest.mark.parametrize("how", ["hardened", "usual"])
def test_harden__threads_and_large_blocks__one_heap_and_what_is_freed_goes_back(how: str) -> None:
    """Attack: files from strangers, large ones and small ones, grow a process by a heap for each of its threads."""
    done = subprocess.run([sys.executable, "-c", HEAPS, how], capture_output=True, text=True, check=True)
    mapped, _, heaps = done.stdout.partition("\n")
    count = heaps.count("<heap nr=")
    if how == "hardened":
        assert (int(mapped), count) == (1, 1), done.stdout
    else:
        assert int(mapped) == 0 and count > 1, done.stdout
