"""A file that one process holds: the kernel's lock, which ends with the process however that ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from hearth.base.errors import ConfigError, HearthError

_POLL_SECONDS = 0.05


class FileLock:
    """Hold a file for one process: `with FileLock(path, busy): ...`. The file stays, with the holder's process id.

    With `wait_seconds`, wait that long for another holder; then raise what `busy` makes of its process id (None where
    it has not written it yet). Raises ConfigError where the file cannot be made.
    """

    def __init__(self, path: Path, busy: Callable[[int | None], HearthError], *, wait_seconds: float = 0.0) -> None:
        self.path = path
        self._busy = busy
        self._wait_seconds = wait_seconds
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock."""
        if self._descriptor is not None:
            raise RuntimeError(f"{self.path} is held by this object already")
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise ConfigError(
                f"{self.path} cannot be locked: {error.strerror}", hint=f"ls -ld {self.path.parent}"
            ) from error
        try:
            self._flock(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        os.ftruncate(descriptor, 0)
        with suppress(OSError):  # a full disk: the lock is the kernel's, the number is for whoever is refused
            os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        self._descriptor = descriptor

    def refuse_held(self) -> None:
        """Raise what `busy` makes where a process holds the lock; nothing is made or held."""
        if is_held(self.path):
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                raise self._busy(_process(descriptor))
            finally:
                os.close(descriptor)

    def release(self) -> None:
        """Give the lock back; without one, do nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> FileLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _flock(self, descriptor: int) -> None:
        deadline = time.monotonic() + self._wait_seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise self._busy(_process(descriptor)) from None
            time.sleep(_POLL_SECONDS)


def holder(path: Path) -> int | None:
    """Return the process id of whoever holds a lock, None where nobody does or has not written it yet."""
    if not is_held(path):
        return None
    with open(path, "rb") as file:
        return _process(file.fileno())


def is_held(path: Path) -> bool:
    """Say whether a process holds a lock; a file that is not there, or that is not ours to read, is not held.

    To find out, the lock is shared for an instant: whoever takes it meanwhile needs a little `wait_seconds`.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _process(descriptor: int) -> int | None:
    """Return the process id in a lock's file, None where there is none yet."""
    text = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
    return int(text) if text.isdigit() else None
