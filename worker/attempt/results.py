"""Stage three: judge a run and write the two documents of a finished unit, as plain values for
`hearth.storage.canonical.encode`: no floats, no paths, no clock.

The **result** holds only what a second run on another machine must reproduce; its digest is what is compared and
challenged. The **report** holds the rest: times, engine, logs, the machine. A lease that was given back has a report
only, the **refusal**. Source: protocol.md "Result and report".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Protocol

from hearth.jobfile import FUEL_PER_SECOND
from hearth.protocol.types import Billing, NodeId, Outcome
from worker.attempt.task import Task
from worker.runtimes.base import RunResult, RunStatus

VERSION: Final = 1
STDERR_TAIL_BYTES: Final = 2048
DETAIL_CHARACTERS: Final = 1000
MAX_USED: Final = (1 << 24) - 1
"""The most seconds that a unit's word can say were used."""

OUTCOMES: Final[Mapping[RunStatus, Outcome]] = MappingProxyType(
    {
        RunStatus.OK: Outcome.OK,
        RunStatus.EXIT: Outcome.EXIT,
        # An output that is missing, empty, too large or of a name that no store takes is a failure, never a success.
        RunStatus.OUTPUT_MISSING: Outcome.EXIT,
        RunStatus.OUTPUT_OVER_CAP: Outcome.EXIT,
        RunStatus.TRAP: Outcome.TRAP,
        RunStatus.OOM: Outcome.OUT_OF_MEMORY,
        RunStatus.TIMEOUT: Outcome.TIMEOUT,
        RunStatus.OUT_OF_FUEL: Outcome.TIMEOUT,
        # The chain has no word for it: the submitter cancelled the unit, and it had no time for more.
        RunStatus.CANCELLED: Outcome.TIMEOUT,
        RunStatus.BAD_INPUT: Outcome.BAD_INPUT,
        RunStatus.IMAGE_MISSING: Outcome.IMAGE_MISSING,
    }
)
"""What the chain is told of each way in which a run can end; one that broke is told to nobody."""


class Stored(Protocol):
    """Name stored data: `cid` prints as its CID, `size` is the bytes of its files."""

    @property
    def cid(self) -> object:
        """Return the CID."""

    @property
    def size(self) -> int:
        """Return the bytes."""


@dataclass(frozen=True, slots=True)
class Kept:
    """How a run ended: what the chain is told, both documents, and the CID of the outputs (None: none are stored)."""

    outcome: Outcome
    used: int
    result: dict[str, Any]
    report: dict[str, Any]
    outputs: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "outcome": int(self.outcome),
            "used": self.used,
            "result": self.result,
            "report": self.report,
            "outputs": self.outputs,
        }

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> Kept:
        """Read the JSON form. Raises KeyError, TypeError, ValueError."""
        return cls(Outcome(raw["outcome"]), raw["used"], raw["result"], raw["report"], raw["outputs"])


