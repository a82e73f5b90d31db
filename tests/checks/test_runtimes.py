"""hearth.protocol.runtimes alone tells the runtimes apart: no other source decides by a name or a flag of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from hearth.jobfile.model import JobSpec
from hearth.jobfile.resolved import ResolvedSpec
from hearth.protocol.runtimes import DEFAULT, RUNTIMES, RuntimeName, runtime_of_program
from hearth.protocol.types import Runtime
from worker.decide import Config
from worker.settings import Accept

ROOT = Path(__file__).parents[2]
SOURCES = [path for name in ("hearth", "keeper", "worker") for path in sorted((ROOT / name).rglob("*.py"))]
TABLE = "hearth/protocol/runtimes.py"
NAMES = set(RUNTIMES)
FLAGS = {kind.flag.name for kind in RUNTIMES.values()}
# Who may spell a runtime's name, and what for; nobody but the table may decide by it.
SPELLED = {
    TABLE: "the table",
    "worker/runtimes/": "the runtimes' own modules",
    "worker/doctor.py": "rows that a user reads",
    "worker/selftest.py": "rows that a user reads",
    "hearth/client/": "rows that a user reads",
    "hearth/local/": "what the demo's workers offer",
    "hearth/jobfile/convert/": "the engines of other systems, and the job that is made of theirs",
}
# Who may name a runtime's flag, and what for.
FLAGGED = {TABLE: "the table", "hearth/protocol/types.py": "the defaults of Needs and Offer"}


def is_listed(where: str, listed: dict[str, str]) -> bool:
    return any(where == place or (place.endswith("/") and where.startswith(place)) for place in listed)


def named(node: ast.AST | None) -> bool:
    """Say whether an expression spells a runtime's name or flag."""
    return node is not None and any(
        (isinstance(part, ast.Constant) and part.value in NAMES)
        or (isinstance(part, ast.Attribute) and part.attr in FLAGS and ast.unparse(part.value).startswith("Runtime"))
        for part in ast.walk(node)
    )


def choices(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that decide by a runtime's name or flag, or choose between names."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare() if named(node):
                yield node.lineno
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if named(test):
                yield node.lineno
            case ast.IfExp(body=ast.Constant() as body, orelse=ast.Constant() as other) if named(body) and named(other):
                yield node.lineno
            case ast.match_case(pattern=pattern) if named(pattern):
                yield pattern.lineno
            case ast.For(iter=over) | ast.comprehension(iter=over) if named(over):
                yield over.lineno


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_source__decides_by_no_name_and_no_flag_of_a_runtime(path: Path) -> None:
    where = str(path.relative_to(ROOT))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    # Another system's file is read by that system's own words, which are spelled like ours.
    if not where.startswith("hearth/jobfile/convert/"):
        assert [f"{where}:{line}" for line in choices(tree)] == []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in NAMES:
            assert is_listed(where, SPELLED), f"{where}:{node.lineno} spells {node.value}"
        if isinstance(node, ast.Attribute) and node.attr in FLAGS and ast.unparse(node.value).startswith("Runtime"):
            assert is_listed(where, FLAGGED), f"{where}:{node.lineno} names {ast.unparse(node)}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_source__lists_the_runtimes_in_no_text_of_its_own(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    lists = [node.lineno for node in texts if id(node) not in docstrings and set(node.value.split()) >= NAMES]
    # Another system's file is read by that system's own words, which are spelled like ours.
    assert lists == [] or is_listed(str(path.relative_to(ROOT)), {"hearth/jobfile/convert/": "their engines"})


@pytest.mark.parametrize(
    "text",
    [
        'x = 1 if spec.kind == "wasm" else 2',
        'x = "wasm" if found else "docker"',
        'if name in ("docker", "vm"):\n    pass',
        "if offer.runtimes & Runtime.DOCKER:\n    pass",
        'match kind:\n    case "wasm":\n        pass',
        'for flag, name in ((RuntimeFlag.WASM, "wasm"),):\n    pass',
    ],
)
def test_choices__ladder_over_runtimes__is_found(text: str) -> None:
    assert list(choices(ast.parse(text)))


def test_table__rows__are_whole_and_differ() -> None:
    assert set(get_args(RuntimeName)) == NAMES
    assert all(name == kind.name for name, kind in RUNTIMES.items())
    flags = [kind.flag for kind in RUNTIMES.values()]
    assert len(set(flags)) == len(flags) and not {Runtime.NVIDIA, Runtime.JUROR, Runtime(0)} & set(flags)
    assert DEFAULT in RUNTIMES.values()


@pytest.mark.parametrize("kind", RUNTIMES.values(), ids=lambda kind: kind.name)
def test_table__program_of_each_runtime__is_a_field_with_accepted_patterns(kind: object) -> None:
    program = kind.program  # type: ignore[attr-defined]
    assert program in JobSpec.model_fields and program in ResolvedSpec.model_fields
    assert {f"{program}s", f"refuse_{program}s"} <= set(Accept.model_fields)
    assert Config(beat_every=1).programs(program) == (("*",), ())


def test_programs__program_of_another_kind__is_a_fault() -> None:
    with pytest.raises(KeyError):
        Config(beat_every=1).programs("bundle")


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("a.wasm", "wasm"),
        ("./folder/a.wasm", "wasm"),
        ("ipfs://bafy", "wasm"),
        ("python:3.12", "docker"),
        ("a.wasm.d/x", "docker"),
        ("IPFS://bafy", "docker"),
    ],
)
def test_runtime_of_program__its_spelling__tells(program: str, name: str) -> None:
    assert runtime_of_program(program).name == name
