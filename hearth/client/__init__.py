"""The Python API: `from hearth import Client`. docs/PYTHON.md is its page.

    client = Client()                       # the settings of the command line
    job = client.jobs.submit("job.yaml")
    job.wait().results("out")
    client.net.status()
    client.web3().eth.get_balance("0x...")  # web3.py, by the same providers

Each member is a class of its own: `jobs`, `wallet`, `workers`, `net`, `gov`, `store`. A job is an object; other methods
return plain facts, ready for JSON, with their "schema"; `hearth.client.reports` has their types. They raise HearthError
with a code, a hint and an exit status, print nothing and end no process.
What runs on a machine is beside it: `worker.manage.Provider(client, config)`, `keeper.manage.Keeping(client)`,
`hearth.local.market.LocalMarket`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hearth.client.doctor import Doctor
from hearth.client.face import refusing
from hearth.client.governance.gov import Gov
from hearth.client.jobs import Jobs
from hearth.client.net import Net
from hearth.client.nodes.workers import Workers
from hearth.client.session import Session, Tell, silent
from hearth.client.stored import Stored
from hearth.client.wallet import Wallet
from hearth.config.settings import settings_of

if TYPE_CHECKING:
    from web3 import Web3

    from hearth.base.files import AnyPath
    from hearth.chain.port import ChainPort
    from hearth.client.reports import Diagnosis
    from hearth.config.settings import Settings

__all__ = ["Client"]


@refusing
class Client:
    """One user's view of one market. The chain, the store and keys are opened when first needed."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        network: AnyPath | None = None,
        account: str | None = None,
        rpc: str | Sequence[str] | None = None,
        rpc_file: AnyPath | None = None,
        password_file: AnyPath | None = None,
        code: str | Sequence[str] | None = None,
        timeout: str | int | None = None,
        store: str | None = None,
        gateways: str | Sequence[str] | None = None,
        home: AnyPath | None = None,
        tell: Tell = silent,
        dry_run: bool = False,
        ask_password: Callable[[str], str] | None = None,
        port: ChainPort | None = None,
    ) -> None:
        """Build a client of the settings of the environment and the settings files.

        What is named here wins over those, as the flag of its name does: `network` is a name or a file, `account` a
        key's name or address, `code` the hash of contracts' code that is not ours and may be paid, `timeout` text or
        seconds, `home` the folder of keys and state (HEARTH_HOME). Whole `settings` instead are taken as they are.
        `tell` is called with a kind of progress and its facts, as docs/PYTHON.md lists them in "Progress"; `dry_run`
        signs, sends and writes nothing; `ask_password` is called with a question where no password file is given;
        `port` replaces the chain.
        Raises ConfigError and UsageError for settings that cannot be, and TypeError for what is of a wrong type and for
        `settings` with others beside.
        """
        given: dict[str, Any] = {
            "network": network,
            "account": account,
            "rpc": rpc,
            "rpc_file": rpc_file,
            "password_file": password_file,
            "code": code,
            "timeout": timeout,
            "store": store,
            "gateways": gateways,
            "home": home,
        }
        named = {name: value for name, value in given.items() if value is not None}
        if settings is not None and named:
            raise TypeError(f"settings are whole: {', '.join(named)} beside them would be lost")
        if settings is None:
            settings = settings_of(**named)
        self.session = session = Session(settings, tell=tell, dry_run=dry_run, ask_password=ask_password, port=port)
        session.program = True
        self.jobs = Jobs(session)
        self.wallet = Wallet(session)
        self.workers = Workers(self.jobs.reads)
        self.net = Net(self.jobs)
        self.gov = Gov(session)
        self.store = Stored(session)
        self._doctor = Doctor(session, self.wallet)

    @property
    def dry_run(self) -> bool:
        """Say whether nothing is signed, sent or written."""
        return self.session.dry_run

    def doctor(self) -> Diagnosis:
        """Look at what submitting needs: settings, network, RPC, contracts, account, store, container engine."""
        return self._doctor.diagnose()

    def web3(self) -> Web3:
        """Return web3.py on this client's providers, for what its own methods do not cover.

        Raises ChainError or ConfigError where the market cannot be had, TypeError where `port` speaks no JSON-RPC.
        """
        from web3 import Web3

        from hearth.chain.rpc import RpcChain
        from hearth.chain.web3_provider import PortProvider

        port = self.session.market.port
        if not isinstance(port, RpcChain):
            raise TypeError(f"{type(port).__name__} speaks no JSON-RPC")
        return Web3(PortProvider(port))

    def close(self) -> None:
        """Release what was opened."""
        self.session.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        shown = self.session.settings.shown()
        named = ", ".join(f"{name}={shown[name]!r}" for name in ("network", "account", "home") if shown[name])
        return f"<Client {named}{', dry_run=True' if self.dry_run else ''}>"
