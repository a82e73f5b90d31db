"""What one cycle of the keeper did, and the document that tells it: /status, status.json, `hearth keeper status`."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hearth.base.errors import NotFoundError
from hearth.base.files import replace_text
from hearth.chain.port import Block
from hearth.daemon.ledger import Ledger
from hearth.protocol.units import Asset
from keeper.actions import Action, Skip
from keeper.index import Index
from keeper.snapshot import JobRow, Snapshot

if TYPE_CHECKING:
    from keeper.reports import ActionOutcome, KeeperStatus, ListedJob

STATUS_FILE: Final = "status.json"
MAX_LISTED: Final = 500
"""Jobs and skips that the document lists."""


@dataclass(slots=True)
class Cycle:
    """What one cycle read and did. `balance` is the account's coin in wei."""

    head: Block
    snapshot: Snapshot
    said: list[Action | Skip]
    balance: int
    outcomes: list[ActionOutcome] = field(default_factory=list)
    unready: str = ""
    """Why nothing was sent, "" where all is well."""


def status_of(
    cycle: Cycle, index: Index, ledger: Ledger, *, network: str, asset: Asset, account: str | None, payee: str, at: int
) -> KeeperStatus:
    """Return the document of a cycle that ended at second `at`; `account` is None in a dry run."""
    snapshot = cycle.snapshot
    skips = [one for one in cycle.said if isinstance(one, Skip)]
    rewards = ledger.rewards(index.credited)
    return {
        "schema": "hearth.keeper/1",
        "pid": os.getpid(),
        "at": at,
        "network": network,
        "block": cycle.head.number,
        "time": cycle.head.timestamp,
        "account": account,
        "payee": payee,
        "ready": not cycle.unready,
        "why": cycle.unready,
        "balance_wei": str(cycle.balance),
        "gas_price_wei": str(snapshot.gas_price),
        "nodes": len(index.fleet),
        "nodes_ready": len(snapshot.nodes.ids),
        "jobs": len(index),
        "units": {state.name.lower(): count for state, count in index.states().items()},
        "profit_and_loss": {
            "asset": asset.symbol,
            "rewards": str(rewards),
            "gas_wei": str(ledger.gas_paid),
            "gas": str(ledger.coin_cost),
            "profit": str(rewards - ledger.coin_cost),
            "mined": dict(ledger.mined),
        },
        "actions": cycle.outcomes,
        "skips": [{"id": one.id, "why": one.reason} for one in skips[:MAX_LISTED]],
        "skips_left_out": max(0, len(skips) - MAX_LISTED),
        "list": [_listed(row) for row in sorted(snapshot.jobs, key=lambda row: row.id)[:MAX_LISTED]],
    }


def _listed(row: JobRow) -> ListedJob:
    states = Counter(unit.unit.state.name.lower() for unit in row.units)
    return {
        "job": f"0x{row.id.hex()}",
        "leases": row.terms.leases,
        "touched": row.header.touched if row.header else 1,
        "units": dict(states),
        "keeper_fee": str(row.terms.keeper_fee),
        "ceiling": str(row.terms.ceiling),
        "deadline": row.terms.deadline,
    }


def write_status(home: Path, told: KeeperStatus) -> None:
    """Leave a document in the keeper's state folder, for other processes, as far as the disk has room for it."""
    with suppress(OSError):  # a full disk must not stop a keeper from acting
        replace_text(home / STATUS_FILE, json.dumps(told, indent=1) + "\n")


def read_status(home: Path, *, now: float | None = None) -> KeeperStatus:
    """Return what the keeper whose state folder is `home` last said, its age in seconds, and whether it still runs.

    Raises NotFoundError where no keeper has run there, ConfigError where the file is not a keeper's.
    """
    from hearth.daemon.status import process_lives, read_status_file
    from keeper.reports import KeeperStatus

    told = read_status_file(home / STATUS_FILE, KeeperStatus, component="keeper")
    if told is None:
        raise NotFoundError(
            f"no keeper has run in {home}", hint="hearth keeper run", component="keeper", code="NO_KEEPER"
        )
    told["alive"] = process_lives(told["pid"])
    return with_age(told, time.time() if now is None else now)


def with_age(told: KeeperStatus, now: float) -> KeeperStatus:
    """Return a document with its age in seconds at second `now`."""
    return {**told, "age": int(now - told["at"])}
