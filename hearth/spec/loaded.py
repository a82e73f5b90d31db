"""A job that was checked, with where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hearth.base.errors import SpecError
from hearth.spec.explain import spec_problems
from hearth.spec.model import JobSpec
from hearth.spec.problems import Location, Problem, Source
from hearth.spec.sugar import desugar


@dataclass(frozen=True, slots=True)
class LoadedSpec:
    """A checked spec, where it came from, the folder that its paths start from, and notes for the user."""

    spec: JobSpec
    source: Source
    folder: Path
    notes: tuple[str, ...] = ()

    def located(self, error: SpecError) -> SpecError:
        """Return an error of a later step (prices, tiers, uploads) with the file and line of its field."""
        field = str(error.details.get("field", ""))
        where: Location = tuple(
            int(part) if part.isdigit() else part
            for part in field.replace("[", ".").replace("]", "").split(".")
            if part
        )
        message = error.message.removeprefix(f"{field}: ")
        return self.source.refuse([Problem(where, message, error.hint, error.code)])


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
