"""The built page in a real browser, served by hearth web, without a chain: files, its own CID, its policy."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hearth.jobfile.load import load_spec
from hearth.jobfile.model import local_sources
from hearth.jobfile.resolved import Blob, canonical_bytes, resolve
from hearth.jobfile.workdir import workdir_rules
from hearth.local.project import write_project
from hearth.storage import car, unixfs
from hearth.storage import cid as cids
from hearth.storage.stores import FolderStore
from hearth.web.files import read_page
from hearth.web.server import Served, WebServer
from tests.kit.browser import Watched, watched
from tests.kit.http import NAME
from tests.kit.web_page import MENU
from tests.web.vectors.network import NETWORK

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.net


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


def serve(store: FolderStore, *, writable: bool = True, gateways: tuple[str, ...] = ()) -> WebServer:
    # A market whose RPC nobody serves: what needs no chain must work without one.
    network = {**NETWORK.as_dict(), "rpc": [], "gateways": list(gateways)}
    return WebServer(Served(read_page(), "devnet", network, store, writable), 0, name=NAME)


@pytest.fixture
def web(store: FolderStore) -> Iterator[WebServer]:
    with serve(store) as running:
        yield running


def tree(folder: Path) -> Path:
    """Make a folder whose names and sizes are of all kinds."""
    root = folder / "data"
    (root / "inner" / "deep").mkdir(parents=True)
    (root / "empty file").write_bytes(b"")
    (root / "inner" / "ä 名 😀.txt").write_text("words")
    (root / "inner" / "deep" / "big.bin").write_bytes(bytes(range(256)) * 8_200)
    return root


# ---- its own ----


def test_page__about__names_its_own_cid(web: WebServer, seen: Watched) -> None:
    seen.page.goto(web.url)
    seen.page.click("nav a[href='#/about']")
    seen.page.wait_for_selector(f"text={read_page().cid}")


def test_page__the_token__is_taken_out_of_the_address(web: WebServer, seen: Watched) -> None:
    seen.page.goto(web.url)
    seen.page.wait_for_selector("text=served by hearth web")

    assert web.token not in seen.page.url
    assert web.token not in seen.page.content()
    seen.page.goto("about:blank")
    seen.page.goto(web.origin)  # a bookmark: the tab's origin still knows the token
    seen.page.wait_for_selector("text=served by hearth web")


def test_page__opened_without_the_token__says_which_address_to_open(web: WebServer, seen: Watched) -> None:
    seen.page.goto(web.origin)
    seen.page.wait_for_selector("text=open the address that hearth web printed")
    seen.excuse("403")


def test_page__an_address_that_is_none__says_so_and_where_to_go(web: WebServer, seen: Watched) -> None:
    job = "0x" + "ab" * 32
    seen.page.goto(web.url)
    seen.page.wait_for_selector("h1:text-is('Jobs')")
    for address in ("nothing", "jobs/more", "node/1/2", f"jobs/{job}", "constructor"):
        seen.page.evaluate("(address) => { location.hash = `#/${address}`; }", address)
        seen.page.wait_for_selector(f"main:has(h1:text-is('No such page')) >> text=#/{address}")
        assert seen.page.title() == "No such page - Hearth"
        assert seen.page.query_selector("nav a[aria-current]") is None
    seen.page.evaluate("(address) => { location.hash = `#/x/${address}`; }", job)
    seen.page.click("#instead >> text=The job of this id")
    seen.page.wait_for_selector("h1:text-is('Job')")
    assert seen.page.url.endswith(f"#/job/{job}")
    seen.page.go_back()
    seen.page.click("#instead >> text=The jobs of this market")
    seen.page.wait_for_selector("h1:text-is('Jobs')")
    seen.excuse("NO_RPC")


def test_page__its_scripts__make_no_other_request(web: WebServer, chromium: Browser) -> None:
    with watched(chromium) as seen:
        asked: set[str] = set()
        seen.page.on("request", lambda request: asked.add("/".join(request.url.split("/")[:3])))
        seen.page.goto(web.url)
        for name in MENU:
            seen.page.click(f"nav a[href='#/{name}']")
            seen.page.wait_for_selector(f"nav a[href='#/{name}'][aria-current]")  # not the page before
            seen.page.wait_for_selector("h1")
        seen.excuse("NO_RPC")

        assert {one for one in asked if one.startswith("http")} == {web.origin}


# As scripts of the page's own: each runs later than the driver's call, which a policy does not bind.
ATTEMPTS = {
    "text as a document": ("document.body.innerHTML = '<b>x</b>'", "Trusted"),
    "text as a program": ("setTimeout('window.ran = 1')", "Trusted"),
    "another script": ("add('script', 'src', 'data:,1')", "Trusted"),
    "another image": ("add('img', 'src', 'https://evil.example/x')", "img-src"),
    "another server": ("fetch('https://evil.example/').catch(() => 0)", "connect-src"),
    "another frame": ("add('iframe', 'src', 'https://evil.example/')", "frame-src"),
    "another place for forms": ("add('form', 'action', 'https://evil.example/').submit()", "form-action"),
    "another base": ("add('base', 'href', 'https://evil.example/')", "base-uri"),
    "a style of text": ("add('style', 'textContent', 'x {}')", "style-src"),
    "a worker of text": ("new Worker(URL.createObjectURL(new Blob(['1'])))", "Trusted"),
}
WATCH = """() => {
  window.broken = [];
  addEventListener("securitypolicyviolation", (event) => window.broken.push(event.violatedDirective));
  addEventListener("error", (event) => window.broken.push(String(event.error)));
  window.add = (kind, name, value) => {
    const one = document.createElement(kind);
    one[name] = value;
    document.body.append(one);
    return one;
  };
}"""


@pytest.mark.parametrize("name", ATTEMPTS)
def test_page__its_policy__stops_what_no_script_of_ours_does(web: WebServer, chromium: Browser, name: str) -> None:
    attempt, wanted = ATTEMPTS[name]
    context = chromium.new_context()
    try:
        page = context.new_page()
        page.goto(web.url)
        page.wait_for_selector("text=served by hearth web")
        page.evaluate(WATCH)
        page.evaluate(f"() => {{ setTimeout(() => {{ {attempt} }}) }}")
        told = "(wanted) => window.broken.some((said) => said.includes(wanted))"
        page.wait_for_function(told, arg=wanted, timeout=10_000)

        assert page.evaluate("() => [document.querySelector('b'), window.ran]") == [None, None]
    finally:
        context.close()


# ---- files ----


def test_files__a_folder__has_the_librarys_cid_and_is_put_whole(
    web: WebServer, seen: Watched, store: FolderStore, tmp_path: Path
) -> None:
    root = tree(tmp_path)
    wanted = unixfs.name_path(root)
    seen.page.goto(web.url)
    seen.page.click("nav a[href='#/files']")
    seen.page.set_input_files("input[webkitdirectory]", root)
    seen.page.wait_for_selector(f"text={wanted.cid}")
    assert not store.has(wanted.cid)
    seen.page.click("text=Put into my store")
    seen.page.wait_for_selector("text=It is in your store, and kept")
    store.collect()  # what is not pinned goes

    store.fetch(wanted.cid, tmp_path / "back")
    assert (tmp_path / "back" / "inner" / "ä 名 😀.txt").read_text() == "words"
    assert (tmp_path / "back" / "inner" / "deep" / "big.bin").read_bytes() == bytes(range(256)) * 8_200


def test_files__one_file__has_the_librarys_cid(web: WebServer, seen: Watched, tmp_path: Path) -> None:
    path = tmp_path / "one.bin"
    path.write_bytes(b"x" * (3 * 2**20 + 7))
    seen.page.goto(web.url + "")
    seen.page.click("nav a[href='#/files']")
    seen.page.set_input_files("input[type=file]:not([webkitdirectory])", path)
    seen.page.wait_for_selector(f"text={unixfs.name_path(path).cid}")


def test_files__a_start_that_only_reads__lets_nothing_be_put(
    chromium: Browser, store: FolderStore, tmp_path: Path
) -> None:
    with serve(store, writable=False) as web, watched(chromium) as seen:
        seen.page.goto(web.url)
        seen.page.click("nav a[href='#/files']")
        seen.page.set_input_files("input[webkitdirectory]", tree(tmp_path))
        seen.page.wait_for_selector("#named-cid")
        assert seen.page.is_disabled("text=Put into my store")


def test_files__what_a_cid_names__is_listed_and_saved(
    web: WebServer, seen: Watched, store: FolderStore, tmp_path: Path
) -> None:
    root = tree(tmp_path)
    entry = store.add_path(root)
    seen.page.goto(web.url)
    seen.page.click("nav a[href='#/files']")
    seen.page.fill("#cid", f"ipfs://{entry.cid}/inner")
    seen.page.click("text=Look")
    seen.page.wait_for_selector("text=deep/big.bin")
    with seen.page.expect_download() as saved:
        seen.page.click("text=Save big.bin")

    assert Path(saved.value.path()).read_bytes() == (root / "inner" / "deep" / "big.bin").read_bytes()


def digest_of(project: Path) -> bytes:
    """Return the digest of a project's job as the library makes it."""
    loaded = load_spec(project / "job.yaml")
    named = {src: unixfs.name_path(project / src) for _, src in local_sources(loaded.spec)}
    blobs = {src: Blob(cid=str(entry.cid), size=entry.size) for src, entry in named.items()}
    resolved = resolve(loaded.spec, blobs)
    return hashlib.sha256(canonical_bytes(resolved)).digest()


