"""JobRegistry's constructor: the policy's bounds, and what can be read back."""

from __future__ import annotations

from hearth.protocol import words
from tests.kit.evm import NATIVE, reverts
from tests.kit.world import DEAD_AFTER, POLICY, ZERO, World


def test_constructor__world__reads_back_every_parameter(market: World) -> None:
    jobs = market.jobs.call
    assert jobs.ESCROW() == market.escrow.address
    assert jobs.NODES() == market.nodes.address
    assert jobs.ASSET() == (market.token.address if market.token else NATIVE)
    assert jobs.TREASURY() == market.treasury
    assert jobs.DEAD_AFTER() == DEAD_AFTER
    assert (jobs.governor(), jobs.offered_governor(), jobs.paused_until()) == (market.deployer, ZERO, 0)
    assert tuple(jobs.policies()) == (words.pack_policy(POLICY), 0, 0, 0, 0)


def test_constructor__treasury_zero__reverts(world: World) -> None:
    with reverts("jobs: treasury zero"):
        world.evm.deploy("JobRegistry", world.escrow, world.nodes, ZERO, words.pack_policy(POLICY))


def test_constructor__policy_out_of_range__reverts(world: World) -> None:
    with reverts("jobs: policy out of range"):
        world.evm.deploy("JobRegistry", world.escrow, world.nodes, world.treasury, 0)
