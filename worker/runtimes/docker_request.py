"""The whole request to a Docker engine for one unit, built without asking it: every flag of the sandbox is here.

What each flag denies, and how it shows inside, is in profiles. A flag that this machine cannot honour is still tested
as a request. Source: SPEC section "Worker".
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from worker.runtimes.base import RunRequest, SandboxLimits
from worker.runtimes.profiles import is_gvisor

# A colon in a name is a registry's port; the one tag comes last.
IMAGE = re.compile(
    r"(?P<name>[a-z0-9](?:[a-zA-Z0-9._/-]|:(?=[0-9]{1,5}/)){0,254})(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?"
    r"@(?P<digest>sha256:[0-9a-f]{64})\Z"
)
LABEL = "hearth.unit"
JANITOR_LABEL = "hearth.janitor"
JANITOR_PROGRAM = "/janitor"
GUEST_UID = 65534
SHM_BYTES = 64 << 20
# One file may pass the cap by this much, so that the size check sees it and names the reason.
FILE_SLACK_BYTES = 1 << 20
# gVisor's kernel is a process in the container's control group. Of the host's threads it takes some 24, and two for
# each of the guest's; where it cannot have one, it ends, and the job with it.
GVISOR_MEMORY_BYTES = 64 << 20
GVISOR_PIDS = 64


@dataclass(frozen=True)
class ImageFacts:
    """Hold what an image brings along that the sandbox must answer: its declared volumes."""

    volumes: tuple[str, ...] = ()


def parse_image(reference: str) -> tuple[str, str] | None:
    """Return (name with registry, digest), or None unless the reference names a digest; a tag beside it is dropped."""
    found = IMAGE.match(reference)
    return (found["name"], found["digest"]) if found else None


def container_config(
    request: RunRequest,
    env: Mapping[str, str],
    image: ImageFacts = ImageFacts(),
    *,
    cpus: int,
    runtime: str = "",
) -> dict[str, Any]:
    """Return the body of the engine's create call for one unit: every flag of the sandbox is here and nowhere else.

    `runtime` is the OCI runtime to ask for, "" for the engine's default.
    """
    limits = request.limits
    memory, pids = limits.memory_bytes, limits.pids
    if is_gvisor(runtime):
        memory, pids = memory + GVISOR_MEMORY_BYTES, 2 * pids + GVISOR_PIDS
    tmpfs = f"rw,noexec,nosuid,nodev,size={limits.tmp_bytes},mode=1777"
    config: dict[str, Any] = {
        "Image": request.image,
        "WorkingDir": "/job",
        "User": f"{GUEST_UID}:{GUEST_UID}",
        # void: an engine whose default runtime is NVIDIA's gives an image that asks for all GPUs none.
        "Env": [f"{name}={value}" for name, value in env.items()] + ["NVIDIA_VISIBLE_DEVICES=void"],
        # Both are set: a container has its image's labels too, where it is not given its own.
        "Labels": {LABEL: request.unit, JANITOR_LABEL: "0"},
        "NetworkDisabled": True,
        "OpenStdin": False,
        "Tty": False,
        "StopTimeout": 5,
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "Privileged": False,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges", f"seccomp={seccomp_profile()}"],
            "IpcMode": "private",
            "CgroupnsMode": "private",
            "PidsLimit": pids,
            "Memory": memory,
            "MemorySwap": memory,
            "NanoCpus": cpus * 10**9,
            "ShmSize": SHM_BYTES,
            "Ulimits": _ulimits(limits),
            # A VOLUME of the image would be a writable folder on the host's disk without a cap.
            "Tmpfs": {path: tmpfs for path in ("/tmp", *image.volumes) if path not in ("/in", "/job", "/out")},
            "Mounts": _mounts(request),
            "LogConfig": {"Type": "local", "Config": {"max-size": "10m", "max-file": "2"}},
            "RestartPolicy": {"Name": "no"},
            "OomScoreAdj": 500,
            "Init": False,
        },
    }
    if request.command:
        config["Cmd"] = list(request.command)
    if runtime:
        config["HostConfig"]["Runtime"] = runtime
    if request.gpus:
        ids = [f"nvidia.com/gpu={uuid}" for uuid in request.gpus]
        config["HostConfig"]["DeviceRequests"] = [{"Driver": "cdi", "DeviceIDs": ids}]
    return config


def janitor_config(image: str, folder: Path, unit: str) -> dict[str, Any]:
    """Return the body of the create call for the janitor: root of the host with three capabilities and one folder.

    It is the only program of ours in a container, and the only one in the host's user namespace: a remapped root could
    not give a file to the worker.
    """
    return {
        "Image": image,
        "Cmd": [JANITOR_PROGRAM],
        "WorkingDir": "/folder",
        "User": "0:0",
        "Labels": {LABEL: unit, JANITOR_LABEL: "1"},
        "NetworkDisabled": True,
        "HostConfig": {
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "Privileged": False,
            "CapDrop": ["ALL"],
            "CapAdd": ["CHOWN", "DAC_OVERRIDE", "FOWNER"],
            "SecurityOpt": ["no-new-privileges", f"seccomp={seccomp_profile()}"],
            "UsernsMode": "host",
            "IpcMode": "private",
            "PidsLimit": 16,
            "Memory": 64 << 20,
            "Mounts": [_bind(folder, "/folder", read_only=False)],
            "LogConfig": {"Type": "none"},
            "RestartPolicy": {"Name": "no"},
        },
    }


@cache
def seccomp_profile() -> str:
    """Return the system calls that a container may make, as the engine takes them: everything else is refused.

    The list is ours, so that an engine's age and settings decide nothing. Source: seccomp.json.
    """
    text = (Path(__file__).parent / "seccomp.json").read_text(encoding="utf-8")
    return json.dumps(json.loads(text), separators=(",", ":"))


def _ulimit(name: str, value: int) -> dict[str, Any]:
    return {"Name": name, "Soft": value, "Hard": value}


def _ulimits(limits: SandboxLimits) -> list[dict[str, Any]]:
    return [
        _ulimit("nofile", 1024),
        # No core file, and unlike 0 none to a program of the host that collects them either: core(5).
        _ulimit("core", 1),
        _ulimit("fsize", max(limits.out_bytes, limits.tmp_bytes) + FILE_SLACK_BYTES),
    ]


def _mounts(request: RunRequest) -> list[dict[str, Any]]:
    return [
        _bind(request.job_dir, "/job", read_only=True),
        _bind(request.in_dir, "/in", read_only=True),
        _bind(request.out_dir, "/out", read_only=False),
    ]


def _bind(source: Path, target: str, *, read_only: bool) -> dict[str, Any]:
    options = {"Propagation": "rprivate", "NonRecursive": True}
    path = os.path.abspath(source)
    return {"Type": "bind", "Source": path, "Target": target, "ReadOnly": read_only, "BindOptions": options}
