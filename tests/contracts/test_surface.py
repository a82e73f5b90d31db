"""What the registries, Lens, Attesters and Steward can be asked, and that a test demands each of their reasons."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hearth.market.contracts import CONTRACTS as DEPLOYED
from hearth.protocol.reasons import REASONS
from tests.kit.evm import CONTRACTS, compile_contract
from tests.kit.refusals import reasons_in

FOLDERS = {
    "NodeRegistry": "node_registry",
    "Rules": "rules",
    "JobRegistry": "job_registry",
    "Lens": "lens",
    "Attesters": "attesters",
    "Steward": "steward",
}
# What Rules says of terms is demanded of `post`.
DEMANDED_IN = {"Rules": ("rules", "job_registry")}
PREFIXES = {
    "NodeRegistry": ("nodes: ",),
    "Rules": ("rules: ", "jobs: "),
    "JobRegistry": ("jobs: ", "nodes: not the operator"),  # its checkpoints are the operator's, asked of NodeRegistry
    "Lens": ("lens: ",),
    "Attesters": ("attesters: ",),
    "Steward": ("steward: ",),
}
HERE = Path(__file__).parent


def _source(name: str) -> str:
    return (CONTRACTS / f"{name}.vy").read_text(encoding="utf-8")


def _tests_in(*folders: str) -> str:
    paths = [path for folder in folders for path in sorted((HERE / folder).glob("test_*.py"))]
    return "".join(path.read_text(encoding="utf-8") for path in paths)


def test_surface__contracts__are_all_looked_at() -> None:
    """Those of Escrow's are looked at by its own tests."""
    assert set(FOLDERS) == set(DEPLOYED) - {"Escrow"}


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
def test_surface__reasons__are_its_own_and_each_demanded_by_a_test(name: str) -> None:
    reasons = {REASONS[number].text for number in reasons_in(name)}
    tests = _tests_in(*DEMANDED_IN.get(name, (FOLDERS[name],)))
    # Demanded in place, or at the end of a row in a table of cases that go through `reverts(reason)`.
    demanded = set(re.findall(r'reverts\("([^"]*)"\)', tests))
    if "reverts(reason)" in tests:
        demanded |= set(re.findall(r'"([a-z]+: [^"]*)"\),?$', tests, re.MULTILINE))
    assert reasons - demanded == set()
    assert all(reason.startswith(PREFIXES[name]) for reason in reasons)


def test_surface__reasons_of_the_table__are_each_given_by_a_contract() -> None:
    """Those of Escrow's are looked at by its own tests."""
    given = set().union(*map(reasons_in, DEPLOYED))
    assert given == set(REASONS)


@pytest.mark.parametrize("name", FOLDERS)
def test_surface__functions__have_tests_of_their_own(name: str) -> None:
    tested = set(re.findall(r"^def test_(\w+?)__", _tests_in(FOLDERS[name]), re.MULTILINE))
    functions = {entry["name"] for entry in compile_contract(name).abi if entry["type"] == "function"}
    # Public variables and immutables are read back by the constructor's tests; what a key names has tests of its own.
    variables = set(re.findall(r"^(\w+): public\((?!reentrant\(HashMap)", _source(name), re.MULTILINE))
    assert functions - variables - tested == set()
    constructor = (HERE / FOLDERS[name] / "test_constructor.py").read_text(encoding="utf-8")
    assert {variable for variable in variables if f".{variable}()" not in constructor} == set()
