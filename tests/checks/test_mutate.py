"""The tool that mutates sources: what it lists, what it calls killed, what it keeps, and what is in git of it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.mutate import python, record
from tools.mutate.contracts import mutants
from tools.mutate.mutants import OPERATORS, draw
from tools.mutate.record import EQUIVALENT, INVALID, KILLED, SURVIVED, TIMEOUT, Result
from tools.mutate.sources import TESTS as PLANNED
from tools.mutate.sources import WRITTEN

ROOT = Path(__file__).parents[2]

# ---- operators ----

HEAD = "# pragma version 0.4.3\nLIMIT: constant(uint256) = 7\nn: uint256\n\n\n"


@pytest.fixture
def listed(tmp_path: Path) -> Callable[..., set[tuple[str, str, str]]]:
    def of(body: str, takes: str = "a: uint256, b: uint256", operator: str = "") -> set[tuple[str, str, str]]:
        path = tmp_path / "Tiny.vy"
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        path.write_text(f"{HEAD}@external\ndef f({takes}) -> uint256:\n{lines}")
        found = [mutant for mutant in mutants(path) if mutant.function == "f"]
        for mutant in found:
            assert mutant.text() != path.read_text()
        return {(m.operator, m.old, m.new) for m in found if operator in ("", m.operator)}

    return of


def test_mutants__number_and_constant__are_one_more_and_one_less(
    listed: Callable[..., set[tuple[str, str, str]]],
) -> None:
    assert listed("return 5") == {("constant", "5", "6"), ("constant", "5", "4")}
    assert listed("return 0") == {("constant", "0", "1")}
    assert listed("return LIMIT") == {("constant", "LIMIT", "(LIMIT + 1)"), ("constant", "LIMIT", "(LIMIT - 1)")}


def test_mutants__reason__is_one_other_number(listed: Callable[..., set[tuple[str, str, str]]]) -> None:
    assert listed("return reasons.JOBS_PAUSED") == {("constant", "reasons.JOBS_PAUSED", "(reasons.JOBS_PAUSED + 1)")}


def test_mutants__mask__is_one_bit_shorter(listed: Callable[..., set[tuple[str, str, str]]]) -> None:
    mask = "packing.UNIT_NODE_MASK"
    assert listed(f"return a & {mask}") == {("mask", mask, f"({mask} >> 1)"), ("arithmetic", "&", "|")}
    assert ("mask", "LIMIT", "(LIMIT >> 1)") in listed("a |= LIMIT\nreturn a")


@pytest.mark.parametrize(
    ("was", "new"), [("<", "<="), ("<=", "<"), (">", ">="), (">=", ">"), ("==", "!="), ("!=", "==")]
)
def test_mutants__comparison__is_flipped(listed: Callable[..., set[tuple[str, str, str]]], was: str, new: str) -> None:
    assert listed(f"return (a + b) {was} (b)", operator="compare") == {("compare", was, new)}


@pytest.mark.parametrize(
    ("was", "new"), [("+", "-"), ("-", "+"), ("*", "//"), ("//", "*"), ("%", "//"), ("<<", ">>"), (">>", "<<")]
)
def test_mutants__arithmetic__takes_the_other_sign(
    listed: Callable[..., set[tuple[str, str, str]]], was: str, new: str
) -> None:
    assert listed(f"return a {was} b") == {("arithmetic", was, new)}
    assert ("arithmetic", f"{was}=", f"{new}=") in listed(f"a {was}= b\nreturn a")


def test_mutants__minimum__is_the_maximum(listed: Callable[..., set[tuple[str, str, str]]]) -> None:
    assert listed("return min(a, b)") == {("arithmetic", "min", "max")}


def test_mutants__logic__is_turned_round(listed: Callable[..., set[tuple[str, str, str]]]) -> None:
    assert listed("return (a == b) and b == a", operator="logic") == {("logic", "and", "or")}
    assert listed("return not a") == {("logic", "not a", "a")}
    assert listed("return ~a") == {("logic", "~a", "a")}
    assert listed("return True") == {("logic", "True", "False")}


def test_mutants__condition__is_always_or_never(listed: Callable[..., set[tuple[str, str, str]]]) -> None:
    body = "if a == b:\n    return a\nelif b == a:\n    return b\nreturn a"
    assert listed(body, operator="branch") == {
        *(("branch", "a == b", always) for always in ("True", "False")),
        *(("branch", "b == a", always) for always in ("True", "False")),
    }


def test_mutants__statement__goes(listed: Callable[..., set[tuple[str, str, str]]]) -> None:
    loop = "for i: uint256 in range(3):"
    body = f"self.n = a\na += b\n{loop}\n    if i == a:\n        continue\n    break\nself.g()\nlog E(a=a)"
    dropped = {old.split("\n")[0] for _, old, new in listed(f"{body}\nreturn a", operator="drop") if new == "pass"}
    assert dropped == {"self.n = a", "a += b", loop, "continue", "break", "self.g()", "log E(a=a)"}


def test_mutants__neighbours_in_a_call__change_places(listed: Callable[..., set[tuple[str, str, str]]]) -> None:
    assert listed("return self.g(a, b, a + b)", operator="swap") == {
        ("swap", "a, b", "b, a"),
        ("swap", "b, a + b", "a + b, b"),
    }
    assert listed("log E(x=a, y=b)\nreturn a", operator="swap") == {("swap", "a, y=b", "b, y=a")}
    assert listed("return self.g(a, a)", operator="swap") == set()
    assert listed("return extcall X.g(a, gas=a, value=b)", operator="swap") == set()


def test_mutants__types_and_sizes__stay(listed: Callable[..., set[tuple[str, str, str]]]) -> None:
    assert listed("c: uint256[4] = empty(uint256[4])\nd: DynArray[uint256, 5] = []\nreturn a") == set()


def test_mutants__code_that_moves__keeps_its_names(tmp_path: Path) -> None:
    path, body = tmp_path / "Tiny.vy", "@external\ndef f(a: uint256) -> uint256:\n    return a + 1 + 1\n"
    path.write_text(HEAD + body)
    before = [mutant.id for mutant in mutants(path)]
    assert len(before) == len(set(before)) == 8
    path.write_text(f"{HEAD}\n\n@external\ndef g(a: uint256) -> uint256:\n    return a\n\n\n{body}")
    assert [mutant.id for mutant in mutants(path)] == before


def test_mutants__of_the_contracts__have_names_of_their_own_and_every_operator() -> None:
    found = [mutant for path in sorted((ROOT / "contracts").glob("*.vy")) for mutant in mutants(path)]
    assert len({mutant.id for mutant in found}) == len(found)
    assert {mutant.operator for mutant in found} == set(OPERATORS)


def test_draw__a_longer_sample__begins_with_the_shorter_one() -> None:
    every = mutants(ROOT / "contracts" / "leases.vy")
    order = draw(every, 7)
    assert order == draw(list(reversed(every)), 7) != draw(every, 8)
    assert sorted(m.id for m in order) == sorted(m.id for m in every)
    functions = {mutant.function for mutant in every}
    strata = {(mutant.function, mutant.operator) for mutant in every}
    assert {mutant.function for mutant in order[: len(functions)]} == functions
    assert {(mutant.function, mutant.operator) for mutant in order[: len(strata)]} == strata


def test_draw__after_a_change_of_the_sources__goes_on_from_what_was_tried() -> None:
    every = mutants(ROOT / "contracts" / "leases.vy")
    before = [one for one in every if one.function != "_tip"]
    tried = [one.id for one in draw(before, 7)[:40]]
    order = draw(every, 7, tried)
    assert {one.id for one in order[:40]} == set(tried)
    known = {one.function for one in order[:40]}
    new = {one.function for one in every} - known
    assert {one.function for one in order[40 : 40 + len(new)]} == new, "each function that none stands for, once"
    assert sorted(one.id for one in order) == sorted(one.id for one in every)


# ---- sources ----


def test_sources__each_contract_and_module__has_tests_or_is_written_from_a_table() -> None:
    assert not set(PLANNED) & set(WRITTEN)
    assert {path.stem for path in (ROOT / "contracts").glob("*.vy")} == {*PLANNED, *WRITTEN}
    assert [root for roots in PLANNED.values() for root in roots if not (ROOT / root).exists()] == []


# ---- runs ----

TINY = """# pragma version 0.4.3


