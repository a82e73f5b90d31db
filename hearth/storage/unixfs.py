"""UnixFS v1: files and directories to blocks and back, with constants fixed once for the whole market.

The same bytes give the same CID everywhere: raw leaves of CHUNK_BYTES, balanced layout of LINKS_PER_NODE, CIDv1,
sha2-256, plain directories. That equals `ipfs add --cid-version 1 --raw-leaves --chunker size-1048576
--max-file-links 1024`. Reading takes what other tools write too: dag-pb leaves, inline data, sharded directories.

Whoever gives blocks (`BlockSource`) has checked them against their CIDs. Nothing else in them is trusted: sizes,
names, counts and depth are checked here, against the node itself and against the reader's `Limits`.

Sources: https://specs.ipfs.tech/unixfs/ and https://ipld.io/specs/codecs/dag-pb/spec/.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal, Protocol

from hearth.base.errors import (
    BadCid,
    BadDestination,
    BlockCorrupt,
    NotFoundError,
    ShardingNeeded,
    StorageError,
    TooLarge,
    UnsafePath,
)
from hearth.storage import cid as cids
from hearth.storage.cid import Cid

CHUNK_BYTES: Final = 2**20
"""Bytes of a leaf."""
LINKS_PER_NODE: Final = 1024
"""Links of an inner node of a file."""
DIRECTORY_BLOCK_BYTES: Final = 256 * 1024
"""A directory whose block is larger would be sharded by Kubo. Its older estimate (names and CIDs alone) is always
smaller than the block, so what passes here is plain under either rule."""
MAX_NAME_BYTES: Final = 255
MAX_PATH_BYTES: Final = 255
MAX_PATH_DEPTH: Final = 16
MAX_DAG_HEIGHT: Final = 64
"""Inner nodes of one file, or shards of one directory, on the way to a leaf."""

Progress = Callable[[str, int], None]
"""Called with the relative path ("" for a lone file) and the bytes just moved."""
Ignore = Callable[[str, bool], bool]
"""Called with a relative path ("a/b") and whether it is a directory; true leaves it out."""


class BlockSink(Protocol):
    """Keep blocks."""

    def put_block(self, data: bytes, codec: int = cids.RAW) -> Cid:
        """Store a block and return its CID."""


class BlockSource(Protocol):
    """Give blocks that hash to their CIDs."""

    def get_block(self, cid: Cid) -> bytes:
        """Return the verified bytes of a block."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Describe one file or directory.

    `path` relative, "" for the root; `size` content bytes; `tsize` bytes of all its blocks, repeats counted each time;
    `files` regular files in it. Readers leave `tsize` 0, and `walk` a directory's `size` and `files`: not known there.
    """

    cid: Cid
    kind: Literal["file", "directory"]
    size: int
    tsize: int
    files: int = 1
    path: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bound what a reader accepts from a DAG that somebody else made.

    `max_bytes` content bytes, `max_entries` files and directories, `max_blocks` blocks read; repeats count each time.
    """

    max_bytes: int = 64 * 2**30
    max_entries: int = 100_000
    max_blocks: int = 1_000_000

    @property
    def max_node_bytes(self) -> int:
        """Return the bytes of inner nodes to parse at most, far above what any importer needs for such content."""
        return self.max_bytes // 8 + self.max_entries * 512 + cids.MAX_BLOCK_BYTES


DEFAULT_LIMITS: Final = Limits()


# ---------------------------------------------------------------- protobuf


@dataclass(frozen=True, slots=True)
class Link:
    """Point at a child: `name` as bytes, `tsize` as the parent declares it (0 if it does not)."""

    cid: Cid
    name: bytes
    tsize: int


@dataclass(frozen=True, slots=True)
class Node:
    """Hold one decoded dag-pb node with UnixFS data.

    `kind` is one of the UnixFS data types below, `block_sizes` one content size per link of a file.
    """

    kind: int
    data: bytes
    size: int
    block_sizes: tuple[int, ...]
    fanout: int
    links: tuple[Link, ...]


