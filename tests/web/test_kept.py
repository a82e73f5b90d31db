"""What the built page keeps in a real browser: a second visit, a second tab, and a browser that keeps nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hearth.storage.stores import FolderStore
from hearth.web.files import read_page
from hearth.web.server import Served, WebServer
from tests.kit.browser import Watched, require_chromium, watched
from tests.kit.http import NAME, answering, send
from tests.kit.web_chain import WebChain, web_chain

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

pytestmark = pytest.mark.net

DEPTH = 64
"""Blocks that are not kept yet (web/src/chain/cache.ts)."""
JOBS = 20
EMPTY = 150
"""Blocks before each job, and after the last one."""
ROWS = "{} of the newest {} jobs"
BOOKS = "text=Recompute the books here"


@pytest.fixture
def chain() -> Iterator[WebChain]:
    with web_chain() as made:
        made.post(JOBS, empty=EMPTY)
        made.mine(EMPTY)
        yield made


@pytest.fixture
def web(chain: WebChain, tmp_path: Path) -> Iterator[WebServer]:
    served = Served(read_page(), "test", chain.network_file, FolderStore(tmp_path / "store"), True)
    with WebServer(served, 0, name=NAME) as running:
        yield running


def until(page: Page, done: Callable[[], bool]) -> None:
    """Let the page run until something is so."""
    ends = time.monotonic() + 30
    while not done():
        assert time.monotonic() < ends
        page.wait_for_timeout(50)


KEPT = """async () => {
  const opening = indexedDB.open("hearth");
  await new Promise((done) => { opening.onsuccess = done; });
  const open = opening.result;
  const heads = open.transaction("heads").objectStore("heads").getAll();
  await new Promise((done) => { heads.onsuccess = done; });
  open.close();
  return heads.result.map((head) => [head.kind, head.from, head.to]);
}"""


def kept_ends(page: Page, contracts: int) -> list[int]:
    """Return the last blocks up to which logs of so many contracts are kept."""
    heads: list[tuple[str, int, int]] = page.evaluate(KEPT)
    return [to for kind, _, to in heads if kind.startswith("[") and len(json.loads(kind)[0]) == contracts]


def kept_to(page: Page, block: int, *, contracts: int = 1) -> None:
    """Wait until logs of so many contracts are kept up to a block."""
    until(page, lambda: block in kept_ends(page, contracts))


def final(chain: WebChain) -> int:
    """Return the newest block that may be kept."""
    return chain.chain.head().number - DEPTH


def again(page: Page, web: WebServer, route: str, wanted: str) -> None:
    """Open a route in a page of its own, as a later visit does."""
    page.goto("about:blank")
    page.goto(f"{web.origin}/{route}")
    page.wait_for_selector(f"text={wanted}")


# ---- a second visit ----


def test_jobs__a_second_visit__asks_for_the_blocks_since_alone(chain: WebChain, web: WebServer, seen: Watched) -> None:
    seen.page.goto(web.url)
    seen.page.wait_for_selector(f"text={ROWS.format(JOBS, JOBS)}")
    deep = final(chain)
    kept_to(seen.page, chain.posts[-1][1])
    chain.post(empty=5)
    at = len(chain.asked)
    again(seen.page, web, "#/jobs", ROWS.format(JOBS + 1, JOBS + 1))

    second = chain.logs_since(at)
    assert second and all(start > deep - EMPTY for start, _ in second)
    assert min(start for start, _ in chain.logs_since(0)) < deep - 10 * EMPTY


def test_job__a_second_visit__asks_for_the_blocks_since_alone(chain: WebChain, web: WebServer, seen: Watched) -> None:
    job, block = chain.posts[3]
    route = f"#/job/0x{job.hex()}@{block}"
    seen.page.goto(web.url)
    again(seen.page, web, route, f"block {block}")
    deep = final(chain)
    kept_to(seen.page, deep)
    at = len(chain.asked)
    again(seen.page, web, route, f"block {block}")

    assert chain.logs_since(at) and all(start > deep for start, _ in chain.logs_since(at))


def test_books__a_second_visit__replays_what_is_kept(chain: WebChain, web: WebServer, seen: Watched) -> None:
    seen.page.goto(web.url)
    for visit in range(2):
        at = len(chain.asked)
        again(seen.page, web, "#/network", BOOKS.removeprefix("text="))
        seen.page.click(BOOKS)
        seen.page.wait_for_selector(f"text={JOBS}, of {JOBS} units")
        seen.page.wait_for_selector("text=Solvent")
        kept_to(seen.page, final(chain), contracts=2)
        if visit:
            assert all(start > final(chain) for start, _ in chain.logs_since(at))
            assert not any(ask.method == "eth_getBlockByHash" for asks in chain.asked[at:] for ask in asks)


def test_market__after_the_books__finds_their_logs_kept(chain: WebChain, web: WebServer, seen: Watched) -> None:
    seen.page.goto(web.url)
    again(seen.page, web, "#/network", BOOKS.removeprefix("text="))
    seen.page.click(BOOKS)
    seen.page.wait_for_selector("text=Solvent")
    kept_to(seen.page, final(chain), contracts=2)
    at = len(chain.asked)
    again(seen.page, web, "#/market", "nothing here is a sample")

    network = chain.network.contracts
    asked = [one for asks in chain.asked[at:] for one in asks if one.method == "eth_getLogs" and one.span[1] >= 0]
    old = [one.params[0]["address"] for one in asked if one.span[0] <= final(chain)]
    assert old and all(addresses == [network["NodeRegistry"].lower()] for addresses in old)


def test_books__a_reading_that_was_broken_off__goes_on(chain: WebChain, web: WebServer, chromium: Browser) -> None:
    context = chromium.new_context()
    try:
        page = context.new_page()
        page.goto(web.url)
        again(page, web, "#/network", BOOKS.removeprefix("text="))
        chain.slow = 0.6
        page.click(BOOKS)
        until(page, lambda: any(to > 500 for to in kept_ends(page, 2)))
        assert final(chain) not in kept_ends(page, 2)
        page.close()
        chain.slow = 0.0
        at = len(chain.asked)
        page = context.new_page()
        page.goto(f"{web.origin}/#/network")
        page.click(BOOKS)
        page.wait_for_selector("text=Solvent")

        assert min(start for start, _ in chain.logs_since(at)) > 500
    finally:
        context.close()


@pytest.mark.parametrize("depth", [10, EMPTY + 1, 8 * EMPTY])
def test_jobs__after_a_reorg__are_those_of_the_chain(
    chain: WebChain, web: WebServer, seen: Watched, depth: int
) -> None:
    seen.page.goto(web.url)
    seen.page.wait_for_selector(f"text={ROWS.format(JOBS, JOBS)}")
    kept_to(seen.page, chain.posts[-1][1])
    chain.reorg(depth)
    chain.post()
    chain.mine(2 * DEPTH)
    left = ROWS.format(len(chain.posts), len(chain.posts))
    seen.page.wait_for_selector(f"text={left}")  # the page that stayed open
    again(seen.page, web, "#/jobs", left)


# ---- tabs ----


class Tab:
    """A page and the looks at the head that it made."""

    def __init__(self, page: Page) -> None:
        self.page, self.looks = page, 0
        page.on("request", self._note)

    def _note(self, request: Request) -> None:
        self.looks += request.method == "POST" and '"toBlock":"latest"' in (request.post_data or "")

    def hide(self, hidden: bool) -> None:
        """Have the page believe that its tab is hidden, or seen."""
        said = json.dumps(hidden)
        self.page.evaluate(f"""() => {{
            Object.defineProperty(document, "hidden", {{ configurable: true, get: () => {said} }});
            document.dispatchEvent(new Event("visibilitychange"));
        }}""")


def test_tabs__two_of_one_market__look_as_often_as_one(chain: WebChain, web: WebServer, chromium: Browser) -> None:
    context = chromium.new_context()
    try:
        first, second = Tab(context.new_page()), Tab(context.new_page())
        first.page.goto(web.url)
        first.page.wait_for_selector(f"text={ROWS.format(JOBS, JOBS)}")
        second.page.goto(web.origin)
        second.page.wait_for_selector(f"text={ROWS.format(JOBS, JOBS)}")
        before = first.looks
        chain.post(2)
        until(first.page, lambda: first.looks > before + 3)
        for tab in (first, second):
            tab.page.wait_for_selector(f"text={ROWS.format(JOBS + 2, JOBS + 2)}")
        assert second.looks == 0

        first.hide(True)
        until(second.page, lambda: second.looks > 3)
        before = first.looks
        chain.post()
        second.page.wait_for_selector(f"text={ROWS.format(JOBS + 3, JOBS + 3)}")
        first.hide(False)
        first.page.wait_for_selector(f"text={ROWS.format(JOBS + 3, JOBS + 3)}")
        assert first.looks == before

        second.page.close()
        until(first.page, lambda: first.looks > before + 2)
    finally:
        context.close()


# ---- a browser that keeps nothing, and a reader who wants nothing kept ----


def test_storage__that_is_blocked__is_done_without(
    chain: WebChain, web: WebServer, chromium: Browser, tmp_path: Path
) -> None:
    profile = tmp_path / "profile"
    (profile / "Default").mkdir(parents=True)
    blocked: dict[str, Any] = {"profile": {"default_content_setting_values": {"cookies": 2}}}
    (profile / "Default" / "Preferences").write_text(json.dumps(blocked))
    context = chromium.browser_type.launch_persistent_context(
        profile,
        executable_path=require_chromium(whole=True),
        args=["--no-sandbox", "--disable-dev-shm-usage"],
        headless=True,
    )
    try:
        seen = Watched(context)
        seen.page.goto(web.url)
        seen.page.wait_for_selector(f"text={ROWS.format(JOBS, JOBS)}")
        denied = "() => { try { return localStorage.length } catch (error) { return error.name } }"
        assert seen.page.evaluate(denied) == "SecurityError"
        chain.post()
        seen.page.wait_for_selector(f"text={ROWS.format(JOBS + 1, JOBS + 1)}")
        seen.page.select_option(".theme select", "dark")
        seen.page.click("nav a[href='#/network']")
        seen.page.click(BOOKS)
        seen.page.wait_for_selector("text=Solvent")
        seen.page.click("nav a[href='#/about']")
        seen.page.click("text=Forget what this page has stored")
        seen.page.wait_for_selector("text=Forgotten")
        assert seen.complaints == []
    finally:
        context.close()


def test_origin__shared_with_strangers__keeps_nothing_and_tells_nobody(chain: WebChain, chromium: Browser) -> None:
    """A path gateway, here one that also says that it is hearth web."""
    page, local = read_page(), {"served_by": "hearth web", "network": "test", "writable": False}

    def answer(handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.removeprefix("/ipfs/bafy/") or "index.html"
        said = {"local.json": local, "networks/test.json": chain.network_file}.get(path)
        if said is not None:
            send(handler, 200, json.dumps(said).encode(), Content_Type="application/json")
        elif path in page.files:
            send(handler, 200, page.files[path].data, Content_Type=page.files[path].kind)
        else:
            send(handler, 404)

    with answering(answer) as port, watched(chromium) as seen:
        second = Tab(seen.page.context.new_page())
        for one in (seen.page, second.page):
            one.goto(f"http://127.0.0.1:{port}/ipfs/bafy/")
            one.wait_for_selector(f"text={ROWS.format(JOBS, JOBS)}")
            one.click("nav a[href='#/about']")
            one.wait_for_selector("text=Forget what this page has stored")
        until(second.page, lambda: second.looks > 2)

        assert seen.page.evaluate("async () => (await indexedDB.databases()).length") == 0
        seen.excuse("404")


def test_forget__leaves_nothing_behind(chain: WebChain, web: WebServer, chromium: Browser) -> None:
    context = chromium.new_context()
    try:
        other, page = context.new_page(), context.new_page()
        other.goto(web.url)
        other.wait_for_selector(f"text={ROWS.format(JOBS, JOBS)}")
        page.goto(web.origin)
        page.select_option(".theme select", "dark")
        page.wait_for_selector(f"text={ROWS.format(JOBS, JOBS)}")
        kept_to(page, chain.posts[-1][1])
        page.click("nav a[href='#/about']")
        page.click("text=Forget what this page has stored")
        page.wait_for_selector("text=Forgotten")
        chain.post()
        other.wait_for_selector(f"text={ROWS.format(JOBS + 1, JOBS + 1)}")

        left = "async () => [Object.keys(localStorage), (await indexedDB.databases()).map((one) => one.name)]"
        for one in (page, other):
            assert one.evaluate(left) == [[], []]
            assert one.evaluate("() => document.documentElement.className") == ""
    finally:
        context.close()
