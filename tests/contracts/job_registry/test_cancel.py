"""JobRegistry.cancel: a refund while OPEN, notice while RUNNING, ALL for an array's untouched units."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol.parents import Condition
from hearth.protocol.types import SENTINEL, State, TermsFlag, UnitFlag
from tests.kit.evm import reverts
from tests.kit.steps import BUDGET, KEEPER_FEE, LEASE, TIP, around, credited, running, submitted
from tests.kit.vault import share
from tests.kit.world import DEAD_AFTER, World


def test_cancel__open__refunds_all(market: World) -> None:
    terms = market.post()
    with credited(market) as got:
        receipt = market.cancel(terms)
    assert got == {"submitter": BUDGET}
    assert market.state(terms) == State.CANCELLED
    word = market.load(terms)[1]
    assert receipt.event("Cancelled") == {"job_id": market.id_of(terms), "index": 0, "word": word, "refund": BUDGET}
    assert market.lock_of(terms) == 0


def test_cancel__open__splits_into_one_share(world: World) -> None:
    terms = world.post()
    split = world.cancel(terms).event("Split")
    assert list(split["shares"]) == [share(world.submitter, BUDGET), 0, 0, 0]


def test_cancel__one_lease_by_another_index__reverts(world: World) -> None:
    terms = world.post()
    for index in (1, SENTINEL):
        with reverts("jobs: no such unit"):
            world.cancel(terms, index)
    assert world.cancel(terms).event("Cancelled")["index"] == 0


def test_cancel__live_proposal__reverts_until_it_lapses(world: World) -> None:
    node, terms = world.register(), world.post(match_window=30)
    world.propose(terms, node)
    with reverts("jobs: a proposal is live"):
        world.cancel(terms)
    for offset in around(world, world.evm.now + 30 + 60):
        if offset < 0:
            with reverts("jobs: a proposal is live"):
                world.cancel(terms)
        else:
            world.cancel(terms)
            assert world.state(terms) == State.CANCELLED


def test_cancel__reopened_after_a_tip__refunds_what_is_left(market: World) -> None:
    node, terms = market.register(), market.post(match_window=30)
    market.propose(terms, node)
    market.evm.warp(30)
    market.ack(terms)
    market.evm.warp(LEASE)
    market.reclaim(terms)
    with credited(market) as got:
        market.cancel(terms)
    assert got == {"submitter": BUDGET - TIP}


def test_cancel__running__gives_notice(world: World) -> None:
    terms, node = running(world)
    before = world.unit(terms)
    world.evm.warp(10)
    with credited(world) as got:
        receipt = world.cancel(terms)
    assert got == {}
    after = world.unit(terms)
    flags = UnitFlag.NOTICED | UnitFlag.FRESH
    assert after == replace(before, state=State.CLOSING, mark=world.evm.now + 120, flags=flags)
    event = {"job_id": world.id_of(terms), "index": 0, "node": node, "word": world.load(terms)[1]}
    assert receipt.event("Closing") == event


@pytest.mark.parametrize("left", [119, 120, 121])
def test_cancel__near_the_end_of_the_lease__gives_no_more_than_is_left(world: World, left: int) -> None:
    terms, node = running(world)
    end = world.unit(terms).mark
    world.evm.warp(500)
    world.nodes.send.beat(node, sender=world.operator)
    world.evm.at(end - left)
    world.cancel(terms)
    assert world.unit(terms).mark == world.evm.now + min(left, 120)


def test_cancel__lease_over__is_the_reclaimers(world: World) -> None:
    terms, node = running(world)
    world.evm.warp(DEAD_AFTER - 1)
    world.nodes.send.beat(node, sender=world.operator)
    for offset in around(world, world.unit(terms).mark):
        if offset < 0:
            world.cancel(terms)
        else:
            with reverts("jobs: reclaimable"):
                world.cancel(terms)


def test_cancel__node_dead__is_the_reclaimers(world: World) -> None:
    terms, _ = running(world)
    for offset in around(world, world.evm.now + DEAD_AFTER):
        if offset < 0:
            world.cancel(terms)
        else:
            with reverts("jobs: reclaimable"):
                world.cancel(terms)


def test_cancel__neither_open_nor_running__reverts(world: World) -> None:
    terms, _ = submitted(world)
    with reverts("jobs: not open"):
        world.cancel(terms)
    world.settle(terms)
    with reverts("jobs: not open"):
        world.cancel(terms)
    closing, _ = running(world)
    world.cancel(closing)
    with reverts("jobs: not open"):
        world.cancel(closing)
    with reverts("jobs: not open"):
        world.cancel(world.terms())


def test_cancel__not_the_submitter__reverts(world: World) -> None:
    terms = world.post()
    array = world.post(units=2)
    for sender in (world.owner, world.operator, world.keeper, world.deployer):
        with reverts("jobs: not the submitter"):
            world.cancel(terms, sender=sender)
        with reverts("jobs: not the submitter"):
            world.cancel(array, SENTINEL, sender=sender)


def test_cancel__index_of_no_unit__reverts(world: World) -> None:
    with reverts("jobs: no such unit"):
        world.cancel(world.post(), 1)


def test_cancel__all__closes_the_array_and_refunds_the_untouched(market: World) -> None:
    node, terms = market.register(), market.post(units=5, flags=TermsFlag.NEWCOMERS)
    market.claim(terms, node, 0)
    market.claim(terms, node, 1)
    with credited(market) as got:
        receipt = market.cancel(terms, SENTINEL)
    assert got == {"submitter": 3 * BUDGET}
    assert receipt.event("Cancelled") == {
        "job_id": market.id_of(terms),
        "index": SENTINEL,
        "word": market.load(terms)[0],
        "refund": 3 * BUDGET,
    }
    header = market.header(terms)
    assert (header.closed, header.touched, header.done, header.failed) == (True, 2, 0, 0)
    assert market.lock_of(terms) == 2 * BUDGET
    # The touched ones go on.
    market.submit(terms, 0)
    market.settle(terms, 0)
    market.cancel(terms, 1)
    market.evm.warp(120)
    market.close(terms, 1)
    assert market.lock_of(terms) == 0


def test_cancel__all_twice__reverts(world: World) -> None:
    terms = world.post(units=2)
    world.cancel(terms, SENTINEL)
    with reverts("jobs: closed"):
        world.cancel(terms, SENTINEL)


def test_cancel__all_with_nothing_untouched__reverts(world: World) -> None:
    node, terms = world.register(), world.post(units=2, flags=TermsFlag.NEWCOMERS)
    world.claim(terms, node, 0)
    world.claim(terms, node, 1)
    with reverts("jobs: nothing untouched"):
        world.cancel(terms, SENTINEL)


def test_cancel__closed_job__takes_no_new_lease_and_reopens_none(market: World) -> None:
    node, terms = market.register(), market.post(units=3)
    market.claim(terms, node, 0)
    market.cancel(terms, SENTINEL)
    for index in (0, 1, SENTINEL):
        with reverts("jobs: closed"):
            market.claim(terms, node, index)
    market.evm.warp(LEASE)
    with credited(market) as got:
        market.reclaim(terms, 0)
    assert got["submitter"] == BUDGET
    assert market.state(terms, 0) == State.REFUNDED
    assert market.header(terms).failed == 1


def test_cancel__untouched_unit_of_an_array__reverts(world: World) -> None:
    terms = world.post(units=2)
    for index in (0, 1, 2):
        with reverts("jobs: not open"):
            world.cancel(terms, index)


def test_cancel__open_unit_of_an_array__counts_as_failed(world: World) -> None:
    node, terms = world.register(), world.post(units=2)
    world.claim(terms, node, 0)
    world.decline(terms, 0)
    assert world.cancel(terms, 0).event("Cancelled")["index"] == 0
    assert world.header(terms).failed == 1
    assert world.lock_of(terms) == BUDGET


@pytest.mark.parametrize("units", [1, 4])
def test_cancel__waiting_for_parents__refunds_all_with_the_fee_of_the_unlock(market: World, units: int) -> None:
    terms = market.post_after((market.post(), Condition.SUCCESS), units=units)
    at = 0 if units == 1 else SENTINEL
    for sender in (market.owner, market.keeper):
        with reverts("jobs: not the submitter"):
            market.cancel(terms, at, sender=sender)
    with credited(market) as got:
        receipt = market.cancel(terms, at)
    whole = units * BUDGET + KEEPER_FEE
    assert got == {"submitter": whole}
    word = market.load(terms)[0]
    assert receipt.event("Cancelled") == {"job_id": market.id_of(terms), "index": at, "word": word, "refund": whole}
    assert market.lock_of(terms) == 0
    if units == 1:
        assert market.state(terms) == State.CANCELLED
    else:
        header = market.header(terms)
        assert (header.closed, header.waiting, header.touched) == (True, False, 0)
    with reverts("jobs: not open" if units == 1 else "jobs: closed"):
        market.cancel(terms, at)


def test_cancel__unit_of_a_waiting_array__reverts(world: World) -> None:
    terms = world.post_after((world.post(), Condition.SUCCESS), units=2)
    for index in (0, 1, 2):
        with reverts("jobs: not open"):
            world.cancel(terms, index)


@pytest.mark.parametrize("units", [1, 2])
def test_cancel__opened_by_its_parents__refunds_no_fee_that_was_paid(market: World, units: int) -> None:
    parent = market.post()
    market.cancel(parent)
    terms = market.post_after((parent, Condition.ALWAYS), units=units)
    market.unlock(terms)
    with credited(market) as got:
        market.cancel(terms, 0 if units == 1 else SENTINEL)
    assert got == {"submitter": units * BUDGET}
