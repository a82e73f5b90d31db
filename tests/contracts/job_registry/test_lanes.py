"""Leases whose words use the highest bit of their lanes: rates of 80 bits, node ids of 32, a clock past 2038."""

from __future__ import annotations

from typing import Any

import pytest

from hearth.protocol import words
from hearth.protocol.parents import Condition
from hearth.protocol.types import SENTINEL, Accused, Gate, NodeId, State, UnitFlag
from tests.kit.evm import reverts
from tests.kit.steps import LEASE, RESUMABLE, around, credited, node_state, other, set_totals, won
from tests.kit.world import POLICY, World

RATE = 2**79 + 10**9
CEILING = 2**80 - 1
SECOND = RATE // 10**6
LARGE: dict[str, Any] = {"ceiling": CEILING, "max_seconds": 1}
FIRST = NodeId(2**31)


@pytest.fixture
def large(world: World) -> World:
    """A market after 2038, whose next node is the first of the upper half of all ids."""
    world.evm.at(2**31)
    set_totals(world, next_id=FIRST)
    return world


def test_lanes__node_and_rate__are_matched_declined_and_excluded(large: World) -> None:
    node, terms = large.register(ask=RATE), large.post(match_window=30, **LARGE)
    assert node == FIRST
    large.propose(terms, node)
    assert (large.best(terms).node, large.unit(terms).rate) == (node, RATE)
    with reverts("jobs: best already"):
        large.propose(terms, node)
    large.evm.warp(30)
    large.ack(terms)
    unit = large.unit(terms)
    assert (unit.state, unit.node, unit.rate) == (State.RUNNING, node, RATE)
    large.decline(terms)
    assert words.unpack_accused(large.load(terms)[3]) == Accused(node, large.evm.now)
    large.evm.warp(POLICY.open_claim_after + POLICY.claim_ramp)
    packed = words.pack_terms(terms)
    for claim, call in ((False, large.propose), (True, large.claim)):
        with reverts("jobs: node excluded"):
            call(terms, node)
        assert large.lens.call.fit(packed, 0, node, claim) == Gate.EXCLUDED


def test_lanes__node_that_declined__counts_it_once_another_has_done_it(large: World) -> None:
    accused, terms = large.register(ask=RATE), large.post(**LARGE)
    large.evm.warp(POLICY.claim_ramp)
    large.claim(terms, accused)
    large.decline(terms)
    node, operator = other(large, ask=RATE)
    large.evm.warp(POLICY.claim_ramp)
    large.claim(terms, node, sender=operator)
    large.evm.warp(1)
    large.submit(terms, sender=operator)
    large.evm.warp(1)
    with credited(large) as got:
        receipt = large.settle(terms)
    assert receipt.event("Settled")["pay"] == SECOND
    assert large.credit(large.evm.account("other")) == SECOND - got["treasury"]
    assert node_state(large, accused).s == node_state(large, node).r > 0


def test_lanes__proposal_that_lapsed__excludes_its_node(large: World) -> None:
    terms, node = won(large, **LARGE)
    large.evm.warp(POLICY.ack_time)
    with reverts("jobs: node excluded"):
        large.propose(terms, node)
    second, _ = other(large, ask=RATE)
    large.propose(terms, second)
    unit = large.unit(terms)
    assert (unit.node, unit.rate, unit.lapses) == (node, RATE, 1)


