"""Attack: a proposal, a last attempt's checkpoint or a result's digest is read as this attempt's checkpoint.

A unit has one auxiliary slot for all of them. Whoever was named by a proposal, took the lease, and lost it at once,
would else have kept millions of seconds of work.
"""

from __future__ import annotations

import pytest

from hearth.protocol.types import Kept, NodeId, State
from tests.attacks.stages import KINDS, market
from tests.kit.steps import RESUMABLE, lose, other


@pytest.mark.parametrize("units", [1, 3])
@pytest.mark.parametrize("ending", ["give_up", "reclaim"])
@pytest.mark.parametrize("kind", KINDS)
def test_slot__proposal_of_a_lease_that_is_lost_at_once__is_kept_by_nobody(kind: str, ending: str, units: int) -> None:
    world = market(kind)
    node, (second, operator) = world.register(), other(world)
    terms = world.post(match_window=30, units=units, **RESUMABLE)
    world.propose(terms, node)
    assert world.load(terms)[2] > 2**160
    world.evm.warp(30)
    world.ack(terms)
    lose(world, terms, ending)
    assert world.state(terms) == State.OPEN and world.kept(terms, 1) == Kept()

    # Nor is a live proposal for the second attempt, beside a checkpoint of the first.
    world.nodes.send.beat(second, sender=operator)
    world.propose(terms, second)
    world.evm.warp(30)
    world.ack(terms, sender=operator)
    world.evm.warp(77)
    world.checkpoint(terms, sender=operator)
    lose(world, terms, ending, sender=operator)
    third, last = other(world, "third")
    world.propose(terms, third)
    assert world.kept(terms, 2) == Kept(77, world.node(NodeId(second)).offer.ask, second)
    world.evm.warp(30)
    world.ack(terms, sender=last, resume_from=2)
    world.evm.warp(5)
    world.submit(terms, sender=last)
    assert [event["attempt"] for event in world.accept(terms).events("CheckpointPaid")] == [2]
    assert world.kept(terms, 3) == Kept()
