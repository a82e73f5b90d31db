"""What a container cannot do to this disk: the tricks that no list of files shows, on a real engine and real mounts."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hearth.base.files import delete_tree, free_bytes
from hearth.protocol.types import NodeId, Outcome
from tests.kit import build
from tests.kit.disks import MIB, need_mounts, small_disk
from tests.worker.attempt.jobs import KEY, Jobs
from tests.worker.attempt.test_executor import wait
from tests.worker.runtimes.engines import NUMPY as IMAGE
from tests.worker.runtimes.engines import rules, runtime_of
from worker import volumes
from worker.attempt.attempt import Means
from worker.attempt.executor import Executor
from worker.attempt.folder import folders_in
from worker.attempt.task import Bounds, Task
from worker.disk import Disk
from worker.journal import AttemptJournal, Phase
from worker.runtimes import docker_request
from worker.runtimes.base import OutputRule, RunRequest, RunResult, RunStatus, SandboxLimits, used_bytes
from worker.runtimes.docker import DockerRuntime
from worker.runtimes.docker_janitor import Looker, Unreclaimed

pytestmark = [pytest.mark.docker, pytest.mark.slow]

CAP = 1024
# Blocks beyond the end of a file, whose size stays 0: neither a file's size nor RLIMIT_FSIZE says so.
PREALLOCATE = """
import ctypes, os, time
fd = os.open("/out/hidden", os.O_CREAT | os.O_RDWR)
size = ctypes.c_int64({size})
assert ctypes.CDLL(None).fallocate(fd, 1, ctypes.c_int64(0), size) == 0
print(os.fstat(fd).st_size, flush=True)
time.sleep({seconds})
"""
# Files that are open and have no name: no list of files shows them.
UNNAMED = """
import os, time
held = []
for _ in range({size} >> 22):
    held.append(os.open("/out/hidden", os.O_CREAT | os.O_RDWR))
    os.unlink("/out/hidden")
    os.write(held[-1], bytes(1 << 22))
print(os.listdir("/out"), flush=True)
time.sleep({seconds})
"""


@pytest.fixture(scope="module")
def runtime() -> DockerRuntime:
    return runtime_of(rules())


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow every call: our list refuses the first trick before a disk sees it, and each wall stands by itself."""
    monkeypatch.setattr(docker_request, "seccomp_profile", lambda **_: "unconfined")


