"""Decide what a worker does next, from one block's state: pure, without I/O, clock or randomness.

The shell reads a `Snapshot` pinned to one block, calls `decide`, and performs the actions. The chain decides what a
node holds; the journal only says how far this machine has come with it. Every lease that is left alone yields a
`Skip` with a named reason, which `hearth worker why JOB` shows. Guards are those of `hearth.protocol.formulas`, so an
action offered here is one that the contracts accept at this block. Source: SPEC sections "States", "Matching" and
"Worker".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from hearth.protocol import formulas, words
from hearth.protocol.types import (
    SENTINEL,
    ZERO_ADDRESS,
    Best,
    Gate,
    Header,
    JobId,
    Node,
    NodeId,
    Outcome,
    Policy,
    State,
    Status,
    Terms,
    TermsFlag,
    Unit,
)

_MASK64: Final = (1 << 64) - 1
MAX_BATCH: Final = 64
"""The most leases that one `settle_batch` takes."""
HELD: Final = frozenset({State.RUNNING, State.CLOSING})
"""The states in which a lease occupies a slot of its node."""
OURS: Final = HELD | {State.SUBMITTED}
"""The states in which a lease still belongs to its node."""


class Reason(StrEnum):
    """Name why the worker leaves a lease alone for now. A `Gate` is the reason where the chain itself would refuse."""

    PAUSED = "paused"
    OUTSIDE_SCHEDULE = "outside_schedule"
    DRAINING = "draining"
    CLOCK_SKEW = "clock_skew"
    NOT_READY = "not_ready"
    NODE_STATUS = "node_status"
    TX_PENDING = "tx_pending"
    SLOTS_FULL = "slots_full"
    SUBMITTER_REFUSED = "submitter_refused"
    RATE_BELOW_MINIMUM = "rate_below_minimum"
    TOO_LONG = "too_long"
    NOT_SUPPORTED = "not_supported"
    VERIFIER_UNKNOWN = "verifier_unknown"
    SPEC_UNREAD = "spec_unread"
    SPEC_BAD = "spec_bad"
    IMAGE_REFUSED = "image_refused"
    TOO_BIG = "too_big"
    OUTBID = "outbid"
    LEADING = "leading"
    AWAITS_ACK = "awaits_ack"
    AWAITS_OPEN_CLAIM = "awaits_open_claim"
    AWAITS_KEEPER = "awaits_keeper"
    AWAITS_CONFIRMATIONS = "awaits_confirmations"
    RUNNING = "running"
    STOPPING = "stopping"
    NOTICE = "notice"
    LEASE_OVER = "lease_over"
    AWAITS_WINDOW = "awaits_window"
    ARRAY_CLOSED = "array_closed"
    ENDED = "ended"
    RETRY_LATER = "retry_later"
    NOT_WATCHED = "not_watched"


class Stage(StrEnum):
    """Say how far this machine has come with an attempt."""

    WORKING = "working"
    DONE = "done"
    REFUSED = "refused"
    BROKEN = "broken"


class Kind(StrEnum):
    """Name the transactions of a worker, as the tx journal knows them."""

    BEAT = "beat"
    PROPOSE = "propose"
    ACK = "ack"
    CLAIM = "claim"
    SUBMIT = "submit"
    DECLINE = "decline"
    SETTLE = "settle"
    CLOSE = "close"
    WITHDRAW = "withdraw"


ENGAGING: Final = frozenset({Kind.ACK, Kind.CLAIM})


@dataclass(frozen=True, slots=True, order=True)
class LeaseKey:
    """Name one attempt: the job's id, the lease's index, and the attempt, counted from 1 at the first ack or claim."""

    job: JobId
    index: int
    attempts: int

    def __str__(self) -> str:
        return f"{self.job.hex()}-{self.index}-{self.attempts}"


@dataclass(frozen=True, slots=True)
class SpecFacts:
    """What the worker must know of a spec before it risks a bond on it.

    `runtime` is "wasm" or "docker", `target` the module's CID or the image with its digest, `bad` says why the document
    cannot be run at all (empty: it can). Sizes are bytes: inputs as far as the spec names them, outputs as capped.
    """

    runtime: str = ""
    target: str = ""
    output_bytes: int = 0
    bad: str = ""


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as stored at the pinned block. `since` is the first block at which this process saw this attempt."""

    index: int
    unit: Unit
    best: Best = field(default_factory=Best)
    since: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """A job that the worker watches: terms, header (arrays only) and the touched leases that are not ended.

    `retry_at` is a chain second before which nothing new is tried on the job (a lost race, a refusal, a store that is
    down); 0 = any time.
    """

    id: JobId
    terms: Terms
    leases: tuple[Lease, ...] = ()
    header: Header | None = None
    spec: SpecFacts | None = None
    retry_at: int = 0


