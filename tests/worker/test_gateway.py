"""The worker's own gateway: its settings, what it serves and to whom it says so, and how others' are learnt."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from hearth.base.errors import BlockMissing, ChainError, ConfigError, StorageError
from hearth.daemon.reload import is_live
from hearth.market.manifest import Manifest, read_manifest
from hearth.market.reads import Market
from hearth.protocol.types import NodeId
from hearth.storage import canonical
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.stores import FolderStore, MemoryStore, open_store
from hearth.storage.stores.gateway_server import GatewayServer
from tests.kit import build
from tests.kit.fake_chain import Fault
from tests.kit.hints import faults_in
from tests.kit.scripted import ScriptedMarket
from tests.worker.test_settings import changed
from worker import doctor, settings
from worker.gateway import Here, manifest_of, own_store, serving, store_manifest
from worker.manifests import AGAIN_SECONDS, Manifests
from worker.registered import gateway_differences
from worker.runtimes.base import Check, Level
from worker.watch import MANIFESTS, Watcher

URL = "https://gpu.example.org"


def told(tmp_path: Path, **changes: Any) -> settings.Settings:
    return settings.parse(changed(offer__gpus="none", **changes), tmp_path / "worker.toml")


# ---- its settings ----


def test_settings__left_out__serve_nothing_and_name_nothing(tmp_path: Path) -> None:
    found = told(tmp_path)
    assert (found.gateway.listen, found.gateway.urls, found.gateway.address) == ("", (), None)


@pytest.mark.parametrize(
    ("listen", "address"), [("0.0.0.0:8080", ("0.0.0.0", 8080)), ("[::]:0", ("::", 0)), ("gpu:65535", ("gpu", 65535))]
)
def test_settings__listen__is_a_host_and_a_port(tmp_path: Path, listen: str, address: tuple[str, int]) -> None:
    assert told(tmp_path, gateway__listen=listen).gateway.address == address


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"gateway__listen": "8080"}, 'gateway.listen: "8080" is not HOST:PORT'),
        ({"gateway__listen": "x:65536"}, "gateway.listen"),
        ({"gateway__url": URL}, "gateway.url: there is no such key, did you mean urls?"),
        ({"gateway__urls": URL}, "gateway.urls"),
        ({"gateway__urls": ["https://me:secret@gpu.example.org"]}, "it names a user or a password"),
        ({"gateway__urls": ["https://gpu.example.org/?key=secret"]}, "it has a query"),
        ({"gateway__urls": ["gpu.example.org"]}, "write http://HOST:PORT"),
        ({"gateway__urls": [f"{URL}/{'a' * 300}"]}, "256 are allowed"),
        ({"gateway__urls": [f"{URL}:{number}" for number in range(8000, 8005)]}, "5 addresses"),
        ({"gateway__urls": [URL, URL]}, "2 addresses, and a manifest names 4 different ones at most"),
    ],
)
def test_settings__what_is_wrong__is_refused_by_its_name(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        told(tmp_path, **changes)
    assert why in caught.value.message and "secret" not in caught.value.message


def test_settings__reload__neither_is_taken_up() -> None:
    assert not any(is_live(f"gateway.{key}", settings.LIVE) for key in settings.GatewaySettings.model_fields)


# ---- what it says ----


def test_manifest__of_the_settings__names_their_gateways_and_is_stored(tmp_path: Path) -> None:
    found = told(tmp_path, gateway__urls=[URL])
    raw = store_manifest(found)
    assert read_manifest(raw) == manifest_of(found) and manifest_of(found).gateways == (URL,)
    assert canonical.encode(open_store(found.stores[0]).get_json(cids.of(raw).digest)) == raw


def test_own_store__of_several__is_the_first_that_is_written_to(tmp_path: Path) -> None:
    stores = ["gateway+https://ipfs.example.org", f"folder://{tmp_path}/first", f"folder://{tmp_path}/second"]
    assert own_store(told(tmp_path, stores=stores)).url == stores[1]
    with pytest.raises(ConfigError, match="none of the stores can be written") as caught:
        own_store(told(tmp_path, stores=stores[:1]))
    assert faults_in(caught.value.hint) == []


# ---- what it serves ----


class Searching(MemoryStore):
    """A store as a Kubo is one: what it has not it asks the network for."""

    def __init__(self) -> None:
        super().__init__("searching")
        self.searched: list[Cid] = []

    def _read(self, cid: Cid, timeout: float) -> bytes:
        if not self.has(cid):
            self.searched.append(cid)
        return super()._read(cid, timeout)


def test_here__block_that_the_store_has_not__is_not_searched_for() -> None:
    """What a stranger gains who asks for whatever he likes: this machine asks nobody for it."""
    store = Searching()
    held, other = store.put_block(b"held"), cids.of(b"elsewhere")
    here = Here(store)
    assert here.get_block(held) == b"held" and here.has(held) and not here.has(other)
    with pytest.raises(BlockMissing):
        here.get_block(other)
    assert store.searched == [] and here.status().reachable
    for refused in (lambda: here.put_block(b"x"), lambda: here.pin(held), lambda: here.unpin(held)):
        with pytest.raises(StorageError) as caught:
            refused()
        assert caught.value.code == "READ_ONLY"


def fetched(url: str, cid: Cid) -> tuple[int, bytes]:
    parts = urlsplit(url.removeprefix("gateway+"))
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    connection.request("GET", f"/ipfs/{cid}?format=raw")
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


@pytest.mark.net
def test_serving__own_store__is_served_until_the_end_and_the_port_is_free_then(tmp_path: Path) -> None:
    found = told(tmp_path, gateway__listen="127.0.0.1:0")
    cid = open_store(found.stores[0]).put_block(b"result")
    with serving(found, ("127.0.0.1", 0)) as server:
        assert fetched(server.url, cid) == (200, b"result") and fetched(server.url, cids.of(b"no"))[0] == 404
        port = server.server_address[1]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    with serving(found, ("127.0.0.1", port)):
        pass


@pytest.mark.net
def test_serving__address_that_cannot_be_had__is_a_refusal_that_names_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for host, said, why in (("127.0.0.1", port, "already in use"), ("nowhere.invalid", port, "")):
            found = told(tmp_path, gateway__listen=f"{host}:{said}")
            assert found.gateway.address is not None
            with pytest.raises(ConfigError) as caught, serving(found, found.gateway.address):
                pass
            error = caught.value
            assert error.message.startswith(f"gateway.listen: {host}:{said} cannot be had: ") and why in error.message
            assert (error.component, error.details) == ("worker", {"field": "gateway.listen"})
            assert "port 0" in error.hint


# ---- what the doctor says ----


class Looked(ScriptedMarket):
    """A market in which the machine that is looked at has node 7, if any."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, node: bool = True, local: bool = True) -> None:
        super().__init__()
        chain_id = build.network(self.chain).chain_id if local else 1
        self.market = Market(self.chain, build.network(self.chain, chain_id=chain_id))
        monkeypatch.setattr(doctor, "operator_key", lambda found: SimpleNamespace(address="0x" + "11" * 20))
        monkeypatch.setattr(doctor, "find_node", lambda *_: build.node(7) if node else None)

    def rows(self, found: settings.Settings) -> list[tuple[str, str, str]]:
        rows = doctor.look_at_gateway(found, self.market)
        assert {row.name for row in rows} == {"gateway"}
        assert [row for row in rows if row.level is not Level.PASS and not row.fix] == []
        assert [fault for row in rows for fault in faults_in(row.fix)] == []
        return [(row.level.value, row.detail, row.fix) for row in rows]


