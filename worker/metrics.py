"""What the worker tells a monitor: Prometheus metrics, /healthz (the loop turns) and /readyz (it takes work)."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

STALE_SECONDS: Final = 60.0
"""A loop that has not turned for this long is not healthy."""


class Metrics:
    """Count and serve. `ready` and `pulse` are the loop's."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.ready = False
        self._pulse = time.monotonic()

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"hearth_worker_{name}", text, registry=self.registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"hearth_worker_{name}", text, labels, registry=self.registry)

        self.head = gauge("head_block", "Number of the block last read")
        self.head_age = gauge("head_age_seconds", "Local time less the time of the block last read")
        self.beat_age = gauge("beat_age_seconds", "Chain time since the node's last beat")
        self.busy = gauge("busy_slots", "Slots that the chain counts as taken")
        self.attempts_running = gauge("attempts_running", "Attempts under way on this machine")
        self.faults = gauge("faults", "Attempts ended by an exception that no rule foresees")
        self.reorgs = gauge("reorgs", "Reorganisations met")
        self.books = Gauge(
            "hearth_worker_books",
            "Leases by how they ended, and amounts in base units",
            ["line"],
            registry=self.registry,
        )
        self.transactions = counter("transactions", "Transactions by kind and end", "kind", "state")
        self.gas_spent = counter("gas_spent_wei", "Wei paid for gas")
        self.refused = counter("refused", "Sends that a contract refused, mostly lost races", "kind", "reason")
        self.failures = counter("failures", "Cycles that failed and were tried again", "code")

    def pulse(self) -> None:
        """Note that the loop has turned."""
        self._pulse = time.monotonic()

    @property
    def healthy(self) -> bool:
        """Say whether the loop has turned lately."""
        return time.monotonic() - self._pulse < STALE_SECONDS

    def serve(self, host: str, port: int) -> ThreadingHTTPServer:
        """Serve on HOST:PORT in a daemon thread; port 0 takes any free one."""
        metrics = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/metrics":
                    self._answer(200, generate_latest(metrics.registry), "text/plain; version=0.0.4")
                elif self.path in ("/healthz", "/readyz"):
                    good = metrics.healthy and (self.path == "/healthz" or metrics.ready)
                    self._answer(200 if good else 503, b"ok\n" if good else b"no\n", "text/plain")
                else:
                    self._answer(404, b"not found\n", "text/plain")

            def _answer(self, code: int, body: bytes, kind: str) -> None:
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing: a scrape every few seconds is no news."""

        server = ThreadingHTTPServer((host, port), Handler)
        threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
        return server
