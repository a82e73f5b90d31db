"""JobRegistry.checkpoints: what lost leases left, who resumes from it, and what it earns by a result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.types import SENTINEL, Kept, NodeId, Outcome, State, Terms, TermsFlag, Verdict
from tests.kit.evm import Receipt, reverts
from tests.kit.steps import (
    BUDGET,
    PRICE,
    RESUMABLE,
    SETTLE_PAY,
    STALE,
    WINDOW,
    credited,
    lose,
    lost,
    other,
    running,
    submitted,
)
from tests.kit.world import OFFER, POLICY, UNBONDING, World

ENDINGS = ["give_up", "reclaim"]
SECOND = OFFER.ask // 10**6
"""What a second pays at the ask of every node here."""
PROVEN = TermsFlag.NEWCOMERS | TermsFlag.PROVEN


def _resumed(
    world: World, *, seconds: int = 100, runs: int = 200, outcome: int = 1, **overrides: Any
) -> tuple[Terms, NodeId, str]:
    """Checkpoint after `seconds`, lose it, resume it on another's node, and submit after `runs` seconds."""
    terms, _ = lost(world, seconds=seconds, **overrides)
    node, operator = other(world)
    world.claim(terms, node, sender=operator, resume_from=1)
    world.evm.warp(runs)
    world.submit(terms, outcome=outcome, sender=operator)
    return terms, node, operator


def _paid(receipt: Receipt) -> list[tuple[int, int, int]]:
    """Return (attempt, pay, fee) of each checkpoint that was paid, in order."""
    return [(event["attempt"], event["pay"], event["fee"]) for event in receipt.events("CheckpointPaid")]


def _share(seconds: int) -> tuple[int, int]:
    """Return what a kept checkpoint of so many seconds earns, and the fee of it."""
    pay = SECOND * seconds * 8 // 10
    return pay, pay * 5 // 100


# ---- what is kept ----


@pytest.mark.parametrize("ending", ENDINGS)
def test_checkpoints__lease_lost__keeps_its_last(market: World, ending: str) -> None:
    terms, node = running(market, **RESUMABLE)
    for _ in range(2):
        market.evm.warp(60)
        market.checkpoint(terms)
    market.evm.warp(60)
    lose(market, terms, ending)
    assert market.state(terms) == State.OPEN
    assert market.kept(terms, 1) == Kept(seconds=120, rate=OFFER.ask, node=node, resume=0)
    assert market.kept(terms, 0) == market.kept(terms, 2) == Kept()


@pytest.mark.parametrize("ending", ENDINGS)
def test_checkpoints__lease_without_one__keeps_none(world: World, ending: str) -> None:
    terms, _ = running(world, **RESUMABLE)
    world.evm.warp(60)
    lose(world, terms, ending)
    assert world.kept(terms, 1) == Kept()


def test_checkpoints__declined__keeps_none(world: World) -> None:
    terms, _ = running(world, **RESUMABLE)
    world.evm.warp(30)
    world.checkpoint(terms)
    world.decline(terms)
    assert world.state(terms) == State.OPEN and world.kept(terms, 1) == Kept()


@pytest.mark.parametrize("ending", ENDINGS)
def test_checkpoints__unit_that_does_not_open_again__keeps_none(world: World, ending: str) -> None:
    """Its last attempt, a deadline too near for another, and an array that was closed."""
    last, _ = lost(world, ending=ending, max_attempts=1)
    near, _ = lost(world, ending=ending, deadline=world.evm.now + 1_350)
    node, array = world.register(), world.post(units=2, **RESUMABLE)
    world.claim(array, node, 0)
    world.evm.warp(60)
    world.checkpoint(array)
    world.cancel(array, SENTINEL)
    lose(world, array, ending)
    for terms in (last, near, array):
        assert world.state(terms) == State.REFUNDED and world.kept(terms, 1) == Kept()


def test_checkpoints__closing_lease__keeps_none(world: World) -> None:
    terms, _ = running(world, **RESUMABLE)
    world.evm.warp(60)
    world.checkpoint(terms)
    world.cancel(terms)
    world.evm.at(world.unit(terms).mark)
    world.close(terms)
    assert world.kept(terms, 1) == Kept()


