"""Lens.overview: the market as a whole, each part as its own contract says it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth.protocol import words
from tests.kit.evm import CHAIN_ID, NATIVE
from tests.kit.scripted import ScriptedMarket
from tests.kit.steps import submitted
from tests.kit.world import DAY, MINIMUM_STAKE, POLICY, World

NOW = words.pack_policy(POLICY)
NEWER = words.pack_policy(replace(POLICY, fee_bps=400))


def _overview(world: World) -> dict[str, Any]:
    """Return what Lens says, once each field was compared with the contract whose it is."""
    found = world.lens.call.overview()
    current, held, previous, until, paused = world.rules.call.policies()
    asset = world.escrow.call.ASSET()
    balance = world.token.call.balanceOf(world.escrow) if world.token else world.evm.balance(world.escrow)
    assert found._asdict() == {
        "chain_id": CHAIN_ID,
        "number": world.evm.block,
        "time": world.evm.now,
        "asset": asset,
        "held": balance,
        "tracked": world.escrow.call.tracked(),
        "posted": world.jobs.call.posted(),
        "totals": world.nodes.call.totals(),
        "policy": current or held,
        "previous_policy": previous,
        "previous_until": until,
        "posts_paused_until": paused,
        "registrations_paused_until": world.nodes.call.paused_until(),
        "minimum_stake": world.nodes.call.minimum_stake(),
    }
    return dict(found._asdict())


def test_overview__fresh__is_empty_but_for_its_parameters(market: World) -> None:
    found = _overview(market)
    assert found["asset"] == (market.token.address if market.token else NATIVE)
    assert (found["held"], found["tracked"], found["posted"]) == (0, 0, 0)
    assert words.unpack(words.TOTALS, found["totals"])["next_id"] == 1
    assert (found["policy"], found["previous_policy"], found["previous_until"]) == (NOW, 0, 0)
    assert found["posts_paused_until"] == found["registrations_paused_until"] == 0
    assert found["minimum_stake"] == MINIMUM_STAKE


def test_overview__jobs_and_nodes__are_counted_and_their_money_is_there(market: World) -> None:
    terms, node = submitted(market)
    market.post()
    locked = market.locked(terms.submitter) + market.staked(node)
    found = _overview(market)
    assert found["held"] == locked > 0 and found["tracked"] == (locked if market.token else 0)
    end = words.unpack_posted(found["posted"])
    assert (end.count, end.block) == (2, market.evm.block)
    totals = words.unpack(words.TOTALS, found["totals"])
    assert (totals["next_id"], totals["total"]) == (2, market.node(node).stake)


def test_overview__money_that_nobody_locked__is_held_and_not_tracked(market: World) -> None:
    market.post()
    before = _overview(market)
    with market.evm.isolated():
        if market.token:
            market.token.send.mint(market.escrow, 7)
        else:
            market.evm.set_balance(market.escrow, before["held"] + 7)
        after = _overview(market)
    assert (after["held"], after["tracked"]) == (before["held"] + 7, before["tracked"])


def test_overview__posts_paused__still_names_the_parameters(world: World) -> None:
    world.rules.send.pause()
    until = world.evm.now + 7 * DAY
    for second in (world.evm.now, until - 1, until, until + 1):
        world.evm.at(second)
        found = _overview(world)
        assert (found["policy"], found["posts_paused_until"], found["registrations_paused_until"]) == (NOW, until, 0)


def test_overview__registrations_paused__says_until_when(world: World) -> None:
    world.nodes.send.pause()
    found = _overview(world)
    assert (found["registrations_paused_until"], found["posts_paused_until"]) == (world.evm.now + 7 * DAY, 0)


def test_overview__policy_replaced__names_the_previous_and_its_end(world: World) -> None:
    world.rules.send.set_policy(NEWER)
    until = world.evm.now + DAY
    found = _overview(world)
    assert (found["policy"], found["previous_policy"], found["previous_until"]) == (NEWER, NOW, until)
    world.rules.send.drop_previous_policy()
    assert _overview(world)["previous_until"] == 0


def test_overview__minimum_stake_raised__is_that_of_new_registrations(world: World) -> None:
    world.nodes.send.set_minimum_stake(2 * MINIMUM_STAKE)
    assert _overview(world)["minimum_stake"] == 2 * MINIMUM_STAKE


@pytest.mark.parametrize("paused", [False, True])
def test_overview__asked_through_the_library__is_what_its_single_reads_say(market: World, paused: bool) -> None:
    submitted(market)
    market.rules.send.set_policy(NEWER)
    market.nodes.send.pause()
    if paused:
        market.rules.send.pause()
    place = ScriptedMarket()
    for contract, target, name in (
        ("Lens", market.lens, "overview"),
        ("Rules", market.rules, "policies"),
        ("NodeRegistry", market.nodes, "totals"),
        ("Escrow", market.escrow, "tracked"),
    ):
        place.on(contract, name, lambda call, block, target=target: market.evm.raw_call(target, call.data))  # type: ignore[misc]
    found = place.market.overview()
    assert (found.chain_id, found.number, found.time) == (CHAIN_ID, market.evm.block, market.evm.now)
    assert (found.totals, found.policies) == (place.market.totals(), place.market.policies())
    assert found.policies.word == NEWER and found.policies.previous == NOW
    assert found.tracked == place.market.tracked() and found.held > 0
    assert (found.jobs, found.last_post) == (1, words.unpack_posted(market.jobs.call.posted()).block)
    assert found.asset == (market.token.address if market.token else NATIVE).lower()
    assert found.registrations_paused_until == market.nodes.call.paused_until()
    assert found.minimum_stake == MINIMUM_STAKE
