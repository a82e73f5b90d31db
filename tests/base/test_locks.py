"""hearth.base.locks: one holder at a time, between processes, and whoever looks does not take it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hearth.base.errors import ConfigError
from hearth.base.locks import FileLock, is_held
from tests.kit.disks import MIB, fill, small_disk

HOLD = """
import sys, time
from pathlib import Path
from hearth.base.locks import FileLock
with FileLock(Path(sys.argv[1]), lambda pid: SystemExit("busy")):
    print("held", flush=True)
    time.sleep(60)
"""


def busy(pid: int | None) -> ConfigError:
    return ConfigError("busy", pid=pid)


def test_is_held__another_process_holds_it__until_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    FileLock(path, busy).refuse_held()
    assert not is_held(path) and not path.exists()
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        assert is_held(path)
        with pytest.raises(ConfigError) as caught, FileLock(path, busy):
            pass
        assert caught.value.details["pid"] == process.pid
        with pytest.raises(ConfigError) as looked:
            FileLock(path, busy).refuse_held()
        assert looked.value.details["pid"] == process.pid
        process.kill()
    assert not is_held(path) and path.exists()
    with FileLock(path, busy):
        assert is_held(path)


def test_file_lock__glances_all_the_time__takes_it_within_its_wait(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    for _ in range(200):
        assert not is_held(path)
        with FileLock(path, busy, wait_seconds=1.0):
            pass


def test_file_lock__folder_that_is_not_there__says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be locked") as caught, FileLock(tmp_path / "none" / "lock", busy):
        pass
    assert "ls -ld" in caught.value.hint


def test_acquire__disk_full_to_the_last_byte__is_held_all_the_same(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", MIB) as disk:
        fill(disk / "ballast")
        with FileLock(disk / "lock", busy):
            assert is_held(disk / "lock")
