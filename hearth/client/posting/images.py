"""What this machine's container engine knows of a job's image, before the job is posted: what no worker runs, is told.

Best effort: without an engine, or where it does not know the image, nothing is said, and a worker finds out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, Final

from hearth.base import peer
from hearth.base.addresses import is_local_name, is_public
from hearth.base.errors import ConfigError, SpecError, StorageError
from hearth.base.text import brief, plain, quoted
from hearth.client.posting.engine import connect
from hearth.jobfile.image_config import NO_COMMAND, PLATFORMS, has_command, image_fault

ENGINE_SECONDS: Final = 10
HINT: Final = "docs/JOB.md says what an image may be"


def look_at_image(image: str, command: Sequence[str], *, allow_private: bool = False) -> tuple[str, ...]:
    """Refuse an image, a reference by digest, that no worker runs; return what else its submitter should know.

    Its configuration is read where the image lies on the engine here, its platforms from its registry; one in a
    private network is asked with `allow_private` only. Raises SpecError UNSUPPORTED_IMAGE.
    """
    config, platforms = ask_engine(image, allow_private=allow_private)
    if config is not None and (fault := image_fault(config)):
        raise _refused(fault)
    if config is not None and not command and not has_command(config):
        raise _refused(f"{NO_COMMAND}: write command: [...], or name one in the image")
    if not platforms or PLATFORMS[0] in platforms:
        return ()
    named = ", ".join(plain(brief(one)) for one in platforms)
    if not any(one in platforms for one in PLATFORMS):
        raise _refused(f"the image is for {named}, and workers run {' and '.join(PLATFORMS)}")
    return (f"the image is for {named} alone: a machine of another kind gives it back (docker buildx builds for both)",)


def ask_engine(image: str, *, allow_private: bool = False) -> tuple[Mapping[str, Any] | None, tuple[str, ...]]:
    """Return an image's configuration, None where the engine has none of it, and its platforms, none where unknown.

    A registry in a private network, or whose name leads nowhere, is asked with `allow_private` only.
    """
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    config: Mapping[str, Any] | None = None
    try:
        with closing(connect(ENGINE_SECONDS)) as engine:
            api: Any = engine.api  # its published types leave half of its calls untyped
            with suppress(DockerException):
                config = api.inspect_image(image).get("Config") or {}
            if not allow_private:
                require_public(image)
            found = api.inspect_distribution(image).get("Platforms") or []
    except (ConfigError, StorageError, DockerException, RequestException):
        return config, ()
    return config, platforms_of(found)


def require_public(image: str) -> None:
    """Refuse an image whose registry lies in a private network or on this machine: whoever wrote its name chose it.

    Raises StorageError URL_PRIVATE, REGISTRY_DOWN where its name leads nowhere.
    """
    host = _registry_of(image).partition(":")[0]
    if not host:
        return
    try:
        inside = is_local_name(host) or not all(
            is_public(place[0]) for _, place in peer.look_up(host, 443, time.monotonic() + ENGINE_SECONDS)
        )
    except (OSError, ValueError) as error:
        raise StorageError(
            f"the name of the registry of {image} cannot be resolved: {quoted(str(error))}",
            hint='check its name, or name the image by digest ("name@sha256:...")',
            code="REGISTRY_DOWN",
        ) from error
    if inside:
        raise StorageError(
            f"the registry of {image} is in a private network or on this machine",
            hint="where it is meant to be asked, add --allow-private; else name the image by digest",
            code="URL_PRIVATE",
        )


def _registry_of(image: str) -> str:
    """Return the registry of a reference as an engine reads it, host[:port], empty for Docker Hub."""
    first, slash, _ = image.partition("/")
    named = slash and (set(first) & set(".:") or first == "localhost" or first != first.lower())
    return first if named else ""


def platforms_of(found: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return a registry's platforms as os/architecture, each once; what is not named, as of attestations, is none."""
    named = ((str(one.get("os") or ""), str(one.get("architecture") or "")) for one in found)
    return tuple(dict.fromkeys(f"{os}/{arch}" for os, arch in named if "unknown" not in (os, arch) and os and arch))


def _refused(why: str) -> SpecError:
    return SpecError(f"image: {why}", hint=HINT, code="UNSUPPORTED_IMAGE", field="image")
