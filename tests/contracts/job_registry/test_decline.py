"""JobRegistry.decline: a lease given back unpaid; the node is accused until another one succeeds or not."""

from __future__ import annotations

import pytest

from hearth.protocol.reputation import ONE
from hearth.protocol.types import SENTINEL, State, Unit, UnitFlag
from tests.kit.evm import reverts
from tests.kit.steps import BOND, BUDGET, LEASE, around, credited, node_state, running, submitted
from tests.kit.world import REPORT, World


def test_decline__running__reopens_without_the_node(market: World) -> None:
    terms, node = running(market)
    market.evm.warp(50)
    with credited(market) as got:
        receipt = market.decline(terms)
    assert got == {}
    assert market.unit(terms) == Unit(
        state=State.OPEN, node=node, started=market.evm.now, attempts=1, flags=UnitFlag.ACCUSED
    )
    assert market.load(terms)[3] == node
    assert receipt.event("Declined") == {
        "job_id": market.id_of(terms),
        "index": 0,
        "node": node,
        "word": market.load(terms)[1],
        "report": REPORT,
    }
    word = node_state(market, node)
    assert (word.busy, word.bond, word.r, word.s) == (0, 0, 0, 0)
    assert market.locked(market.id_of(terms)) == BUDGET


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
    assert market.locked(market.id_of(terms)) == 0


def test_decline__attempts__run_out_one_by_one(world: World) -> None:
    terms = world.post(max_attempts=2)
    world.claim(terms, world.register())
    world.decline(terms)
    assert world.state(terms) == State.OPEN
    world.claim(terms, world.register())
    world.decline(terms)
    assert world.state(terms) == State.REFUNDED


def test_decline__time_left__must_hold_another_lease(world: World) -> None:
    terms, _ = running(world, deadline=world.evm.now + 2 * LEASE)
    for offset in around(world, terms.deadline - LEASE - 100):
        with world.evm.isolated():
            world.decline(terms)
            assert world.state(terms) == State.OPEN, offset
    for offset in (0, 1):
        with world.evm.isolated():
            second = world.register()
            again = world.post(deadline=world.evm.now + LEASE + 50)
            world.claim(again, second)
            world.evm.warp(50 + offset)
            world.decline(again)
            assert world.state(again) == (State.REFUNDED if offset else State.OPEN)


def test_decline__cancelled_lease__refunds_all(market: World) -> None:
    terms, node = running(market)
    market.evm.warp(100)
    market.cancel(terms)
    with credited(market) as got:
        market.decline(terms)
    assert got == {"submitter": BUDGET}
    assert market.state(terms) == State.CANCELLED
    assert (node_state(market, node).busy, node_state(market, node).bond) == (0, 0)


def test_decline__lease_end__is_too_late(world: World) -> None:
    terms, _ = running(world)
    for offset in around(world, world.unit(terms).mark):
        if offset < 0:
            world.decline(terms)
        else:
            with reverts("jobs: too late to submit"):
                world.decline(terms)


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
    assert market.unit(terms).flags == UnitFlag.ACCUSED
    market.submit(terms)
    market.settle(terms)
    assert (node_state(market, first).s, node_state(market, first).cusum) == (ONE, 4)
    assert (node_state(market, second).r, node_state(market, second).s) == (ONE, 0)


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
    assert world.load(terms)[3] == second
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
    assert [world.load(terms, index)[3] for index in (0, 1)] == [0, node]
    assert node_state(world, node).bond == BOND
