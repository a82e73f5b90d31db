"""Compare this machine's clock with the chain's, by the blocks that this process saw come.

Deadlines are the chain's: its second now is that of the newest block and what has passed since it came, by a clock that
nothing sets (CLOCK_MONOTONIC). The wall clock is only compared with that. A head that is old says by itself nothing
about the clock: a chain that mines on demand has one whenever nobody sends. Such a chain is told by its own blocks,
several of which came long after the ones before them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum, auto
from itertools import pairwise
from typing import Final

from hearth.chain.port import Block

MAX_SKEW_SECONDS: Final = 30
"""How far clock and chain may be apart, and how long a chain that mines by itself may be silent."""
GAPS: Final = 8
"""Gaps between blocks that tell what kind of chain it is."""
LONG_GAPS: Final = 2
"""One long gap of these is an outage, two are a habit."""
_LOOKED_SECONDS: Final = 10.0
"""A block came while this process watched if it looked for one within this time before."""


class Doubt(Enum):
    """Why nothing new should be begun."""

    CLOCK = auto()
    """Blocks come with times that are not this clock's: the clock is wrong, or the provider shows them late."""
    SILENCE = auto()
    """The newest block is old, and nobody saw it come, or more should have come since."""


class ChainClock:
    """The chain's time as this process knows it. `saw` is told the head at every look."""

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._head: Block | None = None
        self._came = self._looked = 0.0
        self._watched = False
        self._gaps: deque[int] = deque(maxlen=GAPS)
        self._heads: deque[Block] = deque(maxlen=GAPS + 1)

    def learn(self, blocks: Iterable[Block]) -> None:
        """Learn the chain's habit from blocks that follow each other, the oldest first."""
        for parent, block in pairwise(blocks):
            self._gaps.append(block.timestamp - parent.timestamp)

    def saw(self, head: Block) -> None:
        """Note the newest block, whether or not it is new."""
        now, last = self._monotonic(), self._head
        if last is None or head.hash != last.hash:
            self._watched = last is not None and now - self._looked <= _LOOKED_SECONDS
            self._head, self._came = head, now
            self._heads.append(head)
            if last is not None and head.parent_hash == last.hash:
                self._gaps.append(head.timestamp - last.timestamp)
        self._looked = now

    @property
    def now(self) -> int:
        """Return the chain's second."""
        return 0 if self._head is None else self._head.timestamp + int(self.silent)

    @property
    def silent(self) -> float:
        """Return the seconds since the newest block came, or was first seen."""
        return self._monotonic() - self._came

    @property
    def age(self) -> float:
        """Return how old the newest block is, by the wall clock, and at least for how long no other has come."""
        return 0.0 if self._head is None else max(0.0, self._wall() - self._head.timestamp, self.silent)

    @property
    def skew(self) -> float:
        """Return this machine's clock less the chain's, in seconds."""
        return 0.0 if self._head is None else self._wall() - self._head.timestamp - self.silent

    @property
    def mines_on_demand(self) -> bool:
        """Say whether the chain's blocks come when somebody sends."""
        return sum(gap > MAX_SKEW_SECONDS for gap in self._gaps) >= LONG_GAPS

    @property
    def block_seconds(self) -> float | None:
        """Return the chain's seconds between two blocks, by the newest heads seen, None before GAPS blocks."""
        if not self._heads:
            return None
        first, last = self._heads[0], self._heads[-1]
        if last.number - first.number < GAPS:
            return None
        return (last.timestamp - first.timestamp) / (last.number - first.number)

    def doubt(self) -> Doubt | None:
        """Say why the clock, or what is seen of the chain, should not be trusted for something new."""
        skew = self.skew
        if abs(skew) > MAX_SKEW_SECONDS:
            # A head that was there before this process is as old as it is; one from the future is a clock's fault.
            return Doubt.SILENCE if skew > 0 and not self._watched else Doubt.CLOCK
        return Doubt.SILENCE if self.silent > MAX_SKEW_SECONDS and not self.mines_on_demand else None
