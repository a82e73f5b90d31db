"""A Docker engine: the one that is there, or one of our own with its state in the cache folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import docker
from docker.errors import DockerException

from tools.services.base import (
    Process,
    Service,
    ServiceError,
    Unavailable,
    instance_folder,
    log,
    program,
    spawn,
    wait_for,
)

# overlay2 is quick; vfs copies whole images but works on any file system.
STORAGE_DRIVERS = ("overlay2", "vfs")
SYSTEM_SOCKET = "/var/run/docker.sock"
GVISOR = "runsc"


def answers(host: str) -> bool:
    """Tell whether a Docker engine answers at `host` (unix:///... or tcp://...)."""
    try:
        client = docker.DockerClient(base_url=host, timeout=5)
    except DockerException:
        return False
    try:
        return bool(client.ping())
    except (DockerException, OSError):
        return False
    finally:
        client.close()


def _environment(host: str) -> dict[str, str]:
    return {"DOCKER_HOST": host, "HEARTH_DOCKER_HOST": host}


def find() -> Service | None:
    """Return an engine that the user already runs, None where there is none."""
    named = os.environ.get("HEARTH_DOCKER_HOST") or os.environ.get("DOCKER_HOST")
    candidates = [named] if named else [f"unix://{SYSTEM_SOCKET}"] if Path(SYSTEM_SOCKET).exists() else []
    for host in candidates:
        if answers(host):
            return Service("docker", None, _environment(host))
    return None


def _daemon_config(folder: Path) -> Path:
    """Write the engine's configuration; gVisor is registered where its program is installed.

    No container of ours has a network, and gVisor's own stack is switched off with it.
    """
    document: dict[str, object] = {}
    gvisor = shutil.which(GVISOR)
    if gvisor is not None:
        document["runtimes"] = {GVISOR: {"path": gvisor, "runtimeArgs": ["--network=none"]}}
    path = folder / "daemon.json"
    path.write_text(json.dumps(document) + "\n")
    return path


def _start(dockerd: str, driver: str, registry: str) -> tuple[Process, str]:
    folder = instance_folder() / "docker"
    folder.mkdir(exist_ok=True)
    socket_path = instance_folder() / "docker.sock"
    # A killed engine leaves its pid file, and the next one would refuse to start beside it.
    (folder / "pid").unlink(missing_ok=True)
    host = f"unix://{socket_path}"
    process = spawn(
        "docker",
        [
            dockerd,
            f"--config-file={_daemon_config(folder)}",
            f"--storage-driver={driver}",
            f"--data-root={folder / driver}",
            f"--exec-root={folder / 'exec'}",
            f"--pidfile={folder / 'pid'}",
            f"--host={host}",
            f"--insecure-registry={registry}",
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
        ],
    )
    wait_for("docker", process, lambda: answers(host), 60.0)
    return process, host


def start(registry: str) -> Service:
    """Return a running engine that may pull from the loopback `registry` (host:port).

    Raises Unavailable where none runs and we cannot start one: no root, no program.
    """
    found = find()
    if found is not None:
        log(f"docker: using the engine at {found.env['DOCKER_HOST']}")
        return found
    if os.geteuid() != 0:
        raise Unavailable("docker: no engine answers, and only root can start one")
    dockerd = program("dockerd", "docker.io")
    drivers = [chosen] if (chosen := os.environ.get("HEARTH_DOCKER_STORAGE")) else list(STORAGE_DRIVERS)
    failures = []
    for driver in drivers:
        try:
            process, host = _start(dockerd, driver, registry)
        except ServiceError as failure:
            failures.append(f"{driver}: {failure}")
            continue
        log(f"docker: engine {process.pid} with storage driver {driver}")
        return Service("docker", process, _environment(host))
    raise ServiceError("docker: no storage driver works\n" + "\n".join(failures))


def clean_up() -> None:
    """Unmount what a stopped engine may have left mounted, so that its folder can be removed."""
    folder = str(instance_folder() / "docker")
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for point in sorted((m for m in mounts if m.startswith(folder)), reverse=True):
        subprocess.run(["umount", "--lazy", point], check=False, capture_output=True)
