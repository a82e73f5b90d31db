"""The server of `hearth web`: the page, one market's network file, and blocks of the user's store, on loopback.

It holds no key, signs nothing, keeps nothing and passes no RPC on. Every request must name this server as its host, and
must come from the page that it serves or from a person who opened it. Its name is the home's own (`origin.py`), so that
no script of another server meets the page in the browser; it is told to nobody who does not name it. The page is
public; what is the user's (the market's URLs, which may hold keys, and the store) is for who knows the token that this
start drew. It stands in the address that the user is shown, behind the #, which no request carries. Source:
page.md.
"""

from __future__ import annotations

import errno
import hmac
import json
import secrets
import socket
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, ClassVar, Final, NamedTuple, Self
from urllib.parse import quote, urlsplit

from hearth.base.bounded_server import BoundedHandler, BoundedServer, Limits
from hearth.base.errors import BadCid, BlockCorrupt, BlockMissing, ConfigError, StorageError, TooLarge
from hearth.storage import cid as cids
from hearth.storage.stores import Store
from hearth.storage.stores.gateway import MEDIA_TYPE
from hearth.storage.stores.gateway_server import READ_SECONDS, raw_block
from hearth.web.files import INDEX, Page
from hearth.web.policy import policy_of

HOST: Final = "127.0.0.1"
"""The one interface. Over plain http anywhere else, a browser gives a page neither hashes nor a wallet."""
HOST_6: Final = "::1"
"""The same by IPv6: a browser takes a name under localhost for either address."""
PORT: Final = 7373
TOKEN_HEADER: Final = "X-Hearth-Token"
KEEP: Final = "keep"
"""Of `PUT /ipfs/<CID>?keep`: pin the DAG below the block as well."""
MAX_CONNECTIONS: Final = 64
WAIT_SECONDS: Final = 60.0
"""How long a connection may stay without a whole request; a browser keeps its own open."""
WRITE_SECONDS: Final = 60.0
"""How long a block may take from the page into the store, and an answer to the page."""
HEAD_BYTES: Final = 16 * 1024
_TRIES: Final = 16
"""Free ports that are looked at where both addresses need the same one."""
_NO_IPV6: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT})
_ELSEWHERE: Final = b"nothing is served under this name: open the address that hearth web printed when it started\n"
_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Served(NamedTuple):
    """What one start serves: the page, a network's name and file, its store, and the RPCs that the page may ask.

    `network` is the network file's JSON form with the URLs that the page is to use; `writable` says whether the page
    may put blocks.
    """

    page: Page
    name: str
    network: Mapping[str, Any]
    store: Store
    writable: bool


class Answer(NamedTuple):
    """A response: status, body, and the headers that only it has."""

    status: HTTPStatus
    body: bytes
    headers: Mapping[str, str] = {}


class WebServer(BoundedServer):
    """Serve the page on loopback while the context is open; `port` 0 picks a free one.

    `name` is the page's own under localhost; None serves it at 127.0.0.1, an origin that it shares with whoever serves
    that port at another time. Raises ConfigError PORT_BUSY.
    """

    def __init__(self, served: Served, port: int = PORT, *, name: str | None) -> None:
        self.served = served
        self.name = name
        self.token = secrets.token_urlsafe(32)
        self.policy = policy_of(served.network)
        self._other: _Other | None = None
        for left in reversed(range(_TRIES)):
            try:
                super().__init__((HOST, port), _Handler)
                self._other = None if name is None else _Other.beside(self)
                return
            except (OSError, OverflowError) as error:
                self._close_socket()
                if port == 0 and left:
                    continue
                raise ConfigError(
                    f"port {port} of this machine cannot be served on: {getattr(error, 'strerror', None) or error}",
                    hint="hearth web --port 0 takes a free one",
                    code="PORT_BUSY",
                ) from error

    def _close_socket(self) -> None:
        if hasattr(self, "socket"):
            self.socket.close()

    def __enter__(self) -> Self:
        if self._other is not None:
            self._other.__enter__()
        return super().__enter__()

    def __exit__(self, *args: object) -> None:
        super().__exit__(*args)
        if self._other is not None:
            self._other.__exit__(*args)

    @property
    def host(self) -> str:
        """Return the one Host that a request may name."""
        return f"{HOST if self.name is None else f'{self.name}.localhost'}:{self.server_address[1]}"

    @property
    def origin(self) -> str:
        """Return the page's origin."""
        return f"http://{self.host}"

    @property
    def url(self) -> str:
        """Return the address to open, the token in it."""
        return f"{self.origin}/#token={self.token}"

    def limits(self) -> Limits:
        """Return what holds for a connection that comes now: all of them are this machine's."""
        return Limits(MAX_CONNECTIONS, MAX_CONNECTIONS, WAIT_SECONDS, _FULL)

    def local(self) -> Mapping[str, Any]:
        """Return what tells the page that it is served here: its network, and whether it may put blocks."""
        return {"served_by": "hearth web", "network": self.served.name, "writable": self.served.writable}