def fuel_seconds(fuel: int) -> int:
    """Return the seconds that WASM fuel is billed as: rounded up, at least 1, at most what a unit's word holds."""
    return min(MAX_USED, max(1, -(-fuel // FUEL_PER_SECOND)))


def used_seconds(task: Task, run: RunResult, used_as_closed: int = 0) -> int:
    """Return the seconds that a run is billed as by its fuel, 0 where the terms bill otherwise.

    A run at its deadline has no count of fuel: it is billed as the maximum. One that was cancelled has none either: it
    is billed `used_as_closed`, as if nothing were handed in.
    """
    if task.terms.billing != Billing.FUEL:
        return 0
    if run.status is RunStatus.CANCELLED:
        return used_as_closed
    return fuel_seconds(run.fuel_used if run.fuel_used is not None else task.terms.max_seconds * FUEL_PER_SECOND)


def without_outputs(run: RunResult, why: str) -> RunResult:
    """Return a run whose outputs are not stored, `why` being the sentence: one that ended well has failed by that."""
    status = RunStatus.OUTPUT_MISSING if run.ok else run.status
    return replace(run, status=status, detail=f"{run.detail}; {why}" if run.detail else why)


def drop_outputs(kept: Kept, why: str) -> Kept:
    """Return a result whose outputs are not stored after all, `why` being the sentence."""
    status = RunStatus.OUTPUT_MISSING if kept.outcome is Outcome.OK else RunStatus(kept.result["status"])
    outcome, detail = OUTCOMES[status], str(kept.report["detail"])
    result = {**kept.result, "outcome": outcome.name.lower(), "status": status.value, "outputs": None}
    report = {**kept.report, "detail": (f"{detail}; {why}" if detail else why)[:DETAIL_CHARACTERS]}
    return Kept(outcome, kept.used, result, report, None)


def conclude(
    task: Task,
    run: RunResult,
    *,
    node: NodeId,
    outputs: Stored | None,
    logs: Stored | None,
    began: float,
    ended: float,
    kept_until: float,
    machine: Mapping[str, Any],
    used_as_closed: int = 0,
) -> Kept:
    """Judge a run and build its two documents; the arguments are those of `report_document` and `used_seconds`."""
    outcome = OUTCOMES[run.status]
    used = used_seconds(task, run, used_as_closed)
    key = task.key
    result = result_document(spec=task.terms.spec, index=key.index, outcome=outcome, run=run, outputs=outputs)
    report = report_document(
        job=key.job,
        index=key.index,
        attempt=key.attempts,
        node=node,
        run=run,
        logs=logs,
        began=began,
        ended=ended,
        kept_until=kept_until,
        used=used,
        machine=machine,
    )
    return Kept(outcome, used, result, report, None if outputs is None else str(outputs.cid))


def result_document(
    *, spec: bytes, index: int, outcome: Outcome, run: RunResult, outputs: Stored | None
) -> dict[str, Any]:
    """Return the reproducible part of how a unit ended.

    `spec` is the 32-byte digest of the canonical spec. Fuel and the engine that counted it are there for WebAssembly
    runs that ended by themselves; a container's engine is in the report, since it does not decide the bytes.
    """
    metered = run.fuel_used is not None
    return {
        "version": VERSION,
        "spec": spec.hex(),
        "index": index,
        "outcome": outcome.name.lower(),
        "status": run.status.value,
        "exit_code": run.exit_code,
        "outputs": None if outputs is None else {"cid": str(outputs.cid), "size": outputs.size},
        "fuel": run.fuel_used,
        "engine": run.engine if metered else None,
    }


def report_document(
    *,
    job: bytes,
    index: int,
    attempt: int,
    node: int,
    run: RunResult,
    logs: Stored | None,
    began: float,
    ended: float,
    used: int,
    kept_until: float,
    machine: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what is true of one attempt only.

    `began` and `ended` are Unix seconds of the worker's clock, `kept_until` is the chain's second before which it does
    not delete the outputs; `used` the fuel seconds that were billed (0 otherwise), `logs` the stored folder with stdout
    and stderr, `machine` facts without floats.
    """
    return {
        "version": VERSION,
        "job": job.hex(),
        "index": index,
        "attempt": attempt,
        "node": node,
        "detail": run.detail[:DETAIL_CHARACTERS],
        "engine": run.engine,
        "began": int(began),
        "ended": int(ended),
        "kept_until": int(kept_until),
        "run_milliseconds": round(run.wall_seconds * 1000),
        "used": used,
        "logs": None if logs is None else {"cid": str(logs.cid), "size": logs.size},
        "stdout_truncated": run.stdout_truncated,
        "stderr_truncated": run.stderr_truncated,
        # The last words travel in the report itself, so that a failure can be read where the logs are gone.
        "stderr_tail": run.stderr[-STDERR_TAIL_BYTES:].decode("utf-8", "replace"),
        "machine": dict(machine),
    }


def refusal_document(*, job: bytes, index: int, attempt: int, node: int, outcome: Outcome, why: str) -> dict[str, Any]:
    """Return why a lease was given back; `outcome` is one that `decline` takes."""
    if outcome.is_result or outcome is Outcome.NONE:
        raise ValueError(f"{outcome.name} is no refusal")
    return {
        "version": VERSION,
        "job": job.hex(),
        "index": index,
        "attempt": attempt,
        "node": node,
        "outcome": outcome.name.lower(),
        "detail": why[:DETAIL_CHARACTERS],
    }
