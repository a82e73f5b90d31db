"""JobRegistry.accept_governor: the second step; the old governor's rights end."""

from __future__ import annotations

from tests.kit.evm import NATIVE, reverts
from tests.kit.world import World


def test_accept_governor__offered__takes_over(world: World) -> None:
    world.jobs.send.offer_governor(world.stranger)
    receipt = world.jobs.send.accept_governor(sender=world.stranger)
    assert receipt.event("GovernorChanged") == {"governor": world.stranger}
    assert world.jobs.call.governor() == world.stranger
    assert world.jobs.call.offered_governor() == NATIVE
    world.jobs.send.pause(sender=world.stranger)
    with reverts("jobs: not the governor"):
        world.jobs.send.pause(sender=world.deployer)


def test_accept_governor__not_offered__reverts(world: World) -> None:
    for sender in (world.deployer, world.stranger):
        with reverts("jobs: not offered to you"):
            world.jobs.send.accept_governor(sender=sender)
    world.jobs.send.offer_governor(world.stranger)
    with reverts("jobs: not offered to you"):
        world.jobs.send.accept_governor(sender=world.keeper)


def test_accept_governor__twice__reverts(world: World) -> None:
    world.jobs.send.offer_governor(world.stranger)
    world.jobs.send.accept_governor(sender=world.stranger)
    with reverts("jobs: not offered to you"):
        world.jobs.send.accept_governor(sender=world.stranger)
