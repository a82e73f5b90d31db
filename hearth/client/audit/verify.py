"""The proof that the books hold: every event replayed, and compared with storage, balances and results."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from hearth.base.errors import StorageError, WaitTimeout
from hearth.client.audit.verify_creation import creation_faults, delay_faults
from hearth.client.audit.verify_steward import governance_faults
from hearth.client.gateways import NodeGateways
from hearth.client.job.results import FETCH_SECONDS, SPEC_SECONDS, check_result, contradicts, output_limits
from hearth.client.reading import JobReader, market_events, misplaced
from hearth.client.views import job_hex, shown_key, strays_in
from hearth.protocol.units import format_duration

if TYPE_CHECKING:
    from hearth.chain.port import Block
    from hearth.client.reports import NetVerification
    from hearth.market.events import CheckpointPaid, Event, Finished, Submitted
    from hearth.market.reads import Posted, UnitStatus, UnitView
    from hearth.protocol.types import Header, NodeId, Unit

_T = TypeVar("_T")

MAX_FAULTS: Final = 20
"""Differences that a verification names."""


@dataclass
class Books:
    """Escrow's books as its events tell them."""

    locks: defaultdict[tuple[str, bytes], int] = field(default_factory=lambda: defaultdict(int))
    credits: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    def apply(self, event: Event) -> None:
        """Book one event."""
        from hearth.market.events import CreditLocked, Locked, Split, Withdrawn
        from hearth.protocol import words

        if isinstance(event, Locked | CreditLocked):
            self.locks[event.controller, event.key] += event.amount
            if isinstance(event, CreditLocked):
                self.credits[event.controller] -= event.amount
        elif isinstance(event, Split):
            for share in event.shares:
                account, amount = words.unpack_share(share)
                self.credits[account] += amount
                self.locks[event.controller, event.key] -= amount
        elif isinstance(event, Withdrawn):
            self.credits[event.account] -= event.amount

    @property
    def total(self) -> int:
        """Return what Escrow owes: every lock and every credit."""
        return sum(self.locks.values()) + sum(self.credits.values())


@dataclass
class _Told:
    """What one job's units came to: settled, failed, and by index those with a result, as they were read."""

    settled: int = 0
    failed: int = 0
    results: dict[int, UnitView] = field(default_factory=dict)


@dataclass
class _History:
    """What the events of a market tell: its jobs, each unit's last word and result, and the money."""

    books: Books = field(default_factory=Books)
    posted: dict[bytes, Posted] = field(default_factory=dict)
    words: dict[tuple[bytes, int], int] = field(default_factory=dict)
    submitted: dict[tuple[bytes, int], Submitted | Finished] = field(default_factory=dict)
    checkpoints: dict[tuple[bytes, int], list[CheckpointPaid]] = field(default_factory=dict)
    unsplit: CheckpointPaid | None = None
    """What was told to be paid for a checkpoint, until a split follows."""
    faults: list[str] = field(default_factory=list)
    reclaimed: int = 0

    def pay(self, event: CheckpointPaid) -> None:
        """Note what was told to be paid for a checkpoint: the registry's next split has to pay it."""
        self.close()
        self.unsplit = event
        self.checkpoints.setdefault((event.job_id, event.index), []).append(event)

    def close(self, amounts: tuple[int, ...] = ()) -> None:
        """Compare a split with what was told to be paid for a checkpoint just before it, if anything was."""
        event, self.unsplit = self.unsplit, None
        if event is not None and amounts != (event.pay - event.fee, event.fee, 0, 0):
            told = f"the checkpoint of attempt {event.attempt} of unit {event.index} of {job_hex(event.job_id)[:14]}"
            self.faults.append(f"{told} earned {event.pay} with a fee of {event.fee}, and the split of it is {amounts}")


