"""Decide whether the call that ends a unit settles it, and takes the array's next one too, pure.

It does where the worker would claim that unit now were the result already paid: the rules for open leases are asked
about the node as it is then, and no rule is written twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from hearth.protocol import formulas
from hearth.protocol.types import SENTINEL, Node, NodeFlag
from worker.decide.actions import Claim, Finish, SubmitResult
from worker.decide.open import take
from worker.decide.own import or_submit, submitted
from worker.decide.room import Room
from worker.decide.snapshot import Config, Execution, Job, Lease, LeaseKey, Snapshot


def with_next(
    snapshot: Snapshot,
    config: Config,
    now: int,
    action: Finish,
    lease: tuple[Job, Lease],
    executions: Mapping[LeaseKey, Execution],
    room: Room,
) -> Finish | SubmitResult:
    """Return a finish with the claim of the array's next lease, where the worker wants that one; a submit instead where
    neither the pay nor the claim that it spares is worth the settlement's gas.

    Notes in `room` that the next lease of the job is spoken for.
    """
    job, held = lease
    if job.header is not None:
        after = _after(snapshot, now, job, submitted(held, action, now))
        steps = take(after, config, now, executions, _room_after(room, now, job))
        claims = (step for step in steps if isinstance(step, Claim) and step.leases == ((job.id, SENTINEL),))
        action = replace(action, next=next(claims, None))
    step = or_submit(snapshot, config, now, action, lease, room)
    if isinstance(step, Finish) and step.next is not None:
        room.nexts[job.id] += 1
    return step


def _after(snapshot: Snapshot, now: int, job: Job, ended: Lease) -> Snapshot:
    """Return the snapshot in which a unit of a job has its result: what that pays counts in what the next is worth."""
    leases = tuple(ended if lease.index == ended.index else lease for lease in job.leases)
    jobs = tuple(replace(job, leases=leases) if row.id == job.id else row for row in snapshot.jobs)
    return replace(snapshot, node=_freed(snapshot.node, now, job), jobs=jobs)


def _room_after(room: Room, now: int, job: Job) -> Room:
    """Return a copy of the room in which the slot and the bond of a unit of a job are free."""
    unpaid = Counter(room.unpaid)
    unpaid[job.id] -= 1
    return replace(
        room,
        node=_freed(room.node, now, job),
        free=room.free + 1,
        taken=set(room.taken),
        stopping=set(room.stopping),
        ahead=set(room.ahead),
        nexts=Counter(room.nexts),
        unpaid=unpaid,
    )


def _freed(node: Node, now: int, job: Job) -> Node:
    """Return the node as the end of a unit of a job leaves it: that is a sign of life too."""
    state = node.state
    bond = state.bond - formulas.bond(job.terms)
    status = state.status & ~NodeFlag.LAPSED
    return replace(
        node, state=replace(state, busy=state.busy - 1, bond=max(0, bond), beat=now, status=status, silent=False)
    )
