"""Names, blocks and trees: what anyone may offer under a CID."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import libipld

from hearth.base.errors import NotFoundError, StorageError
from hearth.storage import car, unixfs
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.stores import MemoryStore
from hearth.storage.unixfs import Link, ReadLimits
from hearth.storage.unixfs.codec import (
    MURMUR3,
    TYPE_FILE,
    TYPE_SHARD,
    TYPE_SYMLINK,
    decode_dag_pb,
    encode_dag_node,
    encode_field,
)
from tests.fuzz.target import Finding, Target, same

LIMITS: Final = ReadLimits(max_bytes=1 << 12, max_entries=16, max_blocks=16)
"""Small, so that a tree that names itself ends soon."""
_LEAF: Final = cids.of(b"leaf")
_BLAKE3: Final = Cid(1, cids.RAW, cids.BLAKE3, bytes(range(32)))
_INLINE: Final = Cid(1, cids.DAG_PB, cids.IDENTITY, encode_dag_node(encode_field(1, 1), []))
_LONG_INLINE: Final = Cid(1, cids.RAW, cids.IDENTITY, bytes(cids.MAX_INLINE_BYTES))
_CIDS: Final = (
    *(_LEAF, cids.of(b"", cids.DAG_PB), cids.of(b"x", cids.DAG_CBOR), Cid(0, cids.DAG_PB, cids.SHA2_256, bytes(32))),
    *(_BLAKE3, _INLINE, _LONG_INLINE),
)


# ---- names ----


def _read_text(data: bytes) -> Cid:
    text = data.decode("utf-8", "replace")
    found, _ = cids.parse_uri(text)
    return found


def _check_cid(data: bytes, found: Cid) -> None:
    """A CID's two forms read back, and libipld reads the same of its bytes."""
    same("cid", cids.from_bytes(bytes(found)), found)
    same("cid", cids.parse(str(found)), found)
    if len(found.digest) <= 64:  # libipld holds no longer digest
        other = libipld.decode_cid(bytes(found))
        hashed = other["hash"]
        same(
            "cid",
            (other["version"], other["codec"], hashed["code"], hashed["digest"]),
            (found.version, found.codec, found.hash_code, found.digest),
        )


def _check_cid_bytes(data: bytes, found: Cid) -> None:
    same("cid-bytes", bytes(found), data)
    _check_cid(data, found)


def _texts() -> Iterator[bytes]:
    for one in _CIDS:
        yield str(one).encode()
    yield f"ipfs://{_LEAF}/a/b".encode()
    yield f"/ipfs/{_LEAF}/".encode()
    for base in ("f", "z", "u", "m", "B"):
        yield libipld.encode_multibase(base, bytes(_LEAF)).encode()


# ---- nodes ----


def _read_node(data: bytes) -> tuple[tuple[Link, ...], bytes, unixfs.DagNode]:
    links = unixfs.links_of(_NODE, data)
    node = unixfs.decode_dag_node(_NODE, data)
    same("dag-pb", tuple(link.cid for link in node.links), links)
    return node.links, decode_dag_pb(data)[1], node


_NODE: Final = Cid(1, cids.DAG_PB, cids.SHA2_256, bytes(32))


def _check_node(data: bytes, found: tuple[tuple[Link, ...], bytes, unixfs.DagNode]) -> None:
    links, message, node = found
    again = encode_dag_node(message, links)
    same("dag-pb", decode_dag_pb(again), (links, message))
    same("dag-pb", unixfs.decode_dag_node(_NODE, again), node)


def _file(size: int, *sizes: int, content: bytes = b"") -> bytes:
    message = encode_field(1, TYPE_FILE) + (encode_field(2, content) if content else b"") + encode_field(3, size)
    return message + b"".join(encode_field(4, one) for one in sizes)


def _shard(fanout: int = 256) -> bytes:
    return encode_field(1, TYPE_SHARD) + encode_field(2, b"\1") + encode_field(5, MURMUR3) + encode_field(6, fanout)


