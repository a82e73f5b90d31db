"""Decide about the leases that the node could take, pure: acks, what must lie here before them, open claims and
proposals of itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hearth.protocol import formulas
from hearth.protocol.gas import (
    ACK_GAS,
    CHECKPOINT_GAS,
    CLAIM_GAS,
    FINISH_GAS,
    PROPOSE_NEXT_GAS,
    SETTLE_GAS,
    SUBMIT_GAS,
    SUBMIT_JUDGED_GAS,
)
from hearth.protocol.state_labels import STATUS_LABELS
from hearth.protocol.types import (
    RATE_SCALE,
    SENTINEL,
    ZERO_ADDRESS,
    Gate,
    JobId,
    Kept,
    Node,
    NodeId,
    State,
    Status,
    Terms,
    TermsFlag,
    Unit,
)
from hearth.protocol.units import format_size, show_amount
from worker.decide.actions import Abort, Ack, Action, ChainAction, Claim, Gather, Propose, ReadSpec, Skip
from worker.decide.policy import refuse_spec, refuse_terms, refuse_time
from worker.decide.room import Room
from worker.decide.snapshot import (
    Config,
    Execution,
    Job,
    Lease,
    LeaseKey,
    Reason,
    Saved,
    Snapshot,
    SpecFacts,
    Stage,
    Target,
)
from worker.decide.worth import ANEW, Begun, begun_with, ceiling, cost, expected_pay, is_worth, most_pay

_MASK64: Final = (1 << 64) - 1
STATE_SECONDS: Final = 300
"""How long a state and all else that a unit needs may take to come before an open unit is claimed with it."""


def take(
    snapshot: Snapshot, config: Config, now: int, executions: Mapping[LeaseKey, Execution], room: Room
) -> list[Action | Skip]:
    """Decide about open leases: acks that are due, then windows that this node leads, then the rest by lot.

    The lot makes workers who see the same leases start at different ones. An array's next unit has one place among
    them: where slots are still free after all others, the units behind it are taken in turn. What is being gathered
    for a claim comes last: nobody has promised that unit, so what can be taken now has its slot. What was gathered for
    an ack that is not wanted any more, whatever the reason, is dropped.
    """
    hold = _hold(snapshot, config, now)
    actions: list[Action | Skip] = []
    ranked: list[tuple[int, int, _Candidate]] = []
    for job in snapshot.jobs:
        if job.waits:
            actions.append(Skip(job.id, None, Reason.AWAITS_PARENTS))
            continue
        leases = _open_leases(job, room)
        if not leases:
            if next_lease(job) is not None and room.nexts[job.id]:
                actions.append(Skip(job.id, None, Reason.TX_PENDING))
            continue
        if config.target is not None and config.target.job != job.id:
            actions.append(Skip(job.id, None, Reason.NOT_CHOSEN))
            continue
        refusal = replace(hold, job=job.id) if hold else job_refusal(job, config, now, snapshot.node)
        if refusal is not None:
            actions.append(refusal)
            continue
        for lease, untouched in leases:
            unit = formulas.with_lapse(job.terms, lease.unit, lease.best, now)
            live = formulas.has_live_proposal(job.terms, unit, now)
            leading = live and lease.best.node == snapshot.node.id
            on = _Candidate(job, lease, unit, untouched, live, leading)
            rank = 2 if not leading else 1 if now < unit.window_end else 0
            if not leading and on.key in room.ahead and executions[on.key].stage is Stage.GATHERING:
                rank = 3
                room.unpromised.append(on.key)
            ranked.append((rank, _lot(job.id, lease.index, snapshot.node.id), on))
    reading: set[JobId] = set()
    target = config.target
    queue = deque(on for *_, on in sorted(ranked, key=lambda r: (r[0], r[1], r[2].job.id, r[2].lease.index)))
    while queue:
        candidate = queue.popleft()
        step = _not_chosen(target, candidate, room) or _take_lease(
            snapshot, config, now, candidate, executions.get(candidate.key), room
        )
        begun = isinstance(step, ChainAction | Gather) or candidate.key in executions
        if target is not None and (begun or candidate.leading):
            # A target is one unit.
            target = replace(target, taken=True)
        if isinstance(step, ReadSpec):
            if step.job in reading:
                # One spec serves every lease of the job.
                step = Skip(step.job, candidate.lease.index, Reason.SPEC_UNREAD)
            else:
                reading.add(step.job)
        actions.append(step)
        if isinstance(step, Claim) and candidate.untouched:
            room.nexts[step.job] += 1
            queue.extend(_behind(candidate, room))
    return actions + [
        Abort(key, "this node does not lead the unit any more, or wants it no more") for key in sorted(room.ahead)
    ]


def _hold(snapshot: Snapshot, config: Config, now: int) -> Skip | None:
    """Return why no new lease is taken at all, as a skip without a job, or None."""
    if config.hold is not None:
        return Skip(JobId(b""), None, config.hold)
    status = formulas.status(snapshot.node, now, snapshot.immutables.dead_after, snapshot.immutables.minimum_stake)
    if status != Status.ACTIVE:
        short = formulas.stake_short(snapshot.node, snapshot.immutables.minimum_stake)
        why = ", its stake is short: hearth worker status" if short else ""
        return Skip(JobId(b""), None, Reason.NODE_STATUS, f"the node is {STATUS_LABELS[status]}{why}")
    return None


def _lot(job: JobId, index: int, node: NodeId) -> int:
    """Return this node's place for a lease among others: ids are hashes, so a little mixing spreads nodes apart."""
    mixed = (int.from_bytes(job[:8], "big") ^ (index + 1) * 0x9E3779B97F4A7C15 ^ node * 0xC2B2AE3D27D4EB4F) & _MASK64
    return mixed * 0xD6E8FEB86659FD93 & _MASK64


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An OPEN lease, read with its lapse applied (`unit`; `lease` is as stored)."""

    job: Job
    lease: Lease
    unit: Unit
    untouched: bool
    live: bool
    leading: bool

    @property
    def key(self) -> LeaseKey:
        """Return the attempt that begins when it is taken."""
        return LeaseKey(self.job.id, self.lease.index, self.unit.attempts + 1)


def _open_leases(job: Job, room: Room) -> list[tuple[Lease, bool]]:
    """Return the OPEN leases that no other rule has spoken for, and whether each is the array's untouched next.

    Which that will be, calls on their way decide: the one behind those that take one too.
    """
    leases = [
        (lease, False)
        for lease in job.leases
        if lease.unit.state == State.OPEN and (job.id, lease.index) not in room.taken
    ]
    untouched = next_lease(job, room.nexts[job.id])
    if untouched is not None and (job.id, untouched.index) not in room.taken:
        leases.append((untouched, True))
    return leases


def next_lease(job: Job, behind: int = 0) -> Lease | None:
    """Return the array's next untouched lease, or one so many `behind` it, which is open since the header was; or
    None."""
    header = job.header
    if header is None or header.closed or header.touched + behind >= job.terms.leases:
        return None
    return Lease(header.touched + behind, Unit(state=State.OPEN, started=header.opened))


def _behind(on: _Candidate, room: Room) -> list[_Candidate]:
    """Return the lease that is an array's next one once a claim of `on` is mined, where a slot is free for it."""
    lease = next_lease(on.job, room.nexts[on.job.id]) if room.free > 0 else None
    if lease is None or (on.job.id, lease.index) in room.taken:
        return []
    return [replace(on, lease=lease)]


