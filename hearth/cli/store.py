"""Blocks as files: hearth store import|export."""

from __future__ import annotations

from pathlib import Path

import click

from hearth.cli.leaf import NEW_FILE, Leaf, Run
from hearth.cli.root import Group


@click.group(cls=Group)
def store() -> None:
    """Bring files of blocks into the store, and out of it."""


@store.command("import", cls=Leaf)
@click.argument("file", type=click.Path(path_type=Path))
def store_import(run: Run, file: Path) -> None:
    """Put the blocks of a CAR file into the store, and keep its roots.

    \b
    FILE is of CAR version 1 or 2: of ipfs dag export, hearth store export, or a page that could not upload.
    """
    report = run.client.store.import_file(file)
    did = "would be put" if report["dry_run"] else "are in the store"
    said = f"{report['blocks']} blocks of {report['bytes']} bytes {did}"
    named = [f"ipfs://{root}" for root in report["roots"]] or ["it names no root: they go when the store is cleared"]
    run.out.emit(report, lambda: [said, *named], report["roots"])


@store.command("export", cls=Leaf)
@click.argument("cid", metavar="CID|ipfs://CID/PATH")
@click.argument("file", type=NEW_FILE)
def store_export(run: Run, cid: str, file: Path) -> None:
    """Write a file, folder or document and all of its blocks into a new CAR file."""
    report = run.client.store.export(cid, file)
    did = "would hold" if report["dry_run"] else "holds"
    run.out.emit(
        report,
        lambda: [f"{report['file']} {did} {report['blocks']} blocks of {report['bytes']} bytes of {report['root']}"],
        [report["file"]],
    )
