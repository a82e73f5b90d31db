"""Lens.fit: the gate that keeps a node from a unit, without a transaction that fails."""

from __future__ import annotations

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition
from hearth.protocol.types import SENTINEL, Gate, NodeId, Terms, TermsFlag
from tests.kit.evm import reverts
from tests.kit.steps import LEASE, around, running
from tests.kit.world import DEAD_AFTER, MARKET, World


def _fit(world: World, terms: Terms, node: NodeId, index: int = 0, *, claim: bool = False) -> int:
    gate: int = world.lens.call.fit(words.pack_terms(terms), index, node, claim)
    if not words.is_header(world.load(terms)[0]):
        args = terms, world.unit(terms), world.best(terms), world.node(node), world.evm.now, MARKET
        assert gate == formulas.fit(*args, claim=claim)
    return gate


def test_fit__open_unit_and_live_node__fits(world: World) -> None:
    node, terms = world.register(), world.post(match_window=30)
    assert _fit(world, terms, node) == _fit(world, terms, node, claim=True) == Gate.FITS


def test_fit__node_gates__come_through(world: World) -> None:
    node, terms = world.register(cores=3), world.post()
    assert _fit(world, terms, node) == Gate.CORES
    for offset in around(world, world.evm.now + DEAD_AFTER):
        assert _fit(world, terms, node) == (Gate.CORES if offset < 0 else Gate.NOT_LIVE)
    assert _fit(world, terms, NodeId(9)) == Gate.NOT_LIVE
    assert _fit(world, world.post(flags=TermsFlag(0)), world.register()) == Gate.PROBATION


def test_fit__operator_is_the_submitter__is_barred(world: World) -> None:
    node = world.register(operator=world.submitter)
    assert _fit(world, world.post(), node) == Gate.SUBMITTER


def test_fit__claim__waits_for_its_price_where_no_other_gate_is_shut(world: World) -> None:
    node, terms = world.register(ask=50 * 10**18), world.post()
    few, own = world.register(ask=50 * 10**18, cores=3), world.register(ask=50 * 10**18, operator=world.submitter)
    dear = world.register(ask=100 * 10**18 + 1)
    for offset in around(world, world.evm.now + 10):
        assert _fit(world, terms, node) == Gate.FITS
        assert _fit(world, terms, node, claim=True) == (Gate.PRICE if offset < 0 else Gate.FITS)
        assert _fit(world, terms, few, claim=True) == Gate.CORES
        assert _fit(world, terms, own, claim=True) == Gate.SUBMITTER
        assert _fit(world, terms, dear, claim=True) == Gate.PRICE


def test_fit__node_that_let_it_lapse__may_claim_but_not_be_proposed(world: World) -> None:
    node, terms = world.register(), world.post(match_window=30)
    world.propose(terms, node)
    for offset in around(world, world.evm.now + 30 + 60):
        assert _fit(world, terms, node) == (Gate.FITS if offset < 0 else Gate.EXCLUDED)
        assert _fit(world, terms, node, claim=True) == Gate.FITS


def test_fit__node_reclaimed_from__is_excluded_from_claims_too(world: World) -> None:
    terms, node = running(world)
    world.evm.warp(LEASE)
    world.reclaim(terms)
    world.nodes.send.beat(node, sender=world.operator)
    assert _fit(world, terms, node) == _fit(world, terms, node, claim=True) == Gate.EXCLUDED


def test_fit__time_left__must_hold_a_lease(world: World) -> None:
    node, terms = world.register(), world.post(deadline=world.evm.now + LEASE + 500)
    for offset in around(world, terms.deadline - LEASE):
        assert _fit(world, terms, node) == (Gate.NO_TIME if offset > 0 else Gate.FITS)


def test_fit__not_open__says_so_first(world: World) -> None:
    terms, node = running(world)
    assert _fit(world, terms, NodeId(9)) == _fit(world, terms, node) == Gate.NOT_OPEN
    assert _fit(world, world.terms(), node) == Gate.NOT_OPEN


def test_fit__array__takes_the_next_unit_alone(world: World) -> None:
    node, terms = world.register(), world.post(units=3, flags=4)
    assert [_fit(world, terms, node, index) for index in range(3)] == [Gate.FITS, Gate.NOT_OPEN, Gate.NOT_OPEN]
    world.claim(terms, node, 0)
    assert [_fit(world, terms, node, index) for index in range(3)] == [Gate.NOT_OPEN, Gate.FITS, Gate.NOT_OPEN]


def test_fit__closed_array__is_not_open(world: World) -> None:
    node, terms = world.register(), world.post(units=3)
    world.claim(terms, node, 0)
    world.decline(terms, 0)
    other = world.register()
    assert _fit(world, terms, other, 0) == _fit(world, terms, other, 1) == Gate.FITS
    world.cancel(terms, SENTINEL)
    assert _fit(world, terms, other, 0) == _fit(world, terms, other, 1) == Gate.NOT_OPEN


@pytest.mark.parametrize("index", [1, 5, 2**20, SENTINEL - 1, SENTINEL])
def test_fit__index_that_is_no_unit_of_a_one_lease_job__is_not_open(world: World, index: int) -> None:
    node, terms = world.register(), world.post()
    fit, packed = world.lens.call.fit, words.pack_terms(terms)
    for claim in (False, True):
        assert fit(packed, index, node, claim) == Gate.NOT_OPEN
        assert fit(packed, 0, node, claim) == Gate.FITS
    if index != SENTINEL:  # what the next unit is called, which no view takes
        with reverts("jobs: no such unit"):
            world.claim(terms, node, index)
    unit = world.lens.call.unit(packed, index)
    assert tuple(unit) == (0, 0, 0)
    stored = world.lens.call.units(world.id_of(terms), 0, 3)
    assert [word for word, _, _ in stored[1:]] == [0, 0] and stored[0][0] != 0


def test_fit__waiting_for_parents__is_not_open(world: World) -> None:
    parent, node = world.post(), world.register()
    for units in (1, 3):
        terms = world.post_after((parent, Condition.ALWAYS), units=units)
        assert _fit(world, terms, node) == _fit(world, terms, node, claim=True) == Gate.NOT_OPEN
    world.cancel(parent)
    world.unlock(terms)
    assert _fit(world, terms, node) == _fit(world, terms, node, claim=True) == Gate.FITS
