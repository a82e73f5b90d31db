"""SkyPilot: a task file."""

from __future__ import annotations

from typing import Any, Final

from hearth.jobfile.convert.draft import NO_NETWORK, OURS, Draft, NotConvertible, count, mapping, sequence, text

_SIGNS: Final = frozenset({"run", "setup", "file_mounts", "num_nodes", "service", "envs"})
_GIB: Final = 1 << 30
_TASK: Final = {
    "setup": "a job cannot install anything: it has no network and a read-only root; build it into the image",
    "secrets": "everything in a job is public",
    "config": "it configures clouds",
    "volumes": "a job has no persistent volumes: results go to /out",
}
_RESOURCES: Final = dict.fromkeys(
    (
        *("cloud", "infra", "region", "zone", "use_spot", "spot_recovery", "job_recovery", "instance_type", "labels"),
        *("disk_tier", "network_tier", "autostop", "priority"),
    ),
    "workers are chosen by resources and price",
)


def recognise(document: dict[str, Any]) -> bool:
    """Say whether a file is a task: it has keys that only tasks have, and none that only a job file has."""
    return bool(_SIGNS & set(document)) and not OURS & set(document) and ("run" in document or "resources" in document)


def convert(document: dict[str, Any], draft: Draft) -> None:
    """Take over a task of one node in a container. Raises NotConvertible."""
    if "service" in document:
        raise NotConvertible(f"it describes a service that answers requests: {NO_NETWORK}")
    if count(document.get("num_nodes"), "num_nodes") > 1:
        raise NotConvertible("num_nodes asks for several machines, and a job is one container")
    draft.name(document.get("name"))
    _resources(mapping(document.get("resources"), "resources"), draft)
    if document.get("run") is None:
        raise NotConvertible("it has no run, so nothing would be done")
    run = text(document["run"], "run")
    draft.job["command"] = ["bash", "-c", run]
    if "SKYPILOT_" in run:
        draft.note("run", "it reads SKYPILOT_ variables: a job has HEARTH_UNIT and HEARTH_UNITS")
    if document.get("workdir") is not None:
        if not isinstance(document["workdir"], str):
            raise NotConvertible("workdir is not a local folder: clone the repository, and name the folder")
        draft.workdir(document["workdir"], "/job", "workdir")
    draft.env(document.get("envs"), "envs")
    for target, source in mapping(document.get("file_mounts"), "file_mounts").items():
        key = f"file_mounts.{target}"
        if not isinstance(source, str) or ("://" in source and not source.startswith(("https://", "ipfs://"))):
            draft.note(key, "buckets cannot be mounted: name a local path, an https URL or ipfs://CID as an input")
        else:
            draft.input(source, target, key)
    used = ("name", "resources", "run", "workdir", "envs", "file_mounts", "num_nodes")
    draft.leave("", document, used, _TASK)


def _resources(resources: dict[str, Any], draft: Draft) -> None:
    for key in ("any_of", "ordered"):
        choices = sequence(resources.get(key), f"resources.{key}")
        if choices:
            draft.note(f"resources.{key}", "the first was taken")
            resources = {**resources, **mapping(choices[0], f"resources.{key}[0]")}
    if resources.get("ports") is not None:
        raise NotConvertible(f"resources.ports opens ports: {NO_NETWORK}")
    image = resources.get("image_id")
    if not isinstance(image, str) or not image.startswith("docker:"):
        raise NotConvertible('resources.image_id names no container: write image_id: "docker:IMAGE"')
    draft.image(image.removeprefix("docker:"), "resources.image_id")
    if resources.get("cpus") is not None:
        draft.cpus(resources["cpus"], "resources.cpus")
    for name, key in (("memory", "memory"), ("disk", "disk_size")):
        if resources.get(key) is not None:
            # A bare number is in GB, by which the clouds mean GiB.
            draft.size(name, resources[key], f"resources.{key}", plain=_GIB, decimal=False)
    _accelerators(resources.get("accelerators"), draft)
    used = ("image_id", "cpus", "memory", "disk_size", "accelerators", "any_of", "ordered")
    draft.leave("resources", resources, used, _RESOURCES)


def _accelerators(value: object, draft: Draft) -> None:
    key = "resources.accelerators"
    if value is None:
        return
    if isinstance(value, dict):
        wanted = {name: count(number, key) for name, number in value.items()}
    else:
        listed = [text(item, key) for item in value] if isinstance(value, list) else [text(value, key)]
        wanted = {name: count(number or None, key) for name, _, number in (item.partition(":") for item in listed)}
    if len(set(wanted.values())) > 1:
        raise NotConvertible(f"{key} offers a choice between different numbers of GPUs: keep one")
    draft.gpu(next(iter(wanted.values()), 0), wanted, key)
