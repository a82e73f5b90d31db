"""A look at what submitting needs: settings, network, RPC, contracts, account, store, container engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from hearth.base.errors import ConfigError, HearthError

if TYPE_CHECKING:
    from hearth.client.reports import Check, Diagnosis, Level
    from hearth.client.session import Session
    from hearth.client.wallet import Wallet


class Doctor:
    """Look at one session's needs."""

    def __init__(self, session: Session, wallet: Wallet) -> None:
        """Look at nothing yet."""
        self.session = session
        self._wallet = wallet

    def diagnose(self) -> Diagnosis:
        """Return each finding with PASS, WARN or FAIL and what mends it."""
        rows: list[Check] = []

        def look(name: str, part: Callable[[], str], level: Level = "FAIL") -> bool:
            try:
                rows.append({"name": name, "level": "PASS", "detail": part(), "fix": ""})
            except HearthError as error:
                rows.append({"name": name, "level": level, "detail": error.message, "fix": error.hint})
                return False
            return True

        look("settings", lambda: ", ".join(f"{k}={v}" for k, v in self.session.settings.shown().items() if v))
        if look("network", lambda: f"{self.session.network.name}, chain {self.session.network.chain_id}") and look(
            "rpc", self._see_rpc
        ):
            look("account", self._see_account, "WARN")
        look("store", self._see_store)
        look("docker", see_engine, "WARN")
        return {"schema": "hearth.doctor/1", "result": worst(rows), "checks": rows}

    # ---- inside ----

    def _see_rpc(self) -> str:
        head = self.session.market.port.head()
        return f"the contracts are the network file's, their code is known; block {head.number}"

    def _see_account(self) -> str:
        balance = self._wallet.balance()
        return f"{balance['address']} holds {balance['text']['native']}, {balance['text']['credit']} of credit"

    def _see_store(self) -> str:
        status = self.session.store.status()
        if not status.reachable:
            raise ConfigError(f"{status.url}: {status.detail}", hint="hearth init", code="STORE_DOWN")
        if not status.writable:
            why = f"no job can be stored in {status.url} ({status.detail})"
            raise ConfigError(why, hint="make it writable, or name another in stores: hearth init", code="STORE_DOWN")
        return f"{status.url}: {status.detail}"


def worst(rows: Iterable[Check]) -> Level:
    """Return the worst level of what was found, PASS of nothing."""
    levels = {row["level"] for row in rows}
    return "FAIL" if "FAIL" in levels else "WARN" if "WARN" in levels else "PASS"


def see_engine() -> str:
    """Return the version of this machine's container engine. Raises ConfigError NO_DOCKER."""
    from docker.errors import DockerException

    from hearth.client.posting.engine import connect, start_engine

    engine = connect(10)
    try:
        version = str(engine.version().get("Version", "?"))
    except DockerException as error:
        raise ConfigError(f"the container engine fails: {error}", hint=start_engine(), code="NO_DOCKER") from error
    finally:
        engine.close()
    return f"engine {version}"
