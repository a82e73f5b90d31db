"""GPU jobs in containers, end to end with processes: an engine that injects devices, and a played driver."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.evm import ROOT
from tests.kit.played_gpu import HOST, INSIDE, PlayedMachine, card, played_machine
from tests.kit.readme import blocks
from tests.kit.running import wait
from tests.kit.town import Town, town
from tests.worker.runtimes.engines import NUMPY
from tools import schemas

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

JOB = """\
version: 1
name: {name}
runtime: docker
image: "{image}"
command: {command}
resources: {{gpu: {gpu}, cpus: 1, memory: 256MiB}}
limits: {{runtime: 60s, deadline: 1h}}
price: {{max_rate: "1.20/h"}}
match: {{window: 0s}}
"""
GATE = f"until [ -e {INSIDE}/end ]; do sleep 0.2; done"
SEEN = re.compile(r"GPU \d: (.+) \(UUID: (GPU-[0-9a-f-]{36})\) (\d+) MiB driver (\S+) (/dev/nvidia\d) opens\n")


@pytest.fixture(scope="module")
def machine() -> Iterator[PlayedMachine]:
    with played_machine(card(), card()) as made:
        yield made


@pytest.fixture(scope="module")
def place(machine: PlayedMachine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A market with a keeper, and a worker of two slots on a machine with two RTX 4090."""
    with town(tmp_path_factory.mktemp("gpu")) as made:
        made.add_keeper()
        made.start_worker(gpu_worker(made, "worker", slots=2), environ=machine.environ)
        yield made


def gpu_worker(place: Town, name: str, *, slots: int) -> Path:
    """Write the worker.toml of a worker that offers a machine's GPUs to containers, and return its path."""
    path = place.worker_file(name, slots=slots, extra=("--runtimes", "docker", "--gpus", "all"))
    registry = NUMPY.partition("/")[0]
    path.write_text(path.read_text() + f'\n[docker]\nhost = "{HOST}"\nregistries = ["{registry}"]\n')
    return path


def job_file(folder: Path, name: str, gpu: dict[str, Any], script: str) -> str:
    """Write the job of a shell script on GPUs, and return its path."""
    path = folder / f"{name}.yaml"
    fields = {"gpu": json.dumps(gpu), "command": json.dumps(["sh", "-ec", script])}
    path.write_text(JOB.format(name=name, image=NUMPY, **fields))
    return str(path)


def uuids_seen(place: Town, job: str) -> list[str]:
    """Return the GPUs that a job's container saw, by its log, each of which could be opened."""
    logs = place.hearth("job", "logs", job)
    assert logs.code == 0, logs.err
    found = SEEN.findall(logs.out)
    assert all(one[0] == "NVIDIA GeForce RTX 4090" and one[2:4] == ("24576", "570.133.20") for one in found), logs.out
    return [one[1] for one in found]


def test_readme__the_gpu_example__prints_what_the_readme_says(place: Town, tmp_path: Path) -> None:
    file = str(ROOT / "examples" / "gpu" / "job.yaml")
    told = place.hearth("submit", file, "--var", f"IMAGE={NUMPY}", "--wait", "--json", "--timeout", "3m")
    assert told.code == 0, told.err + told.out
    logs = place.hearth("job", "logs", told.json["job"]).out
    (printed,) = blocks("GPU run", "text")
    uuid = re.compile(r"GPU-[0-9a-f-]{36}")
    assert uuid.sub("GPU", printed).strip() in uuid.sub("GPU", logs).splitlines(), logs
    assert place.hearth("job", "get", told.json["job"], "-o", str(tmp_path / "out")).code == 0
    assert (tmp_path / "out" / "gpus.txt").read_text().strip() in logs


