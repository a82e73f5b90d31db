"""Print the smallest job that a keeper touches at given fees, by the keeper's own rule for what is worth its gas.

    python -m bench.smallest_job --gwei 0.01 --per-ether 2500

Cells are the smallest keeper fees, and below them the least prices of a job that has one of which all its work pays.

For a market in the native coin (18 decimals) and for one in an ERC-20 (6 unless told), each with the public profile's
amounts by what its asset is worth. A keeper acts where its reward covers the gas (keeper/config.py `is_worth`) that
hearth/protocol/gas.py reckons for the dearest kind of unit; rewards follow from the job's keeper fee
(hearth/protocol/formulas.py). `--write` puts the table for four gas prices into docs/KEEPER.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import click

from bench.sections import write_part
from hearth.base.errors import ConfigError
from hearth.jobfile.plan import AUTO_KEEPER_SHARE
from hearth.market.profiles import PUBLIC
from hearth.protocol import formulas, gas, words
from hearth.protocol.types import BPS, RATE_SCALE, ZERO_ADDRESS, Needs, Policy, Terms
from hearth.protocol.units import Asset, show_amount
from keeper.config import Config

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "KEEPER.md"
GWEI: Final = 10**9
PAGE_GWEI: Final = ("0.001", "0.01", "0.1", "1")
PER_ETHER: Final = "2500"
RAMPED: Final = 600
"""Seconds after which the pay for overdue work grows no more."""
SECONDS: Final = 600
MOST_FEE: Final = ((1 << 80) - 1) * SECONDS // RATE_SCALE
"""The price of a job of so many seconds with the highest ceiling: no keeper fee of it may be above."""
BATCH: Final = 64


@dataclass(frozen=True)
class Market:
    """One market at one gas price: its asset, its policy, and a keeper that allows no loss.

    `gas_price` is in wei of the native coin.
    """

    asset: Asset
    policy: Policy
    config: Config
    gas_price: int

    def terms(self, fee: int) -> Terms:
        """Return the smallest job with this keeper fee: one unit, of the least price that goes with it."""
        price = max(self.policy.min_price, fee)
        return Terms(
            submitter=ZERO_ADDRESS,
            salt=0,
            spec=bytes(32),
            needs=Needs(),
            ceiling=price * RATE_SCALE // SECONDS,
            max_seconds=SECONDS,
            deadline=0,
            keeper_fee=fee,
            policy=words.pack_policy(self.policy),
        )


Reward = Callable[[Market, Terms], int]


@dataclass(frozen=True)
class Work:
    """Something that a keeper is paid for: what it earns of each of so many jobs, and what gas all of it uses."""

    name: str
    reward: Reward
    gas: int
    needed: bool = False
    """Whether a job without parents may need it."""
    jobs: int = 1


def _tip(market: Market, terms: Terms) -> int:
    return formulas.tip(terms) * market.config.ack_bps // BPS


def _settled(overdue: int) -> Reward:
    return lambda market, terms: formulas.settle_reward(terms, overdue)


def _reclaimed(overdue: int) -> Reward:
    return lambda market, terms: formulas.reclaim_reward(terms, formulas.slash_of(terms), overdue)


def _expired(overdue: int) -> Reward:
    return lambda market, terms: formulas.expire_reward(terms, None, overdue)


def works() -> Sequence[Work]:
    """Return what keepers do, as docs/KEEPER.md names it."""
    return (
        Work("propose a node", _tip, gas.PROPOSE_GAS, needed=True),
        Work("settle, alone, at once", _settled(0), gas.SETTLE_GAS),
        Work("settle, alone, after ten minutes", _settled(RAMPED), gas.SETTLE_GAS, needed=True),
        Work(f"settle, {BATCH} in a batch, after ten minutes", _settled(RAMPED), gas.settling_gas(BATCH), jobs=BATCH),
        Work("reclaim, at once", _reclaimed(0), gas.RECLAIM_GAS),
        Work("reclaim, after ten minutes", _reclaimed(RAMPED), gas.RECLAIM_GAS, needed=True),
        Work("close, after ten minutes", _settled(RAMPED), gas.CLOSE_GAS, needed=True),
        Work("expire, after ten minutes", _expired(RAMPED), gas.EXPIRE_GAS, needed=True),
        Work("unlock, one parent", lambda market, terms: formulas.unlock_fee(terms), gas.unlocking_gas(1)),
    )


def smallest_fee(market: Market, work: Work) -> int | None:
    """Return the smallest keeper fee of which the work is worth its gas, in base units; None where no fee is."""

    def pays(fee: int) -> bool:
        return market.config.is_worth(work.jobs * work.reward(market, market.terms(fee)), work.gas, market.gas_price)

    low, high = market.policy.min_keeper_fee, MOST_FEE
    if not pays(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if pays(middle) else (middle + 1, high)
    return low


def market_of(asset: Asset, gwei: Fraction, *, per_ether: Fraction, coins: Fraction) -> Market:
    """Return a market whose asset is worth `per_ether` to an ether, on a chain with `coins` native coins to an ether.

    Raises ConfigError UNFIT_AMOUNTS as `Profile.for_asset` does.
    """
    policy = PUBLIC.for_asset(asset, per_ether).policy
    coin_price = int(per_ether * 10**asset.decimals / coins)
    config = Config(keeper=ZERO_ADDRESS, payee=ZERO_ADDRESS, coin_price=coin_price)
    return Market(asset, policy, config, int(gwei * GWEI))


def whole_fee(market: Market) -> int | None:
    """Return the smallest keeper fee of which all that a job may need is worth its gas, ten minutes late at most."""
    fees = [smallest_fee(market, work) for work in works() if work.needed]
    return None if None in fees else max(fee for fee in fees if fee is not None)


def named_price(market: Market, fee: int) -> int:
    """Return the least price of a job whose file names this keeper fee."""
    return formulas.price(market.terms(fee))


def automatic_price(market: Market, fee: int) -> int:
    """Return the least price of a job that gets at least this keeper fee where its file names none."""
    return market.policy.min_price if fee <= market.policy.min_keeper_fee else fee * AUTO_KEEPER_SHARE


def table(markets: Sequence[Market]) -> str:
    """Return a table for one asset: a column for each gas price, a row for each kind of work and for the whole job."""
    asset = markets[0].asset

    def row(name: str, amounts: Sequence[int | None]) -> str:
        cells = ["none" if amount is None else show_amount(amount, asset, symbol=False) for amount in amounts]
        return f"| {' | '.join([name, *cells])} |\n"

    prices = [f"{float(Fraction(market.gas_price, GWEI)):g} gwei" for market in markets]
    found = f"| {asset.symbol} | {' | '.join(prices)} |\n|---|{'---:|' * len(markets)}\n"
    for work in works():
        found += row(f"{work.name} ({work.gas:,} gas)", [smallest_fee(market, work) for market in markets])
    fees = [whole_fee(market) for market in markets]
    found += row("**keeper fee of which all of a job's work pays**", fees)
    for name, least in (("named in the job file", named_price), ("automatic", automatic_price)):
        whole = [None if fee is None else least(market, fee) for market, fee in zip(markets, fees, strict=True)]
        found += row(f"least price of such a job, its keeper fee {name}", whole)
    return found


def said_of(gwei: Sequence[str], *, per_ether: str, decimals: int, coins: str) -> str:
    """Return the tables of a market in the native coin and of one in an ERC-20.

    Raises ConfigError BAD_NUMBER for a figure that is not a number above zero, UNFIT_AMOUNTS for an asset in which an
    amount of the profile would be nothing or too large.
    """
    worth, coin = _number(per_ether, "--per-ether"), _number(coins, "--coins")
    assets = ((Asset("native coin, 18 decimals", 18), coin), (Asset(f"ERC-20, {decimals} decimals", decimals), worth))
    found = []
    for asset, per in assets:
        markets = [market_of(asset, _number(one, "--gwei"), per_ether=per, coins=coin) for one in gwei]
        found.append(table(markets))
    return "\n".join(found)


def _number(text: str, option: str) -> Fraction:
    try:
        found = Fraction(text)
    except (ValueError, ZeroDivisionError):
        found = Fraction(0)
    if found <= 0:
        raise ConfigError(f"{option} is {text!r}", hint=f"give a number above zero: {option} 0.01", code="BAD_NUMBER")
    return found


def page_part() -> str:
    """Return the part of docs/KEEPER.md that this command writes."""
    tables = said_of(PAGE_GWEI, per_ether=PER_ETHER, decimals=6, coins="1")
    return f"""
