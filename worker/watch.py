"""Follow one market for one node: which jobs are open, which leases are this node's, and what it earned.

Logs only say where to look: every fact that a decision uses is read again at one block, named by its hash. Nothing is
kept on disk: at start the logs are read from the market's first block on, so a deleted state folder loses nothing.
Source: SPEC sections "Worker" and "Events".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from hearth.base.errors import ChainError, ConfigError
from hearth.chain.follow import Cursor
from hearth.chain.port import Block, BlockRef, Log
from hearth.market.events import (
    Closed,
    Closing,
    Declined,
    JobPosted,
    NodeLapsed,
    NodeUnitEvent,
    Proposed,
    Reclaimed,
    Settled,
    Slashed,
    Started,
    Submitted,
    UnitEvent,
    decode,
    topic_of,
)
from hearth.market.reads import Market, UnitView
from hearth.protocol import words
from hearth.protocol.formulas import Ask, Immutables, ask_of, node_gate
from hearth.protocol.types import (
    Gate,
    Header,
    JobId,
    Node,
    NodeFlag,
    NodeId,
    Outcome,
    Policy,
    State,
    Terms,
    Unit,
)
from worker.decide import OURS, Job, Lease, SpecFacts

log = structlog.get_logger("worker.watch")

KEEP: Final = 64
"""Blocks for which an ended job is kept, in case a reorganisation brings it back."""
NEW_OPERATOR: Final = "if you named a new operator, set account.keystore in worker.toml to its key"
"""What whoever holds a key that operates the node no more can do."""
HEARD: Final = (JobPosted, Proposed, Started, Submitted, Declined, Settled, Closing, Closed, Reclaimed, Slashed)
"""The events whose absence from a block that announces them would hide work or money."""
MAX_READ: Final = 256
"""Touched leases of one array that are read per block; own ones are read in any case."""
PAID: Final = 64
"""Own attempts of a job whose pay is remembered."""


@dataclass(slots=True)
class Row:
    """A job that may concern this node. `leases` are indices worth reading, `own` those of them that its last event
    gives to this node, `seen` those that ever were, `since` first sights of own attempts, `unread` tries to read its
    spec that came to nothing, `given_back` units that this machine could not run, `paid` the block of an own attempt's
    end and what it brought, the last PAID of them."""

    id: JobId
    terms: Terms
    policy: Policy
    posted: int
    leases: set[int] = field(default_factory=set)
    own: set[int] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)
    paid: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    since: dict[tuple[int, int], int] = field(default_factory=dict)
    spec: SpecFacts | None = None
    unread: int = 0
    given_back: int = 0
    retry_at: int = 0
    retry_why: str = ""
    ended: int | None = None
    gate: Gate = Gate.FITS


@dataclass(frozen=True, slots=True)
class Payment:
    """One line of the node's books: `kind` is paid, failed_theirs, declined, closed, reclaimed, slashed or lapsed."""

    block: int
    kind: str
    job: JobId | None
    amount: int
    fee: int = 0


@dataclass(frozen=True, slots=True)
class Earnings:
    """The node's books: counts of leases by how they ended, and amounts in base units (owner's pay after the fee)."""

    paid: int = 0
    failed_theirs: int = 0
    declined: int = 0
    closed: int = 0
    timed_out: int = 0
    income: int = 0
    fees: int = 0
    slashed: int = 0
    liveness_fees: int = 0


def earnings_of(payments: Iterable[Payment]) -> Earnings:
    """Add up the books."""
    counts = dict.fromkeys(("paid", "failed_theirs", "declined", "closed", "reclaimed"), 0)
    income = fees = slashed = lapsed = 0
    for line in payments:
        if line.kind in counts:
            counts[line.kind] += 1
            income += line.amount
            fees += line.fee
        elif line.kind == "slashed":
            slashed += line.amount
        else:
            lapsed += line.amount
    return Earnings(
        paid=counts["paid"],
        failed_theirs=counts["failed_theirs"],
        declined=counts["declined"],
        closed=counts["closed"],
        timed_out=counts["reclaimed"],
        income=income,
        fees=fees,
        slashed=slashed,
        liveness_fees=lapsed,
    )


