"""Attack: gain by results that are settled in the call that hands them in, or by the unit that such a call takes.

What `finish` pays and takes is compared with what the same people get by submit, settle and claim in
the same second: by order, repetition, silence or dealing with oneself nothing more is to be had.
"""

from __future__ import annotations

import pytest

from hearth.protocol import formulas
from hearth.protocol.types import SENTINEL, State, Terms, TermsFlag
from tests.attacks.stages import KINDS, market
from tests.kit import world as w
from tests.kit.evm import reverts
from tests.kit.steps import node_state, other, season

UNITS = 6


def _array(world: w.World, node: w.NodeId, **overrides: object) -> Terms:
    terms = world.post(**{"units": UNITS, **overrides})
    world.claim(terms, node, SENTINEL)
    return terms


@pytest.mark.parametrize("kind", KINDS)
def test_wash__own_jobs_finished__cost_the_same_fee_for_the_same_reputation(kind: str) -> None:
    """A seasoned node that pays itself: each success costs the market's fee, whichever way it is settled."""
    found = []
    for way in ("finish", "settle"):
        world = market(kind)
        node = world.register()
        season(world, node)
        before, count = world.credit(world.treasury), node_state(world, node).count
        for _ in range(3):
            terms = world.post()
            world.claim(terms, node)
            if way == "finish":
                world.finish(terms)
            else:
                world.submit(terms)
                world.settle(terms, payee=world.owner)
        state = node_state(world, node)
        found.append((world.credit(world.treasury) - before, state.count - count, world.credit(world.owner)))
    assert found[0] == found[1] and found[0][0] == 3 * w.FEE_REFERENCE * 5 // 4


@pytest.mark.parametrize("kind", KINDS)
def test_probation__newcomer_in_league_with_submitter_and_keeper__is_finished_by_nobody(kind: str) -> None:
    """The delay in which somebody can look at a newcomer's result cannot be left out, also not by its own submitter."""
    world = market(kind, policy=w.replace(w.POLICY, fresh_delay=3_600))
    node = world.register()
    terms = _array(world, node)
    for sender in (world.operator, world.submitter, world.keeper):
        with reverts("jobs: too early to settle"):
            world.finish(terms, claims=True, sender=sender)
    world.submit(terms)
    with reverts("jobs: too early to settle"):
        world.settle(terms)
    assert node_state(world, node).count == 0


@pytest.mark.parametrize("kind", KINDS)
def test_claims__unit_after_unit__pay_no_more_than_claims_in_the_same_seconds(kind: str) -> None:
    """A node with one slot that never lets go is paid, to the unit, what it is paid by three calls a unit."""
    earned = []
    for way in ("finish", "calls"):
        world = market(kind)
        node = world.register(slots=1)
        season(world, node)
        before = world.credit(world.owner)
        terms = _array(world, node)
        for index in range(UNITS):
            world.evm.warp(50)
            if way == "finish":
                world.finish(terms, index, claims=True)
                continue
            world.submit(terms, index)
            world.settle(terms, index, payee=world.owner)
            if index + 1 < UNITS:
                world.claim(terms, node, SENTINEL)
        assert world.header(terms).done == UNITS and world.lock_of(terms) == 0
        earned.append((world.credit(world.owner) - before, node_state(world, node)))
    assert earned[0][0] == earned[1][0]
    assert earned[0][1].count == earned[1][1].count


@pytest.mark.parametrize("kind", KINDS)
def test_claims__dear_node_that_finishes__takes_no_unit_before_a_cheaper_one_could(kind: str) -> None:
    """Its first lease came by a match: while open claims have not risen to its ask, others may claim and it may not."""
    world = market(kind)
    dear = world.register(ask=10**20)
    season(world, dear)
    cheap, operator = other(world, ask=25 * 10**18, slots=63)
    terms = world.post(units=UNITS, match_window=12, flags=TermsFlag.NEWCOMERS)
    opened = world.evm.now
    for _ in range(3):
        world.propose(terms, dear, SENTINEL)
    world.evm.warp(12)
    for index in range(3):
        world.ack(terms, index)
    world.finish(terms, 0, claims=True)
    assert world.header(terms).touched == 3, "nobody may claim yet"
    world.evm.at(opened + world.policy.open_claim_after)
    world.nodes.send.beat(cheap, sender=operator)
    world.finish(terms, 1, claims=True)
    assert world.header(terms).touched == 3, "the cheaper one may claim, the dear one may not"
    world.claim(terms, cheap, SENTINEL, sender=operator)
    world.evm.warp(world.policy.claim_ramp)
    world.finish(terms, 2, claims=True)
    assert world.header(terms).touched == 5 and world.unit(terms, 4).node == dear


