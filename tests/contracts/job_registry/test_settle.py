"""JobRegistry.settle: what each party gets, to the unit, for every billing, rounding and moment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import words
from hearth.protocol.reputation import ONE
from hearth.protocol.types import SENTINEL, Billing, NodeId, Outcome, State, Terms
from tests.kit.evm import reverts
from tests.kit.steps import (
    BUDGET,
    FEE,
    LEASE,
    PAY,
    SETTLE_PAY,
    TIP,
    around,
    credited,
    node_state,
    noticed,
    running,
    submitted,
)
from tests.kit.world import FEE_REFERENCE, OFFER, POLICY, World

RATE = OFFER.ask // 10**6  # base units per second, without a remainder


def _paid(pay: int, *, fee: int | None = None, reward: int = SETTLE_PAY, budget: int = BUDGET) -> dict[str, int]:
    """Return the credits of a settled unit, zeros left out."""
    fee = pay * 500 // 10_000 if fee is None else fee
    found = {"owner": pay - fee, "treasury": fee, "keeper": reward, "submitter": budget - pay - reward}
    return {name: amount for name, amount in found.items() if amount}


def test_settle__fixed__pays_the_posted_seconds(market: World) -> None:
    terms, node = submitted(market)
    with credited(market) as got:
        receipt = market.settle(terms)
    assert (
        got
        == _paid(PAY)
        == {
            "owner": PAY - FEE,
            "treasury": FEE,
            "keeper": SETTLE_PAY,
            "submitter": BUDGET - PAY - SETTLE_PAY,
        }
    )
    unit = market.unit(terms)
    assert (unit.state, unit.outcome) == (State.SETTLED, Outcome.OK)
    assert receipt.event("Settled") == {
        "job_id": market.id_of(terms),
        "index": 0,
        "node": node,
        "word": market.load(terms)[1],
        "pay": PAY,
        "fee": FEE,
    }
    assert market.lock_of(terms) == 0
    assert (node_state(market, node).bond, node_state(market, node).r, node_state(market, node).count) == (0, ONE, 1)


def test_settle__named_payee__gets_the_settlers_pay(world: World) -> None:
    terms, _ = submitted(world)
    with credited(world) as got:
        world.settle(terms, payee=world.stranger)
    assert got["stranger"] == SETTLE_PAY and "keeper" not in got


@pytest.mark.parametrize(("used", "seconds"), [(1, 1), (137, 137), (999, 999), (1_000, 1_000), (1_001, 1_000)])
def test_settle__fuel__pays_the_used_seconds_up_to_the_posted(market: World, used: int, seconds: int) -> None:
    terms, _ = running(market, billing=Billing.FUEL)
    market.submit(terms, used=used)
    with credited(market) as got:
        market.settle(terms)
    assert got == _paid(RATE * seconds)


@pytest.mark.parametrize(("elapsed", "seconds"), [(0, 0), (1, 1), (999, 999), (1_000, 1_000), (1_001, 1_000)])
def test_settle__metered__pays_the_time_until_the_submit(market: World, elapsed: int, seconds: int) -> None:
    terms, node = running(market, billing=Billing.METERED)
    market.evm.warp(elapsed // 2)
    market.nodes.send.beat(node, sender=market.operator)
    market.evm.warp(elapsed - elapsed // 2)
    market.submit(terms)
    market.evm.warp(50)
    with credited(market) as got:
        market.settle(terms)
    assert got == _paid(RATE * seconds, reward=SETTLE_PAY * 1_250 // 1_000)


@pytest.mark.parametrize(
    ("billing", "used", "elapsed", "seconds"),
    [
        (Billing.FIXED, 0, 100, 1_000),
        (Billing.FUEL, 100, 100, 100),
        (Billing.FUEL, 999, 100, 999),
        (Billing.METERED, 0, 100, 100),
        (Billing.METERED, 0, 1_005, 1_000),
    ],
)
def test_settle__noticed__pays_what_it_would_have_without_the_notice(
    market: World, billing: Billing, used: int, elapsed: int, seconds: int
) -> None:
    terms, node = running(market, billing=billing)
    market.evm.warp(elapsed - 50)
    market.nodes.send.beat(node, sender=market.operator)
    market.cancel(terms)
    market.evm.warp(50)
    market.submit(terms, used=used)
    assert noticed(market, terms)
    with credited(market) as got:
        market.settle(terms)
    assert got == _paid(RATE * seconds)
    assert market.state(terms) == State.SETTLED


@pytest.mark.parametrize("outcome", [2, 3, 4, 5])
def test_settle__failed_outcome__is_paid_and_counts_for_nothing(market: World, outcome: int) -> None:
    terms, node = running(market)
    market.submit(terms, outcome=outcome)
    with credited(market) as got:
        market.settle(terms)
    assert got == _paid(PAY)
    assert (node_state(market, node).bond, node_state(market, node).r, node_state(market, node).s) == (0, 0, 0)


@pytest.mark.parametrize(
    ("overdue", "permille"),
    [(0, 1_000), (1, 1_005), (100, 1_500), (599, 3_995), (600, 4_000), (601, 4_000), (10**7, 4_000)],
)
def test_settle__late__ramps_the_settlers_pay_to_four_times(market: World, overdue: int, permille: int) -> None:
    terms, _ = submitted(market)
    market.evm.warp(overdue)
    with credited(market) as got:
        market.settle(terms)
    assert got == _paid(PAY, reward=SETTLE_PAY * permille // 1_000)


def test_settle__odd_amounts__round_against_whoever_is_paid(market: World) -> None:
    # price: ceil(1000000000001 x 7 / 1e6) = 7000001; rate 999999999999: pay floor(6999999.999993) = 6999999
    market = World(erc20=market.token is not None, policy=replace(POLICY, min_price=1, min_keeper_fee=8))
    node = market.register(ask=10**12 - 1)
    terms = market.post(ceiling=10**12 + 1, max_seconds=7, keeper_fee=1_001)
    market.evm.warp(market.policy.claim_ramp)
    market.claim(terms, node)
    market.submit(terms)
    market.evm.warp(1)
    budget = 7_000_001 + 3 * 1_001
    assert market.lock_of(terms) == budget
    with credited(market) as got:
        market.settle(terms)
    # fee floor(349999.95), settler floor(125 x 1.005)
    assert got == _paid(6_999_999, fee=349_999, reward=125, budget=budget)
    assert sum(got.values()) == budget


@pytest.mark.parametrize("keeper_fee", [8, 9, 15, 16])
def test_settle__tiny_keeper_fee__pays_an_eighth_rounded_down(keeper_fee: int) -> None:
    world = World(policy=replace(POLICY, min_keeper_fee=8))
    terms, _ = submitted(world, keeper_fee=keeper_fee)
    with credited(world) as got:
        world.settle(terms)
    assert got == _paid(PAY, reward=keeper_fee // 8, budget=10**17 + 3 * keeper_fee)


def test_settle__rate_at_the_ceiling__pays_the_whole_price(world: World) -> None:
    node = world.register(ask=10**20)
    terms = world.post()
    world.evm.warp(world.policy.claim_ramp)
    world.claim(terms, node)
    world.submit(terms)
    with credited(world) as got:
        world.settle(terms)
    assert got == _paid(10**17)


@pytest.mark.parametrize("fee_bps", [0, 1, 1_000])
def test_settle__fee_of_the_policy__goes_to_the_treasury(fee_bps: int) -> None:
    world = World(policy=replace(POLICY, fee_bps=fee_bps, probation_price=0))
    terms, node = submitted(world)
    with credited(world) as got:
        world.settle(terms)
    fee = PAY * fee_bps // 10_000
    assert got == _paid(PAY, fee=fee)
    assert node_state(world, node).r == min(ONE, ONE * fee // FEE_REFERENCE)


def test_settle__policy_changed_since__keeps_the_posted_one(world: World) -> None:
    terms, _ = submitted(world)
    world.rules.send.set_policy(words.pack_policy(replace(POLICY, fee_bps=1_000, probation_price=10**16)))
    with credited(world) as got:
        world.settle(terms)
    assert got == _paid(PAY)


def test_settle__after_a_tip__refunds_the_tip_less(market: World) -> None:
    node, terms = market.register(), market.post(match_window=30)
    market.propose(terms, node, payee=market.stranger)
    market.evm.warp(30)
    market.ack(terms)
    market.submit(terms)
    with credited(market) as got:
        market.settle(terms)
    assert got == _paid(PAY, budget=BUDGET - TIP)


def test_settle__three_attempts_with_tips__never_exceeds_the_budget(market: World) -> None:
    terms = market.post(match_window=30, keeper_fee=10**14 + 1)
    budget = 10**17 + 3 * (10**14 + 1)
    with credited(market) as got:
        for attempt in range(3):
            node = market.register()
            market.propose(terms, node)
            market.evm.warp(30)
            market.ack(terms)
            if attempt < 2:
                market.evm.warp(LEASE)
                market.reclaim(terms)
        market.submit(terms)
        market.evm.warp(10**4)
        market.accept(terms)
    tips = 3 * ((10**14 + 1) // 2)
    assert (market.unit(terms).tips, market.unit(terms).attempts) == (3, 3)
    assert got["submitter"] == budget - tips - PAY
    assert market.lock_of(terms) == 0


def test_settle__submitted__is_valid_at_once(world: World) -> None:
    terms, _ = submitted(world)
    for offset in (0, 1, 10**6):
        with world.evm.isolated():
            world.evm.warp(offset)
            world.settle(terms)


def test_settle__not_submitted__reverts(world: World) -> None:
    for terms in (world.terms(), world.post(), world.post(units=2), running(world)[0]):
        with reverts("jobs: not submitted"):
            world.settle(terms)
    terms, _ = submitted(world)
    world.settle(terms)
    with reverts("jobs: not submitted"):
        world.settle(terms)


def test_settle__index_of_no_unit__reverts(world: World) -> None:
    terms, _ = submitted(world)
    for index in (1, SENTINEL):
        with reverts("jobs: no such unit"):
            world.settle(terms, index)
    assert world.settle(terms).event("Settled")["index"] == 0


def test_settle__exiting_node__is_paid(world: World) -> None:
    terms, node = submitted(world)
    world.nodes.send.exit_start(node, sender=world.owner)
    with credited(world) as got:
        world.settle(terms)
    assert got == _paid(PAY)


def test_settle__jobs_paused__goes_on(world: World) -> None:
    terms, _ = submitted(world)
    world.rules.send.pause()
    world.settle(terms)


def _array(world: World, outcomes: list[int]) -> tuple[Terms, NodeId]:
    node, terms = world.register(slots=9), world.post(units=len(outcomes), flags=4)
    for index, outcome in enumerate(outcomes):
        world.claim(terms, node, index)
        world.submit(terms, index, outcome=outcome)
    return terms, node


def test_settle__array__counts_each_end_in_the_header(market: World) -> None:
    terms, node = _array(market, [1, 2, 1])
    for index, left in ((2, 2), (0, 1), (1, 0)):
        with credited(market) as got:
            event = market.settle(terms, index).event("Settled")
        assert (event["index"], event["node"]) == (index, node)
        assert got == _paid(PAY)
        assert market.lock_of(terms) == left * BUDGET
    header = market.header(terms)
    assert (header.touched, header.done, header.failed, header.closed) == (3, 2, 1, False)


def test_settle__array_closed_meanwhile__pays_the_touched(world: World) -> None:
    node, terms = world.register(), world.post(units=3)
    world.claim(terms, node, 0)
    world.submit(terms, 0)
    world.cancel(terms, SENTINEL)
    with credited(world) as got:
        world.settle(terms, 0)
    assert got == _paid(PAY)
    assert (world.header(terms).closed, world.header(terms).done) == (True, 1)


def test_settle__washing_cheap_jobs__seasons_nobody(world: World) -> None:
    # A fee of a thousandth of the reference weighs a thousandth.
    node = world.register(ask=25 * 10**15)
    for _ in range(6):
        terms = world.post(ceiling=10**17, keeper_fee=10**11)
        world.claim(terms, node)
        world.submit(terms)
        world.settle(terms)
    assert not node_state(world, node).seasoned and node_state(world, node).count == 0
    assert node_state(world, node).r == pytest.approx(6 * ONE * 125 * 10**10 // 10**15, abs=6)


def test_settle__five_full_fees__season_the_node(world: World) -> None:
    node = world.register()
    for number in range(5):
        assert not node_state(world, node).seasoned, number
        terms = world.post()
        world.claim(terms, node)
        world.submit(terms)
        world.settle(terms)
    assert node_state(world, node).seasoned
    dear = world.post(ceiling=10**22)
    world.claim(dear, node)


def test_settle__lease_end__does_not_matter_after_the_submit(world: World) -> None:
    terms, _ = running(world)
    mark = world.unit(terms).mark
    world.evm.at(mark - 1)
    world.submit(terms)
    for _ in around(world, mark):
        world.settle(terms)
