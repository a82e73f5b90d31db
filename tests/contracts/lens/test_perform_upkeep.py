"""Lens.performUpkeep: whoever calls it is paid as if it had called the registries itself."""

from __future__ import annotations

import pytest

from hearth.protocol.types import SENTINEL, State
from tests.contracts.lens.upkeep import CLOSE, EXPIRE, LIVENESS, RECLAIM, SETTLE, Candidate, candidate, due
from tests.kit.evm import Receipt, Reverted, reverts
from tests.kit.steps import LEASE, SETTLE_PAY, credited, running, submitted
from tests.kit.world import DEAD_AFTER, LIVENESS_FEE, ZERO, World


def _perform(world: World, *candidates: Candidate, payee: str = ZERO) -> Receipt:
    return world.lens.send.performUpkeep(list(candidates), payee, sender=world.stranger)


@pytest.mark.parametrize("units", [1, 3])
def test_performUpkeep__payee_named__is_paid_for_every_kind(market: World, units: int) -> None:
    terms, _ = submitted(market)
    other = market.post(units=units, deadline=market.evm.now + 5_000)
    market.evm.warp(5_000)
    expired = candidate(EXPIRE, other, SENTINEL if units > 1 else 0)
    with credited(market) as got:
        _perform(market, candidate(SETTLE, terms), expired, payee=market.treasury)
    assert got["treasury"] > 0 and "stranger" not in got
    assert market.state(terms) == State.SETTLED and market.credit(market.lens.address) == 0


def test_performUpkeep__settle__pays_the_caller(market: World) -> None:
    terms, _ = submitted(market)
    with credited(market) as got:
        _perform(market, candidate(SETTLE, terms))
    assert got["stranger"] == SETTLE_PAY and market.state(terms) == State.SETTLED
    assert market.credit(market.lens.address) == 0


def test_performUpkeep__close__pays_the_caller(market: World) -> None:
    terms, _ = running(market)
    market.cancel(terms)
    market.evm.warp(120)
    with credited(market) as got:
        _perform(market, candidate(CLOSE, terms))
    assert got["stranger"] == SETTLE_PAY and market.state(terms) == State.CANCELLED


def test_performUpkeep__reclaim__pays_the_caller(market: World) -> None:
    terms, _ = running(market)
    market.evm.warp(DEAD_AFTER)
    with credited(market) as got:
        _perform(market, candidate(RECLAIM, terms))
    assert got["stranger"] == SETTLE_PAY and market.state(terms) == State.OPEN


@pytest.mark.parametrize("units", [1, 3])
def test_performUpkeep__expire__pays_the_caller(market: World, units: int) -> None:
    terms = market.post(deadline=market.evm.now + 5_000 + LEASE - 1, units=units)
    market.evm.warp(5_000)
    with credited(market) as got:
        _perform(market, candidate(EXPIRE, terms, 0 if units == 1 else SENTINEL))
    assert got["stranger"] == 25 * 10**12
    assert market.lock_of(terms) == 0


def test_performUpkeep__liveness__pays_the_caller_per_node(market: World) -> None:
    for _ in range(3):
        market.claim(market.post(), market.register())
    market.evm.warp(DEAD_AFTER)
    with credited(market) as got:
        receipt = _perform(market, candidate(LIVENESS, index=1, count=2))
    assert got == {"stranger": 2 * LIVENESS_FEE}
    assert [event["node"] for event in receipt.events("NodeLapsed")] == [1, 2]


def test_performUpkeep__mixed_with_stale__does_what_is_still_due(market: World) -> None:
    settled, _ = submitted(market)
    stale, _ = submitted(market)
    dead, node = running(market)
    market.evm.warp(DEAD_AFTER)
    candidates = [candidate(SETTLE, stale), candidate(SETTLE, settled), candidate(RECLAIM, dead)]
    picked = due(market, *candidates)
    assert picked == candidates
    market.settle(stale)
    receipt = _perform(market, *picked)
    assert [log.name for log in receipt.logs if log.name in ("Settled", "Reclaimed")] == ["Settled", "Reclaimed"]
    assert receipt.event("Settled")["job_id"] == market.id_of(settled)
    assert receipt.event("Slashed")["node"] == node


def test_performUpkeep__same_candidate_twice__is_done_once(world: World) -> None:
    terms, _ = submitted(world)
    receipt = _perform(world, *[candidate(SETTLE, terms)] * 3)
    assert len(receipt.events("Settled")) == 1


def test_performUpkeep__nothing_due__reverts(world: World) -> None:
    terms, _ = running(world)
    for candidates in ((), (candidate(SETTLE, terms),), (candidate(0, terms), candidate(6, terms))):
        with reverts("lens: nothing to do"):
            _perform(world, *candidates)


def test_performUpkeep__candidates__are_64_at_most(world: World) -> None:
    terms, _ = submitted(world)
    with pytest.raises(Reverted):
        _perform(world, *[candidate(SETTLE, terms)] * 65)
    _perform(world, *[candidate(SETTLE, terms)] * 64)
