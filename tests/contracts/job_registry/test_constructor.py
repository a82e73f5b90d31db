"""JobRegistry's constructor: what can be read back."""

from __future__ import annotations

from tests.kit.evm import NATIVE, reverts
from tests.kit.world import DEAD_AFTER, ZERO, World


def test_constructor__world__reads_back_every_parameter(market: World) -> None:
    jobs = market.jobs.call
    assert jobs.ESCROW() == market.escrow.address
    assert jobs.NODES() == market.nodes.address
    assert jobs.RULES() == market.rules.address
    assert jobs.ASSET() == (market.token.address if market.token else NATIVE)
    assert jobs.TREASURY() == market.treasury
    assert jobs.DEAD_AFTER() == DEAD_AFTER
    assert jobs.posted() == 0


def test_constructor__treasury_zero__reverts(world: World) -> None:
    with reverts("jobs: treasury zero"):
        world.evm.deploy("JobRegistry", world.escrow, world.nodes, world.rules, ZERO)
