"""Attack: earning by the clock. What a worker gains by stretching a metered unit, or by ending a fixed one early, and
what a submitter gains by cancelling a unit whose result is on its way.

Why containers are metered by default (docs/decisions/0004-bill-containers-by-time.md) rests on these figures.
"""

from __future__ import annotations

import pytest

from hearth.protocol.types import Billing
from tests.attacks.stages import market
from tests.kit.world import OFFER, World

LIMIT = 1_000
"""max_seconds of every job here; World's grace adds 300 s, in which a result is still taken."""
NEEDED = 7
"""Seconds that a unit really takes."""
RATE = OFFER.ask


@pytest.fixture(scope="module")
def world() -> World:
    return market("native")


def held(
    world: World, billing: Billing, seconds: int, *, used: int = 0, outcome: int = 1, cancelled: bool = False
) -> int:
    """Return what a node's side earns, fee included, by a unit that it submits `seconds` after its start."""
    with world.evm.isolated():
        node = world.register(slots=1)
        terms = world.post(billing=billing, max_seconds=LIMIT)
        world.claim(terms, node)
        world.evm.warp(seconds)
        if cancelled:
            world.nodes.send.beat(node, sender=world.operator)
            world.cancel(terms)
        world.submit(terms, used=used, outcome=outcome)
        before = world.credit(world.owner) + world.credit(world.treasury)
        world.settle(terms)
        return world.credit(world.owner) + world.credit(world.treasury) - before


def paid(seconds: int) -> int:
    """Return what so many seconds at the node's ask come to."""
    return RATE * seconds // 10**6


@pytest.mark.parametrize("seconds", [1, NEEDED, 999, 1_000, 1_001, 1_299])
def test_stretch__metered_unit__never_earns_more_than_a_fixed_one_does_at_once(world: World, seconds: int) -> None:
    metered, fixed = held(world, Billing.METERED, seconds), held(world, Billing.FIXED, NEEDED)
    assert fixed == paid(LIMIT)
    assert metered == paid(min(seconds, LIMIT)) <= fixed


def test_stretch__while_other_work_waits__earns_what_honest_units_in_the_same_slot_do(world: World) -> None:
    stretched = held(world, Billing.METERED, LIMIT)
    honest, left = 0, LIMIT
    while left:
        honest += held(world, Billing.METERED, min(NEEDED, left))
        left -= min(NEEDED, left)
    # Each unit rounds its pay down once.
    assert 0 <= stretched - honest <= LIMIT // NEEDED
    # An idle slot is what makes stretching worth while, and this is all of it.
    assert stretched - held(world, Billing.METERED, NEEDED) == paid(LIMIT) - paid(NEEDED)


def test_early_end__fixed_units__earn_a_multiple_of_the_ask_and_metered_ones_the_ask(world: World) -> None:
    """A slot that takes one fixed unit after the other earns LIMIT / NEEDED times what its owner asks for it."""
    assert held(world, Billing.FIXED, NEEDED) == paid(LIMIT) == held(world, Billing.METERED, NEEDED) * LIMIT // NEEDED


def test_garbage__submitted_at_once__earns_a_second_of_a_metered_unit_and_all_of_the_others(world: World) -> None:
    """Nobody can challenge a result yet: only where time is billed does a cheat have to spend some."""
    assert held(world, Billing.METERED, 1, outcome=2) == paid(1)
    assert held(world, Billing.FIXED, 1, outcome=2) == paid(LIMIT)
    assert held(world, Billing.FUEL, 1, outcome=2, used=LIMIT) == paid(LIMIT)


@pytest.mark.parametrize("billing", list(Billing))
@pytest.mark.parametrize("seconds", [0, NEEDED, LIMIT, LIMIT + 200])
def test_late_cancel__of_a_unit_about_to_be_submitted__saves_nothing(
    world: World, billing: Billing, seconds: int
) -> None:
    """Profit of a submitter who sees the result in the pool and has a cancel mined before it: none."""
    used = LIMIT if billing == Billing.FUEL else 0
    due = paid(min(seconds, LIMIT)) if billing == Billing.METERED else paid(LIMIT)
    assert held(world, billing, seconds, used=used, cancelled=True) == held(world, billing, seconds, used=used) == due
