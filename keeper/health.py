"""Show that the keeper lives: its metrics, and the probes of `hearth.daemon.health` with /status.

It is not ready while it cannot do its work: behind the chain, without gas money, or without a key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from prometheus_client import Histogram

from hearth.daemon.health import Health, Pages, Server
from hearth.daemon.metrics import Metrics

if TYPE_CHECKING:
    from keeper.reports import KeeperStatus

REBUILD_CAUSES: Final = ("reorg", "mismatch", "rpc_broken", "rpc_lies")
"""Why an index is rebuilt."""
_CYCLE_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class KeeperMetrics(Metrics):
    """Every metric of a keeper."""

    def __init__(self) -> None:
        super().__init__("keeper")
        gauge, counter = self.gauge, self.counter
        self.cycles = counter("cycles", "Cycles that ended well")
        self.failures_in_row = gauge("failures_in_row", "Failed cycles since the last good one")
        self.actions = counter(
            "actions",
            "Actions by what became of them: mined, refused, reverted, replaced, unworthy, unfunded, pending, dry",
            *("action", "outcome"),
        )
        self.lost_races = counter("lost_races", "Actions that somebody else did first", "action")
        self.rebuilds = counter("rebuilds", "Rebuilds of the index, by cause", "cause")
        for cause in REBUILD_CAUSES:  # a series that begins with its first event shows no increase
            self.rebuilds.labels(cause)
        self.logs = counter("logs", "Logs read")
        self.rewards = gauge("rewards_base_units", "Credited to the payee since its ledger began")
        self.profit = gauge("profit_base_units", "Rewards less gas since the ledger began")
        self.balance = gauge("balance_wei", "The account's coin for gas")
        self.jobs = gauge("jobs", "Jobs that have not ended")
        self.units = gauge("units", "Touched units that have not ended, by state", "state")
        self.nodes = gauge("nodes", "Registered nodes")
        self.ready_nodes = gauge("ready_nodes", "Nodes that can take a lease")
        self.resting = gauge(
            "resting", "Nodes and jobs for which nothing is proposed for a while, since proposals were lost", "what"
        )
        self.unreadable = counter("unreadable_parents", "Words of parents that no contract writes")
        self.ready = gauge("ready", "1 while the keeper can do its work")
        self.pending = gauge("pending_transactions", "Transactions that wait to be mined")
        self.cycle_seconds = Histogram(
            "hearth_keeper_cycle_seconds", "Length of a cycle", buckets=_CYCLE_BUCKETS, registry=self.registry
        )
        self.decide_seconds = Histogram(
            "hearth_keeper_decide_seconds", "Length of the decision", buckets=_CYCLE_BUCKETS, registry=self.registry
        )


class KeeperHealth(Health):
    """What the keeper says of itself: `beat` at the end of every cycle, read by the probes and people."""

    def __init__(self, stall: float, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stall, "no cycle has ended yet", clock)
        self.metrics = KeeperMetrics()
        self.status: KeeperStatus | None = None

    def beat(self, status: KeeperStatus, unready: str) -> None:
        """Record a cycle's end: its status, and why the keeper cannot do its work ("" where it can)."""
        self.status = status
        self._say(unready)

    def wait(self, late: str) -> None:
        """Record that the loop waits for a block, and why that is too long ("" where it is not)."""
        if late:
            self._say(late)
        self.turn()

    def stay(self, unready: str) -> None:
        """Record that the loop turns although a cycle failed: healthy, not ready."""
        self._say(unready)

    def _say(self, unready: str) -> None:
        self.unready = unready
        self.metrics.ready.set(0 if unready else 1)
        self.turn()

    def serve(self, address: tuple[str, int], hosts: Collection[str] = ()) -> Server:
        """Serve metrics, probes and /status, under the names of `hosts` too. Raises ConfigError as `Server` does."""
        pages: Pages = {"/status": lambda: self.status or {}}
        return Server(address, self.metrics.registry, self, pages, hosts=hosts, component="keeper")
