"""Stores of content-addressed blocks behind one interface; `open_store` picks one by its URL.

`folder:///path` or a path (embedded, the default) | `kubo://host:port` | `gateway+https://host` (read-only) | several
of them: a Chain. Whatever the store, a block is checked against its CID before anybody sees it.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from hearth.base.errors import ConfigError
from hearth.base.files import expand
from hearth.base.urls import folder_of, redact_url
from hearth.storage.stores.base import BLOCK_TIMEOUT_SECONDS, Store, StoreBase, StoreStatus, Timed
from hearth.storage.stores.chain import Chain, StoreFault
from hearth.storage.stores.folder import FolderStore
from hearth.storage.stores.gateway import GatewayStore
from hearth.storage.stores.kubo import KuboStore
from hearth.storage.stores.memory import MemoryStore
from hearth.storage.stores.provider_gateways import LastResort, Patience, ProviderGateways, provider_gateway

__all__ = [
    "BLOCK_TIMEOUT_SECONDS",
    "Chain",
    "FolderStore",
    "GatewayStore",
    "KuboStore",
    "LastResort",
    "MemoryStore",
    "Patience",
    "ProviderGateways",
    "Store",
    "StoreBase",
    "StoreFault",
    "StoreStatus",
    "Timed",
    "open_store",
    "provider_gateway",
]


def open_store(first: str, *others: str) -> Store:
    """Return the store that a URL names; of several, a Chain that reads in their order and writes to the first it can.

    Nothing is contacted or created. Raises ConfigError (BAD_STORE_URL).
    """
    if others:
        return Chain([open_store(url) for url in (first, *others)])
    if "://" not in first:
        try:
            return FolderStore(expand(Path(first)))
        except ValueError as error:
            raise _bad_url(first, str(error)) from error
    try:
        parts = urlsplit(first)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _bad_url(first, str(error)) from error
    if parts.query or parts.fragment or parts.username is not None or parts.password is not None:
        raise _bad_url(first, "it takes no user, query or fragment")
    if parts.scheme == "folder":
        folder = folder_of(first)
        if folder is None:
            raise _bad_url(first, "a folder is written folder:///absolute/path")
        return FolderStore(folder)
    if host is None:
        raise _bad_url(first, "it names no host")
    if parts.scheme == "kubo" and parts.path in ("", "/"):
        return KuboStore(host, port or 5001)
    if parts.scheme in ("gateway+https", "gateway+http"):
        return GatewayStore(first.removeprefix("gateway+"))
    raise _bad_url(first, "the schemes are folder, kubo, gateway+https and gateway+http")


def _bad_url(url: str, why: str) -> ConfigError:
    shown = redact_url(url)  # what is wrong with it may be the very key in it
    return ConfigError(
        f"the store URL {shown} is not usable: {why}", hint="hearth init", code="BAD_STORE_URL", url=shown
    )
