"""The wall clock of daemons, which a test sets while they run; every other clock is the machine's.

What starts or forks them imports this before the programs, so that what they call `time.time` is this one. It is what
the product reads the wall clock by. libfaketime 0.9.10 does not carry Python 3.11: its sleeps and waits until a moment
of the monotonic clock fail or spin under it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

FILE = "CHAOS_CLOCK"
"""The variable that names the file with how far off a process's clock is, in seconds."""
_true = time.time


def preload() -> None:
    """Let this process, and those that it forks, read the clock that FILE names."""
    time.time = _read


def _read() -> float:
    file = os.environ.get(FILE)
    return _true() + (int(Path(file).read_text()) if file else 0)


class Clock:
    """The wall clock of some processes; `environ` is theirs."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.environ = {FILE: str(file)}
        self.set(0)

    def set(self, seconds: int) -> None:
        """Let it be so far from the true one, from now on."""
        part = self._file.with_suffix(".part")
        part.write_text(str(seconds))
        part.replace(self._file)
