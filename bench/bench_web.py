"""Measure the page in a real browser: how long until its list stands, what it asks for, and the memory that it takes.

The chain is scripted and answers at once, or 100 ms late; a request for logs may span 1,000 blocks. Jobs are posted and
never taken, so that there are two events of each. Written to bench/results/web.json with the machine's description, the
browser's version and the bytes of each part of the page; absolute times are reported, never asserted.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.bench_match import machine
from hearth.storage.stores import FolderStore
from hearth.web.files import APP, read_page
from hearth.web.server import Served, WebServer
from tests.kit.browser import SHELLS, browser, watched
from tests.kit.web_chain import WebChain, web_chain
from tools.build_web import first_files, sizes_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

OUT = Path(__file__).parent / "results" / "web.json"
EMPTY = 27
"""Blocks of nothing between two jobs: with them 1,000 jobs lie in 28 ranges of logs."""
LATE = (0.0, 0.1)
IDLE_SECONDS = 12.0
ROW = "table tbody tr"
BOOKS = "text=Recompute the books here"


@contextmanager
def _served(chain: WebChain) -> Iterator[WebServer]:
    with tempfile.TemporaryDirectory() as folder:
        served = Served(read_page(), "test", chain.network_file, FolderStore(Path(folder)), False)
        with WebServer(served, 0, name="bench") as running:
            yield running


def _heap(page: Page) -> float:
    """Return the MiB that the page's scripts hold after a collection."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    found = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return round(found["JSHeapUsedSize"] / 2**20, 1)


def _visit(running: Browser, chain: WebChain, late: float) -> dict[str, Any]:
    """Open the page twice, recompute the books, and return what that took."""
    said: dict[str, Any] = {
        "jobs": len(chain.posts),
        "blocks": chain.chain.head().number,
        "latency_ms": int(late * 1e3),
    }
    chain.slow = late
    with _served(chain) as web, watched(running) as seen:
        page = seen.page
        page.set_default_timeout(300_000)
        for visit, address in (("first", web.url), ("second", f"{web.origin}/#/jobs")):
            page.goto("about:blank")
            asked, began = len(chain.asked), time.monotonic()
            page.goto(address)
            page.wait_for_selector(ROW)
            said[visit] = {"to_list_ms": round((time.monotonic() - began) * 1e3), "requests": len(chain.asked) - asked}
            page.wait_for_timeout(2_500)  # what was read is put aside
        said["list_heap_mib"] = _heap(page)
        asked = len(chain.asked)
        page.wait_for_timeout(IDLE_SECONDS * 1e3)
        said["idle_requests_a_minute"] = round((len(chain.asked) - asked) * 60 / IDLE_SECONDS, 1)
        page.click("nav a[href='#/network']")
        asked, began = len(chain.asked), time.monotonic()
        page.click(BOOKS)
        page.wait_for_selector("text=Solvent")
        said["books"] = {"ms": round((time.monotonic() - began) * 1e3), "requests": len(chain.asked) - asked}
        said["books_heap_mib"] = _heap(page)
    return said


def _line(said: dict[str, Any]) -> str:
    lists = "; ".join(
        f"{visit} {said[visit]['to_list_ms']} ms, {said[visit]['requests']} requests" for visit in ("first", "second")
    )
    return (
        f"{said['jobs']:>6} jobs, {said['blocks']:>7} blocks, {said['latency_ms']:>3} ms late: list {lists}, "
        f"{said['list_heap_mib']} MiB; books {said['books']['ms']} ms, {said['books']['requests']} requests, "
        f"{said['books_heap_mib']} MiB; idle {said['idle_requests_a_minute']} a minute"
    )


@click.command()
@click.option("--jobs", multiple=True, type=int, default=(1, 100, 1_000, 10_000), show_default=True)
def main(jobs: tuple[int, ...]) -> None:
    """Open the page on markets of so many jobs, and write what that took."""
    if not any(shutil.which(name) for name in SHELLS):
        raise click.ClickException("no chromium is installed; Debian: apt-get install chromium")
    sizes, first = sizes_of(APP), first_files(APP)
    rows = []
    with browser() as running, web_chain() as chain:
        version = running.version
        for count in sorted(jobs):
            chain.post(count - len(chain.posts), empty=EMPTY)
            chain.mine(EMPTY)
            for late in LATE:
                rows.append(_visit(running, chain, late))
                click.echo(_line(rows[-1]))
    result = {
        "machine": machine(),
        "browser": version,
        "gzip_bytes": {
            "first": {kind: sum(sizes[name] for name in first if name.endswith(kind)) for kind in (".js", ".css")},
            "later": {name: size for name, size in sizes.items() if name.endswith(".js") and name not in first},
        },
        "markets": rows,
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
