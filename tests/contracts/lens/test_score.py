"""Lens.score: rate, score and key as `propose` would compute them."""

from __future__ import annotations

from hearth.protocol import formulas, words
from hearth.protocol.types import SENTINEL
from tests.kit.evm import reverts
from tests.kit.steps import LEASE
from tests.kit.world import ASK_NOTICE, NEEDS, OFFER, World


def test_score__node_that_fits__is_what_propose_writes(world: World) -> None:
    node, terms = world.register(), world.post(match_window=30)
    rate, points, key = world.lens.call.score(words.pack_terms(terms), 0, node)
    record = world.node(node)
    assert (rate, points) == (OFFER.ask, formulas.score(NEEDS, terms.ceiling, rate, record.offer, record.state))
    assert key == formulas.key(points, formulas.seed(world.id_of(terms), 0, 0), node)
    world.propose(terms, node)
    assert world.best(terms).key == key
    assert world.lens.call.score(words.pack_terms(terms), SENTINEL, node)[2] == key


def test_score__second_attempt__draws_another_lot(world: World) -> None:
    node, other = world.register(), world.register()
    terms = world.post()
    before = world.lens.call.score(words.pack_terms(terms), 0, other)[2]
    world.claim(terms, node)
    world.evm.warp(LEASE)
    world.reclaim(terms)
    world.nodes.send.beat(other, sender=world.operator)
    _, points, key = world.lens.call.score(words.pack_terms(terms), 0, other)
    assert key == formulas.key(points, formulas.seed(world.id_of(terms), 0, 1), other) != before


def test_score__eighth_attempt__is_of_its_own_lot_too(world: World) -> None:
    """Eight are the most that a job has. Of a unit that runs the key wins nothing, and is told all the same."""
    nodes, terms = [world.register(), world.register()], world.post(max_attempts=8)
    for attempt in range(8):
        # Who has just declined is excluded.
        world.claim(terms, nodes[attempt % 2])
        if attempt < 7:
            world.decline(terms)
    assert world.unit(terms).attempts == 8
    _, points, key = world.lens.call.score(words.pack_terms(terms), 0, nodes[0])
    assert key == formulas.key(points, formulas.seed(world.id_of(terms), 0, 8), nodes[0])


def test_score__array_unit__draws_its_own_lot(world: World) -> None:
    node, terms = world.register(), world.post(units=3)
    keys = [world.lens.call.score(words.pack_terms(terms), index, node)[2] for index in range(3)]
    assert len(set(keys)) == 3


def test_score__pending_ask__is_rated_once_in_force(world: World) -> None:
    node, terms = world.register(), world.post()
    world.nodes.send.set_ask(node, 2 * OFFER.ask, sender=world.owner)
    world.evm.warp(ASK_NOTICE)
    assert world.lens.call.score(words.pack_terms(terms), 0, node)[0] == 2 * OFFER.ask


def test_score__gate_fails__reverts_with_its_reason(world: World) -> None:
    node, terms = world.register(cores=3), world.post()
    with reverts("nodes: cores short"):
        world.lens.call.score(words.pack_terms(terms), 0, node)
