"""A market of one's own on this machine: the local chain with the contracts on it, and keys of its public accounts."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hearth.base.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from hearth.client.reports import DevnetDown, DevnetFund, DevnetUp, NamedKey
    from hearth.client.session import Session
    from hearth.local.devnet import Lost

DEVNET_ACCOUNTS: Final = {
    name: index
    for index, name in enumerate(
        ("council", "dev", "worker", "keeper", "worker2", "worker3", "provider", "attester", "attester2")
    )
}
"""The keys that a devnet makes, by the index of anvil's public account."""
FUND_COINS: Final = 100
FUND_TOKENS: Final = 1_000
"""What the faucet gives where no amount is named: whole coins, and whole test tokens."""
SHOWN_LOST: Final = 5
"""How many lost transactions a warning names; the report has all of them."""


class LocalMarket:
    """The local market of a session's home folder."""

    def __init__(self, session: Session) -> None:
        """Start nothing yet."""
        self.session = session

    def up(self, *, port: int = 8545, erc20: bool = False, block_time: int = 1) -> DevnetUp:
        """Start a local chain with the market on it, and keys of its public accounts: dev, worker, keeper and more."""
        from hearth.base.files import make_private
        from hearth.local import devnet

        home = make_private(self.session.settings.home)
        self.session.tell("step", {"text": "starting the chain and the market"})
        running = devnet.up(home, port, erc20=erc20, block_time=block_time)
        if running.lost is not None:
            self.session.tell("warning", {"text": _lost_words(running.lost)})
        made = [self._devnet_key(name, index) for name, index in DEVNET_ACCOUNTS.items()]
        report: DevnetUp = {
            "schema": "hearth.devnet/1",
            "running": True,
            "url": running.url,
            "pid": running.pid,
            "network_file": str(running.network_file),
            "started": running.started,
            "deployed": running.deployed,
            "contracts": dict(running.network.contracts),
            "asset": running.network.asset.symbol,
            "keys": made,
        }
        if running.lost is not None:
            lost = running.lost
            report["lost"] = {
                "blocks": lost.blocks,
                "reached": lost.reached,
                "transactions": list(lost.transactions),
            }
        return report

    def join(self, rpc: Sequence[str]) -> None:
        """Deploy the market on a local chain that runs already, and make keys of its public accounts.

        Raises ChainError WRONG_CHAIN where it is no local one, or its public accounts are poor.
        """
        from hearth.base.files import make_private
        from hearth.local import devnet

        devnet.join(make_private(self.session.settings.home), rpc)
        for name, index in DEVNET_ACCOUNTS.items():
            self._devnet_key(name, index)

    def down(self, *, wipe: bool = False) -> DevnetDown:
        """Stop the local chain; its state is kept unless `wipe`."""
        from hearth.local import devnet

        stopped = devnet.down(self.session.settings.home)
        if wipe:
            devnet.wipe(self.session.settings.home)
        return {"schema": "hearth.devnet/1", "running": False, "stopped": stopped, "wiped": wipe}

    def fund(self, who: str | None = None, amount: str | None = None) -> DevnetFund:
        """Give play money of the running local chain to a key or an address, by default this account.

        `amount` is in the market's asset, or in coin where it says so; by default FUND_COINS and, where the market
        pays in a test token, FUND_TOKENS. Raises ConfigError NO_DEVNET, UsageError BAD_ADDRESS, BAD_AMOUNT.
        """
        from hearth.chain.keys import find_key
        from hearth.chain.rpc import RpcChain
        from hearth.client.money import recipient, sent_asset
        from hearth.local import devnet
        from hearth.protocol.units import NATIVE, format_amount, parse_amount

        session = self.session
        running = devnet.status(session.settings.home)
        if running.url is None:
            raise ConfigError(
                f"no local chain of {session.settings.home} runs, and only that has money to give away",
                hint="hearth devnet up",
                code="NO_DEVNET",
            )
        network, chain = session.network, RpcChain([running.url])
        if network.genesis_hash != chain.genesis_hash():
            raise ConfigError(
                f"{network.name} is not the local chain of {session.settings.home}: nobody gives its money away",
                hint="hearth devnet fund --network devnet",
                code="NO_DEVNET",
            )
        if who is None:
            address = session.key().address
        elif who.startswith("0x"):
            address = recipient(who, network)
        else:
            address = find_key(session.settings.keys_folder, who).address
        asset = session.asset
        if amount is None:
            wanted = {NATIVE: FUND_COINS * 10**NATIVE.decimals}
            if asset.address is not None:
                wanted[asset] = FUND_TOKENS * 10**asset.decimals
        else:
            chosen = sent_asset(amount, asset)
            wanted = {chosen: parse_amount(amount, chosen)}
        if not all(wanted.values()):
            raise UsageError("an amount of nothing gives nothing", hint="hearth devnet fund --help", code="BAD_AMOUNT")
        wei = sum(units for one, units in wanted.items() if one.address is None)
        tokens = sum(units for one, units in wanted.items() if one.address is not None)
        sent = [] if session.dry_run else devnet.fund(chain, network, address, wei=wei, tokens=tokens)
        return {
            "schema": "hearth.devnet.fund/1",
            "address": address,
            "given": [
                {"asset": one.symbol, "amount": str(units), "amount_text": format_amount(units, one)}
                for one, units in wanted.items()
            ],
            "transactions": sent,
            "dry_run": session.dry_run,
        }

    # ---- inside ----

    def _devnet_key(self, name: str, index: int) -> NamedKey:
        """Make the key file of a public account with a password beside it, or find it."""
        from hearth.chain.keys import create_key, list_keys
        from hearth.local.devnet import KEYS

        folder = self.session.settings.keys_folder
        known = {key.name: key for key in list_keys(folder)}
        if name in known:
            return {"name": name, "address": known[name].address}
        password = secrets.token_hex(16)
        key = create_key(folder, name, password, secret=bytes.fromhex(KEYS[index][2:]), devnet=True)
        beside = key.path.with_suffix(".password")
        beside.touch(mode=0o600)
        beside.write_text(password + "\n", encoding="utf-8")
        return {"name": name, "address": key.address}


def _lost_words(lost: Lost) -> str:
    """Say what a killed chain lost, and what to do."""
    many = len(lost.transactions)
    shown = ", ".join(lost.transactions[:SHOWN_LOST]) + (", ..." if many > SHOWN_LOST else "")
    what = f"with {many} transactions: {shown}" if many else "with no transactions in them"
    text = f"the chain was killed, and its last {lost.blocks} blocks, up to number {lost.reached}, are lost, {what}"
    if not many:
        return text
    return f"{text}. Once it has passed block {lost.reached} again, the same commands send again what it lost"
