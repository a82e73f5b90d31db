"""The lock files pin everything by hash and name no host."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from tools.lock_npm import INTEGRITY, complete
from tools.vyper_files import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCKS = sorted(ROOT.glob("requirements*.lock"))


def test_locks__all_are_there() -> None:
    names = {path.name for path in LOCKS}
    assert names == {f"requirements{part}.lock" for part in ("", "-dev", "-build", "-format", "-fuzz", "-go", "-node")}


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


@pytest.mark.parametrize("file", ["package-lock.json", "web/package-lock.json"])
def test_npm_lock__every_package__is_pinned_by_its_hash_without_a_host(file: str) -> None:
    packages = json.loads((ROOT / file).read_text())["packages"]
    assert len(packages) > 1
    for name, package in packages.items():
        assert "resolved" not in package, name
        # Those for other platforms too: whoever installs there gets what was locked here.
        assert not name or INTEGRITY.fullmatch(package.get("integrity", "")), name


def _pins(name: str) -> dict[str, str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([A-Za-z0-9._\-]+)==(\S+)", text, re.MULTILINE))


def test_runtime_lock__against_the_dev_lock__differs_only_where_ape_holds_back() -> None:
    runtime, dev = _pins("requirements.lock"), _pins("requirements-dev.lock")
    assert {name for name in runtime if dev.get(name) != runtime[name]} == {"base58", "click", "eth-typing", "numpy"}
    assert (runtime["numpy"].split(".")[0], dev["numpy"].split(".")[0]) == ("2", "1")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "\nHELD_BACK := base58|click|eth-typing|numpy\n" in makefile


def test_runtime_lock__what_counts_or_encodes_results__is_pinned_by_the_package_itself() -> None:
    pins = _pins("requirements.lock")
    exact = {name: pins[name] for name in ("ipfshttpclient", "libipld", "multiaddr", "rfc8785", "wasmtime")}
    assert {f"{name}=={version}" for name, version in exact.items()} == {
        r for r in PROJECT["dependencies"] if "==" in r
    }
    # Everything else ends before a version that nobody has tried; so does Python.
    assert all("==" in line or re.search(r",<\d", line) for line in PROJECT["dependencies"])
    assert PROJECT["requires-python"] == ">=3.11,<3.15"


def test_pyproject__dependencies__are_what_the_code_imports() -> None:
    imported = set()
    for folder in ("hearth", "keeper", "worker"):
        for path in (ROOT / folder).rglob("*.py"):
            # The programs of templates run in a job's container, with what is installed there.
            if (ROOT / "hearth" / "local" / "templates") in path.parents[1:]:
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    imported.add(node.module.split(".")[0])
    imported -= {*sys.stdlib_module_names, "hearth", "keeper", "worker"}
    owners = packages_distributions()
    used = {re.sub(r"[-_.]+", "-", owners[module][0]).lower() for module in imported}
    declared = {re.sub(r"[-_.]+", "-", re.match(r"[\w.\-]+", line)[0]).lower() for line in PROJECT["dependencies"]}
    # pydantic-core is the other half of pydantic; multiaddr is ipfshttpclient's, held at the last light one.
    assert used - {"pydantic-core"} == declared - {"multiaddr"}


def test_complete__committed_npm_lock__lacks_nothing() -> None:
    assert complete(json.loads((ROOT / "package-lock.json").read_text())) == []


@pytest.mark.parametrize("there", [{}, {"node_modules/@x/anvil-darwin-arm64": {"version": "1.0.0", "optional": True}}])
def test_complete__missing_platform__gets_an_entry_with_its_hash(there: dict[str, Any]) -> None:
    package = {"optionalDependencies": {"@x/anvil-darwin-arm64": "1.0.0", "fsevents": "2.0.0"}}
    lock: dict[str, Any] = {"packages": {"node_modules/@x/anvil": package, **there}}
    assert complete(lock, lambda name, version: f"hash of {name} {version}") == ["@x/anvil-darwin-arm64"]
    found = lock["packages"]["node_modules/@x/anvil-darwin-arm64"]
    assert (found["cpu"], found["integrity"]) == (["arm64"], "hash of @x/anvil-darwin-arm64 1.0.0")
