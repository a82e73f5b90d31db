"""NodeRegistry.reclaimed: slash, reward, burn and its hourly ration, and the breaker."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import words
from hearth.protocol.reputation import ONE
from hearth.protocol.types import NodeId
from tests.kit.evm import Receipt, reverts
from tests.kit.steps import BOND, SLASH, credited, engage, from_jobs, node_state, set_totals
from tests.kit.world import DEAD, DEAD_AFTER, ETHER, FEE_REFERENCE, MINIMUM_STAKE, ZERO, World

RATION = 3 * MINIMUM_STAKE  # more than a hundredth of the stake, unless a test locks more than 300 ether


def _reclaimed(
    seated: World,
    node: NodeId,
    *,
    busy: int = 1,
    bond: int = BOND,
    slash: int = SLASH,
    reward: int = 0,
    least: int = 0,
    fee: int = FEE_REFERENCE,
) -> Receipt:
    return from_jobs(seated, "reclaimed", node, busy, bond, slash, reward, least, fee, seated.keeper)


def _fail(seated: World, node: NodeId, *, bond: int = BOND, slash: int = SLASH, reward: int = 10**12) -> Receipt:
    engage(seated, node, bond=bond)
    return _reclaimed(seated, node, bond=bond, slash=slash, reward=reward)


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
    assert (word.busy, word.bond, word.s, word.r, word.cusum) == (1, 9, ONE, 0, 64)
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
    assert node_state(seated_market, node).cusum == 128 + 32, "half a failure"
    assert seated_market.staked(node) == seated_market.node(node).stake == 20 * ETHER - RATION - 10**15 + 1 - 10**12


def test_reclaimed__ration_exactly_burnt__holds_the_next_back(seated: World) -> None:
    node = seated.register(stake=20 * ETHER)
    _fail(seated, node, bond=ETHER, slash=RATION, reward=0)
    assert _fail(seated, node).event("Slashed")["burnt"] == 0


def test_reclaimed__minimum_that_the_governor_raised__leaves_the_ration_as_it_was(seated: World) -> None:
    """Else whoever governs decides how much of everybody's stake an hour may burn."""
    node = seated.register(stake=20 * ETHER)
    seated.nodes.send.set_minimum_stake(2 * MINIMUM_STAKE)
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
            event = _reclaimed(seated, node).event("Slashed")
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
    events = [_reclaimed(seated, node, slash=0).events("Quarantined") for _ in range(2)]
    assert events == [[], []] and node_state(seated, node).cusum == 128
    now = seated.evm.now
    for trips, seconds in ((1, 3_600), (2, 7_200), (3, 14_400)):
        receipt = _reclaimed(seated, node, slash=0)
        assert receipt.event("Quarantined") == {"node": node, "until": now + seconds}
        assert (node_state(seated, node).trips, node_state(seated, node).cusum) == (trips, 128)


