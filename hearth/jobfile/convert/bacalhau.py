"""Bacalhau: a declarative job (1.0 and later) of one task in a container or in WebAssembly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from hearth.jobfile.convert.draft import (
    NO_NETWORK,
    Draft,
    NotConvertible,
    count,
    mapping,
    not_taken,
    sequence,
    shown,
    text,
    words,
)
from hearth.protocol.units import format_duration

_JOB: Final = ("Name", "Type", "Count", "Tasks", "Namespace", "Priority", "Constraints", "Meta", "Labels")
_TASK: Final = (
    *("Name", "Engine", "Env", "InputSources", "ResultPaths", "Resources", "Network", "Timeouts", "Publisher", "Meta"),
)
_PARAMS: Final = ("Entrypoint", "Parameters", "EnvironmentVariables")
Inputs = dict[str, tuple[str, str]]
"""Inputs by the path that they are mounted at: the key in the file, and the source."""
_JOB_REASONS: Final = {
    "Constraints": "workers are chosen by resources and price",
    "Priority": "a higher price is the only priority",
}
_TASK_REASONS: Final = {"Publisher": "a worker stores results by content, and the chain names them"}


def recognise(document: dict[str, Any]) -> bool:
    """Say whether a file is a declarative job: tasks with an engine."""
    tasks = _canonical(document, _JOB).get("Tasks")
    return isinstance(tasks, list) and any(
        isinstance(task, dict) and "Engine" in _canonical(task, _TASK) for task in tasks
    )


def recognise_old(document: dict[str, Any]) -> bool:
    """Say whether a file is a job of the versions before 1.0."""
    return str(document.get("APIVersion", "")).startswith("V1") and isinstance(document.get("Spec"), dict)


def convert(document: dict[str, Any], draft: Draft) -> None:
    """Take over the one task of a batch job. Raises NotConvertible."""
    job = _canonical(document, _JOB)
    kind = text(job.get("Type", "batch"), "Type").lower()
    if kind != "batch":
        raise NotConvertible(f"its type is {kind[:40]}, and a job runs once and ends (batch)")
    tasks = sequence(job["Tasks"], "Tasks")
    if len(tasks) != 1:
        raise NotConvertible(f"it describes {len(tasks)} tasks, and a job is one container")
    draft.name(job.get("Name"))
    copies = count(job.get("Count"), "Count")
    if copies > 1:
        draft.job["array"] = {"units": copies}
        draft.note("Count", "became array.units: each unit knows its number from HEARTH_UNIT, of HEARTH_UNITS")
    task = _canonical(mapping(tasks[0], "Tasks[0]"), _TASK)
    network = _canonical(mapping(task.get("Network"), "Network"), ("Type",))
    if text(network.get("Type", "None"), "Network.Type").lower() not in ("none", "default"):
        raise NotConvertible(f"Network.Type is {text(network['Type'], 'Network.Type')[:40]}: {NO_NETWORK}")
    inputs = _inputs(task, draft)
    module = _engine(_canonical(mapping(task["Engine"], "Engine"), ("Type", "Params")), inputs, draft)
    for target, (where, src) in inputs.items():
        if target != module:
            draft.input(src, target, where)
    draft.env(task.get("Env"), "Env")
    _results(task, draft)
    _resources(task, draft)
    draft.leave("", job, ("Name", "Type", "Count", "Tasks", "Namespace", "Version", "ID"), _JOB_REASONS)
    used = ("Name", "Engine", "Env", "InputSources", "ResultPaths", "Resources", "Network", "Timeouts")
    draft.leave("Tasks[0]", task, used, _TASK_REASONS)


def _canonical(given: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return a mapping with the keys written as here: bacalhau reads them in any case."""
    known = {key.lower(): key for key in keys}
    return {known.get(key.lower(), key): value for key, value in given.items()}


