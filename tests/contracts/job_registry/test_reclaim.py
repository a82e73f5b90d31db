"""JobRegistry.reclaim: a lease taken back from a node that let it end or fell silent."""

from __future__ import annotations

import pytest

from hearth.protocol import formulas
from hearth.protocol.reputation import ONE
from hearth.protocol.types import SENTINEL, State, Unit
from tests.kit.evm import reverts
from tests.kit.steps import (
    BUDGET,
    LEASE,
    SETTLE_PAY,
    SLASH,
    TIP,
    around,
    credited,
    node_state,
    running,
    submitted,
)
from tests.kit.world import DEAD_AFTER, ETHER, FEE_REFERENCE, OFFER, World

ASK = OFFER.ask


def test_reclaim__lease_over__slashes_and_reopens(market: World) -> None:
    terms, node = running(market)
    market.evm.warp(DEAD_AFTER)
    with credited(market) as got:
        receipt = market.reclaim(terms)
    assert got == {"keeper": SETTLE_PAY, "dead": SLASH - SETTLE_PAY}
    assert market.unit(terms) == Unit(state=State.OPEN, node=node, started=market.evm.now, attempts=1)
    assert receipt.event("Reclaimed") == {
        "job_id": market.id_of(terms),
        "index": 0,
        "node": node,
        "word": market.load(terms)[1],
    }
    assert receipt.event("Slashed") == {
        "node": node,
        "payee": market.keeper,
        "reward": SETTLE_PAY,
        "burnt": SLASH - SETTLE_PAY,
    }
    assert market.node(node).stake == market.staked(node) == 100 * ETHER - SLASH
    word = node_state(market, node)
    assert (word.busy, word.bond, word.s, word.cusum) == (0, 0, ONE, 64)
    assert word.silent
    assert market.lock_of(terms) == BUDGET


def test_reclaim__node_silent__is_valid_after_dead_after(world: World) -> None:
    terms, node = running(world)
    world.evm.warp(50)
    world.nodes.send.beat(node, sender=world.operator)
    for offset in around(world, world.evm.now + DEAD_AFTER):
        if offset < 0:
            with reverts("jobs: not reclaimable yet"):
                world.reclaim(terms)
        else:
            world.reclaim(terms)


def test_reclaim__node_beats__is_valid_at_the_leases_end(world: World) -> None:
    terms, node = running(world)
    world.evm.warp(800)
    world.nodes.send.beat(node, sender=world.operator)
    for offset in around(world, world.unit(terms).mark):
        if offset < 0:
            with reverts("jobs: not reclaimable yet"):
                world.reclaim(terms)
        else:
            world.reclaim(terms)


def test_reclaim__node_recovers_before_the_call__keeps_its_lease(world: World) -> None:
    terms, node = running(world)
    world.evm.warp(DEAD_AFTER + 10)
    world.nodes.send.beat(node, sender=world.operator)
    with reverts("jobs: not reclaimable yet"):
        world.reclaim(terms)


@pytest.mark.parametrize(
    ("overdue", "permille"), [(0, 1_000), (1, 1_005), (599, 3_995), (600, 4_000), (601, 4_000), (10**5, 4_000)]
)
def test_reclaim__late__ramps_the_reward_out_of_the_slash(market: World, overdue: int, permille: int) -> None:
    terms, _ = running(market)
    market.evm.warp(DEAD_AFTER + overdue)
    with credited(market) as got:
        market.reclaim(terms, payee=market.stranger)
    reward = SETTLE_PAY * permille // 1_000
    assert got == {"stranger": reward, "dead": SLASH - reward}


@pytest.mark.parametrize(("overdue", "reward"), [(0, 125 * 10**13), (600, 2 * 10**15)])
def test_reclaim__keeper_fee_large__caps_the_reward_at_a_quarter_of_the_slash(
    market: World, overdue: int, reward: int
) -> None:
    # bond 8 x 1e16, slash 8e15, quarter 2e15; an eighth of the keeper fee 1.25e15
    terms, _ = running(market, keeper_fee=10**16)
    market.evm.warp(DEAD_AFTER + overdue)
    with credited(market) as got:
        market.reclaim(terms)
    assert got == {"keeper": reward, "dead": 8 * 10**15 - reward}


def test_reclaim__last_attempt__refunds(market: World) -> None:
    terms, _ = running(market, max_attempts=1)
    market.evm.warp(DEAD_AFTER)
    with credited(market) as got:
        market.reclaim(terms)
    assert got == {"keeper": SETTLE_PAY, "dead": SLASH - SETTLE_PAY, "submitter": 10**17 + 10**14}
    assert market.state(terms) == State.REFUNDED
    assert market.lock_of(terms) == 0


def test_reclaim__last_attempt_after_a_tip__refunds_the_tip_less(world: World) -> None:
    node, terms = world.register(), world.post(match_window=30, max_attempts=1)
    world.propose(terms, node)
    world.evm.warp(30)
    world.ack(terms)
    world.evm.warp(DEAD_AFTER)
    with credited(world) as got:
        world.reclaim(terms)
    assert got["submitter"] == 10**17 + 10**14 - TIP


