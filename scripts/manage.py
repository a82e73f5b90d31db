"""Change a market's bounded defaults as its governor:  ape run manage COMMAND --network NETWORK --account KEY ...

None of this touches running jobs, registered nodes or money: a policy counts for new jobs, the minimum stake and the
pause for new registrations and posts.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click

from hearth.chain.port import Call
from hearth.chain.rpc import RpcChain
from hearth.client.money import address_of
from hearth.client.session import MAX_FEE
from hearth.config.settings import load_settings
from hearth.daemon.signer import sender_config
from hearth.market.changes import GOVERNED
from hearth.market.network import load_network
from hearth.market.reads import Market
from hearth.protocol.types import Policy
from scripts._shell import NETWORKS, Command, confirm, find_account, sending, signing_options

POLICY_FIELDS = tuple(f.name for f in fields(Policy) if f.name != "version")


def open_market(provider: Any, folder: Path, name: str) -> Market:
    """Open the market of a network file on ape's provider. Raises ChainError for a wrong chain or other contracts."""
    market = Market(RpcChain([provider.http_uri], timeout=30.0), load_network(folder / f"{name}.json"))
    market.check()
    return market


def send(market: Market, call: Call, account: str, password_file: Path | None, yes: bool) -> None:
    """Simulate a call, ask, sign and send it, and print its hash. Raises RefusedError before anything is asked."""
    settings = load_settings()
    signer = find_account(account, settings)
    market.port.call(call, sender=signer.address)
    confirm(f"{call.label} of {market.network.name} as {signer.address}?", yes=yes, needed=False)
    config = sender_config(market.network, MAX_FEE)
    with sending(market.port, market.network, signer, settings, config, password_file) as sender:
        nonce = market.port.nonce(sender.address, pending=True)
        sent = sender.send(call, key=f"manage/{call.label}/{nonce}", nonce=nonce)
    click.echo(f"{call.label}: 0x{sent.tx_hash.hex()} in block {sent.block_number}, {sent.gas_used} gas")


def market_options(function: Any) -> Any:
    """Add the options that name a market, and those of its governor."""
    for option in (
        click.option("--name", required=True, help="Name of the network file."),
        click.option("--folder", type=click.Path(path_type=Path), default=NETWORKS, help="Where network files are."),
    ):
        function = option(function)
    return signing_options(function)


@click.group()
def cli() -> None:
    """Change a market's defaults as its governor."""


@cli.command(cls=Command)
@market_options
@click.argument("changes", nargs=-1, required=True, metavar="FIELD=VALUE...")
def set_policy(provider: Any, folder: Path, name: str, changes: tuple[str, ...], **signing: Any) -> None:
    """Change fields of the policy of new jobs, once in 24 h; the replaced one is taken for 24 h more."""
    values: dict[str, int] = {}
    for change in changes:
        key, _, value = change.partition("=")
        if key not in POLICY_FIELDS or not value.isdecimal():
            raise click.UsageError(f"{change!r} is not FIELD=VALUE; fields: {', '.join(POLICY_FIELDS)}")
        values[key] = int(value)
    market = open_market(provider, folder, name)
    try:
        call = market.calls.set_policy(replace(market.policy(), **values))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    send(market, call, **signing)


@cli.command(cls=Command)
@market_options
def drop_previous_policy(provider: Any, folder: Path, name: str, **signing: Any) -> None:
    """Stop taking the replaced policy at once."""
    market = open_market(provider, folder, name)
    send(market, market.calls.drop_previous_policy(), **signing)


@cli.command(cls=Command)
@market_options
@click.argument("what", type=click.Choice(sorted(GOVERNED)))
def pause(provider: Any, folder: Path, name: str, what: str, **signing: Any) -> None:
    """Pause new posts or new registrations, at most once in 30 days; it ends by itself after 7."""
    market = open_market(provider, folder, name)
    send(market, market.calls.pause(GOVERNED[what]), **signing)


@cli.command(cls=Command)
@market_options
@click.argument("amount", type=click.IntRange(1))
def set_minimum_stake(provider: Any, folder: Path, name: str, amount: int, **signing: Any) -> None:
    """Ask new registrations for this stake, in base units."""
    market = open_market(provider, folder, name)
    send(market, market.calls.set_minimum_stake(amount), **signing)


@cli.command(cls=Command)
@market_options
@click.argument("what", type=click.Choice(sorted(GOVERNED)))
@click.argument("address")
def offer_governor(provider: Any, folder: Path, name: str, what: str, address: str, **signing: Any) -> None:
    """Offer the governor's rights over posts or registrations to an address, which has to accept them."""
    market = open_market(provider, folder, name)
    send(market, market.calls.offer_governor(GOVERNED[what], address_of(address)), **signing)


@cli.command(cls=Command)
@market_options
@click.argument("what", type=click.Choice(sorted(GOVERNED)))
def accept_governor(provider: Any, folder: Path, name: str, what: str, **signing: Any) -> None:
    """Take the governor's rights that this account was offered."""
    market = open_market(provider, folder, name)
    send(market, market.calls.accept_governor(GOVERNED[what]), **signing)
