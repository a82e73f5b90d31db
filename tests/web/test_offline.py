"""The page without its server, in a real browser: which copy opens, when it is replaced, and where none is kept."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from hearth.web.files import APP, Page, read_page
from tests.kit.browser import Watched, watched
from tests.kit.http import answering, send
from tests.kit.web_page import MENU
from tests.kit.web_process import web_process

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.net
SAID = "Unaudited: use it with test money."
SAYS_OTHER = "Another build of the page, so others."
LIST = "files.json"
AWAY = "its server does not answer"


@pytest.fixture
def seen(seen: Watched) -> Iterator[Watched]:
    yield seen
    # What the page asks of a server that was stopped, and the browser's word for a navigation to one.
    for part in ("ERR_CONNECTION_REFUSED", "ERR_FAILED"):
        seen.excuse(part)


@pytest.fixture(scope="module")
def other_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a build in which one sentence differs; its list says so."""
    folder = tmp_path_factory.mktemp("build") / "app"
    shutil.copytree(APP, folder)
    (words,) = (path for path in folder.glob("*.js") if SAID in path.read_text())
    words.write_text(words.read_text().replace(SAID, SAYS_OTHER))
    relist(folder)
    return folder


def relist(folder: Path) -> None:
    """Write the list of a build's files anew."""
    names = json.loads((folder / LIST).read_text())
    listed = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    (folder / LIST).write_text(json.dumps(listed))


def port_of(url: str) -> int:
    """Return the port of an address that was printed."""
    port = urlsplit(url).port
    assert port is not None
    return port


KEPT = """async () => {
  const keys = await caches.keys();
  const names = [];
  for (const key of keys)
    for (const one of await (await caches.open(key)).keys()) names.push(new URL(one.url).pathname.slice(1));
  return [keys.length, names.sort()];
}"""


def kept(seen: Watched, page: Page) -> None:
    """Wait until this browser's copy is a whole build, and nothing else is in it."""
    ready = "navigator.serviceWorker.ready.then(() => true)"
    assert seen.page.evaluate(ready)
    seen.page.wait_for_function(f"({KEPT})().then(([count, names]) => count === 1 && names.includes('{LIST}'))")
    assert seen.page.evaluate(KEPT) == [1, sorted(page.files)]


def test_page__whose_server_was_stopped__opens_and_says_what_it_does_not_reach(seen: Watched, tmp_path: Path) -> None:
    page = read_page()
    with web_process(APP, tmp_path) as url:
        seen.page.goto(url)
        seen.page.wait_for_selector("text=served by hearth web")
        kept(seen, page)
    seen.page.reload()
    seen.page.wait_for_selector(f"text={AWAY}")
    # Every part of it is of the same build, loaded later too; and what needs nobody works.
    for name in MENU[1:]:
        seen.page.click(f"nav a[href='#/{name}']")
        seen.page.wait_for_selector(f"nav a[href='#/{name}'][aria-current]")  # not the page before
        seen.page.wait_for_selector("h1")
    seen.page.wait_for_selector(f"text={page.cid}")
    seen.page.wait_for_selector("text=here by this browser's own copy")
    assert seen.page.evaluate("performance.getEntriesByType('navigation')[0].type") == "reload"

    # Its server is there again: it comes first.
    with web_process(APP, tmp_path, port_of(url)) as again:
        seen.page.goto(again)
        seen.page.wait_for_selector("text=served by hearth web")
        assert "kept" not in seen.page.url


def test_page__of_a_new_build__replaces_the_old_copy_and_tells_other_tabs(
    seen: Watched, tmp_path: Path, other_build: Path
) -> None:
    with web_process(APP, tmp_path) as url:
        seen.page.goto(url)
        kept(seen, read_page())
    with web_process(other_build, tmp_path, port_of(url)) as url:
        second = seen.page.context.new_page()
        second.goto(url)
        second.wait_for_selector(f"text={SAYS_OTHER}")
        seen.page.wait_for_selector("text=Its server has another build of this page by now")
        kept(seen, read_page(other_build))
        assert "another build" not in second.inner_text("body")
    second.reload()
    second.wait_for_selector(f"text={AWAY}")

    assert SAYS_OTHER in second.inner_text("body") and SAID not in second.inner_text("body")


def test_copy__of_a_build_that_is_not_what_its_list_says__is_none(seen: Watched, tmp_path: Path) -> None:
    broken = tmp_path / "app"
    shutil.copytree(APP, broken)
    (broken / "about.js").write_bytes((broken / "index.js").read_bytes())
    with web_process(broken, tmp_path) as url:
        seen.page.goto(url)
        seen.page.wait_for_selector("text=served by hearth web")
        seen.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        seen.page.reload()
        seen.page.wait_for_selector("text=served by hearth web")
        seen.page.wait_for_function(f"({KEPT})().then(([count]) => count === 0)")


def test_worker__of_another_script__is_refused_by_the_policy(seen: Watched, tmp_path: Path) -> None:
    with web_process(APP, tmp_path) as url:
        seen.page.goto(url)
        seen.page.wait_for_selector("text=served by hearth web")
        seen.page.evaluate("navigator.serviceWorker.ready.then(() => true)")  # the page has made its policy
        tried = """async (make) => {
          try { await navigator.serviceWorker.register(make()); } catch (error) { return error.message; }
          return "registered";
        }"""
        policy = "trustedTypes.createPolicy('{}', {{ createScriptURL: (url) => url }}).createScriptURL('./index.js')"
        for attempt, why in (
            ("'./service-worker.js'", "requires 'TrustedScriptURL' assignment"),
            (policy.format("mine"), "disallowed"),
            (policy.format("hearth-offline"), "already exists"),  # it was made once, by the page
        ):
            assert why in seen.page.evaluate(f"() => ({tried})(() => {attempt})"), attempt
        for part in ("TrustedScriptURL", "trusted-types"):
            seen.excuse(part)


def test_forget__the_copy__goes_with_the_rest(seen: Watched, tmp_path: Path) -> None:
    with web_process(APP, tmp_path) as url:
        seen.page.goto(url)
        kept(seen, read_page())
        seen.page.click("nav a[href='#/about']")
        seen.page.click("text=Forget what this page has stored")
        seen.page.wait_for_selector("text=Forgotten")
        left = "async () => [(await caches.keys()).length, (await navigator.serviceWorker.getRegistrations()).length]"
        assert seen.page.evaluate(left) == [0, 0]


@pytest.mark.parametrize("prefix", ["/ipfs/bafy/", "/"], ids=["a path gateway", "a frame"])
def test_copy__at_a_shared_origin_or_in_a_frame__is_none(chromium: Browser, prefix: str) -> None:
    page = read_page()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.removeprefix(prefix).split("?")[0] or "index.html"
        if handler.path == "/framing":
            send(handler, 200, b"<iframe src='/'></iframe>", Content_Type="text/html")
        elif path in page.files:
            send(handler, 200, page.files[path].data, Content_Type=page.files[path].kind)
        else:
            send(handler, 404)

    with answering(answer) as port, watched(chromium) as seen:
        seen.page.goto(f"http://127.0.0.1:{port}{prefix if prefix != '/' else '/framing'}")
        frame = seen.page.frames[-1]
        frame.click("nav a[href='#/about']")
        frame.wait_for_selector(f"text={page.cid}")

        assert seen.page.evaluate("navigator.serviceWorker.getRegistrations().then((all) => all.length)") == 0
        assert seen.page.evaluate("caches.keys().then((all) => all.length)") == 0
        seen.excuse("404")
