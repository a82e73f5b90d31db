"""JobRegistry.settle of a unit whose terms ask for a proof: what nobody has proven in time is refunded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.reputation import ONE
from hearth.protocol.types import NodeId, State, Terms, TermsFlag, Verdict
from tests.kit.evm import reverts
from tests.kit.steps import (
    BOND,
    BUDGET,
    FEE,
    SETTLE_PAY,
    SLASH,
    STALE,
    WINDOW,
    around,
    credited,
    judged,
    node_state,
    proven,
)
from tests.kit.world import DAY, DEAD_AFTER, ETHER, FEE_REFERENCE, MINIMUM_STAKE, World

PROVEN = TermsFlag.NEWCOMERS | TermsFlag.PROVEN


def _due(world: World, **overrides: Any) -> tuple[Terms, NodeId]:
    """Submit a result and let its proof be missing at the first second at which that counts."""
    terms, node = proven(world, **overrides)
    world.evm.at(terms.deadline + terms.challenge_window)
    return terms, node


def test_settle__unproven__refunds_and_costs_the_node_a_lost_lease(market: World) -> None:
    terms, node = _due(market)
    market.nodes.send.beat(node, sender=market.operator)
    with credited(market) as got:
        receipt = market.settle(terms)
    assert got == {"submitter": BUDGET, "keeper": SETTLE_PAY, "dead": SLASH - SETTLE_PAY}
    unit = market.unit(terms)
    assert unit.state == State.REFUNDED and market.lock_of(terms) == 0
    word = {"job_id": market.id_of(terms), "index": 0, "node": node, "word": market.load(terms)[1]}
    assert receipt.event("Unproven") == word
    assert receipt.events("Settled") == []
    assert receipt.event("Slashed")["burnt"] == SLASH - SETTLE_PAY
    state = node_state(market, node)
    assert market.node(node).stake == market.staked(node) == 100 * ETHER - SLASH
    assert (state.bond, state.busy, state.r, state.s, state.silent) == (0, 0, 0, ONE, False)
    assert FEE >= FEE_REFERENCE  # a failure of the whole fee


def test_settle__unproven__waits_for_deadline_and_window(world: World) -> None:
    terms, _ = proven(world)
    for offset in around(world, terms.deadline + WINDOW):
        if offset < 0:
            with reverts("jobs: too early to settle"):
                world.settle(terms)
        else:
            world.settle(terms)
            assert world.state(terms) == State.REFUNDED


def test_settle__unproven_submitted_near_the_deadline__waits_for_both(world: World) -> None:
    """A result can come in after the deadline's last start: its own window is never cut."""
    node = world.register()
    terms = world.terms(**world.judged(flags=PROVEN))
    terms = replace(terms, deadline=world.evm.now + formulas.lease_seconds(terms) + formulas.grace(terms))
    world.post(terms)
    world.claim(terms, node)
    world.evm.at(world.unit(terms).mark - 1)
    world.submit(terms)
    assert terms.deadline == world.evm.now + 1
    for offset in around(world, terms.deadline + WINDOW):
        assert (offset < 0) == _refused(world, terms)


def _refused(world: World, terms: Terms) -> bool:
    if world.evm.now < formulas.settleable_from(terms, world.unit(terms)):
        with reverts("jobs: too early to settle"):
            world.settle(terms)
        return True
    world.settle(terms)
    return False


@pytest.mark.parametrize(("late", "pay"), [(0, SETTLE_PAY), (200, 2 * SETTLE_PAY), (600, 4 * SETTLE_PAY)])
def test_settle__unproven__pays_a_rising_part_of_the_slash(world: World, late: int, pay: int) -> None:
    terms, _ = _due(world)
    world.evm.warp(late)
    with credited(world) as got:
        world.settle(terms, payee=world.stranger)
    assert got == {"submitter": BUDGET, "stranger": pay, "dead": SLASH - pay}


