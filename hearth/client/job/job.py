"""A job as an object, for programs and notebooks: `client.jobs.submit(...)`, `client.jobs.open(id)`.

What is shown is the last look at the chain; `refresh` and `wait` look again. `facts` is what `--json` prints of it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, overload

from hearth.base.text import one_line
from hearth.client.views import YEAR_10000
from hearth.protocol.units import Asset, show_amount

if TYPE_CHECKING:
    from hearth.base.files import AnyPath
    from hearth.client.reports import (
        EventFacts,
        JobAction,
        JobEvents,
        JobFacts,
        JobLogs,
        JobReceipt,
        JobResults,
        JobRow,
        LogRow,
        ResultRow,
        Submission,
        TopUp,
    )
    from hearth.client.session import Session

_COLUMNS: Final = ("job", "name", "state", "units", "cost", "posted", "started", "ended")

_TEXT_FORM: Final = re.compile(r"(?:.?[<>^])?(?:[1-9][0-9]*)?s?")


class Amount(int):
    """Base units of an asset, exact; as text, and in an f-string, the same for people, such as "0.0123 ETH"."""

    asset: Asset

    def __new__(cls, units: int, asset: Asset) -> Amount:
        """Return so many base units of an asset."""
        made = super().__new__(cls, units)
        made.asset = asset
        return made

    def __str__(self) -> str:
        return show_amount(int(self), self.asset)

    def __repr__(self) -> str:
        return f"<{int(self)} base units: {self}>"

    def __format__(self, spec: str) -> str:
        if spec.endswith("d"):
            return format(int(self), spec)
        if not _TEXT_FORM.fullmatch(spec):  # anything else would cut digits off, or show base units as the asset's
            raise ValueError(f'an amount has a width, such as ">12", or base units, as "d"; not "{spec}"')
        return format(str(self), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return Amount, (int(self), self.asset)


@dataclass(frozen=True, slots=True)
class UnitLog:
    """What one unit's last attempt wrote. `fault` says why its log could not be had, None where it was."""

    unit: int
    node: int
    stdout: str
    stderr: str
    detail: str
    fault: str | None


class Logs:
    """What a job's units wrote: strangers' words. `report` is the same as `hearth job logs --json` prints it."""

    def __init__(self, report: JobLogs) -> None:
        """Show a report."""
        self.report = report
        self.units: tuple[UnitLog, ...] = tuple(map(_unit_log, report["units"]))

    @property
    def stdout(self) -> str:
        """Return what the units wrote to stdout, one after the other."""
        return "".join(one.stdout for one in self.units)

    @property
    def stderr(self) -> str:
        """Return what the units wrote to stderr, one after the other."""
        return "".join(one.stderr for one in self.units)

    def __repr__(self) -> str:
        return f"<Logs of job {self.report['job'][:14]}: {_many(len(self.units), 'unit')}>"


@dataclass(frozen=True, slots=True)
class UnitOutputs:
    """What one unit left: where its outputs lie, None where it left none, and their CID. `fault` says why they are not
    here, `renamed` which entries are under another name, since programs obey their own."""

    unit: int
    outcome: str
    exit_code: int | None
    path: Path | None
    cid: str | None
    fault: str | None
    renamed: Mapping[str, str]


class Outputs:
    """Outputs that were fetched into `folder`, every block checked against the chain's digest.

    `bytes` counts them, `missing` the units without a result. `complete` says that nothing is missing or unread.
    `report` is the same as `hearth job get --json` prints it.
    """

    def __init__(self, report: JobResults) -> None:
        """Show a report."""
        self.report = report
        self.folder = Path(report["folder"])
        self.bytes = report["bytes"]
        self.missing = report["missing"]
        self.units: tuple[UnitOutputs, ...] = tuple(map(_unit_outputs, report["units"]))

    @property
    def complete(self) -> bool:
        """Say whether every unit's outputs are here."""
        return not self.missing and not self.report["unread"]

    def __repr__(self) -> str:
        rest = "" if self.complete else ", not complete"
        return f"<Outputs of job {self.report['job'][:14]} in {self.folder}: {self.bytes} bytes{rest}>"


class Acts(Protocol):
    """What a job asks of `client.jobs`: its reports, by its id."""

    session: Session

    def show(self, job: str) -> JobFacts: ...
    def end(self, job: str, *, timeout: float | None, anyway: bool) -> JobFacts: ...
    def events(self, job: str) -> JobEvents: ...
    def follow(self, job: str, *, timeout: float | None = None) -> Iterator[EventFacts]: ...
    def receipt(self, job: str) -> JobReceipt: ...
    def cancel(self, job: str, *, unit: int | None = None) -> JobAction: ...
    def accept(self, job: str, *, unit: int | None = None) -> JobAction: ...
    def top_up(self, job: str, time: str, *, unit: int | None = None, again: bool = False) -> TopUp: ...
    def rerun(self, job: str) -> Job: ...
    def spec(self, job: str) -> dict[str, Any]: ...
    def logs(self, job: str, *, unit: int | None = None) -> JobLogs: ...
    def get(
        self, job: str, *, folder: AnyPath | None, unit: int | None, reduce: AnyPath | None, pin: bool
    ) -> JobResults: ...