class Lying(FolderStore):
    """A store that serves other bytes than were put, without a look."""

    def get_block(self, cid: Any, timeout: float = 60.0) -> bytes:
        return super().get_block(cid, timeout)[:-1] + b"!"


def test_files__a_store_that_lies__is_named(chromium: Browser, tmp_path: Path) -> None:
    lying = Lying(tmp_path / "lying")
    cid = lying.add_bytes(b"the truth").cid
    with serve(lying) as web, watched(chromium) as seen:
        seen.page.goto(web.url)
        seen.page.click("nav a[href='#/files']")
        seen.page.fill("#cid", str(cid))
        seen.page.click("text=Look")
        seen.page.wait_for_selector("text=BLOCK_CORRUPT")
        assert "your store" in seen.page.inner_text("[role=alert]")


@pytest.mark.parametrize(
    ("text", "code"),
    [("nonsense", "BAD_CID"), (str(cids.of(b"nobody has it")), "BLOCK_MISSING"), ("ipfs://", "BAD_CID")],
)
def test_files__what_cannot_be_had__says_why(web: WebServer, chromium: Browser, text: str, code: str) -> None:
    with watched(chromium) as seen:
        seen.page.goto(web.url)
        seen.page.click("nav a[href='#/files']")
        seen.page.fill("#cid", text)
        seen.page.click("text=Look")
        seen.page.wait_for_selector(f"text={code}")
        seen.excuse("404")