def test_settle__unproven_with_a_large_keeper_fee__pays_a_quarter_of_the_slash(world: World) -> None:
    terms, _ = _due(world, keeper_fee=10**16)
    world.evm.warp(600)
    slash = formulas.slash_of(terms)
    assert slash == 8 * 10**15
    with credited(world) as got:
        world.settle(terms)
    assert got == {"submitter": 13 * 10**16, "keeper": slash // 4, "dead": slash - slash // 4}


@pytest.mark.parametrize("bond_bps", [0, 4_999, 5_000, 5_001, 9_000_000])
def test_settle__unproven__costs_a_tenth_of_the_base_bond_whatever_the_bond(world: World, bond_bps: int) -> None:
    node, terms = world.register(), world.post(**world.judged(flags=PROVEN, bond_bps=bond_bps))
    world.claim(terms, node)
    assert node_state(world, node).bond == max(bond_bps * 10**13, BOND)
    world.submit(terms)
    world.evm.at(terms.deadline + WINDOW)
    world.settle(terms)
    assert 10**20 - world.node(node).stake == SLASH
    assert node_state(world, node).bond == 0


def test_settle__unproven_of_a_silent_node__is_no_silence(world: World) -> None:
    terms, node = proven(world)
    world.evm.at(terms.deadline + WINDOW)
    assert world.evm.now > node_state(world, node).beat + DEAD_AFTER
    world.settle(terms)
    state = node_state(world, node)
    assert (state.s, state.silent) == (ONE, False)


def test_settle__unproven_above_the_ration__burns_nothing_and_counts_half(world: World) -> None:
    """As a reclaim: a judge that fails must not burn a network down within an hour."""
    big = dict(ceiling=10**23, keeper_fee=10**15, deadline=world.evm.now + 20 * DAY)
    node, parts = world.register(stake=300 * ETHER, slots=9), []
    for _ in range(3):
        parts.append(world.post(**world.judged(flags=PROVEN, **big)))
        world.claim(parts[-1], node)
        world.submit(parts[-1])
    world.evm.at((parts[0].deadline + WINDOW) // 3_600 * 3_600 + 3_600)
    burns = [world.settle(terms).event("Slashed")["burnt"] for terms in parts]
    assert burns[0] > 3 * MINIMUM_STAKE and burns[1:] == [0, 0]
    # Nothing is settled in one second thrice: the failures' weights add up as they are.
    assert node_state(world, node).s == ONE + 2 * (ONE // 2)


def test_settle__unproven_within_a_dispute__waits_for_thirty_days_past_the_window(world: World) -> None:
    terms, _ = proven(world, deadline=world.evm.now + 2 * DAY)
    world.dispute(terms)
    due = world.unit(terms).mark + WINDOW + STALE
    assert due > terms.deadline + WINDOW
    for offset in around(world, due):
        if offset < 0:
            with reverts("jobs: too early to settle"):
                world.settle(terms)
        else:
            assert world.settle(terms).event("Unproven")["index"] == 0


def test_settle__unproven_within_a_dispute__waits_for_a_later_deadline(world: World) -> None:
    terms, _ = proven(world, deadline=world.evm.now + 60 * DAY)
    world.dispute(terms)
    world.evm.at(terms.deadline + WINDOW - 1)
    with reverts("jobs: too early to settle"):
        world.settle(terms)
    world.evm.warp(1)
    assert world.settle(terms).events("Unproven")


def test_settle__stale_dispute__pays_as_if_never_disputed(market: World) -> None:
    plain, node = judged(market)
    with market.evm.isolated():
        market.evm.at(market.unit(plain).mark + WINDOW)
        with credited(market) as expected:
            market.settle(plain)
    market.dispute(plain)
    for offset in around(market, market.unit(plain).mark + WINDOW + STALE):
        if offset < 0:
            with reverts("jobs: too early to settle"):
                market.settle(plain)
            continue
        late = offset  # the ramp runs from the second at which it became valid
        with credited(market) as got:
            market.settle(plain)
        assert got["keeper"] == formulas.ramp(SETTLE_PAY, late)
        assert got["owner"] == expected["owner"] and market.state(plain) == State.SETTLED
        assert node_state(market, node).r > 0


@pytest.mark.parametrize("verdict", [Verdict.CONFIRM, Verdict.REJECT, Verdict.VOID, Verdict.RELEASE])
def test_settle__stale_dispute_that_nobody_settles__can_still_be_ruled(world: World, verdict: Verdict) -> None:
    terms, _ = judged(world)
    world.dispute(terms)
    world.evm.warp(WINDOW + STALE + 1)
    world.rule(terms, verdict)
    if verdict == Verdict.RELEASE:
        world.settle(terms)
    assert world.state(terms).terminal


def test_settle_batch__unproven_and_proven_ones__ends_each_its_own_way(world: World) -> None:
    first, node = proven(world)
    second = world.post(**world.judged(deadline=first.deadline + DAY))
    world.nodes.send.beat(node, sender=world.operator)
    world.claim(second, node)
    world.submit(second)
    world.evm.at(first.deadline + WINDOW)
    items = [(words.pack_terms(terms), 0) for terms in (first, second)]
    receipt = world.jobs.send.settle_batch(items, world.keeper, sender=world.keeper)
    assert len(receipt.events("Unproven")) == len(receipt.events("Settled")) == 1
    assert [world.state(terms) for terms in (first, second)] == [State.REFUNDED, State.SETTLED]


def test_settle__unproven_unit_of_an_array__counts_as_failed(world: World) -> None:
    node, terms = world.register(), world.post(**world.judged(units=2, flags=PROVEN))
    world.claim(terms, node, 0)
    world.submit(terms, 0)
    world.evm.at(terms.deadline + WINDOW)
    assert world.settle(terms, 0).event("Unproven")["index"] == 0
    header = world.header(terms)
    assert (header.done, header.failed) == (0, 1)
    assert world.lock_of(terms) == BUDGET


def test_unproven__exit__is_held_by_the_bond_until_then(world: World) -> None:
    terms, node = proven(world)
    assert node_state(world, node).bond == BOND
    world.nodes.send.exit_start(node, sender=world.owner)
    world.evm.at(terms.deadline + WINDOW)
    with reverts("nodes: bond outstanding"):
        world.nodes.send.exit_finish(node)
    world.settle(terms)
    world.nodes.send.exit_finish(node)
    assert world.credit(world.owner) == 100 * ETHER - SLASH


def test_accept__proven_job__pays_whatever_is_missing(world: World) -> None:
    """Whoever pays may take a result as it is, before and after its window."""
    for moment in (0, WINDOW, 10**6):
        with world.evm.isolated():
            terms, _ = proven(world)
            world.evm.warp(moment)
            with credited(world) as got:
                world.accept(terms)
            assert got["owner"] > 0 and "dead" not in got
