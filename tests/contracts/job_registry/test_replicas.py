"""Replicas: one unit run by several nodes, each in a lease of its own, told apart by the judge alone."""

from __future__ import annotations

from typing import Any

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition, Ended, ended
from hearth.protocol.types import SENTINEL, NodeId, Outcome, State, Terms, TermsFlag, Verdict
from tests.kit.evm import reverts
from tests.kit.steps import BUDGET, credited
from tests.kit.world import ETHER, World

PROVEN = TermsFlag.NEWCOMERS | TermsFlag.PROVEN


def _replicated(world: World, replicas: int = 3, quorum: int = 2, **overrides: Any) -> Terms:
    fields = {"flags": PROVEN, "replicas": replicas, "quorum": quorum, **overrides}
    return world.post(world.terms(**world.judged(**fields)))


def _nodes(world: World, count: int = 3) -> list[tuple[NodeId, str]]:
    found = []
    for number in range(count):
        operator = world.evm.account(f"operator {number}")
        found.append((world.register(owner=world.evm.account(f"owner {number}"), operator=operator), operator))
    return found


def _submitted(world: World, replicas: int = 3, quorum: int = 2, **overrides: Any) -> Terms:
    terms = _replicated(world, replicas, quorum, **overrides)
    for at, (node, operator) in enumerate(_nodes(world, replicas)):
        world.claim(terms, node, at, sender=operator)
        world.submit(terms, at, sender=operator)
    return terms


@pytest.mark.parametrize(("replicas", "quorum"), [(3, 2), (3, 3), (5, 3), (7, 4), (7, 7)])
def test_post__replicas_of_a_judged_unit__are_leases_of_one_job(market: World, replicas: int, quorum: int) -> None:
    terms = _replicated(market, replicas, quorum)
    assert market.lock_of(terms) == replicas * BUDGET
    header = market.header(terms)
    assert (header.leases, header.quorum, header.touched) == (replicas, quorum, 0)


def test_post__replicas_of_several_units__revert(world: World) -> None:
    with reverts("jobs: units out of range"):
        _replicated(world, units=3)


def test_post__attesters__take_no_replicas(world: World) -> None:
    from tests.kit.attesters import Attested

    attested = Attested(world)
    world.post(attested.terms())
    with reverts("jobs: refused by the judge"):
        world.post(attested.terms(replicas=3, quorum=2))
    assert attested.contract.call.may_run(bytes(32), words.pack_terms(attested.terms()), 0, 1) is False


def test_claim__replica_of_a_barred_node__reverts(world: World) -> None:
    terms = _replicated(world)
    (first, mine), (second, theirs) = _nodes(world, 2)
    world.judge.send.bar(second, True)
    world.claim(terms, first, 0, sender=mine)
    with reverts("jobs: node excluded"):
        world.claim(terms, second, 1, sender=theirs)
    # Of what is no replica, it is not asked.
    world.claim(world.post(), second, sender=theirs)
    world.judge.send.bar(second, False)
    world.claim(terms, second, 1, sender=theirs)


def test_propose__replica_of_a_barred_node__reverts_and_so_does_its_ack(world: World) -> None:
    terms = _replicated(world, match_window=12)
    (node, operator), (other, _) = _nodes(world, 2)
    world.judge.send.bar(other, True)
    with reverts("jobs: node excluded"):
        world.propose(terms, other, 0)
    world.propose(terms, node, 0)
    world.evm.warp(12)
    world.judge.send.bar(node, True)
    with reverts("jobs: node excluded"):
        world.ack(terms, 0, sender=operator)
    world.judge.send.bar(node, False)
    world.ack(terms, 0, sender=operator)


def test_fit__replica__says_whom_its_judge_bars(world: World) -> None:
    terms = _replicated(world)
    ((node, _),) = _nodes(world, 1)
    packed = words.pack_terms(terms)
    for claim in (True, False):
        assert world.lens.call.fit(packed, 0, node, claim) == 0
        world.judge.send.bar(node, True)
        assert world.lens.call.fit(packed, 0, node, claim) == 18
        world.judge.send.bar(node, False)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_propose__first_replica_by_score_the_others_by_lot(world: World, index: int) -> None:
    terms = _replicated(world, match_window=12)
    nodes = _nodes(world, 3)
    for at in range(index):
        world.propose(terms, nodes[at][0], at)
    node = nodes[index][0]
    world.propose(terms, node, index)
    record = world.node(node)
    score = formulas.score(terms.needs, terms.ceiling, record.offer.ask, record.offer, record.state)
    assert score >= formulas.BUCKET
    seed = formulas.seed(world.id_of(terms), index, 0)
    assert world.best(terms, index).key == formulas.key(score if index == 0 else 0, seed, node)
    assert world.lens.call.score(words.pack_terms(terms), index, node)[2] == world.best(terms, index).key


