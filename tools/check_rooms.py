"""Check the rule of arrows: which room may import which, and that no files import each other in a circle.

    python -m tools.check_rooms          refuse every arrow that docs/ARCHITECTURE.md does not allow
    python -m tools.check_rooms --graph  print files, arrows between rooms, arrows up and circles

Every import counts, at any depth and under TYPE_CHECKING too: what a module names, it knows.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.vyper_files import ROOT

TIERS = (
    ("keeper", "worker", "scripts"),
    ("hearth.cli",),
    ("hearth.local",),
    ("hearth.client", "hearth.web"),
    ("hearth.daemon",),
    ("hearth.jobfile", "hearth.config"),
    ("hearth.market",),
    ("hearth.chain", "hearth.storage"),
    ("hearth.protocol",),
    ("hearth.base",),
)
"""Rooms from the top. A room imports from lower tiers only: not from above, not from beside."""
WINGS = {
    "hearth.client": (
        ("__init__", "doctor", "jobs", "net", "sending", "stored", "wallet"),
        ("audit", "explain", "nodes", "posting"),
        ("governance", "job"),
    )
}
"""The parts of a room from the top: folders, and files beside them. What is not named is below, and known to all."""
FACE = "hearth"
"""`from hearth import Client, __version__`: anybody may name the face, and it hands on the client alone."""
SOURCES = ("hearth", "keeper", "worker", "scripts")
COMMANDS = {"worker.commands", "keeper.commands"}
"""The only modules of their programs that may know the command line, which they join."""

Graph = Mapping[str, set[str]]


def read(root: Path, sources: tuple[str, ...] = SOURCES) -> Graph:
    """Return module -> the project's own modules that it imports, for every file of the sources."""
    files = {_name(path.relative_to(root)): path for source in sources for path in (root / source).rglob("*.py")}
    return {name: set(_imports(path, files)) - {name} for name, path in files.items()}


def room_of(module: str) -> str:
    """Return the room of a module: a package of hearth, or another top-level package."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == FACE and len(parts) > 1 else parts[0]


def wing_of(module: str) -> str:
    """Return the part of its room that a module is in: a folder or a file."""
    return module.removeprefix(room_of(module)).lstrip(".").partition(".")[0] or "__init__"


def _low(module: str) -> int:
    """Return how far below the top of its room a module is."""
    tiers = WINGS.get(room_of(module), ())
    return next((number for number, tier in enumerate(tiers) if wing_of(module) in tier), len(tiers))


def refused(graph: Graph) -> list[str]:
    """Return one line for each arrow that points up or sideways, each room without a tier, each file in a circle."""
    rank = {room: number for number, tier in enumerate(TIERS) for room in tier}
    problems = [
        f"{module}: {room_of(module)} is no room of the plan"
        for module in graph
        if room_of(module) not in {*rank, FACE}
    ]
    for module, imported in sorted(graph.items()):
        here = room_of(module)
        for other in sorted(imported):
            there = room_of(other)
            if here == there and wing_of(module) != wing_of(other) and _refuses(_low(module), _low(other), here):
                problems.append(f"{module} imports {other}: {wing_of(module)} may not know {wing_of(other)}")
            if FACE in (here, there) or here == there or not {here, there} <= set(rank):
                continue
            if rank[there] <= rank[here]:
                problems.append(f"{module} imports {other}: {here} may not know {there}")
            elif there == "hearth.cli" and module not in COMMANDS:
                problems.append(f"{module} imports {other}: only {', '.join(sorted(COMMANDS))} join the command line")
    return problems + [f"circle: {' -> '.join(circle)}" for circle in circles(graph)]


def _refuses(here: int, there: int, room: str) -> bool:
    """Tell whether an arrow between two parts of a room points up or sideways. Its top and its bottom are files that
    belong together."""
    last = len(WINGS.get(room, ()))
    return there < here or (there == here and 0 < here < last)


def circles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected groups of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in sorted(graph.get(module, ())):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return found


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else node.module for name in inner]
        else:
            continue
        yield from (name for name in names if name in known)


def main(argv: list[str] | None = None) -> int:
    """Exit 1 where an arrow is refused."""
    parser = argparse.ArgumentParser(prog="python -m tools.check_rooms", description=__doc__.splitlines()[0])
    parser.add_argument("--graph", action="store_true", help="print the arrows between rooms")
    options = parser.parse_args(argv)
    graph = read(ROOT)
    problems = refused(graph)
    between = Counter(
        (room_of(a), room_of(b)) for a, others in graph.items() for b in others if room_of(a) != room_of(b)
    )
    if options.graph:
        for (here, there), count in sorted(between.items()):
            print(f"{here} -> {there}: {count}")
        for room in WINGS:
            inside = [(a, b) for a, others in graph.items() for b in others if room_of(a) == room_of(b) == room]
            crossing = [(a, b) for a, b in inside if wing_of(a) != wing_of(b) and _low(b) < len(WINGS[room])]
            print(f"{room}: {len(inside)} arrows, {len(crossing)} from one of its parts to another")
    for problem in problems:
        print(problem, file=sys.stderr)
    arrows = sum(map(len, graph.values()))
    print(
        f"check_rooms: {len(graph)} files, {arrows} arrows, {sum(between.values())} between rooms, "
        f"{len(problems)} refused"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
