"""Compile contracts in memory with one source changed, and say which contracts a source reaches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from vyper import ast as vy
from vyper.ast.parse import parse_to_ast
from vyper.compiler.input_bundle import FileInput, FilesystemInputBundle
from vyper.compiler.output import build_abi_output
from vyper.compiler.phases import CompilerData
from vyper.compiler.settings import OptimizationLevel, Settings
from vyper.exceptions import VyperException, VyperInternalException

from tests.kit.evm import Artifact

# A mutant may also have the compiler fall over: that too is no code.
REFUSALS = (
    VyperException,
    VyperInternalException,
    AssertionError,
    AttributeError,
    TypeError,
    ValueError,
    LookupError,
    ArithmeticError,
    RecursionError,
)


class _Overlaid(FilesystemInputBundle):
    """The sources on disk, but for one."""

    def __init__(self, folder: Path, changed: Mapping[Path, str]) -> None:
        super().__init__([folder])
        self._changed = changed

    def _load_from_path(self, resolved_path: Path, original_path: Path) -> Any:
        if resolved_path not in self._changed:
            return super()._load_from_path(resolved_path, original_path)
        source_id = self._generate_source_id(resolved_path)
        return FileInput(source_id, original_path, resolved_path, self._changed[resolved_path])


def compile_with(folder: Path, path: Path, changed: Mapping[Path, str]) -> Artifact:
    """Compile one contract, with `changed` in the place of what is on disk; raises one of `REFUSALS`.

    The bytecode is without the compiler's note on its sources, so that equal code is equal.
    """
    text = changed.get(path) or path.read_text(encoding="utf-8")
    data = CompilerData(
        FileInput(source_id=-1, path=path, resolved_path=path, contents=text),
        _Overlaid(folder, changed),
        Settings(optimize=OptimizationLevel.GAS),
        no_bytecode_metadata=True,
    )
    return Artifact(path.stem, build_abi_output(data), data.bytecode, len(data.bytecode_runtime))


def reached(folder: Path, source: Path) -> list[Path]:
    """Return the contracts, mocks among them, that have code of a source, itself among them where it is deployed.

    Those that compile soonest come first.
    """
    found = [path for path in _sources(folder) if _is_deployed(path) and source in _closure(folder, path)]
    return sorted(found, key=lambda path: sum(each.stat().st_size for each in _closure(folder, path)))


@cache
def _sources(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(folder.rglob("*.vy")))


def _is_deployed(path: Path) -> bool:
    """Tell a contract from a module: STYLE has the first in CamelCase."""
    return path.stem[0].isupper()


@cache
def _closure(folder: Path, path: Path) -> frozenset[Path]:
    """Return a source and all that it imports, modules of modules too."""
    tree = parse_to_ast(path.read_text(encoding="utf-8"))
    imported = (folder / f"{name.replace('.', '/')}.vy" for name in _imports(tree))
    return frozenset({path}).union(*(_closure(folder, other) for other in imported if other.is_file()))


def _imports(tree: Any) -> Iterable[str]:
    return [node.name for node in tree.get_children(vy.Import)]