def _engine(engine: dict[str, Any], inputs: Inputs, draft: Draft) -> str:
    """Take the program over; return the path of the input that is its module, or ""."""
    kind = text(engine.get("Type", ""), "Engine.Type").lower()
    where = "Engine.Params"
    keys = (*_PARAMS, "Image", "WorkingDirectory") if kind == "docker" else (*_PARAMS, "EntryModule", "ImportModules")
    params = _canonical(mapping(engine.get("Params"), where), keys)
    module = ""
    if kind == "docker":
        draft.image(params.get("Image"), f"{where}.Image")
        draft.command(params.get("Entrypoint"), params.get("Parameters"), f"{where}.Entrypoint", f"{where}.Parameters")
        draft.leave(where, params, (*_PARAMS, "Image"), {"WorkingDirectory": "a job starts in /job"})
    elif kind == "wasm":
        if text(params.get("Entrypoint") or "_start", f"{where}.Entrypoint") != "_start":
            raise NotConvertible(f"{where}.Entrypoint is not _start, where a worker starts a module")
        if params.get("ImportModules"):
            raise NotConvertible(f"{where}.ImportModules names more modules, and a job is one")
        module = _module(params.get("EntryModule"), inputs, draft)
        draft.job["command"] = words(params.get("Parameters"), f"{where}.Parameters")
        draft.leave(where, params, (*_PARAMS, "EntryModule", "ImportModules"))
    else:
        raise NotConvertible(f"Engine.Type is {kind[:40] or 'not named'}, and a job runs docker or wasm")
    draft.env(params.get("EnvironmentVariables"), f"{where}.EnvironmentVariables")
    return module


def _module(value: object, inputs: Inputs, draft: Draft) -> str:
    """Take the module over: a source of its own, a path, or the input at this path, which is returned."""
    where = "Engine.Params.EntryModule"
    source = _source(value, where) if isinstance(value, dict) else text("" if value is None else value, where)
    if not source:
        raise NotConvertible(f"{where} names no module by CID, URL or path")
    _, named = inputs.get(source, ("", source))
    if why := not_taken(named):
        raise NotConvertible(f"{where} {shown(named)} {why}")
    draft.job |= {"runtime": "wasm", "module": named}
    return source if source in inputs else ""


def _source(raw: dict[str, Any], where: str) -> str:
    """Return the CID or URL of an input source, "" for a source of another kind."""
    outer = _canonical(raw, ("Source", "Target", "Alias"))
    source = _canonical(mapping(outer.get("Source", raw), f"{where}.Source"), ("Type", "Params"))
    params = _canonical(mapping(source.get("Params"), f"{where}.Source.Params"), ("CID", "URL"))
    if "CID" in params:
        return f"ipfs://{text(params['CID'], f'{where}.Source.Params.CID')}"
    return text(params.get("URL", ""), f"{where}.Source.Params.URL")


def _inputs(task: dict[str, Any], draft: Draft) -> Inputs:
    """Return the inputs by the path that each is mounted at; what a job cannot read is noted."""
    found: Inputs = {}
    for index, raw in enumerate(sequence(task.get("InputSources"), "InputSources")):
        where = f"InputSources[{index}]"
        item = _canonical(mapping(raw, where), ("Source", "Target", "Alias"))
        src = _source(item, where)
        if src:
            found[text(item.get("Target", f"/inputs/{index}"), f"{where}.Target")] = (where, src)
        else:
            draft.note(where, "is neither a CID nor a URL: name a local path, an https URL or ipfs://CID as an input")
    return found


def _results(task: dict[str, Any], draft: Draft) -> None:
    for index, raw in enumerate(sequence(task.get("ResultPaths"), "ResultPaths")):
        where = f"ResultPaths[{index}]"
        draft.output(text(_canonical(mapping(raw, where), ("Path", "Name")).get("Path", "/outputs"), where), where)


def _resources(task: dict[str, Any], draft: Draft) -> None:
    need = _canonical(mapping(task.get("Resources"), "Resources"), ("CPU", "Memory", "Disk", "GPU"))
    if need.get("CPU") is not None:
        draft.cpus(need["CPU"], "Resources.CPU")
    for name in ("Memory", "Disk"):
        if need.get(name) is not None:
            draft.size(name.lower(), need[name], f"Resources.{name}")
    draft.gpu(count(need.get("GPU"), "Resources.GPU", 0), (), "Resources.GPU")
    times = ("ExecutionTimeout", "QueueTimeout", "TotalTimeout")
    limits = _canonical(mapping(task.get("Timeouts"), "Timeouts"), times)
    if "ExecutionTimeout" in limits:
        seconds = count(limits["ExecutionTimeout"], "Timeouts.ExecutionTimeout")
        draft.job["limits"] = {"runtime": format_duration(seconds)}
    draft.leave("Timeouts", limits, times[:1], dict.fromkeys(times[1:], "limits.deadline bounds the whole job"))
