"""List the mutants of a Python source, found by the syntax tree.

The operators are those of a contract (`tools.mutate.contracts`), but for masks and named constants; `raise` is dropped
as `assert` is there. What is not mutated: what is said (texts, log lines, docstrings), types, and what runs where a
module is imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from tools.mutate.mutants import Change, Mutant, Part, name_all, only_token, swapped

_COMPARE: Final = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")} | {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_ARITHMETIC: Final = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "//"), ast.FloorDiv: ("//", "*")} | {
    ast.Mod: ("%", "//"),
    ast.Div: ("/", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
_OPPOSITES: Final = {"min": "max", "max": "min"}
_OF_TYPES: Final = ("isinstance", "issubclass", "cast")
"""Calls that name types."""
_SAYING: Final = ("log", "logging", "warnings")
"""Names whose calls tell a person something."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def mutants(file: Path, module: str) -> list[Mutant]:
    """Return every mutant of a module, in the order of its text."""
    source = _Source(file.read_text(encoding="utf-8"))
    return name_all(file, module, source.text, _parts(source, source.tree, ""))


class _Source:
    """A source's text and tree, and where its nodes are."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._lines = text.split("\n")

    def at(self, line: int, column: int) -> int:
        """Return the place of a line and a column, which ast counts in bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def between(self, left: ast.expr, right: ast.expr, token: str) -> tuple[int, int] | None:
        return only_token(self.text, self.span(left)[1], self.span(right)[0], token)


def _parts(source: _Source, node: ast.Module | ast.ClassDef, prefix: str) -> Iterator[Part]:
    """Yield each function and each method; what is defined in a function is a part of that."""
    for inner in node.body:
        if isinstance(inner, ast.ClassDef):
            yield from _parts(source, inner, f"{prefix}{inner.name}.")
        elif isinstance(inner, Function):
            start, end = source.span(inner)
            yield prefix + inner.name, start, end, [change for line in inner.body for change in _below(source, line)]


def _below(source: _Source, node: ast.AST) -> Iterator[Change]:
    """Yield the changes in a statement or an expression, and in all below it."""
    if _says(node):
        return
    match node:
        case ast.If() | ast.IfExp() if not _is_of_types(node.test):
            yield from (Change("branch", *source.span(node.test), always) for always in ("True", "False"))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for one, op, other in zip([left, *comparators], ops, comparators, strict=False):
                yield from _exchange(source, "compare", _COMPARE[type(op)], one, other)
        case ast.BoolOp(op=op, values=values):
            pair = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
            for one, other in pairwise(values):
                yield from _exchange(source, "logic", pair, one, other)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC and not (_is_text(left, right)):
            yield from _exchange(source, "arithmetic", _ARITHMETIC[type(op)], left, right)
        case ast.AugAssign(target=target, op=op, value=value) if type(op) in _ARITHMETIC and not _is_text(value):
            was, new = _ARITHMETIC[type(op)]
            yield from _exchange(source, "arithmetic", (was + "=", new + "="), target, value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield Change("logic", *source.span(node), source.text[slice(*source.span(operand))])
        case ast.Constant(value=bool(value)):
            yield Change("logic", *source.span(node), str(not value))
        case ast.Constant(value=int(value) | float(value)):
            yield Change("constant", *source.span(node), str(value + 1))
            if value > 0:
                yield Change("constant", *source.span(node), str(value - 1))
        case ast.Call():
            yield from _call(source, node)
    if _is_droppable(node):
        assert isinstance(node, ast.stmt)
        yield Change("drop", *source.span(node), "pass")
    for child in _values(node):
        yield from _below(source, child)


def _exchange(
    source: _Source, operator: str, pair: tuple[str, str], left: ast.expr, right: ast.expr
) -> Iterator[Change]:
    if at := source.between(left, right, pair[0]):
        yield Change(operator, *at, pair[1])


def _call(source: _Source, node: ast.Call) -> Iterator[Change]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in _OPPOSITES:
        yield Change("arithmetic", *source.span(node.func), _OPPOSITES[name])
    elif name not in _OF_TYPES:
        for left, right in pairwise(node.args):
            if change := swapped(source.text, source.span(left), source.span(right)):
                yield change


def _values(node: ast.AST) -> list[ast.AST]:
    """Return what is below a node, but for types, texts, and the lists of names that a function takes."""
    match node:
        case ast.JoinedStr() | ast.arguments() | ast.Import() | ast.ImportFrom():
            return []
        case ast.AnnAssign():
            return [value for value in (node.value,) if value is not None]
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return list(node.body)
        case ast.Call() if isinstance(node.func, ast.Name) and node.func.id in _OF_TYPES:
            return list(node.args[:1])
        case ast.ExceptHandler():
            return list(node.body)
        case _:
            return list(ast.iter_child_nodes(node))


def _says(node: ast.AST) -> bool:
    """Tell a statement that is a text or a line of a log."""
    if not isinstance(node, ast.Expr):
        return False
    first: ast.AST = node.value
    while isinstance(first, ast.Call | ast.Attribute):
        first = first.func if isinstance(first, ast.Call) else first.value
    return isinstance(first, ast.Constant) or (isinstance(first, ast.Name) and first.id in _SAYING)


def _is_droppable(node: ast.AST) -> bool:
    """Tell a statement whose absence a reader would not see at once: what it sets is set besides."""
    match node:
        case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
            return False  # without its only one, a function is no generator
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
        case ast.Return(value=None):
            return True
        case _:
            return isinstance(node, ast.Expr | ast.AugAssign | ast.Raise | ast.Assert | ast.Break | ast.Continue)


def _is_text(*nodes: ast.expr) -> bool:
    """Tell whether one of these is a text or a list in the source: no other operation takes it."""
    of_text = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
    return any(
        isinstance(node, of_text) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
        for node in nodes
    )


def _is_of_types(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "TYPE_CHECKING"
