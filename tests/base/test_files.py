"""hearth.base.files: what can be deleted, however deep."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hearth.base.files import delete_tree


def test_delete_tree__a_thousand_levels_a_file_a_link_and_nothing__all_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # a service manager need not give one
    """A stranger's tree that is deeper than Python's recursion kept a worker from starting again."""
    top = tmp_path / "deep"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(1_200):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "file").write_text("")
    delete_tree(top, tmp_path / "file", tmp_path / "link", tmp_path / "absent")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
