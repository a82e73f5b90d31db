"""The worker's own record of how far this machine has come with each attempt: a cache, the chain is the truth.

What is lost with the file is found again on chain (leases held) and in the store (results), at the price of running
again. Of the ten moments of the kill tests the first six are recorded here, the last
four (signed, broadcast, mined, final) in the journal of transactions, hearth.chain.tx_journal: a line is the evidence
that a job was in that state. Source: worker.md.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from hearth.base.failpoints import fp
from hearth.base.files import Spare
from hearth.base.journal_file import JournalFile, Schema, disk_fails, unusable
from hearth.base.text import plain
from hearth.protocol.types import JobId, Outcome
from worker.decide import Execution, LeaseKey, Stage

SCHEMA: Final = Schema(
    version=3,
    tables="""
CREATE TABLE attempts (
    job BLOB NOT NULL, idx INTEGER NOT NULL, attempts INTEGER NOT NULL,
    stage TEXT NOT NULL, moment TEXT NOT NULL, tries INTEGER NOT NULL DEFAULT 0,
    outcome INTEGER NOT NULL DEFAULT 0, result BLOB, report BLOB, used INTEGER NOT NULL DEFAULT 0,
    detail TEXT NOT NULL DEFAULT '', changed REAL NOT NULL,
    checkpoint BLOB, offered INTEGER NOT NULL DEFAULT 0, offers INTEGER NOT NULL DEFAULT 0, named BLOB,
    PRIMARY KEY (job, idx, attempts)
) WITHOUT ROWID;
CREATE TABLE moments (
    id INTEGER PRIMARY KEY, job BLOB NOT NULL, idx INTEGER NOT NULL, attempts INTEGER NOT NULL,
    moment TEXT NOT NULL, at REAL NOT NULL, note TEXT NOT NULL DEFAULT ''
);
CREATE INDEX moments_by_attempt ON moments (job, idx, attempts);
""",
    steps=(
        "ALTER TABLE attempts ADD COLUMN checkpoint BLOB;"
        "ALTER TABLE attempts ADD COLUMN offered INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE attempts ADD COLUMN offers INTEGER NOT NULL DEFAULT 0;ALTER TABLE attempts ADD COLUMN named BLOB",
    ),
)


class Moment(StrEnum):
    """Name the moments of an attempt that are this journal's, which are also failpoints of the kill tests."""

    SEEN = "m1.seen"
    INTENT = "m2.intent"
    FETCHED = "m3.fetched"
    STARTED = "m4.started"
    RESULT = "m5.result"
    PINNED = "m6.pinned"


class Phase(StrEnum):
    """Say what a journal row is: wanted but not held yet, one of the stages of an execution, or over."""

    INTENT = "intent"
    WORKING = "working"
    DONE = "done"
    REFUSED = "refused"
    BROKEN = "broken"
    ENDED = "ended"


_STAGES: Final = {
    Phase.WORKING: Stage.WORKING,
    Phase.DONE: Stage.DONE,
    Phase.REFUSED: Stage.REFUSED,
    Phase.BROKEN: Stage.BROKEN,
}


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """A row: where an attempt stands. `changed` is the second of the journal's clock, for people and sweeping only."""

    key: LeaseKey
    phase: Phase
    moment: Moment
    tries: int
    outcome: Outcome
    result: bytes
    report: bytes
    used: int
    detail: str
    changed: float
    checkpoint: bytes | None = None
    """The root of the newest checkpoint, None where there is none."""
    offered: bool = False
    """Whether the chain has neither taken nor refused it yet."""
    offers: int = 0
    """How many checkpoints were offered, refused ones too."""
    named: bytes | None = None
    """The root of the newest one that the chain has taken, None where it has none."""

    @property
    def execution(self) -> Execution | None:
        """Return the row as `decide` reads it, None where nothing was started or all is over."""
        stage = _STAGES.get(self.phase)
        if stage is None:
            return None
        begun = self.moment in (Moment.STARTED, Moment.RESULT, Moment.PINNED)
        offered = self.checkpoint if self.offered else None
        said = (self.outcome, self.result, self.report, self.used, max(1, self.tries), begun)
        return Execution(self.key, stage, *said, offered=offered, offers=self.offers)