def test_files__names_that_would_mislead__are_written_out(
    web: WebServer, seen: Watched, store: FolderStore, tmp_path: Path
) -> None:
    root = tmp_path / "odd"
    root.mkdir()
    (root / "<img src=x onerror=alert(1)>").write_text("x")
    entry = store.add_path(root)
    seen.page.goto(web.url)
    seen.page.click("nav a[href='#/files']")
    seen.page.fill("#cid", str(entry.cid))
    seen.page.click("text=Look")
    seen.page.wait_for_selector("td >> text=<img src=x onerror=alert(1)>")
    assert seen.page.query_selector("main img") is None


def test_files__rules_of_a_folder__leave_out_what_the_library_leaves_out(
    web: WebServer, seen: Watched, tmp_path: Path
) -> None:
    root = tree(tmp_path)
    (root / ".gitignore").write_text("*.bin\n!keep.bin\n")
    (root / "keep.bin").write_text("x")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("secret")
    wanted = unixfs.name_path(root, ignore=workdir_rules(root))
    seen.page.goto(web.url)
    seen.page.click("nav a[href='#/files']")
    seen.page.set_input_files("input[webkitdirectory]", root)
    seen.page.wait_for_selector(f"text={wanted.cid}")
    seen.page.click("text=left out by the rules")
    listed = seen.page.inner_text("details")

    assert ".git/" in listed and "inner/deep/big.bin" in listed


