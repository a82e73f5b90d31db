"""JobRegistry.propose: the strictly larger key wins; improvements may stretch the window three times."""

from __future__ import annotations

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.types import SENTINEL, NodeId, State, Terms, TermsFlag
from tests.kit.evm import reverts
from tests.kit.steps import LEASE, around, credited, running
from tests.kit.world import DEAD_AFTER, NEEDS, OFFER, World

WINDOW = 30


def _key(world: World, terms: Terms, node: NodeId, index: int = 0) -> int:
    record = world.node(node)
    score = formulas.score(NEEDS, terms.ceiling, record.offer.ask, record.offer, record.state)
    return formulas.key(score, formulas.seed(world.id_of(terms), index, world.unit(terms, index).attempts), node)


def _ladder(world: World, count: int) -> list[NodeId]:
    """Register nodes of which each is cheaper, and so better, than the one before."""
    return [world.register(ask=OFFER.ask - n * 4 * 10**18) for n in range(count)]


def test_propose__first__opens_the_window(market: World) -> None:
    node, terms = market.register(), market.post(match_window=WINDOW)
    with credited(market) as got:
        receipt = market.propose(terms, node, payee=market.stranger)
    assert got == {}
    unit, best = market.unit(terms), market.best(terms)
    assert (unit.state, unit.mark, unit.rate, unit.node) == (State.OPEN, market.evm.now + WINDOW, OFFER.ask, 0)
    assert (best.node, best.key, best.extensions) == (node, _key(market, terms, node), 0)
    assert best.payee == market.stranger.lower()
    _, word, second, _ = market.load(terms)
    assert receipt.event("Proposed") == {
        "job_id": market.id_of(terms),
        "index": 0,
        "node": node,
        "word": word,
        "best": second,
    }


def test_propose__payee_zero__is_the_caller(world: World) -> None:
    node, terms = world.register(), world.post(match_window=WINDOW)
    world.propose(terms, node)
    assert world.best(terms).payee == world.keeper.lower()


def test_propose__better_key__replaces_the_best(world: World) -> None:
    (worse, better), terms = _ladder(world, 2), world.post(match_window=WINDOW)
    world.propose(terms, worse)
    mark = world.unit(terms).mark
    world.evm.warp(5)
    world.propose(terms, better, sender=world.stranger)
    best = world.best(terms)
    assert (best.node, best.key, best.payee) == (better, _key(world, terms, better), world.stranger.lower())
    assert (world.unit(terms).mark, best.extensions) == (mark, 0)
    assert world.unit(terms).rate == world.node(better).offer.ask


def test_propose__not_a_better_key__reverts(world: World) -> None:
    (worse, better), terms = _ladder(world, 2), world.post(match_window=WINDOW)
    world.propose(terms, better)
    assert _key(world, terms, worse) < _key(world, terms, better)
    with reverts("jobs: not a better key"):
        world.propose(terms, worse)


def test_propose__equal_scores__are_decided_by_lot(world: World) -> None:
    nodes = [world.register() for _ in range(6)]
    terms = world.post(match_window=WINDOW)
    order = sorted(nodes, key=lambda node: _key(world, terms, node))
    for node in order:
        world.propose(terms, node)
        assert world.best(terms).node == node
    for node in order[:-1]:
        with reverts("jobs: not a better key"):
            world.propose(terms, node)


def test_propose__best_again__reverts(world: World) -> None:
    node, terms = world.register(), world.post(match_window=WINDOW)
    world.propose(terms, node)
    with reverts("jobs: best already"):
        world.propose(terms, node, sender=world.stranger)


def test_propose__window__takes_improvements_before_its_end(world: World) -> None:
    (worse, better), terms = _ladder(world, 2), world.post(match_window=WINDOW)
    world.propose(terms, worse)
    for offset in around(world, world.unit(terms).mark):
        if offset < 0:
            world.propose(terms, better)
        else:
            with reverts("jobs: window over"):
                world.propose(terms, better)


def test_propose__last_third__stretches_the_window(world: World) -> None:
    (worse, better), terms = _ladder(world, 2), world.post(match_window=WINDOW)
    world.propose(terms, worse)
    mark = world.unit(terms).mark
    for offset in around(world, mark - 10):
        world.propose(terms, better)
        assert world.unit(terms).mark == (mark + 10 if offset > 0 else mark)
        assert world.best(terms).extensions == (1 if offset > 0 else 0)


def test_propose__extensions__are_three_at_most(world: World) -> None:
    nodes, terms = _ladder(world, 6), world.post(match_window=WINDOW)
    world.propose(terms, nodes[0])
    first = world.unit(terms).mark
    for number, node in enumerate(nodes[1:], start=1):
        world.evm.at(world.unit(terms).mark - 1)
        world.propose(terms, node)
        assert world.best(terms).extensions == min(number, 3)
        assert world.unit(terms).mark == first + 10 * min(number, 3)


