"""What a job left: outputs, logs, and the canonical spec, each read by the digest on chain and checked against it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from hearth.base.errors import (
    BadDestination,
    BadDocument,
    ConfigError,
    HearthError,
    NotFoundError,
    SpecError,
    StorageError,
    TooLarge,
)
from hearth.base.files import AnyPath, path_of
from hearth.base.text import brief, one_line
from hearth.client.face import refusing
from hearth.client.gateways import NOBODY, NodeGateways
from hearth.client.views import OUTCOME_LABELS, JobView, job_hex, require_unit, result_cid, strays_in
from hearth.protocol.state_labels import unit_label
from hearth.protocol.types import ZERO_ADDRESS, ZERO_HASH, Outcome, State, UnitFlag

if TYPE_CHECKING:
    from hearth.client.reading import JobReader
    from hearth.client.reports import (
        Failure,
        Fault,
        JobEnd,
        JobLogs,
        JobResults,
        LogRow,
        RenamedEntry,
        ResultRow,
        UnitEnd,
    )
    from hearth.client.session import Session
    from hearth.market.events import Declined, Finished, GaveUp, Submitted
    from hearth.protocol.types import NodeId, Terms
    from hearth.storage.unixfs import ReadLimits

REDUCE_SECONDS: Final = 600.0
SPEC_SECONDS: Final = 60.0
"""How long a job's spec is looked for where its results are read."""
FETCH_SECONDS: Final = 600.0
LOG_SECONDS: Final = 60.0
MAX_LOGS_BYTES: Final = 64 << 20
"""Characters of log that one call returns, of all units together."""
MAX_DETAIL: Final = 4096
"""Characters of a report's sentence, and of its last words: twice what a worker writes."""
FAR_MOMENT: Final = 1 << 40
"""No second of a chain that a report may speak of is as late."""
GAP_BYTES: Final = 64
"""What the line that names a gap adds to a log."""
NO_REPORT: Final = "its worker gave no reason, and left no logs"
INCOMPLETE: Final = "INCOMPLETE.txt"
"""Stands in an array's folder while a unit of it is missing."""


@dataclass(frozen=True, slots=True)
class UnitResult:
    """One unit's last result as the chain names it, and its document."""

    index: int
    outcome: Outcome
    state: State
    result: bytes
    report: bytes
    document: dict[str, Any]
    node: NodeId = NOBODY

    @property
    def outputs(self) -> str | None:
        """Return the CID of the outputs, None where the unit left none."""
        outputs = self.document["outputs"]
        return None if outputs is None else str(outputs["cid"])


@dataclass(frozen=True, slots=True)
class UnreadResult:
    """A unit whose result is on chain and cannot be had: its worker stores none, or another than it submitted."""

    index: int
    outcome: Outcome
    result: bytes
    error: StorageError


