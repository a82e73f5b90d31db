"""Show that a long-running program lives: Prometheus metrics, /healthz and /readyz over HTTP.

/healthz answers 503 when the loop has not turned for too long: the process hangs, restart it. /readyz answers 503
while the program cannot do its work, and says why. Alert rules: docs/alerts.yml.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

import structlog
from prometheus_client import CollectorRegistry, generate_latest

from hearth.base.crowd import CrowdServer, Limits
from hearth.base.errors import ConfigError

Pages = Mapping[str, Callable[[], Any]]
"""JSON-ready documents by path."""

_JSON: Final = "application/json"
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"

MAX_CONNECTIONS: Final = 32
"""Connections at once: more than probes and scrapers of one program have."""
MAX_SECONDS: Final = 10.0
"""How long one may take to ask and to take its answer."""

log = structlog.get_logger("health")


class Health:
    """Whether a loop turns, and why it cannot do its work; the loop says both, probes read them."""

    def __init__(self, stall: float, unready: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin alive and not ready; a loop that is silent for `stall` seconds hangs, `unready` is why it waits."""
        self.unready = unready
        """Why the program cannot do its work, "" where it can."""
        self._stall, self._clock = stall, clock
        self._turned = clock()

    def turn(self) -> None:
        """Record that the loop turns."""
        self._turned = self._clock()

    def health(self) -> tuple[bool, str]:
        """Say whether the loop turns."""
        silent = self._clock() - self._turned
        return silent < self._stall, f"the loop last turned {silent:.0f} s ago"

    def readiness(self) -> tuple[bool, str]:
        """Say whether the program can do its work, and why not."""
        alive, why = self.health()
        return (alive and not self.unready, (self.unready or "ready") if alive else why)


class _Probes(CrowdServer):
    """Answer probes and scrapers; who has not asked and taken the answer within MAX_SECONDS is ended."""

    def limits(self) -> Limits:
        """Return what holds for a connection that comes now."""
        return Limits(MAX_CONNECTIONS, MAX_CONNECTIONS, MAX_SECONDS)


class Server:
    """Serve metrics, health and more `pages` over HTTP from a thread of its own; port 0 takes any free one.

    Raises ConfigError where the address cannot be had.
    """

    def __init__(
        self,
        address: tuple[str, int],
        registry: CollectorRegistry,
        health: Health,
        pages: Pages | None = None,
        *,
        component: str,
    ) -> None:
        more = pages or {}

        class Handler(BaseHTTPRequestHandler):
            server: _Probes

            def do_GET(self) -> None:
                self.server.expect(self.connection, None, served=True)
                code, kind, body = _answer(self.path.partition("?")[0], registry, health, more)
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing: a scrape every few seconds is no news."""

        host, port = address
        try:
            self._server = _Probes(address, Handler)
        except OSError as error:
            raise ConfigError(
                f"metrics.listen: {host}:{port} cannot be had: {error.strerror}",
                hint="choose another address in [metrics] listen: port 0 takes any free one, an empty text serves none",
                component=component,
                field="metrics.listen",
            ) from error
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="health", daemon=True)
        self._thread.start()
        log.info("health.served", at=f"http://{host}:{self.port}")

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _answer(path: str, registry: CollectorRegistry, health: Health, pages: Pages) -> tuple[int, str, bytes]:
    if path == "/metrics":
        return 200, _METRICS, generate_latest(registry)
    if path in pages:
        return 200, _JSON, json.dumps(pages[path]()).encode()
    probes = {"/healthz": health.health, "/readyz": health.readiness}
    if path not in probes:
        known = ", ".join(["/metrics", *probes, *pages])
        return 404, _JSON, json.dumps({"error": f"there is {known}"}).encode()
    good, why = probes[path]()
    return 200 if good else 503, _JSON, json.dumps({"ok": good, "why": why}).encode()