def test_worker_benchmark__command__measures_what_the_worker_gives_to_jobs(place: Town, machine: PlayedMachine) -> None:
    config = str(place.home / "worker.toml")
    told = place.hearth("worker", "benchmark", "--config", config, "--json", environ=machine.environ)
    assert told.code == 0, told.err
    schemas.validate(told.json)
    assert [(row["name"], row["level"]) for row in told.json["checks"]] == [("gpu 0", "PASS"), ("gpu 1", "PASS")]
    rows = place.hearth("worker", "doctor", "--config", config, "--all", environ=machine.environ).out
    assert rows.count("measured 150 TFLOP/s, 950 GB/s") == 2, rows


def running(place: Town, name: str = "worker") -> set[str]:
    """Return the jobs whose programs a worker runs now, by its own word."""
    told = place.hearth("worker", "status", "--config", str(place.home / f"{name}.toml"), "--json")
    return {"0x" + one["job"] for one in told.json["process"]["attempts"] if one["phase"] == "running"}


def test_submit__three_jobs_for_two_cards__a_card_each_and_the_third_once_one_is_free(
    place: Town, machine: PlayedMachine, tmp_path: Path
) -> None:
    jobs = {}
    for number in range(3):
        # Each runs until this test has seen who runs beside it: a container sees its machine's folder.
        script = f"nvidia-smi; until [ -e {INSIDE}/go-{number} ]; do sleep 0.2; done"
        told = place.hearth("submit", job_file(tmp_path, f"one-{number}", {"count": 1}, script), "--json")
        assert told.code == 0, told.err + told.out
        jobs[told.json["job"]] = machine.folder / f"go-{number}"
    wait(lambda: len(running(place)) == 2, "two jobs run")
    first, second = running(place)
    (third,) = jobs.keys() - {first, second}
    assert place.hearth("job", "show", third, "--json").json["state"] == "open"
    jobs[first].touch()
    wait(lambda: running(place) == {second, third}, "the third runs")
    jobs[second].touch(), jobs[third].touch()
    seen = {}
    for job in jobs:
        told = place.hearth("job", "wait", job, "--timeout", "3m")
        assert told.code == 0, told.err
        (seen[job],) = uuids_seen(place, job)
    assert {seen[first], seen[second]} == {one.uuid for one in machine.cards} and seen[third] == seen[first]


def test_offers__wide__says_which_gpus_a_worker_says_it_has(place: Town) -> None:
    told = place.hearth("offers", "--wide")
    cards = '2 x "NVIDIA GeForce RTX 4090" 24 GiB, driver "570.133.20", 150 TFLOP/s, 950 GB/s'
    assert "says it has" in told.out and cards in told.out, told.out
    (row,) = place.hearth("offers", "--wide", "--json").json["offers"]
    assert [one["vram_gib"] for one in row["says"]["gpus"]] == [24, 24]
    assert [one["measured"]["half_gflops"] for one in row["says"]["gpus"]] == [150_000, 150_000]
    assert "says" not in place.hearth("offers", "--json").json["offers"][0]


@pytest.mark.parametrize(
    ("gpu", "lack"),
    [({"count": 1, "vram": "25GiB"}, "vram"), ({"count": 1, "tier": "h100"}, "tier"), ({"count": 2}, "gpu_count")],
    ids=["vram", "tier", "count"],
)
def test_check__more_than_a_slots_card_is__nobody_and_what_it_lacks(
    place: Town, tmp_path: Path, gpu: dict[str, Any], lack: str
) -> None:
    told = place.hearth("check", job_file(tmp_path, "more", gpu, "true"), "--json")
    assert (told.code, told.json["error"]["code"]) == (8, "NO_WORKER"), told.out
    assert told.json["workers"] == {lack: 1}


def test_submit__lesser_tier_than_the_card__runs_on_the_better_one(
    place: Town, machine: PlayedMachine, tmp_path: Path
) -> None:
    file = job_file(tmp_path, "tier", {"count": 1, "tier": "rtx-3060", "vram": "12GiB"}, "nvidia-smi")
    told = place.hearth("submit", file, "--wait", "--json", "--timeout", "3m")
    assert told.code == 0, told.err + told.out
    (seen,) = uuids_seen(place, told.json["job"])
    assert seen in {one.uuid for one in machine.cards}


