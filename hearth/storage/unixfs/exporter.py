"""Content to a destination on disk that appears whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hearth.base.errors import (
    BadDestination,
)
from hearth.storage.cid import Cid
from hearth.storage.unixfs.codec import TYPE_DIRECTORY, TYPE_SHARD, DagNode
from hearth.storage.unixfs.model import DEFAULT_LIMITS, BlockSource, Entry, Progress, ReadLimits, Renamed
from hearth.storage.unixfs.names import Names, disarmed
from hearth.storage.unixfs.reader import Budget, Nodes, content_of, list_directory, open_node, survey


def export(
    cid: Cid,
    source: BlockSource,
    dest: Path,
    limits: ReadLimits = DEFAULT_LIMITS,
    progress: Progress | None = None,
    renamed: Renamed | None = None,
) -> Entry:
    """Write a file or directory tree to `dest`, which must not exist (or be an empty directory).

    A tree that unfolds to more than the limits is refused before a byte is written (`survey`). Everything is written
    beside `dest` under a temporary name, flushed, and moved in place at the end: `dest` is either whole or not there,
    whatever happens. Files are opened relative to their directory's descriptor, created anew, never through a link.
    With `renamed`, names that a person's programs would obey (`disarmed`) are written under another, which it is told;
    without, every name is written as it is. Raises BadDestination, UnsafePath, TooLarge, BlockCorrupt and the source's
    errors.
    """
    dest = Path(os.path.abspath(dest))
    nodes = Nodes()
    budget = Budget(source, limits, nodes)
    budget.entry()
    writer = _Writer(budget, progress, renamed)
    try:
        check_destination(dest)
        survey(cid, source, limits, nodes)
        opened = open_node(cid, budget)
        # Only a crash leaves it behind; the prefix says what it is.
        part = dest.with_name(f"{PART_PREFIX}{secrets.token_hex(8)}")
        try:
            parent = os.open(dest.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                entry = writer.write(cid, opened, part.name, parent, "")
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


def check_destination(dest: Path) -> None:
    """Refuse a destination that holds something already. Raises BadDestination, OSError."""
    if dest.is_symlink() or (dest.exists() and not (dest.is_dir() and not any(dest.iterdir()))):
        raise BadDestination(f"{dest} exists already", hint="choose a path that does not exist", path=str(dest))


@dataclass(frozen=True, slots=True)
class _Writer:
    """Write the entries of one tree within its budget."""

    budget: Budget
    progress: Progress | None
    renamed: Renamed | None

    def write(self, cid: Cid, opened: bytes | DagNode, name: str, parent: int, path: str) -> Entry:
        """Write one entry under `name` in the directory `parent`; `path` is its place in the tree."""
        if isinstance(opened, DagNode) and opened.kind in (TYPE_DIRECTORY, TYPE_SHARD):
            return self._directory(cid, opened, name, parent, path)
        self.budget.below(path, len(opened) if isinstance(opened, bytes) else opened.size)
        pieces = iter([self.budget.content(opened)]) if isinstance(opened, bytes) else content_of(opened, self.budget)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        size = 0
        with open(os.open(name, flags, 0o644, dir_fd=parent), "wb", buffering=0) as file:
            for piece in pieces:
                view = memoryview(piece)
                while view:
                    view = view[file.write(view) :]
                size += len(piece)
                if self.progress is not None:
                    self.progress(path, len(piece))
            os.fsync(file.fileno())
        return Entry(cid, "file", size, 0, path=path)

    def _directory(self, cid: Cid, node: DagNode, name: str, parent: int, path: str) -> Entry:
        # All names are read and checked before the first of them is written.
        children = list(list_directory(node, path, self.budget))
        os.mkdir(name, 0o755, dir_fd=parent)
        here = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        size = files = 0
        written = Names(path)
        try:
            for child, link in children:
                child_path = f"{path}/{child}" if path else child
                place = child if self.renamed is None else disarmed(child)
                # A name made here may be one that stands in the directory too.
                written.add(place.encode())
                if self.renamed is not None and place != child:
                    self.renamed(child_path, place)
                entry = self.write(link.cid, open_node(link.cid, self.budget), place, here, child_path)
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
