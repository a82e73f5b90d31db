"""Compile contracts in memory with one source changed, and plant them where tests deploy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from vyper import ast as vy
from vyper.ast.parse import parse_to_ast
from vyper.compiler.input_bundle import FileInput, FilesystemInputBundle
from vyper.compiler.output import build_abi_output
from vyper.compiler.phases import CompilerData
from vyper.compiler.settings import OptimizationLevel, Settings
from vyper.exceptions import VyperException, VyperInternalException

from tests.kit import evm
from tests.kit.evm import Artifact
from tools.mutate import record
from tools.mutate.mutants import Mutant

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


@dataclass
class Contracts:
    """Mutants of contracts: the folder of these, the tests of each source by its stem, and pytest's other options."""

    folder: Path
    tests: Mapping[str, tuple[str, ...]]
    options: tuple[str, ...] = ()
    spare: int = 120
    _plain: dict[Path, Artifact] = field(default_factory=dict)

    def arguments(self, mutants: Sequence[Mutant]) -> list[str]:
        """Return pytest's options and the tests of what is mutated."""
        return [*self.options, *sorted({root for mutant in mutants for root in self.tests[mutant.module]})]

    def begin(self, mutants: Sequence[Mutant]) -> None:
        """Compile what is mutated as mutants are compiled."""
        files = {mutant.file for mutant in mutants}
        for path in {path for source in files for path in reached(self.folder, source)}:
            self._plain[path] = compile_with(self.folder, path, {})
        evm.PLANTED.update(self._plain)

    def watch(self) -> AbstractContextManager[Collection[int]]:
        """Nothing is noted: the tests of a source are named."""
        return nullcontext(())

    def learn(self, test: str, reached: Collection[int]) -> None:
        """Nothing is noted."""

    def chosen(self, mutant: Mutant, tests: Mapping[str, pytest.Item]) -> list[str]:
        roots = self.tests[mutant.module]
        return [
            test for test in tests if any(test.startswith((f"{root}/", f"{root}::")) or test == root for root in roots)
        ]

    def plant(self, mutant: Mutant) -> str:
        changed = {mutant.file: mutant.text()}
        paths = reached(self.folder, mutant.file)
        try:
            code = {path: compile_with(self.folder, path, changed) for path in paths}
        except REFUSALS:
            return record.INVALID
        if all(code[path].bytecode == self._plain[path].bytecode for path in paths):
            return record.EQUIVALENT
        evm.PLANTED.update(code)
        return ""


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
