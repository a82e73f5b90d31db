"""worker.attempt.folder: what a restart finds, what is deleted and what stays."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hearth.base.errors import StorageError, UnsafePath
from hearth.protocol.types import Outcome
from hearth.storage import unixfs
from tests.worker.attempt.jobs import KEY
from worker.attempt.folder import Folder, Folders
from worker.attempt.results import Kept
from worker.attempt.task import Stopped

GO = threading.Event()
"""Never set: nobody stops these attempts."""


def filled(folder: Folder) -> Kept:
    """Leave in a folder what a finished run leaves; return how it ended."""
    folder.module.write_bytes(b"module")
    for path in (folder.job, folder.inputs, folder.outputs):
        path.mkdir()
        (path / "file").write_bytes(path.name.encode())
    folder.write_logs(b"said", b"wrong")
    kept = Kept(Outcome.OK, 3, {"version": 1}, {"detail": ""}, str(unixfs.name_path(folder.outputs).cid))
    folder.write_kept(kept)
    folder.write_pins(["one", "two"])
    return kept


def test_of__attempt__is_named_by_its_lease(folders: Folders, tmp_path: Path) -> None:
    assert folders.of(KEY).path == tmp_path / "home" / "jobs" / str(KEY)
    assert folders.root.stat().st_mode & 0o077 == 0


def test_layout__of_a_finished_run__is_what_earlier_versions_wrote(folder: Folder) -> None:
    kept = filled(folder)
    found = sorted(str(path.relative_to(folder.path)) for path in folder.path.rglob("*") if path.is_file())
    assert found == [
        "attempt.json", "in/file", "job/file", "logs/stderr", "logs/stdout", "module", "out/file", "pins.json",
    ]  # fmt: skip
    ended = (folder.path / "attempt.json").read_text()
    told = '{"outcome": 1, "used": 3, "result": {"version": 1}, "report": {"detail": ""}, "outputs": '
    assert ended == f'{told}"{kept.outputs}"}}'
    assert (folder.path / "pins.json").read_text() == '["one", "two"]'


def test_read_kept__written__is_the_same(folder: Folder) -> None:
    assert folder.read_kept() is None
    kept = filled(folder)
    assert folder.read_kept() == kept
    assert folder.read_pins() == ["one", "two"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"outcome": 99}', "7", "\ufeff"])
def test_read_kept__file_of_something_else__counts_as_none(folder: Folder, text: str) -> None:
    (folder.path / "attempt.json").write_text(text)
    assert folder.read_kept() is None


def test_read_pins__file_that_is_cut__counts_as_none(folder: Folder) -> None:
    assert folder.read_pins() == []
    (folder.path / "pins.json").write_text('["one", ')
    assert folder.read_pins() == []


def test_holds__output_changed_removed_or_never_stored__says_so(folder: Folder) -> None:
    kept = filled(folder)
    assert folder.holds(kept, GO)
    assert folder.holds(replace(kept, outputs=None), GO)
    (folder.outputs / "file").write_bytes(b"else")
    assert not folder.holds(kept, GO)
    folder.drop_data()
    assert not folder.holds(kept, GO)
    assert not folder.holds(replace(kept, outputs=None), GO)


def test_name_outputs__link_in_them__has_no_name(folder: Folder) -> None:
    folder.outputs.mkdir()
    assert folder.name_outputs(GO).kind == "directory"
    os.symlink("/etc/passwd", folder.outputs / "link")
    with pytest.raises(UnsafePath, match="link is a symbolic link"):
        folder.name_outputs(GO)


def test_name_outputs__disk_that_fails__is_no_fault_of_the_program(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What may not be read was made so by the program, what cannot be read is this machine's failure."""
    folder.outputs.mkdir()
    (folder.outputs / "file").touch()
    real = os.open

    def failing(code: int) -> Callable[..., int]:
        def opened(path: Any, *args: Any, **named: Any) -> int:
            if path == "file":
                raise OSError(code, os.strerror(code))
            return real(path, *args, **named)

        return opened

    monkeypatch.setattr("hearth.storage.unixfs.importer.os.open", failing(errno.EACCES))
    with pytest.raises(UnsafePath, match="file cannot be read"):
        folder.name_outputs(GO)
    monkeypatch.setattr("hearth.storage.unixfs.importer.os.open", failing(errno.EIO))
    with pytest.raises(StorageError) as caught:
        folder.name_outputs(GO)
    assert not isinstance(caught.value, UnsafePath)


def test_name_outputs__attempt_that_is_stopped__ends_the_hashing(folder: Folder) -> None:
    kept = filled(folder)
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        folder.name_outputs(stop)
    with pytest.raises(Stopped):
        folder.holds(kept, stop)


def test_drop_data__finished_run__leaves_only_what_a_restart_must_know(folder: Folder) -> None:
    kept = filled(folder)
    folder.drop_data()
    assert sorted(path.name for path in folder.path.iterdir()) == ["attempt.json", "pins.json"]
    assert (folder.read_kept(), folder.read_pins()) == (kept, ["one", "two"])
    folder.drop_data()


def test_renew__used_folder__is_empty_and_private(folder: Folder) -> None:
    filled(folder)
    folder.path.chmod(0o755)
    folder.renew()
    assert list(folder.path.iterdir()) == []
    assert folder.path.stat().st_mode & 0o077 == 0


def test_write_pins__folder_that_is_gone__is_made(folder: Folder) -> None:
    folder.remove()
    folder.write_pins(["one"])
    assert folder.read_pins() == ["one"]
    assert folder.path.stat().st_mode & 0o077 == 0


def test_remove_others__unknown_folders__go(folders: Folders, folder: Folder) -> None:
    stray = Folder(folders.root / "stray")
    stray.renew()
    filled(stray)
    assert folders.remove_others({"attempt"}) == ["stray"]
    assert [path.name for path in folders.root.iterdir()] == ["attempt"]


def test_pinned_elsewhere__other_folder_names_it__is_true_and_its_own_does_not_count(
    folders: Folders, folder: Folder
) -> None:
    folder.write_pins(["one", "two"])
    other = Folder(folders.root / "other")
    other.write_pins(["two"])
    assert not folders.pinned_elsewhere("one", folder)
    assert folders.pinned_elsewhere("two", folder)
