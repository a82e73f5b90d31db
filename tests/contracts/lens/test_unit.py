"""Lens.unit: a unit as every guard reads it."""

from __future__ import annotations

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition
from hearth.protocol.types import State, Unit, UnitFlag
from tests.kit.steps import LEASE, around, running
from tests.kit.world import POLICY, World


def _unit(world: World, terms: object, index: int = 0) -> Unit:
    return words.unpack_unit(world.lens.call.unit(words.pack_terms(terms), index).word)  # type: ignore[arg-type]


def test_unit__running__is_as_stored(world: World) -> None:
    terms, _ = running(world)
    assert tuple(world.lens.call.unit(words.pack_terms(terms), 0)) == world.load(terms)[1:]


def test_unit__proposal__is_dropped_from_the_lapse_on(world: World) -> None:
    node, terms = world.register(), world.post(match_window=30)
    world.propose(terms, node)
    stored, best = world.unit(terms), world.best(terms)
    for offset in around(world, stored.mark + 60):
        found = _unit(world, terms)
        assert found == formulas.with_lapse(terms, stored, best, world.evm.now)
        assert (found.lapses, found.node, found.mark) == ((0, 0, stored.mark) if offset < 0 else (1, node, 0))
        assert world.unit(terms) == stored


@pytest.mark.parametrize("call", ["expire", "cancel"])
def test_unit__ended_beside_a_proposal_that_had_lapsed__is_as_stored(world: World, call: str) -> None:
    node, terms = world.register(), world.post(match_window=30, deadline=world.evm.now + LEASE + 29)
    world.propose(terms, node)
    world.evm.warp(30 + POLICY.ack_time)
    getattr(world, call)(terms)
    stored = world.unit(terms)
    assert stored.mark + POLICY.ack_time == world.evm.now and stored.state.terminal
    assert tuple(world.lens.call.unit(words.pack_terms(terms), 0)) == world.load(terms)[1:]


def test_unit__next_untouched__is_open_since_the_post(world: World) -> None:
    node, terms = world.register(), world.post(units=3)
    opened = world.evm.now
    world.evm.warp(50)
    world.claim(terms, node, 0)
    assert _unit(world, terms, 1) == Unit(state=State.OPEN, started=opened, flags=UnitFlag.ARRAY)
    assert _unit(world, terms, 2) == Unit()
    assert _unit(world, terms, 3) == Unit()


def test_unit__all_touched__opens_none_beyond_the_last(world: World) -> None:
    node, terms = world.register(), world.post(units=2, flags=4)
    world.claim(terms, node, 0)
    world.claim(terms, node, 1)
    assert _unit(world, terms, 2) == Unit()


def test_unit__unknown_job__is_none(world: World) -> None:
    assert _unit(world, world.terms()) == Unit()


def test_unit__waiting_for_parents__is_blocked_until_it_is_unlocked(world: World) -> None:
    parent, node = world.post(), world.register()
    single, array = (world.post_after((parent, Condition.ALWAYS), units=units) for units in (1, 3))
    posted = world.evm.now
    assert _unit(world, single) == Unit(state=State.BLOCKED, started=posted)
    assert _unit(world, array, 0) == Unit(state=State.BLOCKED, started=posted, flags=UnitFlag.ARRAY)
    assert [_unit(world, array, index) for index in (1, 2, 3)] == [Unit()] * 3
    world.evm.warp(40)
    world.cancel(parent)
    for terms, flags in ((single, UnitFlag(0)), (array, UnitFlag.ARRAY)):
        world.unlock(terms)
        assert _unit(world, terms) == Unit(state=State.OPEN, started=world.evm.now, flags=flags)
    world.evm.warp(9)
    world.claim(array, node, 0)
    assert _unit(world, array, 1) == Unit(state=State.OPEN, started=world.evm.now - 9, flags=UnitFlag.ARRAY)
