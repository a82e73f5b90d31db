"""Files that only their owner reads, files that are written in one step, and what a full disk asks of both."""

from __future__ import annotations

import errno
import io
import os
import secrets
import shlex
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, overload

from hearth.base.errors import BadDestination, ConfigError, StorageError, UsageError

AnyPath = str | os.PathLike[str]
"""A path as a caller of the library has it."""

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""How the kernel says that a disk, or a share of it, is full."""
SPARE_BYTES: Final = 16 << 20
"""Room for about 150 transitions of two journals whose write-ahead logs grow to 4 MiB each before they are emptied."""


def expand(path: Path) -> Path:
    """Return a path with the home of a user in place of ~ or ~NAME. Raises ValueError where there is no such user."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"this machine has no user {path.parts[0][1:] or 'with a home'}") from error


def open_still(path: Path) -> int:
    """Open a file or folder for reading, with no link followed on its way: what became one since is refused.

    `path` is absolute and was resolved. Nothing waits for a pipe. Raises OSError.
    """
    way = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    here = os.open("/", way)
    try:
        for part in path.parts[1:-1]:
            there = os.open(part, way, dir_fd=here)
            os.close(here)
            here = there
        name = path.parts[-1] if len(path.parts) > 1 else "."
        # Looked at before it is opened: opening a device can act on it.
        kind = os.stat(name, dir_fd=here, follow_symlinks=False).st_mode
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            raise OSError(errno.EINVAL, "it is no file and no folder", str(path))
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)


def read_bounded(path: Path, limit: int) -> bytes:
    """Return what a file, or a pipe that somebody writes to, holds: one byte more than `limit` at most.

    A pipe without a writer is empty, and keeps nobody waiting. Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    with open(descriptor, "rb") as file:
        return file.read(limit + 1)


@overload
def path_of(given: AnyPath) -> Path: ...


@overload
def path_of(given: AnyPath | None) -> Path | None: ...


def path_of(given: AnyPath | None) -> Path | None:
    """Return a path that a caller gave as text or as a path, its ~ written out; None for none.

    Raises TypeError for anything else, UsageError BAD_PATH for what no path can be.
    """
    if given is None:
        return None
    if not isinstance(given, str | os.PathLike) or isinstance(text := os.fspath(given), bytes):
        raise TypeError(f"a path is a str or a pathlib.Path, not {type(given).__name__}")
    if not text or "\0" in text:
        raise UsageError("a path without a name, or with a zero byte in it, names no file", code="BAD_PATH")
    try:
        return expand(Path(text))
    except ValueError as error:
        raise UsageError(f"{text}: {error}", hint="write the path out, from /", code="BAD_PATH") from error


def is_path(text: str) -> bool:
    """Say whether a text that names a network or its file is the path of a file."""
    return "/" in text or text.endswith(".json")


def make_private(folder: Path) -> Path:
    """Create a folder that only its owner can read, or check that an existing one is; return it.

    Raises ConfigError OPEN_FOLDER.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077:
        raise ConfigError(
            f"{folder} can be entered by others (mode {mode:04o})", hint=f"chmod 700 {folder}", code="OPEN_FOLDER"
        )
    return folder


def check_private(path: Path, what: str) -> None:
    """Refuse a file with a secret in it that others can read. Raises ConfigError OPEN_FILE, NO_FILE."""
    try:
        status = path.stat()
    except OSError as error:
        raise ConfigError(
            f"{what} {path} cannot be read: {error.strerror}", hint=f"ls -l {path}", code="NO_FILE"
        ) from error
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"{what} {path} is not a file", hint=f"ls -l {path}", code="NO_FILE")
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        raise ConfigError(
            f"{what} {path} can be read by others (mode {mode:04o})", hint=f"chmod 600 {path}", code="OPEN_FILE"
        )


