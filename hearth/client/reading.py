"""Jobs as they stand at a block: what every part of the client reads before it shows or does something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hearth.client.views import JobView, job_hex

if TYPE_CHECKING:
    from hearth.chain.port import Block, Topics
    from hearth.client.session import Session
    from hearth.market.events import Event
    from hearth.market.reads import Market, Posted, UnitView
    from hearth.protocol.types import Header

LOG_SPAN = 5_000
"""Blocks of logs that are asked for at once."""


class JobReader:
    """Read jobs of a session's market."""

    def __init__(self, session: Session) -> None:
        """Read nothing yet."""
        self.session = session

    def look(self, job: str) -> JobView:
        """Return the job that an id, or the beginning of one, names, as it stands now."""
        market = self.session.market
        return self.view(market.terms_of(self.session.job_id(job)), market.port.head())

    def view(self, posted: Posted, head: Block) -> JobView:
        """Read a job at a block, every lapse applied."""
        from hearth.protocol.types import JobId

        market, terms = self.session.market, posted.terms
        header = None
        if terms.leases > 1:
            header = market.header(JobId(posted.job_id), head.hash)
            touched = header.touched if header else 0
            stored = market.units(posted.job_id, 0, touched, head.hash, header) if touched else []
        else:
            stored = [market.unit(posted.job_id, 0, head.hash)]
        return _view(posted, header, stored, head)

    def views(self, posted: list[Posted], head: Block) -> list[JobView]:
        """Read many jobs at a block in pages. One that the chain does not know is a stray log's."""
        return [
            _view(one, header, [status.view for status in stored], head)
            for one, header, stored in self.session.market.stored(posted, head.hash)
        ]

    def events(self, posted: Posted, first: int, last: int) -> list[Event]:
        """Return a job's events of the blocks `first` to `last`, oldest first, but for those that fit no unit of it."""
        market = self.session.market
        logs = market.port.logs([self.session.network.jobs], (None, posted.job_id), from_block=first, to_block=last)
        found = []
        for event in market.events_in(logs):
            if why := misplaced(event, posted):
                market.strays.note(event.log, why)
            else:
                found.append(event)
        return found

    def posted(self, head: Block) -> list[Posted]:
        """Return every job of the market up to a block, oldest first."""
        market = self.session.market
        return market.posted(from_block=market.network.deploy_block, to_block=head.number)


def _view(posted: Posted, header: Header | None, stored: list[UnitView], head: Block) -> JobView:
    """Return a job by its touched units as they are stored, every lapse applied."""
    from hearth.protocol import formulas

    now = head.timestamp
    units = tuple(formulas.with_lapse(posted.terms, one.unit, one.best, now) for one in stored)
    return JobView(posted, header, units, tuple(stored), head.number, now)


def market_events(market: Market, addresses: list[str], first: int, last: int, topics: Topics = ()) -> Iterator[Event]:
    """Yield all events of some contracts, or those of `topics`, in the blocks `first` to `last`, in spans that a
    provider answers."""
    for start in range(first, last + 1, LOG_SPAN):
        end = min(last, start + LOG_SPAN - 1)
        yield from market.events_in(market.port.logs(addresses, topics, from_block=start, to_block=end))


def misplaced(event: Event, posted: Posted | None) -> str:
    """Return why an event of a unit is none of the job's, "" for any other event; None is for a job not posted."""
    from hearth.market.events import UnitEvent
    from hearth.protocol.types import SENTINEL

    if not isinstance(event, UnitEvent):
        return ""
    if posted is None:
        return f"job {job_hex(event.job_id)[:14]} was not posted"
    leases = posted.terms.leases
    if event.index < leases or (event.index == SENTINEL and leases > 1):
        return ""
    return f"job {job_hex(event.job_id)[:14]} has no unit {event.index if event.index != SENTINEL else 'all'}"
