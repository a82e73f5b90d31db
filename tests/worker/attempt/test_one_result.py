"""Attack: one stranger's result that a store never takes, where it takes all others, to keep a whole worker idle.

It held the worker until its lease ended; now until the store has taken a trial, which no refusal puts off.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from hearth.base.errors import StoreDown
from hearth.storage.stores import FolderStore
from tests.worker.attempt.jobs import KEY
from tests.worker.attempt.test_executor import Rig, rig, wait  # noqa: F401 - rig is a fixture
from worker.attempt import intake, upload
from worker.attempt.task import Task


class Quota(FolderStore):
    """A store on another machine that takes no outputs above a size, as a full or a filtering node does."""

    def add_path(self, *args: Any, **named: Any) -> Any:
        path = Path(args[0])
        size = sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
        if size > 3 and path.name != "logs":
            raise StoreDown("it refuses a block: no space left on device")
        return super().add_path(*args, **named)


def test_store_refusal__one_result_is_never_taken__does_not_hold_the_other_slots_until_its_lease_ends(
    rig: Rig,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Profit of a submitter: a node of many slots took nothing for up to 30 days, for one job's gas."""
    monkeypatch.setattr(upload, "RETRY_SECONDS", 0.02)
    monkeypatch.setattr(intake, "AGAIN_SECONDS", 0.02)
    monkeypatch.setattr(intake, "EVERY_SECONDS", 0.02)
    terms = rig.terms(rig.spec("files"))
    rig.store = Quota(rig.store.root)
    rig.open()
    rig.executor.ask_store()
    assert rig.executor.store_refusal() == ""
    rig.executor.start(Task(KEY, terms, 6, 1.0, 1))
    wait(lambda: any(work.refusal for work in rig.executor.active()), 11)
    wait(lambda: rig.executor.store_refusal() == "")
    looks = []
    while rig.executor.active():
        looks.append(rig.executor.store_refusal())
        time.sleep(0.1)
    assert len(looks) > 10 and not any(looks), looks
