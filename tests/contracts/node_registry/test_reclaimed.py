"""NodeRegistry.reclaimed: slash, reward, burn and its hourly ration, and the breaker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth import words
from hearth.protocol import ONE
from hearth.types import NodeId
from tests.contracts.steps import BOND, DEAD, SLASH, credited, engage, from_jobs, hot
from tests.evm import reverts
from tests.world import ETHER, MINIMUM_STAKE, ZERO, World

RATION = 3 * MINIMUM_STAKE  # more than a hundredth of the stake, unless a test locks more than 300 ether


def _fail(world: World, node: NodeId, *, bond: int = BOND, slash: int = SLASH, reward: int = 10**12) -> Any:
    engage(world, node, bond=bond)
    return from_jobs(world, "reclaimed", node, bond, slash, reward, world.keeper)


def _totals(world: World) -> dict[str, int]:
    return words.unpack(words.TOTALS, world.nodes.call.totals())


def test_reclaimed__default__splits_the_slash_and_observes_a_failure(market: World) -> None:
    node = market.register(stake=10 * ETHER)
    engage(market, node, bond=9)
    with credited(market) as got:
        receipt = _fail(market, node)
    assert got == {"keeper": 10**12, "dead": SLASH - 10**12}
    assert receipt.event("Slashed") == {
        "node": node,
        "payee": market.keeper,
        "reward": 10**12,
        "burnt": SLASH - 10**12,
    }
    assert market.node(node).stake == market.staked(node) == 10 * ETHER - SLASH
    word = hot(market, node)
    assert (word.busy, word.bond, word.s, word.r, word.cusum) == (1, 9, ONE, 0, 4)
    assert _totals(market) == {
        "next_id": 2,
        "hour": market.evm.now // 3_600,
        "burnt": SLASH - 10**12,
        "total": 10 * ETHER - SLASH,
    }


def test_reclaimed__no_slash__moves_nothing_but_counts(world: World) -> None:
    node = world.register()
    with credited(world) as got:
        receipt = _fail(world, node, slash=0, reward=0)
    assert got == {}
    assert receipt.event("Slashed") == {"node": node, "payee": world.keeper, "reward": 0, "burnt": 0}
    assert hot(world, node).s == ONE


def test_reclaimed__reward_takes_all__burns_nothing(world: World) -> None:
    node = world.register()
    with credited(world) as got:
        _fail(world, node, reward=SLASH)
    assert got == {"keeper": SLASH}
    assert _totals(world)["burnt"] == 0


def test_reclaimed__ration__is_met_only_at_or_above_it(market: World) -> None:
    node = market.register(stake=20 * ETHER)
    _fail(market, node, bond=ETHER, slash=RATION - 1, reward=0)
    assert _totals(market)["burnt"] == RATION - 1
    # One unit below: this burn is taken whole, over the ration.
    with credited(market) as got:
        _fail(market, node, bond=ETHER, slash=10**15, reward=10**12)
    assert got == {"keeper": 10**12, "dead": 10**15 - 10**12}
    assert hot(market, node).s == 2 * ONE
    # At or above: half the weight, nothing burnt, the reward still paid.
    with credited(market) as got:
        receipt = _fail(market, node, bond=ETHER, slash=10**15, reward=10**12)
    assert got == {"keeper": 10**12}
    assert receipt.event("Slashed")["burnt"] == 0
    assert hot(market, node).s == 2 * ONE + ONE // 2
    assert hot(market, node).cusum == 8, "half a failure does not move the breaker"
    assert market.staked(node) == market.node(node).stake == 20 * ETHER - RATION - 10**15 + 1 - 10**12


def test_reclaimed__ration_exactly_burnt__holds_the_next_back(world: World) -> None:
    node = world.register(stake=20 * ETHER)
    _fail(world, node, bond=ETHER, slash=RATION, reward=0)
    assert _fail(world, node).event("Slashed")["burnt"] == 0


def test_reclaimed__next_clock_hour__starts_a_new_ration(world: World) -> None:
    node = world.register(stake=20 * ETHER)
    _fail(world, node, bond=ETHER, slash=RATION, reward=0)
    start = (world.evm.now // 3_600 + 1) * 3_600
    world.evm.at(start - 1)
    world.nodes.send.beat(node, sender=world.operator)
    engage(world, node)
    for offset, burnt in ((-1, 0), (0, SLASH), (1, SLASH)):
        with world.evm.isolated():
            world.evm.at(start + offset)
            event = from_jobs(world, "reclaimed", node, BOND, SLASH, 0, world.keeper).event("Slashed")
            assert event["burnt"] == burnt
            assert _totals(world)["hour"] == (start + offset) // 3_600
            assert _totals(world)["burnt"] == (RATION if offset < 0 else SLASH)


def test_reclaimed__much_stake__raises_the_ration_to_its_share(world: World) -> None:
    node = world.register(stake=1_000 * ETHER)
    _fail(world, node, bond=20 * ETHER, slash=4 * ETHER, reward=0)
    # A hundredth of the 996 that are left.
    assert _fail(world, node, bond=20 * ETHER, slash=6 * ETHER, reward=0).event("Slashed")["burnt"] == 6 * ETHER
    assert _totals(world)["burnt"] == 10 * ETHER
    assert _fail(world, node).event("Slashed")["burnt"] == 0


def test_reclaimed__third_failure__trips_the_breaker_for_an_hour_then_for_two(world: World) -> None:
    node = world.register(slots=63)
    for _ in range(8):
        engage(world, node)
    events = [from_jobs(world, "reclaimed", node, BOND, 0, 0, world.keeper).events("Quarantined") for _ in range(2)]
    assert events == [[], []] and hot(world, node).cusum == 8
    now = world.evm.now
    for trips, seconds in ((1, 3_600), (2, 7_200), (3, 14_400)):
        receipt = from_jobs(world, "reclaimed", node, BOND, 0, 0, world.keeper)
        assert receipt.event("Quarantined") == {"node": node, "until": now + seconds}
        assert (hot(world, node).trips, hot(world, node).cusum) == (trips, 8)


def test_reclaimed__shorter_quarantine_than_the_present_one__logs_no_other(world: World) -> None:
    node = world.register(slots=63)
    for _ in range(9):
        engage(world, node)
    for _ in range(4):
        from_jobs(world, "reclaimed", node, BOND, 0, 0, world.keeper)
    before = hot(world, node)
    # Rationed failures weigh half and never touch the breaker.
    rich = world.register(stake=20 * ETHER)
    _fail(world, rich, bond=ETHER, slash=RATION, reward=0)
    receipt = from_jobs(world, "reclaimed", node, BOND, 0, 0, world.keeper)
    assert receipt.events("Quarantined") == []
    after = hot(world, node)
    assert replace(after, s=0, busy=0, bond=0) == replace(before, s=0, busy=0, bond=0)


def test_reclaimed__last_of_the_stake__may_be_taken(world: World) -> None:
    node = world.register(stake=ETHER)
    with credited(world) as got:
        _fail(world, node, bond=ETHER, slash=ETHER, reward=1)
    assert got == {"keeper": 1, "dead": ETHER - 1}
    assert world.node(node).stake == world.staked(node) == 0
    assert world.node(node).owner == world.owner
    assert DEAD != ZERO


@pytest.mark.parametrize("role", ["operator", "owner", "deployer", "keeper"])
def test_reclaimed__not_the_job_registry__reverts(world: World, role: str) -> None:
    node = world.register()
    engage(world, node)
    with reverts("nodes: not the job registry"):
        world.nodes.send.reclaimed(node, BOND, SLASH, 0, world.keeper, sender=getattr(world, role))
