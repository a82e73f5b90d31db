"""Deploy a market and write networks/NAME.json:  ape run deploy --network NETWORK --account KEY --name NAME ...

Shows the plan once, asks once, and goes on where it stopped when it is run again after any end, kill -9 included. ape
chooses the network and may hold the key; the plan, its record, the transactions and the checks are the library's
(hearth.market.deploying, hearth.chain.tx).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from hearth.chain.rpc import RpcChain
from hearth.chain.tx import GWEI, SenderConfig, Sent
from hearth.client.money import address_of
from hearth.client.session import MAX_FEE
from hearth.config.trust import Trust
from hearth.market.deploying import Deployment, Wish, find_deployed, finish, prepare, worth_of
from hearth.market.deployment import Step, TxDeployer
from hearth.market.profiles import PROFILES
from hearth.protocol.types import ZERO_ADDRESS
from hearth.protocol.units import Asset, amount_at_least, show_amount
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

WAIT_SECONDS = 900.0
"""How long one creation is waited for; after that the same command goes on waiting."""


@click.command(cls=Command)
@signing_options
@click.option("--name", required=True, help="Name of the network file: a-z, 0-9 and -.")
@click.option("--profile", type=click.Choice(sorted(PROFILES)), default="public", show_default=True)
@click.option("--treasury", required=True, metavar="ADDRESS", help="Who earns the fees; immutable.")
@click.option("--council", required=True, metavar="ADDRESS", help="Who may queue changes of the defaults: a Safe.")
@click.option("--guardian", metavar="ADDRESS", help="Who may drop changes and pause, besides the council.")
@click.option("--symbol", default="ETH", show_default=True, help="Symbol of the asset.")
@click.option("--token", metavar="ADDRESS", help="The ERC-20 to pay in; left out, the native coin.")
@click.option("--decimals", type=click.IntRange(0, 36), default=18, show_default=True, help="Decimals of the asset.")
@click.option(
    "--per-ether",
    metavar="AMOUNT",
    help="How many of the asset are worth an ether, by which a profile's amounts are scaled; 1 for the native coin.",
)
@click.option("--explorer", help="Explorer to link transactions to.")
@click.option("--rpc", multiple=True, help="RPC address for the network file; may be given several times.")
@click.option("--confirmations", type=click.IntRange(0), help="Blocks to wait for; default: the network's own.")
@click.option(
    "--max-fee",
    type=click.IntRange(1),
    default=MAX_FEE // GWEI,
    show_default=True,
    help="Cap of the fee, gwei per gas.",
)
@click.option("--folder", type=click.Path(path_type=Path), default=NETWORKS, help="Where network files are.")
@click.option("--force", is_flag=True, help="Replace a network file of this name; give up an unfinished deployment.")
def cli(
    provider: Any,
    account: str,
    password_file: Path | None,
    yes: bool,
    name: str,
    profile: str,
    treasury: str,
    council: str,
    guardian: str | None,
    symbol: str,
    token: str | None,
    decimals: int,
    per_ether: str | None,
    explorer: str | None,
    rpc: tuple[str, ...],
    confirmations: int | None,
    max_fee: int,
    force: bool,
    folder: Path,
) -> None:
    """Deploy the market's contracts, read everything back, write the network file."""
    path = network_path(folder, name)
    port = RpcChain([provider.http_uri], timeout=30.0)
    asset = Asset(symbol, decimals, None if token is None else address_of(token))
    seats = (address_of(treasury), address_of(council), address_of(guardian) if guardian else ZERO_ADDRESS)
    wish = Wish(name, PROFILES[profile], asset, *seats, worth_of(per_ether, asset))
    if not force and find_deployed(wish, port, path) is not None:
        click.echo(f"{name} is deployed: nothing was sent", err=True)
        click.echo(str(path))
        return

    settings = settings_here()
    signer = find_account(account, settings)
    coin = symbol if token is None else provider.network.ecosystem.fee_token_symbol
    config = SenderConfig(max_fee * GWEI, timeout=WAIT_SECONDS, symbol=coin)
    deployment = prepare(wish, port, signer.address, path, config, anew=force)
    for line in plan_lines(deployment, coin):
        click.echo(line, err=True)
    confirm("Deploy this?", yes=yes, needed=True)
    shown = {"rpc": rpc or public_rpc(provider.http_uri), "explorer": explorer}
    if confirmations is None:
        confirmations = provider.network.required_confirmations
    with sending(port, deployment, signer, settings, config, password_file) as sender:
        deployer = TxDeployer(sender, port, since=deployment.since, tell=tell)
        finish(deployment, deployer, port, confirmations=confirmations, **shown)
    Trust(settings.home).record(path, path.read_bytes())
    click.echo(f"read back and compared: {name} stands", err=True)
    click.echo(str(path))


def public_rpc(uri: str) -> tuple[str, ...]:
    """Return the address that the market's users may ask too: none where it could hold a secret."""
    parts = urlsplit(uri)
    secret = parts.path.strip("/") or parts.query or parts.username or parts.scheme not in ("http", "https")
    return () if secret else (uri.rstrip("/"),)


def plan_lines(deployment: Deployment, coin: str) -> Iterator[str]:
    """Yield the plan for people."""
    plan, native = deployment.plan, Asset(coin, 18)
    chain = f"chain {deployment.chain_id} (genesis 0x{deployment.genesis_hash.hex()[:8]})"
    yield f"{deployment.wish.name} on {chain}{', begun before' if deployment.resumed else ''}"
    yield f"  deployer {plan.deployer}, who keeps no right, nonce {plan.nonce}"
    yield f"  it holds {show_amount(deployment.balance, native)}"
    for name, value in deployment.wish.settings().items():
        yield f"  {name} {value}"
    asset, policy, nodes = plan.asset, plan.profile.policy, plan.profile.node_parameters
    for title, amount in (
        ("minimum stake", nodes.minimum_stake),
        ("least price of a unit", policy.min_price),
        ("least keeper fee", policy.min_keeper_fee),
        ("probation price", policy.probation_price),
        ("fee of a full success", nodes.fee_reference),
        ("fee of a silence", nodes.liveness_fee),
    ):
        yield f"  {title} {show_amount(amount, asset)}"
    for step in plan.steps:
        if step.name in deployment.deployed:
            yield f"  {step.name} stands at {step.address}"
        else:
            yield f"  {step.name} will be {step.address}: about {step.gas:,} gas"
    now, most = (amount_at_least(fee, native) for fee in (deployment.fee_now, deployment.fee_most))
    yield f"  together {deployment.gas:,} gas: {now} at the fees of now, at most {most}"


def tell(step: Step, sent: Sent | None) -> None:
    """Say what became of a contract."""
    if sent is None or sent.tx_hash is None:
        click.echo(f"{step.name}: stands at {step.address}", err=True)
        return
    before = " (sent before)" if sent.repeated else ""
    click.echo(
        f"{step.name}: 0x{sent.tx_hash.hex()}  block {sent.block_number}  gas {sent.gas_used:,}{before}", err=True
    )
