"""Rules.pause: posts stop for 7 days, nothing else does (the pause's end: test_post)."""

from __future__ import annotations

from dataclasses import replace

from hearth.protocol import words
from tests.kit.evm import reverts
from tests.kit.steps import LEASE, around
from tests.kit.world import DAY, DEAD, POLICY, World

NOW = words.pack_policy(POLICY)


def test_pause__governor__holds_the_policy_back(world: World) -> None:
    receipt = world.rules.send.pause()
    until = world.evm.now + 7 * DAY
    assert receipt.event("Paused") == {"until": until}
    assert tuple(world.rules.call.policies()) == (0, NOW, 0, 0, until)
    assert world.rules.call.paused_until() == until


def test_pause__again__waits_for_thirty_days_from_the_last(world: World) -> None:
    """A governor who pauses and pauses again would hold the market up for good."""
    world.rules.send.pause()
    for offset in around(world, world.evm.now + 30 * DAY):
        if offset < 0:
            with reverts("rules: paused lately"):
                world.rules.send.pause()
        else:
            world.rules.send.pause()
            with reverts("jobs: paused"):
                world.post(deadline=world.evm.now + DAY)


def test_pause__again_with_another_policy__holds_that_back_again(world: World) -> None:
    newer = words.pack_policy(replace(POLICY, fee_bps=400))
    world.rules.send.pause()
    world.evm.warp(7 * DAY)
    world.rules.send.set_policy(newer)
    world.evm.warp(23 * DAY)
    world.rules.send.pause()
    current, held, _, _, until = world.rules.call.policies()
    assert (current, held, until) == (0, newer, world.evm.now + 7 * DAY)
    world.evm.warp(7 * DAY)
    world.post(policy=newer)


def test_pause__without_a_policy_set_since__keeps_the_held_one(world: World) -> None:
    world.rules.send.pause()
    world.evm.warp(30 * DAY)
    world.post(deadline=world.evm.now + DAY)
    world.rules.send.pause()
    assert tuple(world.rules.call.policies()) == (0, NOW, 0, 0, world.evm.now + 7 * DAY)
    world.evm.warp(7 * DAY)
    world.post()


def test_pause__everything_but_post__goes_on(market: World) -> None:
    node, other = market.register(), market.register()
    first, second, third, fourth = (market.post(match_window=w) for w in (0, 30, 0, 30))
    market.rules.send.pause()
    market.claim(first, node)
    market.propose(second, other)
    market.evm.warp(30)
    market.ack(second)
    market.submit(first)
    market.settle(first)
    market.claim(third, node)
    market.cancel(second)
    market.evm.warp(LEASE)
    market.close(second)
    market.reclaim(third)
    market.cancel(fourth)
    assert market.credit(DEAD) > 0
    assert [market.lock_of(terms) == 0 for terms in (first, second, fourth)] == [True] * 3


def test_pause__not_the_governor__reverts(world: World) -> None:
    for sender in (world.owner, world.submitter, world.stranger):
        with reverts("rules: not the governor"):
            world.rules.send.pause(sender=sender)
