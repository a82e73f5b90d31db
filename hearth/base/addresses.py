"""Which addresses anybody may have, which names stand on somebody's own network, and to which gateways a stranger may
send anybody; pure."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

LOCAL_NAMES: Final = ("local", "localhost", "lan", "home", "internal", "intranet", "private", "home.arpa")
"""Ends of names that no public registry gives away: what they name stands on somebody's own network."""
METADATA: Final = frozenset({"168.63.129.16"})
"""Addresses outside of every private range at which a cloud speaks to its own machines."""
_OWN: Final = tuple(
    map(
        ipaddress.ip_network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
            *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
            *("64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16"),
            *("fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
        ),
    )
)
"""What is nobody's own on the internet: the registries of special-purpose addresses (RFC 6890, iana.org), multicast,
and what was given back (fec0::/10, 192.88.99.0/24). Pythons differ on them."""
_WRAPPED: Final = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
"""IPv6 addresses that end in an IPv4 address, and lead to it: the IPv4-compatible, mapped, translated, and NAT64's."""
MAX_GATEWAY: Final = 256
"""Characters of a gateway's address."""
_GATEWAY: Final = re.compile(
    r"https?://(?:\[(?P<six>[0-9A-Fa-f:.]{2,45})\]|[A-Za-z0-9][A-Za-z0-9.-]{0,252})(?::(?P<port>\d{1,5}))?"
    r"(?P<path>/[A-Za-z0-9._~/-]*)?",
    re.ASCII,
)
_WEB_PORTS: Final = (80, 443)
FREE_PORTS: Final = range(1024, 65_536)
"""Those below are kept for services of systems, which may take a line of a request for a command of theirs."""


def is_public(address: str) -> bool:
    """Say whether an IP address can be anybody's: not this machine's, its network's, a carrier's or a cloud's own."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.sixtofour
        if any(found in network for network in _WRAPPED):
            inner = ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(str(inner))
    special = any(found in network for network in _OWN)
    return not special and found.is_global and str(found) not in METADATA


def is_local_name(host: str) -> bool:
    """Say whether a host is, by its own words, on this machine or its network: an address, a bare or a local name."""
    try:
        return not is_public(host)
    except ValueError:
        name = host.rstrip(".").lower()
        return "." not in name or name.endswith(tuple(f".{end}" for end in LOCAL_NAMES))


def gateway_fault(url: str) -> str:
    """Return why a text is no address of a gateway that anybody may be sent to, "" where it is one.

    It is http or https, a host in ASCII, a port of the web's or a free one, and perhaps a plain path: no user, no
    password, no query or fragment, and at most MAX_GATEWAY characters. Where its host leads is another question.
    """
    if len(url) > MAX_GATEWAY:
        return f"it has {len(url)} characters, and {MAX_GATEWAY} are allowed"
    found = _GATEWAY.fullmatch(url)
    if found is None:
        if "@" in url:
            return "it names a user or a password, and everybody reads it"
        if "?" in url or "#" in url:
            return "it has a query or a fragment"
        return "write http://HOST:PORT or https://HOST, in ASCII, with a plain path where it has one"
    if ".." in (found["path"] or ""):
        return "its path leads upwards"
    if found["port"] is not None and int(found["port"]) not in _WEB_PORTS and int(found["port"]) not in FREE_PORTS:
        return f"port {found['port']} is another service's: use 80, 443, or one from {FREE_PORTS[0]} on"
    try:
        ipaddress.IPv6Address(found["six"] or "::")
    except ValueError:
        return "its host is no address"
    return ""
