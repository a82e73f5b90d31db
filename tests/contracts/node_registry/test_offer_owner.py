"""NodeRegistry.offer_owner: the first of two steps to a new owner."""

from __future__ import annotations

from tests.kit.evm import NATIVE, reverts
from tests.kit.world import World


def test_offer_owner__default__changes_nothing_yet(world: World) -> None:
    node = world.register()
    before = world.node(node)
    receipt = world.nodes.send.offer_owner(node, world.stranger, sender=world.owner)
    assert receipt.event("OwnerOffered") == {"node": node, "owner": world.stranger}
    assert world.node(node) == before


def test_offer_owner__zero__takes_the_offer_back(world: World) -> None:
    node = world.register()
    world.nodes.send.offer_owner(node, world.stranger, sender=world.owner)
    world.nodes.send.offer_owner(node, NATIVE, sender=world.owner)
    with reverts("nodes: not offered to you"):
        world.nodes.send.accept_owner(node, sender=world.stranger)


def test_offer_owner__not_the_owner__reverts(world: World) -> None:
    node = world.register()
    for sender in (world.operator, world.stranger, world.deployer):
        with reverts("nodes: not the owner"):
            world.nodes.send.offer_owner(node, sender, sender=sender)
