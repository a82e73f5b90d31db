"""The files of one guest: descriptors, paths below mounts, and caps that end a guest at the very write past one.

Two machines show the same: numbers of files are made from guest paths, folders are listed in order, and their sizes and
all times are left out. No links: a symbolic link can be neither made nor followed, so `..` can be resolved by name and
never leaves a mount. Methods raise Errno, or OSError where the host's file system refuses.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from worker.runtimes import wasi_abi as abi
from worker.runtimes.base import MAX_OUTPUT_DEPTH, MAX_OUTPUT_ENTRIES
from worker.runtimes.wasi_abi import Errno

MAX_FDS = 256
MAX_ENTRIES = MAX_OUTPUT_ENTRIES
MAX_LISTED = 1 << 16  # names of listed folders that are kept, so that no guest fills the host's memory with them
MAX_DEPTH = MAX_OUTPUT_DEPTH - 1  # names below a mount: a tree must stay within what tools can walk and delete
_FOLDER_FLAGS = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class OverCap(Exception):
    """End the guest because it wrote more than a folder's cap."""


@dataclass
class Quota:
    """Count the bytes and entries of one writable mount."""

    name: str
    cap: int
    used: int = 0
    entries: int = 0

    def grow(self, size: int) -> None:
        """Take `size` bytes, or end the guest."""
        if self.used + size > self.cap:
            raise OverCap(f"{self.name} would hold {self.used + size} bytes, more than its cap of {self.cap}")
        self.used += size

    def add_entry(self) -> None:
        """Take one directory entry, or end the guest."""
        if self.entries + 1 > MAX_ENTRIES:
            raise OverCap(f"{self.name} would hold more than {MAX_ENTRIES} entries")
        self.entries += 1


@dataclass(frozen=True)
class Mount:
    """Show the host folder `host` to the guest as `guest`; no quota means read-only."""

    guest: str
    host: str
    quota: Quota | None = None


@dataclass
class WrittenFile:
    """Follow one written file, so that its bytes count until it is both unlinked and closed."""

    size: int
    opens: int = 0
    linked: bool = True


@dataclass
class Stream:
    """Stand for stdin (no sink, always at its end), stdout or stderr."""

    sink: Callable[[bytes], None] | None


@dataclass
class OpenFolder:
    """Hold an open directory: its mount, its guest path below the mount, its host descriptor, and its names."""

    mount: Mount
    path: tuple[str, ...]
    fd: int
    preopen: bool = False
    listing: list[tuple[bytes, int, int]] | None = None


@dataclass
class OpenFile:
    """Hold an open regular file with the guest's own offset."""

    mount: Mount
    path: tuple[str, ...]
    fd: int
    key: tuple[int, int]
    readable: bool
    writable: bool
    append: bool
    offset: int = 0


class Place(NamedTuple):
    """Name an entry: the names below an open folder, and whether the path must be a folder."""

    base: OpenFolder
    names: tuple[str, ...]
    as_folder: bool

    @property
    def path(self) -> tuple[str, ...]:
        """Return the guest path below the mount."""
        return self.base.path + self.names

    @property
    def leaf(self) -> str:
        """Return the last name, "." for the base itself."""
        return self.names[-1] if self.names else "."

    def need_quota(self) -> Quota:
        """Return what counts writes here. Raises Errno(ROFS) where nothing may be written."""
        if self.base.mount.quota is None:
            raise Errno(abi.ROFS)
        return self.base.mount.quota


class Facts(NamedTuple):
    """Say of a file what every machine says alike."""

    number: int
    kind: int
    size: int


def number_of(mount: Mount, path: tuple[str, ...]) -> int:
    """Return a file number made from the guest path, the same on every machine."""
    root = "/job" if mount.guest == "." else mount.guest
    digest = hashlib.sha256("/".join((root, *path)).encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "little") | 1


def facts_of(mount: Mount, path: tuple[str, ...], info: os.stat_result) -> Facts:
    """Return a file's facts from the host's. Raises Errno(ACCES) for what is neither file nor folder."""
    if stat.S_ISDIR(info.st_mode):
        kind, size = abi.DIRECTORY, 0  # a directory's own size is the host file system's business
    elif stat.S_ISREG(info.st_mode):
        kind, size = abi.REGULAR_FILE, info.st_size
    else:
        raise Errno(abi.ACCES)
    return Facts(number_of(mount, path), kind, size)