@dataclass(frozen=True, slots=True)
class Execution:
    """An attempt as the journal knows it. `result`, `report`, `used` and `outcome` count from DONE or REFUSED on."""

    key: LeaseKey
    stage: Stage
    outcome: Outcome = Outcome.NONE
    result: bytes = bytes(32)
    report: bytes = bytes(32)
    used: int = 0
    tries: int = 1


@dataclass(frozen=True, slots=True)
class Flight:
    """A transaction that was signed and is not yet mined. `bond` counts for acks and claims."""

    kind: Kind
    job: JobId | None = None
    index: int = 0
    bond: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that one decision reads, all of it at one block.

    `credit` is the operator's own credit in Escrow (tips and settle rewards), base units.
    """

    block: int
    timestamp: int
    node: Node
    market: formulas.Market
    jobs: tuple[Job, ...] = ()
    executions: tuple[Execution, ...] = ()
    flights: tuple[Flight, ...] = ()
    credit: int = 0


@dataclass(frozen=True, slots=True)
class Config:
    """What the provider allows. Rates are base units x 1e6 per second, times seconds, sizes bytes, amounts base units.

    `hold` is why nothing new is accepted (None: it is). `images` and `modules` are shell patterns. `margin` is what an
    attempt needs from its end to a mined submit. `withdraw_at` 0 never withdraws.
    """

    beat_every: int
    hold: Reason | None = None
    max_slots: int = 63
    min_rate: int = 0
    max_seconds: int = 30 * 86_400
    max_output_bytes: int = 1 << 63
    images: tuple[str, ...] = ("*",)
    modules: tuple[str, ...] = ("*",)
    submitters_refused: frozenset[str] = frozenset()
    verifiers: frozenset[str] = frozenset()
    confirmations: int = 0
    propose: bool = True
    propose_after: int = 0
    settle_after: int = 0
    max_tries: int = 3
    withdraw_at: int = 0
    runtimes: frozenset[str] = frozenset({"wasm", "docker"})


# ---- actions ----


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


@dataclass(slots=True)
class _Room:
    """The node as it will be once everything in flight and decided so far is mined."""

    node: Node
    free: int
    flying: frozenset[tuple[JobId, int]]
    flying_jobs: frozenset[JobId]
    # (job, index) of leases that another rule has spoken for, and of those whose old execution is being stopped.
    taken: set[tuple[JobId, int]] = field(default_factory=set)
    stopping: set[tuple[JobId, int]] = field(default_factory=set)

    def engage(self, bond: int) -> None:
        """Count one more lease."""
        hot = self.node.hot
        # The lane has 6 bits; what exceeds it cannot be engaged anyway.
        self.node = replace(self.node, hot=replace(hot, busy=min(63, hot.busy + 1), bond=hot.bond + bond))
        self.free -= 1


def decide(snapshot: Snapshot, config: Config, now: int) -> list[Action | Skip]:
    """Return what to do now, most urgent first: beat, own leases by their mark, then new leases.

    `now` is chain seconds, at least the pinned block's. At most one transaction names a lease, and at most as many
    leases are taken as slots are free. Nothing is ever submitted at or after a lease's mark.
    """
    actions: list[Action | Skip] = []
    if _beat_due(snapshot, config, now):
        actions.append(Beat())
    own = _own_leases(snapshot)
    executions = {e.key: e for e in snapshot.executions}
    room = _room(snapshot, config, own, executions)
    leftovers = _leftovers(own, executions, room)
    actions += _finish(snapshot, config, now, own, executions, room)
    actions += leftovers
    if config.withdraw_at and snapshot.credit >= config.withdraw_at and not _flying(snapshot, Kind.WITHDRAW):
        actions.append(Withdraw(snapshot.credit))
    actions += _take(snapshot, config, now, room)
    return actions


def explain(snapshot: Snapshot, config: Config, job: JobId, now: int) -> list[Action | Skip]:
    """Return what `decide` would do about one job, and why; a job that is not watched says so."""
    found = [a for a in decide(snapshot, config, now) if _concerns(a, job)]
    if found:
        return found
    if any(row.id == job for row in snapshot.jobs):
        return [Skip(job, None, Reason.ENDED, "no lease of this job is open, and none is this node's")]
    return [Skip(job, None, Reason.NOT_WATCHED, "the worker follows no such job; it may have ended")]


def _concerns(action: Action | Skip, job: JobId) -> bool:
    match action:
        case Settle(items):
            return any(item[0] == job for item in items)
        case StartRun(key) | SubmitResult(key) | Decline(key) | Abort(key) | SetAside(key):
            return key.job == job
        case Beat() | Withdraw():
            return False
        case _:
            return action.job == job


# ---- the node itself ----


def _flying(snapshot: Snapshot, kind: Kind) -> bool:
    return any(f.kind == kind for f in snapshot.flights)


def _beat_due(snapshot: Snapshot, config: Config, now: int) -> bool:
    """Say whether to beat: only while work is wanted or held, since an idle node that beats is proposed in vain."""
    node = snapshot.node
    if int(node.operator, 16) == 0 or _flying(snapshot, Kind.BEAT):
        return False
    if config.hold is not None and node.hot.busy == 0:
        return False
    return now >= node.hot.beat + config.beat_every


def _hold(snapshot: Snapshot, config: Config, now: int) -> Skip | None:
    """Return why no new lease is taken at all, as a skip without a job, or None."""
    if config.hold is not None:
        return Skip(JobId(b""), None, config.hold)
    status = formulas.status(snapshot.node, now, snapshot.market.dead_after, snapshot.market.minimum_stake)
    if status != Status.ACTIVE:
        return Skip(JobId(b""), None, Reason.NODE_STATUS, f"the node is {status.name}")
    return None


def _own_leases(snapshot: Snapshot) -> dict[LeaseKey, tuple[Job, Lease]]:
    """Return the leases that the chain says are this node's."""
    return {
        LeaseKey(job.id, lease.index, lease.unit.attempts): (job, lease)
        for job in snapshot.jobs
        for lease in job.leases
        if lease.unit.state in OURS and lease.unit.node == snapshot.node.id
    }


