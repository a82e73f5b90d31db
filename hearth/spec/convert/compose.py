"""Docker Compose: a file of one service."""

from __future__ import annotations

from typing import Any, Final

from hearth.spec.convert.draft import NO_NETWORK, Draft, NotConvertible, count, mapping, only, sequence, text

_SERVICE: Final = {
    "restart": "a job runs once; retry.attempts says how many workers may try",
    "networks": NO_NETWORK,
    "dns": NO_NETWORK,
    "extra_hosts": NO_NETWORK,
    "expose": NO_NETWORK,
    "env_file": "a job file holds its environment itself: write it in env",
    "secrets": "everything in a job is public",
    "working_dir": "a job starts in /job",
    "user": "a job runs as a user without rights",
    "privileged": "a job runs as a user without rights",
    "cap_add": "a job runs as a user without rights",
    "devices": "a job sees no devices but GPUs",
    "build": "build the image, push it, and name it",
    "healthcheck": "a job runs once and ends",
}


def recognise(document: dict[str, Any]) -> bool:
    """Say whether a file is Compose's: services, of which one names an image or how to build it."""
    services = document.get("services")
    return isinstance(services, dict) and any(
        isinstance(service, dict) and {"image", "build", "extends"} & set(service) for service in services.values()
    )


def convert(document: dict[str, Any], draft: Draft) -> None:
    """Take over the one service. Raises NotConvertible."""
    name, raw = only(mapping(document["services"], "services"), "service")
    where = f"services.{name}"
    service = mapping(raw, where)
    if service.get("ports"):
        raise NotConvertible(f"{where}.ports publishes ports: {NO_NETWORK}")
    mode = text(service.get("network_mode", "none"), f"{where}.network_mode")
    if mode != "none":
        raise NotConvertible(f"{where}.network_mode is {mode[:40]}: {NO_NETWORK}")
    if "network_mode" not in service:
        draft.note(f"{where}.network_mode", f"Compose gives a container a network unless it says none; {NO_NETWORK}")
    if service.get("image") is None and "build" in service:
        raise NotConvertible(f"{where}.build builds its image: push the image, and name it")
    draft.name(document.get("name") or name)
    draft.image(service.get("image"), f"{where}.image")
    draft.command(
        _unescaped(service.get("entrypoint")),
        _unescaped(service.get("command")),
        f"{where}.entrypoint",
        f"{where}.command",
    )
    draft.env(_unescaped(service.get("environment")), f"{where}.environment")
    _volumes(service, where, draft)
    _resources(service, where, draft)
    used = (
        *("image", "entrypoint", "command", "environment", "network_mode", "volumes", "deploy", "ports", "scale"),
        *("container_name", "cpus", "mem_limit", "gpus"),
    )
    draft.leave(where, service, used, _SERVICE)
    top = {key for key in document if key.startswith("x-")} | {"version", "name", "services"}
    draft.leave("", document, top, {"volumes": "a job has no volumes of its own", "networks": NO_NETWORK})


def _unescaped(value: object) -> Any:
    """Return what Compose passes on where `$$` stands for a dollar."""
    if isinstance(value, str):
        return value.replace("$$", "$")
    if isinstance(value, list):
        return [_unescaped(item) if isinstance(item, str) else item for item in value]
    if isinstance(value, dict):
        return {key: _unescaped(item) if isinstance(item, str) else item for key, item in value.items()}
    return value


def _volumes(service: dict[str, Any], where: str, draft: Draft) -> None:
    for index, raw in enumerate(sequence(service.get("volumes"), f"{where}.volumes")):
        key = f"{where}.volumes[{index}]"
        if isinstance(raw, dict):
            source, target = text(raw.get("source", ""), key), text(raw.get("target", ""), key)
            read_only = raw.get("read_only") is True
        else:
            source, _, rest = text(raw, key).partition(":")
            target, _, mode = rest.partition(":")
            read_only = "ro" in mode.split(",")
        if target == "/out" or target.startswith("/out/"):
            draft.output(target, key)
        elif source.startswith((".", "/", "~")) and target:
            draft.input(source, target, key)
            if not read_only:
                draft.note(key, f"inputs are read-only: what is written to {target[:120]} is refused; write to /out")
        else:
            draft.note(key, "a job has no volumes of its own: /tmp is its scratch, results go to /out")


def _resources(service: dict[str, Any], where: str, draft: Draft) -> None:
    deploy = mapping(service.get("deploy"), f"{where}.deploy")
    if count(deploy.get("replicas", service.get("scale")), f"{where}.deploy.replicas") > 1:
        raise NotConvertible(f"{where}.deploy.replicas asks for several containers, and a job is one")
    given = mapping(deploy.get("resources"), f"{where}.deploy.resources")
    limits = mapping(given.get("limits"), f"{where}.deploy.resources.limits")
    reserved = mapping(given.get("reservations"), f"{where}.deploy.resources.reservations")
    cpus = limits.get("cpus", service.get("cpus", reserved.get("cpus")))
    if cpus is not None:
        draft.cpus(cpus, f"{where}.cpus")
    memory = limits.get("memory", service.get("mem_limit", reserved.get("memory")))
    if memory is not None:
        draft.size("memory", memory, f"{where}.memory", decimal=False)
    gpus: object = 0
    for raw in sequence(reserved.get("devices"), f"{where}.deploy.resources.reservations.devices"):
        device = mapping(raw, f"{where}.deploy.resources.reservations.devices")
        if "gpu" in sequence(device.get("capabilities"), f"{where} capabilities"):
            ids = device.get("device_ids")
            gpus = len(ids) if isinstance(ids, list) else device.get("count", "all")
    gpus = service.get("gpus", gpus)
    if gpus == "all":
        draft.note(f"{where}.gpus", "all GPUs of a machine became one: resources.gpu.count says how many")
        gpus = 1
    draft.gpu(count(gpus, f"{where}.gpus", 0), (), f"{where}.gpus")
    draft.leave(f"{where}.deploy", deploy, ("resources", "replicas"), {"restart_policy": _SERVICE["restart"]})
