"""Where a name leads: its addresses are looked up once, checked, and connected to as they were checked.

Whoever owns a name may point it anywhere, and elsewhere a second later: at this machine, its network, or the address at
which a cloud hands out credentials. So a public name is refused where it leads inside, and what is connected to is the
address that was looked at, never the name again.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import Any, Final

from hearth.base.addresses import is_public

CONNECT_SECONDS: Final = 10.0
Address = tuple[socket.AddressFamily, Any]
"""A family and what `socket.connect` takes for it."""


class LeadsInside(OSError):
    """A public name leads to an address that is not public."""


def connect(host: str, port: int, *, end: float, public: bool) -> socket.socket:
    """Connect to a host by a time of `time.monotonic`; with `public`, only where all of its addresses are.

    Raises OSError: LeadsInside, TimeoutError, or what the last address answered.
    """
    found = look_up(host, port, end)
    inside = [place[0] for _, place in found if public and not is_public(place[0])]
    if inside:
        raise LeadsInside(f"{host} leads to {inside[0]}, which is no public address")
    failure: OSError = OSError(f"{host} has no address")
    for family, place in found:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        peer = socket.socket(family, socket.SOCK_STREAM)
        try:
            peer.settimeout(min(CONNECT_SECONDS, left))
            peer.connect(place)
        except OSError as error:
            peer.close()
            failure = error
            continue
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return peer
    raise failure


def look_up(host: str, port: int, end: float) -> list[Address]:
    """Return the addresses of a host. Raises OSError, TimeoutError once the time is over.

    The system's resolver knows no deadline: one that hangs is left behind.
    """
    found: list[Address] = []
    failure: list[OSError] = []

    def look() -> None:
        try:
            found.extend((one[0], one[4]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except UnicodeError as error:
            failure.append(OSError(f"{host!r} is no name of a host: {error}"))
        except OSError as error:
            failure.append(error)

    thread = threading.Thread(target=look, name=f"look up {host}", daemon=True)
    thread.start()
    thread.join(max(0.0, end - time.monotonic()))
    if thread.is_alive():
        raise TimeoutError(f"{host} was not looked up in time")
    if failure:
        raise failure[0]
    return found
