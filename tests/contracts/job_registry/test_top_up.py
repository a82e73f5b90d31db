"""JobRegistry.top_up: more time for a metered lease that runs, for what its price grows by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.types import SENTINEL, Billing, NodeId, State, Terms, TermsFlag, Unit, Verdict
from tests.kit.evm import reverts
from tests.kit.steps import (
    BOND,
    BUDGET,
    KEEPER_FEE,
    LEASE,
    LIE,
    PRICE,
    SETTLE_PAY,
    SLASH,
    VOID_PAY,
    around,
    awkward,
    credited,
    lost,
    node_state,
    other,
    running,
    submitted,
    won,
)
from tests.kit.world import DEAD_AFTER, ETHER, OFFER, POLICY, World

SECOND = OFFER.ask // 10**6
MOST = PRICE // 1_000
"""What a second pays at the ask, and at the ceiling."""
MAX_SECONDS = 30 * 86_400
METERED: dict[str, Any] = {"billing": Billing.METERED}
TOO_LONG = "jobs: max_seconds out of range"


def _topped(world: World, seconds: int = 500, **overrides: Any) -> tuple[Terms, NodeId]:
    """Claim a metered job, and top it up."""
    terms, node = running(world, **{**METERED, **overrides})
    world.top_up(terms, seconds)
    return terms, node


# ---- what it changes ----


def test_top_up__running__grows_mark_seconds_and_lock(market: World) -> None:
    terms, node = running(market, **METERED)
    market.evm.warp(100)
    before, hot, stake = market.unit(terms), node_state(market, node), market.node(node).stake
    with credited(market) as got:
        receipt = market.top_up(terms, 700)
    assert market.unit(terms) == replace(before, mark=before.mark + 700, seconds=700)
    assert receipt.event("ToppedUp") == {
        "job_id": market.id_of(terms),
        "index": 0,
        "node": node,
        "word": market.load(terms)[1],
        "amount": 700 * MOST,
    }
    assert market.lock_of(terms) == BUDGET + 700 * MOST
    assert got == {} and (node_state(market, node), market.node(node).stake) == (hot, stake)


def test_top_up__twice__adds_up(market: World) -> None:
    terms, _ = _topped(market, 1)
    mark = market.unit(terms).mark
    assert market.top_up(terms, 2).event("ToppedUp")["amount"] == 2 * MOST
    assert (market.unit(terms).seconds, market.unit(terms).mark) == (3, mark + 2)
    assert market.lock_of(terms) == BUDGET + 3 * MOST


def test_top_up__price_that_rounds_up__costs_what_it_grows_by(world: World) -> None:
    """Together as much as the longer job would have cost: the ceiling is a third of a unit a second."""
    world = World(policy=replace(POLICY, min_price=1, min_keeper_fee=8))
    node = world.register(ask=1)
    terms = world.post(ceiling=333_333, max_seconds=100, keeper_fee=8, **METERED)
    world.claim(terms, node)
    amounts = [world.top_up(terms, seconds).event("ToppedUp")["amount"] for seconds in (1, 1, 1, 2, 3, 100)]
    assert amounts == [0, 0, 1, 0, 1, 34]
    assert world.lock_of(terms) == formulas.price(replace(terms, max_seconds=208)) + 24


def test_top_up__unit_of_an_array__is_its_own(market: World) -> None:
    node, terms = market.register(), market.post(units=3, **METERED)
    for index in (0, 1):
        market.claim(terms, node, index)
    assert market.top_up(terms, 60, 1).event("ToppedUp")["index"] == 1
    assert [market.unit(terms, index).seconds for index in (0, 1)] == [0, 60]
    assert market.lock_of(terms) == 3 * BUDGET + 60 * MOST
    with reverts("jobs: not running"):
        market.top_up(terms, 60, 2)


# ---- what it is refused for ----


def test_top_up__not_the_submitter__reverts(market: World) -> None:
    terms, _ = running(market, **METERED)
    for sender in (market.owner, market.operator, market.keeper, market.stranger):
        with reverts("jobs: not the submitter"):
            market.top_up(terms, 60, sender=sender)


def test_top_up__not_running__reverts(world: World) -> None:
    cancelled, _ = running(world, **METERED)
    world.cancel(cancelled)
    for terms in (
        *(cancelled, submitted(world, **METERED)[0], won(world, **METERED)[0], lost(world)[0]),
        *(world.terms(**METERED), world.post(**METERED), world.post(units=2, **METERED)),
    ):
        for amount in (0, 60 * MOST):
            with reverts("jobs: not running"):
                world.top_up(terms, 60, amount=amount)


@pytest.mark.parametrize("billing", [Billing.FIXED, Billing.FUEL])
def test_top_up__job_that_does_not_bill_time__reverts(world: World, billing: Billing) -> None:
    terms, _ = running(world, billing=billing)
    with reverts("jobs: not metered"):
        world.top_up(terms, 60, amount=60 * MOST)


def test_top_up__until_the_lease_is_over(world: World) -> None:
    terms, _ = running(world, **METERED)
    for offset in around(world, world.unit(terms).mark):
        if offset < 0:
            world.top_up(terms, 1)
        else:
            with reverts("jobs: too late to submit"):
                world.top_up(terms, 1)


@pytest.mark.parametrize("seconds", [0, MAX_SECONDS - 999, MAX_SECONDS, 2**24 - 1, 2**24, 2**255, SENTINEL])
def test_top_up__seconds_out_of_range__revert(world: World, seconds: int) -> None:
    terms, _ = running(world, deadline=world.evm.now + 100 * 86_400, **METERED)
    with reverts(TOO_LONG):
        world.top_up(terms, seconds, amount=min(seconds, MAX_SECONDS) * MOST)


def test_top_up__thirty_days_in_all__are_the_most(market: World) -> None:
    terms, _ = running(market, deadline=market.evm.now + 100 * 86_400, **METERED)
    market.top_up(terms, MAX_SECONDS - 1_001)
    with reverts(TOO_LONG):
        market.top_up(terms, 2)
    market.top_up(terms, 1)
    assert market.unit(terms).seconds == MAX_SECONDS - 1_000
    with reverts(TOO_LONG):
        market.top_up(terms, 1)
    assert market.lock_of(terms) == MAX_SECONDS * MOST + 3 * KEEPER_FEE


def test_top_up__deadline__must_hold_the_longer_lease(market: World) -> None:
    terms, _ = running(market, deadline=market.evm.now + LEASE + 400, **METERED)
    with reverts("jobs: deadline too near"):
        market.top_up(terms, 401)
    market.top_up(terms, 400)
    assert market.unit(terms).mark == terms.deadline
    with reverts("jobs: deadline too near"):
        market.top_up(terms, 1)


def test_top_up__index_of_no_unit__reverts(world: World) -> None:
    terms, _ = running(world, **METERED)
    for index in (1, SENTINEL):
        with reverts("jobs: no such unit"):
            world.top_up(terms, 60, index, amount=60 * MOST)


# ---- its money ----


@pytest.mark.parametrize("difference", [-1, 1, -60 * MOST])
def test_top_up__native_value_not_the_amount__reverts(world: World, difference: int) -> None:
    terms, _ = running(world, **METERED)
    with reverts("jobs: wrong value sent"):
        world.top_up(terms, 60, amount=60 * MOST + difference)


def test_top_up__value_beside_tokens__reverts() -> None:
    world = World(erc20=True)
    terms, _ = running(world, **METERED)
    with reverts("jobs: wrong value sent"):
        world.jobs.send.top_up(words.pack_terms(terms), 0, 60, sender=world.submitter, value=1)


def test_top_up__tokens_not_approved__reverts() -> None:
    world = World(erc20=True)
    terms, _ = running(world, **METERED)
    before = world.load(terms)
    with reverts("token: allowance short"):
        world.top_up(terms, 60, amount=60 * MOST - 1)
    assert world.load(terms) == before and world.lock_of(terms) == BUDGET


def test_top_up__token_that_answers_false__reverts(world: World) -> None:
    token, nodes, jobs = awkward(world)
    token.send.mint(world.submitter, ETHER)
    token.send.mint(world.owner, ETHER)
    token.send.approve(jobs, ETHER, sender=world.submitter)
    token.send.approve(nodes, ETHER, sender=world.owner)
    offer = words.pack_offer(OFFER)
    node = nodes.send.register(world.operator, offer, b"\1" * 32, ETHER, sender=world.owner).value
    nodes.send.beat(node, sender=world.operator)
    packed = words.pack_terms(world.terms(**METERED))
    jobs.send.post(packed, [], sender=world.submitter)
    jobs.send.claim(packed, 0, node, bytes(32), 0, sender=world.operator)
    token.send.set_traits(LIE)
    with reverts("jobs: transfer failed"):
        jobs.send.top_up(packed, 0, 60, sender=world.submitter)
    token.send.set_traits(0)
    jobs.send.top_up(packed, 0, 60, sender=world.submitter)


# ---- what follows ----


@pytest.mark.parametrize(
    ("runs", "billed"), [(900, 900), (1_001, 1_001), (1_499, 1_499), (1_500, 1_500), (1_799, 1_500)]
)
def test_top_up__submitted__bills_to_the_longer_end(market: World, runs: int, billed: int) -> None:
    terms, node = _topped(market)
    market.nodes.send.beat(node, sender=market.operator)
    market.evm.warp(runs)
    market.submit(terms)
    market.evm.warp(1)
    with credited(market) as got:
        receipt = market.settle(terms)
    assert receipt.event("Settled")["pay"] == billed * SECOND
    assert got["submitter"] == BUDGET + 500 * MOST - billed * SECOND - SETTLE_PAY * 1_005 // 1_000
    assert market.lock_of(terms) == 0


def test_top_up__of_a_rate_at_the_ceiling__pays_the_whole_price(market: World) -> None:
    node = market.register(ask=100 * 10**18)
    terms = market.post(**METERED)
    market.evm.warp(POLICY.claim_ramp)
    market.claim(terms, node)
    market.top_up(terms, 250)
    market.evm.warp(1_250)
    market.submit(terms)
    with credited(market) as got:
        assert market.accept(terms).event("Settled")["pay"] == 1_250 * MOST
    assert got["submitter"] == 3 * KEEPER_FEE


@pytest.mark.parametrize("runs", [10, 1_100])
def test_top_up__closed__pays_its_time_and_the_start_fee(market: World, runs: int) -> None:
    terms, node = _topped(market)
    for _ in range(2):
        market.evm.warp(runs // 2)
        market.nodes.send.beat(node, sender=market.operator)
    market.cancel(terms)
    market.evm.at(market.unit(terms).mark)
    with credited(market) as got:
        receipt = market.close(terms)
    pay = (runs + POLICY.cancel_notice + POLICY.start_fee_seconds) * SECOND
    assert receipt.event("Closed")["pay"] == pay
    assert got["submitter"] == BUDGET + 500 * MOST - pay - SETTLE_PAY
    assert market.lock_of(terms) == 0


@pytest.mark.parametrize("ending", ["give_up", "reclaim", "decline"])
def test_top_up__lost__costs_the_node_what_the_terms_said(market: World, ending: str) -> None:
    """Bond and slash are those that it agreed to; the weight of its failure is by the longer lease."""
    terms, node = _topped(market, 9_000)
    assert node_state(market, node).bond == BOND
    if ending == "reclaim":
        market.evm.warp(DEAD_AFTER)
    with credited(market) as got:
        getattr(market, ending)(terms)
    burnt = {"give_up": SLASH - SLASH // 4, "reclaim": SLASH - SETTLE_PAY, "decline": 0}[ending]
    assert got == ({"dead": burnt} if burnt else {}) | ({"keeper": SETTLE_PAY} if ending == "reclaim" else {})
    assert node_state(market, node).bond == 0
    started = market.evm.now
    assert replace(market.unit(terms), flags=0, outcome=0) == Unit(
        state=State.OPEN, node=node, started=started, attempts=1, seconds=9_000
    )
    assert market.lock_of(terms) == BUDGET + 9_000 * MOST


def test_top_up__next_attempt__has_the_seconds_from_its_start(market: World) -> None:
    terms, _ = _topped(market, 9_000)
    market.give_up(terms)
    node, operator = other(market)
    market.claim(terms, node, sender=operator)
    unit = market.unit(terms)
    assert (unit.seconds, unit.mark) == (9_000, market.evm.now + 10_000 + 1_000)
    assert node_state(market, node).bond == BOND
    for _ in range(20):
        market.evm.warp(500)
        market.nodes.send.beat(node, sender=operator)
    market.submit(terms, sender=operator)
    receipt = market.accept(terms)
    assert receipt.event("Settled")["pay"] == 10_000 * SECOND
    assert market.lock_of(terms) == 0


def test_top_up__time_left__must_hold_the_longer_lease(world: World) -> None:
    """For the reopening itself, for a proposal, a claim, an ack and the expiry."""
    terms, _ = _topped(world, 9_000, deadline=world.evm.now + 30_000, match_window=0)
    longest = 10_000 + 1_000
    with world.evm.isolated():
        world.give_up(terms)
        assert world.state(terms) == State.OPEN
        node, operator = other(world)
        for offset in around(world, terms.deadline - longest):
            world.nodes.send.beat(node, sender=operator)
            if offset <= 0:
                world.claim(terms, node, sender=operator)
            else:
                with reverts("jobs: no time left"):
                    world.claim(terms, node, sender=operator)
        for offset in around(world, terms.deadline - longest + 1):
            if offset < 0:
                with reverts("jobs: not expired"):
                    world.expire(terms)
            else:
                with credited(world) as got:
                    world.expire(terms)
                assert got["submitter"] + got["keeper"] == BUDGET + 9_000 * MOST
    for offset in around(world, terms.deadline - longest):
        world.reclaim(terms)
        assert world.state(terms) == (State.OPEN if offset <= 0 else State.REFUNDED)


def test_top_up__proposed_again__needs_the_longer_time(world: World) -> None:
    terms, _ = won(world, deadline=world.evm.now + 30_000, **METERED)
    world.ack(terms)
    world.top_up(terms, 9_000)
    world.give_up(terms)
    node, operator = other(world)
    for offset in around(world, terms.deadline - 11_000):
        world.nodes.send.beat(node, sender=operator)
        if offset <= 0:
            world.propose(terms, node)
        else:
            with reverts("jobs: no time left"):
                world.propose(terms, node)


def test_top_up__last_attempt_lost__is_refunded_with_it(market: World) -> None:
    terms, _ = _topped(market, 9_000, max_attempts=1)
    with credited(market) as got:
        market.give_up(terms)
    assert got["submitter"] == PRICE + 9_000 * MOST + KEEPER_FEE
    assert market.lock_of(terms) == 0


def test_top_up__open_again_and_cancelled__is_refunded_with_it(market: World) -> None:
    terms, _ = _topped(market, 9_000)
    market.give_up(terms)
    with credited(market) as got:
        market.cancel(terms)
    assert got == {"submitter": BUDGET + 9_000 * MOST}


def test_top_up__lost__weighs_what_the_terms_say(world: World) -> None:
    """A submitter who tops up a lease that fails makes its failure no heavier."""
    plain, longer = (world.register(ask=OFFER.ask // 100) for _ in range(2))
    for node, seconds in ((plain, 0), (longer, 1_000)):
        terms = world.post(**METERED)
        world.claim(terms, node)
        if seconds:
            world.top_up(terms, seconds)
        world.give_up(terms)
    assert 0 < node_state(world, plain).s == node_state(world, longer).s


@pytest.mark.parametrize("verdict", [Verdict.CONFIRM, Verdict.REJECT, Verdict.VOID])
def test_top_up__judged__takes_the_bond_of_the_terms_and_moves_all_its_money(market: World, verdict: Verdict) -> None:
    terms, node = _topped(market, 9_000, **market.judged())
    market.evm.warp(100)
    market.submit(terms)
    market.dispute(terms)
    stake = market.node(node).stake
    with credited(market) as got:
        market.rule(terms, verdict, payee=market.keeper)
    held = BUDGET + 9_000 * MOST
    assert stake - market.node(node).stake == (BOND if verdict == Verdict.REJECT else 0)
    assert got["submitter"] == held - {
        Verdict.CONFIRM: 100 * SECOND + SETTLE_PAY,
        Verdict.REJECT: 0,
        Verdict.VOID: VOID_PAY,
    }.get(verdict, 0)
    assert market.lock_of(terms) == 0


def test_top_up__unproven__costs_the_node_the_slash_of_the_terms(market: World) -> None:
    flags = TermsFlag.NEWCOMERS | TermsFlag.PROVEN
    terms, node = _topped(market, 9_000, **market.judged(flags=flags))
    market.submit(terms)
    market.evm.at(terms.deadline + terms.challenge_window)
    stake = market.node(node).stake
    with credited(market) as got:
        market.settle(terms)
    assert got["submitter"] == BUDGET + 9_000 * MOST
    assert stake - market.node(node).stake == SLASH


def test_top_up__kept_checkpoint__is_paid_from_the_longer_time(market: World) -> None:
    """It has its seconds first, and the result what the longer lease leaves."""
    terms, _ = _topped(market, 500, checkpoint_every=60)
    market.evm.warp(600)
    market.checkpoint(terms)
    market.give_up(terms)
    node, operator = other(market)
    market.claim(terms, node, sender=operator, resume_from=1)
    market.evm.warp(890)
    market.nodes.send.beat(node, sender=operator)
    market.evm.warp(110)
    market.submit(terms, sender=operator)
    receipt = market.accept(terms)
    assert receipt.event("CheckpointPaid")["pay"] == 600 * SECOND * 8 // 10
    assert receipt.event("Settled")["pay"] == 900 * SECOND
    assert market.lock_of(terms) == 0
