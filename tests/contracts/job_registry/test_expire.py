"""JobRegistry.expire: open units that can no longer finish go back, less the expirer's pay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import words
from hearth.protocol.parents import Condition
from hearth.protocol.types import SENTINEL, State
from tests.kit.evm import reverts
from tests.kit.steps import BUDGET, KEEPER_FEE, LEASE, TIP, around, credited, running, submitted
from tests.kit.world import POLICY, World

EXPIRE_PAY = 25 * 10**12  # keeper_fee // 4


def _due(world: World) -> int:
    """Return the deadline of a job that may be expired from 5,000 s from now on."""
    return world.evm.now + 5_000 + LEASE - 1


def test_expire__open__refunds_less_the_expirers_pay(market: World) -> None:
    terms = market.post(deadline=_due(market))
    market.evm.warp(5_000)
    with credited(market) as got:
        receipt = market.expire(terms)
    assert got == {"keeper": EXPIRE_PAY, "submitter": BUDGET - EXPIRE_PAY}
    assert market.state(terms) == State.EXPIRED
    assert receipt.event("Expired") == {
        "job_id": market.id_of(terms),
        "index": 0,
        "word": market.load(terms)[1],
        "refund": BUDGET - EXPIRE_PAY,
    }
    assert market.lock_of(terms) == 0
    # A share that nobody gets is nobody's, and nothing.
    shares = receipt.event("Split")["shares"]
    assert [words.unpack_share(share) for share in shares[:2]] == [
        (market.submitter.lower(), BUDGET - EXPIRE_PAY),
        (market.keeper.lower(), EXPIRE_PAY),
    ]
    assert list(shares[2:]) == [0, 0]


def test_expire__first_second__is_the_first_without_time_for_a_lease(world: World) -> None:
    node, terms = world.register(), world.post(deadline=_due(world))
    world.evm.warp(4_900)
    world.nodes.send.beat(node, sender=world.operator)
    for offset in around(world, world.evm.now + 100):
        if offset < 0:
            with reverts("jobs: not expired"):
                world.expire(terms)
            world.claim(terms, node)
        else:
            with reverts("jobs: no time left"):
                world.claim(terms, node)
            world.expire(terms)


@pytest.mark.parametrize(
    ("overdue", "permille"), [(0, 1_000), (1, 1_005), (599, 3_995), (600, 4_000), (601, 4_000), (10**6, 4_000)]
)
def test_expire__late__ramps_the_pay_up_to_a_keeper_fee(market: World, overdue: int, permille: int) -> None:
    terms = market.post(deadline=_due(market))
    market.evm.warp(5_000 + overdue)
    with credited(market) as got:
        market.expire(terms, payee=market.stranger)
    reward = EXPIRE_PAY * permille // 1_000
    assert got == {"stranger": reward, "submitter": BUDGET - reward}


@pytest.mark.parametrize(("fee", "reward"), [(8, 8), (9, 8), (11, 8), (12, 12)])
def test_expire__tiny_keeper_fee__pays_a_quarter_rounded_down(fee: int, reward: int) -> None:
    world = World(policy=replace(POLICY, min_keeper_fee=8))
    terms = world.post(deadline=_due(world), keeper_fee=fee)
    world.evm.warp(6_000)
    with credited(world) as got:
        world.expire(terms)
    assert got.get("keeper", 0) == reward
    assert got["submitter"] == 10**17 + 3 * fee - reward


def test_expire__reopened_after_tips__refunds_what_is_left(world: World) -> None:
    node, terms = world.register(), world.post(deadline=_due(world), match_window=30)
    world.propose(terms, node)
    world.evm.warp(30)
    world.ack(terms)
    world.evm.warp(LEASE)
    world.reclaim(terms)
    world.evm.warp(5_000 - 30 - LEASE)
    with credited(world) as got:
        world.expire(terms)
    assert got["submitter"] == BUDGET - TIP - EXPIRE_PAY


def test_expire__live_proposal__ends_all_the_same(world: World) -> None:
    node, terms = world.register(), world.post(deadline=_due(world), match_window=30)
    world.evm.warp(4_990)
    world.nodes.send.beat(node, sender=world.operator)
    world.propose(terms, node)
    world.evm.warp(10)
    world.expire(terms)
    assert world.state(terms) == State.EXPIRED


def test_expire__not_open__reverts(world: World) -> None:
    deadline = _due(world)
    leased, _ = running(world, deadline=deadline)
    done, _ = submitted(world, deadline=deadline)
    unknown = world.terms(deadline=deadline)
    array = world.post(deadline=deadline, units=2)
    world.evm.warp(5_000)
    for terms, index in ((leased, 0), (done, 0), (unknown, 0), (array, 0), (array, 1)):
        with reverts("jobs: not open"):
            world.expire(terms, index)


def test_expire__index_of_no_unit__reverts(world: World) -> None:
    terms = world.post(deadline=_due(world))
    world.evm.warp(5_000)
    for index in (1, SENTINEL):
        with reverts("jobs: no such unit"):
            world.expire(terms, index)
    assert world.expire(terms).event("Expired")["index"] == 0


def test_expire__all__closes_the_array_and_pays_once(market: World) -> None:
    node, terms = market.register(), market.post(deadline=_due(market), units=5)
    market.claim(terms, node, 0)
    market.evm.warp(5_000)
    with credited(market) as got:
        receipt = market.expire(terms, SENTINEL)
    assert got == {"keeper": EXPIRE_PAY, "submitter": 4 * BUDGET - EXPIRE_PAY}
    assert receipt.event("Expired") == {
        "job_id": market.id_of(terms),
        "index": SENTINEL,
        "word": market.load(terms)[0],
        "refund": 4 * BUDGET - EXPIRE_PAY,
    }
    assert market.header(terms).closed
    assert market.lock_of(terms) == BUDGET
    with reverts("jobs: closed"):
        market.expire(terms, SENTINEL)
    # No time for another attempt: the running one is refunded when it is taken back.
    with credited(market) as got:
        market.reclaim(terms, 0)
    assert got["submitter"] == BUDGET and market.lock_of(terms) == 0


def test_expire__all_with_nothing_untouched__reverts(world: World) -> None:
    node, terms = world.register(), world.post(deadline=_due(world), units=2, flags=4)
    world.claim(terms, node, 0)
    world.claim(terms, node, 1)
    world.decline(terms, 1)
    world.evm.warp(5_000)
    with reverts("jobs: nothing untouched"):
        world.expire(terms, SENTINEL)
    world.expire(terms, 1)
    assert (world.state(terms, 1), world.header(terms).failed) == (State.EXPIRED, 1)


def test_expire__open_unit_of_a_closed_array__is_refunded(world: World) -> None:
    node, terms = world.register(), world.post(deadline=_due(world), units=2)
    world.claim(terms, node, 0)
    world.decline(terms, 0)
    world.cancel(terms, SENTINEL)
    world.evm.warp(5_000)
    with credited(world) as got:
        world.expire(terms, 0)
    assert got == {"submitter": BUDGET}
    assert world.lock_of(terms) == 0


@pytest.mark.parametrize("overdue", [0, 300, 10**6])
@pytest.mark.parametrize("units", [1, 4])
def test_expire__waiting_for_parents__pays_the_expirer_out_of_the_fee_of_the_unlock(
    market: World, units: int, overdue: int
) -> None:
    terms = market.post_after((market.terms(), Condition.SUCCESS), units=units, deadline=_due(market))
    at = 0 if units == 1 else SENTINEL
    market.evm.warp(4_999)
    with reverts("jobs: not expired"):
        market.expire(terms, at)
    market.evm.warp(1 + overdue)
    with credited(market) as got:
        receipt = market.expire(terms, at)
    reward = EXPIRE_PAY * (1_000 + min(3_000, 5 * overdue)) // 1_000
    refund = units * BUDGET + KEEPER_FEE - reward
    assert got == {"keeper": reward, "submitter": refund} and reward <= KEEPER_FEE
    word = market.load(terms)[0]
    assert receipt.event("Expired") == {"job_id": market.id_of(terms), "index": at, "word": word, "refund": refund}
    assert market.lock_of(terms) == 0
    if units == 1:
        assert market.state(terms) == State.EXPIRED
    else:
        header = market.header(terms)
        assert (header.closed, header.waiting) == (True, False)
    with reverts("jobs: not open" if units == 1 else "jobs: closed"):
        market.expire(terms, at)


def test_expire__unit_of_a_waiting_array__reverts(world: World) -> None:
    terms = world.post_after((world.post(), Condition.SUCCESS), units=2, deadline=_due(world))
    world.evm.warp(5_000)
    for index in (0, 1):
        with reverts("jobs: not open"):
            world.expire(terms, index)
