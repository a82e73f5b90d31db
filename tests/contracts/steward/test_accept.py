"""Steward.accept_council and accept_governor: each right is handed over in two steps."""

from __future__ import annotations

import pytest

from tests.kit.evm import reverts
from tests.kit.steward import DELAY, NONE, Op, Stewarded
from tests.kit.world import World


def test_accept_council__who_was_offered_it__sits_there_and_the_old_one_does_not(stewarded: Stewarded) -> None:
    world = stewarded.world
    stewarded.change(Op.COUNCIL, int(world.keeper, 16))
    receipt = stewarded.contract.send.accept_council(sender=world.keeper)
    assert receipt.event("CouncilChanged") == {"council": world.keeper}
    assert (stewarded.contract.call.council(), stewarded.contract.call.offered_council()) == (world.keeper, NONE)
    with reverts("steward: not the council"):
        stewarded.queue(Op.STAKE, 10**18)
    stewarded.queue(Op.STAKE, 10**18, sender=world.keeper)


def test_accept_council__anybody_else__reverts(stewarded: Stewarded) -> None:
    world = stewarded.world
    for sender in (stewarded.council, world.keeper):
        with reverts("steward: not offered to you"):
            stewarded.contract.send.accept_council(sender=sender)
    stewarded.change(Op.COUNCIL, int(world.keeper, 16))
    with reverts("steward: not offered to you"):
        stewarded.contract.send.accept_council(sender=world.stranger)
    # Zero takes the offer back, and nobody calls from there.
    stewarded.change(Op.COUNCIL, 0)
    with reverts("steward: not offered to you"):
        stewarded.contract.send.accept_council(sender=world.keeper)


@pytest.mark.parametrize(("posts", "registrations"), [(True, False), (False, True)])
def test_accept_governor__one_of_both__takes_that_one(world: World, posts: bool, registrations: bool) -> None:
    steward = world.evm.deploy("Steward", world.nodes, world.rules, world.keeper, NONE, DELAY)
    for registry in (world.nodes, world.rules):
        registry.send.offer_governor(steward)
    steward.send.accept_governor(posts, registrations, sender=world.stranger)
    governors = (world.rules.call.governor(), world.nodes.call.governor())
    assert governors == (
        steward.address if posts else world.deployer,
        steward.address if registrations else world.deployer,
    )


def test_accept_governor__nothing_named_or_nothing_offered__reverts(stewarded: Stewarded) -> None:
    with reverts("steward: nothing named"):
        stewarded.contract.send.accept_governor(False, False)
    with reverts("rules: not offered to you"):
        stewarded.contract.send.accept_governor(True, False)
    with reverts("nodes: not offered to you"):
        stewarded.contract.send.accept_governor(False, True)


def test_accept_governor__a_market_handed_to_another_steward__obeys_that_one(stewarded: Stewarded) -> None:
    world = stewarded.world
    other = world.evm.deploy("Steward", world.nodes, world.rules, world.keeper, NONE, DELAY)
    for op in (Op.POSTS, Op.REGISTRATIONS):
        stewarded.change(op, int(other.address, 16))
    other.send.accept_governor(True, True)
    with reverts("rules: not the governor"):
        stewarded.contract.send.pause(True, False, sender=stewarded.council)
    other.send.pause(True, True, sender=world.keeper)