_TYPE_RAW, _TYPE_DIRECTORY, _TYPE_FILE, _TYPE_METADATA, _TYPE_SYMLINK, _TYPE_SHARD = range(6)
_TYPE_NAMES = ("raw", "directory", "file", "metadata", "symlink", "sharded directory")
_MURMUR3 = 0x22
_VARINT, _BYTES = 0, 2


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, value: int | bytes) -> bytes:
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


def encode_node(data: bytes, links: list[Link]) -> bytes:
    """Return a dag-pb block: links first, then the data, as the dag-pb specification orders them."""
    parts = []
    for link in links:
        parts.append(_field(2, _field(1, bytes(link.cid)) + _field(2, link.name) + _field(3, link.tsize)))
    parts.append(_field(1, data))
    return b"".join(parts)


def decode_node(cid: Cid, block: bytes) -> Node:
    """Read a dag-pb block with UnixFS data. Raises BlockCorrupt when its fields are malformed or disagree."""
    try:
        links, data = _decode_dag_pb(block)
        node = _decode_unixfs(data, links)
    except (ValueError, BadCid) as error:
        raise _corrupt(cid, str(error)) from error
    return node


def _decode_dag_pb(block: bytes) -> tuple[tuple[Link, ...], bytes]:
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


def _decode_unixfs(message: bytes, links: tuple[Link, ...]) -> Node:
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
    if kind not in range(len(_TYPE_NAMES)):
        raise ValueError(f"UnixFS type {kind} is unknown")
    if kind in (_TYPE_FILE, _TYPE_RAW):
        if len(block_sizes) != len(links):
            raise ValueError(f"a file has {len(links)} links but {len(block_sizes)} sizes for them")
        actual = len(data) + sum(block_sizes)
        if size is not None and size != actual:
            raise ValueError(f"a file declares {size} bytes, its parts add up to {actual}")
        size = actual
    if kind == _TYPE_SHARD and (hash_type != _MURMUR3 or fanout not in (8, 16, 32, 64, 128, 256, 512, 1024)):
        raise ValueError(f"a directory shard has hash 0x{hash_type:x} and fanout {fanout}")
    return Node(kind, data, size or 0, tuple(block_sizes), fanout, links)


def _corrupt(cid: Cid, why: str) -> BlockCorrupt:
    return BlockCorrupt(f"block {cid}: {why}", hint="hearth doctor", cid=str(cid))


# ---------------------------------------------------------------- import


def import_file(
    stream: BinaryIO,
    sink: BlockSink,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    links_per_node: int = LINKS_PER_NODE,
    progress: Progress | None = None,
    path: str = "",
) -> Entry:
    """Import one file from a stream, holding one chunk and one row of links per level in memory.

    `chunk_bytes` 1..MAX_BLOCK_BYTES and `links_per_node` >= 2 are the market's constants unless a test passes others.
    """
    levels: list[list[_Part]] = [[]]
    chunk = _read_chunk(stream, chunk_bytes)
    while True:
        levels[0].append(_Part(Link(sink.put_block(chunk, cids.RAW), b"", len(chunk)), len(chunk)))
        if progress is not None:
            progress(path, len(chunk))
        following = _read_chunk(stream, chunk_bytes) if len(chunk) == chunk_bytes else b""
        if not following:
            break
        # A full row becomes one node of the row above only once another part is known to follow it.
        for level, row in enumerate(levels):
            if len(row) < links_per_node:
                break
            if level + 1 == len(levels):
                levels.append([])
            levels[level + 1].append(_put_file_node(row, sink))
            row.clear()
        chunk = following
    for level, row in enumerate(levels[:-1]):
        levels[level + 1].append(_put_file_node(row, sink))
    root = levels[-1][0] if len(levels[-1]) == 1 else _put_file_node(levels[-1], sink)
    return Entry(root.link.cid, "file", root.size, root.link.tsize, path=path)


