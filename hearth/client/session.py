"""What every part of the client shares: settings, and the chain, store and keys that are opened when first needed.

Reads never unlock a key. A key is locked to this process only while it sends, so that a command that waits for a job
does not keep other commands from signing.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hearth.base.errors import ChainError, ConfigError, FundsError, HearthError, NotFoundError, UsageError
from hearth.base.files import make_private
from hearth.base.urls import folder_url
from hearth.config.settings import Settings, asset_of, load_settings, open_network, rpc_urls
from hearth.protocol.units import NATIVE, Asset, show_amount, show_at_least

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

    from hearth.chain.keys import KeyFile
    from hearth.chain.port import Call, ChainPort
    from hearth.chain.tx import Sender, Sent
    from hearth.client.names import Moments, Names
    from hearth.client.records import Records
    from hearth.client.reports import Transaction
    from hearth.market.network import Network
    from hearth.market.reads import Market
    from hearth.market.strays import Strays
    from hearth.protocol.types import JobId
    from hearth.storage.stores import Store

DEVNET: Final = "devnet"
DEVNET_PORT: Final = 8545
"""The name and, by default, the port of the local chain that `hearth devnet up` starts."""
LOCK_SECONDS: Final = 20.0
"""How long a send waits for another process that signs with the same key."""
MAX_FEE: Final = 500 * 10**9
"""The most wei per gas that a person's own send ever pays, where nobody names another limit."""
DEVNET_KEYS: Final = {"submitter": "dev", "operator": "worker", "owner": "provider", "keeper": "keeper"}
"""On a local chain: the key that `hearth devnet up` makes for each role, where no --account is given."""

Tell = Callable[[str, Mapping[str, Any]], None]
"""Hears of progress: a kind ("note", "step", "tx", ...) and its facts. docs/PYTHON.md, "Progress", has all of them."""


def silent(kind: str, facts: Mapping[str, Any]) -> None:
    """Hear nothing."""


class DryRun:
    """A dry run: simulate what a sender would send: no password, no file, no signature."""

    def __init__(self, port: ChainPort, address: str) -> None:
        self.address = address
        self._port = port

    def send(self, call: Call, *, key: str) -> Sent:
        """Return what a call would use at the next fees. Raises RefusedError where the contract refuses it."""
        from hearth.chain.tx import Sent

        gas = self._port.estimate_gas(call, self.address)
        fees = self._port.fees()
        return Sent(key, call.label, None, None, None, gas, gas * fees.price)


