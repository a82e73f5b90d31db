"""NodeRegistry.check_liveness: a lapse is recorded and paid for once, out of free stake."""

from __future__ import annotations

import pytest

from hearth import words
from hearth.types import HotStatus
from tests.contracts.steps import around, credited, engage, hot
from tests.evm import Reverted, reverts
from tests.world import DEAD_AFTER, ETHER, LIVENESS_FEE, ZERO, World


def test_check_liveness__silent_node__marks_it_and_pays_from_its_stake(market: World) -> None:
    node = market.register(stake=2 * ETHER)
    market.evm.warp(DEAD_AFTER)
    with credited(market) as got:
        receipt = market.nodes.send.check_liveness([node], market.stranger, sender=market.keeper)
    assert got == {"stranger": LIVENESS_FEE}
    assert receipt.event("NodeLapsed") == {"node": node, "payee": market.stranger, "fee": LIVENESS_FEE}
    assert hot(market, node).status == HotStatus.LAPSED
    left = 2 * ETHER - LIVENESS_FEE
    assert market.node(node).stake == market.staked(node) == left
    assert words.unpack(words.TOTALS, market.nodes.call.totals())["total"] == left


def test_check_liveness__payee_zero__pays_the_caller(world: World) -> None:
    node = world.register()
    world.evm.warp(DEAD_AFTER)
    with credited(world) as got:
        receipt = world.nodes.send.check_liveness([node], ZERO, sender=world.keeper)
    assert got == {"keeper": LIVENESS_FEE}
    assert receipt.event("NodeLapsed")["payee"] == world.keeper


def test_check_liveness__dead_after__is_reached_at_its_last_second(world: World) -> None:
    node = world.register()
    for offset in around(world, world.evm.now + DEAD_AFTER):
        if offset < 0:
            with reverts("nodes: nothing to do"):
                world.nodes.send.check_liveness([node], world.keeper)
        else:
            world.nodes.send.check_liveness([node], world.keeper)


def test_check_liveness__again__pays_once_per_lapse(world: World) -> None:
    node = world.register()
    world.evm.warp(DEAD_AFTER)
    world.nodes.send.check_liveness([node], world.keeper)
    for later in (0, 1, 10**6):
        world.evm.warp(later)
        with reverts("nodes: nothing to do"):
            world.nodes.send.check_liveness([node], world.keeper)
    world.nodes.send.beat(node, sender=world.operator)
    world.evm.warp(DEAD_AFTER)
    with credited(world) as got:
        world.nodes.send.check_liveness([node], world.keeper)
    assert got == {"keeper": LIVENESS_FEE}


def test_check_liveness__same_node_twice_in_a_batch__pays_once(world: World) -> None:
    node, other = world.register(), world.register()
    world.evm.warp(DEAD_AFTER)
    with credited(world) as got:
        receipt = world.nodes.send.check_liveness([node, node, other, 0, 99], world.keeper)
    assert got == {"keeper": 2 * LIVENESS_FEE}
    assert [event["node"] for event in receipt.events("NodeLapsed")] == [node, other]


def test_check_liveness__never_beat_exiting_or_unknown__is_skipped(world: World) -> None:
    silent = world.register(beat=False)
    leaving = world.register()
    world.nodes.send.exit_start(leaving, sender=world.owner)
    world.evm.warp(10 * DEAD_AFTER)
    with reverts("nodes: nothing to do"):
        world.nodes.send.check_liveness([silent, leaving, 0, 99], world.keeper)
    with reverts("nodes: nothing to do"):
        world.nodes.send.check_liveness([], world.keeper)


@pytest.mark.parametrize(
    ("free", "fee"), [(0, 0), (1, 1), (LIVENESS_FEE - 1, LIVENESS_FEE - 1), (LIVENESS_FEE, LIVENESS_FEE)]
)
def test_check_liveness__little_free_stake__takes_no_bonded_stake(market: World, free: int, fee: int) -> None:
    node = market.register(stake=ETHER + free)
    engage(market, node, bond=ETHER)
    market.evm.warp(DEAD_AFTER)
    with credited(market) as got:
        receipt = market.nodes.send.check_liveness([node], market.keeper)
    assert got == ({"keeper": fee} if fee else {})
    assert receipt.event("NodeLapsed")["fee"] == fee
    assert market.node(node).stake == market.staked(node) == ETHER + free - fee
    assert hot(market, node).bond == ETHER


def test_check_liveness__batch__takes_128_and_no_more(world: World) -> None:
    node = world.register()
    world.evm.warp(DEAD_AFTER)
    with pytest.raises(Reverted):
        world.nodes.send.check_liveness([node] * 129, world.keeper)
    world.nodes.send.check_liveness([node] * 128, world.keeper)
