"""NodeRegistry.submitted: the slot is free, the bond stays, the node has beaten."""

from __future__ import annotations

from dataclasses import replace

from hearth.protocol.types import NodeFlag
from tests.kit.evm import reverts
from tests.kit.steps import engage, from_jobs, node_state
from tests.kit.world import DEAD_AFTER, World


def test_submitted__default__frees_the_slot_and_beats(seated: World) -> None:
    node = seated.register()
    engage(seated, node)
    before = node_state(seated, node)
    seated.evm.warp(60)
    assert from_jobs(seated, "submitted", node, seated.operator).logs == ()
    assert node_state(seated, node) == replace(before, busy=0, beat=seated.evm.now)


def test_submitted__lapsed_node__clears_the_mark(seated: World) -> None:
    node = seated.register()
    engage(seated, node)
    seated.evm.warp(DEAD_AFTER)
    seated.nodes.send.check_liveness([node], seated.keeper)
    from_jobs(seated, "submitted", node, seated.operator)
    assert node_state(seated, node).status == NodeFlag(0)


def test_submitted__not_the_operator__reverts(seated: World) -> None:
    node = seated.register()
    engage(seated, node)
    for operator in (seated.owner, seated.stranger):
        with reverts("nodes: not the operator"):
            from_jobs(seated, "submitted", node, operator)


def test_submitted__not_the_job_registry__reverts(seated: World) -> None:
    node = seated.register()
    engage(seated, node)
    for sender in (seated.operator, seated.owner, seated.deployer):
        with reverts("nodes: not the job registry"):
            seated.nodes.send.submitted(node, seated.operator, sender=sender)
