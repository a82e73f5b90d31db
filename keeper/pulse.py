"""Show that the keeper lives: Prometheus metrics, /healthz, /readyz and /status over HTTP, and the status file.

/healthz answers 503 when no cycle has ended for too long (the process hangs: restart it). /readyz answers 503 while
the keeper cannot do its work: behind the chain, without gas money, or without a key. Alert rules: docs/alerts.yml.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from hearth.base.errors import ConfigError
from hearth.base.files import replace_text

if TYPE_CHECKING:
    from keeper.reports import KeeperStatus

STATUS_FILE: Final = "status.json"
_CYCLE_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
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
        self.logs = Counter("hearth_keeper_logs_total", "Logs read", registry=r)
        self.gas_paid = Counter("hearth_keeper_gas_paid_wei_total", "Wei paid for gas since the start", registry=r)
        self.rewards = Gauge(
            "hearth_keeper_rewards_base_units", "Credited to the payee since its ledger began", registry=r
        )
        self.profit = Gauge("hearth_keeper_profit_base_units", "Rewards less gas since the ledger began", registry=r)
        self.balance = Gauge("hearth_keeper_balance_wei", "The account's coin for gas", registry=r)
        self.block = Gauge("hearth_keeper_block", "The block of the last cycle", registry=r)
        self.lag = Gauge("hearth_keeper_head_lag_seconds", "Age of the newest block when it was read", registry=r)
        self.jobs = Gauge("hearth_keeper_jobs", "Jobs that have not ended", registry=r)
        self.units = Gauge("hearth_keeper_units", "Touched units that have not ended, by state", ["state"], registry=r)
        self.nodes = Gauge("hearth_keeper_nodes", "Registered nodes", registry=r)
        self.ready_nodes = Gauge("hearth_keeper_ready_nodes", "Nodes that can take a lease", registry=r)
        self.ready = Gauge("hearth_keeper_ready", "1 while the keeper can do its work", registry=r)
        self.pending = Gauge("hearth_keeper_pending_transactions", "Transactions that wait to be mined", registry=r)
        self.cycle_seconds = Histogram(
            "hearth_keeper_cycle_seconds", "Length of a cycle", buckets=_CYCLE_BUCKETS, registry=r
        )
        self.decide_seconds = Histogram(
            "hearth_keeper_decide_seconds", "Length of the decision", buckets=_CYCLE_BUCKETS, registry=r
        )


class Pulse:
    """What the keeper says of itself: `beat` at the end of every cycle, read by the file, the probes and people."""

    def __init__(self, home: Path, stall: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.metrics = Metrics()
        self.status: Mapping[str, object] = {}
        self._file = home / STATUS_FILE
        self._stall, self._clock = stall, clock
        self._last = clock()
        self._unready = "no cycle has ended yet"

    def beat(self, status: KeeperStatus, unready: str) -> None:
        """Record a cycle's end: its status, and why the keeper cannot do its work ("" where it can)."""
        self.status, self._unready, self._last = status, unready, self._clock()
        self.metrics.ready.set(0 if unready else 1)
        replace_text(self._file, json.dumps(status, indent=1) + "\n")

    def turn(self, late: str) -> None:
        """Record that the loop waits for a block, and why that is too long ("" where it is not)."""
        self._last = self._clock()
        if late:
            self._unready = late
            self.metrics.ready.set(0)

    def stay(self, unready: str) -> None:
        """Record that the loop turns although a cycle failed: healthy, not ready."""
        self._unready, self._last = unready, self._clock()
        self.metrics.ready.set(0)

    def health(self) -> tuple[bool, str]:
        """Say whether the loop turns."""
        silent = self._clock() - self._last
        return silent < self._stall, f"the last cycle ended {silent:.0f} s ago"

    def readiness(self) -> tuple[bool, str]:
        """Say whether the keeper can do its work, and why not."""
        alive, why = self.health()
        return (alive and not self._unready, (self._unready or "ready") if alive else why)


class Server:
    """Serve a pulse over HTTP from a thread of its own. Raises ConfigError where the address cannot be had."""

    def __init__(self, pulse: Pulse, address: tuple[str, int]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                code, kind, body = _answer(pulse, self.path.partition("?")[0])
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Log no request."""

        try:
            self._server = ThreadingHTTPServer(address, Handler)
        except OSError as error:
            raise ConfigError(
                f"metrics.listen: {address[0]}:{address[1]} cannot be had: {error.strerror}",
                hint="choose another address in keeper.toml",
                component="keeper",
            ) from error
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="pulse", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _answer(pulse: Pulse, path: str) -> tuple[int, str, bytes]:
    if path == "/metrics":
        return 200, "text/plain; version=0.0.4; charset=utf-8", generate_latest(pulse.metrics.registry)
    if path == "/status":
        return 200, "application/json", json.dumps(pulse.status).encode()
    probes = {"/healthz": pulse.health, "/readyz": pulse.readiness}
    if path not in probes:
        return 404, "application/json", b'{"error":"there is /metrics, /healthz, /readyz and /status"}'
    good, why = probes[path]()
    return 200 if good else 503, "application/json", json.dumps({"ok": good, "why": why}).encode()