@dataclass(frozen=True, slots=True)
class _Part:
    link: Link
    size: int


def _put_file_node(parts: list[_Part], sink: BlockSink) -> _Part:
    size = sum(part.size for part in parts)
    data = _field(1, _TYPE_FILE) + _field(3, size) + b"".join(_field(4, part.size) for part in parts)
    block = encode_node(data, [part.link for part in parts])
    tsize = len(block) + sum(part.link.tsize for part in parts)
    return _Part(Link(sink.put_block(block, cids.DAG_PB), b"", tsize), size)


def _read_chunk(stream: BinaryIO, size: int) -> bytes:
    """Read exactly `size` bytes, or what is left: pipes and sockets give less than they are asked for."""
    data = stream.read(size)
    if not data or len(data) == size:
        return data
    parts = [data]
    missing = size - len(data)
    while missing and (data := stream.read(missing)):
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


def import_path(
    path: Path,
    sink: BlockSink,
    *,
    ignore: Ignore | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    links_per_node: int = LINKS_PER_NODE,
    progress: Progress | None = None,
) -> Entry:
    """Import a file or a directory tree.

    Only regular files and directories are taken; a symbolic link or a device is refused by name, as is any name that
    `check_name` refuses. Modes and times are left out, so that the same content has the same CID everywhere.
    `path` itself is not followed if it is a link: resolve it first where the user named it.
    Raises NotFoundError, UnsafePath, ShardingNeeded, StorageError (UNREADABLE) and whatever the sink raises.
    """

    def add(name: str | Path, parent: int | None, relative: str) -> Entry:
        descriptor = _open_for_import(name, parent, relative or str(path))
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                with open(descriptor, "rb", closefd=False) as stream:
                    return import_file(
                        stream,
                        sink,
                        chunk_bytes=chunk_bytes,
                        links_per_node=links_per_node,
                        progress=progress,
                        path=relative,
                    )
            return add_directory(descriptor, relative)
        finally:
            os.close(descriptor)

    def add_directory(descriptor: int, relative: str) -> Entry:
        links: list[Link] = []
        seen = _Names(relative)
        size = files = 0
        for item in sorted(os.scandir(descriptor), key=lambda found: found.name):
            child = f"{relative}/{item.name}" if relative else item.name
            if ignore is not None and ignore(child, item.is_dir(follow_symlinks=False)):
                continue
            raw = os.fsencode(item.name)
            seen.add(raw)
            entry = add(item.name, descriptor, child)
            links.append(Link(entry.cid, raw, entry.tsize))
            size += entry.size
            files += entry.files
        block = encode_directory(links, relative)
        tsize = len(block) + sum(link.tsize for link in links)
        return Entry(sink.put_block(block, cids.DAG_PB), "directory", size, tsize, files, relative)

    return add(path, None, "")


class _Namer:
    """A sink that keeps nothing: naming a tree takes its blocks' hashes only."""

    def put_block(self, data: bytes, codec: int = cids.RAW) -> Cid:
        """Return the CID that the block would have."""
        return cids.of(data, codec)


def name_path(path: Path, *, ignore: Ignore | None = None) -> Entry:
    """Return what `import_path` would, without keeping a block. Raises what it raises."""
    return import_path(path, _Namer(), ignore=ignore)


def encode_directory(links: list[Link], path: str = "") -> bytes:
    """Return the block of a plain directory, its links sorted by the bytes of their names.

    Raises ShardingNeeded when the block is larger than DIRECTORY_BLOCK_BYTES.
    """
    block = encode_node(_field(1, _TYPE_DIRECTORY), sorted(links, key=lambda link: link.name))
    if len(block) > DIRECTORY_BLOCK_BYTES:
        raise ShardingNeeded(
            f"the directory {path or '.'} has {len(links)} entries; its block of {len(block)} bytes is above"
            f" {DIRECTORY_BLOCK_BYTES}, where IPFS tools start to shard",
            hint="spread the entries over subdirectories, or pack them into one file",
            path=path,
            entries=len(links),
        )
    return block


