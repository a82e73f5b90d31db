"""What a decision says, pure: the actions of a worker, and why a lease is left alone.

An action knows its own effect. A `ChainAction` has a kind, a key and a call, and names the leases that it concerns; a
`LocalStep` needs no chain and is carried out by the worker's own hands.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

from hearth.protocol.gas import CLAIM_GAS
from hearth.protocol.types import SENTINEL, Gate, JobId, NodeId, Outcome
from hearth.protocol.words import TermsWords
from worker.decide.snapshot import Kind, LeaseKey, Reason, Saved

if TYPE_CHECKING:
    from hearth.chain.port import Call
    from hearth.market.calls import Calls

Where = tuple[JobId, int]
"""A lease: its job and its index. The index of a claim of an array's next lease is `SENTINEL`, as in its call."""


# ---- what one transaction performs ----


@dataclass(frozen=True, slots=True)
class Caller:
    """What a call needs besides its action.

    `calls` builds the market's calls, `node` is this worker's, `payout` the account that credit is paid out to, and
    `terms` returns the packed terms of a job that the worker follows.
    """

    calls: Calls
    node: NodeId
    payout: str
    terms: Callable[[JobId], TermsWords]


class ChainAction(ABC):
    """An action that is one transaction. Tips and settle rewards go to its sender, the operator, whose gas they pay."""

    __slots__ = ()
    kind: ClassVar[Kind]

    @property
    @abstractmethod
    def leases(self) -> tuple[Where, ...]:
        """Return the leases that it concerns, as its call names them."""

    def concerns(self, job: JobId) -> bool:
        """Say whether it is about a job."""
        return any(of == job for of, _ in self.leases)

    @property
    def begins(self) -> LeaseKey | None:
        """Return the attempt that begins when it is mined, None where none does."""
        return None

    def ceiling(self, cap: int) -> int | None:
        """Return the most wei per gas that it may cost; None for all of `cap`, where it saves stake or pay.

        What begins or can wait has half of it: a lease that is taken must still be submitted, and fees may double.
        """
        return cap // 2

    @property
    def spare_gas(self) -> int:
        """Return the gas that it may use beyond an estimate made now, by what came before it then."""
        return 0

    @abstractmethod
    def key(self) -> str:
        """Return the effect's key in the transaction journal: the same effect has the same key, after a restart too.

        Journals on disk hold these strings, so they never change.
        """

    @abstractmethod
    def call(self, by: Caller) -> Call:
        """Build the call."""


@dataclass(frozen=True, slots=True)
class Beat(ChainAction):
    """Tell the chain that this node is alive. `last` is the chain second of the beat before, 0 for none."""

    kind = Kind.BEAT
    node: NodeId
    last: int

    @property
    def leases(self) -> tuple[Where, ...]:
        """Return none."""
        return ()

    def ceiling(self, cap: int) -> None:
        """Return None: silence costs a bond."""

    def key(self) -> str:
        """Name the node and its last beat."""
        return f"{self.kind}/{self.node}/{self.last}"

    def call(self, by: Caller) -> Call:
        """Build the call."""
        return by.calls.beat(self.node)


@dataclass(frozen=True, slots=True)
class _ForPay(ChainAction):
    """A transaction that is sent for what it brings; `worth` is the most wei per gas that it then pays for, None for
    any."""

    worth: int | None = field(default=None, compare=False, kw_only=True)

    def ceiling(self, cap: int) -> int:
        """Return half of the cap, or what it is worth where that is less."""
        return cap // 2 if self.worth is None else min(cap // 2, self.worth)


@dataclass(frozen=True, slots=True)
class _OnLease(_ForPay):
    """A transaction about one lease."""

    job: JobId
    index: int

    @property
    def leases(self) -> tuple[Where, ...]:
        """Return the one lease."""
        return ((self.job, self.index),)


@dataclass(frozen=True, slots=True)
class Propose(_OnLease):
    """Propose this node for a lease: its key wins. `lapses` tells a second proposal for one attempt from the first."""

    kind = Kind.PROPOSE
    attempts: int
    lapses: int

    def key(self) -> str:
        """Name the lease, its attempts and its lapses."""
        return f"{self.kind}/{self.job.hex()}/{self.index}/{self.attempts}/{self.lapses}"

    def call(self, by: Caller) -> Call:
        """Build the call."""
        return by.calls.propose(by.terms(self.job), self.index, by.node)


