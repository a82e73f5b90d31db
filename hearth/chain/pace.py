"""How often one provider is asked: as often as it takes, which is found out by asking less whenever it says so."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Final

LEAST_RATE: Final = 2.0
"""Requests a second that a bucket lets through, however often it is slowed down: a worker has deadlines."""
RECOVERY_SECONDS: Final = 600.0
"""After so long a bucket that was slowed down is as fast as at first."""


class TokenBucket:
    """Let through `rate` requests a second, `burst` at once. Threads may share it."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._most, self._at_once = rate, burst
        self._rate, self._tokens, self._at = rate, burst, clock()
        self._lately = 0.0
        """Requests of the last second or so."""
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()

    def take(self) -> None:
        """Take one token, waiting for it where there is none."""
        with self._lock:
            now = self._clock()
            passed, self._at = now - self._at, now
            self._lately = self._lately * math.exp(-passed) + 1
            self._rate = min(self._most, self._rate + passed * self._most / RECOVERY_SECONDS)
            at_once = self._at_once if self._rate == self._most else 1.0
            self._tokens = min(at_once, self._tokens + passed * self._rate) - 1
            wait = max(0.0, -self._tokens / self._rate)
        if wait:
            self._sleep(wait)

    def slow_down(self) -> None:
        """Let through half of what went through lately, one by one, and slowly more again."""
        with self._lock:
            self._rate = min(self._most, max(LEAST_RATE, min(self._rate, self._lately) / 2))
            self._tokens = min(0.0, self._tokens)
