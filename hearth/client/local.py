"""The local chain, settings files and a look at this machine: devnet, init, doctor."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hearth.base.errors import ConfigError, HearthError
from hearth.client.wallet import Wallet

if TYPE_CHECKING:
    from collections.abc import Callable

DEVNET_ACCOUNTS: Final = {"dev": 1, "worker": 2, "keeper": 3, "worker2": 4, "worker3": 5, "provider": 6}
"""The keys that a devnet makes, by the index of anvil's public account."""


class Local(Wallet):
    """What needs no market, or makes one."""

    def devnet_up(self, *, port: int = 8545, erc20: bool = False, block_time: int = 1) -> dict[str, Any]:
        """Start a local chain with the market on it, and keys of its public accounts: dev, worker, keeper and more."""
        from hearth.config.settings import make_private
        from hearth.local import devnet

        home = make_private(self.settings.home)
        self.tell("step", {"text": "starting the chain and the market"})
        running = devnet.up(home, port, erc20=erc20, block_time=block_time)
        made = [self._devnet_key(name, index) for name, index in DEVNET_ACCOUNTS.items()]
        return {
            "schema": "hearth.devnet/1",
            "running": True,
            "url": running.url,
            "pid": running.pid,
            "network_file": str(running.network_file),
            "started": running.started,
            "deployed": running.deployed,
            "contracts": running.network.contracts,
            "asset": running.network.asset.symbol,
            "keys": made,
        }

    def devnet_down(self, *, wipe: bool = False) -> dict[str, Any]:
        """Stop the local chain; its state is kept unless `wipe`."""
        from hearth.local import devnet

        stopped = devnet.down(self.settings.home)
        if wipe:
            devnet.wipe(self.settings.home)
        return {"schema": "hearth.devnet/1", "running": False, "stopped": stopped, "wiped": wipe}

    def init(self, *, folder: Path | None = None, template: str = "wasm") -> dict[str, Any]:
        """Write hearth.toml and the files of a template (a job and its program); what exists is left alone."""
        from hearth.local import templates

        made = templates.write(folder or Path(), template, self.settings.network, dry_run=self.dry_run)
        return {
            "schema": "hearth.init/1",
            "template": template,
            "written": [str(path) for path in made.written],
            "kept": [str(path) for path in made.kept],
            "dry_run": self.dry_run,
        }

    def convert(self, file: Path) -> dict[str, Any]:
        """Return the job that says what another system's job file says, and what could not be carried over."""
        from hearth.base.errors import NotFoundError
        from hearth.spec import as_data
        from hearth.spec.convert import convert

        try:
            raw = file.read_bytes()
        except OSError as error:
            raise NotFoundError(
                f"{file} cannot be read: {error.strerror}", hint="hearth convert --help", code="NO_SPEC_FILE"
            ) from error
        made = convert(raw, str(file))
        return {
            "schema": "hearth.convert/1",
            "format": made.format.name,
            "job": as_data(made.spec),
            "notes": [{"key": note.key, "why": note.why} for note in made.notes],
        }

    def doctor(self) -> dict[str, Any]:
        """Look at what submitting needs: settings, network, RPC, contracts, account, store, container engine."""
        rows: list[dict[str, str]] = []

        def look(name: str, part: Callable[[], str], level: str = "FAIL") -> bool:
            try:
                rows.append({"name": name, "level": "PASS", "detail": part(), "fix": ""})
            except HearthError as error:
                rows.append({"name": name, "level": level, "detail": error.message, "fix": error.hint})
                return False
            return True

        look("settings", lambda: ", ".join(f"{k}={v}" for k, v in self.settings.shown().items() if v))
        if look("network", lambda: f"{self.network.name}, chain {self.network.chain_id}") and look(
            "rpc", self._see_rpc
        ):
            look("account", self._see_account, "WARN")
        look("store", self._see_store)
        look("docker", _see_docker, "WARN")
        worst = next((level for level in ("FAIL", "WARN") if any(row["level"] == level for row in rows)), "PASS")
        return {"schema": "hearth.doctor/1", "result": worst, "checks": rows}

    def demo(self, *, keep: bool = False, port: int = 0) -> dict[str, Any]:
        """Show the market at work on a local chain of its own and return what `net_verify` says of it."""
        from hearth.local.demo import run_demo

        return run_demo(self.tell, keep=keep, port=port)

    def completion(self, shell: str) -> str:
        """Return the completion script of a shell: bash, zsh or fish."""
        from click.shell_completion import get_completion_class

        from hearth.cli.root import root

        kind = get_completion_class(shell)
        if kind is None:
            raise ConfigError(f"{shell} is not known", hint="hearth completion bash|zsh|fish", code="NO_SHELL")
        return kind(root, {}, "hearth", "_HEARTH_COMPLETE").source()

    # ---- inside ----

    def _devnet_key(self, name: str, index: int) -> dict[str, str]:
        """Make the key file of a public account with a password beside it, or find it."""
        from hearth.chain.keys import create_key, list_keys
        from hearth.local.devnet import KEYS

        folder = self.settings.keys_folder
        known = {key.name: key for key in list_keys(folder)}
        if name in known:
            return {"name": name, "address": known[name].address}
        password = secrets.token_hex(16)
        key = create_key(folder, name, password, secret=bytes.fromhex(KEYS[index][2:]), devnet=True)
        beside = key.path.with_suffix(".password")
        beside.touch(mode=0o600)
        beside.write_text(password + "\n", encoding="utf-8")
        return {"name": name, "address": key.address}

    def _see_rpc(self) -> str:
        head = self.market.port.head()
        return f"the contracts are the network file's; block {head.number}"

    def _see_account(self) -> str:
        balance = self.wallet_balance()
        return f"{balance['address']} holds {balance['text']['native']}, {balance['text']['credit']} of credit"

    def _see_store(self) -> str:
        status = self.store.status()
        if not status.reachable:
            raise ConfigError(f"{status.url}: {status.detail}", hint="hearth init", code="STORE_DOWN")
        return f"{status.url}: {status.detail}"


def _see_docker() -> str:
    import docker
    from docker.errors import DockerException

    try:
        engine = docker.from_env(timeout=10)
        version = str(engine.version().get("Version", "?"))
        engine.close()
    except DockerException as error:
        raise ConfigError(
            f"no container engine answers here ({error}): tags cannot be resolved, name images by digest",
            hint="start Docker",
            code="NO_DOCKER",
        ) from error
    return f"engine {version}"
