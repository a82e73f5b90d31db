"""What the tests of an attempt's stages share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worker.attempt.jobs import Jobs
from worker.attempt.folder import Folder, Folders


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    """A store with one job in it."""
    return Jobs(tmp_path)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """The folders of all attempts."""
    return Folders(tmp_path / "home" / "jobs")


@pytest.fixture
def folder(tmp_path: Path, folders: Folders) -> Folder:
    """An empty folder of one attempt."""
    made = Folder(folders.root / "attempt")
    made.renew()
    return made
