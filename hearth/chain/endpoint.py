"""One JSON-RPC provider over HTTP, which may be slow, broken or hostile: what it costs is bounded.

An answer has a deadline that covers all of it from the first packet to the last, a cap in bytes as it is after
decompression, the request's own id, and a shape. Redirects are not followed: they would carry a transaction, or the
secret in a URL, to wherever the provider says. Whatever fails any of this is `ProviderFailed`.
"""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from hearth.base.errors import ConfigError
from hearth.base.strangers import read_json
from hearth.base.urls import secrets_of_url
from hearth.chain.answers import MALFORMED, ProviderFailed, TooMuch, failure_of, retry_after

if TYPE_CHECKING:
    import ssl

MAX_ANSWER: Final = 4 << 20
"""Bytes of an answer; the largest that honest nodes give are contract code and the hashes of a full block."""
MAX_LOGS: Final = 8 << 20
"""Bytes of the logs of one range; a range with more is asked for in halves."""
BYTES_A_VALUE: Final = 16
"""An honest answer's values have more on average: hashes and addresses do, and the names of fields."""
MIN_SECRET: Final = 5
"""Characters below which a part of a URL is not looked for in a provider's words."""
MAX_ADDRESSES: Final = 3
"""Addresses of one name that are tried."""
_READ_BYTES: Final = 64 * 1024

Parsed = TypeVar("Parsed")


class TokenBucket:
    """Let through `rate` requests a second, `burst` at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._rate, self._burst = rate, burst
        self._clock, self._sleep = clock, sleep
        self._tokens, self._at = burst, clock()
        self._lock = threading.Lock()

    def take(self) -> None:
        """Take one token, waiting for it where there is none."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate) - 1
            self._at = now
            wait = max(0.0, -self._tokens / self._rate)
        if wait:
            self._sleep(wait)


class _Http(NamedTuple):
    """A whole HTTP answer."""

    status: int
    retry_after: str | None
    body: bytes


