"""Steward.pause and drop_previous_policy: at once, by council or guardian, as seldom as the registries let it."""

from __future__ import annotations

import pytest

from hearth.protocol import words
from tests.kit.evm import reverts
from tests.kit.steward import NEW_POLICY, Op, Stewarded
from tests.kit.world import DAY, POLICY


@pytest.mark.parametrize("seat", ["council", "guardian"])
@pytest.mark.parametrize(("posts", "registrations"), [(True, False), (False, True), (True, True)])
def test_pause__what_is_named__stops_for_a_week(
    stewarded: Stewarded, seat: str, posts: bool, registrations: bool
) -> None:
    world = stewarded.world
    stewarded.contract.send.pause(posts, registrations, sender=getattr(stewarded, seat))
    until = world.evm.now + 7 * DAY
    paused = (world.rules.call.paused_until(), world.nodes.call.paused_until())
    assert paused == (until if posts else 0, until if registrations else 0)


def test_pause__again__waits_for_thirty_days_whoever_asks(stewarded: Stewarded) -> None:
    stewarded.contract.send.pause(True, True, sender=stewarded.guardian)
    stewarded.world.evm.warp(30 * DAY - 1)
    with reverts("rules: paused lately"):
        stewarded.contract.send.pause(True, False, sender=stewarded.council)
    with reverts("nodes: paused lately"):
        stewarded.contract.send.pause(False, True, sender=stewarded.council)
    stewarded.world.evm.warp(1)
    stewarded.contract.send.pause(True, True, sender=stewarded.council)


def test_pause__one_of_both_refused__pauses_neither(stewarded: Stewarded) -> None:
    stewarded.contract.send.pause(False, True, sender=stewarded.council)
    with reverts("nodes: paused lately"):
        stewarded.contract.send.pause(True, True, sender=stewarded.council)
    assert stewarded.world.rules.call.paused_until() == 0


def test_pause__nothing_named__reverts(stewarded: Stewarded) -> None:
    with reverts("steward: nothing named"):
        stewarded.contract.send.pause(False, False, sender=stewarded.council)


def test_pause__anybody_else__reverts(stewarded: Stewarded) -> None:
    with reverts("steward: not council or guardian"):
        stewarded.contract.send.pause(True, True, sender=stewarded.world.stranger)


@pytest.mark.parametrize("seat", ["council", "guardian"])
def test_drop_previous_policy__after_a_change__ends_the_old_one(stewarded: Stewarded, seat: str) -> None:
    world = stewarded.world
    stewarded.change(Op.POLICY, NEW_POLICY)
    world.post()  # the old one, for a day more
    stewarded.contract.send.drop_previous_policy(sender=getattr(stewarded, seat))
    with reverts("jobs: policy not current"):
        world.post(policy=words.pack_policy(POLICY))


def test_drop_previous_policy__anybody_else__reverts(stewarded: Stewarded) -> None:
    with reverts("steward: not council or guardian"):
        stewarded.contract.send.drop_previous_policy(sender=stewarded.world.stranger)
