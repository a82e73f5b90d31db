"""Turn pydantic's findings into problems in our words, with "did you mean"."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, get_args

from hearth.spec.model import JobSpec, Model, problems_of, unbuilt_in
from hearth.spec.problems import Location, Problem
from hearth.spec.sugar import OLDER_KEYS

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def spec_problems(data: dict[str, Any]) -> tuple[JobSpec | None, list[Problem]]:
    """Return the spec that plain values describe, or every problem that keeps them from being one."""
    from pydantic import ValidationError

    try:
        spec = JobSpec.model_validate(data)
    except ValidationError as error:
        return None, [explain(detail) for detail in error.errors(include_url=False)]
    return spec, [*problems_of(spec), *unbuilt_in(spec)]


def explain(detail: ErrorDetails) -> Problem:
    """Return the problem that one finding of pydantic's tells."""
    where: Location = detail["loc"]
    kind, given, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "string_type" and where[-1:] == ("[key]",):  # of a name in env that is no text: its place is the name
        where = where[:-1]
    if kind == "hearth":
        return Problem(where, context["message"], context["hint"], context["code"])
    if kind == "extra_forbidden":
        return _unknown(where)
    if kind == "missing":
        return Problem(where[:-1], f"{where[-1]} is missing", f"add {where[-1]}", "MISSING_KEY")
    if kind == "literal_error":
        return Problem(where, f'must be {context["expected"].replace(chr(39), chr(34))}, not "{_shown(given)}"')
    if kind == "string_pattern_mismatch":
        return Problem(where, f'"{_shown(given)}" is not a name', "use letters, digits, space, dot, _ and -, up to 64")
    if kind in ("int_type", "int_parsing"):
        return Problem(where, f"must be a whole number, not {_typed(given)}")
    if kind == "bool_type":
        return Problem(where, f"must be true or false, not {_typed(given)}", "write it without quotes")
    if kind == "list_type":
        return Problem(where, f"must be a list, not {_typed(given)}", f"write [{_example(where, given) or 'a, b'}]")
    if kind in ("dict_type", "model_type"):
        return Problem(
            where, f"must be a mapping, not {_typed(given)}", f"write {_example(where, given) or '{key: value}'}"
        )
    if kind == "too_long":
        return Problem(where, f"has {len(given)} entries; the most is {context['max_length']}")
    if kind in ("greater_than_equal", "less_than_equal"):
        bound = f"at least {context['ge']}" if kind == "greater_than_equal" else f"at most {context['le']}"
        return Problem(where, f"{_shown(given)} is out of range: must be {bound}")
    return Problem(where, detail["msg"])


def _unknown(where: Location) -> Problem:
    *parents, key = where
    fields = _model_at(tuple(parents)).model_fields
    names = [field.alias or name for name, field in fields.items()] + sorted(OLDER_KEYS.get(tuple(parents), ()))
    # An older key that stands beside its newer form is told of that one.
    near = difflib.get_close_matches(str(key).lower(), [name for name in names if name != key], n=1, cutoff=0.6)
    hint = f'did you mean "{near[0]}"?' if near else f"known here: {', '.join(names)}"
    return Problem(where, "unknown key", hint, "UNKNOWN_KEY")


def _example(where: Location, given: object) -> str:
    """Return a mapping as its place takes one, with what was given in it where that is one value; "" for no model's."""
    try:
        fields = _model_at(where).model_fields
    except LookupError:
        return ""
    needed = [name for name, field in fields.items() if field.is_required()] or [next(iter(fields))]
    if not isinstance(given, str | int) or isinstance(given, bool):
        return f"{{{', '.join(f'{name}: ...' for name in needed)}}}" if given is not None else ""
    first, *more = needed
    shown = str(given) if fields[first].annotation is int else f'"{_shown(given)}"'
    return f"{{{', '.join([f'{first}: {shown}', *(f'{name}: ...' for name in more)])}}}"


def _model_at(where: Location) -> type[Model]:
    """Return the model whose fields are the keys at a place; only models refuse keys, so one is there."""
    model: type[Model] = JobSpec
    for part in where:
        if isinstance(part, str):
            found = _model_in(model.model_fields[part].annotation)
            if found is None:
                raise LookupError(f"{model.__name__}.{part} holds no model")
            model = found
    return model


def _model_in(annotation: Any) -> type[Model] | None:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    for argument in get_args(annotation):
        found = _model_in(argument)
        if found is not None:
            return found
    return None


def _shown(value: object) -> str:
    return str(value)[:80]


def _typed(value: object) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"the number {value}"
    if isinstance(value, str):
        return f'the text "{value[:80]}"'
    return "a list" if isinstance(value, list) else "a mapping"
