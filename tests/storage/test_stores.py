"""Stores: one behaviour for all of them, and what the folder and the chain add."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.base.errors import BadDocument, BlockCorrupt, BlockMissing, ConfigError, StorageError, StoreDown, TooLarge
from hearth.storage import canonical, unixfs
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.stores import (
    BLOCK_TIMEOUT_SECONDS,
    Chain,
    FolderStore,
    GatewayStore,
    KuboStore,
    MemoryStore,
    Store,
    StoreBase,
    StoreFault,
    StoreStatus,
    open_store,
)
from hearth.storage.stores.chain import COOL_DOWN_SECONDS
from hearth.storage.unixfs import Link, ReadLimits, encode_dag_node
from tests.kit.disks import MIB, fill, small_disk
from tests.storage.unixfs_cases import kubo_api

ROOT = Path(__file__).parents[2]
ABSENT = cids.of(b"nobody has this")


class BrokenStore(MemoryStore):
    """Fail every call, as a store does whose machine is off; count the calls."""

    def __init__(self, name: str = "broken") -> None:
        super().__init__(name)
        self.calls = 0

    def _read(self, cid: Cid, timeout: float) -> bytes:
        self.calls += 1
        raise self._down("switched off")

    def _write(self, cid: Cid, data: bytes) -> None:
        self.calls += 1
        raise self._down("switched off")

    def has(self, cid: Cid) -> bool:
        raise self._down("switched off")

    def status(self) -> StoreStatus:
        return StoreStatus(self.url, False, False, "switched off")


class Restarting(MemoryStore):
    """Fail the first write, as a node does that is being restarted."""

    failed = False

    def _write(self, cid: Cid, data: bytes) -> None:
        if not self.failed:
            self.failed = True
            raise self._down("restarting")
        super()._write(cid, data)


def make_tree(root: Path) -> Path:
    (root / "sub" / "empty").mkdir(parents=True)
    (root / "sub" / "b").write_bytes(b"b" * 10)
    (root / "a").write_bytes(os.urandom(3 * 2**20 + 7))
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


# ---------------------------------------------------------------- every store that can be written


@pytest.fixture(params=["memory", "folder", "chain", pytest.param("kubo", marks=pytest.mark.kubo)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: dict[str, Callable[[], Store]] = {
        "memory": MemoryStore,
        "folder": lambda: FolderStore(tmp_path / "store"),
        "chain": lambda: Chain([MemoryStore("first"), FolderStore(tmp_path / "store")], mirrors=1),
        "kubo": lambda: KuboStore("127.0.0.1", kubo_api().port or 5001, pin_seconds=3),
    }
    opened = made[request.param]()
    yield opened
    opened.close()


def test_put_block__any_codec__read_back_under_its_cid(store: Store) -> None:
    for data, codec in ((b"", cids.RAW), (b"x", cids.RAW), (b"\x0a\x02\x08\x01", cids.DAG_PB)):
        cid = store.put_block(data, codec)
        assert cid == cids.of(data, codec)
        assert store.put_block(data, codec) == cid
        assert store.get_block(cid) == data
        assert store.has(cid)


def test_try_write__usable_store__is_written_and_keeps_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial each minute would else fill the store; and of a block that it has, a store writes nothing."""
    put: list[bytes] = []
    drawn = Mock(token_bytes=lambda size: put.append(os.urandom(size)) or put[-1])
    monkeypatch.setattr("hearth.storage.stores.base.secrets", drawn)
    store.try_write()
    store.try_write()
    assert len(put) == 2 and put[0] != put[1] and len(put[0]) == unixfs.CHUNK_BYTES
    assert not any(store.has(cids.of(block)) for block in put)


def test_get_block__version_0_name__the_same_block(store: Store) -> None:
    cid = store.put_block(b"\x0a\x02\x08\x01", cids.DAG_PB)
    assert store.get_block(Cid(0, cids.DAG_PB, cids.SHA2_256, cid.digest)) == b"\x0a\x02\x08\x01"


def test_get_block__inline_cid__the_block_that_it_holds(store: Store, tmp_path: Path) -> None:
    leaf = Cid(1, cids.RAW, cids.IDENTITY, b"inline")
    assert store.has(leaf) and store.get_block(leaf) == b"inline"
    # A folder as `ipfs add --inline` writes it: UnixFS type 1, and a link that holds the file.
    root = store.put_block(encode_dag_node(b"\x08\x01", [Link(leaf, b"a", 6)]), cids.DAG_PB)
    store.pin(root)
    store.fetch(root, tmp_path / "out")
    assert contents(tmp_path / "out") == {"a": b"inline"}