class _Other(BoundedServer):
    """The same port by IPv6, whose connections are the page's.

    A browser asks at either address. Were this one free, another user of the machine could serve it, and his would be
    the page of that name.
    """

    address_family = socket.AF_INET6

    def __init__(self, page: WebServer) -> None:
        self._page = page
        super().__init__((HOST_6, page.server_address[1]), _Handler)

    @classmethod
    def beside(cls, page: WebServer) -> _Other | None:
        """Return it; None on a machine without IPv6, where nobody serves that address. Raises OSError."""
        try:
            return cls(page)
        except OSError as error:
            if error.errno in _NO_IPV6:
                return None
            raise

    def limits(self) -> Limits:
        """Return the page's: it counts both."""
        return self._page.limits()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Have the page take a connection."""
        self._page.process_request(request, client_address)


class _Handler(BoundedHandler):
    server: WebServer
    head_bytes: ClassVar[int] = HEAD_BYTES

    def do_GET(self) -> None:
        self._answer(self._get, with_body=True)

    def do_HEAD(self) -> None:
        self._answer(self._get, with_body=False)

    def do_PUT(self) -> None:
        self._answer(self._put, with_body=True)

    def _answer(self, make: Callable[[], Answer], *, with_body: bool) -> None:
        self.server.expect(self.connection, 2 * READ_SECONDS + WRITE_SECONDS, served=True)
        if self.command != "PUT":
            self.leave_body()
        answer = self._refusal() or make()
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in {**self._headers(), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(answer.body)

    def _headers(self) -> Mapping[str, str]:
        return {
            "Content-Type": "text/plain; charset=utf-8",
            "Content-Security-Policy": self.server.policy,
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Cache-Control": "no-store",
        }

    def _refusal(self) -> Answer | None:
        """Refuse a request that names another host, or that another page made.

        A name that was pointed at this address names itself as host. Who does not know this server's name is not told.
        A browser says of every request which site made it; a page at another port of this machine is another origin
        too. A person's own click or bookmark opens the page, and nothing else.
        """
        own = self.server.origin
        if self.headers.get_all("Host") != [self.server.host]:
            self.close_connection = True
            return Answer(HTTPStatus.MISDIRECTED_REQUEST, _ELSEWHERE)
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site")
        opens = self.headers.get("Sec-Fetch-Mode") == "navigate" and urlsplit(self.path).path == "/"
        if origin not in (None, own) or not (site in (None, "same-origin", "none") or opens):
            self.close_connection = True
            return Answer(HTTPStatus.FORBIDDEN, b"only the page that is served here may ask\n")
        return None

    # ---- reads ----

    def _get(self) -> Answer:
        path = urlsplit(self.path).path
        return self._public(path) or self._unknown() or self._private(path)

    def _private(self, path: str) -> Answer:
        served = self.server.served
        if path.startswith("/ipfs/"):
            return self._block()
        if path == "/local.json":
            return _json(self.server.local())
        if path == f"/networks/{quote(served.name, safe='')}.json":
            return _json(served.network)
        return _fault(HTTPStatus.NOT_FOUND, "NOT_FOUND", "there is no such file")

    def _public(self, path: str) -> Answer | None:
        served = self.server.served
        file = served.page.files.get(path.removeprefix("/") or INDEX)
        if file is None:
            return None
        tag = f'"{file.cid}"'
        headers = {"Content-Type": file.kind, "Cache-Control": "no-cache", "Etag": tag}
        if self.headers.get("If-None-Match") == tag:
            return Answer(HTTPStatus.NOT_MODIFIED, b"", headers)
        return Answer(HTTPStatus.OK, file.data, headers)

    def _block(self) -> Answer:
        found = raw_block(self.server.served.store, self.path, self.headers.get("Accept", ""))
        if found.name is None:
            return Answer(found.status, found.body)
        headers = {"Content-Type": MEDIA_TYPE, "Content-Disposition": f'attachment; filename="{found.name}.bin"'}
        return Answer(found.status, found.body, headers)

    # ---- blocks that the page puts ----

    def _put(self) -> Answer:
        """Put one block, and with ?keep pin what it is the root of."""
        refused = self._unpermitted() or self._unreadable()
        if refused is not None:
            self.close_connection = True
            return refused
        data = self.rfile.read(int(self.headers["Content-Length"]))
        url, store = urlsplit(self.path), self.server.served.store
        try:
            cid = cids.parse(url.path.removeprefix("/ipfs/"))
            if cid.hash_code != cids.SHA2_256 or cid.version != 1:
                return _fault(HTTPStatus.BAD_REQUEST, "BAD_CID", "a block is put by its CIDv1 of sha2-256")
            store.put_block(cid.verify(data), cid.codec)
            if url.query == KEEP:
                store.pin(cid)
        except (BadCid, BlockCorrupt) as error:
            return _fault(HTTPStatus.BAD_REQUEST, error.code, error.message)
        except BlockMissing as error:
            return _fault(HTTPStatus.CONFLICT, error.code, error.message)
        except TooLarge as error:
            return _fault(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, error.code, error.message)
        except StorageError as error:
            return _fault(HTTPStatus.BAD_GATEWAY, error.code, error.message)
        return _json({"cid": str(cid), "bytes": len(data), "kept": url.query == KEEP}, HTTPStatus.CREATED)

    def _unpermitted(self) -> Answer | None:
        url = urlsplit(self.path)
        if not url.path.startswith("/ipfs/") or url.query not in ("", KEEP):
            return _fault(HTTPStatus.NOT_FOUND, "NOT_FOUND", f"only /ipfs/<CID> and /ipfs/<CID>?{KEEP} take blocks")
        if not self.server.served.writable:
            return _fault(HTTPStatus.FORBIDDEN, "READ_ONLY", "this start serves what there is and takes nothing")
        return self._unknown()

    def _unknown(self) -> Answer | None:
        """Refuse who does not know this start's token."""
        given = self.headers.get(TOKEN_HEADER, "")
        if not hmac.compare_digest(given.encode(), self.server.token.encode()):
            return _fault(HTTPStatus.FORBIDDEN, "BAD_TOKEN", "open the address that hearth web printed when it started")
        return None

    def _unreadable(self) -> Answer | None:
        """Refuse a body of unknown length, or longer than a block, before a byte of it is read."""
        length = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            return _fault(HTTPStatus.LENGTH_REQUIRED, "BAD_LENGTH", "say how long the block is")
        if len(length) > 9 or int(length) > cids.MAX_BLOCK_BYTES:
            why = f"a block has at most {cids.MAX_BLOCK_BYTES} bytes"
            return _fault(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "TOO_LARGE", why)
        return None


def _json(value: Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK) -> Answer:
    return Answer(status, json.dumps(value).encode() + b"\n", {"Content-Type": "application/json"})


def _fault(status: HTTPStatus, code: str, why: str) -> Answer:
    return _json({"error": {"code": code, "message": why}}, status)
