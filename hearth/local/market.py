"""A market of one's own on this machine: the local chain with the contracts on it, and keys of its public accounts."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hearth.client.reports import DevnetDown, DevnetUp, NamedKey
    from hearth.client.session import Session
    from hearth.local.devnet import Lost

DEVNET_ACCOUNTS: Final = {"dev": 1, "worker": 2, "keeper": 3, "worker2": 4, "worker3": 5, "provider": 6}
"""The keys that a devnet makes, by the index of anvil's public account."""
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

    def down(self, *, wipe: bool = False) -> DevnetDown:
        """Stop the local chain; its state is kept unless `wipe`."""
        from hearth.local import devnet

        stopped = devnet.down(self.session.settings.home)
        if wipe:
            devnet.wipe(self.session.settings.home)
        return {"schema": "hearth.devnet/1", "running": False, "stopped": stopped, "wiped": wipe}

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
