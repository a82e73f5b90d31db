"""The runner of mutants calls a bug caught only when the suite really turned red."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import mutants
from tools.mutants import Bug, control, judge, needs_artifacts, plant, read, shares_services

ROW = """
[[mutant]]
name = "fee"
bug = "A fee is paid twice."
file = "fee.py"
find = "FEE = 1"
replace = "FEE = 2"
tests = "test_fee.py -k fee"
"""


@pytest.mark.parametrize(
    "rows",
    [
        *(re.sub(f"{key} = .*\n", "", ROW, count=1) for key in ("name", "bug", "file", "find", "replace", "tests")),
        ROW + 'line = "4"',
        ROW.replace('"FEE = 2"', "2"),
        ROW.replace("FEE = 2", "FEE = 1"),
        ROW + ROW,
    ],
)
def test_read__row_not_whole_or_named_twice__is_refused(tmp_path: Path, rows: str) -> None:
    (tmp_path / "base.toml").write_text(rows)
    with pytest.raises(ValueError, match=r"base\.toml: (fee|None): "):
        read(tmp_path)


def test_read__of_the_project__few_rows() -> None:
    assert 100 < len(read()) <= 150


@pytest.mark.parametrize(
    ("file", "find", "tests", "why"),
    [
        ("Makefile", "a text that has moved away", "tests/checks", "is 0 times in Makefile, not once"),
        ("Makefile", "$(PY)", "tests/checks", r"is \d{2,} times in Makefile, not once"),
        ("hearth/gone.py", "x", "tests/checks", r"is 0 times in hearth/gone\.py, not once"),
        ("Makefile", ".PHONY: help", "tests/gone.py::test_a -k b", r"no tests tests/gone\.py"),
    ],
)
def test_check__row_that_does_not_fit__is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: str, find: str, tests: str, why: str
) -> None:
    good, stale = Bug("good", "", "Makefile", ".PHONY: help", "", "tests"), Bug("stale", "", file, find, "", tests)
    monkeypatch.setattr(mutants, "read", lambda: [good, stale])
    assert mutants.main(["--check"]) == 1
    assert re.fullmatch(rf"stale: .*{why}\n", capsys.readouterr().err)


def test_main__name_of_no_row__is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        mutants.main(["no_such_row"])
    assert "no rows no_such_row" in capsys.readouterr().err


def test_assurance__mutants_that_its_tables_name__are_there() -> None:
    there = {bug.name for bug in read()}
    named: set[str] = set()
    for block in (mutants.ROOT / "docs" / "ASSURANCE.md").read_text(encoding="utf-8").split("\n\n"):
        head, *rows = block.strip().splitlines()
        if head.endswith("| Mutants |"):
            named |= {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[-2])}
    assert len(named) > 30 and named <= there, sorted(named - there)


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the project: one module, one test that pins it, one that looks away."""

    def copy(target: Path) -> None:
        (target / "fee.py").write_text("FEE = 1\n")
        (target / "test_fee.py").write_text(
            "import fee\ndef test_pinned(): assert fee.FEE == 1\ndef test_blind(): pass\ndef test_red(): assert 0\n"
        )

    monkeypatch.setattr(mutants, "copy_project", copy)
    # The stand-in's two tests need no plugin, and loading all of ours takes longer than they do.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def _bug(tests: str, fee: int = 2, find: str = "FEE = 1") -> Bug:
    return Bug("fee", "The fee is another.", "fee.py", find, f"FEE = {fee}", tests)


@pytest.mark.usefixtures("project")
def test_plant__test_turns_red__is_caught() -> None:
    assert plant(_bug("test_fee.py::test_pinned")) == ""


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("find", "tests", "why"),
    [
        ("FEE = 1", "test_fee.py::test_blind", "did not turn red"),
        ("FEE = 1", "test_fee.py::test_gone", "did not turn red (exit 4)"),
        ("FEE = 9", "test_fee.py::test_pinned", "is 0 times in fee.py"),
        ("E", "test_fee.py::test_pinned", "is 2 times in fee.py"),
    ],
)
def test_plant__no_red_test__says_why(find: str, tests: str, why: str) -> None:
    assert why in plant(_bug(tests, find=find))


@pytest.mark.usefixtures("project")
def test_control__tests_red_without_any_bug__says_so() -> None:
    assert control(("test_fee.py::test_pinned",)) == ""
    assert "fail without it" in control(("test_fee.py::test_red",))


@pytest.mark.usefixtures("project")
def test_judge__two_at_a_time__each_bug_in_its_order_and_each_control_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def once(tests: tuple[str, ...]) -> str:
        asked.append(tests)
        return control(tests)

    monkeypatch.setattr(mutants, "control", once)
    pinned, blind, red = ("test_fee.py::test_pinned", "test_fee.py::test_blind", "test_fee.py::test_red")
    bugs = [_bug(test, fee) for fee, test in ((2, pinned), (3, blind), (4, pinned), (5, red))]
    found = list(judge(bugs, 2))
    assert [bug for bug, _ in found] == bugs
    assert [why[:12] for _, why in found] == ["", "the tests di", "", "its tests fa"]
    assert sorted(asked) == sorted({bug.arguments for bug in bugs})


@pytest.mark.parametrize(
    ("tests", "shares"),
    [
        (("tests/plain.py", "-k", "x"), False),
        (("tests/plain.py::test_a",), False),
        (("tests/engine.py::test_a",), True),
        (("tests/plain.py", "tests/room"), True),
        (("-k", "x"), True),
    ],
)
def test_shares_services__marked_files_and_folders__do(tmp_path: Path, tests: tuple[str, ...], shares: bool) -> None:
    (tmp_path / "tests" / "room").mkdir(parents=True)
    (tmp_path / "tests" / "plain.py").write_text("import pytest\n")
    (tmp_path / "tests" / "engine.py").write_text("pytestmark = [pytest.mark.docker]\n")
    (tmp_path / "tests" / "room" / "test_b.py").write_text("@pytest.mark.kubo\n")
    assert shares_services(tests, tmp_path) is shares


@pytest.mark.parametrize(
    ("tests", "path", "needed"),
    [
        ("tests/attacks/test_x.py", "contracts/x.vy", False),
        ("tests/contracts/x tests/stateful/test_x.py -k fee", "contracts/x.vy", False),
        ("tests/attacks/test_x.py tests/chain/test_x.py", "contracts/x.vy", True),
        ("-k fee", "contracts/x.vy", True),
        ("tests/chain/test_x.py", "hearth/x.py", False),
    ],
)
def test_needs_artifacts__tests_and_file__builds_only_for_readers(tests: str, path: str, needed: bool) -> None:
    assert needs_artifacts(Bug("fee", "", path, "a", "b", tests)) is needed
