"""JobRegistry.pause: posts stop for 7 days, nothing else does (the pause's end: test_post)."""

from __future__ import annotations

from hearth.protocol import words
from tests.kit.evm import reverts
from tests.kit.steps import LEASE
from tests.kit.world import DAY, DEAD, POLICY, World

NOW = words.pack_policy(POLICY)


def test_pause__governor__holds_the_policy_back(world: World) -> None:
    receipt = world.jobs.send.pause()
    until = world.evm.now + 7 * DAY
    assert receipt.event("Paused") == {"until": until}
    assert tuple(world.jobs.call.policies()) == (0, NOW, 0, 0, until)
    assert world.jobs.call.paused_until() == until


def test_pause__again__runs_from_the_last_and_keeps_the_policy(world: World) -> None:
    world.jobs.send.pause()
    world.evm.warp(DAY)
    world.jobs.send.pause()
    assert tuple(world.jobs.call.policies()) == (0, NOW, 0, 0, world.evm.now + 7 * DAY)
    world.evm.warp(7 * DAY)
    world.post()


def test_pause__over_and_again__holds_it_back_again(world: World) -> None:
    world.jobs.send.pause()
    world.evm.warp(7 * DAY)
    world.post()
    world.jobs.send.pause()
    with reverts("jobs: paused"):
        world.post()


def test_pause__everything_but_post__goes_on(market: World) -> None:
    node, other = market.register(), market.register()
    first, second, third, fourth = (market.post(match_window=w) for w in (0, 30, 0, 30))
    market.jobs.send.pause()
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
    assert [market.locked(market.id_of(terms)) == 0 for terms in (first, second, fourth)] == [True] * 3


def test_pause__not_the_governor__reverts(world: World) -> None:
    for sender in (world.owner, world.submitter, world.stranger):
        with reverts("jobs: not the governor"):
            world.jobs.send.pause(sender=sender)
