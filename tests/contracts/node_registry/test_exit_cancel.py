"""NodeRegistry.exit_cancel: stay after all."""

from __future__ import annotations

import pytest

from hearth.protocol.types import Gate
from tests.kit.evm import reverts
from tests.kit.steps import around, ask
from tests.kit.world import UNBONDING, World


@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize("beat", [True, False])
def test_exit_cancel__exiting__puts_the_node_back_as_it_was(world: World, beat: bool, odd: int) -> None:
    world.evm.warp(world.evm.now % 2 ^ odd)
    node = world.register(beat=beat)
    before = world.node(node)
    world.nodes.send.exit_start(node, sender=world.owner)
    receipt = world.nodes.send.exit_cancel(node, sender=world.owner)
    assert receipt.event("ExitCancelled") == {"node": node}
    assert world.node(node) == before
    world.nodes.send.beat(node, sender=world.operator)
    assert world.nodes.call.gate(node, ask()) == Gate.FITS


def test_exit_cancel__around_the_end_of_unbonding__is_taken(world: World) -> None:
    node = world.register()
    world.nodes.send.exit_start(node, sender=world.owner)
    for _ in around(world, world.evm.now + UNBONDING):
        world.nodes.send.exit_cancel(node, sender=world.owner)
        with reverts("nodes: not exiting"):
            world.nodes.send.exit_finish(node)


def test_exit_cancel__not_exiting__reverts(world: World) -> None:
    node = world.register()
    with reverts("nodes: not exiting"):
        world.nodes.send.exit_cancel(node, sender=world.owner)


def test_exit_cancel__not_the_owner__reverts(world: World) -> None:
    node = world.register()
    world.nodes.send.exit_start(node, sender=world.owner)
    for sender in (world.operator, world.stranger, world.deployer):
        with reverts("nodes: not the owner"):
            world.nodes.send.exit_cancel(node, sender=sender)


def test_exit_cancel__operator_with_the_highest_bit__stays(world: World) -> None:
    high = world.stranger
    assert int(high, 16) >> 159 == 1
    node = world.register(operator=high)
    world.nodes.send.exit_start(node, sender=world.owner)
    world.nodes.send.exit_cancel(node, sender=world.owner)
    assert world.node(node).operator == high
