"""The container engine of this machine: where nothing answers, the next step is one that helps."""

from __future__ import annotations

import hashlib
import json
import socket
from pathlib import Path

import pytest

from hearth.base.errors import ConfigError
from hearth.client.posting.engine import connect, start_engine, why_silent
from worker.runtimes.docker import DockerRuntime


@pytest.fixture
def docker_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / ".docker"))
    return tmp_path / ".docker"


def _context(folder: Path, text: str) -> None:
    place = folder / "contexts" / "meta" / hashlib.sha256(b"rootless").hexdigest()
    place.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"currentContext": "rootless"}))
    (place / "meta.json").write_text(text)


def test_start_engine__nothing_is_said_of_it__start_it(docker_home: Path) -> None:
    assert start_engine() == "start Docker"


def test_start_engine__docker_context__its_address_is_named(docker_home: Path) -> None:
    endpoint = {"docker": {"Host": f"unix://{docker_home}/none.sock", "SkipTLSVerify": False}}
    _context(docker_home, json.dumps({"Name": "rootless", "Metadata": {}, "Endpoints": endpoint}))
    assert f"export DOCKER_HOST=unix://{docker_home}/none.sock" in start_engine()
    setting = f'set docker.host = "unix://{docker_home}/none.sock" in worker.toml'
    assert DockerRuntime().how_to_start() == f"start the engine of your docker context, and {setting}"
    with pytest.raises(ConfigError) as refused:
        connect(5)
    assert refused.value.code == "NO_DOCKER" and "DOCKER_HOST=" in refused.value.hint


@pytest.mark.parametrize("text", ["{", "{}", '{"Name": "x", "Metadata": {}, "Endpoints": {"docker": 1}}'])
def test_connect__context_that_cannot_be_read__is_no_traceback(docker_home: Path, text: str) -> None:
    _context(docker_home, text)
    with pytest.raises(ConfigError) as refused:
        connect(5)
    assert refused.value.code == "NO_DOCKER" and "start Docker" in refused.value.hint


def test_connect__nothing_answers__says_why_in_plain_words(docker_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "unix:///nowhere.sock"
    why = "there is no socket at its address, so that it does not run, or is not installed"
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(ConfigError) as refused:
        connect(5)
    assert refused.value.message == f"no container engine answers here: {why}"
    runtime = DockerRuntime(address)
    assert runtime.available() == (False, f"no Docker engine answers: {why}")
    assert [row.detail for row in runtime.capabilities(1)] == [f"no engine answers: {why}"]


@pytest.mark.parametrize(
    ("cause", "why"),
    [
        (PermissionError(13, "Permission denied"), "this user may not open its socket: sudo usermod -aG docker $USER"),
        (ConnectionRefusedError(111, "Connection refused"), "nothing listens at its address"),
        (socket.gaierror(-2, "Name or service not known"), "the name in its address is not known"),
        (TimeoutError(), "it takes too long to answer"),
        (None, "teapot"),
    ],
)
def test_why_silent__cause__is_said_without_the_librarys_words(cause: Exception | None, why: str) -> None:
    error = Exception("Error while fetching server API version: teapot")
    error.__cause__ = cause
    assert why_silent(error).startswith(why)


def test_why_silent__errors_that_are_each_others_cause__end() -> None:
    one, other = Exception("teapot"), Exception("kettle")
    one.__cause__, other.__cause__ = other, one
    assert why_silent(one) == "teapot"


def test_start_engine__docker_host_is_set__it_is_what_to_look_at(
    docker_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    with pytest.raises(ConfigError) as refused:
        connect(5)
    assert "unix:///nowhere.sock, or unset DOCKER_HOST" in refused.value.hint
    told = DockerRuntime().how_to_start()
    assert "unix:///nowhere.sock, which DOCKER_HOST names, or set docker.host in worker.toml" in told
