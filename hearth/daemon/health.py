"""Show that a long-running program lives: Prometheus metrics, /healthz and /readyz over HTTP.

/healthz answers 503 when the loop has not turned for too long: the process hangs, restart it. /readyz answers 503
while the program cannot do its work, and says why. Alert rules: docs/alerts.yml.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import structlog
from prometheus_client import CollectorRegistry, generate_latest

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


class _Crowd(ThreadingHTTPServer):
    """Give each of at most MAX_CONNECTIONS a thread and MAX_SECONDS.

    Where there is no room, the one that has waited longest without a request makes it, so that idle clients keep no
    probe out; where all are being answered, the new one is closed.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        # When each came, and whether it has asked; in the order in which they came.
        self._came: dict[socket.socket, float] = {}
        self._asked: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, if there is room or room can be made."""
        with self._guard:
            if len(self._came) >= MAX_CONNECTIONS:
                self._end(next((wire for wire in self._came if wire not in self._asked), None))
            room = len(self._came) < MAX_CONNECTIONS
            if room:
                self._came[request] = time.monotonic()
        if room:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def service_actions(self) -> None:
        """End every connection whose time is over; the loop calls this several times a second."""
        now = time.monotonic()
        with self._guard:
            for wire in [wire for wire, came in self._came.items() if now - came >= MAX_SECONDS]:
                self._end(wire)

    def asked(self, wire: socket.socket) -> None:
        """Note that a connection has asked: it is being answered."""
        with self._guard:
            if wire in self._came:
                self._asked.add(wire)

    def _end(self, wire: socket.socket | None) -> None:
        """End a connection: its thread sees that it is closed, and goes."""
        if wire is not None:
            self._came.pop(wire, None)
            self._asked.discard(wire)
            with suppress(OSError):  # closed already
                wire.shutdown(socket.SHUT_RDWR)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._guard:
                self._came.pop(request, None)
                self._asked.discard(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error, unless it is a client that hung up."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


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
            server: _Crowd

            def do_GET(self) -> None:
                self.server.asked(self.connection)
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
            self._server = _Crowd(address, Handler)
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
