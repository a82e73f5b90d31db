"""The whole request to a Docker engine for one unit, built without asking it: every flag of the sandbox is here.

What each flag denies, and how it shows inside, is in profiles. A flag that this machine cannot honour is still tested
as a request. Source: worker.md "Profile of a container".
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from worker.gpu.port import Device
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
USER_LABEL = "hearth.user"
GPUS_LABEL = "hearth.gpus"
GUEST_UIDS = range(60_706, 61_184)
"""Whom guests are, each of those that run somebody else: what the kernel counts for a user (inotify instances, message
queues, timers, keys) one guest could else take from another. Distributions leave these numbers to nobody."""
GUEST_GID = 65534
GUEST_NAME = "nobody"
"""What a guest is told that its user is called, since no image knows the number."""
GUEST_HOME = "/tmp"
SHM_BYTES = 64 << 20
FILES = 1024
SCRATCH = "/scratch"
"""Where a job with GPUs may run what it wrote: frameworks compile for the card that they find."""
SCRATCH_BYTES = 8 << 30
GPU_SHM_BYTES = 1 << 30
"""The most that these two may take, of the job's memory: data loaders and NCCL pass tensors by the second."""
GPU_FILES = 16_384
"""Each tensor that a data loader passes is an open file. A rootless engine may give no more than its own user has."""
CACHES = {
    "HOME": SCRATCH,
    "XDG_CACHE_HOME": f"{SCRATCH}/.cache",
    "TRITON_CACHE_DIR": f"{SCRATCH}/.triton",
    "TORCHINDUCTOR_CACHE_DIR": f"{SCRATCH}/.inductor",
    "CUDA_CACHE_PATH": f"{SCRATCH}/.nv",
}
"""Where frameworks look for a place for what they compile, in a job with GPUs."""
NUMA_CALLS = ("get_mempolicy", "mbind", "set_mempolicy")
"""What a program says of where its own memory is to be, beside the card that reads it."""
# One file may pass the cap by this much, so that the size check sees it and names the reason.
FILE_SLACK_BYTES = 1 << 20
# gVisor's kernel is a process in the container's control group. Of the host's threads it takes some 24, and two for
# each of the guest's; where it cannot have one, it ends, and the job with it.
GVISOR_MEMORY_BYTES = 64 << 20
GVISOR_PIDS = 64


def parse_image(reference: str) -> tuple[str, str] | None:
    """Return (name with registry, digest), or None unless the reference names a digest; a tag beside it is dropped."""
    found = IMAGE.match(reference)
    return (found["name"], found["digest"]) if found else None


