"""What `hearth init` writes, submitted on a real market as its comments say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.town import Town, town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A market with one worker and a keeper."""
    with town(tmp_path_factory.mktemp("templates")) as made:
        made.add_worker()
        made.add_keeper()
        yield made


def test_init__wasm__submitted_as_written_and_its_results_fetched(place: Town, tmp_path: Path) -> None:
    assert place.hearth("init", str(tmp_path / "new")).code == 0
    job, results = str(tmp_path / "new" / "job.yaml"), tmp_path / "results"
    assert "1 worker -> 1 can take it" in place.hearth("check", job).out
    told = place.hearth("submit", job, "--wait", "--results", str(results), "--timeout", "3m")
    assert told.code == 0, told.err
    assert "the sum is 5050" in told.out
    assert (results / "sum.txt").read_text() == "5050\n"


def test_init__array__submitted_as_written_and_reduced(place: Town, tmp_path: Path) -> None:
    assert place.hearth("init", str(tmp_path / "new"), "--template", "array").code == 0
    told = place.hearth("submit", str(tmp_path / "new" / "job.yaml"), "--wait", "--json", "--timeout", "3m")
    assert told.code == 0, told.err + told.out
    script = str(tmp_path / "new" / "reduce.py")
    got = place.hearth("job", "get", told.json["job"], "-o", str(tmp_path / "parts"), "--reduce", script)
    assert got.code == 0, got.err
    assert "pi is about 3.141592653590, from 8 parts" in got.out


def test_init__gpu__checked_down_to_what_the_worker_lacks(place: Town, tmp_path: Path) -> None:
    assert place.hearth("init", str(tmp_path), "--template", "gpu").code == 0
    job = tmp_path / "job.yaml"
    pinned = f"pytorch/pytorch@sha256:{'ab' * 32}"
    job.write_text(job.read_text().replace("pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime", pinned))
    told = place.hearth("check", str(job), "--json")
    # As a submit of it would.
    assert (told.code, told.json["error"]["code"]) == (8, "NO_WORKER"), told.out
    assert "hearth submit FILE --anyway" in told.json["error"]["hint"]
    assert told.json["runtime"] == "docker" and told.json["can_take"] == 0
    assert told.json["workers"] == {"gpu_count": 1}
