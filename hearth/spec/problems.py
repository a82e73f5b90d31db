"""What can be wrong with a job spec, and how it is told: file, line, field, reason, hint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hearth.base.errors import SpecError

Location = tuple[str | int, ...]
"""The path of a value in a spec: ("inputs", 0, "dst")."""


@dataclass(frozen=True, slots=True)
class Problem:
    """State one thing that is wrong: where, why, what to do about it, and the error code."""

    where: Location
    message: str
    hint: str = ""
    code: str = "BAD_SPEC"


@dataclass(frozen=True, slots=True)
class Source:
    """Remember where a spec came from: the name to show, and the line (from 1) of each value in it."""

    name: str
    lines: Mapping[Location, int]

    def line_of(self, where: Location) -> int | None:
        """Return the line of a value, or of the nearest thing around it that has one."""
        for end in range(len(where), -1, -1):
            if where[:end] in self.lines:
                return self.lines[where[:end]]
        return None

    def refuse(self, problems: Sequence[Problem]) -> SpecError:
        """Return the error that tells all the problems; code and hint are the first one's."""
        told = [(self.line_of(problem.where), problem) for problem in problems]
        # A misspelt key explains the missing one beside it, so it comes first.
        told.sort(key=lambda entry: (entry[0] or 0, entry[1].code == "MISSING_KEY"))
        first = told[0][1]
        return SpecError(
            "\n".join(self._sentence(line, problem, problem is not first) for line, problem in told),
            hint=first.hint,
            code=first.code,
            file=self.name,
            line=told[0][0],
            field=field_name(first.where),
            problems=[
                {
                    "line": line,
                    "field": field_name(problem.where),
                    "message": problem.message,
                    "hint": problem.hint,
                    "code": problem.code,
                }
                for line, problem in told
            ],
        )

    def _sentence(self, line: int | None, problem: Problem, with_hint: bool) -> str:
        place = self.name if line is None else f"{self.name}:{line}"
        field = field_name(problem.where)
        hint = f" ({problem.hint})" if with_hint and problem.hint else ""
        return f"{place}: {field}: {problem.message}{hint}" if field else f"{place}: {problem.message}{hint}"


def field_name(where: Location) -> str:
    """Return a location as people write it: "inputs[0].dst"."""
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
