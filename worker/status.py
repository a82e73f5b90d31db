"""What a worker says of itself in a file of its home: whether it works, what waits, and why it takes no more."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hearth.base.files import replace_text
from hearth.base.text import brief, one_line, plain
from hearth.protocol.types import Gate, NodeId, Status
from worker.attempt.underway import Running
from worker.decide import Action, Reason, Skip, Snapshot
from worker.disk import Disk
from worker.gpu.pool import GpuState
from worker.holds import Holds
from worker.home import runs_as
from worker.mode import read_mode
from worker.reason_texts import REASON_TEXTS

if TYPE_CHECKING:
    from worker.reports import SkipReason, WorkerFacts, WorkerProcess
    from worker.watch import Earnings, Watcher

STATUS_FILE: Final = "status.json"
STATUS_REASONS: Final = 500
"""Jobs whose reasons the status file names."""
STATUS_TEXT_CHARS: Final = 500
"""Characters of what a store says."""


def read_status(home: Path) -> WorkerProcess | None:
    """Return what a worker last said of itself, None where it never ran; "alive" says whether its process lives.

    Raises ConfigError where the file is not a worker's.
    """
    from hearth.daemon.status import read_status_file
    from worker.reports import WorkerProcess

    status = read_status_file(home / STATUS_FILE, WorkerProcess, component="worker")
    if status is None:
        return None
    status["alive"] = status["state"] != "stopped" and runs_as(home, status["pid"])
    return status


def lent_gpus(home: Path) -> frozenset[str]:
    """Return the GPUs that jobs of the worker of a home have now, by its own word; none where it does not run."""
    said = read_status(home)
    if said is None or not said.get("alive"):
        return frozenset()
    return frozenset(one["uuid"] for one in said.get("gpus", ()) if one["state"] == "lent")


def write_status(
    home: Path, state: str, *, node: NodeId, operator: str, earnings: Earnings, facts: WorkerFacts | None = None
) -> None:
    """Say how this process stands, as far as the disk has room for it; `facts` are those of the block last read."""
    said: WorkerProcess = {
        "schema": "hearth.worker/1",
        "pid": os.getpid(),
        "state": state,
        "node": int(node),
        "operator": operator,
        "mode": read_mode(home),
        "updated": int(time.time()),
        "earnings": {k: str(v) if isinstance(v, int) else v for k, v in asdict(earnings).items()},
    }
    if facts is not None:
        said = {**said, **facts}
    with suppress(OSError):  # a full disk must not stop a worker from submitting
        replace_text(home / STATUS_FILE, json.dumps(said))


def facts_of(
    snapshot: Snapshot,
    now: int,
    status: Status,
    *,
    steps: Iterable[Action | Skip],
    watcher: Watcher,
    holds: Holds,
    disk: Disk,
    active: Iterable[Running],
    pending: Iterable[str],
    gateways: Iterable[str] = (),
    gpus: Iterable[GpuState] = (),
) -> WorkerFacts:
    """Return what the file says of a block: `steps` were decided there, `active` and `pending` are under way.

    `gateways` are those that the chain's manifest of the node names, `gpus` those that it gives to jobs.
    """
    node = snapshot.node
    return {
        "status": status.name.lower(),
        "hold": None if holds.now is None else holds.now.value,
        "block": snapshot.block,
        "chain_time": now,
        "last_beat": node.state.beat,
        "busy": node.state.busy,
        "slots": node.offer.slots,
        "stake": str(node.stake),
        "stake_short": str(holds.stake_short),
        "credit": str(snapshot.credit),
        "disk_free": disk.free,
        "disk_reserve": disk.reserve,
        "store_refusal": brief(one_line(holds.refusal), STATUS_TEXT_CHARS),
        "gas_capped": holds.capped,
        "gateways": list(gateways),
        "attempts": [
            {
                "job": work.key.job.hex(),
                "index": work.key.index,
                "attempt": work.key.attempts,
                "phase": work.phase,
                "done": work.done,
                "total": work.total,
                "since": int(work.started),
            }
            for work in active
        ],
        "gpus": [{"uuid": one.uuid, "name": one.name, "state": one.state, "why": plain(one.why)} for one in gpus],
        "pending": list(pending),
        "reasons": _reasons_of(steps, watcher),
    }


def _reasons_of(steps: Iterable[Action | Skip], watcher: Watcher) -> dict[str, list[SkipReason]]:
    """Return why each job is left alone, of so many as the file has room for, by the job's id."""
    reasons: dict[str, list[SkipReason]] = {}
    for step in steps:
        if isinstance(step, Skip) and (step.job.hex() in reasons or len(reasons) < STATUS_REASONS):
            reasons.setdefault(step.job.hex(), []).append(_line(step.reason, step.detail, step.index))
    for job, gate in watcher.never_read().items():
        if len(reasons) < STATUS_REASONS:
            reasons.setdefault(job.hex(), []).append(_line(gate, "this node's offer can never serve the job"))
    for job in watcher.waiting():
        if job.hex() not in reasons and len(reasons) < STATUS_REASONS:
            reasons[job.hex()] = [_line(Reason.AWAITS_TURN)]
    return reasons


def _line(reason: Gate | Reason, detail: str = "", index: int | None = None) -> SkipReason:
    """Return why a unit is left alone, for no index a whole job; a reason without detail is said in its own words."""
    return {"index": index, "reason": reason.name.lower(), "detail": plain(detail or REASON_TEXTS[reason])}
