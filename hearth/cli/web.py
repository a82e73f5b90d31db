"""Serve the page to this machine's browser: hearth web."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hearth.cli.leaf import Leaf, Run

if TYPE_CHECKING:
    from hearth.web.server import WebServer


@click.command(cls=Leaf)
@click.option("--port", type=click.IntRange(0, 65_535), default=7373, show_default=True, help="0 picks a free one.")
@click.option("--open", "open_it", is_flag=True, help="Open it in the browser.")
@click.option("--read-only", is_flag=True, help="Let the page put nothing into the store.")
@click.option("--plain", is_flag=True, help="Serve it at 127.0.0.1, for a browser that knows no name of its own.")
@click.option("--verify", is_flag=True, help="Serve nothing: name each of the page's files, and the CID of all.")
def web(run: Run, port: int, open_it: bool, read_only: bool, plain: bool, verify: bool) -> None:
    """Serve the page to this machine's browser, until Ctrl-C.

    \b
    It holds no key and signs nothing: a wallet in the browser does. Only the address that it prints may read and write
    the store, on this machine alone. That is a name of this home's own under localhost, where no other program of the
    machine can have left a script: whoever served 127.0.0.1 to the browser before may have (--plain).
    """
    from hearth.local.page import open_page, page_files, page_report

    session = run.client.session
    if verify or run.dry_run:
        report = page_files(dry_run=run.dry_run) if verify else page_report(session, read_only=read_only)
        files = [f"{file['cid']}  {file['bytes']:>7}  {file['name']}" for file in report["files"]]
        lines = [*files, f"{report['cid']}  all of them, as they were built"]
        run.out.emit(report, lambda: lines, [report["cid"]])
        return
    with open_page(session, port=port, read_only=read_only, plain=plain) as server:
        local = session.network.local
        run.out.emit(page_report(session, server), lambda: _lines(server, local=local), [server.url])
        if open_it:
            click.launch(server.url)
        threading.Event().wait()


def _lines(server: WebServer, *, local: bool) -> Iterator[str]:
    served = server.served
    yield f"the page of {served.name}: {server.url}"
    yield f"  build {served.page.cid}"
    if server.name is None:
        yield "  at 127.0.0.1: whoever served this port to your browser before may have left a script that reads it"
    if local:
        from hearth.local.page import wallet_lines

        yield from (f"  {line}" for line in wallet_lines(server))
    yield "Ctrl-C ends it"