def _nodes() -> Iterator[bytes]:
    child = Link(cids.of(b"", cids.DAG_PB), b"a", 4)
    yield encode_dag_node(_file(3, content=b"abc"), [])
    yield encode_dag_node(_file(9, 4, 5), [Link(_LEAF, b"", 4), Link(_BLAKE3, b"", 5)])
    packed = encode_field(1, TYPE_FILE) + encode_field(3, 300) + encode_field(4, b"\x80\x01\xac\x01")
    yield encode_dag_node(packed, [Link(_LEAF, b"", 4), Link(_LEAF, b"", 5)])
    yield unixfs.encode_directory([child, Link(_INLINE, "z\u00fcrich".encode(), 2**63)])
    yield encode_dag_node(_shard(), [Link(_LEAF, b"0Aname", 4), Link(child.cid, b"FF", 9)])
    yield encode_dag_node(encode_field(1, TYPE_SYMLINK) + encode_field(2, b"/etc/passwd"), [])
    first, second = encode_dag_node(b"", [child]), encode_field(1, encode_field(1, 1))
    yield second + first[: -len(encode_field(1, b""))]


# ---- trees ----
# A tree is its blocks, each behind two bytes of its length; a CID names the block at its digest's first byte, so that
# what is mutated stays linked and a tree may name itself, which honest hashes never do.


class Blocks:
    """The blocks of a framed tree."""

    def __init__(self, data: bytes) -> None:
        self.blocks: list[bytes] = []
        at = 0
        while at + 2 <= len(data):
            size = int.from_bytes(data[at : at + 2], "big")
            self.blocks.append(data[at + 2 : at + 2 + size])
            at += 2 + size

    def get_block(self, cid: Cid) -> bytes:
        """Return a block, or what is in the name."""
        if cid.hash_code == cids.IDENTITY:
            return cid.digest
        return self.blocks[cid.digest[0] % len(self.blocks)] if self.blocks else b""


def frame(*blocks: bytes) -> bytes:
    """Return blocks as one input."""
    return b"".join(len(block).to_bytes(2, "big") + block for block in blocks)


def _name(place: int, codec: int = cids.DAG_PB) -> Cid:
    return Cid(1, codec, cids.SHA2_256, bytes([place]) * 32)


def _read_tree(data: bytes) -> tuple[Blocks, list[unixfs.Entry]]:
    """Walk a tree, or where its last byte says so read it in another way."""
    source, root = Blocks(data), _name(0)
    way = data[-1] % 8 if data else 0
    if way == 0:
        for _ in unixfs.read_file(root, source, LIMITS):
            pass
    elif way == 1:
        for _ in unixfs.blocks_of(root, source, LIMITS):
            pass
    elif way == 2:
        unixfs.resolve(root, "a/b", source, LIMITS)
    elif way == 3:
        unixfs.declared_size(root, source)
    if way < 4:
        return source, []
    entries = list(unixfs.walk(root, source, LIMITS))
    same("unixfs-tree", unixfs.count_entries(root, source, LIMITS), len(entries))
    return source, entries


def _check_tree(data: bytes, found: tuple[Blocks, list[unixfs.Entry]]) -> None:
    """Every path stays inside and stands once, and no more entries come than are allowed."""
    paths = [entry.path for entry in found[1]]
    if len(set(paths)) != len(paths) or len(paths) > LIMITS.max_entries:
        raise Finding(f"unixfs-tree: paths stand twice, or are too many: {paths!r:.300}")
    for path in paths:
        if path.startswith("/") or any(part in ("", ".", "..") for part in path.split("/") if path):
            raise Finding(f"unixfs-tree: {path!r} leads outside")


def _trees() -> Iterator[bytes]:
    """Yield trees of every kind, each for every way to read one."""
    for tree in _shapes():
        for way in (4, 0, 1, 2, 3):
            yield tree + bytes([way])


def _shapes() -> Iterator[bytes]:
    leaf = Link(_name(2, cids.RAW), b"b", 4)
    inner = unixfs.encode_directory([leaf])
    yield frame(unixfs.encode_directory([Link(_name(1), b"a", 10), Link(_INLINE, b"c", 4)]), inner, b"leaf")
    yield frame(
        encode_dag_node(_file(8, 4, 4), [Link(leaf.cid, b"", 4), Link(_name(1), b"", 4)]),
        encode_dag_node(_file(4, content=b"abcd"), []),
        b"leaf",
    )
    slots = [Link(_name(1), b"0A", 9), Link(leaf.cid, b"1Fname", 4), Link(_name(3), b"FFdir", 9)]
    below = encode_dag_node(_shard(), [Link(leaf.cid, b"00one", 4), Link(leaf.cid, b"FFtwo", 4)])
    yield frame(encode_dag_node(_shard(), slots), below, b"leaf", inner)
    small = encode_dag_node(_shard(8), [Link(leaf.cid, b"0a", 4), Link(_name(1), b"1", 9)])
    yield frame(small, encode_dag_node(_shard(8), [Link(leaf.cid, b"2b", 4)]), b"leaf")
    yield _built()


