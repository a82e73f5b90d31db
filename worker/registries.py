"""What an image's name alone says: which registry is asked for it, and all the ways to write it; pure.

A name is not yet an address: what a name that only a pattern allows resolves to is looked at before a pull
(`worker.runtimes.docker_images`). Source: docs/decisions/0016-run-containers-behind-seen-walls.md,
0018-take-only-work-that-pays-and-fits.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

from hearth.base.addresses import is_local_name

DOCKER_HUB: Final = "docker.io"
_DOCKER_HUB_HOSTS: Final = frozenset({DOCKER_HUB, "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"})
"""The names of Docker Hub: an engine reads the second as the first, and finds the same images at those after it."""
_HTTPS: Final = "443"
_OFFICIAL: Final = "library/"
"""Where Docker Hub keeps the images whose name is one word."""
DEFAULT_REGISTRIES: Final = (
    DOCKER_HUB,
    "gcr.io",
    "ghcr.io",
    "mcr.microsoft.com",
    "nvcr.io",
    "public.ecr.aws",
    "quay.io",
    "registry.gitlab.com",
)
"""Registries that anybody can publish at and that somebody known runs: a provider's list unless it has its own."""


def canonical(registry: str) -> str:
    """Return a registry, host[:port], in the one form that stands for all ways to write it.

    Lower case, no final dot, no port where it is that of https, no zeros before another, and Docker Hub by its name.
    """
    host, _, port = registry.lower().partition(":")
    host, port = host.rstrip("."), port.lstrip("0") or port
    if port not in ("", _HTTPS):
        return f"{host}:{port}"
    return DOCKER_HUB if host in _DOCKER_HUB_HOSTS else host


def registry_of(image: str) -> str:
    """Return the registry of an image's reference, in its canonical form, as an engine reads it.

    The part before the first slash is a host where it could be no user's name at Docker Hub.
    """
    return _split(image)[0]


def spellings(image: str) -> tuple[str, ...]:
    """Return every way to write one image, of a reference with a digest: what a pattern may mean by it.

    `python@sha256:...` is also `docker.io/library/python` and `sha256:...`, so nobody gets past a rule by writing an
    image otherwise.
    """
    name, _, digest = image.partition("@")
    registry, path = _split(name)
    paths, bare = [path], []
    if registry == DOCKER_HUB:
        path = path if "/" in path else f"{_OFFICIAL}{path}"
        paths = bare = list(dict.fromkeys((path, path.removeprefix(_OFFICIAL))))
    names = [*(f"{host}/{each}" for host in _forms(registry) for each in paths), *bare]
    return (*names, *(f"{each}@{digest}" for each in names), digest)


def fits(image: str, pattern: str) -> bool:
    """Say whether an image's reference fits a shell pattern of images, whatever the spelling of either."""
    host, slash, rest = pattern.lower().partition("/")
    wanted = f"{_plain(host)}/{rest}" if slash else host
    return any(fnmatchcase(name, wanted) for name in spellings(image))


def fits_at_any_port(image: str, pattern: str) -> bool:
    """Say whether an image fits a pattern, its registry's port left out or not: one host serves what it serves at all
    of its ports, and plain http has another one."""
    registry, path = _split(image)
    return fits(image, pattern) or fits(f"{registry.partition(':')[0]}/{path}", pattern)


def refuse(image: str, allowed: Iterable[str]) -> str:
    """Return why no image is fetched from this one's registry, empty where it may be.

    `allowed` are hosts and shell patterns of hosts. One that is written out may lie in a private network; a pattern
    holds for public hosts only, since whoever writes a job's spec chooses the host.
    """
    registry, patterns = registry_of(image), tuple(map(_plain, allowed))
    if registry in patterns:
        return ""
    if not any(fnmatchcase(form, pattern) for form in _forms(registry) for pattern in patterns):
        return f"this worker fetches no images from {registry} (docker.registries)"
    return not_public(registry) if is_local_name(host_and_port(registry)[0]) else ""


def is_named(image: str, allowed: Iterable[str]) -> bool:
    """Say whether an image's registry is written out in a list, not only matched by a pattern."""
    return registry_of(image) in map(_plain, allowed)


def not_public(registry: str) -> str:
    """Return the sentence on a registry that lies in a private network and is not written out."""
    return f"{registry} is no public registry, and docker.registries does not write it out"


def host_and_port(registry: str) -> tuple[str, int]:
    """Split a registry; without a port it is the one of https. No image's reference holds an IPv6 address."""
    host, _, port = registry.partition(":")
    return host, int(port) if port.isdecimal() and len(port) <= 5 else 443


def _split(image: str) -> tuple[str, str]:
    """Return the registry of a reference, and the rest of it."""
    first, slash, rest = image.partition("/")
    if not slash or (first == first.lower() and first != "localhost" and not set(first) & set(".:")):
        return DOCKER_HUB, image
    return canonical(first), rest


def _forms(registry: str) -> tuple[str, ...]:
    """Return a canonical registry without the port of https, and with it."""
    return (registry,) if ":" in registry else (registry, f"{registry}:{_HTTPS}")


def _plain(pattern: str) -> str:
    """Return a pattern of hosts in lower case; one that is written out stands for all ways to write it."""
    return pattern.lower() if set(pattern) & set("*?[") else canonical(pattern)
