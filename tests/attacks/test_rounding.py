"""Attack 19: amounts at which something rounds, so that a later call reverts and a job hangs.

Prices of 1, 2, around a power of the rate's scale, and at the top of their lanes; keeper fees around every divisor.
What `post` takes must live through every way to its end, to the base unit as the model says.
"""

from __future__ import annotations

import pytest

from hearth.protocol import formulas
from hearth.protocol.types import Billing
from tests.attacks.modelled import LIVES, Modelled
from tests.kit import world as w
from tests.kit.evm import reverts

POLICY = w.replace(w.POLICY, min_price=0, min_keeper_fee=8, fee_bps=333, min_bond_bps=4_999)
TOP = 2**80 - 1
# (ceiling, seconds): the price is ceiling x seconds / 1e6, rounding up.
PRICES = [
    (1, 1),
    (10**6, 1),
    (10**6 + 1, 1),
    (2 * 10**6, 1),
    (999_999, 1_001),
    (10**18 + 1, 999_999),
    (TOP, 1),
    (TOP, 1_000_000),
]


def fees(price: int) -> list[int]:
    """Return keeper fees at the least, around two eighths, and around the price, the most that is taken above it."""
    return sorted({min(fee, 2**76) for fee in (8, 9, 15, 16, price - 1, price) if 8 <= fee <= max(price, 8)})


def cases() -> int:
    """Count the lives that one way of life is tried with."""
    return sum(len(fees(-(-ceiling * seconds // 10**6))) for ceiling, seconds in PRICES)


@pytest.mark.parametrize("life", LIVES)
def test_rounding__each_price_and_keeper_fee__every_life_ends(life: str) -> None:
    tried = calls = 0
    for n, (ceiling, seconds) in enumerate(PRICES):
        for keeper_fee in fees(-(-ceiling * seconds // 10**6)):
            ask = ceiling if (n + keeper_fee) % 3 else 1
            both = Modelled(POLICY, ask=ask, stake=TOP)
            terms = both.terms(
                ceiling=ceiling,
                max_seconds=seconds,
                keeper_fee=keeper_fee,
                max_attempts=1 + tried % 3,
                match_window=12 if life in ("match", "lapse") else 0,
                billing=Billing.FUEL if tried % 2 else Billing.FIXED,
            )
            both.post(terms)
            LIVES[life](both, (0, 1, 599, 601)[tried % 4], (1 if tried % 4 == 1 else seconds) if tried % 2 else 0)
            assert both.job.units[0].state.terminal
            assert both.world.lock_of(both.job.terms) == 0
            tried += 1
            calls += both.calls
    assert tried == cases()
    print(f"rounding, {life}: {tried} lives, {calls} calls, each compared with the model field by field")


@pytest.mark.parametrize(
    ("seconds", "keeper_fee", "bond_bps", "reason"),
    [
        (2_000_000, 8, 10_000, "jobs: bond too large"),
        (1_000_000, 2**78, 1, "jobs: bond too large"),
        (1_000_000, TOP, 1, "jobs: bond too large"),
    ],
)
def test_rounding__amounts_beyond_their_lanes__are_refused_at_post(
    seconds: int, keeper_fee: int, bond_bps: int, reason: str
) -> None:
    both = Modelled(w.replace(POLICY, min_bond_bps=bond_bps), ask=1, stake=TOP)
    with reverts(reason):
        both.post(both.terms(ceiling=TOP, max_seconds=seconds, keeper_fee=keeper_fee))


@pytest.mark.parametrize("ceiling", [1, 10**6, 10**18 + 1])
def test_rounding__keeper_fee_at_and_above_the_price__edge_is_exact(ceiling: int) -> None:
    both = Modelled(POLICY, ask=1, stake=TOP)
    price = formulas.unit_price(both.terms(ceiling=ceiling, max_seconds=1_000))
    most = max(price, POLICY.min_keeper_fee)
    both.post(both.terms(ceiling=ceiling, max_seconds=1_000, keeper_fee=most))
    for keeper_fee in (most + 1, POLICY.min_keeper_fee - 1):
        with reverts("jobs: keeper_fee out of range"):
            both.post(both.terms(ceiling=ceiling, max_seconds=1_000, keeper_fee=keeper_fee))


def test_rounding__escrow_at_its_limit__is_taken_and_one_unit_more_is_refused() -> None:
    """The lock's lane is 96 bits: the largest array that fits is posted, expires whole and comes back whole."""
    both = Modelled(POLICY, ask=1, stake=TOP)
    terms = both.terms(ceiling=TOP, max_seconds=1_000_000, keeper_fee=8, max_attempts=1)
    most = (2**96 - 1) // formulas.lease_budget(terms)
    with reverts("jobs: escrow too large"):
        both.post(w.replace(terms, units=most + 1))
    both.post(w.replace(terms, units=most))
    both.wait_until(both.expirable)
    world = both.world
    world.expire(both.job.terms, 2**256 - 1)
    reward = world.credit(world.keeper)
    assert reward == terms.keeper_fee // 4
    assert world.credit(world.submitter) + reward == formulas.escrow_at_post(both.job.terms)
