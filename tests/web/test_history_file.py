"""A first visit that begins from a file of the market's history: what it asks, and what it does not believe."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from eth_abi.abi import encode

from hearth.chain.follow import DEPTH
from hearth.chain.port import Block
from hearth.client.audit import history_file
from hearth.client.audit.history_file import HistoryWriter
from hearth.market.changes import Change, ChangeOp
from hearth.market.events import ChangeQueued, JobPosted, Locked, Proposed, Reclaimed, Started, Submitted, topic_of
from hearth.protocol import words
from hearth.protocol.types import NodeId, Outcome, State, Unit
from hearth.storage import unixfs
from hearth.storage.stores import FolderStore
from hearth.web.files import read_page
from hearth.web.server import Served, WebServer
from tests.kit.browser import Watched, watched
from tests.kit.fake_chain import Event
from tests.kit.http import NAME
from tests.kit.web_chain import WebChain, web_chain

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.net

JOBS = 20
EMPTY = 150
"""Blocks before each job, and after the last one."""
ROWS = f"{JOBS} of the newest {JOBS} jobs"
TAKEN = "It agrees with the chain"
COUNCIL = "0x" + "c0" * 20
THIEF = "0x" + "7f" * 20
CHANGE = Change(ChangeOp.OFFER_COUNCIL, int(THIEF, 16), 0)
"""A change of the council's seat, which waits."""
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def chain() -> Iterator[WebChain]:
    with web_chain() as made:
        made.post(JOBS - 1, empty=EMPTY)
        _queue(made)
        made.post(1, empty=EMPTY)
        made.mine(EMPTY)
        yield made


