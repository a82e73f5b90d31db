"""Decide about the leases that the node holds, pure: run, submit, finish, give back, settle, close, stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hearth.protocol import formulas
from hearth.protocol.gas import (
    CHECKPOINT_GAS,
    CLAIM_GAS,
    CLOSE_GAS,
    FINISH_CLAIMS_GAS,
    FINISH_GAS,
    MAX_SETTLE,
    SETTLE_GAS,
    SETTLE_ITEM_GAS,
    SUBMIT_GAS,
    settling_batches,
    settling_gas,
)
from hearth.protocol.state_labels import STATE_LABELS
from hearth.protocol.types import ZERO_ADDRESS, Outcome, State, TermsFlag, Unit, UnitFlag
from hearth.protocol.units import show_amount
from worker.decide.actions import (
    Abort,
    Action,
    Checkpoint,
    Close,
    Decline,
    Finish,
    GiveUp,
    HandIn,
    SetAside,
    Settle,
    Skip,
    StartRun,
    SubmitResult,
    Where,
)
from worker.decide.notice import handed_in, may_hand_in, used_as_closed
from worker.decide.policy import followed_seconds
from worker.decide.room import Room
from worker.decide.snapshot import (
    AHEAD,
    HELD,
    OURS,
    UNDER_WAY,
    Config,
    Execution,
    Job,
    Lease,
    LeaseKey,
    Reason,
    Snapshot,
    Stage,
)
from worker.decide.worth import begun_with, ceiling, close_pay, cost, is_worth, saved_pay, settle_pay, without_loss

MAX_BOUND: Final = 4
"""What is not worth settling may bind a share of one in so many of the node's stake."""


@dataclass(frozen=True, slots=True)
class _Due:
    """A unit that can be settled: what that pays, and the bond that it frees, base units, and the gas that it uses
    beside any other's.

    `pay` is None for a unit that ends without the proof it needs: keepers are paid for that.
    """

    where: Where
    pay: int | None
    bond: int
    more_gas: int


def finish(
    snapshot: Snapshot,
    config: Config,
    now: int,
    own: Mapping[LeaseKey, tuple[Job, Lease]],
    executions: Mapping[LeaseKey, Execution],
    room: Room,
) -> list[Action | Skip]:
    """Bring own leases forward, the earliest deadline first; settlements go out together."""
    actions: list[Action | Skip] = []
    due: list[_Due] = []
    for key, (job, lease) in sorted(own.items(), key=lambda item: (_due_at(item[1][1].unit), item[0])):
        room.taken.add((key.job, key.index))
        if (key.job, key.index) in room.flying:
            actions.append(Skip(key.job, key.index, Reason.TX_PENDING))
        elif lease.unit.state not in HELD:
            if now >= formulas.settleable_from(job.terms, lease.unit) + config.settle_after:
                due.append(_due(job, lease, now))
            elif job.terms.flags & TermsFlag.PROVEN:
                actions.append(Skip(key.job, key.index, Reason.AWAITS_JUDGE))
            else:
                disputed = lease.unit.state is State.DISPUTED
                actions.append(Skip(key.job, key.index, Reason.AWAITS_JUDGE if disputed else Reason.AWAITS_WINDOW))
        elif (key.job, key.index) in room.stopping:
            actions.append(Skip(key.job, key.index, Reason.STOPPING, "an earlier attempt is still being stopped"))
        else:
            step = _advance(snapshot, config, now, key, job, lease, executions.get(key))
            saves = isinstance(step, Checkpoint) and (key.job, key.index) in room.saving
            actions.append(Skip(key.job, key.index, Reason.RUNNING) if saves else step)
    return actions + _settle(snapshot, config, due, room)


def _due(job: Job, lease: Lease, now: int) -> _Due:
    """Return what settling a SUBMITTED or DISPUTED unit brings and uses."""
    terms, unit = job.terms, lease.unit
    where, bond = (job.id, lease.index), formulas.bond(terms)
    if terms.flags & TermsFlag.PROVEN:
        # Settling what nobody has proven costs this node a slash, and frees its bond.
        return _Due(where, None, bond, 0)
    begun = begun_with(lease.saved, unit.resume)
    return _Due(where, settle_pay(terms, unit, now, begun.seconds), bond, begun.gas(unit.outcome))


def submitted(lease: Lease, action: Finish, now: int) -> Lease:
    """Return a lease whose result this action has submitted, before it is settled."""
    unit = lease.unit
    seconds = unit.seconds + action.used
    return replace(lease, unit=replace(unit, state=State.SUBMITTED, outcome=action.outcome, mark=now, seconds=seconds))


