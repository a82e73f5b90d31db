"""A trustless IPFS gateway: raw blocks over HTTP, each checked here. Read-only.

Nothing that a gateway says is believed but bytes that hash to the CID asked for. It is also not trusted with our time
or memory: a deadline, a floor of bytes per second, a size cap and a short list of redirects bound every answer.
Source: https://specs.ipfs.tech/http-gateways/trustless-gateway/.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from hearth.base.errors import BlockMissing, StorageError, StoreDown, TooLarge
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.stores.base import BLOCK_TIMEOUT_SECONDS, StoreBase, StoreStatus

CONNECT_SECONDS: Final = 10.0
MAX_REDIRECTS: Final = 3
MEDIA_TYPE: Final = "application/vnd.ipld.raw"
PROBE: Final = "bafkqaaa"
"""The empty block inlined in its CID: every gateway has it, so it serves as a health check."""
_READ_BYTES: Final = 64 * 1024
_PROBE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Floor:
    """Bound how slow an answer's body may be: on average `bytes_per_second`, once `grace_seconds` have passed."""

    bytes_per_second: float = 4096.0
    grace_seconds: float = 5.0


class GatewayStore(StoreBase):
    """Read blocks from `base_url` (http or https, a path prefix allowed)."""

    def __init__(self, base_url: str, *, floor: Floor | None = None) -> None:
        self._base = base_url.rstrip("/")
        self._floor = floor or Floor()
        self._idle: list[tuple[tuple[str, str], http.client.HTTPConnection]] = []
        self._idle_lock = threading.Lock()
        super().__init__(f"gateway+{self._base}", writable=False)

    def _read(self, cid: Cid, timeout: float) -> bytes:
        return self._get(str(cid), timeout, cid)

    def _get(self, name: str, timeout: float, cid: Cid | None) -> bytes:
        end = time.monotonic() + timeout
        url = urlsplit(f"{self._base}/ipfs/{name}?format=raw")
        for hop in range(MAX_REDIRECTS + 1):
            answer = self._request(url, end, cid, redirected=hop > 0)
            if isinstance(answer, bytes):
                return answer
            target = urlsplit(urljoin(url.geturl(), answer))
            if target.scheme not in ("http", "https") or (url.scheme, target.scheme) == ("https", "http"):
                raise self._down(f"it redirects from {url.scheme} to {target.scheme or 'nowhere'}")
            url = target
        raise self._down(f"it redirects more than {MAX_REDIRECTS} times")

    def _request(self, url: SplitResult, end: float, cid: Cid | None, *, redirected: bool) -> bytes | str:
        """Return the body of a 200, or the target of a redirect."""
        try:
            idle = self._take_idle(url)
            if idle is not None:
                # The other side may have closed it meanwhile; a fresh connection would have no such excuse.
                with suppress(http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                    return self._exchange(idle, url, end, cid, redirected=redirected)
            return self._exchange(self._fresh(url), url, end, cid, redirected=redirected)
        except (OSError, http.client.HTTPException) as error:
            if time.monotonic() >= end:
                raise self._too_slow("the deadline has passed") from error
            raise self._down(f"{url.hostname}: {error or type(error).__name__}") from error

    def _exchange(
        self, connection: http.client.HTTPConnection, url: SplitResult, end: float, cid: Cid | None, *, redirected: bool
    ) -> bytes | str:
        left = end - time.monotonic()
        if left <= 0:
            raise self._too_slow("the deadline has passed")
        connection.timeout = min(CONNECT_SECONDS, left)
        if connection.sock is None:
            connection.connect()
        if redirected:
            self._check_not_inward(connection.sock, url)
        # Timeouts of a socket are per read; the timer ends an exchange whose every byte comes just in time.
        timer = threading.Timer(end - time.monotonic(), _shut, (connection.sock,))
        timer.daemon = True
        timer.start()
        keep = False
        try:
            connection.sock.settimeout(left)
            target = (url.path or "/") + (f"?{url.query}" if url.query else "")
            connection.request("GET", target, headers={"Accept": MEDIA_TYPE, "User-Agent": "hearth"})
            response = connection.getresponse()
            if response.status in (301, 302, 303, 307, 308):
                return response.headers.get("Location", "")
            self._check_status(response, cid)
            body = self._body(response, end)
            keep = not response.will_close
            return body
        finally:
            timer.cancel()
            if keep:
                with self._idle_lock:
                    self._idle.append(((url.scheme, url.netloc), connection))
            else:
                connection.close()

    def _take_idle(self, url: SplitResult) -> http.client.HTTPConnection | None:
        """Return an idle connection to the same place, if there is one."""
        with self._idle_lock:
            for index, (place, connection) in enumerate(self._idle):
                if place == (url.scheme, url.netloc):
                    del self._idle[index]
                    return connection
        return None

    def _fresh(self, url: SplitResult) -> http.client.HTTPConnection:
        if url.hostname is None:
            raise self._down("it redirects to no host")
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        try:
            return kind(url.hostname, url.port)
        except ValueError as error:
            raise self._down(f"its port is no number: {url.netloc}") from error

    def _check_not_inward(self, peer: socket.socket, url: SplitResult) -> None:
        """Refuse a redirect into a private network, unless the gateway itself stands in one."""
        if _is_global(peer.getpeername()[0]):
            return
        host = urlsplit(self._base).hostname or ""
        addresses = {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
        if any(_is_global(address) for address in addresses):
            raise self._down(f"it redirects into a private network ({url.hostname})")

    def _check_status(self, response: http.client.HTTPResponse, cid: Cid | None) -> None:
        if response.status == 200:
            return
        if cid is not None and response.status in (404, 410, 504):
            raise self._missing(cid, f"HTTP {response.status}")
        raise self._down(f"HTTP {response.status} {response.reason}")

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
            for _, connection in self._idle:
                connection.close()
            self._idle.clear()


def _shut(peer: socket.socket) -> None:
    with suppress(OSError):  # closed already
        # Not SSLSocket's own shutdown, which would take its state away under the reader's feet.
        socket.socket.shutdown(peer, socket.SHUT_RDWR)


def _is_global(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_global
