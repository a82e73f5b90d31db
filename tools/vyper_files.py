"""Find Vyper sources and load them with the pinned compiler, the same way for every tool."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from vyper.compiler.input_bundle import FileInput, FilesystemInputBundle
from vyper.compiler.phases import CompilerData
from vyper.compiler.settings import OptimizationLevel, Settings

ROOT = Path(__file__).resolve().parent.parent
COMPILER = "0.4.3"


@dataclass(frozen=True)
class Source:
    """One .vy or .vyi file.

    `label` is its path as people and messages name it, `folder` the folder of sources that it was found in, from
    which its imports resolve.
    """

    path: Path
    label: str
    folder: Path

    @property
    def is_interface(self) -> bool:
        return self.path.suffix == ".vyi"

    @property
    def is_mock(self) -> bool:
        """Tell a test-only contract from one that may be deployed."""
        return "mocks" in self.path.parts

    @property
    def is_deployable(self) -> bool:
        """Tell a contract (CamelCase) from a module (snake_case)."""
        return not self.is_interface and self.path.stem[:1].isupper()


def find_sources(folder: Path) -> list[Source]:
    """List every Vyper file under `folder`, sorted by path."""
    return [Source(path, _label(path), folder) for path in sorted([*folder.rglob("*.vy"), *folder.rglob("*.vyi")])]


def _label(path: Path) -> str:
    resolved = path.resolve()
    return resolved.relative_to(ROOT).as_posix() if resolved.is_relative_to(ROOT) else path.as_posix()


def load(source: Source, optimise: OptimizationLevel = OptimizationLevel.GAS) -> CompilerData:
    """Return the compiler's lazy view of one file; imports resolve from its folder, then from the environment.

    Raises what the compiler raises, at the phase that is asked for.
    """
    path = source.path.resolve()
    # Lowest precedence first, as the compiler's own command line orders them.
    bundle = FilesystemInputBundle([Path(entry) for entry in reversed(sys.path) if entry] + [source.folder.resolve()])
    text = path.read_text(encoding="utf-8")
    file = FileInput(source_id=-1, path=Path(source.label), resolved_path=path, contents=text)
    return CompilerData(file, bundle, Settings(optimize=optimise))
