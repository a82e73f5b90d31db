"""Every shift and mask of the contracts is one lane's, and a wrong one at any single site is refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from vyper import ast as vy_ast

from hearth.protocol.words import WORDS
from tools.check_vyper import Problem, check_source
from tools.lane_rules import CONSTANTS, lane_faults
from tools.lanes import PACKING, Kind
from tools.vyper_files import ROOT, Source, find_sources, load

CONTRACTS = [
    source
    for source in find_sources(ROOT / "contracts")
    if source.path.parent == ROOT / "contracts" and source.path.name != PACKING.name
]
HEAD = "# pragma version 0.4.3\n\nimport packing\n\n"
BODY = "\n\n@pure\n@internal\ndef f(word: uint256, hot: uint256, offer: uint256, given: uint256) -> uint256:\n"


def _problems(folder: Path, text: str) -> list[Problem]:
    # A few constants compile in a moment, all of them do not.
    named = [constant for name, constant in CONSTANTS.items() if f"packing.{name}" in text]
    (folder / PACKING.name).write_text("\n".join(["# pragma version 0.4.3", *map(str, named), ""]))
    path = folder / "sample.vy"
    path.write_text(text)
    return check_source(Source(path, path.name, folder))[0]


def _refused(folder: Path, line: str, constants: str = "") -> list[str]:
    """Return why `line`, the body of a function of a word, is refused."""
    problems = _problems(folder, HEAD + constants + BODY + f"    {line}\n")
    assert {problem.rule for problem in problems} <= {"lanes"}, problems
    return [problem.why for problem in problems]


@pytest.mark.parametrize("source", CONTRACTS, ids=lambda source: source.path.name)
def test_contracts__every_site__is_of_one_lane(source: Source) -> None:
    assert check_source(source)[0] == []


# ---- a wrong constant at one site ----


@cache
def _module(source: Source) -> vy_ast.Module:
    return load(source).annotated_vyper_module


def _reads(module: vy_ast.Module, kind: Kind) -> Iterator[vy_ast.Attribute]:
    """Yield every site that masks (MASK) or shifts down (SHIFT) by a constant of the table."""
    operator = {Kind.MASK: vy_ast.BitAnd, Kind.SHIFT: vy_ast.RShift}[kind]
    for node in module.get_descendants(vy_ast.BinOp):
        for operand in (node.left, node.right) if isinstance(node.op, operator) else ():
            named = CONSTANTS.get(operand.attr) if isinstance(operand, vy_ast.Attribute) else None
            if named is not None and named.kind is kind:
                yield operand


@pytest.mark.parametrize("kind", [Kind.MASK, Kind.SHIFT], ids=lambda kind: kind.name)
@pytest.mark.parametrize("step", [1, 2, 5, 40])
def test_contracts__another_lanes_constant_at_any_site__is_refused_there(kind: Kind, step: int) -> None:
    """Each site gets a constant of another value, `step` further in the table, and is refused by itself."""
    names = [name for name, constant in CONSTANTS.items() if constant.kind is kind]
    sites = 0
    for source in CONTRACTS:
        module = _module(source)
        changed = list(_reads(module, kind))
        own = [operand.attr for operand in changed]
        for operand in changed:
            at, value = names.index(operand.attr), CONSTANTS[operand.attr].value
            operand.attr = next(n for n in names[at + step :] + names if CONSTANTS[n].value != value)
        refused = {id(node) for node, _ in lane_faults(module)}
        for operand in changed:
            read = operand.get_ancestor()
            # A wrong shift shows at its own mask, right above it; a wrong word at what is read.
            seen = {id(node) for node in (read, read.get_ancestor(), read.left, read.right)}
            assert seen & refused, f"{source.label}:{operand.lineno}: {operand.attr}"
        for operand, name in zip(changed, own, strict=True):
            operand.attr = name
        sites += len(changed)
    assert sites > 100


# ---- each rule ----


@pytest.mark.parametrize(
    "line",
    [
        "return (word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK",
        "return packing.UNIT_MARK_MASK & (word >> packing.UNIT_MARK_SHIFT)",
        "return word & packing.UNIT_STATE_MASK",
        "return word >> packing.HEADER_QUORUM_SHIFT",
        "return offer >> packing.OFFER_BITS",
        "return (word & ~(packing.UNIT_STATE_LANE | packing.UNIT_FUEL)) | (given << packing.UNIT_MARK_SHIFT)",
        "return (hot & ~KEPT) + (1 << packing.HOT_BUSY_SHIFT)",
        "return min(given, packing.UNIT_MARK_MASK)",
        "return word & 3  # lanes: a table",
        "return given & packing.UNIT_STATE_MASK  # lanes: a copy of the word",
    ],
)
def test_check_source__lane_in_the_house_form__passes(tmp_path: Path, line: str) -> None:
    constants = "KEPT: constant(uint256) = packing.HOT_BEAT_LANE + packing.HOT_LAPSED\n"
    assert _refused(tmp_path, line, constants) == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("return (word >> packing.UNIT_MARK_SHIFT) & (2**39 - 1)", "& with what is no lane"),
        ("return (word >> packing.UNIT_MARK_SHIFT) & 1023", "& with what is no lane"),
        ("return (word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_STARTED_MASK", "UNIT_STARTED_MASK masks what"),
        ("return (word >> 160) & packing.UNIT_MARK_MASK", "a shift by what is no lane's"),
        ("return word & packing.UNIT_MARK_MASK", "UNIT_MARK_MASK masks what"),
        ("return (word >> given) & packing.UNIT_STATE_MASK", "UNIT_STATE_MASK masks what"),
        ("return word >> packing.UNIT_MARK_SHIFT", "unit has lanes above mark"),
        ("return (word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_FUEL", "a word that was shifted"),
        ("return (hot >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK", "`hot` is read as unit"),
        ("return hot & packing.UNIT_FUEL", "`hot` is read as unit"),
        ("return hot & packing.UNIT_STATE_MASK", "`hot` is read as unit"),
        ("return given & packing.UNIT_STATE_MASK", "`given` is read as unit"),
        ("return hot & ~(packing.HOT_BEAT_LANE | packing.UNIT_FUEL)", "lanes of hot and unit"),
        ("return (given << packing.UNIT_MARK_SHIFT) | (given << packing.HOT_BOND_SHIFT)", "lanes of hot and unit"),
        ("return given << 160", "a shift by what is no lane's"),
        ("return given << packing.OFFER_BITS", "a shift by what is no lane's"),
        ("return given << packing.UNIT_MARK_MASK", "a shift by what is no lane's"),
        ("return word & ~(packing.UNIT_MARK_MASK << packing.UNIT_MARK_SHIFT)", "in place is UNIT_MARK_LANE"),
        ("return word + packing.UNIT_MARK_SHIFT", "UNIT_MARK_SHIFT is for the right side"),
        ("return word ^ packing.UNIT_FUEL", "^ belongs to no lane"),
        ("return word & given", "& with what is no lane"),
        ("return word & OTHER", "& with what is no lane"),
    ],
)
def test_check_source__shift_or_mask_of_no_lane__is_refused(tmp_path: Path, line: str, why: str) -> None:
    refused = _refused(tmp_path, line, "OTHER: constant(uint256) = 2**40 - 1\n")
    assert any(why in reason for reason in refused), refused


@pytest.mark.parametrize("operator", ["&=", "<<=", ">>=", "^="])
def test_check_source__in_place_operator__is_refused(tmp_path: Path, operator: str) -> None:
    line = f"x: uint256 = word\n    x {operator} 3\n    return x"
    assert any("write the lane out" in why for why in _refused(tmp_path, line))


def test_constants__names__are_one_each() -> None:
    source = (ROOT / PACKING).read_text(encoding="utf-8")
    assert len(CONSTANTS) == source.count(": constant(uint256)")
    assert {constant.word for constant in CONSTANTS.values()} == set(WORDS)