@pure
@external
def below(a: uint256) -> bool:
    return a < 3


@pure
@external
def step(a: uint256) -> uint256:
    return a + 1


@pure
@external
def same() -> uint256:
    return min(2, 2)


@pure
@external
def odd(a: uint256, b: bool) -> uint256:
    return self._pick(a, b)


@pure
@internal
def _pick(a: uint256, b: bool) -> uint256:
    return a if b else 4
"""
TESTS = """
from tests.kit.evm import Evm

TINY = {path!r}


def test_below__at_three__is_out():
    tiny = Evm().deploy(TINY)
    assert tiny.call.below(2) and not tiny.call.below(3)


def test_step__until_three__gets_there():
    tiny, at = Evm().deploy(TINY), 0
    while at != 3:
        at = tiny.call.step(at)
"""
SCRIPT = """
import json, sys
from pathlib import Path
from tools.mutate.build import Contracts
from tools.mutate.contracts import mutants
from tools.mutate.run import run

folder = Path(sys.argv[1])
options = ("--rootdir", str(folder), "-c", str(folder / "pytest.ini"), "-p", "no:ape_test", "-p", "no:cacheprovider")
plan = Contracts(folder, {"Tiny": ("test_tiny.py",)}, options, spare=2)
run(plan, mutants(folder / "Tiny.vy"), folder / "record", count=99)
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    folder = tmp_path.resolve()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "Tiny.vy").write_text(TINY)
    (folder / "test_tiny.py").write_text(TESTS.format(path=str(folder / "Tiny")))
    return folder


