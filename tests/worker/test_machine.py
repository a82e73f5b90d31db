"""worker.machine: whose shares count, what they come to, and what of it is not there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hearth.protocol.types import Offer, Runtime
from hearth.protocol.units import GIB, Asset
from tests.worker.test_doctor import told
from worker import doctor, machine
from worker.home import hold
from worker.machine import Room, Share, announce, others, overbooked, share_of
from worker.runtimes.base import Level

ROOM = Room(cores=8, memory=23 * GIB, disk=100 * GIB)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def running(tmp_path: Path, name: str, stack: ExitStack, **sizes: Any) -> Path:
    """Let a worker run in a home of its own, and name its share."""
    home = tmp_path / name
    home.mkdir()
    stack.enter_context(hold(home))
    announce(tmp_path / "user", Share(**{"home": str(home), "cores": 1, "memory_gib": 1, "disk_gib": 1, **sizes}))
    return home


def test_share_of__slots__are_added_up(tmp_path: Path) -> None:
    offer = Offer(runtimes=Runtime.WASM, cores=2, ram_gib=3, disk_gib=5, slots=4)
    assert share_of(tmp_path, offer, ["GPU-a"]) == Share(str(tmp_path), 8, 12, 20, ("GPU-a",))


def test_others__a_worker_beside__counts_while_it_runs(tmp_path: Path) -> None:
    user = tmp_path / "user"
    with ExitStack() as stack:
        home = running(tmp_path, "a", stack, memory_gib=20)
        (found,) = others(user, tmp_path / "b")
        assert (found.home, found.memory_gib) == (str(home), 20)
        assert others(user, home) == []
    assert others(user, tmp_path / "b") == [] and list((user / "running").iterdir())


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"home": "/x", "cores": "many"}), "x" * (1 << 17)])
def test_others__what_is_no_entry__is_passed_over(tmp_path: Path, stack: ExitStack, text: str) -> None:
    running(tmp_path, "a", stack)
    (tmp_path / "user" / "running" / "0.json").write_text(text)
    assert len(others(tmp_path / "user", tmp_path / "b")) == 1


def test_announce__folder_that_cannot_be_written__stops_no_worker(tmp_path: Path) -> None:
    (tmp_path / "user").write_text("a file")
    announce(tmp_path / "user", Share("/home", 1, 1, 1))
    (tmp_path / "open").mkdir(mode=0o755)
    announce(tmp_path / "open", Share("/home", 1, 1, 1))
    assert list((tmp_path / "open").iterdir()) == []


@pytest.mark.parametrize(
    ("mine", "theirs", "found"),
    [
        ({"memory_gib": 21}, {"memory_gib": 20}, ["2 workers offer 41 of 23 GiB of memory"]),
        ({"memory_gib": 11}, {"memory_gib": 12}, []),
        ({"memory_gib": 11}, {"memory_gib": 13}, ["2 workers offer 24 of 23 GiB of memory"]),
        ({"cores": 8}, {"cores": 1}, ["2 workers offer 9 of 8 cores"]),
        ({"disk_gib": 60}, {"disk_gib": 41}, ["2 workers offer 101 of 100 GiB of free disk"]),
        ({"gpus": ("A", "B")}, {"gpus": ("B", "C")}, ["another worker offers the same GPUs: B"]),
    ],
)
def test_overbooked__two_workers__what_is_promised_twice(
    tmp_path: Path, mine: dict[str, Any], theirs: dict[str, Any], found: list[str]
) -> None:
    sizes: dict[str, Any] = {"home": str(tmp_path), "cores": 1, "memory_gib": 1, "disk_gib": 1}
    assert overbooked(Share(**{**sizes, **mine}), [Share(**{**sizes, **theirs})], ROOM) == found


def test_overbooked__one_worker_or_another_disk__is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = Share(str(tmp_path), 99, 99, 99, ("A",))
    assert overbooked(big, [], ROOM) == []
    monkeypatch.setattr(machine, "_same_disk", lambda a, b: False)
    assert overbooked(Share("/a", 1, 1, 60), [Share("/b", 1, 1, 60)], ROOM) == []


def test_look_at_machine__two_workers__warns_of_what_is_not_there(
    tmp_path: Path, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = told(tmp_path, home="mine", offer__memory="21GiB", offer__gpus="none", offer__runtimes=["wasm"])
    user, asset = tmp_path / "user", Asset("ETH", 18)
    monkeypatch.setattr("worker.settings.memory_bytes", lambda: 23 * GIB)
    monkeypatch.setattr(doctor, "room_of", lambda home: ROOM)
    assert [row.level for row in doctor.look_at_machine(settings, asset, user)] == [Level.PASS]
    home = running(tmp_path, "theirs", stack, memory_gib=20)
    rows = [row for row in doctor.look_at_machine(settings, asset, user) if "memory" in row.detail]
    assert [(row.level, row.detail) for row in rows] == [(Level.WARN, "2 workers offer 41 of 23 GiB of memory")]
    assert str(home) in rows[0].fix
