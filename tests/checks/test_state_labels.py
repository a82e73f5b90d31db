"""One word for each state: in commands.md, in every command and on the page, and no other one anywhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

import pytest

from hearth.protocol.state_labels import DONE, END_LABELS, FAILED, JOB_LABELS, STATE_LABELS, STATUS_LABELS
from hearth.protocol.types import Outcome, State, Status, Unit
from tests.checks.test_protocol_page import section, tables
from tests.client.test_client import _view as view_of

ROOT = Path(__file__).parents[2]
SAID = tables(section("What people read", page="commands.md"))
OR_FAILED = f"{DONE}, or {FAILED} where the program failed: paid, too"

OK, BAD = Unit(State.SETTLED, Outcome.OK), Unit(State.SETTLED, Outcome.EXIT)
GONE, BACK = Unit(State.CANCELLED), Unit(State.REFUNDED)


def test_words__of_the_page__are_those_of_the_tables() -> None:
    def written(words: dict[str, str]) -> list[list[str]]:
        return [[name, OR_FAILED if word == DONE else word] for name, word in words.items()]

    def named(words: dict[IntEnum, str]) -> dict[str, str]:
        return {one.name: word for one, word in words.items()}

    assert [written(named(dict(STATE_LABELS))), written(named(dict(STATUS_LABELS))), written(dict(END_LABELS))] == SAID


def test_words__every_state__has_one_and_no_two_have_the_same() -> None:
    assert list(STATE_LABELS) == [state for state in State if state is not State.NONE and state.name != "HEADER"]
    assert list(STATUS_LABELS) == list(Status)
    for words in (JOB_LABELS, tuple(STATUS_LABELS.values()), tuple(END_LABELS.values())):
        assert len(set(words)) == len(words)


@pytest.mark.parametrize(
    ("units", "leases", "closed", "told"),
    [
        *(
            ([Unit(state)], 1, False, (word, word))
            for state, word in STATE_LABELS.items()
            if state is not State.SETTLED
        ),
        ([OK], 1, False, (DONE, DONE)),
        ([BAD], 1, False, (FAILED, FAILED)),
        ([OK, OK], 2, False, (DONE, DONE)),
        ([BAD, BAD], 2, False, (FAILED, FAILED)),
        ([BACK, BACK], 2, False, ("refunded", "refunded")),
        ([GONE], 2, True, ("cancelled", "cancelled")),
        ([OK, BAD, BACK], 3, False, (FAILED, "1 of 3 units failed")),
        ([OK, BACK], 2, False, ("refunded", "1 of 2 units done")),
        ([OK], 2, False, ("running", "running")),
        ([], 2, False, ("waiting for a machine", "waiting for a machine")),
    ],
)
def test_job__one_unit_or_an_array__is_told_in_the_same_words(
    units: list[Unit], leases: int, closed: bool, told: tuple[str, str]
) -> None:
    view = view_of(units, leases=leases, closed=closed)
    assert view.labels == told
    assert sum(view.tally.values()) == leases and set(view.tally) <= set(JOB_LABELS)
    assert view.labels[0] in JOB_LABELS


def test_code__what_people_read__has_no_name_of_the_chain_in_it() -> None:
    """Of states and statuses: JSON keys keep them, and what `hearth net verify` compares word by word."""
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for room in ("hearth", "worker", "keeper")
        for path in sorted((ROOT / room).rglob("*.py"))
        if path.name != "verify.py"
        for line in _named_in(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


def _named_in(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of f-strings that say a state or a status by its name: `{unit.state.name.lower()}`."""
    for text in (node for node in ast.walk(tree) if isinstance(node, ast.FormattedValue)):
        said = ast.unparse(text.value)
        if (re.search(r"\b(state|status)(\.name\b|\s*if\b|$)", said) and ".name" in said) or re.search(
            r"view\.state$|(row|report|one)\['(state|status)'\]$", said
        ):
            yield text.lineno


def test_page__what_people_read__has_no_name_of_the_chain_in_it() -> None:
    named = re.compile(r"nameOf\((STATE|STATUS),|\b(stateOf|verdictOf)\w*\(")
    found = {
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "web" / "src" / "ui").rglob("*.ts*"))
        if named.search(path.read_text(encoding="utf-8"))
    }
    # A file for programs, whose columns are the keys of `hearth jobs --json`.
    assert found == {"web/src/ui/jobs-csv.ts"}
