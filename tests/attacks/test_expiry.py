"""Attack M6: touching an array's units by proposals just before they expire, to be paid for the end of each."""

from __future__ import annotations

import pytest

from hearth.protocol import formulas
from hearth.protocol.types import SENTINEL, State, TermsFlag
from tests.attacks.stages import market
from tests.kit import world as w

UNITS = 12
WINDOW = 12


def earned(kind: str, touched: int, *, attempted: int = 0) -> tuple[int, int]:
    """Return what a keeper earns by the end of an array of which he touched so many units, and one expirer's pay.

    The first `attempted` of them had an attempt that its node gave back.
    """
    world = market(kind)
    node = world.register(slots=UNITS)
    terms = world.terms(units=UNITS, match_window=WINDOW, flags=TermsFlag.NEWCOMERS)
    lease = formulas.lease_seconds(terms) + formulas.grace(terms)
    terms = w.replace(terms, deadline=world.evm.now + 2_000 + lease)
    world.post(terms)
    world.evm.warp(world.policy.open_claim_after)
    for index in range(attempted):
        world.claim(terms, node, SENTINEL)
        world.decline(terms, index)
    world.evm.at(formulas.expirable_from(terms) - 1)
    world.nodes.send.beat(node, sender=world.operator)
    world.evm.at(formulas.expirable_from(terms) - 1)
    for _ in range(touched - attempted):
        world.propose(terms, node, SENTINEL)
    world.evm.at(formulas.expirable_from(terms))
    before = world.credit(world.keeper)
    for index in range(touched):
        world.expire(terms, index)
        assert world.state(terms, index) == State.EXPIRED
    if touched < UNITS:
        world.expire(terms, SENTINEL)
    assert world.lock_of(terms) == 0
    return world.credit(world.keeper) - before, formulas.expire_reward(terms, None, 0)


@pytest.mark.parametrize("kind", ["native", "erc20"])
@pytest.mark.parametrize("touched", [0, 1, UNITS - 1])
def test_expire__units_that_were_only_touched__earn_no_more_than_the_array_untouched(kind: str, touched: int) -> None:
    found, once = earned(kind, touched)
    assert found == once > 0


@pytest.mark.parametrize("kind", ["native", "erc20"])
def test_expire__every_unit_touched__earns_nothing_at_all(kind: str) -> None:
    assert earned(kind, UNITS)[0] == 0


@pytest.mark.parametrize("kind", ["native", "erc20"])
def test_expire__units_that_had_an_attempt__earn_no_more_either(kind: str) -> None:
    """A claim and a decline in the last second would else make each unit one that had an attempt."""
    found, once = earned(kind, 3, attempted=2)
    assert found == once
