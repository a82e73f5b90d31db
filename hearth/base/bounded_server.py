"""A threaded HTTP server that idle clients cannot fill, and what its handlers share."""

from __future__ import annotations

import http.client
import io
import ipaddress
import socket
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple, Self


class Limits(NamedTuple):
    """How many connections there may be at once, in all and of one client, how long one may stay without a whole
    request, in seconds, and what one gets that there is no room for.

    A client is an address; of IPv6 a /64, which is what a household gets.
    """

    most: int
    per_client: int
    wait_seconds: float
    full: bytes = b""


@dataclass(slots=True)
class Connection:
    """A connection: whose it is, since when and until when it may be as it is, and whether an answer is under way."""

    wire: socket.socket
    client: str
    since: float
    until: float
    served: bool = False


class BoundedServer(ThreadingHTTPServer):
    """Give each connection a thread, within `limits`; serve while the context is open.

    At the limit, the connection that has waited longest without a request makes room for a new one, so that idle
    clients keep nobody out; where all are being served, the new one is turned away. Every connection has a time by
    which it must have asked, or have taken its answer.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.connections: dict[socket.socket, Connection] = {}
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()
        return self

    def __exit__(self, *args: object) -> None:
        self.shutdown()
        self.server_close()

    def limits(self) -> Limits:
        """Return what holds for a connection that comes now."""
        raise NotImplementedError

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, if there is room or room can be made."""
        client, now, limits = _client_of(client_address[0]), time.monotonic(), self.limits()
        with self._lock:
            room = self._make_room(client, limits)
            if room:
                self.connections[request] = Connection(request, client, now, now + limits.wait_seconds)
        if room:
            super().process_request(request, client_address)
            return
        with suppress(OSError):  # the buffer of a new connection holds it, and a client that is gone needs none
            request.settimeout(0.0)
            request.send(limits.full)
        self.shutdown_request(request)

    def _make_room(self, client: str, limits: Limits) -> bool:
        """Say whether a client may have one more connection, perhaps after one that waits was ended."""
        mine = [connection for connection in self.connections.values() if connection.client == client]
        if len(mine) >= limits.per_client:
            crowd = mine
        elif len(self.connections) >= limits.most:
            crowd = list(self.connections.values())
        else:
            return True
        waiting = [connection for connection in crowd if not connection.served]
        if not waiting:
            return False
        self._end(min(waiting, key=lambda connection: connection.since))
        return True

    def _end(self, connection: Connection) -> None:
        """End a connection: its thread sees that it is closed, and goes."""
        self.connections.pop(connection.wire, None)
        with suppress(OSError):  # closed already
            connection.wire.shutdown(socket.SHUT_RDWR)

    def service_actions(self) -> None:
        """End every connection whose time is over; the loop calls this several times a second."""
        now = time.monotonic()
        with self._lock:
            for connection in [connection for connection in self.connections.values() if now >= connection.until]:
                self._end(connection)

    def expect(self, wire: socket.socket, seconds: float | None, *, served: bool) -> None:
        """Note what a connection does from now on, an answer (`served`) or wait, and how long it may; None leaves its
        time as it is."""
        now = time.monotonic()
        with self._lock:
            connection = self.connections.get(wire)
            if connection is not None:
                connection.served = served
                if seconds is not None:
                    connection.since, connection.until = now, now + seconds

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self.connections.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error, unless it is a client that hung up."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class _Head(io.BufferedIOBase):
    """Read one request: the lines of its head, at most `left` bytes of them, and its body unbounded."""

    def __init__(self, wire: Any) -> None:
        self._wire = wire
        self.left = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return a line. Raises LineTooLong, which is answered with 431."""
        line: bytes = self._wire.readline(self.left + 1)
        self.left -= len(line)
        if self.left < 0:
            raise http.client.LineTooLong("request")
        return line

    def read(self, size: int | None = -1, /) -> bytes:
        """Return bytes of the body."""
        data: bytes = self._wire.read(size)
        return data

    def close(self) -> None:
        """Close the connection's file."""
        self._wire.close()
        super().close()


class BoundedHandler(BaseHTTPRequestHandler):
    """Answer one connection of a BoundedServer: its heads are bounded, and nothing is logged of it."""

    protocol_version = "HTTP/1.1"
    # Header and body in one packet: sent apart, each small body would wait 40 ms for the client's delayed ACK.
    wbufsize = 2**16
    disable_nagle_algorithm = True
    server: BoundedServer
    head_bytes: ClassVar[int]
    """Bytes of a request's head."""

    def setup(self) -> None:
        """Bound the head of every request."""
        super().setup()
        self.head = _Head(self.rfile)
        self.rfile = self.head

    def handle_one_request(self) -> None:
        """Wait for a request, answer it, and wait again."""
        self.head.left = self.head_bytes
        self.server.expect(self.connection, self.server.limits().wait_seconds, served=False)
        try:
            super().handle_one_request()
        except http.client.LineTooLong:
            # The line of the request itself; those of the headers are answered where they are parsed.
            self.close_connection = True

    def leave_body(self) -> None:
        """Leave a request's body unread: the connection ends, so that it cannot be taken for the next request."""
        if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: which client asks for what is nobody's business."""


def _client_of(address: str) -> str:
    """Return whose connection it is: an IPv4 address, or the /64 of an IPv6 one."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.IPv6Network((int(found) >> 64 << 64, 64)))
    return str(found)
