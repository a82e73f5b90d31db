"""The parts of the service runner that a mistake would turn against the machine: whom it stops, what it reuses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.services import base, engine, geth, gpu, images, kubo
from tools.services.__main__ import env, main
from tools.services.base import Process, Service, ServiceError, save, saved, spawn, wait_for
from tools.services.golang import GoProgram


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give every test a cache folder of its own, so that no running service is touched."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield tmp_path / "cache"


def _sleeper() -> Process:
    return spawn("sleeper", [sys.executable, "-c", "import time; time.sleep(600)"])


def test_stop__living_process__ends_it() -> None:
    process = _sleeper()
    assert process.alive
    process.stop()
    assert not process.alive


def test_stop__id_reused_by_another__is_left_alone() -> None:
    """A stale state file names an id that now belongs to somebody else: here, to this very test."""
    stale = Process(os.getpid(), "1")
    assert not stale.alive
    stale.stop()


def test_stop__process_that_ignores_the_request__is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "STOP_SECONDS", 0.3)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
    process = spawn("deaf", [sys.executable, "-c", code])
    wait_for("deaf", process, lambda: "1" in base.log_tail("deaf"), 30.0)
    process.stop()
    assert not process.alive


def test_wait_for__process_ended__shows_its_log() -> None:
    process = spawn("brief", [sys.executable, "-c", "import time; print('no such device'); time.sleep(0.2)"])
    with pytest.raises(ServiceError, match="no such device"):
        wait_for("brief", process, lambda: False, 30.0)


def test_saved__after_save__is_equal() -> None:
    services = [Service("docker", None, {"A": "1"}), Service("kubo", Process(1, "2"), {"B": "2"})]
    save(services)
    assert saved() == services


def test_env__stopped_service__is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    save([Service("gone", Process(os.getpid(), "1"), {"GONE": "1"}), Service("here", None, {"HERE": "a b"})])
    assert env() == 0
    assert capsys.readouterr().out == "export HERE='a b'\n"


def test_down__running_service__stops_it_and_forgets() -> None:
    process = _sleeper()
    save([Service("sleeper", process, {})])
    assert main(["down"]) == 0
    assert not process.alive
    assert saved() == []


def test_down__engine_of_another_instance__keeps_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The state of the engine with user namespaces lies outside of the cache folder."""
    ours = engine.state_folder("userns")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    assert engine.state_folder("userns") != ours
    assert engine.state_folder("docker") != ours


def test_run__failing_command__raises_with_its_output() -> None:
    with pytest.raises(ServiceError, match=r"(?s)exit 3.*broken"):
        base.run([sys.executable, "-c", "print('broken'); raise SystemExit(3)"], what="it")


@pytest.mark.parametrize(
    ("program", "major"),
    [
        (kubo.PROGRAM, "v0."),
        (geth.PROGRAM, "v1."),
        (engine.GVISOR, "v0."),
        (gpu.CTK, "v1."),
        (gpu.DOCKERD, "v28."),
    ],
    ids=lambda one: one.name if isinstance(one, GoProgram) else "",
)
def test_pinned__go_mod__names_both_versions(program: GoProgram, major: str) -> None:
    version, go = program.pinned()
    assert version.startswith(major)
    assert go.startswith("1.")


def test_find__named_engine_does_not_answer__is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    monkeypatch.delenv("HEARTH_DOCKER_HOST", raising=False)
    assert engine.find() is None


def test_archive__made_once__is_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def recipe(folder: Path) -> None:
        made.append(folder)
        (folder / "file").write_text("content")
        os.mkfifo(folder / "pipe")

    monkeypatch.setitem(images.RECIPES, "small", recipe)
    first = images.archive("small")
    assert images.archive("small") == first
    assert len(made) == 1
    names = subprocess.run(["tar", "tf", str(first)], capture_output=True, text=True, check=True).stdout.split()
    assert names == ["file"]
