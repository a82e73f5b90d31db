"""worker.journal: what survives, what is forgotten, and that a moment is on disk before its failpoint is offered."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from hearth.base.errors import StorageError
from hearth.protocol.types import JobId, Outcome
from worker.decide import Execution, LeaseKey, Stage
from worker.journal import SCHEMA, AttemptJournal, Moment, Phase

KEY = LeaseKey(JobId(b"\xaa" * 32), 5, 2)


def test_journal__life_of_an_attempt__is_there_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    journal = AttemptJournal(path)
    journal.intend(KEY, Moment.SEEN)
    journal.intend(KEY, Moment.INTENT, "claim")
    assert journal.executions() == ()
    journal.start(KEY, 1)
    journal.reach(KEY, Moment.FETCHED)
    journal.reach(KEY, Moment.RESULT)
    journal.finish(KEY, Phase.DONE, outcome=Outcome.EXIT, result=b"\x01" * 32, report=b"\x02" * 32, used=7)
    journal.close()
    again = AttemptJournal(path)
    assert again.put_aside is None
    assert again.executions() == (Execution(KEY, Stage.DONE, Outcome.EXIT, b"\x01" * 32, b"\x02" * 32, 7, 1, True),)
    assert [m for m, _ in again.moments(KEY)] == [Moment.SEEN, Moment.INTENT, Moment.FETCHED, Moment.RESULT]
    assert path.stat().st_mode & 0o077 == 0


def test_journal__half_a_surrogate_pair_of_a_stranger__is_written_out(tmp_path: Path) -> None:
    journal = AttemptJournal(tmp_path / "work.db")
    for write in (lambda: journal.finish(KEY, Phase.BROKEN, detail="no \ud800"), lambda: journal.end(KEY, "no \ud800")):
        journal.start(KEY, 1)
        write()
        entry = journal.entry(KEY)
        assert entry is not None and entry.detail == "no \\ud800"


def test_intend__attempt_that_is_further_on__is_left_as_it_is(tmp_path: Path) -> None:
    journal = AttemptJournal(tmp_path / "work.db")
    journal.start(KEY, 1)
    journal.reach(KEY, Moment.RESULT)
    journal.intend(KEY, Moment.SEEN)
    entry = journal.entry(KEY)
    assert entry is not None and (entry.phase, entry.moment) == (Phase.WORKING, Moment.RESULT)


def test_start__second_try__forgets_what_the_first_one_reported(tmp_path: Path) -> None:
    journal = AttemptJournal(tmp_path / "work.db")
    journal.start(KEY, 1)
    journal.finish(KEY, Phase.BROKEN, report=b"\x02" * 32, detail="engine gone")
    journal.start(KEY, 2)
    assert journal.executions() == (Execution(KEY, Stage.WORKING, tries=2),)


def test_forget__ended_attempts__go_when_they_are_old_and_only_they(tmp_path: Path) -> None:
    journal = AttemptJournal(tmp_path / "work.db")
    other = LeaseKey(KEY.job, 6, 1)
    for key in (KEY, other):
        journal.start(key, 1)
    journal.end(KEY, "settled")
    entry = journal.entry(KEY)
    assert entry is not None
    assert journal.forget(entry.changed) == []
    assert journal.forget(entry.changed + 1) == [KEY]
    assert journal.entry(KEY) is None and journal.moments(KEY) == []
    assert [e.key for e in journal.entries()] == [other]


@pytest.mark.parametrize("content", [b"not a database, but long enough to look at" * 40, b""])
def test_journal__unreadable_file__is_put_aside_and_started_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "work.db"
    path.write_bytes(content)
    journal = AttemptJournal(path)
    journal.start(KEY, 1)
    assert len(journal.entries()) == 1
    if content:
        assert journal.put_aside is not None and journal.put_aside.read_bytes() == content
    else:
        assert journal.put_aside is None


def test_journal__newer_schema__is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version={SCHEMA.version + 1}")
    assert AttemptJournal(path).put_aside is not None


def test_journal__disk_that_fails__raises_a_storage_error(tmp_path: Path) -> None:
    journal = AttemptJournal(tmp_path / "work.db")
    journal._db.execute("PRAGMA max_page_count=1")
    with pytest.raises(StorageError, match="full") as caught:
        for index in range(10_000):
            journal.start(LeaseKey(KEY.job, index, 1), 1)
    assert caught.value.code == "JOURNAL"


def test_journal__several_threads__lose_nothing(tmp_path: Path) -> None:
    journal = AttemptJournal(tmp_path / "work.db")

    def work(index: int) -> None:
        key = LeaseKey(KEY.job, index, 1)
        journal.start(key, 1)
        for moment in (Moment.FETCHED, Moment.STARTED, Moment.RESULT):
            journal.reach(key, moment)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {e.key.index: e.moment for e in journal.entries()} == dict.fromkeys(range(8), Moment.RESULT)


@pytest.mark.parametrize(("failpoint", "last"), [("m3.fetched", Moment.FETCHED), ("m5.result:1", Moment.RESULT)])
def test_reach__failpoint__dies_with_the_moment_on_disk(tmp_path: Path, failpoint: str, last: Moment) -> None:
    program = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from hearth.protocol.types import JobId
        from worker.decide import LeaseKey
        from worker.journal import AttemptJournal, Moment
        journal = AttemptJournal(Path(sys.argv[1]))
        key = LeaseKey(JobId(b"\\xaa" * 32), 5, 2)
        journal.start(key, 1)
        for moment in (Moment.FETCHED, Moment.STARTED, Moment.RESULT, Moment.PINNED):
            journal.reach(key, moment)
        """
    )
    path = tmp_path / "work.db"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], env={**os.environ, "HEARTH_FAILPOINT": failpoint}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    journal = AttemptJournal(path)
    entry = journal.entry(KEY)
    assert entry is not None and entry.moment == last
    assert journal.moments(KEY)[-1][0] == last
