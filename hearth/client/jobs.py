"""Read jobs, wait for them, and act on them: show, wait, cancel, accept, top up, unlock, attest, confirm, receipt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

from hearth.base.errors import RefusedError, UsageError
from hearth.client import cancelling
from hearth.client.attesting import Attesting
from hearth.client.cancelling import indices
from hearth.client.facts import job_facts, job_row
from hearth.client.following import follow, wait
from hearth.client.posting.post import Posting
from hearth.client.reading import JobReader
from hearth.client.receipt import receipt
from hearth.client.results import Results
from hearth.client.topping_up import top_up
from hearth.client.views import JobView, event_facts, job_hex, strays_in

if TYPE_CHECKING:
    from hearth.client.reports import (
        EventFacts,
        JobAction,
        JobEvents,
        JobFacts,
        JobList,
        JobReceipt,
        TopUp,
        Transaction,
        Unlocking,
    )
    from hearth.client.session import Session

STATES: Final = (
    *("blocked", "open", "running", "closing", "submitted"),
    *("settled", "refunded", "cancelled", "expired", "ended"),
)
CANCEL_GAS: Final = 150_000
UNLOCK_GAS: Final = 250_000
"""With fifteen parents, each of which is read."""


class Jobs:
    """Jobs as their submitter and any observer see them: `client.jobs`."""

    def __init__(self, session: Session) -> None:
        """Read nothing yet."""
        self.session = session
        self.reads = reads = JobReader(session)
        results = Results(reads)
        posting = Posting(reads, results)
        self.check = posting.check
        self.submit = posting.submit
        self.run = posting.run
        self.rerun = posting.rerun
        self.attach = posting.attach
        attesting = Attesting(reads)
        self.attest = attesting.attest
        self.confirm = attesting.confirm
        self.spec = results.spec
        self.get = results.get
        self.logs = results.logs

    # ---- reading ----

    def list(self, *, state: str | None = None, everyone: bool = False, last: int | None = None) -> JobList:
        """Return the jobs of this account, or of everyone, newest first, optionally in one state.

        `last` looks at so many of everyone's newest jobs alone, and reads the blocks of their posts, not all logs.
        Raises UsageError for a state that there is not, ChainError.
        """
        if state is not None and state not in STATES:
            raise UsageError(f'"{state}" is no state', hint=f"states: {', '.join(STATES)}; hearth jobs --help")
        market = self.session.market
        submitter = None if everyone else self.session.key().address
        head = market.port.head()
        if last is None:
            first = self.session.network.deploy_block
            posted = market.posted(from_block=first, to_block=head.number, submitter=submitter)
        else:
            found = market.newest(last, head)
            mine = submitter and submitter.lower()
            posted = [one for one in reversed(found) if mine is None or one.terms.submitter == mine]
            if len(posted) < len(found):
                text = f"{len(posted)} of the market's newest {len(found)} jobs are this account's; --all shows all"
                self.session.tell("note", {"text": text})
        rows = [job_row(view) for view in reversed(self.reads.views(posted, head))]
        if state is not None:
            rows = [row for row in rows if row["state"] == state]
        return {
            "schema": "hearth.jobs/1",
            "network": self.session.network.name,
            "block": head.number,
            "jobs": rows,
            **strays_in(market.strays),
        }

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

    # ---- acting ----

    def cancel(self, job: str, *, unit: int | None = None) -> JobAction:
        """Cancel a job, or one unit of it: what is open is refunded, what runs is given notice.

        A unit that a proposal holds is waited for: it can be cancelled once it runs or the proposal has lapsed. Raises
        RefusedError NOTHING_TO_CANCEL where everything has ended or awaits its settlement, WaitTimeout where something
        could not be cancelled in the settings' time; what was cancelled stays so.
        """
        view = self.reads.look(job)
        self._require_own(view)
        name = job_hex(view.posted.job_id)[:14]
        if not cancelling.wanted(view, unit):
            raise RefusedError(
                f"nothing in job {name} can be cancelled: it is {view.state}",
                hint=f"hearth job show {name}",
                code="NOTHING_TO_CANCEL",
            )
        self.session.require_funds(view.terms.submitter, asset_units=0, gas=CANCEL_GAS, what="cancelling")
        sent = cancelling.cancel(self.reads, view, unit)
        if unit is None and not self.session.dry_run:
            self.session.records.mark_seen(job_hex(view.posted.job_id))
        return _acted("cancel", view, sent, dry_run=self.session.dry_run)

    def accept(self, job: str, *, unit: int | None = None) -> JobAction:
        """Accept submitted results, which settles them at once. Raises RefusedError NOTHING_TO_ACCEPT."""
        from hearth.protocol.types import State

        view = self.reads.look(job)
        self._require_own(view)
        wanted = indices(view, unit, (State.SUBMITTED,))
        if not wanted:
            raise RefusedError(
                f"job {job_hex(view.posted.job_id)[:14]} has no submitted result to accept: it is {view.state}",
                hint=f"hearth job show {job_hex(view.posted.job_id)[:14]}",
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
        once more. Raises what `hearth.client.topping_up.top_up` does.
        """
        view = self.reads.look(job)
        self._require_own(view)
        return top_up(self.reads, view, time, unit, again=again)

    def unlock(self, job: str) -> Unlocking:
        """Start a job whose parents have ended as asked, or end one of whose parents ended otherwise: it is refunded.

        Anyone may, and gets the keeper fee that the job sets aside for it; a keeper does it unasked. Raises
        RefusedError NOT_BLOCKED, NO_TIME where the job can only expire, and PARENT_RUNS with what it waits for.
        """
        from hearth.client.parents import look_at, missing, progress_of
        from hearth.protocol import formulas
        from hearth.protocol.parents import Progress, unpack_parents

        session, market = self.session, self.session.market
        posted = market.terms_of(session.job_id(job))
        head = market.port.head()
        view = self.reads.view(posted, head)
        name = job_hex(posted.job_id)[:14]
        if not view.blocked:
            raise RefusedError(
                f"job {name} waits for no other job: it is {view.state}",
                hint=f"hearth job show {name}",
                code="NOT_BLOCKED",
            )
        if not formulas.has_time(view.terms, view.policy, view.now):
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

    def _require_own(self, view: JobView) -> None:
        address = self.session.key().address
        if address != view.terms.submitter:
            raise RefusedError(
                f"job {job_hex(view.posted.job_id)[:14]} was posted by {view.terms.submitter}, not by {address}",
                hint="use --account NAME; hearth wallet list",
                code="NOT_YOURS",
            )


def _acted(action: Literal["cancel", "accept"], view: JobView, sent: list[Transaction], *, dry_run: bool) -> JobAction:
    return {
        "schema": "hearth.action/1",
        "action": action,
        "job": job_hex(view.posted.job_id),
        "transactions": sent,
        "dry_run": dry_run,
    }
