"""What one container takes of the disk, judged by a looker's lines and a clock of the test: no engine, no process."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from worker.runtimes import docker_janitor
from worker.runtimes.base import Room, RunRequest, SandboxLimits
from worker.runtimes.docker_janitor import LOOK_SECONDS, Looker, Meter

CAP = 1 << 20


class Engine:
    """A looker that the test feeds, below a meter on a disk that is full, and a clock that stands still."""

    def __init__(self, out: Path, patch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        patch.setattr(docker_janitor, "time", SimpleNamespace(monotonic=lambda: self.now))
        patch.setattr(docker_janitor, "free_bytes", lambda _: 0)
        patch.setattr(Looker, "start", lambda looker: setattr(looker, "_container", "looker"))
        self.room = Room(tight=True, full=True)
        limits = SandboxLimits(wall_seconds=60, memory_bytes=1, out_bytes=CAP, tmp_bytes=1, pids=1)
        request = RunRequest("unit", (), out, out, out, limits, room=self.room)
        self.looker = Looker(None, out, "unit", "container")
        self.meter = Meter(request, self.looker, 0)

    def look(self, unnamed: int = 0, partial: int = 0) -> str:
        """Let the looker tell of bytes without a name, and return what the meter says then."""
        self.looker._read([f"0 0 0 0 1 {unnamed} {unnamed} 0 {partial}\n".encode()])
        return self.meter.excess()


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    return Engine(tmp_path, monkeypatch)


@pytest.mark.parametrize("told", [True, False], ids=["looks that get through a part", "no look"])
def test_excess__nobody_could_look_at_all_of_it_on_a_full_disk__is_over_its_cap(engine: Engine, told: bool) -> None:
    """Each of 24 processes maps one page 65,300 times: one look took two minutes, and another was stopped meanwhile."""
    assert engine.meter.excess() == ""
    while engine.now < LOOK_SECONDS:
        engine.now += 10
        assert (engine.look(partial=1) if told else engine.meter.excess()) == ""
        assert not engine.room.seen
    engine.now += 1
    assert "nobody could look at all of it" in engine.meter.excess()


def test_excess__looks_that_get_through__are_seen_and_go_on(engine: Engine) -> None:
    """Control; and one that was looked at is not for ever: from the last whole look on it may hide again."""
    engine.meter.excess()
    for _ in range(9):
        engine.now += 10
        assert engine.look() == ""
    assert engine.room.seen
    engine.now += LOOK_SECONDS
    assert engine.look(partial=1) == "" and not engine.room.seen
    engine.now += 1
    assert "nobody could look" in engine.look(partial=1)


def test_excess__part_of_a_look_that_shows_too_much__is_enough(engine: Engine) -> None:
    engine.meter.excess()
    assert "more than the cap" in engine.look(CAP + 1, partial=1)


def test_excess__disk_becomes_full_after_it_was_seen__is_seen_again_first(engine: Engine) -> None:
    """It was tight for another that waits: what a run took to fill it was not there at the looks before."""
    engine.room.full = False
    engine.meter.excess()
    assert [engine.look(), engine.look(), engine.room.seen] == ["", "", True]
    engine.room.full = True
    assert [engine.meter.excess(), engine.room.seen] == ["", False]
    assert [engine.look(), engine.look(), engine.room.seen] == ["", "", True]


def test_excess__disk_that_has_room__nobody_goes_for_what_could_not_be_looked_at(engine: Engine) -> None:
    """Another waits for room, and the disk has lost no more than was seen: many mappings are no fault by themselves."""
    engine.room.full = False
    for _ in range(9):
        engine.now += 10
        assert engine.look(partial=1) == ""


def test_excess__janitor_that_has_ended__is_no_fault_of_the_run_and_sees_nothing_more(engine: Engine) -> None:
    """Its last look stood for good: whoever then filled the disk counted as seen, and an honest run as over its cap."""
    engine.meter.excess()
    assert [engine.look(), engine.look(), engine.room.seen] == ["", "", True]
    engine.looker._follow([])
    engine.now += 2 * LOOK_SECONDS
    assert engine.meter.excess() == "" and not engine.room.seen


def test_excess__janitor_that_has_ended__what_came_since_counts_by_its_names(engine: Engine, tmp_path: Path) -> None:
    """By its last look a run took whatever it liked, or was over its cap for files that were on their way just then."""
    engine.meter.excess()
    assert [engine.look(), engine.look()] == ["", ""]
    engine.looker._read([b"0 0 0 0 0 0 0 1 0\n"])
    assert engine.meter.excess() == ""
    engine.looker._follow([])
    engine.now += 3
    assert engine.meter.excess() == ""
    (tmp_path / "big").write_bytes(bytes(5 * CAP))
    assert "more than the cap" in engine.meter.excess()
