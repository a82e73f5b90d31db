"""JobRegistry.finish: a result that is submitted and settled in one call, and the next unit of its array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.reputation import ONE
from hearth.protocol.types import SENTINEL, Billing, NodeId, Outcome, State, Terms, TermsFlag, Unit, UnitFlag
from tests.kit.evm import Receipt, Reverted, reverts
from tests.kit.steps import (
    BUDGET,
    FEE,
    PAY,
    RESUMABLE,
    SETTLE_PAY,
    around,
    credited,
    node_state,
    other,
    running,
    season,
    seasoned,
)
from tests.kit.world import OFFER, REPORT, RESULT, SESSION, World

PAID = {"owner": PAY - FEE + SETTLE_PAY, "treasury": FEE, "submitter": BUDGET - PAY - SETTLE_PAY}


def _array(world: World, *, slots: int = 4, **overrides: Any) -> tuple[Terms, NodeId]:
    """Claim the first of an array's three units for a seasoned node, long after open claims reached its ask."""
    node = world.register(slots=slots)
    season(world, node)
    terms = world.post(**{"units": 3, **overrides})
    world.claim(terms, node, SENTINEL)
    return terms, node


def test_finish__running__ends_the_unit_and_pays_at_once(market: World) -> None:
    terms, node = seasoned(market)
    before, hot = market.unit(terms), node_state(market, node)
    market.evm.warp(100)
    with credited(market) as got:
        receipt = market.finish(terms)
    now = market.evm.now
    assert got == PAID and market.lock_of(terms) == 0
    assert market.unit(terms) == replace(before, state=State.SETTLED, outcome=Outcome.OK, mark=now)
    assert receipt.event("Finished") == {
        "job_id": market.id_of(terms),
        "index": 0,
        "node": node,
        "word": market.load(terms)[1],
        "result": RESULT,
        "report": REPORT,
        "pay": PAY,
        "fee": FEE,
    }
    for name in ("Submitted", "Settled", "Started"):
        assert receipt.events(name) == []
    after = node_state(market, node)
    assert (after.busy, after.bond, after.beat) == (0, 0, now)
    assert after.seasoned and after.count == hot.count + 1
    assert market.load(terms)[2] == 0


@pytest.mark.parametrize("claims", [False, True])
@pytest.mark.parametrize("outcome", list(range(1, 6)))
@pytest.mark.parametrize("billing", list(Billing))
@pytest.mark.parametrize("ending", ["running", "closing"])
def test_finish__beside_a_submit_and_a_settle__ends_in_the_same_words_and_credits(
    market: World, billing: Billing, outcome: int, ending: str, claims: bool
) -> None:
    """In the same second, the settler's payee being the owner. With `claims` the node then claims the next unit."""
    terms, node = _array(market, billing=billing)
    used = 500 if billing == Billing.FUEL else 0
    market.evm.warp(60)
    if ending == "closing":
        market.cancel(terms)
        market.evm.warp(30)

    def found() -> tuple[Any, ...]:
        loads = [market.load(terms, index) for index in range(3)]
        return (*loads, market.node(node), market.locked(market.submitter))

    with market.evm.isolated():
        with credited(market) as apart:
            market.submit(terms, outcome=outcome, used=used)
            market.settle(terms, payee=market.owner)
            if claims:
                market.claim(terms, node, SENTINEL)
        wanted = found()
    with credited(market) as at_once:
        receipt = market.finish(terms, outcome=outcome, used=used, claims=claims)
    assert found() == wanted and at_once == apart
    assert len(receipt.events("Started")) == claims
    assert market.header(terms).touched == 1 + claims


@pytest.mark.parametrize("outcome", [0, 6, 7, 8, 9, 15, 16, 2**256 - 1])
def test_finish__outcome_out_of_range__reverts(world: World, outcome: int) -> None:
    terms, _ = seasoned(world)
    with reverts("jobs: outcome out of range"):
        world.finish(terms, outcome=outcome)


@pytest.mark.parametrize(("billing", "used"), [(0, 1), (1, 0), (1, 2**24), (2, 1)])
def test_finish__used_out_of_range__reverts(world: World, billing: int, used: int) -> None:
    terms, _ = seasoned(world, billing=Billing(billing))
    with reverts("jobs: used out of range"):
        world.finish(terms, used=used)


def test_finish__result_zero__reverts(world: World) -> None:
    terms, _ = seasoned(world)
    packed = words.pack_terms(terms)
    with reverts("jobs: result zero"):
        world.jobs.send.finish(packed, 0, bytes(32), REPORT, 1, 0, False, bytes(32), sender=world.operator)


