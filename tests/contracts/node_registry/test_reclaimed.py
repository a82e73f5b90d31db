"""NodeRegistry.reclaimed: slash, reward, burn and its hourly ration, and the breaker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth.protocol import words
from hearth.protocol.reputation import ONE
from hearth.protocol.types import NodeId
from tests.kit.evm import reverts
from tests.kit.steps import BOND, SLASH, credited, engage, from_jobs, node_state
from tests.kit.world import DEAD, ETHER, MINIMUM_STAKE, ZERO, World

RATION = 3 * MINIMUM_STAKE  # more than a hundredth of the stake, unless a test locks more than 300 ether


def _fail(seated: World, node: NodeId, *, bond: int = BOND, slash: int = SLASH, reward: int = 10**12) -> Any:
    engage(seated, node, bond=bond)
    return from_jobs(seated, "reclaimed", node, bond, slash, reward, seated.keeper)


def _totals(seated: World) -> dict[str, int]:
    return words.unpack(words.TOTALS, seated.nodes.call.totals())


def test_reclaimed__default__splits_the_slash_and_observes_a_failure(seated_market: World) -> None:
    node = seated_market.register(stake=10 * ETHER)
    engage(seated_market, node, bond=9)
    with credited(seated_market) as got:
        receipt = _fail(seated_market, node)
    assert got == {"keeper": 10**12, "dead": SLASH - 10**12}
    assert receipt.event("Slashed") == {
        "node": node,
        "payee": seated_market.keeper,
        "reward": 10**12,
        "burnt": SLASH - 10**12,
    }
    assert seated_market.node(node).stake == seated_market.staked(node) == 10 * ETHER - SLASH
    word = node_state(seated_market, node)
    assert (word.busy, word.bond, word.s, word.r, word.cusum) == (1, 9, ONE, 0, 4)
    assert _totals(seated_market) == {
        "next_id": 2,
        "hour": seated_market.evm.now // 3_600,
        "burnt": SLASH - 10**12,
        "total": 10 * ETHER - SLASH,
    }


def test_reclaimed__no_slash__moves_nothing_but_counts(seated: World) -> None:
    node = seated.register()
    with credited(seated) as got:
        receipt = _fail(seated, node, slash=0, reward=0)
    assert got == {}
    assert receipt.event("Slashed") == {"node": node, "payee": seated.keeper, "reward": 0, "burnt": 0}
    assert node_state(seated, node).s == ONE


def test_reclaimed__reward_takes_all__burns_nothing(seated: World) -> None:
    node = seated.register()
    with credited(seated) as got:
        _fail(seated, node, reward=SLASH)
    assert got == {"keeper": SLASH}
    assert _totals(seated)["burnt"] == 0


def test_reclaimed__ration__is_met_only_at_or_above_it(seated_market: World) -> None:
    node = seated_market.register(stake=20 * ETHER)
    _fail(seated_market, node, bond=ETHER, slash=RATION - 1, reward=0)
    assert _totals(seated_market)["burnt"] == RATION - 1
    # One unit below: this burn is taken whole, over the ration.
    with credited(seated_market) as got:
        _fail(seated_market, node, bond=ETHER, slash=10**15, reward=10**12)
    assert got == {"keeper": 10**12, "dead": 10**15 - 10**12}
    assert node_state(seated_market, node).s == 2 * ONE
    # At or above: half the weight, nothing burnt, the reward still paid.
    with credited(seated_market) as got:
        receipt = _fail(seated_market, node, bond=ETHER, slash=10**15, reward=10**12)
    assert got == {"keeper": 10**12}
    assert receipt.event("Slashed")["burnt"] == 0
    assert node_state(seated_market, node).s == 2 * ONE + ONE // 2
    assert node_state(seated_market, node).cusum == 8, "half a failure does not move the breaker"
    assert seated_market.staked(node) == seated_market.node(node).stake == 20 * ETHER - RATION - 10**15 + 1 - 10**12


def test_reclaimed__ration_exactly_burnt__holds_the_next_back(seated: World) -> None:
    node = seated.register(stake=20 * ETHER)
    _fail(seated, node, bond=ETHER, slash=RATION, reward=0)
    assert _fail(seated, node).event("Slashed")["burnt"] == 0


def test_reclaimed__next_clock_hour__starts_a_new_ration(seated: World) -> None:
    node = seated.register(stake=20 * ETHER)
    _fail(seated, node, bond=ETHER, slash=RATION, reward=0)
    start = (seated.evm.now // 3_600 + 1) * 3_600
    seated.evm.at(start - 1)
    seated.nodes.send.beat(node, sender=seated.operator)
    engage(seated, node)
    for offset, burnt in ((-1, 0), (0, SLASH), (1, SLASH)):
        with seated.evm.isolated():
            seated.evm.at(start + offset)
            event = from_jobs(seated, "reclaimed", node, BOND, SLASH, 0, seated.keeper).event("Slashed")
            assert event["burnt"] == burnt
            assert _totals(seated)["hour"] == (start + offset) // 3_600
            assert _totals(seated)["burnt"] == (RATION if offset < 0 else SLASH)


def test_reclaimed__much_stake__raises_the_ration_to_its_share(seated: World) -> None:
    node = seated.register(stake=1_000 * ETHER)
    _fail(seated, node, bond=20 * ETHER, slash=4 * ETHER, reward=0)
    # A hundredth of the 996 that are left.
    assert _fail(seated, node, bond=20 * ETHER, slash=6 * ETHER, reward=0).event("Slashed")["burnt"] == 6 * ETHER
    assert _totals(seated)["burnt"] == 10 * ETHER
    assert _fail(seated, node).event("Slashed")["burnt"] == 0


def test_reclaimed__third_failure__trips_the_breaker_for_an_hour_then_for_two(seated: World) -> None:
    node = seated.register(slots=63)
    for _ in range(8):
        engage(seated, node)
    events = [from_jobs(seated, "reclaimed", node, BOND, 0, 0, seated.keeper).events("Quarantined") for _ in range(2)]
    assert events == [[], []] and node_state(seated, node).cusum == 8
    now = seated.evm.now
    for trips, seconds in ((1, 3_600), (2, 7_200), (3, 14_400)):
        receipt = from_jobs(seated, "reclaimed", node, BOND, 0, 0, seated.keeper)
        assert receipt.event("Quarantined") == {"node": node, "until": now + seconds}
        assert (node_state(seated, node).trips, node_state(seated, node).cusum) == (trips, 8)


def test_reclaimed__shorter_quarantine_than_the_present_one__logs_no_other(seated: World) -> None:
    node = seated.register(slots=63)
    for _ in range(9):
        engage(seated, node)
    for _ in range(4):
        from_jobs(seated, "reclaimed", node, BOND, 0, 0, seated.keeper)
    before = node_state(seated, node)
    # Rationed failures weigh half and never touch the breaker.
    rich = seated.register(stake=20 * ETHER)
    _fail(seated, rich, bond=ETHER, slash=RATION, reward=0)
    receipt = from_jobs(seated, "reclaimed", node, BOND, 0, 0, seated.keeper)
    assert receipt.events("Quarantined") == []
    after = node_state(seated, node)
    assert replace(after, s=0, busy=0, bond=0) == replace(before, s=0, busy=0, bond=0)


def test_reclaimed__last_of_the_stake__may_be_taken(seated: World) -> None:
    node = seated.register(stake=ETHER)
    with credited(seated) as got:
        _fail(seated, node, bond=ETHER, slash=ETHER, reward=1)
    assert got == {"keeper": 1, "dead": ETHER - 1}
    assert seated.node(node).stake == seated.staked(node) == 0
    assert seated.node(node).owner == seated.owner
    assert DEAD != ZERO


@pytest.mark.parametrize("role", ["operator", "owner", "deployer", "keeper"])
def test_reclaimed__not_the_job_registry__reverts(seated: World, role: str) -> None:
    node = seated.register()
    engage(seated, node)
    with reverts("nodes: not the job registry"):
        seated.nodes.send.reclaimed(node, BOND, SLASH, 0, seated.keeper, sender=getattr(seated, role))