def test_checkpoints__units_of_an_array__have_keys_of_their_own(world: World) -> None:
    node, terms = world.register(), world.post(units=3, **RESUMABLE)
    for index in (0, 1):
        world.claim(terms, node, index)
    world.evm.warp(70)
    world.checkpoint(terms, 1)
    for index in (0, 1):
        world.give_up(terms, index)
    assert world.kept(terms, 1, 1) == Kept(70, OFFER.ask, node)
    assert world.kept(terms, 1, 0) == world.kept(terms, 1, 2) == Kept()
    assert world.jobs.call.checkpoints(world.id_of(terms), 1) == 0
    taker, operator = other(world)
    with reverts("jobs: no such checkpoint"):
        world.claim(terms, taker, 0, sender=operator, resume_from=1)
    world.claim(terms, taker, 1, sender=operator, resume_from=1)
    world.evm.warp(10)
    world.submit(terms, 1, sender=operator)
    world.evm.warp(1)
    receipt = world.settle(terms, 1)
    assert receipt.event("CheckpointPaid") == {
        "job_id": world.id_of(terms),
        "index": 1,
        "node": node,
        "attempt": 1,
        "pay": _share(70)[0],
        "fee": _share(70)[1],
    }


# ---- who resumes ----


def test_checkpoints__resumed__is_in_the_word_and_in_what_is_kept_next(world: World) -> None:
    terms, _ = lost(world)
    node, operator = other(world)
    receipt = world.claim(terms, node, sender=operator, resume_from=1)
    unit = world.unit(terms)
    assert (unit.attempts, unit.resume, unit.resumable) == (2, 1, True)
    assert words.unpack_unit(receipt.event("Started")["word"]) == unit
    world.evm.warp(40)
    world.checkpoint(terms, sender=operator)
    world.give_up(terms, sender=operator)
    assert world.kept(terms, 2) == Kept(40, OFFER.ask, node, resume=1, before=100)
    assert (world.unit(terms).resume, world.unit(terms).resumable) == (0, False)


def test_checkpoints__acked_with_one__is_in_the_word(world: World) -> None:
    terms, _ = _lost_match(world)
    node, operator = other(world)
    world.propose(terms, node)
    world.evm.warp(30)
    for attempt in (2, 3):
        with reverts("jobs: no such checkpoint"):
            world.ack(terms, sender=operator, resume_from=attempt)
    world.ack(terms, sender=operator, resume_from=1)
    assert world.unit(terms).resume == 1


def _lost_match(world: World) -> tuple[Terms, NodeId]:
    node, terms = world.register(), world.post(match_window=30, **RESUMABLE)
    world.propose(terms, node)
    world.evm.warp(30)
    world.ack(terms)
    world.evm.warp(100)
    world.checkpoint(terms)
    world.give_up(terms)
    return terms, node


def test_checkpoints__of_an_attempt_that_left_none__cannot_be_resumed(world: World) -> None:
    terms, _ = running(world, **RESUMABLE)
    world.give_up(terms)
    node, operator = other(world)
    for attempt in (1, 2):
        with reverts("jobs: no such checkpoint"):
            world.claim(terms, node, sender=operator, resume_from=attempt)
    world.claim(terms, node, sender=operator)
    assert world.unit(terms).resume == 0


# ---- what they earn ----


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", ["native", "erc20"])
def test_checkpoints__worked_example__is_to_the_unit(kind: str, ending: str) -> None:
    """protocol.md's: 61 s at 333,333,333 a second and million; 40 s kept, so of the result's 30 s 21 s are billed."""
    world = World(erc20=kind == "erc20", policy=replace(POLICY, min_price=1, min_keeper_fee=8))
    first, _ = other(world, "first", ask=250_000_001)
    second, operator = other(world, "second", ask=300_000_000)
    terms = world.post(ceiling=333_333_333, max_seconds=61, keeper_fee=1_001, **RESUMABLE)
    assert world.lock_of(terms) == 20_334 + 3 * 1_001
    world.evm.warp(POLICY.claim_ramp)
    world.claim(terms, first, sender=world.evm.account("first operator"))
    world.evm.warp(40)
    world.checkpoint(terms, sender=world.evm.account("first operator"))
    lose(world, terms, ending, sender=world.evm.account("first operator"))
    world.evm.warp(POLICY.claim_ramp)
    world.claim(terms, second, sender=operator, resume_from=1)
    world.evm.warp(30)
    world.submit(terms, sender=operator)
    world.evm.warp(1)
    keeper = world.credit(world.keeper)
    with credited(world) as got:
        receipt = world.settle(terms, payee=world.stranger)
    # 300 x 21 = 6,300, fee 315; 250.000001 x 40 x 8 // 10 = 8,000, fee 400; an eighth of 1,001 grown by 0.5 %.
    assert (receipt.event("Settled")["pay"], receipt.event("Settled")["fee"]) == (6_300, 315)
    assert _paid(receipt) == [(1, 8_000, 400)]
    assert world.credit(world.evm.account("second")) == 5_985
    assert world.credit(world.evm.account("first")) == 7_600
    assert got == {"stranger": 125, "treasury": 715, "submitter": 23_337 - 6_300 - 8_000 - 125}
    assert world.credit(world.keeper) == keeper and world.lock_of(terms) == 0


