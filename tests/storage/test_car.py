"""CAR files: written as others write them, read as a stream, and believed in no part that is not checked."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import libipld
import pytest

from hearth.base.errors import (
    BadCid,
    BadDestination,
    BlockCorrupt,
    BlockMissing,
    ConfigError,
    StorageError,
    StoreDown,
    TooLarge,
)
from hearth.client import Client
from hearth.config.settings import Settings
from hearth.storage import car, unixfs
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.stores import FolderStore, MemoryStore
from tests.kit import build
from tests.kit.fake_chain import FakeChain
from tests.kit.require import require


def car_of(store: Any, *roots: Cid) -> bytes:
    out = io.BytesIO()
    seen: dict[Cid, bytes] = {}
    for root in roots:
        seen.update(unixfs.blocks_of(root, store))
    car.write(roots, seen.items(), out)
    return out.getvalue()


def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "large").write_bytes(os.urandom(unixfs.CHUNK_BYTES + 7))
    (folder / "deep" / "er" / "small").write_text("x")
    (folder / "again").write_text("x")
    return folder


@pytest.mark.parametrize("count", [1, 2, 23, 24, 64])
def test_write__any_number_of_roots__another_reader_reads_the_same(count: int) -> None:
    store = MemoryStore()
    # The other reader knows no blocks but those of DAG-CBOR, and decodes them.
    roots = [store.put_block(libipld.encode_dag_cbor(f"block {at}"), cids.DAG_CBOR) for at in range(count)]
    out = io.BytesIO()
    car.write(roots, [(root, store.get_block(root)) for root in roots], out)
    data = out.getvalue()
    header, blocks = libipld.decode_car(data)
    assert header["roots"] == [bytes(root) for root in roots] and header["version"] == 1
    assert blocks == {bytes(root): f"block {at}" for at, root in enumerate(roots)}
    found, sections = car.read(io.BytesIO(data))
    assert list(found) == roots and [name for name, _ in sections] == roots


def test_read__names_of_every_kind__come_with_their_blocks() -> None:
    leaf = cids.of(b"leaf")
    old = Cid(0, cids.DAG_PB, cids.SHA2_256, cids.of(b"", cids.DAG_PB).digest)
    inline = Cid(1, cids.RAW, cids.IDENTITY, bytes(range(100)))
    out = io.BytesIO()
    car.write([leaf], [(leaf, b"leaf"), (old, b""), (inline, bytes(range(100)))], out)
    out.seek(0)
    _, blocks = car.read(out)
    assert [cid for cid, _ in blocks] == [leaf, old, inline]


def header(value: Any) -> bytes:
    raw = bytes(libipld.encode_dag_cbor(value))
    return car._varint(len(raw)) + raw


PRAGMA = header({"version": 2})
ROOTS = [libipld.decode_dag_cbor(b"\xd8\x2a\x45\0" + bytes(Cid(1, cids.RAW, cids.IDENTITY, b"")))]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it is empty"),
        (b"\x80", "in the middle of a length"),
        (b"\x80\x80\x80\x80\x80\x01", "has no end"),
        (b"\xff\xff\x7f", "may have 1 to"),
        (b"\x00", "may have 1 to"),
        (b"\x20abc", "in the middle of a block"),
        (b"\x03\xff\xff\xff", "not that of version 1"),
        (header(["roots"]), "not that of version 1"),
        (header({"version": 1, "roots": ROOTS * 65}), "more than 64 roots"),
        (header({"version": 1, "roots": ["text"]}), "is no link"),
        (PRAGMA, "in the middle of a block"),
        (PRAGMA + bytes(16) + (50).to_bytes(8, "little") + bytes(16), "inside its own header"),
        (PRAGMA + bytes(16) + (2**63).to_bytes(8, "little") + bytes(16), "in the middle of a block"),
        (PRAGMA + bytes(16) + (51).to_bytes(8, "little") + bytes(16), "it is empty"),
        (PRAGMA + bytes(16) + (51).to_bytes(8, "little") + b"\x0b" + bytes(15) + PRAGMA, "not that of version 1"),
        (header({"version": 2**63}), "not that of version 1"),
        (header({"version": True}), "not that of version 1"),
        (header({"version": 1, "roots": ROOTS, "more": 1}), "not that of version 1"),
        (header({"version": True, "roots": ROOTS}), "not that of version 1"),
        (header({"version": 1.0, "roots": ROOTS}), "not that of version 1"),
        (header({"version": 1, "roots": {}}), "no DAG-CBOR"),
        (b"\x0a\xa2\x65roots\x9a\xff\xff", "no DAG-CBOR"),
        (b"\x07\xa2\x65roots", "no DAG-CBOR"),
    ],
)
def test_read__what_is_no_car_file__is_refused_and_says_why(data: bytes, said: str) -> None:
    with pytest.raises(StorageError, match=said) as caught:
        list(car.read(io.BytesIO(data))[1])
    assert caught.value.code == "BAD_CAR" and caught.value.exit_code == 9


def _version_2(inner: bytes, gap: int = 0, size: int | None = None) -> bytes:
    """Return a file of version 2 around one of version 1, as go-car writes it, with an index behind."""
    places = (51 + gap, len(inner) if size is None else size, 51 + gap + len(inner))
    fields = b"".join(place.to_bytes(8, "little") for place in places)
    return PRAGMA + b"\x80" + bytes(15) + fields + bytes(gap) + inner + b"\x81\x08 an index"


@pytest.mark.parametrize("gap", [0, 1, 100_000])
def test_read__file_of_version_2__is_what_it_holds(gap: int) -> None:
    store = MemoryStore()
    roots = [store.put_block(b"leaf"), store.put_block(b"other")]
    inner = car_of(store, *roots)
    found, blocks = car.read(io.BytesIO(_version_2(inner, gap)))
    assert list(found) == roots and [cid for cid, _ in blocks] == roots
    found, blocks = car.read(io.BytesIO(_version_2(inner, gap, len(inner) - 1)))
    with pytest.raises(StorageError, match="in the middle of a block"):
        list(blocks)


@pytest.mark.parametrize("start", [header({"version": 1}), header({"version": 1, "roots": []})])
def test_store_import__file_without_roots__gives_its_blocks_and_keeps_none(start: bytes, tmp_path: Path) -> None:
    store, file = MemoryStore(), tmp_path / "x.car"
    cid = store.put_block(b"leaf")
    section = bytes(cid) + b"leaf"
    inner = start + bytes((len(section),)) + section
    for data in (inner, _version_2(inner)):
        file.write_bytes(data)
        home = client(tmp_path, "home")
        assert home.store.import_file(file)["roots"] == [] and home.session.store.get_block(cid) == b"leaf"
        assert FolderStore(tmp_path / "home" / "store").pins() == []


@pytest.mark.kubo
def test_read__files_that_kubo_imports__are_read_with_the_same_roots_and_blocks(tmp_path: Path) -> None:
    program = os.environ.get("HEARTH_KUBO_BIN", "")
    require("kubo", program != "", "HEARTH_KUBO_BIN is not set: make services-up")

    def ipfs(*arguments: str) -> tuple[int, str]:
        environ = {**os.environ, "IPFS_PATH": str(tmp_path / "repo")}
        command = [program, "--offline", *arguments]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=120)
        return done.returncode, done.stdout

    store = MemoryStore()
    cid = store.put_block(b"leaf")
    section = bytes((len(bytes(cid)) + 4,)) + bytes(cid) + b"leaf"
    whole = car_of(store, cid)
    empty, silent = (header(value) + section for value in ({"version": 1, "roots": []}, {"version": 1}))
    assert ipfs("init", "--empty-repo")[0] == 0
    for number, data in enumerate((whole, empty, silent, _version_2(whole), _version_2(empty, 9), PRAGMA, whole[:-1])):
        file = tmp_path / f"{number}.car"
        file.write_bytes(data)
        code, out = ipfs("dag", "import", "--stats", str(file))
        try:
            roots, blocks = car.read(io.BytesIO(data))
            read = (0, [str(root) for root in roots], len(list(blocks)))
        except StorageError:
            read = (1, [], 0)
        named = [line.split("\t")[1] for line in out.splitlines() if line.startswith("Pinned")]
        assert read == ((0, named, 1) if code == 0 else (1, [], 0)), number


def test_read__header_nested_as_deep_as_it_may_be_long__is_refused_whatever_stack_is_left() -> None:
    """A decoder that recurses is killed here: no exception, the process ends."""
    nested = b"\xa1\x61a" + b"\x81" * (car.MAX_HEADER_BYTES - 4) + b"\x01"
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)
    try:
        with pytest.raises(StorageError, match="not that of version 1"):
            car.read(io.BytesIO(car._varint(len(nested)) + nested))
    finally:
        sys.setrecursionlimit(limit)


def test_read__sections_that_lie__are_refused() -> None:
    store = MemoryStore()
    root = store.put_block(b"leaf")
    data = car_of(store, root)
    with pytest.raises(BlockCorrupt):
        list(car.read(io.BytesIO(data[:-1] + b"F"))[1])
    with pytest.raises(StorageError, match="in the middle of a block"):
        list(car.read(io.BytesIO(data[:-1]))[1])
    with pytest.raises(BadCid):
        list(car.read(io.BytesIO(data + b"\x02\x07\x07"))[1])
    large = bytes(cids.MAX_BLOCK_BYTES + 1)
    name = Cid(1, cids.RAW, cids.SHA2_256, bytes(32))
    out = io.BytesIO()
    car.write([name], [(name, large)], out)
    with pytest.raises(TooLarge):
        list(car.read(io.BytesIO(out.getvalue()))[1])
    out = io.BytesIO()
    car.write([name], [(name, large + bytes(4096))], out)
    with pytest.raises(StorageError, match="may have 1 to"):
        list(car.read(io.BytesIO(out.getvalue()))[1])


# ---- hearth store ----


def client(tmp_path: Path, name: str, **options: Any) -> Client:
    home = tmp_path / name
    made = Client(Settings(home=home), **options)
    made.session.__dict__["network"] = build.network(FakeChain())
    return made


def test_store__export_and_import__another_store_has_the_same_tree(tmp_path: Path) -> None:
    here, there = client(tmp_path, "here"), client(tmp_path, "there")
    root = here.session.store.add_path(tree(tmp_path)).cid
    file = tmp_path / "tree.car"
    wrote = here.store.export(f"ipfs://{root}", file)
    assert wrote["root"] == str(root) and wrote["blocks"] == 7 and file.stat().st_size > wrote["bytes"]
    took = there.store.import_file(file)
    assert took["roots"] == [str(root)] and (took["blocks"], took["bytes"]) == (wrote["blocks"], wrote["bytes"])
    there.session.store.fetch(root, tmp_path / "got")
    assert (tmp_path / "got" / "large").read_bytes() == (tmp_path / "tree" / "large").read_bytes()
    folder = FolderStore(tmp_path / "there" / "store")
    assert folder.pins() == [root] and folder.collect(grace_seconds=-1) == 0
    inner = there.store.export(f"/ipfs/{root}/deep/er/small", tmp_path / "small.car")
    assert inner["blocks"] == 1 and inner["root"] == str(cids.of(b"x"))
    assert sorted(path.name for path in tmp_path.glob("*.car")) == ["small.car", "tree.car"]
    assert not list(tmp_path.glob(".*"))


def test_store_import__dry_run__checks_everything_and_writes_nothing(tmp_path: Path) -> None:
    store = MemoryStore()
    file = tmp_path / "x.car"
    file.write_bytes(car_of(store, store.put_block(b"leaf")))
    dry = client(tmp_path, "home", dry_run=True)
    assert dry.store.import_file(file)["dry_run"] and not (tmp_path / "home").exists()
    file.write_bytes(file.read_bytes()[:-1] + b"F")
    with pytest.raises(BlockCorrupt):
        dry.store.import_file(file)


@pytest.mark.parametrize(("damage", "kind"), [(b"F", BlockCorrupt), (b"", StorageError)])
def test_store_import__damaged_file__is_named_and_no_store_is_blamed(
    damage: bytes, kind: type[StorageError], tmp_path: Path
) -> None:
    store, file = MemoryStore(), tmp_path / "x.car"
    file.write_bytes(car_of(store, store.put_block(b"leaf"))[:-1] + damage)
    with pytest.raises(kind) as caught:
        client(tmp_path, "home").store.import_file(file)
    assert caught.value.message.startswith(f"{file}: ") and "doctor" not in caught.value.hint
    file.write_bytes(b"no CAR")
    with pytest.raises(StorageError) as caught:
        client(tmp_path, "home").store.import_file(file)
    assert caught.value.message.startswith(f"{file}: this is no CAR file")


def test_store_import__store_that_is_down__is_not_the_files_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, file = MemoryStore(), tmp_path / "x.car"
    file.write_bytes(car_of(store, store.put_block(b"leaf")))
    home = client(tmp_path, "home")

    def down(*_: object) -> None:
        raise StoreDown("it does not answer", hint="hearth doctor")

    monkeypatch.setattr(home.session.store, "put_block", down)
    with pytest.raises(StoreDown) as caught:
        home.store.import_file(file)
    assert (caught.value.message, caught.value.hint) == ("it does not answer", "hearth doctor")


def test_store_import__root_that_lacks_a_block__pins_nothing(tmp_path: Path) -> None:
    store = MemoryStore()
    root = store.add_path(tree(tmp_path)).cid
    blocks = dict(unixfs.blocks_of(root, store))
    lost = next(cid for cid in blocks if cid != root and cid.codec == cids.RAW)
    del blocks[lost]
    file = tmp_path / "x.car"
    with file.open("wb") as out:
        car.write([root], blocks.items(), out)
    with pytest.raises(BlockMissing, match=str(lost)) as caught:
        client(tmp_path, "home").store.import_file(file)
    assert caught.value.message.startswith(f"{file}: ") and "get the file again" in caught.value.hint
    assert FolderStore(tmp_path / "home" / "store").pins() == []


def test_store_import__blake3_and_what_is_no_file__are_refused(tmp_path: Path) -> None:
    import blake3

    name = Cid(1, cids.RAW, cids.BLAKE3, blake3.blake3(b"x").digest())
    file = tmp_path / "x.car"
    with file.open("wb") as out:
        car.write([name], [(name, b"x")], out)
    home = client(tmp_path, "home")
    with pytest.raises(StorageError, match="named by blake3"):
        home.store.import_file(file)
    for path in (tmp_path, tmp_path / "gone.car"):
        with pytest.raises(ConfigError) as caught:
            home.store.import_file(path)
        assert caught.value.code == "NO_FILE"


def test_store_export__name_that_is_taken_or_nowhere__leaves_all_as_it_is(tmp_path: Path) -> None:
    home = client(tmp_path, "home")
    root = home.session.store.add_bytes(b"leaf").cid
    file = tmp_path / "x.car"
    file.write_text("mine")
    with pytest.raises(BadDestination, match="exists already"):
        home.store.export(str(root), file)
    with pytest.raises(BadDestination, match="cannot be written"):
        home.store.export(str(root), tmp_path / "gone" / "x.car")
    with pytest.raises(BlockMissing):
        home.store.export(str(cids.of(b"nobody has it")), tmp_path / "y.car")
    assert file.read_text() == "mine" and [path.name for path in tmp_path.iterdir()] != []
    assert not (tmp_path / "y.car").exists() and not list(tmp_path.glob(".*"))
    dry = client(tmp_path, "home", dry_run=True)
    assert dry.store.export(str(root), tmp_path / "z.car")["blocks"] == 1 and not (tmp_path / "z.car").exists()