def job_refusal(job: Job, config: Config, now: int, node: Node) -> Skip | None:
    """Return why this worker wants nothing of a job whatever its leases' state, or None. The spec comes later."""
    if now < job.retry_at:
        until = f"until {job.retry_at}"
        return Skip(job.id, None, Reason.RETRY_LATER, f"{until}: {job.retry_why}" if job.retry_why else until)
    found = refuse_terms(job.terms, config, formulas.ask_in_force(node, now))
    if found is None and job.spec is not None:
        found = refuse_spec(job.spec, config)
    return None if found is None else Skip(job.id, None, *found)


def _not_chosen(target: Target | None, on: _Candidate, room: Room) -> Skip | None:
    """Return why a unit of the target's job is left alone since it is not the one that is meant, or None."""
    where = (on.job.id, on.lease.index)
    if target is None:
        return None
    if any(job == target.job for job, _ in room.flying):
        # What is on its way may be the one unit that is wanted.
        return Skip(*where, Reason.TX_PENDING)
    other = target.index is not None and target.index != on.lease.index
    return Skip(*where, Reason.NOT_CHOSEN) if target.taken or other else None


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to begin a lease: with what, what each gas of its start is worth, and why it does not pay ("" it does)."""

    begun: Begun
    worth: int | None
    loss: str


def _rate(snapshot: Snapshot, config: Config, now: int, on: _Candidate, room: Room, begun: Begun) -> _Way:
    """Say what a lease is worth to this node that begins it in one way: with a state it may bill what that leaves."""
    ask = formulas.ask_in_force(snapshot.node, now)
    claim = _claims(on, now)
    gas = _lease_gas(on, snapshot.node, begun, claim=claim)
    pay = expected_pay(on.job, on.unit, snapshot.node.id, ask, room.unpaid[on.job.id], begun)
    most = most_pay(formulas.topped(on.job.terms, on.unit), ask, begun.seconds)
    loss = _loss(on, config, room, claim=claim, pay=pay, gas=gas, most=most)
    return _Way(begun, ceiling(pay, gas, config), loss)


def _claims(on: _Candidate, now: int) -> bool:
    """Say whether the node takes a lease by a claim, its price aside, not by a proposal."""
    return not on.leading and formulas.claimable(on.job.terms, on.lease.unit, now)


def _lease_gas(on: _Candidate, node: Node, begun: Begun, *, claim: bool) -> int:
    """Return what a lease costs a node that takes it now: its start, its checkpoints and its end.

    A result that nobody has a say in settles itself; any other is submitted, and settled later. Either pays for the
    kept checkpoints that the result is made of.
    """
    terms = on.job.terms
    gas = ACK_GAS if on.leading else CLAIM_GAS if claim else PROPOSE_NEXT_GAS + ACK_GAS
    gas += SUBMIT_JUDGED_GAS if _is_stored(terms) else SUBMIT_GAS
    gas += FINISH_GAS - SUBMIT_GAS if terms.judge == ZERO_ADDRESS and node.state.seasoned else SETTLE_GAS
    if terms.checkpoint_every:
        seconds = formulas.lease_seconds(formulas.topped(terms, on.unit)) - begun.seconds
        gas += CHECKPOINT_GAS * (seconds // terms.checkpoint_every)
    return gas + begun.gas()


def _loss(on: _Candidate, config: Config, room: Room, *, claim: bool, pay: int, gas: int, most: int) -> str:
    """Return why a lease does not pay, "" where it does: expected `pay` and gas, or what its match may burn."""
    if not is_worth(ceiling(pay, gas, config), config):
        paid, costs = show_amount(pay, config.asset), show_amount(cost(gas, config), config.asset)
        unpaid = room.unpaid[on.job.id]
        runs = f"; {unpaid} of the job's units run here and have not paid yet" if unpaid else ""
        return f"a unit is expected to bring {paid}, and its gas costs {costs}{runs}"
    if not claim and formulas.tip(on.job.terms) > most:
        # What a match costs its node that must be given back after all; its size is the submitter's to choose.
        burns, paid = show_amount(formulas.tip(on.job.terms), config.asset), show_amount(most, config.asset)
        return f"a match that is given back burns {burns}, and a unit brings {paid} at most"
    return ""


def _full(node: Node, config: Config, room: Room) -> tuple[Reason, str]:
    """Say why no slot is free: what the machine lacks, where the node's offer has one."""
    if config.lack is not None and room.free + max(0, node.offer.slots - config.max_slots) > 0:
        return config.lack
    return Reason.SLOTS_FULL, ""


