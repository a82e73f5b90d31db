"""A trustless IPFS gateway: raw blocks over HTTP, each checked here. Read-only.

Nothing that a gateway says is believed but bytes that hash to the CID asked for. It is also not trusted with our time,
memory or network: a deadline over everything from the name's look-up on, a floor of bytes per second and a size cap
bound every answer, no redirect is followed, and a public name is refused where it leads to an address inside
(`hearth.storage.stores.peer`). Source: https://specs.ipfs.tech/http-gateways/trustless-gateway/.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from urllib.parse import urlsplit

from hearth.base.errors import BlockMissing, StorageError, StoreDown, TooLarge
from hearth.base.urls import redact_url
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.stores import peer
from hearth.storage.stores.base import BLOCK_TIMEOUT_SECONDS, StoreBase, StoreStatus

MEDIA_TYPE: Final = "application/vnd.ipld.raw"
PROBE: Final = "bafkqaaa"
"""The empty block inlined in its CID: every gateway has it, so it serves as a health check."""
_READ_BYTES: Final = 64 * 1024
_PROBE_SECONDS: Final = 10.0
_REDIRECTS: Final = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class Floor:
    """Bound how slow an answer's body may be: on average `bytes_per_second`, once `grace_seconds` have passed."""

    bytes_per_second: float = 4096.0
    grace_seconds: float = 5.0


