"""hearth.base.files: what can be deleted, however deep; a new file, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hearth.base.errors import BadDestination
from hearth.base.files import delete_tree, new_file
from tests.kit.disks import MIB, fill, small_disk


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


def test_new_file__what_is_read_meanwhile_fails__is_not_said_to_be_the_file_that_is_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, new_file(tmp_path / "new") as out:
        out.write(b"begun")
        out.write((tmp_path / "lost").read_bytes())
    assert caught.value.filename == str(tmp_path / "lost") and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [MIB, 10])
def test_new_file__no_room__is_named_by_the_name_it_was_to_have(tmp_path: Path, size: int) -> None:
    """Much is refused as it is written, little as it is flushed in the end."""
    with small_disk(tmp_path / "full", MIB) as full:
        fill(full / "rest")
        said = r"full/new cannot be written: No space left"
        with pytest.raises(BadDestination, match=said), new_file(full / "new") as out:
            out.write(bytes(size))
        assert [path.name for path in full.iterdir()] == ["rest"]


def test_new_file__a_name_that_comes_meanwhile__keeps_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(BadDestination, match="new cannot be written: File exists"), new_file(tmp_path / "new") as out:
        out.write(b"mine")
        (tmp_path / "new").write_text("theirs")
    assert (tmp_path / "new").read_text() == "theirs" and len(list(tmp_path.iterdir())) == 1


def test_new_file__in_a_folder_that_is_not_there__is_refused_with_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(BadDestination, match="cannot be written") as caught, new_file(tmp_path / "no" / "new"):
        pass
    assert caught.value.hint == f"mkdir -p {tmp_path / 'no'}"
