"""Explain one job to people, pure: what the keeper does about it, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hearth.protocol.types import Gate, JobId
from keeper.actions import Skip
from keeper.config import Config
from keeper.decide import decide
from keeper.match import gates
from keeper.snapshot import Snapshot, UnitRow

if TYPE_CHECKING:
    from keeper.reports import Explanation, UnitPlan


def explain_job(snapshot: Snapshot, config: Config, now: int, job: JobId) -> Explanation:
    """Return, ready for JSON, what the keeper would do about one job at `now` and why, and how the fleet fits it.

    Raises KeyError where the snapshot has no such job: it ended, or was never posted.
    """
    row = next((row for row in snapshot.jobs if row.id == job), None)
    if row is None:
        raise KeyError(job.hex())
    prefix = f"0x{job.hex()}/"
    lines: list[UnitPlan] = []
    for said in decide(snapshot, config, now):
        if isinstance(said, Skip):
            if said.id.startswith(prefix):
                lines.append({"id": said.id, "does": "nothing", "why": said.reason})
        else:
            for name in said.ids:
                if name.startswith(prefix):
                    lines.append({"id": name, "does": said.kind, "why": said.why})
    fits = gates(snapshot.nodes.fleet, row.terms, now, snapshot.nodes.immutables)
    return {
        "job": f"0x{job.hex()}",
        "block": snapshot.block,
        "time": now,
        "leases": row.terms.leases,
        "touched": row.header.touched if row.header else 1,
        "units": [{"index": unit.index, "state": unit.unit.state.name} for unit in _by_index(row.units)],
        "keeper": lines,
        "nodes": {gate.name.lower(): count for gate, count in sorted(fits.items())},
        "nodes_that_fit": fits.get(Gate.FITS, 0),
    }


def _by_index(rows: Iterable[UnitRow]) -> list[UnitRow]:
    return sorted(rows, key=lambda row: row.index)
