"""What a job left: outputs, logs, and the canonical spec, each read by the digest on chain and checked against it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hearth.base.errors import BadDestination, BadDocument, ConfigError, HearthError, NotFoundError, StorageError
from hearth.client.views import OUTCOME_WORDS, JobView, job_hex
from hearth.protocol.types import Outcome, State

if TYPE_CHECKING:
    from hearth.client.reading import JobReader
    from hearth.client.reports import Failure, JobEnd, JobLogs, JobResults, LogRow, ResultRow, UnitEnd
    from hearth.market.events import Declined, Submitted

REDUCE_SECONDS: Final = 600.0
FETCH_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class UnitResult:
    """One unit's last result as the chain names it, and its document."""

    index: int
    outcome: Outcome
    state: State
    result: bytes
    report: bytes
    document: dict[str, Any]

    @property
    def outputs(self) -> str | None:
        """Return the CID of the outputs, None where the unit left none."""
        outputs = self.document["outputs"]
        return None if outputs is None else str(outputs["cid"])


class Results:
    """Fetch what jobs left behind."""

    def __init__(self, reads: JobReader) -> None:
        """Fetch nothing yet."""
        self.session = reads.session
        self.reads = reads

    def spec(self, job: str) -> dict[str, Any]:
        """Return the canonical spec of a job, the document whose hash is on chain."""
        view = self.reads.look(job)
        document: dict[str, Any] = self.session.store.get_json(view.terms.spec)
        return document

    def get(
        self,
        job: str,
        *,
        folder: Path | None = None,
        unit: int | None = None,
        reduce: Path | None = None,
        pin: bool = False,
    ) -> JobResults:
        """Fetch a job's outputs into a folder, every block checked against its CID; an array's units side by side.

        `reduce` is a Python script that is run with the folder as its argument when all are there. `pin` keeps the
        blocks in this store. Raises NotFoundError NO_RESULT, StorageError where a block is missing or altered.
        """
        from hearth.storage import cid

        view = self.reads.look(job)
        found = self._results(view, unit)
        if not found:
            raise NotFoundError(
                f"job {job_hex(view.posted.job_id)[:14]} has no result yet: it is {view.state}",
                hint=f"hearth job show {job_hex(view.posted.job_id)[:14]}",
                code="NO_RESULT",
            )
        target = folder or Path(f"results-{view.posted.job_id.hex()[:8]}")
        if not self.session.dry_run:
            refuse_folder(target)
        many = view.terms.leases > 1 and unit is None
        rows = []
        size = 0
        for one in found:
            place = target / f"{one.index:04d}" if many else target
            row: ResultRow = {
                "unit": one.index,
                "outcome": one.outcome.name.lower(),
                "exit_code": one.document["exit_code"],
                "outputs": one.outputs,
                "path": None,
            }
            rows.append(row)
            if one.outputs is None:
                continue
            root = cid.parse(one.outputs)
            if pin:
                self.session.store.pin(root)
            if self.session.dry_run:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            meter = self.session.meter(f"fetch unit {one.index}", int(one.document["outputs"]["size"]))
            size += self.session.store.fetch(root, place, progress=meter, timeout=FETCH_SECONDS).size
            row["path"] = str(place)
        report: JobResults = {
            "schema": "hearth.results/1",
            "job": job_hex(view.posted.job_id),
            "verdict": view.verdict,
            "folder": str(target),
            "bytes": size,
            "units": rows,
            "missing": view.terms.leases - len(found) if unit is None else 0,
        }
        if reduce is not None and not self.session.dry_run:
            report["reduced"] = _reduce(reduce, target)
        if view.finished:
            self.session.records.mark_seen(job_hex(view.posted.job_id))
        return report

    def logs(self, job: str, *, unit: int | None = None) -> JobLogs:
        """Return what units wrote to stdout and stderr, and why one was given back.

        Raises NotFoundError NO_LOGS before the first attempt reported.
        """
        from hearth.market.events import Declined
        from hearth.storage import cid, unixfs

        view = self.reads.look(job)
        last = {index: event for index, event in self._reports(view).items() if unit is None or index == unit}
        if not last:
            raise NotFoundError(
                f"job {job_hex(view.posted.job_id)[:14]} has no logs yet: they come with the result",
                hint=f"hearth job show {job_hex(view.posted.job_id)[:14]}",
                code="NO_LOGS",
            )
        rows = []
        for index, event in sorted(last.items()):
            row: LogRow = {"unit": index, "node": event.node, "stdout": "", "stderr": "", "detail": ""}
            rows.append(row)
            if not any(event.report):
                continue
            document = self._report(event.report)
            row["detail"] = str(document.get("detail", ""))
            logs = document.get("logs")
            if isinstance(event, Declined) or not isinstance(logs, dict):
                row["stderr"] = str(document.get("stderr_tail", ""))
                continue
            root = cid.parse(str(logs.get("cid")))
            for name in ("stdout", "stderr"):
                here = unixfs.resolve(root, name, self.session.store)
                row[name] = b"".join(unixfs.read_file(here, self.session.store)).decode("utf-8", "replace")
        return {"schema": "hearth.logs/1", "job": job_hex(view.posted.job_id), "units": rows}

    def summary(self, job: str, folder: Path | None) -> JobEnd:
        """Return how a job's units ended, their last words where they failed, and fetch the outputs into `folder`."""
        view = self.reads.look(job)
        found = self._results(view, None)
        fetched = self.get(job, folder=folder) if folder is not None and found else None
        rows: list[UnitEnd] = [
            {
                "unit": one.index,
                "outcome": one.outcome.name.lower(),
                "text": OUTCOME_WORDS[one.outcome],
                "exit_code": one.document["exit_code"],
                "outputs": one.outputs,
            }
            for one in found[:64]
        ]
        # Of some: few workers run an array, and each keeps all of its results as long.
        reports = {one.index: self._told(one) for one in found[:8]}
        failed = next((one for one in found if one.outcome is not Outcome.OK), None)
        words: Failure | None = None
        if failed is not None:
            report = reports.get(failed.index) or self._told(failed)
            words = {
                "unit": failed.index,
                "exit_code": failed.document["exit_code"],
                "status": failed.document["status"],
                "detail": str(report.get("detail", "")),
                "stderr_tail": str(report.get("stderr_tail", "")),
            }
        kept = [reports[one.index].get("kept_until") for one in found[:8] if one.outputs is not None]
        stdout = ""
        if view.terms.leases == 1 and found:
            stdout = str(self.logs(job)["units"][0]["stdout"])
        return {
            "verdict": view.verdict,
            "ok": view.ok,
            "failed": view.failed,
            "verified": len(found),
            "units": rows,
            "failure": words,
            "kept_until": min(
                (moment for moment in kept if isinstance(moment, int) and 0 < moment < 1 << 40), default=None
            ),
            "stdout": stdout,
            "fetched": fetched,
        }

    # ---- inside ----

    def _report(self, digest: bytes) -> dict[str, Any]:
        """Return a report. It is its worker's word alone: one that is not of the form says nothing."""
        document = self.session.store.get_json(digest)
        return document if isinstance(document, dict) else {}

    def _told(self, one: UnitResult) -> dict[str, Any]:
        """Return a unit's report, empty where it cannot be had: the result counts without it."""
        with suppress(StorageError):
            return self._report(one.report)
        return {}

    def _reports(self, view: JobView) -> dict[int, Submitted | Declined]:
        """Return the last event with a report of each unit."""
        from hearth.market.events import Declined, Submitted

        events = self.reads.events(view.posted.job_id, view.posted.log.block_number, view.number)
        return {event.index: event for event in events if isinstance(event, Submitted | Declined)}

    def _results(self, view: JobView, unit: int | None) -> list[UnitResult]:
        """Return the result of each unit that has one, its document read by the digest on chain and checked."""
        from hearth.market.events import Submitted

        events = self.reads.events(view.posted.job_id, view.posted.log.block_number, view.number)
        last = {event.index: event for event in events if isinstance(event, Submitted)}
        found = []
        for index in range(len(view.units)) if unit is None else [unit]:
            event = last.get(index)
            if event is None or view.units[index].state not in (State.SUBMITTED, State.SETTLED):
                continue
            document = self.session.store.get_json(event.result)
            check_result(document, view.terms.spec, index, view.units[index].outcome)
            found.append(
                UnitResult(
                    index, view.units[index].outcome, view.units[index].state, event.result, event.report, document
                )
            )
        return found


