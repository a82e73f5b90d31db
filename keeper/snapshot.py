"""What a decision reads, pure: the market at one block."""

from __future__ import annotations

from dataclasses import dataclass, field

from hearth.protocol.types import Best, Header, JobId, Policy, Terms, Unit
from keeper.fleet import Nodes


@dataclass(frozen=True, slots=True)
class UnitRow:
    """A unit that has not ended, as stored on chain; `best` counts only while it is OPEN."""

    index: int
    unit: Unit
    best: Best = field(default_factory=Best)


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job with its units that have been touched and have not ended; a one-lease job has exactly one.

    `header` is None for a one-lease job. `since` is the chain second from which an array's next lease is untouched
    and first in line.
    """

    id: JobId
    terms: Terms
    policy: Policy
    units: tuple[UnitRow, ...]
    header: Header | None = None
    since: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The market at one block. `liveness_fee` is base units, `gas_price` wei per gas."""

    block: int
    time: int
    nodes: Nodes
    jobs: tuple[JobRow, ...]
    liveness_fee: int
    gas_price: int