def _open_for_import(name: str | Path, parent: int | None, shown: str) -> int:
    """Open a regular file or directory for reading; look before opening, for opening a device can act on it."""
    try:
        _check_type(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode, shown)
        # Should the entry be swapped meanwhile: a link is not followed, a pipe does not block, and the type is seen.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except FileNotFoundError as error:
        raise NotFoundError(f"{shown} does not exist", hint="check the path", component="store", path=shown) from error
    except OSError as error:
        raise StorageError(
            f"{shown} cannot be read: {error.strerror}", hint="check its owner and mode", code="UNREADABLE", path=shown
        ) from error
    try:
        _check_type(os.fstat(descriptor).st_mode, shown)
    except UnsafePath:
        os.close(descriptor)
        raise
    return descriptor


def _check_type(mode: int, shown: str) -> None:
    kinds = {stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise UnsafePath(
            f"{shown} is {kinds.get(stat.S_IFMT(mode), 'a device')}; only regular files and directories can be stored",
            hint="leave it out with a rule in .hearthignore, or copy what it stands for",
            path=shown,
        )


# ---------------------------------------------------------------- names


def check_name(raw: bytes, parent: str) -> str:
    """Return a directory entry's name as text, or raise UnsafePath.

    Refused: empty, "." and "..", "/", backslash, NUL and other control characters, drive letters, bytes that are not
    UTF-8, more than MAX_NAME_BYTES; and, with the parent's path, MAX_PATH_BYTES or MAX_PATH_DEPTH exceeded.
    """
    shown = f"{parent or '.'}/{raw[:80]!r}"
    try:
        name = raw.decode()
    except UnicodeDecodeError as error:
        raise _unsafe(shown, "is not UTF-8") from error
    if name in ("", ".", ".."):
        raise _unsafe(shown, "is no file name")
    if re.search(r"[/\\\x00-\x1f\x7f]", name):
        raise _unsafe(shown, "holds a slash, a backslash or a control character")
    if re.match(r"[A-Za-z]:", name):
        raise _unsafe(shown, "starts with a drive letter")
    if len(raw) > MAX_NAME_BYTES:
        raise _unsafe(shown, f"has {len(raw)} bytes, more than {MAX_NAME_BYTES}")
    path = f"{parent}/{name}" if parent else name
    if len(path.encode()) > MAX_PATH_BYTES:
        raise _unsafe(shown, f"makes a path of more than {MAX_PATH_BYTES} bytes")
    if path.count("/") >= MAX_PATH_DEPTH:
        raise _unsafe(shown, f"lies deeper than {MAX_PATH_DEPTH} directories")
    return name


class _Names:
    """Collect the names of one directory; refuse repeats, and names that some file systems take for one."""

    def __init__(self, parent: str) -> None:
        self._parent = parent
        self._seen: dict[str, bytes] = {}

    def add(self, raw: bytes) -> str:
        name = check_name(raw, self._parent)
        # Unicode's canonical caseless match (D145): what a case-folding, normalising file system compares.
        key = unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())
        if key in self._seen:
            other = self._seen[key]
            what = "stands twice" if other == raw else f"differs from {other!r} only in case or Unicode form"
            raise _unsafe(f"{self._parent or '.'}/{raw[:80]!r}", what)
        self._seen[key] = raw
        return name


def _unsafe(shown: str, why: str) -> UnsafePath:
    return UnsafePath(f"the name {shown} {why}", hint="rename the file", path=shown)


# ---------------------------------------------------------------- reading


