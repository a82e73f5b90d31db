"""Addresses that may hold a key: what of them may be shown, and what must stand nowhere."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

_HOST: Final = re.compile(r"[\w.:%?\[\]-]+")


def redact_url(url: str) -> str:
    """Return scheme and host of a URL: what comes after often is a key."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or "?"
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return "?"
    # What is no name of a host, or has an @ behind it, may be a part of a key.
    if not _HOST.fullmatch(host) or "@" in parts.path + parts.query + parts.fragment:
        return "?"
    rest = "/..." if parts.path.strip("/") or parts.query or parts.username else ""
    return f"{parts.scheme}://{host}{port}{rest}"


def secrets_of_url(url: str) -> list[str]:
    """Return the parts of a URL that may be keys: errors quote them without the URL that they belong to."""
    try:
        parts = urlsplit(url)
        found = [parts.username or "", parts.password or "", *parts.path.split("/")]
    except ValueError:
        return [url]
    found += [value for _, value in parse_qsl(parts.query)]
    # A word such as "mainnet" or "v3" is no key.
    return [one for raw in found for one in {raw, unquote(raw)} if len(one) >= 8 or raw == parts.password]
