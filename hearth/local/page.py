"""The page of a session's market on this machine: what `hearth web` serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hearth.config.settings import rpc_urls
from hearth.local.devnet import KEYS
from hearth.local.market import DEVNET_ACCOUNTS
from hearth.web.files import Page, read_page, require_named
from hearth.web.origin import name_of
from hearth.web.policy import network_for
from hearth.web.server import PORT, Served, WebServer

if TYPE_CHECKING:
    from hearth.client.reports import WebPage
    from hearth.client.session import Session


def open_page(session: Session, *, port: int = PORT, read_only: bool = False, plain: bool = False) -> WebServer:
    """Return the page's server on loopback, which serves while its context is open; `port` 0 picks a free one.

    The page asks the RPCs and gateways of the session's settings, and puts blocks into its store unless `read_only`. It
    has the home's own name under localhost, or `plain` 127.0.0.1. Raises ConfigError NO_PAGE, OTHER_PAGE, PORT_BUSY,
    NO_RPC, NO_NETWORK, BAD_PAGE_NAME, OPEN_FILE, OPEN_FOLDER.
    """
    served = _served(session, read_only)
    return WebServer(served, port, name=None if plain else name_of(session.settings.home))


def wallet_lines(server: WebServer) -> list[str]:
    """Return what a wallet is told of a local chain, and with which of its public keys it may pay."""
    network = server.served.network
    if not network["rpc"]:
        return []
    return [
        f"in a wallet: add the network {network['rpc'][0]} with chain id {network['chain_id']}, and import the key of",
        f"dev, {KEYS[DEVNET_ACCOUNTS['dev']]}: everybody has it, and its money is play money",
    ]


def page_report(session: Session, server: WebServer | None = None, *, read_only: bool = False) -> WebPage:
    """Return what is served, or with no server what would be, without serving it."""
    served = _served(session, read_only) if server is None else server.served
    return {
        **_described(served.page, session.dry_run),
        "url": None if server is None else server.url,
        "network": served.name,
        "writable": served.writable,
    }


def page_files(*, dry_run: bool = False) -> WebPage:
    """Return the page's files, which are found to be those of its CID; of no market. Raises ConfigError OTHER_PAGE."""
    return _described(_read_named(), dry_run)


def _described(page: Page, dry_run: bool) -> WebPage:
    return {
        "schema": "hearth.web/1",
        "url": None,
        "network": None,
        "writable": False,
        "cid": page.cid,
        "files": [{"name": name, "bytes": len(file.data), "cid": file.cid} for name, file in page.files.items()],
        "dry_run": dry_run,
    }


def _served(session: Session, read_only: bool) -> Served:
    page, network = _read_named(), session.network
    raw = network_for(network.as_dict(), rpc_urls(session.settings, network), session.gateways)
    return Served(page, network.name, raw, session.store, session.store.writable and not read_only)


def _read_named() -> Page:
    page = read_page()
    require_named(page)
    return page