def _built() -> bytes:
    """Return a tree of shards as our importer makes it, its names replaced by places."""
    store = MemoryStore()
    limit = unixfs.sharding.DIRECTORY_BLOCK_BYTES
    unixfs.sharding.DIRECTORY_BLOCK_BYTES = 64
    try:
        root, _ = unixfs.put_directory([Link(_LEAF, b"file-%d" % n, 4) for n in range(8)], store)
    finally:
        unixfs.sharding.DIRECTORY_BLOCK_BYTES = limit
    store.put_block(b"leaf")
    blocks = list(unixfs.blocks_of(root, store))
    data = frame(*(block for _, block in blocks))
    for place, (cid, _) in enumerate(blocks):
        data = data.replace(cid.digest, bytes([place]) * 32)
    return data


# ---- files of blocks ----

CarFile = tuple[tuple[Cid, ...], list[tuple[Cid, bytes]]]


def _read_car(data: bytes) -> CarFile:
    roots, blocks = car.read(io.BytesIO(data))
    return roots, list(blocks)


def _check_car(data: bytes, found: CarFile) -> None:
    """What was read is written and read back the same."""
    out = io.BytesIO()
    car.write(found[0], found[1], out)
    same("car", _read_car(out.getvalue()), found)


def _cars() -> Iterator[bytes]:
    named = [(one, one.digest if one.hash_code == cids.IDENTITY else b"leaf") for one in (_LEAF, _INLINE)]
    for roots in ((_LEAF,), (_INLINE, _LEAF), _CIDS):
        out = io.BytesIO()
        car.write(roots, named, out)
        yield out.getvalue()


# ---- trees on disk ----


_SHELF: Final = Path("/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir())


def _export(data: bytes) -> tuple[Path, list[tuple[str, str]]]:
    """Write a tree into an own folder beside a file that is not its own, and look at all that is there."""
    source, box = Blocks(data), Path(tempfile.mkdtemp(prefix="hearth-fuzz-", dir=_SHELF))
    renamed: list[tuple[str, str]] = []
    try:
        (box / "mine").write_bytes(b"mine")
        try:
            unixfs.export(_name(0), source, box / "out", LIMITS, renamed=lambda *pair: renamed.append(pair))
            expected = {"mine", "out"}
        except StorageError:
            expected = {"mine"}
        there = set(os.listdir(box))
        if there != expected or (box / "mine").read_bytes() != b"mine":
            raise Finding(f"unixfs-export: it left {sorted(there)}, and should have left {sorted(expected)}")
        for folder, folders, files in os.walk(box):
            for name in (*folders, *files):
                if os.path.islink(os.path.join(folder, name)):
                    raise Finding(f"unixfs-export: it made a link, {name!r}")
    finally:
        shutil.rmtree(box)
    return box, renamed


TARGETS: Final = (
    Target("cid-text", "bytes", "a CID or ipfs:// address as text", _read_text, _texts, (StorageError,), _check_cid),
    Target(
        "cid-bytes",
        "bytes",
        "a CID in a block",
        cids.from_bytes,
        lambda: map(bytes, _CIDS),
        (StorageError,),
        _check_cid_bytes,
    ),
    Target("dag-pb", "bytes", "a dag-pb block with UnixFS data", _read_node, _nodes, (StorageError,), _check_node),
    Target(
        "unixfs-tree",
        "bytes",
        "a tree of blocks, shards (HAMT) among them",
        _read_tree,
        _trees,
        (StorageError, NotFoundError),
        _check_tree,
    ),
    Target("car", "bytes", "a CAR file of blocks", _read_car, _cars, (StorageError,), _check_car),
    Target("unixfs-export", "disk", "a tree of blocks, written to disk", _export, _trees, (StorageError,)),
)
