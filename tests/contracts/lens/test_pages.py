"""Lens.nodes, Lens.jobs and Lens.units: pages of records as stored."""

from __future__ import annotations

import pytest

from hearth.protocol import parents, words
from hearth.protocol.formulas import lock_key
from hearth.protocol.parents import Ended
from hearth.protocol.types import SENTINEL, Accused, State
from tests.kit.evm import NATIVE, Reverted
from tests.kit.steps import running, submitted
from tests.kit.world import REPORT, UNBONDING, World


def test_nodes__all__are_the_registrys_records(world: World) -> None:
    ids = [world.register(cores=4 + n) for n in range(5)]
    world.nodes.send.set_ask(ids[1], 9, sender=world.owner)
    assert world.lens.call.nodes(1, 5) == [world.nodes.call.get(node) for node in ids]
    assert [words.unpack_offer(node.offer).cores for node in world.lens.call.nodes(2, 2)] == [5, 6]


def test_nodes__end__is_the_last_id(world: World) -> None:
    for _ in range(3):
        world.register(beat=False)
    for first, count, expected in (
        (1, 2, 2),
        (1, 3, 3),
        (1, 4, 3),
        (3, 1, 1),
        (3, 256, 1),
        (4, 1, 0),
        (5, 1, 0),
        (1, 0, 0),
    ):
        assert len(world.lens.call.nodes(first, count)) == expected, (first, count)


def test_nodes__id_zero_and_exited__are_all_zero(world: World) -> None:
    node = world.register()
    world.nodes.send.exit_start(node, sender=world.owner)
    world.evm.warp(UNBONDING)
    world.nodes.send.exit_finish(node)
    for record in world.lens.call.nodes(0, 2):
        assert tuple(record) == (NATIVE, NATIVE, 0, 0, 0, 0, 0)


def test_nodes__page__holds_256_at_most(world: World) -> None:
    for _ in range(258):
        world.register(beat=False, stake=10**18)
    page = world.lens.call.nodes(1, 1_000)
    assert len(page) == 256
    assert len(world.lens.call.nodes(257, 256)) == 2


def test_locks__several__are_escrows_in_their_order(market: World) -> None:
    node = market.register()
    single, array = market.post(), market.post(units=3, submitter=market.keeper.lower())
    ids = [lock_key(who) for who in (array.submitter, market.stranger, single.submitter, array.submitter)]
    each = [market.escrow.call.locked(market.jobs.address, key) for key in ids]
    assert market.lens.call.locks(market.jobs, ids) == each and each[0] == each[3] > each[2] > each[1] == 0
    assert market.lens.call.locks(market.nodes, [node.to_bytes(32, "big")]) == [market.staked(node)]
    assert market.lens.call.locks(market.stranger, ids) == [0] * 4 and market.lens.call.locks(market.jobs, []) == []
    assert len(market.lens.call.locks(market.jobs, ids * 64)) == 256
    with pytest.raises(Reverted):
        market.lens.call.locks(market.jobs, [*ids * 64, ids[0]])


def test_credits__several__are_escrows_in_their_order(market: World) -> None:
    terms, _ = submitted(market)
    market.accept(terms)
    accounts = [market.owner, market.stranger, market.submitter, market.owner]
    each = [market.credit(account) for account in accounts]
    assert market.lens.call.credits(accounts) == each and each[0] == each[3] > 0 == each[1]
    assert market.lens.call.credits([]) == []
    with pytest.raises(Reverted):
        market.lens.call.credits([market.owner] * 257)


def test_jobs__several__are_the_job_words(world: World) -> None:
    single, array, unknown = world.post(), world.post(units=3), world.terms()
    page = world.lens.call.jobs([world.id_of(terms) for terms in (single, unknown, array)])
    assert page == [world.load(single)[0], 0, world.load(array)[0]]
    assert words.is_header(page[2]) and world.lens.call.jobs([]) == []


def test_jobs__page__holds_256_at_most(world: World) -> None:
    job = world.id_of(world.post())
    assert len(set(world.lens.call.jobs([job] * 256))) == 1
    with pytest.raises(Reverted):
        world.lens.call.jobs([job] * 257)


def test_units__array__are_the_units_as_stored(world: World) -> None:
    node, terms = world.register(), world.post(units=4, match_window=30)
    world.propose(terms, node, 0)
    world.propose(terms, node, 1)
    world.evm.warp(500)  # both have lapsed, which the stored words do not say
    page = world.lens.call.units(world.id_of(terms), 0, 3)
    assert [tuple(unit) for unit in page] == [world.load(terms, index)[1:] for index in range(3)]
    assert page[0].second != 0 and page[2].word == 0
    assert [tuple(unit) for unit in world.lens.call.units(world.id_of(terms), 1, 1)] == [world.load(terms, 1)[1:]]


def test_units__declined__shows_the_accused(world: World) -> None:
    terms, node = running(world)
    world.jobs.send.decline(words.pack_terms(terms), 0, 6, REPORT, sender=world.operator)
    (unit,) = world.lens.call.units(world.id_of(terms), 0, 1)
    assert (words.unpack_unit(unit.word).state, words.unpack_accused(unit.accused)) == (
        State.OPEN,
        Accused(node, world.evm.now),
    )


@pytest.mark.parametrize(("count", "size"), [(0, 0), (1, 1), (255, 255), (256, 256), (257, 256), (2**256 - 1, 256)])
def test_units__page__holds_256_at_most(world: World, count: int, size: int) -> None:
    terms = world.post(units=300)
    assert len(world.lens.call.units(world.id_of(terms), 0, count)) == size


def test_jobs__words__say_how_each_has_ended(world: World) -> None:
    """What a client reads of parents is what `unlock` reads."""
    opened, cancelled, array = world.post(), world.post(), world.post(units=2)
    world.cancel(cancelled)
    closed = world.post(units=2)
    world.cancel(closed, SENTINEL)
    page = world.lens.call.jobs([world.id_of(terms) for terms in (opened, cancelled, array, closed, world.terms())])
    assert [parents.ended(word) for word in page] == [
        Ended.NOT_YET,
        Ended.OTHERWISE,
        Ended.NOT_YET,
        Ended.OTHERWISE,
        Ended.NOT_YET,
    ]
