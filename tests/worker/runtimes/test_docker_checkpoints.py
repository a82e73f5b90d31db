"""Checkpoints of containers on a real engine: copied while paused, and never left paused; state that they begin with.

Needs what test_docker.py needs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hearth.base.errors import StorageError, TooLarge
from tests.worker.runtimes.test_docker import Bench, api, bench, labelled, runtime
from worker.runtimes import docker as subject
from worker.runtimes.base import RunRequest, RunResult, RunStatus
from worker.runtimes.docker_request import LABEL

__all__ = ["api", "bench", "runtime"]
pytestmark = [pytest.mark.docker, pytest.mark.slow]

PLACE = "/out/state"
COUNT = (
    "umask 077; mkdir -p /out/state; i=0; while true; do i=$((i+1)); echo $i > /out/state/.draft;"
    " mv /out/state/.draft /out/state/now; echo half > /out/state/.half; sleep 0.05; done"
)


@contextmanager
def running(bench: Bench, request: RunRequest) -> Iterator[list[RunResult]]:
    """Run a unit in a thread until the block ends; its result is there then."""
    cancel, results = threading.Event(), list[RunResult]()
    thread = threading.Thread(target=lambda: results.append(bench.runtime.run(request, cancel)))
    thread.start()
    try:
        yield results
    finally:
        cancel.set()
        thread.join(60)


def copy(bench: Bench, request: RunRequest, into: Path) -> dict[str, str]:
    into.mkdir()
    bench.runtime.copy_out(request, PLACE, into, lambda: None)
    return {path.name: path.read_text().strip() for path in into.iterdir()}


def count(bench: Bench, request: RunRequest, root: Path) -> int:
    """Return what a counting unit has published, once it has."""
    for number in range(200):
        found = copy(bench, request, root / f"copy-{time.monotonic_ns()}-{number}")
        if found:
            assert set(found) == {"now"}
            return int(found["now"])
        time.sleep(0.05)
    raise AssertionError("it published nothing")


def state(api: Any, bench: Bench) -> str:
    """Return it from the engine's list, for which it does not lock a container."""
    (found,) = api.containers(all=True, filters={"label": f"{LABEL}={bench.label}"})
    return str(found["State"])


def test_copy_out__unit_that_publishes__whole_files_and_it_goes_on(bench: Bench, api: Any, tmp_path: Path) -> None:
    request = bench.request(COUNT)
    with running(bench, request) as results:
        first = count(bench, request, tmp_path)
        assert state(api, bench) == "running"
        time.sleep(0.5)
        assert count(bench, request, tmp_path) > first
    assert results[0].status is RunStatus.CANCELLED


def test_copy_out__copy_that_fails__container_goes_on(bench: Bench, api: Any, tmp_path: Path) -> None:
    """A container that stayed paused would bill its submitter for nothing until its time is over."""
    request = bench.request(COUNT + " & head -c 4000000 /dev/zero > /out/state/big; wait", {"out_bytes": 5_000_000})
    small = bench.request("true", {"out_bytes": 1_000})
    with running(bench, request):
        time.sleep(2)
        for number in range(3):
            (tmp_path / f"fails-{number}").mkdir()

            def fail() -> None:
                assert state(api, bench) == "paused"
                raise KeyError("stopped")

            with pytest.raises(KeyError):
                bench.runtime.copy_out(request, PLACE, tmp_path / f"fails-{number}", fail)
            assert state(api, bench) == "running"
        (tmp_path / "large").mkdir()
        with pytest.raises(TooLarge):
            bench.runtime.copy_out(small, PLACE, tmp_path / "large", lambda: None)
        assert state(api, bench) == "running"


def test_copy_out__engine_slow_to_let_it_go_on__is_asked_again(
    bench: Bench, api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from docker import APIClient
    from requests.exceptions import ReadTimeout

    request, unpause, asked = bench.request(COUNT), APIClient.unpause, list[str]()

    def slow(self: Any, container: str) -> None:
        asked.append(container)
        if len(asked) < 3:
            raise ReadTimeout
        unpause(self, container)

    with running(bench, request):
        count(bench, request, tmp_path)
        monkeypatch.setattr(APIClient, "unpause", slow)
        (tmp_path / "slow").mkdir()
        bench.runtime.copy_out(request, PLACE, tmp_path / "slow", lambda: None)
        assert len(asked) == 3 and state(api, bench) == "running"


def test_copy_out__link_out_of_the_folder__is_refused(bench: Bench, tmp_path: Path) -> None:
    request = bench.request("mkdir /out/state; ln -s /in/data.txt /out/state/x; sleep 60")
    with running(bench, request):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                copy(bench, request, tmp_path / str(time.monotonic_ns()))
            except StorageError as error:
                assert "not a regular file" in error.message
                return
            time.sleep(0.1)
    raise AssertionError("the link was copied")


def test_copy_out__unit_that_is_not_there__copies_nothing(bench: Bench, tmp_path: Path) -> None:
    assert copy(bench, bench.request("true"), tmp_path / "none") == {}


def test_run__cancelled_or_swept_while_paused__ends_and_leaves_nothing(bench: Bench, api: Any, tmp_path: Path) -> None:
    request = bench.request(COUNT)
    with running(bench, request) as results:
        count(bench, request, tmp_path)
        (container,) = labelled(api, bench.label)
        api.pause(container)
    assert results[0].status is RunStatus.CANCELLED and labelled(api, bench.label) == []
    with running(bench, request) as results:
        count(bench, request, tmp_path)
        (container,) = labelled(api, bench.label)
        api.pause(container)  # as a worker leaves it that is killed
        assert subject.DockerRuntime(bench.runtime._host).sweep(bench.label) == 1
        assert labelled(api, bench.label) == []


def test_run__state_of_another_attempt__can_be_read_and_written_over(bench: Bench) -> None:
    request = bench.request("cat /out/state/sub/now; echo 2 > /out/state/sub/now; mv /out/state/sub/now /out/state/x")
    (request.out_dir / "state" / "sub").mkdir(parents=True)
    (request.out_dir / "state" / "sub" / "now").write_text("1\n")
    (request.out_dir / "state" / "sub" / "now").chmod(0o600)
    result = bench.runtime.run(request, threading.Event())
    assert (result.status, result.stdout) == (RunStatus.OK, b"1\n"), result
    assert (request.out_dir / "state" / "x").read_text() == "2\n"


def test_run__seconds_bought_meanwhile__runs_for_as_long(bench: Bench) -> None:
    request = bench.request("sleep 60", {"wall_seconds": 2, "most_seconds": 100})
    began = time.monotonic()
    threading.Timer(1.0, lambda: setattr(request.bought, "seconds", 3)).start()
    result = bench.runtime.run(request, threading.Event())
    assert (result.status, result.detail) == (RunStatus.TIMEOUT, "not done after 5 s")
    assert 5 <= time.monotonic() - began < 20
