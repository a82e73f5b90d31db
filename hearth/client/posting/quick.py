"""The job that `hearth run` makes of one line: a program, its command and a few flags become a whole spec."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from hearth.base.errors import SpecError, UsageError

if TYPE_CHECKING:
    from hearth.client.session import Session
    from hearth.spec import LoadedSpec

COMMAND_LINE: Final = "command line"
"""Where a spec of `hearth run` says that it comes from."""
SMALL_OUTPUT: Final = "256MiB"
"""What each output may hold, so that a small job fits a small disk."""


class RunOptions(TypedDict, total=False):
    """What may be said of a job in one line; each has the default of the job file, but for those named here.

    `gpu` counts GPUs of at least `tier` with at least `vram` each; `cpus` is 1, `memory` "1GiB", `runtime` (the longest
    that it may run) "10m". `max_total` bounds the whole cost, `max_rate` the price per time. `inputs` are "SRC:DST"
    with DST below /in, `outputs` paths below /out that it must leave, `env` its public environment.
    """

    gpu: int
    tier: str | None
    vram: str | None
    cpus: int
    memory: str
    runtime: str
    max_total: str | None
    max_rate: str | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    env: Mapping[str, str]


def spec_of_run(program: str, command: tuple[str, ...] = (), **options: Unpack[RunOptions]) -> LoadedSpec:
    """Return the spec of an image or a WASM module with a command. Raises SpecError, UsageError, TypeError."""
    from hearth.protocol.runtimes import runtime_of_program
    from hearth.spec import spec_from

    unknown = set(options) - set(RunOptions.__annotations__)
    if unknown:
        raise TypeError(f"{', '.join(sorted(unknown))}: a run has no such option")
    kind = runtime_of_program(program)
    resources: dict[str, Any] = {"cpus": options.get("cpus", 1), "memory": options.get("memory", "1GiB")}
    if count := options.get("gpu", 0):
        resources["gpu"] = {"count": count, **_said(options, "vram", "tier")}
    outputs = [{"path": path, "max_size": SMALL_OUTPUT} for path in options.get("outputs", ())]
    data: dict[str, Any] = {
        "version": 1,
        "name": _name_of(program),
        "runtime": kind.name,
        kind.program: program,
        "command": list(command),
        "env": dict(options.get("env", {})),
        "inputs": [_input_of(text) for text in options.get("inputs", ())],
        "outputs": outputs or [{"path": "/out", "required": False, "max_size": SMALL_OUTPUT}],
        "resources": resources,
        "limits": {"runtime": options.get("runtime", "10m")},
        "price": _said(options, "max_total", "max_rate"),
    }
    return spec_from(data, COMMAND_LINE, Path())


def with_parents(session: Session, loaded: LoadedSpec, after: Sequence[str]) -> LoadedSpec:
    """Return a job that waits for more jobs: "JOB" or "JOB:success|failure|always", JOB an id or its beginning.

    Raises UsageError, NotFoundError for no such job, SpecError where the job waits for too many, or for one twice.
    """
    from hearth.spec import as_data
    from hearth.spec.loaded import by_option, check

    if not after:
        return loaded
    data = as_data(loaded.spec)
    own = data.get("after", [])
    options = {f"after[{len(own) + index}]": f'--after "{text}"' for index, text in enumerate(after)}
    data["after"] = [*own, *(_parent_of(session, text) for text in after)]
    try:
        checked = check(data, loaded.source, loaded.folder)
    except SpecError as error:
        first = error.details["problems"][0]
        if first["field"] not in options:
            raise
        raise by_option(options[first["field"]], first["message"], error) from error
    return replace(checked, notes=loaded.notes, options=options)


def _parent_of(session: Session, text: str) -> dict[str, str]:
    job, _, condition = text.partition(":")
    if condition not in ("", "success", "failure", "always"):
        raise UsageError(
            f'--after "{text}": {condition} is no end of a job',
            hint="write --after JOB, JOB:failure or JOB:always; hearth submit --help",
        )
    return {"job": f"0x{session.job_id(job).hex()}", "if": condition or "success"}


def _said(options: RunOptions, *names: str) -> dict[str, Any]:
    """Return the options of these names that were given."""
    return {name: value for name, value in options.items() if name in names and value}


def _name_of(program: str) -> str:
    stem = Path(program).stem if program.endswith(".wasm") else program.split("@")[0].rpartition("/")[2]
    name = re.sub("[^A-Za-z0-9._ -]", "-", stem.partition(":")[0])[:64].strip(" .-_")
    return name or "job"


def _input_of(text: str) -> dict[str, str]:
    src, colon, dst = text.rpartition(":")
    if not colon or not dst.startswith("/"):
        raise UsageError(f'-i "{text}" is not SRC:DST', hint="write -i ./data:/in/data; see hearth run --help")
    return {"src": src, "dst": dst}
