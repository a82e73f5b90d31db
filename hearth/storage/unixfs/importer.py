"""Files and directories to blocks."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hearth.base.errors import (
    NotFoundError,
    StorageError,
    UnsafePath,
)
from hearth.base.files import open_still
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.unixfs.codec import TYPE_FILE, Link, encode_dag_node, encode_field
from hearth.storage.unixfs.model import (
    CHUNK_BYTES,
    LINKS_PER_NODE,
    BlockSink,
    Entry,
    Ignore,
    Progress,
)
from hearth.storage.unixfs.names import Names
from hearth.storage.unixfs.sharding import put_directory


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
    data = encode_field(1, TYPE_FILE) + encode_field(3, size) + b"".join(encode_field(4, part.size) for part in parts)
    block = encode_dag_node(data, [part.link for part in parts])
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
    still: bool = False,
) -> Entry:
    """Import a file or a directory tree.

    Only regular files and directories are taken; a symbolic link or a device is refused by name, as is any name that
    `check_name` refuses. Modes and times are left out, so that the same content has the same CID everywhere.
    `path` itself is not followed if it is a link: resolve it first where the user named it. With `still` it was
    resolved, and a part of it that has become a link since is refused too.
    Raises NotFoundError, UnsafePath, StorageError (UNREADABLE) and whatever the sink raises.
    """

    def add(name: str | Path, parent: int | None, relative: str) -> Entry:
        descriptor = _open_for_import(name, parent, relative or str(path), still=still and parent is None)
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
        seen = Names(relative)
        size = files = 0
        folders = 1
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
            folders += entry.folders
        cid, tsize = put_directory(links, sink, relative)
        return Entry(cid, "directory", size, tsize, files, relative, folders)

    return add(path, None, "")


class _Namer:
    """A sink that keeps nothing: naming a tree takes its blocks' hashes only."""

    def put_block(self, data: bytes, codec: int = cids.RAW) -> Cid:
        """Return the CID that the block would have."""
        return cids.of(data, codec)


def name_path(
    path: Path, *, ignore: Ignore | None = None, progress: Progress | None = None, still: bool = False
) -> Entry:
    """Return what `import_path` would, without keeping a block. Raises what it raises."""
    return import_path(path, _Namer(), ignore=ignore, progress=progress, still=still)


def _open_for_import(name: str | Path, parent: int | None, shown: str, *, still: bool) -> int:
    """Open a regular file or directory for reading; look before opening, for opening a device can act on it."""
    try:
        _check_type(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode, shown)
        # Should the entry be swapped meanwhile: a link is not followed, a pipe does not block, and the type is seen.
        if still:
            descriptor = open_still(Path(name))
        else:
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
            hint="copy what it stands for in its place",
            path=shown,
        )
