"""A job that was checked, with where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hearth.base.errors import SpecError, StorageError
from hearth.spec.explain import spec_problems
from hearth.spec.model import JobSpec
from hearth.spec.problems import Location, Problem, Source
from hearth.spec.sugar import desugar


@dataclass(frozen=True, slots=True)
class LoadedSpec:
    """A checked spec, where it came from, the folder that its paths start from, and notes for the user.

    `options` are the fields that the command line set, by name, each with the option as it was written there.
    """

    spec: JobSpec
    source: Source
    folder: Path
    notes: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    def located(self, error: SpecError) -> SpecError:
        """Return an error of a later step (prices, tiers, uploads) with its field, and that one's file and line.

        A field that an option set is the option's, and no file's.
        """
        name = str(error.details.get("field", ""))
        message = error.message.removeprefix(f"{name}: ")
        if name in self.options:
            return by_option(self.options[name], message, error)
        return self.source.refuse([Problem(_location(name), message, error.hint, error.code)])

    def place(self, error: StorageError, name: str) -> None:
        """Add to what a store said of a field's value the field, its file and its line."""
        line = self.source.line_of(_location(name))
        place = self.source.name if line is None else f"{self.source.name}:{line}"
        error.message = f"{place}: {name}: {error.message}"
        error.details |= {"file": self.source.name, "line": line, "field": name}


def by_option(option: str, message: str, error: SpecError) -> SpecError:
    """Return an error as that of an option of the command line."""
    return SpecError(f"{option}: {message}", hint=error.hint, code=error.code, field=option.partition(" ")[0])


def _location(name: str) -> Location:
    """Return where a field's name leads: "inputs[0].src"."""
    parts = name.replace("[", ".").replace("]", "").split(".")
    return tuple(int(part) if part.isdigit() else part for part in parts if part)


def spec_from(data: Mapping[str, Any], name: str = "command line", folder: Path = Path()) -> LoadedSpec:
    """Check a spec given as plain values, as `hearth run` and the Python API build it."""
    return check(dict(data), Source(name, {}), folder)


def check(data: dict[str, Any], source: Source, folder: Path) -> LoadedSpec:
    """Return the spec that plain values describe. Raises SpecError with every problem in them."""
    data, notes, problems = desugar(data)
    spec, found = spec_problems(data)
    if spec is None or problems or found:
        raise source.refuse([*problems, *found])
    return LoadedSpec(spec, source, folder, notes)