@contextmanager
def gateway_of(found: settings.Settings) -> Iterator[str]:
    with GatewayServer(open_store(found.stores[0])) as server:
        yield server.url.removeprefix("gateway+")


@pytest.mark.net
def test_look_at_gateway__worker_does_not_run__is_served_for_the_look(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looked = Looked(monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    found = told(tmp_path, gateway__listen=f"127.0.0.1:{port}", gateway__urls=[url])
    looked.name_manifest(7, store_manifest(found))
    assert looked.rows(found) == [("PASS", f"{url} gives the block of the node's manifest", "")]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ConfigError, match="cannot be had"):
        doctor.look_at_gateway(found, looked.market)


@pytest.mark.net
def test_look_at_gateway__address_where_nothing_listens__warns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    looked = Looked(monkeypatch, node=False)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    ((level, detail, fix),) = looked.rows(told(tmp_path, gateway__urls=[f"http://127.0.0.1:{port}"]))
    assert level == "WARN" and f"http://127.0.0.1:{port}: " in detail and "gateway.listen" in fix


@pytest.mark.net
def test_look_at_gateway__somebody_elses_store_behind_the_address__warns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looked = Looked(monkeypatch)
    with GatewayServer(FolderStore(tmp_path / "other")) as server:
        url = server.url.removeprefix("gateway+")
        found = told(tmp_path, gateway__urls=[url])
        looked.name_manifest(7, store_manifest(found))
        ((level, detail, fix),) = looked.rows(found)
    assert level == "WARN" and "does not give the block of the node's manifest" in detail and "hearth worker" in fix


@pytest.mark.net
def test_look_at_gateway__node_is_not_registered_yet__the_gateway_itself_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looked, found = Looked(monkeypatch, node=False), told(tmp_path)
    with gateway_of(found) as url:
        rows = looked.rows(told(tmp_path, gateway__urls=[url]))
    assert rows == [("PASS", f"{url}: trustless gateway", "")]


@pytest.mark.net
def test_look_at_gateway__chain_names_others__warns_until_it_is_updated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looked, bare = Looked(monkeypatch), told(tmp_path)
    looked.name_manifest(7, store_manifest(bare))
    with gateway_of(bare) as url:
        (first, second) = looked.rows(told(tmp_path, gateway__urls=[url]))
    assert first == (
        "WARN",
        f"gateway.urls is {url} here, and the chain's manifest has nothing",
        "hearth worker update",
    )
    # The block that the chain names is there all the same.
    assert second[0] == "PASS"


@pytest.mark.net
def test_look_at_gateway__served_and_named_nowhere__warns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    looked = Looked(monkeypatch)
    ((level, detail, fix),) = looked.rows(told(tmp_path, gateway__listen="127.0.0.1:0"))
    assert level == "WARN" and "nobody knows of it" in detail and "gateway.urls" in fix


@pytest.mark.net
def test_look_at_gateway__address_of_the_own_network__is_nobodys_on_a_real_chain(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looked, found = Looked(monkeypatch, node=False, local=False), told(tmp_path)
    with gateway_of(found) as url:
        ((level, detail, _),) = looked.rows(told(tmp_path, gateway__urls=[url]))
    assert level == "WARN" and "no public address" in detail


@pytest.mark.parametrize(
    ("stores", "local", "level"),
    [
        ((), True, "PASS"),
        ((), False, "WARN"),
        (("folder:///srv/a", "/srv/b", "gateway+https://ipfs.example.org"), False, "WARN"),
        (("folder:///srv/a", "kubo://127.0.0.1:5001"), False, "PASS"),
    ],
)
def test_look_at_gateway__none__warns_where_nobody_else_reaches_the_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stores: tuple[str, ...], local: bool, level: str
) -> None:
    looked = Looked(monkeypatch, local=local)
    ((found, detail, fix),) = looked.rows(told(tmp_path, stores=list(stores)))
    assert found == level and ("gateway.urls" in fix) is (level == "WARN"), detail


def test_diagnose__no_node_that_is_this_keys__is_told_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object) -> list[Check]:
        raise ConfigError("node 7 is another's", hint="hearth worker status")

    looked = Looked(monkeypatch)
    for name in [name for name in dir(doctor) if name.startswith("look_at_") and name != "look_at_gateway"]:
        monkeypatch.setattr(doctor, name, lambda *_: [])
    monkeypatch.setattr(doctor, "look_at_node", refuse)
    rows = doctor.diagnose(told(tmp_path), looked.network, looked.chain, tmp_path)
    assert [(row.name, row.detail) for row in rows] == [("node", "node 7 is another's"), ("gateway", "see node")]