def test_submit__two_cards_for_one_job__sees_both(place: Town, tmp_path: Path) -> None:
    with played_machine(card(), card()) as other:
        path = gpu_worker(place, "worker2", slots=1)
        place.start_worker(path, "worker2", environ=other.environ)
        told = place.hearth(
            "submit", job_file(tmp_path, "two", {"count": 2}, "nvidia-smi"), "--wait", "--json", "--timeout", "3m"
        )
        assert told.code == 0, told.err + told.out
        assert uuids_seen(place, told.json["job"]) == [one.uuid for one in other.cards]
        place.stop("worker2")


def status_of(place: Town, name: str = "worker") -> dict[str, Any]:
    """Return what a worker says of itself."""
    told = place.hearth("worker", "status", "--config", str(place.home / f"{name}.toml"), "--json")
    process: dict[str, Any] = told.json["process"]
    return process


def gpu_states(place: Town) -> dict[str, str]:
    """Return how each of a worker's GPUs is, by its own word."""
    return {one["uuid"]: one["state"] for one in status_of(place)["gpus"]}


def test_submit__gpu_lost_in_the_middle__is_no_end_of_the_jobs_and_the_other_card_runs_it(
    place: Town, machine: PlayedMachine, tmp_path: Path
) -> None:
    script = f"nvidia-smi; touch /out/begun; until [ -e {INSIDE}/lost ]; do sleep 0.2; done; nvidia-smi"
    told = place.hearth("submit", job_file(tmp_path, "lost", {"count": 1}, script), "--json")
    assert told.code == 0, told.err + told.out
    job = told.json["job"]
    wait(lambda: job in running(place), "the job runs")
    (first,) = [uuid for uuid, state in gpu_states(place).items() if state == "lent"]
    number = [one.uuid for one in machine.cards].index(first)
    machine.change(number, lost=15)
    (machine.folder / "lost").touch()
    try:
        ended = place.hearth("job", "wait", job, "--json", "--timeout", "3m")
        assert ended.code == 0, ended.out
        # What the program made of the GPU that was lost is not its result: the other card ran it once more, to its end.
        other = machine.cards[1 - number].uuid
        assert uuids_seen(place, job) == [other, other]
        assert gpu_states(place) == {first: "gpu_lost", other: "free"}
        shown = place.hearth("worker", "status", "--config", str(place.home / "worker.toml"))
        assert f"GPU {first} is given to no job (gpu_lost)" in shown.out
        # A slot is left for the card that is: one job runs, another is told why it waits.
        two = [
            place.hearth("submit", job_file(tmp_path, f"wait-{number}", {"count": 1}, GATE), "--json").json["job"]
            for number in range(2)
        ]
        wait(lambda: len(running(place)) == 1, "one of two runs")
        (waiting,) = set(two) - running(place)
        why = place.hearth("worker", "why", waiting, "--config", str(place.home / "worker.toml"), "--json")
        assert [one["reason"] for one in why.json["worker"]] == ["gpu_lost"]
        machine.change(number, lost=None)
        # It is found again by the look of a run, and lent.
        wait(lambda: len(running(place)) == 2, "the card is back")
        (machine.folder / "end").touch()
        assert all(place.hearth("job", "wait", one, "--timeout", "3m").code == 0 for one in two)
    finally:
        machine.change(number, lost=None)
        (machine.folder / "end").touch()


