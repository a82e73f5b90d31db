"""worker.housekeeping: what old results leave behind, on real stores."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.storage import cid as cids
from hearth.storage.stores import FolderStore
from tests.worker.attempt.jobs import KEY
from tests.worker.attempt.test_executor import Rig
from worker.build import open_stores
from worker.housekeeping import Housekeeping


def grow_old(folder: FolderStore) -> None:
    """Make every block older than what a collection spares."""
    for path in (folder.root / "blocks").glob("??/*"):
        os.utime(path, (1, 1))


@pytest.mark.parametrize("others", [(), ("second",), ("gateway",), ("second", "other")])
def test_turn__old_result__leaves_every_folder_that_it_was_written_to(tmp_path: Path, others: tuple[str, ...]) -> None:
    """A submitter's outputs once stayed for ever wherever `stores` named more than one."""
    rig = Rig(tmp_path)
    folders = {name: FolderStore(tmp_path / name) for name in ("second", "other")}
    urls = {name: folder.url for name, folder in folders.items()} | {"gateway": "gateway+http://127.0.0.1:9"}
    settings: Any = SimpleNamespace(stores=(rig.store.url, *(urls[name] for name in others)))
    first = rig.store
    rig.means.store = rig.executor._store = store = open_stores(settings)
    outputs = cids.parse(rig.result(rig.run(rig.terms(rig.spec("env"))))["outputs"]["cid"])
    # A third folder is read only: what somebody else put there and never pinned is not this worker's to delete.
    theirs = folders["other"].put_block(b"somebody else's")
    written = [first, *(folders[name] for name in others if name == "second")]
    assert all(folder.has(outputs) for folder in written)
    for folder in (first, *folders.values()):
        grow_old(folder)
    rig.executor.set_aside(KEY, "settled")
    housekeeping = Housekeeping(rig.journal, rig.executor, store)
    housekeeping.turn(keep_seconds=-60)
    assert housekeeping._clearing is not None
    housekeeping._clearing.join(30)
    assert not any(folder.has(outputs) for folder in written)
    assert folders["other"].has(theirs)
    # What no result needs stays: the job itself is pinned by whoever posted it.
    assert first.has(rig.module.cid)
    rig.executor.close()