def or_submit(
    snapshot: Snapshot, config: Config, now: int, action: Finish, lease: tuple[Job, Lease], room: Room
) -> Finish | SubmitResult:
    """Return a finish as it is where settling pays for the gas that it uses beside a submit, else the submit.

    The claim that it spares where it takes the array's next unit is counted. What is left unsettled, `room` notes: as
    what was submitted before, it waits for keepers or cheaper gas, until it has to be settled (`_must_settle`).
    """
    job, held = lease
    one = _due(job, submitted(held, action, now), now)
    gas = FINISH_GAS if action.next is None else FINISH_CLAIMS_GAS - CLAIM_GAS
    pays = is_worth(ceiling(one.pay or 0, gas - SUBMIT_GAS + one.more_gas, config), config)
    if pays or _must_settle(snapshot, config, [*room.unsettled, one.bond]):
        return action
    room.unsettled.append(one.bond)
    return SubmitResult(action.attempt, action.result, action.report, action.outcome, action.used)


def _must_settle(snapshot: Snapshot, config: Config, bonds: Sequence[int]) -> bool:
    """Say whether units that bind such bonds are settled though they do not pay for it: they fill a batch, bind too
    much stake, or the node leaves or drains."""
    return len(bonds) >= MAX_SETTLE or sum(bonds) * MAX_BOUND > snapshot.node.stake or _leaves(snapshot, config)


def _settle(snapshot: Snapshot, config: Config, due: Sequence[_Due], room: Room) -> list[Action | Skip]:
    """Settle what pays for the gas of it; what does not is left to keepers, or to a day of cheaper gas.

    Not for ever: see `_must_settle`.
    """
    batches: list[Settle] = []
    poor: list[_Due] = []
    paying: list[_Due] = []
    for one in due:
        pays = one.pay is not None and is_worth(ceiling(one.pay, SETTLE_ITEM_GAS + one.more_gas, config), config)
        (paying if pays else poor).append(one)
    for part in settling_batches(paying, _more_gas):
        gas = settling_gas(len(part)) + sum(map(_more_gas, part))
        worth = ceiling(sum(one.pay or 0 for one in part), gas, config)
        if is_worth(worth, config):
            batches.append(Settle(tuple(one.where for one in part), worth=worth))
        else:
            poor += part
    bonds = [one.bond for one in poor]
    if _must_settle(snapshot, config, bonds):
        return [*batches, *(Settle(tuple(one.where for one in part)) for part in settling_batches(poor, _more_gas))]
    room.unsettled += bonds
    return [*batches, *(_left(one, config) for one in poor)]


def _left(one: _Due, config: Config) -> Skip:
    if one.pay is None:
        return Skip(*one.where, Reason.AWAITS_JUDGE)
    return _left_to_keepers(one.where, "settling", one.pay, SETTLE_GAS + one.more_gas, config)


def _more_gas(one: _Due) -> int:
    return one.more_gas


def _due_at(unit: Unit) -> int:
    """Return the second by which own leases are ordered: of the submit, once there is one."""
    return unit.deadline_at or unit.submitted_at


def _leaves(snapshot: Snapshot, config: Config) -> bool:
    """Say whether the node is to have nothing left on the market, whatever that costs."""
    return snapshot.node.exit_at != 0 or config.hold is Reason.DRAINING


def _advance(
    snapshot: Snapshot, config: Config, now: int, key: LeaseKey, job: Job, lease: Lease, execution: Execution | None
) -> Action | Skip:
    """Decide about one RUNNING or CLOSING lease of this node."""
    unit = lease.unit
    if now >= unit.deadline_at:
        if execution is not None and execution.stage in UNDER_WAY:
            cancelled = unit.state == State.CLOSING
            return Abort(key, "the submitter cancelled it" if cancelled else "the time to submit is over")
        if unit.state == State.CLOSING:
            return _close(snapshot, config, now, job, lease)
        return Skip(key.job, key.index, Reason.LEASE_OVER)
    if execution is None:
        return _start(snapshot, config, now, job, key, lease, 1)
    match execution.stage:
        case Stage.GATHERING:
            return Skip(key.job, key.index, Reason.GATHERING)
        case Stage.GATHERED:
            return _start(snapshot, config, now, job, key, lease, 1)
        case Stage.WORKING:
            return _follow(config, now, key, job, lease, execution)
        case Stage.DONE if unit.state == State.CLOSING and job.terms.flags & TermsFlag.PROVEN:
            # The notice is paid for certain; a result may be left without its proof.
            return _noticed(key)
        case Stage.DONE:
            # Who has no say in between is not waited for; whether the settlement pays, `or_submit` says.
            ends = Finish if _is_final(job, unit) else SubmitResult
            return ends(key, execution.result, execution.report, execution.outcome, execution.used)
        case Stage.REFUSED:
            return _give_back(job, unit, config, now, key, execution.report, execution.outcome)
        case Stage.BROKEN if execution.tries < config.max_tries:
            return _start(snapshot, config, now, job, key, lease, execution.tries + 1)
        case _:
            # The machine cannot run it: giving it back now serves everybody better than a reclaim later.
            return _give_back(job, unit, config, now, key, execution.report, Outcome.IMAGE_MISSING)


