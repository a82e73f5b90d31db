"""Docker engines: the one that is there, or one of our own with gVisor, and one with user namespaces."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
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
from tools.services.golang import GoProgram

# overlay2 is quick; vfs copies whole images but works on any file system.
STORAGE_DRIVERS = ("overlay2", "vfs")
SYSTEM_SOCKET = "/var/run/docker.sock"
RUNSC = "runsc"
GVISOR = GoProgram("gvisor", "gvisor.dev/gvisor/runsc", RUNSC)


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


def _gvisor(built: Callable[[], Path]) -> dict[str, object]:
    """Return what registers gVisor with an engine, nothing where its program cannot be built: its tests say so then.

    No container of ours has a network, and gVisor's own stack is switched off with it. Its platform is systrap, which
    needs no /dev/kvm.
    """
    try:
        program = built()
    except ServiceError as failure:
        log(f"gvisor: unavailable: {failure}")
        return {}
    return {"runtimes": {RUNSC: {"path": str(program), "runtimeArgs": ["--network=none"]}}}


def state_folder(name: str) -> Path:
    """Return the folder of an engine's own state; the one with user namespaces must reach its own as nobody."""
    here = instance_folder()
    if name == "userns":
        # Named by the whole path: another cache folder is another instance of the same clone.
        return Path("/var/lib/hearth-services") / hashlib.sha256(str(here).encode()).hexdigest()[:8]
    return here / name


def _start(
    name: str, dockerd: str, driver: str, registry: str, config: dict[str, object], env: Mapping[str, str]
) -> tuple[Process, str]:
    folder = state_folder(name)
    folder.mkdir(parents=True, exist_ok=True)
    socket_path = instance_folder() / f"{name}.sock"
    # A killed engine leaves its pid file, and the next one would refuse to start beside it.
    (folder / "pid").unlink(missing_ok=True)
    (folder / "daemon.json").write_text(json.dumps(config) + "\n")
    host = f"unix://{socket_path}"
    process = spawn(name, command(dockerd, folder, host, driver, registry), env)
    wait_for(name, process, lambda: answers(host), 60.0)
    return process, host


def command(dockerd: str, folder: Path, host: str, driver: str, registry: str) -> list[str]:
    """Return what starts an engine with its state below `folder`, which holds its daemon.json, and no network."""
    return [
        dockerd,
        f"--config-file={folder / 'daemon.json'}",
        f"--storage-driver={driver}",
        f"--data-root={folder / driver}",
        f"--exec-root={folder / 'exec'}",
        f"--pidfile={folder / 'pid'}",
        f"--host={host}",
        f"--insecure-registry={registry}",
        "--bridge=none",
        "--iptables=false",
        "--ip6tables=false",
    ]


def start_own(
    name: str, registry: str, config: dict[str, object], *, programs: Path | None = None
) -> tuple[Process, str]:
    """Start an engine of our own, with the first storage driver that works; its programs are the system's, or those of
    packages unpacked below `programs`."""
    if os.geteuid() != 0:
        raise Unavailable(f"{name}: no engine answers, and only root can start one")
    if programs is None:
        dockerd, env = program("dockerd", "docker.io"), {}
    else:
        dockerd, env = str(programs / "usr/sbin/dockerd"), {"PATH": f"{programs}/usr/bin:{os.environ['PATH']}"}
    drivers = [chosen] if (chosen := os.environ.get("HEARTH_DOCKER_STORAGE")) else list(STORAGE_DRIVERS)
    failures = []
    for driver in drivers:
        try:
            process, host = _start(name, dockerd, driver, registry, config, env)
        except ServiceError as failure:
            failures.append(f"{driver}: {failure}")
            continue
        log(f"{name}: engine {process.pid} with storage driver {driver}")
        return process, host
    raise ServiceError(f"{name}: no storage driver works\n" + "\n".join(failures))


def start(registry: str, gvisor: Callable[[], Path]) -> Service:
    """Return a running engine that may pull from the loopback `registry` (host:port), with gVisor where that is built.

    Raises Unavailable where none runs and we cannot start one: no root, no program.
    """
    found = find()
    if found is not None:
        log(f"docker: using the engine at {found.env['DOCKER_HOST']}")
        return found
    process, host = start_own("docker", registry, _gvisor(gvisor))
    return Service("docker", process, _environment(host))


def start_userns(registry: str) -> Service:
    """Start a second engine, whose containers have user namespaces: `userns-remap` holds for an engine as a whole.

    Docker makes the user `dockremap` for it. Raises Unavailable as `start`.
    """
    process, host = start_own("userns", registry, {"userns-remap": "default"})
    return Service("userns", process, {"HEARTH_USERNS_DOCKER_HOST": host})


def clean_up() -> None:
    """Unmount what stopped engines may have left mounted, and remove their folders."""
    for name in ("docker", "userns", "gpu"):
        remove(state_folder(name))


def remove(folder: Path) -> None:
    """Unmount what a stopped engine may have left mounted below its folder, and remove that."""
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for point in sorted((m for m in mounts if m.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "--lazy", point], check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)
