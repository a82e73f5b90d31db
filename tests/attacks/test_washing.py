"""Attack: a node is paid by its own owner's jobs, to end its probation without having worked for anybody.

Pay and keeper fee come back to the pair; what is lost is the market's fee and gas. Whatever the price of such jobs, the
fee lost is at least five times `fee_reference`, which no policy's fee on a unit of `probation_price` may exceed.
"""

from __future__ import annotations

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.types import TermsFlag
from tests.attacks.stages import KINDS, market
from tests.kit import world as w
from tests.kit.evm import reverts

PRICES = (w.POLICY.probation_price // 2, w.POLICY.probation_price, 50 * w.POLICY.probation_price)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("price", PRICES)
def test_wash__own_jobs_of_any_price__cost_five_times_the_reference(kind: str, price: int) -> None:
    world = market(kind)
    node = world.register(stake=200 * w.ETHER, ask=price * 10**6 // 1_000)
    before, washed = world.credit(world.treasury), 0
    while not world.node(node).state.seasoned:
        terms = world.post(ceiling=price * 10**6 // 1_000, max_seconds=1_000, flags=TermsFlag.NEWCOMERS)
        world.evm.warp(world.policy.claim_ramp)  # the node's ask is the ceiling
        world.claim(terms, node)
        world.submit(terms)
        world.evm.warp(1)
        world.settle(terms)
        washed += 1
    lost = world.credit(world.treasury) - before
    assert lost == washed * formulas.fee_of(price, world.policy)
    assert lost >= 5 * w.FEE_REFERENCE and washed >= 5
    # Not less than a fifth of what it may be trusted with on probation.
    assert lost >= w.POLICY.probation_price // 5
    dear = world.post(ceiling=10**21, flags=TermsFlag(0))
    world.evm.warp(world.policy.claim_ramp)
    world.claim(dear, node)


@pytest.mark.parametrize("fee_bps", [0, 1, 9, 10, 500, 1_000])
def test_wash__no_policy__makes_probation_cheaper_than_what_it_allows(fee_bps: int) -> None:
    """Search of the probation prices that a governor may set: each is at most one full success."""
    world = market("native")
    taken = []
    for exponent in range(10, 22):
        for mantissa in (1, 2, 5):
            price = mantissa * 10**exponent
            policy = w.replace(w.POLICY, fee_bps=fee_bps, probation_price=price)
            if fee_bps >= 10 and price * fee_bps // 10_000 <= w.FEE_REFERENCE:
                world.evm.warp(w.DAY)
                world.rules.send.set_policy(words.pack_policy(policy), sender=world.deployer)
                taken.append(price)
            else:
                with reverts("rules: policy out of range"):
                    world.rules.send.set_policy(words.pack_policy(policy), sender=world.deployer)
    assert bool(taken) == (fee_bps >= 10)
    assert all(price * fee_bps // 10_000 <= w.FEE_REFERENCE for price in taken)
