"""A job that was checked, with where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hearth.base.errors import HearthError, SpecError
from hearth.jobfile.explain import spec_problems
from hearth.jobfile.model import JobSpec
from hearth.jobfile.problems import Location, Problem, Source
from hearth.jobfile.sugar import desugar


@dataclass(frozen=True, slots=True)
class LoadedSpec:
    """A checked spec, where it came from, the folder that its paths start from, and notes for the user."""

    spec: JobSpec
    source: Source
    folder: Path
    notes: tuple[str, ...] = ()

    def located(self, error: SpecError) -> SpecError:
        """Return an error of a later step (prices, tiers, uploads) with its field, and that one's file and line."""
        name = str(error.details.get("field", ""))
        message = error.message.removeprefix(f"{name}: ")
        return self.source.refuse([Problem(_location(name), message, error.hint, error.code)])

    def place(self, error: HearthError, name: str) -> None:
        """Add to what a store said of a field's value the field, its file and its line."""
        line = self.source.line_of(_location(name))
        place = self.source.name if line is None else f"{self.source.name}:{line}"
        error.message = f"{place}: {name}: {error.message}"
        error.details |= {"file": self.source.name, "line": line, "field": name}


def _location(name: str) -> Location:
    """Return where a field's name leads: "inputs[0].src"."""
    parts = name.replace("[", ".").replace("]", "").split(".")
    return tuple(int(part) if part.isdigit() else part for part in parts if part)


def spec_from(data: Mapping[str, Any], name: str = "command line", folder: Path = Path()) -> LoadedSpec:
    """Check a spec given as plain values, as the Python API builds it."""
    return check(dict(data), Source(name, {}), folder)


def check(data: dict[str, Any], source: Source, folder: Path) -> LoadedSpec:
    """Return the spec that plain values describe. Raises SpecError with every problem in them."""
    data, notes, problems = desugar(data)
    spec, found = spec_problems(data)
    if spec is None or problems or found:
        raise source.refuse([*problems, *found])
    return LoadedSpec(spec, source, folder, notes)
