"""JobRegistry.claim: an operator starts a lease without a match, where terms or clock allow it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol.types import SENTINEL, Billing, NodeId, State, Terms, TermsFlag, Unit, UnitFlag
from tests.kit.evm import reverts
from tests.kit.steps import BOND, LEASE, around, credited, node_state
from tests.kit.world import ASK_NOTICE, DAY, OFFER, POLICY, SESSION, World

WINDOW = 30


def _lapse(world: World, terms: Terms, node: NodeId) -> None:
    world.nodes.send.beat(node, sender=world.operator)
    world.propose(terms, node)
    world.evm.warp(WINDOW + 60)
    world.nodes.send.beat(node, sender=world.operator)


def test_claim__no_match_window__starts_the_lease(market: World) -> None:
    node, terms = market.register(), market.post()
    with credited(market) as got:
        receipt = market.claim(terms, node)
    assert got == {}
    now = market.evm.now
    assert market.unit(terms) == Unit(
        state=State.RUNNING,
        node=node,
        rate=OFFER.ask,
        started=now,
        mark=now + LEASE,
        attempts=1,
        flags=UnitFlag.FRESH,
    )
    assert receipt.event("Started") == {
        "job_id": market.id_of(terms),
        "index": 0,
        "node": node,
        "word": market.load(terms)[1],
        "session_key": SESSION,
    }
    assert (node_state(market, node).busy, node_state(market, node).bond) == (1, BOND)


def test_claim__fuel_job__marks_the_lease(world: World) -> None:
    node, terms = world.register(), world.post(billing=Billing.FUEL)
    world.claim(terms, node)
    assert world.unit(terms).flags == UnitFlag.FUEL | UnitFlag.FRESH


def test_claim__sentinel_on_one_lease__is_unit_zero(world: World) -> None:
    node, terms = world.register(), world.post()
    assert world.claim(terms, node, SENTINEL).event("Started")["index"] == 0


def test_claim__matched_job__takes_claims_after_open_claim_after(world: World) -> None:
    node, terms = world.register(), world.post(match_window=WINDOW)
    for offset in around(world, world.evm.now + 300):
        if offset < 0:
            with reverts("jobs: takes no claims yet"):
                world.claim(terms, node)
        else:
            world.claim(terms, node)


def test_claim__live_proposal__reverts_until_it_lapses(world: World) -> None:
    node, terms = world.register(), world.post(match_window=WINDOW)
    world.evm.warp(300)
    world.propose(terms, node)
    for offset in around(world, world.evm.now + WINDOW + 60):
        if offset < 0:
            with reverts("jobs: a proposal is live"):
                world.claim(terms, node)
        else:
            world.claim(terms, node)


def test_claim__after_a_lapse__lets_the_excluded_node_in(world: World) -> None:
    node, terms = world.register(), world.post(match_window=WINDOW)
    world.evm.warp(210)
    _lapse(world, terms, node)
    # 300 s since the post: open to claims, also by the node that let its match lapse
    with reverts("jobs: node excluded"):
        world.propose(terms, node)
    world.claim(terms, node)
    assert world.state(terms) == State.RUNNING
    assert world.unit(terms).lapses == 0


def test_claim__one_lapse__opens_no_claims_before_their_time(world: World) -> None:
    node, terms = world.register(), world.post(match_window=WINDOW)
    _lapse(world, terms, node)
    with reverts("jobs: takes no claims yet"):
        world.claim(terms, node)


def test_claim__second_lapse__opens_claims_at_once_and_for_ever(world: World) -> None:
    node, other = world.register(), world.register()
    terms = world.post(match_window=WINDOW)
    _lapse(world, terms, node)
    _lapse(world, terms, other)
    assert world.evm.now < world.unit(terms).started + 300
    third = world.register()
    with reverts("jobs: takes claims only"):
        world.propose(terms, third)
    for claimant in (node, other, third):
        with world.evm.isolated():
            world.claim(terms, claimant)


def test_claim__node_reclaimed_from__is_excluded_until_a_lapse(world: World) -> None:
    node, other = world.register(), world.register()
    terms = world.post()
    world.claim(terms, node)
    world.evm.warp(LEASE)
    world.reclaim(terms)
    for each in (node, other):
        world.nodes.send.beat(each, sender=world.operator)
    with reverts("jobs: node excluded"):
        world.claim(terms, node)
    world.claim(terms, other)


def test_claim__not_the_operator__reverts(world: World) -> None:
    node, terms = world.register(), world.post()
    for sender in (world.owner, world.keeper, world.stranger):
        with reverts("nodes: not the operator"):
            world.claim(terms, node, sender=sender)
    with reverts("nodes: not the operator"):
        world.claim(terms, NodeId(node + 1))


def test_claim__operator_is_the_submitter__reverts(world: World) -> None:
    node = world.register(operator=world.submitter)
    terms = world.post()
    with reverts("jobs: operator is the submitter"):
        world.claim(terms, node, sender=world.submitter)


@pytest.mark.parametrize("attempt", [1, 15, 16, 2**255, SENTINEL])
def test_claim__resume_from_what_was_never_kept__reverts(world: World, attempt: int) -> None:
    node, terms = world.register(), world.post(billing=Billing.METERED, checkpoint_every=60)
    with reverts("jobs: no such checkpoint"):
        world.claim(terms, node, resume_from=attempt)


def test_claim__time_left__must_hold_a_lease(world: World) -> None:
    node, terms = world.register(), world.post(deadline=world.evm.now + LEASE + 500)
    for offset in around(world, terms.deadline - LEASE):
        if offset <= 0:
            world.claim(terms, node)
        else:
            with reverts("jobs: no time left"):
                world.claim(terms, node)


def test_claim__not_open__reverts(world: World) -> None:
    node, terms = world.register(), world.post()
    world.claim(terms, node)
    with reverts("jobs: not open"):
        world.claim(terms, node)
    with reverts("jobs: not open"):
        world.claim(world.terms(), node)


def test_claim__index_of_no_unit__reverts(world: World) -> None:
    node = world.register()
    with reverts("jobs: no such unit"):
        world.claim(world.post(), node, 1)
    array = world.post(units=2, flags=TermsFlag.NEWCOMERS)
    with reverts("jobs: no such unit"):
        world.claim(array, node, 2)
    world.claim(array, node, 0)
    world.claim(array, node, 1)
    with reverts("jobs: no such unit"):
        world.claim(array, node, SENTINEL)


def test_claim__fresh_job__rises_from_a_quarter_of_the_ceiling_to_all_of_it(world: World) -> None:
    terms = world.post()
    opened = world.evm.now
    for ask, wait in ((25, 0), (26, 1), (40, 6), (50, 10), (70, 18), (99, 30), (100, 30)):
        with world.evm.isolated():
            node = world.register(ask=ask * 10**18)
            if wait:
                world.evm.at(opened + wait - 1)
                with reverts("nodes: ask above ceiling"):
                    world.claim(terms, node)
            world.evm.at(opened + wait)
            world.claim(terms, node)
            # The ask is locked, and the bond is that of the job's own ceiling.
            assert world.unit(terms).rate == ask * 10**18
            assert node_state(world, node).bond == BOND
    dear = world.register(ask=100 * 10**18 + 1)
    world.evm.warp(600)
    with reverts("nodes: ask above ceiling"):
        world.claim(terms, dear)


def test_claim__matched_job__rises_from_open_claim_after(world: World) -> None:
    node, terms = world.register(ask=50 * 10**18), world.post(match_window=WINDOW)
    for offset in around(world, world.evm.now + 300 + 10):
        if offset < 0:
            with reverts("nodes: ask above ceiling"):
                world.claim(terms, node)
        else:
            world.claim(terms, node)


@pytest.mark.parametrize("late", [0, 290, 1_000])
def test_claim__second_lapse__rises_from_it(world: World, late: int) -> None:
    """Also where it comes after open_claim_after, since nobody could claim before."""
    node, other = world.register(), world.register(ask=50 * 10**18)
    terms = world.post(match_window=WINDOW)
    world.evm.warp(late)
    for each in (node, other):
        world.nodes.send.beat(each, sender=world.operator)
    _lapse(world, terms, node)
    world.nodes.send.beat(other, sender=world.operator)
    _lapse(world, terms, other)
    for offset in around(world, world.evm.now + 10):
        if offset < 0:
            with reverts("nodes: ask above ceiling"):
                world.claim(terms, other)
        else:
            world.claim(terms, other)


def test_claim__proposal_over_open_claim_after__raises_no_price(world: World) -> None:
    node, dear = world.register(), world.register(ask=100 * 10**18)
    terms = world.post(match_window=WINDOW)
    world.evm.warp(299)
    _lapse(world, terms, node)
    assert world.evm.now == world.unit(terms).started + 299 + WINDOW + 60
    world.nodes.send.beat(dear, sender=world.operator)
    for offset in around(world, world.evm.now + 30):
        if offset < 0:
            with reverts("nodes: ask above ceiling"):
                world.claim(terms, dear)
        else:
            world.claim(terms, dear)


def test_claim__unit_open_again__rises_anew(world: World) -> None:
    node, dear = world.register(), world.register(ask=100 * 10**18)
    terms = world.post()
    world.evm.warp(100)
    world.claim(terms, node)
    world.decline(terms)
    for offset in around(world, world.evm.now + 30):
        if offset < 0:
            with reverts("nodes: ask above ceiling"):
                world.claim(terms, dear)
        else:
            world.claim(terms, dear)


def test_claim__array__rises_once_for_all_its_units(world: World) -> None:
    dear, terms = world.register(ask=100 * 10**18), world.post(units=3, flags=TermsFlag.NEWCOMERS)
    opened = world.evm.now
    world.evm.at(opened + 29)
    with reverts("nodes: ask above ceiling"):
        world.claim(terms, dear, SENTINEL)
    assert world.header(terms).touched == 0
    world.evm.at(opened + 30)
    for index in range(3):
        world.claim(terms, dear, SENTINEL)
        assert world.unit(terms, index).rate == terms.ceiling


def test_claim__ask_that_rose_meanwhile__is_held_against_the_price_of_the_moment(world: World) -> None:
    node, terms = world.register(), world.post(deadline=world.evm.now + 10 * DAY)
    world.nodes.send.set_ask(node, 60 * 10**18, sender=world.owner)
    world.evm.warp(5)
    with world.evm.isolated():
        world.claim(terms, node)
    world.evm.warp(ASK_NOTICE)
    world.nodes.send.beat(node, sender=world.operator)
    fresh = world.post()
    with reverts("nodes: ask above ceiling"):
        world.claim(fresh, node)
    world.claim(terms, node)
    assert world.unit(terms).rate == 60 * 10**18


def test_claim__array__opens_units_in_order(world: World) -> None:
    node, terms = world.register(), world.post(units=3, flags=TermsFlag.NEWCOMERS)
    opened = world.evm.now
    for index in (1, 2):
        with reverts("jobs: not the next unit"):
            world.claim(terms, node, index)
    world.evm.warp(10)
    assert world.claim(terms, node, 0).event("Started")["index"] == 0
    assert world.claim(terms, node, SENTINEL).event("Started")["index"] == 1
    assert world.header(terms).touched == 2 and world.header(terms).opened == opened
    with reverts("jobs: not open"):
        world.claim(terms, node, 1)
    assert world.unit(terms, 1).started == world.evm.now


def test_claim__array_with_a_window__counts_claim_time_from_the_post(world: World) -> None:
    node, terms = world.register(), world.post(units=2, match_window=WINDOW)
    for offset in around(world, world.evm.now + 300):
        if offset < 0:
            with reverts("jobs: takes no claims yet"):
                world.claim(terms, node, 0)
            assert world.header(terms).touched == 0
        else:
            world.claim(terms, node, 0)
            assert world.header(terms).touched == 1


def test_claim__gate__is_named(world: World) -> None:
    node = world.register(cores=3)
    terms = world.post()
    with reverts("nodes: cores short"):
        world.claim(terms, node)


def test_claim__probation__holds_for_jobs_that_do_not_ask_for_newcomers(world: World) -> None:
    cheap = {"flags": TermsFlag(0), "ceiling": 2 * 10**19 * 6 // 10}  # of a bond of more than half of what is allowed
    node = world.register(ask=10**18)
    first = world.post(**cheap)
    world.claim(first, node)
    with reverts("nodes: on probation"):
        world.claim(world.post(**cheap), node)
    world.claim(world.post(flags=TermsFlag(0), ceiling=4 * 10**18), node)
    world.claim(world.post(flags=TermsFlag.NEWCOMERS), node)
    world.submit(first)
    with reverts("nodes: on probation"):
        world.claim(world.post(**cheap), node)


def test_claim__no_probation__lets_newcomers_take_any() -> None:
    world = World(policy=replace(POLICY, probation_price=0))
    node = world.register()
    for _ in range(2):
        world.claim(world.post(flags=TermsFlag(0), ceiling=10**21), node)


@pytest.mark.parametrize(("ceiling", "taken"), [(2 * 10**19 - 1, True), (2 * 10**19, True), (2 * 10**19 + 1, False)])
def test_claim__probation_price__bars_newcomers_from_dearer_units(world: World, ceiling: int, taken: bool) -> None:
    node, terms = world.register(ask=10**18), world.post(ceiling=ceiling, flags=TermsFlag(0))
    if taken:
        world.claim(terms, node)
    else:
        with reverts("nodes: on probation"):
            world.claim(terms, node)


def test_claim__three_failures__quarantine_the_node_for_an_hour(world: World) -> None:
    node = world.register()
    for number in range(3):
        world.nodes.send.beat(node, sender=world.operator)
        terms = world.post()
        world.claim(terms, node)
        world.evm.warp(LEASE)
        assert len(world.reclaim(terms).events("Quarantined")) == (number == 2)
    until = node_state(world, node).quarantine
    assert until == world.evm.now + 3_600
    fresh = world.post()
    for at in (world.evm.now, until - 1, until):
        world.evm.at(at)
        world.nodes.send.beat(node, sender=world.operator)
        if at < until:
            with reverts("nodes: quarantined"):
                world.claim(fresh, node)
        else:
            world.claim(fresh, node)