@pytest.mark.parametrize("size", [0, 40, 65, cids.MAX_INLINE_BYTES])
@pytest.mark.parametrize("codec", [cids.DAG_PB, cids.DAG_CBOR])
def test_fetch__inline_child_that_is_no_unixfs__block_corrupt_and_nothing_written(
    store: Store, tmp_path: Path, codec: int, size: int
) -> None:
    child = Cid(1, codec, cids.IDENTITY, b"\xff" * size)
    folder = store.put_block(encode_dag_node(b"\x08\x01", [Link(child, b"a", size)]), cids.DAG_PB)
    for root in (child, folder):
        with pytest.raises(BlockCorrupt) as caught:
            store.fetch(root, tmp_path / "out")
        assert str(child) in caught.value.message
    assert not (tmp_path / "out").exists()


def test_get_block__absent__block_missing(store: Store) -> None:
    assert not store.has(ABSENT)
    with pytest.raises(BlockMissing) as caught:
        store.get_block(ABSENT, timeout=1)
    assert (caught.value.code, caught.value.exit_code) == ("BLOCK_MISSING", 9)
    assert str(ABSENT) in caught.value.message
    with pytest.raises(BlockMissing):
        store.get_block(Cid(1, cids.RAW, cids.BLAKE3, hashlib.sha256(b"").digest()), timeout=1)


def test_put_block__above_the_block_limit__too_large(store: Store) -> None:
    with pytest.raises(TooLarge):
        store.put_block(bytes(cids.MAX_BLOCK_BYTES + 1))


def test_add_path__tree__fetched_whole_with_progress(store: Store, tmp_path: Path) -> None:
    source = make_tree(tmp_path / "source")
    sent: list[int] = []
    entry = store.add_path(source, progress=lambda path, size: sent.append(size))
    assert entry.cid == unixfs.import_path(source, MemoryStore()).cid
    got: list[int] = []
    written = store.fetch(entry.cid, tmp_path / "dest", progress=lambda path, size: got.append(size), timeout=60)
    assert contents(tmp_path / "dest") == contents(source)
    assert (tmp_path / "dest" / "sub" / "empty").is_dir()
    assert sum(sent) == sum(got) == entry.size == written.size


def test_add_path__ignore__left_out(store: Store, tmp_path: Path) -> None:
    source = make_tree(tmp_path / "source")
    entry = store.add_path(source, ignore=lambda path, is_directory: path == "a")
    assert [found.path for found in unixfs.walk(entry.cid, store)] == ["", "sub", "sub/b", "sub/empty"]


def test_add_bytes__content__read_back(store: Store) -> None:
    content = os.urandom(2**20 + 1)
    assert b"".join(unixfs.read_file(store.add_bytes(content).cid, store)) == content


def test_fetch__over_a_limit__nothing_written(store: Store, tmp_path: Path) -> None:
    entry = store.add_bytes(bytes(100))
    (tmp_path / "out").mkdir()
    with pytest.raises(TooLarge):
        store.fetch(entry.cid, tmp_path / "out" / "x", ReadLimits(max_bytes=99))
    assert list((tmp_path / "out").iterdir()) == []


def test_fetch__time_is_up__store_down_and_nothing_written(store: Store, tmp_path: Path) -> None:
    entry = store.add_bytes(bytes(2**20 * 2))
    (tmp_path / "out").mkdir()
    with pytest.raises(StoreDown, match="within"):
        store.fetch(entry.cid, tmp_path / "out" / "x", timeout=0.0)
    assert list((tmp_path / "out").iterdir()) == []


def test_put_json__document__named_by_its_digest(store: Store) -> None:
    document = {"outcome": "ok", "amounts": ["1.5", "340282366920938463463"], "n": 3}
    digest = store.put_json(document)
    assert digest == canonical.digest(document)
    assert store.get_json(digest) == document
    assert store.get_block(canonical.cid_of_digest(digest)) == canonical.encode(document)


def test_get_json__block_that_is_no_document__refused(store: Store) -> None:
    cid = store.put_block(b'{"b":1,"a":1}')
    with pytest.raises(BadDocument):
        store.get_json(cid.digest)


def test_pin__dag_with_a_part_missing__block_missing(store: Store) -> None:
    other = MemoryStore()
    entry = unixfs.import_file(io.BytesIO(os.urandom(100)), other, chunk_bytes=30)  # new to a lasting node as well
    store.put_block(other.get_block(entry.cid), cids.DAG_PB)
    with pytest.raises(BlockMissing):
        store.pin(entry.cid)
    for cid, block in unixfs.blocks_of(entry.cid, other):
        store.put_block(block, cid.codec)
    store.pin(entry.cid)
    store.unpin(entry.cid)
    store.unpin(entry.cid)


def test_status__usable_store__says_so(store: Store) -> None:
    store.put_block(b"x")
    status = store.status()
    assert (status.reachable, status.writable) == (True, True)
    assert "1 block" in status.detail or "Kubo 0." in status.detail


# ---------------------------------------------------------------- open_store


