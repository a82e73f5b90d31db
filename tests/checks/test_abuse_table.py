"""docs/ASSURANCE.md lists the abuse programs as the tests have them."""

from __future__ import annotations

from pathlib import Path

from tests.abuse.programs import ROWS, table

PAGE = Path(__file__).parents[2] / "docs" / "ASSURANCE.md"


def test_assurance__abuse_programs__are_those_of_the_tests() -> None:
    assert len(ROWS) >= 25
    assert "\n".join(table()) in PAGE.read_text(), "python -m tests.abuse.programs prints the table"
