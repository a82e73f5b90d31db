"""Folders, child processes and waiting, shared by every service."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fcntl import LOCK_EX, flock
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
STOP_SECONDS = 15.0


class ServiceError(Exception):
    """Say which service could not be had, and why."""


class Unavailable(ServiceError):
    """Say that this machine cannot have a service: no root, no package, no kernel support."""


def log(message: str) -> None:
    """Write progress to stderr; stdout is for `env`."""
    print(f"services: {message}", file=sys.stderr, flush=True)


def cache_folder() -> Path:
    """Return Hearth's cache folder outside the clone, created on demand."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "hearth"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def instance_folder() -> Path:
    """Return the folder of this clone's running services; a short name, because a unix socket's path is limited."""
    name = hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]
    folder = cache_folder() / "run" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path` (created when missing), so that two runs do not build or start twice."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        flock(handle, LOCK_EX)
        yield


def _started_at(pid: int) -> str | None:
    """Return the start time of a process in clock ticks, None where there is none or only its remains."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]


@dataclass(frozen=True)
class Process:
    """A child that outlives us: its id and start time, which together name it even after ids are reused."""

    pid: int
    started_at: str

    @property
    def alive(self) -> bool:
        return _started_at(self.pid) == self.started_at

    def stop(self) -> None:
        """Ask it to end, wait STOP_SECONDS, then kill it. Ending a process that is gone does nothing."""
        for number, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, 5.0)):
            if not self.alive:
                return
            os.kill(self.pid, number)
            until = time.monotonic() + seconds
            while self.alive and time.monotonic() < until:
                time.sleep(0.1)
        if self.alive:
            raise ServiceError(f"process {self.pid} does not end")


@dataclass(frozen=True)
class Service:
    """What is known about a started service: its process (None where we found it running) and its variables."""

    name: str
    process: Process | None
    env: Mapping[str, str]

    @property
    def alive(self) -> bool:
        return self.process is None or self.process.alive


def spawn(name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> Process:
    """Start `command` in a session of its own, its output in the instance folder's <name>.log."""
    log_path = instance_folder() / f"{name}.log"
    with log_path.open("wb") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(os.environ) | dict(env or {}),
            cwd=instance_folder(),
            start_new_session=True,
        )
    started_at = _started_at(child.pid)
    if started_at is None:
        raise ServiceError(f"{name} ended at once: {log_tail(name)}")
    return Process(child.pid, started_at)


def log_tail(name: str) -> str:
    """Return the last lines of a service's log."""
    path = instance_folder() / f"{name}.log"
    return "\n".join(path.read_text(errors="replace").splitlines()[-15:]) if path.exists() else "(no log)"


def wait_for(name: str, process: Process, ready: Callable[[], bool], seconds: float) -> None:
    """Wait until `ready()`; raises ServiceError with the log's tail where the process ends or time runs out."""
    until = time.monotonic() + seconds
    while not ready():
        if not process.alive:
            raise ServiceError(f"{name} ended: {log_tail(name)}")
        if time.monotonic() > until:
            process.stop()
            raise ServiceError(f"{name} was not ready within {seconds:.0f} s: {log_tail(name)}")
        time.sleep(0.1)


def free_port() -> int:
    """Return a loopback port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Tell whether something accepts connections on a loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def run(command: Sequence[str], *, what: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run a command to its end and return its output; raises ServiceError with the tail of what it printed."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=dict(os.environ) | dict(env or {}),
        cwd=cwd,
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-15:])
        raise ServiceError(f"{what} failed (exit {done.returncode}): {tail}")
    return done.stdout


def program(name: str, package: str) -> str:
    """Return the path of a system program, installing its Debian package where that is possible.

    Raises Unavailable where it is missing and we are not root on a machine with apt.
    """
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    found = shutil.which(name, path=search)
    if found is None:
        install(package, f"{name} is missing")
        found = shutil.which(name, path=search)
    if found is None:
        raise Unavailable(f"{name} is missing, and package {package} did not bring it")
    return found


def install(package: str, why: str) -> None:
    """Install one Debian package; raises Unavailable where we may not or cannot."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Unavailable(f"{why}; as root on Debian: apt-get install {package}")
    log(f"{why}: installing {package}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
    update_package_lists()
    run([*apt, "install", "-y", "--no-install-recommends", package], what=f"apt-get install {package}", env=quiet)


_lists_updated = False


def update_package_lists() -> None:
    """Refresh apt's lists once per run; a fresh machine has none."""
    global _lists_updated
    if not _lists_updated:
        run(["apt-get", "-qq", "update"], what="apt-get update")
        _lists_updated = True


def save(services: Sequence[Service]) -> None:
    """Write what runs to the instance folder, whole or not at all."""
    path = instance_folder() / "state.json"
    document = [
        {"name": s.name, "process": asdict(s.process) if s.process else None, "env": dict(s.env)} for s in services
    ]
    part = path.with_suffix(".part")
    part.write_text(json.dumps(document, indent=2) + "\n")
    part.replace(path)


def saved() -> list[Service]:
    """Read back what `save` wrote; empty where nothing was started."""
    path = instance_folder() / "state.json"
    if not path.exists():
        return []
    return [
        Service(entry["name"], Process(**entry["process"]) if entry["process"] else None, entry["env"])
        for entry in json.loads(path.read_text())
    ]