def test_open_store__each_form__the_store_that_opens_again(tmp_path: Path) -> None:
    forms: list[tuple[str, type[object], str]] = [
        (str(tmp_path / "a b#c"), FolderStore, f"folder://{tmp_path}/a%20b%23c"),
        (f"folder://{tmp_path}/a%20b", FolderStore, f"folder://{tmp_path}/a%20b"),
        ("kubo://127.0.0.1:5001", KuboStore, "kubo://127.0.0.1:5001"),
        ("kubo://node.example", KuboStore, "kubo://node.example:5001"),
        ("kubo://[::1]:5001", KuboStore, "kubo://[::1]:5001"),
        ("gateway+https://ipfs.example/", GatewayStore, "gateway+https://ipfs.example"),
        ("gateway+http://127.0.0.1:8080", GatewayStore, "gateway+http://127.0.0.1:8080"),
    ]
    for form, kind, url in forms:
        opened = open_store(form)
        assert isinstance(opened, kind)
        assert opened.url == url
        assert open_store(opened.url).url == url
    assert list(tmp_path.iterdir()) == []  # opening creates nothing


def test_open_store__several__a_chain_in_order(tmp_path: Path) -> None:
    opened = open_store(str(tmp_path), "gateway+https://ipfs.example")
    assert isinstance(opened, Chain)
    assert [type(store) for store in opened.stores] == [FolderStore, GatewayStore]
    assert opened.writable
    assert not open_store("gateway+https://a.example", "gateway+https://b.example").writable


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket",
        "https://ipfs.example",
        "folder://relative/path",
        "~nobody-here/store",
        "kubo://",
        "kubo://h:port",
        "kubo://h:1/path",
        "kubo://user:secret@h",
        "gateway+https://",
        "gateway+https://h?x=1",
    ],
)
def test_open_store__unusable_url__bad_store_url(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert (caught.value.code, caught.value.exit_code) == ("BAD_STORE_URL", 3)
    shown = caught.value.details["url"]
    assert "secret" not in caught.value.message and f"the store URL {shown} is not usable: " in caught.value.message


# ---------------------------------------------------------------- folder


def block_files(folder: FolderStore) -> list[Path]:
    return sorted((folder.root / "blocks").glob("??/*"))


def test_folder__bit_flip_in_every_block__all_refused_then_healed(tmp_path: Path) -> None:
    folder = FolderStore(tmp_path / "store")
    source = tmp_path / "source"
    source.mkdir()
    for number in range(5):
        (source / f"{number}").write_bytes(os.urandom(500 * number))
    entry = folder.add_path(source)
    roots = dict(unixfs.blocks_of(entry.cid, folder))
    files = block_files(folder)
    assert len(files) == len(roots) == 6
    for path in files:
        whole = path.read_bytes()
        if not whole:
            continue
        spoilt = bytearray(whole)
        spoilt[len(whole) // 2] ^= 0x10
        path.write_bytes(spoilt)
        cid = next(cid for cid in roots if cid.digest.hex() == path.name)
        with pytest.raises(BlockCorrupt):
            folder.get_block(cid)
        with pytest.raises(BlockCorrupt):
            folder.fetch(entry.cid, tmp_path / "dest")
        assert not (tmp_path / "dest").exists()
        for cut in (whole[:-1], b"", whole + b"x"):
            path.write_bytes(cut)
            with pytest.raises(BlockCorrupt):
                folder.get_block(cid)
        assert folder.put_block(roots[cid], cid.codec) == cid
        assert folder.get_block(cid) == whole
    folder.fetch(entry.cid, tmp_path / "dest")
    assert contents(tmp_path / "dest") == contents(source)


def test_folder__huge_file_in_place_of_a_block__refused_without_reading_it_all(tmp_path: Path) -> None:
    folder = FolderStore(tmp_path)
    cid = folder.put_block(b"x")
    os.truncate(block_files(folder)[0], 2**40)
    with pytest.raises(TooLarge):
        folder.get_block(cid)


def test_folder__many_processes_put_the_same_and_other_blocks__all_whole(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from hearth.storage.stores import FolderStore
folder = FolderStore(Path(sys.argv[1]))
for number in range(60):
    folder.put_block(b"shared" * 5000 + bytes([number]))
    folder.put_block(sys.argv[2].encode() + bytes([number]))
    if number % 20 == 19:
        folder.collect()
"""
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", script, tmp_path / "store", str(number)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        for number in range(4)
    ]
    assert [worker.wait() for worker in workers] == [0] * 4
    folder = FolderStore(tmp_path / "store")
    assert len(block_files(folder)) == 60 + 4 * 60
    for number in range(60):
        assert folder.has(cids.of(b"shared" * 5000 + bytes([number])))
    for path in block_files(folder):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
    assert list((tmp_path / "store" / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    "step",
    [
        "os.fsync = lambda file: os._exit(9) if stat.S_ISREG(os.fstat(file).st_mode) else None",
        "os.rename = lambda *names: os._exit(9)",
    ],
)
def test_folder__killed_between_write_and_rename__no_block_and_the_next_put_works(tmp_path: Path, step: str) -> None:
    script = f"""
import os, stat, sys
from pathlib import Path
from hearth.storage.stores import FolderStore
folder = FolderStore(Path(sys.argv[1]))
folder.put_block(b"before")
{step}
folder.put_block(b"after")
"""
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    assert done.returncode == 9
    folder = FolderStore(tmp_path)
    assert folder.get_block(cids.of(b"before")) == b"before"
    assert not folder.has(cids.of(b"after"))
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    assert folder.get_block(folder.put_block(b"after")) == b"after"
    assert folder.collect(grace_seconds=-1) > 0  # sweeps what the kill left, and the unpinned blocks
    assert list((tmp_path / "tmp").iterdir()) == []


def test_folder__write_fails__store_down_and_nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = FolderStore(tmp_path / "store")
    folder.put_block(b"before")

    def full(file: int) -> None:
        if stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreDown, match="No space left"):
        folder.put_block(b"after")
    assert not folder.has(cids.of(b"after"))
    assert list((tmp_path / "store" / "tmp").iterdir()) == []


def test_folder__path_is_a_file__store_down(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    folder = FolderStore(tmp_path / "file" / "store")
    with pytest.raises(StoreDown):
        folder.put_block(b"x")
    with pytest.raises(StoreDown):
        folder.get_block(ABSENT)
    assert folder.status().detail


@pytest.mark.parametrize("left", [0, MIB // 2])
def test_folder__try_write_on_a_disk_with_less_room_than_a_block__store_down_until_there_is_more(
    tmp_path: Path, left: int
) -> None:
    """A few bytes would still find room where the blocks of a result find none."""
    with small_disk(tmp_path / "disk", 8 * MIB) as disk:
        folder = FolderStore(disk / "store")
        folder.try_write()
        (disk / "room").write_bytes(b"x" * left)
        fill(disk / "others")
        (disk / "room").unlink()
        with pytest.raises(StoreDown, match="No space left"):
            folder.try_write()
        assert block_files(folder) == [] and list((folder.root / "tmp").iterdir()) == []
        (disk / "others").unlink()
        folder.try_write()


def test_folder__try_write_where_blocks_cannot_be_made__store_down(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreDown):
        FolderStore(tmp_path / "file" / "store").try_write()
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "blocks").write_bytes(b"")
    with pytest.raises(StoreDown):
        FolderStore(tmp_path / "store").try_write()


def test_folder__path_that_no_file_can_have__store_down_and_no_status(tmp_path: Path) -> None:
    folder = FolderStore(tmp_path / ("x" * 300))
    said = folder.status()
    assert (said.reachable, said.writable) == (False, False) and "too long" in said.detail
    for act in (
        folder.collect,
        lambda: folder.put_block(b"x"),
        lambda: folder.pin(ABSENT),
        lambda: folder.unpin(ABSENT),
    ):
        with pytest.raises(StoreDown, match="too long"):
            act()


def test_folder__status__counts_its_blocks(tmp_path: Path) -> None:
    folder = FolderStore(tmp_path / "store")
    assert folder.status() == StoreStatus(folder.url, True, True, "0 blocks, 0 bytes")
    for block in (b"12345", b"123"):
        folder.put_block(block)
    assert folder.status() == StoreStatus(folder.url, True, True, "2 blocks, 8 bytes")


def test_folder__block_that_it_has__is_not_written_again_and_is_young_again(tmp_path: Path) -> None:
    folder = FolderStore(tmp_path)
    folder.put_block(b"x")
    (file,) = block_files(folder)
    before = file.stat().st_ino
    age(folder, 10_000)
    folder.put_block(b"x")
    assert file.stat().st_ino == before and time.time() - file.stat().st_mtime < 1_000


def test_folder__somebody_collects__is_waited_for_by_who_writes(tmp_path: Path) -> None:
    folder = FolderStore(tmp_path)
    folder.put_block(b"x")
    with open(tmp_path / "lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        writer = threading.Thread(target=folder.put_block, args=(b"y",), daemon=True)
        writer.start()
        writer.join(0.3)
        assert writer.is_alive() and not folder.has(cids.of(b"y"))
    writer.join(10)
    assert folder.has(cids.of(b"y"))


def test_folder__reading__creates_nothing(tmp_path: Path) -> None:
    folder = FolderStore(tmp_path / "store")
    assert not folder.has(ABSENT)
    with pytest.raises(BlockMissing):
        folder.get_block(ABSENT)
    assert folder.pins() == []
    assert folder.status().reachable
    assert not (tmp_path / "store").exists()


def test_folder__put__private_to_its_owner(tmp_path: Path) -> None:
    FolderStore(tmp_path / "deep" / "store").put_block(b"x")
    assert (tmp_path / "deep" / "store").stat().st_mode & 0o777 == 0o700


def age(folder: FolderStore, seconds: float) -> None:
    for path in block_files(folder):
        os.utime(path, (time.time() - seconds, time.time() - seconds))


def test_collect__unpinned_and_old__removed_and_the_rest_kept(tmp_path: Path) -> None:
    folder = FolderStore(tmp_path / "store")
    kept = folder.add_path(make_tree(tmp_path / "kept"))
    document = folder.put_json({"kept": True})
    gone = folder.add_bytes(b"gone")
    folder.unpin(gone.cid)
    age(folder, 10_000)
    young = folder.put_block(b"young")
    old_but_put_again = folder.put_block(b"b" * 10)  # shared with the pinned tree
    folder.put_block(b"again")
    assert folder.collect() == len(b"gone")
    assert not folder.has(gone.cid)
    assert folder.has(young)
    assert folder.has(old_but_put_again)
    assert folder.get_json(document) == {"kept": True}
    folder.fetch(kept.cid, tmp_path / "dest")
    assert contents(tmp_path / "dest") == contents(tmp_path / "kept")


def test_collect__block_put_again_just_before__kept(tmp_path: Path) -> None:
    """An import that finds a block there already must be able to count on it until it pins."""
    folder = FolderStore(tmp_path)
    cid = folder.put_block(b"x")
    age(folder, 10_000)
    folder.put_block(b"x")
    assert folder.collect() == 0
    assert folder.has(cid)


def test_collect__folder_in_many_places_of_a_tree__is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few blocks that link to each other twice each are a tree of any size, which no collection would get through."""
    folder = FolderStore(tmp_path / "store")
    for path in ("a/a", "a/b", "b/a", "b/b"):
        (tmp_path / "tree" / path).mkdir(parents=True)
        (tmp_path / "tree" / path / "file").write_bytes(b"x")
    entry = folder.add_path(tmp_path / "tree")
    read: list[Cid] = []
    get = folder.get_block
    monkeypatch.setattr(folder, "get_block", lambda cid: read.append(cid) or get(cid))
    folder.collect()
    assert len(read) == len(set(read)) == 3 and entry.cid in read


def test_collect__pinned_root_lost__the_rest_of_the_pins_kept(tmp_path: Path) -> None:
    folder = FolderStore(tmp_path)
    lost = unixfs.import_file(io.BytesIO(bytes(range(90))), folder, chunk_bytes=30)
    folder.pin(lost.cid)
    kept = folder.add_bytes(b"kept")
    (folder.root / "blocks" / lost.cid.digest.hex()[:2] / lost.cid.digest.hex()).unlink()
    age(folder, 10_000)
    assert folder.collect() == 90
    assert folder.has(kept.cid)


def small_portions(folder: FolderStore, monkeypatch: pytest.MonkeyPatch, between: Callable[[], object]) -> None:
    """Collect in portions of one file, and do something between the first, which is empty, and the others."""
    monkeypatch.setattr("hearth.storage.stores.folder.PORTION", 1)
    portions = folder._portions

    def first_wait() -> Iterator[list[Path]]:
        yield []
        between()
        yield from portions()

    monkeypatch.setattr(folder, "_portions", first_wait)


def test_collect__others_write_and_pin_between_two_portions__nothing_of_theirs_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes while the collector is under way: it neither waits for it nor loses a block to it."""
    folder, other = FolderStore(tmp_path), FolderStore(tmp_path)
    folder.add_bytes(b"pinned before")
    again = folder.put_block(b"put again")
    entry = unixfs.import_file(io.BytesIO(bytes(range(90))), folder, chunk_bytes=30)
    gone = [folder.put_block(bytes([number]) * 7) for number in range(5)]
    age(folder, 10_000)

    def between() -> None:
        other.put_block(b"put again")
        other.pin(entry.cid)

    small_portions(folder, monkeypatch, between)
    assert folder.collect() == 5 * 7
    assert not any(folder.has(cid) for cid in gone)
    assert folder.has(again)
    assert all(folder.has(cid) for cid, _ in unixfs.blocks_of(entry.cid, folder))


def test_collect__killed_between_two_portions__what_is_pinned_is_whole_and_the_next_one_goes_on(tmp_path: Path) -> None:
    script = """
import os, sys
from pathlib import Path
from hearth.storage.stores import FolderStore, folder
folder.PORTION = 1
drop, dropped = folder._drop, []
def dies(path, before):
    dropped.append(drop(path, before))
    if sum(map(bool, dropped)) == 2:
        os.kill(os.getpid(), 9)
    return dropped[-1]
folder._drop = dies
FolderStore(Path(sys.argv[1])).collect()
"""
    folder = FolderStore(tmp_path / "store")
    kept = folder.add_path(make_tree(tmp_path / "kept"))
    for number in range(5):
        folder.put_block(bytes([number]) * 7)
    age(folder, 10_000)
    done = subprocess.run(
        [sys.executable, "-c", script, folder.root], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    assert done.returncode == -9
    assert folder.collect() == 3 * 7
    folder.fetch(kept.cid, tmp_path / "dest")
    assert contents(tmp_path / "dest") == contents(tmp_path / "kept")


# ---------------------------------------------------------------- chain


def test_chain__first_store_lacks_down_or_lies__the_next_one_helps(tmp_path: Path) -> None:
    content = os.urandom(3000)
    good = MemoryStore("good")
    entry = good.add_bytes(content)
    liar = MemoryStore("liar")
    liar.blocks = dict.fromkeys(good.blocks, b"wrong")
    faults: list[StoreFault] = []
    chain = Chain([BrokenStore(), MemoryStore("empty"), liar, good], on_fault=faults.append)
    chain.fetch(entry.cid, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == content
    assert [(fault.store, fault.code) for fault in faults] == [
        ("memory:broken", "STORE_DOWN"),
        ("memory:liar", "BLOCK_CORRUPT"),
    ]


def test_chain__store_that_was_down__asked_last_for_a_while() -> None:
    good = MemoryStore()
    names = [good.put_block(bytes([number])) for number in range(20)]
    broken = BrokenStore()
    chain = Chain([broken, good])
    for name in names:
        chain.get_block(name)
    assert broken.calls == 1
    with pytest.raises(StoreDown):
        chain.get_block(ABSENT)  # nobody has it, so even the one that was down is asked
    assert broken.calls == 2


def clock_of(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give a chain's stores a clock that a test moves; a machine's own begins at zero."""
    now = [0.0]
    monkeypatch.setattr("hearth.storage.stores.chain.time", Mock(monotonic=lambda: now[0]))
    return now


def test_chain__store_that_was_down__is_asked_in_its_turn_again_when_it_has_cooled_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = clock_of(monkeypatch)
    first, second = BrokenStore("first"), MemoryStore("second")
    cid = second.put_block(b"x")
    chain = Chain([first, second])
    asked = []
    for now[0] in (0.0, COOL_DOWN_SECONDS - 1, COOL_DOWN_SECONDS, COOL_DOWN_SECONDS + 1):
        assert chain.get_block(cid) == b"x"
        asked.append(first.calls)
    assert asked == [1, 1, 2, 2]


def test_chain__mirror_that_was_down__is_written_to_again_when_it_has_cooled_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = clock_of(monkeypatch)
    broken, whole = BrokenStore("broken"), MemoryStore("whole")
    chain = Chain([MemoryStore("first"), broken, whole], mirrors=2)
    asked = []
    for now[0] in (0.0, COOL_DOWN_SECONDS - 1, COOL_DOWN_SECONDS, COOL_DOWN_SECONDS + 1):
        cid = chain.put_block(str(now[0]).encode())
        assert whole.has(cid), "from the first second on"
        asked.append(broken.calls)
    assert asked == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("kinds", "error"),
    [
        (["empty", "empty"], BlockMissing),
        (["empty", "broken"], StoreDown),
        (["broken", "liar", "empty"], BlockCorrupt),
    ],
)
def test_chain__nobody_has_it__the_gravest_reason_and_all_of_them(kinds: list[str], error: type[StorageError]) -> None:
    liar = MemoryStore("liar")
    liar.blocks[ABSENT.digest] = b"wrong"
    made = {"empty": MemoryStore("empty"), "broken": BrokenStore(), "liar": liar}
    with pytest.raises(error) as caught:
        Chain([made[kind] for kind in kinds]).get_block(ABSENT)
    codes = {"empty": "BLOCK_MISSING", "broken": "STORE_DOWN", "liar": "BLOCK_CORRUPT"}
    assert sorted(caught.value.details["reasons"]) == sorted(codes[kind] for kind in kinds)
    assert caught.value.details["cid"] == str(ABSENT)
    assert all(f"memory:{kind}" in caught.value.message or kind == "liar" for kind in kinds)


def test_chain__has__who_is_down_is_no_witness_and_who_has_it_is() -> None:
    good, broken = MemoryStore("good"), BrokenStore()
    cid = good.put_block(b"x")
    assert Chain([broken, good]).has(cid)
    assert not Chain([good, MemoryStore("empty")]).has(ABSENT)
    for stores in ([broken, good], [good, broken]):
        with pytest.raises(StoreDown, match="switched off"):
            Chain(stores).has(ABSENT)


@pytest.mark.parametrize(
    ("kinds", "again"),
    [(["empty", "liar"], True), (["liar", "broken"], True), (["liar", "liar"], False), (["liar"], False)],
)
def test_chain__nobody_gives_it__a_second_try_may_help_where_it_helps_with_one_of_them(
    kinds: list[str], again: bool
) -> None:
    liar = MemoryStore("liar")
    liar.blocks[ABSENT.digest] = b"wrong"
    made = {"empty": MemoryStore("empty"), "broken": BrokenStore(), "liar": liar}
    with pytest.raises(BlockCorrupt) as caught:
        Chain([made[kind] for kind in kinds]).get_block(ABSENT)
    assert caught.value.retryable is again


def test_chain__write__first_writable_and_its_mirrors() -> None:
    gateway = GatewayStore("http://127.0.0.1:9")
    first, second, third = MemoryStore("1"), MemoryStore("2"), MemoryStore("3")
    cid = Chain([gateway, first, second, third], mirrors=1).put_block(b"x")
    assert [store.has(cid) for store in (first, second, third)] == [True, True, False]


def test_chain__mirror_down__a_fault_and_no_error() -> None:
    faults: list[StoreFault] = []
    first = MemoryStore()
    chain = Chain([first, BrokenStore()], mirrors=1, on_fault=faults.append)
    entry = chain.add_bytes(b"x")
    assert first.pins == {entry.cid}
    assert {fault.store for fault in faults} == {"memory:broken"}
    with pytest.raises(StoreDown):
        Chain([BrokenStore(), first]).put_block(b"x")


def test_chain__try_write__is_of_the_store_that_a_result_must_be_in() -> None:
    Chain([GatewayStore("http://127.0.0.1:9"), MemoryStore(), BrokenStore()], mirrors=1).try_write()
    with pytest.raises(StoreDown):
        Chain([BrokenStore(), MemoryStore()], mirrors=1).try_write()


@pytest.mark.net
def test_chain__mirror_that_answers_nothing__is_waited_for_once_and_not_at_every_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that takes connections and says nothing: each wait is a minute in earnest."""
    monkeypatch.setattr("hearth.storage.stores.kubo.BLOCK_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr("hearth.storage.stores.kubo._GRACE_SECONDS", 0)
    faults: list[StoreFault] = []
    folder = FolderStore(tmp_path / "store")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        kubo = KuboStore("127.0.0.1", silent.getsockname()[1], pin_seconds=0.5)
        chain = Chain([folder, kubo], mirrors=1, on_fault=faults.append)
        began = time.monotonic()
        entries = [chain.add_path(make_tree(tmp_path / name)) for name in ("a", "b")]
        assert time.monotonic() - began < 10
    assert [fault.code for fault in faults] == ["STORE_DOWN"]
    assert set(folder.pins()) == {entry.cid for entry in entries}


def test_chain__mirror_that_lacks_a_block_of_an_import__is_not_asked_to_pin_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node would search its peers for the block, for ten minutes of the lease."""
    monkeypatch.setattr("hearth.storage.stores.chain.COOL_DOWN_SECONDS", 0)
    mirror, first = Restarting("mirror"), MemoryStore("first")
    asked: list[Cid] = []
    monkeypatch.setattr(mirror, "pin", asked.append)
    chain = Chain([first, mirror], mirrors=1)
    chain.add_path(make_tree(tmp_path / "a"))
    assert asked == [] and mirror.blocks
    again = chain.add_path(make_tree(tmp_path / "b"))
    assert asked == [again.cid]


def test_chain__unpin__says_so_where_a_mirror_keeps_it_and_lets_the_others_go(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = [MemoryStore(name) for name in "123"]
    chain = Chain(stores, mirrors=2)
    entry = chain.add_bytes(b"x")
    with pytest.MonkeyPatch.context() as context:
        context.setattr(stores[1], "unpin", Mock(side_effect=StoreDown("switched off", hint="")))
        with pytest.raises(StoreDown, match="switched off"):
            chain.unpin(entry.cid)
    assert [store.pins for store in stores] == [set(), {entry.cid}, set()]
    with pytest.raises(StoreDown, match="was down just now"):
        chain.unpin(entry.cid)
    assert stores[1].pins == {entry.cid}
    monkeypatch.setattr(chain, "_unwritten_until", {})  # half a minute later
    chain.unpin(entry.cid)
    assert stores[1].pins == set()


def test_chain__mirror_down_for_reading__still_gets_what_is_written() -> None:
    """A stranger's data that hangs a node's answer must not keep a result from where its submitter reads."""
    mirror = MemoryStore("mirror")
    chain = Chain([MemoryStore("first"), mirror], mirrors=1)
    with pytest.MonkeyPatch.context() as context:
        context.setattr(mirror, "_read", Mock(side_effect=StoreDown("it hangs", hint="")))
        with pytest.raises(StoreDown):
            chain.get_block(ABSENT)
    entry = chain.add_bytes(b"x")
    assert mirror.pins == {entry.cid}


def test_chain__keep__later_reads_come_from_the_first_store(tmp_path: Path) -> None:
    far = MemoryStore("far")
    entry = far.add_path(make_tree(tmp_path / "source"))
    near = FolderStore(tmp_path / "near")
    Chain([near, far]).fetch(entry.cid, tmp_path / "a")
    assert not near.has(entry.cid)
    Chain([near, far], keep=True).fetch(entry.cid, tmp_path / "b")
    near.fetch(entry.cid, tmp_path / "c")
    assert contents(tmp_path / "c") == contents(tmp_path / "source")
    block_files(near)[0].write_bytes(b"rot")
    Chain([near, far], keep=True).fetch(entry.cid, tmp_path / "d")
    near.fetch(entry.cid, tmp_path / "e")  # healed


def test_chain__pin__copies_what_only_another_store_has(tmp_path: Path) -> None:
    far = MemoryStore("far")
    entry = far.add_path(make_tree(tmp_path / "source"))
    near, mirror = FolderStore(tmp_path / "near"), MemoryStore("mirror")
    Chain([near, mirror, far], mirrors=1).pin(entry.cid)
    assert near.pins() == [entry.cid]
    assert mirror.pins == {entry.cid}
    far.blocks.clear()
    near.fetch(entry.cid, tmp_path / "out")
    with pytest.raises(TooLarge):
        Chain([FolderStore(tmp_path / "other"), mirror]).pin(entry.cid, ReadLimits(max_bytes=2**20))


def test_chain__read_only__refuses_writes() -> None:
    chain = Chain([GatewayStore("http://127.0.0.1:9")])
    for write in (lambda: chain.put_block(b"x"), lambda: chain.put_json({}), chain.try_write):
        with pytest.raises(StorageError) as caught:
            write()
        assert (caught.value.code, caught.value.exit_code) == ("READ_ONLY", 9)


def test_chain__store_goes_down_mid_way__nothing_half_written(tmp_path: Path) -> None:
    class Failing(MemoryStore):
        left = 10**6

        def _read(self, cid: Cid, timeout: float) -> bytes:
            self.left -= 1
            if self.left < 0:
                raise self._down("pulled the plug")
            return super()._read(cid, timeout)

    failing = Failing()
    entry = failing.add_path(make_tree(tmp_path / "source"))
    (tmp_path / "out").mkdir()
    for store in (failing, Chain([failing])):
        failing.left = 3
        with pytest.raises(StoreDown, match="plug"):
            store.fetch(entry.cid, tmp_path / "out" / "x")
        assert list((tmp_path / "out").iterdir()) == []


def test_chain__status__names_every_store() -> None:
    status = Chain([BrokenStore(), MemoryStore("m")]).status()
    assert (status.reachable, status.writable) == (True, True)
    assert "switched off" in status.detail
    assert "memory:m" in status.detail
    down = Chain([BrokenStore()]).status()
    assert (down.reachable, down.writable) == (False, False)


def test_chain__of_no_store__is_none() -> None:
    with pytest.raises(ValueError, match="needs a store"):
        Chain([])


def test_chain__closed__closes_every_store(monkeypatch: pytest.MonkeyPatch) -> None:
    stores, closed = [MemoryStore(name) for name in "12"], []
    for store in stores:
        monkeypatch.setattr(store, "close", lambda store=store: closed.append(store))
    Chain(stores).close()
    assert closed == stores


def test_chain__collect__clears_what_it_writes_to_and_no_other(tmp_path: Path) -> None:
    first, mirror, other = (FolderStore(tmp_path / name) for name in ("first", "mirror", "other"))
    chain = Chain([first, mirror, other], mirrors=1)
    other.put_block(b"not ours")
    chain.put_block(b"1234")
    for store in (first, mirror, other):
        age(store, 10_000)
    assert chain.collect() == 8
    assert [len(block_files(store)) for store in (first, mirror, other)] == [0, 0, 1]


@given(st.lists(st.sampled_from(["ok", "missing", "down", "corrupt"]), min_size=1, max_size=4))
@settings(max_examples=100)
def test_chain__any_mix_of_states__the_block_iff_one_store_is_ok(states: list[str]) -> None:
    block = b"block"
    cid = cids.of(block)
    stores: list[StoreBase] = []
    for index, state in enumerate(states):
        store = BrokenStore(str(index)) if state == "down" else MemoryStore(str(index))
        if state in ("ok", "corrupt"):
            store.blocks[cid.digest] = block if state == "ok" else b"other"
        stores.append(store)
    chain = Chain(stores, keep=True)
    for _ in range(2):
        if "ok" in states:
            assert chain.get_block(cid, BLOCK_TIMEOUT_SECONDS) == block
        else:
            with pytest.raises((BlockMissing, StoreDown, BlockCorrupt)):
                chain.get_block(cid)
