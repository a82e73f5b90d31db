"""Serve a store's blocks as a trustless IPFS gateway: `GET /ipfs/<CID>?format=raw`, nothing else.

Loopback by default. Whoever knows a CID can read its block, so keep private data encrypted or the address closed.
Run alone with `python -m hearth.storage.stores.gateway_server STORE_URL`; a worker runs `GatewayServer` in its own
process. Source: https://specs.ipfs.tech/http-gateways/trustless-gateway/.
"""

from __future__ import annotations

import argparse
import socket
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlsplit

from hearth.base.errors import BadCid, BlockMissing, StorageError
from hearth.storage import cid as cids
from hearth.storage.stores import open_store
from hearth.storage.stores.base import Store
from hearth.storage.stores.gateway import MEDIA_TYPE

MAX_CONNECTIONS: Final = 64
IDLE_SECONDS: Final = 30.0
"""How long a client may take for one read or write of its socket."""
READ_SECONDS: Final = 10.0


class GatewayServer(ThreadingHTTPServer):
    """Serve `store` on `host`:`port` (0 picks a free one) while the context is open.

    Above MAX_CONNECTIONS a new connection is closed at once, so that idle clients cannot use up the process.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, store: Store, host: str = "127.0.0.1", port: int = 0) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.store = store
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """Return the store URL under which clients open this gateway."""
        host, port = self.server_address[:2]
        shown = f"[{host!s}]" if self.address_family == socket.AF_INET6 else str(host)
        return f"gateway+http://{shown}:{port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()
        return self

    def __exit__(self, *args: object) -> None:
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, if a slot is free."""
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection to its end and free its slot."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error, unless it is a client that hung up."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    # Header and body in one packet: sent apart, each small block would wait 40 ms for the client's delayed ACK.
    wbufsize = 2**16
    disable_nagle_algorithm = True
    server: GatewayServer

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        url = urlsplit(self.path)
        name = url.path.removeprefix("/ipfs/").rstrip("/")
        if not url.path.startswith("/ipfs/") or "/" in name:
            return self._send(HTTPStatus.NOT_FOUND, b"only /ipfs/<CID>?format=raw is served\n", with_body=with_body)
        wanted = parse_qs(url.query).get("format", [""])[0]
        if wanted != "raw" and (wanted or MEDIA_TYPE not in self.headers.get("Accept", "")):
            return self._send(HTTPStatus.NOT_ACCEPTABLE, b"only format=raw is served\n", with_body=with_body)
        try:
            block = self.server.store.get_block(cids.parse(name), READ_SECONDS)
        except BadCid as error:
            return self._send(HTTPStatus.BAD_REQUEST, f"{error.message}\n".encode(), with_body=with_body)
        except BlockMissing:
            return self._send(HTTPStatus.NOT_FOUND, b"the block is not here\n", with_body=with_body)
        except StorageError as error:
            return self._send(HTTPStatus.BAD_GATEWAY, f"{error.code}\n".encode(), with_body=with_body)
        self._send(HTTPStatus.OK, block, name, with_body=with_body)

    def _send(self, status: HTTPStatus, body: bytes, name: str | None = None, *, with_body: bool) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
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

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: which client asks for which CID is nobody's business."""


def main() -> None:
    """Serve a store until interrupted; print the gateway's URL first."""
    parser = argparse.ArgumentParser(prog="python -m hearth.storage.stores.gateway_server", description=main.__doc__)
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