def test_propose__after_a_lapse__drops_the_proposal_and_bars_its_node(world: World) -> None:
    node, other = world.register(), world.register()
    terms = world.post(match_window=WINDOW)
    world.propose(terms, node)
    for offset in around(world, world.evm.now + WINDOW + 60):
        if offset < 0:
            with reverts("jobs: window over"):
                world.propose(terms, other)
        else:
            with reverts("jobs: node excluded"):
                world.propose(terms, node)
            world.propose(terms, other)
            unit = world.unit(terms)
            assert (unit.lapses, unit.node, unit.mark) == (1, node, world.evm.now + WINDOW)
            assert world.best(terms).node == other and world.best(terms).extensions == 0


def test_propose__second_lapse__leaves_claims_only(world: World) -> None:
    terms = world.post(match_window=WINDOW)
    for _ in range(2):
        world.propose(terms, world.register())
        world.evm.warp(WINDOW + 60)
    with reverts("jobs: takes claims only"):
        world.propose(terms, world.register())


def test_propose__no_match_window__takes_claims_only(world: World) -> None:
    with reverts("jobs: takes claims only"):
        world.propose(world.post(), world.register())


def test_propose__node_reclaimed_from__is_excluded(world: World) -> None:
    node, other = world.register(), world.register()
    terms = world.post(match_window=WINDOW)
    world.propose(terms, node)
    world.evm.warp(WINDOW)
    world.ack(terms)
    world.evm.warp(LEASE)
    world.reclaim(terms)
    for each in (node, other):
        world.nodes.send.beat(each, sender=world.operator)
    with reverts("jobs: node excluded"):
        world.propose(terms, node)
    world.propose(terms, other)
    assert world.best(terms).key == _key(world, terms, other), "the lot is drawn anew with each attempt"


def test_propose__time_left__must_hold_a_lease(world: World) -> None:
    node, terms = world.register(), world.post(match_window=WINDOW, deadline=world.evm.now + LEASE + 500)
    for offset in around(world, terms.deadline - LEASE):
        if offset <= 0:
            world.propose(terms, node)
        else:
            with reverts("jobs: no time left"):
                world.propose(terms, node)


def test_propose__operator_is_the_submitter__reverts(world: World) -> None:
    node = world.register(operator=world.submitter)
    with reverts("jobs: operator is the submitter"):
        world.propose(world.post(match_window=WINDOW), node)


def test_propose__gate__is_named(world: World) -> None:
    node, terms = world.register(), world.post(match_window=WINDOW)
    with reverts("nodes: not live"):
        world.propose(terms, NodeId(node + 1))
    world.evm.warp(DEAD_AFTER)
    with reverts("nodes: not live"):
        world.propose(terms, node)


def test_propose__not_open__reverts(world: World) -> None:
    terms, node = running(world, match_window=0)
    with reverts("jobs: not open"):
        world.propose(terms, node)
    with reverts("jobs: not open"):
        world.propose(world.terms(match_window=WINDOW), node)


def test_propose__index_of_no_unit__reverts(world: World) -> None:
    node = world.register()
    for terms, index in ((world.post(match_window=WINDOW), 1), (world.post(match_window=WINDOW, units=2), 2)):
        with reverts("jobs: no such unit"):
            world.propose(terms, node, index)


def test_propose__array__opens_units_in_order(world: World) -> None:
    node, terms = world.register(), world.post(match_window=WINDOW, units=3)
    with reverts("jobs: not the next unit"):
        world.propose(terms, node, 1)
    opened = world.evm.now
    world.evm.warp(7)
    assert world.propose(terms, node, SENTINEL).event("Proposed")["index"] == 0
    assert world.propose(terms, node, SENTINEL).event("Proposed")["index"] == 1
    assert world.header(terms).touched == 2
    assert [world.unit(terms, index).started for index in (0, 1)] == [opened, opened]
    assert world.best(terms, 1).key == _key(world, terms, node, 1) != world.best(terms, 0).key
    with reverts("jobs: best already"):
        world.propose(terms, node, 1)


def test_propose__closed_array__reverts(world: World) -> None:
    node, terms = world.register(), world.post(match_window=WINDOW, units=2)
    world.cancel(terms, SENTINEL)
    for index in (0, SENTINEL):
        with reverts("jobs: closed"):
            world.propose(terms, node, index)


@pytest.mark.parametrize("window", [12, 13, 14, 300])
def test_propose__window_not_of_thirds__stretches_by_the_rounded_third(world: World, window: int) -> None:
    (worse, better), terms = _ladder(world, 2), world.post(match_window=window)
    world.propose(terms, worse)
    mark = world.unit(terms).mark
    for left, stretched in ((window // 3, False), (window // 3 - 1, True)):
        with world.evm.isolated():
            world.evm.at(mark - left)
            world.propose(terms, better)
            assert world.unit(terms).mark == mark + (window // 3 if stretched else 0)


def test_propose__probation__bars_newcomers_from_dear_units(world: World) -> None:
    node = world.register(ask=10**19)
    with reverts("nodes: on probation"):
        world.propose(world.post(match_window=WINDOW, ceiling=2 * 10**19 + 1, flags=TermsFlag(0)), node)
    assert words.decode_amount(words.encode_amount(2 * 10**16)) == 2 * 10**19 * 1_000 // 10**6
