"""Locks by which the workers of one machine do not give the same GPU to two jobs; the kernel frees those of a process
that dies."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Final

import structlog

log = structlog.get_logger("worker.gpu")

FOLDER: Final = Path("/run/lock")
TRIES: Final = 3
PAUSE_SECONDS: Final = 0.002
"""Another worker that only looks whether a GPU is free has its lock for a moment."""


class Locks:
    """The locks that this worker has, by the GPUs' UUIDs."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or (FOLDER if os.access(FOLDER, os.W_OK) else Path(tempfile.gettempdir()))
        self._held: dict[str, int] = {}
        if folder is None and self._folder != FOLDER:
            log.warning("workers of this machine may not see each other's GPUs", locks=str(self._folder), wanted=FOLDER)

    def take(self, uuid: str) -> bool:
        """Lock a GPU; False where another worker has it. One that cannot be locked is taken all the same, and that is
        said: a stranger's file must take no GPU out of service. One who locks this file can: he has a user here."""
        descriptor = -1
        try:
            descriptor = _opened(self._folder / f"hearth-{uuid}.lock")
            if not _locked(descriptor):
                os.close(descriptor)
                return False
        except OSError as failed:
            log.warning("other workers of this machine may take the same GPU", gpu=uuid, why=str(failed))
            if descriptor >= 0:
                os.close(descriptor)
            return True
        self._held[uuid] = descriptor
        return True

    def release(self, uuid: str) -> None:
        """Give a lock back; one that is not held is passed over."""
        descriptor = self._held.pop(uuid, None)
        if descriptor is not None:
            os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Lock an open file; False where another process has it. Raises OSError."""
    for left in reversed(range(TRIES)):
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            if left:
                time.sleep(PAUSE_SECONDS)
        else:
            return True
    return False


def _opened(path: Path) -> int:
    """Open a lock's file, which a worker of another user may have made. Raises OSError."""
    # What a stranger of this machine put there must neither be followed nor waited for.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = -1
    with suppress(FileNotFoundError):
        descriptor = os.open(path, flags)
    if descriptor < 0:
        with suppress(FileExistsError):  # another worker's, of this moment
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
    if descriptor < 0:
        descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no file")
    return descriptor
