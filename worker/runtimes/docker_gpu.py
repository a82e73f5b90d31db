"""Whether an engine gives a container the GPUs that it asks for: seen by a program of ours in the place of a job's."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from worker.gpu.port import Device
from worker.runtimes.docker_janitor import SECONDS, janitor_image
from worker.runtimes.docker_request import GPUS_LABEL, LABEL, gpu_trial_config


def without_gpus(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a create call without its GPUs."""
    host = {name: value for name, value in config["HostConfig"].items() if name not in ("DeviceRequests", "GroupAdd")}
    return {**config, "HostConfig": host}


def held_elsewhere(api: Any, uuids: Sequence[str], unit: str) -> str:
    """Say which running container of another unit has one of these GPUs, "" for none: a killed worker may leave one."""
    for each in api.containers(filters={"label": GPUS_LABEL}):
        shared = set(uuids) & set(each["Labels"][GPUS_LABEL].split(",")) - {""}
        if shared and each["Labels"].get(LABEL) != unit:
            return f"the container of {each['Labels'].get(LABEL)} has {', '.join(sorted(shared))}"
    return ""


def try_gpu(api: Any, gpu: Device, runtime: str) -> str:
    """Start a program of ours with a GPU, as the user that a job's program is; say what is wrong, "" for nothing.

    Raises Unreclaimed, and the errors of docker and requests where the engine fails.
    """
    unit = f"trial-{gpu.uuid}"
    if held := held_elsewhere(api, (gpu.uuid,), unit):
        return held
    config = gpu_trial_config(janitor_image(api), gpu, unit, runtime)
    container = api.create_container_from_config(config)["Id"]
    try:
        api.start(container)
        status = int(api.wait(container, timeout=SECONDS)["StatusCode"])
        lines = api.logs(container, stdout=True, stderr=False).decode(errors="replace").splitlines()
    finally:
        api.remove_container(container, force=True, v=True)
    seen = [(int(number), int(error)) for number, error in (line.split() for line in lines)]
    if status or not seen:
        return f"a container that was given it has no {gpu.nodes}N in it (exit {status})"
    if gpu.number is not None and [number for number, _ in seen] != [gpu.number]:
        given = ", ".join(f"{gpu.nodes}{number}" for number, _ in seen)
        return f"a container that was given {gpu.nodes}{gpu.number} has {given}: its CDI specification is an older one"
    closed = [f"{gpu.nodes}{number} ({os.strerror(error)})" for number, error in seen if error]
    return f"a job's user cannot open {', '.join(closed)}" if closed else ""
