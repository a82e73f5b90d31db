"""worker.attempt.intake: a folder store that refuses, hangs and comes back, and who is asked when."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from hearth.base.errors import StoreDown
from hearth.storage.stores import FolderStore, GatewayStore
from tests.worker.attempt.test_executor import wait
from worker.attempt import intake
from worker.attempt.intake import UNASKED, Intake


class Moody(FolderStore):
    """A folder that takes nothing while `refuses`, and answers nothing while it is not `free`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.refuses = False
        self.free = threading.Event()
        self.free.set()
        self.tried = 0

    def try_write(self) -> None:
        self.tried += 1
        assert self.free.wait(20)
        if self.refuses:
            raise StoreDown("it takes nothing")
        super().try_write()


@pytest.fixture
def store(tmp_path: Path) -> Moody:
    return Moody(tmp_path / "store")


def nothing() -> None:
    """Hear of a change, and do nothing."""


def test_refusal__nobody_began__writes_nothing(store: Moody) -> None:
    """Who only looks, as a dry run does, leaves the store as it is."""
    taking = Intake(store, nothing)
    assert taking.refusal() == ""
    taking.tell("")
    assert taking.refusal() == "" and store.tried == 0 and not store.root.exists()


def test_begin__store_that_takes_writes__is_believed_only_once_it_has(store: Moody) -> None:
    changed = threading.Event()
    taking = Intake(store, changed.set)
    store.free.clear()
    taking.begin()
    taking.begin()
    assert taking.refusal() == UNASKED
    store.free.set()
    taking.wait(30)
    assert changed.wait(30) and taking.refusal() == "" and store.tried == 1


def test_begin__store_that_is_only_read__takes_nothing() -> None:
    taking = Intake(GatewayStore("http://127.0.0.1:9"), nothing)
    taking.begin()
    taking.wait(30)
    assert "is read-only" in taking.refusal()


def test_refusal__store_that_goes_and_comes_back__is_found_by_itself(
    store: Moody, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "EVERY_SECONDS", 0.05)
    monkeypatch.setattr(intake, "AGAIN_SECONDS", 0.05)
    taking = Intake(store, nothing)
    taking.begin()
    wait(lambda: taking.refusal() == "")
    store.refuses = True
    wait(lambda: taking.refusal() == "it takes nothing")
    store.refuses = False
    wait(lambda: taking.refusal() == "")


def test_refusal__store_that_hangs__takes_nothing_and_keeps_nobody_waiting(
    store: Moody, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop asks in every round, and beats in the same thread."""
    monkeypatch.setattr(intake, "PATIENCE_SECONDS", 1.0)  # no write of a busy machine takes as long
    monkeypatch.setattr(intake, "EVERY_SECONDS", 0.0)
    taking = Intake(store, nothing)
    taking.begin()
    wait(lambda: taking.refusal() == "")
    store.free.clear()
    began = time.monotonic()
    wait(lambda: "has not answered for" in taking.refusal(), 15)
    tried = store.tried
    for _ in range(100):
        assert taking.refusal()
        time.sleep(0.001)
    assert time.monotonic() - began < 18 and store.tried == tried, "one trial hangs, and no second is begun"
    store.free.set()
    wait(lambda: taking.refusal() == "")


def test_tell__what_an_upload_met__counts_at_once(store: Moody) -> None:
    taking = Intake(store, nothing)
    taking.begin()
    taking.wait(30)
    taking.tell("the upload was refused")
    assert taking.refusal() == "the upload was refused"
    taking.tell("")
    assert taking.refusal() == "" and store.tried == 1


def test_refusal__machine_that_gives_no_thread__is_asked_again(store: Moody, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    taking = Intake(store, nothing)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        taking.begin()
        taking.wait(30)
        assert taking.refusal() == UNASKED and store.tried == 0
    wait(lambda: taking.refusal() == "")


def test_refusal__fault_of_the_worker_itself__ends_no_thread_unseen(
    store: Moody, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Moody, "try_write", lambda self: 1 / 0)
    taking = Intake(store, nothing)
    taking.begin()
    taking.wait(30)
    assert "ZeroDivisionError" in taking.refusal()


def test_tell__results_that_are_refused_again_and_again__put_off_no_trial(
    store: Moody, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "AGAIN_SECONDS", 0.2)
    taking = Intake(store, nothing)
    taking.begin()
    taking.wait(30)
    end = time.monotonic() + 30
    while store.tried < 3 and time.monotonic() < end:
        taking.tell("the upload was refused")
        taking.refusal()
        time.sleep(0.01)
    assert store.tried == 3