def _follow(config: Config, now: int, key: LeaseKey, job: Job, lease: Lease, execution: Execution) -> Action | Skip:
    """Decide about a lease whose attempt is under way."""
    unit = lease.unit
    if unit.state is State.RUNNING and _is_late(job, unit, execution, config, now):
        return _give_back(job, unit, config, now, key, execution.report, Outcome.BAD_INPUT)
    if execution.offered is not None and _may_save(unit, config, now):
        return _save(config, now, key, job, lease, execution, execution.offered)
    if unit.state is State.CLOSING and execution.begun and _hands_in(job, lease, config, now):
        return HandIn(key, unit.deadline_at, used_as_closed(job.terms, unit))
    return Skip(key.job, key.index, Reason.RUNNING)


def _is_final(job: Job, unit: Unit) -> bool:
    """Say whether a unit's result is settled with its submit: nobody rules on it, and the node is not on probation."""
    return job.terms.judge == ZERO_ADDRESS and not unit.flags & UnitFlag.FRESH


def _give_back(
    job: Job, unit: Unit, config: Config, now: int, key: LeaseKey, report: bytes, outcome: Outcome
) -> Decline | GiveUp | Skip:
    """Decline a lease while that is free, else give it up: a reclaim would cost more, and hold the slot until then."""
    if unit.state == State.CLOSING:
        # Waiting is paid; a decline would pay nothing, and cost the tip of a match.
        return _noticed(key)
    if now < _decline_by(job, unit, config):
        return Decline(key, report, outcome)
    return GiveUp(key, report)


def _decline_by(job: Job, unit: Unit, config: Config) -> float:
    """Return before which second a decline must be sent to be mined in its window, half of which it takes at most."""
    until = formulas.declinable_until(job.terms, unit)
    return until - min(config.lead, (until - unit.started) / 2)


def _is_late(job: Job, unit: Unit, execution: Execution, config: Config, now: int) -> bool:
    """Say whether a lease under way must go back now: its time is over, or soon what is missing will cost a bond."""
    by = _decline_by(job, unit, config)
    return now >= _late_at(job, unit, config) or (not execution.begun and by - 1 <= now < by)


def _may_save(unit: Unit, config: Config, now: int) -> bool:
    """Say whether a checkpoint can be mined while the unit runs: one that comes too late is gas for nothing."""
    return unit.state is State.RUNNING and unit.resumable and now < unit.deadline_at - 1 - config.lead


def _save(
    config: Config, now: int, key: LeaseKey, job: Job, lease: Lease, execution: Execution, root: bytes
) -> Checkpoint | Skip:
    """Send a checkpoint once what it secures pays for its gas: a program chooses how often its state changes."""
    last = next((saved.seconds for saved in lease.saved if saved.attempt == key.attempts), 0)
    shared = begun_with(lease.saved, lease.unit.resume).seconds
    pay = saved_pay(job.terms, lease.unit, last, now, shared)
    worth = ceiling(pay, CHECKPOINT_GAS, without_loss(config))
    if is_worth(worth, config):
        return Checkpoint(key, root, execution.offers, worth=worth)
    secures, costs = show_amount(pay, config.asset), show_amount(cost(CHECKPOINT_GAS, config), config.asset)
    return Skip(key.job, key.index, Reason.RUNNING, f"a checkpoint now secures {secures} and costs {costs}: it waits")


def _late_at(job: Job, unit: Unit, config: Config) -> float:
    """Return when a lease must be given back, whatever its attempt waits for, for that to be mined in time.

    The last second that counts is the one before the deadline. The time that was bought is never cut: the grace is
    beyond it.
    """
    grace = formulas.grace(formulas.topped(job.terms, unit))
    return unit.deadline_at - 1 - min(config.lead, grace)


