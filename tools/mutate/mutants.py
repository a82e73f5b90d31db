"""A mutant of a source: one span of its text replaced; its name, and the order in which a sample is drawn."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

OPERATORS = ("constant", "mask", "compare", "arithmetic", "logic", "branch", "drop", "swap")


@dataclass(frozen=True)
class Mutant:
    """One change: `file` has `new` in place of `old`, which is its text from `start` to `end`.

    `module` is the file's name in the record. `source` is the digest of the function that the change is in: a result
    holds for this text of the function.
    """

    id: str
    file: Path
    module: str
    function: str
    operator: str
    line: int
    start: int
    end: int
    old: str
    new: str
    source: str

    def text(self) -> str:
        """Return the whole source with the change."""
        whole = self.file.read_text(encoding="utf-8")
        assert whole[self.start : self.end] == self.old, f"{self.file} has changed since its mutants were listed"
        return whole[: self.start] + self.new + whole[self.end :]


@dataclass(frozen=True)
class Change:
    """What an operator found: the text from `start` to `end` becomes `new`."""

    operator: str
    start: int
    end: int
    new: str


Part = tuple[str, int, int, Iterable[Change]]
"""A function or a constant: its name, where it is in the text, and its changes."""


def only_token(text: str, start: int, end: int, token: str) -> tuple[int, int] | None:
    """Return where the only `token` between two places of a text is."""
    found = [m.span() for m in re.finditer(rf"(?<![\w<>=!*/&|]){re.escape(token)}(?![\w<>=*/&|])", text[start:end])]
    return (start + found[0][0], start + found[0][1]) if len(found) == 1 else None


def swapped(text: str, left: tuple[int, int], right: tuple[int, int]) -> Change | None:
    """Return the change by which two neighbours in a list change places; None where a parenthesis would be torn."""
    first, gap, second = text[slice(*left)], text[left[1] : right[0]], text[slice(*right)]
    if first == second or gap.count("(") or gap.count(")"):
        return None
    return Change("swap", left[0], right[1], second + gap + first)


def name_all(file: Path, module: str, text: str, parts: Iterable[Part]) -> list[Mutant]:
    """Return the mutants of a source, in the order of its text.

    A name is `module.function/operator/digest`. The digest is of the text around the change, not of its line's number,
    so that a name outlives code that moves.
    """
    lines = [0, *(match.end() for match in re.finditer("\n", text))]
    found: list[Mutant] = []
    for name, start, end, changes in parts:
        digest = _digest(text[start:end])
        seen: Counter[str] = Counter()
        for change in sorted(set(changes), key=lambda c: (c.start, c.end, c.operator, c.new)):
            line = bisect_right(lines, change.start)
            begin = lines[line - 1]
            stop = text.find("\n", change.end)
            context = text[begin : stop if stop >= 0 else None]
            at = change.start - begin - (len(context) - len(context.lstrip()))
            old = text[change.start : change.end]
            told = f"{context.strip()}\0{at}\0{old}\0{change.new}"
            nth = seen[f"{change.operator}\0{told}"]
            seen[f"{change.operator}\0{told}"] += 1
            key = f"{module}.{name}/{change.operator}/{_digest(f'{told}{nth}')[:10]}"
            found.append(
                Mutant(
                    key, file, module, name, change.operator, line, change.start, change.end, old, change.new, digest
                )
            )
    return found


def draw(population: list[Mutant], seed: int, tried: Collection[str] = ()) -> list[Mutant]:
    """Return the mutants in the order of a seeded, stratified draw.

    First one of every function, then one of every operator in every function, then the rest by chance: the first n are
    a sample of n, and a longer one begins with a shorter one. Those that were `tried`, by their names, were drawn
    before the sources changed: they come first, and only what none of them stands for is drawn anew.
    """
    order = sorted(population, key=lambda mutant: mutant.id)
    Random(seed).shuffle(order)
    order.sort(key=lambda mutant: mutant.id not in tried)
    seen: set[tuple[str, ...]] = set()
    ranks: dict[str, int] = {}
    for mutant in order:
        function, stratum = (mutant.module, mutant.function), (mutant.module, mutant.function, mutant.operator)
        ranks[mutant.id] = 0 if function not in seen else 1 if stratum not in seen else 2
        seen |= {function, stratum}
    return sorted(order, key=lambda mutant: (mutant.id not in tried, ranks[mutant.id]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
