"""A stranger takes a small disk beside another: containers on the real engine, without volumes (shared_disk.py)."""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.abuse import shared_disk
from tests.kit.disks import MIB, small_disk
from tests.kit.plain_user import PLAIN_UID, plain_home, run_plain
from tests.kit.require import require
from tests.worker.runtimes.engines import NUMPY, need, rules, runtime_of
from worker.runtimes import docker, docker_request
from worker.runtimes.base import OutputRule, RunRequest, SandboxLimits
from worker.runtimes.docker import DockerRuntime

pytestmark = [pytest.mark.docker, pytest.mark.slow]
ROOT = Path(__file__).parents[2]


# All that the kernel gives to one user; whoever comes after finds none.
WATCHES = """
import ctypes, time
libc = ctypes.CDLL(None, use_errno=True)
count = 0
while count < 20_000 and libc.inotify_init1(0) >= 0:
    count += 1
print(count, flush=True)
time.sleep(600)
"""


def watches(runtime: DockerRuntime, folder: Path, stop: threading.Event, heard: Callable[[], None]) -> int:
    """Return how many a container gets, which holds them until `stop`; `heard` is called once it has said so."""
    for name in ("in", "job", "out"):
        (folder / name).mkdir(parents=True, mode=0o700)
    request = RunRequest(
        unit=f"strangers-{uuid.uuid4().hex[:12]}",
        command=("python3", "-c", WATCHES),
        job_dir=folder / "job",
        in_dir=folder / "in",
        out_dir=folder / "out",
        limits=SandboxLimits(wall_seconds=60, memory_bytes=256 * MIB),
        image=NUMPY,
        outputs=(OutputRule("/out", required=False),),
    )
    return int(runtime.run(request, stop, lambda name, chunk: heard()).stdout)


@pytest.mark.parametrize("one_user", [False, True], ids=["as they are", "control"])
def test_run__stranger_takes_all_that_the_kernel_gives_a_user__leaves_others_theirs(
    one_user: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a cheat gains: nothing. Two guests of one user shared its inotify instances, message queues and timers."""
    need("runc")
    runtime = runtime_of(rules())
    if one_user:
        monkeypatch.setattr(docker, "free_user", lambda *_: docker_request.GUEST_UIDS[0])
    over, other, told = threading.Event(), threading.Event(), threading.Event()
    with ThreadPoolExecutor() as pool:
        first = pool.submit(watches, runtime, tmp_path / "first", over, told.set)
        try:
            assert told.wait(60)
            second = watches(runtime, tmp_path / "second", other, other.set)
        finally:
            over.set()
        assert first.result() > 0
    assert (second == 0) is one_user


def check(told: dict[str, object]) -> None:
    """See that the honest attempt came to its result, and the other one to its own, which costs the node nothing."""
    (phase, outcome, *_), (other_phase, other_outcome, _, why) = told["honest"], told["stranger"]  # type: ignore[misc]
    assert (phase, outcome) == ("done", "ok"), told
    # It may end by itself, for want of room, before anybody looks; then both are tried again, apart.
    assert (other_phase, other_outcome) == ("done", "exit"), told
    assert "cap" in why or "nobody can measure" in why or "exited with 1" in why, told
    assert told["starved"] == 0, told


@pytest.mark.parametrize("trick", ["open", "adrift"])
def test_guard__stranger_takes_the_disk_without_a_name__goes_alone(trick: str, tmp_path: Path) -> None:
    """What a cheat gains: nothing. The honest attempt had more by name, was stopped, and given up in the end."""
    need("runc")
    with small_disk(tmp_path / "home", shared_disk.MIB_OF_DISK * MIB) as home:
        check(shared_disk.run(home, trick))


def test_guard__stranger_takes_the_disk_of_a_plain_users_worker__goes_alone() -> None:
    """The same where the worker can see neither the guest's folders nor what its processes hold."""
    from docker import APIClient

    kind = need("runc")
    socket = Path((kind.host or "unix:///var/run/docker.sock").removeprefix("unix://"))
    require("docker", socket.is_socket(), f"the engine is not at a socket of this machine: {kind.host}")
    with APIClient(base_url=kind.host, version="auto") as api:
        engine = Path(api.info()["DockerRootDir"])
    with plain_home() as home, small_disk(home / "disk", shared_disk.MIB_OF_DISK * MIB) as disk:
        os.chown(disk, PLAIN_UID, PLAIN_UID)
        done = run_plain(
            ["-m", "tests.abuse.shared_disk", str(disk), "--runs", "1", "--trick", "mapped"],
            home=home,
            groups=(socket.stat().st_gid,),
            reads=(socket,),
            sees=(engine, disk),
            cwd=ROOT,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        told = json.loads(done.stdout.splitlines()[-1])
        assert told["user"] == PLAIN_UID
        check(told)