def _take_lease(
    snapshot: Snapshot, config: Config, now: int, on: _Candidate, execution: Execution | None, room: Room
) -> Action | Skip:
    """Decide about one OPEN lease; `execution` is what this machine has of the attempt that would begin."""
    job, lease, unit = on.job, on.lease, on.unit
    where = (job.id, lease.index)
    if where in room.flying:
        return Skip(*where, Reason.TX_PENDING)
    bond = formulas.bond(job.terms)
    ask = formulas.ask_in_force(snapshot.node, now)
    claim = _claims(on, now)
    rises = formulas.claimable_from(job.terms, lease.unit, ask) if claim else None
    if job.header is not None and job.header.closed and not on.leading:
        return Skip(*where, Reason.ARRAY_CLOSED)
    gate = formulas.fit(job.terms, lease.unit, lease.best, room.node, now, snapshot.immutables, claim=claim)
    # Where only the price of a claim has to rise yet, all else is looked at meanwhile.
    if gate and (gate is not Gate.PRICE or rises is None):
        return Skip(*where, *_kept(on, gate, room.node.id))
    ways = _states(snapshot, config, now, on, execution, room)
    # What lies here whole is begun with; what else a claim would fetch must be worth it.
    here = execution is not None and execution.stage is Stage.GATHERED
    first = on.leading or here or (bool(ways) and (execution is not None or now >= job.gather_at))
    # What was gathered for this very lease has a slot, until a unit that can be taken now has it.
    full = room.free + (on.key in room.ahead) <= 0
    outdoes = on.leading or (claim and not first)
    if on.key in room.outdone or (full and not (outdoes and room.unpromised)):
        return Skip(*where, *_full(snapshot.node, config, room))
    if not (on.leading or claim or formulas.proposable(job.terms, unit, now)):
        # Either the winner of the window, another node, has its time to ack, or open claims have not begun.
        return Skip(*where, Reason.AWAITS_ACK if on.live else Reason.AWAITS_OPEN_CLAIM)
    too_long = refuse_time(formulas.topped(job.terms, unit), config)
    if too_long is not None:
        return Skip(*where, *too_long)
    if job.spec is None:
        return ReadSpec(job.id)
    claim_bytes, lacks = _disk_claim(job.spec, config, execution, room)
    if lacks:
        return Skip(*where, Reason.NO_ROOM, lacks)
    way = ways[0] if first and ways else _rate(snapshot, config, now, on, room, ANEW)
    if way.loss:
        return Skip(*where, Reason.UNPROFITABLE, way.loss)
    if not (on.leading or claim):
        return _propose(snapshot, config, now, on, room, way.worth, claim_bytes)
    if rises is not None and now < rises:
        # Its slot is not kept free: a cheaper node may be first.
        return Skip(*where, Reason.AWAITS_PRICE, f"{rises - now} s")
    if on.leading and execution is None and now < job.gather_at:
        return Skip(*where, *_rests(job))
    # The slot that an ack will need is kept free, so that nothing else may promise it meanwhile: only for what would be
    # acked, since anybody may propose this node for anything.
    if full:
        room.outdo()
    room.engage(bond, job.id, claim_bytes)
    ahead = _lead(config, now, on, execution, ways, room) if first else None
    if ahead is not None:
        return ahead
    return _begin(on, bond, way, room)


