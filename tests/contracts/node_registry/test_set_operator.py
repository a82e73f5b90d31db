"""NodeRegistry.set_operator: a node changes hands at once, whatever runs on it."""

from __future__ import annotations

from hearth.protocol.types import State
from tests.kit.evm import NATIVE, reverts
from tests.kit.steps import BOND, PAY, SETTLE_PAY, credited, node_state, running
from tests.kit.world import World


def test_set_operator__default__moves_the_node_state(world: World) -> None:
    node = world.register()
    before = node_state(world, node)
    receipt = world.nodes.send.set_operator(node, world.stranger, sender=world.owner)
    assert receipt.event("OperatorChanged") == {"node": node, "operator": world.stranger}
    assert world.node(node).operator == world.stranger
    assert node_state(world, node) == before
    world.nodes.send.beat(node, sender=world.stranger)
    with reverts("nodes: not the operator"):
        world.nodes.send.beat(node, sender=world.operator)


def test_set_operator__and_back__keeps_everything(world: World) -> None:
    node = world.register()
    before = world.node(node)
    world.nodes.send.set_operator(node, world.stranger, sender=world.owner)
    world.nodes.send.set_operator(node, world.operator, sender=world.owner)
    assert world.node(node) == before


def test_set_operator__before_the_first_beat__leaves_the_new_one_to_beat(world: World) -> None:
    node = world.register(beat=False)
    world.nodes.send.set_operator(node, world.stranger, sender=world.owner)
    world.nodes.send.beat(node, sender=world.stranger)
    assert node_state(world, node).beat == world.evm.now


def test_set_operator__while_exiting__keeps_the_exit(world: World) -> None:
    node = world.register()
    world.nodes.send.exit_start(node, sender=world.owner)
    before = world.node(node)
    world.nodes.send.set_operator(node, world.stranger, sender=world.owner)
    after = world.node(node)
    assert (after.exit_at, after.state) == (before.exit_at, before.state)


def test_set_operator__with_a_lease_running__hands_the_lease_over(market: World) -> None:
    terms, node = running(market)
    market.nodes.send.set_operator(node, market.stranger, sender=market.owner)
    assert (node_state(market, node).busy, node_state(market, node).bond) == (1, BOND)
    with reverts("nodes: not the operator"):
        market.submit(terms, sender=market.operator)
    market.submit(terms, sender=market.stranger)
    with credited(market) as got:
        market.settle(terms)
    assert market.state(terms) == State.SETTLED
    assert (got["owner"], got["keeper"]) == (PAY - PAY // 20, SETTLE_PAY)
    assert (node_state(market, node).busy, node_state(market, node).bond) == (0, 0)


def test_set_operator__zero_or_the_same__reverts(world: World) -> None:
    node = world.register()
    with reverts("nodes: operator zero"):
        world.nodes.send.set_operator(node, NATIVE, sender=world.owner)
    with reverts("nodes: same operator"):
        world.nodes.send.set_operator(node, world.operator, sender=world.owner)


def test_set_operator__not_the_owner__reverts(world: World) -> None:
    node = world.register()
    for sender in (world.operator, world.stranger, world.deployer):
        with reverts("nodes: not the owner"):
            world.nodes.send.set_operator(node, world.keeper, sender=sender)
