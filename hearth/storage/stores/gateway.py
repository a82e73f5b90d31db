"""A trustless IPFS gateway: raw blocks over HTTP, each checked here. Read-only.

Nothing that a gateway says is believed but bytes that hash to the CID asked for. It is also not trusted with our time,
memory or network: a deadline over everything from the name's look-up on (`hearth.base.http`), a floor of bytes per
second and a size cap bound every answer, no redirect is followed, and a public name is refused where it leads to an
address inside (`hearth.base.peer`). Source: https://specs.ipfs.tech/http-gateways/trustless-gateway/.
"""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from hearth.base import peer
from hearth.base.addresses import is_local_name
from hearth.base.errors import StorageError, StoreDown, TooLarge
from hearth.base.http import Host, pieces, said
from hearth.base.text import quoted
from hearth.base.urls import redact_url
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.stores.base import ReadOnlyStore, StoreStatus

MEDIA_TYPE: Final = "application/vnd.ipld.raw"
PROBE: Final = "bafkqaaa"
"""The empty block inlined in its CID: every gateway has it, so it serves as a health check."""
_PROBE_SECONDS: Final = 10.0
_REDIRECTS: Final = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class Floor:
    """Bound how slow an answer's body may be: on average `bytes_per_second`, once `grace_seconds` have passed."""

    bytes_per_second: float = 4096.0
    grace_seconds: float = 5.0


class GatewayStore(ReadOnlyStore):
    """Read blocks from `base_url` (http or https, a path prefix allowed).

    A host that is local by its own words (an address, a bare name, .local) may be inside. So may any host by https: its
    certificate shows that it is the one that was meant. A public name by http must lead to public addresses, and so
    must whatever a stranger named (`untrusted`).
    """

    def __init__(self, base_url: str, *, floor: Floor | None = None, untrusted: bool = False) -> None:
        self._base = base_url.rstrip("/")
        url = urlsplit(self._base)
        self._name = url.hostname or ""
        self._path = url.path
        self._untrusted = untrusted
        secure = url.scheme == "https"
        public = untrusted or (not secure and not is_local_name(self._name))
        self._host = Host(self._name, url.port or (443 if secure else 80), secure=secure, public=public)
        self._floor = floor or Floor()
        super().__init__(f"gateway+{redact_url(self._base)}")

    def _read(self, cid: Cid, timeout: float) -> bytes:
        return self._get(str(cid), timeout, cid)

    def _get(self, name: str, timeout: float, cid: Cid | None) -> bytes:
        """Return the body of the answer about a name."""
        end = time.monotonic() + timeout

        def read(response: http.client.HTTPResponse) -> bytes:
            self._check_status(response, cid)
            return self._body(response, end)

        try:
            headers = {"Accept": MEDIA_TYPE, "User-Agent": "hearth"}
            return self._host.exchange(
                "GET", f"{self._path}/ipfs/{name}?format=raw", headers=headers, end=end, read=read
            )
        except (OSError, http.client.HTTPException) as error:
            if time.monotonic() >= end:
                raise self._too_slow("the deadline has passed") from error
            if isinstance(error, peer.LeadsInside) and not self._untrusted:
                raise self._down(f"{error}; where that is meant, name the address itself, or use https") from error
            raise self._down(f"{self._name}: {said(error)}") from error

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
        raise self._down(f"HTTP {response.status} {quoted(response.reason)}")

    def _body(self, response: http.client.HTTPResponse, end: float) -> bytes:
        if response.length is not None and response.length > cids.MAX_BLOCK_BYTES:
            raise self._oversized(response.length)
        data = bytearray()
        started = time.monotonic()
        for piece in pieces(response, end):
            data += piece
            if len(data) > cids.MAX_BLOCK_BYTES:
                raise self._oversized(len(data))
            elapsed = time.monotonic() - started
            if elapsed > self._floor.grace_seconds and len(data) < elapsed * self._floor.bytes_per_second:
                raise self._too_slow(
                    f"{len(data)} bytes in {elapsed:.1f} s, the floor is {self._floor.bytes_per_second:g} bytes/s"
                )
        return bytes(data)

    def _too_slow(self, why: str) -> StoreDown:
        return self._down(f"too slow: {why}")

    def _oversized(self, size: int) -> TooLarge:
        return TooLarge(
            f"the store {self.url} sends {size} bytes for one block, more than {cids.MAX_BLOCK_BYTES}",
            hint="hearth doctor",
            store=self.url,
        )

    def status(self) -> StoreStatus:
        """Return whether the gateway answers the health check."""
        try:
            self._get(PROBE, _PROBE_SECONDS, None)
        except StorageError as error:
            return StoreStatus(self.url, False, False, error.message)
        return StoreStatus(self.url, True, False, "trustless gateway")

    def close(self) -> None:
        """Close idle connections."""
        self._host.close()
