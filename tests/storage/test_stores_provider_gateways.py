"""Gateways that a stranger names: what they may cost whoever asks them, and how they stand behind one's own stores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from hearth.base import peer
from hearth.base.errors import BlockCorrupt, BlockMissing, StorageError, StoreDown, TooLarge
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.stores import (
    Chain,
    FolderStore,
    LastResort,
    MemoryStore,
    Patience,
    ProviderGateways,
    Store,
    StoreBase,
    provider_gateways,
)
from hearth.storage.stores.gateway_server import GatewayServer
from tests.kit.http import Answer, answering, send

pytestmark = pytest.mark.net

BLOCK = b"block" * 1000
CID = cids.of(BLOCK)
OTHERS = [cids.of(bytes([number])) for number in range(40)]


def give(handler: BaseHTTPRequestHandler) -> None:
    send(handler, 200, BLOCK)


@contextmanager
def gateways(*answers: Answer) -> Iterator[list[str]]:
    """Run a server for each answer; yield their addresses."""
    with ExitStack() as stack:
        yield [f"http://127.0.0.1:{stack.enter_context(answering(answer))}" for answer in answers]


def named(urls: Sequence[str], **options: Any) -> ProviderGateways:
    return ProviderGateways("node 3", urls, **{"local": True, **options})


class Asked:
    """An answer that counts who asks."""

    def __init__(self, answer: Callable[[BaseHTTPRequestHandler], None]) -> None:
        self.answer, self.count = answer, 0

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        self.count += 1
        self.answer(handler)


# ---- where they lead ----


@pytest.mark.parametrize("local", [True, False], ids=["local chain", "any other"])
def test_strangers__gateway_of_this_machine__is_meant_on_a_local_chain_alone(local: bool) -> None:
    """What a cheat gains by naming this machine's own ports: on no market but one that is on this machine a byte."""
    inner = Asked(give)
    with gateways(inner) as (url,):
        store = named([url], local=local)
        if local:
            assert store.get_block(CID) == BLOCK
        else:
            with pytest.raises(StoreDown, match=r"127.0.0.1 leads to 127.0.0.1, which is no public address"):
                store.get_block(CID)
    assert inner.count == (1 if local else 0)


