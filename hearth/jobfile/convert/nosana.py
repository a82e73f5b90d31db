"""Nosana: a job definition of operations in containers."""

from __future__ import annotations

from typing import Any, Final

from hearth.jobfile.convert.draft import NO_NETWORK, Draft, NotConvertible, count, mapping, only, sequence, text

_GIB: Final = 1 << 30
_ARGS: Final = {
    "work_dir": "a job starts in /job",
    "volumes": "a job has no volumes of its own: /tmp is its scratch, results go to /out",
    "output": "results go to /out",
    "authentication": "workers pull public images only",
    "private": "everything in a job is public",
}


def recognise(document: dict[str, Any]) -> bool:
    """Say whether a file is a job definition: operations whose types are container/..."""
    ops = document.get("ops")
    return isinstance(ops, list) and any(
        isinstance(op, dict) and str(op.get("type", "")).startswith("container/") for op in ops
    )


def convert(document: dict[str, Any], draft: Draft) -> None:
    """Take over the one operation that runs a container. Raises NotConvertible."""
    runs = {}
    for index, raw in enumerate(sequence(document["ops"], "ops")):
        op = mapping(raw, f"ops[{index}]")
        if op.get("type") == "container/run":
            runs[text(op.get("id", index), f"ops[{index}].id")] = (f"ops[{index}]", op)
        else:
            draft.note(f"ops[{index}]", f"{text(op.get('type', '?'), 'type')[:60]}: a job is one container")
    name, (where, op) = only(runs, "operation")
    shared = mapping(document.get("global"), "global")
    args = {**shared, **mapping(op.get("args"), f"{where}.args")}
    where = f"{where}.args"
    if args.get("expose"):
        raise NotConvertible(f"{where}.expose serves a port: {NO_NETWORK}")
    draft.name(name)
    draft.image(args.get("image"), f"{where}.image")
    draft.command(args.get("entrypoint"), args.get("cmd"), f"{where}.entrypoint", f"{where}.cmd")
    draft.env(args.get("env"), f"{where}.env")
    meta = mapping(document.get("meta"), "meta")
    needs = mapping(meta.get("system_requirements", meta.get("system_resources")), "meta.system_requirements")
    vram = count(needs.get("required_vram"), "meta.system_requirements.required_vram", 0)
    if args.get("gpu"):
        draft.gpu(1, (), f"{where}.gpu", vram * _GIB)
    for index, raw in enumerate(sequence(args.get("resources"), f"{where}.resources")):
        item = mapping(raw, f"{where}.resources[{index}]")
        kind = text(item.get("type", "?"), "type")[:40]
        draft.note(f"{where}.resources[{index}]", f"{kind} is not downloaded: name it as an input, https:// or ipfs://")
    used = ("image", "cmd", "entrypoint", "env", "gpu", "resources", "expose")
    draft.leave(where, args, used, _ARGS)
    draft.leave("meta.system_requirements", needs, ("required_vram",), {"required_cuda": "the image brings its CUDA"})
    draft.leave("meta", meta, ("trigger", "system_requirements", "system_resources"))
    draft.leave("", document, ("version", "type", "meta", "ops", "global"))