class Job:
    """One job of a market. Its properties show the last look; the first of them that is asked for looks.

    Every method raises HearthError: of these ChainError where nobody answers, NotFoundError where there is no such job.
    """

    def __init__(
        self, jobs: Acts, job_id: str, *, row: JobRow | None = None, submission: Submission | None = None
    ) -> None:
        """Name a job by its whole id; `row` is what a list told of it, `submission` what posting it came to."""
        self._jobs = jobs
        self._row = row
        self._facts: JobFacts | None = None
        self.id = job_id
        self.submission = submission
        """What `hearth submit --json` prints, None where it was not posted by this call."""

    # ---- looking ----

    def refresh(self) -> Job:
        """Look at the chain again, and return this job."""
        self._facts = self._jobs.show(self.id)
        self._row = self._facts
        return self

    @property
    def facts(self) -> JobFacts:
        """Return everything that the chain knows of it, as `hearth job show --json` prints it."""
        if self._facts is None:
            self.refresh()
        assert self._facts is not None
        return self._facts

    @property
    def name(self) -> str | None:
        """Return its name, None where nobody here has read its spec."""
        return self._told["name"]

    @property
    def state(self) -> str:
        """Return its state: "open", "running", "submitted", "settled", ...; of an array "open", "running", "ended"."""
        return self._told["state"]

    @property
    def verdict(self) -> str:
        """Return "ok", "failed", "refunded", or "pending" before its end."""
        return self._told["verdict"]

    @property
    def state_text(self) -> str:
        """Return how it stands as people read it, in the words of `hearth jobs`, such as "done"; `find` takes them."""
        return self._told["state_text"]

    @property
    def ended(self) -> bool:
        """Say whether all of it has ended, or has results that nothing but a wait keeps from being paid."""
        return self.verdict != "pending"

    @property
    def ok(self) -> bool:
        """Say whether every unit has a good result."""
        return self.verdict == "ok"

    @property
    def units(self) -> int:
        """Return how many leases it has."""
        return self._told["units"]

    @property
    def submitter(self) -> str:
        """Return the address that posted it."""
        return self._told["submitter"]

    @property
    def cost(self) -> Amount | None:
        """Return what of its escrow is spent so far; None in what `find` returned of other accounts' jobs."""
        cost = self._told["cost"]
        return None if cost is None else Amount(int(cost), self._jobs.session.asset)

    @property
    def escrow(self) -> Amount:
        """Return what was locked for it, top-ups included."""
        return Amount(int(self.facts["escrow"]), self._jobs.session.asset)

    @property
    def posted_at(self) -> datetime | None:
        """Return when it was posted."""
        return _moment(self._told["posted_at"])

    @property
    def started_at(self) -> datetime | None:
        """Return when a worker first took it, None where none did."""
        return _moment(self._told["started_at"])

    @property
    def ended_at(self) -> datetime | None:
        """Return when its last unit ended, None before that."""
        return _moment(self._told["ended_at"])

    @property
    def deadline(self) -> datetime | None:
        """Return when all of it must be over; None for a moment that no calendar has."""
        return _moment(self._told["deadline"])

    def events(self) -> list[EventFacts]:
        """Return its events, oldest first."""
        return self._jobs.events(self.id)["events"]

    def follow(self, *, timeout: float | None = None) -> Iterator[EventFacts]:
        """Yield its events as they come, from its posting to its end. Raises WaitTimeout; the job is alive then."""
        return self._jobs.follow(self.id, timeout=timeout)

    def receipt(self) -> JobReceipt:
        """Return where its money went, and every transaction with its gas."""
        return self._jobs.receipt(self.id)

    def spec(self) -> dict[str, Any]:
        """Return its canonical spec, the document whose hash is on the chain: its submitter's words."""
        return self._jobs.spec(self.id)

    # ---- waiting ----

    def wait(self, *, timeout: float | None = None, anyway: bool = False) -> Job:
        """Wait for its end, by default as long as the client's `timeout`, look at it, and return this job.

        Raises WaitTimeout, and NoWorkerError where no worker is left that could take it, unless `anyway`: it is alive
        then, its money in Escrow.
        """
        self._facts = self._jobs.end(self.id, timeout=timeout, anyway=anyway)
        self._row = self._facts
        return self

    # ---- what it left ----

    def results(
        self,
        folder: AnyPath | None = None,
        *,
        unit: int | None = None,
        reduce: AnyPath | None = None,
        pin: bool = False,
    ) -> Outputs:
        """Fetch its outputs into a folder that does not exist yet, an array's units side by side.

        `reduce` is a Python script that is run with the folder as its argument when all is there, `pin` keeps the
        blocks in this client's store. Raises what `client.jobs.get` does.
        """
        return Outputs(self._jobs.get(self.id, folder=folder, unit=unit, reduce=reduce, pin=pin))

    def logs(self, *, unit: int | None = None) -> Logs:
        """Return what its units wrote to stdout and stderr. Raises NotFoundError NO_LOGS before the first report."""
        return Logs(self._jobs.logs(self.id, unit=unit))

    # ---- acting ----

    def cancel(self, *, unit: int | None = None) -> JobAction:
        """Cancel it, or one unit of it: what is open is refunded, what runs is given notice."""
        return self._acted(self._jobs.cancel(self.id, unit=unit))

    def accept(self, *, unit: int | None = None) -> JobAction:
        """Accept submitted results, which pays them at once."""
        return self._acted(self._jobs.accept(self.id, unit=unit))

    def top_up(self, time: str, *, unit: int | None = None, again: bool = False) -> TopUp:
        """Give a metered unit that runs `time` more, such as "30m". The same time is given once, unless `again`."""
        report = self._jobs.top_up(self.id, time, unit=unit, again=again)
        self._forget()
        return report

    def rerun(self) -> Job:
        """Post its terms again, as a new job, and return that."""
        return self._jobs.rerun(self.id)

    # ---- showing ----

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        """Return what is known of it, in one line; nobody is asked."""
        row = self._row
        if row is None:
            return f"<Job {self.id[:14]}>"
        cells = _cells(row)
        name = f' "{cells["name"]}"' if cells["name"] else ""
        cost = f", cost {cells['cost']}" if cells["cost"] else ""
        return f"<Job {self.id[:14]}{name}: {cells['state']}, {_many(row['units'], 'unit')}{cost}>"

    def _repr_html_(self) -> str:
        return _table([self._row] if self._row is not None else [{"job": self.id}])

    @property
    def _told(self) -> JobRow:
        return self.facts if self._row is None else self._row

    def _acted(self, report: JobAction) -> JobAction:
        self._forget()
        return report

    def _forget(self) -> None:
        """Look again where something is asked for next: it stands otherwise now."""
        self._row = self._facts = None


