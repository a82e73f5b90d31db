"""Serve the page to this machine's browser: hearth web."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hearth.cli.leaf import Leaf, Run

if TYPE_CHECKING:
    from hearth.client.reports import WebPage
    from hearth.market.network import Network
    from hearth.web.files import Page


@click.command(cls=Leaf)
@click.option("--port", type=click.IntRange(0, 65_535), default=7373, show_default=True, help="0 picks a free one.")
@click.option("--open", "open_it", is_flag=True, help="Open it in the browser.")
@click.option("--read-only", is_flag=True, help="Let the page put nothing into the store.")
@click.option("--verify", is_flag=True, help="Serve nothing: name each of the page's files, and the CID of all.")
def web(run: Run, port: int, open_it: bool, read_only: bool, verify: bool) -> None:
    """Serve the page to this machine's browser, until Ctrl-C.

    \b
    It holds no key and signs nothing: a wallet in the browser does. Only the address that it prints may read and write
    the store, on this machine alone.
    """
    from hearth.config.settings import rpc_urls
    from hearth.web.files import read_page, require_named
    from hearth.web.server import Served, WebServer, network_for

    page = read_page()
    require_named(page)
    session = run.client.session
    network = session.network
    raw = network_for(network.as_dict(), rpc_urls(session.settings, network), session.gateways)
    writable = session.store.writable and not read_only
    if verify or run.dry_run:
        report = _report(page, None, network, writable, dry_run=run.dry_run)
        files = [f"{file['cid']}  {file['bytes']:>7}  {file['name']}" for file in report["files"]]
        run.out.emit(report, lambda: [*files, f"{page.cid}  all of them, as they were built"], [page.cid])
        return
    with WebServer(Served(page, network.name, raw, session.store, writable), port) as server:
        report = _report(page, server.url, network, writable, dry_run=False)
        run.out.emit(report, lambda: _lines(server.url, page.cid, network, raw["rpc"]), [server.url])
        if open_it:
            click.launch(server.url)
        threading.Event().wait()


def _report(page: Page, url: str | None, network: Network, writable: bool, *, dry_run: bool) -> WebPage:
    return {
        "schema": "hearth.web/1",
        "url": url,
        "network": network.name,
        "writable": writable,
        "cid": page.cid,
        "files": [{"name": name, "bytes": len(file.data), "cid": file.cid} for name, file in page.files.items()],
        "dry_run": dry_run,
    }


def _lines(url: str, cid: str, network: Network, rpcs: list[str]) -> Iterator[str]:
    yield f"the page of {network.name}: {url}"
    yield f"  build {cid}"
    if network.local and rpcs:
        from hearth.local.devnet import KEYS
        from hearth.local.market import DEVNET_ACCOUNTS

        yield f"  in a wallet: add the network {rpcs[0]} with chain id {network.chain_id}, and import the key of dev,"
        yield f"  {KEYS[DEVNET_ACCOUNTS['dev']]}: everybody has it, and its money is play money"
    yield "Ctrl-C ends it"
