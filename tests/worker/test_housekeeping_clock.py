"""worker.housekeeping: results are kept for as long as was promised, whatever the machine's clock says."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from hearth.chain.port import Block
from hearth.protocol.types import JobId, NodeId
from hearth.storage.stores import FolderStore
from worker.attempt.attempt import Means
from worker.attempt.executor import Executor
from worker.attempt.folder import Folders
from worker.attempt.task import Bounds
from worker.decide import LeaseKey
from worker.journal import AttemptJournal
from worker.loop import Worker
from worker.metrics import WorkerMetrics

DAY = 86_400
WEEK = 7 * DAY
NOW = 1_900_000_000
KEY = LeaseKey(JobId(b"\xaa" * 32), 0, 1)


class Rig:
    """A worker's loop, journal, store and housekeeping; its chain's second and its wall clock are set by the test."""

    def __init__(self, home: Path, *, chain_id: int = 1) -> None:
        self.wall = float(NOW)
        self.store = FolderStore(home / "store")
        self.journal = AttemptJournal(home / "work.db")
        self.folders = Folders(home / "jobs")
        means = Means(
            journal=self.journal,
            store=self.store,
            folders=self.folders,
            runtimes={},
            node=NodeId(1),
            label="x-",
            bounds=Bounds(),
            keep_seconds=WEEK,
        )
        executor = Executor(means)
        account = SimpleNamespace(payout="0x" + "11" * 20)
        told = SimpleNamespace(
            settings=SimpleNamespace(home=home, account=account, keep_seconds=WEEK),
            chain_id=chain_id,
            node=NodeId(1),
            native=True,
            poll=1.0,
            disk=Mock(),
        )
        self.worker = Worker(
            told,  # type: ignore[arg-type]
            market=Mock(),
            sender=Mock(),
            journal=self.journal,
            executor=executor,
            store=self.store,
            metrics=WorkerMetrics(),
            clock=lambda: self.wall,
        )
        self.worker._desk = self.worker._outbox = Mock()

    def saw(self, second: int) -> None:
        """Have two blocks come, the later at a second of the chain."""
        for number in (second - 1, second):
            self.worker._clock.saw(Block(number, number.to_bytes(32, "big"), bytes(32), number, 0))

    def ended(self) -> object:
        """Let a result be settled; return its CID."""
        entry = self.store.add_bytes(b"the result that was paid for")
        self.journal.start(KEY, 1)
        self.folders.of(KEY).write_pins([str(entry.cid)])
        self.worker.set_aside(KEY, "settled")
        return entry.cid

    def turn(self) -> None:
        """Have the housekeeping come due and end."""
        housekeeping = self.worker._housekeeping
        housekeeping._due = 0.0
        self.worker._housekeep()
        if housekeeping._clearing is not None:
            housekeeping._clearing.join()


@pytest.fixture(autouse=True)
def reads_no_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.loop.Watcher", Mock())


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_turn__clock_that_was_slow_is_set_right__what_was_paid_for_stays_its_time(rig: Rig) -> None:
    rig.wall = NOW - 8 * DAY
    rig.saw(NOW)
    result = rig.ended()
    rig.wall = float(NOW)
    rig.turn()
    assert result in rig.store.pins()
    rig.wall = float(NOW + WEEK + 60)
    rig.saw(NOW + WEEK + 60)
    rig.turn()
    assert result not in rig.store.pins()


def test_turn__clock_that_is_a_week_fast__deletes_nothing(rig: Rig) -> None:
    rig.saw(NOW)
    result = rig.ended()
    rig.wall = float(NOW + 8 * DAY)
    rig.turn()
    assert result in rig.store.pins()


def test_turn__head_of_a_liar_from_next_week__deletes_nothing(rig: Rig) -> None:
    rig.saw(NOW)
    result = rig.ended()
    rig.saw(NOW + 8 * DAY)
    rig.turn()
    assert result in rig.store.pins()


def test_turn__local_chain__goes_by_the_wall_clock(tmp_path: Path) -> None:
    rig = Rig(tmp_path, chain_id=31337)
    rig.saw(NOW - 30 * DAY)
    result = rig.ended()
    assert rig.journal.entries()[0].changed == NOW
    rig.turn()
    assert result in rig.store.pins()
    rig.wall += WEEK + 1
    rig.turn()
    assert result not in rig.store.pins()
