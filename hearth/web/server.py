"""The server of `hearth web`: the page, one market's network file, and blocks of the user's store, on loopback.

It holds no key, signs nothing, keeps nothing and passes no RPC on. Every request must name this server as its host, and
must come from the page that it serves or from a person who opened it. Anybody on this machine may load that page, which
is public; what is the user's (the market's URLs, which may hold keys, and the store) is for who knows the token that
this start drew. It stands in the address that the user is shown, behind the #, which no request carries. Source: SPEC
section "Page".
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import quote, urlsplit

from hearth.base.crowd import CrowdHandler, CrowdServer, Limits
from hearth.base.errors import BadCid, BlockCorrupt, BlockMissing, ConfigError, StorageError, TooLarge
from hearth.storage import cid as cids
from hearth.storage.stores import Store
from hearth.storage.stores.gateway import MEDIA_TYPE
from hearth.storage.stores.gateway_server import READ_SECONDS, raw_block
from hearth.web.files import INDEX, Page

HOST: Final = "127.0.0.1"
"""The one interface. Over plain http anywhere else, a browser gives a page neither hashes nor a wallet."""
PORT: Final = 7373
TOKEN_HEADER: Final = "X-Hearth-Token"
TRUSTED: Final = "hearth-offline"
"""The one policy of Trusted Types: it names the service worker's script, and nothing else."""
KEEP: Final = "keep"
"""Of `PUT /ipfs/<CID>?keep`: pin the DAG below the block as well."""
MAX_CONNECTIONS: Final = 64
WAIT_SECONDS: Final = 60.0
"""How long a connection may stay without a whole request; a browser keeps its own open."""
WRITE_SECONDS: Final = 60.0
"""How long a block may take from the page into the store, and an answer to the page."""
HEAD_BYTES: Final = 16 * 1024
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


def policy_of(network: Mapping[str, Any]) -> str:
    """Return the Content-Security-Policy: what the page may load is its own, whom it may ask is the network's."""
    asked = dict.fromkeys(origin for url in (*network["rpc"], *network["gateways"]) if (origin := origin_of(url)))
    return "; ".join(
        (
            *(
                "default-src 'none'",
                "script-src 'self'",
                "worker-src 'self'",
                "style-src 'self'",
                "img-src 'self' data:",
            ),
            " ".join(("connect-src 'self'", *asked)),
            *("form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'"),
            *("require-trusted-types-for 'script'", f"trusted-types {TRUSTED}"),
        )
    )


def origin_of(url: str) -> str:
    """Return scheme, host and port of an http URL, "" for what is none: a policy must not be a stranger's text."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    named = all(char.isascii() and (char.isalnum() or char in ".-") for char in host)
    numbered = ":" in host and all(char in "0123456789abcdef:." for char in host)
    if parts.scheme not in ("http", "https") or not host or not (named or numbered):
        return ""
    shown = f"[{host}]" if numbered else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port else "")


class WebServer(CrowdServer):
    """Serve the page on loopback while the context is open; `port` 0 picks a free one.

    Raises ConfigError PORT_BUSY.
    """

    def __init__(self, served: Served, port: int = PORT) -> None:
        self.served = served
        self.token = secrets.token_urlsafe(32)
        self.policy = policy_of(served.network)
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"port {port} of {HOST} cannot be served on: {getattr(error, 'strerror', None) or error}",
                hint="hearth web --port 0 takes a free one",
                code="PORT_BUSY",
            ) from error

    @property
    def host(self) -> str:
        """Return the one Host that a request may name."""
        return f"{HOST}:{self.server_address[1]}"

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


class _Handler(CrowdHandler):
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

        A name that was pointed at this address names itself as host. A browser says of every request which site made
        it; a page at another port of this machine is another origin too. A person's own click or bookmark opens the
        page, and nothing else.
        """
        own = self.server.origin
        if self.headers.get_all("Host") != [self.server.host]:
            self.close_connection = True
            return Answer(HTTPStatus.MISDIRECTED_REQUEST, f"this is {own}/\n".encode())
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


def network_for(network: Mapping[str, Any], rpcs: Sequence[str], gateways: Sequence[str]) -> dict[str, Any]:
    """Return the network file that the page is served: with these URLs, those that a browser can ask.

    One with a user or a password in it is left out: a browser refuses to ask it.
    """
    return {**network, "rpc": [*filter(_askable, rpcs)], "gateways": [*filter(_askable, gateways)]}


def _askable(url: str) -> bool:
    return bool(origin_of(url)) and "@" not in urlsplit(url).netloc
