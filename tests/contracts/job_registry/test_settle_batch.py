"""JobRegistry.settle_batch: many units in one transaction; what is stale is skipped."""

from __future__ import annotations

import pytest

from hearth.protocol import words
from hearth.protocol.types import State, Terms
from tests.kit.evm import Receipt, Reverted, reverts
from tests.kit.steps import BUDGET, FEE, PAY, SETTLE_PAY, credited, running, submitted
from tests.kit.world import ZERO, World


def _batch(world: World, items: list[tuple[Terms, int]], *, payee: str = ZERO) -> Receipt:
    packed = [(words.pack_terms(terms), index) for terms, index in items]
    return world.jobs.send.settle_batch(packed, payee, sender=world.keeper)


def test_settle_batch__several__pays_each(market: World) -> None:
    jobs = [submitted(market)[0] for _ in range(3)]
    with credited(market) as got:
        receipt = _batch(market, [(terms, 0) for terms in jobs])
    # The first waited 200 s and the second 100 s.
    rewards = [SETTLE_PAY * 2, SETTLE_PAY * 15 // 10, SETTLE_PAY]
    assert got == {
        "owner": 3 * (PAY - FEE),
        "treasury": 3 * FEE,
        "keeper": sum(rewards),
        "submitter": 3 * (BUDGET - PAY) - sum(rewards),
    }
    assert [event["job_id"] for event in receipt.events("Settled")] == [market.id_of(terms) for terms in jobs]


def test_settle_batch__array_units__are_named_by_index(world: World) -> None:
    node, terms = world.register(), world.post(units=3, flags=4)
    for index in range(3):
        world.claim(terms, node, index)
        world.submit(terms, index)
    receipt = _batch(world, [(terms, index) for index in (2, 0, 1)])
    assert [event["index"] for event in receipt.events("Settled")] == [2, 0, 1]
    assert world.header(terms).done == 3


def test_settle_batch__stale_items__are_skipped_and_pay_nothing(market: World) -> None:
    terms, _ = submitted(market)
    other, _ = running(market)
    with credited(market) as got:
        receipt = _batch(market, [(other, 0), (terms, 0), (terms, 0), (market.terms(), 0)], payee=market.stranger)
    assert len(receipt.events("Settled")) == 1
    assert got["stranger"] == SETTLE_PAY * 1 and "keeper" not in got
    assert (market.state(terms), market.state(other)) == (State.SETTLED, State.RUNNING)


def test_settle_batch__nothing_to_settle__reverts(world: World) -> None:
    terms, _ = running(world)
    for items in ([], [(terms, 0)], [(terms, 0), (world.terms(), 0)]):
        with reverts("jobs: nothing to do"):
            _batch(world, items)


def test_settle_batch__index_of_no_unit__reverts_the_batch(world: World) -> None:
    terms, _ = submitted(world)
    with reverts("jobs: no such unit"):
        _batch(world, [(terms, 0), (terms, 1)])


def test_settle_batch__batch__takes_64_and_no_more(world: World) -> None:
    terms, _ = submitted(world)
    with pytest.raises(Reverted):
        _batch(world, [(terms, 0)] * 65)
    assert len(_batch(world, [(terms, 0)] * 64).events("Settled")) == 1
