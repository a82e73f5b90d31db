"""UnixFS: import equal to other importers, export equal to what went in, and every hostile DAG refused."""

from __future__ import annotations

import io
import os
import random
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.base.errors import (
    BadCid,
    BadDestination,
    BlockCorrupt,
    BlockMissing,
    NotFoundError,
    StorageError,
    TooLarge,
    UnsafePath,
)
from hearth.storage import cid as cids
from hearth.storage import unixfs
from hearth.storage.cid import Cid
from hearth.storage.stores import MemoryStore
from hearth.storage.unixfs import Entry, Link, ReadLimits, reader
from tests.kit.require import require
from tests.storage.unixfs_cases import (
    ROOT,
    Case,
    Hasher,
    javascript,
    kubo,
    kubo_with_profile,
    make_directories,
    make_files,
    ours,
)

# ---------------------------------------------------------------- helpers


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: int | bytes) -> bytes:
    """Encode a protobuf field, independently of hearth.storage.unixfs."""
    if isinstance(value, int):
        return varint(number * 8) + varint(value)
    return varint(number * 8 + 2) + varint(len(value)) + value


def data(kind: int, content: bytes | None = None, size: int | None = None, sizes: tuple[int, ...] = ()) -> bytes:
    message = field(1, kind)
    if content is not None:
        message += field(2, content)
    if size is not None:
        message += field(3, size)
    return message + b"".join(field(4, value) for value in sizes)


def put(store: MemoryStore, message: bytes, *links: tuple[bytes, Cid]) -> Cid:
    """Store a dag-pb node with the given UnixFS message and (name, child) links."""
    block = b"".join(field(2, field(1, bytes(child)) + field(2, name) + field(3, 0)) for name, child in links)
    return store.put_block(block + field(1, message), cids.DAG_PB)


def directory(store: MemoryStore, *links: tuple[bytes, Cid]) -> Cid:
    return put(store, data(1), *links)


def tree(root: Path) -> dict[str, bytes | None]:
    """Read a tree back: path -> content, or None for a directory."""
    found: dict[str, bytes | None] = {}
    for path in sorted(root.rglob("*")):
        assert not path.is_symlink()
        found[path.relative_to(root).as_posix()] = None if path.is_dir() else path.read_bytes()
    return found


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(unixfs.PART_PREFIX)]


# ---------------------------------------------------------------- import: equal to another importer


@pytest.mark.slow
def test_import_path__every_size_and_tree__equal_to_the_npm_importer(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "trees").mkdir()
    cases = make_files(tmp_path / "files") + make_directories(tmp_path / "trees")
    expected = javascript(cases)
    different = [
        case.name
        for case, (name, tsize) in zip(cases, expected, strict=True)
        if ((entry := ours(case)) and (str(entry.cid), entry.tsize)) != (name, tsize)
    ]
    assert different == []
    assert len(cases) > 50


@pytest.mark.slow
@pytest.mark.kubo
def test_import_path__every_size_and_tree__equal_to_a_real_kubo(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "trees").mkdir()
    cases = make_files(tmp_path / "files") + make_directories(tmp_path / "trees")
    expected = kubo(cases)
    different = [case.name for case, name in zip(cases, expected, strict=True) if str(ours(case).cid) != name]
    assert different == []


@pytest.mark.kubo
def test_import_path__largest_plain_directory__plain_in_a_real_kubo_too(tmp_path: Path) -> None:
    """Kubo's own threshold lies where ours does or above, whatever its profile."""
    for number in range(5459):
        (tmp_path / f"{number:04}").touch()
    assert [str(ours_of(tmp_path).cid)] == kubo([Case(tmp_path)])
    block = unixfs.encode_directory([Link(cids.of(b""), b"%04d" % number, 0) for number in range(5459)])
    (tmp_path / ("x" * (unixfs.DIRECTORY_BLOCK_BYTES - len(block) - 44))).touch()
    assert [str(ours_of(tmp_path).cid)] == kubo([Case(tmp_path)])


def make_large(root: Path) -> list[Case]:
    """Make a directory one byte above what a plain block holds, and one inside another that is above it by far."""
    edge, inner = root / "edge", root / "outer" / "inner"
    edge.mkdir()
    for number in range(5459):
        (edge / f"{number:04}").touch()
    # Kubo without the profile would still write a plain block.
    (edge / ("x" * 65)).touch()
    inner.mkdir(parents=True)
    for number in range(1400):
        (inner / f"{number:0150}").write_bytes(b"%d" % (number % 3))
    return [Case(edge), Case(root / "outer")]


@pytest.mark.slow
def test_import_path__directories_above_the_limit__equal_to_the_npm_importer(tmp_path: Path) -> None:
    cases = make_large(tmp_path)
    found = [(str(entry.cid), entry.tsize) for entry in map(ours, cases)]
    assert found == javascript(cases)


@pytest.mark.slow
@pytest.mark.kubo
def test_import_path__directories_above_the_limit__equal_to_a_real_kubo(tmp_path: Path) -> None:
    (tmp_path / "trees").mkdir()
    cases = make_large(tmp_path / "trees")
    assert [str(ours(case).cid) for case in cases] == kubo_with_profile(cases, tmp_path / "repo")


def test_import_file__constants__are_the_markets() -> None:
    """The constants are part of every CID in the market: a change is a new protocol version."""
    assert (unixfs.CHUNK_BYTES, unixfs.LINKS_PER_NODE, unixfs.DIRECTORY_BLOCK_BYTES) == (2**20, 1024, 2**18)
    assert unixfs.SHARD_FANOUT == 256


class Dripping(io.RawIOBase):
    """Give a stream's bytes in small uneven pieces, as pipes and sockets do."""

    def __init__(self, content: bytes, step: int) -> None:
        self._content = io.BytesIO(content)
        self._step = step

    def read(self, size: int = -1) -> bytes:
        return self._content.read(min(size, self._step))


@given(st.binary(max_size=200), st.integers(1, 9), st.integers(2, 4), st.integers(1, 20))
def test_import_file__any_content__reads_back_whatever_the_stream_gives(
    content: bytes, chunk: int, links: int, step: int
) -> None:
    store = MemoryStore()
    entry = unixfs.import_file(io.BytesIO(content), store, chunk_bytes=chunk, links_per_node=links)
    dripped = unixfs.import_file(Dripping(content, step), store, chunk_bytes=chunk, links_per_node=links)  # type: ignore[arg-type]
    assert entry == dripped
    assert b"".join(unixfs.read_file(entry.cid, store)) == content
    assert entry.size == len(content)
    assert [found.size for found in unixfs.walk(entry.cid, store)] == [len(content)]
    assert unixfs.declared_size(entry.cid, store) == len(content)