class JobTable(Sequence[Job]):
    """Jobs, newest first; in a notebook a table.

    `unnamed` counts those whose names are not read, and which a search for a name left out.
    """

    def __init__(self, jobs: Iterable[Job], *, unnamed: int = 0) -> None:
        """Hold jobs in their order."""
        self._jobs = tuple(jobs)
        self.unnamed = unnamed

    @overload
    def __getitem__(self, index: int) -> Job: ...

    @overload
    def __getitem__(self, index: slice) -> JobTable: ...

    def __getitem__(self, index: int | slice) -> Job | JobTable:
        return JobTable(self._jobs[index]) if isinstance(index, slice) else self._jobs[index]

    def __len__(self) -> int:
        return len(self._jobs)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._jobs)) or "<no jobs>"

    def _repr_html_(self) -> str:
        return _table([one._row or {"job": one.id} for one in self._jobs])


def _unit_log(row: LogRow) -> UnitLog:
    fault = row["fault"]["message"] if "fault" in row else None
    return UnitLog(row["unit"], row["node"], row["stdout"], row["stderr"], row["detail"], fault)


def _unit_outputs(row: ResultRow) -> UnitOutputs:
    fault = row["fault"]["message"] if "fault" in row else None
    path = None if row["path"] is None else Path(row["path"])
    renamed = {one["path"]: one["name"] for one in row.get("renamed", [])}
    return UnitOutputs(row["unit"], row["outcome"], row["exit_code"], path, row["outputs"], fault, renamed)


def _moment(seconds: int | None) -> datetime | None:
    """Return Unix seconds as a moment; None too for one that no calendar has."""
    return None if seconds is None or seconds >= YEAR_10000 else datetime.fromtimestamp(seconds, UTC)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    """Return a job's row as text of one line each, "" for what is not known: names are strangers' words."""
    shown = {
        "job": str(row["job"])[:14],
        "name": row.get("name") or "",
        "state": row.get("state_text", ""),
        "units": str(row.get("units", "")),
        "cost": row.get("cost_text") or "",
        **{name: _shown(row.get(f"{name}_at")) for name in ("posted", "started", "ended")},
    }
    return {name: one_line(text) for name, text in shown.items()}


def _shown(seconds: int | None) -> str:
    at = _moment(seconds)
    return "" if at is None else at.strftime("%Y-%m-%d %H:%M:%S UTC")


def _table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as an HTML table, every cell escaped."""
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(cells[name])}</td>' for name in _COLUMNS)}</tr>"
        for cells in map(_cells, rows)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
