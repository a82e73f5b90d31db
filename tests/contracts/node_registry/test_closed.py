"""NodeRegistry.closed: a cancelled lease ran out; slot and bond are free, the owner is named."""

from __future__ import annotations

from dataclasses import replace

from tests.kit.evm import reverts
from tests.kit.steps import BOND, engage, from_jobs, node_state
from tests.kit.world import World


def test_closed__default__frees_slot_and_bond_and_names_the_owner(seated: World) -> None:
    node = seated.register()
    engage(seated, node)
    engage(seated, node, bond=9)
    before = node_state(seated, node)
    seated.evm.warp(60)
    receipt = from_jobs(seated, "closed", node, BOND)
    assert receipt.value == seated.owner and receipt.logs == ()
    assert node_state(seated, node) == replace(before, busy=1, bond=9)


def test_closed__not_the_job_registry__reverts(seated: World) -> None:
    node = seated.register()
    engage(seated, node)
    for sender in (seated.operator, seated.owner, seated.deployer):
        with reverts("nodes: not the job registry"):
            seated.nodes.send.closed(node, BOND, sender=sender)
