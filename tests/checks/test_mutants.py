"""The runner of mutants calls a bug caught only when the suite really turned red."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kit.require import require
from tools import mutants
from tools.mutants import Bug, control, judge, needs_artifacts, parse, plant, shares_services

PATCH = "Bug: fee paid twice\nTests: tests/x -k fee\n\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"


def test_parse__whole_patch__splits_head_and_diff() -> None:
    bug = parse("fee.patch", PATCH)
    assert (bug.what, bug.tests) == ("fee paid twice", ("tests/x", "-k", "fee"))
    assert bug.diff.startswith("--- a/x.py")


@pytest.mark.parametrize("missing", ["Bug: fee paid twice\n", "Tests: tests/x -k fee\n", "\n--- a/x.py"])
def test_parse__header_or_diff_missing__is_refused(missing: str) -> None:
    with pytest.raises(ValueError, match=r"fee\.patch"):
        parse("fee.patch", PATCH.replace(missing, ""))


def test_patches__in_git__each_fits_the_code_that_it_would_break() -> None:
    """A mutant whose lines have moved plants nothing, and what it should break has no proof."""
    root = Path(__file__).parents[2]
    require("git", shutil.which("git") is not None and (root / ".git").exists(), "not a clone")
    stale = []
    for path in sorted((root / "tests" / "mutants").glob("*.patch")):
        bug = parse(path.name, path.read_text(encoding="utf-8"))
        done = subprocess.run(
            ["git", "apply", "--check", "-"], input=bug.diff, cwd=root, text=True, capture_output=True
        )
        stale += [path.name] if done.returncode else []
    assert stale == []


def test_assurance__mutants_that_its_tables_name__are_there() -> None:
    root = Path(__file__).parents[2]
    there = {path.stem for path in (root / "tests" / "mutants").glob("*.patch")}
    named: set[str] = set()
    for block in (root / "docs" / "ASSURANCE.md").read_text(encoding="utf-8").split("\n\n"):
        head, *rows = block.strip().splitlines()
        if head.endswith(("| Mutant |", "| Mutants |")):
            named |= {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[-2])}
    assert len(named) > 100 and named <= there, sorted(named - there)


DIFF = "--- a/fee.py\n+++ b/fee.py\n@@ -1 +1 @@\n-FEE = 1\n+FEE = {fee}\n"


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


def _bug(diff: str, *tests: str) -> Bug:
    return Bug("fee.patch", "fee changed", tests, diff)


@pytest.mark.usefixtures("project")
def test_plant__test_turns_red__is_caught() -> None:
    assert plant(_bug(DIFF.format(fee=2), "test_fee.py::test_pinned")) == ""


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("diff", "tests", "why"),
    [
        (DIFF.format(fee=2), "test_fee.py::test_blind", "did not turn red"),
        (DIFF.format(fee=2), "test_fee.py::test_gone", "did not turn red (exit 4)"),
        (DIFF.format(fee=2).replace("FEE = 1", "FEE = 9"), "test_fee.py::test_pinned", "does not apply"),
    ],
)
def test_plant__no_red_test__says_why(diff: str, tests: str, why: str) -> None:
    assert why in plant(_bug(diff, tests))


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
    bugs = [_bug(DIFF.format(fee=fee), test) for fee, test in ((2, pinned), (3, blind), (4, pinned), (5, red))]
    found = list(judge(bugs, 2))
    assert [bug for bug, _ in found] == bugs
    assert [why[:12] for _, why in found] == ["", "the tests di", "", "its tests fa"]
    assert sorted(asked) == sorted({bug.tests for bug in bugs})


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
def test_needs_artifacts__tests_and_diff__builds_only_for_readers(tests: str, path: str, needed: bool) -> None:
    patch = PATCH.replace("tests/x -k fee", tests).replace("b/x.py", f"b/{path}")
    assert needs_artifacts(parse("fee.patch", patch)) is needed
