"""A limit that contracts and programs both know is one number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from hearth.protocol import attest, formulas, parents, reputation, types, units, zones
from tools.vyper_files import ROOT

CONSTANT = re.compile(r"^([A-Z_]+): constant\(uint256\) = ([0-9*_ ]+?) *(?:#.*)?$", re.MULTILINE)


def _of_contracts() -> Iterator[tuple[str, str, int]]:
    for path in sorted((ROOT / "contracts").glob("*.vy")):
        for name, number in CONSTANT.findall(path.read_text(encoding="utf-8")):
            yield path.name, name, eval(number)


MODULES = (attest, formulas, parents, reputation, types, units, zones)
OF_PROGRAMS: dict[str, Any] = {
    name: value for module in MODULES for name, value in vars(module).items() if name.isupper()
}
SHARED = [found for found in _of_contracts() if isinstance(OF_PROGRAMS.get(found[1]), int)]


@pytest.mark.parametrize(("file", "name", "number"), SHARED, ids=[f"{file}-{name}" for file, name, _ in SHARED])
def test_limit__of_a_contract__is_what_programs_hold(file: str, name: str, number: int) -> None:
    assert OF_PROGRAMS[name] == number


def test_limits__what_jobs_and_results_are_held_to__are_among_them() -> None:
    assert {"MAX_ATTEMPTS", "MAX_PARENTS", "MAX_SECONDS", "MAX_RESUMED", "MAX_EXTENSIONS", "MOST_SHARED"} <= {
        name for _, name, _ in SHARED
    }
