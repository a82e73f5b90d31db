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


@pytest.mark.parametrize(
    ("fee", "weight", "sixteenths"),
    [
        (FEE_REFERENCE // 65, ONE // 65, 0),
        (FEE_REFERENCE // 64, ONE // 64, 1),
        (FEE_REFERENCE // 2, ONE // 2, 32),
        (FEE_REFERENCE - 1, ONE - 1, 63),
        (FEE_REFERENCE, ONE, 64),
        (100 * FEE_REFERENCE, ONE, 64),
    ],
)
def test_settled__accused__is_observed_as_a_failure_of_the_fees_weight(
    seated: World, fee: int, weight: int, sixteenths: int
) -> None:
    node, accused = _lease(seated), seated.register()
    before = node_state(seated, accused)
    from_jobs(seated, "settled", node, BOND, True, fee, accused)
    assert node_state(seated, accused) == replace(before, s=weight, cusum=sixteenths, rep_time=seated.evm.now)
    assert (node_state(seated, node).r, node_state(seated, node).s) == (weight, 0)


def test_settled__no_fee__accuses_nobody(seated: World) -> None:
    node, accused = _lease(seated), seated.register()
    before = node_state(seated, accused)
    from_jobs(seated, "settled", node, BOND, True, 0, accused)
    assert node_state(seated, accused) == before


def test_settled__small_accusations__add_up_to_what_they_weigh(seated: World) -> None:
    accused = seated.register()
    fee = FEE_REFERENCE * 3 // 1_000
    for _ in range(40):
        from_jobs(seated, "settled", _lease(seated), BOND, True, fee, accused)
    found = node_state(seated, accused)
    assert found.s == 40 * (ONE * 3 // 1_000)
    assert found.cusum == found.s * 64 // ONE == 7, "0.12 of a failure"


def test_settled__third_accusation__quarantines_the_accused(seated: World) -> None:
    accused = seated.register()
    receipts = [from_jobs(seated, "settled", _lease(seated), BOND, True, FEE_REFERENCE, accused) for _ in range(3)]
    assert [len(receipt.events("Quarantined")) for receipt in receipts] == [0, 0, 1]
    until = seated.evm.now + 3_600
    assert receipts[2].event("Quarantined") == {"node": accused, "until": until}
    assert (
        node_state(seated, accused).quarantine,
        node_state(seated, accused).cusum,
        node_state(seated, accused).trips,
    ) == (until, 128, 1)


@pytest.mark.parametrize(("fee", "left"), [(FEE_REFERENCE // 17, 64), (FEE_REFERENCE // 16, 63), (FEE_REFERENCE, 48)])
def test_settled__success__heals_by_the_sixteenths_of_its_fee(seated: World, fee: int, left: int) -> None:
    node, other = _lease(seated), _lease(seated)
    from_jobs(seated, "settled", other, BOND, True, FEE_REFERENCE, node)
    from_jobs(seated, "settled", node, BOND, True, fee, 0)
    assert node_state(seated, node).cusum == left


def test_settled__32_full_successes__take_one_off_trips(seated: World) -> None:
    node = seated.register(slots=63)
    for _ in range(33):
        engage(seated, node)
        from_jobs(seated, "submitted", node, seated.operator)
    for _ in range(3):
        from_jobs(seated, "settled", _lease(seated), BOND, True, FEE_REFERENCE, node)
    trips = []
    for fee in (FEE_REFERENCE - 1, *[FEE_REFERENCE] * 32):
        from_jobs(seated, "settled", node, BOND, True, fee, 0)
        trips.append((node_state(seated, node).trips, node_state(seated, node).count))
    assert trips == [(1, 0), *((1, number) for number in range(1, 32)), (0, 0)], (
        "and less than a full one does not count"
    )


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