def test_gateway_differences__order_is_none() -> None:
    assert gateway_differences(["a", "b"], ("b", "a")) == []
    ((text, fix),) = gateway_differences([], ["https://old.example"])
    assert text == "gateway.urls is nothing here, and the chain's manifest has https://old.example"
    assert fix == "hearth worker update"


# ---- what is learnt of nodes ----


def packed(*urls: str) -> bytes:
    return canonical.encode(Manifest("s", "de", (), urls).document())


@pytest.fixture
def scripted() -> ScriptedMarket:
    return ScriptedMarket()


def test_watcher__manifests__the_last_of_each_node_and_what_a_reorganisation_leaves(scripted: ScriptedMarket) -> None:
    watcher = Watcher(scripted.market, NodeId(1))
    first = scripted.name_manifest(7, packed(URL))
    other = scripted.name_manifest(8, packed())
    scripted.name_manifest(7, packed("https://new.example"))
    watcher.sync()
    assert watcher.named(NodeId(7)) != first and watcher.named(NodeId(8)) == other and watcher.named(NodeId(9)) is None
    scripted.chain.reorg(1)
    scripted.chain.drop_pool()
    watcher.sync()
    assert watcher.named(NodeId(7)) == first
    for number in range(MANIFESTS + 3):
        scripted.name_manifest(7, packed(f"https://{number}.example"))
    watcher.sync()
    assert len(watcher._manifests[NodeId(7)]) == MANIFESTS


