"""Akash: a deployment in the Stack Definition Language (SDL), version 2."""

from __future__ import annotations

from typing import Any, Final

from hearth.jobfile.convert.draft import (
    NO_NETWORK,
    Draft,
    NotConvertible,
    count,
    mapping,
    only,
    sequence,
    size_of,
    text,
)
from hearth.protocol.gpu_tiers import NVIDIA, VENDORS

_SERVICE: Final = {
    "params": "a job has no persistent volumes: results go to /out",
    "credentials": "workers pull public images only",
    "dependencies": "a job is one container",
}
_PLACEMENT: Final = {
    "pricing": 'prices are in the market\'s own asset: price: {max_rate: "..."}, hearth offers shows what is asked',
    "attributes": "workers are chosen by resources and price; resources.regions names countries",
    "signedBy": "there are no auditors: a worker's stake and record stand for it",
}


def recognise(document: dict[str, Any]) -> bool:
    """Say whether a file is an SDL: services, and where they are deployed."""
    return "services" in document and "deployment" in document and "profiles" in document


def convert(document: dict[str, Any], draft: Draft) -> None:
    """Take over the one service of a deployment. Raises NotConvertible."""
    name, raw = only(mapping(document["services"], "services"), "service")
    where = f"services.{name}"
    service = mapping(raw, where)
    draft.name(name)
    draft.image(service.get("image"), f"{where}.image")
    _expose(service.get("expose"), f"{where}.expose", draft)
    draft.command(service.get("command"), service.get("args"), f"{where}.command", f"{where}.args")
    draft.env(service.get("env"), f"{where}.env")
    draft.leave(where, service, ("image", "command", "args", "env", "expose"), _SERVICE)
    _resources(_profile(document, name, draft), draft)
    draft.leave("", document, ("version", "services", "profiles", "deployment"))


def _expose(value: object, where: str, draft: Draft) -> None:
    for index, raw in enumerate(sequence(value, where)):
        port = mapping(raw, f"{where}[{index}]")
        for target in sequence(port.get("to"), f"{where}[{index}].to"):
            if mapping(target, f"{where}[{index}].to").get("global"):
                raise NotConvertible(f"it serves port {text(port.get('port', '?'), where)} to the world: {NO_NETWORK}")
        draft.note(f"{where}[{index}]", f"nobody can reach a port: {NO_NETWORK}")


def _profile(document: dict[str, Any], service: str, draft: Draft) -> tuple[str, dict[str, Any]]:
    """Return the compute profile that the deployment of a service names, with its place in the file."""
    profiles = mapping(document["profiles"], "profiles")
    deployed = mapping(mapping(document["deployment"], "deployment").get(service), f"deployment.{service}")
    placement, raw = only(deployed, f"placement of {service}")
    where = f"deployment.{service}.{placement}"
    terms = mapping(raw, where)
    if count(terms.get("count"), f"{where}.count") != 1:
        raise NotConvertible(f"{where}.count asks for several instances, and a job is one container")
    place = mapping(mapping(profiles.get("placement"), "profiles.placement").get(placement), "profiles.placement")
    draft.leave(f"profiles.placement.{placement}", place, (), _PLACEMENT)
    profile = text(terms.get("profile", service), f"{where}.profile")
    compute = mapping(profiles.get("compute"), "profiles.compute")
    found = f"profiles.compute.{profile}"
    return f"{found}.resources", mapping(mapping(compute.get(profile), found).get("resources"), f"{found}.resources")


def _resources(profile: tuple[str, dict[str, Any]], draft: Draft) -> None:
    where, resources = profile
    cpu = mapping(resources.get("cpu"), f"{where}.cpu")
    if "units" in cpu:
        draft.cpus(cpu["units"], f"{where}.cpu.units")
    memory = mapping(resources.get("memory"), f"{where}.memory")
    if "size" in memory:
        draft.size("memory", memory["size"], f"{where}.memory.size")
    storage = resources.get("storage")
    volumes = storage if isinstance(storage, list) else [] if storage is None else [storage]
    if volumes:
        sizes = [size_of(mapping(volume, where).get("size"), f"{where}.storage.size") for volume in volumes]
        draft.size("disk", sum(sizes), f"{where}.storage")
        if len(volumes) > 1:
            draft.note(f"{where}.storage", f"{len(volumes)} volumes became one disk, which lives as long as the unit")
    gpu = mapping(resources.get("gpu"), f"{where}.gpu")
    units = count(gpu.get("units"), f"{where}.gpu.units", 0)
    attributes = mapping(gpu.get("attributes"), f"{where}.gpu.attributes")
    vendors = mapping(attributes.get("vendor"), f"{where}.gpu.attributes.vendor")
    vendor = next((one.name for one in VENDORS.values() if one.name in vendors), NVIDIA.name)
    if units and vendors and vendor not in vendors:
        raise NotConvertible(f"{where}.gpu asks for GPUs of {', '.join(vendors)}: workers offer {' or '.join(VENDORS)}")
    if units and len(vendors) > 1:
        draft.note(f"{where}.gpu", f"several vendors became {vendor}: a job asks for one")
    place = f"{where}.gpu.attributes.vendor.{vendor}"
    models = [mapping(model, place) for model in sequence(vendors.get(vendor), place)]
    sizes = [size_of(model["ram"], f"{where}.gpu ram") for model in models if "ram" in model]
    names = [text(model["model"], f"{where}.gpu model") for model in models if "model" in model]
    draft.gpu(units, names, f"{where}.gpu", min(sizes, default=0), vendor)
    draft.leave(where, resources, ("cpu", "memory", "storage", "gpu", "id"))
