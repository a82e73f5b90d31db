"""Whom the page may ask: the policy that its browser holds it to, and the URLs that it is given.

Source: page.md "How the page is opened".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

TRUSTED: Final = "hearth-offline"
"""The one policy of Trusted Types: it names the service worker's script, and nothing else."""


def policy_of(network: Mapping[str, Any]) -> str:
    """Return the Content-Security-Policy: what the page may load is its own, whom it may ask is the network's."""
    asked = dict.fromkeys(origin for url in (*network["rpc"], *network["gateways"]) if (origin := origin_of(url)))
    return "; ".join(
        (
            *(
                "default-src 'none'",
                "script-src 'self'",
                "worker-src 'self'",
                "style-src 'self'",
                "img-src 'self' data:",
            ),
            " ".join(("connect-src 'self'", *asked)),
            *("form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'"),
            *("require-trusted-types-for 'script'", f"trusted-types {TRUSTED}"),
        )
    )


def origin_of(url: str) -> str:
    """Return scheme, host and port of an http URL, "" for what is none: a policy must not be a stranger's text."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    named = all(char.isascii() and (char.isalnum() or char in ".-") for char in host)
    numbered = ":" in host and all(char in "0123456789abcdef:." for char in host)
    if parts.scheme not in ("http", "https") or not host or not (named or numbered):
        return ""
    shown = f"[{host}]" if numbered else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port else "")


def network_for(network: Mapping[str, Any], rpcs: Sequence[str], gateways: Sequence[str]) -> dict[str, Any]:
    """Return the network file that the page is served: with these URLs, those that a browser can ask.

    One with a user or a password in it is left out: a browser refuses to ask it.
    """
    return {**network, "rpc": [*filter(_askable, rpcs)], "gateways": [*filter(_askable, gateways)]}


def _askable(url: str) -> bool:
    return bool(origin_of(url)) and "@" not in urlsplit(url).netloc