def refuse_folder(folder: Path) -> None:
    """Refuse a folder for results that could not be written there later. Raises BadDestination."""
    from hearth.storage import unixfs

    try:
        unixfs.check_destination(folder)
        parent = next(one for one in folder.absolute().parents if one.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
            raise BadDestination(f"{folder} cannot be made in {parent}", hint="choose another path", path=str(folder))
    except OSError as error:
        raise BadDestination(
            f"{folder} cannot be looked at: {error.strerror}", hint="choose another path", path=str(folder)
        ) from error


def check_result(document: Any, spec: bytes, index: int, outcome: Outcome) -> None:
    """Refuse a result document that is of another job, unit or outcome than the chain says. Raises BadDocument."""
    expected = {"spec": spec.hex(), "index": index, "outcome": outcome.name.lower()}
    for name, value in expected.items():
        if not isinstance(document, dict) or document.get(name) != value:
            found = document.get(name) if isinstance(document, dict) else document
            raise BadDocument(
                f"the result's {name} is {found!r}, and the chain says {value!r}: it is not this unit's",
                hint="hearth job show JOB",
            )
    outputs = document.get("outputs")
    if outputs is not None and not (isinstance(outputs, dict) and isinstance(outputs.get("cid"), str)):
        raise BadDocument("the result names no outputs that can be read", hint="hearth job show JOB")
    if "outputs" not in document or not isinstance(document.get("status"), str):
        raise BadDocument("the result document lacks a field", hint="hearth job show JOB")
    code = document.get("exit_code", "")
    if code is not None and (not isinstance(code, int) or isinstance(code, bool)):
        raise BadDocument("the result's exit code is no number", hint="hearth job show JOB")


def _reduce(script: Path, folder: Path) -> str:
    """Run the user's own script on the fetched folder and return what it prints."""
    if not script.is_file():
        raise NotFoundError(f"there is no {script}", hint="hearth job get --help", code="NO_SCRIPT", component="cli")
    try:
        done = subprocess.run(
            [sys.executable, str(script), str(folder)],
            capture_output=True,
            text=True,
            timeout=REDUCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise HearthError(f"{script} ran longer than {REDUCE_SECONDS:.0f} s", code="REDUCE_FAILED") from error
    if done.returncode:
        raise ConfigError(
            f"{script} ended with {done.returncode}: {done.stderr.strip()[-400:]}",
            hint="run it by hand on the folder; hearth job get --help",
            code="REDUCE_FAILED",
        )
    return done.stdout
