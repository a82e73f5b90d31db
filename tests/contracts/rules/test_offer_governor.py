"""Rules.offer_governor: the first of two steps to a new governor."""

from __future__ import annotations

from tests.kit.evm import NATIVE, reverts
from tests.kit.world import World


def test_offer_governor__default__changes_nothing_yet(world: World) -> None:
    receipt = world.rules.send.offer_governor(world.stranger)
    assert receipt.event("GovernorOffered") == {"governor": world.stranger}
    assert world.rules.call.offered_governor() == world.stranger
    assert world.rules.call.governor() == world.deployer


def test_offer_governor__zero__takes_the_offer_back(world: World) -> None:
    world.rules.send.offer_governor(world.stranger)
    world.rules.send.offer_governor(NATIVE)
    with reverts("rules: not offered to you"):
        world.rules.send.accept_governor(sender=world.stranger)


def test_offer_governor__not_the_governor__reverts(world: World) -> None:
    for sender in (world.owner, world.operator, world.stranger):
        with reverts("rules: not the governor"):
            world.rules.send.offer_governor(sender, sender=sender)
