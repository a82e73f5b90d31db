"""Hold every shift and every mask in a contract against the lane table.

A site that reads a lane is `(word >> W_X_SHIFT) & W_X_MASK`, with the constants of one lane: a shift of another lane, a
mask of another width and a literal are refused. Where nothing stands above the lane, the mask may be left out; where
nothing stands below it, the shift. A site that writes is `value << W_X_SHIFT`, or `word & ~W_X_LANE` to make room. What
is joined by `|` belongs to one word, and a variable that is named as a word is read as that word only.

What is no lane at all (fixed-point arithmetic, a table) says so beside it: `# lanes: why`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vyper import ast as vy_ast

from hearth.protocol.words import WORDS
from tools.lanes import Constant, Kind, constants_of

MODULE: Final = "packing"
CONSTANTS: Final = {constant.name: constant for word in WORDS for constant in constants_of(word)}
READ_AS: Final = {name: {name} for name in WORDS} | {
    "word": {"unit", "header"},
    "raw": {"unit", "header"},
    "record": {"owner", "operator"},
    "owned": {"owner"},
    "_owners": {"owner"},
    "_offers": {"offer"},
    "_hot": {"hot"},
    "old": {"hot"},
    "held": {"offer"},
    "next": {"next_ask"},
    "code": {"amount"},
    "checkpoints": {"kept"},
    "account": {"share"},
    "grown": {"limits"},
    "_locks": {"book"},
    "_credits": {"book"},
}
"""What a variable holds, by its name: the words that it may be read as."""
_JOINS: Final = (vy_ast.BitOr, vy_ast.BitAnd, vy_ast.Add, vy_ast.Sub)
_Fault = tuple[vy_ast.VyperNode, str]


def _constant(node: vy_ast.VyperNode) -> Constant | None:
    """Return the constant of packing.vy that an expression names."""
    if isinstance(node, vy_ast.Attribute) and isinstance(node.value, vy_ast.Name) and node.value.id == MODULE:
        return CONSTANTS.get(node.attr)
    return None


def _shift(node: vy_ast.VyperNode) -> Constant | None:
    """Return the lane that `word >> W_X_SHIFT` reads, by its shift."""
    if isinstance(node, vy_ast.BinOp) and isinstance(node.op, vy_ast.RShift):
        found = _constant(node.right)
        return found if found is not None and found.kind is Kind.SHIFT else None
    return None


def _lane_shift(constant: Constant) -> int:
    return next(shift for lane, shift in WORDS[constant.word].placed if lane.name == constant.lane)


def _name(node: vy_ast.VyperNode) -> str:
    """Return the last name of what is read: `limits` of terms.limits, `_hot` of self._hot[operator][node]."""
    if isinstance(node, vy_ast.Subscript):
        return _name(node.value)
    if isinstance(node, vy_ast.StaticCall):
        return _name(node.value.func)
    return str(node.attr if isinstance(node, vy_ast.Attribute) else getattr(node, "id", ""))


def _is_top(constant: Constant) -> bool:
    """Tell whether nothing stands above a lane."""
    return WORDS[constant.word].lanes[-1].name == constant.lane


class _Rules:
    """The rules, for one module, whose own constants may stand for several lanes of a word."""

    def __init__(self, module: vy_ast.Module) -> None:
        self.module = module
        self.own = {
            node.target.id: node.value for node in module.get_children(vy_ast.VariableDecl) if node.value is not None
        }

    def places(self, node: vy_ast.VyperNode) -> set[str] | None:
        """Return the words whose lanes a mask in place covers, None where the expression is none."""
        found = _constant(node)
        if found is not None:
            return {found.word} if found.kind is Kind.PLACE else None
        if isinstance(node, vy_ast.Name) and node.id in self.own:
            return self.places(self.own[node.id])
        if isinstance(node, vy_ast.UnaryOp) and isinstance(node.op, vy_ast.Invert):
            return self.places(node.operand)
        if isinstance(node, vy_ast.BinOp) and isinstance(node.op, _JOINS):
            left, right = self.places(node.left), self.places(node.right)
            return None if left is None or right is None else left | right
        return None

    def words(self, node: vy_ast.VyperNode) -> set[str]:
        """Return the words whose lanes are put together by `|`, `&`, `+` and `-`."""
        places = self.places(node)
        if places is not None:
            return places
        if isinstance(node, vy_ast.BinOp) and isinstance(node.op, vy_ast.LShift):
            found = _constant(node.right)
            return set() if found is None else {found.word}
        if isinstance(node, vy_ast.BinOp) and isinstance(node.op, _JOINS):
            return self.words(node.left) | self.words(node.right)
        return set()

    def misread(self, node: vy_ast.VyperNode, words: set[str]) -> Iterator[_Fault]:
        """Refuse a variable that holds one word, by its name, read by the lanes of another."""
        name = _name(node)
        if not words <= READ_AS.get(name, set()):
            yield node, f"`{name}` is read as {' and '.join(sorted(words))}"

    def ands(self, node: vy_ast.BinOp) -> Iterator[_Fault]:
        """Check one `&`: lanes in place, or the mask of the lane that its other side was shifted down by."""
        for mask, other in ((node.right, node.left), (node.left, node.right)):
            places = self.places(mask)
            if places is not None:
                if _shift(other) is not None:
                    yield node, "lanes in place, and a word that was shifted"
                yield from self.misread(other, places)
                return
            found = _constant(mask)
            if found is None or found.kind is not Kind.MASK:
                continue
            shift = _shift(other)
            if shift is None and _lane_shift(found) == 0 and not isinstance(other, vy_ast.BinOp):
                yield from self.misread(other, {found.word})
            elif shift is None or (shift.word, shift.lane) != (found.word, found.lane):
                yield node, f"{found.name} masks what its own lane's shift did not bring down"
            return
        yield node, "& with what is no lane"

    def shifts(self, node: vy_ast.BinOp) -> Iterator[_Fault]:
        """Check one `<<` or `>>`: by a lane's shift, and masked where lanes stand above."""
        by = _constant(node.right)
        if by is None or by.kind not in (Kind.SHIFT, Kind.END) or (by.kind is Kind.END and _is_up(node)):
            yield node, "a shift by what is no lane's"
            return
        if _is_up(node):
            mask = _constant(node.left)
            if mask is not None and mask.kind is Kind.MASK:
                yield node, f"{mask.name} in place is {mask.name.removesuffix('_MASK')}_LANE"
            return
        yield from self.misread(node.left, {by.word})
        outer = node.get_ancestor()
        masked = isinstance(outer, vy_ast.BinOp) and isinstance(outer.op, vy_ast.BitAnd)
        if by.kind is Kind.SHIFT and not masked and not _is_top(by):
            yield node, f"{by.word} has lanes above {by.lane}, so it takes {by.name.removesuffix('_SHIFT')}_MASK"

    def ors(self, node: vy_ast.BinOp) -> Iterator[_Fault]:
        """Check one `|`: lanes of one word."""
        words = self.words(node)
        if len(words) > 1:
            yield node, f"lanes of {' and '.join(sorted(words))} in one word"

    def faults(self) -> Iterator[_Fault]:
        """Yield every site that no lane explains, with the reason."""
        for node in self.module.get_descendants(vy_ast.BinOp):
            if isinstance(node.op, vy_ast.BitAnd):
                yield from self.ands(node)
            elif isinstance(node.op, vy_ast.LShift | vy_ast.RShift):
                yield from self.shifts(node)
            elif isinstance(node.op, vy_ast.BitOr):
                yield from self.ors(node)
            elif isinstance(node.op, vy_ast.BitXor):
                yield node, "^ belongs to no lane"
        for node in self.module.get_descendants(vy_ast.AugAssign):
            if isinstance(node.op, vy_ast.BitAnd | vy_ast.LShift | vy_ast.RShift | vy_ast.BitXor):
                yield node, "write the lane out: `word = word & ~W_X_LANE`"
        for node in self.module.get_descendants(vy_ast.Attribute):
            found, outer = _constant(node), node.get_ancestor()
            if found is None or found.kind not in (Kind.SHIFT, Kind.END):
                continue
            if not (isinstance(outer, vy_ast.BinOp) and isinstance(outer.op, vy_ast.LShift | vy_ast.RShift)):
                yield node, f"{found.name} is for the right side of a shift"


def _is_up(node: vy_ast.BinOp) -> bool:
    return isinstance(node.op, vy_ast.LShift)


def lane_faults(module: vy_ast.Module) -> Iterator[_Fault]:
    """Yield every shift and mask of a module that the lane table does not explain, with the reason."""
    yield from _Rules(module).faults()