def _room(
    snapshot: Snapshot,
    config: Config,
    own: Mapping[LeaseKey, tuple[Job, Lease]],
    executions: Mapping[LeaseKey, Execution],
) -> _Room:
    """Project the node past its flights. An execution without a lease still fills a slot of the machine."""
    node = snapshot.node
    held = sum(1 for _, lease in own.values() if lease.unit.state in HELD)
    strays = sum(1 for key, e in executions.items() if e.stage == Stage.WORKING and not _is_held(own, key))
    busy = max(held, node.hot.busy)
    # Leases on chain that this snapshot does not show (jobs not yet read) still count in node.hot.busy.
    slots = min(config.max_slots, node.offer.slots)
    room = _Room(
        node=replace(node, hot=replace(node.hot, busy=busy)),
        free=slots - busy - strays,
        flying=frozenset((f.job, f.index) for f in snapshot.flights if f.job is not None),
        flying_jobs=frozenset(f.job for f in snapshot.flights if f.job and f.index == SENTINEL),
    )
    for flight in snapshot.flights:
        if flight.kind in ENGAGING:
            room.engage(flight.bond)
    return room


def _is_held(own: Mapping[LeaseKey, tuple[Job, Lease]], key: LeaseKey) -> bool:
    return key in own and own[key][1].unit.state in HELD


# ---- leases that the node holds ----


