"""NodeRegistry.exit_finish: anyone completes an exit; the stake becomes the owner's credit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hearth.protocol import words
from hearth.protocol.types import NodeId, State
from tests.kit.evm import NATIVE, reverts
from tests.kit.steps import SLASH, around, credited, engage, from_jobs, node_state, running, submitted
from tests.kit.world import ETHER, UNBONDING, World


def _leave(world: World, node: NodeId) -> None:
    world.nodes.send.exit_start(node, sender=world.owner)
    world.evm.warp(UNBONDING)


def test_exit_finish__by_anyone__credits_the_owner_and_wipes_the_record(market: World) -> None:
    node = market.register(stake=3 * ETHER)
    market.nodes.send.set_ask(node, 9, sender=market.owner)
    _leave(market, node)
    with credited(market) as got:
        receipt = market.nodes.send.exit_finish(node, sender=market.stranger)
    assert receipt.event("ExitFinished") == {"node": node, "stake": 3 * ETHER}
    assert got == {"owner": 3 * ETHER}
    assert market.staked(node) == 0
    assert tuple(market.nodes.call.get(node)) == (NATIVE, NATIVE, 0, 0, 0, 0, 0)
    assert words.unpack(words.TOTALS, market.nodes.call.totals()) == {"next_id": 2, "hour": 0, "burnt": 0, "total": 0}
    with reverts("nodes: not the operator"):
        market.nodes.send.beat(node, sender=market.operator)
    with reverts("nodes: not the owner"):
        market.nodes.send.exit_start(node, sender=market.owner)


def test_exit_finish__owner_with_the_highest_bit__is_credited(world: World) -> None:
    high = world.stranger
    assert int(high, 16) >> 159 == 1
    node = world.register(owner=high, stake=ETHER)
    world.nodes.send.exit_start(node, sender=high)
    world.evm.warp(UNBONDING)
    with credited(world) as got:
        world.nodes.send.exit_finish(node)
    assert got == {"stranger": ETHER}


def test_exit_finish__unbonding__is_valid_from_its_end_on(world: World) -> None:
    node = world.register()
    world.nodes.send.exit_start(node, sender=world.owner)
    for offset in around(world, world.evm.now + UNBONDING):
        if offset < 0:
            with reverts("nodes: still unbonding"):
                world.nodes.send.exit_finish(node)
        else:
            world.nodes.send.exit_finish(node)


def test_exit_finish__not_exiting_unknown_or_done__reverts(world: World) -> None:
    node = world.register()
    for other in (node, node + 1):
        with reverts("nodes: not exiting"):
            world.nodes.send.exit_finish(other)
    _leave(world, node)
    world.nodes.send.exit_finish(node)
    with reverts("nodes: not exiting"):
        world.nodes.send.exit_finish(node)


def test_exit_finish__bond_outstanding__waits_for_the_settle(world: World) -> None:
    terms, node = submitted(world)
    _leave(world, node)
    with reverts("nodes: bond outstanding"):
        world.nodes.send.exit_finish(node)
    world.settle(terms)
    world.nodes.send.exit_finish(node)


def test_exit_finish__bond_of_half_the_largest_stake__is_outstanding(seated: World) -> None:
    seated.evm.set_balance(seated.owner, 2**80)
    node = seated.register(stake=2**79)
    engage(seated, node, bond=2**79)
    from_jobs(seated, "submitted", node, seated.operator)
    _leave(seated, node)
    with reverts("nodes: bond outstanding"):
        seated.nodes.send.exit_finish(node)
    from_jobs(seated, "settled", node, 2**79, True, 0, 0)
    seated.nodes.send.exit_finish(node)


def test_exit_finish__lease_running__waits_for_the_reclaim_and_pays_the_rest(market: World) -> None:
    terms, node = running(market)
    stake = market.node(node).stake
    _leave(market, node)
    with reverts("nodes: bond outstanding"):
        market.nodes.send.exit_finish(node)
    market.reclaim(terms)
    with credited(market) as got:
        market.nodes.send.exit_finish(node)
    assert got == {"owner": stake - SLASH}
    assert market.state(terms) == State.OPEN


def _pending(world: World, node: NodeId) -> None:
    assert node_state(world, node).beat == 0


def _active(world: World, node: NodeId) -> None:
    world.nodes.send.beat(node, sender=world.operator)


def _lapsed(world: World, node: NodeId) -> None:
    _active(world, node)
    world.evm.warp(900)
    world.nodes.send.check_liveness([node], world.keeper)


def _quarantined(world: World, node: NodeId) -> None:
    _active(world, node)
    for _ in range(3):
        terms = world.post(match_window=0)
        world.nodes.send.beat(node, sender=world.operator)
        world.claim(terms, node)
        world.evm.warp(1_300)
        world.reclaim(terms)
    assert node_state(world, node).quarantine > world.evm.now


def _under_minimum(world: World, node: NodeId) -> None:
    _active(world, node)
    terms = world.post(match_window=0)
    world.claim(terms, node)
    world.evm.warp(1_300)
    world.reclaim(terms)
    assert world.node(node).stake < ETHER


@pytest.mark.parametrize(
    ("state", "stake"),
    [(_pending, ETHER), (_active, ETHER), (_lapsed, 2 * ETHER), (_quarantined, 2 * ETHER), (_under_minimum, ETHER)],
)
def test_exit_finish__from_every_state__gives_back_the_whole_stake(
    market: World, state: Callable[[World, NodeId], None], stake: int
) -> None:
    node = market.register(beat=False, stake=stake)
    state(market, node)
    stake = market.node(node).stake
    _leave(market, node)
    with credited(market) as got:
        market.nodes.send.exit_finish(node)
    assert got == {"owner": stake} and stake > 0
