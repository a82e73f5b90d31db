"""The engines, registry and images that tests of containers share."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.kit.require import require
from worker.runtimes.docker import DockerRuntime
from worker.runtimes.docker_images import ImageRules

REGISTRY = os.environ.get("HEARTH_TEST_REGISTRY", "")
BUSYBOX = os.environ.get("HEARTH_TEST_IMAGE_BUSYBOX", "")
NUMPY = os.environ.get("HEARTH_TEST_IMAGE_PYTHON_NUMPY", "")
MIB = 1 << 20


class Kind(NamedTuple):
    """A kind of sandbox that an engine gives: where the engine is, the OCI runtime to ask for, and what both are."""

    host: str | None
    runtime: str = ""
    gvisor: bool = False
    remapped: bool = False


_HOST = os.environ.get("HEARTH_DOCKER_HOST") or os.environ.get("DOCKER_HOST")
ENGINES = {
    "runc": Kind(_HOST),
    "runsc": Kind(_HOST, "runsc", gvisor=True),
    "gpu": Kind(os.environ.get("HEARTH_GPU_DOCKER_HOST", "")),
    "userns": Kind(os.environ.get("HEARTH_USERNS_DOCKER_HOST", ""), remapped=True),
}
"""The engine as it is, with gVisor, a newer one, and one with user namespaces: HEARTH_REQUIRE names them docker, runsc,
gpu, userns."""
CHOSEN = ENGINES[os.environ.get("HEARTH_TEST_ENGINE", "runc")]
"""What the tests of containers run on; test_engines.py runs them on the others."""
HOST = CHOSEN.host


def rules(*registries: str, **changes: Any) -> ImageRules:
    """Return rules that allow the loopback registry, which is named since it lies in no public network, and others."""
    return ImageRules(registries=(BUSYBOX.partition("/")[0], *registries), reserve_bytes=0, **changes)


def runtime_of(images: ImageRules) -> DockerRuntime:
    """Return the real engine's runtime; skip or fail where there is no engine."""
    runtime = DockerRuntime(HOST, runtime=CHOSEN.runtime, images=images)
    able, why = runtime.available()
    require("docker", able and bool(BUSYBOX), f"{why}; HEARTH_TEST_IMAGE_BUSYBOX={BUSYBOX!r}")
    return runtime


def need(name: str) -> Kind:
    """Return a kind of sandbox that is here and has the test images; skip, or fail where CI says so, otherwise."""
    kind = ENGINES[name]
    part = "docker" if name == "runc" else name
    able, why = DockerRuntime(kind.host, runtime=kind.runtime).available() if kind.host else (False, "no engine named")
    require(part, able and bool(BUSYBOX) and bool(NUMPY), f"{name}: {why}; HEARTH_TEST_IMAGE_BUSYBOX={BUSYBOX!r}")
    return kind


def published(api: Any, changes: list[str], script: str = "true", image: str = BUSYBOX) -> str:
    """Run a script of the shell as root in an image, commit that with Dockerfile changes, push it, and return its
    reference by digest."""
    repository = f"{REGISTRY}/hearth/made"
    tag = uuid.uuid4().hex[:12]
    container = api.create_container(image, ["sh", "-e", "-c", script], network_disabled=True)["Id"]
    try:
        if script != "true":
            api.start(container)
            assert api.wait(container)["StatusCode"] == 0, api.logs(container)
        api.commit(container, repository=repository, tag=tag, changes=changes)
    finally:
        api.remove_container(container)
    lines = list(api.push(repository, tag=tag, stream=True, decode=True))
    digest = next(line["aux"]["Digest"] for line in lines if "aux" in line)
    return f"{repository}@{digest}"


def fresh(api: Any) -> str:
    """Publish an image that the engine does not have any more."""
    image = published(api, ["LABEL fresh=" + uuid.uuid4().hex])
    api.remove_image(api.inspect_image(image)["Id"], force=True)
    return image


# ---- changes of the body of a create call, for controls without a rule ----

Mutation = Callable[[dict[str, Any]], None]


def host(**values: Any) -> Mutation:
    """Return a mutation that sets or, with None, removes keys of HostConfig."""

    def apply(config: dict[str, Any]) -> None:
        for key, value in values.items():
            if value is None:
                config["HostConfig"].pop(key)
            else:
                config["HostConfig"][key] = value

    return apply


def as_root(config: dict[str, Any]) -> None:
    config["User"] = "0:0"
