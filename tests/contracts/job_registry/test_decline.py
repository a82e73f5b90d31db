"""JobRegistry.decline: a lease given back unpaid; the node is accused until another one succeeds or not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import words
from hearth.protocol.reputation import ACCUSATION_TIME, ONE
from hearth.protocol.types import SENTINEL, Accused, State, TermsFlag, Unit, UnitFlag
from tests.kit.evm import reverts
from tests.kit.steps import BOND, BUDGET, LEASE, TIP, around, credited, node_state, running, submitted, won
from tests.kit.world import DAY, DEAD_AFTER, ETHER, POLICY, REPORT, ZERO, World


def test_decline__running__reopens_without_the_node(market: World) -> None:
    terms, node = running(market)
    market.evm.warp(50)
    with credited(market) as got:
        receipt = market.decline(terms)
    assert got == {}
    assert market.unit(terms) == Unit(
        state=State.OPEN, node=node, started=market.evm.now, attempts=1, flags=UnitFlag.ACCUSED
    )
    assert words.unpack_accused(market.load(terms)[3]) == Accused(node, market.evm.now)
    assert receipt.event("Declined") == {
        "job_id": market.id_of(terms),
        "index": 0,
        "node": node,
        "word": market.load(terms)[1],
        "report": REPORT,
    }
    word = node_state(market, node)
    assert (word.busy, word.bond, word.r, word.s) == (0, 0, 0, 0)
    assert market.lock_of(terms) == BUDGET


@pytest.mark.parametrize("outcome", [6, 7, 8])
def test_decline__refusals__are_taken(world: World, outcome: int) -> None:
    terms, _ = running(world)
    world.decline(terms, outcome=outcome)
    assert world.unit(terms).outcome == 0


@pytest.mark.parametrize("outcome", [0, 1, 5, 9, 2**256 - 1])
def test_decline__outcome_out_of_range__reverts(world: World, outcome: int) -> None:
    terms, _ = running(world)
    with reverts("jobs: outcome out of range"):
        world.decline(terms, outcome=outcome)


def test_decline__last_attempt__refunds(market: World) -> None:
    terms, _ = running(market, max_attempts=1)
    with credited(market) as got:
        receipt = market.decline(terms, outcome=8)
    assert got == {"submitter": 10**17 + 10**14}
    assert market.state(terms) == State.REFUNDED
    assert market.unit(terms).outcome == 8
    assert receipt.event("Declined")["word"] == market.load(terms)[1]
    assert market.lock_of(terms) == 0


def test_decline__attempts__run_out_one_by_one(world: World) -> None:
    terms = world.post(max_attempts=2)
    world.claim(terms, world.register())
    world.decline(terms)
    assert world.state(terms) == State.OPEN
    world.claim(terms, world.register())
    world.decline(terms)
    assert world.state(terms) == State.REFUNDED


@pytest.mark.parametrize(("late", "state"), [(-1, State.OPEN), (0, State.OPEN), (1, State.REFUNDED)])
def test_decline__time_left__must_hold_another_lease(world: World, late: int, state: State) -> None:
    terms, _ = running(world, deadline=world.evm.now + LEASE + 50)
    world.evm.warp(50 + late)
    world.decline(terms)
    assert world.state(terms) == state


def test_decline__cancelled_lease__refunds_all(market: World) -> None:
    terms, node = running(market)
    market.evm.warp(100)
    market.cancel(terms)
    with credited(market) as got:
        market.decline(terms)
    assert got == {"submitter": BUDGET}
    assert market.state(terms) == State.CANCELLED
    assert (node_state(market, node).busy, node_state(market, node).bond) == (0, 0)


@pytest.mark.parametrize(
    ("seconds", "window"),
    [(1, 60), (243, 60), (244, 61), (1_000, 250), (14_399, 3_599), (14_400, 3_600), (86_400, 3_600)],
)
def test_decline__window__is_a_quarter_of_the_time_within_its_bounds(world: World, seconds: int, window: int) -> None:
    terms, node = running(world, max_seconds=seconds, deadline=world.evm.now + 200_000, flags=TermsFlag.NEWCOMERS)
    start = world.evm.now
    while world.evm.now < start + window - 500:  # the node is alive all the time
        world.evm.warp(500)
        world.nodes.send.beat(node, sender=world.operator)
    for offset in around(world, start + window):
        if offset < 0:
            world.decline(terms)
            assert world.state(terms) == State.OPEN
        else:
            with reverts("jobs: too late to decline"):
                world.decline(terms)


def test_decline__reclaimable__is_no_way_out(world: World) -> None:
    terms, _ = running(world, max_seconds=14_400, deadline=world.evm.now + 100_000, flags=TermsFlag.NEWCOMERS)
    for offset in around(world, world.evm.now + DEAD_AFTER):
        if offset < 0:
            world.decline(terms)
        else:
            with reverts("jobs: reclaimable"):
                world.decline(terms)


def test_decline__lease_shorter_than_the_window__ends_with_the_lease() -> None:
    world = World(policy=replace(POLICY, fetch_floor=3_600))
    terms, _ = running(world, max_seconds=60)
    for offset in around(world, world.unit(terms).mark):
        if offset < 0:
            world.decline(terms)
        else:
            with reverts("jobs: too late to submit"):
                world.decline(terms)


def test_decline__notice__is_free_until_it_ends(world: World) -> None:
    terms, _ = running(world)
    world.evm.warp(500)
    world.cancel(terms)
    for offset in around(world, world.unit(terms).mark):
        if offset < 0:
            world.decline(terms)
            assert world.state(terms) == State.CANCELLED
        else:
            with reverts("jobs: too late to submit"):
                world.decline(terms)


def test_decline__matched__burns_the_tip(market: World) -> None:
    terms, node = won(market)
    market.ack(terms)
    with credited(market) as got:
        receipt = market.decline(terms)
    assert got == {"dead": TIP}
    assert receipt.event("Slashed") == {"node": node, "payee": ZERO, "reward": 0, "burnt": TIP}
    assert market.node(node).stake == market.staked(node) == 100 * ETHER - TIP
    state = node_state(market, node)
    assert (state.busy, state.bond, state.s, state.cusum) == (0, 0, 0, 0)
    totals = words.unpack(words.TOTALS, market.nodes.call.totals())
    assert (totals["burnt"], totals["total"]) == (0, 100 * ETHER - TIP), "no burn that the ration counts"


def test_decline__matched_and_cancelled__burns_the_tip(world: World) -> None:
    terms, node = won(world)
    world.ack(terms)
    world.cancel(terms)
    with credited(world) as got:
        world.decline(terms)
    assert got == {"dead": TIP, "submitter": BUDGET - TIP}
    assert world.node(node).stake == 100 * ETHER - TIP


def test_decline__claimed_after_a_match_was_lost__burns_nothing(world: World) -> None:
    terms, _ = won(world)
    world.ack(terms)
    world.decline(terms)
    second = world.register()
    world.evm.warp(POLICY.open_claim_after)
    world.nodes.send.beat(second, sender=world.operator)
    world.claim(terms, second)
    assert world.unit(terms).flags == UnitFlag.ACCUSED | UnitFlag.FRESH
    with credited(world) as got:
        world.decline(terms)
    assert got == {} and world.node(second).stake == 100 * ETHER


def test_decline__not_the_operator__reverts(world: World) -> None:
    terms, _ = running(world)
    for sender in (world.owner, world.submitter, world.keeper):
        with reverts("nodes: not the operator"):
            world.decline(terms, sender=sender)


def test_decline__not_running__reverts(world: World) -> None:
    terms, _ = submitted(world)
    with reverts("jobs: not running"):
        world.decline(terms)
    with reverts("jobs: not running"):
        world.decline(world.post())


def test_decline__index_of_no_unit__reverts(world: World) -> None:
    terms, _ = running(world)
    with reverts("jobs: no such unit"):
        world.decline(terms, 1)


def test_decline__another_node_succeeds__counts_against_the_accused(market: World) -> None:
    terms, first = running(market)
    market.decline(terms)
    with reverts("jobs: node excluded"):
        market.claim(terms, first)
    second = market.register()
    market.claim(terms, second)
    assert market.unit(terms).flags == UnitFlag.ACCUSED | UnitFlag.FRESH
    market.submit(terms)
    market.settle(terms)
    assert (node_state(market, first).s, node_state(market, first).cusum) == (ONE, 64)
    assert (node_state(market, second).r, node_state(market, second).s) == (ONE, 0)


def test_decline__attempt_that_succeeds_began_an_hour_later__accuses_nobody(world: World) -> None:
    terms, first = running(world)
    world.evm.warp(50)
    world.decline(terms)
    second = world.register()
    for offset in around(world, world.evm.now + ACCUSATION_TIME):
        world.nodes.send.beat(second, sender=world.operator)
        world.claim(terms, second)
        world.evm.warp(200)
        world.submit(terms)
        world.evm.warp(10 * DAY)
        world.settle(terms)
        assert node_state(world, first).s == (ONE if offset < 0 else 0)


def test_decline__small_job__weighs_what_the_settle_paid(world: World) -> None:
    """Metered: 100 of 1,000 s. The fee of all of them would weigh one."""
    terms, first = running(world, billing=2)
    world.decline(terms)
    second = world.register()
    world.claim(terms, second)
    world.evm.warp(100)
    world.submit(terms)
    world.settle(terms)
    assert (node_state(world, first).s, node_state(world, first).cusum) == (ONE // 8, 8)
    assert node_state(world, second).r == ONE // 8


def test_decline__another_node_fails_too__accuses_nobody(world: World) -> None:
    terms, first = running(world)
    world.decline(terms)
    second = world.register()
    world.claim(terms, second)
    world.submit(terms, outcome=2)
    world.settle(terms)
    assert node_state(world, first).s == node_state(world, second).s == 0


def test_decline__second_node_declines_as_well__is_the_one_accused(world: World) -> None:
    terms, first = running(world)
    world.decline(terms)
    second, third = world.register(), world.register()
    world.claim(terms, second)
    world.decline(terms)
    assert words.unpack_accused(world.load(terms)[3]) == Accused(second, world.evm.now)
    world.claim(terms, third)
    world.submit(terms)
    world.settle(terms)
    assert [node_state(world, node).s for node in (first, second, third)] == [0, ONE, 0]


def test_decline__accused_node_succeeds_itself__is_not_observed_as_a_failure(world: World) -> None:
    terms, first = running(world)
    world.decline(terms)
    # Another node is reclaimed from, and becomes the excluded one instead.
    second = world.register()
    world.claim(terms, second)
    world.evm.warp(LEASE)
    world.reclaim(terms)
    world.nodes.send.beat(first, sender=world.operator)
    world.claim(terms, first)
    world.submit(terms)
    world.settle(terms)
    assert (node_state(world, first).r, node_state(world, first).s) == (ONE, 0)


def test_decline__closed_array__refunds_instead_of_reopening(world: World) -> None:
    node, terms = world.register(), world.post(units=2)
    world.claim(terms, node, 0)
    world.cancel(terms, SENTINEL)
    with credited(world) as got:
        world.decline(terms, 0)
    assert got == {"submitter": BUDGET}
    assert world.state(terms, 0) == State.REFUNDED and world.header(terms).failed == 1


def test_decline__array_unit__accuses_under_its_own_key(world: World) -> None:
    node, terms = world.register(), world.post(units=2, flags=4)
    world.claim(terms, node, 0)
    world.claim(terms, node, 1)
    assert world.decline(terms, 1).event("Declined")["index"] == 1
    accused = [words.unpack_accused(world.load(terms, index)[3]) for index in (0, 1)]
    assert accused == [Accused(), Accused(node, world.evm.now)]
    assert node_state(world, node).bond == BOND