@pytest.mark.parametrize("local", [True, False], ids=["local chain", "any other"])
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("host", "leads"),
    [
        *((one, one) for one in ("10.0.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.9", "0.0.0.0")),
        *((name, "192.168.1.1") for name in ("nas.local", "router", "gpu.example.org")),
        *((name, "127.0.0.1") for name in ("2130706433", "0x7f.1", "127.1", "gpu.example.org")),
    ],
)
def test_strangers__names_that_lead_inside__nobody_there_is_asked(
    monkeypatch: pytest.MonkeyPatch, host: str, leads: str, scheme: str, local: bool
) -> None:
    """What a cheat gains by naming the submitter's network: no port of it is tried, by http or https, on any chain."""
    tried: list[Any] = []
    monkeypatch.setattr(peer.socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", (leads, 8080))])
    monkeypatch.setattr(peer.socket, "socket", lambda *told: tried.append(told))
    with pytest.raises(StoreDown, match=f"leads to {leads}, which is no public address") as caught:
        named([f"{scheme}://{host}:8080"], local=local).get_block(CID)
    assert tried == [] and "name the address itself" not in caught.value.message


def test_strangers__redirect_inside__is_not_followed() -> None:
    inner = Asked(give)
    with gateways(inner) as (inside,), gateways(lambda h: send(h, 302, b"", Location=inside)) as urls:
        with pytest.raises(StoreDown, match="redirects to"):
            named(urls).get_block(CID)
    assert inner.count == 0


# ---- what they say ----


def test_strangers__one_of_several_gives_it__is_asked_first_from_then_on_and_told_once() -> None:
    told: list[str] = []
    lacking, giving = Asked(lambda handler: send(handler, 404)), Asked(give)
    with gateways(lacking, giving) as urls:
        store = named(urls, told=told.append)
        assert [store.get_block(CID) for _ in range(3)] == [BLOCK] * 3
    assert (lacking.count, giving.count, told) == (1, 3, [urls[1]])


def test_strangers__bytes_that_lie__are_refused_and_their_gateway_asked_no_more() -> None:
    """What a cheat gains by other bytes: no reader sees them, and he is asked once."""
    lies, good = Asked(lambda handler: send(handler, 200, b"other")), Asked(give)
    with gateways(lies, good) as urls:
        store = named(urls)
        assert [store.get_block(CID) for _ in range(3)] == [BLOCK] * 3
        assert (lies.count, good.count) == (1, 3)
        alone = named(urls[:1])
        with pytest.raises(BlockCorrupt):
            alone.get_block(CID)
        with pytest.raises(StoreDown, match="no gateway of node 3 is asked any more") as caught:
            alone.get_block(CID)
    assert lies.count == 2 and caught.value.retryable


def test_strangers__block_that_is_too_large__its_gateway_is_asked_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a cheat gains by too many bytes: they are read once, and not until he has failed often enough."""
    asked: list[Cid] = []

    def swollen(gateway: Store, cid: Cid, timeout: float) -> bytes:
        asked.append(cid)
        raise TooLarge("too many bytes for one block")

    monkeypatch.setattr(provider_gateways.GatewayStore, "get_block", swollen)
    store = named(["http://127.0.0.1:9"])
    with pytest.raises(TooLarge):
        store.get_block(CID)
    with pytest.raises(StoreDown, match="no gateway of node 3 is asked any more"):
        store.get_block(CID)
    assert asked == [CID]


def test_strangers__failure_after_failure__is_asked_no_more_and_absence_is_none() -> None:
    broken, lacking = Asked(lambda handler: send(handler, 500)), Asked(lambda handler: send(handler, 404))
    with gateways(broken, lacking) as urls:
        store = named(urls)
        for cid in OTHERS[:5]:
            with pytest.raises(StorageError):
                store.get_block(cid)
        assert (broken.count, lacking.count) == (provider_gateways.STRIKES, 5)
        said = store.status()
        assert urls[1] in said.detail and urls[0] not in said.detail
        assert (said.reachable, said.writable) == (True, False)
        alone = named(urls[:1])
        for cid in OTHERS[: provider_gateways.STRIKES]:
            with pytest.raises(StorageError):
                alone.get_block(cid)
        assert (alone.status().reachable, alone.status().detail) == (False, "none is asked any more")


def test_strangers__fails_now_and_then__is_forgiven_by_each_block_that_it_gives() -> None:
    fails = [True]
    flaky = Asked(lambda handler: send(handler, 500) if fails[0] else give(handler))
    with gateways(flaky) as urls:
        store = named(urls)
        for _ in range(3):
            for fails[0] in (*[True] * (provider_gateways.STRIKES - 1), False):
                if fails[0]:
                    with pytest.raises(StoreDown):
                        store.get_block(CID)
                else:
                    assert store.get_block(CID) == BLOCK
    assert flaky.count == 3 * provider_gateways.STRIKES


# ---- how long they take ----


def stall(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(30)


def test_strangers__silence__ends_by_the_deadline_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a cheat gains by silence: a few seconds of one command, however long it would wait for a block."""
    monkeypatch.setattr(provider_gateways, "BLOCK_SECONDS", 0.3)
    silent = Asked(stall)
    with gateways(silent, silent, silent, silent) as urls:
        store = named(urls)
        began = time.monotonic()
        for cid in OTHERS[:8]:
            with pytest.raises(StoreDown):
                store.get_block(cid, 60)
        took = time.monotonic() - began
    assert silent.count == 4 * provider_gateways.STRIKES and took < 4 * provider_gateways.STRIKES * 0.3 + 8


@pytest.mark.parametrize("together", [True, False], ids=["of several nodes", "of one node"])
def test_strangers__absence_that_takes_its_time__ends_by_patience(
    monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    """What a cheat gains by saying "not here" slowly, for every unit of an array, or by many nodes: bounded seconds."""
    monkeypatch.setattr(provider_gateways, "IN_VAIN_SECONDS", 60.0 if together else 0.5)

    def slowly(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.2)
        send(handler, 404)

    shared, asked = Patience(0.5), Asked(slowly)
    with gateways(asked) as urls:
        stores = [named(urls, shared=shared if together else None) for _ in range(10 if together else 1)]
        began = time.monotonic()
        for number, cid in enumerate(OTHERS):
            with pytest.raises(StorageError) as caught:
                stores[number % len(stores)].get_block(cid, 60)
        took = time.monotonic() - began
    assert 1 <= asked.count <= 4 and took < 10
    assert "kept us waiting for too long" in caught.value.message


def test_strangers__blocks_that_come__give_back_what_they_are_worth_and_no_more() -> None:
    patience = Patience(10.0)
    patience.count(6.0)
    patience.count(1.0, 64 << 10)
    assert patience.left == pytest.approx(10 - 6 - 1 + 4)
    patience.count(0.0, 1 << 30)
    assert patience.left == 10.0
    # Of a small block a second, so that many of them may come.
    patience.count(3.0, 10)
    assert patience.left == pytest.approx(8.0)
    patience.count(9.0)
    assert patience.left < 0


def test_strangers__time_that_is_over__nobody_is_asked() -> None:
    asked = Asked(give)
    with gateways(asked) as urls, pytest.raises(StoreDown):
        named(urls, until=time.monotonic()).get_block(CID)
    assert asked.count == 0


def test_strangers__written_to__refuses() -> None:
    store = named(["http://127.0.0.1:9"])
    for refused in (lambda: store.put_block(b"x"), lambda: store.pin(CID), lambda: store.unpin(CID)):
        with pytest.raises(StorageError) as caught:
            refused()
        assert caught.value.code == "READ_ONLY"


def test_strangers__collected__keep_nothing_to_clear() -> None:
    assert named(["http://127.0.0.1:9"]).collect() == 0


def test_strangers__closed__closes_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    monkeypatch.setattr(provider_gateways.GatewayStore, "close", lambda gateway: closed.append(gateway.url))
    urls = ["http://127.0.0.1:9", "http://127.0.0.1:10"]
    named(urls).close()
    assert closed == [f"gateway+{url}" for url in urls]


# ---- behind one's own stores ----


class Noted(MemoryStore):
    """A store that notes what it was asked for, and may be down."""

    def __init__(self, error: StorageError | None = None) -> None:
        super().__init__("noted")
        self.error, self.asked = error, list[Cid]()

    def _read(self, cid: Cid, timeout: float) -> bytes:
        self.asked.append(cid)
        if self.error is not None:
            raise self.error
        return super()._read(cid, timeout)


class Opened:
    """What opens the last store, and counts how often."""

    def __init__(self, store: Store | None) -> None:
        self.store, self.count = store, 0

    def __call__(self) -> Store | None:
        self.count += 1
        return self.store


def tree(tmp_path: Path, store: StoreBase) -> Cid:
    (tmp_path / "source").mkdir()
    for number in range(6):
        (tmp_path / "source" / f"{number}").write_bytes(bytes([number]) * 100)
    return store.add_path(tmp_path / "source").cid


def test_last_resort__store_that_has_it__nobody_else_is_looked_for() -> None:
    own, opened = Noted(), Opened(Noted())
    own.put_block(BLOCK)
    assert LastResort(own, opened).get_block(CID) == BLOCK and opened.count == 0


@pytest.mark.parametrize("error", [None, StoreDown("down"), BlockCorrupt("lies")])
def test_last_resort__own_store_fails_however__the_last_is_asked_after_it(error: StorageError | None) -> None:
    own, last = Noted(error), Noted()
    last.put_block(BLOCK)
    opened = Opened(last)
    store = LastResort(own, opened)
    assert store.get_block(CID) == BLOCK and own.asked == [CID] and opened.count == 1
    # Asked first from then on, until it lacks one.
    assert store.get_block(CID) == BLOCK and own.asked == [CID]
    with pytest.raises(StorageError):
        store.get_block(OTHERS[0])
    assert own.asked == [CID, OTHERS[0]] and last.asked[-1] == OTHERS[0]
    with pytest.raises(StorageError):
        store.get_block(OTHERS[1])
    assert own.asked[-1] == OTHERS[1] and opened.count == 1


def test_last_resort__last_has_failed_once__the_first_is_asked_before_it_again() -> None:
    own, last = Noted(), Noted()
    last.put_block(BLOCK)
    kept = own.put_block(b"kept")
    store = LastResort(own, Opened(last))
    store.get_block(CID)
    with pytest.raises(BlockMissing):
        store.get_block(OTHERS[0])
    asked = len(last.asked)
    assert store.get_block(kept) == b"kept" and len(last.asked) == asked


def test_last_resort__first_gives_what_the_last_lacks__each_was_asked_once_and_the_first_comes_first_again() -> None:
    own, last = Noted(), Noted()
    last.put_block(BLOCK)
    kept = own.put_block(b"kept")
    store = LastResort(own, Opened(last))
    store.get_block(CID)
    assert [store.get_block(kept) for _ in range(2)] == [b"kept"] * 2
    assert last.asked == [CID, kept] and own.asked == [CID, kept, kept]


def test_last_resort__nobody_has_it__says_what_each_said() -> None:
    own = Noted()
    with pytest.raises(BlockMissing) as caught:
        LastResort(own, Opened(None)).get_block(CID)
    assert caught.value.message == f"the store memory:noted does not have block {CID}"
    with pytest.raises(StoreDown, match=r"memory:noted does not have .*; it is out") as both:
        LastResort(own, Opened(Noted(StoreDown("it is out")))).get_block(CID)
    assert both.value.retryable


def test_last_resort__share_of_the_time__leaves_the_last_its_own() -> None:
    given: list[float] = []

    class Slow(Noted):
        def _read(self, cid: Cid, timeout: float) -> bytes:
            given.append(timeout)
            return super()._read(cid, timeout)

    own, last = Slow(StoreDown("slow")), Slow()
    last.put_block(BLOCK)
    for share, expected in ((1.0, [8.0, 8.0]), (0.5, [4.0, 8.0])):
        given.clear()
        assert LastResort(own, Opened(last), first_share=share).get_block(CID, 8.0) == BLOCK and given == expected


def test_last_resort__written_and_pinned__lies_in_the_first(tmp_path: Path) -> None:
    own, last = FolderStore(tmp_path / "own"), MemoryStore()
    root = tree(tmp_path, last)
    store = LastResort(Chain([own, MemoryStore("cache")]), Opened(last))
    store.fetch(root, tmp_path / "dest")
    assert not own.has(root)
    store.pin(root)
    assert own.has(root) and root in own.pins()
    FolderStore(tmp_path / "own").fetch(root, tmp_path / "again")
    assert store.put_json({"a": "1"}) and store.has(cids.parse(str(root))) and store.writable
    store.unpin(root)
    assert root not in own.pins()
    assert store.add_bytes(b"result").cid in own.pins()
    assert store.status() == Chain([own, MemoryStore("cache")]).status()


def test_last_resort__first_is_broken__says_so_where_it_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = LastResort(FolderStore(tmp_path / "file" / "own"), Opened(MemoryStore()))
    with pytest.raises(StoreDown):
        store.try_write()


def test_last_resort__collect__clears_the_first(tmp_path: Path) -> None:
    own = FolderStore(tmp_path / "own")
    own.put_block(b"1234")
    for file in own.root.rglob("*"):
        os.utime(file, (0, 0))
    assert LastResort(own, Opened(MemoryStore())).collect() == 4


@pytest.mark.parametrize("used", [True, False])
def test_last_resort__closed__closes_the_last_if_it_was_opened_and_never_the_first(
    monkeypatch: pytest.MonkeyPatch, used: bool
) -> None:
    own, last, closed = Noted(), Noted(), []
    for one in (own, last):
        monkeypatch.setattr(one, "close", lambda one=one: closed.append(one))
    opened = Opened(last)
    store = LastResort(own, opened)
    if used:
        with pytest.raises(BlockMissing):
            store.get_block(CID)
    store.close()
    assert closed == ([last] if used else []) and opened.count == used


def test_last_resort__gateway_of_ours_behind_an_empty_store__gives_a_tree(tmp_path: Path) -> None:
    made = FolderStore(tmp_path / "made")
    root = tree(tmp_path, made)
    with GatewayServer(made) as server:
        urls = [server.url.removeprefix("gateway+")]
        store = LastResort(FolderStore(tmp_path / "own"), lambda: named(urls))
        store.fetch(root, tmp_path / "dest", timeout=30)
        store.close()
    assert sorted(path.name for path in (tmp_path / "dest").iterdir()) == [str(number) for number in range(6)]
