"""NodeRegistry.submitted: the slot is free, the bond stays, the node has beaten."""

from __future__ import annotations

from dataclasses import replace

from hearth.types import HotStatus
from tests.contracts.steps import engage, from_jobs, hot
from tests.evm import Reverted, reverts
from tests.world import DEAD_AFTER, World


def test_submitted__default__frees_the_slot_and_beats(world: World) -> None:
    node = world.register()
    engage(world, node)
    before = hot(world, node)
    world.evm.warp(60)
    assert from_jobs(world, "submitted", node, world.operator).logs == ()
    assert hot(world, node) == replace(before, busy=0, beat=world.evm.now)


def test_submitted__lapsed_node__clears_the_mark(world: World) -> None:
    node = world.register()
    engage(world, node)
    world.evm.warp(DEAD_AFTER)
    world.nodes.send.check_liveness([node], world.keeper)
    from_jobs(world, "submitted", node, world.operator)
    assert hot(world, node).status == HotStatus(0)


def test_submitted__not_the_operator__reverts(world: World) -> None:
    node = world.register()
    engage(world, node)
    for operator in (world.owner, world.stranger):
        with reverts("nodes: not the operator"):
            from_jobs(world, "submitted", node, operator)


def test_submitted__not_the_job_registry__reverts(world: World) -> None:
    node = world.register()
    engage(world, node)
    for sender in (world.operator, world.owner, world.deployer):
        with reverts("nodes: not the job registry"):
            world.nodes.send.submitted(node, world.operator, sender=sender)


def test_submitted__zero_bond_lease_of_a_new_chain__cannot_go_below_zero(world: World) -> None:
    # JobRegistry never does this; the word cannot wrap even so.
    node = world.register()
    try:
        from_jobs(world, "submitted", node, world.operator)
    except Reverted:
        return
    assert hot(world, node).busy < 63, "the slot count wrapped"