def test_import_path__progress__adds_up_to_the_content(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(bytes(2500))
    (tmp_path / "y").write_bytes(b"abc")
    moved: dict[str, int] = {}

    def note(path: str, size: int) -> None:
        moved[path] = moved.get(path, 0) + size

    entry = unixfs.import_path(tmp_path, Hasher(), chunk_bytes=1000, progress=note)
    assert moved == {"a/x": 2500, "y": 3}
    assert (entry.size, entry.files, entry.kind) == (2503, 2, "directory")


def test_name_path__tree__is_named_as_it_is_imported(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(3 * 2**20))
    (tmp_path / "b").mkdir()
    (tmp_path / "left out").write_bytes(b"x")
    told: list[tuple[str, int]] = []
    rules: dict[str, Any] = {"ignore": lambda path, _: path == "left out"}
    named = unixfs.name_path(tmp_path, progress=lambda *moved: told.append(moved), **rules)
    assert named == unixfs.import_path(tmp_path, MemoryStore(), **rules)
    assert (named.files, named.folders, named.size) == (1, 2, 3 * 2**20) == (1, 2, sum(size for _, size in told))


def test_import_path__below_a_link__is_taken_unless_it_was_resolved_before(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("there")
    below = tmp_path / "link" / "file"
    for act in (
        lambda **how: unixfs.import_path(below, MemoryStore(), **how),
        lambda **how: unixfs.name_path(below, **how),
    ):
        assert act().cid == cids.of(b"x")
        with pytest.raises(StorageError):
            act(still=True)


def test_import_path__ignored_entries__left_out_and_not_entered(tmp_path: Path) -> None:
    (tmp_path / "keep").write_bytes(b"1")
    plain = ours_of(tmp_path)
    (tmp_path / "skip").mkdir()
    (tmp_path / "skip" / "link").symlink_to("/etc/passwd")
    asked: list[tuple[str, bool]] = []

    def ignore(path: str, is_directory: bool) -> bool:
        asked.append((path, is_directory))
        return path == "skip"

    assert unixfs.import_path(tmp_path, Hasher(), ignore=ignore) == plain
    assert asked == [("keep", False), ("skip", True)]


def ours_of(path: Path) -> Entry:
    return unixfs.import_path(path, Hasher())


# ---------------------------------------------------------------- import: refused by name


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(path))


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda path: path.symlink_to("/etc/passwd"), "symbolic link"),
        (lambda path: path.symlink_to("nowhere"), "symbolic link"),
        (lambda path: path.symlink_to("."), "symbolic link"),
        (make_fifo, "pipe"),
        (make_socket, "socket"),
    ],
)
def test_import_path__no_regular_file__refused_by_name(
    tmp_path: Path, make: object, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(make)
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)  # a unix socket's path is short
    make(Path("sub/odd"))
    for root in (tmp_path, tmp_path / "sub" / "odd"):
        with pytest.raises(UnsafePath, match=named) as caught:
            ours_of(root)
        assert "odd" in caught.value.message
        assert (caught.value.code, caught.value.exit_code) == ("UNSAFE_PATH", 9)


def test_import_path__device__refused_by_name() -> None:
    with pytest.raises(UnsafePath, match="/dev/null is a device"):
        ours_of(Path("/dev/null"))


@pytest.mark.parametrize("swapped", ["link", "pipe"])
def test_import_path__entry_swapped_after_the_look__still_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    (tmp_path / "plain").write_bytes(b"")
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    looked = (tmp_path / "plain").stat()
    monkeypatch.setattr("hearth.storage.unixfs.importer.os.stat", lambda *args, **options: looked)
    assert ours_of(tmp_path / "plain").size == 0
    with pytest.raises(StorageError):
        ours_of(tmp_path / swapped)


def test_encode_directory__links_in_any_order__sorted_by_bytes() -> None:
    child = cids.of(b"")
    names = [b"Z", b"a", b"a-b", b"a.b", b"aa", "\u00fc".encode(), "\U0001f525".encode()]
    blocks = {unixfs.encode_directory([Link(child, name, 0) for name in order]) for order in (names, names[::-1])}
    assert len(blocks) == 1
    block = blocks.pop()
    assert [link.name for link in unixfs.decode_dag_node(cids.of(block, cids.DAG_PB), block).links] == names


def test_walk__tree__tells_each_entry_as_its_nodes_declare_it(tmp_path: Path) -> None:
    store = MemoryStore()
    (tmp_path / "in" / "b").mkdir(parents=True)
    (tmp_path / "in" / "a").write_bytes(bytes(100))
    (tmp_path / "in" / "b" / "c").write_bytes(b"12345")
    root = unixfs.import_path(tmp_path / "in", store, chunk_bytes=40)
    top, file, folder, inner = unixfs.walk(root.cid, store)
    below = unixfs.import_path(tmp_path / "in" / "b", MemoryStore())
    whole = unixfs.import_path(tmp_path / "in" / "a", MemoryStore(), chunk_bytes=40)
    assert top == Entry(root.cid, "directory", 0, 0, 0, "")
    assert file == Entry(whole.cid, "file", 100, whole.tsize, 1, "a")
    assert folder == Entry(below.cid, "directory", 0, below.tsize, 0, "b")
    assert inner == Entry(cids.of(b"12345"), "file", 5, 5, 1, "b/c")
    out = unixfs.export(root.cid, store, tmp_path / "out")
    assert (out.size, out.files) == (105, 2)


@pytest.mark.parametrize("size", [0, 5])
def test_export__lone_file__tells_its_size_and_its_progress(tmp_path: Path, size: int) -> None:
    store, told = MemoryStore(), list[tuple[str, int]]()
    root = unixfs.import_file(io.BytesIO(bytes(size)), store, chunk_bytes=2)
    out = unixfs.export(root.cid, store, tmp_path / "out", progress=lambda *moved: told.append(moved))
    assert (out.size, out.files, out.kind) == (size, 1, "file") and sum(moved for _, moved in told) == size


def test_import_path__missing__not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="absent") as caught:
        ours_of(tmp_path / "absent")
    assert caught.value.exit_code == 7


def test_import_path__unreadable_path__named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="below cannot be read") as caught:
        ours_of(tmp_path / "file" / "below")
    assert caught.value.code == "UNREADABLE"


UNSEEN = [
    "\x9b31m",  # C1: a terminal's control sequence
    "invoice\u202egpj.exe",
    "\u2066a",
    "a\u200b",
    "a\u200db",
    "a\ufeff",
    "a\xadb",
    "a\u2028b",
    "\u3164",
    "a\ufe0f",
    "a\U000e0041",
    "\ufff9a",
]


@pytest.mark.parametrize("name", UNSEEN, ids=ascii)
def test_import_and_export__name_that_hides_or_moves_text__refused_and_spelled_out(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).touch()
    store = MemoryStore()
    for act in (
        lambda: ours_of(tmp_path / "in"),
        lambda: unixfs.export(directory(store, (name.encode(), store.put_block(b""))), store, tmp_path / "out"),
    ):
        with pytest.raises(UnsafePath, match=r"holds U\+[0-9A-F]{4,6}") as caught:
            act()
        assert caught.value.message.isprintable() and repr(name.encode()) in caught.value.message
    assert not (tmp_path / "out").exists()


