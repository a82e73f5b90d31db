"""NodeRegistry.settled: the bond is free; a success counts by the fee that it paid; who declined before is observed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol.reputation import ONE
from tests.kit.evm import reverts
from tests.kit.steps import BOND, engage, from_jobs, node_state
from tests.kit.world import FEE_REFERENCE, UNBONDING, World


def _lease(seated: World) -> int:
    node = seated.register()
    engage(seated, node)
    from_jobs(seated, "submitted", node, seated.operator)
    return node


def test_settled__ok__frees_the_bond_counts_and_names_the_owner(seated: World) -> None:
    node = _lease(seated)
    before = node_state(seated, node)
    receipt = from_jobs(seated, "settled", node, BOND, True, FEE_REFERENCE, 0)
    assert receipt.value == seated.owner and receipt.logs == ()
    assert node_state(seated, node) == replace(before, bond=0, r=ONE, count=1, rep_time=seated.evm.now)


def test_settled__not_ok__frees_the_bond_alone(seated: World) -> None:
    node = _lease(seated)
    before = node_state(seated, node)
    assert from_jobs(seated, "settled", node, BOND, False, FEE_REFERENCE, 0).value == seated.owner
    assert node_state(seated, node) == replace(before, bond=0)


@pytest.mark.parametrize(
    ("fee", "weight", "count"),
    [
        (0, 0, 0),
        (1, 0, 0),
        (FEE_REFERENCE // 2, ONE // 2, 0),
        (FEE_REFERENCE - 1, ONE - 1, 0),
        (FEE_REFERENCE, ONE, 1),
        (FEE_REFERENCE + 1, ONE, 1),
        (2**80, ONE, 1),
    ],
)
def test_settled__fee__weighs_the_success_up_to_one(seated: World, fee: int, weight: int, count: int) -> None:
    node = _lease(seated)
    from_jobs(seated, "settled", node, BOND, True, fee, 0)
    assert (node_state(seated, node).r, node_state(seated, node).s, node_state(seated, node).count) == (
        weight,
        0,
        count,
    )


def test_settled__accused__is_observed_as_a_full_failure(seated: World) -> None:
    node, accused = _lease(seated), seated.register()
    before = node_state(seated, accused)
    from_jobs(seated, "settled", node, BOND, True, FEE_REFERENCE, accused)
    assert node_state(seated, accused) == replace(before, s=ONE, cusum=4, rep_time=seated.evm.now)
    assert node_state(seated, node).s == 0


def test_settled__third_accusation__quarantines_the_accused(seated: World) -> None:
    accused = seated.register()
    receipts = [from_jobs(seated, "settled", _lease(seated), BOND, True, 0, accused) for _ in range(3)]
    assert [len(receipt.events("Quarantined")) for receipt in receipts] == [0, 0, 1]
    until = seated.evm.now + 3_600
    assert receipts[2].event("Quarantined") == {"node": accused, "until": until}
    assert (
        node_state(seated, accused).quarantine,
        node_state(seated, accused).cusum,
        node_state(seated, accused).trips,
    ) == (until, 8, 1)


def test_settled__accused_has_left__is_no_matter(seated: World) -> None:
    node, accused = _lease(seated), seated.register()
    seated.nodes.send.exit_start(accused, sender=seated.owner)
    seated.evm.warp(UNBONDING)
    seated.nodes.send.exit_finish(accused)
    assert from_jobs(seated, "settled", node, BOND, True, FEE_REFERENCE, accused).value == seated.owner
    assert seated.nodes.call.get(accused).hot == 0


def test_settled__not_the_job_registry__reverts(seated: World) -> None:
    node = _lease(seated)
    for sender in (seated.operator, seated.owner, seated.deployer):
        with reverts("nodes: not the job registry"):
            seated.nodes.send.settled(node, BOND, True, 1, 0, sender=sender)