@dataclass(frozen=True, slots=True)
class Ack(_OnLease):
    """Take a lease whose window this node won; `resumes` is the attempt whose checkpoint it begins with, 0 for none."""

    kind = Kind.ACK
    attempts: int
    bond: int
    resumes: int = 0

    @property
    def begins(self) -> LeaseKey:
        """Return the lease's next attempt."""
        return LeaseKey(self.job, self.index, self.attempts + 1)

    def key(self) -> str:
        """Name the lease and its attempts."""
        return f"{self.kind}/{self.job.hex()}/{self.index}/{self.attempts}"

    def call(self, by: Caller) -> Call:
        """Build the call."""
        return by.calls.ack(by.terms(self.job), self.index, resume_from=self.resumes)


@dataclass(frozen=True, slots=True)
class Claim(_OnLease):
    """Take an open lease, first come. `call_index` is NEXT for an array's next lease, which no rival can take away;
    `resumes` is the attempt whose checkpoint it begins with, 0 for none.

    Of several calls that take an array's next lease each names the one that will be its own where no rival comes
    between: `index` is the array's next one and `behind`, how many of them are on their way before it.
    """

    kind = Kind.CLAIM
    attempts: int
    bond: int
    call_index: int
    resumes: int = 0
    behind: int = 0

    @property
    def leases(self) -> tuple[Where, ...]:
        """Return the lease as the call names it: which one NEXT is, the chain decides."""
        return ((self.job, self.call_index),)

    @property
    def begins(self) -> LeaseKey:
        """Return the lease's next attempt."""
        return LeaseKey(self.job, self.index, self.attempts + 1)

    def key(self) -> str:
        """Name the lease, how the call names it, and its attempts.

        An array's next lease had none. It is named by the array's next one and its own place behind that: a call that
        is mined moves the array on, so no later effect has its name.
        """
        if self.call_index == SENTINEL:
            return f"{self.kind}/{self.job.hex()}/next/{self.index - self.behind}/{self.behind}"
        return f"{self.kind}/{self.job.hex()}/{self.index}/{self.index}/{self.attempts}"

    def call(self, by: Caller) -> Call:
        """Build the call."""
        return by.calls.claim(by.terms(self.job), self.call_index, by.node, resume_from=self.resumes)


@dataclass(frozen=True, slots=True)
class Close(_OnLease):
    """End a lease whose cancel notice is over: the node is paid for its time and the slot is free."""

    kind = Kind.CLOSE

    def key(self) -> str:
        """Name the lease."""
        return f"{self.kind}/{self.job.hex()}/{self.index}"

    def call(self, by: Caller) -> Call:
        """Build the call."""
        return by.calls.close(by.terms(self.job), self.index)


@dataclass(frozen=True, slots=True)
class _EndsAttempt(ChainAction):
    """A transaction that ends an attempt of this node."""

    attempt: LeaseKey

    @property
    def leases(self) -> tuple[Where, ...]:
        """Return the attempt's lease."""
        return ((self.attempt.job, self.attempt.index),)

    def ceiling(self, cap: int) -> None:
        """Return None: late, it costs a bond and the pay."""

    def key(self) -> str:
        """Name the attempt."""
        return f"{self.kind}/{self.attempt.job.hex()}/{self.attempt.index}/{self.attempt.attempts}"


@dataclass(frozen=True, slots=True)
class Checkpoint(_ForPay):
    """Tell the chain of a running attempt's checkpoint, which is stored: `root` are the 32 bytes that name its tree.

    It is the attempt's `number`th, from 1: a program may come back to a state that it left.
    """

    kind = Kind.CHECKPOINT
    attempt: LeaseKey
    root: bytes
    number: int

    @property
    def leases(self) -> tuple[Where, ...]:
        """Return the attempt's lease."""
        return ((self.attempt.job, self.attempt.index),)

    def key(self) -> str:
        """Name the attempt, the checkpoint's number and its tree."""
        attempt = self.attempt
        return f"{self.kind}/{attempt.job.hex()}/{attempt.index}/{attempt.attempts}/{self.number}/{self.root.hex()}"

    def call(self, by: Caller) -> Call:
        """Build the call."""
        return by.calls.checkpoint(self.attempt.job, self.attempt.index, self.root)


