"""Files that only their owner reads, and files that are written in one step."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hearth.base.errors import ConfigError


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


def replace_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a file in one step: a reader sees the old text or the new one, never half of either.

    A `durable` write has reached the disk on return, its folder's entry too. Raises OSError.
    """
    draft = path.with_name(path.name + ".part")
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    draft.replace(path)
    if durable:
        flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Write a folder's entries to the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
