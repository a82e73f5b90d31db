"""hearth.cli.jobs: the words of a job's end, each true of what the reader can do next."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hearth.base.errors import RefusedError
from hearth.cli.__main__ import main
from hearth.cli.jobs import _show_action, _show_submitted
from hearth.cli.leaf import Run

JOB = "0x" + "ab" * 32
UNIT = {"unit": 0, "outcome": "timeout", "text": "its time was over", "exit_code": None, "outputs": None}
END = {"verdict": "failed", "ok": 0, "failed": 1, "verified": 1, "unread": 0, "units": [UNIT], "failure": None}
REST = {"kept_until": None, "stdout": "", "parents_failed": False, "fetched": None}
PARENTS = [
    {"job": "0x" + "01" * 32, "condition": "success", "as_asked": True, "text": "ended well"},
    {"job": "0x" + "02" * 32, "condition": "success", "as_asked": False, "text": "ended otherwise: cancelled"},
]
FETCHED = {"folder": "here", "units": [{"path": None}]}
GET = f"  hearth job get {JOB[:14]} -o DIR\n"


def run() -> Run:
    return Run({"yes": False, "dry_run": False, "as_json": False, "quiet": False})


def shown(capsys: pytest.CaptureFixture[str], **results: Any) -> str:
    report: Any = {"schema": "hearth.submission/1", "job": JOB, "waited": True, "results": {**END, **REST, **results}}
    report["end"] = {"parents": PARENTS}
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


def test_show_submitted__job_that_a_parent_ended__names_it_and_exits_as_what_did_not_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = {**END, **REST, "verdict": "refunded", "verified": 0, "units": [], "parents_failed": True}
    report: Any = {"schema": "hearth.submission/1", "job": JOB, "waited": True, "results": results}
    report["end"] = {"parents": PARENTS}
    assert _show_submitted(run(), report) == 102
    said = capsys.readouterr().err
    assert (
        f"job {JOB[:14]} did not run: what it waited for ended otherwise than asked, 0x020202020202 (if: success) "
        in said
    )
    assert "ended otherwise: cancelled; it is refunded" in said and "hearth job show 0x020202020202" in said
    assert "0x010101010101" not in said
    report["results"] = {**results, "parents_failed": False}
    assert _show_submitted(run(), report) == 102
    assert "ended without a result" in capsys.readouterr().err


FACTS = {
    "job": JOB,
    "name": "train",
    "posted_at": 1_700_000_000,
    "started_at": None,
    "ended_at": None,
    "cost": "0",
    "cost_text": "0 ETH",
    "state": "blocked",
    "state_text": "waiting for other jobs",
    "verdict": "pending",
    "counts": {"blocked": 1},
    "counts_text": "1 waiting for other jobs",
    "submitter": "0x1",
    "posted": {"block": 3, "tx": "0x2"},
    "escrow_text": "1",
    "ceiling_text": "1",
    "billing": "fuel",
    "deadline_text": "later",
    "checkpoint_every": None,
    "bond_text": "1",
    "verify": "none",
    "leases": [],
    "waits": "waits for 0x0202 (open)",
    "workers": None,
    "kept": True,
    "parents": [{**PARENTS[1], "text": "open"}],
}


def test_job_show__job_that_waits__says_for_what_and_that_its_result_is_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hearth.client.jobs.Jobs.show", lambda self, job: FACTS)
    assert main(["job", "show", JOB]) == 0
    said = capsys.readouterr().out
    assert f"job {JOB} (train)\n" in said
    assert "  posted 2023-11-14 22:13:20 UTC; cost so far 0 ETH\n" in said
    assert "  state waiting for other jobs: waits for 0x0202 (open)\n" in said
    assert f"  after 0x{'02' * 32}, if success: open\n" in said
    assert "  results are kept: the chain itself has their digests\n" in said
    monkeypatch.setattr("hearth.client.jobs.Jobs.show", lambda self, job: {**FACTS, "kept": False, "waits": None})
    assert main(["job", "show", JOB]) == 0
    said = capsys.readouterr().out
    assert "  state waiting for other jobs\n" in said and "kept" not in said and "workers" not in said
    workers = "1 worker: 1 above your price -> 0 can take it"
    monkeypatch.setattr("hearth.client.jobs.Jobs.show", lambda self, job: {**FACTS, "workers": workers})
    assert main(["job", "show", JOB]) == 0
    own = "any worker may refuse it by settings of its own; its owner sees why: hearth worker why JOB"
    assert f"  workers {workers}\n    {own}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("opens", "done"), [(True, "waits for a machine: what it"), (False, "is refunded: a job that it waited for")]
)
def test_job_unlock__what_came_of_it__is_said_with_the_fee(
    opens: bool, done: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = {"schema": "hearth.action/1", "action": "unlock", "job": JOB, "opens": opens, "fee_text": "8 gwei"}
    report |= {"fee": "8", "transactions": [{"tx": "0x12"}], "dry_run": False}
    monkeypatch.setattr("hearth.client.jobs.Jobs.unlock", lambda self, job: report)
    assert main(["job", "unlock", JOB]) == 0
    said = capsys.readouterr().out
    assert f"job {JOB[:14]} {done}" in said and "; 8 gwei of credit for unlocking it" in said


@pytest.mark.parametrize(("takers", "code"), [(1, 0), (0, 8)])
def test_check__job_that_no_worker_can_take__is_told_whole_and_ends_as_a_submit_would(
    takers: int, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = {"schema": "hearth.plan/1", "name": "a", "spec": "ab", "can_take": takers, "text": ["1 worker: 1 busy"]}
    plan["enough"] = None
    monkeypatch.setattr("hearth.client.posting.post.Posting.check", lambda self, job, **_: plan)
    assert main(["check", "job.yaml"]) == code
    said = capsys.readouterr()
    assert "a: spec ab\n1 worker: 1 busy\n" in said.out
    assert ("hearth submit FILE --anyway" in said.err) is (takers == 0)
    assert main(["check", "job.yaml", "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert told["spec"] == "ab" and told.get("error", {}).get("code") == (None if takers else "NO_WORKER")
    plan["enough"] = 'lower the price to max_rate: "1 ETH/h"'
    assert main(["check", "job.yaml"]) == code
    assert ('next: lower the price to max_rate: "1 ETH/h"' in capsys.readouterr().err) is (takers == 0)


@pytest.mark.parametrize("command", [("submit", "job.yaml"), ("check", "job.yaml"), ("run", "a.wasm")])
def test_after__of_each_command_that_posts__reaches_the_client(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def asked(self: object, *_: Any, after: Any, **__: Any) -> Any:
        given.append(after)
        raise RefusedError("enough", hint="hearth jobs")

    monkeypatch.setattr(f"hearth.client.posting.post.Posting.{command[0]}", asked)
    assert main([command[0], "--after", "0xab", "--after", "0xcd:failure", command[1]]) == 5
    assert given == [("0xab", "0xcd:failure")]


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        # Its worker answered the notice before the job was looked at again.
        ({"submitted": 1}, "is cancelled: words; a result that is in is settled as any other\n"),
        ({"cancelled": 2, "closing": 1}, "what was open is refunded; what ran ends after its notice\n"),
    ],
)
def test_job_cancel__how_the_units_stand__is_what_it_says(
    counts: dict[str, int], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = {"job": JOB, "transactions": [], "dry_run": False, "counts": counts, "counts_text": "words"}
    monkeypatch.setattr("hearth.client.jobs.Jobs.cancel", lambda self, job, unit: report)
    assert main(["job", "cancel", JOB]) == 0
    assert capsys.readouterr().out.endswith(said)