@dataclass(frozen=True, slots=True)
class SubmitResult(_EndsAttempt):
    """Submit the result of a finished attempt."""

    kind = Kind.SUBMIT
    result: bytes
    report: bytes
    outcome: Outcome
    used: int

    def call(self, by: Caller) -> Call:
        """Build the call."""
        attempt = self.attempt
        return by.calls.submit(attempt.job, attempt.index, self.result, self.report, self.outcome, self.used)


@dataclass(frozen=True, slots=True)
class Finish(_EndsAttempt):
    """Submit the result of a finished attempt and settle it at once; with `next` also take the array's next lease.

    That is a part of it which may fail by itself: the result is paid, and no lease begins.
    """

    kind = Kind.FINISH
    result: bytes
    report: bytes
    outcome: Outcome
    used: int
    next: Claim | None = None

    @property
    def leases(self) -> tuple[Where, ...]:
        """Return the attempt's lease, and the array's next one where it is taken."""
        own = (self.attempt.job, self.attempt.index)
        return (own,) if self.next is None else (own, *self.next.leases)

    @property
    def begins(self) -> LeaseKey | None:
        """Return the next lease's attempt."""
        return None if self.next is None else self.next.begins

    @property
    def spare_gas(self) -> int:
        """Return the gas of a claim: an estimate made where none would land does not hold it."""
        return 0 if self.next is None else CLAIM_GAS

    def call(self, by: Caller) -> Call:
        """Build the call."""
        attempt, claims = self.attempt, self.next is not None
        said = (self.result, self.report, self.outcome, self.used)
        return by.calls.finish(by.terms(attempt.job), attempt.index, *said, claims=claims)


@dataclass(frozen=True, slots=True)
class Decline(_EndsAttempt):
    """Give a lease back that cannot be run, while that is free: bad input, bad key or no image."""

    kind = Kind.DECLINE
    report: bytes
    outcome: Outcome

    def call(self, by: Caller) -> Call:
        """Build the call."""
        return by.calls.decline(by.terms(self.attempt.job), self.attempt.index, self.outcome, self.report)


@dataclass(frozen=True, slots=True)
class GiveUp(_EndsAttempt):
    """Give a lease back that will have no result, for less than its reclaim would cost."""

    kind = Kind.GIVE_UP
    report: bytes

    def call(self, by: Caller) -> Call:
        """Build the call."""
        return by.calls.give_up(by.terms(self.attempt.job), self.attempt.index, self.report)


@dataclass(frozen=True, slots=True)
class Settle(_ForPay):
    """Settle own submitted leases, at most MAX_SETTLE: (job, index) each."""

    kind = Kind.SETTLE
    items: tuple[Where, ...]

    @property
    def leases(self) -> tuple[Where, ...]:
        """Return all of them."""
        return self.items

    def key(self) -> str:
        """Name all of them."""
        return f"{self.kind}/" + ",".join(f"{job.hex()}:{index}" for job, index in self.items)

    def call(self, by: Caller) -> Call:
        """Build the call; a single lease has a cheaper one."""
        if len(self.items) == 1:
            job, index = self.items[0]
            return by.calls.settle(by.terms(job), index)
        return by.calls.settle_batch([(by.terms(job), index) for job, index in self.items])


@dataclass(frozen=True, slots=True)
class Withdraw(ChainAction):
    """Pay the operator's own credit out: it is the gas money. `block` is the one at which it was read."""

    kind = Kind.WITHDRAW
    amount: int
    block: int

    @property
    def leases(self) -> tuple[Where, ...]:
        """Return none."""
        return ()

    def key(self) -> str:
        """Name the block and the amount."""
        return f"{self.kind}/{self.block}/{self.amount}"

    def call(self, by: Caller) -> Call:
        """Build the call."""
        return by.calls.withdraw(by.payout, self.amount)


# ---- what needs no chain ----


