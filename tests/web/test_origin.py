"""The page's own origin: how its name is drawn and kept, and what a script that was left at another one cannot read."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from hearth.base.errors import ConfigError
from hearth.storage.stores import FolderStore
from hearth.web import origin
from hearth.web.files import read_page
from hearth.web.origin import name_of
from hearth.web.server import Served, WebServer
from tests.kit.browser import Watched
from tests.kit.http import answering, send
from tests.web.vectors.network import NETWORK

pytestmark = pytest.mark.net

PLANTS = b"<!doctype html><title>harmless</title><script src='/plant.js'></script>"
PLANT = b"""
navigator.serviceWorker.register("/sw.js").then(() => navigator.serviceWorker.ready).then(() => {
  document.title = "planted";
});
"""
STEALS = b"<!doctype html><title>stays</title><script src='/steal.js'></script>"
STEAL = b"document.title = 'stolen ' + location.hash;"
WORKER = b"""
const of = (body, type) => new Response(body, { headers: { "Content-Type": type } });
addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  if (event.request.mode === "navigate") event.respondWith(of(`%s`, "text/html"));
  if (event.request.url.endsWith("/steal.js")) event.respondWith(of(`%s`, "text/javascript"));
});
""" % (STEALS, STEAL)


def plant(handler: BaseHTTPRequestHandler) -> None:
    """Answer as a server whose page leaves a service worker that shows another page in the place of every later one."""
    found = {"/plant.js": PLANT, "/sw.js": WORKER}.get(handler.path)
    send(handler, 200, found or PLANTS, Content_Type="text/javascript" if found else "text/html")


def test_token__with_scripts_left_at_every_other_name_of_the_port__is_read_by_the_page_alone(
    seen: Watched, tmp_path: Path
) -> None:
    """The machine's other user knows the port and all that his own hearth web printed."""
    theirs, mine = name_of(tmp_path / "theirs"), name_of(tmp_path / "mine")
    with answering(plant) as port:
        for host in ("127.0.0.1", "localhost", f"{theirs}.localhost"):
            seen.page.goto(f"http://{host}:{port}/")
            seen.page.wait_for_function("document.title === 'planted'")
    network = {**NETWORK.as_dict(), "rpc": [], "gateways": []}
    served = Served(read_page(), "devnet", network, FolderStore(tmp_path / "store"), False)
    with WebServer(served, port, name=mine) as web:
        seen.page.goto(web.url)
        seen.page.wait_for_selector("text=served by hearth web")
        assert "stolen" not in seen.page.title()

    # Without a name of its own it is read: so the script is one that could.
    with WebServer(served, port, name=None) as web:
        seen.page.goto(web.url)
        seen.page.wait_for_function("document.title.startsWith('stolen')")
        assert seen.page.title() == f"stolen #token={web.token}"


# ---- the name ----


def test_name_of__a_home__is_drawn_once_and_is_its_owners(tmp_path: Path) -> None:
    homes = [tmp_path / str(number) for number in range(20)]
    names = [name_of(home) for home in homes]

    assert len(set(names)) == len(homes)
    assert all(len(name) == 20 and name.isalnum() and name == name.lower() for name in names)
    assert [name_of(home) for home in homes] == names
    assert stat.S_IMODE((homes[0] / origin.FILE).stat().st_mode) == 0o600
    assert sorted(path.name for path in homes[0].iterdir()) == [origin.FILE]


def test_name_of__many_starts_at_once__have_one_name(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(name_of, [tmp_path / "home"] * 16))) == 1


@pytest.mark.parametrize(
    "held", [b"", b"evil", b"a2b3c4d5e6f7g2h3i4j5/", b"A2B3C4D5E6F7G2H3I4J5", b"a2b3c4d5e6f7g2h3i4j\xff", b"a.b" * 8]
)
def test_name_of__a_file_that_holds_no_name__is_refused(tmp_path: Path, held: bytes) -> None:
    home = tmp_path / "home"
    name_of(home)
    (home / origin.FILE).write_bytes(held)

    with pytest.raises(ConfigError) as caught:
        name_of(home)
    assert caught.value.code == "BAD_PAGE_NAME"
    (home / origin.FILE).unlink()
    assert name_of(home)


def test_name_of__a_file_or_a_home_that_others_can_read__is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    name_of(home)
    (home / origin.FILE).chmod(0o640)
    with pytest.raises(ConfigError) as caught:
        name_of(home)
    assert caught.value.code == "OPEN_FILE"
    home.chmod(0o755)
    with pytest.raises(ConfigError) as caught:
        name_of(home)
    assert caught.value.code == "OPEN_FOLDER"