def _kept(on: _Candidate, gate: Gate, node: NodeId) -> tuple[Gate | Reason, str]:
    """Return why a gate keeps this node from a lease, which passes where it let a proposal pass: then it may claim."""
    if gate is Gate.EXCLUDED and not formulas.is_excluded(on.unit, node, claim=True):
        return Reason.AWAITS_OPEN_CLAIM, "this node let the unit pass, and can only claim it"
    return gate, ""


def _begin(on: _Candidate, bond: int, way: _Way, room: Room) -> Action:
    """Return the call that makes a lease this node's: its ack where it leads, else a claim."""
    where, unit, resumes = (on.job.id, on.lease.index), on.unit, way.begun.attempt
    if on.leading:
        return Ack(*where, unit.attempts, bond, resumes, worth=way.worth)
    # An array's next lease by its number would be lost to whoever is faster; NEXT takes the one that is left.
    index, behind = (SENTINEL, room.nexts[on.job.id]) if on.untouched else (on.lease.index, 0)
    return Claim(*where, unit.attempts, bond, index, resumes, behind, worth=way.worth)


def _disk_claim(spec: SpecFacts, config: Config, execution: Execution | None, room: Room) -> tuple[int, str]:
    """Return the bytes of disk that a lease will claim, none for what is here and has its room already; and why there
    is no room for them now, "" where there is."""
    claim, left = 0 if execution is not None else spec.claim(config.volumes), max(0, config.room - room.claimed)
    if claim <= left:
        return claim, ""
    return claim, f"it may take {format_size(claim)} of disk, and {format_size(left >> 20 << 20)} are left for it"


def _states(
    snapshot: Snapshot, config: Config, now: int, on: _Candidate, execution: Execution | None, room: Room
) -> list[_Way]:
    """Return the ways to begin a unit with a state that pay, that of its newest attempt first; of what was gathered for
    it, the one that lies here whole and verified.

    They are strangers': a result that is judged is this node's own bond. What they hold is not billed once more, so
    each leaves the time of one checkpoint at least, and what that time pays is all that the unit can bring.
    """
    terms = on.job.terms
    judged = terms.judge != ZERO_ADDRESS
    if config.resume == "never" or (config.resume == "unjudged" and judged) or not terms.checkpoint_every:
        return []
    found = (begun_with(on.lease.saved, one.attempt) for one in on.lease.saved if 0 < one.attempt <= on.unit.attempts)
    if execution is not None and execution.stage is Stage.GATHERED:
        found = (begun for begun in found if begun.attempt == execution.resumes)
    ask, whole = formulas.ask_in_force(snapshot.node, now), formulas.lease_seconds(formulas.topped(terms, on.unit))
    fitting = (
        begun
        for begun in found
        if begun.whole
        and begun.seconds <= _most_saved(on)
        and ask * (whole - begun.seconds) // RATE_SCALE >= config.min_pay
    )
    ways = (_rate(snapshot, config, now, on, room, begun) for begun in fitting)
    return [way for way in ways if not way.loss]