class Hands(Protocol):
    """What a worker can do by itself."""

    def read_spec(self, job: JobId) -> None:
        """Begin to read a job's spec."""

    def gather(self, attempt: LeaseKey, seconds: int, saved: Sequence[Saved], most: int) -> None:
        """Fetch within `seconds` what an attempt needs whose lease this node may take, and the first state in `saved`
        that can be had, of those which the chain has kept and which hold no more than `most` seconds."""

    def start_attempt(
        self, attempt: LeaseKey, seconds: int, tries: int, begun: int, topped: int, state: Saved | None
    ) -> None:
        """Begin to execute a held lease that has `seconds` left; in `begun` its program must be started. `topped`
        seconds were bought beside those of its terms, and it begins with a `state`."""

    def stop_attempt(self, attempt: LeaseKey, why: str) -> None:
        """Stop an execution."""

    def hand_in(self, attempt: LeaseKey, seconds: int, used: int) -> None:
        """End a run so early that what it has made by then can be submitted in `seconds`, as `used` fuel seconds."""

    def set_aside(self, attempt: LeaseKey, why: str) -> None:
        """Put an attempt's files aside."""


class LocalStep(ABC):
    """An action that sends nothing."""

    __slots__ = ()

    @abstractmethod
    def concerns(self, job: JobId) -> bool:
        """Say whether it is about a job."""

    @abstractmethod
    def perform(self, hands: Hands, now: int) -> None:
        """Carry it out; `now` is chain seconds."""


@dataclass(frozen=True, slots=True)
class ReadSpec(LocalStep):
    """Fetch and parse a job's spec, which no bond is risked without."""

    job: JobId

    def concerns(self, job: JobId) -> bool:
        """Say whether it is this job's spec."""
        return self.job == job

    def perform(self, hands: Hands, now: int) -> None:
        """Read it."""
        hands.read_spec(self.job)


@dataclass(frozen=True, slots=True)
class _OnAttempt(LocalStep):
    """A step of one attempt."""

    attempt: LeaseKey

    def concerns(self, job: JobId) -> bool:
        """Say whether it is an attempt of this job."""
        return self.attempt.job == job


@dataclass(frozen=True, slots=True)
class Gather(_OnAttempt):
    """Fetch all that an attempt needs, by the chain second `until`, before its lease is taken; nothing of it runs.

    `saved` are the states that it may begin with, the best first, and `most` how many seconds one may hold.
    """

    until: int
    saved: tuple[Saved, ...] = ()
    most: int = 0

    def perform(self, hands: Hands, now: int) -> None:
        """Fetch it in the seconds that are left."""
        hands.gather(self.attempt, max(0, self.until - now), self.saved, self.most)


@dataclass(frozen=True, slots=True)
class StartRun(_OnAttempt):
    """Start (or start again) the execution of a held lease, with what was gathered for it.

    `deadline_at` is the first second too late to submit. Where its program is not begun by `begun_by`, it is refused:
    what it needs does not come. `topped` are seconds beside those of its terms, `state` what it begins with.
    """

    deadline_at: int
    tries: int
    begun_by: int
    topped: int = 0
    state: Saved | None = None

    def perform(self, hands: Hands, now: int) -> None:
        """Start it with the seconds that are left."""
        left, begun = self.deadline_at - now, self.begun_by - now
        hands.start_attempt(self.attempt, left, self.tries, begun, self.topped, self.state)


@dataclass(frozen=True, slots=True)
class Abort(_OnAttempt):
    """Stop an execution whose lease this node no longer holds."""

    why: str

    def perform(self, hands: Hands, now: int) -> None:
        """Stop it."""
        hands.stop_attempt(self.attempt, self.why)


@dataclass(frozen=True, slots=True)
class HandIn(_OnAttempt):
    """Have a cancelled unit's program end before the notice does, and make a result of what it has by then.

    `deadline_at` is the first second too late to submit, `used` what it then bills of fuel. Once told, it stands.
    """

    deadline_at: int
    used: int = 0

    def perform(self, hands: Hands, now: int) -> None:
        """Tell how many seconds are left."""
        hands.hand_in(self.attempt, max(0, self.deadline_at - now), self.used)


@dataclass(frozen=True, slots=True)
class SetAside(_OnAttempt):
    """Put the files of an attempt that has ended on chain aside; they are deleted when they are old."""

    why: str

    def perform(self, hands: Hands, now: int) -> None:
        """Put them aside."""
        hands.set_aside(self.attempt, self.why)


Action = ChainAction | LocalStep


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

    def concerns(self, job: JobId) -> bool:
        """Say whether it is about a job."""
        return self.job == job
