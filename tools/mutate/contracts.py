"""List the mutants of a Vyper source, found by the compiler's own syntax tree.

A constant's name stands where a function's is where the change is of a constant of the file.

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

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from vyper import ast as vy
from vyper.ast.parse import parse_to_ast

from tools.mutate.mutants import Change, Mutant, Part, name_all, only_token, swapped

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
        return only_token(self.text, a[1], b[0], token)

    def is_constant(self, node: Any) -> bool:
        """Tell a constant by its name: one of this file, or of a module (`packing.UNIT_FUEL`)."""
        if isinstance(node, vy.Name):
            return node.id in self.constants
        module = isinstance(node, vy.Attribute) and isinstance(node.value, vy.Name) and node.value.id
        return bool(module) and module not in ("self", "msg") and _UPPER.fullmatch(node.attr) is not None


def mutants(file: Path) -> list[Mutant]:
    """Return every mutant of a contract or module, in the order of its text."""
    source = _Source(file.read_text(encoding="utf-8"))
    return name_all(file, file.stem, source.text, _parts(source))


def _parts(source: _Source) -> Iterator[Part]:
    """Yield each function and each constant of the file with its name, where it is, and its changes."""
    for node in source.tree.body:
        if isinstance(node, vy.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            end = source.lines[node.end_lineno] if node.end_lineno < len(source.lines) else len(source.text)
            yield node.name, source.lines[first - 1], end, [c for s in node.body for c in _statement(source, s)]
        elif isinstance(node, vy.VariableDecl) and node.is_constant:
            start, end = source.lines[node.lineno - 1], source.lines[node.end_lineno - 1] + node.end_col_offset
            yield node.target.id, start, end, list(_expression(source, node.value))


def _statement(source: _Source, node: Any) -> Iterator[Change]:
    span = source.span(node)
    droppable = isinstance(node, (vy.Expr, vy.Assign, vy.AugAssign, vy.Log, vy.For, vy.Break, vy.Continue, vy.Assert))
    if span and (droppable or (isinstance(node, vy.Return) and node.value is None)):
        yield Change("drop", *span, "pass")
    if isinstance(node, vy.If) and (test := source.span(node.test)):
        yield from (Change("branch", *test, always) for always in ("True", "False"))
    if isinstance(node, vy.AugAssign):
        was, new = _ARITHMETIC.get(type(node.op).__name__, ("", ""))
        if was and (at := source.between(node.target, node.value, was + "=")):
            yield Change("arithmetic", *at, new + "=")
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


def _expression(source: _Source, node: Any) -> Iterator[Change]:
    """Yield the changes in an expression and all below it."""
    kind = type(node).__name__
    below = list(node.get_children())
    if isinstance(node, vy.Int) or source.is_constant(node):
        yield from _step(source, node)
        below = []
    elif isinstance(node, vy.NameConstant) and isinstance(node.value, bool) and (span := source.span(node)):
        yield Change("logic", *span, str(not node.value))
    elif isinstance(node, (vy.Compare, vy.BinOp)):
        token = type(node.op).__name__
        for operator, table in (("compare", _COMPARE), ("arithmetic", _ARITHMETIC)):
            was, new = table.get(token, ("", ""))
            if was and (at := source.between(node.left, node.right, was)):
                yield Change(operator, *at, new)
        below = [node.left, node.right]
        if kind == "BinOp" and token in _BITWISE:
            for side in [side for side in below if source.is_constant(side) or isinstance(side, vy.Int)]:
                yield from _mask(source, side)
                below.remove(side)
    elif isinstance(node, vy.BoolOp):
        was, new = _LOGIC[type(node.op).__name__]
        for left, right in pairwise(node.values):
            if at := source.between(left, right, was):
                yield Change("logic", *at, new)
        below = list(node.values)
    elif isinstance(node, vy.UnaryOp):
        outer, inner = source.span(node), source.span(node.operand)
        if outer and inner and type(node.op).__name__ in ("Not", "Invert"):
            text = source.text[outer[0] : outer[1]]
            yield Change("logic", *outer, text.removeprefix("not").removeprefix("~").lstrip())
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


def _step(source: _Source, node: Any) -> Iterator[Change]:
    span = source.span(node)
    if span is None:
        return
    text = source.text[slice(*span)]
    if isinstance(node, vy.Int):
        yield Change("constant", *span, str(node.value + 1))
        if node.value > 0:
            yield Change("constant", *span, str(node.value - 1))
        return
    yield Change("constant", *span, f"({text} + 1)")
    if not text.startswith("reasons."):  # one other number of a reason is as good as the next
        yield Change("constant", *span, f"({text} - 1)")


def _mask(source: _Source, node: Any) -> Iterator[Change]:
    if (source.is_constant(node) or isinstance(node, vy.Int)) and (span := source.span(node)):
        yield Change("mask", *span, f"({source.text[slice(*span)]} >> 1)")


def _call(source: _Source, node: Any) -> Iterator[Change]:
    name = getattr(node.func, "id", "")
    if name in _OPPOSITES and (span := source.span(node.func)):
        yield Change("arithmetic", *span, _OPPOSITES[name])
    fields = [word.value for word in node.keywords if word.arg not in _OPTIONS]
    for group in (list(node.args), fields):
        for left, right in pairwise(group):
            a, b = source.span(left), source.span(right)
            if a and b and name not in _OPPOSITES and (change := swapped(source.text, a, b)):
                yield change
