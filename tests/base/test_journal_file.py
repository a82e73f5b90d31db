"""hearth.base.journal_file: a file of an earlier version takes the steps that it lacks, and no other."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from hearth.base.journal_file import JournalFile, Schema, VersionError

STEPS = ("ALTER TABLE t ADD COLUMN b INTEGER; CREATE INDEX by_b ON t (b)", "ALTER TABLE t ADD COLUMN c TEXT")
SCHEMA = Schema(2, "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER, c TEXT); CREATE INDEX by_b ON t (b);", STEPS)


def file_of(path: Path, version: int) -> Path:
    """Return a file as the program of some version left it, with a row."""
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
        for script in STEPS[:version]:
            db.executescript(script)
        db.execute("INSERT INTO t (a) VALUES (7)")
        db.execute(f"PRAGMA user_version={version}")
    db.close()
    return path


def shape(journal: JournalFile) -> tuple[object, ...]:
    columns, indices = journal._read("PRAGMA table_info(t)"), journal._read("PRAGMA index_list(t)")
    return columns, indices, journal._read("PRAGMA user_version")


def open_file(path: Path, schema: Schema = SCHEMA) -> JournalFile:
    return JournalFile(path, schema, lambda db: None, None, "test")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_journal_file__of_each_version__has_the_tables_of_a_new_one_and_its_rows(tmp_path: Path, version: int) -> None:
    new = open_file(tmp_path / "new.db")
    path = file_of(tmp_path / "old.db", version)
    for _ in range(2):
        old = open_file(path)
        assert shape(old) == shape(new) and old._read("SELECT a FROM t") == [(7,)]
        old.close()
    new.close()


@pytest.mark.parametrize("version", [0, 1])
def test_journal_file__step_that_fails__leaves_the_file_as_it_was(tmp_path: Path, version: int) -> None:
    path = file_of(tmp_path / "old.db", version)
    broken = Schema(2, SCHEMA.tables, (STEPS[0], f"{STEPS[1]}; CREATE TABLE t (a INTEGER)"))
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        open_file(path, broken)
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (version,)
        assert len(db.execute("PRAGMA table_info(t)").fetchall()) == 1 + version
    db.close()
    open_file(path).close()


@pytest.mark.parametrize("steps", [STEPS[1:], STEPS])
def test_journal_file__version_from_which_no_step_leads_here__is_refused(
    tmp_path: Path, steps: tuple[str, ...]
) -> None:
    """Too old where the first steps are gone, too new where the file names a later version."""
    found = 0 if steps == STEPS[1:] else SCHEMA.version + 1
    path = file_of(tmp_path / "old.db", min(found, 2))
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version={found}")
    db.close()
    with pytest.raises(VersionError, match=f"version {found}, and this program has 2"):
        open_file(path, Schema(2, SCHEMA.tables, steps))
