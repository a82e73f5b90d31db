"""NodeRegistry.declined: slot and bond are free, nothing else moves."""

from __future__ import annotations

from dataclasses import replace

from tests.contracts.steps import BOND, engage, from_jobs, hot
from tests.evm import reverts
from tests.world import World


def test_declined__default__frees_slot_and_bond_and_does_not_beat(world: World) -> None:
    node = world.register()
    engage(world, node)
    engage(world, node, bond=9)
    before = hot(world, node)
    world.evm.warp(60)
    assert from_jobs(world, "declined", node, world.operator, BOND).logs == ()
    assert hot(world, node) == replace(before, busy=1, bond=9)


def test_declined__not_the_operator__reverts(world: World) -> None:
    node = world.register()
    engage(world, node)
    for operator in (world.owner, world.stranger):
        with reverts("nodes: not the operator"):
            from_jobs(world, "declined", node, operator, BOND)


def test_declined__not_the_job_registry__reverts(world: World) -> None:
    node = world.register()
    engage(world, node)
    for sender in (world.operator, world.owner, world.deployer):
        with reverts("nodes: not the job registry"):
            world.nodes.send.declined(node, world.operator, BOND, sender=sender)
