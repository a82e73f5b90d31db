"""JobRegistry.close: the end of a cancelled lease that was never submitted; its time is paid."""

from __future__ import annotations

import pytest

from hearth.protocol.types import SENTINEL, Billing, State
from tests.kit.evm import reverts
from tests.kit.steps import BUDGET, SETTLE_PAY, TIP, around, credited, node_state, running, submitted
from tests.kit.world import OFFER, World

RATE = OFFER.ask // 10**6


@pytest.mark.parametrize("billing", list(Billing))
def test_close__notice_over__pays_elapsed_notice_and_start_fee(market: World, billing: Billing) -> None:
    terms, node = running(market, billing=billing)
    market.evm.warp(100)
    market.cancel(terms)
    market.evm.warp(120)
    with credited(market) as got:
        receipt = market.close(terms)
    pay = RATE * (100 + 120 + 60)
    fee = pay // 20
    assert got == {
        "owner": pay - fee,
        "treasury": fee,
        "keeper": SETTLE_PAY,
        "submitter": BUDGET - pay - SETTLE_PAY,
    }
    assert receipt.event("Closed") == {
        "job_id": market.id_of(terms),
        "index": 0,
        "node": node,
        "word": market.load(terms)[1],
        "pay": pay,
        "fee": fee,
    }
    assert market.state(terms) == State.CANCELLED
    word = node_state(market, node)
    assert (word.busy, word.bond, word.r, word.s) == (0, 0, 0, 0)
    assert market.lock_of(terms) == 0


def test_close__notice__is_over_at_its_last_second(world: World) -> None:
    terms, _ = running(world)
    world.cancel(terms)
    for offset in around(world, world.unit(terms).mark):
        if offset < 0:
            with reverts("jobs: notice still running"):
                world.close(terms)
        else:
            world.close(terms)


@pytest.mark.parametrize(("elapsed", "seconds"), [(879, 1_059), (880, 1_060), (881, 1_060), (1_200, 1_060)])
def test_close__long_lease__bills_at_most_max_seconds_and_the_start_fee(
    world: World, elapsed: int, seconds: int
) -> None:
    terms, node = running(world)
    world.evm.warp(600)
    world.nodes.send.beat(node, sender=world.operator)
    world.evm.warp(elapsed - 600)
    world.cancel(terms)
    world.evm.at(world.unit(terms).mark)
    with credited(world) as got:
        world.close(terms)
    assert got["owner"] + got["treasury"] == RATE * seconds


def test_close__rate_near_the_ceiling__pays_no_more_than_the_price(world: World) -> None:
    node = world.register(ask=10**20)
    terms = world.post()
    world.evm.warp(world.policy.claim_ramp)
    world.claim(terms, node)
    world.evm.warp(600)
    world.nodes.send.beat(node, sender=world.operator)
    world.evm.warp(390)
    world.cancel(terms)
    world.evm.at(world.unit(terms).mark)
    with credited(world) as got:
        world.close(terms)
    assert got["owner"] + got["treasury"] == 10**17
    assert got["submitter"] == 3 * 10**14 - SETTLE_PAY


@pytest.mark.parametrize(("overdue", "permille"), [(0, 1_000), (1, 1_005), (599, 3_995), (600, 4_000), (601, 4_000)])
def test_close__late__ramps_the_pay_but_not_the_bill(world: World, overdue: int, permille: int) -> None:
    terms, _ = running(world)
    world.cancel(terms)
    world.evm.at(world.unit(terms).mark + overdue)
    with credited(world) as got:
        world.close(terms, payee=world.stranger)
    assert got["stranger"] == SETTLE_PAY * permille // 1_000
    assert got["owner"] + got["treasury"] == RATE * 180


def test_close__after_a_tip__refunds_the_tip_less(world: World) -> None:
    node, terms = world.register(), world.post(match_window=30)
    world.propose(terms, node)
    world.evm.warp(30)
    world.ack(terms)
    world.cancel(terms)
    world.evm.warp(120)
    with credited(world) as got:
        world.close(terms)
    assert got["submitter"] == BUDGET - TIP - RATE * 180 - SETTLE_PAY


def test_close__not_closing__reverts(world: World) -> None:
    for terms in (world.terms(), world.post(), running(world)[0], submitted(world)[0]):
        with reverts("jobs: not closing"):
            world.close(terms)


def test_close__twice__reverts(world: World) -> None:
    terms, _ = running(world)
    world.cancel(terms)
    world.evm.warp(120)
    world.close(terms)
    with reverts("jobs: not closing"):
        world.close(terms)


def test_close__index_of_no_unit__reverts(world: World) -> None:
    terms, _ = running(world)
    world.cancel(terms)
    world.evm.warp(120)
    for index in (1, SENTINEL):
        with reverts("jobs: no such unit"):
            world.close(terms, index)
    assert world.close(terms).event("Closed")["index"] == 0


def test_close__array_unit__counts_as_failed(world: World) -> None:
    node, terms = world.register(), world.post(units=2, flags=4)
    world.claim(terms, node, 0)
    world.claim(terms, node, 1)
    world.cancel(terms, 1)
    world.evm.warp(120)
    assert world.close(terms, 1).event("Closed")["index"] == 1
    assert world.header(terms).failed == 1
    assert world.lock_of(terms) == BUDGET
