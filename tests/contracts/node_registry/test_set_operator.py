"""NodeRegistry.set_operator: a node is offered to another key, and changes hands at that key's first beat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hearth.protocol.types import NodeFlag, NodeState, State
from tests.kit.evm import NATIVE, Receipt, reverts
from tests.kit.steps import BOND, PAY, SETTLE_PAY, credited, node_state, running
from tests.kit.world import DEAD_AFTER, UNBONDING, World

BEATS: dict[str, Callable[..., Receipt]] = {
    "beat": lambda world, node, sender: world.nodes.send.beat(node, sender=sender),
    "heartbeat": lambda world, node, sender: world.nodes.send.heartbeat([node], sender=sender),
}


def _offer(world: World, node: int, operator: str) -> Receipt:
    return world.nodes.send.set_operator(node, operator, sender=world.owner)


def test_set_operator__default__offers_and_changes_nothing(world: World) -> None:
    node = world.register()
    before = world.node(node)
    receipt = _offer(world, node, world.stranger)
    assert receipt.events("OperatorChanged") == []
    assert receipt.event("OperatorOffered") == {"node": node, "operator": world.stranger}
    assert world.nodes.call.offered_operator(node) == world.stranger
    assert world.node(node) == before


@pytest.mark.parametrize("beat", BEATS)
def test_set_operator__first_beat_of_the_offered_key__moves_the_node(world: World, beat: str) -> None:
    node = world.register()
    before = world.node(node)
    _offer(world, node, world.stranger)
    world.evm.warp(5)
    receipt = BEATS[beat](world, node, world.stranger)
    assert receipt.event("OperatorChanged") == {"node": node, "operator": world.stranger}
    state = replace(before.state, beat=world.evm.now)
    assert world.node(node) == replace(before, operator=world.stranger, state=state)
    assert world.nodes.call.offered_operator(node) == NATIVE
    with reverts("nodes: not the operator"):
        world.nodes.send.beat(node, sender=world.operator)
    # A second beat is one as any other.
    assert BEATS[beat](world, node, world.stranger).logs == ()


def test_set_operator__until_then__the_present_operator_serves(market: World) -> None:
    terms, node = running(market)
    _offer(market, node, market.stranger)
    with reverts("nodes: not the operator"):
        market.submit(terms, sender=market.stranger)
    market.nodes.send.beat(node, sender=market.operator)
    market.submit(terms, sender=market.operator)
    other = market.post()
    with reverts("nodes: not the operator"):
        market.claim(other, node, sender=market.stranger)
    market.claim(other, node, sender=market.operator)
    assert market.node(node).operator == market.operator
    assert market.nodes.call.offered_operator(node) == market.stranger


def test_set_operator__a_key_that_was_not_offered__gets_nothing(world: World) -> None:
    node, other = world.register(), world.register()
    _offer(world, node, world.stranger)
    for sender, ids in ((world.keeper, [node]), (world.stranger, [other])):
        with reverts("nodes: not the operator"):
            world.nodes.send.beat(ids[0], sender=sender)
        with reverts("nodes: nothing to do"):
            world.nodes.send.heartbeat(ids, sender=sender)


def test_set_operator__offered_again__the_last_offer_counts(world: World) -> None:
    node = world.register()
    _offer(world, node, world.stranger)
    _offer(world, node, world.keeper)
    with reverts("nodes: not the operator"):
        world.nodes.send.beat(node, sender=world.stranger)
    world.nodes.send.beat(node, sender=world.keeper)
    assert world.node(node).operator == world.keeper


def test_set_operator__the_present_one__takes_the_offer_back(world: World) -> None:
    node = world.register()
    before = world.node(node)
    _offer(world, node, world.stranger)
    receipt = _offer(world, node, world.operator)
    assert receipt.event("OperatorOffered") == {"node": node, "operator": NATIVE}
    assert world.nodes.call.offered_operator(node) == NATIVE
    with reverts("nodes: not the operator"):
        world.nodes.send.beat(node, sender=world.stranger)
    assert world.node(node) == before


def test_set_operator__taken_back_too_late__goes_back_at_the_old_keys_beat(world: World) -> None:
    node = world.register()
    _offer(world, node, world.stranger)
    world.nodes.send.beat(node, sender=world.stranger)
    _offer(world, node, world.operator)
    world.nodes.send.beat(node, sender=world.operator)
    assert world.node(node).operator == world.operator


def test_set_operator__before_the_first_beat__whoever_beats_serves(world: World) -> None:
    node = world.register(beat=False)
    _offer(world, node, world.stranger)
    with world.evm.isolated():
        world.nodes.send.beat(node, sender=world.operator)
        assert (world.node(node).operator, world.nodes.call.offered_operator(node)) == (world.operator, world.stranger)
    world.nodes.send.beat(node, sender=world.stranger)
    assert node_state(world, node) == NodeState(beat=world.evm.now, rep_time=world.evm.now)
    with reverts("nodes: not the operator"):
        world.nodes.send.beat(node, sender=world.operator)


@pytest.mark.parametrize("beaten", [True, False])
def test_set_operator__while_exiting__keeps_the_exit(world: World, beaten: bool) -> None:
    node = world.register(beat=beaten)
    world.nodes.send.exit_start(node, sender=world.owner)
    exit_at = world.node(node).exit_at
    _offer(world, node, world.stranger)
    world.nodes.send.beat(node, sender=world.stranger)
    after = world.node(node)
    assert (after.exit_at, after.state.status) == (exit_at, NodeFlag.EXITING)
    world.nodes.send.exit_cancel(node, sender=world.owner)
    assert (world.node(node).exit_at, world.node(node).state.status) == (0, NodeFlag(0))


def test_set_operator__exit_under_an_offer__is_the_present_operators_and_ends_the_offer(world: World) -> None:
    node = world.register()
    _offer(world, node, world.stranger)
    world.nodes.send.exit_start(node, sender=world.owner)
    assert node_state(world, node).status == NodeFlag.EXITING
    world.nodes.send.exit_cancel(node, sender=world.owner)
    assert node_state(world, node).status == NodeFlag(0)
    assert world.nodes.call.offered_operator(node) == world.stranger
    world.nodes.send.exit_start(node, sender=world.owner)
    world.evm.warp(UNBONDING)
    world.nodes.send.exit_finish(node, sender=world.keeper)
    assert world.nodes.call.offered_operator(node) == NATIVE
    for sender in (world.stranger, world.operator):
        with reverts("nodes: not the operator"):
            world.nodes.send.beat(node, sender=sender)


def test_set_operator__with_a_lease_running__hands_the_lease_over(market: World) -> None:
    terms, node = running(market)
    _offer(market, node, market.stranger)
    market.nodes.send.beat(node, sender=market.stranger)
    assert (node_state(market, node).busy, node_state(market, node).bond) == (1, BOND)
    with reverts("nodes: not the operator"):
        market.submit(terms, sender=market.operator)
    market.submit(terms, sender=market.stranger)
    with credited(market) as got:
        market.settle(terms)
    assert market.state(terms) == State.SETTLED
    assert (got["owner"], got["keeper"]) == (PAY - PAY // 20, SETTLE_PAY)
    assert (node_state(market, node).busy, node_state(market, node).bond) == (0, 0)


def test_set_operator__node_that_lapsed__is_live_again_by_the_new_keys_beat(world: World) -> None:
    node = world.register()
    _offer(world, node, world.stranger)
    world.evm.warp(DEAD_AFTER)
    world.nodes.send.check_liveness([node], world.keeper)
    world.nodes.send.beat(node, sender=world.stranger)
    assert node_state(world, node).status == NodeFlag(0)


def test_set_operator__zero__reverts(world: World) -> None:
    node = world.register()
    with reverts("nodes: operator zero"):
        _offer(world, node, NATIVE)


def test_set_operator__not_the_owner__reverts(world: World) -> None:
    node = world.register()
    for sender in (world.operator, world.stranger, world.deployer):
        with reverts("nodes: not the owner"):
            world.nodes.send.set_operator(node, world.keeper, sender=sender)
