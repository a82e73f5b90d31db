"""The deciding core imports nothing that could read a clock, a file, a socket or chance."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORES = ("keeper/decide.py", "hearth/protocol/formulas.py")
PURE = {
    "__future__",
    "collections",
    "dataclasses",
    "enum",
    "functools",
    "itertools",
    "math",
    "typing",
    "typing_extensions",
    "eth_abi",
    "eth_utils",
    "numpy",
}
IMPURE_NAMES = {"open", "input", "print", "exec", "eval", "__import__", "globals"}
IMPURE_PARTS = {"random", "ctypeslib", "memmap", "load", "fromfile", "save", "environ"}


def imports_of(path: Path) -> set[str]:
    """Return every module that a file names in an import, at any depth of it.

    Of a package's own file only what runs when the package is imported: its lazy names are no part of a core.
    """
    found: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if path.name == "__init__.py" else ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None and node.level == 0
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def closure_of(core: str) -> set[Path]:
    """Return the project's own files that a core imports, itself included, directly or not."""
    seen: set[Path] = set()
    todo = [ROOT / core]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in imports_of(path):
            file = ROOT / (name.replace(".", "/") + ".py")
            package = ROOT / name.replace(".", "/") / "__init__.py"
            todo += [found for found in (file, package) if found.exists()]
    return seen


@pytest.mark.parametrize("core", CORES)
def test_core__with_all_that_it_imports__is_pure(core: str) -> None:
    files = closure_of(core)
    assert ROOT / "hearth/protocol/types.py" in files
    for path in files:
        outside = {name.split(".")[0] for name in imports_of(path)} - {"hearth", "keeper"}
        assert outside <= PURE, f"{path.relative_to(ROOT)} imports {sorted(outside - PURE)}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name):
                assert node.id not in IMPURE_NAMES, f"{path.relative_to(ROOT)}:{node.lineno} uses {node.id}"
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np":
                assert node.attr not in IMPURE_PARTS, f"{path.relative_to(ROOT)}:{node.lineno} uses np.{node.attr}"


def test_core__shell_next_to_it__would_fail_the_test() -> None:
    outside = {name.split(".")[0] for name in imports_of(ROOT / "keeper/shell.py")}
    assert not outside <= PURE | {"hearth", "keeper"}