class Watcher:
    """Keep the rows of open jobs and of own leases, as of the last block read."""

    def __init__(self, market: Market, node: NodeId) -> None:
        self.rows: dict[JobId, Row] = {}
        self.reorgs = 0
        self.logs = 0
        self._market = market
        self._node = node
        self._payments: dict[tuple[bytes, bytes, int], Payment] = {}
        parameters = market.network.node_parameters
        self.immutables = Immutables(parameters.dead_after, parameters.minimum_stake)
        self._cursor = self._begin()

    @property
    def earnings(self) -> Earnings:
        """Return the node's books as of the last block read."""
        return earnings_of(self._payments.values())

    # ---- logs ----

    def _begin(self) -> Cursor:
        """Know nothing, and read the market from its first block on. Raises ChainError, with nothing forgotten yet."""
        network = self._market.network
        contracts = [network.jobs, network.nodes]
        cursor = Cursor(self._market.port, contracts, network.deploy_block, topics=map(topic_of, HEARD))
        self.rows.clear()
        self._payments.clear()
        self._followed = False
        return cursor

    def sync(self) -> Block:
        """Read the logs of new blocks; return the head, which later reads are pinned to. Raises ChainError.

        A provider that holds logs back does not hold the worker up: it reads on at the next call. Only while the market
        is read for the first time, or anew after a deep reorganisation, nothing may be missing: own leases would.
        """
        while True:
            passed = self._cursor.position
            tick = self._cursor.read()
            if tick.orphaned:
                self.reorgs += 1
                fork = min(mark.number for mark in tick.orphaned)
                log.warning("the chain has gone back", passed=passed, to=fork - 1)
                if tick.reset or passed - fork >= KEEP:
                    fresh = self._begin()
                    self._cursor.close()
                    self._cursor = fresh
                    continue
                self._step_back(fork, {mark.hash for mark in tick.orphaned})
            for entry in tick.logs:
                self._apply(entry)
            self.logs += len(tick.logs)
            self._cursor.advance(tick)
            if tick.behind == 0:
                self._followed = True
                return tick.head
            if not tick.marks:
                if not self._followed:
                    raise ChainError(
                        f"the RPC does not show all of the market's logs: {tick.behind} blocks are missing",
                        code="RPC_LAGS",
                        hint="hearth worker doctor",
                    )
                return tick.head

    def _step_back(self, fork: int, gone: set[bytes]) -> None:
        """Take back what was learnt from the block `fork` on, and read again what ended there."""
        self._payments = {key: line for key, line in self._payments.items() if key[0] not in gone}
        for row in self.rows.values():
            row.since = {attempt: block for attempt, block in row.since.items() if block < fork}
            row.paid = {attempt: line for attempt, line in row.paid.items() if line[0] < fork}
            row.leases |= row.seen
            if row.ended is not None and row.ended >= fork:
                row.ended = None

    def _apply(self, entry: Log) -> None:
        event = decode(entry)
        if event is None:
            return
        if isinstance(event, UnitEvent):
            row = self.rows.get(event.job_id)
            if isinstance(event, NodeUnitEvent):
                self._account(event)
                if row is None:
                    return
                unit = words.unpack_unit(event.word)
                if event.node == self._node:
                    self._learn(row, event, unit.attempts)
                own = self._is_own(unit)
                if unit.state == State.OPEN or own:
                    row.leases.add(event.index)
                    row.seen.add(event.index)
                    row.ended = None
                if own:
                    row.own.add(event.index)
            return
        if isinstance(event, Slashed | NodeLapsed):
            if event.node == self._node:
                lapsed = isinstance(event, NodeLapsed)
                amount = event.fee if isinstance(event, NodeLapsed) else event.reward + event.burnt
                self._book(entry, Payment(entry.block_number, "lapsed" if lapsed else "slashed", None, amount))
            return
        try:
            posted = self._market.posted_in(entry)
        except ChainError as error:
            # A provider that serves false terms gets no attention, and a true log of the job is read all the same.
            log.warning("log ignored", why=error.message)
            return
        if posted is not None and posted.job_id in self.rows:
            # Posted once more, since the block of its first post is gone.
            self.rows[posted.job_id].ended = None
        elif posted is not None:
            policy = words.unpack_policy(posted.terms.policy)
            self.rows[posted.job_id] = Row(posted.job_id, posted.terms, policy, entry.block_number)

    def _learn(self, row: Row, event: NodeUnitEvent, attempt: int) -> None:
        """Note what an own attempt brought: what was given back, or cancelled before it ran, brought nothing."""
        if isinstance(event, Settled | Closed):
            row.paid[event.index, attempt] = (event.log.block_number, event.pay - event.fee)
        elif isinstance(event, Declined):
            row.paid[event.index, attempt] = (event.log.block_number, 0)
        for oldest in list(row.paid)[:-PAID]:
            del row.paid[oldest]

    def _account(self, event: NodeUnitEvent) -> None:
        """Enter into the books what an event says about a lease of this node."""
        if event.node != self._node:
            return
        at, job = event.log.block_number, event.job_id
        line: Payment | None = None
        if isinstance(event, Settled):
            ok = words.unpack_unit(event.word).outcome == Outcome.OK
            line = Payment(at, "paid" if ok else "failed_theirs", job, event.pay - event.fee, event.fee)
        elif isinstance(event, Closed):
            line = Payment(at, "closed", job, event.pay - event.fee, event.fee)
        elif isinstance(event, Declined):
            line = Payment(at, "declined", job, 0)
        elif isinstance(event, Reclaimed):
            line = Payment(at, "reclaimed", job, 0)
        if line is not None:
            self._book(event.log, line)

    def _book(self, entry: Log, line: Payment) -> None:
        # Keyed by the log: reading a block twice enters it once, and a block that is gone takes its lines along.
        self._payments[entry.block_hash, entry.tx_hash, entry.log_index] = line

    # ---- state ----

    def read(self, head: Block, node: Node) -> tuple[Job, ...]:
        """Return the jobs that may concern the node, read at `head`; those that never fit are not read."""
        self._forget(head.number)
        wanted: list[Row] = []
        for row in self.rows.values():
            row.gate = never_fits(row.terms, row.policy, node, self.immutables)
            if row.ended is None and (row.gate is Gate.FITS or row.leases):
                wanted.append(row)
        found = self._market.job_words([row.id for row in wanted], head.hash)
        return tuple(self._job(row, word, head) for row, word in zip(wanted, found, strict=True))

    def _job(self, row: Row, word: int, head: Block) -> Job:
        header: Header | None = None
        leases: tuple[Lease, ...] = ()
        if word == 0:
            # Posted in a block that is gone; its log will be read again if it comes back.
            row.ended = head.number
        elif words.is_header(word):
            header = words.unpack_header(word)
            leases = self._array(row, head)
            over = header.closed or header.touched >= row.terms.leases
            row.ended = head.number if over and not leases else None
        else:
            unit = words.unpack_unit(word)
            leases = self._single(row, unit, head)
            row.ended = head.number if unit.state.terminal else None
        return Job(row.id, row.terms, leases, header, row.spec, row.retry_at, row.retry_why)

    def _single(self, row: Row, unit: Unit, head: Block) -> tuple[Lease, ...]:
        if unit.window_end:
            return (self._lease(row, 0, self._market.unit(row.id, 0, head.hash), head),)
        if unit.state == State.OPEN or self._is_own(unit):
            return (self._lease(row, 0, UnitView(unit, 0, 0), head),)
        row.leases.discard(0)
        row.own.discard(0)
        return ()

    def _array(self, row: Row, head: Block) -> tuple[Lease, ...]:
        leases: list[Lease] = []
        # An own lease that is not read would look lost, so no number of open ones may crowd it out.
        others = sorted(row.leases - row.own)[: max(0, MAX_READ - len(row.own))]
        for index in sorted(row.own) + others:
            view = self._market.unit(row.id, index, head.hash)
            own = self._is_own(view.unit)
            if not own:
                row.own.discard(index)
            if own or view.unit.state == State.OPEN:
                leases.append(self._lease(row, index, view, head))
            else:
                row.leases.discard(index)
        return tuple(leases)

    def _lease(self, row: Row, index: int, view: UnitView, head: Block) -> Lease:
        since = 0
        if self._is_own(view.unit):
            row.leases.add(index)
            row.own.add(index)
            row.seen.add(index)
            since = row.since.setdefault((index, view.unit.attempts), head.number)
        return Lease(index, view.unit, view.best, since)

    def _is_own(self, unit: Unit) -> bool:
        return unit.state in OURS and unit.node == self._node

    def _forget(self, number: int) -> None:
        """Drop jobs that ended so long ago that no reorganisation brings them back."""
        for job in [row.id for row in self.rows.values() if row.ended is not None and number > row.ended + KEEP]:
            del self.rows[job]

    def refresh(self, jobs: Iterable[Job]) -> tuple[Job, ...]:
        """Return jobs with what this process has learnt since they were read: specs and pauses."""
        return tuple(
            replace(
                job,
                spec=row.spec,
                retry_at=row.retry_at,
                retry_why=row.retry_why,
                paid=tuple(pay for _, pay in row.paid.values()),
            )
            if (row := self.rows.get(job.id))
            else job
            for job in jobs
        )

    def never_read(self) -> Mapping[JobId, Gate]:
        """Return the open jobs that are not read because the node's offer can never serve them, with the gate."""
        return {row.id: row.gate for row in self.rows.values() if row.ended is None and row.gate is not Gate.FITS}


