"""The submitter's doctor: what it says of a store."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.base.errors import ConfigError
from hearth.client.doctor import Doctor
from hearth.storage.stores import FolderStore
from tests.kit.disks import MIB, small_disk


def test_see_store__disk_that_is_read_only__fails(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", MIB) as disk:
        session: Any = SimpleNamespace(store=FolderStore(disk / "store"))
        doctor = Doctor(session, wallet=None)  # type: ignore[arg-type]
        assert "0 blocks" in doctor._see_store()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(ConfigError, match="cannot be written") as caught:
            doctor._see_store()
        assert "hearth init" in caught.value.hint
