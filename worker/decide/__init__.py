"""Decide what a worker does next, from one block's state: pure, without I/O, clock or randomness.

The loop reads a `Snapshot` pinned to one block, calls `decide`, and performs the actions. The chain decides what a
node holds; the journal only says how far this machine has come with it. Every lease that is left alone yields a
`Skip` with a named reason, which `hearth worker why JOB` shows. Guards are those of `hearth.protocol.formulas`, so an
action offered here is one that the contracts accept at this block. Source: protocol.md "States" and "Matching",
worker.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hearth.protocol import formulas
from hearth.protocol.types import SENTINEL, JobId, Status
from worker.decide.actions import (
    Abort,
    Ack,
    Action,
    Beat,
    Caller,
    ChainAction,
    Checkpoint,
    Claim,
    Close,
    Decline,
    Finish,
    Gather,
    GiveUp,
    HandIn,
    LocalStep,
    Propose,
    ReadSpec,
    SetAside,
    Settle,
    Skip,
    StartRun,
    SubmitResult,
    Withdraw,
)
from worker.decide.following import with_next
from worker.decide.open import take
from worker.decide.own import finish, leftovers
from worker.decide.room import own_leases, project
from worker.decide.snapshot import (
    AHEAD,
    BEATS_ON,
    ENGAGING,
    HELD,
    MAX_TRIES,
    NO_GPU,
    OURS,
    OWN,
    UNDER_WAY,
    Config,
    Execution,
    Flight,
    Job,
    Kind,
    Lease,
    LeaseKey,
    Reason,
    Saved,
    Snapshot,
    SpecFacts,
    Stage,
    Target,
    TrustedJudge,
)

__all__ = [
    "AHEAD",
    "ENGAGING",
    "HELD",
    "MAX_TRIES",
    "NO_GPU",
    "ON_ITS_WAY",
    "OURS",
    "OWN",
    "UNDER_WAY",
    "Abort",
    "Ack",
    "Action",
    "Beat",
    "Caller",
    "ChainAction",
    "Checkpoint",
    "Claim",
    "Close",
    "Config",
    "Decline",
    "Execution",
    "Finish",
    "Flight",
    "Gather",
    "GiveUp",
    "HandIn",
    "Job",
    "Kind",
    "Lease",
    "LeaseKey",
    "LocalStep",
    "Propose",
    "ReadSpec",
    "Reason",
    "Saved",
    "SetAside",
    "Settle",
    "Skip",
    "Snapshot",
    "SpecFacts",
    "Stage",
    "StartRun",
    "SubmitResult",
    "Target",
    "TrustedJudge",
    "Withdraw",
    "decide",
    "due_beat",
    "explain",
    "outlook",
    "own_leases",
]

ASK_SECONDS: Final = 30
"""How long no block must have come before a beat asks whether the chain mines."""
ON_ITS_WAY: Final = frozenset({Reason.TX_PENDING, Reason.LEADING, Reason.GATHERING, Reason.AWAITS_PRICE})
"""The reasons to leave a target alone that end by themselves, with the unit taken or another reason."""


def decide(snapshot: Snapshot, config: Config, now: int) -> list[Action | Skip]:
    """Return what to do now, most urgent first: beat, own leases by their deadline, then new leases.

    `now` is chain seconds, at least the pinned block's. At most one transaction names a lease, and at most as many
    leases are taken as slots are free. Nothing is ever submitted at or after a lease's deadline.
    """
    actions: list[Action | Skip] = []
    beat = due_beat(snapshot, config, now)
    if beat is not None:
        actions.append(beat)
    own = own_leases(snapshot)
    executions = {e.key: e for e in snapshot.executions}
    room = project(snapshot, config, own, executions)
    # Asked first, since `finish` starts nothing in the place of what is still being stopped; listed after it, as less
    # urgent: own leases have deadlines.
    left = leftovers(snapshot, own, executions, room)
    for step in finish(snapshot, config, now, own, executions, room):
        if isinstance(step, Finish):
            actions.append(with_next(snapshot, config, now, step, own[step.attempt], executions, room))
        else:
            actions.append(step)
    actions += left
    if config.withdraw_at and snapshot.credit >= config.withdraw_at and not _flying(snapshot, Kind.WITHDRAW):
        actions.append(Withdraw(snapshot.credit, snapshot.block))
    actions += take(snapshot, config, now, executions, room)
    return actions


def explain(snapshot: Snapshot, config: Config, job: JobId, now: int) -> list[Action | Skip]:
    """Return what `decide` would do about one job, and why; a job that is not watched says so."""
    found = [a for a in decide(snapshot, config, now) if a.concerns(job)]
    if found:
        return found
    if any(row.id == job for row in snapshot.jobs):
        return [Skip(job, None, Reason.ENDED, "no lease of this job is open, and none is this node's")]
    return [Skip(job, None, Reason.NOT_WATCHED, "the worker follows no such job; it may have ended")]


def outlook(snapshot: Snapshot, config: Config, target: Target, now: int) -> ReadSpec | Skip | None:
    """Say what keeps the node from a unit that it does not hold, None where it is free to be taken.

    A `Skip` whose reason is one of ON_ITS_WAY keeps it for a while only. Asked as if the node had beaten now, since a
    node that takes by hand is silent before. `ReadSpec` is the answer where the spec must be read first; else a `Skip`
    names the reason.
    """
    node = snapshot.node
    status = formulas.status(node, now, snapshot.immutables.dead_after, snapshot.immutables.minimum_stake)
    if status is Status.INACTIVE or node.state.beat == 0:
        snapshot = replace(snapshot, node=replace(node, state=replace(node.state, beat=now)))
    found = explain(snapshot, replace(config, target=target), target.job, now)
    # What is said of the other units of an array is no answer.
    mine = [step for step in found if not isinstance(step, Skip) or target.names(step.job, step.index)]
    for step in mine:
        if isinstance(step, ReadSpec):
            return step
        if isinstance(step, Ack | Claim | Gather | Propose):
            return None
        if isinstance(step, Skip) and step.reason in ON_ITS_WAY:
            return step
    if any(flight.job == target.job and flight.index == SENTINEL for flight in snapshot.flights):
        # What is on its way takes an array's next unit, which may be the one that is meant.
        return Skip(target.job, target.index, Reason.TX_PENDING)
    job = next((job for job in snapshot.jobs if job.id == target.job and not job.waits), None)
    header = None if job is None else job.header
    if header is not None and target.index is not None and not header.closed and target.index > header.touched:
        return Skip(target.job, target.index, Reason.NOT_NEXT, f"unit {header.touched} is the next one of the array")
    # Own leases are spoken of first, open ones last.
    skips = [step for step in mine if isinstance(step, Skip)]
    return skips[-1] if skips else Skip(target.job, target.index, Reason.ENDED)


def _flying(snapshot: Snapshot, kind: Kind) -> bool:
    return any(f.kind == kind for f in snapshot.flights)


def due_beat(snapshot: Snapshot, config: Config, now: int) -> Beat | None:
    """Return the beat that is due, None where none is. No job is looked at, so that it can be sent before they are."""
    due = _beat_due(snapshot, config, now)
    return Beat(snapshot.node.id, snapshot.node.state.beat) if due else None


def _beat_due(snapshot: Snapshot, config: Config, now: int) -> bool:
    """Say whether to beat: only while work is wanted or held, since an idle node that beats is proposed in vain.

    What the owner did not wish is the exception (a full disk, a clock that is wrong): it must not silence the node.
    Of a chain that has been silent, whose second now is not known, a beat asks which it is.
    """
    node = snapshot.node
    if int(node.operator, 16) == 0 or _flying(snapshot, Kind.BEAT):
        return False
    if config.hold is not None and config.hold not in BEATS_ON and node.state.busy == 0:
        return False
    if config.hold is Reason.CHAIN_SILENT and node.state.beat < snapshot.timestamp <= now - ASK_SECONDS:
        return True
    return now >= node.state.beat + config.beat_every
