"""Attack: nodes and a keeper in league who give leases back for nothing, to be paid tips and the ends of units.

A match's tip is burnt from the bond of the node that ends its lease without a result; the ends of units pay once.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.types import SENTINEL, State, TermsFlag
from tests.attacks.stages import KINDS, market
from tests.kit import world as w
from tests.kit.evm import reverts

UNITS = 12
WINDOW = 12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", [0, WINDOW])
@pytest.mark.parametrize("late", [0, 600])
def test_expire__units_claimed_and_given_back_in_the_last_second__earn_no_more_than_the_array_untouched(
    kind: str, window: int, late: int
) -> None:
    """Profit of a node with one slot and its keeper, who had a fourth to all of a keeper fee for each unit: none."""
    world = market(kind, exact_gas=True)
    node = world.register(slots=1)
    terms = world.terms(units=UNITS, match_window=window)
    lease = formulas.lease_seconds(terms) + formulas.grace(terms)
    terms = replace(terms, deadline=world.evm.now + 2_000 + lease)
    world.post(terms)
    due = formulas.expirable_from(terms)
    world.evm.at(due - 1)
    world.nodes.send.beat(node, sender=world.operator)
    before, stake, gas = world.credit(world.keeper), world.node(node).stake, 0
    for index in range(UNITS):
        world.evm.at(due - 1)
        gas += world.claim(terms, node, SENTINEL).gas_used + world.decline(terms, index).gas_used
    for index in range(UNITS):
        world.evm.at(due + late)
        gas += world.expire(terms, index).gas_used
        assert world.state(terms, index) == State.EXPIRED
    found, once = world.credit(world.keeper) - before, formulas.expire_reward(terms, None, late)
    state = world.node(node).state
    assert (world.node(node).stake, state.s, state.cusum, state.bond) == (stake, 0, 0, 0), "it cost the node something"
    print(
        f"{found / terms.keeper_fee} keeper fees of {UNITS}, {gas // UNITS} gas a unit: pays below {found // gas} wei"
    )
    assert found <= once


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["decline", "give_up", "reclaim"])
def test_ack__two_nodes_that_give_back_what_they_won__pay_for_every_tip(kind: str, ending: str) -> None:
    """Profit of two nodes and their keeper, who had half a keeper fee an attempt: none, however they end the leases."""
    world = market(kind, exact_gas=True)
    nodes = [world.register(slots=1, ask=1) for _ in range(2)]
    units = UNITS if ending == "decline" else 3  # failures bring quarantines of days
    terms = world.terms(units=units, match_window=WINDOW, deadline=world.evm.now + 100 * w.DAY)
    world.post(terms)
    before, stakes, gas = world.credit(world.keeper), sum(world.node(node).stake for node in nodes), 0
    for index in range(units):
        for attempt in range(terms.max_attempts):
            node = nodes[attempt % 2]
            world.evm.at(max(world.evm.now, world.node(node).state.quarantine))
            world.nodes.send.beat(node, sender=world.operator)
            gas += world.propose(terms, node, index).gas_used
            world.evm.warp(WINDOW)
            gas += world.ack(terms, index).gas_used
            if ending == "reclaim":
                world.evm.warp(w.DEAD_AFTER)
            gas += getattr(world, ending)(terms, index).gas_used
        assert world.state(terms, index) == State.REFUNDED
    tips = units * terms.max_attempts * formulas.tip(terms)
    found = world.credit(world.keeper) - before
    lost = stakes - sum(world.node(node).stake for node in nodes)
    print(f"{found / terms.keeper_fee} keeper fees, {lost / terms.keeper_fee} lost, {gas // units} gas a unit")
    assert found >= tips, "the keeper is paid whatever its nodes do"
    assert found - lost <= 0, "the league earns nothing"


@pytest.mark.parametrize("kind", KINDS)
def test_reclaim__leases_that_a_match_began_lost_in_an_hour_of_losses__pay_for_their_tips(kind: str) -> None:
    """An outage, or a slash of their own, fills the hour's ration: what a league then loses is still no less."""
    world = market(kind, exact_gas=True)
    nodes = [world.register(slots=1, ask=1) for _ in range(2)]
    large = world.register(stake=300 * w.ETHER, slots=1)
    filler = world.post(ceiling=320 * 10**6 * w.ETHER // 1_000, flags=TermsFlag.NEWCOMERS)
    matched = [world.post(match_window=WINDOW) for _ in nodes]
    for terms, node in zip(matched, nodes, strict=True):
        world.propose(terms, node)
    world.evm.warp(WINDOW)
    world.evm.at((world.evm.now // 3_600 + 1) * 3_600)
    before, stakes = world.credit(world.keeper), sum(world.node(node).stake for node in nodes)
    again = [world.post(match_window=WINDOW) for _ in nodes]
    for node in (*nodes, large):
        world.nodes.send.beat(node, sender=world.operator)
    for terms, node in zip(again, nodes, strict=True):
        world.propose(terms, node)
    world.claim(filler, large)
    world.evm.warp(WINDOW)
    for terms in again:
        world.ack(terms)
    world.evm.warp(w.DEAD_AFTER)
    world.reclaim(filler)
    assert words.unpack(words.TOTALS, world.nodes.call.totals())["burnt"] >= 5 * w.ETHER, "the ration is full"
    reclaimed = world.credit(world.keeper)
    for terms in again:
        world.reclaim(terms)
    rewards = world.credit(world.keeper) - reclaimed
    tips = len(again) * formulas.tip(again[0])
    lost = stakes - sum(world.node(node).stake for node in nodes)
    assert world.credit(world.keeper) - before >= tips
    assert lost - rewards >= tips, "the league earns nothing"


@pytest.mark.parametrize("seconds", [10, 60, 300])
@pytest.mark.parametrize("kind", KINDS)
def test_decline__lease_that_runs_for_nothing__is_free_for_nobody_who_is_awake(kind: str, seconds: int) -> None:
    """Whoever saw at the last second that it will be late declined, and the slash was for those who sleep."""
    world = market(kind)
    node = world.register()
    terms = world.terms(max_seconds=seconds, flags=TermsFlag.NEWCOMERS)
    world.post(terms)
    world.claim(terms, node)
    unit, stake = world.unit(terms), world.node(node).stake
    world.evm.at(min(unit.mark, formulas.reclaimable_from(unit, unit.started, w.DEAD_AFTER)) - 1)
    with reverts("jobs: too late to decline"):
        world.decline(terms)
    with world.evm.isolated():
        world.give_up(terms)
        given_up = stake - world.node(node).stake
    owner = world.credit(world.owner)
    world.evm.warp(1)
    for overdue in (0, 200, 600):
        with world.evm.isolated():
            world.evm.warp(overdue)
            world.reclaim(terms, payee=world.owner)  # the node's owner reclaims from himself
            reclaimed = stake - world.node(node).stake - (world.credit(world.owner) - owner)
        assert 0 < given_up <= reclaimed, "to give up never costs more than to wait and reclaim oneself"


@pytest.mark.parametrize("seconds", [10, 60, 300])
def test_decline__inputs_that_a_submitter_withholds__cost_a_claimer_nothing(seconds: int) -> None:
    """A poison job, claimed: the window is long enough to find out, and a decline in it costs gas alone."""
    world = market("native")
    node = world.register()
    terms = world.post(max_seconds=seconds)
    world.claim(terms, node)
    before = world.node(node)
    world.evm.warp(w.POLICY.fetch_floor - 1)
    world.decline(terms)
    after = world.node(node)
    assert (after.stake, after.state.s, after.state.cusum) == (before.stake, 0, 0)