def test_files__a_car__brings_it_into_a_store_by_the_command(
    web: WebServer, seen: Watched, store: FolderStore, tmp_path: Path
) -> None:
    root = tree(tmp_path)
    wanted = unixfs.name_path(root).cid
    seen.page.goto(web.url)
    seen.page.click("nav a[href='#/files']")
    seen.page.set_input_files("input[webkitdirectory]", root)
    seen.page.wait_for_selector("#named-cid")
    with seen.page.expect_download() as saved:
        seen.page.click("text=Save as CAR")
    with Path(saved.value.path()).open("rb") as file:
        roots, blocks = car.read(file)
        for cid, block in blocks:
            store.put_block(block, cid.codec)

    assert roots == (wanted,)
    store.fetch(wanted, tmp_path / "back")
    assert (tmp_path / "back" / "empty file").read_bytes() == b""


# ---- a job file ----


def test_check__a_job_file__has_the_digest_and_faults_that_the_library_finds(
    web: WebServer, seen: Watched, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    write_project(project, "wasm", network="devnet")
    seen.page.goto(web.url)
    seen.page.click("nav a[href='#/check']")
    text = (project / "job.yaml").read_text()
    seen.page.fill("#job-file", text)
    seen.page.wait_for_selector("text=This is a job file")
    assert seen.page.inner_text("#missing").endswith("./sum.wasm, ./numbers.txt")

    def pick(name: str, path: Path) -> str:
        item = seen.page.locator("li", has_text=name).first
        before = item.locator("code").all_inner_texts()
        item.locator("input[type=file]:not([webkitdirectory])").set_input_files(path)
        seen.page.wait_for_function(
            "([name, before]) => [...document.querySelectorAll('li')].some((one) => one.innerText.includes(name) && "
            "one.querySelector('code') !== null && one.querySelector('code').innerText !== before)",
            arg=[name, before[0] if before else ""],
        )
        return item.locator("code").inner_text()

    pick("numbers.txt", project / "numbers.txt")
    wrong = pick("sum.wasm", project / "numbers.txt")
    # Whoever picked the wrong one picks another.
    assert pick("sum.wasm", project / "sum.wasm") != wrong
    seen.page.wait_for_function(
        "(wanted) => document.querySelector('#spec-digest')?.innerText === wanted",
        arg="0x" + digest_of(project).hex(),
    )

    # The example is that file, and what it brings comes with it.
    seen.page.fill("#job-file", "")
    seen.page.click("text=Show an example")
    seen.page.wait_for_function(
        "(wanted) => document.querySelector('#spec-digest')?.innerText === wanted",
        arg="0x" + digest_of(project).hex(),
    )
    assert seen.page.input_value("#job-file") == text

    seen.page.fill("#job-file", text + "\nnonsense: 1\n")
    seen.page.wait_for_selector("[role=alert] >> text=nonsense")


# ---- how it looks ----


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page__at_320_pixels__scrolls_down_alone(web: WebServer, chromium: Browser, scheme: str) -> None:
    with watched(chromium, viewport={"width": 320, "height": 640}, color_scheme=scheme) as seen:
        seen.page.goto(web.url)
        for name in MENU:
            seen.page.click(f"nav a[href='#/{name}']")
            seen.page.wait_for_selector(f"nav a[href='#/{name}'][aria-current]")  # not the page before
            seen.page.wait_for_selector("h1")
            wide = seen.page.evaluate("() => document.documentElement.scrollWidth")
            assert wide <= 320, f"{name}: {wide}"


def test_page__the_theme__is_the_readers(web: WebServer, seen: Watched) -> None:
    seen.page.goto(web.url)
    seen.page.select_option(".theme select", "dark")
    assert seen.page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(28, 25, 23)"
    seen.page.reload()
    seen.page.wait_for_selector("h1")
    assert seen.page.evaluate("() => document.documentElement.className") == "dark"
