"""The lock files pin everything by hash and name no host."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tools.lock_npm import complete
from tools.vyper_files import ROOT

LOCKS = sorted(ROOT.glob("requirements*.lock"))


def test_locks__all_are_there() -> None:
    names = {path.name for path in LOCKS}
    assert names == {f"requirements{part}.lock" for part in ("", "-dev", "-build", "-format", "-go", "-node")}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_lock__every_requirement__is_pinned_by_hash(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", text.strip())
    assert entries
    for entry in entries:
        assert re.match(r"[A-Za-z0-9._\-\[\]]+==\S+", entry), entry[:80]
        assert "--hash=sha256:" in entry, entry[:80]


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_lock__any__names_no_host(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index-url" not in text
    assert "--find-links" not in text


def test_npm_lock__every_package__is_pinned_without_a_host() -> None:
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    for name, package in packages.items():
        assert "resolved" not in package, name
        # Another platform's placeholder has no hash; it is never installed here.
        assert not name or "integrity" in package or package.get("optional"), name


def test_runtime_lock__every_pin__equals_the_dev_lock() -> None:
    def pins(name: str) -> dict[str, str]:
        text = (ROOT / name).read_text()
        return dict(re.findall(r"^([A-Za-z0-9._\-]+)==(\S+)", text, re.MULTILINE))

    runtime, dev = pins("requirements.lock"), pins("requirements-dev.lock")
    assert runtime
    assert {name: dev.get(name) for name in runtime} == runtime


def test_complete__committed_npm_lock__lacks_nothing() -> None:
    assert complete(json.loads((ROOT / "package-lock.json").read_text())) == []


def test_complete__missing_platform__gets_a_placeholder() -> None:
    package = {"optionalDependencies": {"@x/anvil-darwin-arm64": "1.0.0", "fsevents": "2.0.0"}}
    lock: dict[str, Any] = {"packages": {"node_modules/@x/anvil": package}}
    assert complete(lock) == ["@x/anvil-darwin-arm64"]
    assert lock["packages"]["node_modules/@x/anvil-darwin-arm64"]["cpu"] == ["arm64"]