def play(folder: Path, script: str = SCRIPT) -> subprocess.CompletedProcess[str]:
    """Run the tool in a process of its own: pytest within pytest would share its plugins."""
    return subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def by_change(folder: Path) -> dict[tuple[str, str, str], Result]:
    results = record.read(folder / "record")
    return {(m.function, m.old, m.new): results[m.id] for m in mutants(folder / "Tiny.vy") if m.id in results}


@pytest.mark.deep  # of a tool that `make deep` alone runs
def test_run__small_contract__each_result_is_what_its_tests_say(tiny: Path) -> None:
    done = play(tiny)
    assert done.returncode == 0, done.stderr
    found = by_change(tiny)
    assert {change: result.result for change, result in found.items()} == {
        ("below", "<", "<="): KILLED,
        ("below", "3", "4"): KILLED,
        ("below", "3", "2"): KILLED,
        ("step", "+", "-"): KILLED,
        ("step", "1", "0"): TIMEOUT,
        ("step", "1", "2"): TIMEOUT,
        ("same", "min", "max"): EQUIVALENT,
        ("same", "2", "3"): EQUIVALENT,
        ("same", "2", "1"): SURVIVED,
        ("odd", "a, b", "b, a"): INVALID,
        ("_pick", "4", "5"): SURVIVED,
        ("_pick", "4", "3"): SURVIVED,
    }
    assert found["below", "<", "<="].killer == "test_tiny.py::test_below__at_three__is_out"
    assert not found["_pick", "4", "5"].killer


@pytest.mark.deep  # of a tool that `make deep` alone runs
def test_run__again__tries_only_what_has_changed(tiny: Path) -> None:
    assert play(tiny).returncode == 0
    before = (tiny / "record").read_text()
    assert play(tiny).returncode == 0
    assert (tiny / "record").read_text() == before
    path = tiny / "Tiny.vy"
    path.write_text(path.read_text().replace("a < 3", "a < 2 + 1"))
    assert play(tiny).returncode == 0
    added = [json.loads(line)["id"] for line in (tiny / "record").read_text().removeprefix(before).splitlines()]
    assert added and all(key.startswith("Tiny.below/") for key in added)