def _finish(
    snapshot: Snapshot,
    config: Config,
    now: int,
    own: Mapping[LeaseKey, tuple[Job, Lease]],
    executions: Mapping[LeaseKey, Execution],
    room: _Room,
) -> list[Action | Skip]:
    """Bring own leases forward, the earliest mark first; settlements go out together."""
    actions: list[Action | Skip] = []
    due: list[tuple[JobId, int]] = []
    for key, (job, lease) in sorted(own.items(), key=lambda item: (item[1][1].unit.mark, item[0])):
        room.taken.add((key.job, key.index))
        if (key.job, key.index) in room.flying:
            actions.append(Skip(key.job, key.index, Reason.TX_PENDING))
        elif lease.unit.state == State.SUBMITTED:
            if now >= lease.unit.mark + job.terms.challenge_window + config.settle_after:
                due.append((key.job, key.index))
            else:
                actions.append(Skip(key.job, key.index, Reason.AWAITS_WINDOW))
        elif (key.job, key.index) in room.stopping:
            actions.append(Skip(key.job, key.index, Reason.STOPPING, "an earlier attempt is still being stopped"))
        else:
            actions.append(_advance(snapshot, config, now, key, lease, executions.get(key)))
    for first in range(0, len(due), MAX_BATCH):
        actions.append(Settle(tuple(due[first : first + MAX_BATCH])))
    return actions


def _advance(
    snapshot: Snapshot, config: Config, now: int, key: LeaseKey, lease: Lease, execution: Execution | None
) -> Action | Skip:
    """Decide about one RUNNING or CLOSING lease of this node."""
    unit = lease.unit
    if now >= unit.mark:
        if execution is not None and execution.stage == Stage.WORKING:
            return Abort(key, "the time to submit is over")
        if unit.state == State.CLOSING:
            return Close(key.job, key.index)
        return Skip(key.job, key.index, Reason.LEASE_OVER)
    if execution is None:
        return _start(snapshot, config, key, lease, 1)
    match execution.stage:
        case Stage.WORKING:
            return Skip(key.job, key.index, Reason.RUNNING)
        case Stage.DONE:
            return SubmitResult(key, execution.result, execution.report, execution.outcome, execution.used)
        case Stage.REFUSED:
            return Decline(key, execution.report, execution.outcome)
        case Stage.BROKEN if execution.tries < config.max_tries:
            return _start(snapshot, config, key, lease, execution.tries + 1)
        case _:
            # The machine cannot run it: giving it back now serves everybody better than a reclaim later.
            return Decline(key, execution.report, Outcome.IMAGE_MISSING)


def _start(snapshot: Snapshot, config: Config, key: LeaseKey, lease: Lease, tries: int) -> Action | Skip:
    if lease.unit.state == State.CLOSING:
        return Skip(key.job, key.index, Reason.NOTICE, "cancelled by the submitter; the notice is paid without a run")
    missing = lease.since + config.confirmations - snapshot.block
    if missing > 0:
        return Skip(key.job, key.index, Reason.AWAITS_CONFIRMATIONS, f"{missing} more blocks")
    return StartRun(key, lease.unit.mark, tries)


def _leftovers(
    own: Mapping[LeaseKey, tuple[Job, Lease]], executions: Mapping[LeaseKey, Execution], room: _Room
) -> list[Action | Skip]:
    """Stop or put aside executions whose lease is gone (lost, ended, or taken away by a reorganisation)."""
    actions: list[Action | Skip] = []
    for key, execution in sorted(executions.items()):
        lease = (key.job, key.index)
        if key in own:
            if own[key][1].unit.state == State.SUBMITTED and execution.stage == Stage.WORKING:
                room.stopping.add(lease)
                actions.append(Abort(key, "a result was already submitted"))
        elif lease in room.flying or key.job in room.flying_jobs:
            # A claim that a reorganisation took out of its block is on its way back in.
            actions.append(Skip(key.job, key.index, Reason.TX_PENDING))
            room.taken.add(lease)
        elif execution.stage == Stage.WORKING:
            room.stopping.add(lease)
            room.taken.add(lease)
            actions.append(Abort(key, "the chain does not give this lease to this node any more"))
        else:
            actions.append(SetAside(key, "the lease has ended or was lost"))
    return actions


# ---- leases that the node could take ----


