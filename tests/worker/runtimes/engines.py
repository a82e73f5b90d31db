"""The engine, registry and images that tests of containers share."""

from __future__ import annotations

import os
import uuid
from typing import Any

from tests.kit.require import require
from worker.runtimes.docker import DockerRuntime
from worker.runtimes.docker_images import ImageRules

HOST = os.environ.get("HEARTH_DOCKER_HOST") or os.environ.get("DOCKER_HOST")
REGISTRY = os.environ.get("HEARTH_TEST_REGISTRY", "")
BUSYBOX = os.environ.get("HEARTH_TEST_IMAGE_BUSYBOX", "")
NUMPY = os.environ.get("HEARTH_TEST_IMAGE_PYTHON_NUMPY", "")
MIB = 1 << 20


def rules(*registries: str, **changes: Any) -> ImageRules:
    """Return rules that allow the loopback registry, which is named since it lies in no public network, and others."""
    return ImageRules(registries=(BUSYBOX.partition("/")[0], *registries), reserve_bytes=0, **changes)


def runtime_of(images: ImageRules) -> DockerRuntime:
    """Return the real engine's runtime; skip or fail where there is no engine."""
    runtime = DockerRuntime(HOST, images=images)
    able, why = runtime.available()
    require("docker", able and bool(BUSYBOX), f"{why}; HEARTH_TEST_IMAGE_BUSYBOX={BUSYBOX!r}")
    return runtime


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
