"""NodeRegistry.add_stake: anyone may add to a node that has not left."""

from __future__ import annotations

import pytest

from hearth.protocol import words
from tests.kit.evm import Receipt, reverts
from tests.kit.steps import LIE, awkward
from tests.kit.world import ETHER, OFFER, UNBONDING, World


def _add(
    world: World, node: int, amount: int, *, paid: int | None = None, sender: str | None = None, owner: str = ""
) -> Receipt:
    return world.pay(
        world.nodes,
        "add_stake",
        node,
        owner or world.owner,
        amount,
        amount=amount if paid is None else paid,
        sender=sender or world.stranger,
    )


def test_add_stake__by_a_stranger__grows_the_stake(market: World) -> None:
    node = market.register(stake=2 * ETHER)
    receipt = _add(market, node, ETHER)
    assert receipt.event("StakeAdded") == {"node": node, "payer": market.stranger, "amount": ETHER}
    assert market.node(node).stake == market.staked(node) == 3 * ETHER
    assert market.node(node).owner == market.owner
    assert words.unpack(words.TOTALS, market.nodes.call.totals())["total"] == 3 * ETHER


def test_add_stake__while_exiting__is_taken(world: World) -> None:
    node = world.register(stake=ETHER)
    world.nodes.send.exit_start(node, sender=world.owner)
    _add(world, node, 5)
    assert world.node(node).stake == ETHER + 5


def test_add_stake__unknown_or_exited_node__reverts(world: World) -> None:
    node = world.register()
    for unknown in (0, node + 1):
        with reverts("nodes: unknown node"):
            _add(world, unknown, 1)
    world.nodes.send.exit_start(node, sender=world.owner)
    world.evm.warp(UNBONDING)
    world.nodes.send.exit_finish(node)
    with reverts("nodes: unknown node"):
        _add(world, node, 1)


def test_add_stake__for_another_owner__reverts_and_names_who_it_is_not(world: World) -> None:
    node, other = world.register(), world.register(owner=world.keeper)
    for one, owner in ((node, world.keeper), (other, world.owner), (node, "0x" + "00" * 20)):
        with reverts("nodes: node of another owner"):
            _add(world, one, 1, owner=owner)
    world.nodes.send.offer_owner(node, world.keeper, sender=world.owner)
    world.nodes.send.accept_owner(node, sender=world.keeper)
    with reverts("nodes: node of another owner"):
        _add(world, node, 1)
    _add(world, node, 1, owner=world.keeper)


def test_add_stake__nothing__reverts(world: World) -> None:
    node = world.register()
    with reverts("nodes: amount zero"):
        _add(world, node, 0)


def test_add_stake__up_to_and_above_80_bits__is_taken_and_refused(world: World) -> None:
    node = world.register(stake=ETHER)
    world.evm.set_balance(world.stranger, 2**82)
    with reverts("nodes: stake too large"):
        _add(world, node, 2**80 - ETHER)
    _add(world, node, 2**80 - ETHER - 1)
    assert world.node(node).stake == 2**80 - 1
    with reverts("nodes: stake too large"):
        _add(world, node, 1)


@pytest.mark.parametrize("difference", [-1, 1])
def test_add_stake__native_value_not_the_amount__reverts(world: World, difference: int) -> None:
    node = world.register()
    with reverts("nodes: wrong value sent"):
        _add(world, node, 10, paid=10 + difference)


def test_add_stake__value_beside_tokens__reverts() -> None:
    world = World(erc20=True)
    node = world.register()
    with reverts("nodes: wrong value sent"):
        world.nodes.send.add_stake(node, world.owner, 1, sender=world.owner, value=1)


def test_add_stake__token_that_answers_false__reverts(world: World) -> None:
    token, nodes, _ = awkward(world)
    token.send.mint(world.owner, 10)
    token.send.approve(nodes, 10, sender=world.owner)
    node = nodes.send.register(world.operator, words.pack_offer(OFFER), b"\x55" * 32, 5, sender=world.owner).value
    token.send.set_traits(LIE)
    with reverts("nodes: transfer failed"):
        nodes.send.add_stake(node, world.owner, 5, sender=world.owner)