def test_reclaimed__shorter_quarantine_than_the_present_one__logs_no_other(seated: World) -> None:
    node = seated.register(slots=63)
    for _ in range(9):
        engage(seated, node)
    for _ in range(4):
        _reclaimed(seated, node, slash=0)
    before = node_state(seated, node)
    receipt = _reclaimed(seated, node, slash=0, fee=FEE_REFERENCE // 2)
    assert receipt.events("Quarantined") == []
    after = node_state(seated, node)
    assert after == replace(before, s=before.s + ONE // 2, cusum=160, busy=before.busy - 1, bond=before.bond - BOND)


@pytest.mark.parametrize(
    ("fee", "weight", "sixteenths"),
    [
        (0, 0, 0),
        (FEE_REFERENCE // 65, ONE // 65, 0),
        (FEE_REFERENCE // 64, ONE // 64, 1),
        (FEE_REFERENCE // 2, ONE // 2, 32),
        (FEE_REFERENCE, ONE, 64),
        (2**80, ONE, 64),
    ],
)
def test_reclaimed__live_node__weighs_the_failure_by_the_fee(
    seated: World, fee: int, weight: int, sixteenths: int
) -> None:
    node = seated.register()
    engage(seated, node)
    seated.evm.warp(DEAD_AFTER - 1)
    _reclaimed(seated, node, fee=fee)
    found = node_state(seated, node)
    assert (found.s, found.cusum, found.silent) == (weight, sixteenths, False)


def test_reclaimed__dead_node__counts_its_silence_once_until_it_beats(seated: World) -> None:
    node = seated.register(slots=63)
    for _ in range(11):
        engage(seated, node)
    seated.evm.warp(DEAD_AFTER)
    found = []
    for fee in (0, *[FEE_REFERENCE] * 9):
        _reclaimed(seated, node, fee=fee)
        state = node_state(seated, node)
        found.append((state.s, state.cusum, state.silent))
    assert found == [(ONE, 64, True)] * 10
    seated.nodes.send.beat(node, sender=seated.operator)
    assert not node_state(seated, node).silent
    seated.evm.warp(DEAD_AFTER)
    _reclaimed(seated, node, fee=0)
    assert node_state(seated, node).cusum == 128 and node_state(seated, node).silent


def test_reclaimed__dead_node_above_the_ration__counts_half_a_silence(seated: World) -> None:
    node, rich = seated.register(slots=63), seated.register(stake=20 * ETHER)
    for _ in range(2):
        engage(seated, node)
    seated.evm.at((seated.evm.now // 3_600 + 2) * 3_600)
    seated.nodes.send.beat(rich, sender=seated.operator)
    _fail(seated, rich, bond=ETHER, slash=RATION, reward=0)
    for _ in range(2):
        _reclaimed(seated, node)
        assert (node_state(seated, node).s, node_state(seated, node).cusum) == (ONE // 2, 32)


@pytest.mark.parametrize("sign", ["beat", "heartbeat", "submitted"])
def test_reclaimed__every_sign_of_life__ends_the_silence(seated: World, sign: str) -> None:
    node = seated.register(slots=63)
    for _ in range(2):
        engage(seated, node)
    seated.evm.warp(DEAD_AFTER)
    _reclaimed(seated, node)
    if sign == "submitted":
        from_jobs(seated, "submitted", node, seated.operator)
    else:
        getattr(seated.nodes.send, sign)(node if sign == "beat" else [node], sender=seated.operator)
    assert not node_state(seated, node).silent


def test_reclaimed__last_of_the_stake__may_be_taken(seated: World) -> None:
    node = seated.register(stake=ETHER)
    with credited(seated) as got:
        _fail(seated, node, bond=ETHER, slash=ETHER, reward=1)
    assert got == {"keeper": 1, "dead": ETHER - 1}
    assert seated.node(node).stake == seated.staked(node) == 0
    assert seated.node(node).owner == seated.owner
    assert DEAD != ZERO


def test_reclaimed__submitted_before__frees_no_slot_and_is_no_silence(seated: World) -> None:
    """A result that nobody has proven: its slot is long free, and whoever handed it in was not silent."""
    node = seated.register()
    engage(seated, node)
    engage(seated, node)
    from_jobs(seated, "submitted", node, seated.operator)
    seated.evm.warp(2 * DEAD_AFTER)
    _reclaimed(seated, node, busy=0, fee=FEE_REFERENCE // 2)
    state = node_state(seated, node)
    assert (state.busy, state.bond, state.s, state.silent) == (1, BOND, ONE // 2, False)
    assert seated.node(node).stake == 100 * ETHER - SLASH


@pytest.mark.parametrize("role", ["operator", "owner", "deployer", "keeper"])
def test_reclaimed__not_the_job_registry__reverts(seated: World, role: str) -> None:
    node = seated.register()
    engage(seated, node)
    with reverts("nodes: not the job registry"):
        seated.nodes.send.reclaimed(node, 1, BOND, SLASH, 0, 0, 0, seated.keeper, sender=getattr(seated, role))


def test_reclaimed__above_the_ration__burns_the_least_that_was_asked(seated_market: World) -> None:
    node = seated_market.register(stake=20 * ETHER, slots=3)
    engage(seated_market, node, bond=RATION)
    _reclaimed(seated_market, node, bond=RATION, slash=RATION)
    for least, burnt in ((0, 0), (11, 11), (SLASH, SLASH - 10**12)):  # never more than the slash leaves
        seated_market.evm.warp(1)
        engage(seated_market, node)
        with credited(seated_market) as got:
            _reclaimed(seated_market, node, reward=10**12, least=least)
        assert got == {"keeper": 10**12} | ({"dead": burnt} if burnt else {})


def test_reclaimed__past_2038__is_a_silence_only_of_a_dead_node(seated: World) -> None:
    seated.evm.at(2**31)
    node = seated.register()
    for _ in range(2):
        engage(seated, node)
    seated.evm.warp(DEAD_AFTER - 1)
    _reclaimed(seated, node, fee=0)
    assert node_state(seated, node).s == 0
    seated.evm.warp(1)
    _reclaimed(seated, node, fee=0)
    assert node_state(seated, node).s == ONE


def test_reclaimed__hour_that_burnt_almost_96_bits__is_above_any_ration(seated: World) -> None:
    set_totals(seated, hour=seated.evm.now // 3_600, burnt=2**95, total=2**95)
    node = seated.register()
    engage(seated, node)
    with credited(seated) as got:
        _reclaimed(seated, node)
    assert got == {} and _totals(seated)["burnt"] == 2**95