@pytest.mark.parametrize(("spare", "state"), [(-1, State.REFUNDED), (0, State.OPEN), (1, State.OPEN)])
def test_reclaim__time_left__must_hold_another_lease(world: World, spare: int, state: State) -> None:
    terms, _ = running(world, deadline=world.evm.now + DEAD_AFTER + LEASE + spare)
    world.evm.warp(DEAD_AFTER)
    world.reclaim(terms)
    assert world.state(terms) == state


def test_reclaim__not_running__reverts(world: World) -> None:
    for terms in (world.terms(), world.post(), world.post(units=2), submitted(world)[0]):
        world.evm.warp(DEAD_AFTER)
        with reverts("jobs: not running"):
            world.reclaim(terms)


def test_reclaim__closing__is_for_close(world: World) -> None:
    terms, _ = running(world)
    world.cancel(terms)
    world.evm.warp(LEASE)
    with reverts("jobs: not running"):
        world.reclaim(terms)


def test_reclaim__twice__reverts(world: World) -> None:
    terms, _ = running(world)
    world.evm.warp(DEAD_AFTER)
    world.reclaim(terms)
    with reverts("jobs: not running"):
        world.reclaim(terms)


def test_reclaim__index_of_no_unit__reverts(world: World) -> None:
    terms, _ = running(world)
    world.evm.warp(DEAD_AFTER)
    for index in (1, SENTINEL):
        with reverts("jobs: no such unit"):
            world.reclaim(terms, index)
    assert world.reclaim(terms).event("Reclaimed")["index"] == 0


def test_reclaim__exiting_node__loses_its_tenth_as_well(world: World) -> None:
    terms, node = running(world)
    world.nodes.send.exit_start(node, sender=world.owner)
    world.evm.warp(DEAD_AFTER)
    world.reclaim(terms)
    assert world.node(node).stake == 100 * ETHER - SLASH


def test_reclaim__array_unit__reopens_or_counts_as_failed(market: World) -> None:
    node, terms = market.register(), market.post(units=3, max_attempts=2, flags=4)
    market.claim(terms, node, 0)
    market.evm.warp(DEAD_AFTER)
    assert market.reclaim(terms, 0).event("Reclaimed")["index"] == 0
    assert (market.header(terms).touched, market.header(terms).failed) == (1, 0)
    other = market.register()
    market.claim(terms, other, 0)
    market.evm.warp(DEAD_AFTER)
    market.reclaim(terms, 0)
    assert (market.header(terms).touched, market.header(terms).failed) == (1, 1)
    assert market.state(terms, 0) == State.REFUNDED
    assert market.lock_of(terms) == 2 * (10**17 + 2 * 10**14)


@pytest.mark.parametrize(
    ("ask", "billing", "share"),
    [(ASK, 0, 10**6), (ASK // 10, 0, 125_000), (ASK // 10, 1, 125_000), (ASK // 10, 2, 125_000), (1, 0, 0)],
)
def test_reclaim__lease_over_and_node_live__weighs_the_fee_of_max_seconds_at_the_locked_rate(
    market: World, ask: int, billing: int, share: int
) -> None:
    """share: parts per million of the reference that 1,000 s pay at the ask, and not what the ceiling would."""
    node = market.register(ask=ask)
    terms = market.post(billing=billing)
    market.claim(terms, node)
    market.evm.at(market.unit(terms).mark - 1)
    market.nodes.send.beat(node, sender=market.operator)
    market.evm.warp(1)
    fee = formulas.whole_fee(terms, market.unit(terms))
    assert min(10**6, fee * 10**6 // FEE_REFERENCE) == share
    market.reclaim(terms)
    found = node_state(market, node)
    assert (found.s, found.cusum, found.silent) == (ONE * share // 10**6, 64 * share // 10**6, False)


def test_reclaim__burn_over_the_ration__pays_the_reward_and_burns_nothing(market: World) -> None:
    # Leases with bonds of 40 ether: two slashes of 4 pass the ration of max(1 % of the stake, 3).
    node = market.register(stake=500 * ETHER)
    jobs = [market.post(ceiling=80 * 10**21, keeper_fee=10**14, flags=4) for _ in range(3)]
    for terms in jobs:
        market.claim(terms, node)
    market.evm.at((market.evm.now // 3_600 + 1) * 3_600 + 100)
    burns, weights = [], []
    for terms in jobs:
        market.evm.at(max(market.evm.now, market.unit(terms).mark))
        market.nodes.send.beat(node, sender=market.operator)
        before = node_state(market, node).s
        burns.append(market.reclaim(terms).event("Slashed")["burnt"])
        weights.append(node_state(market, node).s - before)
    slash = 4 * ETHER
    assert burns[0] < slash and burns[0] == burns[1] and burns[2] == 0
    assert weights == [ONE, ONE, ONE // 2]