def never_fits(terms: Terms, policy: Policy, node: Node, immutables: Immutables) -> Gate:
    """Return the gate that the node's offer fails whatever its state: sizes, runtimes, zone or price; else FITS."""
    ask: Ask = ask_of(terms, policy)._replace(bond=0, probation=0)
    state = replace(node.state, beat=1, busy=0, bond=0, quarantine=0, status=NodeFlag(0))
    # A price that is pending may fit later, so the lower of the two asks counts.
    offer = replace(node.offer, pending=False, ask=min(node.offer.ask, node.next_ask or node.offer.ask))
    able = replace(node, state=state, offer=offer, stake=max(node.stake, immutables.minimum_stake))
    return node_gate(able, ask, 1, immutables.dead_after, immutables.minimum_stake)


def find_node(market: Market, wanted: int | None, operator: str, block: BlockRef) -> Node | None:
    """Return the node to work for: the wanted one, else the only one that `operator` operates; None for no such node.

    Raises ConfigError where the wanted node is another key's, or where the key operates several.
    """
    if wanted is not None:
        node = market.node(NodeId(wanted), block)
        if node.operator != operator:
            raise ConfigError(
                f"node {wanted} is operated by {node.operator}, this key is {operator}",
                hint=f"{NEW_OPERATOR}; else hearth worker register",
                code="NOT_OPERATOR",
                component="worker",
            )
        return node
    mine = [node for node in market.nodes(block) if node.operator == operator]
    if len(mine) > 1:
        raise ConfigError(
            f"{operator} operates the nodes {', '.join(str(node.id) for node in mine)}",
            hint="set node in worker.toml",
            code="MANY_NODES",
            component="worker",
        )
    return mine[0] if mine else None
