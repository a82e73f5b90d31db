"""What follows from the lane table is written whole, and a difference in any file is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.protocol.words import WORDS, unpack
from tools.lanes import BEGIN, DOCUMENT, END, PACKING, PROTOCOL, main
from tools.vyper_files import ROOT

FILES = [PACKING, PROTOCOL, DOCUMENT]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with the three files as they are committed."""
    for path in FILES:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes((ROOT / path).read_bytes())
    return tmp_path


def _changed(text: str, path: Path) -> str:
    """Return `text` with one width of the unit's mark changed."""
    old, new = {
        PACKING: (
            "UNIT_MARK_MASK: constant(uint256) = 1099511627775",
            "UNIT_MARK_MASK: constant(uint256) = 549755813887",
        ),
        PROTOCOL: ("| `mark` | 160 | 40 |", "| `mark` | 160 | 39 |"),
        DOCUMENT: ('"mark", "shift": 160, "width": 40', '"mark", "shift": 160, "width": 39'),
    }[path]
    assert text.count(old) == 1
    return text.replace(old, new)


def test_check__committed_files__are_what_the_table_says() -> None:
    assert main(["--check"]) == 0


@pytest.mark.parametrize("path", FILES, ids=str)
def test_check__one_width_changed__names_the_file_and_writes_nothing(
    project: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = project / path
    changed = _changed(target.read_text(encoding="utf-8"), path)
    target.write_text(changed, encoding="utf-8")
    assert main(["--check", "--root", str(project)]) == 1
    assert capsys.readouterr().err == f"{path} differs from hearth/protocol/words.py; run: make lanes\n"
    assert target.read_text(encoding="utf-8") == changed
    assert main(["--root", str(project)]) == 0
    assert target.read_bytes() == (ROOT / path).read_bytes()


def test_main__no_document__is_written(project: Path) -> None:
    (project / DOCUMENT).unlink()
    assert main(["--check", "--root", str(project)]) == 1
    assert main(["--root", str(project)]) == 0
    assert (project / DOCUMENT).read_bytes() == (ROOT / DOCUMENT).read_bytes()


@pytest.mark.parametrize("mark", [BEGIN, END])
def test_main__spec_without_a_marker__is_an_error(project: Path, mark: str) -> None:
    text = (project / PROTOCOL).read_text(encoding="utf-8")
    (project / PROTOCOL).write_text(text.replace(mark, ""), encoding="utf-8")
    with pytest.raises(ValueError, match="lines that the tables stand between"):
        main(["--root", str(project)])


@given(st.sampled_from(sorted(WORDS)), st.integers(0, 2**256 - 1))
def test_document__any_word__is_read_as_the_library_reads_it(name: str, bits: int) -> None:
    lanes = json.loads((ROOT / DOCUMENT).read_text(encoding="utf-8"))[name]["lanes"]
    word = sum(bits & ((1 << lane["width"]) - 1) << lane["shift"] for lane in lanes)
    read = {lane["name"]: word >> lane["shift"] & (1 << lane["width"]) - 1 for lane in lanes}
    assert read == unpack(WORDS[name], word)
