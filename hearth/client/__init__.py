"""The Python API: `from hearth import Client`.

    client = Client()                       # the settings of the command line
    client.jobs.submit("job.yaml", wait=True)
    client.net.status()
    client.web3().eth.get_balance("0x...")  # web3.py, by the same providers

Each member is a class of its own: `jobs`, `wallet`, `workers`, `net`, `gov`, `store`. Methods return plain facts, ready
for JSON, with their "schema"; `hearth.client.reports` has their types. They raise HearthError with a code, a hint and
an exit status.
What runs on a machine is beside it: `worker.manage.Provider(client, config)`, `keeper.manage.Keeping(client)`,
`hearth.local.market.LocalMarket`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hearth.client.doctor import Doctor
from hearth.client.gov import Gov
from hearth.client.jobs import Jobs
from hearth.client.net import Net
from hearth.client.session import Session, Tell, silent
from hearth.client.stored import Stored
from hearth.client.wallet import Wallet
from hearth.client.workers import Workers

if TYPE_CHECKING:
    from web3 import Web3

    from hearth.chain.port import ChainPort
    from hearth.client.reports import Diagnosis
    from hearth.config.settings import Settings

__all__ = ["Client"]


class Client:
    """One user's view of one market. The chain, the store and keys are opened when first needed."""

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

        `tell` hears of progress; `dry_run` signs, sends and writes nothing; `ask_password` is called with a question
        where no password file is given; `port` replaces the chain.
        """
        self.session = session = Session(settings, tell=tell, dry_run=dry_run, ask_password=ask_password, port=port)
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
