"""List the mutants of a Vyper source: one span of its text replaced, found by the compiler's own syntax tree.

A mutant's name is `Contract.function/operator/digest`; a constant's name stands where it is of a constant of the file.
The digest is of the text around the change, not of its line's number, so that a name outlives code that moves.

| operator | what it does |
| --- | --- |
| constant | a number, or a named constant, one more or one less |
| mask | a constant beside `&` or `|` one bit shorter |
| compare | `<` to `<=` and back, `>` to `>=` and back, `==` to `!=` and back, `in` to `not in` and back |
| arithmetic | `+` and `-`, `*` and `//`, `%` and `//`, `<<` and `>>`, `&` and `|`, `min` and `max` change places |
| logic | `and` and `or` change places, `not` and `~` go, True and False change places |
| branch | a condition is always true, or always false |
| drop | a statement goes |
| swap | two neighbours among the arguments of a call, or among the fields of an event or a struct, change places |
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from vyper import ast as vy
from vyper.ast.parse import parse_to_ast

OPERATORS = ("constant", "mask", "compare", "arithmetic", "logic", "branch", "drop", "swap")

_COMPARE = {"Lt": ("<", "<="), "LtE": ("<=", "<"), "Gt": (">", ">="), "GtE": (">=", ">"), "Eq": ("==", "!=")}
_COMPARE |= {"NotEq": ("!=", "=="), "In": ("in", "not in"), "NotIn": ("not in", "in")}
_ARITHMETIC = {"Add": ("+", "-"), "Sub": ("-", "+"), "Mult": ("*", "//"), "FloorDiv": ("//", "*"), "Mod": ("%", "//")}
_ARITHMETIC |= {"LShift": ("<<", ">>"), "RShift": (">>", "<<"), "BitAnd": ("&", "|"), "BitOr": ("|", "&")}
_LOGIC = {"And": ("and", "or"), "Or": ("or", "and")}
_BITWISE = ("BitAnd", "BitOr")
_OPPOSITES = {"min": "max", "max": "min"}
# Types and sizes stand where a value does in these calls.
_OF_TYPES = ("empty", "max_value", "min_value")
# How a call is made, not what it says: the compiler wants some of them literal, and none has a neighbour's meaning.
_OPTIONS = ("value", "gas", "salt", "skip_contract_check", "default_return_value", "max_outsize", "revert_on_failure")
_SAME_BY_PROMISE = "skip_contract_check"  # whoever is called has code, so the check changes nothing
_UPPER = re.compile(r"_?[A-Z][A-Z0-9_]*")


@dataclass(frozen=True)
class Mutant:
    """One change: `file` has `new` in place of `old`, which is its text from `start` to `end`.

    `source` is the digest of the function that it is in: a result holds for this text of the function.
    """

    id: str
    file: Path
    function: str
    operator: str
    line: int
    start: int
    end: int
    old: str
    new: str
    source: str

    @property
    def contract(self) -> str:
        return self.file.stem

    def text(self) -> str:
        """Return the whole source with the change."""
        whole = self.file.read_text(encoding="utf-8")
        assert whole[self.start : self.end] == self.old, f"{self.file} has changed since its mutants were listed"
        return whole[: self.start] + self.new + whole[self.end :]


@dataclass(frozen=True)
class _Change:
    operator: str
    start: int
    end: int
    new: str


class _Source:
    """A source's text and tree, and where its nodes are. Columns are the compiler's: it takes ASCII alone."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.tree = parse_to_ast(text)
        self.constants = {
            node.target.id for node in self.tree.body if isinstance(node, vy.VariableDecl) and node.is_constant
        }

    def span(self, node: Any) -> tuple[int, int] | None:
        """Return where a node is; None where the compiler's positions are off, as those of a few names are."""
        start = self.lines[node.lineno - 1] + node.col_offset
        end = self.lines[node.end_lineno - 1] + node.end_col_offset
        text = self.text[start:end]
        if isinstance(node, vy.Name):
            return (start, end) if text == node.id else None
        if isinstance(node, vy.Attribute):
            return (start, end) if text.endswith("." + node.attr) and self.span(node.value) else None
        for child in node.get_descendants((vy.Name, vy.Attribute)):
            if not self.span(child):
                return None
        return start, end

    def between(self, left: Any, right: Any, token: str) -> tuple[int, int] | None:
        """Return where the only `token` between two nodes is."""
        a, b = self.span(left), self.span(right)
        if a is None or b is None:
            return None
        gap = self.text[a[1] : b[0]]
        found = [m.span() for m in re.finditer(rf"(?<![\w<>=!*/&|]){re.escape(token)}(?![\w<>=*/&|])", gap)]
        return (a[1] + found[0][0], a[1] + found[0][1]) if len(found) == 1 else None

    def is_constant(self, node: Any) -> bool:
        """Tell a constant by its name: one of this file, or of a module (`packing.UNIT_FUEL`)."""
        if isinstance(node, vy.Name):
            return node.id in self.constants
        module = isinstance(node, vy.Attribute) and isinstance(node.value, vy.Name) and node.value.id
        return bool(module) and module not in ("self", "msg") and _UPPER.fullmatch(node.attr) is not None


