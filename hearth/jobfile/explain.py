"""Turn pydantic's findings into problems in our words, with "did you mean"."""

from __future__ import annotations

import decimal
import difflib
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, get_args

from hearth.jobfile import rules
from hearth.jobfile.examples import BESIDE, EXAMPLES, FORMS, LONE, NEEDED, place_of
from hearth.jobfile.model import JobSpec, Model, problems_of, unbuilt_in
from hearth.jobfile.problems import Location, Problem
from hearth.jobfile.sugar import OLDER_KEYS
from hearth.protocol.units import near_duration, near_rate, near_size

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

MAX_SHOWN: Final = 80
"""Characters of a value that a hint repeats."""
_WHOLE = re.compile("0|[1-9][0-9]{0,17}")
_DOT = re.compile(r"([0-9]{0,18})(\.[0-9]{1,18})")
_BASED = re.compile("0[xX][0-9a-fA-F]{1,15}|0o[0-7]{1,20}")
_POWERED = re.compile(r"[0-9]{1,18}\.?[0-9]{0,18}[eE][-+]?[0-9]{1,2}")
_DECIMAL = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})")


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
    if where[-1:] == ("[key]",) and kind == "string_type":  # of a name in env that is no text
        return Problem(where[:-2], f"has the name {given}, which is no text", 'write names as text: {SEED: "7"}')
    if kind == "invalid_key":
        return _unknown((*where[:-1], str(where[-1])))
    if kind == "hearth":
        return _ours(where, given, context)
    if kind == "extra_forbidden":
        return _unknown(where)
    if kind == "missing":
        return Problem(where[:-1], f"{where[-1]} is missing", f"add {where[-1]}: {_example(where)}", "MISSING_KEY")
    if kind == "string_pattern_mismatch":
        return Problem(where, f'"{_shown(given)}" is not a name', "use letters, digits, space, dot, _ and -, up to 64")
    if kind == "too_short":
        return Problem(where, "must have at least 1 entry", f"write {_example(where)}, or remove {where[-1]}")
    if kind == "too_long":
        return Problem(where, f"has {len(given)} entries; the most is {context['max_length']}")
    if kind in ("greater_than_equal", "less_than_equal"):
        most, bound = ("at least", context["ge"]) if kind == "greater_than_equal" else ("at most", context["le"])
        return Problem(where, f"{_shown(given)} is out of range: must be {most} {bound}", f"write {bound}")
    if wanted := _wanted(kind, where, given, context):
        what, hint = wanted
        return Problem(where, f"must be {what}, not {_typed(given)}", _or_removed(f"write {hint}", where, given))
    return Problem(where, detail["msg"])


class Written(float):
    """A number as a file writes it, of which YAML would keep the value alone."""

    text: str

    def __new__(cls, text: str) -> Written:
        """Return the number that is written so; its value is nobody's concern."""
        made = super().__new__(cls, "nan")
        made.text = text
        return made

    def __str__(self) -> str:
        return self.text


def unquoted(where: Location, text: str) -> Problem:
    """Return what is wrong with a number, other than a plain integer, that stands unquoted in a place."""
    plain = Problem(where, f"{text} is unquoted, and YAML makes a number of it", f'quote it: "{text}"', "UNQUOTED")
    newer = (*where[:-1], "cpus") if where == ("resources", "cpu") else where
    if place_of(newer) not in EXAMPLES:
        return plain
    detail = next(_findings(newer, Written(text)), None)
    if detail is None:
        return plain
    told = explain(detail)
    return Problem(where, plain.message if told.code == "UNQUOTED" else told.message, told.hint, told.code)


def _ours(where: Location, given: object, context: dict[str, Any]) -> Problem:
    """Return what a reader of the model refuses, with what the user may have meant, or else the field's example."""
    message, hint, code = context["message"], context["hint"], context["code"]
    # Of a name that is no text itself, the field is not known, and the value's text helps.
    if where[0] == "env" and isinstance(given, bool | int | float) and not isinstance(where[-1], str):
        hint = f"quote it: {_quoted(_plain(given))}"
    elif isinstance(given, bool | int | float) or code in ("BAD_SIZE", "BAD_DURATION"):
        near = _near(where, given)
        quoted = code == "UNQUOTED" and near == _quoted(_plain(given))
        hint = f"quote it: {near}" if quoted else f"did you mean {near}?" if near else rules.ONE_TEXT + _example(where)
    elif isinstance(given, list) and len(given) == 1 and (near := _near(where, given[0])):
        hint = f"write {near}"
    if not hint and not isinstance(given, str):
        example = '""' if given is None and where[0] == "env" else _example(where)
        hint = _or_removed(rules.ONE_TEXT + example, where, given)
    return Problem(where, message, hint, code)


def _wanted(kind: str, where: Location, given: object, context: dict[str, Any]) -> tuple[str, str] | None:
    """Return what must stand in a place where something of another type does, and what to write there."""
    if kind == "literal_error":
        return context["expected"].replace("'", '"'), f"one of them, such as {_example(where)}"
    if kind in ("int_type", "int_parsing", "int_from_float"):
        near = _near(where, given[0] if isinstance(given, list) and len(given) == 1 else given)
        return "a whole number", near or f"a number, such as {_example(where)}"
    if kind == "bool_type":
        return "true or false", "true or false without quotes"
    if kind == "list_type":
        entry = (*where, 0)
        lone = _lone(entry, given) if place_of(entry) in LONE else _near(entry, given)
        return "a list", f"[{lone}]" if lone else _example(where)
    if kind in ("dict_type", "model_type"):
        return "a mapping", (_pairs(given) if where == ("env",) else _lone(where, given)) or _example(where)
    return None


