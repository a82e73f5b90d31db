"""The same life with a real Kubo in the middle: nothing but CIDs passes between submitter and worker."""

from __future__ import annotations

import json
import os
import socket
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hearth.storage.stores import open_store
from tests.kit.require import require
from tests.kit.town import EXAMPLES, town

pytestmark = [pytest.mark.e2e, pytest.mark.kubo, pytest.mark.timeout(600)]


def _kubo() -> tuple[str, int]:
    """Return where the real Kubo's API listens."""
    url = os.environ.get("HEARTH_KUBO_API", "")
    require("kubo", bool(url), "HEARTH_KUBO_API is not set")
    parts = urlsplit(url)
    store = open_store(f"kubo://{parts.hostname}:{parts.port}")
    require("kubo", store.status().reachable, f"no Kubo answers at {url}")
    return str(parts.hostname), int(parts.port or 0)


class _Cut:
    """A line to a server that goes dead for good once so many bytes were sent through it."""

    def __init__(self, server: tuple[str, int], after: int) -> None:
        self.server, self.left = server, after
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.door.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while self.left > 0:
                client = self.door.accept()[0]
                server = socket.create_connection(self.server)
                threading.Thread(target=self._pump, args=(server, client, False), daemon=True).start()
                threading.Thread(target=self._pump, args=(client, server, True), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, counted: bool) -> None:
        with suppress(OSError), source, sink:
            while self.left > 0 and (data := source.recv(65_536)):
                self.left -= len(data) if counted else 0
                if self.left > 0:
                    sink.sendall(data)
        if self.left <= 0:
            self.door.close()


def test_submit__store_down_in_the_middle_of_the_upload__exit_9_and_nothing_charged(tmp_path: Path) -> None:
    host, port = _kubo()
    # The job brings 292 KiB: the line dies within the upload, long after the store was looked at.
    line = _Cut((host, port), after=100_000)
    with town(tmp_path / "home") as place:
        chain, address = place.session.market.port, place.session.key().address
        before = (chain.nonce(address, pending=True), chain.balance(address))
        job = str(EXAMPLES / "digits" / "job.yaml")
        arguments = ("submit", job, "--anyway", "--json", "--timeout", "1m")
        told = place.hearth(*arguments, environ={"HEARTH_STORE": f"/ip4/127.0.0.1/tcp/{line.port}"})
        assert line.left <= 0, "the line was cut"
        assert told.code == 9, told.out + told.err
        assert told.error["code"] == "STORE_DOWN" and told.error["hint"]
        assert (chain.nonce(address, pending=True), chain.balance(address)) == before
        again = place.hearth(*arguments, environ={"HEARTH_STORE": f"/ip4/{host}/tcp/{port}"})
        assert again.code == 0, again.out + again.err
        assert chain.nonce(address) == before[0] + 1


def test_submit__data_through_kubo__result_fetched_and_verified(tmp_path: Path) -> None:
    host, kubo_port = _kubo()
    store = open_store(f"kubo://{host}:{kubo_port}")
    environ = {"HEARTH_STORE": f"/ip4/{host}/tcp/{kubo_port}"}
    with town(tmp_path / "home") as place:
        config = place.worker_file()
        config.write_text(config.read_text().replace(f"folder://{place.home / 'store'}", store.url))
        assert store.url in config.read_text()
        node = place.hearth("worker", "register", "--config", str(config), "--stake", "5", "--json").json["node"]
        place.start("worker", "-m", "worker", "--config", str(config))
        place.wait_beat(node)
        job = str(EXAMPLES / "digits" / "job.yaml")
        told = place.hearth("submit", job, "--wait", "--json", "--timeout", "4m", environ=environ)
        assert told.code == 0, told.out + told.err
        got = place.hearth("job", "get", told.json["job"], "-o", str(tmp_path / "out"), environ=environ)
        assert got.code == 0, got.out + got.err
        assert int(json.loads((tmp_path / "out" / "accuracy.json").read_text())["correct"]) > 300
        assert not any(path.is_file() for path in (place.home / "store").rglob("*"))
        verified = place.hearth("net", "verify", "--json", environ=environ)
        assert (verified.code, verified.json["results_checked"]) == (0, 1)


def test_store__car_files__are_read_and_written_by_kubo(tmp_path: Path) -> None:
    """What one exports the other imports: a tree whose blocks and root are the same."""
    import urllib.request

    from hearth.client import Client
    from hearth.config.settings import Settings
    from hearth.storage.stores import FolderStore
    from tests.kit import build
    from tests.kit.fake_chain import FakeChain

    host, port = _kubo()
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    (tree / "large").write_bytes(os.urandom(3 << 20))
    (tree / "deep" / "small").write_text("small")
    mine = Client(Settings(home=tmp_path / "mine"))
    mine.session.__dict__["network"] = build.network(FakeChain())
    root = mine.session.store.add_path(tree).cid
    mine.store.export(str(root), tmp_path / "mine.car")

    def ask(path: str, content: bytes = b"") -> bytes:
        body = b"--x\r\nContent-Disposition: form-data; name=file; filename=f\r\n\r\n" + content + b"\r\n--x--\r\n"
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        asked = urllib.request.Request(f"http://{host}:{port}/api/v0/{path}", body, headers)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return bytes(answer.read())

    told = ask("dag/import?pin-roots=true", (tmp_path / "mine.car").read_bytes()).decode()
    assert str(root) in told and '"PinErrorMsg":""' in told
    (tmp_path / "theirs.car").write_bytes(ask(f"dag/export?arg={root}"))
    theirs = Client(Settings(home=tmp_path / "theirs"))
    theirs.session.__dict__["network"] = build.network(FakeChain())
    assert theirs.store.import_file(tmp_path / "theirs.car")["roots"] == [str(root)]
    FolderStore(tmp_path / "theirs" / "store").fetch(root, tmp_path / "got")
    assert (tmp_path / "got" / "large").read_bytes() == (tree / "large").read_bytes()
