"""A module that says that it is pure imports nothing that could read a clock, a file, a socket, a setting or chance.

A module says so in the first line of its docstring; a package says it for every module in it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("hearth", "keeper", "worker")
PURE = {
    "__future__",
    "abc",
    "base64",
    "collections",
    "dataclasses",
    "datetime",
    "difflib",
    "enum",
    "fnmatch",
    "functools",
    "hashlib",
    "ipaddress",
    "itertools",
    "math",
    "re",
    "shlex",
    "types",
    "typing",
    "unicodedata",
    "blake3",
    "eth_abi",
    "eth_utils",
    "libipld",
    "numpy",
    "pydantic",
    "pydantic_core",
}
IMPURE_NAMES = {"open", "input", "print", "exec", "eval", "__import__", "globals"}
IMPURE_PARTS = {
    "np": {"random", "ctypeslib", "memmap", "load", "fromfile", "save"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}
# These would be covered no more if a docstring lost its word.
PROMISED = (
    "hearth/protocol",
    "worker/decide",
    "hearth/jobfile/plan.py",
    "keeper/decide.py",
    "keeper/trust.py",
    "keeper/tie_break.py",
    "keeper/match.py",
)


def parsed(path: Path) -> ast.Module:
    return _parse(path.read_text(encoding="utf-8"))


@cache
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


def says_pure(path: Path) -> bool:
    """Say whether a module's first line calls it pure; each process asks every module, so none is parsed."""
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return first.startswith('"""') and re.search(r"\bpure\b", first) is not None


def pure_modules(root: Path) -> list[Path]:
    """Return the modules that say so themselves, or whose package does."""
    files = [path for name in OURS for path in sorted((root / name).rglob("*.py"))]
    packages = {path.parent for path in files if path.name == "__init__.py" and says_pure(path)}
    return [path for path in files if says_pure(path) or packages & set(path.parents)]


def statements(tree: ast.Module, *, top: bool) -> Iterator[ast.AST]:
    """Yield the nodes of a module but for what only a type checker runs; with `top`, its own statements alone."""
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            todo += node.orelse
            continue
        yield node
        if not top:
            todo += ast.iter_child_nodes(node)


def imports_of(path: Path, root: Path) -> set[str]:
    """Return every module that a file imports, at any depth of it.

    Of a package's own file only what runs when the package is imported: its lazy names are no part of a core. A name
    that is a module of a package stands for that module.
    """
    found: set[str] = set()
    for node in statements(parsed(path), top=path.name == "__init__.py"):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None and node.level == 0
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in whole if (root / (name.replace(".", "/") + ".py")).exists()}
            found |= modules if modules == whole else modules | {node.module}
    return found


def closure_of(core: Path, root: Path) -> set[Path]:
    """Return the project's own files that a core imports, itself included, directly or not."""
    seen: set[Path] = set()
    todo = [core]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in imports_of(path, root):
            place = root / name.replace(".", "/")
            todo += [found for found in (place.with_suffix(".py"), place / "__init__.py") if found.exists()]
    return seen


def faults_of(core: Path, root: Path) -> list[str]:
    """Say of a core, with all that it imports, what is not pure."""
    faults: list[str] = []
    for path in sorted(closure_of(core, root)):
        where = path.relative_to(root)
        outside = {name.partition(".")[0] for name in imports_of(path, root)} - set(OURS) - PURE
        faults += [f"{where} imports {name}" for name in sorted(outside)]
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Name) and node.id in IMPURE_NAMES:
                faults.append(f"{where}:{node.lineno} uses {node.id}")
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.attr in IMPURE_PARTS.get(node.value.id, ())
            ):
                faults.append(f"{where}:{node.lineno} uses {node.value.id}.{node.attr}")
    return faults


@pytest.mark.parametrize("core", [str(path.relative_to(ROOT)) for path in pure_modules(ROOT)])
def test_pure_module__with_all_that_it_imports__is_pure(core: str) -> None:
    assert faults_of(ROOT / core, ROOT) == []


@pytest.mark.parametrize("promised", PROMISED)
def test_pure_modules__promised_ones__are_among_them(promised: str) -> None:
    place = ROOT / promised
    files = {place} if place.suffix else set(place.rglob("*.py"))
    assert files and files <= set(pure_modules(ROOT))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("import time\n", "imports time"),
        ("from time import monotonic\n", "imports time"),
        ("def f():\n    import random\n", "imports random"),
        ("from datetime import datetime\nNOW = datetime.now()\n", "uses datetime.now"),
        ("import numpy as np\nLOT = np.random.random()\n", "uses np.random"),
        ("TEXT = open('f').read()\n", "uses open"),
        ("from pathlib import Path\n", "imports pathlib"),
        ("from keeper.loop import KeeperShell\n", "keeper/loop.py imports time"),
        ("from keeper import loop\n", "keeper/loop.py imports time"),
    ],
)
def test_faults_of__module_with_a_clock_a_file_or_chance__are_named(tmp_path: Path, text: str, fault: str) -> None:
    for name in ("keeper/core.py", "keeper/loop.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('"""Decide: pure."""\nimport time\n')
    core = tmp_path / "keeper" / "core.py"
    core.write_text(f'"""Decide: pure."""\nfrom typing import Final\n{text}')
    assert any(fault in found for found in faults_of(core, tmp_path)), faults_of(core, tmp_path)


def test_faults_of__import_for_types_only__is_none(tmp_path: Path) -> None:
    core = tmp_path / "core.py"
    core.write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pathlib import Path\n")
    assert faults_of(core, tmp_path) == []


def test_faults_of__shell_next_to_a_core__are_many() -> None:
    for loop in ("keeper/loop.py", "worker/loop.py"):
        assert any("imports time" in fault for fault in faults_of(ROOT / loop, ROOT))
