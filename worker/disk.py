"""The disk under a worker's home: how much of it is free, in bytes and in files, and what that still allows.

Below the reserve nothing new is taken. Below the floor, a quarter of it, attempts are stopped, so that beats, submits
and journals go on; what these need on a disk that is full at once is in a spare file (`hearth.base.files.Spare`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hearth.base.files import Spare, free_bytes, free_entries
from hearth.protocol.runtimes import MAX_INPUT_ENTRIES, MAX_OUTPUT_ENTRIES
from hearth.protocol.units import format_size

SPARE_FILE: Final = "spare"
FLOOR_SHARE: Final = 4
"""The floor is the reserve divided by this."""
ENTRIES: Final = MAX_INPUT_ENTRIES + MAX_OUTPUT_ENTRIES
"""Files that one job may bring and leave: the reserve of a file system's files, where it has many more."""
ENTRIES_SHARE: Final = 8
"""A small file system keeps one file in this many."""


class Disk:
    """The file system of one home; `reserve` is in bytes."""

    def __init__(self, home: Path, reserve: int) -> None:
        self.home = home
        self.keep(reserve)
        self.spare = Spare(home / SPARE_FILE)

    def keep(self, reserve: int) -> None:
        """Set the reserve, in bytes."""
        self.reserve = reserve
        self.floor = reserve // FLOOR_SHARE

    @property
    def free(self) -> int:
        """Return the bytes that can still be written; the spare does not count."""
        return free_bytes(self.home)

    @property
    def short(self) -> bool:
        """Say whether nothing new may be taken."""
        return self.free < self.reserve or self._lacks_entries(1)

    @property
    def full(self) -> bool:
        """Say whether attempts must make room."""
        return self.free < self.floor or self._lacks_entries(FLOOR_SHARE)

    @property
    def claimable(self) -> int:
        """Return the bytes that can be written without passing the floor, less than 0 where it was passed."""
        return self.free - self.floor

    def has(self, size: int) -> bool:
        """Say whether `size` bytes can be written without passing the floor."""
        return size <= self.claimable and not self._lacks_entries(FLOOR_SHARE)

    def spares(self, size: int) -> bool:
        """Say whether `size` bytes can be written without touching the reserve: of what nobody is owed."""
        return self.free - size >= self.reserve and not self._lacks_entries(1)

    def in_words(self) -> str:
        """Return how much is free, and of which reserve."""
        if self._lacks_entries(1):
            left, most = free_entries(self.home)
            return f"{left:,} of the {most:,} files that this file system can hold are free"
        return f"{size_in_words(self.free)} of disk are free, and {size_in_words(self.reserve)} are the reserve"

    def _lacks_entries(self, share: int) -> bool:
        """Say whether fewer files can be made than the reserve of files divided by `share`."""
        left, most = free_entries(self.home)
        return self.reserve > 0 and left < min(ENTRIES, most // ENTRIES_SHARE) // share


def size_in_words(size: int) -> str:
    """Return a size in whole MiB, rounded down."""
    return format_size(size >> 20 << 20)