def locate(base: OpenFolder, path: str) -> Place:
    """Resolve a guest's path by name; one that leaves its base is refused."""
    if not path:
        raise Errno(abi.NOENT)
    if path.startswith("/"):
        raise Errno(abi.PERM)
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            if not names:
                raise Errno(abi.PERM)
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    if len(base.path) + len(names) > MAX_DEPTH:
        raise Errno(abi.NAMETOOLONG)
    return Place(base, tuple(names), path.endswith(("/", "/.", "/..")))


@contextmanager
def opened_parent(place: Place) -> Iterator[int]:
    """Open the folder that holds the last name, step by step, following no link."""
    here = os.dup(place.base.fd)
    try:
        for name in place.names[:-1]:
            below = os.open(name, os.O_PATH | _FOLDER_FLAGS, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def look(place: Place) -> os.stat_result:
    """Return what the host says of an entry; a link is not followed."""
    with opened_parent(place) as parent:
        return os.stat(place.leaf, dir_fd=parent, follow_symlinks=False)


def list_folder(folder: OpenFolder, pay: Callable[[int], None]) -> list[tuple[bytes, int, int]]:
    """Return (name, number, file type) of what is in a folder: itself, its parent, then the rest in order.

    `pay` is told how many there are before any of them is looked at.
    """
    found = [
        (b".", number_of(folder.mount, folder.path), abi.DIRECTORY),
        (b"..", number_of(folder.mount, folder.path[:-1]), abi.DIRECTORY),
    ]
    with os.scandir(folder.fd) as scan:
        entries = list(scan)
        pay(len(entries))
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                kind = abi.DIRECTORY
            elif entry.is_file(follow_symlinks=False):
                kind = abi.REGULAR_FILE
            else:
                continue
            found.append((os.fsencode(entry.name), number_of(folder.mount, (*folder.path, entry.name)), kind))
    return found[:2] + sorted(found[2:])


def left_of(file: OpenFile, size: int, offset: int) -> int:
    """Return how many of `size` bytes from `offset` on a file has; one that may not be read is refused."""
    if not file.readable:
        raise Errno(abi.BADF)
    return max(0, min(size, os.fstat(file.fd).st_size - offset))


def read_at(file: OpenFile, size: int, offset: int) -> bytes:
    """Return up to `size` bytes, fewer only at the end of the file; `offset` is within it where there are any."""
    data = b""
    while len(data) < size and (more := os.pread(file.fd, size - len(data), offset + len(data))):
        data += more
    return data


class Files:
    """Hold a guest's open files, and count what it writes."""

    def __init__(self, mounts: list[Mount], stdout: Callable[[bytes], None], stderr: Callable[[bytes], None]) -> None:
        self._written: dict[tuple[int, int], WrittenFile] = {}
        self._fds: dict[int, Stream | OpenFolder | OpenFile] = {0: Stream(None), 1: Stream(stdout), 2: Stream(stderr)}
        for mount in mounts:
            fd = os.open(mount.host, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._fds[len(self._fds)] = OpenFolder(mount, (), fd, preopen=True)
        self._listed: list[OpenFolder] = []
        """Folders whose names are kept, the last one read at the end."""

    # ---- descriptors ----

    def __contains__(self, fd: int) -> bool:
        return fd in self._fds

    def __len__(self) -> int:
        return len(self._fds)

    def need(self, fd: int) -> Stream | OpenFolder | OpenFile:
        """Return what a descriptor stands for."""
        found = self._fds.get(fd)
        if found is None:
            raise Errno(abi.BADF)
        return found

    def need_file(self, fd: int, *, write: bool = False) -> OpenFile:
        """Return an open regular file, one that may be written where that is asked."""
        found = self.need(fd)
        if isinstance(found, Stream):
            raise Errno(abi.SPIPE)
        if isinstance(found, OpenFolder):
            raise Errno(abi.ISDIR)
        if write and not found.writable:
            raise Errno(abi.ROFS if found.mount.quota is None else abi.BADF)
        return found

    def need_folder(self, fd: int) -> OpenFolder:
        """Return an open folder."""
        found = self.need(fd)
        if not isinstance(found, OpenFolder):
            raise Errno(abi.NOTDIR)
        return found

    def close(self, fd: int) -> None:
        """Close a descriptor; the bytes of a file that has no name any more are free then."""
        found = self.need(fd)
        del self._fds[fd]
        if isinstance(found, Stream):
            return
        os.close(found.fd)
        if isinstance(found, OpenFile):
            self._drop_open(found)
        else:
            self._listed = [folder for folder in self._listed if folder is not found]

    def _drop_open(self, file: OpenFile) -> None:
        written = self._written.get(file.key)
        if written is None:
            return
        written.opens -= 1
        if written.opens == 0:
            del self._written[file.key]
            if not written.linked and file.mount.quota is not None:
                file.mount.quota.used -= written.size

    def renumber(self, fd: int, target: int) -> None:
        """Let `target` stand for what `fd` stands for, and close what it stood for."""
        source = self.need(fd)
        self.need(target)
        if fd != target:
            self.close(target)
            del self._fds[fd]
            self._fds[target] = source

    def _free_fd(self) -> int:
        for fd in range(MAX_FDS):
            if fd not in self._fds:
                return fd
        raise Errno(abi.MFILE)

    # ---- open folders ----

    def listing(self, folder: OpenFolder, pay: Callable[[int], None], *, anew: bool) -> list[tuple[bytes, int, int]]:
        """Return what is in a folder, as it was when the guest began to read it (`anew`), see `list_folder`.

        Names are kept up to MAX_LISTED; a folder whose names had to go is listed again where the guest goes on with it.
        """
        listing = None if anew else folder.listing
        if listing is None:
            listing = folder.listing = list_folder(folder, pay)
        self._listed = [*(other for other in self._listed if other is not folder), folder]
        while len(self._listed) > 1 and sum(len(one.listing or ()) for one in self._listed) > MAX_LISTED:
            self._listed.pop(0).listing = None
        return listing

    # ---- open files ----

    def size_of(self, file: OpenFile) -> int:
        """Return the size of a file that may be written."""
        return self._written[file.key].size

    def resize(self, file: OpenFile, size: int) -> None:
        """Cut a writable file, or let it grow within its cap by zeros that take no room on the disk."""
        self._count(file, size)
        os.ftruncate(file.fd, size)

    def _count(self, file: OpenFile, size: int) -> None:
        written, quota = self._written[file.key], file.mount.quota
        assert quota is not None
        if size > written.size:
            quota.grow(size - written.size)
        else:
            quota.used -= written.size - size
        written.size = size

    def write_at(self, file: OpenFile, data: bytes, offset: int) -> None:
        """Write all of `data`; what passes the cap ends the guest before a byte of it is written."""
        if data and offset + len(data) > self.size_of(file):
            self._count(file, offset + len(data))
        done = 0
        while done < len(data):
            done += os.pwrite(file.fd, data[done:], offset + done)

    # ---- paths ----

    def open(self, place: Place, oflags: int, *, read: bool, write: bool, append: bool) -> int:
        """Open or create an entry and return its descriptor; `oflags` are the ABI's O_ flags."""
        as_folder = place.as_folder or bool(oflags & abi.O_DIRECTORY)
        fd = self._free_fd()
        write = write and not as_folder
        truncate = bool(oflags & abi.O_TRUNC)
        if write or truncate or oflags & abi.O_CREAT:
            place.need_quota()
        with opened_parent(place) as parent:
            info = _found_or_created(place, parent, oflags, as_folder)
            if stat.S_ISDIR(info.st_mode):
                if write or truncate:
                    raise Errno(abi.ISDIR)
                opened = os.open(place.leaf, os.O_RDONLY | _FOLDER_FLAGS, dir_fd=parent)
                self._fds[fd] = OpenFolder(place.base.mount, place.path, opened)
            elif stat.S_ISREG(info.st_mode):
                if as_folder:
                    raise Errno(abi.NOTDIR)
                flags = os.O_RDWR if write or truncate else os.O_RDONLY
                opened = os.open(place.leaf, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
                info = os.fstat(opened)
                key = (info.st_dev, info.st_ino)
                file = OpenFile(place.base.mount, place.path, opened, key, read, write, append)
                self._follow_writes(file, info.st_size, truncate=truncate)
                self._fds[fd] = file
            else:
                raise Errno(abi.LOOP if stat.S_ISLNK(info.st_mode) else abi.ACCES)
        return fd

    def _follow_writes(self, file: OpenFile, size: int, *, truncate: bool) -> None:
        if file.mount.quota is not None:
            self._written.setdefault(file.key, WrittenFile(size)).opens += 1
            if truncate:
                self.resize(file, 0)

    def create_folder(self, place: Place) -> None:
        """Create a folder."""
        quota = place.need_quota()
        if not place.names:
            raise Errno(abi.EXIST)
        with opened_parent(place) as parent:
            quota.add_entry()
            try:
                os.mkdir(place.leaf, 0o755, dir_fd=parent)
            except OSError:
                quota.entries -= 1
                raise

    def remove_folder(self, place: Place) -> None:
        """Remove an empty folder."""
        quota = place.need_quota()
        if not place.names:
            raise Errno(abi.INVAL)
        with opened_parent(place) as parent:
            os.rmdir(place.leaf, dir_fd=parent)
            quota.entries -= 1

    def unlink(self, place: Place) -> None:
        """Take a regular file's name."""
        quota = place.need_quota()
        if not place.names or place.as_folder:
            raise Errno(abi.ISDIR if not place.names else abi.NOTDIR)
        with opened_parent(place) as parent:
            info = os.stat(place.leaf, dir_fd=parent, follow_symlinks=False)
            os.unlink(place.leaf, dir_fd=parent)
            self._forget(quota, info)

    def _forget(self, quota: Quota, info: os.stat_result) -> None:
        """Account for a regular file that lost its name; while it is open its bytes stay counted."""
        quota.entries -= 1
        written = self._written.get((info.st_dev, info.st_ino))
        if written is None:
            quota.used -= info.st_size
        else:
            written.linked = False

    def rename(self, place: Place, to: Place) -> None:
        """Move an entry within its mount, over what is there; a folder may not move down."""
        quota = place.need_quota()
        if to.need_quota() is not quota:
            raise Errno(abi.XDEV)
        if not place.names or not to.names:
            raise Errno(abi.INVAL)
        with opened_parent(place) as parent, opened_parent(to) as to_parent:
            source = os.stat(place.leaf, dir_fd=parent, follow_symlinks=False)
            if stat.S_ISDIR(source.st_mode) and len(to.path) > len(place.path):
                raise Errno(abi.NOTSUP)  # moved down and down again, a tree would pass MAX_DEPTH
            try:
                target = os.stat(to.leaf, dir_fd=to_parent, follow_symlinks=False)
            except FileNotFoundError:
                target = None
            os.rename(place.leaf, to.leaf, src_dir_fd=parent, dst_dir_fd=to_parent)
            self._follow_move(place.base.mount, place.path, to.path)
            if target is None or (target.st_dev, target.st_ino) == (source.st_dev, source.st_ino):
                return
            if stat.S_ISDIR(target.st_mode):
                quota.entries -= 1
            else:
                self._forget(quota, target)

    def _follow_move(self, mount: Mount, source: tuple[str, ...], target: tuple[str, ...]) -> None:
        """Give what is open the path that it has now: depths are judged by it, and file numbers are made from it."""
        for found in self._fds.values():
            if not isinstance(found, Stream) and found.mount is mount and found.path[: len(source)] == source:
                found.path = target + found.path[len(source) :]


def _found_or_created(place: Place, parent: int, oflags: int, as_folder: bool) -> os.stat_result:
    """Return what the host says of an entry, which is created where `oflags` ask for it."""
    try:
        info = os.stat(place.leaf, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        if not oflags & abi.O_CREAT or as_folder:
            raise
        place.need_quota().add_entry()
        os.close(os.open(place.leaf, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644, dir_fd=parent))
        return os.stat(place.leaf, dir_fd=parent, follow_symlinks=False)
    if oflags & abi.O_CREAT and oflags & abi.O_EXCL:
        raise Errno(abi.EXIST)
    return info
