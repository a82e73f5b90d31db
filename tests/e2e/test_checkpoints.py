"""A unit that checkpoints, on a market of real processes: its worker is killed, and another one goes on from there."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hearth.market.events import Checkpointed, CheckpointPaid, Started
from hearth.protocol.types import JobId
from tests.kit.running import wait
from tests.kit.town import Town, example_text, town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

STEPS = 160
SHORT_STEPS = 48
"""Long enough for a first checkpoint and what comes after it."""
ROUNDS = 600_000_000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with town(tmp_path_factory.mktemp("checkpoints")) as market:
        yield market


def job_file(folder: Path, steps: int) -> Path:
    """Write the example's job, with fewer steps, so that a machine under load ends it too."""
    lines = [line for line in example_text("resume", folder).splitlines() if not line.startswith("command:")]
    path = folder / "job.yaml"
    path.write_text("\n".join([*lines, f'command: ["{steps}", "{ROUNDS}"]']) + "\n")
    return path


def events_of(place: Town, job: str, kind: type[Any]) -> list[Any]:
    market = place.session.market
    head = market.port.head().number
    logs = market.port.logs([place.session.network.jobs], from_block=0, to_block=head)
    found = [event for event in market.events_in(logs) if isinstance(event, kind)]
    return [event for event in found if event.job_id == JobId(bytes.fromhex(job[2:]))]


def test_checkpoint__worker_is_killed__another_goes_on_and_both_are_paid(place: Town, tmp_path: Path) -> None:
    place.add_keeper()
    first = place.add_worker("worker", slots=1)
    told = place.hearth("submit", str(job_file(tmp_path / "job", STEPS)), "--again", "-q")
    assert told.code == 0, told.err
    job = told.out.strip()
    wait(lambda: len(events_of(place, job, Checkpointed)) >= 2, "two checkpoints are on chain", 240)
    process = place.processes["worker"]
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    named = events_of(place, job, Checkpointed)
    assert {event.node for event in named} == {first}

    second = place.add_worker("worker2", slots=1)
    out = tmp_path / "results"
    ended = place.hearth("job", "wait", job, "--timeout", "300s", "--results", str(out), "--json")
    assert ended.code == 0, ended.err + ended.out
    result = json.loads(next(out.rglob("result.json")).read_text())
    done = result["steps_of_attempts"]
    assert len(done) == 2 and min(done) > 0 and sum(done) == result["steps"] == STEPS

    begun = events_of(place, job, Started)
    assert [event.node for event in begun] == [first, second]
    shown = place.hearth("job", "show", job, "--json").json["leases"][0]
    assert shown["attempts"] == 2
    (paid,) = events_of(place, job, CheckpointPaid)
    assert (paid.node, paid.attempt) == (first, 1) and paid.pay > 0
    books = place.hearth("net", "verify", "--json")
    assert books.code == 0 and books.json["solvent"], books.out


@pytest.mark.parametrize(
    "point", ["c2.stored", *(pytest.param(point, marks=pytest.mark.deep) for point in ("c1.copied", "c3.offered"))]
)
def test_checkpoint__worker_dies_at_it_and_is_started_again__its_unit_ends_well(
    place: Town, tmp_path: Path, point: str
) -> None:
    if "worker2" in place.processes:
        place.stop("worker2")
    config = place.home / "worker3.toml"
    if not config.exists():
        place.worker_file("worker3", slots=1)
        told = place.hearth("worker", "register", "--config", str(config), "--stake", "20", "--json")
        assert told.code == 0, told.err
    place.start("worker3", "-m", "worker", "--config", str(config), failpoint=point)
    told = place.hearth("submit", str(job_file(tmp_path / "job", SHORT_STEPS)), "--again", "--anyway", "-q")
    assert told.code == 0, told.err
    job = told.out.strip()
    assert place.processes["worker3"].wait(120) == -signal.SIGKILL
    place.start("worker3", "-m", "worker", "--config", str(config))
    out = tmp_path / "results"
    ended = place.hearth("job", "wait", job, "--timeout", "200s", "--results", str(out), "--json")
    assert ended.code == 0, ended.err + ended.out
    result = json.loads(next(out.rglob("result.json")).read_text())
    assert result["steps"] == sum(result["steps_of_attempts"]) == SHORT_STEPS
    place.stop("worker3")
    assert place.hearth("net", "verify", "--json").json["solvent"]
