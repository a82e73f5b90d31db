"""Small disks of their own for tests that fill one: mounted by root, skipped or refused elsewhere."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.require import require

MIB = 1 << 20


def need_mounts() -> None:
    """Skip, or fail where CI says so, unless this process may mount file systems."""
    able = os.geteuid() == 0 and not subprocess.run(["unshare", "-m", "true"], check=False).returncode
    require("mounts", able, "mounting needs root")


@contextmanager
def small_disk(path: Path, size: int, *, files: int = 0) -> Iterator[Path]:
    """Mount a file system in memory of `size` bytes and so many `files` (0: any) at `path`, private to its owner."""
    need_mounts()
    path.mkdir(parents=True, exist_ok=True)
    options = f"size={size},nr_inodes={files},mode=0700,nosuid,nodev"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "hearth-test", str(path)], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill(path: Path) -> None:
    """Let a file grow until its disk has not one byte left."""
    with open(path, "ab", buffering=0) as file:
        for part in (MIB, 4096, 1):
            while True:
                try:
                    if file.write(b"x" * part) < part:
                        break
                except OSError as error:
                    assert error.errno == errno.ENOSPC
                    break
