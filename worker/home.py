"""The worker's home folder: one worker's at a time, whatever its key."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hearth.base.errors import ConfigError
from hearth.base.locks import FileLock, holder, is_held

LOCK_FILE: Final = "worker.lock"
OWN_HOME: Final = "set another home in worker.toml: every worker has one of its own"
GLANCE_SECONDS: Final = 1.0
"""How long a start waits for the lock: a command that looks whether a worker runs shares it for an instant."""


def hold(home: Path) -> FileLock:
    """Return the lock of a worker's home, to be held while the worker runs.

    Its journal, its work folders and the files that commands leave for it are one worker's: two would stop each
    other's attempts. Entering it raises ConfigError HOME_IN_USE where another worker runs there.
    """

    def busy(pid: int | None) -> ConfigError:
        return ConfigError(
            f"process {pid or '(starting)'} is a worker in {home}: two workers cannot share a home",
            hint=OWN_HOME,
            code="HOME_IN_USE",
            component="worker",
            pid=pid,
        )

    return FileLock(home / LOCK_FILE, busy, wait_seconds=GLANCE_SECONDS)


def is_running(home: Path) -> bool:
    """Say whether a worker runs in a home."""
    return is_held(home / LOCK_FILE)


def runs_as(home: Path, process: int) -> bool:
    """Say whether the worker that runs in a home is a process; of a killed one the number may live on for a while."""
    return is_running(home) and holder(home / LOCK_FILE) in (None, process)
