# pragma version 0.4.3
"""
@title ArithmeticMock: the modules' pure arithmetic, one function each, as it is
@author The Hearth authors
@license Apache-2.0
@notice Test only. tests/protocol compares each with hearth/protocol/formulas.py, and `ended` with parents.py.
"""

from interfaces import IJobRegistry
from interfaces import INodeRegistry

import leases
import reputation
import scoring


# ---- leases ----


@pure
@external
def unit_price(money: uint256, limits: uint256) -> uint256:
    return leases._unit_price(money, limits)


@pure
@external
def budget(money: uint256, limits: uint256) -> uint256:
    return leases._budget(leases._unit_price(money, limits), money, limits)


@pure
@external
def holds(money: uint256, limits: uint256, word: uint256) -> uint256:
    return leases._holds(leases._unit_price(money, limits), money, limits, word)


@pure
@external
def ended(word: uint256) -> uint256:
    return leases._ended(word)


@pure
@external
def bond(money: uint256, limits: uint256, policy: uint256) -> uint256:
    return leases._bond(leases._unit_price(money, limits), money, limits, policy)


@pure
@external
def ask(terms: IJobRegistry.Terms) -> INodeRegistry.Ask:
    return leases._ask(terms)


@pure
@external
def pay(money: uint256, limits: uint256, word: uint256, billed: uint256) -> uint256:
    return leases._pay(leases._unit_price(money, limits), word, billed)


@pure
@external
def fee(pay: uint256, policy: uint256) -> uint256:
    return leases._fee(pay, policy)


@pure
@external
def whole_fee(price: uint256, word: uint256, limits: uint256, policy: uint256) -> uint256:
    return leases._whole_fee(price, word, limits, policy)


@pure
@external
def ramp(base: uint256, overdue: uint256) -> uint256:
    return leases._ramp(base, overdue)


@pure
@external
def amount(code: uint256) -> uint256:
    return leases._amount(code)


@pure
@external
def lease_time(limits: uint256, policy: uint256) -> uint256:
    return leases._lease_time(limits, policy)


@pure
@external
def tip(money: uint256) -> uint256:
    return leases._tip(money)


@pure
@external
def slash(money: uint256, limits: uint256, policy: uint256) -> uint256:
    return leases._slash(leases._unit_price(money, limits), money, policy)


@pure
@external
def tip_to_burn(money: uint256, word: uint256) -> uint256:
    return leases._tip_to_burn(money, word)


@pure
@external
def settleable_from(limits: uint256, policy: uint256, word: uint256) -> uint256:
    return leases._settleable_from(limits, policy, word)


@pure
@external
def declinable_until(limits: uint256, policy: uint256, word: uint256) -> uint256:
    return leases._declinable_until(limits, policy, word)


@pure
@external
def key(job_id: bytes32, index: uint256, attempts: uint256, node: uint256, score: uint256) -> uint256:
    return leases._key(job_id, index, attempts, node, score)


@pure
@external
def has_lapsed(word: uint256, policy: uint256, now: uint256) -> bool:
    return leases._has_lapsed(word, policy, now)


@pure
@external
def drop(word: uint256, best: uint256) -> uint256:
    return leases._drop(word, best)


@pure
@external
def claims_from(word: uint256, limits: uint256, policy: uint256) -> uint256:
    return leases._claims_from(word, limits, policy)


@pure
@external
def claim_ceiling(money: uint256, policy: uint256, waited: uint256) -> uint256:
    return leases._claim_ceiling(money, policy, waited)


@pure
@external
def claim_wait(money: uint256, policy: uint256, rate: uint256) -> uint256:
    return leases._claim_wait(money, policy, rate)


# ---- reputation and scoring ----


@pure
@external
def decay(amount: uint256, steps: uint256) -> uint256:
    return reputation._decay(amount, steps)


@pure
@external
def observe(hot: uint256, ok: bool, weight: uint256, now: uint256) -> uint256:
    return reputation._observe(hot, ok, weight, now)


@pure
@external
def reputation_of(hot: uint256) -> uint256:
    return reputation._score(hot)


@pure
@external
def score(needs: uint256, ceiling: uint256, rate: uint256, offer: uint256, hot: uint256) -> uint256:
    return scoring._score(needs, ceiling, rate, offer, hot)
