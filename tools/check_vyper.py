"""Refuse the Vyper forms that the pinned compiler is known to get wrong, or that Hearth does without.

Read from the compiler's own annotated syntax tree, so that a type, not a spelling, decides. The hazards and their
advisories: threats.md "Compiler"; each rule has a fixture in tests/checks that it must reject.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from vyper import ast as vy_ast
from vyper.exceptions import VyperException
from vyper.semantics.analysis.base import StateMutability
from vyper.semantics.types import BytesT, DArrayT, SArrayT, StringT, StructT, TupleT, VyperType
from vyper.semantics.types.base import TYPE_T
from vyper.semantics.types.function import ContractFunctionT, MemberFunctionT

from tools.lane_rules import lane_faults
from tools.lanes import PACKING
from tools.reasons import MODULE as REASONS
from tools.vyper_files import COMPILER, Source, find_sources, load

BANNED_CALLS = {
    "raw_create": "contracts are deployed by the deploy script only",
    "create_from_blueprint": "CVE-2026-114118: a huge code_offset deploys empty code",
    "create_minimal_proxy_to": "contracts are deployed by the deploy script only",
    "create_forwarder_to": "contracts are deployed by the deploy script only",
    "create_copy_of": "contracts are deployed by the deploy script only",
    "selfdestruct": "a contract that holds money never disappears",
    "raw_log": "events are declared in the .vyi",
    "raw_revert": "a contract refuses by a number of reasons.vy",
    "sqrt": "decimal rounding",
    "isqrt": "not needed, and one builtin less to trust",
}
# `send` is also an ordinary member name (IERC777.send); only the builtin is refused.
BANNED_BUILTINS = BANNED_CALLS | {"send": "a stipend transfer; money leaves by Escrow.withdraw only"}
PRAGMA = re.compile(r"^#\s*(?:@|pragma\s+)(?P<what>.+?)\s*$")
VERSION_PRAGMA = f"# pragma version {COMPILER}"
NONREENTRANCY_PRAGMA = "# pragma nonreentrancy on"
EVM_PRAGMA = "# pragma evm-version "
ALLOWED_PRAGMAS = ("version ", "evm-version ", "nonreentrancy ", "optimize gas")
COMPOSITE = (BytesT, StringT, DArrayT, SArrayT, StructT, TupleT)


@dataclass(frozen=True)
class Problem:
    """One refused form: where, which rule, and why."""

    label: str
    line: int
    rule: str
    why: str

    def __str__(self) -> str:
        return f"{self.label}:{self.line}: {self.rule}: {self.why}"


@dataclass(frozen=True)
class _File:
    source: Source
    lines: list[str]
    module: vy_ast.Module

    def problem(self, node: vy_ast.VyperNode | int, rule: str, why: str) -> Problem:
        line = node if isinstance(node, int) else node.lineno
        return Problem(self.source.label, line, rule, why)


def _type_of(node: vy_ast.VyperNode) -> VyperType | None:
    return node._metadata.get("type")


def _is_message_quantity(node: vy_ast.VyperNode) -> bool:
    """Tell `msg.value` and `len(msg.data)`, the two values that CVE-2026-114117 needs."""
    if isinstance(node, vy_ast.Attribute):
        return node.attr in ("value", "data") and isinstance(node.value, vy_ast.Name) and node.value.id == "msg"
    return False


def _holds_message_quantity(node: vy_ast.VyperNode) -> bool:
    return any(_is_message_quantity(inner) for inner in node.get_descendants(vy_ast.Attribute, include_self=True))


def _called_name(call: vy_ast.Call) -> str:
    return call.func.id if isinstance(call.func, vy_ast.Name) else ""


def check_pragmas(source: Source, lines: list[str]) -> Iterator[Problem]:
    """Ask for the exact compiler everywhere, and for the EVM version and the lock in what is deployed."""

    def problem(line: int, why: str) -> Problem:
        return Problem(source.label, line, "pragma", why)

    pragmas = {number: line for number, line in enumerate(lines, start=1) if PRAGMA.match(line)}
    if VERSION_PRAGMA not in pragmas.values():
        yield problem(1, f"the exact line `{VERSION_PRAGMA}` is missing")
    for number, line in pragmas.items():
        matched = PRAGMA.match(line)
        what = matched["what"] if matched else ""
        if line != f"# pragma {what}" or not what.startswith(ALLOWED_PRAGMAS):
            yield problem(number, f"`{line}` is not one of the pragmas in use")
        elif what.startswith("version ") and line != VERSION_PRAGMA:
            yield problem(number, f"only `{VERSION_PRAGMA}` is compiled")
        elif what.startswith("nonreentrancy ") and line != NONREENTRANCY_PRAGMA:
            yield problem(number, "the lock is opted out of per function, with @reentrant")
    if source.is_deployable and not source.is_mock:
        if not any(line.startswith(EVM_PRAGMA) for line in pragmas.values()):
            yield problem(1, f"a deployed contract pins `{EVM_PRAGMA}<name>`")
        if NONREENTRANCY_PRAGMA not in pragmas.values():
            yield problem(1, f"a deployed contract says `{NONREENTRANCY_PRAGMA}`")


def check_ternaries(file: _File) -> Iterator[Problem]:
    """Refuse a ternary on anything but one word, arithmetic in its branches, and `|` on the message's quantities."""
    for node in file.module.get_descendants(vy_ast.IfExp):
        if isinstance(_type_of(node), COMPOSITE):
            yield file.problem(node, "ternary-composite", f"CVE-2026-114115: a ternary yields {_type_of(node)}")
        for branch in (node.body, node.orelse):
            if branch.get_descendants((vy_ast.BinOp, vy_ast.Invert), include_self=True):
                yield file.problem(node, "ternary-arithmetic", "CVE-2026-114117: arithmetic in a ternary's branch")
    for node in file.module.get_descendants(vy_ast.BinOp):
        if isinstance(node.op, vy_ast.BitOr) and (
            _holds_message_quantity(node.left) or _holds_message_quantity(node.right)
        ):
            yield file.problem(node, "message-bitor", "CVE-2026-114117: `|` on msg.value or msg.data")


