"""NodeRegistry.beat: the operator's sign of life, cheap and without an event."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.types import Gate, Hot, HotStatus
from tests.contracts.steps import around, ask, engage, from_jobs, hot
from tests.evm import reverts
from tests.world import DEAD_AFTER, World


def test_beat__first__makes_the_node_active(world: World) -> None:
    node = world.register(beat=False)
    assert world.nodes.call.gate(node, ask()) == Gate.NOT_LIVE
    receipt = world.nodes.send.beat(node, sender=world.operator)
    assert receipt.logs == ()
    assert hot(world, node) == Hot(beat=world.evm.now, rep_time=world.evm.now)
    assert world.nodes.call.gate(node, ask()) == Gate.FITS


def test_beat__later__moves_the_beat_alone(world: World) -> None:
    node = world.register()
    engage(world, node)
    from_jobs(world, "settled", node, 0, True, 10**15, 0)
    before = hot(world, node)
    world.evm.warp(100)
    world.nodes.send.beat(node, sender=world.operator)
    assert hot(world, node) == replace(before, beat=world.evm.now)


def test_beat__liveness__lasts_dead_after_seconds(world: World) -> None:
    node = world.register()
    for offset in around(world, world.evm.now + DEAD_AFTER):
        assert world.nodes.call.gate(node, ask()) == (Gate.FITS if offset < 0 else Gate.NOT_LIVE)
        world.nodes.send.beat(node, sender=world.operator)
        assert world.nodes.call.gate(node, ask()) == Gate.FITS


def test_beat__lapsed_node__clears_the_mark(world: World) -> None:
    node = world.register()
    world.evm.warp(DEAD_AFTER)
    world.nodes.send.check_liveness([node], world.keeper)
    assert hot(world, node).status == HotStatus.LAPSED
    world.nodes.send.beat(node, sender=world.operator)
    assert hot(world, node).status == HotStatus(0)


def test_beat__exiting_node__keeps_the_mark(world: World) -> None:
    node = world.register()
    world.nodes.send.exit_start(node, sender=world.owner)
    world.nodes.send.beat(node, sender=world.operator)
    assert hot(world, node).status == HotStatus.EXITING


@pytest.mark.parametrize("beat", [True, False])
def test_beat__not_the_operator__reverts(world: World, beat: bool) -> None:
    node = world.register(beat=beat)
    for sender in (world.owner, world.stranger, world.deployer):
        with reverts("nodes: not the operator"):
            world.nodes.send.beat(node, sender=sender)


def test_beat__unknown_node__reverts(world: World) -> None:
    with reverts("nodes: not the operator"):
        world.nodes.send.beat(0, sender=world.operator)
    with reverts("nodes: not the operator"):
        world.nodes.send.beat(1, sender=world.operator)
