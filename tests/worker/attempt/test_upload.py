"""worker.attempt.upload: everything is stored, pinned and read back, or said to be missing."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hearth.base.errors import StorageError, StoreDown
from hearth.protocol.types import Outcome
from hearth.storage import canonical
from hearth.storage import cid as cids
from hearth.storage.stores import FolderStore, open_store
from worker.attempt import upload
from worker.attempt.folder import Folder
from worker.attempt.results import Kept
from worker.attempt.task import Broken, Stopped


class Failing(FolderStore):
    """A store that is down, or refuses, a number of times."""

    def __init__(self, root: Path, times: int, error: StorageError) -> None:
        super().__init__(root)
        self.times, self.error = times, error

    def add_path(self, *args: Any, **named: Any) -> Any:
        if self.times > 0:
            self.times -= 1
            raise self.error
        return super().add_path(*args, **named)


DOWN = StoreDown("the store is down", hint="hearth doctor")


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


@pytest.fixture
def kept(folder: Folder) -> Kept:
    """How a run ended that left an output and logs in the folder."""
    folder.outputs.mkdir()
    (folder.outputs / "answer").write_bytes(b"42")
    folder.write_logs(b"said", b"")
    outputs = folder.name_outputs(threading.Event())
    assert outputs is not None
    return Kept(Outcome.OK, 0, {"outcome": "ok"}, {"detail": "fine"}, str(outputs.cid))


def quiet(why: str) -> None:
    """Hear nothing."""


def send(kept: Kept, folder: Folder, store: FolderStore, seconds: float = 60) -> list[str]:
    return upload.upload(kept, folder, store, until=time.monotonic() + seconds, stop=threading.Event(), tell=quiet)


def test_upload__finished_run__names_outputs_logs_and_both_documents(
    kept: Kept, folder: Folder, store: FolderStore, tmp_path: Path
) -> None:
    pins = send(kept, folder, store)
    documents = [str(canonical.cid_of_digest(canonical.digest(d))) for d in (kept.result, kept.report)]
    assert (pins[0], pins[2:]) == (kept.outputs, documents)
    assert {str(pin) for pin in store.pins()} == set(pins)
    store.fetch(cids.parse(pins[1]), tmp_path / "logs")
    assert (tmp_path / "logs" / "stdout").read_bytes() == b"said"


def test_upload__run_over_its_cap__stores_logs_and_documents_only(
    kept: Kept, folder: Folder, store: FolderStore
) -> None:
    assert len(send(Kept(Outcome.EXIT, 0, kept.result, kept.report, None), folder, store)) == 3


def test_upload__output_that_changed_since_it_was_named__is_never_vouched_for(
    kept: Kept, folder: Folder, store: FolderStore
) -> None:
    (folder.outputs / "answer").write_bytes(b"43")
    with pytest.raises(Broken, match="changed on disk"):
        send(kept, folder, store)


def test_upload__store_that_gives_back_another_document__is_broken(
    kept: Kept, folder: Folder, store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "get_json", lambda digest: {})
    with pytest.raises(Broken, match="another document"):
        send(kept, folder, store)


def test_upload__store_that_comes_back__is_asked_again(
    kept: Kept, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "RETRY_SECONDS", 0.01)
    store = Failing(tmp_path / "store", 2, DOWN)
    assert len(send(kept, folder, store)) == 4
    assert store.times == 0


def test_upload__store_that_stays_down__is_asked_until_the_deadline(
    kept: Kept, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "RETRY_SECONDS", 0.01)
    store = Failing(tmp_path / "store", 10**9, DOWN)
    with pytest.raises(StoreDown):
        send(kept, folder, store, seconds=1.0)
    assert store.times < 10**9 - 1


def test_upload__store_that_refuses__is_asked_once(kept: Kept, folder: Folder, tmp_path: Path) -> None:
    store = Failing(tmp_path / "store", 1, StorageError("no room", hint="h", code="FULL"))
    with pytest.raises(StorageError, match="no room"):
        send(kept, folder, store)
    assert store.times == 0


def test_upload__stopped_while_the_store_is_down__ends(kept: Kept, folder: Folder, tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        upload.upload(
            kept,
            folder,
            Failing(tmp_path / "store", 9, DOWN),
            until=time.monotonic() + 60,
            stop=stop,
            tell=quiet,
        )


def test_upload__stopped_in_the_middle__stores_no_more(kept: Kept, folder: Folder, store: FolderStore) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        upload.upload(kept, folder, store, until=time.monotonic() + 60, stop=stop, tell=quiet)
    assert store.pins() == []


def test_is_stored__all_of_it_some_of_it_or_nothing__says_which(kept: Kept, folder: Folder, store: FolderStore) -> None:
    pins = send(kept, folder, store)
    assert upload.is_stored(pins, store)
    assert not upload.is_stored([], store)
    assert not upload.is_stored([*pins, "no CID"], store)
    shutil.rmtree(store.root / "blocks")
    assert not upload.is_stored(pins, store)


def test_release__pinned_data__is_let_go(kept: Kept, folder: Folder, store: FolderStore) -> None:
    pins = send(kept, folder, store)
    assert all(upload.release(pin, store) for pin in ("no CID", *pins))
    assert store.pins() == []


@pytest.mark.net
@pytest.mark.parametrize(("url", "gone"), [("kubo://127.0.0.1:9", False), ("gateway+http://127.0.0.1:9", True)])
def test_release__store_that_is_down_or_never_can__says_whether_to_ask_again(url: str, gone: bool) -> None:
    """A gateway keeps nothing; a node that is down may."""
    assert upload.release(str(cids.of(b"x")), open_store(url)) is gone