def _most_saved(on: _Candidate) -> int:
    """Return how many seconds a state may hold that a unit begins with, its own and those of what it was made of."""
    return formulas.lease_seconds(formulas.topped(on.job.terms, on.unit)) - on.job.terms.checkpoint_every


def may_begin_with(saved: Saved, kept: Kept, most: int) -> bool:
    """Say whether the chain has kept a checkpoint as its log says, and it holds no more than `most` seconds in all."""
    return (kept.node, kept.seconds) == (saved.node, saved.seconds) and kept.before + kept.seconds <= most


def _is_stored(terms: Terms) -> bool:
    """Say whether a submit writes its result's digest into a slot of the unit's: for the job's judge, or to keep it."""
    return terms.judge != ZERO_ADDRESS or bool(terms.flags & TermsFlag.KEEP)


def _lead(
    config: Config,
    now: int,
    on: _Candidate,
    execution: Execution | None,
    ways: Sequence[_Way],
    room: Room,
) -> Action | Skip | None:
    """Return what comes before a lease that this node leads is taken, or claimed with a state, None where that is due.

    All that the unit needs lies here first: a lease that is acked and given back costs its bond a part, and anybody may
    name data that is nowhere. A state that is not here whole by then is not resumed from.
    """
    unit, where = on.unit, (on.job.id, on.lease.index)
    if on.key in room.ahead:
        # It is wanted, and has its slot as a lease that will be held.
        room.ahead.discard(on.key)
        room.free += 1
    if execution is None:
        # It must be whole while the ack can still be mined.
        late = min(int(config.lead), formulas.policy_of(on.job.terms).ack_time)
        until = formulas.lapses_at(on.job.terms, unit) - 1 - late if on.leading else now + STATE_SECONDS
        paying = {way.begun.attempt for way in ways}
        saved = tuple(one for one in on.lease.saved if one.attempt in paying)
        return Gather(on.key, until, saved, max(0, _most_saved(on)) if saved else 0)
    match execution.stage:
        case Stage.GATHERING:
            return Skip(*where, Reason.GATHERING)
        case Stage.GATHERED if on.leading and now < unit.window_end:
            return Skip(*where, Reason.LEADING, f"the window ends at {unit.window_end}")
        case Stage.GATHERED:
            return None
        case _:
            return Skip(*where, Reason.STOPPING, "an earlier try at it is being put aside")


def _rests(job: Job) -> tuple[Reason, str]:
    return Reason.RETRY_LATER, f"until {job.gather_at}: what was fetched for its matches was fetched in vain"


def _propose(
    snapshot: Snapshot, config: Config, now: int, on: _Candidate, room: Room, worth: int | None, claim_bytes: int
) -> Action | Skip:
    """Propose this node where its key is strictly larger than the best one."""
    terms, unit, best = on.job.terms, on.unit, on.lease.best
    where = (on.job.id, on.lease.index)
    if on.untouched and room.nexts[on.job.id]:
        # A proposal names its unit, and which is the next one is not known yet.
        return Skip(*where, Reason.TX_PENDING)
    if not config.propose or now < unit.started + config.propose_after:
        return Skip(*where, Reason.AWAITS_KEEPER)
    # The chain scores the node as it is, not as it will be.
    node = snapshot.node
    rate = formulas.ask_in_force(node, now)
    score = formulas.score(terms.needs, terms.ceiling, rate, node.offer, node.state)
    key = formulas.key(formulas.ranked(terms, on.lease.index, score), formulas.seed(*where, unit.attempts), node.id)
    if on.live and key <= best.key:
        return Skip(*where, Reason.OUTBID, f"node {best.node} leads")
    if now < on.job.gather_at:
        # What it won it would not fetch for, so it would lapse: nobody else has the unit meanwhile.
        return Skip(*where, *_rests(on.job))
    room.engage(formulas.bond(terms), on.job.id, claim_bytes)
    return Propose(*where, unit.attempts, unit.lapses, worth=worth)
