"""Accept the older form of a job that public guides show, and rewrite it into the one schema.

{"image": "pytorch/pytorch:latest", "command": "python train.py --epochs 50",
 "resources": {"gpu": "1xRTX4090", "cpu": 4, "memory": "16Gi"},
 "input_data": "ipfs://Qm...", "output_dest": "/results"}
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from hearth.jobfile.problems import Location, Problem

OLDER_KEYS: dict[Location, frozenset[str]] = {
    (): frozenset({"input_data", "output_dest"}),
    ("resources",): frozenset({"cpu"}),
}
_GPU = re.compile(r"(?:([0-9]{1,3}) ?x ?)?([A-Za-z][A-Za-z0-9 _.-]{0,40})|([0-9]{1,3})")
_SHELL = re.compile(r"[|&;<>`$*?()\n~]")
_INERT = re.compile(r"""'[^']*'|"[^"$`\\]*"|\\.""")
"""Quoted text in which a shell would replace nothing."""


def desugar(data: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...], list[Problem]]:
    """Return the spec in the present form, notes for the user, and what could not be rewritten."""
    spec = dict(data)
    notes: list[str] = []
    problems: list[Problem] = []
    if isinstance(spec.get("command"), str):
        _command(spec, problems)
    resources = spec.get("resources")
    if isinstance(resources, dict):
        spec["resources"] = _resources(dict(resources), problems)
    if isinstance(spec.get("verify"), str):
        spec["verify"] = {"mode": spec["verify"]}
    if "input_data" in spec:
        _input_data(spec, notes, problems)
    if "output_dest" in spec:
        _output_dest(spec, notes, problems)
    return spec, tuple(notes), problems


def needs_shell(text: str) -> bool:
    """Say whether a command holds what only a shell understands: pipes, variables, lists of commands."""
    return bool(_SHELL.search(_INERT.sub("", text)))


def _command(spec: dict[str, Any], problems: list[Problem]) -> None:
    text = spec["command"]
    hint = f'write it as a list; for a shell: ["sh", "-c", {_quoted(text)}]'
    try:
        words = shlex.split(text)
    except ValueError as error:
        problems.append(Problem(("command",), f"cannot be split into words: {error}", hint))
        words = []
    if needs_shell(text):
        problems.append(Problem(("command",), "uses shell syntax, and no shell runs it", hint))
    spec["command"] = words


def _resources(resources: dict[str, Any], problems: list[Problem]) -> dict[str, Any]:
    if "cpu" in resources and "cpus" not in resources:
        resources["cpus"] = resources.pop("cpu")
    gpu = resources.get("gpu")
    if isinstance(gpu, int) and not isinstance(gpu, bool):
        resources["gpu"] = {"count": gpu}
    elif isinstance(gpu, str):
        match = _GPU.fullmatch(gpu.strip())
        if match is None:
            problems.append(
                Problem(
                    ("resources", "gpu"), f'"{gpu}" is not a GPU', 'write "1xRTX4090" or {count: 1, tier: rtx-4090}'
                )
            )
            resources["gpu"] = {"count": 0}
        elif match[3]:
            resources["gpu"] = {"count": int(match[3])}
        else:
            resources["gpu"] = {"count": int(match[1] or 1), "tier": _slug(match[2])}
    return resources


def _slug(model: str) -> str:
    """Return a model's name as the tier table writes it: "RTX4090" is rtx-4090, "A100 80GB" is a100-80gb."""
    words = re.sub(r"[ _.]+", "-", model.strip().lower())
    return re.sub(r"^(rtx|gtx)(?=[0-9])", r"\1-", words)


def _input_data(spec: dict[str, Any], notes: list[str], problems: list[Problem]) -> None:
    src = spec.pop("input_data")
    if "inputs" in spec:
        problems.append(Problem(("input_data",), "cannot be used with inputs", "move it into inputs"))
    elif not isinstance(src, str):
        problems.append(Problem(("input_data",), "must be one ipfs://CID, path or URL", "use inputs for several"))
    else:
        spec["inputs"] = [{"src": src, "dst": "/in/data"}]
        notes.append("input_data is mounted at /in/data")


def _output_dest(spec: dict[str, Any], notes: list[str], problems: list[Problem]) -> None:
    destination = spec.pop("output_dest")
    if "outputs" in spec:
        problems.append(Problem(("output_dest",), "cannot be used with outputs", "keep outputs"))
        return
    spec["outputs"] = [{"path": "/out"}]
    if destination != "/out":
        notes.append(f"output_dest {destination} is not used: the job writes to /out; hearth job get JOB fetches it")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