def _take(snapshot: Snapshot, config: Config, now: int, room: _Room) -> list[Action | Skip]:
    """Decide about open leases: acks that are due, then windows that this node leads, then the rest by lot.

    The lot makes workers who see the same leases start at different ones.
    """
    hold = _hold(snapshot, config, now)
    actions: list[Action | Skip] = []
    ranked: list[tuple[int, int, _Candidate]] = []
    for job in snapshot.jobs:
        leases = _open_leases(job, room)
        if not leases:
            continue
        refusal = replace(hold, job=job.id) if hold else job_refusal(job, config, now, snapshot.node)
        if refusal is not None:
            actions.append(refusal)
            continue
        policy = words.unpack_policy(job.terms.policy)
        for lease, untouched in leases:
            unit = formulas.with_lapse(lease.unit, lease.best, policy, now)
            live = formulas.has_live_proposal(unit, policy, now)
            leading = live and lease.best.node == snapshot.node.id
            rank = 2 if not leading else 1 if now < unit.mark else 0
            lot = _lot(job.id, lease.index, snapshot.node.id)
            ranked.append((rank, lot, _Candidate(job, policy, lease, unit, untouched, live, leading)))
    reading: set[JobId] = set()
    for _, _, candidate in sorted(ranked, key=lambda r: (r[0], r[1], r[2].job.id, r[2].lease.index)):
        step = _take_lease(snapshot, config, now, candidate, room)
        if isinstance(step, ReadSpec):
            if step.job in reading:
                # One spec serves every lease of the job.
                step = Skip(step.job, candidate.lease.index, Reason.SPEC_UNREAD)
            else:
                reading.add(step.job)
        actions.append(step)
    return actions


def _lot(job: JobId, index: int, node: NodeId) -> int:
    """Return this node's place for a lease among others: ids are hashes, so a little mixing spreads nodes apart."""
    mixed = (int.from_bytes(job[:8], "big") ^ (index + 1) * 0x9E3779B97F4A7C15 ^ node * 0xC2B2AE3D27D4EB4F) & _MASK64
    return mixed * 0xD6E8FEB86659FD93 & _MASK64


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An OPEN lease, read with its lapse applied (`unit`; `lease` is as stored)."""

    job: Job
    policy: Policy
    lease: Lease
    unit: Unit
    untouched: bool
    live: bool
    leading: bool


def _open_leases(job: Job, room: _Room) -> list[tuple[Lease, bool]]:
    """Return the OPEN leases that no other rule has spoken for, and whether each is the array's untouched next."""
    leases = [
        (lease, False)
        for lease in job.leases
        if lease.unit.state == State.OPEN and (job.id, lease.index) not in room.taken
    ]
    untouched = next_lease(job)
    if untouched is not None and (job.id, untouched.index) not in room.taken:
        leases.append((untouched, True))
    return leases


def next_lease(job: Job) -> Lease | None:
    """Return the array's next untouched lease, which is open since the header was, or None."""
    header = job.header
    if header is None or header.closed or header.touched >= job.terms.leases:
        return None
    return Lease(header.touched, Unit(state=State.OPEN, started=header.opened))


def job_refusal(job: Job, config: Config, now: int, node: Node) -> Skip | None:
    """Return why this worker wants nothing of a job whatever its leases' state, or None. The spec comes later."""
    terms = job.terms
    if now < job.retry_at:
        return Skip(job.id, None, Reason.RETRY_LATER, f"until {job.retry_at}")
    if terms.submitter.lower() in config.submitters_refused:
        return Skip(job.id, None, Reason.SUBMITTER_REFUSED, terms.submitter)
    unsupported = _unsupported(terms)
    if unsupported:
        return Skip(job.id, None, Reason.NOT_SUPPORTED, unsupported)
    if terms.verifier != ZERO_ADDRESS and terms.verifier.lower() not in config.verifiers:
        return Skip(job.id, None, Reason.VERIFIER_UNKNOWN, terms.verifier)
    if formulas.lease_seconds(terms) > config.max_seconds:
        return Skip(job.id, None, Reason.TOO_LONG, f"{formulas.lease_seconds(terms)} s > {config.max_seconds} s")
    rate = formulas.ask_in_force(node, now)
    if rate < config.min_rate:
        return Skip(job.id, None, Reason.RATE_BELOW_MINIMUM, f"the node's ask {rate} < {config.min_rate}")
    if job.spec is None:
        return None
    if job.spec.bad:
        return Skip(job.id, None, Reason.SPEC_BAD, job.spec.bad)
    if job.spec.runtime not in config.runtimes:
        return Skip(job.id, None, Reason.NOT_SUPPORTED, f"runtime {job.spec.runtime} is not available here")
    allowed = config.images if job.spec.runtime == "docker" else config.modules
    if not any(fnmatchcase(job.spec.target, pattern) for pattern in allowed):
        return Skip(job.id, None, Reason.IMAGE_REFUSED, job.spec.target)
    if job.spec.output_bytes > config.max_output_bytes:
        return Skip(job.id, None, Reason.TOO_BIG, f"outputs of {job.spec.output_bytes} bytes")
    return None


