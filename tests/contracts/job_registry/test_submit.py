"""JobRegistry.submit: a result in time, from the node's operator."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol.types import SENTINEL, Billing, Outcome, State, TermsFlag, UnitFlag
from tests.kit.evm import reverts
from tests.kit.steps import BOND, around, credited, node_state, running, submitted
from tests.kit.world import DEAD_AFTER, REPORT, RESULT, World

KEEP = TermsFlag.NEWCOMERS | TermsFlag.KEEP


def test_submit__running__keeps_the_bond_and_frees_the_slot(market: World) -> None:
    terms, node = running(market)
    before = market.unit(terms)
    market.evm.warp(100)
    with credited(market) as got:
        receipt = market.submit(terms)
    assert got == {}
    now = market.evm.now
    assert market.unit(terms) == replace(before, state=State.SUBMITTED, outcome=Outcome.OK, mark=now)
    assert receipt.event("Submitted") == {
        "job_id": market.id_of(terms),
        "index": 0,
        "node": node,
        "word": market.load(terms)[1],
        "result": RESULT,
        "report": REPORT,
    }
    assert (node_state(market, node).busy, node_state(market, node).bond, node_state(market, node).beat) == (
        0,
        BOND,
        now,
    )
    assert market.load(terms)[2] == 0, "the result is stored only where a later call reads it"


@pytest.mark.parametrize("outcome", range(1, 6))
def test_submit__outcome_of_a_result__is_kept(world: World, outcome: int) -> None:
    terms, _ = running(world)
    world.submit(terms, outcome=outcome)
    assert world.unit(terms).outcome == outcome


@pytest.mark.parametrize("outcome", [0, 6, 7, 8, 9, 15, 16, 2**256 - 1])
def test_submit__outcome_out_of_range__reverts(world: World, outcome: int) -> None:
    terms, _ = running(world)
    with reverts("jobs: outcome out of range"):
        world.submit(terms, outcome=outcome)


def test_submit__lease_end__is_too_late(world: World) -> None:
    terms, _ = running(world)
    for offset in around(world, world.unit(terms).mark):
        if offset < 0:
            world.submit(terms)
        else:
            with reverts("jobs: too late to submit"):
                world.submit(terms)


def test_submit__dead_but_not_reclaimed__is_in_time(world: World) -> None:
    terms, _ = running(world)
    world.evm.warp(DEAD_AFTER + 1)
    world.submit(terms)


def test_submit__cancelled_lease__may_submit_within_its_notice(world: World) -> None:
    terms, _ = running(world)
    world.evm.warp(10)
    world.cancel(terms)
    for offset in around(world, world.evm.now + 120):
        if offset < 0:
            world.submit(terms)
            assert world.state(terms) == State.SUBMITTED
        else:
            with reverts("jobs: too late to submit"):
                world.submit(terms)


def test_submit__result_zero__reverts(world: World) -> None:
    terms, _ = running(world)
    with reverts("jobs: result zero"):
        world.jobs.send.submit(world.id_of(terms), 0, bytes(32), REPORT, 1, 0, sender=world.operator)


def test_submit__report_zero__is_taken(world: World) -> None:
    terms, _ = running(world)
    world.jobs.send.submit(world.id_of(terms), 0, RESULT, bytes(32), 1, 0, sender=world.operator)


@pytest.mark.parametrize(
    ("billing", "used", "taken"),
    [
        (Billing.FIXED, 0, True),
        (Billing.FIXED, 1, False),
        (Billing.METERED, 0, True),
        (Billing.METERED, 1, False),
        (Billing.FUEL, 0, False),
        (Billing.FUEL, 1, True),
        (Billing.FUEL, 2**24 - 1, True),
        (Billing.FUEL, 2**24, False),
        (Billing.FUEL, 2**256 - 1, False),
    ],
)
def test_submit__used__counts_for_fuel_jobs_alone(world: World, billing: Billing, used: int, taken: bool) -> None:
    terms, _ = running(world, billing=billing)
    if taken:
        world.submit(terms, used=used)
        assert world.unit(terms).seconds == used
    else:
        with reverts("jobs: used out of range"):
            world.submit(terms, used=used)


def test_submit__not_the_operator__reverts(world: World) -> None:
    terms, _ = running(world)
    for sender in (world.owner, world.submitter, world.keeper):
        with reverts("nodes: not the operator"):
            world.submit(terms, sender=sender)


def test_submit__neither_running_nor_closing__reverts(world: World) -> None:
    terms, _ = submitted(world)
    with reverts("jobs: not running"):
        world.submit(terms)
    with reverts("jobs: not running"):
        world.submit(world.post())
    with reverts("jobs: not running"):
        world.submit(world.post(units=2))
    with reverts("jobs: not running"):
        world.submit(world.terms())


def test_submit__index_of_no_unit__reverts(world: World) -> None:
    terms, _ = running(world)
    for index in (1, SENTINEL):
        with reverts("jobs: no such unit"):
            world.submit(terms, index)
    assert world.submit(terms).event("Submitted")["index"] == 0


def test_submit__exiting_node__may_submit(world: World) -> None:
    terms, node = running(world)
    world.nodes.send.exit_start(node, sender=world.owner)
    world.submit(terms)


def test_submit__array_unit__names_its_index(world: World) -> None:
    node, terms = world.register(slots=9), world.post(units=2, flags=4)
    world.claim(terms, node, 0)
    world.claim(terms, node, 1)
    assert world.submit(terms, 1).event("Submitted")["index"] == 1
    assert [world.state(terms, index) for index in (0, 1)] == [State.RUNNING, State.SUBMITTED]


# ---- the digest, where the terms ask to keep it ----


@pytest.mark.parametrize("window", [0, 30])
@pytest.mark.parametrize("units", [1, 3])
def test_submit__keep__puts_the_digest_into_the_auxiliary_slot(market: World, units: int, window: int) -> None:
    """At a claim and at an ack, of one lease and of an array's; it stands there when the unit has ended."""
    node = market.register()
    terms = market.post(units=units, match_window=window, flags=KEEP)
    for index in range(units):
        if window:
            market.propose(terms, node, index)
            market.evm.warp(window)
            market.ack(terms, index)
        else:
            market.claim(terms, node, index)
        assert market.unit(terms, index).flags & UnitFlag.STORE
        market.submit(terms, index)
        digest = int.from_bytes(RESULT, "big")
        assert market.load(terms, index)[2] == digest
        market.settle(terms, index)
        assert market.state(terms, index) == State.SETTLED
        (shown,) = market.lens.call.units(market.id_of(terms), index, 1)
        assert shown.second == digest


