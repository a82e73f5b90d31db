"""Follow a job from its posting to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from hearth.base.errors import ChainError, NotFoundError, NoWorkerError, WaitTimeout
from hearth.client.job.facts import job_facts
from hearth.client.job.gates import Fleet, open_in_words
from hearth.client.judges import judge_of
from hearth.client.views import JobView, event_facts, job_hex, moment
from hearth.protocol.types import State, TermsFlag

if TYPE_CHECKING:
    from hearth.client.reading import JobReader
    from hearth.client.reports import EventFacts, JobFacts
    from hearth.client.session import Tell
    from hearth.protocol.types import JobId

POLL_SECONDS: Final = 0.5
LOOK_SECONDS: Final = 5
"""How often a waiting job's chances are looked at, chain seconds."""
PATIENCE_SECONDS: Final = 30
"""How long nobody may be able to take a waiting job before waiting for it ends: a restart of a worker is shorter."""
GONE_SECONDS: Final = 30.0
"""How long a chain that went back may be without the job before waiting ends: a pool posts it again within blocks."""


def follow(
    reads: JobReader, job: str, *, timeout: float | None = None, look: Callable[[JobView], None] | None = None
) -> Iterator[EventFacts]:
    """Yield a job's events as they come, from its posting to its end; `look` sees the job after each block.

    A chain that does not answer is asked again. Raises WaitTimeout after `timeout` seconds (by default the settings');
    the job is alive then. Raises ChainError REORG where the chain has gone back before the job's posting, and stays so.
    """
    session = reads.session
    job_id = session.job_id(job)
    market = session.market
    posted = market.terms_of(job_id)
    limit = float(session.settings.timeout) if timeout is None else timeout
    end = time.monotonic() + limit
    first = posted.log.block_number
    silent = ""
    gone_since: float | None = None
    while True:
        try:
            head = market.port.head()
            if head.number >= first:
                events = reads.events(posted, first, head.number)
                view = reads.view(posted, head)
                yield from (event_facts(event, session.asset) for event in events)
                first = head.number + 1
                if view.delivered:
                    _tell_unpaid(view, session.tell)
                    return
                if look is not None:
                    look(view)
            silent, gone_since = "", None
        except NotFoundError:
            gone_since = _gone(job_id, gone_since, session.tell)
        except ChainError as error:
            if not error.retryable:
                raise
            if not silent:
                text = f"the chain does not answer ({error.message}); the job is alive, its money in Escrow"
                session.tell("note", {"text": text})
            silent = f" ({error.message})"
        if time.monotonic() >= end:
            raise WaitTimeout(
                f"job {job_hex(job_id)} has not ended after {limit:.0f} s{silent}; it is alive, its money in Escrow",
                hint=f"hearth job wait {job_hex(job_id)[:14]}; hearth job show {job_hex(job_id)[:14]}",
                job=job_hex(job_id),
            )
        time.sleep(POLL_SECONDS)


def _tell_unpaid(view: JobView, tell: Tell) -> None:
    """Say where a job's results are here and its submitter may pay for them at once."""
    if view.unpaid_until:
        job = job_hex(view.posted.job_id)[:14]
        at = moment(view.unpaid_until)
        text = f"its worker is on probation, and is paid from {at} on; hearth job accept {job} pays at once"
        tell("note", {"text": text})


def _gone(job_id: JobId, since: float | None, tell: Tell) -> float:
    """Return since when a job that had been posted is not on the chain. Raises ChainError REORG after GONE_SECONDS."""
    now = time.monotonic()
    if since is None:
        tell("note", {"text": f"the chain has gone back before job {job_hex(job_id)[:14]} was posted; waiting for it"})
        return now
    if now - since >= GONE_SECONDS:
        raise ChainError(
            f"the chain has gone back before job {job_hex(job_id)} was posted, and has not got it again: nothing is "
            "locked for it",
            code="REORG",
            hint="the same command again posts the same job, once",
            job=job_hex(job_id),
        )
    return since


def wait(reads: JobReader, job: str, *, timeout: float | None = None, anyway: bool = False) -> JobFacts:
    """Wait for a job's end, telling its timeline, and return its facts.

    Raises WaitTimeout. Raises NoWorkerError NO_WORKER_LEFT, unless `anyway`, where nothing of the job runs and
        no worker could take the rest for PATIENCE_SECONDS, for example since the only one that fits gave it back. In
        both cases the job is alive.
    """
    chances, judged = _Chances(reads), _Judged(reads)

    def look(view: JobView) -> None:
        judged.look(view)
        if not anyway:
            chances.look(view)

    for facts in follow(reads, job, timeout=timeout, look=look):
        reads.session.tell("event", facts)
    return job_facts(reads, reads.look(job))


class _Judged:
    """Say once of a waiting job that a result of it waits for its judge, and what is to be done."""

    def __init__(self, reads: JobReader) -> None:
        self._session = reads.session
        self._told = False

    def look(self, view: JobView) -> None:
        judge = judge_of(view.terms, self._session.network)
        if self._told or judge is None or not view.terms.flags & TermsFlag.PROVEN:
            return
        if any(unit.state is State.SUBMITTED for unit in view.units):
            self._told = True
            job = job_hex(view.posted.job_id)[:14]
            self._session.tell("note", {"text": judge.notice(job, view.terms)})


class _Chances:
    """Watch whether anybody is left to take a waiting job."""

    def __init__(self, reads: JobReader) -> None:
        self._session = reads.session
        self._looked = 0
        self._alone_since: int | None = None

    def look(self, view: JobView) -> None:
        if view.now < self._looked + LOOK_SECONDS:
            return
        self._looked = view.now
        words = self._nobody(view)
        if words is None:
            self._alone_since = None
            return
        if self._alone_since is None:
            self._alone_since = view.now
        if view.now < self._alone_since + PATIENCE_SECONDS:
            return
        job = job_hex(view.posted.job_id)
        raise NoWorkerError(
            f"job {job[:14]} waits, and no worker is left that could take it: {words}; it is alive until "
            f"{moment(view.terms.deadline)}, its money in Escrow",
            hint=f"hearth job cancel {job[:14]} refunds it; hearth job wait {job[:14]} --anyway waits on",
            code="NO_WORKER_LEFT",
            job=job,
        )

    def _nobody(self, view: JobView) -> str | None:
        """Return who there is where nobody can take any of the open units and nothing else of the job moves.

        A job that waits for others is no worker's to take yet: who there is by then, nobody knows.
        """
        if view.blocked:
            return None
        waiting = [unit for unit in view.units if not unit.state.terminal]
        if any(unit.state is not State.OPEN or unit.window_end for unit in waiting):
            return None
        count, words = open_in_words(Fleet.read(self._session), view, self._session.asset)
        return None if count else words