@pytest.mark.parametrize(
    ("kept", "runs", "billed"), [(100, 200, 200), (100, 900, 900), (100, 901, 900), (100, 1_000, 900), (890, 500, 110)]
)
def test_checkpoints__settled__are_paid_first_and_the_result_what_they_leave_of_the_seconds(
    market: World, kept: int, runs: int, billed: int
) -> None:
    terms, _, _ = _resumed(market, seconds=kept, runs=runs)
    market.evm.warp(1)
    with credited(market) as got:
        receipt = market.settle(terms)
    pay, fee = SECOND * billed, SECOND * billed * 5 // 100
    more, tax = _share(kept)
    assert _paid(receipt) == [(1, more, tax)]
    assert got.get("owner", 0) == more - tax
    assert got["treasury"] == fee + tax
    assert market.credit(market.evm.account("other")) == pay - fee
    settled = SETTLE_PAY * 1_005 // 1_000
    assert got["submitter"] == BUDGET - pay - more - settled
    assert market.lock_of(terms) == 0


def test_checkpoints__result_past_max_seconds__leaves_them_their_seconds(world: World) -> None:
    """In its grace a lease bills all that is left."""
    terms, _, _ = _resumed(world, runs=1_200)
    receipt = world.accept(terms)
    assert receipt.event("Settled")["pay"] == SECOND * 900 and _paid(receipt) == [(1, *_share(100))]


def test_checkpoints__unit_of_one_second__pays_it(world: World) -> None:
    """Its lease lasts that second and the grace; what was kept in it has all that the unit can pay."""
    terms, _, _ = _resumed(world, max_seconds=1)
    receipt = world.accept(terms)
    assert receipt.event("Settled")["pay"] == 0 and _paid(receipt) == [(1, *_share(1))]


@pytest.mark.parametrize("outcome", [2, 3, 4, 5])
def test_checkpoints__outcome_not_ok__pays_none(world: World, outcome: int) -> None:
    terms, _, _ = _resumed(world, outcome=outcome)
    with credited(world) as got:
        receipt = world.accept(terms)
    assert _paid(receipt) == [] and got["submitter"] == BUDGET - SECOND * 200


def test_checkpoints__accepted__pays_them_too(market: World) -> None:
    terms, _, _ = _resumed(market)
    with credited(market) as got:
        receipt = market.accept(terms)
    assert _paid(receipt) == [(1, *_share(100))]
    assert got["submitter"] == BUDGET - SECOND * 200 - _share(100)[0]
    assert got["owner"] == _share(100)[0] - _share(100)[1]


def test_checkpoints__batch__pays_each_its_own(world: World) -> None:
    items = [_resumed(world, seconds=seconds)[0] for seconds in (50, 70)]
    world.evm.warp(1)
    receipt = world.jobs.send.settle_batch([(words.pack_terms(terms), 0) for terms in items], world.keeper)
    assert _paid(receipt) == [(1, *_share(50)), (1, *_share(70))]


def test_checkpoints__result_that_resumed_none__pays_none(world: World) -> None:
    terms, _ = lost(world)
    node, operator = other(world)
    world.claim(terms, node, sender=operator)
    world.evm.warp(10)
    world.submit(terms, sender=operator)
    assert _paid(world.accept(terms)) == []


def test_checkpoints__resumed_twice__pays_the_one_once(world: World) -> None:
    """Two attempts resumed from the first; the one between left nothing that the last took up."""
    terms, first = lost(world)
    node, operator = other(world)
    world.claim(terms, node, sender=operator, resume_from=1)
    world.evm.warp(20)
    world.checkpoint(terms, sender=operator)
    world.give_up(terms, sender=operator)
    world.claim(terms, first, resume_from=1)
    world.evm.warp(10)
    world.submit(terms)
    assert _paid(world.accept(terms)) == [(1, *_share(100))]