def test_submit__driver_that_answers_nobody__costs_the_submitter_nothing_and_the_node_rests(
    place: Town, machine: PlayedMachine, tmp_path: Path
) -> None:
    gate = "rest"
    script = f"until [ -e {INSIDE}/{gate} ]; do sleep 0.2; done; nvidia-smi"
    told = place.hearth("submit", job_file(tmp_path, gate, {"count": 1}, script), "--json")
    assert told.code == 0, told.err + told.out
    job = told.json["job"]
    wait(lambda: job in running(place), "the job runs")
    machine.change(None, init=18)
    (machine.folder / gate).touch()
    try:
        wait(lambda: status_of(place)["hold"] == "gpu_driver", "the node takes nothing new")
        # Three tries of this machine; then the unit is another one's, and nothing was paid.
        wait(lambda: place.hearth("job", "show", job, "--json").json["state"] == "open", "the unit is given back")
        receipt = place.hearth("job", "receipt", job, "--json").json
        assert int(receipt["workers"]) == 0
        shown = place.hearth("worker", "status", "--config", str(place.home / "worker.toml")).out
        assert "nothing new is taken (gpu_driver): its GPU driver does not answer" in shown
        assert "restart this machine" in shown
        doctor = place.hearth(
            *("worker", "doctor", "--config", str(place.home / "worker.toml"), "--json"), environ=machine.environ
        )
        rows = {row["name"]: row for row in doctor.json["checks"]}
        assert rows["gpu"]["level"] == "WARN" and "restart this machine" in rows["gpu"]["detail"], rows
    finally:
        machine.change(None, init=None)
    wait(lambda: status_of(place)["hold"] is None, "the driver is back")
    assert place.hearth("job", "cancel", job, "--yes").code == 0
    receipt = place.hearth("job", "receipt", job, "--json").json
    assert receipt["refunded"] == receipt["escrow"] and int(receipt["workers"]) == 0


def test_kill__worker_with_two_gpus_lent_beside_another_worker__no_gpu_has_two_containers(
    place: Town, tmp_path: Path
) -> None:
    gpu = {"count": 1, "vram": "40GiB"}
    with played_machine(card(gib=48), card(gib=48)) as other, engine() as containers:
        gate = f"until [ -e {INSIDE}/go ]; do sleep 0.2; done; nvidia-smi"
        path = gpu_worker(place, "worker3", slots=2)
        place.start_worker(path, "worker3", environ=other.environ)
        jobs = [submitted(place, tmp_path, f"killed-{number}", gpu, gate) for number in range(2)]
        wait(lambda: running(place, "worker3") == set(jobs), "both run")
        place.start_worker(gpu_worker(place, "provider", slots=2), "provider", environ=other.environ)
        jobs += [submitted(place, tmp_path, f"beside-{number}", gpu, gate) for number in range(2)]
        time.sleep(3)
        assert running(place, "provider") == set()
        assert shared(containers(), other) == {one.uuid: 1 for one in other.cards}
        place.stop("worker3")
        for _ in range(20):
            time.sleep(0.5)
            assert max(shared(containers(), other).values(), default=1) == 1
        place.start("worker3", "-m", "worker", "--config", str(path), **other.environ)
        (other.folder / "go").touch()
        ends: dict[str, int] = {}
        while len(ends) < len(jobs):
            for job in jobs:
                told = place.hearth("job", "wait", job, "--timeout", "1s")
                if told.code == 0:
                    ends[job] = told.code
                assert max(shared(containers(), other).values(), default=1) == 1
        for name in ("worker3", "provider"):
            place.stop(name)


def submitted(place: Town, folder: Path, name: str, gpu: dict[str, Any], script: str) -> str:
    """Post a job of a shell script on GPUs, and return its id."""
    told = place.hearth("submit", job_file(folder, name, gpu, script), "--json")
    assert told.code == 0, told.err + told.out
    job: str = told.json["job"]
    return job


@contextmanager
def engine() -> Iterator[Callable[[], list[str]]]:
    """Yield a function that returns the GPUs of each container that runs in the engine, by its label."""
    from docker import APIClient

    with contextlib.closing(APIClient(HOST)) as api:
        yield lambda: [each["Labels"]["hearth.gpus"] for each in api.containers(filters={"label": "hearth.gpus"})]


def shared(labels: Iterable[str], machine: PlayedMachine) -> Counter[str]:
    """Return how many containers have each GPU of a machine."""
    here = {one.uuid for one in machine.cards}
    return Counter(uuid for label in labels for uuid in label.split(",") if uuid in here)
