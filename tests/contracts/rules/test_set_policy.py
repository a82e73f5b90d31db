"""Rules.set_policy: bounded parameters of new jobs; the replaced ones are taken for 24 hours (test_post)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth.protocol import words
from tests.kit.evm import reverts
from tests.kit.steps import around
from tests.kit.world import DAY, FEE_REFERENCE, POLICY, World

NOW = words.pack_policy(POLICY)


def _policy(**changes: Any) -> int:
    return words.pack_policy(replace(POLICY, **changes))


def test_set_policy__in_range__replaces_and_keeps_the_previous(world: World) -> None:
    newer = _policy(fee_bps=400)
    receipt = world.rules.send.set_policy(newer)
    until = world.evm.now + DAY
    assert receipt.event("PolicyChanged") == {"policy": newer, "previous": NOW, "until": until}
    assert tuple(world.rules.call.policies()) == (newer, 0, NOW, until, 0)


def test_set_policy__another_one__waits_a_day(world: World) -> None:
    """A policy that is another one in every block would keep posts out for ever, which a pause cannot."""
    first, second = _policy(fee_bps=400), _policy(fee_bps=300)
    world.rules.send.set_policy(first)
    for offset in around(world, world.evm.now + DAY):
        if offset < 0:
            world.rules.send.drop_previous_policy()  # which leaves the current one in force
            with reverts("rules: changed lately"):
                world.rules.send.set_policy(second)
            continue
        assert world.rules.send.set_policy(second).event("PolicyChanged")["previous"] == first


def test_set_policy__within_a_pause__changes_the_held_one(world: World) -> None:
    world.rules.send.pause()
    newer = _policy(fee_bps=400)
    receipt = world.rules.send.set_policy(newer)
    assert receipt.event("PolicyChanged")["previous"] == NOW
    current, held, previous, _, _ = world.rules.call.policies()
    assert (current, held, previous) == (0, newer, NOW)


@pytest.mark.parametrize(
    "changes",
    [
        dict(version=0),
        dict(version=2),
        dict(version=129),
        dict(fee_bps=1_001),
        dict(fee_bps=1_023),
        dict(fee_bps=1_001, probation_price=0),
        dict(fee_bps=0),
        dict(fee_bps=9, probation_price=1),
        dict(fee_bps=1_000),  # a job of probation_price would be two full successes
        dict(probation_price=2 * 10**16 + 10**14),
        dict(fee_bps=10, probation_price=1_010 * FEE_REFERENCE),
        dict(min_price=1_001 * FEE_REFERENCE),
        dict(min_keeper_fee=1_001 * FEE_REFERENCE),
        # Codes whose exponent has its highest bit.
        dict(min_price=2 * 10**18),
        dict(min_keeper_fee=2 * 10**18),
        dict(probation_price=2 * 10**18),
        dict(min_keeper_fee=7),
        dict(min_keeper_fee=0),
        dict(min_bond_bps=0),
        # A newcomer's late proof could not be confirmed before it ends unproven.
        dict(fresh_delay=7_201, min_challenge_window=7_200),
        dict(fresh_delay=2**15, min_challenge_window=2**15 - 1),
        dict(fresh_delay=65_535, min_challenge_window=1),
        dict(min_match_window=0),
        dict(min_match_window=301),
        dict(ack_time=1),
        dict(ack_time=601),
        dict(open_claim_after=1),
        dict(open_claim_after=3_601),
        dict(claim_ramp=0),
        dict(claim_ramp=3_601),
        dict(fetch_floor=0),
        dict(fetch_floor=3_601),
        dict(grace_floor=0),
        dict(grace_floor=3_601),
        dict(min_challenge_window=0),
        dict(min_challenge_window=7 * DAY + 1),
    ],
)
def test_set_policy__out_of_range__reverts(world: World, changes: dict[str, int]) -> None:
    with reverts("rules: policy out of range"):
        world.rules.send.set_policy(_policy(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        dict(fee_bps=0, probation_price=0),
        dict(fee_bps=9, probation_price=0),
        dict(fee_bps=10),
        dict(fee_bps=10, probation_price=1_000 * FEE_REFERENCE),
        dict(fee_bps=1_000, probation_price=10 * FEE_REFERENCE),
        dict(probation_price=0),
        dict(probation_price=1),
        dict(min_price=0),
        dict(min_price=1_000 * FEE_REFERENCE),
        dict(min_keeper_fee=8),
        dict(min_keeper_fee=1_000 * FEE_REFERENCE),
        dict(fee_bps=300),
        dict(min_bond_bps=1),
        dict(min_bond_bps=2**15),
        dict(min_match_window=1),
        dict(min_match_window=300),
        dict(ack_time=2),
        dict(ack_time=600),
        dict(open_claim_after=2),
        dict(open_claim_after=3_600),
        dict(claim_ramp=1),
        dict(claim_ramp=3_600),
        dict(fresh_delay=0),
        dict(fresh_delay=65_535, min_challenge_window=65_535),
        dict(fresh_delay=0, min_challenge_window=1),
        dict(fetch_floor=1),
        dict(fetch_floor=3_600),
        dict(grace_floor=1),
        dict(grace_floor=3_600),
        dict(min_challenge_window=1),
        dict(min_challenge_window=7 * DAY),
        dict(cancel_notice=0),
        dict(cancel_notice=4_095),
    ],
)
def test_set_policy__at_the_bounds__is_taken(world: World, changes: dict[str, int]) -> None:
    world.rules.send.set_policy(_policy(**changes))
    assert world.rules.call.policies()[0] == _policy(**changes)


@pytest.mark.parametrize("bit", [74, 81, 230, 245])
def test_set_policy__spare_bit__reverts(world: World, bit: int) -> None:
    with reverts("rules: policy out of range"):
        world.rules.send.set_policy(_policy() | 1 << bit)


def test_set_policy__not_the_governor__reverts(world: World) -> None:
    for sender in (world.owner, world.submitter, world.stranger):
        with reverts("rules: not the governor"):
            world.rules.send.set_policy(NOW, sender=sender)