class GatewayStore(StoreBase):
    """Read blocks from `base_url` (http or https, a path prefix allowed).

    A host that is local by its own words (an address, a bare name, .local) may be inside. So may any host by https: its
    certificate shows that it is the one that was meant. A public name by http must lead to public addresses.
    """

    def __init__(self, base_url: str, *, floor: Floor | None = None) -> None:
        self._base = base_url.rstrip("/")
        url = urlsplit(self._base)
        self._host = url.hostname or ""
        self._secure = url.scheme == "https"
        self._port = url.port or (443 if self._secure else 80)
        self._path = url.path
        self._public = not self._secure and not peer.is_local_name(self._host)
        self._floor = floor or Floor()
        self._idle: list[http.client.HTTPConnection] = []
        self._idle_lock = threading.Lock()
        super().__init__(f"gateway+{redact_url(self._base)}", writable=False)

    def _read(self, cid: Cid, timeout: float) -> bytes:
        return self._get(str(cid), timeout, cid)

    def _get(self, name: str, timeout: float, cid: Cid | None) -> bytes:
        """Return the body of the answer about a name."""
        end = time.monotonic() + timeout
        path = f"{self._path}/ipfs/{name}?format=raw"
        try:
            idle = self._take_idle()
            if idle is not None:
                # The other side may have closed it meanwhile; a fresh connection would have no such excuse.
                with suppress(http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                    return self._exchange(idle, path, end, cid)
            return self._exchange(self._fresh(end), path, end, cid)
        except (OSError, http.client.HTTPException) as error:
            if time.monotonic() >= end:
                raise self._too_slow("the deadline has passed") from error
            if isinstance(error, peer.LeadsInside):
                raise self._down(f"{error}; where that is meant, name the address itself, or use https") from error
            raise self._down(f"{self._host}: {error or type(error).__name__}") from error

    def _exchange(self, connection: http.client.HTTPConnection, path: str, end: float, cid: Cid | None) -> bytes:
        """Send one request over an open connection and return the answer's body."""
        left = end - time.monotonic()
        if left <= 0:
            raise self._too_slow("the deadline has passed")
        wire = connection.sock
        # Timeouts of a socket are per read; the timer ends an exchange whose every byte comes just in time.
        timer = threading.Timer(left, _shut, (wire,))
        timer.daemon = True
        timer.start()
        keep = False
        try:
            wire.settimeout(left)
            connection.request("GET", path, headers={"Accept": MEDIA_TYPE, "User-Agent": "hearth"})
            response = connection.getresponse()
            self._check_status(response, cid)
            body = self._body(response, end)
            keep = not response.will_close
            return body
        finally:
            timer.cancel()
            if keep:
                with self._idle_lock:
                    self._idle.append(connection)
            else:
                connection.close()

    def _take_idle(self) -> http.client.HTTPConnection | None:
        """Return an idle connection, if there is one."""
        with self._idle_lock:
            return self._idle.pop() if self._idle else None

    def _fresh(self, end: float) -> http.client.HTTPConnection:
        """Return a connection to an address that was checked; its name stays in Host, and in TLS where that is used."""
        wire = peer.connect(self._host, self._port, end=end, public=self._public)
        if not self._secure:
            connection = http.client.HTTPConnection(self._host, self._port)
            connection.sock = wire
        else:
            connection = http.client.HTTPSConnection(self._host, self._port, context=self._tls)
            # The socket's timeout is one for the whole handshake.
            wire.settimeout(max(0.001, end - time.monotonic()))
            connection.sock = self._tls.wrap_socket(wire, server_hostname=self._host)
        connection.auto_open = 0
        return connection

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def _check_status(self, response: http.client.HTTPResponse, cid: Cid | None) -> None:
        if response.status == 200:
            return
        if response.status in _REDIRECTS:
            target = response.headers.get("Location", "")[:200]
            if self._path:
                target = target.replace(self._path, "/...")
            raise self._down(f"it redirects to {target!r}, which is not followed: name a gateway that answers itself")
        if cid is not None and response.status in (404, 410, 504):
            raise self._missing(cid, f"HTTP {response.status}")
        raise self._down(f"HTTP {response.status} {response.reason[:200]}")

    def _body(self, response: http.client.HTTPResponse, end: float) -> bytes:
        if response.length is not None and response.length > cids.MAX_BLOCK_BYTES:
            raise self._oversized(response.length)
        data = bytearray()
        started = time.monotonic()
        while piece := response.read1(_READ_BYTES):
            data += piece
            if len(data) > cids.MAX_BLOCK_BYTES:
                raise self._oversized(len(data))
            now = time.monotonic()
            elapsed = now - started
            if now >= end:
                raise self._too_slow("the deadline has passed")
            if elapsed > self._floor.grace_seconds and len(data) < elapsed * self._floor.bytes_per_second:
                raise self._too_slow(
                    f"{len(data)} bytes in {elapsed:.1f} s, the floor is {self._floor.bytes_per_second:g} bytes/s"
                )
        if time.monotonic() >= end:
            raise self._too_slow("the deadline has passed")
        if response.length:
            raise self._down(f"its answer was cut off, {response.length} bytes are missing")
        response.close()  # read1() leaves this to the caller; the connection stays open
        return bytes(data)

    def _too_slow(self, why: str) -> StoreDown:
        return self._down(f"too slow: {why}")

    def _oversized(self, size: int) -> TooLarge:
        return TooLarge(
            f"the store {self.url} sends {size} bytes for one block, more than {cids.MAX_BLOCK_BYTES}",
            hint="hearth doctor",
            store=self.url,
        )

    def _write(self, cid: Cid, data: bytes) -> None:
        self._require_writable()

    def has(self, cid: Cid) -> bool:
        """Return whether the gateway gives the block; its word without the bytes would be worth nothing."""
        try:
            self.get_block(cid, BLOCK_TIMEOUT_SECONDS)
        except BlockMissing:
            return False
        return True

    def pin(self, cid: Cid) -> None:
        """Refuse: a gateway promises nothing."""
        self._require_writable()

    def unpin(self, cid: Cid) -> None:
        """Refuse: a gateway promises nothing."""
        self._require_writable()

    def status(self) -> StoreStatus:
        """Return whether the gateway answers the health check."""
        try:
            self._get(PROBE, _PROBE_SECONDS, None)
        except StorageError as error:
            return StoreStatus(self.url, False, False, error.message)
        return StoreStatus(self.url, True, False, "trustless gateway")

    def close(self) -> None:
        """Close idle connections."""
        with self._idle_lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()


def _shut(wire: socket.socket) -> None:
    with suppress(OSError):  # closed already
        # Not SSLSocket's own shutdown, which would take its state away under the reader's feet.
        socket.socket.shutdown(wire, socket.SHUT_RDWR)
