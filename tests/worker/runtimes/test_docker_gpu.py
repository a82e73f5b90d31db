"""GPUs in containers on an engine that injects devices: what a job gets, and whose fault it is where it gets none.

Needs the service `gpu` of make services-up, and its played driver.
"""

from __future__ import annotations

import copy
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.kit.played_gpu import HOST, INSIDE, PlayedMachine, card, played_machine
from tests.kit.running import wait
from tests.worker.runtimes.engines import NUMPY
from worker.runtimes.base import Level, OutputRule, RunRequest, RunResult, RunStatus, SandboxLimits
from worker.runtimes.docker import DockerRuntime
from worker.runtimes.docker_images import ImageRules

pytestmark = [pytest.mark.net]

RUNTIME = DockerRuntime(HOST, images=ImageRules(registries=(NUMPY.partition("/")[0],), reserve_bytes=0))


@pytest.fixture
def machine() -> Iterator[PlayedMachine]:
    with played_machine(card(), card()) as made:
        yield made


def request(folder: Path, script: str, *uuids: str) -> RunRequest:
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
        limits=SandboxLimits(wall_seconds=60, memory_bytes=64 << 20, out_bytes=1 << 20, tmp_bytes=1 << 20, pids=32),
        image=NUMPY,
        outputs=(OutputRule("/out", required=False),),
        gpus=uuids,
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
    assert RUNTIME.try_gpu(first) == ""
    machine.publish(broken(machine.spec()))
    result = run(tmp_path, "true", first)
    assert result.status is RunStatus.GPU_REFUSED and "gives a container no GPU" in result.detail, result
    assert RUNTIME.try_gpu(first)
    assert run(tmp_path, "true").status is RunStatus.OK
    machine.publish()
    assert RUNTIME.try_gpu(first) == "" and run(tmp_path, "true", first).status is RunStatus.OK


def test_run__program_that_the_image_lacks__is_the_jobs_fault_with_a_gpu_too(
    machine: PlayedMachine, tmp_path: Path
) -> None:
    asked = request(tmp_path, "true", machine.cards[0].uuid)
    object.__setattr__(asked, "command", ("/nothing/here",))
    result = RUNTIME.run(asked, threading.Event())
    assert (result.status, result.exit_code) == (RunStatus.EXIT, 127)


def test_try_gpu__node_that_a_jobs_user_cannot_open__says_so(machine: PlayedMachine) -> None:
    spec = machine.spec()
    spec["devices"][0]["containerEdits"]["deviceNodes"][0]["fileMode"] = 0o660
    machine.publish(spec)
    said = RUNTIME.try_gpu(machine.cards[0].uuid)
    assert said == "a job's user cannot open /dev/nvidia0 (Permission denied)"
    assert RUNTIME.try_gpu(machine.cards[1].uuid) == ""


def test_try_gpu__device_without_a_node__says_so(machine: PlayedMachine) -> None:
    spec = machine.spec()
    spec["devices"][0]["containerEdits"] = {"env": ["NOTHING=1"]}
    machine.publish(spec)
    assert "has no /dev/nvidiaN in it" in RUNTIME.try_gpu(machine.cards[0].uuid)


def test_run__gpu_that_a_killed_workers_container_has__no_second_container(
    machine: PlayedMachine, tmp_path: Path
) -> None:
    first, second = (one.uuid for one in machine.cards)
    left, stop = request(tmp_path, f"until [ -e {INSIDE}/go ]; do sleep 0.1; done", first), threading.Event()
    with ThreadPoolExecutor() as threads:
        running = threads.submit(RUNTIME.run, left, stop)
        try:
            wait(lambda: "has" in RUNTIME.try_gpu(first), "the container runs", 60)
            result = run(tmp_path, "true", first)
            assert result.status is RunStatus.GPU_REFUSED and left.unit in result.detail, result
            assert run(tmp_path, "true", second).status is RunStatus.OK
        finally:
            (machine.folder / "go").touch()
        assert running.result().status is RunStatus.OK
    assert run(tmp_path, "true", first).status is RunStatus.OK


def test_capabilities__engine_with_cdi__passes_and_asks_for_a_trial(machine: PlayedMachine) -> None:
    rows = {row.name: row for row in RUNTIME.capabilities(31337, gpus=[machine.cards[0].uuid])}
    assert rows["GPU by CDI"].level is Level.PASS and "hearth worker selftest" in rows["GPU by CDI"].detail