def _queue(made: WebChain) -> None:
    """Announce the change, and let the governed contracts answer for it."""

    def say(contract: str, name: str, kind: str, value: Any) -> None:
        made.on(contract, name, lambda call, block: encode([kind], [value]))

    delay = 14 * 86_400
    due = made.chain.head().timestamp + delay
    topics = (topic_of(ChangeQueued), CHANGE.id, int(CHANGE.op).to_bytes(32, "big"))
    data = encode(["uint256"] * 3, [CHANGE.word, CHANGE.salt, due])
    steward, nobody = made.network.contracts["Steward"], "0x" + "00" * 20
    made.chain.mine([Event(steward, topics, data)])
    for name, value in (("council", COUNCIL), ("offered_council", nobody), ("guardian", nobody)):
        say("Steward", name, "address", value)
    say("Steward", "DELAY", "uint256", delay)
    made.on("Steward", "changes", lambda call, block: encode(["uint256"], [due if call.data[4:36] == CHANGE.id else 0]))
    for one in ("Rules", "NodeRegistry"):
        say(one, "governor", "address", steward)
        say(one, "offered_governor", "address", nobody)
        say(one, "paused_until", "uint256", 0)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> FolderStore:
    return FolderStore(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def web(chain: WebChain, store: FolderStore) -> Iterator[WebServer]:
    with WebServer(Served(read_page(), "test", chain.network_file, store, True), 0, name=NAME) as running:
        yield running


@pytest.fixture
def file(chain: WebChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(history_file, "PART_CHARS", 2_000)
    session: Any = SimpleNamespace(market=chain.market, network=chain.network, dry_run=False)
    path = tmp_path / "history.jsonl"
    HistoryWriter(session).write(path)
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
    visit.page.evaluate("""async () => {
      for (const { name } of await indexedDB.databases())
        await new Promise((gone) => { indexedDB.deleteDatabase(name).onsuccess = gone; });
    }""")
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

    said = visit.page.inner_text("section[aria-labelledby=snapshot]")
    assert f"{JOBS} jobs" in said
    assert f"the same logs of {JOBS} of its {JOBS} blocks with logs, and of" in said
    assert "An event elsewhere that was made up, or left out, and changed nothing in the end is not found." in said


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


def _never_leased(lines: Lines, chain: WebChain, block_hash: str) -> None:
    """Tell of thirty leases that never were, in a block after the first job's; the last word is the one in storage."""
    job, number = chain.posts[0]
    began = chain.chain.head().timestamp
    unit = replace(Unit(), node=NodeId(7), started=began, rate=10**17)
    running = words.pack_unit(replace(unit, state=State.RUNNING))
    ended = words.pack_unit(replace(unit, state=State.SUBMITTED, outcome=Outcome.OK, mark=began + 60))
    topics = [f"0x{job.hex()}", "0x" + "00" * 32, "0x" + (7).to_bytes(32, "big").hex()]
    logs: list[list[Any]] = []

    def add(event: Any, types: list[str], *values: Any) -> None:
        data = "0x" + encode(types, values).hex()
        at = len(logs)
        logs.append([at, f"0x{at + 1:064x}", "JobRegistry", [f"0x{topic_of(event).hex()}", *topics], data])

    for _ in range(30):
        add(Started, ["uint256", "bytes32"], running, b"\1" * 32)
        add(Submitted, ["uint256", "bytes32", "bytes32"], ended, b"\2" * 32, b"\3" * 32)
    add(Proposed, ["uint256", "uint256"], chain.stored(job), 0)
    _insert(lines, number + 1, block_hash, logs)


def _gave_back(lines: Lines, chain: WebChain, block_hash: str) -> None:
    """Tell of a lease that was given back, in a block after the first job's."""
    job, number = chain.posts[0]
    began = chain.chain.head().timestamp
    running = words.pack_unit(replace(Unit(), state=State.RUNNING, node=NodeId(7), started=began))
    unit = [f"0x{job.hex()}", "0x" + "00" * 32, "0x" + (7).to_bytes(32, "big").hex()]
    started = "0x" + encode(["uint256", "bytes32"], [running, b"\1" * 32]).hex()
    back = "0x" + encode(["uint256"], [chain.stored(job)]).hex()
    logs = [
        [0, "0x" + "a1" * 32, "JobRegistry", [f"0x{topic_of(Started).hex()}", *unit], started],
        [1, "0x" + "a2" * 32, "JobRegistry", [f"0x{topic_of(Reclaimed).hex()}", *unit], back],
    ]
    _insert(lines, number + 1, block_hash, logs)


def _insert(lines: Lines, number: int, block_hash: str, logs: list[list[Any]]) -> None:
    part = next(one for one in lines[1:] if one["from"] <= number <= one["to"])
    part["blocks"] = sorted([*part["blocks"], [number, block_hash, logs]], key=lambda one: one[0])


@pytest.mark.parametrize("known", [False, True], ids=["of no chain", "of the chain"])
@pytest.mark.parametrize("invent", [_never_leased, _gave_back], ids=["leases", "a lease given back"])
def test_snapshot__with_invented_events_in_a_block__is_refused(
    visit: Visit, chain: WebChain, file: Path, invent: Callable[[Lines, WebChain, str], None], known: bool
) -> None:
    block = chain.chain.block(chain.posts[0][1] + 1)
    assert block is not None
    block_hash = f"0x{block.hash.hex()}" if known else "0x" + "fa" * 32
    visit.take(altered(file, lambda lines: invent(lines, chain, block_hash)))

    refused = visit.refusal()
    assert "SNAPSHOT_DIFFERS" in refused
    assert f"block {block.number} holds other logs" in refused


def test_snapshot__that_hides_a_waiting_change__hides_it_from_nobody(visit: Visit, file: Path) -> None:
    topic = f"0x{topic_of(ChangeQueued).hex()}"

    def hide(lines: Lines) -> None:
        for part in lines[1:]:
            part["blocks"] = [one for one in part["blocks"] if all(log[3][0] != topic for log in one[2])]

    assert topic in file.read_text()
    visit.take(altered(file, hide))
    visit.page.wait_for_selector(f"text={TAKEN}")
    visit.go("gov", "What can be done now")

    assert THIEF in visit.page.inner_text("main")


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
