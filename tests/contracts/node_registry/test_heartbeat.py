"""NodeRegistry.heartbeat: one transaction for all nodes of an operator."""

from __future__ import annotations

import pytest

from tests.kit.evm import Reverted, reverts
from tests.kit.steps import node_state
from tests.kit.world import World


def test_heartbeat__own_and_others__beats_the_own_and_skips_the_rest(world: World) -> None:
    mine = [world.register(), world.register(beat=False)]
    other = world.register(operator=world.stranger)
    world.evm.warp(50)
    world.nodes.send.heartbeat([mine[0], other, 0, 99, mine[1]], sender=world.operator)
    assert [node_state(world, node).beat for node in mine] == [world.evm.now] * 2
    assert node_state(world, other).beat == world.evm.now - 50


@pytest.mark.parametrize("nodes", [[], [0], [1], [1, 1, 7]])
def test_heartbeat__none_of_the_callers__reverts(world: World, nodes: list[int]) -> None:
    world.register(operator=world.stranger)
    with reverts("nodes: nothing to do"):
        world.nodes.send.heartbeat(nodes, sender=world.operator)


def test_heartbeat__batch__takes_128_and_no_more(world: World) -> None:
    node = world.register(beat=False)
    world.nodes.send.heartbeat([0] * 127 + [node], sender=world.operator)
    assert node_state(world, node).beat == world.evm.now
    with pytest.raises(Reverted):
        world.nodes.send.heartbeat([node] * 129, sender=world.operator)
