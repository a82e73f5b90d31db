"""Say how long and how branched functions are, and refuse one that is too long to be read at once.

    python -m tools.shape            refuse a function above the bounds whose docstring does not say why
    python -m tools.shape --figures  print lines a function and a file, and the mean complexity
    python -m tools.shape --figures --root FOLDER   the same of another checkout

A function's lines are those from its `def` to its end without its docstring; its complexity is McCabe's: one, and one
more for each branch, loop, handler and case in it.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.vyper_files import ROOT

SOURCES = ("hearth", "keeper", "worker", "scripts")
MAX_LINES = 60
MAX_COMPLEXITY = 15
REASON = "One function because"
"""How a docstring says why a function is above the bounds."""
_BRANCHES = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.match_case)


@dataclass(frozen=True)
class Function:
    """One function or method: where it is, its lines without docstring, its complexity, and its docstring."""

    where: str
    lines: int
    complexity: int
    doc: str

    @property
    def too_long(self) -> bool:
        """Say whether it is above a bound and does not say why."""
        return (self.lines > MAX_LINES or self.complexity > MAX_COMPLEXITY) and REASON not in self.doc


def functions(root: Path, sources: tuple[str, ...] = SOURCES) -> Iterator[Function]:
    """Yield every function of the sources."""
    for path in files(root, sources):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield _measure(f"{path.relative_to(root)}:{node.lineno} {node.name}", node)


def files(root: Path, sources: tuple[str, ...] = SOURCES) -> list[Path]:
    """Return every Python file of the sources."""
    return [path for source in sources for path in sorted((root / source).rglob("*.py"))]


def _measure(where: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    doc = ast.get_docstring(node) or ""
    first = node.body[0]
    documented = first.end_lineno - first.lineno + 1 if doc and first.end_lineno else 0
    complexity = 1 + sum(isinstance(part, _BRANCHES) for part in ast.walk(node))
    lines = (node.end_lineno or node.lineno) - node.lineno + 1 - documented
    return Function(where, lines, complexity, doc)


def figures(root: Path) -> str:
    """Return the figures of a checkout in a few lines."""
    found = list(functions(root))
    lengths = [one.lines for one in found]
    sizes = [len(path.read_text(encoding="utf-8").splitlines()) for path in files(root)]
    complexity = statistics.mean(one.complexity for one in found)
    above = sum(one.lines > MAX_LINES or one.complexity > MAX_COMPLEXITY for one in found)
    return (
        f"{len(found)} functions: lines p50 {_percentile(lengths, 50)}, p95 {_percentile(lengths, 95)}, "
        f"max {max(lengths)}; complexity mean {complexity:.2f}, max {max(one.complexity for one in found)}; "
        f"{above} above {MAX_LINES} lines or complexity {MAX_COMPLEXITY}\n"
        f"{len(sizes)} files, {sum(sizes)} lines: p50 {_percentile(sizes, 50)}, p95 {_percentile(sizes, 95)}, "
        f"max {max(sizes)}"
    )


def _percentile(values: list[int], percent: int) -> int:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def main(argv: list[str] | None = None) -> int:
    """Exit 1 where a function is refused."""
    parser = argparse.ArgumentParser(prog="python -m tools.shape", description=__doc__.splitlines()[0])
    parser.add_argument("--figures", action="store_true", help="print the figures instead of refusing")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to look at")
    options = parser.parse_args(argv)
    if options.figures:
        print(figures(options.root))
        return 0
    refused = [one for one in functions(options.root) if one.too_long]
    for one in refused:
        print(f"{one.where}: {one.lines} lines, complexity {one.complexity}", file=sys.stderr)
    print(f"shape: {len(list(functions(options.root)))} functions, {len(refused)} too long without a reason")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
