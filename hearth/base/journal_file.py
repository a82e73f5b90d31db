"""A journal on disk: an SQLite file that a kill, a power cut and a full disk leave whole.

WAL mode with `synchronous=FULL` and one BEGIN IMMEDIATE per transition: a commit outlives a power cut, half a
transition is never seen. Where the disk takes no more, a `Spare` is given up and the transition is written in its room.
A file of an earlier version is brought up to date as it is opened, whole or not at all.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from hearth.base.errors import StorageError
from hearth.base.files import Spare

T = TypeVar("T")

_BUSY_SECONDS: Final = 30.0
_DISK_FAILS: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
"""How SQLite calls a disk without room: a write, a shared-memory file that cannot grow, a file that cannot be made."""


def disk_fails(error: sqlite3.Error) -> bool:
    """Say whether the disk refused, and not the content: the same call may succeed later."""
    return error.sqlite_errorcode & 0xFF in _DISK_FAILS if hasattr(error, "sqlite_errorcode") else False


class VersionError(sqlite3.DatabaseError):
    """A file whose tables are of a version from which no step leads to this one's: a newer one, or too old."""

    def __init__(self, found: int, version: int) -> None:
        super().__init__(f"its tables are of version {found}, and this program has {version}")
        self.found, self.version = found, version


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of a journal at one version, which the file names in PRAGMA user_version.

    `tables` is the SQL that makes a new file's. Each of `steps` makes a version's tables of those of the version
    before; the last one leads to `version`. No statement holds a semicolon but at its end.
    """

    version: int
    tables: str
    steps: tuple[str, ...] = ()

    def apply(self, db: sqlite3.Connection) -> None:
        """Make the tables of a new file, or take an earlier one through the steps that it lacks, in a transaction that
        the caller ends. Raises VersionError."""
        (found,) = db.execute("PRAGMA user_version").fetchone()
        is_new = db.execute("SELECT 1 FROM sqlite_master").fetchone() is None
        behind = self.version - found
        if behind < 0 or (behind > len(self.steps) and not is_new):
            raise VersionError(found, self.version)
        for script in (self.tables,) if is_new else self.steps[len(self.steps) - behind :]:
            for statement in script.split(";"):
                db.execute(statement)
        if behind:
            db.execute(f"PRAGMA user_version={self.version}")


class JournalFile:
    """One SQLite file. Safe to use from several threads; one process per file."""

    def __init__(
        self,
        path: Path,
        schema: Schema,
        prepare: Callable[[sqlite3.Connection], None],
        spare: Spare | None,
        component: str,
    ) -> None:
        """Open or make the file, for its owner only; `prepare` looks at what is in its tables, in one transaction with
        their making, and raises sqlite3.DatabaseError or whatever else refuses the file.

        `component` is who refuses where the disk does. Raises sqlite3.Error, VersionError.
        """
        self.path = path
        self._schema, self._prepare = schema, prepare
        self._spare = spare
        self._component = component
        self._lock = threading.RLock()
        self._db = self._in_spare_room(self._open)

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self.path.chmod(0o600)
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=FULL")
            db.execute("PRAGMA foreign_keys=ON")
            db.execute("BEGIN IMMEDIATE")
            self._schema.apply(db)
            self._prepare(db)
            db.execute("COMMIT")
        except BaseException:
            db.close()
            raise
        return db

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def _write(self, step: Callable[[sqlite3.Connection], T]) -> T:
        """Carry out one transition and return what `step` does: all of it is on disk at the end, or nothing.

        Raises StorageError JOURNAL, which a retry may help, where the disk refuses, and what `step` raises.
        """
        with self._lock:
            try:
                return self._in_spare_room(lambda: self._transition(step))
            except sqlite3.IntegrityError:
                raise
            except sqlite3.DatabaseError as error:
                raise self._unusable(error) from error

    def _read(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Raises StorageError JOURNAL."""
        try:
            with self._lock:
                return self._db.execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error

    def _transition(self, step: Callable[[sqlite3.Connection], T]) -> T:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            done = step(self._db)
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # a full disk has rolled back already
                self._db.execute("ROLLBACK")
            raise
        return done

    def _in_spare_room(self, act: Callable[[], T]) -> T:
        """Act; where the disk refuses, give up the spare and act once more."""
        try:
            return act()
        except sqlite3.Error as error:
            if self._spare is None or not disk_fails(error) or not self._spare.give_up():
                raise
        return act()

    def _unusable(self, error: sqlite3.Error) -> StorageError:
        return unusable(self.path, error, self._component)


def unusable(path: Path, error: sqlite3.Error, component: str) -> StorageError:
    """Return what a person is told of a journal that the disk does not give or take."""
    return StorageError(
        f"the {component}'s journal {path} cannot be used: {error}",
        hint="free some room, then the same again; hearth worker doctor" if component == "worker" else "hearth doctor",
        code="JOURNAL",
        component=component,
        retryable=True,
    )