def mutants(file: Path) -> list[Mutant]:
    """Return every mutant of a contract or module, in the order of its text."""
    source = _Source(file.read_text(encoding="utf-8"))
    found: list[Mutant] = []
    for name, start, end, changes in _parts(source):
        digest = _digest(source.text[start:end])
        seen: Counter[str] = Counter()
        for change in sorted(set(changes), key=lambda c: (c.start, c.end, c.operator, c.new)):
            line = bisect_right(source.lines, change.start)
            begin = source.lines[line - 1]
            stop = source.text.find("\n", change.end)
            context = source.text[begin : stop if stop >= 0 else None]
            at = change.start - begin - (len(context) - len(context.lstrip()))
            old = source.text[change.start : change.end]
            told = f"{context.strip()}\0{at}\0{old}\0{change.new}"
            nth = seen[f"{change.operator}\0{told}"]
            seen[f"{change.operator}\0{told}"] += 1
            key = f"{file.stem}.{name}/{change.operator}/{_digest(f'{told}{nth}')[:10]}"
            found.append(
                Mutant(key, file, name, change.operator, line, change.start, change.end, old, change.new, digest)
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
        function, stratum = (mutant.contract, mutant.function), (mutant.contract, mutant.function, mutant.operator)
        ranks[mutant.id] = 0 if function not in seen else 1 if stratum not in seen else 2
        seen |= {function, stratum}
    return sorted(order, key=lambda mutant: (mutant.id not in tried, ranks[mutant.id]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _parts(source: _Source) -> Iterator[tuple[str, int, int, list[_Change]]]:
    """Yield each function and each constant of the file with its name, where it is, and its changes."""
    for node in source.tree.body:
        if isinstance(node, vy.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            end = source.lines[node.end_lineno] if node.end_lineno < len(source.lines) else len(source.text)
            yield node.name, source.lines[first - 1], end, [c for s in node.body for c in _statement(source, s)]
        elif isinstance(node, vy.VariableDecl) and node.is_constant:
            start, end = source.lines[node.lineno - 1], source.lines[node.end_lineno - 1] + node.end_col_offset
            yield node.target.id, start, end, list(_expression(source, node.value))


def _statement(source: _Source, node: Any) -> Iterator[_Change]:
    span = source.span(node)
    droppable = isinstance(node, (vy.Expr, vy.Assign, vy.AugAssign, vy.Log, vy.For, vy.Break, vy.Continue, vy.Assert))
    if span and (droppable or (isinstance(node, vy.Return) and node.value is None)):
        yield _Change("drop", *span, "pass")
    if isinstance(node, vy.If) and (test := source.span(node.test)):
        yield from (_Change("branch", *test, always) for always in ("True", "False"))
    if isinstance(node, vy.AugAssign):
        was, new = _ARITHMETIC.get(type(node.op).__name__, ("", ""))
        if was and (at := source.between(node.target, node.value, was + "=")):
            yield _Change("arithmetic", *at, new + "=")
        if type(node.op).__name__ in _BITWISE:
            yield from _mask(source, node.value)
    for field in ("value", "test", "iter"):
        # What is assigned to is no value, but what it is indexed with is.
        if getattr(node, field, None) is not None:
            yield from _expression(source, getattr(node, field))
    target = getattr(node, "target", None)
    if isinstance(target, vy.Subscript) and not isinstance(node, (vy.AnnAssign, vy.For)):
        yield from _expression(source, target)
    for block in ("body", "orelse"):
        for inner in getattr(node, block, None) or ():
            yield from _statement(source, inner)


def _expression(source: _Source, node: Any) -> Iterator[_Change]:
    """Yield the changes in an expression and all below it."""
    kind = type(node).__name__
    below = list(node.get_children())
    if isinstance(node, vy.Int) or source.is_constant(node):
        yield from _step(source, node)
        below = []
    elif isinstance(node, vy.NameConstant) and isinstance(node.value, bool) and (span := source.span(node)):
        yield _Change("logic", *span, str(not node.value))
    elif isinstance(node, (vy.Compare, vy.BinOp)):
        token = type(node.op).__name__
        for operator, table in (("compare", _COMPARE), ("arithmetic", _ARITHMETIC)):
            was, new = table.get(token, ("", ""))
            if was and (at := source.between(node.left, node.right, was)):
                yield _Change(operator, *at, new)
        below = [node.left, node.right]
        if kind == "BinOp" and token in _BITWISE:
            for side in [side for side in below if source.is_constant(side) or isinstance(side, vy.Int)]:
                yield from _mask(source, side)
                below.remove(side)
    elif isinstance(node, vy.BoolOp):
        was, new = _LOGIC[type(node.op).__name__]
        for left, right in pairwise(node.values):
            if at := source.between(left, right, was):
                yield _Change("logic", *at, new)
        below = list(node.values)
    elif isinstance(node, vy.UnaryOp):
        outer, inner = source.span(node), source.span(node.operand)
        if outer and inner and type(node.op).__name__ in ("Not", "Invert"):
            text = source.text[outer[0] : outer[1]]
            yield _Change("logic", *outer, text.removeprefix("not").removeprefix("~").lstrip())
        below = [node.operand]
    elif isinstance(node, vy.Call):
        yield from _call(source, node)
        name = getattr(node.func, "id", "")
        below = [] if name in _OF_TYPES else list(node.args)
        below += [word.value for word in node.keywords if word.arg != _SAME_BY_PROMISE]
        if isinstance(node.func, vy.Attribute):
            below.append(node.func.value)
    for child in below:
        yield from _expression(source, child)


def _step(source: _Source, node: Any) -> Iterator[_Change]:
    span = source.span(node)
    if span is None:
        return
    text = source.text[slice(*span)]
    if isinstance(node, vy.Int):
        yield _Change("constant", *span, str(node.value + 1))
        if node.value > 0:
            yield _Change("constant", *span, str(node.value - 1))
        return
    yield _Change("constant", *span, f"({text} + 1)")
    if not text.startswith("reasons."):  # one other number of a reason is as good as the next
        yield _Change("constant", *span, f"({text} - 1)")


def _mask(source: _Source, node: Any) -> Iterator[_Change]:
    if (source.is_constant(node) or isinstance(node, vy.Int)) and (span := source.span(node)):
        yield _Change("mask", *span, f"({source.text[slice(*span)]} >> 1)")


def _call(source: _Source, node: Any) -> Iterator[_Change]:
    name = getattr(node.func, "id", "")
    if name in _OPPOSITES and (span := source.span(node.func)):
        yield _Change("arithmetic", *span, _OPPOSITES[name])
    fields = [word.value for word in node.keywords if word.arg not in _OPTIONS]
    for group in (list(node.args), fields):
        for left, right in pairwise(group):
            a, b = source.span(left), source.span(right)
            if a is None or b is None:
                continue
            first, gap, second = source.text[slice(*a)], source.text[a[1] : b[0]], source.text[slice(*b)]
            # A parenthesis around either would be torn.
            if first != second and gap.count("(") == gap.count(")") == 0 and name not in _OPPOSITES:
                yield _Change("swap", a[0], b[1], second + gap + first)
