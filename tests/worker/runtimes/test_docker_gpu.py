"""GPUs in containers on an engine that injects devices: what a job gets, and whose fault it is where it gets none.

Needs the service `gpu` of make services-up, and its played driver.
"""

from __future__ import annotations

import copy
import json
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kit.played_gpu import HOST, INSIDE, PlayedMachine, card, played_machine
from tests.kit.running import wait
from tests.worker.runtimes.engines import NUMPY, published
from worker.gpu.nvidia import device_of
from worker.runtimes.base import Level, OutputRule, RunRequest, RunResult, RunStatus, SandboxLimits
from worker.runtimes.docker import DockerRuntime
from worker.runtimes.docker_images import ImageRules

pytestmark = [pytest.mark.net]

RUNTIME = DockerRuntime(HOST, images=ImageRules(registries=(NUMPY.partition("/")[0],), reserve_bytes=0))


@pytest.fixture
def machine() -> Iterator[PlayedMachine]:
    with played_machine(card(), card()) as made:
        yield made


def request(folder: Path, script: str, *uuids: str, memory: int = 64 << 20) -> RunRequest:
    """Return the run of a shell script with GPUs."""
    here = folder / uuid.uuid4().hex[:8]
    for name in ("in", "job", "out"):
        (here / name).mkdir(parents=True)
    return RunRequest(
        unit=f"gpu-{uuid.uuid4().hex[:12]}",
        command=("sh", "-c", script),
        job_dir=here / "job",
        in_dir=here / "in",
        out_dir=here / "out",
        limits=SandboxLimits(wall_seconds=60, memory_bytes=memory, out_bytes=1 << 20, tmp_bytes=32 << 20),
        image=NUMPY,
        outputs=(OutputRule("/out", required=False),),
        gpus=tuple(device_of(uuid) for uuid in uuids),
    )


def run(folder: Path, script: str, *uuids: str) -> RunResult:
    return RUNTIME.run(request(folder, script, *uuids), threading.Event())


def hooked(spec: dict[str, Any], path: str) -> dict[str, Any]:
    """Return a spec with a hook."""
    changed = copy.deepcopy(spec)
    changed["containerEdits"]["hooks"] = [{"hookName": "createContainer", "path": path, "args": [path]}]
    return changed


