"""What the loop of a long-running program needs: pauses that grow, signals that stop it, a process that keeps a key."""

from __future__ import annotations

import ctypes
import resource
import signal
from collections.abc import Callable
from typing import Final

PR_SET_DUMPABLE: Final = 4
"""The option of prctl(2), from <linux/prctl.h>."""
_DOUBLINGS: Final = 30
"""More than any cap allows; without a bound, a float of seconds would overflow after a thousand failures."""


class Backoff:
    """Pauses of a loop: `base` seconds while it works, twice as long for each failure in a row, at most `cap`."""

    def __init__(self, *, base: float, cap: float) -> None:
        self._base, self._cap = base, cap
        self.failures = 0
        """Failures since the last success."""

    @property
    def pause(self) -> float:
        """Return how many seconds to wait before the next round."""
        return min(self._cap, self._base * 2.0 ** min(self.failures, _DOUBLINGS))

    def failed(self) -> None:
        """Count a failure."""
        self.failures += 1

    def succeeded(self) -> None:
        """Begin anew: the last round went well."""
        self.failures = 0


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` at SIGTERM and SIGINT, so that the loop ends after its round. Only in the main thread."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop())


def harden() -> None:
    """Keep the key out of core dumps and out of the reach of other processes of this user."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    # 1 is too little for a core file, and unlike 0 it gives none to a program that collects them either: core(5).
    least = 0 if hard == 0 else 1
    resource.setrlimit(resource.RLIMIT_CORE, (least, least))
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