def check_builtins(file: _File) -> Iterator[Problem]:
    """Refuse builtins that Hearth does without, and decoding or slicing to a length that the caller picks."""
    for node in file.module.get_descendants(vy_ast.Call):
        name = _called_name(node)
        if name in BANNED_BUILTINS and not (name == "raw_revert" and file.source.path.name == REASONS.name):
            yield file.problem(node, "banned-builtin", f"{name}: {BANNED_BUILTINS[name]}")
        if name in ("_abi_decode", "abi_decode") and len(node.args) > 1:
            wanted = _type_of(node.args[1])
            decoded = wanted.typedef if isinstance(wanted, TYPE_T) else wanted
            dynamic = decoded is None or decoded.abi_type.is_dynamic()
            if dynamic and not _has_note(file, node, "decode"):
                why = "a caller's bytes decoded to a type without fixed size (CVE-2024-26149) need `# decode: ...`"
                yield file.problem(node, "dynamic-decode", why)
        if name == "slice" and len(node.args) == 3 and not any(map(_is_named_or_literal, node.args[1:])):
            yield file.problem(node, "dynamic-slice", "name the start or the length of a slice (CVE-2024-24561)")
        if name == "raw_call" and not _is_checked_payment(node):
            yield file.problem(
                node,
                "raw-call",
                'only `ok: bool = raw_call(to, b"", value=v, revert_on_failure=False)`'
                " with `if not ok: reasons._refuse(...)` as the next statement",
            )
        for word in node.keywords:
            if word.arg == "is_delegate_call":
                yield file.problem(node, "banned-builtin", "delegatecall: no foreign code runs on our storage")
    for node in file.module.get_descendants((vy_ast.Name, vy_ast.Decimal)):
        if isinstance(node, vy_ast.Decimal) or node.id == "decimal":
            yield file.problem(node, "decimal", "amounts are integers")


