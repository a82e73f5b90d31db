"""HTTP with one host that may be slow, broken or hostile: an exchange has one deadline for all of it.

The deadline covers the name's look-up, the connection, TLS, and the answer to its last byte. No redirect is followed,
nothing is unpacked, and no proxy is used. What an answer may hold is for its reader to bound. Every request that goes
to a stranger goes from here (`tests/checks/test_connections.py`).
"""

from __future__ import annotations

import http.client
import math
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, TypeVar, cast

from hearth.base import peer
from hearth.base.text import brief, one_line, quoted

READ_BYTES: Final = 64 * 1024
"""Bytes of an answer that are read at once, at most."""

EXCESS_SECONDS: Final = 1.0
"""How long is waited for bytes after an answer's last one, where its server said that it hangs up then."""
_SAID: Final = 120
"""Characters of a server's own words that are quoted, at most."""

Answer = TypeVar("Answer")


class CutOff(http.client.HTTPException):
    """An answer is shorter or longer than the length that it announced."""


class Host:
    """Connections to one host, which are kept and used again. Threads may share it."""

    def __init__(self, name: str, port: int, *, secure: bool, public: bool, silence: float = math.inf) -> None:
        """Open nothing yet. `secure` is TLS with a certificate for the name; `public` is that of `peer.connect`.

        `silence` is how many seconds may pass in an exchange without a byte, the deadline apart.
        """
        self._name, self._port = name, port
        self._secure, self._public = secure, public
        self._silence = silence
        self._idle: list[http.client.HTTPConnection] = []
        self._idle_lock = threading.Lock()

    def exchange(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        end: float,
        read: Callable[[http.client.HTTPResponse], Answer],
    ) -> Answer:
        """Send one request, and return what `read` makes of the answer, by a time of `time.monotonic`.

        Whatever `read` raises is raised here. So are OSError and http.client.HTTPException, of any kind once the time
        is over. A request may be sent twice, where the other side has closed a connection that was idle.
        """

        def over(connection: http.client.HTTPConnection) -> Answer:
            keep = False
            try:
                cast(_Timed, connection.sock).begin(end, self._silence)
                connection.request(method, target, body, dict(headers))
                response = connection.getresponse()
                answer = read(response)
                keep = response.isclosed() and not response.will_close
                return answer
            finally:
                self._give_back(connection, keep)

        idle = self._take_idle()
        if idle is not None:
            # The other side may have closed it meanwhile; a fresh connection would have no such excuse.
            with suppress(http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
                return over(idle)
        return over(self._connect(end))

    def close(self) -> None:
        """Close idle connections."""
        while (connection := self._take_idle()) is not None:
            connection.close()

    def _take_idle(self) -> http.client.HTTPConnection | None:
        with self._idle_lock:
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: http.client.HTTPConnection, keep: bool) -> None:
        if keep:
            with self._idle_lock:
                self._idle.append(connection)
        else:
            connection.close()

    def _connect(self, end: float) -> http.client.HTTPConnection:
        """Open a connection to an address that was looked at; the name stays in Host, and in TLS where that is used."""
        wire: socket.socket = _Timed(fileno=peer.connect(self._name, self._port, end=end, public=self._public).detach())
        connection = http.client.HTTPConnection(self._name, self._port)
        if self._secure:
            # Of HTTPS, so that the port 443 is left out of Host.
            connection = http.client.HTTPSConnection(self._name, self._port, context=self._tls)
            try:
                # The socket's timeout is one for the whole handshake.
                wire.settimeout(min(left(end), self._silence))
                # An end that the other side did not sign may be anybody's, and is no end of an answer.
                wire = self._tls.wrap_socket(wire, server_hostname=self._name, suppress_ragged_eofs=False)
            except (OSError, ValueError):
                wire.close()
                raise
        connection.sock = wire
        connection.auto_open = 0  # never to the name again, unlooked at
        return connection

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.sslsocket_class = _Secure
        return context


class _Timed(socket.socket):
    """A socket of an exchange with one deadline. A socket's own timeout is for each read: it is set before each, so
    that bytes that come one by one, each just in time, end with the exchange. What is sent has one for all of it."""

    _end = _silence = math.inf

    def begin(self, end: float, silence: float) -> None:
        """Begin an exchange: by a time of `time.monotonic`, and with at most so many seconds without a byte."""
        self._end, self._silence = end, silence
        self._limit_next()

    def _limit_next(self) -> None:
        self.settimeout(min(left(self._end), self._silence))

    def recv_into(self, *args: Any) -> int:
        self._limit_next()
        return super().recv_into(*args)


class _Secure(_Timed, ssl.SSLSocket):
    """A socket with TLS, which sends piece by piece."""

    def send(self, *args: Any) -> int:
        self._limit_next()
        return super().send(*args)


def pieces(response: http.client.HTTPResponse, end: float) -> Iterator[bytes]:
    """Yield an answer's body as it comes, and end where it was read in time, with just the length that it announced.

    Raises CutOff, TimeoutError, and what a socket and `http.client` raise.
    """
    # What comes after the length is looked at too: http.client would leave it unread.
    announced, response.length = response.length, None
    taken = 0
    while (announced is None or taken < announced) and (piece := response.read1(READ_BYTES)):
        taken += len(piece)
        yield piece
        left(end)
    left(end)
    if announced is not None and taken < announced:
        raise CutOff(f"its answer was cut off, {announced - taken} bytes are missing")
    if announced is not None and (taken > announced or _goes_on(response)):
        raise CutOff(f"its answer has more than the {announced} bytes that it announced")
    response.close()  # read1() leaves this to the caller; the connection stays open


def _goes_on(response: http.client.HTTPResponse) -> bool:
    """Say whether more bytes come after the announced ones, of a server that said that it hangs up after them."""
    if not response.will_close or response.fp is None:
        return False
    watch = select.poll()
    watch.register(response.fp, select.POLLIN)
    with suppress(OSError):  # hung up without a word, or silent
        return bool(watch.poll(EXCESS_SECONDS * 1000)) and response.fp.read(1) != b""
    return False


def said(error: Exception) -> str:
    """Return why an exchange failed, in one line that any screen may show; the other side's own words are quoted."""
    if isinstance(error, http.client.RemoteDisconnected):
        return "it hung up without an answer"
    if isinstance(error, http.client.BadStatusLine):
        return f"its answer is no HTTP: {quoted(str(error))}"
    if isinstance(error, http.client.UnknownProtocol):
        return f"its answer is no HTTP/1.1: {quoted(str(error))}"
    if isinstance(error, http.client.IncompleteRead):
        return "its answer was cut off"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate does not hold: {one_line(error.verify_message)}"
    if isinstance(error, ssl.SSLEOFError):
        return "its answer was cut off"
    why = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return brief(one_line(why), _SAID)


def left(end: float) -> float:
    """Return the seconds until a time of `time.monotonic`. Raises TimeoutError where there are none."""
    seconds = end - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("the deadline has passed")
    return seconds
