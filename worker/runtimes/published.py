"""Copy what a unit has published of its state, while it runs: from its folder, or from an archive that an engine makes.

A unit publishes by renaming a complete file into the folder. Names that begin with a dot are its own drafts and are
left out, folders with all that is below them. Nothing else of a stranger's is followed or made: links, devices and
names that no store takes refuse the whole copy, and so does more than its bounds.
"""

from __future__ import annotations

import os
import posixpath
import stat
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from hearth.base.errors import StorageError, TooLarge, UnsafePath
from hearth.base.text import plain
from hearth.storage.unixfs.names import check_name
from worker.runtimes.base import MAX_OUTPUT_DEPTH, MAX_OUTPUT_ENTRIES

CHUNK: Final = 1 << 20
HINT: Final = "hearth worker status"

Moved = Callable[[], None]
"""Called after each part of a copy; what it raises ends the copy."""


def parts_of(place: str) -> tuple[str, ...]:
    """Return the names below /out of a guest path. Raises ValueError for one that is not below it."""
    root, *names = [part for part in place.split("/") if part]
    if root != "out" or not names or ".." in names:
        raise ValueError(f"{place} is not below /out")
    return tuple(names)


@dataclass(slots=True)
class Copy:
    """A copy into an empty folder of this process's own, of at most `cap` bytes."""

    into: Path
    cap: int
    moved: Moved
    size: int = 0
    entries: int = 0

    def folder(self, names: tuple[str, ...]) -> None:
        """Make a folder."""
        self._enter(names)
        self.into.joinpath(*names).mkdir(mode=0o700)

    def file(self, names: tuple[str, ...], content: IO[bytes] | int) -> None:
        """Copy a file, from a stream or a descriptor."""
        self._enter(names)
        with open(self.into.joinpath(*names), "xb") as target:
            while chunk := os.read(content, CHUNK) if isinstance(content, int) else content.read(CHUNK):
                self.size += len(chunk)
                if self.size > self.cap:
                    raise TooLarge(f"it holds more than the cap of {self.cap} bytes", hint=HINT)
                target.write(chunk)
                self.moved()

    def _enter(self, names: tuple[str, ...]) -> None:
        check_name(os.fsencode(names[-1]), "/".join(names[:-1]))
        self.entries += 1
        if self.entries > MAX_OUTPUT_ENTRIES:
            raise TooLarge(f"it holds more than {MAX_OUTPUT_ENTRIES} entries", hint=HINT)
        if len(names) >= MAX_OUTPUT_DEPTH:
            raise TooLarge(f"a path is deeper than {MAX_OUTPUT_DEPTH}", hint=HINT)
        self.moved()


def copy_folder(out_dir: Path, place: str, into: Path, cap: int, moved: Moved) -> None:
    """Copy a folder below the host's `out_dir`, by descriptors; nothing where it is not there.

    What is renamed or deleted meanwhile is in the copy or not; a file that is opened is copied as it was published.
    Raises UnsafePath, TooLarge, OSError, and what `moved` raises.
    """
    copy = Copy(into, cap, moved)

    def descend(parent: int, name: str) -> int:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)

    def scan(here: int, names: tuple[str, ...]) -> None:
        with os.scandir(here) as found:
            for entry in found:
                if entry.name.startswith("."):
                    continue
                below = (*names, entry.name)
                try:
                    _check_kind(entry.stat(follow_symlinks=False).st_mode, below)
                    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                    opened = os.open(entry.name, flags, dir_fd=here)
                except FileNotFoundError:
                    continue
                try:
                    mode = os.fstat(opened).st_mode
                    _check_kind(mode, below)
                    if stat.S_ISDIR(mode):
                        copy.folder(below)
                        scan(opened, below)
                    else:
                        copy.file(below, opened)
                finally:
                    os.close(opened)

    here = os.open(out_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in parts_of(place):
            try:
                below = descend(here, name)
            except FileNotFoundError:
                return
            except OSError as error:
                raise UnsafePath(f"{place} is no folder", hint=HINT) from error
            os.close(here)
            here = below
        scan(here, ())
    finally:
        os.close(here)


def copy_archive(chunks: Iterable[bytes], place: str, into: Path, cap: int, moved: Moved) -> None:
    """Copy the folder at the guest path `place` from the tar archive that an engine made of it.

    Raises UnsafePath, TooLarge, StorageError where it is no archive, OSError, and what `moved` raises.
    """
    copy, stream = Copy(into, cap, moved), _Stream(chunks)
    top = posixpath.basename(place)
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|") as archive:
            for member in archive:
                root, *rest = [part for part in member.name.split("/") if part not in ("", ".")]
                names = tuple(rest)
                if root != top or ".." in names or (not names and not member.isdir()):
                    raise UnsafePath(f"{place} is no folder", hint=HINT)
                if not names or any(name.startswith(".") for name in names):
                    continue
                if member.isdir():
                    copy.folder(names)
                elif member.isreg() and (content := archive.extractfile(member)) is not None:
                    copy.file(names, content)
                elif member.islnk():
                    raise UnsafePath(f"{plain('/'.join(names))} is a hard link", hint=HINT)
                else:
                    _check_kind(0, names)
                archive.members = []  # type: ignore[attr-defined]  # it would remember every one
        while stream.read(CHUNK):
            pass
        if stream.tail != bytes(len(stream.tail)):
            raise EOFError("it is cut off")  # which ends it as well as its end does, for this library
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise StorageError(f"the engine's archive cannot be read: {error}", code="UNREADABLE", hint=HINT) from error


def _check_kind(mode: int, names: tuple[str, ...]) -> None:
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise UnsafePath(f"{plain('/'.join(names))} is not a regular file or folder", hint=HINT)


class _Stream:
    """Read from chunks as from a file."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""
        self.tail = b"?"
        """The last kilobyte: zeros, at the end of a whole archive."""

    def read(self, size: int) -> bytes:
        while len(self._rest) < size and (chunk := next(self._chunks, b"")):
            self._rest += chunk
            self.tail = (self.tail + chunk)[-1024:]
        data, self._rest = self._rest[:size], self._rest[size:]
        return data