def _chain(world: World, seconds: list[int], **overrides: Any) -> tuple[Terms, list[tuple[NodeId, str]]]:
    """Have two nodes lose a unit in turn, each resuming the other, with a checkpoint after so many seconds each."""
    nodes = [other(world, "even"), other(world, "odd")]
    terms = world.post(max_attempts=len(seconds) + 1, **RESUMABLE, **overrides)
    for at, run in enumerate(seconds):
        node, operator = nodes[at % 2]
        _ready(world, nodes)
        world.claim(terms, node, sender=operator, resume_from=at)
        world.evm.warp(run)
        world.checkpoint(terms, sender=operator)
        world.give_up(terms, sender=operator)
    return terms, nodes


def _ready(world: World, nodes: list[tuple[NodeId, str]]) -> None:
    """Wait for the end of both nodes' quarantines, and let them beat."""
    world.evm.at(max(world.evm.now, *(world.node(node).state.quarantine for node, _ in nodes)))
    for node, operator in nodes:
        world.nodes.send.beat(node, sender=operator)


@pytest.mark.parametrize(
    ("spans", "runs", "billed", "paid"),
    [
        ([110, 120, 130, 140, 150, 160, 170], 300, 20, [170, 160, 150, 140, 130, 120, 110]),
        ([110, 120, 130, 140, 150, 160, 190], 300, 0, [190, 160, 150, 140, 130, 120, 110]),
        ([110, 120, 130, 140, 150, 160, 200], 300, 0, [190, 160, 150, 140, 130, 120, 110]),
        ([110, 120, 130, 140, 150, 400, 400], 300, 0, [0, 350, 150, 140, 130, 120, 110]),
        ([890, 120, 130, 140, 150, 160, 170], 300, 0, [0, 0, 0, 0, 0, 110, 890]),
    ],
)
def test_checkpoints__chain__the_oldest_has_the_seconds_first(
    world: World, spans: list[int], runs: int, billed: int, paid: list[int]
) -> None:
    """Seven, the most that eight attempts leave. Who takes a state up again without work finds nothing left for it."""
    terms, nodes = _chain(world, spans, deadline=world.evm.now + 300 * 86_400, bond_bps=0)
    _ready(world, nodes)
    node, operator = nodes[1]
    world.claim(terms, node, sender=operator, resume_from=7)
    assert [world.kept(terms, attempt).resume for attempt in range(1, 8)] == [0, 1, 2, 3, 4, 5, 6]
    world.evm.warp(runs)
    world.submit(terms, sender=operator)
    before = [world.credit(world.evm.account(name)) for name in ("even", "odd")]
    receipt = world.accept(terms)
    wanted = [(7 - at, *_share(seconds)) for at, seconds in enumerate(paid) if seconds]
    assert _paid(receipt) == wanted
    pay = receipt.event("Settled")["pay"]
    assert pay == SECOND * billed
    assert pay + sum(more for _, more, _ in wanted) <= PRICE
    # Attempts 1, 3, 5 and 7 are of the first owner, as the chain began with his node.
    even = sum(more - fee for attempt, more, fee in wanted if attempt % 2)
    odd = sum(more - fee for attempt, more, fee in wanted if attempt % 2 == 0) + pay - receipt.event("Settled")["fee"]
    after = [world.credit(world.evm.account(name)) for name in ("even", "odd")]
    assert [late - early for early, late in zip(before, after, strict=True)] == [even, odd]
    assert world.lock_of(terms) == 0


def test_checkpoints__owner_that_left__is_paid_nothing_and_the_submitter_keeps_it(market: World) -> None:
    """The others are paid as if it had been paid too."""
    deadline = market.evm.now + 3 * UNBONDING
    terms, nodes = _chain(market, [300, 400], deadline=deadline)
    (_, first), (leaver, _) = nodes
    market.nodes.send.exit_start(leaver, sender=market.evm.account("odd"))
    market.evm.warp(UNBONDING)
    market.nodes.send.exit_finish(leaver, sender=market.stranger)
    last, operator = other(market, "last")
    market.claim(terms, last, sender=operator, resume_from=2)
    market.evm.warp(500)
    market.submit(terms, sender=operator)
    assert first
    gone, even = market.credit(market.evm.account("odd")), market.credit(market.evm.account("even"))
    with credited(market) as got:
        receipt = market.accept(terms)
    assert _paid(receipt) == [(1, *_share(300))], "300 s of the first, 400 s of who left, so 300 s billed of 500"
    assert market.credit(market.evm.account("odd")) == gone
    assert market.credit(market.evm.account("even")) - even == _share(300)[0] - _share(300)[1]
    assert got["submitter"] == PRICE + 3 * 10**14 - SECOND * 300 - _share(300)[0]


