"""Every field of a job file with each type that it does not take: the hint is of that field, and to follow it helps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from hearth.base.errors import SpecError
from hearth.jobfile import parse_spec
from hearth.jobfile.examples import BESIDE, EXAMPLES, LONE, NEEDED
from hearth.jobfile.explain import _model_in
from hearth.jobfile.loaded import spec_from
from hearth.jobfile.model import JobSpec, Model

WRONG: tuple[Any, ...] = ("text", 5, True, None, [], ["x"], {}, {"a": 1}, [["x"]], "1.20/h", "30m", "4GiB")
WRITTEN = (
    *("1.5", "0.5", ".5", "2.0", "1e3", "0x14", "007", "0", "60", "100", "4096", "-1", "'1,5'", "'1,5/h'", "'1.5'"),
    *(
        "'60'",
        "'16,5 GB'",
        "'1.5h'",
        "'1.5/hour'",
        "true",
        "null",
        "[de]",
        "[5]",
        "[A=1]",
        "'A=1'",
        "[]",
        "{}",
        "x.npy",
    ),
)
"""Values as a file writes them, some of which YAML would make numbers of."""
BASE: dict[str, Any] = {
    "image": "x",
    "price": {"max_rate": "1/h"},
    "inputs": [{"src": "a", "dst": "/in/a"}],
    "outputs": [{"path": "/out", "max_size": "1MiB"}],
    "limits": {"runtime": "12h"},
    "verify": {"attesters": "a.yaml"},
    "array": {"units": 60},
    "after": [{"job": f"0x{'12' * 32}"}],
    "checkpoint": {"every": "5m", "path": "/out/c"},
}
COMPARED = {
    "verify.compare.file": {"kind": "allclose", "atol": "1"},
    "verify.compare.atol": {"kind": "allclose", "file": "/out/a.npy"},
    "verify.compare.rtol": {"kind": "allclose", "file": "/out/a.npy"},
    "verify.compare.minimum": {"kind": "cosine", "file": "/out/a.npy"},
    "verify.compare.field": {"kind": "metric", "file": "/out/a.json", "atol": "1"},
}
"""The comparator that has the field."""
PLACES = sorted(EXAMPLES)


def _places(model: type[Model], before: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        place = f"{before}{field.alias or name}"
        yield place
        inner, listed = _model_in(field.annotation), str(field.annotation).startswith(("list", "typing.Annotated[list"))
        if listed:
            yield f"{place}[]"
        if inner is not None:
            yield from _places(inner, f"{place}[]." if listed else f"{place}.")


def test_examples__every_field__has_one_and_nothing_else_has() -> None:
    assert sorted({*_places(JobSpec), "env.*"}) == PLACES
    assert {*LONE, *BESIDE, *NEEDED} <= set(PLACES)


def with_value(place: str, value: Any) -> dict[str, Any]:
    data = json.loads(json.dumps(BASE))
    if place in COMPARED:
        data["verify"]["compare"] = dict(COMPARED[place])
    if place == "resources.gpu.exact":
        data["resources"] = {"gpu": {"tier": "rtx-4090"}}
    if place == "verify.mode":
        del data["verify"]
    at: Any = data
    *way, last = place.replace("[]", ".0").replace("*", "NAME").split(".")
    for part in way:
        at = at[0] if part == "0" else at.setdefault(part, [None] if part in ("command", "regions") else {})
    if last == "0":
        at[0] = value
    else:
        at[last] = value
    return {key: item for key, item in data.items() if key != "image" or place != "module"}


def file_with(place: str, written: str) -> str:
    """Return a job file with a value in a place: YAML, which may hold what JSON may not."""
    return "---\n" + json.dumps(with_value(place, "@")).replace('"@"', written)


def _problems(place: str, written: str) -> list[dict[str, Any]]:
    """Return what is said of a value in its place, or of a part of it."""
    field = place.replace("[]", "[0]").replace("*", "NAME")
    try:
        parse_spec(file_with(place, written).encode())
    except SpecError as refused:
        found = [dict(one) for one in refused.details["problems"]]
        return [one for one in found if one["field"] == field or one["field"].startswith((f"{field}.", f"{field}["))]
    return []


def _problem(place: str, value: Any) -> dict[str, Any] | None:
    """Return the problem of a value's type in its place, None where it is taken there, or refused for what it says."""
    field = place.replace("[]", "[0]").replace("*", "NAME")
    of_type = r"must |\S+ (is unquoted|has no unit)|.* is not an? (amount|rate|size|duration)"
    for one in _problems(place, value if isinstance(value, Written) else json.dumps(value)):
        if one["field"] == field and re.match(of_type, one["message"]):
            return one
    return None


