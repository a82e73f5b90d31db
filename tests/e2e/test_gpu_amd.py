"""A job for AMD's GPUs, end to end with processes: the kernel's files are played, the engine gives the devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_gpu import gpu_worker, job_file
from tests.kit.evm import ROOT
from tests.kit.played_amd import FIRST_RENDER, RENDER_GROUP, AmdMachine, amd_card, amd_machine
from tests.kit.town import Town, town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SEEN = "ls /dev/dri /dev/kfd; id -G; for node in /dev/kfd /dev/dri/*; do : > $node; done"


@pytest.fixture(scope="module")
def machine() -> Iterator[AmdMachine]:
    with amd_machine(amd_card(), amd_card()) as made:
        yield made


def hearth_on(machine: AmdMachine, place: Town, *arguments: str) -> tuple[int, dict[str, object]]:
    """Run a command on the played machine, and return its exit code and report."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    done = subprocess.run(
        [sys.executable, *machine.inside("-m", "hearth.cli", *arguments, "--json")],
        env={**kept, "HEARTH_HOME": str(place.home)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def place(machine: AmdMachine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A market with a keeper, and a worker of two slots on a machine with two RX 7900 XTX."""
    with town(tmp_path_factory.mktemp("amd")) as made:
        made.add_keeper()
        path = gpu_worker(made, "worker", slots=2)
        code, told = hearth_on(machine, made, "worker", "register", "--config", str(path), "--stake", "20")
        assert code == 0, told
        made.start("worker", *machine.inside("-m", "worker", "--config", str(path)))
        made.wait_beat(int(str(told["node"])))
        yield made


def test_register__machine_of_amd__offers_its_tier_and_whose_it_is(place: Town) -> None:
    (row,) = place.hearth("offers", "--gpu", "rx-7900-xt", "--json").json["offers"]
    assert (row["tier"], row["gpus"], row["vram_gib"], row["runtimes"]) == ("rx-7900-xtx", 1, 24, ["docker", "amd"])
    # A key of NVIDIA's that is lower than this one's is not met by it.
    assert place.hearth("offers", "--gpu", "t4", "--json").json["offers"] == []


def test_submit__job_for_amd__gets_one_card_by_its_groups_and_nvidias_gets_none(place: Town, tmp_path: Path) -> None:
    file = job_file(tmp_path, "amd", {"count": 1, "tier": "rx-7900-xtx", "exact": True}, SEEN)
    told = place.hearth("submit", file, "--wait", "--json", "--timeout", "3m")
    assert told.code == 0, told.err + told.out
    said = place.hearth("job", "logs", told.json["job"]).out.split()
    nodes = [word for word in said if word.startswith("renderD")]
    assert len(nodes) == 1 and int(nodes[0][7:]) - FIRST_RENDER in (0, 1)
    assert "/dev/kfd" in said and str(RENDER_GROUP) in said
    refused = place.hearth("check", job_file(tmp_path, "cuda", {"count": 1, "vram": "8GiB"}, "true"), "--json")
    assert (refused.code, refused.json["workers"]) == (8, {"runtime": 1})


def test_doctor_and_selftest__specification_of_another_card__is_named(place: Town, machine: AmdMachine) -> None:
    config = ("--config", str(place.home / "worker.toml"))
    code, told = hearth_on(machine, place, "worker", "selftest", *config)
    assert code == 0, told
    spec = machine.spec()
    spec["devices"][0]["containerEdits"], spec["devices"][1]["containerEdits"] = (
        spec["devices"][1]["containerEdits"],
        spec["devices"][0]["containerEdits"],
    )
    machine.publish(spec)
    try:
        code, told = hearth_on(machine, place, "worker", "selftest", *config)
    finally:
        machine.publish()
    assert code != 0 and "its CDI specification is an older one" in json.dumps(told)
    assert "amd-ctk cdi generate" in json.dumps(told)
