"""Decide about the leases that the node holds, pure: run, submit, decline, settle, close, stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hearth.protocol import formulas, words
from hearth.protocol.gas import CLOSE_GAS, SETTLE_GAS, SETTLE_ITEM_GAS, settling_gas
from hearth.protocol.types import Outcome, State, Unit
from hearth.protocol.units import show_amount
from worker.decide.actions import (
    MAX_BATCH,
    Abort,
    Action,
    Close,
    Decline,
    SetAside,
    Settle,
    Skip,
    StartRun,
    SubmitResult,
    Where,
)
from worker.decide.room import Room
from worker.decide.snapshot import OURS, Config, Execution, Job, Lease, LeaseKey, Reason, Snapshot, Stage
from worker.decide.worth import ceiling, close_pay, cost, is_worth, settle_pay

MAX_BOUND: Final = 4
"""What is not worth settling may bind a share of one in so many of the node's stake."""


@dataclass(frozen=True, slots=True)
class _Due:
    """A unit that can be settled: what that pays, and the bond that it frees, base units."""

    where: Where
    pay: int
    bond: int


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
        elif lease.unit.state == State.SUBMITTED:
            if now >= lease.unit.submitted_at + job.terms.challenge_window + config.settle_after:
                policy = words.unpack_policy(job.terms.policy)
                pay = settle_pay(job.terms, policy, lease.unit, now)
                due.append(_Due((key.job, key.index), pay, formulas.bond(job.terms, policy)))
            else:
                actions.append(Skip(key.job, key.index, Reason.AWAITS_WINDOW))
        elif (key.job, key.index) in room.stopping:
            actions.append(Skip(key.job, key.index, Reason.STOPPING, "an earlier attempt is still being stopped"))
        else:
            actions.append(_advance(snapshot, config, now, key, job, lease, executions.get(key)))
    return actions + _settle(snapshot, config, due)


def _settle(snapshot: Snapshot, config: Config, due: Sequence[_Due]) -> list[Action | Skip]:
    """Settle what pays for the gas of it; what does not is left to keepers, or to a day of cheaper gas.

    Not for ever: where such units fill a batch, bind too much stake, or the node leaves or drains, all are settled.
    """
    batches: list[Settle] = []
    poor: list[_Due] = []
    paying: list[_Due] = []
    for one in due:
        (paying if is_worth(ceiling(one.pay, SETTLE_ITEM_GAS, config), config) else poor).append(one)
    for part in _batches(paying):
        worth = ceiling(sum(one.pay for one in part), settling_gas(len(part)), config)
        if is_worth(worth, config):
            batches.append(Settle(tuple(one.where for one in part), worth=worth))
        else:
            poor += part
    bound = sum(one.bond for one in poor)
    if len(poor) >= MAX_BATCH or bound * MAX_BOUND > snapshot.node.stake or _leaves(snapshot, config):
        return [*batches, *(Settle(tuple(one.where for one in part)) for part in _batches(poor))]
    return [*batches, *(_left_to_keepers(one.where, "settling", one.pay, SETTLE_GAS, config) for one in poor)]


def _batches(due: Sequence[_Due]) -> list[Sequence[_Due]]:
    return [due[first : first + MAX_BATCH] for first in range(0, len(due), MAX_BATCH)]


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
        if execution is not None and execution.stage == Stage.WORKING:
            cancelled = unit.state == State.CLOSING
            return Abort(key, "the submitter cancelled it" if cancelled else "the time to submit is over")
        if unit.state == State.CLOSING:
            return _close(snapshot, config, now, job, lease)
        return Skip(key.job, key.index, Reason.LEASE_OVER)
    if execution is None:
        return _start(snapshot, config, key, lease, 1)
    match execution.stage:
        case Stage.WORKING if unit.state == State.RUNNING and now >= _late_at(job, unit, config):
            return Decline(key, execution.report, Outcome.BAD_INPUT)
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


def _late_at(job: Job, unit: Unit, config: Config) -> float:
    """Return when a lease must be given back, whatever its attempt waits for, for that to be mined in time.

    The last second that counts is the one before the deadline. The time that was bought is never cut: the grace is
    beyond it.
    """
    grace = formulas.grace(job.terms, words.unpack_policy(job.terms.policy))
    return unit.deadline_at - 1 - min(config.lead, grace)


def _close(snapshot: Snapshot, config: Config, now: int, job: Job, lease: Lease) -> Action | Skip:
    """End a lease whose notice is over, once that pays for its gas, the time of its slot counted."""
    pay = close_pay(job.terms, words.unpack_policy(job.terms.policy), lease.unit, now)
    worth = None if _leaves(snapshot, config) else ceiling(pay, CLOSE_GAS, config)
    if is_worth(worth, config):
        return Close(job.id, lease.index, worth=worth)
    return _left_to_keepers((job.id, lease.index), "closing", pay, CLOSE_GAS, config)


def _left_to_keepers(where: Where, what: str, pay: int, gas: int, config: Config) -> Skip:
    pays, costs = show_amount(pay, config.asset), show_amount(cost(gas, config), config.asset)
    return Skip(*where, Reason.AWAITS_KEEPER, f"{what} it brings {pays} and costs {costs}: it waits for cheaper gas")


def _start(snapshot: Snapshot, config: Config, key: LeaseKey, lease: Lease, tries: int) -> Action | Skip:
    if lease.unit.state == State.CLOSING:
        return Skip(key.job, key.index, Reason.NOTICE, "cancelled by the submitter; the notice is paid without a run")
    missing = lease.since + config.confirmations - snapshot.block
    if missing > 0:
        return Skip(key.job, key.index, Reason.AWAITS_CONFIRMATIONS, f"{missing} more blocks")
    return StartRun(key, lease.unit.deadline_at, tries)


def leftovers(
    snapshot: Snapshot,
    own: Mapping[LeaseKey, tuple[Job, Lease]],
    executions: Mapping[LeaseKey, Execution],
    room: Room,
) -> list[Action | Skip]:
    """Stop or put aside executions whose lease is gone (lost, ended, or taken away by a reorganisation).

    Notes in `room` what is being stopped and what nothing else may touch: `finish` goes by it.
    """
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
            actions.append(SetAside(key, _how_gone(snapshot, key)))
    return actions


def _how_gone(snapshot: Snapshot, key: LeaseKey) -> str:
    """Say what became of a lease that is not this node's any more; units that have ended are not in a snapshot."""
    leases = (lease for job in snapshot.jobs if job.id == key.job for lease in job.leases)
    unit = next((lease.unit for lease in leases if lease.index == key.index), None)
    if unit is None:
        return "the lease is over: its unit is not among the open ones"
    if unit.state not in OURS:
        return f"the lease was lost: its unit is {unit.state.name.lower()} again"
    return f"the lease was lost: its unit is {'this' if unit.node == snapshot.node.id else 'another'} node's anew"