class Verifier:
    """Verify a whole market."""

    def __init__(self, reads: JobReader) -> None:
        """Read nothing yet."""
        from hearth.market.reads import Market

        self.session = reads.session
        # A reader of its own: what an earlier command stepped over is no doubt about these books.
        self._market = Market(self.session.market.port, self.session.network)
        self._end = 0.0
        self._nodes = NodeGateways(self.session)
        self._here: frozenset[NodeId] = frozenset()

    def verify(self) -> NetVerification:
        """Return the report of `client.net.verify`."""
        from hearth.protocol.types import ZERO_ADDRESS

        limit = float(self.session.settings.timeout)
        self._end = time.monotonic() + limit
        market = self._market
        head = market.port.head()
        history = self._read(head)
        books = history.books
        faults = [*self._compare_books(books, head), *history.faults]
        faults += governance_faults(market, head, self._in_time)
        created, unproven = creation_faults(market, self._in_time)
        seats = market.seats(head.hash)
        faults += [*created, *delay_faults(market, seats)]
        nodes = market.nodes(head.hash)
        self._here = frozenset(node.id for node in nodes if node.owner != ZERO_ADDRESS)
        for node in nodes:
            locked = books.locks[self.session.network.nodes, int(node.id).to_bytes(32, "big")]
            if locked != node.stake:
                faults.append(f"node {node.id} has a stake of {node.stake}, and {locked} is locked for it")
        checked = unverified = 0
        unread: list[str] = []
        jobs: list[tuple[Posted, _Told]] = []
        holds: defaultdict[bytes, int] = defaultdict(int)
        self._nodes = NodeGateways(self.session, until=self._end)
        # The books first, whole or not at all; then as many results as there is time for.
        for one, header, stored in market.stored(list(history.posted.values()), head.hash, self._in_time):
            jobs.append((one, self._verify_job(one, header, stored, history, holds, faults)))
        faults += self._compare_holds(books, holds, head)
        self._nodes.know(view.unit.node for _, told in jobs for view in told.results.values())
        for one, told in jobs:
            read, left = self._verify_results(one, told.results, history.submitted, faults, unread)
            checked, unverified = checked + read, unverified + left
        first = market.port.block(jobs[0][0].log.block_hash) if jobs else None
        report: NetVerification = {
            "schema": "hearth.verify/1",
            "jobs": len(jobs),
            "units": sum(one.terms.leases for one, _ in jobs),
            "settled": sum(told.settled for _, told in jobs),
            "failed": sum(told.failed for _, told in jobs),
            "reclaimed": history.reclaimed,
            "results_checked": checked,
            "solvent": not faults,
            "seconds": head.timestamp - first.timestamp if first else 0,
            "council": seats.council,
            "guardian": None if seats.guardian == ZERO_ADDRESS else seats.guardian,
            "delay": seats.delay,
        }
        if unproven:
            report["unproven"] = unproven
        if strays := strays_in(market.strays):
            report["strays"] = strays["strays"]
        return _with_findings(report, faults, unread, unverified)

    # ---- inside ----

    def _read(self, head: Block) -> _History:
        """Replay all events up to a block; what has no place in the books is counted as a stray and left out."""
        from hearth.market.events import CheckpointPaid, Finished, JobPosted, Reclaimed, Split, Submitted, UnitEvent
        from hearth.protocol import words

        market, found = self._market, _History()
        contracts = [self.session.network.escrow, self.session.network.jobs]
        for event in market_events(market, contracts, self.session.network.deploy_block, head.number):
            self._in_time("its events")
            found.books.apply(event)
            if isinstance(event, JobPosted):
                if event.job_id in found.posted:
                    market.strays.note(event.log, f"job {job_hex(event.job_id)[:14]} is posted already")
                    continue
                found.posted[event.job_id] = market.posted_of(event)
            if isinstance(event, Split) and event.controller == self.session.network.jobs:
                found.close(tuple(words.unpack_share(share)[1] for share in event.shares))
            if not isinstance(event, UnitEvent):
                continue
            if why := misplaced(event, found.posted.get(event.job_id)):
                market.strays.note(event.log, why)
                continue
            if isinstance(event, CheckpointPaid):
                found.pay(event)
                continue
            found.words[event.job_id, event.index] = event.word  # type: ignore[attr-defined]
            found.reclaimed += isinstance(event, Reclaimed)
            if isinstance(event, Submitted | Finished):
                found.submitted[event.job_id, event.index] = event
        found.close()
        return found

    @property
    def _left(self) -> float:
        """Return the seconds that are left, a moment at least: no store is asked for longer."""
        return max(0.001, self._end - time.monotonic())

    def _pages(self, wanted: list[_T], what: str) -> Iterator[list[_T]]:
        """Yield what is read by pages, while there is time for it."""
        from hearth.market.reads import PAGE

        for start in range(0, len(wanted), PAGE):
            self._in_time(f"its {what}, {len(wanted)} in all")
            yield wanted[start : start + PAGE]

    def _in_time(self, what: str) -> None:
        """Give up once the time for all is over: of books that were read in part nothing can be said."""
        if time.monotonic() >= self._end:
            limit = self.session.settings.timeout
            raise WaitTimeout(
                f"the market's books are not verified: {limit} s were too short for {what}",
                hint=f"hearth net verify --timeout {format_duration(10 * limit)}",
                component="net",
            )

    def _compare_books(self, books: Books, head: Block) -> list[str]:
        """Compare every lock and credit that the events tell with storage, and their sum with what Escrow holds."""
        market, faults = self._market, []
        for controller in {controller: None for controller, _ in books.locks}:
            for keys in self._pages([key for owner, key in books.locks if owner == controller], "locks"):
                for key, stored in zip(keys, market.locks(controller, keys, head.hash), strict=True):
                    amount = books.locks[controller, key]
                    if stored != amount:
                        faults.append(f"lock {key.hex()[:16]} of {controller}: events say {amount}, storage {stored}")
        for accounts in self._pages(list(books.credits), "credits"):
            for account, stored in zip(accounts, market.credits(accounts, head.hash), strict=True):
                amount = books.credits[account]
                if stored != amount:
                    faults.append(f"credit of {account}: events say {amount}, storage {stored}")
        held = market.asset_balance(self.session.network.escrow, head.hash)
        if held < books.total:
            faults.append(f"Escrow holds {held} and owes {books.total}: short by {books.total - held}")
        tracked = market.tracked(head.hash)
        if self.session.network.asset.address is not None and tracked != books.total:
            faults.append(f"Escrow tracks {tracked} and owes {books.total}")
        return faults

    def _compare_holds(self, books: Books, holds: dict[bytes, int], head: Block) -> list[str]:
        """Compare what the job registry locks under each key with what the units of that submitter's jobs hold."""
        jobs, faults = self.session.network.jobs, []
        # Also those that no job is known of: nothing may lie there.
        wanted = dict.fromkeys([*holds, *(key for controller, key in books.locks if controller == jobs)])
        for keys in self._pages(list(wanted), "submitters"):
            for key, stored in zip(keys, self._market.locks(jobs, keys, head.hash), strict=True):
                held = holds.get(key, 0)
                if stored != held:
                    faults.append(f"lock of {shown_key(key)} is {stored}, the units of these jobs hold {held}")
        return faults

    def _verify_job(
        self,
        posted: Posted,
        header: Header | None,
        stored: list[UnitStatus],
        history: _History,
        holds: defaultdict[bytes, int],
        faults: list[str],
    ) -> _Told:
        """Compare a job's touched units in storage with its last events; add what all of them hold to `holds`.

        `header` is an array's, None for a one-lease job; `holds` is by key of Escrow, in base units.
        """
        from hearth.protocol import formulas, words
        from hearth.protocol.types import Outcome, State

        terms, job = posted.terms, posted.job_id
        told = _Told()
        for index, one in enumerate(stored):
            unit = one.view.unit
            if unit.state is State.SETTLED:
                told.settled += 1
                told.failed += unit.outcome is not Outcome.OK
            told.failed += unit.state is State.REFUNDED
            if unit.state.has_result:
                told.results[index] = one.view
            faults.extend(self._checkpoints(posted, index, one, history.checkpoints.get((job, index), [])))
            expected = history.words.get((job, index))
            if expected is not None and words.unpack_unit(expected) != unit:
                faults.append(
                    f"unit {index} of {job_hex(job)[:14]}: its events end in "
                    f"{words.unpack_unit(expected).state.name}, storage says {unit.state.name}"
                )
            if expected is None and unit.state is not State.OPEN and header is not None and not header.closed:
                faults.append(f"unit {index} of {job_hex(job)[:14]} is {unit.state.name} without an event")
        holds[formulas.lock_key(terms.submitter)] += formulas.job_holds(
            terms, header, (one.view.unit for one in stored)
        )
        return told

    def _checkpoints(self, posted: Posted, index: int, one: UnitStatus, paid: list[CheckpointPaid]) -> Iterator[str]:
        """Compare what was told to be paid for the checkpoints that a unit's result was made of with what had to be.

        Of a node that has left by now the chain does not say any more whether it was there.
        """
        from hearth.protocol import formulas
        from hearth.protocol.types import State

        terms, unit, due = posted.terms, one.view.unit, []
        if unit.state is State.SETTLED and unit.resume:
            due = formulas.checkpoint_pays(terms, unit, one.kept)
        told = [(event.attempt, event.node, event.pay, event.fee) for event in paid]
        owed = [pay for pay in due if pay.node in self._here or pay in told]
        if told != owed:
            yield (
                f"unit {index} of {job_hex(posted.job_id)[:14]}: events say that its checkpoints earned {told}, "
                f"storage {[tuple(pay) for pay in owed]}"
            )

    def _verify_results(
        self,
        posted: Posted,
        results: dict[int, UnitView],
        submitted: dict[tuple[bytes, int], Submitted | Finished],
        faults: list[str],
        unread: list[str],
    ) -> tuple[int, int]:
        """Read the results of a job's units; return how many could be read, and for how many no time was left.

        The others are named, and a log that names another result than storage keeps is a stray.
        """
        checked = 0
        for looked, (index, one) in enumerate(results.items()):
            if time.monotonic() >= self._end:
                return checked, len(results) - looked
            name = f"unit {index} of {job_hex(posted.job_id)[:14]}"
            event = submitted.get((posted.job_id, index))
            if event is None:
                faults.append(f"{name} has a result that no event names")
                continue
            if why := contradicts(event, one.kept):
                self._market.strays.note(event.log, why)
            try:
                self._verify_result(posted, index, one.kept or event.result, one.unit)
                checked += 1
            except StorageError as error:
                if time.monotonic() >= self._end:
                    # Cut short: that says nothing of whoever stores it.
                    return checked, len(results) - looked
                unread.append(f"{name}: {error.message}")
        return checked, 0

    def _verify_result(self, posted: Posted, index: int, digest: bytes, unit: Unit) -> None:
        """Read a unit's result by the digest on chain, and every block of its outputs. Raises StorageError.

        The `unit` is that of the block of the books: a ruling since then may have changed its outcome.
        """
        from hearth.storage import cid, unixfs
        from hearth.storage.stores import BLOCK_TIMEOUT_SECONDS, Timed

        store = self._nodes.behind(unit.node)
        document = store.get_json(digest, min(self._left, BLOCK_TIMEOUT_SECONDS))
        check_result(document, posted.terms.spec, index, unit.outcome)
        if document["outputs"] is None:
            return
        limits = output_limits(self.session, posted.terms, min(self._left, SPEC_SECONDS))
        timed = Timed(store, min(self._left, FETCH_SECONDS))
        for _ in unixfs.blocks_of(cid.parse(document["outputs"]["cid"]), timed, limits):
            pass


def _with_findings(report: NetVerification, faults: list[str], unread: list[str], unverified: int) -> NetVerification:
    """Return a report with what was found besides its counts, where anything was."""
    if faults:
        report["faults"] = faults[:MAX_FAULTS]
    if unread:
        report["unread"] = unread[:MAX_FAULTS]
    if unverified:
        report["unverified"] = unverified
    return report