def test_manifests__learnt__once_for_each_and_kept_for_any_thread(scripted: ScriptedMarket) -> None:
    now = [0.0]
    watcher = Watcher(scripted.market, NodeId(1))
    manifests = Manifests(scripted.market, watcher.named, lambda: now[0])
    assert manifests.learn(NodeId(7)) == manifests.known(NodeId(7)) == ()
    scripted.name_manifest(7, packed(URL))
    watcher.sync()
    assert manifests.known(NodeId(7)) == () and manifests.learn(NodeId(7)) == manifests.known(NodeId(7)) == (URL,)
    now[0] += 10**9
    assert manifests.learn(NodeId(7)) == (URL,) and scripted.chain.counts["transaction"] == 1
    scripted.name_manifest(7, packed("https://new.example"))
    watcher.sync()
    scripted.chain.fail(Fault("down", "transaction"))
    with pytest.raises(ChainError):
        manifests.learn(NodeId(7))
    assert manifests.known(NodeId(7)) == (URL,)
    assert manifests.learn(NodeId(7)) == manifests.known(NodeId(7)) == ("https://new.example",)


def test_manifests__call_without_it__is_looked_for_again_after_a_while(scripted: ScriptedMarket) -> None:
    now = [0.0]
    watcher = Watcher(scripted.market, NodeId(1))
    manifests = Manifests(scripted.market, watcher.named, lambda: now[0])
    scripted.name_manifest(7, packed(URL), carried=False)
    watcher.sync()
    for seconds, asked in ((0.0, 1), (AGAIN_SECONDS - 1, 1), (2.0, 2)):
        now[0] += seconds
        assert manifests.learn(NodeId(7)) == () and scripted.chain.counts["transaction"] == asked
