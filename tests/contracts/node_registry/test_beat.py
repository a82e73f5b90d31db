"""NodeRegistry.beat: the operator's sign of life, cheap and without an event."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol.types import Gate, NodeFlag, NodeState
from tests.kit.evm import reverts
from tests.kit.steps import around, ask, engage, from_jobs, node_state
from tests.kit.world import DEAD_AFTER, World


def test_beat__first__makes_the_node_active(seated: World) -> None:
    node = seated.register(beat=False)
    assert seated.nodes.call.gate(node, ask()) == Gate.NOT_LIVE
    receipt = seated.nodes.send.beat(node, sender=seated.operator)
    assert receipt.logs == ()
    assert node_state(seated, node) == NodeState(beat=seated.evm.now, rep_time=seated.evm.now)
    assert seated.nodes.call.gate(node, ask()) == Gate.FITS


def test_beat__later__moves_the_beat_alone(seated: World) -> None:
    node = seated.register()
    engage(seated, node)
    from_jobs(seated, "settled", node, 0, True, 10**15, 0)
    before = node_state(seated, node)
    seated.evm.warp(100)
    seated.nodes.send.beat(node, sender=seated.operator)
    assert node_state(seated, node) == replace(before, beat=seated.evm.now)


def test_beat__liveness__lasts_dead_after_seconds(seated: World) -> None:
    node = seated.register()
    for offset in around(seated, seated.evm.now + DEAD_AFTER):
        assert seated.nodes.call.gate(node, ask()) == (Gate.FITS if offset < 0 else Gate.NOT_LIVE)
        seated.nodes.send.beat(node, sender=seated.operator)
        assert seated.nodes.call.gate(node, ask()) == Gate.FITS


def test_beat__lapsed_node__clears_the_mark(seated: World) -> None:
    node = seated.register()
    seated.evm.warp(DEAD_AFTER)
    seated.nodes.send.check_liveness([node], seated.keeper)
    assert node_state(seated, node).status == NodeFlag.LAPSED
    seated.nodes.send.beat(node, sender=seated.operator)
    assert node_state(seated, node).status == NodeFlag(0)


def test_beat__exiting_node__keeps_the_mark(seated: World) -> None:
    node = seated.register()
    seated.nodes.send.exit_start(node, sender=seated.owner)
    seated.nodes.send.beat(node, sender=seated.operator)
    assert node_state(seated, node).status == NodeFlag.EXITING


@pytest.mark.parametrize("beat", [True, False])
def test_beat__not_the_operator__reverts(seated: World, beat: bool) -> None:
    node = seated.register(beat=beat)
    for sender in (seated.owner, seated.stranger, seated.deployer):
        with reverts("nodes: not the operator"):
            seated.nodes.send.beat(node, sender=sender)


def test_beat__unknown_node__reverts(seated: World) -> None:
    with reverts("nodes: not the operator"):
        seated.nodes.send.beat(0, sender=seated.operator)
    with reverts("nodes: not the operator"):
        seated.nodes.send.beat(1, sender=seated.operator)