def container_config(
    request: RunRequest,
    env: Mapping[str, str],
    volumes: Iterable[str] = (),
    *,
    cpus: int,
    runtime: str = "",
    user: int = GUEST_UIDS[0],
) -> dict[str, Any]:
    """Return the body of the engine's create call for one unit: every flag of the sandbox is here and nowhere else.

    `volumes` are the folders that the image declares as such (`volumes_of`); `runtime` is the OCI runtime to ask for,
    "" for the engine's default; `user` is one of GUEST_UIDS.
    """
    limits = request.limits
    memory, pids = limits.memory_bytes, limits.pids
    if is_gvisor(runtime):
        memory, pids = memory + GVISOR_MEMORY_BYTES, 2 * pids + GVISOR_PIDS
    config: dict[str, Any] = {
        "Image": request.image,
        "WorkingDir": "/job",
        "User": f"{user}:{GUEST_GID}",
        # void: an engine whose default runtime is a vendor's gives an image that asks for all GPUs none.
        "Env": [f"{name}={value}" for name, value in ({"USER": GUEST_NAME} | dict(env)).items()]
        + ["NVIDIA_VISIBLE_DEVICES=void", "AMD_VISIBLE_DEVICES=void"],
        "Labels": _labels(request, user),
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
            "SecurityOpt": ["no-new-privileges", f"seccomp={seccomp_profile(numa=bool(request.gpus))}"],
            "IpcMode": "private",
            "CgroupnsMode": "private",
            "PidsLimit": pids,
            "Memory": memory,
            "MemorySwap": memory,
            "NanoCpus": cpus * 10**9,
            "ShmSize": shm_bytes(request),
            "Ulimits": _ulimits(request),
            "Tmpfs": _tmpfs(request, volumes),
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
        config["HostConfig"] |= _gpus(request.gpus)
    return config


def home_of(request: RunRequest) -> dict[str, str]:
    """Return the variables of a guest's environment that name folders it can write to, where nobody else sets them."""
    return dict(CACHES) if request.gpus else {"HOME": GUEST_HOME}


def scratch_bytes(request: RunRequest) -> int:
    """Return the size of the scratch folder of a job with GPUs, 0 without."""
    return min(SCRATCH_BYTES, request.limits.memory_bytes // 2) if request.gpus else 0


def shm_bytes(request: RunRequest) -> int:
    """Return how much memory the processes of a job may share."""
    return min(GPU_SHM_BYTES, request.limits.memory_bytes // 2) if request.gpus else SHM_BYTES


def _tmpfs(request: RunRequest, volumes: Iterable[str]) -> dict[str, str]:
    """Return the folders of a container that are memory of its own: a VOLUME of the image would else be a writable
    folder on the host's disk without a cap."""
    options = f"rw,noexec,nosuid,nodev,size={request.limits.tmp_bytes},mode=1777"
    found = dict.fromkeys(("/tmp", *volumes), options)
    if request.gpus:
        found[SCRATCH] = f"rw,exec,nosuid,nodev,size={scratch_bytes(request)},mode=1777"
    return found


def _labels(request: RunRequest, user: int) -> dict[str, str]:
    """Return every label of ours: a container has its image's too, where it is not given its own."""
    return {
        LABEL: request.unit,
        JANITOR_LABEL: "0",
        USER_LABEL: str(user),
        GPUS_LABEL: ",".join(gpu.uuid for gpu in request.gpus),
    }


def _gpus(gpus: Sequence[Device]) -> dict[str, Any]:
    """Return what a container asks for to get GPUs, and to be one of those who may open them."""
    asked: dict[str, Any] = {"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": [gpu.cdi for gpu in gpus]}]}
    groups = sorted({group for gpu in gpus for group in gpu.groups})
    return asked | ({"GroupAdd": [str(group) for group in groups]} if groups else {})


def free_user(labels: Iterable[Mapping[str, str]], start: int) -> int:
    """Return a user whom no container of an engine is, by their `labels`: the first from the place `start` on.

    Workers that share an engine begin at places of their own, so that two that ask at once hardly choose the same.
    """
    taken = {each.get(USER_LABEL) for each in labels}
    places = [GUEST_UIDS[(start + place) % len(GUEST_UIDS)] for place in range(len(GUEST_UIDS))]
    return next((user for user in places if str(user) not in taken), places[0])


def janitor_config(image: str, folder: Path, unit: str) -> dict[str, Any]:
    """Return the body of the create call for the janitor: root of the host with three capabilities and one folder.

    It is the only program of ours in a container, and the only one in the host's user namespace: a remapped root could
    not give a file to the worker.
    """
    return _janitor(image, _bind(folder, "/folder", read_only=False), unit, (), ["CHOWN", "DAC_OVERRIDE", "FOWNER"])


def looker_config(image: str, folder: Path, unit: str, container: str, mapped: str) -> dict[str, Any]:
    """Return the same for the janitor that measures what a running container takes: it sees the folder and the host's
    processes, and only reads. `mapped` is the right by which it follows the links of files that are mapped."""
    rights = ["DAC_READ_SEARCH", "SYS_PTRACE", mapped]
    config = _janitor(image, _bind(folder, "/folder", read_only=True), unit, ("look", container), rights)
    # An engine's AppArmor profile keeps it from looking into gVisor's processes, which have none.
    config["HostConfig"] |= {"PidMode": "host"}
    config["HostConfig"]["SecurityOpt"].append("apparmor=unconfined")
    return config


def gpu_trial_config(image: str, gpu: Device, unit: str, runtime: str = "") -> dict[str, Any]:
    """Return the same for our program that opens a GPU's nodes: as a job's user and in the user namespace that a job
    has."""
    config = _janitor(image, None, unit, ("nodes", gpu.nodes), ())
    host = config["HostConfig"]
    del host["UsernsMode"]
    # The hooks that give a GPU run within its limits, and NVIDIA's have more threads the more cores a machine has.
    host |= {"PidsLimit": SandboxLimits.pids, "LogConfig": {"Type": "local"}, **_gpus((gpu,))}
    if runtime:
        host["Runtime"] = runtime
    return config | {"User": f"{GUEST_UIDS[-1]}:{GUEST_GID}"}


def _janitor(
    image: str, folder: Mapping[str, Any] | None, unit: str, words: Sequence[str], rights: Sequence[str]
) -> dict[str, Any]:
    return {
        "Image": image,
        "Cmd": [JANITOR_PROGRAM, *words],
        "WorkingDir": "/folder",
        "User": "0:0",
        "Labels": {LABEL: unit, JANITOR_LABEL: "1"},
        "NetworkDisabled": True,
        "HostConfig": {
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "Privileged": False,
            "CapDrop": ["ALL"],
            "CapAdd": list(rights),
            "SecurityOpt": ["no-new-privileges", f"seccomp={seccomp_profile()}"],
            "UsernsMode": "host",
            "IpcMode": "private",
            "PidsLimit": 16,
            "Memory": 64 << 20,
            "Mounts": [] if folder is None else [folder],
            "LogConfig": {"Type": "none"},
            "RestartPolicy": {"Name": "no"},
        },
    }


@cache
def seccomp_profile(*, numa: bool = False) -> str:
    """Return the system calls that a container may make, as the engine takes them: everything else is refused.

    The list is ours, so that an engine's age and settings decide nothing. Source: seccomp.json; `numa` adds NUMA_CALLS.
    """
    profile = json.loads((Path(__file__).parent / "seccomp.json").read_text(encoding="utf-8"))
    if numa:
        profile["syscalls"].append({"names": list(NUMA_CALLS), "action": "SCMP_ACT_ALLOW"})
    return json.dumps(profile, separators=(",", ":"))


def _ulimit(name: str, value: int) -> dict[str, Any]:
    return {"Name": name, "Soft": value, "Hard": value}


def _ulimits(request: RunRequest) -> list[dict[str, Any]]:
    limits = request.limits
    return [
        _ulimit("nofile", GPU_FILES if request.gpus else FILES),
        # No core file, and unlike 0 none to a program of the host that collects them either: core(5).
        _ulimit("core", 1),
        _ulimit("fsize", max(limits.out_bytes, limits.tmp_bytes, scratch_bytes(request)) + FILE_SLACK_BYTES),
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