@refusing
class Results:
    """Fetch what jobs left behind.

    What is fetched was made by strangers. One unit's fault is told in its own row and hides no other unit. What no
    store of the session has is asked of the gateways that its node names.
    """

    def __init__(self, reads: JobReader) -> None:
        """Fetch nothing yet."""
        self.session = reads.session
        self.reads = reads
        self._nodes = NodeGateways(reads.session)
        """Whose gateways the call under way may ask."""

    def spec(self, job: str) -> dict[str, Any]:
        """Return the canonical spec of a job, the document whose hash is on chain."""
        view = self.reads.look(job)
        document: dict[str, Any] = self.session.store.get_json(view.terms.spec)
        self.session.names.note(view.terms.spec, document.get("name") if isinstance(document, dict) else None)
        return document

    def get(
        self,
        job: str,
        *,
        folder: AnyPath | None = None,
        unit: int | None = None,
        reduce: AnyPath | None = None,
        pin: bool = False,
    ) -> JobResults:
        """Fetch a job's outputs into a folder, every block checked against its CID; an array's units side by side.

        No more is fetched than the job's spec lets a unit leave, and names that programs obey (`.git`, `.envrc`) are
        written under others, which the rows name. `reduce` is a Python script that is run with the folder as its
        argument when all is there. `pin` keeps the blocks in this store. Raises NotFoundError NO_RESULT, BadDestination
        where this disk cannot take it, and StorageError where the one unit of a job cannot be had; of several units
        each row says what is wrong with its own, and while one is missing the folder holds INCOMPLETE.txt.
        """
        target = path_of(folder)
        script = None if reduce is None else _script(path_of(reduce))
        view = self._look(job)
        report, unread = self._get(view, target, unit, pin)
        if unread and (view.terms.leases == 1 or unit is not None):
            raise unread[0].error
        if script is not None and not unread and not self.session.dry_run:
            report["reduced"] = _reduce(script, Path(report["folder"]))
        if view.finished:
            self.session.records.mark_seen(job_hex(view.posted.job_id))
        return report

    def _get(
        self, view: JobView, folder: Path | None, unit: int | None, pin: bool
    ) -> tuple[JobResults, list[UnreadResult]]:
        """Fetch what can be had of a job, or of one unit; the rest is told in its rows, and returned."""
        from hearth.storage import cid

        name = job_hex(view.posted.job_id)[:14]
        if unit is not None:
            require_unit(view, unit)
        found, unread = self._results(view, unit)
        if not found and not unread:
            why, hint = nothing_left(view, unit, "result")
            raise NotFoundError(why, hint=hint, code="NO_RESULT")
        target = folder or Path(f"results-{view.posted.job_id.hex()[:8]}")
        if not self.session.dry_run:
            refuse_folder(target)
        many = view.terms.leases > 1 and unit is None
        limits = output_limits(self.session, view.terms) if any(one.outputs is not None for one in found) else None
        if many and not self.session.dry_run:
            # Before the first unit, so that a fetch that is killed leaves no folder that looks whole.
            _note_incomplete(target, name, ["the fetch has not come to its end"])
        rows = [_row(one) for one in found]
        size = 0
        for one, row in zip(found, rows, strict=True):
            if limits is None or one.outputs is None:
                continue
            try:
                size += self._fetch(one, target / f"{one.index:04d}" if many else target, limits, row)
            except BadDestination:
                raise
            except StorageError as error:
                unread.append(UnreadResult(one.index, one.outcome, one.result, _of_unit(error, view, one.index)))
                row["fault"] = _fault(unread[-1].error)
                continue
            if pin and not self.session.dry_run:
                # Only now: what was fetched is known to keep within the limits.
                self._nodes.behind(one.node).pin(cid.parse(one.outputs))
        told = {row["unit"] for row in rows}
        rows += [_unread_row(lost) for lost in unread if lost.index not in told]
        if many and not self.session.dry_run:
            _note_incomplete(target, name, [lost.error.message for lost in unread])
        report: JobResults = {
            "schema": "hearth.results/1",
            "job": job_hex(view.posted.job_id),
            "verdict": view.verdict,
            "judged": view.terms.judge != ZERO_ADDRESS,
            "folder": str(target),
            "bytes": size,
            "units": sorted(rows, key=lambda row: row["unit"]),
            "missing": view.terms.leases - len(rows) if unit is None else 0,
            "unread": len(unread),
        }
        if strays := strays_in(self.session.market.strays):
            report["strays"] = strays["strays"]
        return report, unread

    def _fetch(self, one: UnitResult, place: Path, limits: ReadLimits, row: ResultRow) -> int:
        """Fetch one unit's outputs to `place` and note in its row where they are; return their bytes."""
        from hearth.storage import cid

        root = cid.parse(str(one.outputs))
        if self.session.dry_run:
            return 0
        renamed: list[RenamedEntry] = []
        place.parent.mkdir(parents=True, exist_ok=True)
        entry = self._nodes.behind(one.node).fetch(
            root,
            place,
            limits,
            progress=self.session.meter(f"fetch unit {one.index}", one.document["outputs"]["size"]),
            timeout=FETCH_SECONDS,
            renamed=lambda path, name: renamed.append({"path": path, "name": name}),
        )
        row["path"] = str(place)
        if renamed:
            row["renamed"] = renamed
        return entry.size

    def logs(self, job: str, *, unit: int | None = None) -> JobLogs:
        """Return what units wrote to stdout and stderr, and why one was given back.

        Where a log cannot be had, its row says why, and holds the last words of its worker's report if that can be
        read. Raises NotFoundError NO_LOGS before the first attempt reported.
        """
        view = self._look(job)
        if unit is not None:
            require_unit(view, unit)
        rows = self._logs(view, unit)
        if not rows:
            why, hint = nothing_left(view, unit, "logs")
            raise NotFoundError(why, hint=hint, code="NO_LOGS")
        report: JobLogs = {
            "schema": "hearth.logs/1",
            "job": job_hex(view.posted.job_id),
            "units": rows,
            "unread": sum("fault" in row for row in rows),
        }
        if strays := strays_in(self.session.market.strays):
            report["strays"] = strays["strays"]
        return report

    def _logs(self, view: JobView, unit: int | None) -> list[LogRow]:
        """Return a row for each unit of which an attempt reported, MAX_LOGS_BYTES of log in all."""
        rows: list[LogRow] = []
        left = MAX_LOGS_BYTES
        reports = self._reports(view)
        self._nodes.know(event.node for event in reports.values())
        for index, event in sorted(reports.items()):
            if unit is not None and index != unit:
                continue
            row: LogRow = {"unit": index, "node": event.node, "stdout": "", "stderr": "", "detail": ""}
            rows.append(row)
            if not any(event.report):
                row["detail"] = NO_REPORT
                continue
            try:
                document = self._report(event.report, event.node)
                row["detail"], row["stderr"] = words_in(document, "detail"), words_in(document, "stderr_tail")
                if not isinstance(document.get("logs"), dict):
                    continue
                if left <= 0:
                    raise TooLarge(
                        f"{MAX_LOGS_BYTES >> 20} MiB of logs are shown at once, and this one is beyond",
                        hint=f"hearth job logs {job_hex(view.posted.job_id)[:14]} --unit {index}",
                    )
                row["stdout"], row["stderr"] = self._streams(str(document["logs"].get("cid")), event.node)
                left -= len(row["stdout"]) + len(row["stderr"])
            except StorageError as error:
                row["fault"] = _fault(error)
        return rows

    def _streams(self, root: str, node: NodeId) -> tuple[str, str]:
        """Return the text of stdout and stderr in a node's folder of logs, which is no larger than a worker keeps."""
        import tempfile

        from hearth.protocol.runtimes import MAX_LOG_BYTES
        from hearth.storage import cid
        from hearth.storage.unixfs import ReadLimits

        most = MAX_LOG_BYTES + GAP_BYTES
        limits = ReadLimits.of_market(2 * most, 3, (("stdout", most), ("stderr", most)))
        with tempfile.TemporaryDirectory(prefix="hearth-logs-") as folder:
            here = Path(folder) / "logs"
            self._nodes.behind(node).fetch(cid.parse(root), here, limits, timeout=LOG_SECONDS)
            try:
                stdout, stderr = ((here / name).read_bytes() for name in ("stdout", "stderr"))
            except OSError as error:
                raise BadDocument("the logs hold no stdout and stderr", hint="hearth job show JOB") from error
        return stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace")

    def summary(self, job: str, folder: Path | None) -> JobEnd:
        """Return how a job's units ended, their last words where they failed, and fetch the outputs into `folder`."""
        view = self._look(job)
        found, unread = self._results(view, None)
        fetched = self._get(view, folder, None, False)[0] if folder is not None and (found or unread) else None
        rows: list[UnitEnd] = [
            {
                "unit": one.index,
                "outcome": one.outcome.name.lower(),
                "text": _end_words(one),
                "exit_code": one.document["exit_code"],
                "outputs": one.outputs,
            }
            for one in found
        ]
        rows += [
            {
                "unit": lost.index,
                "outcome": lost.outcome.name.lower(),
                "text": f"{OUTCOME_LABELS[lost.outcome]}, but {lost.error.message}",
                "exit_code": None,
                "outputs": None,
            }
            for lost in unread
        ]
        rows.sort(key=lambda row: row["unit"])
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
                "detail": words_in(report, "detail"),
                "stderr_tail": words_in(report, "stderr_tail"),
            }
        kept = [kept_until(reports[one.index]) for one in found[:8] if one.outputs is not None]
        logs = self._logs(view, 0) if view.terms.leases == 1 and found else []
        return {
            "verdict": view.verdict,
            "ok": view.ok,
            "failed": view.failed,
            "verified": len(found),
            "unread": len(unread) if fetched is None else fetched["unread"],
            "units": rows[:64],
            "failure": words,
            "kept_until": min((moment for moment in kept if moment is not None), default=None),
            "stdout": logs[0]["stdout"] if logs else "",
            "parents_failed": self._parents_failed(view),
            "fetched": fetched,
        }

    # ---- inside ----

    def _look(self, job: str) -> JobView:
        """Return a job as it stands, for a call of which nobody was asked anything yet."""
        self._nodes = NodeGateways(self.session)
        return self.reads.look(job)

    def _report(self, digest: bytes, node: NodeId = NOBODY) -> dict[str, Any]:
        """Return a node's report. It is its worker's word alone: one that is not of the form says nothing."""
        document = self._nodes.behind(node).get_json(digest)
        return document if isinstance(document, dict) else {}

    def _told(self, one: UnitResult) -> dict[str, Any]:
        """Return a unit's report, empty where it cannot be had: the result counts without it."""
        if one.report == ZERO_HASH:
            return {}
        with suppress(StorageError):
            return self._report(one.report, one.node)
        return {}

    def _parents_failed(self, view: JobView) -> bool:
        """Say whether a job never ran, since one that it waited for ended otherwise than asked."""
        from hearth.market.events import Unlocked

        if not view.posted.parents:
            return False
        events = self.reads.events(view.posted, view.posted.log.block_number, view.number)
        return any(isinstance(event, Unlocked) and event.refund for event in events)

    def _reports(self, view: JobView) -> dict[int, Submitted | Finished | Declined | GaveUp]:
        """Return the last event with a report of each unit."""
        from hearth.market.events import Declined, Finished, GaveUp, Submitted

        events = self.reads.events(view.posted, view.posted.log.block_number, view.number)
        return {event.index: event for event in events if isinstance(event, Submitted | Finished | Declined | GaveUp)}

    def _results(self, view: JobView, unit: int | None) -> tuple[list[UnitResult], list[UnreadResult]]:
        """Return the result of each unit that has one, its document read by the digest on chain and checked, and the
        units whose document cannot be had or is no result of theirs.

        The digest is the one that storage keeps, where it does; a log that names another is a stray.
        """
        from hearth.market.events import Finished, Submitted

        events = self.reads.events(view.posted, view.posted.log.block_number, view.number)
        last = {event.index: event for event in events if isinstance(event, Submitted | Finished)}
        found, unread = [], []
        self._nodes.know(one.node for one in view.units if one.state.has_result)
        for index in range(len(view.units)) if unit is None else [unit]:
            if index >= len(view.units) or not view.units[index].state.has_result:
                continue
            event, kept = last.get(index), view.best[index].kept
            if event is not None and (why := contradicts(event, kept)):
                self.session.market.strays.note(event.log, why)
                event = None
            digest = kept or (event.result if event is not None else None)
            if digest is None:
                continue
            outcome, state, node = view.units[index].outcome, view.units[index].state, view.units[index].node
            try:
                document = self._nodes.behind(node).get_json(digest)
                check_result(document, view.terms.spec, index, outcome)
            except StorageError as error:
                unread.append(UnreadResult(index, outcome, digest, _of_unit(error, view, index)))
                continue
            report = event.report if event is not None else ZERO_HASH
            found.append(UnitResult(index, outcome, state, digest, report, document, node))
        return found, unread


