"""What keeps a node from work, and the command that mends it, from what the chain says of it: pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hearth.protocol import formulas, words
from hearth.protocol.types import MAX_RATE, RATE_SCALE, ZERO_ADDRESS, Needs, Status, Terms
from hearth.protocol.units import (
    Asset,
    amount_at_least,
    format_amount,
    format_duration,
    rate_at_most,
    show_amount,
    show_rate,
)

if TYPE_CHECKING:
    from hearth.client.reports import Wait
    from hearth.market.network import NodeParameters
    from hearth.protocol.types import Node, Policy

START: Final = "hearth worker start"
HOUR: Final = 3_600
"""The lease by which a price is measured: how long a job may take, its submitter says."""


def waits_of(node: Node, now: int, parameters: NodeParameters, asset: Asset, *, start: str = START) -> list[Wait]:
    """Return all that keeps a node from leases, or from more than one, at chain second `now`; first what is worst.

    `start` is what makes it beat again, for whoever knows of its process. Mirrors `formulas.status` and the gates of
    the node's own state: a node can wait for more than one of these.
    """
    match formulas.status(node, now, parameters.dead_after, parameters.minimum_stake):
        case Status.EXITED:
            return [_wait("exited", "it has left the market", "hearth worker register")]
        case Status.EXITING:
            left = max(0, node.exit_at - now)
            text = f"it leaves the market, its stake is free in {format_duration(left)}"
            return [_wait("exiting", text, "hearth worker exit --finish after that; hearth worker exit --cancel")]
    waits: list[Wait] = []
    short = formulas.stake_short(node, parameters.minimum_stake)
    if short:
        least = parameters.minimum_stake
        text = f"stake {format_amount(short, asset)} short of half the minimum of {format_amount(least, asset)}"
        waits.append(_wait("stake", text, stake_command(short, least, asset)))
    if node.state.beat == 0:
        waits.append(_wait("beat", "it has not beaten yet", start))
    elif now >= node.state.beat + parameters.dead_after:
        waits.append(_wait("silent", f"it last beat {format_duration(now - node.state.beat)} ago", start))
    if now < node.state.quarantine:
        text = f"quarantined for {format_duration(node.state.quarantine - now)} more, after failures"
        waits.append(_wait("quarantine", text, "hearth worker earnings"))
    if not node.state.seasoned:
        text = (
            "on probation until it was paid about five times the probation price: what its leases reserve together is "
            "bounded, and a result is paid after a delay"
        )
        waits.append(_wait("probation", text, "hearth net params"))
    return waits


def bond_at(rate: int, seconds: int, policy: Policy) -> int:
    """Return the stake that a lease of one unit binds at least, in base units, at a rate for so long.

    A job may pay more than a node asks, and bind more: a bond goes by the job's own price.
    """
    from hearth.jobfile.plan import auto_keeper_fee

    terms = _alone(rate, seconds, policy)
    fee = auto_keeper_fee(formulas.unit_price(terms), policy)
    return formulas.base_bond(replace(terms, keeper_fee=fee))


def _alone(rate: int, seconds: int, policy: Policy) -> Terms:
    """Return the terms of a job of one unit at a rate for so long, as far as they have a price."""
    frozen = words.pack_policy(policy)
    return Terms(ZERO_ADDRESS, 0, bytes(32), Needs(), rate, seconds, deadline=0, keeper_fee=0, policy=frozen)


def dearest(stake: int, seconds: int, policy: Policy) -> int:
    """Return the highest rate at which so much stake covers a lease of so many seconds; 0 where it covers none."""
    return _most(MAX_RATE, lambda rate: bond_at(rate, seconds, policy) <= stake)


def longest(stake: int, rate: int, policy: Policy) -> int:
    """Return the most seconds of a lease that so much stake covers at a rate; 0 where it covers none."""
    return _most(formulas.MAX_SECONDS, lambda seconds: bond_at(rate, seconds, policy) <= stake)


def on_probation(ask: int, policy: Policy, asset: Asset) -> str | None:
    """Say up to which price a node on probation gets jobs, and for how long at its own; None for an hour and more.

    A job that welcomes newcomers has no such bound.
    """
    most = policy.probation_price

    def fits(seconds: int) -> bool:
        return formulas.unit_price(_alone(ask, seconds, policy)) <= most

    if not most or fits(HOUR):
        return None
    seconds = _most(HOUR, fits)
    there = f"{format_duration(seconds)} at that price" if seconds else "none at that price"
    return f"on probation it gets jobs of at most {show_amount(most, asset)}: {there}"


def _most(highest: int, holds: Callable[[int], bool]) -> int:
    """Return the highest whole number up to a limit that a test which fails from some number on lets pass; else 0."""
    low, high = 0, highest + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def covered(stake: int, ask: int, policy: Policy, asset: Asset) -> str:
    """Return what an hour at a node's ask binds, and up to which price and for how long so much stake covers it."""
    bond = amount_at_least(bond_at(ask, HOUR, policy), asset)
    highest, seconds = dearest(stake, HOUR, policy), longest(stake, ask, policy)
    rate = _price(highest, asset)
    most = f"at most {rate} for an hour" if rate else "no price for an hour"
    if seconds < HOUR:
        most += f", or {format_duration(seconds)} at that price" if seconds else ": no job at that price"
    there = show_amount(stake, asset)
    return f"a lease of an hour at {show_rate(ask, asset)} binds at least {bond} of stake, and {there} covers {most}"


def _price(rate: int, asset: Asset) -> str:
    """Return a price per hour of at most a rate; "" for one that is too small to be written so."""
    return rate_at_most(rate, asset) if rate * HOUR >= RATE_SCALE else ""


def mend_of(stake: int, ask: int, policy: Policy, asset: Asset, *, registered: bool) -> str:
    """Return the commands after which so much stake covers an hour at a price: more of it, or a lower price."""
    bond, highest = bond_at(ask, HOUR, policy), dearest(stake, HOUR, policy)
    more = (
        f'stake "{amount_at_least(bond - stake, asset)}"'
        if registered
        else f'register --stake "{amount_at_least(bond, asset)}"'
    )
    rate = _price(highest, asset)
    if not rate:
        return f"hearth worker {more}"
    lower = f'hearth worker price "{rate}"' if registered else f'offer.price = "{rate}" in worker.toml'
    return f"hearth worker {more}; or {lower}"


def short_of(stake: int, ask: int, policy: Policy, asset: Asset, *, registered: bool) -> str | None:
    """Return what an owner has to know of a price before it is sent; None where so much stake covers an hour at it."""
    if bond_at(ask, HOUR, policy) <= stake:
        return None
    mend = mend_of(stake, ask, policy, asset, registered=registered)
    return f"{covered(stake, ask, policy, asset)}; next: {mend}"


def stake_command(short: int, minimum: int, asset: Asset) -> str:
    """Return the command for a node that lacks so much, in base units: it then has the minimum, twice what it needs."""
    missing = minimum - formulas.active_stake(minimum) + short
    return f"hearth worker stake {format_amount(missing, asset, symbol=False)}"


def _wait(reason: str, text: str, command: str) -> Wait:
    return {"reason": reason, "text": text, "next": command}