class Session:
    """Open the market, the store and keys lazily. `tell` hears of progress; `dry_run` signs and writes nothing."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        tell: Tell = silent,
        dry_run: bool = False,
        ask_password: Callable[[str], str] | None = None,
        port: ChainPort | None = None,
    ) -> None:
        """Build a client of `settings`, by default those of the environment and the settings files.

        `ask_password` is called with a question where no password file is given; `port` replaces the chain.
        """
        self.settings = load_settings() if settings is None else settings
        self.tell = tell
        self.dry_run = dry_run
        self.ask_password = ask_password
        self.program = False
        """Whether whoever reads its errors writes a program, and types no commands."""
        self.mend_rpc = ""
        """What to do where nobody answers whom another program's settings file names; by default the error says it."""
        self._given_port = port
        self._checked = False
        self._accounts: dict[str, LocalAccount] = {}

    # ---- the market ----

    @cached_property
    def network(self) -> Network:
        """Return the chosen network. Raises ConfigError."""
        return open_network(self.settings)

    @property
    def asset(self) -> Asset:
        """Return the market's asset."""
        return asset_of(self.network)

    @cached_property
    def unchecked_market(self) -> Market:
        from hearth.chain.rpc import RpcChain
        from hearth.market.reads import Market

        network = self.network
        port = self._given_port
        if port is None:
            port = RpcChain(
                rpc_urls(self.settings, network),
                chain_id=network.chain_id,
                genesis_hash=network.genesis_hash,
                timeout=min(20.0, float(self.settings.timeout)),
            )
        return Market(port, network)

    @property
    def market(self) -> Market:
        """Return the market, once its chain and contracts were checked against the network file, and their code against
        ours or what `code` of the settings names. Raises ChainError.
        """
        market = self.unchecked_market
        if not self._checked:
            try:
                market.identity.check()
            except ChainError as error:
                error.hint = self.mend_rpc or self._start_devnet(error) or error.hint
                raise
            market.identity.check_code(self.settings.code)
            self._checked = True
        return market

    def _start_devnet(self, error: ChainError) -> str:
        """Return the command that starts the local chain of this home, where that is what does not answer."""
        from urllib.parse import urlsplit

        network, settings = self.network, self.settings
        own = (settings.home / "networks" / f"{DEVNET}.json").is_file() and network.name == DEVNET
        if error.code != "RPC_UNAVAILABLE" or not own or not network.local or settings.rpc or not network.rpc:
            return ""
        port = urlsplit(network.rpc[0]).port
        return "hearth devnet up" + ("" if port in (None, DEVNET_PORT) else f" --port {port}")

    @property
    def strays(self) -> Strays:
        """Return what was stepped over among the market's logs; nothing where no market was opened."""
        from hearth.market.strays import Strays

        opened: Market | None = self.__dict__.get("unchecked_market")
        return Strays() if opened is None else opened.strays

    @property
    def local(self) -> bool:
        """Say whether this is a local chain."""
        return self.network.local

    @property
    def state(self) -> Path:
        """Return the folder of this market's own state, posted jobs; a chain that changes its id keeps them."""
        network = self.network
        market = f"{network.job_chain_id}-{network.genesis_hash.hex()[:8]}-{network.jobs[2:10]}"
        return self.settings.home / "state" / market

    @property
    def records(self) -> Records:
        """Return the journal of the jobs that were posted from here."""
        from hearth.client.records import Records

        return Records(self.settings.home, self.state / "jobs")

    @cached_property
    def names(self) -> Names:
        """Return the names of jobs that are known here."""
        from hearth.client.names import Names

        home = self.settings.home
        documents = home / "store" if self.settings.store == "folder" else None
        return Names(home, self.state / "names", documents, writes=not self.dry_run)

    @cached_property
    def moments(self) -> Moments:
        """Return when blocks were, as far as it was asked for."""
        from hearth.client.names import Moments

        return Moments(self.settings.home, self.state / "moments.json", writes=not self.dry_run)

    def amount(self, base_units: int) -> str:
        """Return an amount of the market's asset for people; one that has to be enough is `amount_at_least`."""
        return show_amount(base_units, self.asset)

    def explorer(self, tx_hash: str | None) -> str | None:
        """Return the link of a transaction, None where the network has no explorer."""
        base = self.network.explorer
        return f"{base.rstrip('/')}/tx/{tx_hash}" if base and tx_hash else None

    # ---- the store ----

    @cached_property
    def store(self) -> Store:
        """Return the store that is written to, followed by the gateways that are read from."""
        from hearth.storage.stores import open_store

        return open_store(*self.store_urls)

    @property
    def store_urls(self) -> tuple[str, ...]:
        """Return the stores' URLs: the settings' own first, then the gateways of the settings and the network."""
        return (_store_url(self.settings), *(f"gateway+{url}" for url in self.gateways))

    @property
    def gateways(self) -> tuple[str, ...]:
        """Return the URLs of the gateways that are read from: those of the settings, then the network's."""
        return tuple(dict.fromkeys((*self.settings.gateways, *self.network.gateways)))

    # ---- keys ----

    def key(self, role: str = "submitter", *, of: str | None = None) -> KeyFile:
        """Return the key file for a role, without unlocking it.

        It is the one of --account; else that of the address `of` where it is here, that of the settings, the devnet's
        own, or the only one. What an owner does is not signed by the key that HEARTH_ACCOUNT names for jobs.
        """
        from hearth.chain.keys import find_key, list_keys

        folder = self.settings.keys_folder
        account = self.settings.account
        looked_for = of if of and not self.settings.names_account else None
        own = next((key for key in list_keys(folder) if key.address == looked_for), None)
        if own is not None:
            return own
        if account is None and (folder / f"{DEVNET_KEYS[role]}.json").is_file() and self.local:
            account = DEVNET_KEYS[role]
        return find_key(folder, account)

    def password(self, key: KeyFile) -> str:
        """Return a key's password: of --password-file, of the file beside a devnet key, or asked for.

        Raises ConfigError NO_PASSWORD where nobody can be asked.
        """
        from hearth.chain.keys import password_of

        return password_of(key, self.settings.password_file, self.ask_password)

    def password_file(self, key: KeyFile, reader: str) -> Path:
        """Return the file that `reader`, a program without a terminal, takes a key's password from.

        Raises ConfigError NO_PASSWORD.
        """
        beside = key.path.with_suffix(".password")
        password = self.settings.password_file or (beside if beside.is_file() else None)
        if password is None:
            raise ConfigError(
                f"{reader} reads the password of {key.name} from a file",
                hint="use --password-file FILE",
                code="NO_PASSWORD",
                component="wallet",
            )
        return password

    def unlocked(self, key: KeyFile) -> LocalAccount:
        """Return a key's signing account; the password is taken once."""
        from hearth.chain.keys import unlock

        if key.address not in self._accounts:
            self._accounts[key.address] = unlock(key, self.password(key))
        return self._accounts[key.address]

    @contextmanager
    def sender(self, role: str = "submitter", *, of: str | None = None) -> Iterator[Sender | DryRun]:
        """Unlock the key of `key` and hold it for this process while the context is open; a dry run only simulates."""
        from hearth.daemon.signer import open_sender, sender_config

        market = self.market
        key = self.key(role, of=of)
        if self.dry_run:
            yield DryRun(market.port, key.address)
            return
        account = self.unlocked(key)
        home = make_private(self.settings.home) / "state"
        config = sender_config(self.network, MAX_FEE, timeout=float(self.settings.timeout))
        with open_sender(
            market.port,
            self.network,
            key,
            account,
            home=home,
            user_home=self.settings.home,
            config=config,
            wait_seconds=LOCK_SECONDS,
        ) as sender:
            sender.reconcile()
            yield sender

    def send(self, sender: Sender | DryRun, call: Call, key: str, *, step: str = "sending") -> Transaction:
        """Send a call and return its receipt as plain facts; progress hears of it too, and that it is in `step`.

        From that step on until the "tx" is told, its transaction may be on its way: the step names it as `sending`.
        """
        if self.dry_run:
            self.tell("step", {"text": f"{call.label}: trying it on the chain, without sending it"})
        else:
            self.tell("step", {"text": f"{call.label}: {step}", "sending": call.label})
        facts = self.receipt_of(sender.send(call, key=key), dry_run=self.dry_run)
        self.tell("tx", facts)
        return facts

    def receipt_of(self, sent: Sent, *, dry_run: bool = False) -> Transaction:
        """Return what a send came to: hash, block, gas, fee, explorer link."""
        tx_hash = None if sent.tx_hash is None else "0x" + sent.tx_hash.hex()
        return {
            "action": sent.label,
            "tx": tx_hash,
            "block": sent.block_number,
            "gas": sent.gas_used,
            "fee": str(sent.fee),
            "fee_text": show_amount(sent.fee, NATIVE),
            "explorer": self.explorer(tx_hash),
            "repeated": sent.repeated,
            "dry_run": dry_run,
        }

    def meter(self, what: str, total: int) -> Callable[[str, int], None]:
        """Return a progress function that adds bytes up and tells of them."""
        done = 0

        def moved(name: str, count: int) -> None:
            nonlocal done
            done += count
            self.tell("progress", {"what": what, "done": done, "total": total})

        return moved

    # ---- money ----

    def require_funds(
        self, address: str, *, asset_units: int, gas: int, what: str, coin_units: int = 0
    ) -> dict[str, str]:
        """Refuse what an account cannot pay: `asset_units` of the market's asset and `gas` units at the next fees.

        `coin_units` are wei that are paid on top. All is checked before the first signature of a whole path. Raises
        FundsError with what is short.
        """
        market = self.market
        fees = market.port.fees()
        gas_cost = gas * fees.most
        coin = market.port.balance(address)
        native = self.network.asset.address is None
        coin_units += asset_units if native else 0
        need_coin = gas_cost + coin_units
        if not native:
            have = market.asset_balance(address)
            if have < asset_units:
                raise self._short(address, self.asset, have, asset_units, what)
        if coin < need_coin:
            beside = native or coin_units
            what, verb = (f"{what} and its gas", "take") if beside else (f"the gas of {what}", "takes")
            raise self._short(address, NATIVE, coin, need_coin, what, verb)
        return {"asset": str(asset_units), "gas": str(gas_cost)}

    def _short(self, address: str, asset: Asset, have: int, need: int, what: str, verb: str = "takes") -> FundsError:
        short = need - have
        return FundsError(
            f"{address} holds {show_amount(have, asset)} on {self.network.name}, and {what} {verb} "
            f"{show_at_least(need, asset)}: short by {show_at_least(short, asset)}",
            hint=f"send {asset.symbol} to {address}, then hearth wallet balance",
            address=address,
            asset=asset.symbol,
            chain_id=self.network.chain_id,
            have=str(have),
            need=str(need),
            short_by=str(short),
        )

    # ---- names ----

    def job_id(self, text: str) -> JobId:
        """Return the job that an id or an unambiguous start of one names.

        Raises UsageError for what is no hex, NotFoundError NOT_FOUND or AMBIGUOUS.
        """
        from hearth.protocol.types import JobId

        digits = text.lower().removeprefix("0x")
        hint = "hearth jobs --all"
        if not text.lower().startswith("0x"):
            hint = f"hearth jobs --name {shlex.quote(text)} finds a job of that name; {hint}"
        if not digits or len(digits) > 64 or set(digits) - set("0123456789abcdef"):
            raise UsageError(f'"{text}" is no job id: 0x and up to 64 hex digits', hint=hint, code="BAD_ID")
        if len(digits) == 64:
            return JobId(bytes.fromhex(digits))
        market = self.market
        head = market.port.head().number
        jobs = market.posted(from_block=self.network.deploy_block, to_block=head)
        found = [posted.job_id for posted in jobs if posted.job_id.hex().startswith(digits)]
        if not found:
            raise NotFoundError(f"no job of {self.network.name} starts with 0x{digits}", hint=hint)
        if len(found) > 1:
            shown = ", ".join("0x" + job.hex()[: len(digits) + 6] for job in found[:8])
            raise NotFoundError(
                f"0x{digits} is the start of {len(found)} jobs: {shown}",
                hint="write more of it; hearth jobs --all",
                code="AMBIGUOUS",
            )
        return found[0]

    def close(self) -> None:
        """Release what was opened."""
        if "store" in self.__dict__:
            with suppress(HearthError):
                self.store.close()


def _store_url(settings: Settings) -> str:
    """Return the URL of the settings' store: the folder below home, or the Kubo whose API address is given."""
    text = settings.store
    if text == "folder":
        return folder_url(settings.home / "store")
    if text.startswith("/"):
        parts = text.strip("/").split("/")
        if len(parts) < 4 or parts[2] != "tcp" or not parts[3].isdigit():
            raise ConfigError(
                f"store {text} is no address of a Kubo API", hint='write "/ip4/127.0.0.1/tcp/5001"', code="BAD_STORE"
            )
        host = f"[{parts[1]}]" if parts[0] == "ip6" else parts[1]
        return f"kubo://{host}:{parts[3]}"
    return "kubo://" + text.split("://", 1)[1].rstrip("/")
