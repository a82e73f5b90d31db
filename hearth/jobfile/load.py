"""Read a job file, or the same as plain values, into a checked `JobSpec`; write one back."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hearth.base.errors import NotFoundError, SpecError
from hearth.base.files import AnyPath, path_of, read_bounded
from hearth.base.text import UNSEEN
from hearth.jobfile import rules
from hearth.jobfile.convert import peer_of
from hearth.jobfile.loaded import LoadedSpec, check, spec_from
from hearth.jobfile.model import JobSpec
from hearth.jobfile.problems import Problem, Source
from hearth.jobfile.text import MAX_BYTES, escape_unprintable, read_text


def load_spec(path: AnyPath, variables: Mapping[str, str] | None = None) -> LoadedSpec:
    """Read a job file, YAML or JSON, with `--var` values filled in.

    Raises NotFoundError NO_SPEC_FILE when it cannot be opened, SpecError with file and line for what is wrong in it.
    """
    path = path_of(path)
    try:
        raw = read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise NotFoundError(
            f"{path} cannot be read: {error.strerror}",
            hint="hearth init writes a job file to start from",
            code="NO_SPEC_FILE",
            component="spec",
        ) from error
    return parse_spec(raw, str(path), path.parent, variables)


def parse_spec(
    raw: bytes, name: str = "job.yaml", folder: Path = Path(), variables: Mapping[str, str] | None = None
) -> LoadedSpec:
    """Read the text of a job file; `name` is shown in errors.

    Raises SpecError with file and line, PEER_FORMAT where it is a file of another system.
    """
    try:
        if raw.startswith(b"\0asm"):
            module = Problem((), "is a WebAssembly module, not a job file", f"hearth run {name}")
            raise Source(name, {}).refuse([module])
        data, source = read_text(raw, name, variables=variables)
        return check(data, source, folder)
    except SpecError:
        peer = peer_of(raw)
        if peer is None:
            raise
    convertible = f"hearth convert {name} makes a job file of it"
    raise SpecError(
        f"{name}: this is {peer.called}, not a Hearth job file",
        hint=convertible if peer.convert else "hearth init writes a job file to start from",
        code="PEER_FORMAT",
        file=name,
        format=peer.name,
    )


AnyJob = AnyPath | Mapping[str, Any] | JobSpec | LoadedSpec
"""A job as a caller has it: a file's path, plain values as a file holds them, or a checked spec."""


def spec_of(job: AnyJob, variables: Mapping[str, str] | None = None) -> LoadedSpec:
    """Return a job in whatever form it is given: a file's path, plain values, or a checked spec.

    Relative paths in plain values and in a `JobSpec` start from the working folder. Raises what `load_spec` raises, and
    TypeError for any other form.
    """
    if isinstance(job, LoadedSpec):
        return job
    if isinstance(job, str | os.PathLike):
        return load_spec(job, variables)
    if variables:
        raise TypeError("variables are filled into a file's text; plain values are final")
    if isinstance(job, JobSpec):
        return LoadedSpec(job, Source("job", {}), Path())
    if isinstance(job, Mapping):
        return spec_from(job, "job")
    raise TypeError(f"a job is a path, a mapping or a JobSpec, not {type(job).__name__}")


def dump_spec(spec: JobSpec) -> str:
    """Return a spec as YAML that `parse_spec` reads back equal; what has its default value is left out."""
    return dump_values(as_data(spec))


def dump_values(data: Mapping[str, Any]) -> str:
    """Return plain values as YAML that `read_text` reads back equal: mappings a line for each key, all else as JSON.

    What a screen does not show, or shows in another order, stands there by its number.
    """
    import json

    # JSON is the subset of YAML in which every string is quoted, so that no id or decimal can turn into a number.
    def lines(value: Mapping[str, Any], indent: int) -> list[str]:
        pad = "  " * indent
        out = []
        for key, item in value.items():
            word = key if rules.is_plain_key(key) else quoted(key)
            nested = isinstance(item, Mapping) and item
            out += [f"{pad}{word}:", *lines(item, indent + 1)] if nested else [f"{pad}{word}: {flow(item)}"]
        return out

    def quoted(value: str) -> str:
        return UNSEEN.sub(number, escape_unprintable(json.dumps(value, ensure_ascii=False)))

    def number(found: re.Match[str]) -> str:
        return f"\\u{ord(found[0]):04x}" if found[0] <= "\uffff" else f"\\U{ord(found[0]):08x}"

    def flow(value: Any) -> str:
        if isinstance(value, str):
            return quoted(value.replace("${", "$${"))
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{quoted(key)}: {flow(item)}" for key, item in value.items()) + "}"
        if isinstance(value, list | tuple):
            return "[" + ", ".join(map(flow, value)) + "]"
        return json.dumps(value)

    return "\n".join(lines(data, 0) or ["{}"]) + "\n"


def as_data(spec: JobSpec) -> dict[str, Any]:
    """Return a spec as plain values that `spec_from` reads back equal; what has its default value is left out."""
    data = {"version": 1, **spec.model_dump(mode="json", exclude_defaults=True, by_alias=True)}
    # A job asks for no GPU by default, and `gpu:` alone for one: the number is always written.
    if spec.resources.gpu.count:
        data["resources"]["gpu"] = {"count": spec.resources.gpu.count, **data["resources"]["gpu"]}
    return data
