"""Functions stay short enough to be read at once, or say why they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.shape import ROOT, functions, main

LONG = "def f():\n    {doc}\n" + "    x = 1\n" * 61
BRANCHED = "def f(x):\n    {doc}\n" + "    if x:\n        x += 1\n" * 15
REASON = '"""Do it.\n\n    One function because a test says so.\n    """'


def refused(tmp_path: Path, text: str) -> int:
    (tmp_path / "hearth").mkdir()
    (tmp_path / "hearth" / "a.py").write_text(text)
    return main(["--root", str(tmp_path)])


def test_shape__this_project__has_no_function_too_long_without_a_reason() -> None:
    found = list(functions(ROOT))
    assert len(found) > 1_000 and [one.where for one in found if one.too_long] == []


@pytest.mark.parametrize("text", [LONG, BRANCHED])
def test_shape__above_a_bound__refused_unless_the_docstring_says_why(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(tmp_path, text.replace("{doc}", '"""Do it."""')) == 1
    assert "hearth/a.py:1 f: " in capsys.readouterr().err
    (tmp_path / "hearth" / "a.py").write_text(text.replace("{doc}", REASON))
    assert main(["--root", str(tmp_path)]) == 0


def test_shape__at_the_bounds__passes_and_a_docstring_is_no_line(tmp_path: Path) -> None:
    at_bound = LONG.replace("    x = 1\n", "", 2).replace("{doc}", '"""Do it.\n\n    At length.\n    """')
    assert refused(tmp_path, at_bound) == 0
