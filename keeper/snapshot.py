"""What a decision reads, pure: the market at one block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hearth.protocol.parents import Parent
from hearth.protocol.types import Best, Header, JobId, NodeId, State, Terms, Unit
from keeper.fleet import Nodes
from keeper.trust import Record


@dataclass(frozen=True, slots=True)
class UnitRow:
    """A unit that has not ended, as stored on chain; `best` counts only while it is OPEN.

    `own`: this keeper itself sent the proposal that it holds.
    """

    index: int
    unit: Unit
    best: Best = field(default_factory=Best)
    own: bool = False


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job with its units that have been touched and have not ended; a one-lease job has exactly one.

    `header` is None for a one-lease job. `since` is the chain second from which an array's next lease is untouched
    and first in line. `record` tells of this keeper's own proposals that have been answered; those of the units that
    still hold one are not in it. `parents` are the jobs that it waits for, or once waited for.
    """

    id: JobId
    terms: Terms
    units: tuple[UnitRow, ...]
    header: Header | None = None
    since: int = 0
    record: Record = Record()
    parents: tuple[Parent, ...] = ()

    @property
    def waits(self) -> bool:
        """Say whether the job is BLOCKED, or an array that waits: `unlock` opens or ends it."""
        if self.header is not None:
            return self.header.waiting
        return any(row.unit.state == State.BLOCKED for row in self.units)


class ParentWord(NamedTuple):
    """A job's own word, and the chain second at which it was first seen to be so: 0 where that was at first sight."""

    word: int
    since: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The market at one block. `liveness_fee` is base units, `gas_price` wei per gas.

    `records` tells of this keeper's own proposals by node, as a job's record does. `parents` are the jobs that others
    wait for, as far as they were read at the block; their words are such as contracts write, or 0.
    """

    block: int
    time: int
    nodes: Nodes
    jobs: tuple[JobRow, ...]
    liveness_fee: int
    gas_price: int
    records: Mapping[NodeId, Record] = field(default_factory=dict)
    parents: Mapping[JobId, ParentWord] = field(default_factory=dict)