def moved(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a spec whose library is not there any more, as after an upgrade of the driver."""
    changed = copy.deepcopy(spec)
    changed["containerEdits"]["mounts"][0]["hostPath"] = "/nonexistent/libnvidia-ml.so.570"
    return changed


def test_run__one_of_two_gpus__is_all_that_the_job_sees(machine: PlayedMachine, tmp_path: Path) -> None:
    for number, one in enumerate(machine.cards):
        result = run(tmp_path, "nvidia-smi; ls /dev", one.uuid)
        assert result.status is RunStatus.OK, result
        told = result.stdout.decode()
        assert told.count("GPU ") == 1 and f"UUID: {one.uuid})" in told and f"/dev/nvidia{number} opens" in told
        assert f"nvidia{1 - number}" not in told
    assert b"nvidia" not in run(tmp_path, "ls /dev").stdout


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(lambda spec: hooked(spec, "/nonexistent/nvidia-ctk"), id="hook that is missing"),
        pytest.param(lambda spec: hooked(spec, "/bin/false"), id="hook that fails"),
        pytest.param(moved, id="library of a former driver"),
        pytest.param(lambda spec: {**spec, "devices": spec["devices"][1:]}, id="no such device"),
        pytest.param(lambda spec: "{", id="no JSON"),
    ],
)
def test_run__spec_that_is_broken__is_the_machines_fault_and_seen_by_the_trial_until_it_is_mended(
    machine: PlayedMachine, tmp_path: Path, broken: Any
) -> None:
    first = machine.cards[0].uuid
    assert RUNTIME.try_gpu(device_of(first)) == ""
    machine.publish(broken(machine.spec()))
    result = run(tmp_path, "true", first)
    assert result.status is RunStatus.GPU_REFUSED and "gives a container no GPU" in result.detail, result
    assert RUNTIME.try_gpu(device_of(first))
    assert run(tmp_path, "true").status is RunStatus.OK
    machine.publish()
    assert RUNTIME.try_gpu(device_of(first)) == "" and run(tmp_path, "true", first).status is RunStatus.OK


def test_run__hook_that_says_what_an_engine_says_of_a_program__is_the_machines_fault(
    machine: PlayedMachine, tmp_path: Path
) -> None:
    hook = machine.folder / "hook"
    hook.write_text("#!/bin/sh\necho 'exec: \"ldconfig\": executable file not found in $PATH' >&2\nexit 1\n")
    hook.chmod(0o755)
    machine.publish(hooked(machine.spec(), str(hook)))
    result = run(tmp_path, "true", machine.cards[0].uuid)
    assert result.status is RunStatus.GPU_REFUSED, result


def test_run__too_little_memory_for_what_gives_a_gpu__is_refused_before_the_engine_is_asked(
    machine: PlayedMachine, tmp_path: Path
) -> None:
    """What a cheat gains: nothing. The hooks were killed in the job's memory, and the GPU rested for it."""
    asked = request(tmp_path, "true", machine.cards[0].uuid, memory=(64 << 20) - 1)
    result = RUNTIME.run(asked, threading.Event())
    assert result.status is RunStatus.BAD_INPUT and "a container with GPUs has 64MiB at least" in result.detail, result


def test_gpu_refusals__engine_that_does_not_answer__says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from requests.exceptions import ReadTimeout

    def late() -> None:
        raise ReadTimeout

    monkeypatch.setattr(RUNTIME, "_connect", late)
    assert RUNTIME.gpu_refusals([device_of("GPU-1")]) == ""


def test_run__program_that_the_image_lacks__is_the_jobs_fault_with_a_gpu_too(
    machine: PlayedMachine, tmp_path: Path
) -> None:
    asked = replace(request(tmp_path, "true", machine.cards[0].uuid), command=("/nothing/here",))
    result = RUNTIME.run(asked, threading.Event())
    assert (result.status, result.exit_code) == (RunStatus.EXIT, 127)


def test_try_gpu__node_that_a_jobs_user_cannot_open__says_so(machine: PlayedMachine) -> None:
    spec = machine.spec()
    spec["devices"][0]["containerEdits"]["deviceNodes"][0]["fileMode"] = 0o660
    machine.publish(spec)
    said = RUNTIME.try_gpu(device_of(machine.cards[0].uuid))
    assert said == "a job's user cannot open /dev/nvidia0 (Permission denied)"
    assert RUNTIME.try_gpu(device_of(machine.cards[1].uuid)) == ""


def test_try_gpu__device_without_a_node__says_so(machine: PlayedMachine) -> None:
    spec = machine.spec()
    spec["devices"][0]["containerEdits"] = {"env": ["NOTHING=1"]}
    machine.publish(spec)
    assert "has no /dev/nvidiaN in it" in RUNTIME.try_gpu(device_of(machine.cards[0].uuid))


def test_run__gpu_that_a_killed_workers_container_has__no_second_container(
    machine: PlayedMachine, tmp_path: Path
) -> None:
    first, second = (one.uuid for one in machine.cards)
    left, stop = request(tmp_path, f"until [ -e {INSIDE}/go ]; do sleep 0.1; done", first), threading.Event()
    with ThreadPoolExecutor() as threads:
        running = threads.submit(RUNTIME.run, left, stop)
        try:
            wait(lambda: "has" in RUNTIME.try_gpu(device_of(first)), "the container runs", 60)
            result = run(tmp_path, "true", first)
            assert result.status is RunStatus.GPU_REFUSED and left.unit in result.detail, result
            assert run(tmp_path, "true", second).status is RunStatus.OK
        finally:
            (machine.folder / "go").touch()
        assert running.result().status is RunStatus.OK
    assert run(tmp_path, "true", first).status is RunStatus.OK


def test_capabilities__engine_with_cdi__passes_and_asks_for_a_trial(machine: PlayedMachine) -> None:
    rows = {row.name: row for row in RUNTIME.capabilities(31337, gpus=[device_of(machine.cards[0].uuid)])}
    assert rows["GPU by CDI"].level is Level.PASS and "hearth worker selftest" in rows["GPU by CDI"].detail


FRAMEWORK = """
import ctypes, glob, json, multiprocessing, os, shutil, subprocess, tempfile

def can(do):
    try:
        do()
    except (OSError, subprocess.SubprocessError) as error:
        return getattr(error, "strerror", None) or str(error)
    return "yes"

def load():
    # What a compiler writes at run time, and the framework loads.
    library = glob.glob("/usr/lib/python3/dist-packages/numpy/core/_multiarray_umath*.so")[0]
    place = os.path.join(os.environ.get("TRITON_CACHE_DIR", os.environ["HOME"]), "kernel.so")
    os.makedirs(os.path.dirname(place), exist_ok=True)
    shutil.copy(library, place)
    ctypes.CDLL(place)

def start():
    place = os.path.join(os.environ["HOME"], "program")
    shutil.copy("/bin/true", place)
    subprocess.run([place], check=True)

def share():
    with open("/dev/shm/tensor", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 256 << 20)

def cache():
    os.makedirs(os.path.join(os.environ.get("XDG_CACHE_HOME", os.environ["HOME"]), "hub"))

def fork():
    with multiprocessing.get_context("fork").Pool(4) as loader:
        assert sum(loader.map(len, ["x" * 1000] * 100)) == 100_000

def files():
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(4096)]
    for one in held:
        os.close(one)

def bind():
    # get_mempolicy, as libnuma asks it first.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(239, None, None, 0, None, 0) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

print(json.dumps({one.__name__: can(one) for one in (load, start, share, cache, fork, files, bind)}))
"""
REFUSED = {"start": "Permission denied", "files": "Too many open files", "share": "File too large"}
"""What a job without a GPU may not do, and how that shows; `load` and `bind` fail as well."""


@pytest.mark.parametrize("gpus", [1, 0], ids=["with a GPU", "without"])
def test_run__what_frameworks_do__works_with_a_gpu_and_stays_refused_without(
    machine: PlayedMachine, tmp_path: Path, gpus: int
) -> None:
    uuids = [one.uuid for one in machine.cards[:gpus]]
    asked = request(tmp_path, "python3 /job/framework.py", *uuids, memory=1 << 30)
    (asked.job_dir / "framework.py").write_text(FRAMEWORK)
    result = RUNTIME.run(asked, threading.Event())
    assert result.status is RunStatus.OK, (result, result.stderr)
    said = json.loads(result.stdout)
    if gpus:
        assert set(said.values()) == {"yes"}, said
        return
    assert {name for name, word in said.items() if word == "yes"} == {"cache", "fork"}, said
    assert {name: said[name] for name in REFUSED} == REFUSED
    assert "failed to map segment" in said["load"] and said["bind"] == "Operation not permitted"


def test_run__scratch_of_a_job_with_a_gpu__is_the_jobs_own_memory_and_gone_afterwards(
    machine: PlayedMachine, tmp_path: Path
) -> None:
    """What a cheat gains: nothing. Half of its memory at most, and what is beyond the whole of it ends it."""
    card = machine.cards[0].uuid
    fill = "dd if=/dev/zero of=/scratch/x bs=1M count=40 2>&1 | tail -1; df -m /scratch | tail -1; ls /scratch"
    first = run(tmp_path, fill, card)
    assert first.status is RunStatus.OK and b" 32 " in first.stdout, first
    assert b"x" not in run(tmp_path, "ls /scratch", card).stdout
    both = "head -c 31M /dev/zero > /scratch/x; head -c 31M /dev/zero > /dev/shm/y; tail /dev/zero"
    assert run(tmp_path, both, card).status is RunStatus.OOM


def test_run__image_whose_scratch_leads_elsewhere__refused_with_a_gpu(machine: PlayedMachine, tmp_path: Path) -> None:
    import docker

    with docker.APIClient(base_url=HOST, version="auto") as api:
        image = published(api, [], "ln -s /out /scratch", NUMPY)
    for uuids, status in (((machine.cards[0].uuid,), RunStatus.IMAGE_MISSING), ((), RunStatus.OK)):
        asked = replace(request(tmp_path, "true", *uuids), image=image)
        assert RUNTIME.run(asked, threading.Event()).status is status


def test_run__mig_slice__is_asked_by_its_own_name(machine: PlayedMachine, tmp_path: Path) -> None:
    uuid = "MIG-00000000-1111-2222-3333-444444444444"
    machine.change(0, mig=1, slice=f"{uuid}:1g.5gb:{5 << 30}")
    machine.publish()
    try:
        assert RUNTIME.try_gpu(device_of(uuid)) == ""
        result = run(tmp_path, "nvidia-smi", uuid)
    finally:
        machine.change(0, mig=None, slice=None)
        machine.publish()
    assert result.status is RunStatus.OK and f"MIG 1g.5gb (UUID: {uuid})" in result.stdout.decode(), result