@pytest.fixture(scope="module")
def volume(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A volume of 256 MiB, as root makes it for a worker."""
    need_mounts()
    home = tmp_path_factory.mktemp("home")
    (made,) = volumes.make(home, 1, 256 * MIB, "root")
    yield made.path
    volumes.remove(home)


def run(runtime: DockerRuntime, folder: Path, script: str, volume: Path | None, cap: int = CAP) -> RunResult:
    out = (volume or folder) / "out"
    delete_tree(out)
    for path in (folder / "in", folder / "job", out):
        path.mkdir(parents=True, mode=0o700)
    request = RunRequest(
        unit=f"test-{uuid.uuid4().hex[:12]}",
        command=("python3", "-c", script),
        job_dir=folder / "job",
        in_dir=folder / "in",
        out_dir=out,
        volume=volume,
        limits=SandboxLimits(wall_seconds=60, memory_bytes=256 * MIB, out_bytes=cap, tmp_bytes=8 * MIB, pids=32),
        image=IMAGE,
        outputs=(OutputRule("/out", required=False),),
    )
    return runtime.run(request, threading.Event())


@pytest.mark.parametrize("trick", [PREALLOCATE, UNNAMED], ids=["preallocated", "without a name"])
def test_run__room_that_no_list_shows__is_counted_and_ends_the_container(
    runtime: DockerRuntime, volume: Path, tmp_path: Path, trick: str
) -> None:
    """What a cheat gains: nothing. A cap of 1,024 bytes is no way to the provider's disk."""
    home, empty = free_bytes(tmp_path), used_bytes(volume)
    result = run(runtime, tmp_path, trick.format(size=160 * MIB, seconds=600), volume)
    assert result.status is RunStatus.OUTPUT_OVER_CAP, (result, result.stderr)
    assert "bytes of disk" in result.detail and str(CAP) in result.detail
    delete_tree(volume / "out")
    assert used_bytes(volume) <= empty + MIB
    assert abs(home - free_bytes(tmp_path)) < 64 * MIB  # others use this disk too


@pytest.mark.parametrize("trick", [PREALLOCATE, UNNAMED], ids=["preallocated", "without a name"])
def test_run__more_than_the_volume_has__is_no_trouble_of_the_disk(
    runtime: DockerRuntime, volume: Path, tmp_path: Path, trick: str
) -> None:
    """The volume ends it by itself, also where the watcher would let it: its cap is never reached."""
    result = run(runtime, tmp_path, trick.format(size=2 << 30, seconds=0), volume, cap=4 << 30)
    assert result.status is RunStatus.EXIT
    assert b"Error" in result.stderr


def test_run__preallocated_without_a_volume__is_counted_by_blocks(runtime: DockerRuntime, tmp_path: Path) -> None:
    result = run(runtime, tmp_path, PREALLOCATE.format(size=160 * MIB, seconds=600), None)
    assert result.status is RunStatus.OUTPUT_OVER_CAP
    assert "bytes of disk" in result.detail


def test_run__unnamed_without_a_volume__is_counted_where_the_disk_lacks_more_than_names_show(
    runtime: DockerRuntime, tmp_path: Path
) -> None:
    result = run(runtime, tmp_path, UNNAMED.format(size=160 * MIB, seconds=600), None)
    assert result.status is RunStatus.OUTPUT_OVER_CAP, (result, result.stderr)
    assert "bytes of disk" in result.detail


def test_run__engine_that_starts_no_janitor__is_asked_once_and_the_run_goes_on(
    runtime: DockerRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control: without the look nothing is seen. Nobody pays for an engine's trouble, nor is it asked at every poll."""
    asked: list[Looker] = []

    def start(looker: Looker) -> None:
        asked.append(looker)
        raise Unreclaimed("no janitor")

    monkeypatch.setattr(Looker, "start", start)
    result = run(runtime, tmp_path, UNNAMED.format(size=160 * MIB, seconds=2), None)
    assert (result.status, result.stdout, len(asked)) == (RunStatus.OK, b"[]\n", 1)


def test_guard__container_fills_the_disk_by_a_file_without_a_name__is_over_its_cap(
    runtime: DockerRuntime, tmp_path: Path
) -> None:
    """What a cheat gains: nothing. Without volumes the disk of the worker is full for a moment, its journals are
    written all the same, and the room comes back with the container's end, which is a result: an attempt that was
    stopped as if the machine had failed would be given up in the end, for a part of the stake."""
    jobs = Jobs(tmp_path)
    everything = UNNAMED.replace("range({size} >> 22)", "range(1000)").replace(
        "os.write(held[-1], bytes(1 << 22))", "put(held[-1])"
    )
    put = "def put(fd):\n    try: os.write(fd, bytes(1 << 22))\n    except OSError: time.sleep(600)\n"
    script = f"import os, time\n{put}{everything.format(seconds=600)}"
    resources = build.spec().resources.model_copy(update={"memory_mib": 256})
    spec = jobs.spec("python3", "-c", script, runtime="docker", image=IMAGE, module=None, resources=resources)
    with small_disk(tmp_path / "home", 96 * MIB) as home:
        disk = Disk(home, 48 * MIB)
        assert disk.spare.hold()
        journal = AttemptJournal(home / "work.db", disk.spare)
        means = Means(
            journal=journal,
            store=jobs.store,
            folders=folders_in(home),
            runtimes={"docker": runtime},
            node=NodeId(3),
            label=f"disk-{uuid.uuid4().hex[:8]}-",
            bounds=Bounds(),
            keep_seconds=60,
            stores_here=False,
        )
        executor = Executor(means, disk=disk)
        executor.start(Task(KEY, jobs.terms(spec), 60, 1.0))
        wait(lambda: not executor.active())
        entry = journal.entry(KEY)
        assert entry is not None and (entry.phase, entry.outcome) == (Phase.DONE, Outcome.EXIT), entry
        assert "the cap of" in entry.detail and executor.starved == 0
        assert not disk.short
        journal.close()