def _close(snapshot: Snapshot, config: Config, now: int, job: Job, lease: Lease) -> Action | Skip:
    """End a lease whose notice is over, once that pays for its gas, the time of its slot counted."""
    pay = close_pay(job.terms, lease.unit, now)
    worth = None if _leaves(snapshot, config) else ceiling(pay, CLOSE_GAS, config)
    if is_worth(worth, config):
        return Close(job.id, lease.index, worth=worth)
    return _left_to_keepers((job.id, lease.index), "closing", pay, CLOSE_GAS, config)


def _left_to_keepers(where: Where, what: str, pay: int, gas: int, config: Config) -> Skip:
    pays, costs = show_amount(pay, config.asset), show_amount(cost(gas, config), config.asset)
    return Skip(*where, Reason.AWAITS_KEEPER, f"{what} it brings {pays} and costs {costs}: it waits for cheaper gas")


def _start(
    snapshot: Snapshot, config: Config, now: int, job: Job, key: LeaseKey, lease: Lease, tries: int
) -> Action | Skip:
    if lease.unit.state == State.CLOSING:
        return _noticed(key)
    missing = lease.since + config.confirmations - snapshot.block
    if missing > 0:
        return Skip(key.job, key.index, Reason.AWAITS_CONFIRMATIONS, f"{missing} more blocks")
    # What it needs must come while the lease can be declined: later is the data's fault. Of one that begins with less
    # than a quarter of that time left nothing is said of the data: this machine was late itself.
    begun_by = int(_decline_by(job, lease.unit, config)) - 2
    if begun_by - now < (begun_by - lease.unit.started) / 4:
        begun_by = lease.unit.deadline_at
    topped = followed_seconds(job.terms, lease.unit, config)
    state = next((saved for saved in lease.saved if saved.attempt == lease.unit.resume), None)
    return StartRun(key, lease.unit.deadline_at, tries, begun_by, topped, state)


def _hands_in(job: Job, lease: Lease, config: Config, now: int) -> bool:
    """Say whether a cancelled unit hands in what it has: for no more than its close takes, and for its gas."""
    terms, unit = job.terms, lease.unit
    if not may_hand_in(terms, unit):
        return False
    shared = begun_with(lease.saved, unit.resume).seconds
    pay = settle_pay(terms, handed_in(terms, unit, now), now, shared)
    return is_worth(ceiling(pay, SUBMIT_GAS, config), config)


def _noticed(key: LeaseKey) -> Skip:
    return Skip(key.job, key.index, Reason.NOTICE, "cancelled by the submitter; the notice is paid without a run")


def leftovers(
    snapshot: Snapshot,
    own: Mapping[LeaseKey, tuple[Job, Lease]],
    executions: Mapping[LeaseKey, Execution],
    room: Room,
) -> list[Action | Skip]:
    """Stop or put aside executions whose lease is gone (lost, ended, or taken away by a reorganisation).

    Notes in `room` what is being stopped and what nothing else may touch: `finish` goes by it. What was gathered for a
    lease that this node does not hold is left to `take`.
    """
    actions: list[Action | Skip] = []
    for key, execution in sorted(executions.items()):
        lease = (key.job, key.index)
        if key in own:
            if own[key][1].unit.state not in HELD and execution.stage in UNDER_WAY:
                room.stopping.add(lease)
                actions.append(Abort(key, "a result was already submitted"))
        elif lease in room.flying or room.nexts[key.job]:
            # Its ack is on its way, or a claim that a reorganisation took out of its block is on its way back in.
            actions.append(Skip(key.job, key.index, Reason.TX_PENDING))
            room.taken.add(lease)
        elif execution.stage in AHEAD:
            room.ahead.add(key)
        elif execution.stage == Stage.WORKING:
            room.stopping.add(lease)
            room.taken.add(lease)
            actions.append(Abort(key, "the chain does not give this lease to this node any more"))
        else:
            actions.append(SetAside(key, _how_gone(snapshot, key)))
    return actions


def _how_gone(snapshot: Snapshot, key: LeaseKey) -> str:
    """Say what became of a lease that is not this node's any more; units that have ended are not in a snapshot."""
    leases = (lease for job in snapshot.jobs if job.id == key.job for lease in job.leases)
    unit = next((lease.unit for lease in leases if lease.index == key.index), None)
    if unit is None:
        return "the lease is over: its unit is not among the open ones"
    if unit.state not in OURS:
        return f"the lease was lost: its unit is {STATE_LABELS[unit.state]} again"
    return f"the lease was lost: its unit is {'this' if unit.node == snapshot.node.id else 'another'} node's anew"
