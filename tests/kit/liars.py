"""JSON-RPC providers on loopback that lie, break or stall, in front of an honest one."""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Asked:
    """One request, and every way to answer it."""

    method: str
    params: list[Any]
    id: Any
    upstream: str
    peer: socket.socket
    ended: threading.Event

    def truth(self) -> Any:
        """Return the honest result; an honest refusal is a KeyError."""
        return json.loads(self.forwarded())["result"]

    def forward(self) -> None:
        """Answer honestly."""
        self.body(self.forwarded())

    def say(self, result: Any) -> None:
        """Answer with a result."""
        self.body(json.dumps({"jsonrpc": "2.0", "id": self.id, "result": result}).encode())

    def refuse(self, message: str, code: int = 3) -> None:
        """Answer with an error."""
        self.body(json.dumps({"jsonrpc": "2.0", "id": self.id, "error": {"code": code, "message": message}}).encode())

    def body(self, content: bytes, status: str = "200 OK", *headers: str) -> None:
        """Answer with a body."""
        self.raw("\r\n".join((f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", *headers, "", "")).encode())
        self.raw(content)

    def raw(self, content: bytes) -> None:
        """Send bytes."""
        self.peer.sendall(content)

    def endless(self, piece: bytes, pause: float = 0.0) -> None:
        """Send a piece again and again, until the other side has enough or the test is over."""
        while not self.ended.wait(pause):
            self.raw(piece)

    def forwarded(self) -> bytes:
        """Return the honest answer as it came."""
        content = json.dumps({"jsonrpc": "2.0", "id": self.id, "method": self.method, "params": self.params}).encode()
        request = urllib.request.Request(self.upstream, content, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return bytes(answer.read())


Lie = Callable[[Asked], None]


@cache
def _blanks() -> tuple[bytes, bytes]:
    """Return 16 MiB of blanks as gzip: from the start of its stream, and as they go on."""
    deflate = zlib.compressobj(9, wbits=31)
    first, more = (
        b"".join(deflate.compress(b" " * (1 << 20)) for _ in range(16)) + deflate.flush(zlib.Z_FULL_FLUSH)
        for _ in range(2)
    )
    return first, more


class Liar:
    """A provider at `url` that answers each request by the next of its lies; `counts` are its requests by method."""

    def __init__(self, upstream: str, lies: Sequence[Lie]) -> None:
        self.counts: Counter[str] = Counter()
        self.lies = list(lies)
        self._upstream = upstream
        self._turn = 0
        self._ended = threading.Event()
        liar = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with suppress(OSError):
                    liar._answer(asked, self.connection)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        # Whoever is lied to hangs up.
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign,assignment,misc]
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def _answer(self, asked: dict[str, Any], peer: socket.socket) -> None:
        self.counts[asked["method"]] += 1
        self._turn += 1
        lie = self.lies[self._turn % len(self.lies)]
        lie(Asked(asked["method"], asked["params"], asked["id"], self._upstream, peer, self._ended))

    def close(self) -> None:
        """End it."""
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def lying(upstream: str, *lies: Lie) -> Iterator[Liar]:
    """Run one liar."""
    made = Liar(upstream, lies)
    try:
        yield made
    finally:
        made.close()


# ---- answers that no honest provider gives: each is its provider's failure ----


def drips_a_body(asked: Asked) -> None:
    """A byte, and soon another."""
    asked.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    asked.endless(b" ", 0.05)


def drips_headers(asked: Asked) -> None:
    """Headers without an end."""
    asked.raw(b"HTTP/1.1 200 OK\r\nX: ")
    asked.endless(b"y", 0.05)


def says_continue(asked: Asked) -> None:
    """HTTP's word for "go on", for ever."""
    asked.endless(b"HTTP/1.1 100 Continue\r\n\r\n", 0.01)


def says_nothing(asked: Asked) -> None:
    """An open connection."""
    asked.ended.wait()


def nests(asked: Asked) -> None:
    """100,000 brackets."""
    asked.body(b"[" * 100_000)


def nests_a_result(asked: Asked) -> None:
    """The same, where a result is."""
    asked.body(b'{"jsonrpc":"2.0","id":%d,"result":' % asked.id + b"[" * 50_000 + b"]" * 50_000 + b"}")


def packs_lists(asked: Asked) -> None:
    """As many objects as fit into an answer."""
    asked.body(b'{"jsonrpc":"2.0","id":%d,"result":[' % asked.id + b"[]," * 1_300_000 + b"[]]}")


def bombs(asked: Asked) -> None:
    """3 MiB of gzip that are 3 GiB of blanks."""
    first, more = _blanks()
    asked.raw(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" + first)
    for _ in range(200):
        asked.raw(more)


def floods(asked: Asked) -> None:
    """A body that has no end."""
    asked.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 21474836480\r\n\r\n")
    asked.endless(b" " * 65536)


def floods_in_chunks(asked: Asked) -> None:
    """The same, without its length."""
    asked.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    asked.endless(b"10000\r\n" + b" " * 65536 + b"\r\n")


def sends_null(asked: Asked) -> None:
    """Null for everything, the chain id too."""
    asked.say(None)


def sends_an_empty_block(asked: Asked) -> None:
    """An object without fields."""
    asked.say({})


def sends_a_wrong_type(asked: Asked) -> None:
    """A number where text is, and the other way round."""
    asked.say([{"number": 7}])


def answers_another(asked: Asked) -> None:
    """The honest answer, with another request's id."""
    asked.body(json.dumps({"jsonrpc": "2.0", "id": 10**6, "result": asked.truth()}).encode())


def answers_a_batch(asked: Asked) -> None:
    """A list of answers to one request."""
    asked.body(json.dumps([{"jsonrpc": "2.0", "id": asked.id, "result": asked.truth()}]).encode())


def redirects(asked: Asked) -> None:
    """307 to itself, with a body that looks like an answer."""
    content = json.dumps({"jsonrpc": "2.0", "id": asked.id, "result": "0x1"}).encode()
    asked.body(content, "307 Temporary Redirect", f"Location: {asked.upstream}")


def cuts_off(asked: Asked) -> None:
    """Half an answer."""
    asked.raw(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"jsonrpc"')
    asked.peer.shutdown(socket.SHUT_RDWR)


def counts_beyond_reason(asked: Asked) -> None:
    """Numbers of 4,000 digits, and of 255 bits."""
    asked.body(b'{"jsonrpc":"2.0","id":%d,"result":"0x%s"}' % (asked.id, b"f" * 4000))


def serves_another_chain(asked: Asked) -> None:
    """Another chain's id."""
    asked.say("0x1")


def speaks_no_http(asked: Asked) -> None:
    """Bytes."""
    asked.raw(b"\x00\xff" * 100 + b"\r\n\r\n")
    asked.peer.shutdown(socket.SHUT_RDWR)


def half_a_surrogate(asked: Asked) -> None:
    """An error whose text no file can hold."""
    asked.body(b'{"jsonrpc":"2.0","id":%d,"error":{"code":-1,"message":"\\ud800"}}' % asked.id)


BROKEN: tuple[Lie, ...] = (
    sends_null,
    drips_a_body,
    sends_an_empty_block,
    nests,
    drips_headers,
    nests_a_result,
    packs_lists,
    bombs,
    floods,
    answers_another,
    says_continue,
    floods_in_chunks,
    sends_a_wrong_type,
    answers_a_batch,
    says_nothing,
    redirects,
    cuts_off,
    counts_beyond_reason,
    serves_another_chain,
    speaks_no_http,
    half_a_surrogate,
)
"""Every one of them alone must be no more than its provider's failure."""


def honest(asked: Asked) -> None:
    """Answer honestly."""
    asked.forward()
