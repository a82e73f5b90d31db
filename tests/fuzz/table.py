"""The table of docs/ASSURANCE.md on what was fuzzed, made from the record and the kept inputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.fuzz import corpus, lines
from tests.fuzz.target import AIMS, Target, quiet
from tests.fuzz.targets import TARGETS

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "ASSURANCE.md"
Row = dict[str, Any]
_MARKS: Final = ("<!-- fuzz -->\n", "<!-- /fuzz -->\n")


def lines_reached(target: Target) -> tuple[int, int]:
    """Return how many lines of Hearth's functions the kept inputs reach, of all lines of the functions entered."""
    with quiet():
        found = set[lines.Line]().union(*(lines.reached(target, data) for data in corpus.kept(target)))
    return len(found), len(lines.of_functions({code for code, _ in found}))


def line(name: str, row: Row | None, reached: str) -> str:
    """Return a parser's line; `reached` is its cell on lines, which is counted anew and not in the record."""
    target = TARGETS[name]
    if row is None:
        return f"| `{name}` | {target.what} | none | | | | | | | |"
    share, taken = (
        100 * row[key] / most for key, most in (("executions", AIMS[target.kind]), ("taken", row["executions"]))
    )
    return (
        f"| `{name}` | {target.what} | {row['executions']:,} | {share:.0f} % | {taken:.0f} % | {row['seconds']:,} "
        f"| {row['edges']} | {reached} | {row['findings']} | {row['seed']} |"
    )


def rows(record: Mapping[str, Row]) -> list[str]:
    """Return the table's lines."""
    found = [
        "| Parser | A stranger sends | Executions | of the aim | taken | Seconds | Edges | Lines | Findings | Seed |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, target in TARGETS.items():
        row = record.get(name)
        found.append(line(name, row, "" if row is None else "{} of {}".format(*lines_reached(target))))
    return found


def write(record: Mapping[str, Row]) -> None:
    """Put the table between its marks."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(_MARKS[0])
    _, _, tail = rest.partition(_MARKS[1])
    PAGE.write_text(
        head + _MARKS[0] + "".join(f"{line}\n" for line in rows(record)) + _MARKS[1] + tail, encoding="utf-8"
    )
