"""NodeRegistry.settled: the bond is free; a success counts by the fee that it paid; who declined before is observed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import ONE
from tests.contracts.steps import BOND, engage, from_jobs, hot
from tests.evm import reverts
from tests.world import FEE_REFERENCE, UNBONDING, World


def _lease(world: World) -> int:
    node = world.register()
    engage(world, node)
    from_jobs(world, "submitted", node, world.operator)
    return node


def test_settled__ok__frees_the_bond_counts_and_names_the_owner(world: World) -> None:
    node = _lease(world)
    before = hot(world, node)
    receipt = from_jobs(world, "settled", node, BOND, True, FEE_REFERENCE, 0)
    assert receipt.value == world.owner and receipt.logs == ()
    assert hot(world, node) == replace(before, bond=0, r=ONE, count=1, rep_time=world.evm.now)


def test_settled__not_ok__frees_the_bond_alone(world: World) -> None:
    node = _lease(world)
    before = hot(world, node)
    assert from_jobs(world, "settled", node, BOND, False, FEE_REFERENCE, 0).value == world.owner
    assert hot(world, node) == replace(before, bond=0)


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
def test_settled__fee__weighs_the_success_up_to_one(world: World, fee: int, weight: int, count: int) -> None:
    node = _lease(world)
    from_jobs(world, "settled", node, BOND, True, fee, 0)
    assert (hot(world, node).r, hot(world, node).s, hot(world, node).count) == (weight, 0, count)


def test_settled__accused__is_observed_as_a_full_failure(world: World) -> None:
    node, accused = _lease(world), world.register()
    before = hot(world, accused)
    from_jobs(world, "settled", node, BOND, True, FEE_REFERENCE, accused)
    assert hot(world, accused) == replace(before, s=ONE, cusum=4, rep_time=world.evm.now)
    assert hot(world, node).s == 0


def test_settled__third_accusation__quarantines_the_accused(world: World) -> None:
    accused = world.register()
    receipts = [from_jobs(world, "settled", _lease(world), BOND, True, 0, accused) for _ in range(3)]
    assert [len(receipt.events("Quarantined")) for receipt in receipts] == [0, 0, 1]
    until = world.evm.now + 3_600
    assert receipts[2].event("Quarantined") == {"node": accused, "until": until}
    assert (hot(world, accused).quarantine, hot(world, accused).cusum, hot(world, accused).trips) == (until, 8, 1)


def test_settled__accused_has_left__is_no_matter(world: World) -> None:
    node, accused = _lease(world), world.register()
    world.nodes.send.exit_start(accused, sender=world.owner)
    world.evm.warp(UNBONDING)
    world.nodes.send.exit_finish(accused)
    assert from_jobs(world, "settled", node, BOND, True, FEE_REFERENCE, accused).value == world.owner
    assert world.nodes.call.get(accused).hot == 0


def test_settled__not_the_job_registry__reverts(world: World) -> None:
    node = _lease(world)
    for sender in (world.operator, world.owner, world.deployer):
        with reverts("nodes: not the job registry"):
            world.nodes.send.settled(node, BOND, True, 1, 0, sender=sender)