class _Budget:
    """Count what has been read against the limits of one reader."""

    def __init__(self, source: BlockSource, limits: Limits) -> None:
        self._source = source
        self._limits = limits
        self._blocks = self._entries = self._bytes = self._node_bytes = 0

    def node(self, cid: Cid) -> Node:
        """Read an inner node."""
        if cid.codec != cids.DAG_PB:
            raise _corrupt(cid, f"a {cids.CODECS[cid.codec]} block is no UnixFS directory or file node")
        block = self.block(cid)
        self._node_bytes += len(block)
        if self._node_bytes > self._limits.max_node_bytes:
            raise _over("bytes of inner nodes", self._limits.max_node_bytes)
        return decode_node(cid, block)

    def block(self, cid: Cid) -> bytes:
        """Read a block, counted each time it is read."""
        self._blocks += 1
        if self._blocks > self._limits.max_blocks:
            raise _over("blocks", self._limits.max_blocks)
        block = self._source.get_block(cid)
        cids.check_block_size(block)
        return block

    def promise(self, size: int) -> None:
        """Refuse a file that declares more content than is left, before any of it is read."""
        if self._bytes + size > self._limits.max_bytes:
            raise _over("bytes", self._limits.max_bytes)

    def content(self, data: bytes) -> bytes:
        """Count content that is about to be handed on."""
        self.promise(len(data))
        self._bytes += len(data)
        return data

    def entry(self) -> None:
        """Count a file or directory."""
        self._entries += 1
        if self._entries > self._limits.max_entries:
            raise _over("entries", self._limits.max_entries)


def _over(what: str, limit: int) -> TooLarge:
    return TooLarge(
        f"the data has more than {limit} {what}, the limit set for it",
        hint="raise max_size in the spec if this is wanted: hearth check job.yaml",
        limit=limit,
        what=what,
    )


def read_file(cid: Cid, source: BlockSource, limits: Limits = DEFAULT_LIMITS) -> Iterator[bytes]:
    """Yield the content of a file in pieces of at most MAX_BLOCK_BYTES.

    Raises BlockCorrupt when the root is no file or a part is not as long as its parent says, TooLarge at a limit.
    """
    budget = _Budget(source, limits)
    if cid.codec == cids.RAW:
        yield budget.content(budget.block(cid))
        return
    node = budget.node(cid)
    if node.kind not in (_TYPE_FILE, _TYPE_RAW):
        raise _corrupt(cid, f"a {_TYPE_NAMES[node.kind]} stands where a file is expected")
    yield from _content(node, budget)


def _content(node: Node, budget: _Budget) -> Iterator[bytes]:
    """Yield a file's content depth first, without recursion so that no DAG can exhaust the stack."""
    budget.promise(node.size)
    if node.data:
        yield budget.content(node.data)
    stack = [iter(zip(node.links, node.block_sizes, strict=True))]
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            continue
        link, declared = step
        if link.cid.codec == cids.RAW:
            data = budget.block(link.cid)
            _check_declared(link.cid, len(data), declared)
            yield budget.content(data)
            continue
        child = budget.node(link.cid)
        if child.kind not in (_TYPE_FILE, _TYPE_RAW):
            raise _corrupt(link.cid, f"a {_TYPE_NAMES[child.kind]} stands where a part of a file is expected")
        _check_declared(link.cid, child.size, declared)
        if len(stack) >= MAX_DAG_HEIGHT:
            raise TooLarge(f"a file's tree is higher than {MAX_DAG_HEIGHT}", hint="hearth doctor")
        if child.data:
            yield budget.content(child.data)
        stack.append(iter(zip(child.links, child.block_sizes, strict=True)))


def _check_declared(cid: Cid, actual: int, declared: int) -> None:
    if actual != declared:
        raise _corrupt(cid, f"it holds {actual} bytes where its parent declares {declared}")


