"""Which addresses anybody may have, and which names stand on somebody's own network; pure."""

from __future__ import annotations

import ipaddress
from typing import Final

LOCAL_NAMES: Final = ("local", "localhost", "lan", "home", "internal", "intranet", "private", "home.arpa")
"""Ends of names that no public registry gives away: what they name stands on somebody's own network."""
METADATA: Final = frozenset({"168.63.129.16"})
"""Addresses outside of every private range at which a cloud speaks to its own machines."""
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


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
