"""NodeRegistry.closed: a cancelled lease ran out; slot and bond are free, the owner is named."""

from __future__ import annotations

from dataclasses import replace

from tests.contracts.steps import BOND, engage, from_jobs, hot
from tests.evm import reverts
from tests.world import World


def test_closed__default__frees_slot_and_bond_and_names_the_owner(world: World) -> None:
    node = world.register()
    engage(world, node)
    engage(world, node, bond=9)
    before = hot(world, node)
    world.evm.warp(60)
    receipt = from_jobs(world, "closed", node, BOND)
    assert receipt.value == world.owner and receipt.logs == ()
    assert hot(world, node) == replace(before, busy=1, bond=9)


def test_closed__not_the_job_registry__reverts(world: World) -> None:
    node = world.register()
    engage(world, node)
    for sender in (world.operator, world.owner, world.deployer):
        with reverts("nodes: not the job registry"):
            world.nodes.send.closed(node, BOND, sender=sender)