@pytest.mark.parametrize("noticed", [False, True])
def test_finish__lease_end_or_notices__is_too_late(world: World, noticed: bool) -> None:
    terms, _ = seasoned(world)
    if noticed:
        world.cancel(terms)
    for offset in around(world, world.unit(terms).mark):
        if offset < 0:
            world.finish(terms)
            assert world.state(terms) == State.SETTLED
        else:
            with reverts("jobs: too late to submit"):
                world.finish(terms)


def test_finish__not_the_operator__reverts(world: World) -> None:
    terms, _ = seasoned(world)
    for sender in (world.owner, world.submitter, world.keeper):
        with reverts("nodes: not the operator"):
            world.finish(terms, sender=sender)


def test_finish__neither_running_nor_closing__reverts(world: World) -> None:
    terms, _ = seasoned(world)
    world.finish(terms)
    for found in (terms, world.post(), world.post(units=2), world.terms()):
        with reverts("jobs: not running"):
            world.finish(found)
    with reverts("jobs: no such unit"):
        world.finish(world.post(), 1)


def test_finish__node_on_probation__reverts_also_once_it_is_over(world: World) -> None:
    """FRESH is of the lease: it stays when the node's probation ends."""
    terms, node = running(world)
    assert world.unit(terms).flags & UnitFlag.FRESH
    with reverts("jobs: too early to settle"):
        world.finish(terms)
    season(world, node)
    with reverts("jobs: too early to settle"):
        world.finish(terms)
    world.submit(terms)
    world.settle(terms)


def test_finish__terms_that_name_a_judge__reverts(world: World) -> None:
    terms, _ = seasoned(world, **world.judged())
    with reverts("jobs: too early to settle"):
        world.finish(terms)


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.EXIT])
def test_finish__keep__stores_the_digest(world: World, outcome: Outcome) -> None:
    terms, _ = seasoned(world, flags=TermsFlag.NEWCOMERS | TermsFlag.KEEP)
    world.finish(terms, outcome=outcome)
    assert world.load(terms)[2] == int.from_bytes(RESULT, "big")


def test_finish__success_after_a_decline__accuses_the_decliner(world: World) -> None:
    terms, first = running(world)
    world.decline(terms)
    node, operator = other(world)
    season(world, node, operator=operator)
    world.claim(terms, node, sender=operator)
    world.finish(terms, sender=operator)
    assert node_state(world, first).s == ONE


def test_finish__failure_after_a_decline__accuses_nobody(world: World) -> None:
    terms, first = running(world)
    world.decline(terms)
    node, operator = other(world)
    season(world, node, operator=operator)
    world.claim(terms, node, sender=operator)
    world.finish(terms, outcome=2, sender=operator)
    assert node_state(world, first).s == 0


def test_finish__resumed__pays_the_kept_checkpoint(market: World) -> None:
    node, operator = other(market)
    season(market, node, operator=operator)
    terms, _ = running(market, **RESUMABLE)
    market.evm.warp(100)
    market.checkpoint(terms)
    market.give_up(terms)
    market.claim(terms, node, resume_from=1, sender=operator)
    market.evm.warp(10)
    receipt = market.finish(terms, sender=operator)
    (earned,) = receipt.events("CheckpointPaid")
    assert earned["attempt"] == 1 and earned["pay"] > 0 and market.lock_of(terms) == 0


def test_finish__topped_up__is_paid_for_all_its_seconds(market: World) -> None:
    terms, _ = seasoned(market, billing=Billing.METERED)
    market.top_up(terms, 500)
    market.evm.warp(1_400)
    receipt = market.finish(terms)
    assert receipt.event("Finished")["pay"] == OFFER.ask * 1_400 // 10**6
    assert market.lock_of(terms) == 0


# ---- the next unit ----


def test_finish__claims__starts_the_next_untouched_unit(market: World) -> None:
    terms, node = _array(market)
    receipt = market.finish(terms, 0, claims=True)
    now = market.evm.now
    started = receipt.event("Started")
    assert started == {
        "job_id": market.id_of(terms),
        "index": 1,
        "node": node,
        "word": market.load(terms, 1)[1],
        "session_key": SESSION,
    }
    unit = market.unit(terms, 1)
    assert (unit.state, unit.node, unit.rate, unit.started) == (State.RUNNING, node, OFFER.ask, now)
    header = market.header(terms)
    assert (header.touched, header.done, header.failed) == (2, 1, 0)
    assert (node_state(market, node).busy, node_state(market, node).bond) == (1, formulas.bond(terms))
    assert [event.name for event in receipt.logs if event.name in ("Finished", "Started")] == ["Finished", "Started"]