def _list_directory(node: Node, path: str, budget: _Budget) -> Iterator[tuple[str, Link]]:
    """Yield the entries of a plain or sharded directory; names are checked, each once.

    A shard's link name starts with its slot in hex; the rest is the entry's name, or nothing when it is a sub-shard.
    """
    names = _Names(path)

    def entries(shard: Node, height: int) -> Iterator[tuple[str, Link]]:
        prefix = len(f"{shard.fanout - 1:X}") if shard.kind == _TYPE_SHARD else 0
        for link in shard.links:
            if not prefix or len(link.name) > prefix:
                budget.entry()
                yield names.add(link.name[prefix:]), link
                continue
            child = budget.node(link.cid)
            if child.kind != _TYPE_SHARD or len(link.name) != prefix or height >= MAX_DAG_HEIGHT:
                raise _corrupt(link.cid, "it is no part of a sharded directory")
            yield from entries(child, height + 1)

    return entries(node, 1)


def _open(cid: Cid, budget: _Budget) -> bytes | Node:
    """Return a raw leaf's bytes, or a file's or directory's node."""
    if cid.codec == cids.RAW:
        return budget.block(cid)
    node = budget.node(cid)
    if node.kind in (_TYPE_METADATA, _TYPE_SYMLINK):
        raise UnsafePath(
            f"{cid} is a UnixFS {_TYPE_NAMES[node.kind]}; only files and directories are read",
            hint="ask for the data without links",
            cid=str(cid),
        )
    return node


def walk(cid: Cid, source: BlockSource, limits: Limits = DEFAULT_LIMITS) -> Iterator[Entry]:
    """Yield every file and directory below and including `cid`, parents first, sizes as declared by the nodes.

    A child's `tsize` is what its parent declares.
    """
    budget = _Budget(source, limits)
    budget.entry()
    stack = [(cid, "", 0)]
    while stack:
        here, path, tsize = stack.pop()
        opened = _open(here, budget)
        if isinstance(opened, bytes) or opened.kind in (_TYPE_FILE, _TYPE_RAW):
            size = len(opened) if isinstance(opened, bytes) else opened.size
            yield Entry(here, "file", size, tsize or size, path=path)
            continue
        yield Entry(here, "directory", 0, tsize, 0, path)
        children = list(_list_directory(opened, path, budget))
        stack.extend((link.cid, f"{path}/{name}" if path else name, link.tsize) for name, link in reversed(children))


def resolve(cid: Cid, path: str, source: BlockSource, limits: Limits = DEFAULT_LIMITS) -> Cid:
    """Follow a path ("a/b/c") from a directory and return the CID it names. Raises NotFoundError."""
    budget = _Budget(source, limits)
    here, walked = cid, ""
    for part in filter(None, path.split("/")):
        opened = _open(here, budget)
        children: dict[str, Link] = {}
        if isinstance(opened, Node) and opened.kind in (_TYPE_DIRECTORY, _TYPE_SHARD):
            children = dict(_list_directory(opened, walked, budget))
        if part not in children:
            raise NotFoundError(f"{cid} has no entry {path!r}", hint="check the path", component="store", path=path)
        here, walked = children[part].cid, f"{walked}/{part}" if walked else part
    return here


def declared_size(cid: Cid, source: BlockSource) -> int:
    """Return about how many bytes a fetch will move, by the root's own word: for progress bars, not for limits."""
    opened = _open(cid, _Budget(source, DEFAULT_LIMITS))
    if isinstance(opened, bytes):
        return len(opened)
    if opened.kind in (_TYPE_DIRECTORY, _TYPE_SHARD):
        return sum(link.tsize for link in opened.links)
    return opened.size


def links_of(cid: Cid, block: bytes) -> tuple[Cid, ...]:
    """Return the children that a block links to, in order."""
    if cid.codec == cids.RAW:
        return ()
    if cid.codec != cids.DAG_PB:
        raise BadCid(
            f"{cid}: the links of {cids.CODECS[cid.codec]} blocks are not followed",
            hint="name a UnixFS file or directory",
        )
    try:
        return tuple(link.cid for link in _decode_dag_pb(block)[0])
    except (ValueError, BadCid) as error:
        raise _corrupt(cid, str(error)) from error


