"""How far a job, or a node, is trusted with gas, pure: by what became of this keeper's own proposals.

A proposal costs its gas and pays its tip only where the node acks. A lapse costs the node nothing on chain, so a
submitter and a node in league could draw proposals without end. What became of them is on chain, and which are ours in
the journal of transactions, so that a restart or a reorg changes nothing. Others' proposals do not count, whomever they
name as payee: somebody could ack some of his own to be trusted with ours, or let some lapse to have a job rest. Source:
docs/decisions/0021-propose-by-a-keepers-own-record.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

JOB_PATIENCE: Final = 2
"""Proposals lost, less those acked, at which a job rests: two nodes may be silent before it does."""
NODE_PATIENCE: Final = 1
"""Proposals lapsed, less those acked, at which a node rests."""
NODE_CREDIT: Final = 16
"""The most that acks of the past count for a node, so that one that fails after years is found out soon."""
FIRST_REST: Final = 60
"""The first rest in seconds; every further loss makes it four times as long."""
LONGEST_REST: Final = 86_400


@dataclass(frozen=True, slots=True)
class Record:
    """What became of this keeper's proposals: those acked less those lost, and the second at which the last was lost.

    A proposal is lost to its job where its node does not ack, or another proposal replaces it; to its node only where
    it lapses.
    """

    score: int = 0
    lost_at: int = 0

    def acked(self) -> Record:
        """Return the record with one proposal more that was acked."""
        return Record(self.score + 1, self.lost_at)

    def lost(self, at: int) -> Record:
        """Return the record with one proposal more that was lost, at second `at`."""
        return Record(self.score - 1, max(self.lost_at, at))

    def capped(self) -> Record:
        """Return the record as a node's, for which no more than NODE_CREDIT counts."""
        return Record(min(self.score, NODE_CREDIT), self.lost_at)

    @property
    def room(self) -> int:
        """Return how many proposals may wait for an answer at once: one, and one more for each ack beyond the losses.

        So the losses never exceed the acks by more than two, whatever the nodes do, until a rest is over.
        """
        return max(1, 1 + self.score)

    def rests_until(self, patience: int) -> int:
        """Return the second until which nothing is proposed; 0: fewer than `patience` more were lost than acked."""
        over = -self.score - patience
        if over < 0:
            return 0
        return self.lost_at + min(LONGEST_REST, FIRST_REST << 2 * min(over, 8))
