"""Addresses that may hold a key: what of them may be shown, what must stand nowhere, and how it is hidden."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

MIN_SECRET: Final = 5
"""Characters below which nothing is hidden: it would stand in half of all words. Providers' keys have 20 and more; what
is nearly as short is a password that somebody made up."""
_WORDS: Final = frozenset({"mainnet", "testnet", "sepolia", "holesky", "hoodi", "jsonrpc", "public"})
"""What stands in providers' addresses beside their keys, long enough to be taken for one."""
_HOST: Final = re.compile(r"[\w.:%?\[\]-]+")


def folder_url(path: Path) -> str:
    """Return a folder's URL as a store: `%`, `#` and `?` of its path are quoted. A relative one counts from here."""
    return path.absolute().as_uri().replace("file:", "folder:", 1)


def folder_of(url: str) -> Path | None:
    """Return the folder that a store's URL names, the same that `folder_url` was given; None for another URL."""
    parts = urlsplit(url)
    if parts.scheme != "folder" or parts.netloc or parts.query or parts.fragment or not parts.path.startswith("/"):
        return None
    return Path(unquote(parts.path, errors="surrogateescape"))


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
    return [
        one
        for raw in found
        for one in {raw, unquote(raw)}
        if (len(one) >= MIN_SECRET and one.lower() not in _WORDS) or raw == parts.password
    ]


class Secrets:
    """What must stand nowhere; `instead` stands in its place."""

    def __init__(self, secrets: Iterable[str], instead: str) -> None:
        # The longest first: one may be a part of another.
        self._secrets = sorted({one for one in secrets if len(one) >= MIN_SECRET}, key=len, reverse=True)
        self._instead = instead

    def hide(self, text: str) -> str:
        """Return a text without them."""
        for secret in self._secrets:
            text = text.replace(secret, self._instead)
        return text


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """Return JSON-ready facts with every text of them changed, keys and paths included."""
    if isinstance(value, dict):
        return {change(str(name)): each_text(inner, change) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [each_text(inner, change) for inner in value]
    if isinstance(value, str | Path):
        return change(str(value))
    return value