def blocks_of(cid: Cid, source: BlockSource, limits: Limits = DEFAULT_LIMITS) -> Iterator[tuple[Cid, bytes]]:
    """Yield every block of a DAG once, parents first, within the same limits as a reader of its content."""
    budget = _Budget(source, limits)
    seen = {cid}
    stack = [cid]
    while stack:
        here = stack.pop()
        block = budget.block(here)
        budget.content(block)
        yield here, block
        fresh = [child for child in dict.fromkeys(links_of(here, block)) if child not in seen]
        seen.update(fresh)
        stack.extend(reversed(fresh))


# ---------------------------------------------------------------- export


def export(
    cid: Cid,
    source: BlockSource,
    dest: Path,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress | None = None,
) -> Entry:
    """Write a file or directory tree to `dest`, which must not exist (or be an empty directory).

    Everything is written beside `dest` under a temporary name, flushed, and moved in place at the end: `dest` is
    either whole or not there, whatever happens. Files are opened relative to their directory's descriptor, created
    anew, never through a link. Raises BadDestination, UnsafePath, TooLarge, BlockCorrupt and the source's errors.
    """
    dest = Path(os.path.abspath(dest))
    budget = _Budget(source, limits)
    budget.entry()
    try:
        _check_destination(dest)
        opened = _open(cid, budget)
        # Only a crash leaves it behind; the prefix says what it is.
        part = dest.with_name(f"{PART_PREFIX}{secrets.token_hex(8)}")
        try:
            parent = os.open(dest.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                entry = _write(cid, opened, part.name, parent, "", budget, progress)
                os.rename(part, dest)
                os.fsync(parent)
            finally:
                os.close(parent)
        finally:
            _remove(part)
    except OSError as error:
        raise BadDestination(
            f"{dest} cannot be written: {error.strerror or error}",
            hint="choose another path, or free some room",
            path=str(dest),
        ) from error
    return entry


PART_PREFIX: Final = ".hearth-part-"
"""Start of the temporary names that `export` uses beside its destination."""


def _check_destination(dest: Path) -> None:
    if dest.is_symlink() or (dest.exists() and not (dest.is_dir() and not any(dest.iterdir()))):
        raise BadDestination(f"{dest} exists already", hint="choose a path that does not exist", path=str(dest))


def _write(
    cid: Cid,
    opened: bytes | Node,
    name: str,
    parent: int,
    path: str,
    budget: _Budget,
    progress: Progress | None,
) -> Entry:
    """Write one entry under `name` in the directory `parent`; `path` is its place in the tree."""
    if isinstance(opened, Node) and opened.kind in (_TYPE_DIRECTORY, _TYPE_SHARD):
        return _write_directory(cid, opened, name, parent, path, budget, progress)
    pieces = iter([budget.content(opened)]) if isinstance(opened, bytes) else _content(opened, budget)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    size = 0
    with open(os.open(name, flags, 0o644, dir_fd=parent), "wb", buffering=0) as file:
        for piece in pieces:
            view = memoryview(piece)
            while view:
                view = view[file.write(view) :]
            size += len(piece)
            if progress is not None:
                progress(path, len(piece))
        os.fsync(file.fileno())
    return Entry(cid, "file", size, 0, path=path)


def _write_directory(
    cid: Cid,
    node: Node,
    name: str,
    parent: int,
    path: str,
    budget: _Budget,
    progress: Progress | None,
) -> Entry:
    os.mkdir(name, 0o755, dir_fd=parent)
    here = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    size = files = 0
    try:
        for child, link in _list_directory(node, path, budget):
            child_path = f"{path}/{child}" if path else child
            entry = _write(link.cid, _open(link.cid, budget), child, here, child_path, budget, progress)
            size += entry.size
            files += entry.files
        os.fsync(here)
    finally:
        os.close(here)
    return Entry(cid, "directory", size, 0, files, path)


def _remove(part: Path) -> None:
    """Remove what is left of a temporary file or tree; nothing is left after a success."""
    if part.is_dir() and not part.is_symlink():
        shutil.rmtree(part)
    else:
        part.unlink(missing_ok=True)