class AttemptJournal(JournalFile):
    """Remember attempts across crashes; methods raise StorageError JOURNAL where the disk refuses."""

    def __init__(self, path: Path, spare: Spare | None = None) -> None:
        """Open or create the file. One that SQLite cannot read, or of a version from which no step leads here, is put
        aside: the chain and the store know the rest. Its `clock` is the wall's until it is told another."""
        self.put_aside: Path | None = None
        self.clock: Callable[[], float] = time.time
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            super().__init__(path, SCHEMA, _prepare, spare, "worker")
        except sqlite3.DatabaseError as error:
            if disk_fails(error) or isinstance(error, sqlite3.OperationalError):
                raise unusable(path, error, "worker") from error
            self.put_aside = path.with_name(f"{path.name}.unreadable-{time.time_ns()}")
            path.rename(self.put_aside)
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            super().__init__(path, SCHEMA, _prepare, spare, "worker")

    # ---- writing ----

    def intend(self, key: LeaseKey, moment: Moment, note: str = "") -> None:
        """Record that an attempt is wanted (m1 seen, m2 intent); a row that is further on stays as it is."""

        def step(db: sqlite3.Connection) -> None:
            db.execute(
                "INSERT INTO attempts (job, idx, attempts, stage, moment, changed) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET moment = excluded.moment, changed = excluded.changed WHERE stage = ?",
                (*_where(key), Phase.INTENT, moment, self.clock(), Phase.INTENT),
            )
            _note(db, key, moment, note)

        self._write(step)
        fp(moment, "attempt")

    def start(self, key: LeaseKey, tries: int) -> None:
        """Record that the execution of a held lease starts (or starts again)."""
        self._change(
            "INSERT INTO attempts (job, idx, attempts, stage, moment, tries, changed) VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET stage = excluded.stage, moment = excluded.moment, tries = excluded.tries,"
            " outcome = 0, result = NULL, report = NULL, used = 0, detail = '', changed = excluded.changed",
            (*_where(key), Phase.WORKING, Moment.INTENT, tries, self.clock()),
        )

    def reach(self, key: LeaseKey, moment: Moment, note: str = "") -> None:
        """Record a moment of an attempt, then offer it to the failpoints."""

        def step(db: sqlite3.Connection) -> None:
            db.execute(
                "UPDATE attempts SET moment = ?, changed = ? WHERE job = ? AND idx = ? AND attempts = ?",
                (moment, self.clock(), *_where(key)),
            )
            _note(db, key, moment, note)

        self._write(step)
        fp(moment, "attempt")

    def finish(
        self,
        key: LeaseKey,
        phase: Phase,
        *,
        outcome: Outcome = Outcome.NONE,
        result: bytes = bytes(32),
        report: bytes = bytes(32),
        used: int = 0,
        detail: str = "",
    ) -> None:
        """Record how an execution ended: DONE, REFUSED or BROKEN, with what the chain will be told."""
        self._change(
            "UPDATE attempts SET stage = ?, outcome = ?, result = ?, report = ?, used = ?, detail = ?, changed = ?"
            " WHERE job = ? AND idx = ? AND attempts = ?",
            (phase, int(outcome), result, report, used, plain(detail), self.clock(), *_where(key)),
        )

    def offer(self, key: LeaseKey, root: bytes) -> None:
        """Record that a checkpoint of a running attempt lies in the store whole, and can be sent."""
        self._change(
            "UPDATE attempts SET checkpoint = ?, offered = 1, offers = offers + 1"
            " WHERE job = ? AND idx = ? AND attempts = ? AND stage = ?",
            (root, *_where(key), Phase.WORKING),
        )

    def take_back(self, key: LeaseKey, *, taken: bool) -> None:
        """Record that the chain has taken or refused what was offered last."""
        named = ", named = checkpoint" if taken else ""
        self._change(
            f"UPDATE attempts SET offered = 0{named} WHERE job = ? AND idx = ? AND attempts = ? AND offered",
            _where(key),
        )

    def end(self, key: LeaseKey, why: str) -> None:
        """Record that nothing more is to be done for an attempt."""
        self._change(
            "UPDATE attempts SET stage = ?, detail = ?, changed = ? WHERE job = ? AND idx = ? AND attempts = ?",
            (Phase.ENDED, plain(why), self.clock(), *_where(key)),
        )

    def forget(self, before: float) -> list[LeaseKey]:
        """Delete attempts that ended before a second of the journal's clock; return their keys, whose files can go."""

        def step(db: sqlite3.Connection) -> list[tuple[bytes, int, int]]:
            rows = db.execute(
                "SELECT job, idx, attempts FROM attempts WHERE stage = ? AND changed < ?", (Phase.ENDED, before)
            ).fetchall()
            db.executemany("DELETE FROM attempts WHERE job = ? AND idx = ? AND attempts = ?", rows)
            db.executemany("DELETE FROM moments WHERE job = ? AND idx = ? AND attempts = ?", rows)
            return rows

        return [LeaseKey(JobId(job), idx, attempts) for job, idx, attempts in self._write(step)]

    def _change(self, sql: str, values: tuple[object, ...]) -> None:
        self._write(lambda db: db.execute(sql, values))

    # ---- reading ----

    def entry(self, key: LeaseKey) -> AttemptRow | None:
        """Return an attempt's row."""
        rows = self._rows("WHERE job = ? AND idx = ? AND attempts = ?", _where(key))
        return rows[0] if rows else None

    def entries(self, *phases: Phase) -> list[AttemptRow]:
        """Return the rows in any of `phases` (none: all), oldest change first."""
        if not phases:
            return self._rows("ORDER BY changed", ())
        marks = ", ".join("?" * len(phases))
        return self._rows(f"WHERE stage IN ({marks}) ORDER BY changed", phases)

    def executions(self) -> tuple[Execution, ...]:
        """Return what `decide` must know of this machine."""
        return tuple(e.execution for e in self.entries(*_STAGES) if e.execution is not None)

    def moments(self, key: LeaseKey) -> list[tuple[Moment, str]]:
        """Return an attempt's moments in the order in which they were reached, with their notes."""
        rows = self._read(
            "SELECT moment, note FROM moments WHERE job = ? AND idx = ? AND attempts = ? ORDER BY id", _where(key)
        )
        return [(Moment(moment), note) for moment, note in rows]

    def _rows(self, clause: str, values: tuple[object, ...]) -> list[AttemptRow]:
        rows = self._read(
            "SELECT job, idx, attempts, stage, moment, tries, outcome, result, report, used, detail, changed,"
            " checkpoint, offered, offers, named"
            f" FROM attempts {clause}",
            values,
        )
        return [
            AttemptRow(
                LeaseKey(JobId(job), idx, attempts),
                Phase(stage),
                Moment(moment),
                tries,
                Outcome(outcome),
                result or bytes(32),
                report or bytes(32),
                used,
                detail,
                changed,
                checkpoint,
                bool(offered),
                offers,
                named,
            )
            for (
                *(job, idx, attempts, stage, moment, tries, outcome, result, report, used, detail, changed),
                checkpoint,
                offered,
                offers,
                named,
            ) in rows
        ]


def _prepare(db: sqlite3.Connection) -> None:
    """Refuse a damaged file."""
    if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise sqlite3.DatabaseError("the file is damaged")


def _where(key: LeaseKey) -> tuple[bytes, int, int]:
    return key.job, key.index, key.attempts


def _note(db: sqlite3.Connection, key: LeaseKey, moment: Moment, note: str) -> None:
    db.execute(
        "INSERT INTO moments (job, idx, attempts, moment, at, note) VALUES (?, ?, ?, ?, ?, ?)",
        (*_where(key), moment, time.time(), note),
    )
