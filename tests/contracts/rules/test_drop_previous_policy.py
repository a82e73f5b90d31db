"""Rules.drop_previous_policy: the 24 hours of a replaced policy end now."""

from __future__ import annotations

from dataclasses import replace

from hearth.protocol import words
from tests.kit.evm import reverts
from tests.kit.world import POLICY, World

NEWER = words.pack_policy(replace(POLICY, fee_bps=400))


def test_drop_previous_policy__after_a_change__refuses_the_old_one(world: World) -> None:
    world.rules.send.set_policy(NEWER)
    world.post()
    receipt = world.rules.send.drop_previous_policy()
    old = words.pack_policy(POLICY)
    assert receipt.event("PolicyChanged") == {"policy": NEWER, "previous": old, "until": 0}
    assert list(world.rules.call.policies()) == [NEWER, 0, old, 0, 0]
    with reverts("jobs: policy not current"):
        world.post()
    world.post(policy=NEWER)


def test_drop_previous_policy__jobs_posted_before__go_on(world: World) -> None:
    node, terms = world.register(), world.post()
    world.rules.send.set_policy(NEWER)
    world.rules.send.drop_previous_policy()
    world.claim(terms, node)


def test_drop_previous_policy__not_the_governor__reverts(world: World) -> None:
    for sender in (world.owner, world.submitter, world.stranger):
        with reverts("rules: not the governor"):
            world.rules.send.drop_previous_policy(sender=sender)
