"""NodeRegistry.check_liveness: a lapse is recorded and paid for once, out of free stake."""

from __future__ import annotations

from typing import Any

import pytest

from hearth.protocol import words
from hearth.protocol.types import NodeFlag, NodeId
from tests.kit.evm import Reverted, reverts
from tests.kit.steps import around, credited, engage, from_jobs, node_state
from tests.kit.world import DEAD_AFTER, ETHER, LIVENESS_FEE, ZERO, World


def busy(world: World, **changes: Any) -> NodeId:
    """Register a node and have it run something that reserves nothing."""
    node = world.register(**changes)
    engage(world, node, bond=0)
    return node


def test_check_liveness__node_that_runs_nothing__is_marked_and_keeps_its_stake(seated_market: World) -> None:
    node = seated_market.register(stake=2 * ETHER)
    engage(seated_market, node, bond=ETHER)
    from_jobs(seated_market, "submitted", node, seated_market.operator)
    seated_market.evm.warp(DEAD_AFTER)
    with credited(seated_market) as got:
        receipt = seated_market.nodes.send.check_liveness([node], seated_market.stranger, sender=seated_market.keeper)
    assert got == {}
    assert receipt.event("NodeLapsed") == {"node": node, "payee": seated_market.stranger, "fee": 0}
    assert seated_market.node(node).stake == seated_market.staked(node) == 2 * ETHER
    with reverts("nodes: nothing to do"):
        seated_market.nodes.send.check_liveness([node], seated_market.stranger)


def test_check_liveness__silent_node__marks_it_and_pays_from_its_stake(seated_market: World) -> None:
    node = busy(seated_market, stake=2 * ETHER)
    seated_market.evm.warp(DEAD_AFTER)
    with credited(seated_market) as got:
        receipt = seated_market.nodes.send.check_liveness([node], seated_market.stranger, sender=seated_market.keeper)
    assert got == {"stranger": LIVENESS_FEE}
    assert receipt.event("NodeLapsed") == {"node": node, "payee": seated_market.stranger, "fee": LIVENESS_FEE}
    assert node_state(seated_market, node).status == NodeFlag.LAPSED
    left = 2 * ETHER - LIVENESS_FEE
    assert seated_market.node(node).stake == seated_market.staked(node) == left
    assert words.unpack(words.TOTALS, seated_market.nodes.call.totals())["total"] == left


def test_check_liveness__payee_zero__pays_the_caller(seated: World) -> None:
    node = busy(seated)
    seated.evm.warp(DEAD_AFTER)
    with credited(seated) as got:
        receipt = seated.nodes.send.check_liveness([node], ZERO, sender=seated.keeper)
    assert got == {"keeper": LIVENESS_FEE}
    assert receipt.event("NodeLapsed")["payee"] == seated.keeper


def test_check_liveness__dead_after__is_reached_at_its_last_second(seated: World) -> None:
    node = seated.register()
    for offset in around(seated, seated.evm.now + DEAD_AFTER):
        if offset < 0:
            with reverts("nodes: nothing to do"):
                seated.nodes.send.check_liveness([node], seated.keeper)
        else:
            seated.nodes.send.check_liveness([node], seated.keeper)


def test_check_liveness__again__pays_once_per_lapse(seated: World) -> None:
    node = busy(seated)
    seated.evm.warp(DEAD_AFTER)
    seated.nodes.send.check_liveness([node], seated.keeper)
    for later in (0, 1, 10**6):
        seated.evm.warp(later)
        with reverts("nodes: nothing to do"):
            seated.nodes.send.check_liveness([node], seated.keeper)
    seated.nodes.send.beat(node, sender=seated.operator)
    seated.evm.warp(DEAD_AFTER)
    with credited(seated) as got:
        seated.nodes.send.check_liveness([node], seated.keeper)
    assert got == {"keeper": LIVENESS_FEE}


def test_check_liveness__same_node_twice_in_a_batch__pays_once(seated: World) -> None:
    node, other = busy(seated), busy(seated)
    seated.evm.warp(DEAD_AFTER)
    with credited(seated) as got:
        receipt = seated.nodes.send.check_liveness([node, node, other, 0, 99], seated.keeper)
    assert got == {"keeper": 2 * LIVENESS_FEE}
    assert [event["node"] for event in receipt.events("NodeLapsed")] == [node, other]


def test_check_liveness__never_beat_exiting_or_unknown__is_skipped(seated: World) -> None:
    silent = seated.register(beat=False)
    leaving = seated.register()
    seated.nodes.send.exit_start(leaving, sender=seated.owner)
    seated.evm.warp(10 * DEAD_AFTER)
    with reverts("nodes: nothing to do"):
        seated.nodes.send.check_liveness([silent, leaving, 0, 99], seated.keeper)
    with reverts("nodes: nothing to do"):
        seated.nodes.send.check_liveness([], seated.keeper)


@pytest.mark.parametrize(
    ("free", "fee"), [(0, 0), (1, 1), (LIVENESS_FEE - 1, LIVENESS_FEE - 1), (LIVENESS_FEE, LIVENESS_FEE)]
)
def test_check_liveness__little_free_stake__takes_no_bonded_stake(seated_market: World, free: int, fee: int) -> None:
    node = seated_market.register(stake=ETHER + free)
    engage(seated_market, node, bond=ETHER)
    seated_market.evm.warp(DEAD_AFTER)
    with credited(seated_market) as got:
        receipt = seated_market.nodes.send.check_liveness([node], seated_market.keeper)
    assert got == ({"keeper": fee} if fee else {})
    assert receipt.event("NodeLapsed")["fee"] == fee
    assert seated_market.node(node).stake == seated_market.staked(node) == ETHER + free - fee
    assert node_state(seated_market, node).bond == ETHER


def test_check_liveness__many_leases__are_as_busy_as_one(seated: World) -> None:
    node = seated.register(slots=32)
    for _ in range(32):
        engage(seated, node, bond=0)
    seated.evm.warp(DEAD_AFTER)
    with credited(seated) as got:
        seated.nodes.send.check_liveness([node], seated.keeper)
    assert got == {"keeper": LIVENESS_FEE}


def test_check_liveness__all_of_a_large_stake_bonded__takes_none_of_it(seated: World) -> None:
    seated.evm.set_balance(seated.owner, 2**80)
    node = seated.register(stake=2**79)
    engage(seated, node, bond=2**79)
    seated.evm.warp(DEAD_AFTER)
    receipt = seated.nodes.send.check_liveness([node], seated.keeper)
    assert receipt.event("NodeLapsed")["fee"] == 0 and seated.node(node).stake == 2**79


def test_check_liveness__second_past_2038__is_read_whole(seated: World) -> None:
    seated.evm.at(2**31)
    node = seated.register()
    seated.evm.warp(DEAD_AFTER - 1)
    with reverts("nodes: nothing to do"):
        seated.nodes.send.check_liveness([node], seated.keeper)
    seated.evm.warp(1)
    seated.nodes.send.check_liveness([node], seated.keeper)


def test_check_liveness__batch__takes_128_and_no_more(seated: World) -> None:
    node = seated.register()
    seated.evm.warp(DEAD_AFTER)
    with pytest.raises(Reverted):
        seated.nodes.send.check_liveness([node] * 129, seated.keeper)
    seated.nodes.send.check_liveness([node] * 128, seated.keeper)