@pytest.mark.deep  # of a tool that `make deep` alone runs
def test_run__test_that_fails_without_a_mutant__tries_nothing(tiny: Path) -> None:
    path = tiny / "test_tiny.py"
    path.write_text(path.read_text() + "\n\ndef test_red():\n    assert False\n")
    done = play(tiny)
    assert done.returncode != 0
    assert "these tests fail without a mutant: test_tiny.py::test_red" in done.stderr
    assert not (tiny / "record").exists()


# ---- Python ----


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return a < b <= 3", {("<", "<="), ("<=", "<"), ("3", "4"), ("3", "2")}),
        ("return a is not b", {("is not", "is")}),
        ("return not a", {("not a", "a")}),
        ("return a or b and a", {("or", "and"), ("and", "or")}),
        ("return 'x' + a", set()),
        ("return f'{a + 1}'", set()),
        ("return a // b if a else b", {("//", "*"), ("a", "True"), ("a", "False")}),
        ("a += b\nreturn a", {("+=", "-="), ("a += b", "pass")}),
        ("return min(a, b)", {("min", "max")}),
        ("return g(a, b, c=1)", {("a, b", "b, a"), ("1", "2"), ("1", "0")}),
        ("return isinstance(a, int)", set()),
        ("'What a reader reads.'\nlog.info('x', a=1)\nwarnings.warn('x')", set()),
        ("a.b = c", {("a.b = c", "pass")}),
        ("c: int = 0\nreturn c", {("0", "1")}),
        ("def g(x: int = 1) -> int:\n    raise E\nreturn g", {("raise E", "pass")}),
        ("b = 'é' if 'é' < b else b", {("'é' < b", "True"), ("'é' < b", "False"), ("<", "<=")}),
    ],
)
def test_mutants_of_python__body__are_its_changes(tmp_path: Path, body: str, found: set[tuple[str, str]]) -> None:
    path = tmp_path / "tiny.py"
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    path.write_text(f"import x\n\nLIMIT = 3\n\n\nclass A:\n    def f(self, a, b):\n{lines}")
    listed = python.mutants(path, "tiny")
    assert {(one.old, one.new) for one in listed} == found
    assert {one.function for one in listed} <= {"A.f"}
    for one in listed:
        ast.parse(one.text())


PYTHON = """
class A:
    def below(self, a):
        return a < 3

    @property
    def same(self):
        return 2 if self else 2

    def unseen(self):
        return [n for n in range(9) if n > 4]


def until(a):
    while a != 3:
        a += 1


def making(function):
    def made(a):
        return function(a) + 7

    return made


@making
def same(a):
    return a
"""
PYTHON_TESTS = """
import gc
import threading
from small import A, same, until

gc.freeze()


def test_below__at_three__is_out():
    assert A().below(2) and not A().below(3) and A().same


def test_same__made_at_import__is_seven_more():
    assert same(1) == 8


def test_until__in_a_thread__gets_there():
    thread = threading.Thread(target=until, args=[1], daemon=True)
    thread.start()
    thread.join()
"""
PYTHON_SCRIPT = """
import sys
from pathlib import Path
from tools.mutate.functions import Functions
from tools.mutate.python import mutants
from tools.mutate.run import run

folder = Path(sys.argv[1])
sys.path.insert(0, str(folder))
options = ("--rootdir", str(folder), "-c", str(folder / "pytest.ini"), "-p", "no:ape_test", "test_small.py")
file = folder / "small.py"
run(Functions({file: "small"}, options, spare=2), mutants(file, "small"), folder / "record", count=99)
"""


