"""The vectors that the page's tests read are what the library says now, and each is read by a test of the page."""

from __future__ import annotations

import pytest

from tests.web.vectors import DATA, names, written
from tools.vyper_files import ROOT


@pytest.mark.parametrize("name", names())
def test_vectors__of_the_library__are_those_in_the_folder(name: str) -> None:
    text = (DATA / f"{name}.json").read_text(encoding="utf-8")

    assert text == written(name), f"python -m tests.web.vectors {name}"


def test_vectors__every_file__has_a_module_and_a_reader() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "web" / "test").glob("*.ts"))

    assert sorted(path.stem for path in DATA.glob("*.json")) == names()
    assert [name for name in names() if f'("{name}")' not in tests] == []