def _unsupported(terms: Terms) -> str:
    """Name the terms that this version of the worker cannot serve; the contracts refuse them at post as well."""
    if terms.replicas > 1:
        return "replicas"
    if terms.chunk > 1:
        return "chunk"
    if terms.checkpoint_every:
        return "checkpoints"
    if terms.flags & TermsFlag.CONFIDENTIAL:
        return "confidential inputs"
    return ""


def _take_lease(snapshot: Snapshot, config: Config, now: int, on: _Candidate, room: _Room) -> Action | Skip:
    """Decide about one OPEN lease."""
    job, lease, unit = on.job, on.lease, on.unit
    where = (job.id, lease.index)
    if where in room.flying or job.id in room.flying_jobs:
        return Skip(*where, Reason.TX_PENDING)
    bond = formulas.bond(job.terms, on.policy)
    if on.leading and now < unit.mark:
        # The slot that an ack will need is kept free: nothing else may promise it meanwhile.
        room.engage(bond)
        return Skip(*where, Reason.LEADING, f"the window ends at {unit.mark}")
    claim = not on.leading and formulas.claimable(job.terms, on.policy, unit, now)
    if job.header is not None and job.header.closed and not on.leading:
        return Skip(*where, Reason.ARRAY_CLOSED)
    gate = formulas.fit(job.terms, on.policy, lease.unit, lease.best, room.node, now, snapshot.market, claim=claim)
    if gate:
        return Skip(*where, gate)
    if room.free <= 0:
        return Skip(*where, Reason.SLOTS_FULL)
    if not (on.leading or claim or formulas.proposable(job.terms, unit, now)):
        # Either the winner of the window, another node, has its time to ack, or open claims have not begun.
        return Skip(*where, Reason.AWAITS_ACK if on.live else Reason.AWAITS_OPEN_CLAIM)
    if job.spec is None:
        return ReadSpec(job.id)
    if not (on.leading or claim):
        return _propose(snapshot, config, now, on, room)
    room.engage(bond)
    if on.leading:
        return Ack(*where, unit.attempts, bond)
    # An array's next lease by its number would be lost to whoever is faster; NEXT takes the one that is left.
    return Claim(*where, unit.attempts, bond, SENTINEL if on.untouched else lease.index)


def _propose(snapshot: Snapshot, config: Config, now: int, on: _Candidate, room: _Room) -> Action | Skip:
    """Propose this node where its key is strictly larger than the best one."""
    terms, unit, best = on.job.terms, on.unit, on.lease.best
    where = (on.job.id, on.lease.index)
    if not config.propose or now < unit.started + config.propose_after:
        return Skip(*where, Reason.AWAITS_KEEPER)
    # The chain scores the node as it is, not as it will be.
    node = snapshot.node
    rate = formulas.ask_in_force(node, now)
    score = formulas.score(terms.needs, terms.ceiling, rate, node.offer, node.hot)
    key = formulas.key(score, formulas.seed(*where, unit.attempts), node.id)
    if on.live and key <= best.key:
        return Skip(*where, Reason.OUTBID, f"node {best.node} leads")
    room.engage(formulas.bond(terms, on.policy))
    return Propose(*where, unit.attempts, unit.lapses)
