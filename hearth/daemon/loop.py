"""What a program that runs for months needs: pauses that grow, signals that stop it, a key and a size that it keeps."""

from __future__ import annotations

import ctypes
import resource
import signal
from collections.abc import Callable
from typing import Final

PR_SET_DUMPABLE: Final = 4
"""The option of prctl(2), from <linux/prctl.h>."""
M_MMAP_THRESHOLD: Final = -3
M_ARENA_MAX: Final = -8
"""Parameters of mallopt(3), from <malloc.h>."""
MMAPPED: Final = 256 << 10
"""Bytes of one allocation from which on it is mapped alone, and goes back to the machine when it is freed."""
_DOUBLINGS: Final = 30
"""More than any cap allows; without a bound, a float of seconds would overflow after a thousand failures."""


class Backoff:
    """Pauses of a loop: `base` seconds while it works, twice as long for each failure in a row, at most `cap`."""

    def __init__(self, *, base: float, cap: float) -> None:
        self._base, self._cap = base, cap
        self._most = cap
        self.failures = 0
        """Failures since the last success."""

    @property
    def pause(self) -> float:
        """Return how many seconds to wait before the next round."""
        return min(self._most, self._base * 2.0 ** min(self.failures, _DOUBLINGS))

    def failed(self, most: float | None = None) -> None:
        """Count a failure; after this one the pause is `most` seconds at most, where that is less than the cap."""
        self.failures += 1
        self._most = self._cap if most is None else min(most, self._cap)

    def succeeded(self) -> None:
        """Begin anew: the last round went well."""
        self.failures = 0


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` at SIGTERM and SIGINT, so that the loop ends after its round. Only in the main thread."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop())


def harden() -> None:
    """Prepare this process for its key and its months, before it has threads.

    Core dumps and other processes of this user do not get at the key; memory that was freed goes back to the machine.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    # 1 is too little for a core file, and unlike 0 it gives none to a program that collects them either: core(5).
    least = 0 if hard == 0 else 1
    resource.setrlimit(resource.RLIMIT_CORE, (least, least))
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    # glibc gives each thread a heap, up to eight a core, keeps what was freed in each, and after a large block was
    # freed puts the next ones into heaps too. Python runs one thread at a time: one heap serves it as well.
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_ARENA_MAX, 1)
        libc.mallopt(M_MMAP_THRESHOLD, MMAPPED)
