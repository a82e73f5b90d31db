"""The CDI spec that NVIDIA's toolkit writes of a played machine: beside ours, and a job's GPU by it and its hooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hearth.protocol.types import LOCAL_CHAIN_ID
from tests.kit.nvidia_ctk import generated, playable
from tests.kit.played_gpu import GIB, INSIDE, LIBRARIES, LINKS, PlayedMachine, card, played_machine
from tests.kit.require import need_program
from tests.worker.runtimes.test_docker_gpu import RUNTIME, run
from tools.services.gpu import CTK
from worker import doctor_gpus
from worker.benchmark import benchmark
from worker.gpu import probing
from worker.gpu.nvidia import device_of
from worker.runtimes.base import Level, RunStatus

pytestmark = [pytest.mark.net, pytest.mark.deep]

SLICES = tuple(f"MIG-00000000-1111-2222-3333-44444444444{number}" for number in range(2))
LOADS = """
import ctypes
library, count = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_uint()
print("loaded", library.nvmlInit_v2(), library.nvmlDeviceGetCount_v2(ctypes.byref(count)), count.value)
"""


@pytest.fixture
def machine() -> Iterator[PlayedMachine]:
    """A machine with an RTX 4090, and a card that MIG has cut into two slices."""
    cut = [f"{uuid}:1g.5gb:{5 * GIB}" for uuid in SLICES]
    with played_machine(card(), card("NVIDIA A100-SXM4-40GB", 40, cc="8.0", mig=1, slice=cut)) as made:
        yield made


def nodes_of(edits: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(edits["deviceNodes"], key=lambda node: str(node["path"]))


def test_spec__of_the_kit__is_nvidia_ctks_but_for_its_hooks(machine: PlayedMachine) -> None:
    ours, theirs = machine.spec(), generated(machine)
    assert (ours["cdiVersion"], ours["kind"]) == (theirs["cdiVersion"], theirs["kind"])
    devices = [
        {one["name"]: nodes_of(one["containerEdits"]) for one in spec["devices"] if one["name"] != "all"}
        for spec in (ours, theirs)
    ]
    assert devices[0] == devices[1]
    assert [device_of(name).cdi for name in (machine.cards[0].uuid, *SLICES)] == [
        f"{theirs['kind']}={name}" for name in devices[1]
    ]
    mine, edits = ours["containerEdits"], theirs["containerEdits"]
    assert nodes_of(mine) == nodes_of(edits)
    mounts = [one for one in edits["mounts"] if one["hostPath"] != "/dev/null"]
    plays = {INSIDE, *(f"/{place}" for place in LINKS)}
    assert [one for one in mine["mounts"] if one["containerPath"] not in plays] == mounts
    env = [one for one in mine["env"] if not one.startswith("PLAYED_")]
    assert edits["env"] == [f"NVIDIA_CTK_LIBCUDA_DIR=/{LIBRARIES}", *env]


def test_look_at_toolkit__real_one__its_version_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(need_program(CTK).parent))
    row = doctor_gpus._look_at_toolkit(LOCAL_CHAIN_ID)
    assert row.level is Level.PASS and CTK.pinned()[0][1:] in row.detail, row


def test_run__spec_of_nvidia_ctk_with_its_hooks__gives_the_gpu_and_its_library(
    machine: PlayedMachine, tmp_path: Path
) -> None:
    spec = playable(machine, generated(machine))
    hooks = spec["containerEdits"]["hooks"]
    assert {"create-symlinks", "update-ldcache"} <= {hook["args"][1] for hook in hooks}
    for hook in hooks:
        # As many threads as on a machine of 64 cores: they count for the container's.
        hook["env"].append("GOMAXPROCS=64")
    machine.publish(spec)
    for uuid in (machine.cards[0].uuid, SLICES[1]):
        assert RUNTIME.try_gpu(device_of(uuid)) == ""
        result = run(tmp_path, f"nvidia-smi; ls /dev; python3 -c '{LOADS}'", uuid)
        assert result.status is RunStatus.OK, (result, result.stderr)
        told = result.stdout.decode()
        assert f"UUID: {uuid})" in told and "opens" in told and "loaded 0 0 1" in told, told


def test_benchmark__spec_of_nvidia_ctk_with_its_hooks__measures_a_card_and_a_slice(
    machine: PlayedMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in machine.environ.items():
        monkeypatch.setenv(name, value)
    machine.publish(playable(machine, generated(machine)))
    rows = list(benchmark(RUNTIME, tmp_path, probing.probe().gpus))
    assert [(row.name, row.level) for row in rows] == [(f"gpu {one}", Level.PASS) for one in ("0", "1.0", "1.1")], rows
    assert " 4.6 GiB on " in rows[1].detail, rows
