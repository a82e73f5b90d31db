"""Attack 25: a keeper that pays more for gas than it is paid. The market's promise, and where it is a subsidy.

The pay of an action is a share of the job's keeper fee, growing to four times itself within 600 s. A submitter who sets
`keeper_fee` to RULE times the gas of the dearest action at his chain's gas price pays for every action at once. Below
that a keeper waits for the ramp, or the owner, who is paid by the same settlement, acts at his own cost: that is the
subsidy, and the table that this file prints says how large it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hearth.protocol import formulas
from hearth.protocol.types import TermsFlag
from tests.attacks.stages import STAGES, Scene, market
from tests.kit import world as w
from tests.kit.vault import key, share, shares

GWEI = 10**9
# Gas prices in wei: what busy rollups ask, and what a quiet main net does.
PRICES = (GWEI // 1_000, GWEI // 100, GWEI // 10, GWEI)
# keeper_fee = RULE x gas of the dearest action x gas price pays for every action without waiting.
RULE = 8
DEAREST = 110_000

# The action, its stage, and its pay at once in base units.
ACTIONS: dict[str, tuple[str, Callable[[Scene], Any], Callable[[w.Terms, int], int]]] = {
    "settle": ("submitted", lambda s: s.world.settle(s.terms), formulas.settle_reward),
    "close": ("noticed", lambda s: s.world.close(s.terms), formulas.settle_reward),
    "expire": ("expirable", lambda s: s.world.expire(s.terms), lambda t, late: formulas.expire_reward(t, None, late)),
    "reclaim": (
        "silent",
        lambda s: s.world.reclaim(s.terms),
        lambda t, late: formulas.reclaim_reward(t, formulas.slash_of(t), late),
    ),
    "propose": ("open", lambda s: s.world.propose(s.terms, s.node), lambda t, late: formulas.tip(t)),
}


def measure(action: str, keeper_fee: int, late: int) -> tuple[int, int]:
    """Return (pay in base units, gas) of one action in steady state: every account has been credited before."""
    stage, act, _ = ACTIONS[action]
    world = market("native")
    found = Scene(
        world,
        world.register(stake=10_000 * w.ETHER),
        world.terms(keeper_fee=keeper_fee, ceiling=10**20, flags=TermsFlag.NEWCOMERS),
    )
    if action == "propose":
        found.terms = w.replace(found.terms, match_window=12)
    payer = world.evm.account("payer")
    accounts = (world.owner, world.treasury, world.keeper, world.submitter)
    world.escrow.send.lock(key("gift"), 4, sender=payer, value=4)
    world.escrow.send.split(key("gift"), shares(*(share(account, 1) for account in accounts)), sender=payer)
    STAGES[stage](found)
    world.evm.warp(late if action != "propose" else 0)
    before = world.credit(world.keeper)
    world.evm.settle()
    act(found)
    gas = world.evm.last_gas
    if action == "propose":
        world.evm.warp(12)
        world.ack(found.terms)
    return world.credit(world.keeper) - before, gas


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("price", PRICES)
def test_pay__fee_by_the_rule__covers_the_gas_at_once(action: str, price: int) -> None:
    """Control: with a fee a hundred times smaller the same action, at once, is a subsidy."""
    pay, gas = measure(action, RULE * DEAREST * price, 0)
    assert gas <= DEAREST
    assert pay >= gas * price
    poor, _ = measure(action, max(w.POLICY.min_keeper_fee, RULE * DEAREST * price // 100), 0)
    assert poor < gas * price or RULE * DEAREST * price // 100 < w.POLICY.min_keeper_fee


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("keeper_fee", [w.POLICY.min_keeper_fee, 10**13 + 7, 10**15])
def test_pay__each_fee_and_delay__is_what_spec_promises(action: str, keeper_fee: int) -> None:
    formula = ACTIONS[action][2]
    seconds = 20_000 if action == "reclaim" else 1_000
    terms = market("native").terms(keeper_fee=keeper_fee, ceiling=10**20, max_seconds=seconds)
    paid = []
    for late in (0, 1, 299, 600, 10_000):
        pay, _ = measure(action, keeper_fee, late)
        assert pay == formula(terms, late)
        paid.append(pay)
    assert paid == sorted(paid)
    if action in ("settle", "close"):
        assert paid[0] == keeper_fee // 8
        assert paid[3] == paid[4] == keeper_fee // 8 * 4


def test_pay__table__says_how_large_the_subsidy_is() -> None:
    """Print, per action and gas price, the keeper fee from which the action pays at once and after 600 s."""
    print("action    gas     " + "".join(f"{price / GWEI:>16} gwei" for price in PRICES))
    for action in ACTIONS:
        whole, gas = measure(action, 10**15, 0)
        late, _ = measure(action, 10**15, 600)
        row = [f"{gas * price * 10**15 // whole:.2e} {gas * price * 10**15 // late:.2e}" for price in PRICES]
        print(f"{action:9} {gas:7} " + " ".join(f"{cell:>20}" for cell in row))
        assert late >= whole > 0
    # The liveness fee is fixed; it covers its own gas up to this price.
    world = market("native")
    node = world.register()
    world.claim(world.post(), node)
    world.evm.warp(w.DEAD_AFTER)
    world.evm.settle()
    world.nodes.send.check_liveness([node], w.ZERO, sender=world.keeper)
    gas = world.evm.last_gas
    assert world.credit(world.keeper) == w.LIVENESS_FEE
    print(f"check_liveness {gas} gas, pays up to {w.LIVENESS_FEE / gas / GWEI:.3f} gwei")
    assert w.LIVENESS_FEE // gas >= GWEI // 10
