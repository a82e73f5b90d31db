"""Attack: a small reorganisation makes workers forget what a lost lease left, so that its unit begins anew."""

from __future__ import annotations

from dataclasses import replace

from hearth.market.events import Checkpointed, GaveUp
from hearth.protocol import words
from hearth.protocol.types import Billing, NodeId, State, Unit
from tests.worker import test_decide as decided
from tests.worker.test_watch import Scripted

LOST = Unit(
    state=State.RUNNING,
    node=NodeId(7),
    rate=10**15,
    started=decided.NOW - 900,
    mark=decided.NOW + 800,
    attempts=1,
    resumable=True,
)


def _posted(world: Scripted) -> bytes:
    terms = replace(decided.TERMS, billing=Billing.METERED, checkpoint_every=60)
    job, posted = world.post(terms)
    world.words[job] = words.pack_unit(LOST)
    world.chain.mine(count=9)
    world.chain.mine([posted])
    return job


def test_reorg__second_checkpoint_is_torn_out__the_first_is_still_known() -> None:
    world = Scripted()
    job = _posted(world)
    world.chain.mine([world.event(Checkpointed, job, LOST, 600, 5)])  # type: ignore[arg-type]
    world.read()
    world.chain.mine([world.event(Checkpointed, job, LOST, 660, 6)])  # type: ignore[arg-type]
    world.read()
    # Its node died meanwhile: the second is not sent again, and the chain keeps the first.
    world.chain.reorg(1)
    opened = replace(decided.OPEN, attempts=1)
    world.words[job] = words.pack_unit(opened)
    world.chain.mine([world.event(GaveUp, job, replace(opened, node=NodeId(7)), 1)])  # type: ignore[arg-type]
    (lease,) = world.read()[job].leases  # type: ignore[index]
    assert [(saved.attempt, saved.seconds) for saved in lease.saved] == [(1, 600)]


def test_reorg__end_of_the_unit_is_torn_out__its_checkpoint_is_still_known() -> None:
    from hearth.market.events import Settled

    world = Scripted()
    job = _posted(world)
    world.chain.mine([world.event(Checkpointed, job, LOST, 600, 5)])  # type: ignore[arg-type]
    world.read()
    settled = replace(LOST, state=State.SETTLED, resumable=False)
    world.words[job] = words.pack_unit(settled)
    world.chain.mine([world.event(Settled, job, settled, 100, 5)])  # type: ignore[arg-type]
    world.read()
    world.chain.reorg(1)
    opened = replace(decided.OPEN, attempts=1)
    world.words[job] = words.pack_unit(opened)
    world.chain.mine([world.event(GaveUp, job, replace(opened, node=NodeId(7)), 1)])  # type: ignore[arg-type]
    (lease,) = world.read()[job].leases  # type: ignore[index]
    assert [(saved.attempt, saved.seconds) for saved in lease.saved] == [(1, 600)]


def test_log_of_a_checkpoint__says_what_its_attempt_had_resumed_from() -> None:
    """By that a worker sums what a unit's earlier attempts have of its seconds."""
    world = Scripted()
    job = _posted(world)
    again = replace(LOST, attempts=2, resume=1)
    world.chain.mine([world.event(Checkpointed, job, LOST, 60, 5)])  # type: ignore[arg-type]
    world.chain.mine([world.event(Checkpointed, job, again, 90, 6)])  # type: ignore[arg-type]
    opened = replace(decided.OPEN, attempts=2)
    world.words[job] = words.pack_unit(opened)
    world.chain.mine([world.event(GaveUp, job, replace(opened, node=NodeId(7)), 1)])  # type: ignore[arg-type]
    (lease,) = world.read()[job].leases  # type: ignore[index]
    assert [(saved.attempt, saved.resume) for saved in lease.saved] == [(2, 1), (1, 0)]
