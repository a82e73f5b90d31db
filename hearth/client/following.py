"""Follow a job from its posting to its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from hearth.base.errors import WaitTimeout
from hearth.client.facts import job_facts
from hearth.client.views import event_facts, job_hex

if TYPE_CHECKING:
    from hearth.client.reading import JobReader
    from hearth.client.reports import EventFacts, JobFacts

POLL_SECONDS: Final = 0.5


def follow(reads: JobReader, job: str, *, timeout: float | None = None) -> Iterator[EventFacts]:
    """Yield a job's events as they come, from its posting to its end.

    Raises WaitTimeout after `timeout` seconds (by default the settings'); the job is alive then.
    """
    session = reads.session
    job_id = session.job_id(job)
    market = session.market
    posted = market.terms_of(job_id)
    limit = float(session.settings.timeout) if timeout is None else timeout
    end = time.monotonic() + limit
    first = posted.log.block_number
    while True:
        head = market.port.head()
        if head.number >= first:
            for event in reads.events(job_id, first, head.number):
                yield event_facts(event, session.asset)
            first = head.number + 1
            if reads.view(posted, head).finished:
                return
        if time.monotonic() >= end:
            raise WaitTimeout(
                f"job {job_hex(job_id)} has not ended after {limit:.0f} s; it is alive",
                hint=f"hearth job show {job_hex(job_id)[:14]}",
                job=job_hex(job_id),
            )
        time.sleep(POLL_SECONDS)


def wait(reads: JobReader, job: str, *, timeout: float | None = None) -> JobFacts:
    """Wait for a job's end, telling its timeline, and return what `job_show` does. Raises WaitTimeout."""
    for facts in follow(reads, job, timeout=timeout):
        reads.session.tell("event", facts)
    return job_facts(reads.session, reads.look(job))
