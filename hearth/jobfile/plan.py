"""Derive the money and the times of a job's terms from its spec: pure, in integers.

Source: protocol.md "Terms" (ranges) and "Money" (billing, escrow at post).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hearth.base.errors import HearthError, SpecError
from hearth.jobfile import rules
from hearth.jobfile.model import JobSpec
from hearth.protocol.runtimes import RUNTIMES
from hearth.protocol.types import (
    MAX_PROOF_SECONDS,
    MAX_RATE,
    RATE_SCALE,
    ZERO_ADDRESS,
    Billing,
    Needs,
    Policy,
    Terms,
    TermsFlag,
)
from hearth.protocol.units import (
    Asset,
    amount_at_least,
    amount_at_most,
    format_amount,
    format_duration,
    parse_amount,
    parse_duration,
    parse_rate,
    rate_at_least,
    rate_at_most,
    show_amount,
    show_rate,
)

if TYPE_CHECKING:
    from hearth.protocol.parents import Parent

AUTO_KEEPER_SHARE = 100
"""An automatic keeper fee is the price divided by this, and never below the policy's minimum."""
DEFAULT_DEADLINE = 86_400
"""Seconds from now, where the spec names no deadline and its attempts do not need longer."""
MAX_ESCROW = (1 << 96) - 1
LAST_YEAR = "the chain holds times up to the year 36,812"


@dataclass(frozen=True, slots=True)
class Prices:
    """What a job may cost, in base units; `ceiling` in base units x 1e6 per second and unit.

    `unit_price` is the most that one unit pays; `total` is what escrow takes: units x (price + attempts x fee), and
    one fee more for whoever starts a job that waits for others.
    """

    ceiling: int
    keeper_fee: int
    unit_price: int
    total: int


