"""NodeRegistry.finished: a lease ends with its success, and where every gate holds the node's next one begins."""

from __future__ import annotations

from typing import Any

import pytest

from hearth.protocol.reputation import ONE
from tests.kit.evm import Receipt, reverts
from tests.kit.steps import BOND, ask, engage, from_jobs, node_state
from tests.kit.world import FEE_REFERENCE, OFFER, World

NO_NEXT = (0, 0, 0, 0)


def _finished(seated: World, node: int, *, ok: bool = True, accused: int = 0, next_ask: Any = NO_NEXT) -> Receipt:
    return from_jobs(seated, "finished", node, seated.operator, BOND, ok, FEE_REFERENCE, accused, next_ask)


def _lease(seated: World, **offer: Any) -> int:
    node = seated.register(**offer)
    engage(seated, node)
    seated.evm.warp(7)
    return node


@pytest.mark.parametrize("ok", [False, True])
def test_finished__no_next__is_a_submit_and_a_settle(seated_market: World, ok: bool) -> None:
    node = _lease(seated_market)
    with seated_market.evm.isolated():
        from_jobs(seated_market, "submitted", node, seated_market.operator)
        owner = from_jobs(seated_market, "settled", node, BOND, ok, FEE_REFERENCE, 0).value
        wanted = node_state(seated_market, node)
    receipt = _finished(seated_market, node, ok=ok)
    assert tuple(receipt.value) == (owner, 0, False) and receipt.logs == ()
    assert node_state(seated_market, node) == wanted
    assert (wanted.busy, wanted.bond, wanted.beat, wanted.count) == (0, 0, seated_market.evm.now, int(ok))


def test_finished__next__is_an_engagement_after_it(seated: World) -> None:
    node = _lease(seated, slots=1)
    with seated.evm.isolated():
        _finished(seated, node)
        rate, seasoned = engage(seated, node, bond=77).value
        wanted = node_state(seated, node)
    receipt = _finished(seated, node, next_ask=ask(bond=77))
    assert tuple(receipt.value) == (seated.owner, rate, seasoned) == (seated.owner, OFFER.ask, False)
    assert node_state(seated, node) == wanted
    assert (wanted.busy, wanted.bond) == (1, 77)


def test_finished__fifth_success__begins_the_next_as_a_seasoned_node(seated: World) -> None:
    """The success counts before the gate: what ends probation opens what probation keeps shut."""
    node = seated.register()
    for number in range(5):
        engage(seated, node)
        receipt = _finished(seated, node, next_ask=ask(probation=0))
        assert tuple(receipt.value)[1:] == ((OFFER.ask, True) if number == 4 else (0, False))


def test_finished__gate_that_fails__begins_nothing(seated: World) -> None:
    node = _lease(seated, slots=1)
    for changes in ({"ceiling": OFFER.ask - 1}, {"bond": 100 * 10**18 + 1}):
        with seated.evm.isolated():
            assert tuple(_finished(seated, node, next_ask=ask(**changes)).value)[1] == 0
            assert (node_state(seated, node).busy, node_state(seated, node).bond) == (0, 0)
    assert tuple(_finished(seated, node, next_ask=ask(ceiling=OFFER.ask, bond=100 * 10**18)).value)[1] == OFFER.ask


def test_finished__pending_ask__is_the_rate_once_it_counts(seated: World) -> None:
    node = _lease(seated)
    seated.nodes.send.set_ask(node, 7, sender=seated.owner)
    seated.evm.at(seated.node(node).next_ask_at)
    assert tuple(_finished(seated, node, next_ask=ask()).value)[1] == 7


def test_finished__accused__is_observed_as_a_failure(seated: World) -> None:
    node, accused = _lease(seated), seated.register()
    _finished(seated, node, accused=accused)
    assert (node_state(seated, accused).s, node_state(seated, node).s) == (ONE, 0)


def test_finished__not_the_operator__reverts(seated: World) -> None:
    node = _lease(seated)
    with reverts("nodes: not the operator"):
        from_jobs(seated, "finished", node, seated.owner, BOND, True, 1, 0, NO_NEXT)


def test_finished__not_the_job_registry__reverts(seated: World) -> None:
    node = _lease(seated)
    for sender in (seated.operator, seated.owner, seated.deployer):
        with reverts("nodes: not the job registry"):
            seated.nodes.send.finished(node, seated.operator, BOND, True, 1, 0, NO_NEXT, sender=sender)
