"""What the registries and Lens can be asked, and that a test demands each of their reasons."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.kit.evm import CONTRACTS, compile_contract

FOLDERS = {"NodeRegistry": "node_registry", "JobRegistry": "job_registry", "Lens": "lens"}
HERE = Path(__file__).parent


def _source(name: str) -> str:
    return (CONTRACTS / f"{name}.vy").read_text(encoding="utf-8")


def _table(name: str, constant: str) -> list[str]:
    """Return the rows of a table of reasons, padding cut off."""
    found = re.search(rf'^{constant}: constant\(\s*String\[(\d+)\]\s*\) = "([^"]*)"$', _source(name), re.MULTILINE)
    assert found is not None
    size, text = int(found[1]), found[2]
    assert size == len(text) and size % 32 == 0
    return [text[at : at + 32].rstrip(" ") for at in range(0, size, 32)]


def _reasons(name: str) -> set[str]:
    """Return every reason that the contract can give."""
    inline = set(re.findall(r'"((?:jobs|nodes|lens): [^"]*?)"', re.sub(r'\) = "[^"]*"', "", _source(name))))
    tables = {"JobRegistry": ["REASONS"], "NodeRegistry": ["GATE_REASONS"]}.get(name, [])
    rows = {row for constant in tables for row in _table(name, constant)}
    return (inline | rows) - {"nodes: fits"}  # row 0, which no gate gives


def _tests_of(name: str) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in sorted((HERE / FOLDERS[name]).glob("test_*.py")))


@pytest.mark.parametrize("name", FOLDERS)
def test_surface__functions__are_those_of_the_interface(name: str) -> None:
    def surface(path: str) -> set[tuple[str, str, str]]:
        return {
            (entry["name"], entry["stateMutability"], str([item["type"] for item in entry["inputs"]]))
            for entry in compile_contract(path).abi
            if entry["type"] == "function"
        }

    own, promised = surface(name), surface(f"interfaces/I{name}")
    assert promised <= own
    extra = {function for function, mutability, _ in own - promised if mutability not in ("view", "pure")}
    assert extra == set()


@pytest.mark.parametrize("name", FOLDERS)
def test_surface__reasons__are_short_and_each_demanded_by_a_test(name: str) -> None:
    reasons, tests = _reasons(name), _tests_of(name)
    # Demanded in place, or at the end of a row in a table of cases that go through `reverts(reason)`.
    demanded = set(re.findall(r'reverts\("([^"]*)"\)', tests))
    if "reverts(reason)" in tests:
        demanded |= set(re.findall(r'"([a-z]+: [^"]*)"\),?$', tests, re.MULTILINE))
    assert reasons - demanded == set()
    prefix = {"NodeRegistry": "nodes: ", "JobRegistry": "jobs: ", "Lens": "lens: "}[name]
    for reason in reasons:
        assert reason.startswith(prefix) and len(reason) <= 32, reason


def test_surface__job_reasons__are_numbered_as_they_stand_in_the_table() -> None:
    source = _source("JobRegistry")
    block = source[source.index("# Reasons, one 32-byte row each") : source.index("REASONS: constant")]
    numbers = [int(found) for found in re.findall(r"^[A-Z_]+: constant\(uint256\) = (\d+)$", block, re.MULTILINE)]
    assert numbers == list(range(len(_table("JobRegistry", "REASONS"))))


def test_surface__job_reasons__are_each_used_by_the_code() -> None:
    source = _source("JobRegistry")
    block = source[source.index("# Reasons, one 32-byte row each") : source.index("REASONS: constant")]
    for code in re.findall(r"^([A-Z_]+): constant", block, re.MULTILINE):
        assert f"self._refuse({code})" in source, f"{code} is never given"


def test_surface__tables__hold_no_reason_twice() -> None:
    for name, constant in (("JobRegistry", "REASONS"), ("NodeRegistry", "GATE_REASONS")):
        rows = _table(name, constant)
        assert len(rows) == len(set(rows))


@pytest.mark.parametrize("name", FOLDERS)
def test_surface__functions__have_tests_of_their_own(name: str) -> None:
    tested = set(re.findall(r"^def test_(\w+?)__", _tests_of(name), re.MULTILINE))
    functions = {entry["name"] for entry in compile_contract(name).abi if entry["type"] == "function"}
    # Public variables and immutables are read back by the constructor's tests.
    variables = set(re.findall(r"^(\w+): public\(", _source(name), re.MULTILINE))
    assert functions - variables - tested == set()
    constructor = (HERE / FOLDERS[name] / "test_constructor.py").read_text(encoding="utf-8")
    assert {variable for variable in variables if f".{variable}()" not in constructor} == set()