def test_check_name__every_character__refused_by_the_same_properties_as_unicode_says() -> None:
    """The ranges are written out, so that no Python's tables decide; here they are held against this Python's."""
    import unicodedata

    for number in (*range(0xD800), *range(0xE000, 0x110000)):
        character = chr(number)
        category = unicodedata.category(character)
        try:
            unixfs.check_name(f"a{character}".encode(), "")
        except UnsafePath:
            continue
        assert category not in ("Cc", "Zl", "Zp"), hex(number)
        # Format characters that are seen: signs over numbers in Arabic, Syriac, Kaithi; Egyptian joiners.
        assert category != "Cf" or 0x600 <= number < 0x900 or number in (0x110BD, 0x110CD) or number >> 8 == 0x134


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\\b", b"a\nb", b"\x1b[31m", b"C:x", b"x\x7f"])
def test_import_path__name_that_cannot_travel__refused_by_name(tmp_path: Path, name: bytes) -> None:
    with open(os.path.join(os.fsencode(tmp_path), name), "wb"):
        pass
    with pytest.raises(UnsafePath) as caught:
        ours_of(tmp_path)
    assert repr(name) in caught.value.message


@pytest.mark.parametrize(
    ("first", "second"),
    [("Makefile", "makefile"), ("\u00fc", "u\u0308"), ("stra\u00dfe", "STRASSE"), ("\u212b", "\u00e5")],
)
def test_import_path__names_equal_on_other_file_systems__refused(tmp_path: Path, first: str, second: str) -> None:
    (tmp_path / first).write_bytes(b"")
    (tmp_path / second).write_bytes(b"")
    with pytest.raises(UnsafePath, match="case or Unicode"):
        ours_of(tmp_path)


def test_import_path__depth_and_length_at_and_above_the_limit__taken_and_refused(tmp_path: Path) -> None:
    deep = tmp_path / "deep"
    for _ in range(unixfs.MAX_PATH_DEPTH - 1):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"")
    ours_of(tmp_path / "deep")
    with pytest.raises(UnsafePath, match="deeper"):
        ours_of(tmp_path)
    long = tmp_path / "long" / ("n" * 100) / ("m" * 100)
    long.mkdir(parents=True)
    (long / ("x" * 53)).write_bytes(b"")
    ours_of(tmp_path / "long")
    (long / ("y" * 54)).write_bytes(b"")
    with pytest.raises(UnsafePath, match="255"):
        ours_of(tmp_path / "long")


def test_put_directory__block_at_and_above_the_limit__plain_and_sharded() -> None:
    child = cids.of(b"")
    links = [Link(child, b"%04d" % number, 0) for number in range(5459)]
    room = unixfs.DIRECTORY_BLOCK_BYTES - len(unixfs.encode_directory(links))
    # A link of an n-byte name (n < 79) takes 44 + n bytes more than nothing; the last one fills the block exactly.
    assert 0 < room < 44 + 79
    store = MemoryStore()
    for name, fanout in ((b"x" * (room - 44), 0), (b"x" * (room - 43), unixfs.SHARD_FANOUT)):
        root, _ = unixfs.put_directory([*links, Link(child, name, 0)], store)
        node = unixfs.decode_dag_node(root, store.get_block(root))
        assert node.fanout == fanout
        assert len({path for entry in unixfs.walk(root, Empty(store)) if (path := entry.path)}) == 5460


