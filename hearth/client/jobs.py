"""Jobs: `submit`, `run`, `open` and `find` return objects; what takes an id returns what --json prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, Unpack

from hearth.base.errors import ConfigError, RefusedError, UsageError
from hearth.client.face import refusing
from hearth.client.job import cancelling
from hearth.client.job.cancelling import indices
from hearth.client.job.courses import Courses
from hearth.client.job.facts import job_facts, job_row
from hearth.client.job.following import follow, wait
from hearth.client.job.job import Job, JobTable
from hearth.client.job.receipt import receipt
from hearth.client.job.results import Results
from hearth.client.job.topping_up import top_up
from hearth.client.judges.attesting import Attesting
from hearth.client.posting.post import Posting
from hearth.client.reading import JobReader
from hearth.client.views import JobView, event_facts, job_hex, strays_in
from hearth.protocol.state_labels import JOB_LABELS, counted

if TYPE_CHECKING:
    from hearth.base.files import AnyPath
    from hearth.client.posting.quick import RunOptions
    from hearth.client.reports import (
        EventFacts,
        JobAction,
        JobEvents,
        JobFacts,
        JobList,
        JobPlan,
        JobReceipt,
        PreparedJob,
        RerunPlan,
        Submission,
        TopUp,
        Transaction,
        Unlocking,
    )
    from hearth.client.session import Session
    from hearth.jobfile import AnyJob

STATES: Final[Sequence[str]] = (
    *("blocked", "open", "running", "closing", "submitted"),
    *("settled", "refunded", "cancelled", "expired", "ended"),
)
CANCEL_GAS: Final = 150_000
UNLOCK_GAS: Final = 250_000
"""With as many parents as there may be, each of which is read."""


@refusing
class Jobs:
    """Jobs as their submitter and any observer see them: `client.jobs`."""

    def __init__(self, session: Session) -> None:
        """Read nothing yet."""
        self.session = session
        self.reads = reads = JobReader(session)
        results = Results(reads)
        posting = Posting(reads, results)
        self.posting = posting
        """What `hearth submit`, `run`, `job rerun` and `job wait` print."""
        self.check = posting.check
        attesting = Attesting(reads)
        self.attest = attesting.attest
        self.confirm = attesting.confirm
        self.spec = results.spec
        self.get = results.get
        self.logs = results.logs

    # ---- jobs as objects ----

    def submit(
        self,
        job: AnyJob,
        *,
        variables: Mapping[str, str] | None = None,
        after: Sequence[str] = (),
        again: bool = False,
        anyway: bool = False,
        wait: bool = False,
        results: AnyPath | None = None,
        use_credit: bool = False,
        allow_outside: bool = False,
        allow_private: bool = False,
    ) -> Job:
        """Post a job. Where the same one was posted and nobody saw its end yet, return that one.

        `job` is a file's path, plain values as a file holds them, or a checked spec; `variables` fill a file's text.
        `after` names jobs to wait for besides those that the job names: "JOB", or "JOB:failure", "JOB:always".
        `again` posts a new one in any case, `anyway` posts without a worker that could take it, `wait` waits for the
        end, `results` is a folder for the outputs, `use_credit` pays from the account's credit in Escrow first.
        `allow_outside` brings files from outside the job file's folder, `allow_private` what URLs in a private network
        answer.
        Raises the HearthError that says why it cannot be posted, before anything is written or signed; UsageError
        DRY_RUN where the client is a dry run and nothing speaks against it.
        """
        return self._posted(
            self.posting.submit(
                job,
                variables=variables,
                after=after,
                again=again,
                anyway=anyway,
                wait=wait,
                results=results,
                use_credit=use_credit,
                allow_outside=allow_outside,
                allow_private=allow_private,
            )
        )

    def run(
        self,
        program: str,
        command: Sequence[str] = (),
        *,
        after: Sequence[str] = (),
        again: bool = False,
        anyway: bool = False,
        wait: bool = False,
        results: AnyPath | None = None,
        use_credit: bool = False,
        allow_outside: bool = False,
        allow_private: bool = False,
        auto_price: bool = False,
        **options: Unpack[RunOptions],
    ) -> Job:
        """Post an image or a WASM module as a job of one unit, at the price of `max_total` or `max_rate`.

        `auto_price` takes the market's own without them, at most half above the cheapest fitting ask. The rest is as in
        `submit`. Raises SpecError NO_PRICE, which names that price, where nothing is said of one.
        """
        return self._posted(
            self.posting.run(
                program,
                tuple(command),
                after=after,
                again=again,
                anyway=anyway,
                wait=wait,
                results=results,
                use_credit=use_credit,
                allow_outside=allow_outside,
                allow_private=allow_private,
                auto_price=auto_price,
                **options,
            )
        )

    def rerun(self, job: str, *, anyway: bool = False, wait: bool = False, use_credit: bool = False) -> Job:
        """Post a job's terms again under a new salt, as a new job that waits for no other. Raises as `submit` does."""
        return self._posted(self.posting.rerun(job, anyway=anyway, wait=wait, use_credit=use_credit))

    def prepare(
        self,
        job: AnyJob,
        *,
        variables: Mapping[str, str] | None = None,
        after: Sequence[str] = (),
        again: bool = False,
        anyway: bool = False,
        use_credit: bool = False,
        allow_outside: bool = False,
        allow_private: bool = False,
    ) -> PreparedJob:
        """Store what a job needs and return the transactions that post it, for another machine to sign.

        Nothing is sent. The account may be an address without a key here. Raises as `submit` does.
        """
        report = self.posting.submit(
            job,
            variables=variables,
            after=after,
            again=again,
            anyway=anyway,
            use_credit=use_credit,
            allow_outside=allow_outside,
            allow_private=allow_private,
            print_tx=True,
        )
        if report["schema"] != "hearth.prepared/1":
            raise _dry()
        return report

    def open(self, job: str) -> Job:
        """Return the job that an id, or the beginning of one, names. A whole id is looked up when it is first used.

        Raises UsageError for what is no id, NotFoundError for no or several jobs that begin so.
        """
        return Job(self, job_hex(self.session.job_id(job)))

    def find(
        self, *, state: str | None = None, name: str | None = None, everyone: bool = False, last: int | None = None
    ) -> JobTable:
        """Return the jobs that `list` tells of, newest first, as objects."""
        report = self.list(state=state, name=name, everyone=everyone, last=last)
        return JobTable((Job(self, row["job"], row=row) for row in report["jobs"]), unnamed=report["unnamed"])

    # ---- reading ----

    def list(
        self, *, state: str | None = None, name: str | None = None, everyone: bool = False, last: int | None = None
    ) -> JobList:
        """Return the jobs of this account, or of everyone, newest first, optionally in one state.

        `state` is a word of `state_labels.JOB_LABELS`, "ended" for any that has ended, or the chain's name of one.
        `name` is a part of their names, in small letters or capitals: a job whose name is not read is left out, and
        counted. `last` looks at so many of everyone's newest jobs alone, and reads the blocks of their posts, not all
        logs.
        Raises UsageError for a state that there is not, ChainError.
        """
        if state is not None and state not in (*STATES, *JOB_LABELS):
            known = ", ".join((*JOB_LABELS, "ended"))
            raise UsageError(f'"{state}" is no state', hint=f"states: {known}; hearth jobs --help")
        if last is not None and last < 1:
            raise UsageError(f"last is at least 1, not {last}", hint="leave last out, for all jobs")
        session, market = self.session, self.session.market
        own = self._own_address(everyone)
        head = market.port.head()
        if last is None:
            first = session.network.deploy_block
            submitter = None if everyone else own
            posted = market.posted(from_block=first, to_block=head.number, submitter=submitter)
        else:
            found = market.newest(last, head)
            posted = [one for one in reversed(found) if everyone or one.terms.submitter == own]
            if len(posted) < len(found):
                text = f"{len(posted)} of the market's newest {len(found)} jobs are this account's; --all shows all"
                session.tell("note", {"text": text})
        views = list(reversed(self.reads.views(posted, head)))
        courses = Courses(self.reads)
        read = courses.of_all([view for view in views if view.terms.submitter == own], all_of_it=last is None)
        views = [view for view in views if state is None or _stands(view, state)]
        rows = [job_row(session, view, read.get(view.posted.job_id) or courses.known(view)) for view in views]
        unnamed = sum(row["name"] is None for row in rows)
        if name is not None:
            rows = [row for row in rows if row["name"] is not None and name.lower() in row["name"].lower()]
        return {
            "schema": "hearth.jobs/1",
            "network": session.network.name,
            "block": head.number,
            "unnamed": unnamed,
            "jobs": rows,
            **strays_in(market.strays),
        }

    def _own_address(self, everyone: bool) -> str | None:
        """Return this account's address; None where none is needed and there is none."""
        try:
            return self.session.key().address.lower()
        except ConfigError:
            if not everyone:
                raise
            return None

    def show(self, job: str) -> JobFacts:
        """Return everything that the chain knows of a job, with who may act next and until when."""
        view = self.reads.look(job)
        return job_facts(self.reads, view)

    def events(self, job: str) -> JobEvents:
        """Return a job's events, oldest first."""
        job_id = self.session.job_id(job)
        posted = self.session.market.terms_of(job_id)
        head = self.session.market.port.head()
        events = self.reads.events(posted, posted.log.block_number, head.number)
        return {
            "schema": "hearth.events/1",
            "job": job_hex(job_id),
            "events": [event_facts(event, self.session.asset) for event in events],
            **strays_in(self.session.market.strays),
        }

    def follow(self, job: str, *, timeout: float | None = None) -> Iterator[EventFacts]:
        """Yield a job's events as they come, from its posting to its end. Raises WaitTimeout; the job is alive then."""
        return follow(self.reads, job, timeout=timeout)

    def wait(self, job: str, *, timeout: float | None = None) -> JobFacts:
        """Wait for a job's end, telling its timeline, and return what `show` does. Raises WaitTimeout."""
        return wait(self.reads, job, timeout=timeout)

    def end(self, job: str, *, timeout: float | None = None, anyway: bool = False) -> JobFacts:
        """Wait for a job's end, as `wait` does, and note that it was seen: the same file posts a new job from then on.

        Raises WaitTimeout, and NoWorkerError where no worker is left that could take it, unless `anyway`.
        """
        facts = wait(self.reads, job, timeout=timeout, anyway=anyway)
        self.session.records.mark_seen(facts["job"])
        return facts

    # ---- acting ----

    def cancel(self, job: str, *, unit: int | None = None) -> JobAction:
        """Cancel a job, or one unit of it: what is open is refunded, what runs is given notice.

        A unit that a proposal holds is waited for: it can be cancelled once it runs or the proposal has lapsed. Raises
        RefusedError NOTHING_TO_CANCEL where everything has ended or awaits its settlement, WaitTimeout where something
        could not be cancelled in the settings' time; what was cancelled stays so.
        """
        view = self.reads.look(job)
        self._require_own(view)
        name, dry_run = job_hex(view.posted.job_id)[:14], self.session.dry_run
        sent: list[Transaction] = []
        if can_be := cancelling.wanted(view, unit):
            self.session.require_funds(view.terms.submitter, asset_units=0, gas=CANCEL_GAS, what="cancelling")
            sent, view = cancelling.cancel(self.reads, view, unit)
        if not can_be or not (sent or dry_run):
            why = "was cancelled, since it moved first" if can_be else "can be cancelled"
            raise RefusedError(
                f"nothing in job {name} {why}: its state is {view.labels[1]}",
                hint=f"hearth job show {name}",
                code="NOTHING_TO_CANCEL",
            )
        if unit is None and not dry_run:
            self.session.records.mark_seen(job_hex(view.posted.job_id))
        report = _acted("cancel", view, sent, dry_run=dry_run)
        return {**report, "counts": view.counts, "counts_text": counted(view.tally)}

    def accept(self, job: str, *, unit: int | None = None) -> JobAction:
        """Accept submitted results, which settles them at once. Raises RefusedError NOTHING_TO_ACCEPT."""
        from hearth.protocol.types import State

        view = self.reads.look(job)
        self._require_own(view)
        wanted = indices(view, unit, (State.SUBMITTED,))
        if not wanted:
            name = job_hex(view.posted.job_id)[:14]
            raise RefusedError(
                f"job {name} has no submitted result to accept: its state is {view.labels[1]}",
                hint=f"hearth job show {name}",
                code="NOTHING_TO_ACCEPT",
            )
        sent = []
        self.session.require_funds(view.terms.submitter, asset_units=0, gas=CANCEL_GAS, what="accepting")
        with self.session.sender() as sender:
            for index in wanted:
                key = f"accept/{view.posted.job_id.hex()}/{index}/{view.units[index].attempts}"
                sent.append(self.session.send(sender, self.session.market.calls.accept(view.posted.packed, index), key))
        return _acted("accept", view, sent, dry_run=self.session.dry_run)

    def top_up(self, job: str, time: str, *, unit: int | None = None, again: bool = False) -> TopUp:
        """Give a metered unit that runs `time` more, such as "30m", for what its price grows by.

        Without `unit`, the one that runs. The same time is given to the same unit once (`already_sent`), with `again`
        once more. Raises what `hearth.client.job.topping_up.top_up` does.
        """
        view = self.reads.look(job)
        self._require_own(view)
        return top_up(self.reads, view, time, unit, again=again)

    def unlock(self, job: str) -> Unlocking:
        """Start a job whose parents have ended as asked, or end one of whose parents ended otherwise: it is refunded.

        Anyone may, and gets the keeper fee that the job sets aside for it; a keeper does it unasked. Raises
        RefusedError NOT_BLOCKED, NO_TIME where the job can only expire, and PARENT_RUNS with what it waits for.
        """
        from hearth.client.job.parents import look_at, missing, progress_of
        from hearth.protocol import formulas
        from hearth.protocol.parents import Progress, unpack_parents

        session, market = self.session, self.session.market
        posted = market.terms_of(session.job_id(job))
        head = market.port.head()
        view = self.reads.view(posted, head)
        name = job_hex(posted.job_id)[:14]
        if not view.blocked:
            raise RefusedError(
                f"job {name} waits for no other job: its state is {view.labels[1]}",
                hint=f"hearth job show {name}",
                code="NOT_BLOCKED",
            )
        if not formulas.has_time(view.terms, view.now):
            raise RefusedError(
                f"no attempt of job {name} can end before its deadline: it can only expire, and is refunded then",
                hint=f"hearth job cancel {name}, by its submitter; hearth keeper run expires it",
                code="NO_TIME",
            )
        parents = look_at(self.reads, unpack_parents(posted.parents), head)
        found = progress_of(parents)
        if found is Progress.WAITS:
            waits = next(one for one in parents if one.as_asked is None)
            raise RefusedError(
                f"job {name} waits for jobs that have not ended: {missing(parents)}",
                hint=f"hearth job wait {waits.name}" if waits.posted else f"hearth job cancel {name}, by its submitter",
                code="PARENT_RUNS",
                retryable=waits.posted is not None,
            )
        session.require_funds(session.key().address, asset_units=0, gas=UNLOCK_GAS, what="unlocking")
        with session.sender() as sender:
            call = market.calls.unlock(posted.packed, posted.parents)
            sent = session.send(sender, call, f"unlock/{posted.job_id.hex()}")
        return {
            "schema": "hearth.action/1",
            "action": "unlock",
            "job": job_hex(posted.job_id),
            "opens": found is Progress.OPENS,
            "fee": str(formulas.unlock_fee(view.terms)),
            "fee_text": session.amount(formulas.unlock_fee(view.terms)),
            "transactions": [sent],
            "dry_run": session.dry_run,
        }

    def receipt(self, job: str) -> JobReceipt:
        """Return where a job's money went: paid, fees, tips, keepers, refunds, and every transaction with its gas."""
        return receipt(self.reads, job)

    # ---- inside ----

    def _posted(self, report: Submission | JobPlan | PreparedJob | RerunPlan) -> Job:
        if report["schema"] != "hearth.submitted/1":
            raise _dry()
        return Job(self, report["job"], submission=report)

    def _require_own(self, view: JobView) -> None:
        address = self.session.key().address
        if address != view.terms.submitter:
            raise RefusedError(
                f"job {job_hex(view.posted.job_id)[:14]} was posted by {view.terms.submitter}, not by {address}",
                hint="use --account NAME; hearth wallet list",
                code="NOT_YOURS",
            )


def _dry() -> UsageError:
    return UsageError(
        "this client is a dry run: all was checked, and no job was posted",
        hint="hearth submit FILE --dry-run",
        code="DRY_RUN",
    )


def _stands(view: JobView, state: str) -> bool:
    """Say whether a job is in a state that somebody asks for: by its word, by the chain's name, or "ended" at all."""
    return state in (view.labels[0], view.state) or (state == "ended" and view.finished)


def _acted(action: Literal["cancel", "accept"], view: JobView, sent: list[Transaction], *, dry_run: bool) -> JobAction:
    return {
        "schema": "hearth.action/1",
        "action": action,
        "job": job_hex(view.posted.job_id),
        "transactions": sent,
        "dry_run": dry_run,
    }
