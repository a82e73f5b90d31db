"""hearth.cli.jobs: the words of a job's end, each true of what the reader can do next."""

from __future__ import annotations

from typing import Any

import pytest

from hearth.cli.jobs import _show_action, _show_submitted
from hearth.cli.leaf import Run

JOB = "0x" + "ab" * 32
UNIT = {"unit": 0, "outcome": "timeout", "text": "its time was over", "exit_code": None, "outputs": None}
END = {"verdict": "failed", "ok": 0, "failed": 1, "verified": 1, "unread": 0, "units": [UNIT], "failure": None}
REST = {"kept_until": None, "stdout": "", "parents_failed": False, "fetched": None}
FETCHED = {"folder": "here", "units": [{"path": None}]}
GET = f"  hearth job get {JOB[:14]} -o DIR\n"


def run() -> Run:
    return Run({"yes": False, "dry_run": False, "as_json": False, "quiet": False})


def shown(capsys: pytest.CaptureFixture[str], **results: Any) -> str:
    report: Any = {"schema": "hearth.submission/1", "job": JOB, "waited": True, "results": {**END, **REST, **results}}
    _show_submitted(run(), report)
    said = capsys.readouterr()
    return said.out + said.err


@pytest.mark.parametrize(("code", "said"), [(None, "ran and failed: timeout\n"), (0, "timeout, exit code 0\n")])
def test_show_submitted__program_that_was_stopped__has_no_exit_code(
    code: int | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in shown(capsys, failure={"status": "timeout", "exit_code": code, "detail": "", "stderr_tail": ""})


def test_show_submitted__no_unit_left_outputs__neither_a_folder_nor_a_way_to_get_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for fetched in (None, FETCHED):
        text = shown(capsys, fetched=fetched)
        assert "outputs none" in text and GET not in text and "outputs in" not in text
    # A job that was cancelled before it ran has no unit that could have left any.
    assert GET not in shown(capsys, verdict="none", verified=0, units=[])


def test_show_submitted__outputs__are_where_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    left = [{**UNIT, "outputs": "bafy"}]
    assert GET in shown(capsys, units=left) and GET in shown(capsys, unread=1)
    assert "  outputs in here\n" in shown(capsys, units=left, fetched={**FETCHED, "units": [{"path": "here"}]})


def test_show_action__mined_call__is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"action": "jobs.cancel", "tx": "0x12", "block": 3, "gas": 1, "fee": "1", "fee_text": "1 wei"}
    facts |= {"explorer": None, "repeated": False, "dry_run": False}
    this = run()
    this.out.tell("tx", facts)
    report: Any = {
        "schema": "hearth.action/1",
        "action": "cancel",
        "job": JOB,
        "transactions": [facts],
        "dry_run": False,
    }
    _show_action(this, report, "is cancelled")
    said = capsys.readouterr()
    assert said.err.count("0x12") == 1 and said.out == f"job {JOB[:14]} is cancelled\n"