class Empty:
    """Give a store's blocks, and the empty one that it was never given."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    def get_block(self, cid: Cid) -> bytes:
        return b"" if cid == cids.of(b"") else self.store.get_block(cid)


@pytest.mark.parametrize(
    ("name", "hashed"),
    [
        (b"", 0),
        (b"hello", 0xCBD8A7B341BD9B02),
        (b"hello, world", 0x342FAC623A5EBC8E),
        (b"19 Jan 2038 at 3:14:07 AM", 0xB89E5988B737AFFC),
        (b"The quick brown fox jumps over the lazy dog.", 0xCD99481F9EE902C9),
    ],
)
def test_hash_name__published_vectors__the_same(name: bytes, hashed: int) -> None:
    """Those of the Go implementation that Kubo uses (spaolacci/murmur3)."""
    assert unixfs.hash_name(name) == hashed


def test_put_directory__links_in_any_order__the_same_shards() -> None:
    links = [Link(cids.of(b"%d" % number), b"entry %d" % number, number) for number in range(7000)]
    expected = unixfs.put_directory(links, Hasher())
    for seed in range(3):
        random.Random(seed).shuffle(links)
        assert unixfs.put_directory(links, Hasher()) == expected


SAME_HASH = (b"CUf]iIr#s{!re(f8", b"JP^<n1X*>}p9EMdF")
"""Names with the same hash, found by running the hash backwards, as a guest could."""


def test_put_directory__names_with_one_hash__refused_where_a_shard_would_have_to_tell_them_apart() -> None:
    assert unixfs.hash_name(SAME_HASH[0]) == unixfs.hash_name(SAME_HASH[1])
    few = [Link(cids.of(b""), name, 0) for name in SAME_HASH]
    unixfs.put_directory(few, Hasher())
    many = [Link(cids.of(b""), b"%d" % number, 0) for number in range(7000)]
    both = re.escape(f"{SAME_HASH[0]!r} and {SAME_HASH[1]!r} in data have the same hash")
    with pytest.raises(UnsafePath, match=both):
        unixfs.put_directory([*many, *few], Hasher(), "data")


def test_import_path__six_thousand_files__read_back_within_their_own_limits(tmp_path: Path) -> None:
    """What a cheat gains: nothing. Small files once had no name, and their job was paid without outputs."""
    (tmp_path / "sub").mkdir()
    for number in range(6000):
        (tmp_path / "sub" / f"{number}").write_bytes(b"%d" % (number % 7))
    store = MemoryStore()
    entry = unixfs.import_path(tmp_path, store)
    assert (entry.size, entry.files) == (6000, 6000)
    limits = ReadLimits.of_market(6000, 6002)
    found = [one for one in unixfs.walk(entry.cid, store, limits) if one.kind == "file"]
    assert {one.path: store.get_block(one.cid) for one in found} == {f"sub/{n}": b"%d" % (n % 7) for n in range(6000)}
    assert sum(len(block) for _, block in unixfs.blocks_of(entry.cid, store)) < 2**20
    assert unixfs.resolve(entry.cid, "sub/5999", store, limits) == cids.of(b"0")
    with pytest.raises(TooLarge, match="6001 entries"):
        list(unixfs.walk(entry.cid, store, ReadLimits.of_market(6000, 6001)))


# ---------------------------------------------------------------- export


def test_export__every_tree__the_same_tree(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    store = MemoryStore()
    for case in make_directories(tmp_path / "in"):
        entry = unixfs.import_path(case.path, store)
        dest = tmp_path / f"out-{case.path.name}"
        written = unixfs.export(entry.cid, store, dest)
        assert tree(dest) == tree(case.path)
        assert (written.size, written.files) == (entry.size, entry.files)
        walked = {found.path for found in unixfs.walk(entry.cid, store)} - {""}
        assert walked == set(tree(case.path))
    assert leftovers(tmp_path) == []


names = st.text("abcXYZ \u00fc\u65e5.-_", min_size=1, max_size=8).filter(lambda name: name not in (".", ".."))
trees = st.recursive(st.binary(max_size=40), lambda inner: st.dictionaries(names, inner, max_size=4), max_leaves=10)


@given(trees)
@settings(max_examples=60)
def test_export__any_tree_that_imports__the_same_tree(made: object) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        source, dest = Path(folder) / "source", Path(folder) / "dest"

        def make(path: Path, node: object) -> None:
            if isinstance(node, bytes):
                path.write_bytes(node)
                return
            assert isinstance(node, dict)
            path.mkdir()
            for name, child in node.items():
                make(path / name, child)

        make(source, made)
        store = MemoryStore()
        try:
            entry = unixfs.import_path(source, store, chunk_bytes=7, links_per_node=2)
        except UnsafePath:
            return  # two names of one directory differ only in case or Unicode form
        unixfs.export(entry.cid, store, dest)
        assert (dest.read_bytes() == made) if isinstance(made, bytes) else (tree(dest) == tree(source))


def test_export__destination_taken__refused_and_untouched(tmp_path: Path) -> None:
    store = MemoryStore()
    entry = unixfs.import_file(io.BytesIO(b"new"), store)
    taken = tmp_path / "taken"
    taken.write_bytes(b"old")
    full = tmp_path / "full"
    full.mkdir()
    (full / "x").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    for dest in (taken, full, link, tmp_path / "absent" / "x"):
        with pytest.raises(BadDestination) as caught:
            unixfs.export(entry.cid, store, dest)
        assert (caught.value.code, caught.value.exit_code) == ("BAD_DESTINATION", 9)
    assert (taken.read_bytes(), (full / "x").read_bytes()) == (b"old", b"old")
    assert not (tmp_path / "elsewhere").exists()
    assert leftovers(tmp_path) == []


def test_export__empty_directory_as_destination__filled(tmp_path: Path) -> None:
    store = MemoryStore()
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "x").write_bytes(b"1")
    entry = unixfs.import_path(tmp_path / "source", store)
    (tmp_path / "dest").mkdir()
    unixfs.export(entry.cid, store, tmp_path / "dest")
    assert tree(tmp_path / "dest") == {"x": b"1"}


def test_export__every_block_missing_in_turn__nothing_written(tmp_path: Path) -> None:
    store = MemoryStore()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(bytes(range(200)))
    (tmp_path / "in" / "b").mkdir()
    (tmp_path / "in" / "b" / "c").write_bytes(b"c")
    entry = unixfs.import_path(tmp_path / "in", store, chunk_bytes=16, links_per_node=4)
    whole = dict(store.blocks)
    assert len(whole) > 15
    held = os.listdir("/dev/fd")
    for digest in whole:
        store.blocks = {key: block for key, block in whole.items() if key != digest}
        with pytest.raises(BlockMissing):
            unixfs.export(entry.cid, store, tmp_path / "out")
        assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert len(os.listdir("/dev/fd")) == len(held), "what runs for months would run out of them"


def test_export__every_block_with_a_bit_flipped__nothing_written(tmp_path: Path) -> None:
    store = MemoryStore()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(bytes(range(200)))
    (tmp_path / "in" / "b").mkdir()
    entry = unixfs.import_path(tmp_path / "in", store, chunk_bytes=16, links_per_node=4)
    whole = dict(store.blocks)
    for digest, block in whole.items():
        for bit in (0, len(block) * 4, len(block) * 8 - 1):
            spoilt = bytearray(block)
            spoilt[bit // 8] ^= 1 << bit % 8
            store.blocks = {**whole, digest: bytes(spoilt)}
            with pytest.raises(BlockCorrupt):
                unixfs.export(entry.cid, store, tmp_path / "out")
            assert [path.name for path in tmp_path.iterdir()] == ["in"]
    store.blocks = whole
    unixfs.export(entry.cid, store, tmp_path / "out")


def test_export__umask_and_modes__plain_files_and_directories(tmp_path: Path) -> None:
    store = MemoryStore()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "run.sh").write_bytes(b"#!")
    (tmp_path / "in" / "run.sh").chmod(0o4755)
    entry = unixfs.import_path(tmp_path / "in", store)
    old = os.umask(0o022)
    try:
        unixfs.export(entry.cid, store, tmp_path / "out")
    finally:
        os.umask(old)
    assert (tmp_path / "out" / "run.sh").stat().st_mode & 0o7777 == 0o644
    assert (tmp_path / "out").stat().st_mode & 0o7777 == 0o755


def test_export__killed_before_the_rename__no_destination(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(b"a")
    script = """
import os, sys
from pathlib import Path
from hearth.storage import unixfs
from hearth.storage.stores import MemoryStore
store = MemoryStore()
entry = unixfs.import_path(Path(sys.argv[1]), store)
os.rename = lambda *names: os._exit(9)
unixfs.export(entry.cid, store, Path(sys.argv[2]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "in", tmp_path / "out"], cwd=ROOT, env=python_path(), check=False
    )
    assert done.returncode == 9
    assert not (tmp_path / "out").exists()
    assert len(leftovers(tmp_path)) == 1  # named so that its owner can sweep it


def python_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.fspath(ROOT)}


@pytest.mark.parametrize(
    "name",
    [
        b"",
        b".",
        b"..",
        b"/etc/passwd",
        b"../x",
        b"a/b",
        b"a\\b",
        b"a\0b",
        b"a\nb",
        b"C:evil",
        b"\xff",
        b"\xed\xa0\x80",
        b"x" * 256,
    ],
)
def test_export__hostile_name__refused_and_nothing_written(tmp_path: Path, name: bytes) -> None:
    store = MemoryStore()
    leaf = store.put_block(b"evil")
    below = directory(store, (b"d", directory(store, (name, leaf))))
    for root in (directory(store, (name, leaf)), below):
        for act in (
            lambda root: unixfs.export(root, store, tmp_path / "out"),
            lambda root: list(unixfs.walk(root, store)),
            lambda root: unixfs.count_entries(root, store),
            lambda root: unixfs.resolve(root, "d/x" if root == below else "x", store),
        ):
            with pytest.raises(UnsafePath) as caught:
                act(root)
            assert caught.value.details["path"] == f"{'d' if root == below else '.'}/{name[:80]!r}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("first", "second"), [(b"a", b"a"), (b"A", b"a"), ("\u00fc".encode(), "u\u0308".encode())])