def contradicts(event: Submitted | Finished, kept: bytes | None) -> str:
    """Return why a log of a result is not the unit's, by the digest that storage keeps of it; "" where it may be."""
    if kept is None or event.result == kept:
        return ""
    return (
        f"unit {event.index} of job {job_hex(event.job_id)[:14]} has the result {kept.hex()[:16]} in storage, and its "
        f"log names {event.result.hex()[:16]}"
    )


def output_limits(session: Session, terms: Terms, seconds: float = SPEC_SECONDS) -> ReadLimits:
    """Return what a unit of a job may leave: by its spec, or where that cannot be had, the disk that its terms pay for.

    A worker stores no more: outputs beyond it are a failure of the unit, and are not kept. `seconds` bound the search.
    """
    from hearth.jobfile import parse_canonical
    from hearth.protocol.runtimes import MAX_OUTPUT_ENTRIES
    from hearth.protocol.units import GIB
    from hearth.storage import canonical
    from hearth.storage.unixfs import ReadLimits

    entries = MAX_OUTPUT_ENTRIES + 1  # and the folder itself
    try:
        spec = parse_canonical(session.store.get_block(canonical.cid_of_digest(terms.spec), seconds))
    except (StorageError, SpecError):
        return ReadLimits.of_market(terms.needs.disk_gib * GIB, entries)
    session.names.note(terms.spec, spec.name)
    below = [(output.path.removeprefix("/out").strip("/"), output.max_size) for output in spec.outputs]
    return ReadLimits.of_market(spec.output_bytes, entries, tuple((path, most) for path, most in below if path))


