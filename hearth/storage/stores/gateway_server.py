"""Serve a store's blocks as a trustless IPFS gateway: `GET /ipfs/<CID>?format=raw`, nothing else.

Loopback by default. Whoever knows a CID can read its block, so keep private data encrypted or the address closed.
Run alone with `python -P -m hearth.storage.stores.gateway_server STORE_URL`; a worker runs `GatewayServer` in its own
process. Source: https://specs.ipfs.tech/http-gateways/trustless-gateway/.
"""

from __future__ import annotations

import argparse
import socket
import threading
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from hearth.base.bounded_server import BoundedHandler, BoundedServer, Limits
from hearth.base.errors import BadCid, BlockMissing, StorageError
from hearth.storage import cid as cids
from hearth.storage.stores import open_store
from hearth.storage.stores.base import Store
from hearth.storage.stores.gateway import MEDIA_TYPE

MAX_CONNECTIONS: Final = 64
MAX_PER_CLIENT: Final = 16
"""Connections of one address; of IPv6, of one /64, which is what a household gets."""
WAIT_SECONDS: Final = 15.0
"""How long a connection may stay without a whole request: idle, or with a head that comes byte by byte."""
READ_SECONDS: Final = 10.0
"""How long the store may take for a block."""
FLOOR: Final = 16 * 1024
"""Bytes of an answer that a client must take per second, once READ_SECONDS are over."""
HEAD_BYTES: Final = 16 * 1024
"""Bytes of a request."""
_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class GatewayServer(BoundedServer):
    """Serve `store` on `host`:`port` (0 picks a free one) while the context is open.

    Where all of MAX_CONNECTIONS, or of MAX_PER_CLIENT of one address, are being served, a new one gets a 503.
    """

    def __init__(self, store: Store, host: str = "127.0.0.1", port: int = 0) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.store = store
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """Return the store URL under which clients open this gateway."""
        host, port = self.server_address[:2]
        shown = f"[{host!s}]" if self.address_family == socket.AF_INET6 else str(host)
        return f"gateway+http://{shown}:{port}"

    def limits(self) -> Limits:
        """Return what holds for a connection that comes now."""
        return Limits(MAX_CONNECTIONS, MAX_PER_CLIENT, WAIT_SECONDS, _FULL)


class RawBlock(NamedTuple):
    """What a request for a block comes to: a status, the bytes, and the block's name, None where they are words."""

    status: HTTPStatus
    body: bytes
    name: str | None = None


def raw_block(store: Store, target: str, accept: str) -> RawBlock:
    """Answer `/ipfs/<CID>?format=raw`, or with the header's Accept of its media type, from a store."""
    try:
        url = urlsplit(target)
        wanted = parse_qs(url.query, max_num_fields=8).get("format", [""])[0]
    except ValueError:
        return RawBlock(HTTPStatus.BAD_REQUEST, b"the path is no path\n")
    name = url.path.removeprefix("/ipfs/").rstrip("/")
    if not url.path.startswith("/ipfs/") or "/" in name:
        return RawBlock(HTTPStatus.NOT_FOUND, b"only /ipfs/<CID>?format=raw is served\n")
    if wanted != "raw" and (wanted or MEDIA_TYPE not in accept):
        return RawBlock(HTTPStatus.NOT_ACCEPTABLE, b"only format=raw is served\n")
    try:
        return RawBlock(HTTPStatus.OK, store.get_block(cids.parse(name), READ_SECONDS), name)
    except BadCid as error:
        return RawBlock(HTTPStatus.BAD_REQUEST, f"{error.message}\n".encode())
    except BlockMissing:
        return RawBlock(HTTPStatus.NOT_FOUND, b"the block is not here\n")
    except StorageError as error:
        return RawBlock(HTTPStatus.BAD_GATEWAY, f"{error.code}\n".encode())


class _Handler(BoundedHandler):
    server: GatewayServer
    head_bytes = HEAD_BYTES

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        self.server.expect(self.connection, 2 * READ_SECONDS + cids.MAX_BLOCK_BYTES / FLOOR, served=True)
        self.leave_body()
        found = raw_block(self.server.store, self.path, self.headers.get("Accept", ""))
        if found.name is not None:
            self.server.expect(self.connection, READ_SECONDS + len(found.body) / FLOOR, served=True)
        self._send(found, with_body=with_body)

    def _send(self, answer: RawBlock, *, with_body: bool) -> None:
        status, body, name = answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        # All of it is public, named by hash, and the same for everybody: pages of any origin may read it.
        self.send_header("Access-Control-Allow-Origin", "*")
        if name is None:
            self.send_header("Content-Type", "text/plain; charset=utf-8")
        else:
            self.send_header("Content-Type", MEDIA_TYPE)
            self.send_header("Cache-Control", "public, max-age=31536000, immutable")
            self.send_header("Content-Disposition", f'attachment; filename="{name}.bin"')
            self.send_header("Etag", f'"{name}.raw"')
        self.end_headers()
        if with_body:
            self.wfile.write(body)


def main() -> None:
    """Serve a store until interrupted; print the gateway's URL first."""
    parser = argparse.ArgumentParser(prog="python -P -m hearth.storage.stores.gateway_server", description=main.__doc__)
    parser.add_argument("store", help="folder path or store URL")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    with GatewayServer(open_store(options.store), options.host, options.port) as server:
        print(server.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
