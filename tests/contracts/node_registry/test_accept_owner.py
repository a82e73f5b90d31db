"""NodeRegistry.accept_owner: the second step; stake and earnings to come go along."""

from __future__ import annotations

from tests.kit.evm import reverts
from tests.kit.steps import FEE, PAY, credited, submitted
from tests.kit.world import UNBONDING, ZERO, World


def test_accept_owner__offered__takes_over_node_and_pay(market: World) -> None:
    terms, node = submitted(market)
    stake = market.node(node).stake
    market.nodes.send.offer_owner(node, market.stranger, sender=market.owner)
    receipt = market.nodes.send.accept_owner(node, sender=market.stranger)
    assert receipt.event("OwnerChanged") == {"node": node, "owner": market.stranger}
    record = market.node(node)
    assert (record.owner, record.stake, record.operator) == (market.stranger, stake, market.operator)
    with credited(market) as got:
        market.settle(terms)
    assert got["stranger"] == PAY - FEE and "owner" not in got
    with reverts("nodes: not the owner"):
        market.nodes.send.set_ask(node, 1, sender=market.owner)


def test_accept_owner__not_offered__reverts(world: World) -> None:
    node = world.register()
    with reverts("nodes: not offered to you"):
        world.nodes.send.accept_owner(node, sender=world.stranger)
    world.nodes.send.offer_owner(node, world.stranger, sender=world.owner)
    for sender in (world.owner, world.keeper):
        with reverts("nodes: not offered to you"):
            world.nodes.send.accept_owner(node, sender=sender)


def test_accept_owner__operator_that_the_seller_offered__takes_nothing_over(world: World) -> None:
    """Attack: his key beat for the sold node a month later, and let its leases fail against the buyer's stake."""
    node, trap = world.register(), world.evm.account("trap")
    world.nodes.send.set_operator(node, trap, sender=world.owner)
    world.nodes.send.offer_owner(node, world.stranger, sender=world.owner)
    world.nodes.send.accept_owner(node, sender=world.stranger)
    assert world.nodes.call.offered_operator(node) == ZERO
    with reverts("nodes: not the operator"):
        world.nodes.send.beat(node, sender=trap)
    assert world.node(node).operator == world.operator


def test_accept_owner__twice__reverts(world: World) -> None:
    node = world.register()
    world.nodes.send.offer_owner(node, world.stranger, sender=world.owner)
    world.nodes.send.accept_owner(node, sender=world.stranger)
    with reverts("nodes: not offered to you"):
        world.nodes.send.accept_owner(node, sender=world.stranger)


def test_accept_owner__after_the_exit__reverts(world: World) -> None:
    node = world.register()
    world.nodes.send.offer_owner(node, world.stranger, sender=world.owner)
    world.nodes.send.exit_start(node, sender=world.owner)
    world.evm.warp(UNBONDING)
    world.nodes.send.exit_finish(node)
    with reverts("nodes: not offered to you"):
        world.nodes.send.accept_owner(node, sender=world.stranger)


def test_accept_owner__half_of_the_largest_stake__goes_along(world: World) -> None:
    world.evm.set_balance(world.owner, 2**80)
    node = world.register(stake=2**79)
    world.nodes.send.offer_owner(node, world.stranger, sender=world.owner)
    world.nodes.send.accept_owner(node, sender=world.stranger)
    assert world.node(node).stake == 2**79