# ---- judged ones ----


def _fields(outcome: int) -> int:
    return words.pack(words.FIELDS, {"outcome": outcome, "seconds": 0})


@pytest.mark.parametrize(
    ("outcome", "fields", "paid"), [(1, 0, True), (2, 0, False), (2, 1, True), (1, 3, False), (1, 1, True)]
)
def test_checkpoints__confirmed__pays_by_the_outcome_that_the_judge_found(
    market: World, outcome: int, fields: int, paid: bool
) -> None:
    terms, _, _ = _resumed(market, outcome=outcome, **market.judged())
    with credited(market) as got:
        receipt = market.rule(terms, Verdict.CONFIRM, fields=_fields(fields) if fields else 0, payee=market.keeper)
    assert _paid(receipt) == ([(1, *_share(100))] if paid else [])
    pay = SECOND * 200 + (_share(100)[0] if paid else 0)
    assert got["submitter"] == BUDGET - pay - SETTLE_PAY and got["keeper"] == SETTLE_PAY
    assert market.lock_of(terms) == 0


def test_checkpoints__held_released_and_settled__pays_the_seconds_to_the_submit(market: World) -> None:
    """The time of a dispute is nobody's."""
    terms, _, _ = _resumed(market, **market.judged())
    market.dispute(terms)
    market.evm.warp(500)
    market.rule(terms, Verdict.RELEASE)
    market.evm.warp(WINDOW)
    receipt = market.settle(terms)
    assert receipt.event("Settled")["pay"] == SECOND * 200 and _paid(receipt) == [(1, *_share(100))]


def test_checkpoints__held_too_long__pays_them(world: World) -> None:
    terms, _, _ = _resumed(world, **world.judged())
    world.dispute(terms)
    world.evm.warp(WINDOW + STALE)
    assert _paid(world.settle(terms)) == [(1, *_share(100))]


@pytest.mark.parametrize("verdict", [Verdict.REJECT, Verdict.VOID])
def test_checkpoints__rejected_or_void__pays_none(world: World, verdict: Verdict) -> None:
    terms, _, _ = _resumed(world, **world.judged())
    world.dispute(terms)
    with credited(world) as got:
        assert _paid(world.rule(terms, verdict)) == []
    assert "owner" not in got and world.state(terms) == State.REFUNDED


def test_checkpoints__unproven__pays_none(world: World) -> None:
    terms, _, _ = _resumed(world, **world.judged(flags=PROVEN))
    world.evm.at(terms.deadline + terms.challenge_window)
    with credited(world) as got:
        assert _paid(world.settle(terms)) == []
    assert got["submitter"] == BUDGET and "owner" not in got


# ---- ends that pay none ----


def test_checkpoints__cancelled_closed_and_expired__pay_none(market: World) -> None:
    cancelled, _ = lost(market)
    assert _paid(market.cancel(cancelled)) == []

    closed, _ = lost(market)
    node, operator = other(market)
    market.claim(closed, node, sender=operator, resume_from=1)
    market.cancel(closed)
    market.evm.at(market.unit(closed).mark)
    assert _paid(market.close(closed)) == []

    expired, _ = lost(market)
    market.evm.at(formulas.expirable_from(expired))
    assert _paid(market.expire(expired)) == []

    assert market.credit(market.owner) == 0
    assert all(market.lock_of(terms) == 0 for terms in (cancelled, closed, expired))


@pytest.mark.parametrize("ending", ENDINGS)
def test_checkpoints__last_attempt_lost__refunds_all(world: World, ending: str) -> None:
    terms, _ = lost(world, max_attempts=2)
    node, operator = other(world)
    world.claim(terms, node, sender=operator, resume_from=1)
    world.evm.warp(30)
    world.checkpoint(terms, sender=operator)
    with credited(world) as got:
        lose(world, terms, ending, sender=operator)
    assert got["submitter"] == PRICE + 2 * 10**14 and world.credit(world.owner) == 0


def test_checkpoints__plain_result__pays_none_and_reads_none(world: World) -> None:
    terms, _ = submitted(world, **RESUMABLE)
    receipt = world.accept(terms)
    assert _paid(receipt) == [] and world.unit(terms).outcome == Outcome.OK
