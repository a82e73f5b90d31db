"""What a keeper's operator does with it: list the work, run it, ask what it said and why.

`Keeping(client)` is what `hearth keeper ...` calls; from Python it serves the same.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from hearth.base.errors import ConfigError
from hearth.base.files import AnyPath, path_of
from hearth.protocol.types import ZERO_ADDRESS

if TYPE_CHECKING:
    from hearth.client import Client
    from keeper.reports import KeeperBundle, KeeperExplanation, KeeperReload, KeeperStatus, KeeperWork
    from keeper.settings import Settings


class Keeping:
    """The keeper of a keeper.toml, or, without one, of a client's home folder."""

    def __init__(self, client: Client, config: AnyPath | None = None) -> None:
        """Read nothing yet."""
        self.session = client.session
        self._config = path_of(config)

    def list(self) -> KeeperWork:
        """Return the work that there is for a keeper now: what would be sent, and what it would earn."""
        from keeper.process import open_keeper
        from keeper.report import work

        with ExitStack() as stack:
            keeper = open_keeper(self._settings(signs=False), stack)
            keeper.market.identity.check()
            return work(keeper)

    def run(self, *, cycles: int | None = None) -> KeeperStatus:
        """Keep the market moving until SIGTERM, SIGINT or a number of cycles; with `dry_run` nothing is sent."""
        from hearth.daemon.reload import Reloader
        from keeper.process import open_keeper, run_keeper
        from keeper.settings import LIVE

        signs, reloader = not self.session.dry_run, None
        if self._config is not None:
            reloader = Reloader(self._config, lambda path: self._settings(signs=signs), LIVE)
            reloader.listen(lambda: None)
        with ExitStack() as stack:
            keeper = open_keeper(self._settings(signs=signs), stack)
            self.session.tell("note", {"text": f"keeping {self.session.network.name} as {keeper.address}"})
            run_keeper(keeper, stack, cycles, reloader)
            return keeper.status()

    def reload(self) -> KeeperReload:
        """Have the running keeper read its keeper.toml again, which is checked first; a dry run only checks it.

        Raises ConfigError for what is refused, NOT_RUNNING, KEEPER_SILENT, NO_CONFIG without a keeper.toml.
        """
        from hearth.chain.keys import read_key
        from hearth.daemon.reload import ask
        from hearth.daemon.signer import lock_path

        if self._config is None:
            raise ConfigError(
                "this keeper has no settings file to read again",
                hint="hearth keeper reload --config FILE, of which it was started; one without is started again",
                code="NO_CONFIG",
                component="keeper",
            )
        settings, dry_run = self._settings(signs=True), self.session.dry_run
        settings.config(self.session.asset, ZERO_ADDRESS), settings.withdraw_threshold(self.session.asset)
        if settings.account is None:
            raise ConfigError(
                "a keeper without a key is found by nobody",
                hint="systemctl reload hearth-keeper, or kill -HUP its process",
                code="NOT_RUNNING",
                component="keeper",
            )
        lock = lock_path(read_key(settings.account.keystore), settings.home)
        applied, restart = ([], []) if dry_run else ask(lock, settings.home, "keeper")
        return {"schema": "hearth.keeper.reload/1", "applied": applied, "restart": restart, "dry_run": dry_run}

    def status(self) -> KeeperStatus:
        """Return what the keeper last said of itself: readiness, profit and loss, what it did."""
        from keeper.status import read_status

        return read_status(self._settings(signs=False).home)

    def explain(self, job: str) -> KeeperExplanation:
        """Return what a keeper would do about a job and why, and how many nodes fit it."""
        from keeper.process import open_keeper
        from keeper.report import explain

        job_id = self.session.job_id(job)
        with ExitStack() as stack:
            keeper = open_keeper(self._settings(signs=False), stack)
            keeper.market.identity.check()
            return explain(keeper, job_id)

    def bundle(self, log: AnyPath | None = None) -> KeeperBundle:
        """Return what whoever helps has to know of this keeper, with every secret taken out."""
        from keeper.bundle import bundle

        signs = self._config is not None
        return bundle(self._settings(signs=signs), self.session.settings, path_of(log))

    def _settings(self, *, signs: bool) -> Settings:
        """Return the settings of a keeper.toml, or, without one, those that follow from this client's."""
        from hearth.base.files import make_private
        from hearth.config.settings import network_file, rpc_urls
        from keeper.settings import load, parse

        if self._config is not None:
            settings = load(self._config)
            return settings if signs else settings.model_copy(update={"account": None})
        home = make_private(self.session.settings.home) / "keeper"
        data: dict[str, Any] = {
            "network": str(network_file(self.session.settings).resolve()),
            "home": str(home),
            "rpc": rpc_urls(self.session.settings, self.session.network),
            "code": self.session.settings.code,
        }
        if self.session.local:
            # A local chain has blocks of a second and nobody to share the work with.
            data |= {"poll": 0.2, "work": {"jitter": "0s", "latency": "0s", "max_loss": "unlimited"}}
            data |= {"metrics": {"listen": ""}}
            if self.session.network.asset.address is not None:
                data["price"] = {"coin": "1"}
        if signs:
            key = self.session.key("keeper")
            password = self.session.password_file(key, "a keeper")
            data["account"] = {"keystore": key.path, "password_file": password}
        return parse(data, home / "keeper.toml")
