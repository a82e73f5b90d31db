"""Collect what whoever helps a keeper's operator has to know: `hearth keeper bundle`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hearth.daemon.bundle import (
    Sieve,
    ids_in,
    known_secrets,
    last_lines,
    listing,
    part_of,
    rpc_of,
    transactions,
    versions,
)

if TYPE_CHECKING:
    from hearth.config.settings import Settings as UserSettings
    from keeper.reports import KeeperBundle
    from keeper.settings import Settings


def bundle(settings: Settings, user: UserSettings, log: Path | None) -> KeeperBundle:
    """Return the bundle of one keeper's settings; what cannot be had is named in `missing`."""
    from keeper.status import read_status

    missing: dict[str, str] = {}
    parts: dict[str, Callable[[], Any]] = {
        "settings": lambda: settings.model_dump(mode="json"),
        "process": lambda: dict(read_status(settings.home)),
        "transactions": lambda: transactions(settings.home),
        "home": lambda: listing(settings.home),
        "log": lambda: None if log is None else last_lines(log),
    }
    facts = {name: part_of(make, missing, name) for name, make in parts.items()}
    urls = [*settings.rpc, *user.rpc, *rpc_of(settings.network)]
    passwords = [user.password_file, None if settings.account is None else settings.account.password_file]
    ids = [*ids_in(facts["transactions"]), *(row["job"] for row in (facts["process"] or {}).get("list", []))]
    sieve = Sieve(known_secrets(urls, passwords), ids)
    told = {name: sieve.value(fact) for name, fact in facts.items()}
    return {
        "schema": "hearth.keeper.bundle/1",
        "made": int(time.time()),
        "versions": versions(),
        "settings": told["settings"],
        "process": told["process"],
        "transactions": told["transactions"],
        "home": told["home"],
        "log": told["log"],
        "missing": sieve.value(missing),
    }
