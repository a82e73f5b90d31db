"""A missing part is a skip, unless HEARTH_REQUIRE names it."""

from __future__ import annotations

import pytest

from tests.kit.require import require


def test_require__available__passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEARTH_REQUIRE", "docker")
    require("docker", True, "no engine")


def test_require__missing__skips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEARTH_REQUIRE", "kubo")
    with pytest.raises(pytest.skip.Exception, match="no engine"):
        require("docker", False, "no engine")


def test_require__missing_and_named__fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEARTH_REQUIRE", "kubo, docker")
    with pytest.raises(pytest.fail.Exception, match="no engine"):
        require("docker", False, "no engine")
