"""Deploy a market and write networks/NAME.json:  ape run deploy --network NETWORK --account ALIAS --name NAME ...

A thin shell over hearth.market.deployment: ape chooses the network and signs, the plan and the checks are the
library's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from ape.cli import ConnectedProviderCommand, account_option

from hearth.base.errors import HearthError
from hearth.chain.rpc import Web3Chain
from hearth.market.deployment import Step, carry_out, make_plan
from hearth.market.network import save_network
from hearth.market.profiles import PROFILES
from hearth.protocol.units import Asset

NETWORKS = Path(__file__).parents[1] / "networks"


class ApeDeployer:
    """Sign and send deployments with an ape account."""

    def __init__(self, account: Any, confirmations: int | None) -> None:
        self.address: str = account.address.lower()
        self._account = account
        self._confirmations = confirmations

    def nonce(self) -> int:
        """Return the account's next nonce."""
        return int(self._account.nonce)

    def deploy(self, step: Step) -> tuple[str, int]:
        """Create a contract and wait for its receipt."""
        from ape import networks

        options: dict[str, Any] = {}
        if self._confirmations is not None:
            options["required_confirmations"] = self._confirmations
        transaction = networks.provider.network.ecosystem.create_transaction(
            sender=self._account.address, data=step.code, **options
        )
        receipt = self._account.call(transaction)
        return str(receipt.contract_address).lower(), int(receipt.block_number)


@click.command(cls=ConnectedProviderCommand)
@account_option()
@click.option("--name", required=True, help="Name of the network file.")
@click.option("--profile", type=click.Choice(sorted(PROFILES)), default="public", show_default=True)
@click.option("--treasury", required=True, metavar="ADDRESS", help="Who earns the fees; immutable.")
@click.option("--symbol", default="ETH", show_default=True, help="Symbol of the asset.")
@click.option("--token", metavar="ADDRESS", help="The ERC-20 to pay in; left out, the native coin.")
@click.option("--decimals", type=click.IntRange(0, 36), default=18, show_default=True, help="Decimals of the asset.")
@click.option("--explorer", help="Explorer to link transactions to.")
@click.option("--rpc", multiple=True, help="RPC address for the network file; may be given several times.")
@click.option("--confirmations", type=click.IntRange(0), help="Blocks to wait for; default: the network's own.")
@click.option("--folder", type=click.Path(path_type=Path), default=NETWORKS, help="Where network files are.")
@click.option("--force", is_flag=True, help="Replace a network file of this name.")
def cli(
    provider: Any,
    account: Any,
    name: str,
    profile: str,
    treasury: str,
    symbol: str,
    token: str | None,
    decimals: int,
    explorer: str | None,
    rpc: tuple[str, ...],
    confirmations: int | None,
    force: bool,
    folder: Path,
) -> None:
    """Deploy the market's contracts, read everything back, write the network file."""
    path = folder / f"{name}.json"
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists; choose another --name, or --force")
    try:
        _deploy(
            provider,
            account,
            path,
            profile,
            treasury,
            Asset(symbol, decimals, token and token.lower()),
            explorer,
            rpc,
            confirmations,
        )
    except HearthError as error:
        raise click.ClickException(f"{error.message} ({error.hint})") from error
    click.echo(str(path))


def _deploy(
    provider: Any,
    account: Any,
    path: Path,
    profile: str,
    treasury: str,
    asset: Asset,
    explorer: str | None,
    rpc: tuple[str, ...],
    confirmations: int | None,
) -> None:
    port = Web3Chain([provider.http_uri], timeout=30.0)
    deployer = ApeDeployer(account, confirmations)
    plan = make_plan(
        PROFILES[profile], asset, deployer=deployer.address, nonce=deployer.nonce(), treasury=treasury.lower()
    )
    for step in plan.steps:
        click.echo(f"{step.name} will be {step.address} ({len(step.code)} bytes of creation code)", err=True)
    save_network(carry_out(plan, deployer, port, name=path.stem, rpc=rpc, explorer=explorer), path)
