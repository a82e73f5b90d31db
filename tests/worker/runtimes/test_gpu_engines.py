"""GPUs on engines that no service runs: one with user namespaces, and one that lists its devices (Docker 28)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hearth.protocol.types import LOCAL_CHAIN_ID
from tests.kit.engine import own_engine
from tests.kit.nvidia_ctk import generated, playable
from tests.kit.played_gpu import PROGRAMS, SPECS, PlayedMachine, becomes_dev, card, played_machine
from tests.kit.require import need_program
from tests.worker.runtimes.engines import REGISTRY, rules
from tests.worker.runtimes.test_docker_gpu import request
from tools.services.gpu import DOCKERD
from worker.gpu.nvidia import REFRESH, device_of
from worker.gpu.port import Device
from worker.runtimes.base import Check, Level, RunStatus
from worker.runtimes.docker import DockerRuntime
from worker.runtimes.profiles import GPU_ROW

pytestmark = [pytest.mark.net, pytest.mark.deep, pytest.mark.slow]

CDI = {"features": {"cdi": True}, "cdi-spec-dirs": [SPECS]}


@pytest.fixture(scope="module")
def machine() -> Iterator[PlayedMachine]:
    with played_machine(card(), card()) as made:
        yield made


@pytest.fixture(scope="module")
def remapped(machine: PlayedMachine) -> Iterator[DockerRuntime]:
    """An engine with user namespaces, on a machine whose /dev has the played nodes: runc takes these from there then.

    Its containerd is one of its own, as in a distribution: below the engine's exec root, of mode 0700, NVIDIA's hooks
    could not read what they are to do, since their root is nobody here.
    """
    folder = machine.folder / "containerd"
    folder.mkdir(mode=0o711)
    options = f"--config /dev/null --root {folder}/root --state {folder}/state --address {folder}/socket"
    lines = [*becomes_dev(machine.folder / "dev"), f"containerd {options} &"]
    with own_engine(
        REGISTRY,
        config=CDI | {"userns-remap": "default", "containerd": f"{folder}/socket"},
        dockerd=PROGRAMS / "usr/sbin/dockerd",
        programs=PROGRAMS,
        lines="\n".join(lines),
    ) as engine:
        yield DockerRuntime(engine.host, images=rules())


def test_run__engine_with_user_namespaces__gives_the_gpu_by_nvidias_hooks(
    machine: PlayedMachine, remapped: DockerRuntime, tmp_path: Path
) -> None:
    machine.publish(playable(machine, generated(machine)))
    uuid = machine.cards[1].uuid
    assert remapped.try_gpu(device_of(uuid)) == ""
    asked = request(tmp_path, "cat /proc/self/uid_map; nvidia-smi | tee /out/seen; mkdir -m 700 /out/own", uuid)
    result = remapped.run(asked, threading.Event())
    assert result.status is RunStatus.OK, (result, result.stderr)
    inside, outside, _ = (int(word) for word in result.stdout.decode().split(maxsplit=3)[:3])
    assert inside == 0 and outside > 0
    seen = (asked.out_dir / "seen").read_text()
    assert f"UUID: {uuid})" in seen and "/dev/nvidia1 opens" in seen, seen
    assert {each.stat().st_uid for each in asked.out_dir.iterdir()} == {os.getuid()}


@pytest.fixture(scope="module")
def listing(machine: PlayedMachine) -> Iterator[DockerRuntime]:
    """Docker 28, whose answers list the devices of CDI specs, with the containerd of the service `gpu`."""
    # It looks for that program, which only networks need.
    config = CDI | {"userland-proxy": False}
    with own_engine(REGISTRY, config=config, dockerd=need_program(DOCKERD), programs=PROGRAMS) as engine:
        yield DockerRuntime(engine.host, images=rules())


@pytest.mark.timeout(1800)
def test_gpu_refusals__engine_that_lists_its_devices__names_one_that_its_spec_lacks(
    machine: PlayedMachine, listing: DockerRuntime, tmp_path: Path
) -> None:
    spec, devices = machine.spec(), [device_of(one.uuid) for one in machine.cards]
    machine.publish(spec)
    (row,) = gpu_rows(listing, devices)
    assert (listing.gpu_refusals(devices), row.level) == ("", Level.PASS), row
    machine.publish({**spec, "devices": spec["devices"][1:]})
    why = f"the engine has no CDI device for {devices[0].uuid}"
    (row,) = gpu_rows(listing, devices)
    assert (row.level, row.detail, row.fix) == (Level.FAIL, why, REFRESH)
    assert listing.gpu_refusals(devices) == listing.try_gpu(devices[0]) == why
    assert listing.gpu_refusals(devices[1:]) == listing.try_gpu(devices[1]) == ""
    asked = [request(tmp_path, "nvidia-smi", each.uuid) for each in devices]
    results = [listing.run(each, threading.Event()) for each in asked]
    assert [(each.status, each.detail) for each in results] == [(RunStatus.GPU_REFUSED, why), (RunStatus.OK, "")]
    assert f"UUID: {devices[1].uuid})" in results[1].stdout.decode() and results[1].engine.startswith("docker 28.")


def gpu_rows(runtime: DockerRuntime, devices: list[Device]) -> list[Check]:
    """Return what `hearth worker doctor` says of an engine and GPUs."""
    return [row for row in runtime.capabilities(LOCAL_CHAIN_ID, gpus=devices) if row.name == GPU_ROW]