@pytest.mark.deep  # of a tool that `make deep` alone runs
def test_run_of_python__small_module__each_result_is_what_its_tests_say(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "small.py").write_text(PYTHON)
    (folder / "test_small.py").write_text(PYTHON_TESTS)
    done = play(folder, PYTHON_SCRIPT)
    assert done.returncode == 0, done.stderr
    results = record.read(folder / "record")
    listed = python.mutants(folder / "small.py", "small")
    assert {(m.function, m.old, m.new): results[m.id].result for m in listed} == {
        ("A.below", "<", "<="): KILLED,
        ("A.below", "3", "4"): KILLED,
        ("A.below", "3", "2"): KILLED,
        **{("A.same", *change): SURVIVED for change in (("self", "True"), ("2", "3"), ("2", "1"))},
        ("A.same", "self", "False"): SURVIVED,
        **{("A.unseen", "9", new): SURVIVED for new in ("10", "8")},
        **{("A.unseen", "4", new): SURVIVED for new in ("5", "3")},
        ("A.unseen", ">", ">="): SURVIVED,
        **{("until", "3", new): SURVIVED for new in ("4", "2")},
        ("until", "!=", "=="): SURVIVED,
        ("until", "1", "2"): SURVIVED,
        **{("until", *change): TIMEOUT for change in (("+=", "-="), ("a += 1", "pass"), ("1", "0"))},
        ("making", "+", "-"): KILLED,
        **{("making", "7", new): KILLED for new in ("8", "6")},
    }


# ---- what is kept ----


def test_read__line_that_was_cut__is_no_result(tmp_path: Path) -> None:
    path = tmp_path / "record"
    record.add(path, Result("A.f/drop/1", "s", KILLED, "t", 1.0))
    with path.open("a") as file:
        file.write('{"id": "A.f/dr')
    record.add(path, Result("A.f/drop/2", "s", SURVIVED, "", 2.0))
    record.add(path, Result("A.f/drop/1", "t", SURVIVED, "", 1.0))
    found = record.read(path)
    assert {key: result.result for key, result in found.items()} == {"A.f/drop/1": SURVIVED, "A.f/drop/2": SURVIVED}


def test_table__results__are_counted_by_contract_and_operator() -> None:
    kinds = [KILLED] * 8 + [TIMEOUT] + [SURVIVED] * 2 + [INVALID, EQUIVALENT]
    results = {f"A.f/drop/{n}": Result(f"A.f/drop/{n}", "s", kind, "", 1.0) for n, kind in enumerate(kinds)}
    explained = {"A.f/drop/9": {"kind": "equivalent", "why": "dead"}, "A.f/drop/10": {"kind": "gap", "why": "rare"}}
    rows = record.table(results, explained)[2:]
    assert [row.split("|")[1].strip() for row in rows] == ["`A`", "drop", "all"]
    for row in rows:
        assert row.endswith("| 13 | 1 | 1 | 1 | 10 | 9 | 1 | 90.0 % | 59.6 to 98.2 % |")
    assert record.unexplained(results, {}) == ["A.f/drop/10", "A.f/drop/9"]


def test_wilson__known_shares__are_those_of_the_formula() -> None:
    # By R 4.3's prop.test(x, n, correct = FALSE).
    for hits, tries, low, high in [(950, 1000, 0.93471, 0.96184), (0, 10, 0.0, 0.27753), (10, 10, 0.72247, 1.0)]:
        assert record.wilson(hits, tries) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("subject", record.SUBJECTS)
def test_record__in_git__has_a_reason_for_each_survivor_and_none_besides(subject: str) -> None:
    results, explained = record.read(record.record_of(subject)), record.survivors(subject)
    lived = {key for key, result in results.items() if result.result == SURVIVED}
    assert lived == set(explained), f"tests/mutation/{subject}.toml: a row for each survivor of its record, no other"
    for key, row in explained.items():
        assert set(row) == {"kind", "why"} and row["kind"] in record.KINDS and len(row["why"]) > 20, key


@pytest.mark.parametrize("subject", record.SUBJECTS)
def test_assurance__table_of_mutations__is_that_of_the_record(subject: str) -> None:
    lines = record.table(record.read(record.record_of(subject)), record.survivors(subject))
    assert "\n".join(lines) in record.PAGE.read_text(), "python -m tools.mutate --report --table writes it"
