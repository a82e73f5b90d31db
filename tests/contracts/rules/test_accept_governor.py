"""Rules.accept_governor: the second step; the old governor's rights end."""

from __future__ import annotations

from tests.kit.evm import NATIVE, reverts
from tests.kit.world import World


def test_accept_governor__offered__takes_over(world: World) -> None:
    world.rules.send.offer_governor(world.stranger)
    receipt = world.rules.send.accept_governor(sender=world.stranger)
    assert receipt.event("GovernorChanged") == {"governor": world.stranger}
    assert world.rules.call.governor() == world.stranger
    assert world.rules.call.offered_governor() == NATIVE
    world.rules.send.pause(sender=world.stranger)
    with reverts("rules: not the governor"):
        world.rules.send.pause(sender=world.deployer)


def test_accept_governor__not_offered__reverts(world: World) -> None:
    for sender in (world.deployer, world.stranger):
        with reverts("rules: not offered to you"):
            world.rules.send.accept_governor(sender=sender)
    world.rules.send.offer_governor(world.stranger)
    with reverts("rules: not offered to you"):
        world.rules.send.accept_governor(sender=world.keeper)


def test_accept_governor__twice__reverts(world: World) -> None:
    world.rules.send.offer_governor(world.stranger)
    world.rules.send.accept_governor(sender=world.stranger)
    with reverts("rules: not offered to you"):
        world.rules.send.accept_governor(sender=world.stranger)
