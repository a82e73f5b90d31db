"""Show that the keeper lives: its metrics, and the probes of `hearth.daemon.health` with /status.

It is not ready while it cannot do its work: behind the chain, without gas money, or without a key.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from hearth.daemon.health import Health, Server

if TYPE_CHECKING:
    from keeper.reports import KeeperStatus

REBUILD_CAUSES: Final = ("reorg", "mismatch", "rpc_broken", "rpc_lies")
"""Why an index is rebuilt."""
_CYCLE_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class KeeperMetrics:
    """Every metric of a keeper, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        r = self.registry
        self.cycles = Counter("hearth_keeper_cycles_total", "Cycles that ended well", registry=r)
        self.failures = Counter(
            "hearth_keeper_cycle_failures_total", "Cycles that failed, by error", ["error"], registry=r
        )
        self.failures_in_row = Gauge(
            "hearth_keeper_failures_in_row", "Failed cycles since the last good one", registry=r
        )
        self.actions = Counter(
            "hearth_keeper_actions_total",
            "Actions by what became of them: mined, refused, reverted, unworthy, pending, dry",
            ["action", "outcome"],
            registry=r,
        )
        self.lost_races = Counter(
            "hearth_keeper_lost_races_total", "Actions that somebody else did first", ["action"], registry=r
        )
        self.rebuilds = Counter(
            "hearth_keeper_rebuilds_total", "Rebuilds of the index, by cause", ["cause"], registry=r
        )
        for cause in REBUILD_CAUSES:  # a series that begins with its first event shows no increase
            self.rebuilds.labels(cause)
        self.logs = Counter("hearth_keeper_logs_total", "Logs read", registry=r)
        self.gas_paid = Counter("hearth_keeper_gas_paid_wei_total", "Wei paid for gas since the start", registry=r)
        self.rewards = Gauge(
            "hearth_keeper_rewards_base_units", "Credited to the payee since its ledger began", registry=r
        )
        self.profit = Gauge("hearth_keeper_profit_base_units", "Rewards less gas since the ledger began", registry=r)
        self.balance = Gauge("hearth_keeper_balance_wei", "The account's coin for gas", registry=r)
        self.block = Gauge("hearth_keeper_block", "The block of the last cycle", registry=r)
        self.lag = Gauge("hearth_keeper_head_lag_seconds", "Age of the newest block", registry=r)
        self.jobs = Gauge("hearth_keeper_jobs", "Jobs that have not ended", registry=r)
        self.units = Gauge("hearth_keeper_units", "Touched units that have not ended, by state", ["state"], registry=r)
        self.nodes = Gauge("hearth_keeper_nodes", "Registered nodes", registry=r)
        self.ready_nodes = Gauge("hearth_keeper_ready_nodes", "Nodes that can take a lease", registry=r)
        self.resting = Gauge(
            "hearth_keeper_resting",
            "Nodes and jobs for which nothing is proposed for a while, since proposals were lost",
            ["what"],
            registry=r,
        )
        self.ready = Gauge("hearth_keeper_ready", "1 while the keeper can do its work", registry=r)
        self.gas_capped = Gauge(
            "hearth_keeper_gas_capped", "1 while the limits on gas keep everything back", registry=r
        )
        self.settings_refused = Gauge(
            "hearth_keeper_settings_refused", "1 since a reload whose keeper.toml was refused", registry=r
        )
        self.pending = Gauge("hearth_keeper_pending_transactions", "Transactions that wait to be mined", registry=r)
        self.cycle_seconds = Histogram(
            "hearth_keeper_cycle_seconds", "Length of a cycle", buckets=_CYCLE_BUCKETS, registry=r
        )
        self.decide_seconds = Histogram(
            "hearth_keeper_decide_seconds", "Length of the decision", buckets=_CYCLE_BUCKETS, registry=r
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

    def serve(self, address: tuple[str, int]) -> Server:
        """Serve metrics, probes and /status. Raises ConfigError where the address cannot be had."""
        return Server(address, self.metrics.registry, self, {"/status": lambda: self.status or {}}, component="keeper")
