"""Export the JSON Schemas of what --json prints into docs/schemas, or check that what is committed equals the types.

The types are the TypedDicts of `MODULES`; each that has a "schema" is of the report that it names, and where a name has
several, any of them is. One file a name: hearth.keeper.list/1 is keeper.list.json. The error object has no "schema": it
is error.json. No schema allows a key that its type lacks.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache, reduce
from operator import or_
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import is_typeddict

import hearth.base.reports
import hearth.client.reports
import keeper.reports
import worker.reports
from tools.vyper_files import ROOT

SCHEMAS = ROOT / "docs" / "schemas"
MODULES = (hearth.base.reports, hearth.client.reports, worker.reports, keeper.reports)
ERROR = "hearth.error/1"
"""The name by which this tool knows the error object."""


def types_of(module: ModuleType) -> Iterator[Any]:
    """Yield the TypedDicts that a module defines, in its order."""
    for kind in vars(module).values():
        if is_typeddict(kind) and kind.__module__ == module.__name__:
            yield kind


def schema_of(kind: Any) -> str | None:
    """Return the one "schema" of a type, None where it has none: it is a part of others."""
    hint = get_type_hints(kind).get("schema")
    if hint is None:
        return None
    (name,) = get_args(hint)
    return str(name)


@cache
def reports() -> Mapping[str, TypeAdapter[Any]]:
    """Return what checks each report, by its name: strict, and a key that its type lacks is an error."""
    kinds: dict[str, list[Any]] = {ERROR: [hearth.base.reports.ErrorReport]}
    types = [kind for module in MODULES for kind in types_of(module)]
    for kind in types:
        kind.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)
        name = schema_of(kind)
        if name is not None:
            kinds.setdefault(name, []).append(kind)
    try:
        return {name: TypeAdapter(reduce(or_, found)) for name, found in sorted(kinds.items())}
    finally:
        # Only here: a program that reads a status file lets a newer one's keys through.
        for kind in types:
            del kind.__pydantic_config__


def validate(report: Any) -> None:
    """Check a value that was printed as JSON against the type that its "schema", or its "error", names.

    Raises ValueError for a name that no type has, pydantic's ValidationError for a value that is not of its type.
    """
    name = report.get("schema", ERROR if "error" in report else None) if isinstance(report, dict) else None
    if name not in reports():
        raise ValueError(f"{str(report)[:200]} is no report: it has no schema that a type names")
    reports()[name].validate_python(report)


def file_name(name: str) -> str:
    """Return the file of a report's schema."""
    return name.removeprefix("hearth.").rpartition("/")[0] + ".json"


def render(name: str, adapter: TypeAdapter[Any]) -> str:
    """Return the committed text of a schema (JSON Schema 2020-12).

    The names in $id are those of reports: urn:hearth:job:1 is the schema of a job file.
    """
    base, _, version = name.removeprefix("hearth.").rpartition("/")
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:hearth:report:{base}:{version}",
    }
    return json.dumps({**head, **adapter.json_schema()}, indent=2) + "\n"


def check(folder: Path, wanted: Mapping[str, str]) -> list[str]:
    """Compare the schemas on disk with `wanted` (file name to text); return one message per difference."""
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    problems = [f"{name} is missing" for name in wanted if name not in present]
    problems += [f"{name} differs from its type" for name, text in wanted.items() if present.get(name, text) != text]
    return problems + [f"{name} has no type" for name in sorted(present.keys() - wanted.keys())]


def main(argv: list[str] | None = None) -> int:
    """Write the schemas, or with --check compare them; exit 1 on a difference."""
    parser = argparse.ArgumentParser(prog="python -m tools.schemas", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a schema is stale")
    parser.add_argument("--schemas", type=Path, default=SCHEMAS)
    options = parser.parse_args(argv)
    texts = {file_name(name): render(name, adapter) for name, adapter in reports().items()}
    problems = check(options.schemas, texts) if options.check else []
    if not options.check:
        options.schemas.mkdir(parents=True, exist_ok=True)
        for stale in options.schemas.glob("*.json"):
            if stale.name not in texts:
                stale.unlink()
        for name, text in texts.items():
            (options.schemas / name).write_text(text, encoding="utf-8")
    for problem in problems:
        print(f"{problem}; run: make schemas", file=sys.stderr)
    print(f"schemas: {len(texts)} reports, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
