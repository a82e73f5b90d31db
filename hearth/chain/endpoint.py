"""One JSON-RPC provider over HTTP, which may be slow, broken or hostile: what it costs is bounded.

A request has a deadline for all of it, from the look-up of the name to the answer's last byte (`hearth.base.http`). An
answer has a cap in bytes as it is after decompression, the request's own id, and a shape. Redirects are not followed:
they would carry a transaction, or the secret in a URL, to wherever the provider says. Whatever fails any of this is
`ProviderFailed`.
"""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import ssl
import time
import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from hearth.base.errors import ConfigError
from hearth.base.http import CutOff, Host, pieces
from hearth.base.untrusted_json import read_json
from hearth.base.urls import Secrets, each_text, secrets_of_url
from hearth.chain.answers import MALFORMED, ProviderFailed, TooMuch, failure_of, retry_after

MAX_ANSWER: Final = 4 << 20
"""Bytes of an answer; the largest that honest nodes give are contract code and the hashes of a full block."""
MAX_LOGS: Final = 8 << 20
"""Bytes of the logs of one range; a range with more is asked for in halves."""
BYTES_A_VALUE: Final = 16
"""An honest answer's values have more on average: hashes and addresses do, and the names of fields."""

_LATE: Final = (408, 504, 524)
"""HTTP statuses by which a gateway says that the node behind it took too long: for logs, that they are too many."""

Parsed = TypeVar("Parsed")


class _Http(NamedTuple):
    """A whole HTTP answer."""

    status: int
    retry_after: str | None
    body: bytes


class Endpoint:
    """One RPC URL. The URL may carry a secret: only `name` is ever shown. Threads may share it."""

    def __init__(self, url: str, timeout: float) -> None:
        """Open nothing yet; `timeout` is seconds for one whole answer. Raises ConfigError BAD_RPC_URL."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:  # its words quote the URL
            parts, port = urlsplit(""), 0
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise ConfigError(
                f"{parts.scheme or 'this'} is no RPC address", hint="use --rpc http://host:port", code="BAD_RPC_URL"
            )
        self.name = f"{parts.scheme}://{parts.hostname}" + (f":{port}" if port else "")
        self.timeout = timeout
        secure = parts.scheme == "https"
        # A provider on this machine or its network is as good as any: whoever owns the worker has named it.
        self._host = Host(parts.hostname, port or (443 if secure else 80), secure=secure, public=False)
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {
            "Host": parts.netloc.rpartition("@")[2],
            "Content-Type": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": "hearth",
        }
        if parts.username:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        # "unknown project 1f2e..." is what some say, with the key in their own URL.
        self._secrets = Secrets(secrets_of_url(url), "...")
        self._ids = itertools.count(1)

    def ask(self, method: str, params: list[Any], parse: Callable[[Any], Parsed]) -> Parsed:
        """Send one request and return its parsed result.

        Raises ProviderFailed, TooMuch, or the typed error of a refusal by a contract or a pool.
        """
        number = next(self._ids)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        is_logs = method == "eth_getLogs"
        limit = MAX_LOGS if is_logs else MAX_ANSWER
        try:
            found = self._post(json.dumps(request).encode(), limit)
        except _TooLong as error:
            if is_logs:
                raise TooMuch(str(error)) from error
            raise ProviderFailed(str(error), code="RPC_BROKEN") from error
        result = self._result_of(found, method, number, limit)
        try:
            return parse(result)
        except MALFORMED as error:
            why = f"its answer to {method} is malformed: {self._secrets.hide(str(error))[:200]}"
            raise ProviderFailed(why, code="RPC_BROKEN") from error

    def _result_of(self, found: _Http, method: str, number: int, limit: int) -> Any:
        """Return the result in an HTTP answer. Raises what `ask` raises."""
        wait = retry_after(found.retry_after)
        if found.status == 429 or (found.status == 503 and wait):
            raise ProviderFailed(f"it is asked too often (HTTP status {found.status})", wait, throttled=True)
        if found.status == 413 and method == "eth_getLogs":
            raise TooMuch("413")
        if 300 <= found.status < 400:
            raise ProviderFailed(f"it redirects (HTTP status {found.status}), which an RPC may not")
        late = found.status in _LATE
        try:
            answer = read_json(found.body, max_bytes=limit, max_values=1000 + len(found.body) // BYTES_A_VALUE)
        except ValueError as error:
            if found.status >= 400:
                raise ProviderFailed(f"HTTP status {found.status}", wait, timeout=late) from error
            raise ProviderFailed(f"it sent a broken answer: {str(error)[:200]}", code="RPC_BROKEN") from error
        # Some providers wrap ordinary JSON-RPC errors in HTTP 400; what could not be read has no id.
        # Some write back a number as text.
        told = answer.get("id") if isinstance(answer, dict) else None
        is_ours = told in (number, str(number))
        if isinstance(answer, dict) and answer.get("error") is not None and (is_ours or told is None):
            raise failure_of(each_text(answer["error"], self._secrets.hide), method, wait)
        if found.status >= 400:
            raise ProviderFailed(f"HTTP status {found.status}", wait, timeout=late)
        if not isinstance(answer, dict) or not is_ours or "result" not in answer:
            raise ProviderFailed("it sent no answer to this request", code="RPC_BROKEN")
        return answer["result"]

    # ---- HTTP ----

    def _post(self, body: bytes, limit: int) -> _Http:
        """Send a body and return the whole answer. Raises ProviderFailed, _TooLong."""
        end = time.monotonic() + self.timeout

        def read(response: http.client.HTTPResponse) -> _Http:
            return _Http(response.status, response.headers.get("Retry-After"), _content(response, limit, end))

        try:
            return self._host.exchange("POST", self._target, headers=self._headers, body=body, end=end, read=read)
        except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
            if time.monotonic() >= end or isinstance(error, TimeoutError):
                raise ProviderFailed(f"no whole answer within {self.timeout:g} s", timeout=True) from error
            if isinstance(error, ssl.SSLCertVerificationError):
                raise ProviderFailed(f"its certificate does not hold: {error.verify_message}") from error
            if isinstance(error, OSError):
                raise ProviderFailed("it cannot be reached") from error
            raise ProviderFailed("it sent a broken answer", code="RPC_BROKEN") from error


class _TooLong(Exception):
    """The answer has more bytes than are read."""


def _content(response: http.client.HTTPResponse, limit: int, end: float) -> bytes:
    """Return an answer's body, decompressed. Raises _TooLong, OSError, ValueError, zlib.error."""
    coding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("identity", "gzip"):
        raise ValueError("a coding that was not asked for")
    inflate = zlib.decompressobj(wbits=31) if coding == "gzip" else None
    content = bytearray()
    for piece in pieces(response, end):
        content += piece if inflate is None else inflate.decompress(piece, limit + 1 - len(content))
        if len(content) > limit:
            raise _TooLong(f"its answer has more than {limit} bytes")
    if inflate is not None and not inflate.eof:
        raise CutOff("the compressed answer has no end")
    return bytes(content)
