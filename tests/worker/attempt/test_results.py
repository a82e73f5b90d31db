"""The documents of a finished unit: what is reproducible is in the result, nothing else is, and nothing is a float."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import rfc8785

from hearth.protocol.types import Billing, NodeId, Outcome
from tests.worker.attempt.jobs import KEY, Jobs
from worker.attempt import results
from worker.attempt.task import Task
from worker.runtimes.base import RunResult, RunStatus


@dataclass(frozen=True)
class Entry:
    cid: str
    size: int


RUN = RunResult(
    RunStatus.OK,
    exit_code=0,
    fuel_used=123,
    wall_seconds=1.2345,
    stdout=b"out",
    stderr=b"x" * 5000 + "end \u00e9".encode(),
    engine="wasmtime 50.0.1 config 00",
)
OUTPUTS = Entry("bafyout", 10)


def result(run: RunResult = RUN, outcome: Outcome = Outcome.OK) -> dict[str, Any]:
    return results.result_document(spec=b"\x01" * 32, index=3, outcome=outcome, run=run, outputs=OUTPUTS)


def report(run: RunResult = RUN, began: float = 1.9) -> dict[str, Any]:
    return results.report_document(
        job=b"\x02" * 32,
        index=3,
        attempt=1,
        node=7,
        run=run,
        logs=Entry("bafylogs", 5),
        began=began,
        ended=4.2,
        kept_until=64.2,
        used=2,
        machine={"cpus": 2},
    )


def floats(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [found for item in value.values() for found in floats(item)]
    if isinstance(value, list | tuple):
        return [found for item in value for found in floats(item)]
    return [value] if isinstance(value, float) else []


def test_result_document__all_that_varies_between_machines__left_out() -> None:
    other = replace(RUN, wall_seconds=99.0, stdout=b"", stderr=b"warm GPU", detail="other words")
    assert rfc8785.dumps(result()) == rfc8785.dumps(result(other))
    assert report() != report(other)


@pytest.mark.parametrize(
    "changed",
    [{"exit_code": 1}, {"fuel_used": 124}, {"status": RunStatus.OUTPUT_MISSING}, {"engine": "wasmtime 51"}],
)
def test_result_document__what_must_be_reproduced__is_in_it(changed: dict[str, Any]) -> None:
    assert result(replace(RUN, **changed)) != result()


def test_result_document__outputs__named_by_cid_and_size() -> None:
    assert result()["outputs"] == {"cid": "bafyout", "size": 10}


def test_result_document__container_run__engine_is_not_part_of_it() -> None:
    assert result(replace(RUN, fuel_used=None, engine="runc 1.2.8"))["engine"] is None


def test_documents__no_floats_and_canonical() -> None:
    refusal = results.refusal_document(
        job=b"\x02" * 32, index=0, attempt=1, node=7, outcome=Outcome.BAD_INPUT, why="w" * 5000
    )
    for document in (result(), report(), refusal):
        assert floats(document) == []
        assert rfc8785.dumps(document)
    assert len(refusal["detail"]) == results.DETAIL_CHARACTERS


def test_report_document__stderr__last_words_kept() -> None:
    document = report()
    assert document["stderr_tail"].endswith("end \u00e9")
    assert len(document["stderr_tail"]) <= results.STDERR_TAIL_BYTES
    assert (document["began"], document["ended"], document["run_milliseconds"]) == (1, 4, 1234)


def test_report_document__stderr_cut_inside_a_character__still_text() -> None:
    tail = report(replace(RUN, stderr="\u00e9".encode() * 2000 + b"\xff"))["stderr_tail"]
    assert rfc8785.dumps({"tail": tail})


@pytest.mark.parametrize("outcome", [Outcome.NONE, Outcome.OK, Outcome.EXIT, Outcome.TIMEOUT])
def test_refusal_document__result_outcome__refused(outcome: Outcome) -> None:
    with pytest.raises(ValueError, match=outcome.name):
        results.refusal_document(job=b"", index=0, attempt=1, node=1, outcome=outcome, why="")


def test_outcomes__every_status_but_the_silent_one__maps_to_the_chain() -> None:
    assert set(RunStatus) - set(results.OUTCOMES) == {RunStatus.BROKEN, RunStatus.GPU_REFUSED}
    failed = {status for status, outcome in results.OUTCOMES.items() if outcome.is_result and outcome is not Outcome.OK}
    assert failed == set(RunStatus) - {
        RunStatus.OK,
        RunStatus.BAD_INPUT,
        RunStatus.IMAGE_MISSING,
        RunStatus.BROKEN,
        RunStatus.GPU_REFUSED,
    }
    assert {results.OUTCOMES[RunStatus.BAD_INPUT], results.OUTCOMES[RunStatus.IMAGE_MISSING]} == {
        Outcome.BAD_INPUT,
        Outcome.IMAGE_MISSING,
    }


@pytest.mark.parametrize(("fuel", "used"), [(0, 1), (1, 1), (10**9, 1), (10**9 + 1, 2), (10**30, (1 << 24) - 1)])
def test_fuel_seconds__rounds_up_within_its_lane(fuel: int, used: int) -> None:
    assert results.fuel_seconds(fuel) == used


@pytest.mark.parametrize(
    ("billing", "fuel", "used"),
    [
        (Billing.FIXED, 5 * 10**9, 0),
        (Billing.FUEL, 5 * 10**9, 5),
        # At its deadline a run has no count: it had all that was paid.
        (Billing.FUEL, None, 20),
    ],
)
def test_used_seconds__terms_that_bill_fuel__count_it(
    jobs: Jobs, billing: Billing, fuel: int | None, used: int
) -> None:
    task = Task(KEY, jobs.terms(jobs.spec("env"), billing=billing), 60, 1)
    assert results.used_seconds(task, replace(RUN, fuel_used=fuel)) == used


@pytest.mark.parametrize("outputs", [OUTPUTS, None])
def test_conclude__finished_run__says_the_same_to_the_chain_and_in_both_documents(
    jobs: Jobs, outputs: Entry | None
) -> None:
    task = Task(KEY, jobs.terms(jobs.spec("env"), billing=Billing.FUEL), 60, 1)
    kept = results.conclude(
        task,
        replace(RUN, status=RunStatus.OUTPUT_MISSING),
        node=NodeId(3),
        outputs=outputs,
        logs=None,
        began=1.9,
        ended=2.1,
        kept_until=9.0,
        machine={"cores": 2},
    )
    assert (kept.outcome, kept.used, kept.outputs) == (Outcome.EXIT, 1, outputs.cid if outputs else None)
    assert (kept.result["outcome"], kept.result["status"]) == ("exit", "output_missing")
    assert kept.result["spec"] == task.terms.spec.hex()
    assert (kept.report["used"], kept.report["kept_until"], kept.report["machine"]) == (1, 9, {"cores": 2})
    assert results.Kept.from_dict(kept.as_dict()) == kept
