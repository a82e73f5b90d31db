"""The job that `hearth run` makes of one line: a program, its command and a few flags become a whole spec."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from hearth.base.errors import UsageError
from hearth.client.face import require_types
from hearth.client.posting.sources import COMMAND_LINE

if TYPE_CHECKING:
    from hearth.client.session import Session
    from hearth.jobfile import LoadedSpec

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
    from hearth.jobfile.loaded import check
    from hearth.jobfile.problems import Source
    from hearth.protocol.runtimes import runtime_of_program

    unknown = set(options) - set(RunOptions.__annotations__)
    if unknown:
        raise TypeError(f"{', '.join(sorted(unknown))}: a run has no such option")
    require_types("run", options, {name: kind.__forward_arg__ for name, kind in RunOptions.__annotations__.items()})
    kind = runtime_of_program(program)
    resources: dict[str, Any] = {"cpus": options.get("cpus", 1), "memory": options.get("memory", "1GiB")}
    resources["gpu"] = {"count": options.get("gpu", 0), **_said(options, "vram", "tier")}
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
    return check(data, Source(COMMAND_LINE, {}, _as_written(data, options)), Path())


def _as_written(data: Mapping[str, Any], options: RunOptions) -> dict[str, str]:
    """Return the option of the command line that each field comes from, with its value where that is no secret."""
    resources, price = data["resources"], data["price"]
    count = resources["gpu"]["count"]
    found = {
        "resources.gpu": f"--gpu {count}",
        "resources.gpu.count": f"--gpu {count}",
        "resources.gpu.tier": f'--tier "{resources["gpu"].get("tier")}"',
        "resources.gpu.vram": f'--vram "{resources["gpu"].get("vram")}"',
        "resources.cpus": f"--cpus {resources['cpus']}",
        "resources.memory": f'--memory "{resources["memory"]}"',
        "limits.runtime": f'--runtime "{data["limits"]["runtime"]}"',
        "price.max_total": f'--max-total "{price.get("max_total")}"',
        "price.max_rate": f'--max-rate "{price.get("max_rate")}"',
    }
    found["price"] = found["price.max_total" if "max_total" in price else "price.max_rate"]
    found |= {f"env.{name}": f"-e {name}" for name in data["env"]}
    for index, text in enumerate(options.get("inputs", ())):
        found |= {f"inputs[{index}].{end}": f'-i "{text}"' for end in ("src", "dst")}
    return found | {f"outputs[{index}].path": f'-o "{path}"' for index, path in enumerate(options.get("outputs", ()))}


def with_parents(session: Session, loaded: LoadedSpec, after: Sequence[str]) -> LoadedSpec:
    """Return a job that waits for more jobs: "JOB" or "JOB:success|failure|always", JOB an id or its beginning.

    Raises UsageError, NotFoundError for no such job, SpecError where the job waits for too many, or for one twice.
    """
    from hearth.jobfile import as_data
    from hearth.jobfile.loaded import check

    if not after:
        return loaded
    data = as_data(loaded.spec)
    own = data.get("after", [])
    options = {f"after[{len(own) + index}]": f'--after "{text}"' for index, text in enumerate(after)}
    data["after"] = [*own, *(_parent_of(session, text) for text in after)]
    source = replace(loaded.source, options={**loaded.source.options, **options})
    return replace(check(data, source, loaded.folder), notes=loaded.notes)


def _parent_of(session: Session, text: str) -> dict[str, str]:
    job, _, condition = text.partition(":")
    if condition not in ("", "success", "failure", "always"):
        raise UsageError(
            f'--after "{text}": {condition} is no end of a job',
            hint="write --after JOB, JOB:failure or JOB:always",
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
        raise UsageError(f'-i "{text}" is not SRC:DST', hint="write -i ./data:/in/data")
    return {"src": src, "dst": dst}