class Endpoint:
    """One RPC URL. The URL may carry a secret: only `name` is ever shown. Threads may share it."""

    def __init__(self, url: str, timeout: float, bucket: TokenBucket) -> None:
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
        self._bucket = bucket
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, port or (443 if self._secure else 80)
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
        self._secrets = [one for one in secrets_of_url(url) if len(one) >= MIN_SECRET]
        self._ids = itertools.count(1)
        self._idle: list[http.client.HTTPConnection] = []
        self._idle_lock = threading.Lock()

    def ask(self, method: str, params: list[Any], parse: Callable[[Any], Parsed]) -> Parsed:
        """Send one request and return its parsed result.

        Raises ProviderFailed, TooMuch, or the typed error of a refusal by a contract or a pool.
        """
        self._bucket.take()
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
            why = f"its answer to {method} is malformed: {self._hide(str(error))[:200]}"
            raise ProviderFailed(why, code="RPC_BROKEN") from error

    def _result_of(self, found: _Http, method: str, number: int, limit: int) -> Any:
        """Return the result in an HTTP answer. Raises what `ask` raises."""
        wait = retry_after(found.retry_after)
        if found.status == 429:
            raise ProviderFailed("rate limited (429)", wait, throttled=True)
        if found.status == 413 and method == "eth_getLogs":
            raise TooMuch("413")
        if 300 <= found.status < 400:
            raise ProviderFailed(f"it redirects (HTTP status {found.status}), which an RPC may not")
        try:
            answer = read_json(found.body, max_bytes=limit, max_values=1000 + len(found.body) // BYTES_A_VALUE)
        except ValueError as error:
            if found.status >= 400:
                raise ProviderFailed(f"HTTP status {found.status}", wait) from error
            raise ProviderFailed(f"it sent a broken answer: {str(error)[:200]}", code="RPC_BROKEN") from error
        # Some providers wrap ordinary JSON-RPC errors in HTTP 400; what could not be read has no id.
        if isinstance(answer, dict) and answer.get("error") is not None and answer.get("id") in (number, None):
            raise failure_of(json.loads(self._hide(json.dumps(answer["error"]))), method)
        if found.status >= 400:
            raise ProviderFailed(f"HTTP status {found.status}", wait)
        if not isinstance(answer, dict) or answer.get("id") != number or "result" not in answer:
            raise ProviderFailed("it sent no answer to this request", code="RPC_BROKEN")
        return answer["result"]

    def _hide(self, text: str) -> str:
        """Return a provider's words without the key in its own URL: "unknown project 1f2e..." is what some say."""
        for secret in self._secrets:
            text = text.replace(secret, "...")
        return text

    # ---- HTTP ----

    def _post(self, body: bytes, limit: int) -> _Http:
        """Send a body and return the whole answer. Raises ProviderFailed, _TooLong."""
        end = time.monotonic() + self.timeout
        try:
            with self._idle_lock:
                idle = self._idle.pop() if self._idle else None
            if idle is not None:
                # The other side may have closed it meanwhile; a fresh connection would have no such excuse.
                with suppress(http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                    return self._exchange(idle, body, limit, end)
            return self._exchange(self._connect(end), body, limit, end)
        except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
            if time.monotonic() >= end or isinstance(error, TimeoutError):
                raise ProviderFailed(f"no whole answer within {self.timeout:g} s", timeout=True) from error
            if isinstance(error, (http.client.HTTPException, zlib.error, ValueError)):
                raise ProviderFailed("it sent a broken answer", code="RPC_BROKEN") from error
            raise ProviderFailed("it cannot be reached") from error

    def _connect(self, end: float) -> http.client.HTTPConnection:
        """Open a connection to one of the first addresses of the name. Raises OSError."""
        failure: OSError = OSError("the name has no address")
        for *_, address in socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)[:MAX_ADDRESSES]:
            try:
                peer = socket.create_connection((str(address[0]), self._port), timeout=_left(end))
            except OSError as error:
                failure = error
                continue
            # Headers and body are two packets, and the second must not wait for the first's acknowledgement.
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = http.client.HTTPConnection(self._host, self._port)
            connection.sock = peer
            if self._secure:
                try:
                    # The handshake's deadline is for all of it.
                    connection.sock = self._tls.wrap_socket(peer, server_hostname=self._host)
                except OSError:
                    peer.close()
                    raise
            return connection
        raise failure

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        import ssl

        return ssl.create_default_context()

    def _exchange(self, connection: http.client.HTTPConnection, body: bytes, limit: int, end: float) -> _Http:
        # A timeout of a socket is per read; the timer ends an exchange whose every byte comes just in time.
        timer = threading.Timer(_left(end), _shut, (connection.sock,))
        timer.daemon = True
        timer.start()
        keep = False
        try:
            connection.sock.settimeout(_left(end))
            connection.request("POST", self._target, body, self._headers)
            response = connection.getresponse()
            content = _content(response, limit, end)
            keep = not response.will_close
            return _Http(response.status, response.headers.get("Retry-After"), content)
        finally:
            timer.cancel()
            if keep:
                with self._idle_lock:
                    self._idle.append(connection)
            else:
                connection.close()


class _TooLong(Exception):
    """The answer has more bytes than are read."""


def _content(response: http.client.HTTPResponse, limit: int, end: float) -> bytes:
    """Return an answer's body, decompressed. Raises _TooLong, OSError, ValueError, zlib.error."""
    coding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("identity", "gzip"):
        raise ValueError("a coding that was not asked for")
    inflate = zlib.decompressobj(wbits=31) if coding == "gzip" else None
    content = bytearray()
    while piece := response.read1(_READ_BYTES):
        content += piece if inflate is None else inflate.decompress(piece, limit + 1 - len(content))
        if len(content) > limit:
            raise _TooLong(f"its answer has more than {limit} bytes")
        _left(end)
    _left(end)
    if response.length or (inflate is not None and not inflate.eof):
        raise ValueError("it was cut off")
    response.close()  # read1() leaves this to the caller; the connection stays open
    return bytes(content)


def _left(end: float) -> float:
    """Return the seconds until a time of `time.monotonic`. Raises TimeoutError where there are none."""
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _shut(peer: socket.socket) -> None:
    with suppress(OSError):  # closed already
        # Not SSLSocket's own shutdown, which would take its state away under the reader's feet.
        socket.socket.shutdown(peer, socket.SHUT_RDWR)
