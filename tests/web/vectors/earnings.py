"""What each node of recorded markets earned and lost, as a worker books it; the logs are those of `books`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hearth.protocol.types import NodeId
from tests.web.vectors import books
from worker.watch import Watcher


def cases() -> dict[str, Any]:
    """Return by market the books of each node: its lines in order, and their sums."""
    return {
        name: [_books(history, node) for node in (history.node, history.other)]
        for name, history in books.lived().items()
    }


def _books(history: Any, node: NodeId) -> dict[str, Any]:
    watcher = Watcher(history.market, node)
    network = history.network
    for log in history.port.logs([network.jobs, network.nodes]):
        watcher._apply(log)
    lines = [
        [one.block, one.kind, None if one.job is None else f"0x{one.job.hex()}", str(one.amount), str(one.fee)]
        for one in watcher._payments.values()
    ]
    total = watcher.earnings
    return {
        "node": node,
        "lines": lines,
        "earnings": {**{k: str(v) for k, v in asdict(total).items()}, "net": str(total.net)},
    }
