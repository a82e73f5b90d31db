"""Measure what a disk for each slot costs in time: to make it, to write to it, and to empty it for the next attempt.

A worker without volumes is protected by looks alone (decision 0017). These figures say what it would cost to give each
a volume by default. Needs root, and as much free disk as the largest size. Written to bench/results/volumes.json with
the machine's description; absolute times are reported, never asserted.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

from bench.bench_match import machine
from hearth.base.files import delete_tree
from hearth.protocol.units import format_size, parse_size
from worker import volumes

OUT = Path(__file__).parent / "results" / "volumes.json"
WRITTEN = 512 << 20
"""Bytes that are written to each place, in parts of 1 MiB, and flushed."""
SMALL_FILES = 10_000


def _seconds(act: Callable[[], object]) -> float:
    begun = time.monotonic()
    act()
    return round(time.monotonic() - begun, 3)


def _write(folder: Path) -> None:
    part = os.urandom(1 << 20)
    with open(folder / "large", "wb") as file:
        for _ in range(WRITTEN >> 20):
            file.write(part)
        os.fsync(file.fileno())


def _make_files(folder: Path) -> None:
    for number in range(SMALL_FILES):
        (folder / str(number)).write_bytes(b"x" * 1_000)


def _place(folder: Path) -> dict[str, float]:
    """Return the seconds to write to a folder, to make many files in it, and to empty it."""
    folder.mkdir()
    return {
        "write_seconds": _seconds(lambda: _write(folder)),
        "files_seconds": _seconds(lambda: _make_files(folder)),
        "empty_seconds": _seconds(lambda: delete_tree(folder)),
    }


@click.command()
@click.option("--size", "sizes", multiple=True, default=["1GiB", "20GiB"], show_default=True, help="Of one volume.")
def main(sizes: tuple[str, ...]) -> None:
    """Make a volume of each size, write to it and to the disk below it, and write the seconds of all."""
    if os.geteuid() != 0:
        click.echo("volumes are not measured: only root can mount a file system")
        return
    made = {}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as top:
        plain = _place(Path(top) / "plain")
        for size in sizes:
            home = Path(top) / size
            home.mkdir()
            try:
                making = _seconds(lambda home=home, size=size: volumes.make(home, 1, parse_size(size)))  # type: ignore[misc]
                on_it = _place(volumes.mounted(home)[0] / "out")
            finally:
                removing = _seconds(lambda home=home: volumes.remove(home))  # type: ignore[misc]
            made[size] = {"make_seconds": making, **on_it, "remove_seconds": removing}
    report = {
        "machine": machine(),
        "written": format_size(WRITTEN),
        "files": SMALL_FILES,
        "disk": plain,
        "volumes": made,
    }
    OUT.write_text(json.dumps(report, indent=2, sort_keys=True) + "\n")
    click.echo(f"the disk itself: {plain}")
    for size, figures in made.items():
        click.echo(f"a volume of {size}: {figures}")


if __name__ == "__main__":
    main()
