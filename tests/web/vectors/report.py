"""Results that are a unit's and that are not; what is believed of reports and refusals; results that logs misname.

`text` is a document in canonical form.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final

from hearth.base.errors import HearthError
from hearth.client.job.results import Results, check_result, contradicts, kept_until, words_in
from hearth.market.events import Submitted
from hearth.protocol.types import Outcome
from hearth.storage import canonical
from hearth.storage import cid as cids
from tests.web.refused import code_of
from tests.web.vectors import _chance
from worker.attempt.results import OUTCOMES, refusal_document, report_document, result_document
from worker.runtimes.base import RunResult, RunStatus

_SPEC: Final = bytes(range(32))
_STORED: Final = SimpleNamespace(cid=cids.of(b"outputs"), size=7)
_OTHERS: Final = (
    (None, True, False, 0, 1, -1, 2, 2**53 - 1, "", "ok", "None", "exit", "OK", "5", "a b", "ok\n", "\u00f6", "x" * 33)
    + ("_", [], ["ok"], {}, {"cid": "x"}, {"cid": "x", "size": 0}, {"cid": "x", "size": -1}, {"cid": "x", "size": True})
    + ({"cid": None, "size": 1}, {"cid": "", "size": 1}, {"cid": "x", "size": "1"}, {"cid": "x", "size": None})
    + ({"size": 1}, {"cid": ["x"], "size": 1}, {"cid": "x", "size": 2**53 - 1, "more": [1]}, _SPEC.hex().upper())
    + ("0x" + _SPEC.hex(), "\x1b[31mok", {"__proto__": {"cid": "x", "size": 1}})
)


def cases() -> dict[str, Any]:
    """Return the vectors."""
    chance = _chance.source("report")
    results = [(document, index, outcome) for document, index, outcome in _results(chance)]
    return {
        "results": [_checked(*one) for one in results],
        "reports": [_told(document) for document in _reports(chance)],
        "logs": [_misnamed(*one) for one in _events(chance)],
    }


# ---- results ----


def _results(chance: random.Random) -> Iterator[tuple[Any, int, Outcome]]:
    good = []
    for at, (status, outcome) in enumerate(OUTCOMES.items()):
        run = RunResult(status, "", exit_code=chance.choice((None, 0, 3, -9, 137)), fuel_used=chance.choice((None, 5)))
        document = result_document(
            spec=_SPEC, index=at % 2, outcome=outcome, run=run, outputs=chance.choice((None, _STORED))
        )
        good.append((document, at % 2, outcome))
    yield from good
    for document, index, outcome in good[:2]:
        yield document, index + 1, outcome
        yield document, index, Outcome.TRAP
        for name in document:
            yield {key: value for key, value in document.items() if key != name}, index, outcome
            read = index == 0 and name not in ("version", "fuel", "engine")
            for other in _chance.some(chance, _OTHERS, 5 if read else 1):
                yield {**document, name: other}, index, outcome
    for document in (None, True, 0, "ok", [], [good[0][0]], {}, {"__proto__": good[0][0]}):
        yield document, 0, Outcome.OK


def _checked(document: Any, index: int, outcome: Outcome) -> dict[str, Any]:
    row = {"text": canonical.encode(document).decode(), "index": index, "outcome": outcome.name.lower()}
    code = code_of(check_result, document, _SPEC, index, outcome)
    if code is not None:
        return {**row, "code": code}
    outputs = document["outputs"]
    found = None if outputs is None else {"cid": outputs["cid"], "size": outputs["size"]}
    return {**row, "is": [document["status"], document["exit_code"], found]}


# ---- reports ----


def _reports(chance: random.Random) -> Iterator[Any]:
    run = RunResult(RunStatus.EXIT, "exit 3 \U0001f600", exit_code=3, stderr=b"bad \xff\n\x1b[31m", engine="wasmtime")
    moments = {"began": 1.5, "ended": 2.5, "kept_until": 2_000_000_000.0}
    report = report_document(
        job=_SPEC, index=0, attempt=1, node=2, run=run, logs=_STORED, used=1, machine={"cores": 4}, **moments
    )
    yield report
    yield refusal_document(job=_SPEC, index=0, attempt=1, node=2, outcome=Outcome.BAD_INPUT, why="the disk is full")
    for name in ("detail", "stderr_tail", "kept_until", "logs"):
        yield {key: value for key, value in report.items() if key != name}
        for other in (*_chance.some(chance, _OTHERS, 6), 1 << 40, (1 << 40) - 1, {"cid": str(_STORED.cid)}):
            # Short ones, of the fields that are read alone.
            yield {key: value for key, value in report.items() if key in ("detail", "kept_until")} | {name: other}
    yield {"detail": "x" * 4095 + "\U0001f600" * 2}
    yield from (None, True, 5, "words", [], [report], {}, {"__proto__": report}, {"logs": {"__proto__": {"cid": "x"}}})
    yield {"stderr_tail": "a" * 4090 + "".join(chance.choices("ab\u00e9\U0001f600", k=20))}


def _told(document: Any) -> dict[str, Any]:
    """Say what `hearth job logs` and `job wait` take from a report."""
    store = SimpleNamespace(get_json=lambda digest: document)
    reader = Results(SimpleNamespace(session=SimpleNamespace(store=store)))  # type: ignore[arg-type]
    report = reader._report(b"")
    return {
        "text": canonical.encode(document).decode(),
        "detail": words_in(report, "detail"),
        "stderr_tail": words_in(report, "stderr_tail"),
        "kept_until": kept_until(report),
        "logs": _logs(report),
    }


def _logs(report: dict[str, Any]) -> Any:
    """Return the CID of the logs as `Results._logs` comes by it, or the code that it is refused by."""
    if not isinstance(report.get("logs"), dict):
        return None
    try:
        return {"cid": str(cids.parse(str(report["logs"].get("cid"))))}
    except HearthError as error:
        return {"code": error.code}


# ---- results that logs misname ----


def _events(chance: random.Random) -> Iterator[tuple[bytes, int, bytes, bytes | None]]:
    for index in (0, 1, 16_383):
        job, result = chance.randbytes(32), chance.randbytes(32)
        yield from ((job, index, result, kept) for kept in (None, result, chance.randbytes(32), bytes(32)))


def _misnamed(job: bytes, index: int, result: bytes, kept: bytes | None) -> dict[str, Any]:
    event = SimpleNamespace(job_id=job, index=index, result=result)
    assert {"job_id", "index", "result"} <= {*Submitted.__dataclass_fields__}
    return {
        "job": f"0x{job.hex()}",
        "index": index,
        "result": f"0x{result.hex()}",
        "kept": None if kept is None else f"0x{kept.hex()}",
        "why": contradicts(event, kept),  # type: ignore[arg-type]
    }
