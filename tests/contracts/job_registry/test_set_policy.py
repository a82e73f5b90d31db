"""JobRegistry.set_policy: bounded parameters of new jobs; the replaced ones are taken for 24 hours (test_post)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth.protocol import words
from tests.kit.evm import reverts
from tests.kit.world import DAY, POLICY, World

NOW = words.pack_policy(POLICY)


def _policy(**changes: Any) -> int:
    return words.pack_policy(replace(POLICY, **changes))


def test_set_policy__in_range__replaces_and_keeps_the_previous(world: World) -> None:
    newer = _policy(fee_bps=400)
    receipt = world.jobs.send.set_policy(newer)
    until = world.evm.now + DAY
    assert receipt.event("PolicyChanged") == {"policy": newer, "previous": NOW, "until": until}
    assert tuple(world.jobs.call.policies()) == (newer, 0, NOW, until, 0)


def test_set_policy__within_a_pause__changes_the_held_one(world: World) -> None:
    world.jobs.send.pause()
    newer = _policy(fee_bps=400)
    receipt = world.jobs.send.set_policy(newer)
    assert receipt.event("PolicyChanged")["previous"] == NOW
    current, held, previous, _, _ = world.jobs.call.policies()
    assert (current, held, previous) == (0, newer, NOW)


@pytest.mark.parametrize(
    "changes",
    [
        dict(version=0),
        dict(version=2),
        dict(fee_bps=1_001),
        dict(fee_bps=1_023),
        dict(fee_bps=299),  # below the audit share
        dict(audit_share_bps=501),
        dict(bond_none_bps=0),
        dict(min_match_window=0),
        dict(min_match_window=301),
        dict(ack_time=1),
        dict(ack_time=601),
        dict(open_claim_after=1),
        dict(open_claim_after=3_601),
        dict(grace_floor=0),
        dict(grace_floor=3_601),
        dict(min_challenge_window=7 * DAY + 1),
    ],
)
def test_set_policy__out_of_range__reverts(world: World, changes: dict[str, int]) -> None:
    with reverts("jobs: policy out of range"):
        world.jobs.send.set_policy(_policy(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        dict(fee_bps=0, audit_share_bps=0),
        dict(fee_bps=1_000),
        dict(fee_bps=300),
        dict(audit_share_bps=500),
        dict(bond_none_bps=1),
        dict(min_match_window=1),
        dict(min_match_window=300),
        dict(ack_time=2),
        dict(ack_time=600),
        dict(open_claim_after=2),
        dict(open_claim_after=3_600),
        dict(grace_floor=1),
        dict(grace_floor=3_600),
        dict(min_challenge_window=7 * DAY),
        dict(cancel_notice=0),
        dict(cancel_notice=4_095),
    ],
)
def test_set_policy__at_the_bounds__is_taken(world: World, changes: dict[str, int]) -> None:
    world.jobs.send.set_policy(_policy(**changes))
    assert world.jobs.call.policies()[0] == _policy(**changes)


def test_set_policy__not_the_governor__reverts(world: World) -> None:
    for sender in (world.owner, world.submitter, world.stranger):
        with reverts("jobs: not the governor"):
            world.jobs.send.set_policy(NOW, sender=sender)