@pytest.mark.parametrize("kind", KINDS)
def test_claims__all_units_taken_and_given_up__cost_a_failure_each(kind: str) -> None:
    """Who keeps an array from others by taking what it then gives back pays for each as after a claim."""
    world = market(kind)
    node = world.register(slots=1)
    season(world, node)
    terms = _array(world, node)
    stake = world.node(node).stake
    world.finish(terms, 0, claims=True)
    world.give_up(terms, 1)
    state = node_state(world, node)
    assert stake - world.node(node).stake == formulas.slash_of(terms) * 3 // 4
    assert state.s > 0 and state.cusum > 0
    assert world.state(terms, 1) == State.OPEN
    world.claim(terms, node, SENTINEL)
    with reverts("jobs: node excluded"):
        world.claim(terms, node, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", ["claim", "cancel all", "expire"])
def test_front_run__stranger_or_submitter_before_a_finish__cannot_keep_the_result_from_its_pay(
    kind: str, first: str
) -> None:
    """The next unit is gone, the array closed, its time over: the result is paid, and nothing else happens."""
    world = market(kind)
    node = world.register()
    season(world, node)
    rival, operator = other(world, slots=63)
    terms = world.post(units=2, deadline=world.evm.now + 2_000)
    world.claim(terms, node, SENTINEL)
    if first == "claim":
        world.claim(terms, rival, SENTINEL, sender=operator)
    elif first == "cancel all":
        world.cancel(terms, SENTINEL)
    else:
        world.evm.at(formulas.expirable_from(terms))
        world.expire(terms, SENTINEL)
    before = world.credit(world.owner)
    receipt = world.finish(terms, 0, claims=True)
    assert receipt.events("Started") == [] and world.credit(world.owner) > before
    assert world.state(terms) == State.SETTLED


@pytest.mark.parametrize("kind", KINDS)
def test_notice__in_the_second_before_a_finish__saves_the_submitter_nothing(kind: str) -> None:
    """Who sees a result on its way and cancels pays for it what he would have paid."""
    paid = []
    for cancels in (False, True):
        world = market(kind)
        node = world.register()
        season(world, node)
        terms = world.post()
        world.claim(terms, node)
        world.evm.warp(50)
        if cancels:
            world.cancel(terms)
        before = world.credit(world.submitter)
        world.finish(terms)
        paid.append(world.credit(world.submitter) - before)
    assert paid[0] == paid[1]


@pytest.mark.parametrize("kind", KINDS)
def test_twice__the_same_result__is_paid_once(kind: str) -> None:
    world = market(kind)
    node = world.register()
    season(world, node)
    terms = world.post()
    world.claim(terms, node)
    world.finish(terms)
    before = world.credit(world.owner)
    for again in (world.finish, world.submit, world.settle, world.accept):
        with reverts("jobs: not submitted" if again in (world.settle, world.accept) else "jobs: not running"):
            again(terms)
    assert world.credit(world.owner) == before


@pytest.mark.parametrize("kind", KINDS)
def test_accuse__by_a_finish_of_ones_own_job__costs_what_it_costs_by_a_settle(kind: str) -> None:
    """To have another's node accused takes its decline, a rival's success and the fee that weighs it."""
    world = market(kind)
    victim = world.register()
    node, operator = other(world)
    season(world, node, operator=operator)
    terms = world.post()
    world.claim(terms, victim)
    world.decline(terms)
    world.evm.warp(3_600)
    world.nodes.send.beat(node, sender=operator)
    world.claim(terms, node, sender=operator)
    world.finish(terms, sender=operator)
    assert node_state(world, victim).s == 0, "an hour after the decline it says nothing"
