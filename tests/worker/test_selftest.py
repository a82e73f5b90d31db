"""worker.selftest: a program really runs in each runtime, and one that does not do its work is named."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.require import require
from tests.worker.runtimes.engines import need
from tools import schemas
from worker import manage
from worker import selftest as subject
from worker.runtimes import docker as docker_runtime
from worker.runtimes.base import Level
from worker.runtimes.docker import DockerRuntime
from worker.settings import load

HOST = os.environ.get("HEARTH_DOCKER_HOST") or os.environ.get("DOCKER_HOST")
UNCONFINED = "seccomp=unconfined"
NOWHERE = DockerRuntime("unix:///nowhere.sock")


def test_selftest__no_engine__wasm_passes_and_docker_warns() -> None:
    wasm, docker = subject.selftest(NOWHERE)
    assert (wasm.name, wasm.level) == ("wasm", Level.PASS) and "wasmtime" in wasm.detail
    assert (docker.name, docker.level) == ("docker", Level.WARN) and docker.fix


def test_selftest__runtime_without_a_test_program__warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "RUNTIMES", ("vm",))
    (row,) = subject.selftest(NOWHERE)
    assert (row.name, row.level) == ("vm", Level.WARN) and row.fix


def test_selftest__program_that_says_something_else__fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "WORDS", b"other words\n")
    wasm, _ = subject.selftest(NOWHERE)
    assert wasm.level is Level.FAIL and "hearth selftest" in wasm.detail


def test_selftest__program_that_traps__fails_with_how_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        subject, "MODULE", subject.MODULE.replace("(i32.const 1) (i32.const 0)", "(i32.const 9) (i32.const 0)")
    )
    wasm, _ = subject.selftest(NOWHERE)
    assert wasm.level is Level.FAIL and wasm.detail.startswith("trap:")


def test_worker_selftest__engine_of_a_settings_file__is_the_one_tried(tmp_path: Path) -> None:
    from tests.worker.test_settings import TEXT

    file = tmp_path / "worker.toml"
    file.write_text(TEXT + '\n[docker]\nhost = "unix:///nowhere.sock"\n')
    told = manage.selftest(load(file))
    schemas.validate(told)
    assert told["result"] == "PASS"
    assert [(row["name"], row["level"]) for row in told["checks"]] == [("wasm", "PASS"), ("docker", "WARN")]
    assert "start the engine at unix:///nowhere.sock, or mend docker.host" in told["checks"][1]["fix"]


@pytest.mark.docker
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the container's program is for x86-64")
def test_selftest__real_engine__runs_a_container_and_leaves_no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    import docker

    runtime = DockerRuntime(HOST)
    able, why = runtime.available()
    require("docker", able, why)
    with docker.APIClient(base_url=HOST, version="auto") as api:
        before = {image["Id"] for image in api.images()}
        row = subject.selftest(runtime)[1]
        assert row.level is Level.PASS and row.detail.startswith("ran a program with docker"), row
        monkeypatch.setattr(subject, "_MACHINE_CODE", subject._MACHINE_CODE.replace(b"/out/said", b"/out/none"))
        row = subject.selftest(runtime)[1]
        assert row.level is Level.FAIL and "/out/said is missing" in row.detail, row
        assert {image["Id"] for image in api.images()} == before


@pytest.mark.docker
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the container's program is for x86-64")
@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        ("runc", "user, capabilities, no new privileges, system calls"),
        ("userns", "user, capabilities, no new privileges, system calls"),
        ("runsc", "user, capabilities"),
    ],
)
def test_selftest__each_kind_of_engine__claims_the_walls_that_a_program_saw(kind: str, seen: str) -> None:
    engine = need(kind)
    row = subject.selftest(DockerRuntime(engine.host, runtime=engine.runtime))[1]
    assert (row.level, row.detail.partition("itself: ")[2]) == (Level.PASS, seen), row


Request = dict[str, Any]


@pytest.mark.docker
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the container's program is for x86-64")
@pytest.mark.parametrize(
    ("missing", "forget"),
    [
        ("user", lambda asked: asked.update(User="0:0")),
        ("capabilities", lambda asked: asked["HostConfig"].update(CapDrop=[], CapAdd=["CHOWN"])),
        ("no new privileges", lambda asked: asked["HostConfig"]["SecurityOpt"].remove("no-new-privileges")),
        ("system calls", lambda asked: asked["HostConfig"].update(SecurityOpt=["no-new-privileges", UNCONFINED])),
    ],
)
def test_selftest__wall_that_does_not_stand__fails_by_its_name(
    monkeypatch: pytest.MonkeyPatch, missing: str, forget: Callable[[Request], None]
) -> None:
    """An engine that takes a flag and does not honour it, such as another program that speaks Docker's language."""
    plain = docker_runtime.container_config

    def asked(*args: Any, **kwargs: Any) -> Request:
        config = plain(*args, **kwargs)
        forget(config)
        return config

    monkeypatch.setattr(docker_runtime, "container_config", asked)
    row = subject.selftest(DockerRuntime(need("runc").host))[1]
    assert (row.level, row.detail.partition("round it: ")[2]) == (Level.FAIL, missing), row
    assert row.fix == "hearth worker doctor"