class Written(str):
    """A value as a file writes it."""


def _followed(hint: str) -> str:
    """Return what a hint says to write, as a file writes it."""
    found = re.fullmatch(
        r"(?:write (?:(?:one text|a number|one of them), such as |it (?:per hour, )?as )?|quote it: |did you mean )"
        r"""("[^"]*"(?: of hearth jobs --mine)?|\{.*\}|\[.*\]|[^\s?,]+)(?:\?|,? or .+|, ".+)?""",
        hint.replace("true or false without quotes", "true"),
    )
    assert found is not None, hint
    return found[1].removesuffix(" of hearth jobs --mine").replace("0x12...", f"0x{'12' * 32}")


@pytest.mark.parametrize("value", [*WRONG, *map(Written, WRITTEN)], ids=str)
def test_parse_spec__value_of_another_type__what_its_hint_says_is_taken_in_its_place(value: Any) -> None:
    refused = 0
    for place in PLACES:
        problem = _problem(place, value)
        if problem is None:
            continue
        refused += 1
        written = _followed(problem["hint"])
        again = [one for one in _problems(place, written) if not one["code"].startswith("NO_")]
        assert not again, f"{place}: {value}: {problem['hint']} -> {again}"
    assert refused > 3


@pytest.mark.parametrize(
    ("place", "value", "hint"),
    [
        ("price", "1.20/h", 'write {max_rate: "1.20/h"}'),
        ("price", "0.6", 'write {max_total: "0.6"}'),
        ("price", 5, 'write {max_total: "5"}'),
        ("price", None, 'write {max_rate: "1.20/h"}'),
        ("price.max_total", Written("1e3"), 'did you mean "1000"?'),
        ("price.max_total", Written("0x10"), 'did you mean "16"?'),
        ("price.max_total", Written("0.5e-3"), 'did you mean "0.0005"?'),
        ("price.keeper_fee", Written("1_000"), 'did you mean "1000"?'),
        ("price.max_rate", Written("1e3"), 'did you mean "1000/h"?'),
        ("price", Written("1e3"), 'write {max_total: "1000"}'),
        ("resources.cpus", Written("0x10"), "write 16"),
        ("env.*", Written("0x10"), 'quote it: "0x10"'),
        ("verify.compare.atol", Written("1e-3"), 'quote it: "1e-3"'),
        ("price", Written("0.02"), 'write {max_total: "0.02"}'),
        ("price.max_rate", 5, 'did you mean "5/h"?'),
        ("price.max_rate", Written("1.2"), 'did you mean "1.2/h"?'),
        ("limits", 90, 'write {runtime: "90s"}'),
        ("limits.deadline", 60, 'did you mean "60s"?'),
        ("outputs[].max_size", 100, 'did you mean "100MiB"?'),
        ("outputs", "x.txt", 'write [{path: "/out/x.txt"}]'),
        ("resources.regions", "de", 'write ["de"]'),
        ("command", 5, 'write ["5"]'),
        ("image", ["x"], 'write "x"'),
        ("array.units", [4], "write 4"),
        ("env", ["A=1", "B=x y"], 'write {A: "1", B: "x y"}'),
        ("env", "A=1", 'write {A: "1"}'),
        ("env.*", None, 'write one text, such as "", or remove NAME'),
        ("limits", "2h", 'write {runtime: "2h"}'),
        ("limits", None, 'write {runtime: "30m"}, or remove limits'),
        ("resources", "16GiB", 'write {memory: "16GiB"}'),
        ("resources", 8, "write {cpus: 8}"),
        ("inputs", "./x", 'write [{src: "./x", dst: "/in/data"}]'),
        ("checkpoint", "10m", 'write {every: "10m", path: "/out/checkpoints"}'),
        ("verify.keep", "yes", "write true or false without quotes"),
        ("command", None, 'write ["python3", "main.py"], or remove command'),
    ],
)
def test_parse_spec__value_that_stands_for_a_mapping__is_put_into_the_field_that_takes_it(
    place: str, value: Any, hint: str
) -> None:
    problem = _problem(place, value)
    assert problem is not None and problem["hint"] == hint


def test_spec_from__env_with_a_number_for_a_name__both_are_told_to_be_text() -> None:
    with pytest.raises(SpecError) as refused:
        spec_from({"image": "x", "env": {1: 2}})
    hints = [one["hint"] for one in refused.value.details["problems"]]
    assert hints == ['write names as text: {SEED: "7"}', 'quote it: "2"']