def _unknown(where: Location) -> Problem:
    *parents, key = where
    fields = _model_at(tuple(parents)).model_fields
    names = [field.alias or name for name, field in fields.items()] + sorted(OLDER_KEYS.get(tuple(parents), ()))
    # An older key that stands beside its newer form is told of that one.
    near = difflib.get_close_matches(str(key).lower(), [name for name in names if name != key], n=1, cutoff=0.6)
    elsewhere = [place for place in EXAMPLES if place.rpartition(".")[2] == key and "[]" not in place]
    if elsewhere:
        hint = f"did you mean {' or '.join(elsewhere)}?"
    else:
        hint = f'did you mean "{near[0]}"?' if near else f"known here: {', '.join(names)}"
    return Problem(where, "unknown key", hint, "UNKNOWN_KEY")


def _example(where: Location) -> str:
    """Return what a place may hold; every field has an example."""
    return EXAMPLES[place_of(where)]


def _or_removed(hint: str, where: Location, given: object) -> str:
    """Return a hint, with the other way out where a key stands alone, as one does whose lines were taken out."""
    if given is not None or isinstance(where[-1], int):
        return hint
    needed = place_of(where) in NEEDED or (place_of(where) != "env.*" and _field_at(where).is_required())
    return hint if needed else f"{hint}, or remove {where[-1]}"


def _lone(where: Location, given: object) -> str:
    """Return the mapping that one value in its place stands for, "" where that cannot be said."""
    place = place_of(where)
    for name in LONE.get(place, ()):
        if near := _near((*where, name), given):
            return f"{{{name}: {near}{BESIDE.get(place, '')}}}"
    return ""


def _pairs(given: object) -> str:
    """Return the mapping that a list of NAME=VALUE, or one of them, stands for, "" for another value."""
    named = []
    for one in given if isinstance(given, list) else [given]:
        name, _, value = one.partition("=") if isinstance(one, str) and is_shown(one) and "=" in one else ("", "", "")
        if not rules.ENV_NAME.fullmatch(name) or not rules.is_plain_key(name):
            return ""
        named.append(f"{name}: {_quoted(value)}")
    joined = ", ".join(named)
    return f"{{{joined}}}" if 0 < len(joined) <= MAX_SHOWN else ""


def _near(where: Location, given: object) -> str:
    """Return what a field takes that is nearest to a value, as a file writes it; "" where nothing is."""
    if not isinstance(given, str | bool | int | float):
        return ""
    text, place = _plain(given), place_of(where)
    if not is_shown(text):
        return ""
    unit = re.search("[MG]iB", EXAMPLES[place])
    dotted = _DOT.fullmatch(text)
    number = f"{dotted[1] or 0}{dotted[2]}" if dotted else _decimal(text) if isinstance(given, Written) else text
    size = near_size(number, unit[0]) if unit else ""
    texts = (text, number, near_rate(number), near_duration(number), size, *_below(place, text))
    values: list[object] = [int(number)] if _WHOLE.fullmatch(number) else []
    values += [one for one in texts if one]
    if match := _DECIMAL.fullmatch(number):  # of what is counted, no fewer than were asked for
        values.append(int(match[1]) + (int(match[2]) > 0))
    for value in dict.fromkeys(values):
        if _takes(where, value):
            return _quoted(value) if isinstance(value, str) else str(value)
    return ""


def _below(place: str, text: str) -> list[str]:
    """Return the path of an output that a relative one may stand for."""
    return [f"/out/{text.removeprefix('./')}"] if place == "outputs[].path" and not text.startswith("/") else []


def _takes(where: Location, value: object) -> bool:
    """Say whether a field takes a value by itself."""
    form = FORMS.get(place_of(where))
    if form and not (isinstance(value, str) and re.fullmatch(form, value)):
        return False
    return not any(True for _ in _findings(where, value))


def _findings(where: Location, value: object) -> Iterator[ErrorDetails]:
    """Yield what pydantic finds wrong with a value in a place of an otherwise empty job."""
    from pydantic import ValidationError

    data: Any = value
    for part in reversed(where):
        data = [data] if isinstance(part, int) else {part: data}
    alone = tuple(0 if isinstance(part, int) else part for part in where)
    try:
        JobSpec.model_validate(data)
    except ValidationError as error:
        yield from (one for one in error.errors(include_url=False) if one["loc"][: len(alone)] == alone)


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def is_shown(text: str) -> bool:
    """Say whether a hint can repeat a text: it is short, and has no character that must be escaped."""
    return len(text) <= MAX_SHOWN and text.isprintable()


def _plain(value: object) -> str:
    """Return a text, a number or a truth value as a file writes it."""
    if isinstance(value, float) and not isinstance(value, Written) and math.isfinite(value):
        return format(decimal.Decimal(str(value)).normalize(), "f")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _decimal(text: str) -> str:
    """Return a number that is written as programs do, 1e3, 0x10 or 1_000, with its digits alone; any other as it is."""
    plain = text.replace("_", "")
    if _BASED.fullmatch(plain):
        return str(int(plain, 0))
    return format(decimal.Decimal(plain).normalize(), "f") if _POWERED.fullmatch(plain) else plain


def _field_at(where: Location) -> FieldInfo:
    """Return the field of a model at a place that is one's."""
    fields = _model_at(where[:-1]).model_fields
    return next(field for name, field in fields.items() if where[-1] in (name, field.alias))


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
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f'the text "{value[:80]}"'
    if isinstance(value, list):
        return "a list"
    return "a mapping" if isinstance(value, dict) else f"a {type(value).__name__}"
