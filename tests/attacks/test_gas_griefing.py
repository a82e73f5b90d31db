"""Attack 23: call a keeper function with just so little gas that an inner call starves while the outer one goes on.

At every gas limit the outcome is one of two: all of it, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hearth.protocol import words
from hearth.protocol.types import SENTINEL, TermsFlag
from tests.attacks.stages import Scene, scene
from tests.kit import world as w
from tests.kit.evm import Reverted

STEPS = 60


def _batch(found: Scene, count: int) -> list[Any]:
    """Add submitted jobs until there are `count`, and return them as items."""
    world = found.world
    jobs = [found.terms]
    while len(jobs) < count:
        terms = world.post(flags=TermsFlag.NEWCOMERS)
        world.claim(terms, found.node)
        world.submit(terms)
        jobs.append(terms)
    return [words.pack_terms(terms) for terms in jobs]


def _upkeep(op: int) -> Callable[[Scene], tuple[str, str, tuple[Any, ...]]]:
    def call(found: Scene) -> tuple[str, str, tuple[Any, ...]]:
        at = found.node if op == 5 else 0
        return "lens", "performUpkeep", ([(op, words.pack_terms(found.terms), at, 1)], w.ZERO)

    return call


def _job(name: str, *more: Any) -> Callable[[Scene], tuple[str, str, tuple[Any, ...]]]:
    return lambda found: ("jobs", name, (words.pack_terms(found.terms), *more))


def _settle_batch(found: Scene) -> tuple[str, str, tuple[Any, ...]]:
    return "jobs", "settle_batch", ([(terms, 0) for terms in _batch(found, 3)], w.ZERO)


def _upkeep_batch(found: Scene) -> tuple[str, str, tuple[Any, ...]]:
    return "lens", "performUpkeep", ([(1, terms, 0, 0) for terms in _batch(found, 3)], w.ZERO)


def _liveness(found: Scene) -> tuple[str, str, tuple[Any, ...]]:
    world = found.world
    silent = [world.register(owner=world.evm.account(f"owner {i}")) for i in range(3)]
    world.evm.warp(w.DEAD_AFTER)
    return "nodes", "check_liveness", ([found.node, *silent], w.ZERO)


CALLS: dict[str, tuple[str, Callable[[Scene], tuple[str, str, tuple[Any, ...]]]]] = {
    "settle": ("submitted", _job("settle", 0, w.ZERO)),
    "settle in array": ("array submitted", _job("settle", 0, w.ZERO)),
    "settle_batch": ("submitted", _settle_batch),
    "reclaim": ("overdue", _job("reclaim", 0, w.ZERO)),
    "reclaim last": ("last overdue", _job("reclaim", 0, w.ZERO)),
    "close": ("noticed", _job("close", 0, w.ZERO)),
    "expire": ("expirable", _job("expire", 0, w.ZERO)),
    "expire all": ("array expirable", _job("expire", SENTINEL, w.ZERO)),
    "ack": ("won", _job("ack", 0, bytes(32), 0)),
    "check_liveness": ("running", _liveness),
    "upkeep settle": ("submitted", _upkeep(1)),
    "upkeep batch": ("submitted", _upkeep_batch),
    "upkeep reclaim": ("overdue", _upkeep(3)),
    "upkeep liveness": ("silent", _upkeep(5)),
}


@pytest.mark.parametrize("name", CALLS)
def test_gas__every_limit_up_to_enough__gives_all_or_nothing(name: str) -> None:
    stage, prepare = CALLS[name]
    found = scene(stage)
    target, function, args = prepare(found)
    contract = getattr(found.world, target)
    evm = found.world.evm
    data = contract.encode(function, *args)
    sender = found.world.operator if function == "ack" else found.world.keeper
    # All accounts and slots are cold here, as they are for a transaction on a chain.
    evm.settle()
    before = evm.state_hash()

    def outcome(gas: int) -> str:
        with evm.isolated():
            try:
                evm.raw_call(contract, data, sender=sender, gas=gas)
            except Reverted:
                return before
            return evm.state_hash()

    with evm.isolated():
        evm.raw_call(contract, data, sender=sender)
        used, full = evm.last_gas, evm.state_hash()
    assert full != before
    enough = 2 * used
    # What a transaction costs before its first instruction; a chain takes none with less.
    low, high = 21_000 + sum(16 if byte else 4 for byte in data), enough
    assert (outcome(low), outcome(high)) == (before, full)
    limits = set(range(low, high, (high - low) // STEPS))
    while high - low > 1:
        middle = (low + high) // 2
        limits.add(middle)
        if outcome(middle) == full:
            high = middle
        else:
            low = middle
    # Close below the least that suffices is where an inner call starves first.
    limits |= set(range(high - 2_500, high + 50, 50))
    seen = {limit: outcome(limit) for limit in sorted(limits)}
    assert set(seen.values()) == {before, full}
    assert all((result == full) == (limit >= high) for limit, result in seen.items())
    print(f"gas griefing, {name}: {len(seen)} limits, {high} suffices, {used} used")