def unread_error(job: str, units: int, unread: int, what: str = "result") -> StorageError | None:
    """Return the error that units without a readable result (or log) are, None where all could be read."""
    if not unread:
        return None
    return StorageError(
        f"of {units} units of job {job[:14]}, {unread} {'has' if unread == 1 else 'have'} a {what} that cannot be read",
        hint=f"hearth job get {job[:14]} --unit N -o DIR tries one again; hearth job rerun {job[:14]} posts it anew",
        code="RESULTS_INCOMPLETE",
        retryable=True,
        job=job,
        unread=unread,
    )


def _of_unit(error: StorageError, view: JobView, index: int) -> StorageError:
    """Return a store's error as that of a unit's result, with what its submitter can do about it."""
    job = job_hex(view.posted.job_id)[:14]
    again = f"hearth job get {job} --unit {index} -o DIR tries again; " if error.retryable else ""
    return type(error)(
        f"the result of unit {index} cannot be read: {error.message}",
        hint=f"{again}hearth job rerun {job} posts the job anew",
        code=error.code,
        retryable=error.retryable,
        **error.details,
    )


def _fault(error: StorageError) -> Fault:
    return {"code": error.code, "message": error.message}


def nothing_left(view: JobView, unit: int | None, what: Literal["logs", "result"]) -> tuple[str, str]:
    """Say that a job, or one unit of it, has left nothing: yet, or for good where it has ended; and what to do next."""
    name = job_hex(view.posted.job_id)[:14]
    place = f"job {name}" if unit is None or view.terms.leases == 1 else f"unit {unit} of job {name}"
    asked = view.units if unit is None else view.units[unit : unit + 1]
    ended = view.finished or (unit is not None and bool(asked) and asked[0].state.terminal)
    if not ended:
        if any(one.state is State.CLOSING for one in asked):
            then = "its worker hands in what it has until the notice ends, where that costs no more than its end does"
        elif what == "logs":
            then = "they come with the result"
        else:
            # Of an array's units, those that nobody took yet are in no list.
            taken = f"its state is {unit_label(asked[0])}" if asked else "no machine has taken it"
            then = f"its state is {view.labels[1]}" if unit is None else taken
        return f"{place} has no {what} yet: {then}", f"hearth job show {name}"
    if any(one.state is State.CANCELLED and one.flags & UnitFlag.NOTICED for one in asked):
        why = "it was cancelled, and its worker, which was paid until the end of the notice, handed nothing in"
    elif any(one.attempts for one in asked):
        why = "it ended without one" if what == "result" else "no worker reported of it"
    else:
        why = "no worker ran it"
    again = f"hearth job rerun {name} posts it anew; hearth job receipt {name}"
    return f"{place} has no {what}, and none will come: {why}", again


