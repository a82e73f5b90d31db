"""Decide about the leases that the node holds, pure: run, submit, decline, settle, close, stop."""

from __future__ import annotations

from collections.abc import Mapping

from hearth.protocol.types import JobId, Outcome, State, Unit
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
)
from worker.decide.room import Room
from worker.decide.snapshot import Config, Execution, Job, Lease, LeaseKey, Reason, Snapshot, Stage


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
    due: list[tuple[JobId, int]] = []
    for key, (job, lease) in sorted(own.items(), key=lambda item: (_due_at(item[1][1].unit), item[0])):
        room.taken.add((key.job, key.index))
        if (key.job, key.index) in room.flying:
            actions.append(Skip(key.job, key.index, Reason.TX_PENDING))
        elif lease.unit.state == State.SUBMITTED:
            if now >= lease.unit.submitted_at + job.terms.challenge_window + config.settle_after:
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


def _due_at(unit: Unit) -> int:
    """Return the second by which own leases are ordered: of the submit, once there is one."""
    return unit.deadline_at or unit.submitted_at


def _advance(
    snapshot: Snapshot, config: Config, now: int, key: LeaseKey, lease: Lease, execution: Execution | None
) -> Action | Skip:
    """Decide about one RUNNING or CLOSING lease of this node."""
    unit = lease.unit
    if now >= unit.deadline_at:
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
    return StartRun(key, lease.unit.deadline_at, tries)


def leftovers(
    own: Mapping[LeaseKey, tuple[Job, Lease]], executions: Mapping[LeaseKey, Execution], room: Room
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
