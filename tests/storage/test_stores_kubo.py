"""The Kubo store against a real, current Kubo, and against impostors in its place."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import SplitResult, urlsplit

import pytest

from hearth.base.errors import BlockCorrupt, BlockMissing, StorageError, StoreDown, TooLarge
from hearth.storage import cid as cids
from hearth.storage import unixfs
from hearth.storage.stores import Chain, FolderStore, GatewayStore, KuboStore, MemoryStore, kubo, open_store
from tests.kit import http
from tests.kit.http import Answer, answering, pour
from tests.kit.require import require
from tests.storage.unixfs_cases import Case, kubo_add, kubo_api, kubo_with_profile, post

BLOCK = b"block" * 100
CID = cids.of(BLOCK)


@pytest.fixture
def api() -> SplitResult:
    return kubo_api()


@pytest.fixture
def store(api: SplitResult) -> Iterator[KuboStore]:
    opened = open_store(f"kubo://{api.hostname}:{api.port}")
    assert isinstance(opened, KuboStore)
    yield opened
    opened.close()


def make_tree(root: Path) -> Path:
    (root / "sub" / "empty").mkdir(parents=True)
    (root / "sub" / "z\u00fc rich").write_bytes(os.urandom(700))
    (root / "big").write_bytes(os.urandom(2 * 2**20 + 11))
    (root / ".hidden").write_bytes(b"")
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


# ---------------------------------------------------------------- a real node


@pytest.mark.kubo
def test_kubo__client_library__refuses_the_version_that_the_store_works_with(
    api: SplitResult, store: KuboStore
) -> None:
    """The reason why the store uses Client and not connect(); if this fails, the detour can go."""
    import ipfshttpclient

    with pytest.raises(ipfshttpclient.exceptions.VersionMismatch):
        ipfshttpclient.connect(f"/ip4/{api.hostname}/tcp/{api.port}/http")
    assert store.status().reachable
    assert store.get_block(store.put_block(BLOCK)) == BLOCK


@pytest.mark.kubo
def test_kubo__what_we_store__is_read_by_kubo_itself(api: SplitResult, store: KuboStore, tmp_path: Path) -> None:
    source = make_tree(tmp_path / "source")
    entry = store.add_path(source)
    for path, content in contents(source).items():
        found = unixfs.resolve(entry.cid, path, store)
        assert b"\n".join(post(api, f"cat?arg={found}")) == b"\n".join(content.splitlines())
    listing = json.loads(post(api, f"ls?arg={entry.cid}")[0])["Objects"][0]["Links"]
    assert {link["Name"]: link["Type"] for link in listing} == {".hidden": 2, "big": 2, "sub": 1}
    stat = json.loads(post(api, f"dag/stat?arg={entry.cid}&progress=false")[-1])
    assert stat["TotalSize"] == entry.tsize


@pytest.mark.kubo
@pytest.mark.parametrize(
    "options",
    [
        {},  # Kubo's own defaults, whatever they are now
        {"cid-version": "0", "raw-leaves": "false", "chunker": "size-262144"},
        {"cid-version": "1", "raw-leaves": "false", "chunker": "size-1000", "max-file-links": "174"},
        {"cid-version": "1", "raw-leaves": "true", "chunker": "rabin-1024-2048-4096"},
        {"cid-version": "1", "trickle": "true", "raw-leaves": "false", "chunker": "size-5000"},
        {"cid-version": "1", "preserve-mode": "true", "preserve-mtime": "true"},
        {"cid-version": "1", "hash": "blake3"},
        {"cid-version": "1", "inline": "true"},
        {"cid-version": "1", "inline": "true", "inline-limit": "128", "chunker": "size-100"},
    ],
)
def test_kubo__what_kubo_stores_in_other_ways__is_read_by_us(
    api: SplitResult, store: KuboStore, tmp_path: Path, options: dict[str, str]
) -> None:
    source = make_tree(tmp_path / "source")
    root = cids.parse(kubo_add(api, source, options))
    store.fetch(root, tmp_path / "dest")
    assert contents(tmp_path / "dest") == contents(source)
    assert (tmp_path / "dest" / "sub" / "empty").is_dir()


@pytest.mark.kubo
@pytest.mark.parametrize("trickle", ["false", "true"])
@pytest.mark.parametrize("raw", ["false", "true"])
def test_kubo__content_in_nodes_or_leaves__is_read_within_limits_of_just_its_size(
    api: SplitResult, store: KuboStore, tmp_path: Path, trickle: str, raw: str
) -> None:
    """The layout of `ipfs add` without options in many versions: all of a file lies in nodes, none in leaves."""
    source = make_tree(tmp_path / "source")
    (source / "large").write_bytes(os.urandom(6 << 20))
    size = sum(map(len, contents(source).values()))
    options = {"cid-version": "0" if raw == "false" else "1", "raw-leaves": raw, "trickle": trickle}
    root = cids.parse(kubo_add(api, source, {**options, "chunker": "size-262144", "max-file-links": "174"}))
    limits = unixfs.ReadLimits(max_bytes=size, max_entries=7)
    assert unixfs.count_entries(root, store, limits) == 7
    unixfs.export(root, store, tmp_path / "dest", limits)
    assert contents(tmp_path / "dest") == contents(source)
    with pytest.raises(TooLarge):
        unixfs.export(root, store, tmp_path / "more", unixfs.ReadLimits(max_bytes=size - 1, max_entries=7))


@pytest.mark.kubo
def test_kubo__directory_that_kubo_shards__is_read_by_us(api: SplitResult, store: KuboStore, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(600):
        (source / f"entry {number}").write_bytes(str(number).encode())
    root = cids.parse(
        kubo_add(api, source, {"cid-version": "1", "max-directory-links": "100", "max-hamt-fanout": "16"})
    )
    assert unixfs.decode_dag_node(root, store.get_block(root)).fanout == 16
    store.fetch(root, tmp_path / "dest")
    assert contents(tmp_path / "dest") == contents(source)
    assert unixfs.resolve(root, "entry 599", store) == cids.of(b"599")


@pytest.mark.kubo
def test_kubo__directory_that_we_shard__listed_and_read_by_kubo_itself(
    api: SplitResult, store: KuboStore, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(6000):
        (source / f"{number}").write_bytes(b"%d" % (number % 5))
    memory = MemoryStore()
    entry = memory.add_path(source)
    for cid, block in unixfs.blocks_of(entry.cid, memory):
        store.put_block(block, cid.codec)
    listing = json.loads(post(api, f"ls?arg={entry.cid}&resolve-type=false&size=false")[0])["Objects"][0]["Links"]
    assert {link["Name"] for link in listing} == {str(number) for number in range(6000)}
    assert post(api, f"cat?arg={entry.cid}/5999") == [b"4"]


@pytest.mark.kubo
def test_kubo__its_gateway__read_without_trust(store: KuboStore, tmp_path: Path) -> None:
    url = os.environ.get("HEARTH_KUBO_GATEWAY", "")
    require("kubo", url != "", "HEARTH_KUBO_GATEWAY is not set: make services-up")
    entry = store.add_path(make_tree(tmp_path / "source"))
    gateway = GatewayStore(url)
    assert gateway.status().reachable
    gateway.fetch(entry.cid, tmp_path / "dest")
    gateway.close()
    assert contents(tmp_path / "dest") == contents(tmp_path / "source")


@pytest.mark.kubo
def test_kubo__pins__survive_a_collection(api: SplitResult, store: KuboStore, tmp_path: Path) -> None:
    kept, gone = store.add_bytes(os.urandom(3000)).cid, store.add_bytes(os.urandom(3000)).cid
    document = store.put_json({"kept": os.urandom(8).hex()})
    assert json.loads(post(api, f"pin/ls?arg={kept}")[0])["Keys"][str(kept)]["Type"] == "recursive"
    store.unpin(gone)
    post(api, "repo/gc")
    assert [store.has(cid) for cid in (kept, gone)] == [True, False]
    assert store.get_json(document)
    store.unpin(kept)


@pytest.mark.kubo
def test_kubo__try_write__leaves_no_block_in_the_node(api: SplitResult, store: KuboStore) -> None:
    before = sorted(post(api, "refs/local"))
    store.try_write()
    assert sorted(post(api, "refs/local")) == before


@pytest.mark.kubo
def test_kubo__chain_of_folder_and_node__mirrors_and_reads_back(store: KuboStore, tmp_path: Path) -> None:
    folder = FolderStore(tmp_path / "store")
    entry = Chain([folder, store], mirrors=1).add_path(make_tree(tmp_path / "source"))
    for alone in (folder, store):
        alone.fetch(entry.cid, tmp_path / f"dest-{type(alone).__name__}")


@pytest.mark.kubo
def test_spec__its_kubo_command__names_a_folder_as_we_do(tmp_path: Path) -> None:
    source = make_tree(tmp_path / "source")
    (source / "sub" / ".git").mkdir()
    (source / "sub" / ".git" / "config").write_bytes(b"[core]")
    assert kubo_with_profile([Case(source)], tmp_path / "repo") == [str(unixfs.name_path(source).cid)]


# ---------------------------------------------------------------- impostors


@contextmanager
def impostor(answer: Answer) -> Iterator[KuboStore]:
    def once(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        answer(handler)

    with answering(once) as port:
        store = KuboStore("127.0.0.1", port, pin_seconds=0.2)
        yield store
        store.close()


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
    http.send(handler, status, body, Connection="close")


def drain(handler: BaseHTTPRequestHandler) -> None:
    while (size := int(handler.rfile.readline(), 16)) > 0:
        handler.rfile.read(size + 2)
    handler.rfile.readline()


@pytest.mark.net
def test_kubo__other_bytes__block_corrupt() -> None:
    with impostor(lambda handler: send(handler, 200, b"other")) as store, pytest.raises(BlockCorrupt):
        store.get_block(CID)


@pytest.mark.net
def test_kubo__endless_bytes__too_large() -> None:
    written: list[int] = []

    with impostor(lambda handler: pour(handler, b"\0", written)) as store, pytest.raises(TooLarge):
        store.get_block(CID)
    assert sum(written) < 100 * 2**20


@pytest.mark.net
def test_kubo__another_name_for_what_was_put__block_corrupt() -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        drain(handler)
        send(handler, 200, json.dumps({"Key": str(cids.of(b"other")), "Size": 5}).encode())

    with impostor(answer) as store, pytest.raises(BlockCorrupt, match="answers"):
        store.put_block(BLOCK)


@pytest.mark.net
def test_kubo__drips_or_stalls__store_down_by_the_deadline() -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(BLOCK)))
        handler.end_headers()
        for at in range(len(BLOCK)):
            handler.wfile.write(BLOCK[at : at + 1])
            time.sleep(0.1)

    for answer in (drip, lambda handler: time.sleep(60)):
        with impostor(answer) as store:
            with pytest.raises(StoreDown, match=r"more than 0\.2 s|too slowly|timed out|Timeout"):
                store.get_block(CID, timeout=0.2)


@pytest.mark.net
def test_kubo__node_that_answers__is_usable_and_asked_for_plain_answers() -> None:
    asked: list[tuple[str, str | None]] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked.append((handler.path, handler.headers.get("Accept-Encoding")))
        send(handler, 200, b'{"Version": "0.42.0"}')

    with impostor(answer) as store:
        status = store.status()
    assert (status.reachable, status.writable, status.detail) == (True, True, "Kubo 0.42.0")
    assert [(path.partition("?")[0], packing) for path, packing in asked] == [("/api/v0/version", "identity")]


@pytest.mark.net
def test_kubo__errors__named_by_what_they_mean() -> None:
    refusal = json.dumps({"Message": "block was not found locally (offline)", "Code": 0, "Type": "error"}).encode()
    with impostor(lambda handler: send(handler, 500, refusal)) as store:
        with pytest.raises(BlockMissing, match="not found"):
            store.get_block(CID)
        with pytest.raises(BlockMissing):
            store.pin(CID)
        assert not store.has(CID)
        with pytest.raises(StoreDown, match="unpin"):
            store.unpin(CID)
        assert not store.status().reachable
    with impostor(lambda handler: send(handler, 403, b"<html>no</html>")) as store, pytest.raises(StoreDown):
        store.get_block(CID)


@pytest.mark.net
def test_kubo__try_write__one_call_each_to_put_read_and_remove() -> None:
    """The last is no method of the client library; a node that takes nothing is down, and so says the trial."""
    asked: list[str] = []
    blocks: list[bytes] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        call, _, arguments = handler.path.partition("?")
        asked.append(call.rpartition("/api/v0/")[2])
        if call.endswith("put"):
            drain(handler)
            send(handler, 200, json.dumps({"Key": str(cids.of(blocks[-1])), "Size": len(blocks[-1])}).encode())
        elif call.endswith("get"):
            send(handler, 200, blocks[-1])
        else:
            assert str(cids.of(blocks[-1])) in arguments
            send(handler, 200, json.dumps({"Hash": str(cids.of(blocks[-1]))}).encode())

    with pytest.MonkeyPatch.context() as patch:
        drawn = Mock(token_bytes=lambda size: blocks.append(os.urandom(size)) or blocks[-1])
        patch.setattr("hearth.storage.stores.base.secrets", drawn)
        with impostor(answer) as store:
            store.try_write()
    assert asked == ["block/put", "block/get", "block/rm"] and len(blocks[0]) == unixfs.CHUNK_BYTES
    refusal = json.dumps({"Message": "no space left on device", "Code": 0, "Type": "error"}).encode()
    with impostor(lambda handler: send(handler, 500, refusal)) as store, pytest.raises(StoreDown, match="refuses"):
        store.try_write()


@pytest.mark.net
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_kubo__redirect__not_followed(status: int) -> None:
    asked: list[str] = []

    def inner(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        send(handler, 200, BLOCK)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Location", f"http://127.0.0.1:{urlsplit(inside.url).port}{handler.path}")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with impostor(inner) as inside, impostor(answer) as store, pytest.raises(StoreDown, match="redirects to"):
        store.get_block(CID)
    assert asked == []


@pytest.mark.net
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 60_000,
        b"null",
        b"[]",
        b'"x"',
        b'{"Type": "error"}',
        b'{"Message": {}}',
        b"{} {}",
        b"\xff",
        b"",
        b"x" * 200,
    ],
)
@pytest.mark.parametrize("status", [200, 500])
def test_kubo__answers_that_are_not_its_own__typed(body: bytes, status: int) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        if "put" in handler.path:
            drain(handler)
        send(handler, status, body)

    with impostor(answer) as store:
        for call in (lambda: store.put_block(BLOCK), lambda: store.pin(CID), lambda: store.unpin(CID)):
            with pytest.raises(StorageError):
                call()
        assert not store.status().reachable


@pytest.mark.net
def test_kubo__endless_or_packed_answer__not_held() -> None:
    written: list[int] = []

    def packed(handler: BaseHTTPRequestHandler) -> None:
        body = zlib.compress(bytes(2**24))
        handler.send_response(200)
        handler.send_header("Content-Encoding", "deflate")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    with impostor(lambda handler: pour(handler, b" ", written)) as store, pytest.raises(StoreDown, match="more than"):
        store.pin(CID)
    assert sum(written) < 50 * 2**20
    with impostor(packed) as store, pytest.raises(StoreDown, match="packed"):
        store.get_block(CID)


@pytest.mark.net
def test_kubo__heads_that_never_end__leave_a_few_threads_behind_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubo, "_GRACE_SECONDS", 1.5)
    monkeypatch.setattr(kubo, "MAX_HANGING", 2)
    over = threading.Event()

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        while not over.wait(0.02):
            handler.wfile.write(b"x")

    with impostor(endless) as store:
        for _ in range(2):
            with pytest.raises(StoreDown, match="took more than"):
                store.get_block(CID, timeout=0.1)
        began = time.monotonic()
        with pytest.raises(StoreDown, match="2 earlier calls hang"):
            store.get_block(CID, timeout=60)
        assert time.monotonic() - began < 30
        over.set()


@pytest.mark.net
def test_kubo__proxy_of_the_environment__not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def proxy(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        send(handler, 200, BLOCK)

    with impostor(proxy) as inside, impostor(lambda handler: send(handler, 200, BLOCK)) as store:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{urlsplit(inside.url).port}")
        assert store.get_block(CID) == BLOCK
    assert asked == []


@pytest.mark.net
def test_kubo__nobody_listens__store_down_and_the_chain_goes_on() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        store = KuboStore("127.0.0.1", taken.getsockname()[1])
        for call in (lambda: store.get_block(CID), lambda: store.put_block(BLOCK), lambda: store.has(CID)):
            with pytest.raises(StoreDown) as caught:
                call()
            assert (caught.value.code, caught.value.exit_code, caught.value.retryable) == ("STORE_DOWN", 9, True)
        assert not store.status().reachable
        good = MemoryStore()
        good.put_block(BLOCK)
        assert Chain([store, good]).get_block(CID) == BLOCK
