"""The node as it will be once everything under way is mined, pure: its own leases, its slots and its bonds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hearth.protocol.types import SENTINEL, JobId, Node, State, TermsFlag, Unit
from worker.decide.snapshot import (
    AHEAD,
    ENGAGING,
    HELD,
    OURS,
    TAKING,
    UNDER_WAY,
    Config,
    Execution,
    Job,
    Kind,
    Lease,
    LeaseKey,
    Snapshot,
    Stage,
)


@dataclass(slots=True)
class Room:
    """The node as it will be once everything in flight and decided so far is mined."""

    node: Node
    free: int
    flying: frozenset[tuple[JobId, int]]
    # Leases whose checkpoint is in flight: nothing else about them waits for that.
    saving: frozenset[tuple[JobId, int]]
    # How many calls on their way, or decided so far, take an array's next unit: by job.
    nexts: Counter[JobId]
    # (job, index) of leases that another rule has spoken for, and of those whose old execution is being stopped.
    taken: set[tuple[JobId, int]] = field(default_factory=set)
    stopping: set[tuple[JobId, int]] = field(default_factory=set)
    # What is gathered for leases that are not this node's yet, each in a slot that `free` lacks already; `take` says
    # which of it is still wanted.
    ahead: set[LeaseKey] = field(default_factory=set)
    # What of it nobody has promised: brought here for claims, whose slots go to whatever can be taken now.
    unpromised: list[LeaseKey] = field(default_factory=list)
    # What of it has lost its slot so.
    outdone: set[LeaseKey] = field(default_factory=set)
    # Units of each job that are taken, run, or wait for their judge: they have cost gas and brought nothing yet.
    unpaid: Counter[JobId] = field(default_factory=Counter)
    # Bytes of the home's disk that units will claim which are taken or asked for, and not under way here yet.
    claimed: int = 0
    # The bonds of units whose results are submitted, and which are left to keepers since their settlement costs more.
    unsettled: list[int] = field(default_factory=list)

    def outdo(self) -> None:
        """Give the slot of something that nobody has promised to what can be taken now."""
        self.outdone.add(self.unpromised.pop())
        self.free += 1

    def engage(self, bond: int, job: JobId | None = None, claim: int = 0) -> None:
        """Count one more lease, of a job where it is not counted as unpaid yet, which will claim bytes of disk."""
        if job is not None:
            self.unpaid[job] += 1
        state = self.node.state
        self.node = replace(self.node, state=replace(state, busy=state.busy + 1, bond=state.bond + bond))
        self.free -= 1
        self.claimed += claim


def own_leases(snapshot: Snapshot) -> dict[LeaseKey, tuple[Job, Lease]]:
    """Return the leases that the chain says are this node's."""
    return {
        LeaseKey(job.id, lease.index, lease.unit.attempts): (job, lease)
        for job in snapshot.jobs
        for lease in job.leases
        if lease.unit.state in OURS and lease.unit.node == snapshot.node.id
    }


def project(
    snapshot: Snapshot,
    config: Config,
    own: Mapping[LeaseKey, tuple[Job, Lease]],
    executions: Mapping[LeaseKey, Execution],
) -> Room:
    """Project the node past its flights. An execution without a lease still fills a slot of the machine, and what was
    gathered for an ack that is in flight fills the ack's."""
    node = snapshot.node
    held = sum(1 for _, lease in own.values() if lease.unit.state in HELD)
    engaged = {(f.job, f.index) for f in snapshot.flights if f.kind in ENGAGING}
    strays = sum(
        1
        for key, e in executions.items()
        if e.stage in UNDER_WAY and not is_held(own, key) and not (e.stage in AHEAD and (key.job, key.index) in engaged)
    )
    busy = max(held, node.state.busy)
    # Leases on chain that this snapshot does not show (jobs not yet read) still count in node.state.busy.
    slots = min(config.max_slots, node.offer.slots)
    flights = snapshot.flights
    room = Room(
        node=replace(node, state=replace(node.state, busy=busy)),
        free=slots - busy - strays,
        flying=frozenset((f.job, f.index) for f in flights if f.job is not None and f.kind is not Kind.CHECKPOINT),
        saving=frozenset((f.job, f.index) for f in flights if f.job is not None and f.kind is Kind.CHECKPOINT),
        nexts=Counter(f.job for f in snapshot.flights if f.job is not None and f.index == SENTINEL),
        unpaid=Counter(key.job for key, (job, lease) in own.items() if _is_unpaid(job, lease.unit)),
    )
    room.unpaid.update(f.job for f in snapshot.flights if f.job is not None and f.kind in TAKING)
    for flight in snapshot.flights:
        if flight.kind in ENGAGING:
            room.engage(flight.bond)
    coming = [f.job for f in snapshot.flights if f.kind in TAKING]
    coming += [k.job for k in own if is_held(own, k) and (k not in executions or executions[k].stage is Stage.BROKEN)]
    specs = {job.id: job.spec for job in snapshot.jobs if job.spec is not None}
    room.claimed += sum(specs[job].claim(config.volumes) for job in coming if job in specs)
    return room


def _is_unpaid(job: Job, unit: Unit) -> bool:
    """Say whether a unit of this node's may still bring nothing: it runs, or waits for its judge."""
    return unit.state in HELD or unit.state is State.DISPUTED or bool(job.terms.flags & TermsFlag.PROVEN)


def is_held(own: Mapping[LeaseKey, tuple[Job, Lease]], key: LeaseKey) -> bool:
    return key in own and own[key][1].unit.state in HELD
