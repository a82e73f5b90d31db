"""Provisional: replaced by the runtime part's module."""

from __future__ import annotations

from typing import Any

from hearth.types import Outcome
from hearth.unixfs import Entry
from worker.runtimes.base import RunResult


def result_document(
    *, spec: bytes, index: int, outcome: Outcome, run: RunResult, outputs: Entry | None
) -> dict[str, Any]:
    """Return the reproducible part of how a unit ended."""
    return {
        "version": 1,
        "spec": spec.hex(),
        "index": index,
        "outcome": outcome.name.lower(),
        "exit_code": run.exit_code,
        "outputs": None if outputs is None else {"cid": str(outputs.cid), "size": outputs.size},
    }


def report_document(
    *,
    job: bytes,
    index: int,
    attempt: int,
    node: int,
    run: RunResult,
    logs: Entry | None,
    began: float,
    ended: float,
    used: int,
    machine: dict[str, Any],
) -> dict[str, Any]:
    """Return what is true of one attempt only."""
    return {
        "version": 1,
        "job": job.hex(),
        "index": index,
        "attempt": attempt,
        "node": node,
        "detail": run.detail,
        "began": int(began),
        "ended": int(ended),
        "used": used,
        "logs": None if logs is None else str(logs.cid),
        "machine": machine,
    }


def refusal_document(*, job: bytes, index: int, attempt: int, node: int, outcome: Outcome, why: str) -> dict[str, Any]:
    """Return why a lease was given back."""
    return {
        "version": 1,
        "job": job.hex(),
        "index": index,
        "attempt": attempt,
        "node": node,
        "outcome": outcome.name.lower(),
        "detail": why,
    }
