"""How long before a lease's deadline its last transaction must be sent, as this machine has measured it.

Block times, a slow provider and a loaded machine all show in one figure: the time from when a transaction was due until
this process saw it mined. Beats are measured too, so it is known before the first lease and follows what changes.
Source: docs/decisions/0018-take-only-work-that-pays-and-fits.md.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

MEASURED: Final = 8
"""The last transactions that count. One of them may have met an outage, which says nothing of the next one. No more are
left out: what is sent too early costs nothing, since a unit's grace is beyond its time; too late it costs a bond."""
LEAST: Final = 1.0
"""Seconds: deadlines are whole ones."""


class Lead:
    """The lead that seven in eight of the last transactions would have kept; what nobody waits for is not told."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due: dict[str, float] = {}
        self._took: deque[float] = deque(maxlen=MEASURED)

    def sent(self, key: str, due: float) -> None:
        """Note a transaction on its way, and since when of the clock it was due; only the first time counts."""
        self._due.setdefault(key, due)

    def ended(self, key: str, *, mined: bool) -> None:
        """Note what became of a transaction."""
        due = self._due.pop(key, None)
        if due is not None and mined:
            self._took.append(self._clock() - due)

    @property
    def seconds(self) -> float:
        """Return the lead, in seconds."""
        took = sorted(self._took)
        return max(LEAST, took[(7 * len(took) - 1) // 8]) if took else LEAST