def _is_checked_payment(call: vy_ast.Call) -> bool:
    """Tell the one raw call in use, which pays out the native asset: no data, no answer, its failure refused next."""
    assign = call.get_ancestor()
    keywords = {word.arg: word.value for word in call.keywords}
    data = call.args[1] if len(call.args) == 2 else None
    if not isinstance(assign, vy_ast.AnnAssign) or set(keywords) != {"value", "revert_on_failure"}:
        return False
    if not isinstance(data, vy_ast.Bytes) or data.value != b"":
        return False
    siblings = getattr(assign.get_ancestor(), "body", [])
    after = siblings[siblings.index(assign) + 1 :][:1] if assign in siblings else []
    if [type(node) for node in after] != [vy_ast.If] or [_is_refusal(node) for node in after[0].body] != [True]:
        return False
    test = after[0].test
    return (
        isinstance(test, vy_ast.UnaryOp)
        and isinstance(test.op, vy_ast.Not)
        and (isinstance(test.operand, vy_ast.Name) and test.operand.id == assign.target.id)
    )


def _is_refusal(statement: vy_ast.VyperNode) -> bool:
    """Tell the statement `reasons._refuse(...)`, after which nothing runs."""
    called = statement.value.func if isinstance(statement, vy_ast.Expr) else None
    return (
        isinstance(called, vy_ast.Attribute)
        and called.attr == "_refuse"
        and (isinstance(called.value, vy_ast.Name) and called.value.id == REASONS.stem)
    )


def _is_constant_name(node: vy_ast.VyperNode) -> bool:
    """Tell NAME and module.NAME, the spelling of a constant."""
    if isinstance(node, vy_ast.Attribute):
        return bool(node.attr.isupper())
    return isinstance(node, vy_ast.Name) and node.id.isupper()


def _is_named_or_literal(node: vy_ast.VyperNode) -> bool:
    return isinstance(node, vy_ast.Int) or _is_constant_name(node)


def check_loops(file: _File) -> Iterator[Problem]:
    """Ask for a named constant as the bound of every range."""
    for node in file.module.get_descendants(vy_ast.For):
        call = node.iter
        if not isinstance(call, vy_ast.Call) or _called_name(call) != "range":
            continue
        bounds = [word.value for word in call.keywords if word.arg == "bound"] or call.args[-1:]
        if not all(_is_constant_name(bound) for bound in bounds):
            yield file.problem(node, "loop-bound", "the bound of a range is a named constant")


def _changes_state(node: vy_ast.VyperNode) -> bool:
    """Tell an external call, a call of a function that may write, and a DynArray's pop or append."""
    if isinstance(node, vy_ast.ExtCall):
        return True
    if not isinstance(node, vy_ast.Call):
        return False
    called = _type_of(node.func)
    if isinstance(called, MemberFunctionT):
        return bool(called.is_modifying)
    if isinstance(called, ContractFunctionT):
        # An external call stands in ExtCall or StaticCall, which has been or will be looked at by itself.
        inside = node.get_ancestor()
        return called.mutability > StateMutability.VIEW and not isinstance(inside, vy_ast.ExtCall | vy_ast.StaticCall)
    return False


def _headers(statement: vy_ast.VyperNode) -> list[vy_ast.VyperNode]:
    """Return the expressions that one statement evaluates itself, without the statements of its body."""
    if isinstance(statement, vy_ast.If):
        return [statement.test]
    if isinstance(statement, vy_ast.For):
        return [statement.iter]
    return [statement]


def check_calls(file: _File) -> Iterator[Problem]:
    """Refuse two state-changing calls in one statement, one among another call's arguments, and `a[i] += f()`."""
    for statement in file.module.get_descendants(vy_ast.Stmt):
        changing = [
            node
            for header in _headers(statement)
            for node in header.get_descendants((vy_ast.ExtCall, vy_ast.Call), include_self=True)
            if _changes_state(node)
        ]
        if len(changing) > 1:
            yield file.problem(statement, "nested-call", "one state-changing call per statement; order is not Python's")
        elif changing and _is_argument(changing[0], statement):
            yield file.problem(statement, "nested-call", "a state-changing call among a call's arguments")
        if isinstance(statement, vy_ast.AugAssign) and isinstance(statement.target, vy_ast.Subscript) and changing:
            yield file.problem(statement, "augmented-element", "`a[i] += f()` reads before f runs (CVE-2025-27105)")


