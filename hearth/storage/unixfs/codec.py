"""Nodes to bytes and back: dag-pb with UnixFS data, by a small protobuf of our own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hearth.base.errors import (
    BadCid,
    BlockCorrupt,
)
from hearth.storage import cid as cids
from hearth.storage.cid import Cid


@dataclass(frozen=True, slots=True)
class Link:
    """Point at a child: `name` as bytes, `tsize` as the parent declares it (0 if it does not)."""

    cid: Cid
    name: bytes
    tsize: int


@dataclass(frozen=True, slots=True)
class DagNode:
    """Hold one decoded dag-pb node with UnixFS data.

    `kind` is one of the UnixFS data types below, `block_sizes` one content size per link of a file.
    """

    kind: int
    data: bytes
    size: int
    block_sizes: tuple[int, ...]
    fanout: int
    links: tuple[Link, ...]


TYPE_RAW, TYPE_DIRECTORY, TYPE_FILE, TYPE_METADATA, TYPE_SYMLINK, TYPE_SHARD = range(6)
TYPE_NAMES = ("raw", "directory", "file", "metadata", "symlink", "sharded directory")
MURMUR3 = 0x22
_VARINT, _BYTES = 0, 2


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (field number, value) of a protobuf message. Raises ValueError when it is malformed."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        if key & 7 == _VARINT:
            value, at = _read_varint(data, at)
            yield key >> 3, value
        elif key & 7 == _BYTES:
            size, at = _read_varint(data, at)
            if size > len(data) - at:
                raise ValueError("a field is longer than its message")
            yield key >> 3, data[at : at + size]
            at += size
        else:
            raise ValueError(f"wire type {key & 7} has no place in UnixFS")


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            if value >= 2**64:
                break
            return value, at
        shift += 7
    raise ValueError("a number is cut off or above 64 bits")


def encode_dag_node(data: bytes, links: Sequence[Link]) -> bytes:
    """Return a dag-pb block: links first, then the data, as the dag-pb specification orders them."""
    parts = []
    for link in links:
        parts.append(
            encode_field(2, encode_field(1, bytes(link.cid)) + encode_field(2, link.name) + encode_field(3, link.tsize))
        )
    parts.append(encode_field(1, data))
    return b"".join(parts)


def decode_dag_node(cid: Cid, block: bytes) -> DagNode:
    """Read a dag-pb block with UnixFS data. Raises BlockCorrupt when its fields are malformed or disagree."""
    try:
        links, data = decode_dag_pb(block)
        node = _decode_unixfs(data, links)
    except (ValueError, BadCid) as error:
        raise corrupt(cid, str(error)) from error
    return node


def decode_dag_pb(block: bytes) -> tuple[tuple[Link, ...], bytes]:
    links: list[Link] = []
    data: bytes | None = None
    data_after = 0
    for number, value in _fields(block):
        if number == 2 and isinstance(value, bytes):
            links.append(_decode_link(value))
        elif number == 1 and isinstance(value, bytes) and data is None:
            data, data_after = value, len(links)
        else:
            raise ValueError(f"dag-pb field {number} is unknown or stands twice")
    if data is None:
        raise ValueError("the node has no UnixFS data")
    if data_after not in (0, len(links)):
        raise ValueError("the node's data stands between its links")
    return tuple(links), data


def _decode_link(message: bytes) -> Link:
    cid: Cid | None = None
    name, tsize, last = b"", 0, 0
    for number, value in _fields(message):
        if number <= last:
            raise ValueError("a link's fields are out of order")
        last = number
        if number == 1 and isinstance(value, bytes):
            cid = cids.from_bytes(value)
        elif number == 2 and isinstance(value, bytes):
            name = value
        elif number == 3 and isinstance(value, int):
            tsize = value
        else:
            raise ValueError(f"link field {number} is unknown")
    if cid is None:
        raise ValueError("a link names no block")
    return Link(cid, name, tsize)


def _decode_unixfs(message: bytes, links: tuple[Link, ...]) -> DagNode:
    kind, data, size, fanout, hash_type = -1, b"", None, 0, 0
    block_sizes: list[int] = []
    for number, value in _fields(message):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number == 2 and isinstance(value, bytes):
            data = value
        elif number == 3 and isinstance(value, int):
            size = value
        elif number == 4 and isinstance(value, int):
            block_sizes.append(value)
        elif number == 4 and isinstance(value, bytes):  # the packed form, which protobuf readers must take
            at = 0
            while at < len(value):
                block_size, at = _read_varint(value, at)
                block_sizes.append(block_size)
        elif number == 5 and isinstance(value, int):
            hash_type = value
        elif number == 6 and isinstance(value, int):
            fanout = value
    if kind not in range(len(TYPE_NAMES)):
        raise ValueError(f"UnixFS type {kind} is unknown")
    if kind in (TYPE_FILE, TYPE_RAW):
        if len(block_sizes) != len(links):
            raise ValueError(f"a file has {len(links)} links but {len(block_sizes)} sizes for them")
        actual = len(data) + sum(block_sizes)
        if size is not None and size != actual:
            raise ValueError(f"a file declares {size} bytes, its parts add up to {actual}")
        size = actual
    if kind == TYPE_SHARD and (hash_type != MURMUR3 or fanout not in (8, 16, 32, 64, 128, 256, 512, 1024)):
        raise ValueError(f"a directory shard has hash 0x{hash_type:x} and fanout {fanout}")
    return DagNode(kind, data, size or 0, tuple(block_sizes), fanout, links)


def corrupt(cid: Cid, why: str) -> BlockCorrupt:
    return BlockCorrupt(f"block {cid}: {why}", hint="hearth doctor", cid=str(cid))