def _end_words(one: UnitResult) -> str:
    """Say how a unit ended: where the chain has one outcome for several ways, by its result's status."""
    if one.document["status"] == "cancelled":
        return "cancelled while it ran: this is what there was"
    if one.outcome is not Outcome.EXIT:
        return OUTCOME_LABELS[one.outcome]
    status, code = one.document["status"], one.document["exit_code"]
    if status == "output_missing":
        return "failed: the program left less than the outputs that it must"
    if status == "output_over_cap":
        return "failed: the program left more than its outputs may have"
    return OUTCOME_LABELS[one.outcome] if code is None else f"failed: the program ended with exit code {code}"


def _row(one: UnitResult) -> ResultRow:
    return {
        "unit": one.index,
        "outcome": one.outcome.name.lower(),
        "exit_code": one.document["exit_code"],
        "result_cid": result_cid(one.result),
        "outputs": one.outputs,
        "path": None,
    }


def _unread_row(lost: UnreadResult) -> ResultRow:
    return {
        "unit": lost.index,
        "outcome": lost.outcome.name.lower(),
        "exit_code": None,
        "result_cid": result_cid(lost.result),
        "outputs": None,
        "path": None,
        "fault": _fault(lost.error),
    }


def _note_incomplete(folder: Path, job: str, lines: list[str]) -> None:
    """Say in an array's folder what is missing from it; no lines, and the note is taken away: all is there.

    Raises BadDestination where this disk cannot take it.
    """
    note = folder / INCOMPLETE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not lines:
            note.unlink(missing_ok=True)
            return
        head = f"Not all of job {job} is here. One unit alone: hearth job get {job} --unit N -o DIR\n"
        note.write_text(head + "".join(f"{one_line(line)}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise BadDestination(
            f"{note} cannot be written: {error.strerror}", hint="choose another path, or free some room", path=str(note)
        ) from error


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


def words_in(report: dict[str, Any], name: str) -> str:
    """Return a text of a report, of MAX_DETAIL characters at most; what is no text says nothing."""
    found = report.get(name)
    return found[:MAX_DETAIL] if isinstance(found, str) else ""


def kept_until(report: dict[str, Any]) -> int | None:
    """Return the second of the chain until which a report says that the outputs are kept, None where it says none."""
    moment = report.get("kept_until")
    return moment if type(moment) is int and 0 < moment < FAR_MOMENT else None


def check_result(document: Any, spec: bytes, index: int, outcome: Outcome) -> None:
    """Refuse a result document that is of another job, unit or outcome than the chain says. Raises BadDocument."""
    expected = {"spec": spec.hex(), "index": index, "outcome": outcome.name.lower()}
    for name, value in expected.items():
        found = document.get(name) if isinstance(document, dict) else document
        # To Python true is 1 and false is 0, and to no other reader.
        if not isinstance(document, dict) or type(found) is not type(value) or found != value:
            raise BadDocument(
                f"the result's {name} is {brief(repr(found))}, and the chain says {value!r}: it is not this unit's",
                hint="hearth job show JOB",
            )
    outputs = document.get("outputs")
    if outputs is not None and not _names_outputs(outputs):
        raise BadDocument("the result names no outputs that can be read", hint="hearth job show JOB")
    if "outputs" not in document or not re.fullmatch(r"[a-z_]{1,32}", str(document.get("status"))):
        raise BadDocument("the result document lacks a field", hint="hearth job show JOB")
    code = document.get("exit_code", "")
    if code is not None and (not isinstance(code, int) or isinstance(code, bool)):
        raise BadDocument("the result's exit code is no number", hint="hearth job show JOB")


def _names_outputs(outputs: Any) -> bool:
    """Say whether a result's `outputs` are a CID's text and a number of bytes."""
    if not isinstance(outputs, dict) or not isinstance(outputs.get("cid"), str):
        return False
    size = outputs.get("size")
    return isinstance(size, int) and not isinstance(size, bool) and size >= 0


def _script(path: Path) -> Path:
    """Return the user's own script, before anything is fetched for it. Raises NotFoundError NO_SCRIPT."""
    if not path.is_file():
        raise NotFoundError(f"there is no {path}", hint="hearth job get --help", code="NO_SCRIPT", component="cli")
    return path


def _reduce(script: Path, folder: Path) -> str:
    """Run the user's own script on the fetched folder and return what it prints."""
    try:
        done = subprocess.run(
            [sys.executable, str(script), str(folder)],
            capture_output=True,
            text=True,
            timeout=REDUCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise HearthError(
            f"{script} ran longer than {REDUCE_SECONDS:.0f} s",
            hint="run it by hand on the folder; hearth job get --help",
            code="REDUCE_FAILED",
        ) from error
    if done.returncode:
        raise ConfigError(
            f"{script} ended with {done.returncode}: {done.stderr.strip()[-400:]}",
            hint="run it by hand on the folder; hearth job get --help",
            code="REDUCE_FAILED",
        )
    return done.stdout
