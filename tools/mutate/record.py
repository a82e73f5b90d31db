"""Keep results of mutants, one line each, and count them.

A result holds as long as the text of its function does. What survives has a row in a file of survivors: "equivalent"
where no call can tell it from what it was made from, and it is left out of the score, or "gap" where a test could and
none does.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from hearth.base.files import replace_text
from tools.mutate.mutants import OPERATORS, Mutant
from tools.vyper_files import ROOT

FOLDER = ROOT / "tests" / "mutation"
PAGE = ROOT / "docs" / "ASSURANCE.md"
SUBJECTS = ("contracts", "python")
"""What is mutated: each has a record, a file of survivors, and a table in PAGE."""

KILLED, TIMEOUT, SURVIVED, EQUIVALENT, INVALID = "killed", "timeout", "survived", "equivalent", "invalid"
TRIED = (KILLED, TIMEOUT, SURVIVED)
"""What counts as a mutant that was tried: it compiles, to other code."""
KINDS = ("equivalent", "gap")
Z = 1.959964  # of 95 %


@dataclass(frozen=True)
class Result:
    """What became of a mutant; `killer` is the test that failed first, `seconds` are of a processor."""

    id: str
    source: str
    result: str
    killer: str
    seconds: float


def read(path: Path) -> dict[str, Result]:
    """Return the last result of each mutant. A line that was cut off by an interruption is no result."""
    found: dict[str, Result] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            result = Result(**json.loads(line))
        except (ValueError, TypeError):
            continue
        found[result.id] = result
    return found


def add(path: Path, result: Result) -> None:
    """Append one result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    with path.open("a", encoding="utf-8") as file:
        file.write(("" if not text or text.endswith("\n") else "\n") + json.dumps(asdict(result)) + "\n")


def tidy(path: Path, population: Iterable[Mutant]) -> None:
    """Leave one line for each mutant that still is one, in the order of their names."""
    known = {mutant.id for mutant in population}
    lines = [json.dumps(asdict(result)) + "\n" for key, result in sorted(read(path).items()) if key in known]
    replace_text(path, "".join(lines))


def current(results: Mapping[str, Result], population: Iterable[Mutant]) -> dict[str, Result]:
    """Return the results whose functions read as they did."""
    sources = {mutant.id: mutant.source for mutant in population}
    return {key: result for key, result in results.items() if sources.get(key) == result.source}


def record_of(subject: str) -> Path:
    """Return the file of the results that are in git."""
    return FOLDER / f"{subject}.jsonl"


def survivors(subject: str) -> dict[str, dict[str, str]]:
    """Return name -> {"kind", "why"} of the mutants that survive and are explained."""
    path = FOLDER / f"{subject}.toml"
    if not path.is_file():
        return {}
    return tomllib.loads(path.read_text(encoding="utf-8"))


def wilson(hits: int, tries: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, by Wilson's score."""
    if tries == 0:
        return 0.0, 1.0
    share = hits / tries
    middle = (share + Z * Z / (2 * tries)) / (1 + Z * Z / tries)
    half = Z / (1 + Z * Z / tries) * math.sqrt(share * (1 - share) / tries + Z * Z / (4 * tries * tries))
    return max(0.0, middle - half), min(1.0, middle + half)


def unexplained(results: Mapping[str, Result], explained: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the survivors without a row."""
    return sorted(key for key, result in results.items() if result.result == SURVIVED and key not in explained)


def table(results: Mapping[str, Result], explained: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the score by module, by operator and in all. Modules of a package count together."""
    groups: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for key, result in results.items():
        where, operator, _ = key.split("/")
        kind = result.result
        if kind == SURVIVED and explained.get(key, {}).get("kind") == "equivalent":
            kind = "explained"
        for group in (f"`{where.split('.')[0]}`", operator, "all"):
            groups[group][kind] += 1
    contracts = sorted(name for name in groups if name.startswith("`"))
    found = [
        "| Of | Mutants | not valid | same code | equivalent | tried | killed | survive | Score | 95 % |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    return found + [_row(name, groups[name]) for name in (*contracts, *OPERATORS, "all") if name in groups]


def _row(name: str, counts: Counter[str]) -> str:
    killed = counts[KILLED] + counts[TIMEOUT]
    tried = killed + counts[SURVIVED]
    low, high = wilson(killed, tried)
    score = f"{100 * killed / tried:.1f} %" if tried else "none"
    return (
        f"| {name} | {counts.total():,} | {counts[INVALID]} | {counts[EQUIVALENT]} | {counts['explained']} "
        f"| {tried:,} | {killed:,} | {counts[SURVIVED]} | {score} | {100 * low:.1f} to {100 * high:.1f} % |"
    )


def write_table(lines: list[str], subject: str) -> None:
    """Put the table between its marks in docs/ASSURANCE.md."""
    text, (begin, end) = PAGE.read_text(encoding="utf-8"), (f"<!-- {mark} {subject} -->\n" for mark in ("of", "/of"))
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    replace_text(PAGE, head + begin + "".join(f"{line}\n" for line in lines) + end + tail)