def test_lanes__checkpoint__is_kept_and_paid(large: World) -> None:
    node, terms = large.register(ask=RATE), large.post(**{**LARGE, **RESUMABLE, "max_seconds": 2})
    large.evm.warp(POLICY.claim_ramp)
    large.claim(terms, node)
    large.evm.warp(1)
    large.checkpoint(terms)
    large.give_up(terms)
    kept = large.kept(terms, 1)
    assert (kept.node, kept.rate, kept.seconds) == (node, RATE, 1)
    second, operator = other(large, ask=RATE)
    large.evm.warp(POLICY.claim_ramp)
    large.claim(terms, second, sender=operator, resume_from=1)
    large.evm.warp(1)
    large.submit(terms, sender=operator)
    receipt = large.accept(terms)
    paid = receipt.event("CheckpointPaid")
    assert (paid["node"], paid["pay"]) == (node, RATE * 8 // 10 // 10**6)
    assert receipt.event("Settled")["pay"] == SECOND


def test_lanes__claims__wait_for_the_rate_that_the_ceiling_has_risen_to(large: World) -> None:
    node, terms = large.register(ask=RATE), large.post(**LARGE)
    opens = large.lens.call.claimable_from(words.pack_terms(terms), 0, RATE)
    # From a quarter of the ceiling to the half of it, of which the rate is just more: a third of the ramp.
    assert opens == large.evm.now + POLICY.claim_ramp // 3 + 1
    large.evm.at(opens - 1)
    with reverts("nodes: ask above ceiling"):
        large.claim(terms, node)
    large.evm.warp(1)
    large.claim(terms, node)
    assert large.unit(terms).rate == RATE


def test_lanes__silent_node__is_reclaimed_from_at_its_second(large: World) -> None:
    node, terms = large.register(), large.post()
    large.evm.warp(POLICY.claim_ramp)
    large.claim(terms, node)
    dead = large.nodes.call.last_seen(node) + large.nodes.call.DEAD_AFTER()
    assert dead == large.evm.now + large.nodes.call.DEAD_AFTER()
    large.evm.at(dead - 1)
    with reverts("jobs: not reclaimable yet"):
        large.reclaim(terms)
    large.evm.warp(1)
    large.reclaim(terms)
    assert large.register() == node + 1


def test_lanes__node_that_beats__keeps_its_lease_from_that_beat_on(large: World) -> None:
    node, terms = large.register(), large.post()
    large.evm.warp(POLICY.claim_ramp)
    large.claim(terms, node)
    large.evm.warp(100)
    large.nodes.send.beat(node, sender=large.operator)
    dead = large.evm.now + large.nodes.call.DEAD_AFTER()
    assert dead < large.unit(terms).mark
    for offset in around(large, dead):
        if offset < 0:
            with reverts("jobs: not reclaimable yet"):
                large.reclaim(terms)
        else:
            with reverts("jobs: reclaimable"):
                large.give_up(terms)
            large.reclaim(terms)


def test_lanes__expired_unit__is_no_open_one(world: World) -> None:
    """Its state is that of an open unit with the lane's highest bit."""
    assert State.EXPIRED == State.OPEN | 8
    node, terms = world.register(), world.post(match_window=30, deadline=world.evm.now + LEASE + 29)
    world.propose(terms, node)
    world.evm.warp(30)
    world.expire(terms)
    packed = words.pack_terms(terms)
    for call in (world.ack, world.cancel, world.expire):
        with reverts("jobs: not open"):
            call(terms)
    for match in (world.propose, world.claim):
        with reverts("jobs: not open"):
            match(terms, node)
    for claim in (False, True):
        assert world.lens.call.fit(packed, 0, node, claim) == Gate.NOT_OPEN
    assert world.lens.call.claimable_from(packed, 0, RATE) == SENTINEL
    assert world.unit(terms).state is State.EXPIRED


def test_lanes__expired_unit_of_an_array__is_no_open_one(world: World) -> None:
    node, terms = world.register(), world.post(units=2, match_window=30, deadline=world.evm.now + LEASE + 29)
    world.propose(terms, node)
    world.evm.warp(30)
    world.expire(terms)
    for match in (world.propose, world.claim):
        with reverts("jobs: not open"):
            match(terms, node)


def test_lanes__cancelled_job__is_no_blocked_one(world: World) -> None:
    """Its state is that of a job that waits for others, with the lane's highest bit."""
    assert State.CANCELLED == State.BLOCKED | 8
    parent = world.post()
    world.cancel(parent)
    terms = world.post_after((parent, Condition.ALWAYS), deadline=world.evm.now + LEASE + 29)
    world.cancel(terms)
    with reverts("jobs: not blocked"):
        world.unlock(terms)
    world.evm.warp(30)
    for call in (world.cancel, world.expire):
        with reverts("jobs: not open"):
            call(terms)
    assert world.unit(terms).state is State.CANCELLED


def test_lanes__eight_tips__are_taken_off_the_refund(world: World) -> None:
    """All eight attempts were matched, each with another node, and lost."""
    nodes = [other(world, f"{at}") for at in range(8)]
    terms = world.post(match_window=30, max_attempts=8)
    for attempt in range(8):
        node, operator = nodes[attempt]
        world.nodes.send.beat(node, sender=operator)
        world.propose(terms, node, payee=world.stranger)
        world.evm.warp(30)
        world.ack(terms, sender=operator)
        unit = world.unit(terms)
        assert (unit.attempts, unit.tips, unit.flags & UnitFlag.ACKED) == (attempt + 1, attempt + 1, UnitFlag.ACKED)
        with credited(world) as got:
            world.give_up(terms, sender=operator)
    assert got["submitter"] == 10**17 + 8 * (terms.keeper_fee - terms.keeper_fee // 2)
    assert world.state(terms) == State.REFUNDED and world.lock_of(terms) == 0
