"""Run and question a keeper: list, run, status, explain."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hearth.base.errors import ConfigError
from hearth.client.views import job_hex
from hearth.client.workers import Workers

if TYPE_CHECKING:
    from keeper.settings import Settings as KeeperSettings


class Keepers(Workers):
    """A keeper of this home folder, or of a keeper.toml."""

    def keeper_list(self, *, config: Path | None = None) -> dict[str, Any]:
        """Return the work that there is for a keeper now: what would be sent, and what it would earn."""
        from keeper.process import open_keeper
        from keeper.report import work

        with ExitStack() as stack:
            keeper = open_keeper(self._keeper_settings(config, signs=False), stack)
            keeper.market.check()
            return work(keeper)

    def keeper_run(self, *, config: Path | None = None, cycles: int | None = None) -> dict[str, Any]:
        """Keep the market moving until SIGTERM, SIGINT or a number of cycles; with `dry_run` nothing is sent."""
        from keeper.process import open_keeper, run_keeper

        settings = self._keeper_settings(config, signs=not self.dry_run)
        with ExitStack() as stack:
            keeper = open_keeper(settings, stack)
            self.tell("note", {"text": f"keeping {self.network.name} as {keeper.address}"})
            run_keeper(keeper, stack, cycles)
            return keeper.status()

    def keeper_status(self, *, config: Path | None = None) -> dict[str, Any]:
        """Return what the keeper last said of itself: readiness, profit and loss, what it did."""
        from keeper.status import read_status

        return read_status(self._keeper_settings(config, signs=False).home)

    def keeper_explain(self, job: str, *, config: Path | None = None) -> dict[str, Any]:
        """Return what a keeper would do about a job and why, and how many nodes fit it."""
        from keeper.process import open_keeper
        from keeper.report import explain

        job_id = self.job_id(job)
        with ExitStack() as stack:
            keeper = open_keeper(self._keeper_settings(config, signs=False), stack)
            keeper.market.check()
            told = explain(keeper, job_id)
        assert told["job"] == job_hex(job_id)
        return told

    def _keeper_settings(self, config: Path | None, *, signs: bool) -> KeeperSettings:
        """Return the settings of a keeper.toml, or, without one, those that follow from this client's."""
        from hearth.base.files import make_private
        from hearth.config.settings import network_file, rpc_urls
        from keeper.settings import load, parse

        if config is not None:
            settings = load(config)
            return settings if signs else settings.model_copy(update={"account": None})
        home = make_private(self.settings.home) / "keeper"
        data: dict[str, Any] = {
            "network": str(network_file(self.settings).resolve()),
            "home": str(home),
            "rpc": rpc_urls(self.settings, self.network),
        }
        if self.local:
            # A local chain has blocks of a second and nobody to share the work with.
            data |= {"poll": 0.2, "work": {"jitter": "0s", "latency": "0s", "max_loss": "unlimited"}}
            data |= {"metrics": {"listen": ""}}
            if self.network.asset.address is not None:
                data["price"] = {"coin": "1"}
        if signs:
            key = self.key("keeper")
            beside = key.path.with_suffix(".password")
            password = self.settings.password_file or (beside if beside.is_file() else None)
            if password is None:
                raise ConfigError(
                    f"a keeper reads the password of {key.name} from a file",
                    hint="use --password-file FILE",
                    code="NO_PASSWORD",
                    component="wallet",
                )
            data["account"] = {"keystore": key.path, "password_file": password}
        return parse(data, home / "keeper.toml")