def test_rule__a_quorum_confirmed__the_job_has_ended_well(market: World) -> None:
    terms = _submitted(market)
    with credited(market) as got:
        for at, verdict in ((0, Verdict.CONFIRM), (1, Verdict.CONFIRM), (2, Verdict.VOID)):
            assert ended(market.load(terms)[0]) is Ended.NOT_YET
            market.rule(terms, verdict, index=at)
    assert ended(market.load(terms)[0]) is Ended.WELL
    assert market.lock_of(terms) == 0
    owners = sum(market.credit(market.evm.account(f"owner {number}")) for number in range(3))
    # Who rules without naming a payee is paid for each settlement: here the judge itself.
    assert sum(got.values()) + owners + market.credit(market.judge.address) == 3 * BUDGET
    child = market.post_after((terms, Condition.SUCCESS))
    market.unlock(child)
    assert market.state(child) == State.OPEN


def test_rule__fewer_than_the_quorum_confirmed__the_job_has_ended_otherwise(world: World) -> None:
    terms = _submitted(world)
    for at, verdict in ((0, Verdict.CONFIRM), (1, Verdict.VOID), (2, Verdict.REJECT)):
        world.rule(terms, verdict, index=at)
    assert ended(world.load(terms)[0]) is Ended.OTHERWISE
    child = world.post_after((terms, Condition.SUCCESS))
    world.unlock(child)
    assert world.state(child) == State.CANCELLED


def test_rule__confirmed_with_an_outcome_that_is_not_ok__counts_for_no_quorum(world: World) -> None:
    terms = _submitted(world, 3, 2)
    world.rule(terms, Verdict.CONFIRM, index=0)
    for at in (1, 2):
        world.rule(terms, Verdict.CONFIRM, index=at, fields=words.pack(words.FIELDS, {"outcome": 2, "seconds": 0}))
    assert ended(world.load(terms)[0]) is Ended.OTHERWISE


def test_cancel__all_of_it__refunds_the_replicas_that_nobody_took(market: World) -> None:
    terms = _replicated(market)
    ((node, operator),) = _nodes(market, 1)
    market.claim(terms, node, 0, sender=operator)
    with credited(market) as got:
        market.cancel(terms, SENTINEL)
    assert got == {"submitter": 2 * BUDGET}
    market.submit(terms, 0, sender=operator)
    market.rule(terms, Verdict.CONFIRM)
    # One of one is fewer than the two that the terms ask for.
    assert ended(market.load(terms)[0]) is Ended.OTHERWISE


def test_expire__replicas_that_nobody_took__pay_once(market: World) -> None:
    terms = _replicated(market)
    due = formulas.expirable_from(terms)
    market.evm.at(due)
    market.expire(terms, SENTINEL)
    assert market.lock_of(terms) == 0
    with reverts("jobs: closed"):
        market.expire(terms, SENTINEL)


def test_expire__one_replica__pays_nobody(market: World) -> None:
    terms = _replicated(market, match_window=12)
    ((node, _),) = _nodes(market, 1)
    market.propose(terms, node, 0)
    market.evm.at(formulas.expirable_from(terms))
    with credited(market) as got:
        market.expire(terms, 0)
    assert got == {"submitter": BUDGET}


def test_claim__more_than_the_replicas__reverts(world: World) -> None:
    terms = _replicated(world)
    for at, (node, operator) in enumerate(_nodes(world, 3)):
        world.claim(terms, node, at, sender=operator)
    late = world.evm.account("late")
    with reverts("jobs: no such unit"):
        world.claim(terms, world.register(operator=late, stake=100 * ETHER), 3, sender=late)


def test_finish__replica__is_its_judges_to_end(world: World) -> None:
    terms = _replicated(world)
    ((node, operator),) = _nodes(world, 1)
    world.claim(terms, node, 0, sender=operator)
    with reverts("jobs: too early to settle"):
        world.jobs.send.finish(
            words.pack_terms(terms), 0, b"\1" * 32, bytes(32), int(Outcome.OK), 0, False, bytes(32), sender=operator
        )
