"""JobRegistry.dispute: the judge that the terms name holds a submitted unit, within its window."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import words
from hearth.protocol.types import SENTINEL, State, TermsFlag, Verdict
from tests.kit.evm import reverts
from tests.kit.steps import BUDGET, LEASE, WINDOW, around, credited, judged, node_state, running, submitted
from tests.kit.world import POLICY, RESULT, World


def test_dispute__submitted__holds_the_unit_and_moves_nothing(market: World) -> None:
    terms, node = judged(market)
    before, hot = market.load(terms), node_state(market, node)
    with credited(market) as got:
        receipt = market.dispute(terms)
    assert got == {} and market.lock_of(terms) == BUDGET
    assert market.unit(terms) == replace(words.unpack_unit(before[1]), state=State.DISPUTED)
    assert market.load(terms)[2:] == before[2:] == (int.from_bytes(RESULT, "big"), 0)
    assert node_state(market, node) == hot
    assert receipt.event("Disputed") == {
        "job_id": market.id_of(terms),
        "index": 0,
        "node": node,
        "word": market.load(terms)[1],
    }


@pytest.mark.parametrize("window", [WINDOW, 7 * 86_400])
def test_dispute__window__ends_with_its_last_second(world: World, window: int) -> None:
    terms, _ = judged(world, challenge_window=window, deadline=world.evm.now + 30 * 86_400)
    for offset in around(world, world.unit(terms).mark + window):
        if offset < 0:
            world.dispute(terms)
            assert world.state(terms) == State.DISPUTED
        else:
            with reverts("jobs: too late to dispute"):
                world.dispute(terms)


def test_dispute__second_of_the_submit__is_valid(world: World) -> None:
    terms, _ = judged(world)
    assert world.evm.now == world.unit(terms).mark
    world.dispute(terms)


def test_dispute__again__reverts_until_released(world: World) -> None:
    terms, _ = judged(world)
    world.dispute(terms)
    with reverts("jobs: not submitted"):
        world.dispute(terms)
    world.rule(terms, Verdict.RELEASE)
    world.dispute(terms)


def test_dispute__settled_meanwhile__reverts(world: World) -> None:
    terms, _ = judged(world)
    world.accept(terms)
    with reverts("jobs: not submitted"):
        world.dispute(terms)


def test_dispute__not_the_judge__reverts(world: World) -> None:
    terms, _ = judged(world)
    packed = words.pack_terms(terms)
    for sender in (world.submitter, world.owner, world.operator, world.deployer, world.stranger):
        with reverts("jobs: not the judge"):
            world.jobs.send.dispute(packed, 0, sender=sender)


def test_dispute__judge_of_another_job__reverts(world: World) -> None:
    """Terms with another judge are another job, which was never posted."""
    terms, _ = judged(world)
    other = world.evm.deploy("mocks/MockJudge", world.jobs)
    with reverts("jobs: not the judge"):
        other.send.dispute(words.pack_terms(terms), 0)
    with reverts("jobs: not submitted"):
        other.send.dispute(words.pack_terms(replace(terms, judge=other.address.lower())), 0)


def test_dispute__no_judge_named__nobody_can(world: World) -> None:
    terms, _ = submitted(world)
    with reverts("jobs: not the judge"):
        world.judge.send.dispute(words.pack_terms(terms), 0)
    with reverts("jobs: not the judge"):
        world.jobs.send.dispute(words.pack_terms(terms), 0, sender=world.submitter)


def test_dispute__array__holds_that_unit_alone(world: World) -> None:
    node, terms = world.register(), world.post(**world.judged(units=3))
    for index in range(2):
        world.claim(terms, node, index)
        world.submit(terms, index)
    assert world.dispute(terms, 1).event("Disputed")["index"] == 1
    assert [world.state(terms, index) for index in range(3)] == [State.SUBMITTED, State.DISPUTED, State.NONE]
    header = world.header(terms)
    assert (header.touched, header.done, header.failed) == (2, 0, 0)
    for index in (2, 3, SENTINEL):
        with reverts("jobs: not submitted"):
            world.dispute(terms, index)


def test_dispute__one_lease_by_another_index__reverts(world: World) -> None:
    terms, _ = judged(world)
    for index in (1, SENTINEL):
        with reverts("jobs: no such unit"):
            world.dispute(terms, index)
    assert world.dispute(terms).event("Disputed")["index"] == 0


def test_dispute__noticed_and_then_submitted__is_valid(world: World) -> None:
    terms, _ = running(world, **world.judged())
    world.cancel(terms)
    world.submit(terms)
    world.dispute(terms)


def test_dispute__frees_nothing__an_exit_waits_for_the_end(world: World) -> None:
    terms, node = judged(world)
    world.dispute(terms)
    world.nodes.send.exit_start(node, sender=world.owner)
    world.evm.warp(8 * 86_400)
    with reverts("nodes: bond outstanding"):
        world.nodes.send.exit_finish(node, sender=world.owner)
    world.rule(terms, Verdict.CONFIRM)
    world.nodes.send.exit_finish(node, sender=world.owner)


def test_disputed__every_other_call__is_refused(world: World) -> None:
    """What a judge holds only it, or time, can end."""
    terms, node = judged(world, match_window=0)
    other = world.register(owner=world.evm.account("owner 2"), operator=world.evm.account("operator 2"))
    world.dispute(terms)
    before = world.load(terms)
    refusals = {
        "jobs: not submitted": [world.accept],
        "jobs: too early to settle": [world.settle],
        "jobs: not open": [world.cancel, lambda t: world.claim(t, node), lambda t: world.propose(t, other), world.ack],
        "jobs: not running": [world.submit, world.decline, world.give_up, world.reclaim],
        "jobs: not closing": [world.close],
        "jobs: not expired": [world.expire],
    }
    for reason, calls in refusals.items():
        for call in calls:
            with reverts(reason):
                call(terms)
    world.evm.at(terms.deadline)
    with reverts("jobs: not open"):
        world.expire(terms)
    assert world.load(terms) == before


def test_accept__within_the_window__pays_at_once(market: World) -> None:
    for flags in (TermsFlag.NEWCOMERS, TermsFlag.NEWCOMERS | TermsFlag.PROVEN):
        terms, _ = judged(market, flags=flags)
        market.accept(terms)
        assert market.state(terms) == State.SETTLED
        assert market.lock_of(terms) == 0


@pytest.mark.parametrize("offset", [-1, 0])
def test_settle__judged__waits_for_its_window(world: World, offset: int) -> None:
    terms, _ = judged(world)
    world.evm.at(world.unit(terms).mark + WINDOW + offset)
    if offset < 0:
        with reverts("jobs: too early to settle"):
            world.settle(terms)
    else:
        world.settle(terms)


@pytest.mark.parametrize(("delay", "due"), [(0, WINDOW), (3_600, WINDOW), (WINDOW, WINDOW)])
def test_settle__judged_newcomer__waits_for_the_window_which_is_never_shorter(delay: int, due: int) -> None:
    world = World(policy=replace(POLICY, fresh_delay=delay))
    terms, _ = judged(world)
    for offset in around(world, world.unit(terms).mark + due):
        if offset < 0:
            with reverts("jobs: too early to settle"):
                world.settle(terms)
        else:
            world.settle(terms)
    assert LEASE < WINDOW
