"""Read a settings file again while a program runs: whole or not at all, and say what came of it.

SIGHUP asks for it. The file is parsed and checked whole; what is refused changes nothing. Keys that a running program
can take up are taken up together, the others stay as they were and are named, since they need a restart. A file that
is being written is waited for until it has stood still. What came of it is in the log, and in `reload.json` of the
program's home, where the command that asked reads it.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import structlog

from hearth.base.errors import ConfigError, HearthError
from hearth.base.files import replace_text
from hearth.base.locks import holder
from hearth.config.sections import Section

S = TypeVar("S", bound=Section)

OUTCOME_FILE: Final = "reload.json"
STILL_SECONDS: Final = 0.5
"""A file that has not changed for this long is not being written."""
WAIT_SECONDS: Final = 45.0
"""How long the command waits for the program: its longest pause after failures, and a little more."""

log = structlog.get_logger("reload")


def keys_of(settings: Section) -> dict[str, Any]:
    """Return every key of settings with its value, by its name in the file: "accept.images"."""
    found: dict[str, Any] = {}
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, Section):
            found |= {f"{name}.{key}": one for key, one in keys_of(value).items()}
        else:
            found[name] = value
    return found


def is_live(key: str, live: frozenset[str]) -> bool:
    """Say whether a key, or the whole section that it is in, can be taken up by a running program."""
    return key in live or f"{key.partition('.')[0]}.*" in live


def merged(old: S, new: S, live: frozenset[str]) -> S:
    """Return `old` with the live keys of `new`."""
    changes: dict[str, Any] = {}
    for name in type(old).model_fields:
        before, after = getattr(old, name), getattr(new, name)
        if is_live(name, live) or f"{name}.*" in live:
            changes[name] = after
        elif isinstance(before, Section) and isinstance(after, Section):
            inner = frozenset(key.partition(".")[2] for key in live if key.startswith(f"{name}."))
            changes[name] = merged(before, after, inner)
    return old.model_copy(update=changes)


class Reloader(Generic[S]):
    """What a program's loop does about a settings file that changed: `turn` at every round."""

    def __init__(
        self,
        path: Path,
        load: Callable[[Path], S],
        live: frozenset[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path, self._load, self._live, self._clock = path, load, live, clock
        self._asked = threading.Event()
        self._stamp: object = self
        self._since = 0.0
        self.refused = False
        """Whether the file was refused when it was last read."""

    @property
    def pending(self) -> bool:
        """Say whether a file waits to be read."""
        return self._asked.is_set()

    def listen(self, wake: Callable[[], None]) -> None:
        """Take SIGHUP for the wish to reload, and `wake` the loop at it. Only in the main thread."""

        def ask(*_: object) -> None:
            self._asked.set()
            wake()

        signal.signal(signal.SIGHUP, ask)

    def turn(self, home: Path, in_force: S, adopt: Callable[[S], None]) -> None:
        """Read the file where that was asked for and it stands still; `adopt` takes up the whole, or raises first."""
        if not self._asked.is_set() or not self._stands_still():
            return
        self._asked.clear()
        self._stamp = self
        applied: list[str] = []
        restart: list[str] = []
        error: HearthError | None = None
        try:
            new = self._load(self._path)
            before, after = keys_of(in_force), keys_of(new)
            changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
            adopt(merged(in_force, new, self._live))
            applied = [key for key in changed if is_live(key, self._live)]
            restart = [key for key in changed if not is_live(key, self._live)]
        except HearthError as refused:
            error = refused
        self.refused = error is not None
        if error is not None:
            log.warning("settings refused: the old ones stay in force", why=error.message, hint=error.hint)
        elif restart:
            log.warning("settings read; some need a restart", applied=applied, restart=restart)
        else:
            log.info("settings read", applied=applied)
        outcome = {
            "number": outcome_number(home) + 1,
            "applied": applied,
            "restart": restart,
            "error": None if error is None else error.as_dict()["error"],
        }
        with suppress(OSError):  # a full disk: the log has said it
            replace_text(home / OUTCOME_FILE, json.dumps(outcome))

    def _stands_still(self) -> bool:
        try:
            found = self._path.stat()
            stamp: object = (found.st_ino, found.st_size, found.st_mtime_ns)
        except OSError as error:
            stamp = error.errno
        if stamp != self._stamp:
            self._stamp, self._since = stamp, self._clock()
        return self._clock() - self._since >= STILL_SECONDS


# ---- the command's side ----


def outcome_number(home: Path) -> int:
    """Return the number of the last reload in a home, 0 for none."""
    found = _outcome(home)
    return 0 if found is None else found["number"]


def ask(lock: Path, home: Path, component: str) -> tuple[list[str], list[str]]:
    """Have the program that holds a lock read its settings again; return the keys taken up, and those left for later.

    Raises ConfigError NOT_RUNNING where no program holds the lock or it is another user's, WORKER_SILENT or
    KEEPER_SILENT where it does not answer, and what it refused.
    """
    pid, before = holder(lock), outcome_number(home)
    start = f"hearth {component} {'start' if component == 'worker' else 'run'}"
    if pid is None:
        raise ConfigError(
            f"no {component} runs in {home}", hint=f"{start} reads the file", code="NOT_RUNNING", component=component
        )
    try:
        os.kill(pid, signal.SIGHUP)
    except OSError as error:
        raise ConfigError(
            f"process {pid} cannot be told: {error.strerror}",
            hint=f"the same command as its user, or systemctl reload hearth-{component}",
            code="NOT_RUNNING",
            component=component,
        ) from error
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        found = _outcome(home)
        if found is not None and found["number"] > before:
            if found["error"] is not None:
                refused = dict(found["error"])
                message = f"{refused.pop('message')}; the old settings stay in force"
                raise ConfigError(message, hint=refused["hint"], code=refused["code"], component=component)
            return found["applied"], found["restart"]
        time.sleep(0.05)
    raise ConfigError(
        f"process {pid} has not answered in {WAIT_SECONDS:.0f} s; it reads the file as soon as it can",
        hint=f"hearth {component} status",
        code="WORKER_SILENT" if component == "worker" else "KEEPER_SILENT",
        retryable=True,
        component=component,
    )


def _outcome(home: Path) -> dict[str, Any] | None:
    try:
        found = json.loads((home / OUTCOME_FILE).read_text(encoding="utf-8"))
        return found if isinstance(found["number"], int) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
