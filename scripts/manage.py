"""Change a market's bounded defaults as its governor:  ape run manage COMMAND --network NETWORK --account KEY ...

None of this touches running jobs, registered nodes or money: a policy counts for new jobs, the minimum stake and the
pause for new registrations and posts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hearth.chain.port import Call
from hearth.chain.rpc import RpcChain
from hearth.client.governance.changes import read_change
from hearth.client.money import address_of
from hearth.client.session import MAX_FEE
from hearth.config.settings import found_network
from hearth.daemon.signer import sender_config
from hearth.market.changes import GOVERNED
from hearth.market.reads import Market
from hearth.protocol import words
from scripts._shared import (
    NETWORKS,
    Command,
    confirm,
    find_account,
    network_path,
    sending,
    settings_here,
    signing_options,
)


def open_market(provider: Any, folder: Path, name: str) -> Market:
    """Open the market of a network file on ape's provider.

    Raises UsageError for a name that no network has, ChainError for a wrong chain or other contracts.
    """
    # What --folder names is no find.
    why = f"found as network {name}" if folder == NETWORKS else ""
    network = found_network(settings_here(), network_path(folder, name), why)
    market = Market(RpcChain([provider.http_uri], timeout=30.0), network)
    market.identity.check()
    return market


def send(
    market: Market, call: Call, account: str, password_file: Path | None, yes: bool, *, needed: bool = False
) -> None:
    """Simulate a call, ask, sign and send it, and print its hash. Raises RefusedError before anything is asked.

    Without a terminal to ask on it is sent all the same, unless an answer is `needed`: then raises ConfigError
    NOT_CONFIRMED.
    """
    settings = settings_here()
    signer = find_account(account, settings)
    market.port.call(call, sender=signer.address)
    confirm(f"{call.label} of {market.network.name} as {signer.address}?", yes=yes, needed=needed)
    market.identity.check_code(settings.code)
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
    """Change fields of the policy of new jobs, once in 24 h; the replaced one is taken for 24 h more.

    Values are written as for hearth gov queue policy: fee_bps=300, ack_time=90s, "min_price=0.000002 ETH".
    """
    market = open_market(provider, folder, name)
    _, word = read_change("policy", changes, market.policy(), market.network)
    send(market, market.calls.set_policy(words.unpack_policy(word)), **signing)


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
    send(market, market.calls.pause(GOVERNED[what]), needed=True, **signing)


@cli.command(cls=Command)
@market_options
@click.argument("amount")
def set_minimum_stake(provider: Any, folder: Path, name: str, amount: str, **signing: Any) -> None:
    """Ask new registrations for this stake: AMOUNT of the market's asset, such as 2 or "2 ETH"."""
    market = open_market(provider, folder, name)
    _, stake = read_change("minimum-stake", [amount], market.policy(), market.network)
    send(market, market.calls.set_minimum_stake(stake), **signing)


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
