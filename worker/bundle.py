"""Collect what whoever helps a provider has to know: `hearth worker bundle`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hearth.daemon.bundle import (
    LAST,
    Sieve,
    ids_in,
    journal_rows,
    known_secrets,
    last_lines,
    listing,
    part_of,
    rpc_of,
    transactions,
    versions,
)

if TYPE_CHECKING:
    from hearth.client.reports import Check
    from hearth.config.settings import Settings as UserSettings
    from worker.reports import WorkerBundle
    from worker.settings import Settings

_ATTEMPTS: Final = (
    "SELECT job, idx, attempts, stage, moment, tries, outcome, detail, changed FROM attempts "
    f"ORDER BY changed DESC LIMIT {LAST}"
)


def bundle(
    user: UserSettings, read: Callable[[], Settings], doctor: Callable[[], list[Check]], log: Path | None
) -> WorkerBundle:
    """Return the bundle of one worker.toml, which `read` returns, with the rows that `doctor` returns.

    `user` are the settings of whoever asks. What cannot be had is named in `missing`: help is asked for where things
    are broken.
    """
    missing: dict[str, str] = {}
    settings: Settings | None = part_of(read, missing, "settings")
    parts: dict[str, Callable[[], Any]] = {}
    if settings is not None:
        home = settings.home
        parts = {
            "settings": lambda: settings.model_dump(mode="json"),
            "doctor": doctor,
            "process": lambda: _process(home),
            "attempts": lambda: journal_rows(home / "work.db", _ATTEMPTS),
            "transactions": lambda: transactions(home),
            "home": lambda: listing(home),
        }
    if log is not None:
        parts["log"] = lambda: last_lines(log)
    facts = {name: part_of(make, missing, name) for name, make in parts.items()}
    sieve = Sieve(_secrets(user, settings), _ids(facts))
    told = {name: sieve.value(fact) for name, fact in facts.items()}
    return {
        "schema": "hearth.worker.bundle/1",
        "made": int(time.time()),
        "versions": versions(),
        "settings": told.get("settings"),
        "doctor": told.get("doctor"),
        "process": told.get("process"),
        "attempts": told.get("attempts"),
        "transactions": told.get("transactions"),
        "home": told.get("home"),
        "log": told.get("log"),
        "missing": sieve.value(missing),
    }


def _process(home: Path) -> dict[str, Any] | None:
    from worker.status import read_status

    said = read_status(home)
    return None if said is None else dict(said)


def _secrets(user: UserSettings, settings: Settings | None) -> Iterator[str]:
    """Yield what must stand nowhere, of the worker's settings and of this user's."""
    yield from known_secrets([*user.rpc, *user.gateways, *rpc_of(user.network)], [user.password_file])
    if settings is not None:
        urls = [*settings.rpc, *settings.stores, *rpc_of(settings.network)]
        yield from known_secrets(urls, [settings.account.password_file])


def _ids(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids that the worker itself wrote down: of them enough is kept to tell one from another."""
    yield from ids_in(facts.get("transactions"))
    for row in facts.get("attempts") or ():
        yield row["job"]
    yield from (facts.get("process") or {}).get("reasons", {})
