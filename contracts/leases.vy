# pragma version 0.4.3
"""
@title Leases: the arithmetic of a lease's money and time
@author Hearth
@license Apache-2.0
@notice Pure functions of a job's terms and a unit's word. Prices and bonds round up, fees and payouts down.
@dev Mirrors hearth/protocol/formulas.py bit for bit. SPEC sections "Money" and "Lives". Each function takes the words of the
     terms that it reads, since passing the whole struct copies it.
"""

from interfaces import IJobRegistry
from interfaces import INodeRegistry

import packing

BPS: constant(uint256) = 10000
RATE_SCALE: constant(uint256) = 10**6
BUCKET: constant(uint256) = 500000  # scores this close share by lot


@pure
@internal
def _unit_price(money: uint256, limits: uint256) -> uint256:
    """
    @return The most that a unit can pay, rounding up.
    """
    return (
        (money & packing.MONEY_CEILING_MASK) * (limits & packing.LIMITS_MAX_SECONDS_MASK) + RATE_SCALE - 1
    ) // RATE_SCALE


@pure
@internal
def _budget(price: uint256, money: uint256, limits: uint256) -> uint256:
    """
    @param price The unit's, from `_unit_price`, so that a caller that needs it again computes it once.
    @return What a fresh lease holds: its price and every keeper fee it may need.
    """
    return price + ((limits >> packing.LIMITS_MAX_ATTEMPTS_SHIFT) & packing.LIMITS_MAX_ATTEMPTS_MASK) * (
        (money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK
    )


@pure
@internal
def _holds(price: uint256, money: uint256, limits: uint256, word: uint256) -> uint256:
    """
    @return What a unit that has not ended holds: its budget less the tips already paid.
    """
    tip: uint256 = ((money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK) // 2
    return self._budget(price, money, limits) - ((word >> packing.UNIT_TIPS_SHIFT) & packing.UNIT_TIPS_MASK) * tip


@pure
@internal
def _bond(price: uint256, money: uint256, policy: uint256) -> uint256:
    """
    @return The stake that a lease reserves, rounding up. No court exists, so no jury has to be covered.
    """
    share: uint256 = (policy >> packing.POLICY_BOND_NONE_BPS_SHIFT) & packing.POLICY_BOND_NONE_BPS_MASK
    return max(
        (share * price + BPS - 1) // BPS,
        8 * ((money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK),
    )


@pure
@internal
def _ask(terms: IJobRegistry.Terms) -> INodeRegistry.Ask:
    """
    @return What the matching gates compare a node with.
    """
    price: uint256 = self._unit_price(terms.money, terms.limits)
    probation: uint256 = 0
    if terms.limits & packing.LIMITS_NEWCOMERS == 0:
        probation = 1
        code: uint256 = (terms.policy >> packing.POLICY_PROBATION_PRICE_SHIFT) & packing.POLICY_PROBATION_PRICE_MASK
        if price > self._amount(code):
            probation = 2
    return INodeRegistry.Ask(
        needs=terms.needs,
        ceiling=terms.money & packing.MONEY_CEILING_MASK,
        bond=self._bond(price, terms.money, terms.policy),
        probation=probation,
    )


@pure
@internal
def _pay(price: uint256, word: uint256, billed: uint256) -> uint256:
    """
    @param billed Seconds.
    @return The unit's pay before the fee, rounding down, at most its price.
    """
    return min(price, ((word >> packing.UNIT_RATE_SHIFT) & packing.UNIT_RATE_MASK) * billed // RATE_SCALE)


@pure
@internal
def _fee(pay: uint256, policy: uint256) -> uint256:
    return pay * ((policy >> packing.POLICY_FEE_BPS_SHIFT) & packing.POLICY_FEE_BPS_MASK) // BPS


@pure
@internal
def _ramp(base: uint256, overdue: uint256) -> uint256:
    """
    @return A keeper's pay, growing from 1x to 4x over 600 s since the action became valid, rounding down.
    """
    return base * (1000 + min(3000, 5 * overdue)) // 1000


@pure
@internal
def _amount(code: uint256) -> uint256:
    """
    @param code A coded amount (packing.AMOUNT_MANTISSA_SHIFT ..), its 15 bits alone.
    @return Base units.
    """
    return (code & packing.AMOUNT_MANTISSA_MASK) * 10**(code >> packing.AMOUNT_EXPONENT_SHIFT)


@pure
@internal
def _lease_time(limits: uint256, policy: uint256) -> uint256:
    """
    @return Seconds from a lease's start to its end: what may be billed, and grace.
    """
    seconds: uint256 = limits & packing.LIMITS_MAX_SECONDS_MASK
    return seconds + max((policy >> packing.POLICY_GRACE_FLOOR_SHIFT) & packing.POLICY_GRACE_FLOOR_MASK, seconds // 10)


@pure
@internal
def _key(job_id: bytes32, index: uint256, attempts: uint256, node: uint256, score: uint256) -> uint256:
    """
    @return A proposal's 48-bit key: the score's bucket, then the node's lot.
    """
    seed: bytes32 = keccak256(abi_encode(job_id, index, attempts))
    # lanes: the hash's lowest 40 bits
    lot: uint256 = convert(keccak256(abi_encode(seed, node)), uint256) & packing.KEY_LOT_MASK
    return ((score // BUCKET) << packing.KEY_BUCKET_SHIFT) | lot


@pure
@internal
def _has_lapsed(word: uint256, policy: uint256, now: uint256) -> bool:
    """
    @return Whether an OPEN unit's proposal was not acked in time.
    """
    mark: uint256 = (word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK
    return mark != 0 and now >= mark + ((policy >> packing.POLICY_ACK_TIME_SHIFT) & packing.POLICY_ACK_TIME_MASK)


@pure
@internal
def _drop(word: uint256, best: uint256) -> uint256:
    """
    @return An OPEN unit without its lapsed proposal, whose node becomes the excluded one.
    """
    node: uint256 = (best >> packing.BEST_NODE_SHIFT) & packing.BEST_NODE_MASK
    kept: uint256 = word & ~(packing.UNIT_NODE_LANE | packing.UNIT_RATE_LANE | packing.UNIT_MARK_LANE)
    return (kept | (node << packing.UNIT_NODE_SHIFT)) + (1 << packing.UNIT_LAPSES_SHIFT)
