"""Attack 4: leave a job where it is. Time and calls that anyone may make must bring it to an end, from anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.protocol.types import Billing
from tests.attacks.stages import KINDS, LIVE, booked, ended, finish, holding, scene
from tests.kit.evm import START, reverts

# A lease that failed opens its unit again, which then expires.
MOST_CALLS_PER_UNIT = 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", LIVE)
def test_deadline__stranger_alone_at_each_stage__ends_every_unit(stage: str, kind: str) -> None:
    found = scene(stage, kind)
    calls = finish(found)
    assert 1 <= calls <= MOST_CALLS_PER_UNIT * found.terms.leases
    assert ended(found)
    assert booked(found) == holding(found.world, found.world.escrow)


@given(
    stage=st.sampled_from(sorted(LIVE)),
    max_seconds=st.sampled_from([1, 59, 1_000, 86_400, 30 * 86_400]),
    attempts=st.integers(1, 8),
    billing=st.sampled_from([Billing.FIXED, Billing.METERED]),
    keeper_fee=st.integers(10**11, 10**12),
    late=st.sampled_from([0, 1, 299, 86_400, 400 * 86_400]),
)
def test_deadline__any_terms_and_any_delay__ends_every_unit(
    stage: str, max_seconds: int, attempts: int, billing: Billing, keeper_fee: int, late: int
) -> None:
    found = scene(
        stage,
        max_seconds=max_seconds,
        deadline=START + 60 * 86_400,
        max_attempts=attempts,
        billing=billing,
        keeper_fee=keeper_fee,
        stake=10**22,
    )
    found.world.evm.warp(late)
    assert finish(found) <= MOST_CALLS_PER_UNIT * found.terms.leases
    assert ended(found)


@pytest.mark.parametrize("kind", KINDS)
def test_deadline__owner_leaves_for_good__stake_comes_back(kind: str) -> None:
    """A node's money has a way out too: any stranger finishes the exit once no bond is out."""
    found = scene("overdue", kind)
    world = found.world
    world.nodes.send.exit_start(found.node, sender=world.owner)
    exit_at = world.node(found.node).exit_at
    found.to(exit_at)
    with reverts("nodes: bond outstanding"):
        world.nodes.send.exit_finish(found.node, sender=world.stranger)
    finish(found)
    stake = world.staked(found.node)
    before = world.credit(world.owner)
    world.nodes.send.exit_finish(found.node, sender=world.stranger)
    assert world.credit(world.owner) == before + stake
    assert world.staked(found.node) == 0
