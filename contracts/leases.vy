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
MAX_LAPSES: constant(uint256) = 2
SLASH_DIVISOR: constant(uint256) = 10
# How a job has ended, as the bit of a parent's condition that asks for it.
WELL: constant(uint256) = 1
OTHERWISE: constant(uint256) = 2
# A checkpoint earns eight tenths of its time, once a later attempt has made a result of it.
CHECKPOINT_SHARE: constant(uint256) = 8
CHECKPOINT_WHOLE: constant(uint256) = 10
STALE_TIME: constant(uint256) = 30 * 86400  # seconds past its window after which a dispute holds nothing any more


# What a lost lease costs its node, in base units.
struct Losses:
    bond: uint256  # of the lease
    slash: uint256  # taken from the stake
    fee: uint256  # that the failure weighs by


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
def _topped(limits: uint256, word: uint256) -> uint256:
    """
    @param word Of a unit that has not been submitted, or whose seconds are not fuel.
    @return The terms' limits, with the seconds that the unit was topped up by in max_seconds: its lowest lane. Post and
            top_up hold the sum to 30 days.
    """
    if word & packing.UNIT_FUEL != 0:
        return limits
    return limits + ((word >> packing.UNIT_SECONDS_SHIFT) & packing.UNIT_SECONDS_MASK)


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
    @param price The unit's, with what it was topped up by.
    @return What a unit that has not ended holds: its budget less the tips already paid, and while it is BLOCKED the
            fee of its unlock.
    """
    tips: uint256 = (word >> packing.UNIT_TIPS_SHIFT) & packing.UNIT_TIPS_MASK
    held: uint256 = self._budget(price, money, limits) - tips * self._tip(money)
    if word & packing.UNIT_STATE_MASK == packing.STATE_BLOCKED:
        held += (money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK
    return held


@pure
@internal
def _tip(money: uint256) -> uint256:
    """
    @return What a proposer gets when its proposal is acked.
    """
    return ((money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK) // 2


@pure
@internal
def _bond(price: uint256, money: uint256, limits: uint256, policy: uint256) -> uint256:
    """
    @return The stake that a lease reserves, rounding up: what a judge may take.
    """
    share: uint256 = (limits >> packing.LIMITS_BOND_BPS_SHIFT) & packing.LIMITS_BOND_BPS_MASK
    return max((share * price + BPS - 1) // BPS, self._base_bond(price, money, policy))


@pure
@internal
def _slash(price: uint256, money: uint256, policy: uint256) -> uint256:
    """
    @return What a lost lease takes from the stake. It goes by the base bond: a crash must not cost what fraud costs.
    """
    return self._base_bond(price, money, policy) // SLASH_DIVISOR


@pure
@internal
def _unit_holds(money: uint256, limits: uint256, word: uint256) -> uint256:
    """
    @return What a unit that has not ended holds, with what it was topped up by.
    """
    topped: uint256 = self._topped(limits, word)
    return self._holds(self._unit_price(money, topped), money, topped, word)


@pure
@internal
def _lease_bond(money: uint256, limits: uint256, policy: uint256) -> uint256:
    """
    @return The stake that a lease of these terms reserves, however it is topped up.
    """
    return self._bond(self._unit_price(money, limits), money, limits, policy)


@pure
@internal
def _losses(money: uint256, limits: uint256, policy: uint256, word: uint256) -> Losses:
    price: uint256 = self._unit_price(money, limits)
    return Losses(
        bond=self._bond(price, money, limits, policy),
        slash=self._slash(price, money, policy),
        # As posted: a submitter who tops up a lease that fails could else make the failure heavier.
        fee=self._whole_fee(price, word, limits, policy),
    )


@pure
@internal
def _base_bond(price: uint256, money: uint256, policy: uint256) -> uint256:
    """
    @return The least bond of a lease, rounding up.
    """
    return max(
        self._price_bond(price, policy),
        8 * ((money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK),
    )


@pure
@internal
def _price_bond(price: uint256, policy: uint256) -> uint256:
    """
    @return The part of a base bond that goes by the price, rounding up.
    """
    share: uint256 = (policy >> packing.POLICY_MIN_BOND_BPS_SHIFT) & packing.POLICY_MIN_BOND_BPS_MASK
    return (share * price + BPS - 1) // BPS


@pure
@internal
def _ask(terms: IJobRegistry.Terms) -> INodeRegistry.Ask:
    """
    @return What the matching gates compare a node with.
    """
    price: uint256 = self._unit_price(terms.money, terms.limits)
    probation: uint256 = max_value(uint256)
    if terms.limits & packing.LIMITS_NEWCOMERS == 0:
        code: uint256 = (terms.policy >> packing.POLICY_PROBATION_PRICE_SHIFT) & packing.POLICY_PROBATION_PRICE_MASK
        most: uint256 = self._amount(code)
        if price <= most:
            probation = self._price_bond(most, terms.policy)
        elif most != 0:
            probation = 0
    return INodeRegistry.Ask(
        needs=terms.needs,
        ceiling=terms.money & packing.MONEY_CEILING_MASK,
        bond=self._bond(price, terms.money, terms.limits, terms.policy),
        probation=probation,
    )


@pure
@internal
def _first_word(header: uint256) -> uint256:
    """
    @return The word of an array's unit that is touched first: OPEN since the array opened.
    """
    opened: uint256 = (header >> packing.HEADER_OPENED_SHIFT) & packing.HEADER_OPENED_MASK
    return packing.STATE_OPEN | (opened << packing.UNIT_STARTED_SHIFT) | packing.UNIT_ARRAY


@pure
@internal
def _next_ask(terms: IJobRegistry.Terms, header: uint256, now: uint256) -> INodeRegistry.Ask:
    """
    @param header The array's; zero for a one-lease job, which has no next unit.
    @return What a claim of the array's first untouched unit asks of a node, with a ceiling of zero where it cannot be
            claimed now.
    """
    opens: uint256 = self._claims_from(self._first_word(header), terms.limits, terms.policy)
    ask: INodeRegistry.Ask = self._ask(terms)
    ask.ceiling = 0
    if (
        header & packing.HEADER_CLOSED == 0
        and (header >> packing.HEADER_TOUCHED_SHIFT) & packing.HEADER_TOUCHED_MASK
        < (header >> packing.HEADER_LEASES_SHIFT) & packing.HEADER_LEASES_MASK
        and now >= opens
        and self._has_time(terms.limits, terms.policy, now)
    ):
        ask.ceiling = self._claim_ceiling(terms.money, terms.policy, now - opens)
    return ask


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
def _reserved(kept: uint256) -> uint256:
    """
    @return The seconds that a kept checkpoint, and those that it was made of, are paid for first; zero for none.
    """
    before: uint256 = (kept >> packing.KEPT_BEFORE_SHIFT) & packing.KEPT_BEFORE_MASK
    return before + (kept & packing.KEPT_SECONDS_MASK)


@pure
@internal
def _checkpoint_pay(rate: uint256, seconds: uint256) -> uint256:
    """
    @return What a kept checkpoint earns before the fee, rounding down.
    """
    return rate * seconds * CHECKPOINT_SHARE // CHECKPOINT_WHOLE // RATE_SCALE


@pure
@internal
def _fee(pay: uint256, policy: uint256) -> uint256:
    return pay * ((policy >> packing.POLICY_FEE_BPS_SHIFT) & packing.POLICY_FEE_BPS_MASK) // BPS


@pure
@internal
def _whole_fee(price: uint256, word: uint256, limits: uint256, policy: uint256) -> uint256:
    """
    @return The fee of a lease of which every second is billed: what its failure weighs by.
    """
    return self._fee(self._pay(price, word, limits & packing.LIMITS_MAX_SECONDS_MASK), policy)


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
def _tip_to_burn(money: uint256, word: uint256) -> uint256:
    """
    @return What a lost lease burns at least, where a match began it: what its proposer was paid.
    """
    if word & packing.UNIT_ACKED == 0:
        return 0
    return self._tip(money)


@pure
@internal
def _has_time(limits: uint256, policy: uint256, now: uint256) -> bool:
    """
    @return Whether an attempt that starts now can end before the deadline.
    """
    return (
        now + self._lease_time(limits, policy)
        <= (limits >> packing.LIMITS_DEADLINE_SHIFT) & packing.LIMITS_DEADLINE_MASK
    )


@pure
@internal
def _challenge_end(limits: uint256, word: uint256) -> uint256:
    """
    @return The second from which a SUBMITTED unit cannot be disputed any more: its submit, where no judge is named.
    """
    return ((word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK) + (
        (limits >> packing.LIMITS_CHALLENGE_WINDOW_SHIFT) & packing.LIMITS_CHALLENGE_WINDOW_MASK
    )


@pure
@internal
def _settleable_from(limits: uint256, policy: uint256, word: uint256) -> uint256:
    """
    @return The first second at which anyone may settle a SUBMITTED or DISPUTED unit, the submitter aside. A newcomer's
            result can be looked at first; what has to be proven has time for it until the deadline; and a judge that
            does not rule holds nothing for ever.
    """
    opens: uint256 = self._challenge_end(limits, word)
    if word & packing.UNIT_STATE_MASK == packing.STATE_DISPUTED:
        opens += STALE_TIME
    if limits & packing.LIMITS_PROVEN != 0:
        deadline: uint256 = (limits >> packing.LIMITS_DEADLINE_SHIFT) & packing.LIMITS_DEADLINE_MASK
        window: uint256 = (limits >> packing.LIMITS_CHALLENGE_WINDOW_SHIFT) & packing.LIMITS_CHALLENGE_WINDOW_MASK
        return max(opens, deadline + window)
    if word & packing.UNIT_FRESH != 0:
        return max(opens, self._fresh_until(policy, word))
    return opens


@pure
@internal
def _fresh_until(policy: uint256, word: uint256) -> uint256:
    """
    @return The first second at which the result of a node that was on probation counts for its record.
    """
    return ((word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK) + (
        (policy >> packing.POLICY_FRESH_DELAY_SHIFT) & packing.POLICY_FRESH_DELAY_MASK
    )


@pure
@internal
def _declinable_until(limits: uint256, policy: uint256, word: uint256) -> uint256:
    """
    @return The second from which a lease cannot be declined any more: what cannot be used was found by then.
    """
    least: uint256 = (policy >> packing.POLICY_FETCH_FLOOR_SHIFT) & packing.POLICY_FETCH_FLOOR_MASK
    started: uint256 = (word >> packing.UNIT_STARTED_SHIFT) & packing.UNIT_STARTED_MASK
    return started + max(least, min((limits & packing.LIMITS_MAX_SECONDS_MASK) // 4, 3600))


@pure
@internal
def _ranked(limits: uint256, index: uint256, score: uint256) -> uint256:
    """
    @return The score that a proposal's key is made of: replicas but the first go by lot alone, so that nobody can fill
            them all by being cheap.
    """
    if index != 0 and (limits >> packing.LIMITS_REPLICAS_SHIFT) & packing.LIMITS_REPLICAS_MASK != 1:
        return 0
    return score


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


@pure
@internal
def _claims_from(word: uint256, limits: uint256, policy: uint256) -> uint256:
    """
    @param word Of an OPEN unit as stored: where a lapse is applied, its proposal's mark is lost.
    @return The first second since its last proposal at which the unit takes claims; their price rises from it on.
    """
    started: uint256 = (word >> packing.UNIT_STARTED_SHIFT) & packing.UNIT_STARTED_MASK
    if (limits >> packing.LIMITS_MATCH_WINDOW_SHIFT) & packing.LIMITS_MATCH_WINDOW_MASK == 0:
        return started
    opens: uint256 = started + (
        (policy >> packing.POLICY_OPEN_CLAIM_AFTER_SHIFT) & packing.POLICY_OPEN_CLAIM_AFTER_MASK
    )
    mark: uint256 = (word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK
    if mark == 0:
        return opens
    lapsed: uint256 = mark + ((policy >> packing.POLICY_ACK_TIME_SHIFT) & packing.POLICY_ACK_TIME_MASK)
    if ((word >> packing.UNIT_LAPSES_SHIFT) & packing.UNIT_LAPSES_MASK) + 1 >= MAX_LAPSES:
        return lapsed
    # While a proposal was live, nobody could claim: that time raises no price.
    return max(opens, lapsed)


@pure
@internal
def _claim_ceiling(money: uint256, policy: uint256, waited: uint256) -> uint256:
    """
    @param waited Seconds since `_claims_from`.
    @return The highest ask that a claim may lock: a quarter of the ceiling at first, all of it after `claim_ramp`,
            rounding down.
    """
    ramp: uint256 = (policy >> packing.POLICY_CLAIM_RAMP_SHIFT) & packing.POLICY_CLAIM_RAMP_MASK
    return (money & packing.MONEY_CEILING_MASK) * (ramp + 3 * min(ramp, waited)) // (4 * ramp)


@pure
@internal
def _claim_wait(money: uint256, policy: uint256, rate: uint256) -> uint256:
    """
    @param rate At most the ceiling.
    @return The fewest seconds after which `_claim_ceiling` reaches a rate.
    """
    ramp: uint256 = (policy >> packing.POLICY_CLAIM_RAMP_SHIFT) & packing.POLICY_CLAIM_RAMP_MASK
    ceiling: uint256 = money & packing.MONEY_CEILING_MASK
    parts: uint256 = (4 * ramp * rate + ceiling - 1) // ceiling  # of the ramp + 3 * waited that it takes
    if parts <= ramp:
        return 0
    return (parts - ramp + 2) // 3


@pure
@internal
def _ended(word: uint256) -> uint256:
    """
    @param word A job's own word. The word of an array's unit is no job's, nor is 0: they never end.
    @return 0 not yet, WELL every unit settled with outcome ok, or of replicas a quorum, OTHERWISE.
    """
    state: uint256 = word & packing.UNIT_STATE_MASK
    if state == packing.STATE_HEADER:
        done: uint256 = (word >> packing.HEADER_DONE_SHIFT) & packing.HEADER_DONE_MASK
        wanted: uint256 = (word >> packing.HEADER_LEASES_SHIFT) & packing.HEADER_LEASES_MASK
        whole: uint256 = wanted
        if word & packing.HEADER_CLOSED != 0:
            whole = (word >> packing.HEADER_TOUCHED_SHIFT) & packing.HEADER_TOUCHED_MASK
        if done + ((word >> packing.HEADER_FAILED_SHIFT) & packing.HEADER_FAILED_MASK) != whole:
            return 0
        quorum: uint256 = (word >> packing.HEADER_QUORUM_SHIFT) & packing.HEADER_QUORUM_MASK
        if quorum != 0:
            wanted = quorum
        if done >= wanted:
            return WELL
        return OTHERWISE
    if state < packing.STATE_SETTLED or word & packing.UNIT_ARRAY != 0:
        return 0
    if (
        state == packing.STATE_SETTLED
        and (word >> packing.UNIT_OUTCOME_SHIFT) & packing.UNIT_OUTCOME_MASK == packing.OUTCOME_OK
    ):
        return WELL
    return OTHERWISE
