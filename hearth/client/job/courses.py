"""When jobs ran and what they cost, by their events; what receipts alone would tell is not needed for either."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from hearth.base.errors import ChainError
from hearth.client.job.receipt import shares_of
from hearth.client.reading import misplaced

if TYPE_CHECKING:
    from hearth.chain.port import Log
    from hearth.client.reading import JobReader
    from hearth.client.views import JobView
    from hearth.market.events import Event
    from hearth.market.reads import Posted

MOST_IDS: Final = 500
"""Job ids in one request for logs; a geth takes a thousand."""


@dataclass(frozen=True, slots=True)
class Course:
    """When a job was posted, first taken by a worker, and ended, chain seconds; None where there is no such moment yet,
    or it was not read.

    `spent` of its escrow went to workers, keepers and the treasury, base units; None where it was not read.
    """

    posted_at: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    spent: int | None = None


class Courses:
    """Read the courses of one submitter's jobs: their money shares one lock, and is told apart by its order alone."""

    def __init__(self, reads: JobReader) -> None:
        """Read nothing yet."""
        self._reads = reads
        self._session = reads.session

    def of_all(self, views: Sequence[JobView], *, all_of_it: bool) -> dict[bytes, Course]:
        """Return the courses of `views`, newest job first: jobs of one submitter, seen at one block.

        `all_of_it` says that it has no others; where it may have, the receipts of what was paid are read too.
        """
        return self._read(views, [view.posted for view in views], all_of_it=all_of_it)

    def of(self, view: JobView) -> Course:
        """Return one job's course; its submitter's other jobs are told apart from it."""
        market = self._session.market
        start, submitter = market.network.deploy_block, view.terms.submitter
        mine = market.posted(from_block=start, to_block=view.number, submitter=submitter)
        return self._read([view], mine, all_of_it=True)[view.posted.job_id]

    def _read(self, views: Sequence[JobView], posted: Sequence[Posted], *, all_of_it: bool) -> dict[bytes, Course]:
        """Return the courses of some of one submitter's jobs; `posted` are those that are told apart, or `all_of_it`.

        They share one lock, and a split is of the job whose event came before it.
        """
        from hearth.protocol import formulas

        if not views:
            return {}
        first = min(view.posted.log.block_number for view in views)
        logs = self._logs(posted, formulas.lock_key(views[0].terms.submitter), first, views[0].number)
        found: dict[bytes, list[Event]] = {view.posted.job_id: [] for view in views}
        refunded = dict.fromkeys(found, 0)
        for events in _by_transaction(self._events(logs, posted)):
            paid = events if all_of_it else self._whole(events)
            for job in {getattr(event, "job_id", b"") for event in events} & set(found):
                refunded[job] += shares_of(paid, job, self._session.network.jobs)[0]
                found[job] += [event for event in events if getattr(event, "job_id", b"") == job]
        courses: dict[bytes, Course] = {
            view.posted.job_id: self._course(view, found[view.posted.job_id], refunded[view.posted.job_id])
            for view in views
        }
        self._session.moments.save()
        return courses

    def known(self, view: JobView) -> Course:
        """Return what is known of a job without asking anybody: when it was posted, perhaps."""
        return Course(posted_at=self._session.moments.at(view.posted.log.block_hash, None))

    def _course(self, view: JobView, events: Sequence[Event], refunded: int) -> Course:
        from hearth.market.events import Started, UnitEvent
        from hearth.protocol import formulas

        escrow = formulas.escrow_at_post(view.terms) + view.topped_up
        spent = escrow - formulas.job_holds(view.terms, view.header, view.units) - refunded
        started = next((event for event in events if isinstance(event, Started)), None)
        moves = [event for event in events if isinstance(event, UnitEvent)]
        return Course(
            self._second(view.posted.log),
            None if started is None else self._second(started.log),
            self._second(moves[-1].log) if view.finished and moves else None,
            # A refund that was never locked is a log of nobody's writing: what is spent, then, is not known.
            spent if spent >= 0 else None,
        )

    def _second(self, log: Log) -> int | None:
        return self._session.moments.at(log.block_hash, self._session.market.port)

    def _logs(self, jobs: Sequence[Posted], key: bytes, first: int, last: int) -> list[Log]:
        """Return what the registry tells of some jobs and what Escrow paid out of their submitter's lock.

        Blocks are in their order and so are the logs of each transaction, which stand side by side: there are chains
        whose log indexes count in each. The transactions of a block are in no order, and have one second.
        """
        from hearth.market.events import Split, topic_of

        market = self._session.market
        port, network = market.port, market.network
        ids = [one.job_id for one in jobs]
        logs: list[Log] = []
        for start in range(0, len(ids), MOST_IDS):
            some = ids[start : start + MOST_IDS]
            logs += port.logs([network.jobs], (None, some), from_block=first, to_block=last)
        registry = bytes(12) + bytes.fromhex(network.jobs[2:])
        topics = (topic_of(Split), registry, key)
        logs += port.logs([network.escrow], topics, from_block=first, to_block=last)
        return sorted(logs, key=lambda log: (log.block_number, log.tx_hash, log.log_index))

    def _whole(self, events: list[Event]) -> list[Event]:
        """Return all events of a transaction of which some are known, where anything was paid in it.

        Raises ChainError where nobody has its receipt.
        """
        from hearth.market.events import Split

        if not any(isinstance(event, Split) for event in events):
            return events
        market, tx_hash = self._session.market, events[0].log.tx_hash
        receipt = market.port.receipt(tx_hash)
        if receipt is None:
            raise ChainError(f"the RPC has a log of 0x{tx_hash.hex()} and no receipt", hint="hearth doctor")
        return list(market.events_in(receipt.logs))

    def _events(self, logs: Iterable[Log], jobs: Sequence[Posted]) -> Iterator[Event]:
        market = self._session.market
        posted: dict[bytes, Posted] = {one.job_id: one for one in jobs}
        for event in market.events_in(logs):
            if why := misplaced(event, posted.get(getattr(event, "job_id", b""))):
                market.strays.note(event.log, why)
            else:
                yield event


def _by_transaction(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Yield the events of each transaction, which stand side by side."""
    for _, some in groupby(events, key=lambda event: (event.log.block_hash, event.log.tx_hash)):
        yield list(some)