def test_export__names_that_collide__refused_and_nothing_written(tmp_path: Path, first: bytes, second: bytes) -> None:
    store = MemoryStore()
    leaf = store.put_block(b"x")
    with pytest.raises(UnsafePath, match="stands twice" if first == second else "only in case or Unicode form"):
        unixfs.export(directory(store, (first, leaf), (second, leaf)), store, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_export__path_too_deep_or_long__refused(tmp_path: Path) -> None:
    store = MemoryStore()
    leaf = store.put_block(b"x")
    root = directory(store, (b"f", leaf))
    for _ in range(unixfs.MAX_PATH_DEPTH - 1):
        root = directory(store, (b"d", root))
    unixfs.export(root, store, tmp_path / "out")
    with pytest.raises(UnsafePath, match="deeper"):
        unixfs.export(directory(store, (b"d", root)), store, tmp_path / "out2")
    long = directory(store, (b"a" * 128, directory(store, (b"b" * 127, leaf))))
    with pytest.raises(UnsafePath, match="255"):
        unixfs.export(long, store, tmp_path / "out3")


def test_export__symlink_node__refused_by_name(tmp_path: Path) -> None:
    store = MemoryStore()
    link = put(store, data(4, b"/etc/passwd"))
    for root in (link, directory(store, (b"x", link))):
        with pytest.raises(UnsafePath, match="symlink"):
            unixfs.export(root, store, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- names that programs obey


OBEYED = """
.git .GIT .Git GIT~1 git~1 .git. .hg .svn .envrc .EnvRC .vscode .idea .github .npmrc .cargo HEAD head desktop.ini
AUTORUN.INF ENVRC~12 CONFIG~1.TOM .dir-locals.el .perldb .Rprofile .RData .octaverc .ghci .irbrc .pryrc startup.m
.what-nobody-thought-of ...x
"""


@pytest.mark.parametrize("name", [*OBEYED.split(), ".git ", ".git::$INDEX_ALLOCATION", ".\u017fvn"])
def test_export__name_that_programs_obey__written_under_another_and_told(tmp_path: Path, name: str) -> None:
    """What a cheat gains: nothing. A result with .git/config once ran a command at the next `git status`."""
    store = MemoryStore()
    inner = directory(store, (b"config", store.put_block(b"[core]")))
    root = directory(store, (b"sub", directory(store, (name.encode(), inner))))
    told: list[tuple[str, str]] = []
    unixfs.export(root, store, tmp_path / "out", renamed=lambda path, place: told.append((path, place)))
    assert told == [(f"sub/{name}", f"renamed-{name}")]
    assert tree(tmp_path / "out") == {
        "sub": None,
        f"sub/renamed-{name}": None,
        f"sub/renamed-{name}/config": b"[core]",
    }
    unixfs.export(root, store, tmp_path / "plain")
    assert (tmp_path / "plain" / "sub" / name / "config").is_file()


@pytest.mark.parametrize(
    "name", ["git", "gitx", "header", "head.csv", ".zarray", ".zmetadata", ".metadata", "a~b", "x.y", "renamed-.git"]
)
def test_export__other_name__kept(tmp_path: Path, name: str) -> None:
    store = MemoryStore()
    told: list[str] = []
    root = directory(store, (name.encode(), store.put_block(b"x")))
    unixfs.export(root, store, tmp_path / "out", renamed=lambda path, _: told.append(path))
    assert tree(tmp_path / "out") == {name: b"x"} and told == []


@pytest.mark.parametrize("other", ["renamed-.git", "RENAMED-.GIT"])
def test_export__both_names_in_one_folder__refused(tmp_path: Path, other: str) -> None:
    store = MemoryStore()
    leaf = store.put_block(b"x")
    for names in ((b".git", other.encode()), (other.encode(), b".git")):
        root = directory(store, *((name, leaf) for name in names))
        with pytest.raises(UnsafePath, match=r"stands twice|only in case"):
            unixfs.export(root, store, tmp_path / "out", renamed=lambda path, place: None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bare", [False, True], ids=["git-folder", "bare-repository"])
def test_export__repository_with_a_command__the_real_git_does_not_run_it(tmp_path: Path, bare: bool) -> None:
    program = shutil.which("git")
    require("git", program is not None, "no git on PATH")
    canary = tmp_path / "canary"
    worktree = "\tbare = false\n\tworktree = worktree\n" if bare else ""
    config = f"[core]\n\trepositoryformatversion = 0\n{worktree}\tfsmonitor = touch {canary}; true\n".encode()
    store = MemoryStore()
    empty = directory(store)
    head = store.put_block(b"ref: refs/heads/main\n")
    entries = [(b"HEAD", head), (b"config", store.put_block(config)), (b"objects", empty), (b"refs", empty)]
    entries.append((b"worktree", empty))
    root = directory(store, *entries) if bare else directory(store, (b".git", directory(store, *entries)))
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    environ["GIT_CEILING_DIRECTORIES"] = str(tmp_path)
    for dest, renamed, ran in ((tmp_path / "armed", None, True), (tmp_path / "out", lambda path, place: None, False)):
        unixfs.export(root, store, dest, renamed=renamed)
        subprocess.run([str(program), "status"], cwd=dest, env=environ, capture_output=True, check=False)
        assert canary.exists() is ran
        canary.unlink(missing_ok=True)


# ---------------------------------------------------------------- reading what other tools write


def test_read_file__dag_pb_leaves_and_inline_data__content_in_order() -> None:
    store = MemoryStore()
    old_leaf = put(store, data(0, b"world", 5))  # Kubo's trickle leaves have type raw
    file_leaf = put(store, data(2, b"!", 1))
    trickle = put(store, data(2, b"hello ", 12, (5, 1)), (b"", old_leaf), (b"", file_leaf))
    assert b"".join(unixfs.read_file(trickle, store)) == b"hello world!"
    version_0 = Cid(0, cids.DAG_PB, cids.SHA2_256, trickle.digest)
    assert b"".join(unixfs.read_file(version_0, store)) == b"hello world!"


def test_read_file__data_before_links_and_packed_sizes__read() -> None:
    store = MemoryStore()
    leaf = store.put_block(b"ab")
    message = field(1, 2) + field(3, 4) + field(4, b"\x02\x02") + field(7, 0o644)
    link = field(2, field(1, bytes(leaf)))
    root = store.put_block(field(1, message) + link + link, cids.DAG_PB)
    assert b"".join(unixfs.read_file(root, store)) == b"abab"


def test_walk__sharded_directory__entries_without_their_slots(tmp_path: Path) -> None:
    store = MemoryStore()
    leaf = store.put_block(b"x")
    shard = field(1, 5) + field(2, b"\x01") + field(5, 0x22) + field(6, 256)
    inner = put(store, shard, (b"3Fdeep name", leaf))
    root = put(store, shard, (b"00first", leaf), (b"A1", inner), (b"FFlast", leaf))
    assert [entry.path for entry in unixfs.walk(root, store)] == ["", "first", "deep name", "last"]
    unixfs.export(root, store, tmp_path / "out")
    assert tree(tmp_path / "out") == {"first": b"x", "deep name": b"x", "last": b"x"}
    assert unixfs.resolve(root, "deep name", store) == leaf
    with pytest.raises(UnsafePath):
        list(unixfs.walk(put(store, shard, (b"00x", leaf), (b"01x", leaf)), store))
    with pytest.raises(BlockCorrupt):
        list(unixfs.walk(put(store, shard, (b"00", leaf)), store))


def test_resolve__paths__the_entry_or_not_found(tmp_path: Path) -> None:
    store = MemoryStore()
    leaf = store.put_block(b"x")
    inner = directory(store, (b"c d", leaf))
    root = directory(store, (b"a", inner))
    assert unixfs.resolve(root, "", store) == root
    assert unixfs.resolve(root, "/a/", store) == inner
    assert unixfs.resolve(root, "a/c d", store) == unixfs.resolve(root, "a/c%20d", store) == leaf
    written = directory(store, (b"c%20d", inner), (b"c d", leaf))
    assert unixfs.resolve(written, "c%20d", store) == inner, "a name as it stands comes first"
    for path in ("b", "a/b", "a/c d/e", "a/..", "."):
        with pytest.raises(NotFoundError):
            unixfs.resolve(root, path, store)


# ---------------------------------------------------------------- hostile DAGs


def bomb(store: MemoryStore, doublings: int) -> Cid:
    """Build a file of 2**doublings bytes out of a few small blocks, each linking twice to the one below."""
    here, size = store.put_block(b"\0"), 1
    for _ in range(doublings):
        here, size = put(store, data(2, None, size * 2, (size, size)), (b"", here), (b"", here)), size * 2
    return here


SHARD = field(1, 5) + field(2, b"\xff") + field(5, 0x22) + field(6, 256)


class Counting:
    """Give a store's blocks and count how often."""

    def __init__(self, store: MemoryStore) -> None:
        self.store, self.reads = store, 0

    def get_block(self, cid: Cid) -> bytes:
        self.reads += 1
        return self.store.get_block(cid)


def test_walk__shards_that_share_their_children__each_read_once_and_refused(tmp_path: Path) -> None:
    """What a cheat gains: nothing. 256 links to one shard, level after level, were once 256^63 reads of a few kB."""
    store = MemoryStore()
    here = put(store, SHARD, (b"00name", store.put_block(b"x")))
    for _ in range(7):
        here = put(store, SHARD, *((b"%02X" % slot, here) for slot in range(256)))
    source = Counting(store)
    for act in (
        lambda: list(unixfs.walk(here, source)),
        lambda: unixfs.export(here, source, tmp_path / "out"),
        lambda: unixfs.resolve(here, "name", source),
    ):
        source.reads = 0
        with pytest.raises(BlockCorrupt, match="no part of a sharded directory"):
            act()
        assert source.reads <= len(store.blocks)
    assert list(tmp_path.iterdir()) == []


def test_walk__shard_below_the_last_bit_of_a_hash__refused() -> None:
    store = MemoryStore()
    here = put(store, SHARD, (b"00name", store.put_block(b"x")))
    for level in range(8):
        assert len(list(unixfs.walk(here, store))) == 2, level
        here = put(store, SHARD, (b"%02X" % level, here))
    with pytest.raises(BlockCorrupt, match="no part of a sharded directory"):
        list(unixfs.walk(here, store))


def test_walk__shard_of_another_fanout_or_no_shard__refused() -> None:
    store = MemoryStore()
    leaf = store.put_block(b"x")
    small = put(store, field(1, 5) + field(2, b"\x01") + field(5, 0x22) + field(6, 16), (b"0name", leaf))
    for child in (small, directory(store, (b"name", leaf))):
        with pytest.raises(BlockCorrupt, match="no part of a sharded directory"):
            list(unixfs.walk(put(store, SHARD, (b"00", child)), store))


def test_export__path_above_its_own_limit__refused_before_a_byte_of_it_is_read(tmp_path: Path) -> None:
    store = MemoryStore()
    leaf = store.put_block(b"12345")
    root = directory(store, (b"log", leaf), (b"model", directory(store, (b"a", leaf), (b"b", leaf))))

    def limits(log: int, model: int) -> ReadLimits:
        return ReadLimits.of_market(100, 5, (("log", log), ("model", model)))

    unixfs.export(root, store, tmp_path / "whole", limits(5, 10))
    with pytest.raises(TooLarge, match="more than 4 bytes in log"):
        unixfs.export(root, store, tmp_path / "out", limits(4, 10))
    with pytest.raises(TooLarge, match="more than 9 bytes in model"):
        unixfs.export(root, store, tmp_path / "out", limits(5, 9))
    big = directory(store, (b"log", bomb(store, 20)))
    source = Counting(store)
    with pytest.raises(TooLarge, match="more than 5 bytes in log"):
        unixfs.export(big, source, tmp_path / "out", ReadLimits.of_market(2**30, 5, (("log", 5),)))
    assert source.reads == 2
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_read_file__bomb_that_declares_its_size__refused_before_a_leaf_is_read() -> None:
    store = MemoryStore()
    root = bomb(store, 30)
    assert sum(len(block) for block in store.blocks.values()) < 4096
    store.blocks = {root.digest: store.blocks[root.digest]}
    with pytest.raises(TooLarge, match="bytes"):
        next(unixfs.read_file(root, store, ReadLimits(max_bytes=2**30 - 1)))


def test_export__bombs__refused_in_small_memory(tmp_path: Path) -> None:
    """2^30 logical bytes in 2 KB of blocks, as file, as parts that lie about their size, and as directories."""
    script = """
import resource, sys, time
from pathlib import Path
from hearth.storage import unixfs
from hearth.base.errors import TooLarge, BlockCorrupt
from hearth.storage.unixfs import ReadLimits
from hearth.storage.stores import MemoryStore
from tests.storage.test_unixfs import bomb, data, directory, put
store = MemoryStore()
file = bomb(store, 30)
liar = put(store, data(2, None, 1, (1,)), (b"", file))
inner = store.put_block(b"")
for _ in range(15):
    inner = directory(store, *((b"%x" % i, inner) for i in range(16)))
empties = store.put_block(b"")
for _ in range(8):
    empties = put(store, data(2, None, 0, (0,) * 16), *[(b"", empties)] * 16)
wide = put(store, data(2, None, 0, (0,) * 40000), *[(b"", store.put_block(b""))] * 40000)
wider = put(store, data(2, None, 0, (0,) * 4000), *[(b"", wide)] * 4000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
limits = ReadLimits(max_bytes=2**28, max_entries=1000, max_blocks=20_000)
for root, error in ((file, TooLarge), (liar, BlockCorrupt), (inner, TooLarge), (empties, TooLarge), (wider, TooLarge)):
    try:
        unixfs.export(root, store, Path(sys.argv[1]) / "out", limits)
    except error:
        print("refused")
try:
    for entry in unixfs.walk(inner, store, limits):
        pass
except TooLarge:
    print("refused")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path],
        cwd=ROOT,
        env=python_path(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *verdicts, grown_kib = done.stdout.split()
    assert verdicts == ["refused"] * 6
    assert int(grown_kib) < 64 * 1024
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("limits", "what"),
    [
        (ReadLimits(max_bytes=9), "bytes"),
        (ReadLimits(max_entries=3), "entries"),
        (ReadLimits(max_blocks=3), "blocks"),
    ],
)
def test_export__one_over_each_limit__refused(tmp_path: Path, limits: ReadLimits, what: str) -> None:
    store = MemoryStore()
    root = directory(
        *(store, (b"a", store.put_block(b"12345")), (b"b", directory(store, (b"c", store.put_block(b"67890")))))
    )
    unixfs.export(root, store, tmp_path / "whole", ReadLimits(max_bytes=10, max_entries=4, max_blocks=4))
    assert len(list(unixfs.walk(root, store, ReadLimits(max_bytes=10, max_entries=4, max_blocks=4)))) == 4
    with pytest.raises(TooLarge, match=f"more than . {what}") as caught:
        unixfs.export(root, store, tmp_path / "out", limits)
    assert caught.value.details["what"] == what
    if what != "bytes":
        with pytest.raises(TooLarge, match=f"more than . {what}"):
            list(unixfs.walk(root, store, limits))
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_limits__inner_nodes__are_far_above_what_an_importer_needs() -> None:
    assert ReadLimits(max_bytes=80, max_entries=2).max_node_bytes == 10 + 2 * 1024 + cids.MAX_BLOCK_BYTES


def test_read__source_gives_more_than_a_block_may_have__refused() -> None:
    class Huge:
        def get_block(self, cid: Cid) -> bytes:
            return bytes(cids.MAX_BLOCK_BYTES + 1)

    with pytest.raises(TooLarge, match="a block has at most"):
        list(unixfs.read_file(LEAF, Huge()))


@pytest.mark.parametrize("size", [0, 127, 128, 2**32, 2**63 - 1, 2**63, 2**64 - 1])
def test_decode_node__numbers_of_up_to_64_bits__read(size: int) -> None:
    link = field(2, field(1, bytes(LEAF)) + field(2, b"a") + field(3, size))
    block = link + field(1, data(1))
    (found,) = unixfs.decode_dag_node(cids.of(block, cids.DAG_PB), block).links
    assert found == Link(LEAF, b"a", size)


LEAF = cids.of(b"ab")
LINK = field(2, field(1, bytes(LEAF)) + field(2, b"") + field(3, 2))


@pytest.mark.parametrize(
    ("block", "why"),
    [
        (b"", "no UnixFS data"),
        (b"\x0a", "cut off"),
        (b"\x0a\x05ab", "longer than"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "64 bits"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "64 bits"),
        (b"\x0d\0\0\0\0", "wire type"),
        (field(1, data(2)) * 2, "twice"),
        (field(3, b"x") + field(1, data(2)), "unknown"),
        (field(1, 7), "unknown"),
        (LINK + field(1, data(2, None, 4, (2, 2))) + LINK, "between"),
        (field(2, field(2, b"") + field(1, bytes(LEAF))) + field(1, data(2, None, 2, (2,))), "out of order"),
        (field(2, field(2, b"x")) + field(1, data(1)), "names no block"),
        (field(2, field(1, bytes(LEAF)) + field(3, b"2")) + field(1, data(1)), "link field 3"),
        (field(2, field(1, bytes(LEAF)) + field(4, 2)) + field(1, data(1)), "link field 4"),
        (field(2, field(1, b"\x01\x55\x12\x20")) + field(1, data(1)), "digest"),
        (field(2, field(1, b"\x01\x55\x00\x02x")) + field(1, data(1)), "as long as it says"),
        (LINK + field(1, data(2, None, 2)), "1 links but 0 sizes"),
        (LINK + field(1, data(2, None, 3, (2,))), "declares 3 bytes"),
        (field(1, data(2, b"ab", 1)), "declares 1 bytes"),
        (field(1, data(9)), "type 9"),
        (field(1, b""), "type -1"),
        (field(1, field(1, 5) + field(5, 0x22) + field(6, 100)), "fanout 100"),
        (field(1, field(1, 5) + field(5, 0x12) + field(6, 256)), "hash 0x12"),
    ],
)
def test_decode_node__malformed__block_corrupt_with_the_reason(block: bytes, why: str) -> None:
    with pytest.raises(BlockCorrupt, match=why):
        unixfs.decode_dag_node(cids.of(block, cids.DAG_PB), block)


@given(st.binary(max_size=120))
@settings(max_examples=300)
def test_decode_node__any_bytes__a_node_or_block_corrupt(block: bytes) -> None:
    try:
        unixfs.decode_dag_node(cids.of(block, cids.DAG_PB), block)
    except BlockCorrupt:
        return


def test_read__all_content_in_nodes__counts_as_content_and_is_bounded_as_that(tmp_path: Path) -> None:
    """`ipfs add` without raw leaves: honest data. What a cheat gains: nothing, it is bounded all the same."""
    store, piece = MemoryStore(), bytes(256 * 1024)
    leaf = put(store, data(2, piece, len(piece)))
    root = put(store, data(2, None, 32 * len(piece), (len(piece),) * 32), *[(b"", leaf)] * 32)
    tree = put(store, data(1), (b"a", root), *[(b"b%d" % number, leaf) for number in range(8)])
    limits = ReadLimits(max_bytes=40 * len(piece), max_entries=10)
    assert unixfs.export(tree, store, tmp_path / "tree", limits).size == 40 * len(piece)
    assert unixfs.count_entries(tree, store, limits) == 10
    less = replace(limits, max_bytes=7 * len(piece))
    for read in (unixfs.count_entries, lambda *given: list(unixfs.walk(*given))):
        with pytest.raises(TooLarge, match="bytes"):
            read(tree, store, less)


class Counted:
    """A store that counts what is asked of it."""

    def __init__(self) -> None:
        self.store, self.asked = MemoryStore(), 0

    def get_block(self, cid: Cid) -> bytes:
        self.asked += 1
        return self.store.get_block(cid)


def unfolding(store: MemoryStore, wide: int, high: int, leaf: Cid, size: int) -> Cid:
    """Return a tree of wide ** high files from high + 1 blocks."""
    here = leaf
    for _ in range(high):
        size *= wide
        links = [field(2, field(1, bytes(here)) + field(2, b"%04d" % n) + field(3, size // wide)) for n in range(wide)]
        here = store.put_block(b"".join(links) + field(1, data(1)), cids.DAG_PB)
    return here


@pytest.mark.parametrize(
    ("limits", "leaf", "what"),
    [
        (ReadLimits.of_market(1 << 30, 16_385), b"x", "entries"),
        (ReadLimits(), b"x", "entries"),
        (ReadLimits(max_bytes=1 << 20, max_entries=2_000_000), bytes(100), "bytes"),
        (ReadLimits(1 << 40, 2_000_000, 10_000_000, (("0998", 1 << 20),)), bytes(2_000), "bytes in 0998"),
    ],
    ids=["market", "default", "bytes", "below"],
)
@pytest.mark.parametrize("in_nodes", [False, True])
def test_export__million_entries_from_three_blocks__refused_before_a_byte_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: ReadLimits, leaf: bytes, what: str, in_nodes: bool
) -> None:
    """W9: it wrote for more than 20 s. What a cheat gains: nothing, of his reader's disk or of his time."""
    source = Counted()
    held = put(source.store, data(2, leaf, len(leaf))) if in_nodes else source.store.put_block(leaf)
    root = unfolding(source.store, 1_000, 2, held, len(leaf))
    monkeypatch.setattr("hearth.storage.unixfs.exporter._Writer.write", lambda *_: pytest.fail("it writes"))
    with pytest.raises(TooLarge, match=f"more than .* {what}, the limit"):
        unixfs.export(root, source, tmp_path / "tree", limits)
    assert source.asked <= 3 and list(tmp_path.iterdir()) == []


def test_export__honest_tree__asks_for_each_node_once(tmp_path: Path) -> None:
    source = Counted()
    leaf = source.store.put_block(b"x")
    root = unfolding(source.store, 3, 2, leaf, 1)
    assert unixfs.export(root, source, tmp_path / "tree").files == 9
    assert source.asked == 2 + 9  # a leaf is read where it is written


def test_nodes__more_than_are_held__those_that_were_held_longest_go() -> None:
    nodes, node = reader.Nodes(), unixfs.decode_dag_node(*decoded(data(1)))
    quarter = reader.NODES_BYTES // 4
    names = [cids.of(b"%d" % number, cids.DAG_PB) for number in range(6)]
    for name in names[:4]:
        nodes.keep(name, node, quarter)
    assert [nodes.get(name) for name in names[:4]] == [(node, quarter)] * 4, "just as many as may be"
    nodes.keep(names[4], node, quarter)
    assert [nodes.get(name) is not None for name in names] == [False, True, True, True, True, False]
    nodes.keep(names[5], node, 4 * quarter)
    assert [nodes.get(name) is not None for name in names] == [False] * 5 + [True]


def decoded(message: bytes) -> tuple[Cid, bytes]:
    """Return a node's name and block."""
    block = field(1, message)
    return cids.of(block, cids.DAG_PB), block


def test_walk__inner_nodes_larger_than_their_content_needs__refused() -> None:
    """Parsing costs time too: 2 MiB of links to nothing, over and over, is no file of a few bytes."""
    store = MemoryStore()
    empty = store.put_block(b"")
    here = put(store, data(2, None, 0, (0,) * 20_000), *[(b"", empty)] * 20_000)
    for _ in range(3):
        here = put(store, data(2, None, 0, (0,) * 2), (b"", here), (b"", here))
    limits = ReadLimits(max_bytes=100, max_entries=1, max_blocks=10**9)
    with pytest.raises(TooLarge, match="inner nodes"):
        list(unixfs.read_file(here, store, limits))


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4))
@settings(max_examples=300)
def test_decode_node__mutated_node__a_node_or_block_corrupt(changes: list[tuple[int, int]]) -> None:
    store = MemoryStore()
    block = bytearray(store.blocks[unixfs.import_file(io.BytesIO(bytes(50)), store, chunk_bytes=5).cid.digest])
    for at, value in changes:
        block[at % len(block)] = value
    try:
        unixfs.decode_dag_node(cids.of(bytes(block), cids.DAG_PB), bytes(block))
    except BlockCorrupt:
        return


@pytest.mark.parametrize("actual", [b"a", b"abc"])
def test_read_file__part_not_as_long_as_declared__block_corrupt(actual: bytes) -> None:
    store = MemoryStore()
    for part in (store.put_block(actual), put(store, data(2, actual, len(actual)))):
        root = put(store, data(2, None, 2, (2,)), (b"", part))
        with pytest.raises(BlockCorrupt, match="declares 2") as caught:
            list(unixfs.read_file(root, store))
        assert caught.value.details["cid"] == str(part)


def test_read_file__directory_or_shard_as_part__block_corrupt() -> None:
    store = MemoryStore()
    inner = directory(store)
    root = put(store, data(2, None, 0, (0,)), (b"", inner))
    for bad in (root, inner):
        with pytest.raises(BlockCorrupt, match="directory"):
            list(unixfs.read_file(bad, store))


def test_read_file__dag_cbor__refused() -> None:
    store = MemoryStore()
    name = store.put_block(b"\xa0", cids.DAG_CBOR)
    with pytest.raises(BlockCorrupt, match="dag-cbor"):
        list(unixfs.read_file(name, store))
    with pytest.raises(BadCid, match="dag-cbor"):
        list(unixfs.blocks_of(name, store))


def test_read_file__tree_higher_than_the_limit__refused() -> None:
    store = MemoryStore()
    here = store.put_block(b"x")
    for _ in range(unixfs.MAX_DAG_HEIGHT):
        here = put(store, data(2, None, 1, (1,)), (b"", here))
    assert b"".join(unixfs.read_file(here, store)) == b"x"
    with pytest.raises(TooLarge, match="higher"):
        list(unixfs.read_file(put(store, data(2, None, 1, (1,)), (b"", here)), store))


@pytest.mark.parametrize(
    "sizes",
    [{"": 0}, {"": 3 * 2**20 + 1}, {"a": 0}, {"a/b/c": 9, "a/d": 9}, {f"{'x' * 240}{n}": 3 for n in range(1_200)}],
    ids=["empty file", "large file", "folder", "folders", "sharded"],
)
def test_blocks_of__limits_of_the_content_itself__all_are_read(tmp_path: Path, sizes: dict[str, int]) -> None:
    """What is bounded is content: the nodes of folders and of large files have a bound of their own."""
    root = tmp_path / "root"
    for name, size in sizes.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(random.Random(name).randbytes(size))
    store = MemoryStore()
    entry = unixfs.import_path(root, store)
    limits = ReadLimits.of_market(entry.size, entry.files + entry.folders)
    assert len(list(unixfs.blocks_of(entry.cid, store, limits))) == len(store.blocks)


def test_blocks_of__more_bytes_than_any_reader_takes__refused() -> None:
    """Blocks that nobody would read as content are bounded as well: a stranger's DAG may link to any."""
    store = MemoryStore()
    limits = ReadLimits(max_bytes=2 * 2**20, max_entries=5)
    raw = put(store, data(1), *((b"%d" % n, store.put_block(bytes((n,)) * 2**20)) for n in range(3)))
    with pytest.raises(TooLarge, match="2097152 bytes,"):
        list(unixfs.blocks_of(raw, store, limits))
    assert len(list(unixfs.blocks_of(raw, store, replace(limits, max_bytes=3 * 2**20)))) == 4
    nodes = put(store, data(1), *((b"%d" % n, put(store, data(1) + bytes((n,)) * 2**20)) for n in range(5)))
    with pytest.raises(TooLarge, match="bytes of blocks"):
        list(unixfs.blocks_of(nodes, store, limits))


def test_blocks_of__shared_blocks__each_once() -> None:
    store = MemoryStore()
    root = bomb(store, 10)
    found = [name for name, _ in unixfs.blocks_of(root, store)]
    assert found[0] == root
    assert len(found) == len(set(found)) == len(store.blocks) == 11


def test_import_file__hundred_mebibytes__small_memory() -> None:
    """The importer streams: its memory does not grow with the file."""
    script = """
import resource
from hearth.storage import unixfs
from tests.storage.unixfs_cases import Hasher
class Zeros:
    left = 100 * 2**20
    def read(self, size):
        size = min(size, self.left)
        self.left -= size
        return bytes(size)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
entry = unixfs.import_file(Zeros(), Hasher())
assert entry.size == 100 * 2**20
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=python_path(), capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 16 * 1024
