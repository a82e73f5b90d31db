"""JobRegistry.give_up: a lease that will have no result, given back for a part of its bond."""

from __future__ import annotations

import pytest

from hearth.protocol.reputation import ONE
from hearth.protocol.types import SENTINEL, State, Unit
from tests.kit.evm import reverts
from tests.kit.steps import BUDGET, SLASH, TIP, around, credited, node_state, running, submitted, won
from tests.kit.world import DEAD_AFTER, ETHER, OFFER, REPORT, ZERO, World

BURN = SLASH - SLASH // 4


def test_give_up__running__burns_counts_and_reopens(market: World) -> None:
    terms, node = running(market)
    market.evm.warp(500)
    with credited(market) as got:
        receipt = market.give_up(terms)
    assert got == {"dead": BURN}
    assert market.unit(terms) == Unit(state=State.OPEN, node=node, started=market.evm.now, attempts=1)
    assert receipt.event("GaveUp") == {
        "job_id": market.id_of(terms),
        "index": 0,
        "node": node,
        "word": market.load(terms)[1],
        "report": REPORT,
    }
    assert receipt.event("Slashed") == {"node": node, "payee": ZERO, "reward": 0, "burnt": BURN}
    assert market.node(node).stake == market.staked(node) == 100 * ETHER - BURN
    state = node_state(market, node)
    assert (state.busy, state.bond, state.s, state.cusum) == (0, 0, ONE, 64)
    assert market.lock_of(terms) == BUDGET


def test_give_up__opened_again__splits_the_nodes_stake_alone(world: World) -> None:
    """Nothing is refunded, so nobody asks Escrow to split the submitter's lock."""
    terms, node = running(world)
    split = world.give_up(terms).event("Split")
    assert (split["controller"], split["key"]) == (world.nodes.address, node.to_bytes(32, "big"))


def test_give_up__small_rate__weighs_the_fee_of_max_seconds(market: World) -> None:
    """A tenth of the default ask: an eighth of the reference."""
    node, terms = market.register(ask=OFFER.ask // 10), market.post()
    market.claim(terms, node)
    market.give_up(terms)
    assert (node_state(market, node).s, node_state(market, node).cusum) == (ONE // 8, 8)


def test_give_up__last_attempt__refunds(market: World) -> None:
    terms, _ = running(market, max_attempts=1)
    with credited(market) as got:
        market.give_up(terms)
    assert got == {"dead": BURN, "submitter": 10**17 + 10**14}
    assert market.state(terms) == State.REFUNDED and market.lock_of(terms) == 0


def test_give_up__matched__burns_no_more_than_that(world: World) -> None:
    terms, _ = won(world)
    world.ack(terms)
    with credited(world) as got:
        world.give_up(terms)
    assert got == {"dead": BURN} and BURN > TIP


def test_give_up__until_anyone_may_reclaim(world: World) -> None:
    terms, _ = running(world)
    for offset in around(world, world.evm.now + DEAD_AFTER):
        if offset < 0:
            world.give_up(terms)
        else:
            with reverts("jobs: reclaimable"):
                world.give_up(terms)


def test_give_up__slot__is_free_at_once(world: World) -> None:
    terms, node = running(world)
    world.give_up(terms)
    with reverts("jobs: node excluded"):
        world.claim(terms, node)
    world.claim(world.post(), node)


def test_give_up__not_running__reverts(world: World) -> None:
    cancelled, _ = running(world)
    world.cancel(cancelled)
    for terms in (cancelled, world.post(), world.post(units=2), submitted(world)[0]):
        with reverts("jobs: not running"):
            world.give_up(terms)


def test_give_up__not_the_operator__reverts(world: World) -> None:
    terms, _ = running(world)
    for sender in (world.owner, world.submitter, world.keeper):
        with reverts("nodes: not the operator"):
            world.give_up(terms, sender=sender)


@pytest.mark.parametrize("closed", [False, True])
def test_give_up__unit_of_an_array__opens_it_again_unless_the_array_is_closed(world: World, closed: bool) -> None:
    node, terms = world.register(), world.post(units=2)
    world.claim(terms, node, 0)
    if closed:
        world.cancel(terms, SENTINEL)
    assert world.give_up(terms, 0).event("GaveUp")["index"] == 0
    assert world.state(terms, 0) == (State.REFUNDED if closed else State.OPEN)
    assert world.header(terms).failed == closed


def test_give_up__index_of_no_unit__reverts(world: World) -> None:
    terms, _ = running(world)
    with reverts("jobs: no such unit"):
        world.give_up(terms, 1)
