"""JobRegistry.ack: the winner's operator starts the lease between the window's end and the lapse."""

from __future__ import annotations

import pytest

from hearth.protocol.types import SENTINEL, Billing, NodeId, State, Terms, Unit, UnitFlag
from tests.kit.evm import reverts
from tests.kit.steps import BOND, LEASE, TIP, around, credited, node_state
from tests.kit.world import ASK_NOTICE, DEAD_AFTER, OFFER, SESSION, World

WINDOW = 30


def _won(world: World, **overrides: object) -> tuple[Terms, NodeId]:
    """Propose a node for a job; its window is not over yet."""
    node = world.register()
    terms = world.post(**{"match_window": WINDOW, **overrides})
    world.propose(terms, node, payee=world.stranger)
    return terms, node


def test_ack__won__starts_the_lease_and_tips_the_proposer(market: World) -> None:
    terms, node = _won(market)
    market.evm.warp(WINDOW)
    with credited(market) as got:
        receipt = market.ack(terms)
    assert got == {"stranger": TIP}
    now = market.evm.now
    assert market.unit(terms) == Unit(
        state=State.RUNNING,
        node=node,
        rate=OFFER.ask,
        started=now,
        mark=now + LEASE,
        attempts=1,
        tips=1,
        flags=UnitFlag.ACKED | UnitFlag.FRESH,
    )
    assert receipt.event("Started") == {
        "job_id": market.id_of(terms),
        "index": 0,
        "node": node,
        "word": market.load(terms)[1],
        "session_key": SESSION,
    }
    word = node_state(market, node)
    assert (word.busy, word.bond, word.beat) == (1, BOND, now)


def test_ack__window__is_over_at_its_last_second(world: World) -> None:
    terms, _ = _won(world)
    for offset in around(world, world.evm.now + WINDOW):
        if offset < 0:
            with reverts("jobs: window still open"):
                world.ack(terms)
        else:
            world.ack(terms)


def test_ack__ack_time__ends_with_the_lapse(world: World) -> None:
    terms, _ = _won(world)
    for offset in around(world, world.evm.now + WINDOW + 60):
        if offset < 0:
            world.ack(terms)
        else:
            with reverts("jobs: no proposal"):
                world.ack(terms)


def test_ack__no_proposal__reverts(world: World) -> None:
    terms = world.post(match_window=WINDOW)
    with reverts("jobs: no proposal"):
        world.ack(terms)


def test_ack__not_open__reverts(world: World) -> None:
    terms, _ = _won(world)
    world.evm.warp(WINDOW)
    world.ack(terms)
    with reverts("jobs: not open"):
        world.ack(terms)
    with reverts("jobs: not open"):
        world.ack(world.post(units=3))
    with reverts("jobs: not open"):
        world.ack(world.terms())


def test_ack__index_of_no_unit__reverts(world: World) -> None:
    terms, _ = _won(world)
    world.evm.warp(WINDOW)
    with reverts("jobs: no such unit"):
        world.ack(terms, 1)


def test_ack__not_the_operator__reverts(world: World) -> None:
    terms, _ = _won(world)
    world.evm.warp(WINDOW)
    for sender in (world.owner, world.keeper, world.stranger):
        with reverts("nodes: not the operator"):
            world.ack(terms, sender=sender)


def test_ack__node_handed_to_the_submitter__reverts(world: World) -> None:
    terms, node = _won(world)
    world.evm.warp(WINDOW)
    world.nodes.send.set_operator(node, world.submitter, sender=world.owner)
    world.nodes.send.beat(node, sender=world.submitter)
    with reverts("jobs: operator is the submitter"):
        world.ack(terms, sender=world.submitter)


@pytest.mark.parametrize("attempt", [1, 15, 16, 2**255, SENTINEL])
def test_ack__resume_from_what_was_never_kept__reverts(world: World, attempt: int) -> None:
    terms, _ = _won(world, billing=Billing.METERED, checkpoint_every=60)
    world.evm.warp(WINDOW)
    with reverts("jobs: no such checkpoint"):
        world.ack(terms, resume_from=attempt)


def test_ack__time_left__must_hold_a_lease(world: World) -> None:
    deadline = world.evm.now + 5_000
    terms, _ = _won(world, deadline=deadline)
    for left, taken in ((LEASE + 1, True), (LEASE, True), (LEASE - 1, False)):
        with world.evm.isolated():
            late = world.post(match_window=WINDOW, deadline=world.evm.now + WINDOW + left)
            node = world.register()
            if taken:
                world.propose(late, node)
                world.evm.warp(WINDOW)
                world.ack(late)
            else:
                world.propose(late, node)
                world.evm.warp(WINDOW)
                with reverts("jobs: no time left"):
                    world.ack(late)
    assert world.state(terms) == State.OPEN


def test_ack__ask_raised_since__pays_the_proposed_rate(world: World) -> None:
    node = world.register()
    world.nodes.send.set_ask(node, 2 * OFFER.ask, sender=world.owner)
    world.evm.warp(ASK_NOTICE - WINDOW)
    world.nodes.send.beat(node, sender=world.operator)
    terms = world.post(match_window=WINDOW)
    world.propose(terms, node)
    world.evm.warp(WINDOW)
    world.ack(terms)
    assert world.unit(terms).rate == OFFER.ask


def test_ack__proposal_at_the_ceiling__waits_for_no_open_claims_price(world: World) -> None:
    node, terms = world.register(ask=10**20), world.post(match_window=WINDOW)
    world.propose(terms, node)
    world.evm.warp(WINDOW)
    world.ack(terms)
    assert world.unit(terms).rate == terms.ceiling


def test_ack__gate_fails_meanwhile__reverts(world: World) -> None:
    terms, node = _won(world)
    world.nodes.send.exit_start(node, sender=world.owner)
    world.evm.warp(WINDOW)
    with reverts("nodes: exiting"):
        world.ack(terms)


def test_ack__node_fell_silent__must_beat_first(world: World) -> None:
    node = world.register()
    world.evm.warp(DEAD_AFTER - WINDOW)
    terms = world.post(match_window=WINDOW)
    world.propose(terms, node)
    world.evm.warp(WINDOW)
    with reverts("nodes: not live"):
        world.ack(terms)
    world.nodes.send.beat(node, sender=world.operator)
    world.ack(terms)


@pytest.mark.parametrize("fee", [10**11 + 1, 10**14 + 7])
def test_ack__odd_keeper_fee__tips_half_rounded_down(market: World, fee: int) -> None:
    terms, _ = _won(market, keeper_fee=fee)
    market.evm.warp(WINDOW)
    with credited(market) as got:
        market.ack(terms)
    assert got == {"stranger": fee // 2}
    assert market.lock_of(terms) == 10**17 + 3 * fee - fee // 2


def test_ack__array_unit__names_its_index(world: World) -> None:
    node, terms = world.register(), world.post(units=3, match_window=WINDOW)
    world.propose(terms, node, 0)
    world.propose(terms, node, 1)
    world.evm.warp(WINDOW)
    assert world.ack(terms, 1).event("Started")["index"] == 1
    assert world.state(terms, 1) == State.RUNNING
    assert world.state(terms, 0) == State.OPEN
