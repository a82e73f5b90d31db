"""A first visit that begins from a file of the market's history: what it asks, and what it does not believe."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from hearth.chain.follow import DEPTH
from hearth.chain.port import Block
from hearth.client import snapshot
from hearth.client.snapshot import SnapshotWriter
from hearth.market.events import JobPosted, Locked, topic_of
from hearth.protocol import words
from hearth.storage import unixfs
from hearth.storage.stores import FolderStore
from hearth.web.files import read_page
from hearth.web.server import Served, WebServer
from tests.kit.browser import Watched, watched
from tests.kit.web_chain import WebChain, web_chain

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.net

JOBS = 20
EMPTY = 150
"""Blocks before each job, and after the last one."""
ROWS = f"{JOBS} of the newest {JOBS} jobs"
TAKEN = "It agrees with the chain"
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def chain() -> Iterator[WebChain]:
    with web_chain() as made:
        made.post(JOBS, empty=EMPTY)
        made.mine(EMPTY)
        yield made


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> FolderStore:
    return FolderStore(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def web(chain: WebChain, store: FolderStore) -> Iterator[WebServer]:
    with WebServer(Served(read_page(), "test", chain.network_file, store, True), 0) as running:
        yield running


@pytest.fixture
def file(chain: WebChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(snapshot, "PART_CHARS", 2_000)
    session: Any = SimpleNamespace(market=chain.market, network=chain.network, dry_run=False)
    path = tmp_path / "history.jsonl"
    SnapshotWriter(session).write(path)
    return path


class Visit:
    """A browser that has kept nothing, at a route of the page."""

    def __init__(self, seen: Watched, web: WebServer, chain: WebChain) -> None:
        self.page, self.web, self.chain = seen.page, web, chain
        # By the printed address the page would open its first list, which asks for logs.
        script = f"try {{ localStorage.setItem('hearth.token', {json.dumps(web.token)}) }} catch {{}}"
        self.page.add_init_script(script)

    def go(self, route: str, wanted: str) -> int:
        """Open a route as a visit of its own; return how many requests that asked for logs it took."""
        at = len(self.chain.asked)
        self.page.goto("about:blank")
        self.page.goto(f"{self.web.origin}/#/{route}")
        self.page.wait_for_selector(f"text={wanted}")
        return len(self.chain.logs_since(at))

    def books(self) -> int:
        """Recompute the books; return how many requests that asked for logs that took."""
        self.go("network", "Recompute the books here")
        at = len(self.chain.asked)
        self.page.click("text=Recompute the books here")
        self.page.wait_for_selector("text=Solvent")
        return len(self.chain.logs_since(at))

    def take(self, path: Path) -> None:
        self.go("network", "Begin from a snapshot")
        self.page.set_input_files("#snapshot-file", path)

    def refusal(self) -> str:
        """Return what the page refuses the file with."""
        found = self.page.locator("section[aria-labelledby=snapshot] [role=alert]")
        found.wait_for()
        return found.inner_text()


@pytest.fixture
def visit(chromium: Browser, web: WebServer, chain: WebChain) -> Iterator[Visit]:
    with watched(chromium) as seen:
        yield Visit(seen, web, chain)


def altered(file: Path, change: Callable[[Lines], object]) -> Path:
    """Write a file anew whose lines a stranger changed."""
    lines: Lines = [json.loads(line) for line in file.read_text().splitlines()]
    change(lines)
    path = file.with_name("altered.jsonl")
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


def logs_of(lines: Lines) -> Iterator[list[Any]]:
    """Yield every log of a file, to be changed in place."""
    for part in lines[1:]:
        for _, _, logs in part["blocks"]:
            yield from logs


def test_first_visit__from_a_snapshot__asks_for_the_blocks_since_alone(
    visit: Visit, chain: WebChain, file: Path
) -> None:
    alone = (visit.go("jobs", ROWS), visit.books())
    visit.page.evaluate(
        "async () => { for (const { name } of await indexedDB.databases()) indexedDB.deleteDatabase(name) }"
    )
    visit.take(file)
    visit.page.wait_for_selector(f"text={TAKEN}")
    final = chain.chain.head().number - DEPTH
    at = len(chain.asked)
    with_it = (visit.go("jobs", ROWS), visit.books())

    assert all(start > final for start, _ in chain.logs_since(at))
    assert sum(with_it) <= 4 < sum(alone), (with_it, alone)


def test_snapshot__by_its_cid__is_taken_from_the_readers_store(visit: Visit, store: FolderStore, file: Path) -> None:
    entry = unixfs.import_path(file, store)
    visit.go("network", "Begin from a snapshot")
    visit.page.fill("#snapshot-place", f"ipfs://{entry.cid}")
    visit.page.click("text=Fetch and compare")
    visit.page.wait_for_selector(f"text={TAKEN}")

    assert f"{JOBS} jobs" in visit.page.inner_text("section[aria-labelledby=snapshot]")


def _hide_a_job(lines: Lines) -> None:
    """Leave out all that is told of a job, the blocks too."""
    for part in lines[1:]:
        for block in part["blocks"]:
            if any(log[3][0] == f"0x{topic_of(JobPosted).hex()}" for log in block[2]):
                part["blocks"].remove(block)
                return


def _alter_terms(lines: Lines) -> None:
    log = next(log for log in logs_of(lines) if log[3][0] == f"0x{topic_of(JobPosted).hex()}")
    log[4] = f"{log[4][:70]}ff{log[4][72:]}"


def _alter_an_amount(lines: Lines) -> None:
    log = next(log for log in logs_of(lines) if log[3][0] == f"0x{topic_of(Locked).hex()}")
    log[4] = f"{log[4][:-1]}{'1' if log[4][-1] != '1' else '2'}"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_hide_a_job, "SNAPSHOT_DIFFERS"),
        (_alter_terms, "SNAPSHOT_DIFFERS"),
        (_alter_an_amount, "SNAPSHOT_DIFFERS"),
        (lambda lines: lines[0].update(block_hash="0x" + "11" * 32), "SNAPSHOT_DIFFERS"),
        (lambda lines: lines[0].update(chain_id=1), "WRONG_MARKET"),
        (lambda lines: lines[0].update(schema="hearth.history/2"), "BAD_SNAPSHOT"),
        (lambda lines: lines[0].update(block=10**6), "NOT_FINAL"),
    ],
    ids=["a hidden job", "other terms", "another amount", "another block", "another chain", "another form", "too new"],
)
def test_snapshot__that_lies__is_refused_and_nothing_is_kept(
    visit: Visit, chain: WebChain, file: Path, change: Callable[[Lines], object], code: str
) -> None:
    visit.take(altered(file, change))

    assert code in visit.refusal()
    kept = visit.page.evaluate("""async () => {
      const opening = indexedDB.open("hearth");
      await new Promise((done) => { opening.onsuccess = done; });
      const all = opening.result.transaction("heads").objectStore("heads").getAll();
      await new Promise((done) => { all.onsuccess = done; });
      return all.result.filter((head) => head.kind !== "times").length;
    }""")
    assert kept == 0


def test_snapshot__with_a_line_that_is_none__is_taken_without_it(visit: Visit, file: Path) -> None:
    visit.take(altered(file, lambda lines: lines[2].update(blocks="none")))
    visit.page.wait_for_selector(f"text={TAKEN}")

    assert "1 lines of it are none of this form" in visit.page.inner_text("section[aria-labelledby=snapshot]")


def test_snapshot__without_a_job_that_holds_nothing__is_refused_by_their_number(
    visit: Visit, chain: WebChain, file: Path
) -> None:
    def one_more(block: Block) -> tuple[Any, ...]:
        said = list(chain._overview(block))
        said[6] += words.pack(words.POSTED, {"count": 1, "block": 0})
        return tuple(said)

    chain._lens("overview", one_more)
    try:
        visit.take(file)
        assert f"tells of {JOBS} jobs, and {JOBS + 1} were posted" in visit.refusal()
    finally:
        chain._lens("overview", chain._overview)