def test_submit__without_keep__writes_no_digest(world: World) -> None:
    terms, _ = running(world)
    assert not world.unit(terms).flags & UnitFlag.STORE
    world.submit(terms)
    assert world.load(terms)[2] == 0


def test_submit__keep_after_a_lost_attempt__keeps_the_digest_of_the_last(world: World) -> None:
    terms, _ = running(world, flags=KEEP)
    world.decline(terms)
    assert not world.unit(terms).flags & UnitFlag.STORE and world.load(terms)[2] == 0
    other = world.register(owner=world.stranger, operator=world.keeper)
    world.claim(terms, other, sender=world.keeper)
    assert world.unit(terms).flags & UnitFlag.STORE
    packed = world.id_of(terms), 0, b"\x99" * 32, REPORT, 1, 0
    world.jobs.send.submit(*packed, sender=world.keeper)
    assert world.load(terms)[2] == int.from_bytes(b"\x99" * 32, "big")


@pytest.mark.parametrize("outcome", [Outcome.EXIT, Outcome.TIMEOUT])
def test_submit__keep_of_a_result_that_is_not_ok__keeps_its_digest_too(world: World, outcome: Outcome) -> None:
    terms, _ = running(world, flags=KEEP)
    world.submit(terms, outcome=outcome)
    assert world.load(terms)[2] == int.from_bytes(RESULT, "big")
