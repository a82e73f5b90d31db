"""What is said of a job's image before the job is posted: by its configuration here, and its registry's platforms."""

from __future__ import annotations

import io
import json
import os
import tarfile
import uuid
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.base import peer
from hearth.base.errors import SpecError, StorageError
from hearth.client.posting import images
from hearth.client.posting.sources import resolve_image
from tests.kit.require import require

PROGRAM: dict[str, Any] = {"Cmd": ["sh"]}
AMD64, ARM64, WINDOWS = "linux/amd64", "linux/arm64", "windows/amd64"


def look(
    monkeypatch: pytest.MonkeyPatch, config: Mapping[str, Any] | None, platforms: tuple[str, ...], *command: str
) -> tuple[str, ...]:
    monkeypatch.setattr(images, "ask_engine", lambda image, allow_private: (config, platforms))
    return images.look_at_image("x@sha256:" + "ab" * 32, command)


@pytest.mark.parametrize(
    ("config", "platforms", "command", "said"),
    [
        (PROGRAM, (WINDOWS,), (), "the image is for windows/amd64, and workers run linux/amd64 and linux/arm64"),
        (None, ("linux/s390x", "linux/ppc64le"), (), "the image is for linux/s390x, linux/ppc64le"),
        ({}, (AMD64,), (), "the image names no program (neither ENTRYPOINT nor CMD), and the job no command"),
        ({"Cmd": [], "Entrypoint": None}, (), (), "names no program"),
        ({**PROGRAM, "Volumes": {"/out/data": {}}}, (AMD64,), (), "VOLUME that no sandbox can give it, '/out/data'"),
        ({**PROGRAM, "Env": ["LD_PRELOAD=x"]}, (), (), "LD_PRELOAD"),
    ],
)
def test_look_at_image__that_no_worker_runs__refused_by_name_before_the_post(
    monkeypatch: pytest.MonkeyPatch,
    config: Mapping[str, Any] | None,
    platforms: tuple[str, ...],
    command: tuple[str, ...],
    said: str,
) -> None:
    with pytest.raises(SpecError) as refused:
        look(monkeypatch, config, platforms, *command)
    assert said in refused.value.message and refused.value.code == "UNSUPPORTED_IMAGE"


def test_look_at_image__that_some_run_or_that_is_not_known__passes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert look(monkeypatch, PROGRAM, (AMD64, ARM64, WINDOWS)) == look(monkeypatch, None, ()) == ()
    assert look(monkeypatch, {}, (AMD64,), "true") == ()
    (note,) = look(monkeypatch, PROGRAM, (ARM64,))
    assert "linux/arm64 alone" in note and "gives it back" in note


def test_platforms_of__what_registries_say__each_once_and_no_attestation() -> None:
    said = [{"os": "linux", "architecture": "amd64"}] * 2 + [{"os": "unknown", "architecture": "unknown"}, {}]
    assert images.platforms_of(said) == (AMD64,)


def test_ask_engine__that_does_not_answer__knows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    assert images.ask_engine("x@sha256:" + "ab" * 32) == (None, ())


@pytest.mark.parametrize(
    ("image", "leads", "asked"),
    [
        *(("busybox", "", True), ("ada/tools", "", True), ("ghcr.example.org/x", "93.184.216.34", True)),
        *(("127.0.0.1:5000/admin/reset", "", False), ("localhost/x", "", False), ("localhost:5000/x", "", False)),
        *(
            ("10.0.0.9/x", "", False),
            ("registry.lan/x", "", False),
            ("kubo:5001/x", "", False),
            ("[::1]:5/x", "", False),
        ),
        *(("registry.example.org/x", "10.0.0.9", False), ("registry.example.org:5/x", "fec0::2", False)),
        ("registry.example.org/x", "nowhere", False),
    ],
)
@pytest.mark.parametrize("allowed", [False, True])
def test_ask_engine__registry_in_a_private_network__is_asked_only_where_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch, image: str, leads: str, asked: bool, allowed: bool
) -> None:
    """The name is a stranger's, and the engine asks from this machine. What the engine holds itself is still read."""
    seen: list[str] = []

    def look_up(host: str, port: int, end: float) -> list[Any]:
        if leads == "nowhere":
            raise OSError("no such name")
        return [(2, ("93.184.216.34", port)), (2, (leads, port))]

    def told(image: str) -> Any:
        seen.append(image)
        return SimpleNamespace(id="sha256:" + "cd" * 32)

    api = SimpleNamespace(
        inspect_image=lambda image: {"Config": PROGRAM}, inspect_distribution=lambda image: seen.append(image) or {}
    )
    engine = SimpleNamespace(api=api, images=SimpleNamespace(get_registry_data=told), close=lambda: None)
    monkeypatch.setattr(images, "connect", lambda seconds: engine)
    monkeypatch.setattr("hearth.client.posting.engine.connect", lambda seconds: engine)
    monkeypatch.setattr(peer, "look_up", look_up)
    assert images.ask_engine(image + "@sha256:" + "ab" * 32, allow_private=allowed) == (PROGRAM, ())
    if asked or allowed:
        assert resolve_image(image + ":1", allow_private=allowed) == f"{image}@sha256:{'cd' * 32}"
        assert len(seen) == 2
    else:
        with pytest.raises(StorageError) as refused:
            resolve_image(image + ":1")
        assert refused.value.code == ("REGISTRY_DOWN" if leads == "nowhere" else "URL_PRIVATE") and seen == []


@pytest.mark.docker
def test_look_at_image__on_a_real_engine_and_registry__knows_both(monkeypatch: pytest.MonkeyPatch) -> None:
    import docker

    host, registry = os.environ.get("HEARTH_DOCKER_HOST", ""), os.environ.get("HEARTH_TEST_REGISTRY", "")
    require("docker", bool(host and registry), f"HEARTH_DOCKER_HOST={host!r}, HEARTH_TEST_REGISTRY={registry!r}")
    monkeypatch.setenv("DOCKER_HOST", host)
    empty = io.BytesIO()
    tarfile.open(fileobj=empty, mode="w").close()
    name, tag = f"{registry}/hearth/made", uuid.uuid4().hex[:12]
    with docker.APIClient(base_url=host, version="auto") as api:
        made = str(json.loads(api.import_image_from_data(empty.getvalue(), repository=name, tag=tag))["status"])
        try:
            lines = list(api.push(name, tag=tag, stream=True, decode=True))
            digest = next(line["aux"]["Digest"] for line in lines if "aux" in line)
            assert images.ask_engine(f"{name}@{digest}", allow_private=True)[1] == (AMD64,)
            with pytest.raises(SpecError, match="names no program"):
                images.look_at_image(f"{name}@{digest}", ())
            assert images.look_at_image(f"{name}@{digest}", ("/bin/true",), allow_private=True) == ()
        finally:
            api.remove_image(made, force=True)
