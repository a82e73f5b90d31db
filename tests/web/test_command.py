"""`hearth web` as its own process: what it prints, what it serves, how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hearth.market.network import save_network
from hearth.storage import cid as cids
from hearth.storage.stores import FolderStore
from hearth.web.files import read_page
from tests.kit.http import to_loopback
from tests.web.vectors.network import NETWORK

pytestmark = pytest.mark.net


@pytest.fixture
def home(tmp_path: Path) -> Path:
    save_network(NETWORK, tmp_path / "home" / "networks" / "devnet.json")
    (tmp_path / "home").chmod(0o700)
    return tmp_path / "home"


def command(home: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    from tests.kit.evm import ROOT

    return (
        [sys.executable, "-m", "hearth.cli", "web", *arguments],
        {"HEARTH_HOME": str(home), "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(home)},
    )


@contextmanager
def serving(home: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Start it on a free port and read its first line."""
    argv, environ = command(home, "--port", "0", "--json", *arguments)
    process = subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=home)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield process, json.loads(line)
    finally:
        process.kill()
        process.communicate()


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv, environ = command(home, *arguments)
    return subprocess.run(argv, env=environ, capture_output=True, text=True, cwd=home, timeout=120)


def ask(url: str, path: str, *, method: str = "GET", data: bytes | None = None) -> tuple[int, bytes]:
    origin, _, token = url.partition("/#token=")
    request = to_loopback(f"{origin}/{path}", method=method, data=data, headers={"X-Hearth-Token": token})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_web__started__serves_the_page_the_market_and_the_users_store(home: Path) -> None:
    store = FolderStore(home / "store")
    with serving(home) as (process, report):
        url = report["url"]
        assert (report["schema"], report["network"], report["writable"]) == ("hearth.web/1", "devnet", True)
        assert report["cid"] == read_page().cid
        assert ask(url, "")[1] == read_page().files["index.html"].data
        assert json.loads(ask(url, "networks/devnet.json")[1])["contracts"] == dict(NETWORK.contracts)
        assert ask(url, f"ipfs/{cids.of(b'block')}", method="PUT", data=b"block")[0] == 201
        process.send_signal(signal.SIGINT)

        assert process.wait(timeout=60) == 130
    assert store.get_block(cids.of(b"block")) == b"block"


def test_web__rpc_of_the_user__is_the_pages(home: Path) -> None:
    with serving(home, "--rpc", "https://mine.example/key") as (_, report):
        assert json.loads(ask(report["url"], "networks/devnet.json")[1])["rpc"] == ["https://mine.example/key"]


def test_web__read_only__takes_nothing(home: Path) -> None:
    with serving(home, "--read-only") as (_, report):
        assert report["writable"] is False
        assert ask(report["url"], f"ipfs/{cids.of(b'block')}", method="PUT", data=b"block")[0] == 403


@pytest.mark.parametrize("option", ["--verify", "--dry-run"])
def test_web__without_serving__names_every_file_and_their_cid(home: Path, option: str) -> None:
    done = run(home, option)

    assert done.returncode == 0, done.stderr
    page = read_page()
    for name, file in page.files.items():
        assert f"{file.cid}  {len(file.data):>7}  {name}" in done.stdout
    assert page.cid in done.stdout.splitlines()[-1]
    assert run(home, option, "-q").stdout == f"{page.cid}\n"
    report = json.loads(run(home, option, "--json").stdout)
    assert (report["url"], report["dry_run"]) == (None, option == "--dry-run")


def test_web__verify__needs_no_market(tmp_path: Path) -> None:
    done = run(tmp_path, "--verify", "--json")

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["network"], report["url"], report["cid"]) == (None, None, read_page().cid)


def test_web__a_port_that_is_taken__says_how_to_take_another(home: Path) -> None:
    with serving(home) as (_, report):
        port = report["url"].split(":")[2].split("/")[0]
        done = run(home, "--port", port)

    assert done.returncode == 3
    assert "hearth web --port 0" in done.stderr


def test_web__no_market__says_how_to_have_one(tmp_path: Path) -> None:
    done = run(tmp_path)

    assert done.returncode == 3
    assert "hearth devnet up" in done.stderr


def test_web__each_start__has_the_homes_own_name(home: Path, tmp_path: Path) -> None:
    hosts = []
    for _ in range(2):
        with serving(home) as (_, report):
            hosts.append(report["url"].removeprefix("http://").split(":")[0])
            assert ask(report["url"], "local.json")[0] == 200
    assert hosts[0] == hosts[1] and hosts[0].endswith(".localhost")
    assert (home / "web-name").stat().st_mode & 0o777 == 0o600


def test_web__plain__is_at_127_0_0_1_and_says_what_that_means(home: Path) -> None:
    with serving(home, "--plain") as (_, report):
        assert report["url"].startswith("http://127.0.0.1:")
        assert ask(report["url"], "local.json")[0] == 200
    assert not (home / "web-name").exists()
    argv, environ = command(home, "--port", "0", "--plain")
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True, cwd=home) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.kill()
    assert "may have left a script" in lines[2]


def test_web__a_name_that_others_can_read__is_refused(home: Path) -> None:
    (home / "web-name").write_text("a2b3c4d5e6f7g2h3i4j5\n")
    (home / "web-name").chmod(0o644)
    done = run(home, "--port", "0")

    assert done.returncode == 3
    assert "chmod 600" in done.stderr


def test_web__in_words__prints_the_address_and_how_a_wallet_joins(home: Path) -> None:
    argv, environ = command(home, "--port", "0")
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True, cwd=home) as process:
        assert process.stdout is not None
        try:
            lines = [process.stdout.readline() for _ in range(5)]
        finally:
            process.kill()

    name = (home / "web-name").read_text().strip()
    assert f"http://{name}.localhost:" in lines[0] and "#token=" in lines[0]
    assert read_page().cid in lines[1]
    assert "chain id 31337" in lines[2] and "play money" in lines[3]
    assert lines[4] == "Ctrl-C ends it\n"
