"""NodeRegistry.declined: slot and bond are free, nothing else moves."""

from __future__ import annotations

from dataclasses import replace

from tests.kit.evm import reverts
from tests.kit.steps import BOND, credited, engage, from_jobs, node_state
from tests.kit.world import ETHER, ZERO, World


def test_declined__default__frees_slot_and_bond_and_does_not_beat(seated: World) -> None:
    node = seated.register()
    engage(seated, node)
    engage(seated, node, bond=9)
    before = node_state(seated, node)
    seated.evm.warp(60)
    assert from_jobs(seated, "declined", node, seated.operator, BOND, 0).logs == ()
    assert node_state(seated, node) == replace(before, busy=1, bond=9)


def test_declined__burn__leaves_the_stake_and_no_failure(seated_market: World) -> None:
    node = seated_market.register()
    engage(seated_market, node)
    with credited(seated_market) as got:
        receipt = from_jobs(seated_market, "declined", node, seated_market.operator, BOND, 7)
    assert got == {"dead": 7}
    assert receipt.event("Slashed") == {"node": node, "payee": ZERO, "reward": 0, "burnt": 7}
    assert seated_market.node(node).stake == seated_market.staked(node) == 100 * ETHER - 7
    assert (node_state(seated_market, node).s, node_state(seated_market, node).bond) == (0, 0)


def test_declined__not_the_operator__reverts(seated: World) -> None:
    node = seated.register()
    engage(seated, node)
    for operator in (seated.owner, seated.stranger):
        with reverts("nodes: not the operator"):
            from_jobs(seated, "declined", node, operator, BOND, 0)


def test_declined__not_the_job_registry__reverts(seated: World) -> None:
    node = seated.register()
    engage(seated, node)
    for sender in (seated.operator, seated.owner, seated.deployer):
        with reverts("nodes: not the job registry"):
            seated.nodes.send.declined(node, seated.operator, BOND, 0, sender=sender)
