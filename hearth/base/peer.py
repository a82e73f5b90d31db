"""Where a name leads: its addresses are looked up once, checked, and connected to as they were checked.

Whoever owns a name may point it anywhere, and elsewhere a second later: at this machine, its network, or the address at
which a cloud hands out credentials. So a public name is refused where it leads inside, and what is connected to is the
address that was looked at, never the name again.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from typing import Any, Final

CONNECT_SECONDS: Final = 10.0
LOCAL_NAMES: Final = ("local", "localhost", "lan", "home", "internal", "intranet", "private", "home.arpa")
"""Ends of names that no public registry gives away: what they name stands on somebody's own network."""
METADATA: Final = frozenset({"168.63.129.16"})
"""Addresses outside of every private range at which a cloud speaks to its own machines."""
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")

Address = tuple[socket.AddressFamily, Any]
"""A family and what `socket.connect` takes for it."""


class LeadsInside(OSError):
    """A public name leads to an address that is not public."""


def is_public(address: str) -> bool:
    """Say whether an IP address can be anybody's: not this machine's, its network's, a carrier's or a cloud's own."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(str(inner))
    return found.is_global and not found.is_multicast and str(found) not in METADATA


def is_local_name(host: str) -> bool:
    """Say whether a host is, by its own words, on this machine or its network: an address, a bare or a local name."""
    try:
        return not is_public(host)
    except ValueError:
        name = host.rstrip(".").lower()
        return "." not in name or name.endswith(tuple(f".{end}" for end in LOCAL_NAMES))


def connect(host: str, port: int, *, end: float, public: bool) -> socket.socket:
    """Connect to a host by a time of `time.monotonic`; with `public`, only where all of its addresses are.

    Raises OSError: LeadsInside, TimeoutError, or what the last address answered.
    """
    found = _look_up(host, port, end)
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


def _look_up(host: str, port: int, end: float) -> list[Address]:
    """Return the addresses of a host. The system's resolver knows no deadline: one that hangs is left behind."""
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
