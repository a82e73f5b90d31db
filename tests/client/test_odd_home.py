"""Homes and files whose names mean something in a URL, in TOML or in fstab: everything lands where it was named."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import worker.settings
from hearth.base.urls import folder_of, folder_url
from hearth.client import Client
from hearth.config.sections import toml
from hearth.config.settings import load_settings
from hearth.local import templates
from hearth.storage.stores import FolderStore, open_store
from tests.config.test_settings import NETWORK
from worker.build import stored_beside
from worker.volumes import Volume

NAMES = [
    *("a%20b", "a b", "a#b", "a?b", "%", "%2F..", "ü%C3%BC", "q'\"q", "back\\slash", "semi;&$(x)", "a:b@c", "~"),
    *("\U0001f525", "del\x7f"),
]


@pytest.fixture(params=NAMES, ids=ascii)
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home of such a name, which exists."""
    folder = tmp_path / request.param
    folder.mkdir(mode=0o700)
    (folder / "networks").mkdir()
    (folder / "networks" / "devnet.json").write_text(json.dumps(NETWORK | {"gateways": []}))
    monkeypatch.setenv("HEARTH_HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=12)


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_folder_url__any_path__names_that_folder_again(parts: list[str]) -> None:
    path = Path("/", *parts)
    assert folder_of(folder_url(path)) == path
    store = open_store(folder_url(path))
    assert isinstance(store, FolderStore) and store.root == path and open_store(store.url).root == path  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "url", ["folder://host/x", "folder:x", "folder:///x?y", "folder:///x#y", "kubo://h", "/x", "x"]
)
def test_folder_of__another_url__is_none(url: str) -> None:
    assert folder_of(url) is None


def test_store__of_an_odd_home__lies_in_it(home: Path, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"data")
    client = Client(load_settings())
    cid = client.session.store.put_block(b"data")
    assert (home / "store").is_dir() and client.session.store.get_block(cid, 5.0) == b"data"
    assert {path.name for path in tmp_path.iterdir()} == {home.name, "data"}, "no other folder was made"
    status = client.session.store.status()
    assert status.reachable and status.writable, "hearth init wrote what hearth doctor refused"
    (url, *_) = client.session.store_urls
    assert stored_beside(url, home) and folder_of(url) == home / "store"
    client.close()


def test_worker__of_an_odd_home__has_its_store_in_it(home: Path) -> None:
    account = {"payout": "0x" + "11" * 20, "keystore": "k", "password_file": "p"}
    data: dict[str, Any] = {"network": "devnet", "home": "state", "account": account}
    data["offer"] = {"price": "0.60/h", "country": "de"}
    settings = worker.settings.parse(data, home / "worker.toml")
    store = open_store(*settings.stores)
    assert isinstance(store, FolderStore) and store.root == home / "state" / "store"
    assert stored_beside(settings.stores[0], home)
    told = tomllib.loads(f"home = {toml(str(home))}\nstores = {toml(list(settings.stores))}\n")
    assert told == {"home": str(home), "stores": list(settings.stores)}


def test_init__network_file_in_an_odd_folder__is_the_one_that_settings_name(home: Path) -> None:
    network = str(home / "mine.json")
    templates.write(home / "project", "wasm", network)
    written = tomllib.loads((home / "project" / "hearth.toml").read_text(encoding="utf-8"))
    assert written == {"network": network}


def test_fstab__of_an_odd_home__has_six_fields(home: Path) -> None:
    """What fstab(5) reads back, is the path."""
    volume = Volume(home / "a b\t\\040", home / "1.img", 1, 1)
    image, path, *rest = volume.fstab.split(" ")
    read = [field.encode("latin-1", "backslashreplace").decode("unicode_escape") for field in (image, path)]
    assert len(rest) == 4
    if str(home).isascii():
        assert read == [str(home / "1.img"), str(home / "a b\t\\040")]