@contextmanager
def new_file(path: Path, *, dry_run: bool = False, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a file that does not exist yet: what is written stands under its name once the context ends, or not at all.

    A dry run writes it nowhere; a `private` one only its owner reads. Raises BadDestination where the name is taken or
    the file cannot be written, and what the context raises as it is; nothing is left behind.
    """
    if path.exists():
        raise BadDestination(f"{path} exists already", hint="name a file that does not exist")
    if dry_run:
        with open(os.devnull, "wb") as nowhere:
            yield nowhere
        return
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with refused_as(path):
            raw = _Named(path, draft, 0o600 if private else 0o666)
        with io.BufferedWriter(raw) as out:
            # What the caller reads meanwhile fails under its own name.
            yield out
            with refused_as(path):
                out.flush()
                os.fsync(out.fileno())
        with refused_as(path):
            # A link takes no name that came meanwhile, unlike a renaming.
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def refused_as(path: Path, hint: str = "name another path, on a disk with room") -> Iterator[None]:
    """Name the file that was asked for where the system refuses to write it. Raises BadDestination."""
    try:
        yield
    except OSError as error:
        if not path.parent.exists():
            hint = f"mkdir -p {shlex.quote(str(path.parent))}"
        raise BadDestination(f"{path} cannot be written: {error.strerror}", hint=hint) from error


class _Named(io.FileIO):
    """A new file that says, where it cannot be written, under which name it was to stand."""

    def __init__(self, path: Path, draft: Path, mode: int) -> None:
        super().__init__(draft, "xb", opener=lambda name, flags: os.open(name, flags, mode))
        self._path = path

    def write(self, data: Any, /) -> int:
        """Write as a file does. Raises BadDestination."""
        with refused_as(self._path):
            return super().write(data)


def replace_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a file in one step: a reader sees the old text or the new one, never half of either.

    A `durable` write has reached the disk on return, its folder's entry too. Raises OSError, with nothing left behind.
    """
    draft = path.with_name(path.name + ".part")
    try:
        with open(draft, "w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    if durable:
        flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Write a folder's entries to the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def delete_tree(*paths: Path) -> None:
    """Delete files, links and trees however deep, as far as they can be deleted.

    `rm` and not shutil: a stranger's tree of a thousand levels ends Python's recursion.
    """
    here = [str(path) for path in paths if os.path.lexists(path)]
    if here:
        # Found where every system has it, whatever PATH a service manager gave this program.
        system = {"PATH": os.defpath}
        subprocess.run(
            ["rm", "-rf", "--", *here], check=False, env=system, stdin=subprocess.DEVNULL, capture_output=True
        )


def free_bytes(path: Path) -> int:
    """Return the bytes that an unprivileged process can still write under `path` (or its nearest existing parent)."""
    found = _file_system(path)
    return found.f_bavail * found.f_frsize


def free_entries(path: Path) -> tuple[int, int]:
    """Return how many files can still be made under `path` (or its nearest existing parent), and how many in all.

    Both are 0 where the file system counts none, as btrfs.
    """
    found = _file_system(path)
    return (found.f_favail, found.f_files) if found.f_files else (0, 0)


def nearest(path: Path) -> Path:
    """Return a path, or where nothing is there the first of its parents that is."""
    here = path
    while not here.exists():
        here = here.parent
    return here


def refusal_of(error: OSError) -> StorageError:
    """Return what a person reads where the system refused a file that nothing can be done without."""
    name = error.filename if isinstance(error.filename, str | bytes | os.PathLike) else None
    why = error.strerror or str(error)
    if name is None:
        hint = "make room: df -h" if error.errno in NO_ROOM else ""
        return StorageError(why, hint=hint, code="FILE_REFUSED", component="hearth")
    path = Path(os.fsdecode(name))
    return StorageError(f"{path}: {why}", hint=mending(path), code="FILE_REFUSED", component="hearth")


def mending(path: Path) -> str:
    """Return the commands that show why a path cannot be used: whose it is, and how its disk stands."""
    here = nearest(path.absolute())
    return f"mend it, or name another place: ls -ld {here}; df {here}"


def _file_system(path: Path) -> os.statvfs_result:
    return os.statvfs(nearest(path))


class Spare:
    """Room on a disk for the moment at which it is full: a file of allocated blocks that is given up then.

    What it gives back, others may take too: whoever gives it up writes at once.
    """

    def __init__(self, path: Path, size: int = SPARE_BYTES) -> None:
        self.path = path
        self._size = size

    def hold(self) -> bool:
        """Make the file where it is not there and the disk has twice its room; say whether it is there."""
        if self.path.exists():
            return True
        draft = self.path.with_name(self.path.name + ".part")
        try:
            if free_bytes(self.path.parent) < 2 * self._size:
                return False
            with open(draft, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, self._size)
            draft.replace(self.path)
        except OSError:  # someone else was faster: the next call tries again
            draft.unlink(missing_ok=True)
            return False
        return True

    def give_up(self) -> bool:
        """Give the room back to the disk; say whether there was any."""
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        return True
