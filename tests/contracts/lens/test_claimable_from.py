"""Lens.claimable_from: the first second at which open claims have risen to a rate."""

from __future__ import annotations

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition
from hearth.protocol.types import SENTINEL, Gate, NodeId, State, Terms, Unit
from tests.kit.evm import reverts
from tests.kit.steps import around, running
from tests.kit.world import World

WINDOW = 30
RATES = (0, 1, 25 * 10**18, 25 * 10**18 + 1, 50 * 10**18, 99 * 10**18, 100 * 10**18)


def _from(world: World, terms: Terms, rate: int, index: int = 0, *, unit: Unit | None = None) -> int:
    """Ask, and demand what the library says of the unit as stored."""
    found: int = world.lens.call.claimable_from(words.pack_terms(terms), index, rate)
    expected = formulas.claimable_from(terms, unit or world.unit(terms, index), rate)
    assert found == (SENTINEL if expected is None else expected)
    return found


def _claims_then(world: World, terms: Terms, node: NodeId, second: int) -> None:
    """Claim in that second and not in the one before; `Lens.fit` says so too."""
    for offset in around(world, second):
        world.nodes.send.beat(node, sender=world.operator)
        gate = world.lens.call.fit(words.pack_terms(terms), 0, node, True)
        if offset < 0:
            assert gate == Gate.PRICE
            with reverts("nodes: ask above ceiling"):
                world.claim(terms, node)
        else:
            assert gate == Gate.FITS
            world.claim(terms, node)


def test_claimable_from__open_claim_job__is_when_the_claim_succeeds(world: World) -> None:
    node, terms = world.register(ask=60 * 10**18), world.post()
    posted = world.evm.now
    assert [_from(world, terms, rate) - posted for rate in RATES] == [0, 0, 0, 1, 10, 30, 30]
    _claims_then(world, terms, node, _from(world, terms, 60 * 10**18))
    assert _from(world, terms, terms.ceiling + 1) == SENTINEL


@pytest.mark.parametrize("late", [0, 250, 299, 300, 800])
@pytest.mark.parametrize("lapses", [0, 1, 2])
def test_claimable_from__proposals_that_lapsed__is_when_the_claim_succeeds(
    world: World, late: int, lapses: int
) -> None:
    node, terms = world.register(ask=60 * 10**18), world.post(match_window=WINDOW)
    posted = world.evm.now
    world.evm.warp(late)
    for _ in range(lapses):
        proposed = world.register()
        world.propose(terms, proposed)
        # Of a live proposal it is said when it could be claimed if nobody acks.
        assert _from(world, terms, 0) >= world.evm.now + WINDOW + 60
        world.evm.warp(WINDOW + 60)
    last = world.evm.now if lapses else 0
    opens = last if lapses == 2 else max(posted + 300, last)
    assert [_from(world, terms, rate) - opens for rate in RATES] == [0, 0, 0, 1, 10, 30, 30]
    due = _from(world, terms, 60 * 10**18)
    if due > world.evm.now:
        _claims_then(world, terms, node, due)
    else:
        world.claim(terms, node)


def test_claimable_from__array__is_the_posts_for_its_next_unit_alone(world: World) -> None:
    node, terms = world.register(), world.post(units=3, flags=4)
    posted = world.evm.now
    world.evm.warp(50)
    world.claim(terms, node, 0)
    assert _from(world, terms, terms.ceiling, 1, unit=Unit(started=posted)) == posted + 30
    packed = words.pack_terms(terms)
    assert [world.lens.call.claimable_from(packed, index, 1) for index in (0, 2, 3)] == [SENTINEL] * 3
    world.cancel(terms, SENTINEL)
    assert world.lens.call.claimable_from(packed, 1, 1) == SENTINEL


def test_claimable_from__not_open__is_never(world: World) -> None:
    terms, _ = running(world)
    packed = words.pack_terms(terms)
    assert world.lens.call.claimable_from(packed, 0, 1) == SENTINEL
    assert world.lens.call.claimable_from(words.pack_terms(world.terms()), 0, 1) == SENTINEL
    other = world.post()
    assert world.lens.call.claimable_from(words.pack_terms(other), 1, 1) == SENTINEL


@pytest.mark.parametrize("units", [1, 3])
def test_claimable_from__waiting_for_parents__is_never_and_then_counts_from_the_unlock(
    world: World, units: int
) -> None:
    parent = world.post()
    terms = world.post_after((parent, Condition.ALWAYS), units=units)
    packed = words.pack_terms(terms)
    assert world.lens.call.claimable_from(packed, 0, 50 * 10**18) == SENTINEL
    world.evm.warp(500)
    world.cancel(parent)
    world.unlock(terms)
    opened = Unit(state=State.OPEN, started=world.evm.now)
    assert _from(world, terms, 50 * 10**18, unit=opened) == world.evm.now + 10