def test_finish__one_slot__does_unit_after_unit_and_stops_at_the_last(market: World) -> None:
    terms, node = _array(market, slots=1)
    for index in range(3):
        receipt = market.finish(terms, index, claims=True)
        assert len(receipt.events("Started")) == (index < 2)
    assert market.header(terms).done == 3 and market.lock_of(terms) == 0
    assert (node_state(market, node).busy, node_state(market, node).bond) == (0, 0)


def test_finish__claims_not_asked__takes_nothing(world: World) -> None:
    terms, _ = _array(world)
    assert world.finish(terms, 0).events("Started") == []
    assert world.header(terms).touched == 1


def test_finish__claims_of_a_single_unit__is_paid_and_takes_nothing(world: World) -> None:
    terms, node = seasoned(world)
    assert world.finish(terms, claims=True).events("Started") == []
    assert node_state(world, node).busy == 0


def test_finish__reopened_unit_waits__takes_the_untouched_one(world: World) -> None:
    terms, node = _array(world)
    world.claim(terms, node, SENTINEL)
    world.decline(terms, 1)
    assert world.finish(terms, 0, claims=True).event("Started")["index"] == 2
    assert world.state(terms, 1) == State.OPEN


def _unpaid(world: World, terms: Terms, node: NodeId) -> Receipt:
    """Finish unit 0 with claims, and see that its result is paid and no lease begins."""
    before = world.header(terms)
    with credited(world) as got:
        receipt = world.finish(terms, 0, claims=True)
    assert receipt.events("Started") == [] and got["treasury"] == FEE
    assert world.state(terms) == State.SETTLED
    assert world.header(terms) == replace(before, done=before.done + 1)
    return receipt


def _submitter_operates(world: World, terms: Terms, node: NodeId) -> None:
    world.nodes.send.set_operator(node, world.submitter, sender=world.owner)
    world.nodes.send.beat(node, sender=world.submitter)
    world.operator = world.submitter


def _quarantined(world: World, terms: Terms, node: NodeId) -> None:
    # Enough failures of full weight that one success does not heal.
    while world.node(node).state.quarantine <= world.evm.now:
        lost = world.post(max_attempts=1)
        world.claim(lost, node)
        world.give_up(lost)


KEEPS: dict[str, Callable[[World, Terms, NodeId], None]] = {
    "closed array": lambda w, t, n: w.cancel(t, SENTINEL),
    "operator is the submitter": _submitter_operates,
    "quarantine": _quarantined,
    "exiting": lambda w, t, n: w.nodes.send.exit_start(n, sender=w.owner),
}


@pytest.mark.parametrize("why", KEEPS)
def test_finish__what_keeps_from_a_claim__leaves_the_result_paid(market: World, why: str) -> None:
    """The claim that finish leaves out is refused by itself too. A busy node's offer stands, so that slot, bond and
    sizes are there whenever the first lease had them.
    """
    terms, node = _array(market)
    KEEPS[why](market, terms, node)
    _unpaid(market, terms, node)
    with pytest.raises(Reverted, match=r"jobs: |nodes: "):
        market.claim(terms, node, SENTINEL)


@pytest.mark.parametrize("ask", [OFFER.ask, 2 * OFFER.ask, 4 * OFFER.ask])
def test_finish__open_claims_that_have_not_risen_to_the_ask__take_no_unit(world: World, ask: int) -> None:
    """A matched lease ends before any node may claim the next unit, or while claims pay less than its node asks."""
    node = world.register(ask=ask)
    season(world, node)
    terms = world.post(units=3, match_window=30)
    first = Unit(state=State.OPEN, started=world.evm.now)
    world.propose(terms, node, SENTINEL)
    world.evm.warp(30)
    world.ack(terms, 0)
    due = formulas.claimable_from(terms, first, ask)
    assert due is not None
    for offset in around(world, due):
        found = world.finish(terms, 0, claims=True).events("Started")
        assert len(found) == (offset >= 0)


def test_finish__no_time_before_the_deadline__takes_no_unit(world: World) -> None:
    node = world.register()
    season(world, node)
    terms = world.post(units=3, deadline=world.evm.now + 2_000)
    world.claim(terms, node, SENTINEL)
    for offset in around(world, formulas.expirable_from(terms)):
        found = world.finish(terms, 0, claims=True).events("Started")
        assert len(found) == (offset < 0)
