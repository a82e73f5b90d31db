"""Show that a long-running program lives: Prometheus metrics, /healthz and /readyz over HTTP.

/healthz answers 503 when the loop has not turned for too long: the process hangs, restart it. /readyz answers 503
while the program cannot do its work, and says why. Alert rules: docs/alerts.yml.

What is told is the operator's: money, jobs, whom the program asks. So a request must name this server by an address, as
localhost, or by a name of the settings: a site whose name was pointed here names itself. And no page may ask.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping
from email.message import Message
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

import structlog
from prometheus_client import CollectorRegistry, generate_latest

from hearth.base.bounded_server import BoundedServer, Limits
from hearth.base.errors import ConfigError

Pages = Mapping[str, Callable[[], Any]]
"""JSON-ready documents by path."""

_JSON: Final = "application/json"
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"

_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9A-Za-z._-]+))(?::\d{1,5})?")
"""An IPv6 address, or a name or IPv4 address; and a port."""

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


class _Probes(BoundedServer):
    """Answer probes and scrapers; who has not asked and taken the answer within MAX_SECONDS is ended."""

    def limits(self) -> Limits:
        """Return what holds for a connection that comes now."""
        return Limits(MAX_CONNECTIONS, MAX_CONNECTIONS, MAX_SECONDS)


class Server:
    """Serve metrics, health and more `pages` over HTTP from a thread of its own; port 0 takes any free one.

    `hosts` are names beside its own by which it may be asked, in lower case. Raises ConfigError where the address
    cannot be had.
    """

    def __init__(
        self,
        address: tuple[str, int],
        registry: CollectorRegistry,
        health: Health,
        pages: Pages | None = None,
        *,
        hosts: Collection[str] = (),
        component: str,
    ) -> None:
        more = pages or {}
        names = frozenset({"localhost", socket.gethostname().lower(), address[0].lower(), *hosts})

        class Handler(BaseHTTPRequestHandler):
            server: _Probes

            def do_GET(self) -> None:
                self.server.expect(self.connection, None, served=True)
                refused = _refusal(self.headers, names)
                path = self.path.partition("?")[0]
                code, kind, body = refused or _answer(path, registry, health, more)
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("X-Content-Type-Options", "nosniff")
                self.send_header("Cross-Origin-Resource-Policy", "same-origin")
                self.send_header("Cache-Control", "no-store")
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


def _refusal(headers: Message, names: Collection[str]) -> tuple[int, str, bytes] | None:
    """Refuse a request that names another host, or that a page made: as hearth web does."""
    named = headers.get_all("Host") or []
    host, origin = (named[0] if len(named) == 1 else ""), headers.get("Origin")
    if not _is_own(host, names):
        text = "nothing is served under this name: ask by address, or name it under hosts in [metrics]"
        return 421, _JSON, json.dumps({"error": text}).encode()
    if origin not in (None, f"http://{host}") or headers.get("Sec-Fetch-Site") not in (None, "same-origin", "none"):
        return 403, _JSON, json.dumps({"error": "no other page may ask"}).encode()
    return None


def _is_own(host: str, names: Collection[str]) -> bool:
    """Say whether a Host is an address, or one of the names. Nobody can point an address at another one."""
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = (found[1] or found[2]).lower()
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return found[1] is None and name in names
    return True


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