def auto_keeper_fee(price: int, policy: Policy) -> int:
    """Return the keeper fee that is set aside for each attempt of a unit at this price, where nobody names one."""
    return max(policy.min_keeper_fee, price // AUTO_KEEPER_SHARE)


def plan_prices(spec: JobSpec, asset: Asset, policy: Policy) -> Prices:
    """Return the highest ceiling that `price.max_total` and `price.max_rate` allow, and the keeper fee.

    max_total bounds units x (price + attempts x keeper fee), with one keeper fee more where the job waits for others;
    max_rate bounds the rate of a unit; with both, the smaller price holds. An automatic keeper fee is 1 % of the price,
    at least the policy's minimum: it pays two tips' worth of matching and the settlement, and what no keeper earned
    returns. Everything rounds towards paying less.

    Raises SpecError PRICE_TOO_SMALL with the smallest figure that works, BAD_PRICE for a fee or a sum out of range.
    """
    units, attempts, seconds = spec.array.units, spec.retry.attempts, spec.max_seconds
    fee = None if spec.price.keeper_fee == "auto" else _amount(spec.price.keeper_fee, asset, "price.keeper_fee")
    if fee is not None and fee < policy.min_keeper_fee:
        smallest = format_amount(policy.min_keeper_fee, asset)
        raise _refuse(
            "price.keeper_fee", f"{spec.price.keeper_fee} is below this market's {smallest}", f'use "{smallest}"'
        )

    def fee_at(price: int) -> int:
        return fee if fee is not None else auto_keeper_fee(price, policy)

    def job_cost(price: int) -> int:
        return units * (price + attempts * fee_at(price)) + (fee_at(price) if spec.after else 0)

    # The chain takes a fee above its minimum only up to the price, and no price below the policy's.
    floor = policy.min_price if fee is None or fee <= policy.min_keeper_fee else max(policy.min_price, fee)
    least = _least_ceiling(floor, seconds)
    smallest = amount_at_least(job_cost(_price(least, seconds)), asset)
    work, fee_each = _price(least, seconds), fee_at(_price(least, seconds))
    fees = ""
    if attempts * fee_each > work:
        count = f"{attempts} keeper fees" if attempts > 1 else "a keeper fee"
        fees = f", since each unit pays {count} of {format_amount(fee_each, asset)} at most beside its work"
    ceilings = []
    if spec.price.max_total is not None:
        affordable = _largest_price(_amount(spec.price.max_total, asset, "price.max_total"), job_cost)
        if affordable < work:
            what = f"{units} unit(s) of {spec.limits.runtime}"
            raise _too_small("max_total", spec.price.max_total, what, smallest, fees)
        ceilings.append(affordable * RATE_SCALE // seconds)
    if spec.price.max_rate is not None:
        rate = _rate(spec.price.max_rate, asset)
        if rate < least:
            hourly = rate_at_least(least, asset)
            raise _too_small("max_rate", spec.price.max_rate, f"units of {spec.limits.runtime}", hourly)
        ceilings.append(rate)
    if not ceilings:
        raise _refuse(
            "price",
            "neither max_total nor max_rate is given: a job needs a price",
            f'add price: {{max_total: "..."}}; the smallest that the contract takes is {smallest}{fees}',
            "NO_PRICE",
        )
    ceiling = min(ceilings)
    price = _price(ceiling, seconds)
    prices = Prices(ceiling, fee_at(price), price, job_cost(price))
    _check_most(prices, asset, spec.limits.runtime, job_cost(_price(MAX_RATE, seconds)))
    return prices


def _check_most(prices: Prices, asset: Asset, runtime: str, at_most: int) -> None:
    """Refuse what the chain has no room for.

    `runtime` is as the file has it; `at_most` is what the job would cost at the highest rate that the chain takes.
    """
    if prices.ceiling > MAX_RATE:
        most, in_all = rate_at_most(MAX_RATE, asset), min(MAX_ESCROW, at_most)
        raise _refuse(
            "price",
            f"{show_rate(prices.ceiling, asset)} for a unit of {runtime} is above the most that a job may pay: {most}",
            f'write max_total: "{amount_at_most(in_all, asset)}" or max_rate: "{most}" at most',
        )
    if prices.keeper_fee > MAX_RATE:
        most = amount_at_most(MAX_RATE, asset)
        raise _refuse(
            "price.keeper_fee",
            f"{show_amount(prices.keeper_fee, asset)} is above the most that a job may pay a keeper: {most}",
            f'write keeper_fee: "{most}" at most',
        )
    if prices.total > MAX_ESCROW:
        most = amount_at_most(MAX_ESCROW, asset)
        raise _refuse(
            "price",
            f"{show_amount(prices.total, asset)} in all is above the most that can be locked for a job: {most}",
            f'write max_total: "{most}" at most, or split the array',
        )


def billing_of(spec: JobSpec) -> Billing:
    """Return how seconds are counted; auto is fuel where it is counted and no checkpoint is kept, else metered.

    Source: docs/decisions/0004-bill-containers-by-time.md.
    """
    if spec.price.billing != "auto":
        return Billing[spec.price.billing.upper()]
    if spec.checkpoint is not None:
        return Billing.METERED
    return Billing.FUEL if RUNTIMES[spec.kind].meters_fuel else Billing.METERED


def lease_seconds(spec: JobSpec, policy: Policy) -> int:
    """Return the seconds from a unit's start to the end of its lease: max_seconds and grace."""
    return (spec.max_seconds + max(policy.grace_floor, spec.max_seconds // 10)) * spec.array.chunk


def deadline_of(spec: JobSpec, policy: Policy, now: int) -> int:
    """Return the job's deadline in chain seconds; `now` is the block's time.

    Without one in the spec: a day from now, or twice what every attempt in a row would take, if that is longer.
    Raises SpecError BAD_DEADLINE where not even one attempt fits.
    """
    lease = lease_seconds(spec, policy)
    text = spec.limits.deadline
    if text is None:
        return now + max(DEFAULT_DEADLINE, 2 * spec.retry.attempts * lease)
    given = rules.deadline(text)
    if isinstance(given, int):
        moment = now + given
    elif isinstance(given, datetime):
        moment = (given - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    else:
        raise _refuse("limits.deadline", f'"{text}" is neither a duration nor a time', 'write "6h"', "BAD_DEADLINE")
    if moment < now + lease:
        left = f"leaves {moment - now} s" if moment > now else "is over"
        raise _refuse(
            "limits.deadline",
            f"{text} {left}, and one attempt takes {lease} s with its grace",
            "raise limits.deadline or lower limits.runtime",
            "BAD_DEADLINE",
        )
    if moment >= 1 << 40:
        raise _refuse("limits.deadline", f"{text} is too far away: {LAST_YEAR}", 'write "6h"', "BAD_DEADLINE")
    return moment


def _in_proof_time(spec: JobSpec, deadline: int, now: int) -> int:
    """Return a deadline until which a bond may wait for attesters. Raises SpecError BAD_DEADLINE."""
    if spec.verify.kind == "none" or deadline <= now + MAX_PROOF_SECONDS:
        return deadline
    most = format_duration(MAX_PROOF_SECONDS)
    raise _refuse(
        "limits.deadline",
        f"{spec.limits.deadline or 'the default'} is more than {most} away, as long as a bond waits for attesters",
        f'write "{most}" at most',
        "BAD_DEADLINE",
    )


def match_window_of(spec: JobSpec, policy: Policy) -> int:
    """Return the seconds in which proposals compete; 0 is open claim; by default the policy's minimum."""
    if spec.match.window is None:
        return policy.min_match_window
    window = parse_duration(spec.match.window)
    if window and window < policy.min_match_window:
        raise _refuse(
            "match.window",
            f"{spec.match.window} is below this market's {policy.min_match_window}s",
            f"use {policy.min_match_window}s, or 0s for first come",
            "BAD_WINDOW",
        )
    return window


def challenge_window_of(spec: JobSpec, policy: Policy) -> int:
    """Return the seconds from submit in which a judge may act; by default the policy's minimum, 0 without a judge."""
    if spec.verify.kind == "none":
        return 0
    if spec.verify.window is None:
        return policy.min_challenge_window
    window = parse_duration(spec.verify.window)
    if window < policy.min_challenge_window:
        raise _refuse(
            "verify.window",
            f"{spec.verify.window} is below this market's {format_duration(policy.min_challenge_window)}",
            f"use {format_duration(policy.min_challenge_window)}",
            "BAD_WINDOW",
        )
    return window


def checkpoint_every_of(spec: JobSpec, policy: Policy) -> int:
    """Return the seconds between two checkpoints of a unit, 0 where none are made. Raises SpecError."""
    if spec.checkpoint is None:
        return 0
    every = parse_duration(spec.checkpoint.every)
    if every < policy.min_checkpoint:
        least = format_duration(policy.min_checkpoint)
        raise _refuse(
            "checkpoint.every", f"{spec.checkpoint.every} is below this market's {least}", f"use {least}", "BAD_SPEC"
        )
    return every


def parents_of(spec: JobSpec) -> tuple[Parent, ...]:
    """Return the jobs that a spec waits for, in its order."""
    from hearth.protocol.parents import Condition, Parent
    from hearth.protocol.types import JobId

    return tuple(
        Parent(JobId(bytes.fromhex(after.job[2:])), Condition[after.condition.upper()]) for after in spec.after
    )


def terms_of(
    spec: JobSpec,
    *,
    submitter: str,
    salt: int,
    digest: bytes,
    needs: Needs,
    prices: Prices,
    policy: Policy,
    policy_word: int,
    now: int,
    judge: str = ZERO_ADDRESS,
    judge_data: int = 0,
) -> Terms:
    """Return the terms of a job: `digest` names its canonical spec, `policy_word` is the registry's `policy` packed.

    `judge` is the contract of the attesters that the spec names, `judge_data` their set's commitment; then no result is
    paid for without them.
    """
    from hearth.protocol.parents import pack_parents, parents_hash

    flags = TermsFlag.NEWCOMERS if spec.match.newcomers else TermsFlag(0)
    if spec.verify.keep:
        flags |= TermsFlag.KEEP
    return Terms(
        submitter=submitter,
        salt=salt,
        spec=digest,
        needs=needs,
        ceiling=prices.ceiling,
        max_seconds=spec.max_seconds,
        deadline=_in_proof_time(spec, deadline_of(spec, policy, now), now),
        keeper_fee=prices.keeper_fee,
        policy=policy_word,
        units=spec.array.units,
        match_window=match_window_of(spec, policy),
        challenge_window=challenge_window_of(spec, policy),
        checkpoint_every=checkpoint_every_of(spec, policy),
        max_attempts=spec.retry.attempts,
        billing=billing_of(spec),
        flags=flags | TermsFlag.PROVEN if judge_data else flags,
        judge=judge,
        judge_data=judge_data,
        parents_hash=parents_hash(pack_parents(parents_of(spec))),
    )


def _price(ceiling: int, seconds: int) -> int:
    return -(-ceiling * seconds // RATE_SCALE)


def _least_ceiling(floor: int, seconds: int) -> int:
    """Return the smallest ceiling, at least 1, whose price reaches `floor`."""
    return max(1, (max(floor, 1) - 1) * RATE_SCALE // seconds + 1)


def _largest_price(budget: int, cost: Callable[[int], int]) -> int:
    """Return the largest price whose cost fits the budget, or -1; `cost` never falls as the price rises."""
    low, high = -1, budget
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(middle) <= budget else (low, middle - 1)
    return low


def _too_small(name: str, given: str, what: str, smallest: str, why: str = "") -> SpecError:
    return _refuse(
        f"price.{name}",
        f"{given} is too small for {what}",
        f'the smallest that the contract takes is "{smallest}"{why}',
        "PRICE_TOO_SMALL",
    )


def _amount(text: str, asset: Asset, field: str) -> int:
    try:
        return parse_amount(text, asset)
    except HearthError as error:
        raise _refuse(field, error.message, error.hint, error.code) from error


def _rate(text: str, asset: Asset) -> int:
    try:
        return parse_rate(text, asset)
    except HearthError as error:
        raise _refuse("price.max_rate", error.message, error.hint, error.code) from error


def _refuse(field: str, message: str, hint: str, code: str = "BAD_PRICE") -> SpecError:
    return SpecError(f"{field}: {message}", hint=hint, code=code, field=field)
