"""What a decision says, pure: the actions of a worker, and why a lease is left alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hearth.protocol.types import Gate, JobId, Outcome
from worker.decide.snapshot import LeaseKey, Reason

MAX_BATCH: Final = 64
"""The most leases that one `settle_batch` takes."""


@dataclass(frozen=True, slots=True)
class Beat:
    """Tell the chain that this node is alive."""


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """Fetch and parse a job's spec, which no bond is risked without."""

    job: JobId


@dataclass(frozen=True, slots=True)
class Propose:
    """Propose this node for a lease: its key wins. `lapses` tells a second proposal for one attempt from the first."""

    job: JobId
    index: int
    attempts: int
    lapses: int


@dataclass(frozen=True, slots=True)
class Ack:
    """Take a lease whose window this node won."""

    job: JobId
    index: int
    attempts: int
    bond: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Take an open lease, first come. `call_index` is NEXT for an array's next lease, which no rival can take away."""

    job: JobId
    index: int
    attempts: int
    bond: int
    call_index: int


@dataclass(frozen=True, slots=True)
class StartRun:
    """Start (or start again) the execution of a held lease. `mark` is the first second that is too late to submit."""

    key: LeaseKey
    mark: int
    tries: int


@dataclass(frozen=True, slots=True)
class SubmitResult:
    """Submit the result of a finished attempt."""

    key: LeaseKey
    result: bytes
    report: bytes
    outcome: Outcome
    used: int


@dataclass(frozen=True, slots=True)
class Decline:
    """Give a lease back that cannot be run: bad input, bad key or no image."""

    key: LeaseKey
    report: bytes
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Settle:
    """Settle own submitted leases, at most 64: (job, index) each."""

    items: tuple[tuple[JobId, int], ...]


@dataclass(frozen=True, slots=True)
class Close:
    """End a lease whose cancel notice is over: the node is paid for its time and the slot is free."""

    job: JobId
    index: int


@dataclass(frozen=True, slots=True)
class Abort:
    """Stop an execution whose lease this node no longer holds."""

    key: LeaseKey
    why: str


@dataclass(frozen=True, slots=True)
class SetAside:
    """Put the files of an attempt that has ended on chain aside; they are deleted when they are old."""

    key: LeaseKey
    why: str


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Pay the operator's own credit out to itself: it is the gas money."""

    amount: int


Action = (
    Beat
    | ReadSpec
    | Propose
    | Ack
    | Claim
    | StartRun
    | SubmitResult
    | Decline
    | Settle
    | Close
    | Abort
    | SetAside
    | Withdraw
)


@dataclass(frozen=True, slots=True)
class Skip:
    """Say why a lease is left alone. `index` is None where the reason holds for the whole job."""

    job: JobId
    index: int | None
    reason: Reason | Gate
    detail: str = ""

    @property
    def name(self) -> str:
        """Return the reason's stable name, in lower case."""
        return self.reason.name.lower()
