"""worker.registries: what an image's name says about where an engine would go."""

from __future__ import annotations

import pytest

from worker import registries as subject

DIGEST = "@sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("python", "docker.io"),
        ("pytorch/pytorch", "docker.io"),
        ("docker.io/library/python", "docker.io"),
        ("index.docker.io/library/python", "docker.io"),
        ("ghcr.io/me/x", "ghcr.io"),
        ("localhost/x", "localhost"),
        ("localhost:5000/x", "localhost:5000"),
        ("intranet/x", "docker.io"),
        ("Intranet/x", "intranet"),
        ("123/x", "docker.io"),
        ("134744072/x", "docker.io"),
        ("1-2/x", "docker.io"),
        ("GHCR.io/me/x", "ghcr.io"),
        ("ghcr.io:443/me/x", "ghcr.io"),
        ("ghcr.io:00443/me/x", "ghcr.io"),
        ("ghcr.io./me/x", "ghcr.io"),
        ("ghcr.io:80/me/x", "ghcr.io:80"),
        ("ghcr.io:0/me/x", "ghcr.io:0"),
        ("ghcr.io:05000/me/x", "ghcr.io:5000"),
        ("docker.io:443/python", "docker.io"),
        ("docker.io:5000/python", "docker.io:5000"),
        ("registry-1.docker.io/library/python", "docker.io"),
        ("registry.hub.docker.com/library/python", "docker.io"),
        ("evil-docker.io/python", "evil-docker.io"),
        ("index.docker.io.evil.example/python", "index.docker.io.evil.example"),
        ("127.0.0.1:5000/hearth/x", "127.0.0.1:5000"),
        ("evil.example/docker.io/x", "evil.example"),
    ],
)
def test_registry_of__as_an_engine_reads_it(image: str, registry: str) -> None:
    assert subject.registry_of(image + DIGEST) == registry


PRIVATE = (
    *("127.0.0.1:2375", "10.0.0.1", "192.168.1.1:5000", "172.16.0.9", "169.254.169.254", "100.64.0.1", "0.0.0.0:80"),
    *("localhost", "localhost:5000", "db.localhost", "printer.local", "registry:5000", "metadata.google.internal"),
    *("224.0.0.1", "255.255.255.255", "168.63.129.16", "nas.lan", "localhost.", "registry.home.arpa:5000"),
)


@pytest.mark.parametrize("host", PRIVATE)
def test_refuse__private_host__not_by_default_nor_by_a_pattern_but_by_its_name(host: str) -> None:
    image = f"{host}/x{DIGEST}"
    assert subject.registry_of(image) == host.rstrip(".")
    assert "docker.registries" in subject.refuse(image, subject.DEFAULT_REGISTRIES)
    assert subject.refuse(image, ("*",)) == subject.not_public(host.rstrip("."))
    assert subject.refuse(image, ("ghcr.io", host)) == "" and subject.is_named(image, (host,))


def test_refuse__public_host__by_default_by_a_pattern_or_not_at_all() -> None:
    assert subject.refuse(f"ghcr.io/me/x{DIGEST}", subject.DEFAULT_REGISTRIES) == ""
    assert subject.refuse(f"python{DIGEST}", subject.DEFAULT_REGISTRIES) == ""
    assert "evil.example" in subject.refuse(f"evil.example/x{DIGEST}", subject.DEFAULT_REGISTRIES)
    assert subject.refuse(f"evil.example/x{DIGEST}", ("*",)) == ""
    assert subject.refuse(f"us-docker.pkg.dev/x{DIGEST}", ("*-docker.pkg.dev",)) == ""
    assert subject.refuse(f"8.8.8.8:5000/x{DIGEST}", ("*",)) == ""
    assert "docker.io" in subject.refuse(f"python{DIGEST}", ("ghcr.io",))
