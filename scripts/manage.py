"""Change a market's bounded defaults as its governor:  ape run manage COMMAND --network NETWORK --account ALIAS ...

None of this touches running jobs, registered nodes or money: a policy counts for new jobs, the minimum stake and the
pause for new registrations and posts.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click
from ape.cli import ConnectedProviderCommand, account_option

from hearth.base.errors import HearthError
from hearth.chain.port import Call
from hearth.chain.rpc import Web3Chain
from hearth.market.network import load_network
from hearth.market.reads import Market
from hearth.protocol.types import Policy

NETWORKS = Path(__file__).parents[1] / "networks"
REGISTRIES = {"posts": "JobRegistry", "registrations": "NodeRegistry"}
POLICY_FIELDS = tuple(f.name for f in fields(Policy) if f.name != "version")


def open_market(provider: Any, folder: Path, name: str) -> Market:
    """Open the market of a network file on ape's provider, refusing a wrong chain or other contracts."""
    try:
        market = Market(Web3Chain([provider.http_uri], timeout=30.0), load_network(folder / f"{name}.json"))
        market.check()
    except HearthError as error:
        raise click.ClickException(f"{error.message} ({error.hint})") from error
    return market


def send(account: Any, market: Market, call: Call) -> None:
    """Simulate a call, sign and send it with an ape account, and print its hash."""
    from ape import networks

    try:
        market.port.call(call, sender=account.address)
    except HearthError as error:
        raise click.ClickException(error.message) from error

    transaction = networks.provider.network.ecosystem.create_transaction(
        sender=account.address, receiver=call.to, data=call.data, value=call.value
    )
    receipt = account.call(transaction)
    click.echo(f"{call.label}: {receipt.txn_hash} in block {receipt.block_number}, {receipt.gas_used} gas")


@click.group()
def cli() -> None:
    """Change a market's defaults as its governor."""


@cli.command(cls=ConnectedProviderCommand)
@account_option()
@click.option("--folder", type=click.Path(path_type=Path), default=NETWORKS, help="Where network files are.")
@click.option("--name", required=True, help="Name of the network file.")
@click.argument("changes", nargs=-1, required=True, metavar="FIELD=VALUE...")
def set_policy(provider: Any, account: Any, folder: Path, name: str, changes: tuple[str, ...]) -> None:
    """Change fields of the policy of new jobs; the replaced one is taken for 24 h more."""
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
    send(account, market, call)


@cli.command(cls=ConnectedProviderCommand)
@account_option()
@click.option("--folder", type=click.Path(path_type=Path), default=NETWORKS, help="Where network files are.")
@click.option("--name", required=True, help="Name of the network file.")
def drop_previous_policy(provider: Any, account: Any, folder: Path, name: str) -> None:
    """Stop taking the replaced policy at once."""
    market = open_market(provider, folder, name)
    send(account, market, market.calls.drop_previous_policy())


@cli.command(cls=ConnectedProviderCommand)
@account_option()
@click.option("--folder", type=click.Path(path_type=Path), default=NETWORKS, help="Where network files are.")
@click.option("--name", required=True, help="Name of the network file.")
@click.argument("what", type=click.Choice(sorted(REGISTRIES)))
def pause(provider: Any, account: Any, folder: Path, name: str, what: str) -> None:
    """Pause new posts or new registrations; it ends by itself after 7 days."""
    market = open_market(provider, folder, name)
    send(account, market, market.calls.pause(REGISTRIES[what]))


@cli.command(cls=ConnectedProviderCommand)
@account_option()
@click.option("--folder", type=click.Path(path_type=Path), default=NETWORKS, help="Where network files are.")
@click.option("--name", required=True, help="Name of the network file.")
@click.argument("amount", type=click.IntRange(1))
def set_minimum_stake(provider: Any, account: Any, folder: Path, name: str, amount: int) -> None:
    """Ask new registrations for this stake, in base units."""
    market = open_market(provider, folder, name)
    send(account, market, market.calls.set_minimum_stake(amount))
