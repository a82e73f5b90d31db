"""An engine that goes away under a unit: what it makes of the program is no end of the program's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kit.engine import Engine, own_engine
from tests.kit.running import wait
from tests.worker.runtimes.engines import BUSYBOX, rules, runtime_of
from worker.runtimes import docker as subject
from worker.runtimes.base import RunRequest, RunResult, RunStatus, SandboxLimits
from worker.runtimes.docker_request import LABEL

pytestmark = [pytest.mark.docker, pytest.mark.slow]

OBEYS = "trap 'exit 0' TERM; touch /out/started; while :; do sleep 0.1; done"
"""A program that an engine ends at once, and well."""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    runtime_of(rules())
    with own_engine(BUSYBOX.partition("/")[0]) as made:
        yield made


@pytest.fixture
def api(engine: Engine) -> Iterator[Any]:
    import docker

    with docker.APIClient(base_url=engine.host, version="auto") as client:
        yield client


def request_of(folder: Path, script: str) -> RunRequest:
    for name in ("in", "job", "out"):
        (folder / name).mkdir(parents=True, mode=0o700)
    places = (folder / "job", folder / "in", folder / "out")
    return RunRequest("a-unit", ("sh", "-c", script), *places, SandboxLimits(60, 64 << 20), image=BUSYBOX)


def ended_under(
    runtime: subject.DockerRuntime, folder: Path, act: Callable[[], None], script: str = OBEYS
) -> RunResult:
    """Run a program, do something to it from outside, and return what its end was called."""
    request, results = request_of(folder, script), list[RunResult]()
    thread = threading.Thread(target=lambda: results.append(runtime.run(request, threading.Event())), daemon=True)
    thread.start()
    while not (request.out_dir / "started").exists():
        assert thread.is_alive(), results
    act()
    thread.join(60)
    return results[0]


def listed(api: Any) -> Any:
    """Return the one container that runs; a program may run before its engine lists it."""
    (found,) = wait(lambda: api.containers(filters={"label": LABEL}), "the engine lists it", 30)
    return found


def restart(engine: Engine, how: Callable[[], None]) -> None:
    how()
    engine.start()


def test_run__engine_restarted_or_program_ended_from_outside__broken_and_the_next_run_is_good(
    engine: Engine, api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = subject.DockerRuntime(engine.host, images=rules())
    ways: dict[str, Callable[[], None]] = {
        "killed": lambda: restart(engine, engine.kill),
        "stopped": lambda: restart(engine, engine.stop),
        "by somebody": lambda: api.stop(listed(api)["Id"]),
    }
    for name, act in ways.items():
        # The worker may look while there is no engine, or not before the next one is there.
        monkeypatch.setattr(subject, "POLL_SECONDS", 3.0 if name == "stopped" else 0.25)
        result = ended_under(runtime, tmp_path / name, act)
        assert result.status is RunStatus.BROKEN, (name, result)
        assert result.detail == subject.STOPPED or name == "killed", result
        monkeypatch.undo()
        result = runtime.run(request_of(tmp_path / f"{name}-again", "exit 3"), threading.Event())
        assert (result.status, result.exit_code) == (RunStatus.EXIT, 3), name
        assert api.containers(all=True, filters={"label": LABEL}) == []


def left_running(runtime: subject.DockerRuntime, api: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a program whose engine goes away, as the worker sees it, and does not end it; return its container."""
    from docker.errors import DockerException

    def gone(*_: Any) -> None:
        raise DockerException("connection refused")

    with monkeypatch.context() as away:
        away.setattr(subject._Run, "_watch", gone)
        away.setattr(subject, "_end", gone)
        result = runtime.run(request_of(folder, "sleep 600"), threading.Event())
        assert result.status is RunStatus.BROKEN
        (left,) = api.containers(filters={"label": LABEL})
    return left


def test_run__container_that_nobody_runs_again__is_ended_once_the_engine_can_or_before_another_unit_runs(
    engine: Engine, api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit that was given back meanwhile would else keep its processors and GPUs until the worker ends."""
    runtime = subject.DockerRuntime(engine.host, images=rules())
    left_running(runtime, api, tmp_path / "first", monkeypatch)
    wait(lambda: api.containers(all=True, filters={"label": LABEL}) == [], "it is ended", 60)
    assert runtime._left == {}
    monkeypatch.setattr(subject, "LEFT_SECONDS", 600.0)
    left = left_running(runtime, api, tmp_path / "second", monkeypatch)
    other = replace(request_of(tmp_path / "other", "exit 3"), unit="another-unit")
    assert runtime.run(other, threading.Event()).exit_code == 3
    assert api.containers(all=True, filters={"id": left["Id"]}) == [] and runtime._left == {}


def test_run__container_that_an_earlier_try_left_running__is_ended_before_the_unit_runs_again(
    engine: Engine, api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "LEFT_SECONDS", 600.0)
    runtime = subject.DockerRuntime(engine.host, images=rules())
    left = left_running(runtime, api, tmp_path / "first", monkeypatch)
    script = "test -e /out/other && exit 1; touch /out/other; exit 0"
    result = runtime.run(request_of(tmp_path / "second", script), threading.Event())
    assert result.status is RunStatus.OK, result.detail
    assert api.containers(all=True, filters={"id": left["Id"]}) == []


def test_end_left__unit_that_runs_again_meanwhile__later_try_runs_on(
    engine: Engine, api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "LEFT_SECONDS", 600.0)
    runtime = subject.DockerRuntime(engine.host, images=rules())
    left_running(runtime, api, tmp_path / "first", monkeypatch)
    lock = runtime._left["a-unit"]

    def late() -> None:
        """End what was left, which the later try has ended already, and let that one go on."""
        runtime._end_left("a-unit", lock)
        (tmp_path / "second" / "in" / "go").touch()

    script = "touch /out/started; while ! test -e /in/go; do sleep 0.1; done; exit 7"
    result = ended_under(runtime, tmp_path / "second", late, script)
    assert (result.status, result.exit_code) == (RunStatus.EXIT, 7), result