def _is_argument(node: vy_ast.VyperNode, statement: vy_ast.VyperNode) -> bool:
    """Tell whether `node` stands inside another call, an event or a struct literal of its statement."""
    outer = node.get_ancestor()
    while outer is not None and outer is not statement:
        if isinstance(outer, vy_ast.Call):
            return True
        outer = outer.get_ancestor()
    return False


def _has_note(file: _File, node: vy_ast.VyperNode, word: str) -> bool:
    """Tell whether `# word: why` stands on the node's line or in the comment right above it or its statement."""
    statement = node.get_ancestor(vy_ast.Stmt) or node
    above = min(statement.lineno, node.lineno) - 1
    comment = []
    while above > 0 and file.lines[above - 1].lstrip().startswith("#"):
        comment.append(file.lines[above - 1])
        above -= 1
    own = file.lines[node.lineno - 2 : node.lineno] if node.lineno > statement.lineno else []
    note = re.compile(rf"#\s*{word}:\s*\S")
    return any(note.search(line) for line in [*comment, *own, file.lines[node.lineno - 1]])


def check_unsafe(file: _File) -> Iterator[Problem]:
    """Ask for the proof, `# unsafe: why`, of every unsafe_* call."""
    for node in file.module.get_descendants(vy_ast.Call):
        if _called_name(node).startswith("unsafe_") and not _has_note(file, node, "unsafe"):
            yield file.problem(node, "unsafe", f"{_called_name(node)} without its proof: `# unsafe: ...`")


def check_refusals(file: _File) -> Iterator[Problem]:
    """Refuse texts, and refusals without a reason: each costs more code than a number, or tells nobody anything."""
    for node in file.module.get_descendants((vy_ast.Assert, vy_ast.Raise)):
        yield file.problem(node, "refusal", "a contract refuses by `reasons._refuse(...)`")


def check_lanes(file: _File) -> Iterator[Problem]:
    """Ask for the lane that each shift and mask reads or writes; packing.vy is written from the table itself."""
    if file.source.path.name == PACKING.name:
        return
    for node, why in lane_faults(file.module):
        if not _has_note(file, node, "lanes"):
            yield file.problem(node, "lanes", why)


# What the compiler gets wrong is refused everywhere; the rest is style and trust, and mocks exist to misbehave.
MOCK_RULES: tuple[Callable[[_File], Iterator[Problem]], ...] = (check_ternaries,)
TREE_RULES = (
    check_ternaries,
    check_builtins,
    check_loops,
    check_calls,
    check_unsafe,
    check_refusals,
    check_lanes,
)


def check_source(source: Source) -> tuple[list[Problem], int]:
    """Return the problems of one file and the number of syntax nodes looked at.

    A file that the compiler refuses is a problem too: what cannot be read cannot be checked.
    """
    lines = source.path.read_text(encoding="utf-8").split("\n")
    problems = list(check_pragmas(source, lines))
    try:
        module = load(source).annotated_vyper_module
    except VyperException as refusal:
        # The compiler's message ends in a long hint; its first line says what and where.
        return [*problems, Problem(source.label, 1, "compile", str(refusal).strip())], 0
    file = _File(source, lines, module)
    for rule in MOCK_RULES if source.is_mock else TREE_RULES:
        problems += rule(file)
    return problems, len(module.get_descendants())


def main(argv: list[str] | None = None) -> int:
    """Check every Vyper file under the named folders; exit 1 on a refused form, 2 on a missing folder."""
    parser = argparse.ArgumentParser(prog="python -m tools.check_vyper", description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    folders: list[Path] = parser.parse_args(argv).folders
    missing = [str(folder) for folder in folders if not folder.exists()]
    if missing:
        print(f"check_vyper: no such folder: {', '.join(missing)}", file=sys.stderr)
        return 2
    sources = [source for folder in folders for source in find_sources(folder)]
    problems: list[Problem] = []
    nodes = 0
    for source in sources:
        found, seen = check_source(source)
        problems += found
        nodes += seen
    for problem in problems:
        print(problem, file=sys.stderr)
    deployed = sum(source.is_deployable and not source.is_mock for source in sources)
    print(f"check_vyper: {len(sources)} files ({deployed} deployable), {nodes} nodes, {len(problems)} refused")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
