"""What can be wrong with a job spec, and how it is told: file, line, field, reason, hint."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hearth.base.errors import SpecError

Location = tuple[str | int, ...]
"""The path of a value in a spec: ("inputs", 0, "dst")."""
_GIVES = re.compile(r'\b([a-z_]+): (?=["\d])')
"""What a hint writes before a value: the key."""


@dataclass(frozen=True, slots=True)
class Problem:
    """State one thing that is wrong: where, why, what to do about it, and the error code."""

    where: Location
    message: str
    hint: str = ""
    code: str = "BAD_SPEC"


@dataclass(frozen=True, slots=True)
class Source:
    """Remember where a spec came from: the name to show, and the line (from 1) of each value in it.

    `options` are the fields that the command line set, by name, each with the option as it was written there.
    """

    name: str
    lines: Mapping[Location, int]
    options: Mapping[str, str] = field(default_factory=dict)

    def line_of(self, where: Location) -> int | None:
        """Return the line of a value, or of the nearest thing around it that has one."""
        for end in range(len(where), -1, -1):
            if where[:end] in self.lines:
                return self.lines[where[:end]]
        return None

    def refuse(self, problems: Sequence[Problem]) -> SpecError:
        """Return the error that tells all the problems; its code is the first one's. Where their hints differ, each
        stands behind its problem."""
        told = [(self.line_of(problem.where), problem, self._hint(problem)) for problem in problems]
        # A misspelt key explains the missing one beside it, so it comes first.
        told.sort(key=lambda entry: (entry[0] or 0, entry[1].code == "MISSING_KEY"))
        _, first, hint = told[0]
        apart = any(other != hint for _, _, other in told)
        sentence, *also = (
            self._sentence(line, problem) + (f"; {hint}" if apart and hint else "") for line, problem, hint in told
        )
        return SpecError(
            sentence,
            also=also,
            hint="correct each of these, then the same command" if apart else hint,
            code=first.code,
            file=self.name,
            line=told[0][0],
            field=self._option(first.where).partition(" ")[0] or field_name(first.where),
            problems=[
                {
                    "line": line,
                    "field": field_name(problem.where),
                    "message": problem.message,
                    "hint": hint,
                    "code": problem.code,
                }
                for line, problem, hint in told
            ],
        )

    def _sentence(self, line: int | None, problem: Problem) -> str:
        if option := self._option(problem.where):
            return f"{option}: {problem.message}"
        place = self.name if line is None else f"{self.name}:{line}"
        field = field_name(problem.where)
        return f"{place}: {field}: {problem.message}" if field else f"{place}: {problem.message}"

    def _option(self, where: Location) -> str:
        """Return the option that set a field, as it was written; nothing where none did."""
        return self.options.get(field_name(where), "")

    def _hint(self, problem: Problem) -> str:
        """Return a problem's hint, in which the keys of a field that an option set are options."""
        if not self._option(problem.where):
            return problem.hint
        names = {name.rpartition(".")[2]: option.partition(" ")[0] for name, option in self.options.items()}
        return _GIVES.sub(lambda found: f"{names[found[1]]} " if found[1] in names else found[0], problem.hint)


def field_name(where: Location) -> str:
    """Return a location as people write it: "inputs[0].dst"."""
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
