"""A provider that a browser may ask, in front of an honest one: a test makes it lie, refuse, fail or wait."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from tests.kit.http import Answer, answering, send

_CORS = {
    "Access_Control_Allow_Origin": "*",
    "Access_Control_Allow_Headers": "Content-Type",
    "Access_Control_Expose_Headers": "Retry-After",
}
HELD_SECONDS = 60.0
"""How long a request that is held waits at most."""


class Ask(NamedTuple):
    """One of the requests that a body holds."""

    method: str
    params: list[Any]


Reply = dict[str, Any]
"""JSON-RPC's answer: its id, and a result or an error."""
Change = Callable[[Ask, Reply], Reply]


class WebRpc:
    """An honest provider at `url`, but for what a test has it do meanwhile; `asked` is what each request asked for."""

    def __init__(self, upstream: str, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[tuple[Ask, ...]] = []
        self._upstream = upstream
        self._change: Change | None = None
        self._instead: Answer | None = None
        self._go = threading.Event()
        self._go.set()

    @contextmanager
    def changing(self, change: Change) -> Iterator[None]:
        """Pass each answer through `change` while the context is open."""
        self._change = change
        try:
            yield
        finally:
            self._change = None

    @contextmanager
    def answering(self, answer: Answer) -> Iterator[None]:
        """Answer every request with `answer` while the context is open."""
        self._instead = answer
        try:
            yield
        finally:
            self._instead = None

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Answer nothing while the context is open; what was asked meanwhile is answered then."""
        self._go.clear()
        try:
            yield
        finally:
            self._go.set()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one HTTP request."""
        if handler.command != "POST":
            send(handler, 204, **_CORS)
            return
        content = handler.rfile.read(int(handler.headers["Content-Length"]))
        body = json.loads(content)
        asks = body if isinstance(body, list) else [body]
        by_id = {one["id"]: Ask(one["method"], one["params"]) for one in asks}
        self.asked.append(tuple(by_id.values()))
        self._go.wait(HELD_SECONDS)
        if self._instead is not None:
            self._instead(handler)
            return
        said = self._forward(content)
        if self._change is not None:
            replies = said if isinstance(said, list) else [said]
            changed = [self._change(by_id[one["id"]], one) for one in replies]
            said = changed if isinstance(said, list) else changed[0]
        say(handler, said)

    def _forward(self, content: bytes) -> Any:
        request = urllib.request.Request(self._upstream, content, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=HELD_SECONDS) as answer:
            return json.loads(answer.read())


@contextmanager
def web_rpc(upstream: str) -> Iterator[WebRpc]:
    """Run one while the context is open."""
    made: list[WebRpc] = []
    with answering(lambda handler: made[0].answer(handler)) as port:
        made.append(WebRpc(upstream, port))
        yield made[0]


# ---- what it may do ----


def say(handler: BaseHTTPRequestHandler, body: Any, status: int = 200, **headers: str) -> None:
    """Send JSON that a page of another origin may read; of headers `_` stands for `-`."""
    raw(handler, json.dumps(body).encode(), status, **headers)


def raw(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    """Send a body that a page of another origin may read."""
    send(handler, status, body, Content_Type="application/json", **_CORS, **headers)


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    """Close the connection without a word."""
    handler.close_connection = True


def of(method: str, result: Callable[[Ask, Any], Any]) -> Change:
    """Return the change of one method's results alone: `result` gets what was asked and what is true."""

    def change(ask: Ask, reply: Reply) -> Reply:
        if ask.method != method or "result" not in reply:
            return reply
        return {**reply, "result": result(ask, reply["result"])}

    return change


def refusing(when: Callable[[Ask], bool], message: str, code: int = -32005) -> Change:
    """Return the change that refuses some requests with a provider's own words."""

    def change(ask: Ask, reply: Reply) -> Reply:
        if not when(ask):
            return reply
        return {"jsonrpc": "2.0", "id": reply["id"], "error": {"code": code, "message": message}}

    return change
