"""HTTP with one host that may be slow, broken or hostile: an exchange has one deadline for all of it.

The deadline covers the name's look-up, the connection, TLS, and the answer to its last byte. No redirect is followed,
nothing is unpacked, and no proxy is used. What an answer may hold is for its reader to bound.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Final, TypeVar

from hearth.base import peer

READ_BYTES: Final = 64 * 1024
"""Bytes of an answer that are read at once, at most."""

Answer = TypeVar("Answer")


class CutOff(http.client.HTTPException):
    """An answer ended before the length that it announced."""


class Host:
    """Connections to one host, which are kept and used again. Threads may share it."""

    def __init__(self, name: str, port: int, *, secure: bool, public: bool) -> None:
        """Open nothing yet. `secure` is TLS with a certificate for the name; `public` is that of `peer.connect`."""
        self._name, self._port = name, port
        self._secure, self._public = secure, public
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
            # A timeout of a socket is per read; the timer ends an exchange whose every byte comes just in time.
            timer = threading.Timer(left(end), _shut, (connection.sock,))
            timer.daemon = True
            timer.start()
            keep = False
            try:
                connection.sock.settimeout(left(end))
                connection.request(method, target, body, dict(headers))
                response = connection.getresponse()
                answer = read(response)
                keep = response.isclosed() and not response.will_close
                return answer
            finally:
                timer.cancel()
                self._give_back(connection, keep)

        idle = self._take_idle()
        if idle is not None:
            # The other side may have closed it meanwhile; a fresh connection would have no such excuse.
            with suppress(http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
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
        wire = peer.connect(self._name, self._port, end=end, public=self._public)
        connection = http.client.HTTPConnection(self._name, self._port)
        if self._secure:
            # Of HTTPS, so that the port 443 is left out of Host.
            connection = http.client.HTTPSConnection(self._name, self._port, context=self._tls)
            try:
                # The socket's timeout is one for the whole handshake.
                wire.settimeout(left(end))
                wire = self._tls.wrap_socket(wire, server_hostname=self._name)
            except (OSError, ValueError):
                wire.close()
                raise
        connection.sock = wire
        connection.auto_open = 0  # never to the name again, unlooked at
        return connection

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()


def pieces(response: http.client.HTTPResponse, end: float) -> Iterator[bytes]:
    """Yield an answer's body as it comes, and end where it was read whole and in time.

    Raises CutOff, TimeoutError, and what a socket and `http.client` raise.
    """
    while piece := response.read1(READ_BYTES):
        yield piece
        left(end)
    left(end)
    if response.length:
        raise CutOff(f"its answer was cut off, {response.length} bytes are missing")
    response.close()  # read1() leaves this to the caller; the connection stays open


def left(end: float) -> float:
    """Return the seconds until a time of `time.monotonic`. Raises TimeoutError where there are none."""
    seconds = end - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("the deadline has passed")
    return seconds


def _shut(wire: socket.socket) -> None:
    with suppress(OSError):  # closed already
        # Not SSLSocket's own shutdown, which would take its state away under the reader's feet.
        socket.socket.shutdown(wire, socket.SHUT_RDWR)
