"""The table of docs/ASSURANCE.md on what was fuzzed, made from the record and the kept inputs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from tests.fuzz import corpus
from tests.fuzz.target import AIMS, Target, check, quiet
from tests.fuzz.targets import TARGETS

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "ASSURANCE.md"
_MARKS: Final = ("<!-- fuzz -->\n", "<!-- /fuzz -->\n")
_ROOMS: Final = tuple(f"{ROOT}/{room}/" for room in ("hearth", "keeper", "worker"))


def lines_reached(target: Target) -> tuple[int, int]:
    """Return how many lines of Hearth's functions the kept inputs reach, of all lines of the functions entered."""
    reached: set[tuple[CodeType, int]] = set()
    entered: set[CodeType] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(_ROOMS) or code.co_name in ("<module>", "<lambda>"):
            return None
        entered.add(code)
        reached.add((code, frame.f_lineno))
        return trace

    with quiet():
        sys.settrace(trace)
        try:
            for data in corpus.kept(target):
                check(target, data)
        finally:
            sys.settrace(None)
    every = {(code, line) for code in entered for _, _, line in code.co_lines() if line and line > code.co_firstlineno}
    return len(reached & every), len(every)


def rows(record: Mapping[str, Any]) -> list[str]:
    """Return the table's lines."""
    found = [
        "| Parser | A stranger sends | Executions | of the aim | taken | Seconds | Edges | Lines | Findings | Seed |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, target in TARGETS.items():
        row = record.get(name)
        if row is None:
            found.append(f"| `{name}` | {target.what} | none | | | | | | | |")
            continue
        reached, every = lines_reached(target)
        share, taken = (
            100 * row[key] / most for key, most in (("executions", AIMS[target.kind]), ("taken", row["executions"]))
        )
        found.append(
            f"| `{name}` | {target.what} | {row['executions']:,} | {share:.0f} % | {taken:.0f} % | {row['seconds']:,} "
            f"| {row['edges']} | {reached} of {every} | {row['findings']} | {row['seed']} |"
        )
    return found


def write(record: Mapping[str, Any]) -> None:
    """Put the table between its marks."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(_MARKS[0])
    _, _, tail = rest.partition(_MARKS[1])
    PAGE.write_text(
        head + _MARKS[0] + "".join(f"{line}\n" for line in rows(record)) + _MARKS[1] + tail, encoding="utf-8"
    )