The tables say which keeper fee a job must have for each kind of work to be worth its gas. They go by the public
profile's amounts, an ERC-20 of which {PER_ETHER} are worth an ether, `max_loss = 0`, and the other defaults of
`keeper.toml`. For another chain's fees: `python -m bench.smallest_job --gwei 0.01 --per-ether 2500`. What a rollup
charges for data comes on top. A keeper fee is at least the policy's minimum, and above that at most the price. Where
the job file names none, it is 1 % of the price.

{tables}
"""


@click.command()
@click.option("--gwei", multiple=True, default=PAGE_GWEI, show_default=True, help="Gas price; may be repeated.")
@click.option("--per-ether", default=PER_ETHER, show_default=True, help="Whole units of the ERC-20 to an ether.")
@click.option("--decimals", default=6, show_default=True, type=click.IntRange(0, 36), help="Of the ERC-20.")
@click.option("--coins", default="1", show_default=True, help="Native coins that are worth an ether.")
@click.option("--write", is_flag=True, help="Write the tables for the defaults into docs/KEEPER.md.")
def main(gwei: Sequence[str], per_ether: str, decimals: int, coins: str, write: bool) -> None:
    """Print the smallest jobs that a keeper touches at given fees; exit 2 where a figure is none."""
    if write:
        write_part(PAGE, "smallest-job", page_part())
        click.echo(f"docs/{PAGE.name} has the tables for {', '.join(PAGE_GWEI)} gwei")
        return
    try:
        click.echo(said_of(gwei, per_ether=per_ether, decimals=decimals, coins=coins), nl=False)
    except ConfigError as error:
        raise click.UsageError(f"{error.message}; {error.hint}") from None


if __name__ == "__main__":
    main()
