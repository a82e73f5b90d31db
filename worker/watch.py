"""Follow one market for one node: which jobs are open, which leases are this node's, and what it earned.

Logs only say where to look: every fact that a decision uses is read again at one block, named by its hash. Nothing is
kept on disk: at start the logs are read from the market's first block on, so a deleted state folder loses nothing.
Source: worker.md, protocol.md "Events".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import structlog

from hearth.base.errors import ChainError, ConfigError
from hearth.chain.follow import Cursor
from hearth.chain.port import Block, BlockRef, Log
from hearth.market.events import (
    Checkpointed,
    CheckpointPaid,
    Closed,
    Closing,
    Declined,
    Disputed,
    Finished,
    GaveUp,
    JobPosted,
    NodeLapsed,
    NodeRegistered,
    NodeUnitEvent,
    OfferChanged,
    Proposed,
    Reclaimed,
    Rejected,
    Ruled,
    Settled,
    Slashed,
    Started,
    Submitted,
    UnitEvent,
    Unproven,
    decode,
    topic_of,
)
from hearth.market.manifest import Named, named_by
from hearth.market.reads import Market
from hearth.protocol import formulas, words
from hearth.protocol.formulas import Immutables
from hearth.protocol.types import (
    Gate,
    JobId,
    Node,
    NodeId,
    Outcome,
    State,
    Unit,
    Verdict,
)
from worker.decide import Job, LeaseKey, Saved, Target
from worker.rows import KEEP, Row, RowReader, able, never_fits

log = structlog.get_logger("worker.watch")

NEW_OPERATOR: Final = "if you named a new operator, set account.keystore in worker.toml to its key"
"""What whoever holds a key that operates the node no more can do."""
HEARD: Final = (
    *(JobPosted, Proposed, Started, Submitted, Declined, GaveUp, Settled, Finished, Closing, Closed, Reclaimed),
    *(Slashed, Disputed, Ruled, Unproven, Rejected, Checkpointed, CheckpointPaid),
)
"""The events whose absence from a block that announces them would hide work or money."""
MISREADS: Final = 3
"""Readings of a log that no contract writes, before it is stepped over: another provider may tell it as it is."""
LENIENT_SECONDS: Final = 600.0
"""How long such logs are then stepped over at once."""
MANIFESTS: Final = 8
"""Manifests of a node that are remembered: a reorganisation may take the last ones back."""
PAID: Final = 64
"""Own attempts of a job whose pay is remembered."""


@dataclass(frozen=True, slots=True)
class Payment:
    """One line of the node's books: `kind` is paid, failed_theirs, declined, given_up, closed, reclaimed, voided,
    rejected, unproven, checkpoint, slashed or lapsed."""

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
    given_up: int = 0
    closed: int = 0
    timed_out: int = 0
    voided: int = 0
    rejected: int = 0
    unproven: int = 0
    income: int = 0
    fees: int = 0
    slashed: int = 0
    liveness_fees: int = 0

    @property
    def net(self) -> int:
        """Return the income less what stake was lost."""
        return self.income - self.slashed - self.liveness_fees


def earnings_of(payments: Iterable[Payment]) -> Earnings:
    """Add up the books."""
    counts = dict.fromkeys(
        ("paid", "failed_theirs", "declined", "given_up", "closed", "reclaimed", "voided", "rejected", "unproven"), 0
    )
    income = fees = slashed = lapsed = 0
    for line in payments:
        if line.kind in counts:
            counts[line.kind] += 1
            income += line.amount
            fees += line.fee
        elif line.kind == "checkpoint":
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
        given_up=counts["given_up"],
        closed=counts["closed"],
        timed_out=counts["reclaimed"],
        voided=counts["voided"],
        rejected=counts["rejected"],
        unproven=counts["unproven"],
        income=income,
        fees=fees,
        slashed=slashed,
        liveness_fees=lapsed,
    )


def _lost_by(event: Slashed | Rejected | NodeLapsed) -> int:
    """Return what an event took from a node's stake, in base units."""
    if isinstance(event, NodeLapsed):
        return event.fee
    if isinstance(event, Rejected):
        return event.burnt + sum(words.unpack_share(share)[1] for share in event.shares)
    return event.reward + event.burnt


class Watcher:
    """Keep the rows of open jobs and of own leases, as of the last block read."""

    def __init__(self, market: Market, node: NodeId) -> None:
        self.rows: dict[JobId, Row] = {}
        self.reorgs = 0
        self.logs = 0
        self.lost: list[tuple[LeaseKey, int]] = []
        self._market = market
        self._node = node
        self._reader = RowReader(market, node)
        self._payments: dict[tuple[bytes, bytes, int], Payment] = {}
        self._manifests: dict[NodeId, dict[tuple[bytes, bytes, int], Named]] = {}
        self._offered: Node | None = None
        self._misread = 0
        self._lenient_until = 0.0
        parameters = market.network.node_parameters
        self.immutables = Immutables(parameters.dead_after, parameters.minimum_stake)
        self._cursor = self._begin()

    @property
    def earnings(self) -> Earnings:
        """Return the node's books as of the last block read."""
        return earnings_of(self._payments.values())

    def named(self, node: NodeId) -> Named | None:
        """Return the last manifest that a node has named, as of the last block read; None where none is known."""
        told = self._manifests.get(node)
        return list(told.values())[-1] if told else None

    @property
    def suspicions(self) -> int:
        """Count the times that a provider seemed to leave logs out, since the market was read from its first block."""
        return self._cursor.suspicions

    @property
    def blooms(self) -> bool | None:
        """Whether a block's bloom saves a request here (`Cursor.blooms`)."""
        return self._cursor.blooms

    # ---- logs ----

    def _begin(self, blooms: bool | None = None) -> Cursor:
        """Know nothing but what blooms are worth, and read the market from its first block on.

        Raises ChainError, with nothing forgotten yet.
        """
        network = self._market.network
        contracts = [network.jobs, network.nodes]
        topics, witness = map(topic_of, HEARD), network.bloom_witness
        start, port = network.deploy_block, self._market.port
        cursor = Cursor(port, contracts, start, topics=topics, witness=witness, blooms=blooms)
        self.rows.clear()
        self._payments.clear()
        self._manifests.clear()
        self._followed = False
        return cursor

    def sync(self, between: Callable[[], None] = lambda: None) -> Block:
        """Read the logs of new blocks; return the head, which later reads are pinned to. Raises ChainError.

        What is due meanwhile is done by `between`, after each range of a history that is long to read.
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
                    fresh = self._begin(self._cursor.blooms)
                    self._cursor.close()
                    self._cursor = fresh
                    continue
                self._step_back(fork, {mark.hash for mark in tick.orphaned})
            for entry in tick.logs:
                self._take(entry)
            self.logs += len(tick.logs)
            self._cursor.advance(tick)
            if tick.behind == 0:
                self._followed = True
                return tick.head
            between()
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
        for node, told in self._manifests.items():
            self._manifests[node] = {key: named for key, named in told.items() if key[0] not in gone}
        for row in self.rows.values():
            row.step_back(fork)

    def _take(self, entry: Log) -> None:
        """Learn from a log. What no contract writes is asked for again, then stepped over: no log stops a worker."""
        try:
            self._apply(entry)
        except (ChainError, ValueError) as error:
            if time.monotonic() >= self._lenient_until:
                self._misread += 1
                if self._misread < MISREADS:
                    raise ChainError(
                        f"log {entry.log_index} of block {entry.block_number} cannot be read: {error}",
                        code="RPC_BROKEN",
                        hint="hearth worker doctor",
                    ) from error
                self._misread, self._lenient_until = 0, time.monotonic() + LENIENT_SECONDS
            log.warning("log ignored", block=entry.block_number, place=entry.log_index, why=str(error))

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
                self._touch(row, event, unit)
            elif isinstance(event, CheckpointPaid) and event.node == self._node:
                pay = event.pay - event.fee
                self._book(entry, Payment(entry.block_number, "checkpoint", event.job_id, pay, event.fee))
            return
        if isinstance(event, NodeRegistered | OfferChanged):
            told = self._manifests.setdefault(event.node, {})
            told[entry.block_hash, entry.tx_hash, entry.log_index] = named_by(event)
            for oldest in list(told)[:-MANIFESTS]:
                del told[oldest]
            return
        if isinstance(event, Slashed | Rejected | NodeLapsed):
            if event.node == self._node:
                kind = "lapsed" if isinstance(event, NodeLapsed) else "slashed"
                self._book(entry, Payment(entry.block_number, kind, None, _lost_by(event)))
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
            self.rows[posted.job_id] = Row(posted.job_id, posted.terms, entry.block_number)

    def _learn(self, row: Row, event: NodeUnitEvent, attempt: int) -> None:
        """Note what an own attempt brought: what was given back, or cancelled before it ran, brought nothing."""
        if isinstance(event, Settled | Finished | Closed) or (
            isinstance(event, Ruled) and event.verdict != Verdict.RELEASE
        ):
            row.paid[event.index, attempt] = (event.log.block_number, event.pay - event.fee)
        elif isinstance(event, Declined | GaveUp | Unproven):
            row.paid[event.index, attempt] = (event.log.block_number, 0)
        for oldest in list(row.paid)[:-PAID]:
            del row.paid[oldest]

    def _touch(self, row: Row, event: NodeUnitEvent, unit: Unit) -> None:
        """Learn from a unit's newest word whether it is worth reading."""
        index = event.index
        if index >= row.terms.leases:
            raise ValueError(f"its job has no unit {index}")
        own = self._reader.is_own(unit)
        if unit.state == State.OPEN or own:
            row.leases.add(index)
            row.seen.add(index)
            row.ended = None
        if own:
            row.hold(index)
        elif not self._followed:
            # While history is read, its last word counts: else a start would read every lease that the node ever had.
            row.lose(index, event.log.block_number)
        if isinstance(event, Checkpointed):
            saved = Saved(unit.attempts, event.node, event.seconds, event.root, unit.resume)
            row.save(index, saved, event.log.block_number)
        elif unit.state.terminal:
            row.over[index] = event.log.block_number
        row.led.pop(index, None)
        if isinstance(event, Proposed) and event.node == self._node:
            row.led[index] = formulas.lapses_at(row.terms, unit)

    def _account(self, event: NodeUnitEvent) -> None:
        """Enter into the books what an event says about a lease of this node."""
        if event.node != self._node:
            return
        at, job = event.log.block_number, event.job_id
        line: Payment | None = None
        if isinstance(event, Finished):
            ok, row = words.unpack_unit(event.word).outcome == Outcome.OK, self.rows.get(job)
            # The owner has the settler's pay too, which no event names.
            reward = 0 if row is None else formulas.settle_reward(row.terms, 0)
            line = Payment(at, "paid" if ok else "failed_theirs", job, event.pay - event.fee + reward, event.fee)
        elif isinstance(event, Settled) or (isinstance(event, Ruled) and event.verdict == Verdict.CONFIRM):
            ok = words.unpack_unit(event.word).outcome == Outcome.OK
            line = Payment(at, "paid" if ok else "failed_theirs", job, event.pay - event.fee, event.fee)
        elif isinstance(event, Closed):
            line = Payment(at, "closed", job, event.pay - event.fee, event.fee)
        elif isinstance(event, Ruled) and event.verdict == Verdict.VOID:
            line = Payment(at, "voided", job, event.pay - event.fee, event.fee)
        elif isinstance(event, Ruled) and event.verdict == Verdict.REJECT:
            line = Payment(at, "rejected", job, 0)
        elif isinstance(event, Unproven):
            line = Payment(at, "unproven", job, 0)
        elif isinstance(event, Declined):
            line = Payment(at, "declined", job, 0)
        elif isinstance(event, GaveUp | Reclaimed):
            given_up = isinstance(event, GaveUp)
            line = Payment(at, "given_up" if given_up else "reclaimed", job, 0)
            row = self.rows.get(job)
            if row is not None and self._followed:
                cost = (formulas.give_up_burn if given_up else formulas.slash_of)(row.terms)
                self.lost.append((LeaseKey(job, event.index, words.unpack_unit(event.word).attempts), cost))
        if line is not None:
            self._book(event.log, line)

    def _book(self, entry: Log, line: Payment) -> None:
        # Keyed by the log: reading a block twice enters it once, and a block that is gone takes its lines along.
        self._payments[entry.block_hash, entry.tx_hash, entry.log_index] = line

    # ---- state ----

    def read(
        self, head: Block, node: Node, target: Target | None = None, ahead: Iterable[LeaseKey] = ()
    ) -> tuple[Job, ...]:
        """Return jobs that may concern the node, read at `head`: all with leases of its own, the target's and those
        `ahead`, and as many others as one block has room for. Of a job that never fits, own leases are read, and
        whether it is over."""
        self._forget(head.number)
        offered = able(node, self.immutables)
        anew, self._offered = offered != self._offered, offered
        wanted: list[Row] = []
        others: list[Row] = []
        for row in self.rows.values():
            if anew or row.gate is None:
                row.gate = never_fits(row.terms, offered, self.immutables)
            if row.ended is None:
                (wanted if row.gate is Gate.FITS or row.own else others).append(row)
        gathered: dict[JobId, set[int]] = {}
        for key in ahead:
            gathered.setdefault(key.job, set()).add(key.index)
        return self._reader.read(wanted, others, head, target, gathered)

    def _forget(self, number: int) -> None:
        """Drop what ended so long ago that no reorganisation brings it back."""
        for job in [row.id for row in self.rows.values() if row.ended is not None and number > row.ended + KEEP]:
            del self.rows[job]
        for row in self.rows.values():
            if row.lost or row.over:
                row.forget(number)

    def refresh(self, jobs: Iterable[Job]) -> tuple[Job, ...]:
        """Return jobs with what this process has learnt since they were read: specs and pauses."""
        return tuple(
            replace(
                job,
                spec=row.spec,
                retry_at=row.retry_at,
                retry_why=row.retry_why,
                gather_at=row.gather_at,
                paid=tuple(pay for _, pay in row.paid.values()),
            )
            if (row := self.rows.get(job.id))
            else job
            for job in jobs
        )

    def waiting(self) -> set[JobId]:
        """Return the jobs of which something worth reading was not read at the last block, and is at a later one."""
        return self._reader.waiting

    def never_read(self) -> Mapping[JobId, Gate]:
        """Return the open jobs that are not read because the node's offer can never serve them, with the gate."""
        rows = (row for row in self.rows.values() if row.ended is None)
        return {row.id: row.gate for row in rows if row.gate is not None and row.gate is not Gate.FITS}


def find_node(market: Market, wanted: int | None, operator: str, owner: str, block: BlockRef) -> Node | None:
    """Return the node to work for: the wanted one, else the only one of `owner` that `operator` operates; or None.

    Where it operates none, the only one that is offered to it, which its first beat takes over. Anybody may register a
    node with anybody's key, or offer one to it: those of other owners are not looked at. Raises ConfigError where the
    wanted node is another key's (NOT_OPERATOR) or another's (NOT_OWNER), and MANY_NODES.
    """
    if wanted is not None:
        node = market.node(NodeId(wanted), block)
        if not may_serve(market, node, operator, block):
            raise ConfigError(
                f"node {wanted} is operated by {node.operator}, this key is {operator}",
                hint=f"{NEW_OPERATOR}; else mend node in worker.toml",
                code="NOT_OPERATOR",
                component="worker",
            )
        if node.owner != owner:
            raise anothers_node(node, owner)
        return node
    owned = [node for node in market.nodes(block) if node.owner == owner]
    mine = [node for node in owned if node.operator == operator]
    mine = mine or [node for node in owned if may_serve(market, node, operator, block)]
    if len(mine) > 1:
        raise ConfigError(
            f"{operator} operates, or is offered, the nodes {', '.join(str(node.id) for node in mine)}",
            hint="set node in worker.toml",
            code="MANY_NODES",
            component="worker",
        )
    return mine[0] if mine else None


def may_serve(market: Market, node: Node, operator: str, block: BlockRef = "latest") -> bool:
    """Say whether a key operates a node, or would by its first beat for it."""
    return node.operator == operator or market.offered_operator(node.id, block) == operator


def anothers_node(node: Node, owner: str) -> ConfigError:
    """Return the refusal of a node that this worker's key operates, and that is not its owner's."""
    return ConfigError(
        f"node {node.id} belongs to {node.owner}, and account.payout is {owner}: a worker works for no other owner",
        hint="hearth worker register; where that owner is yours, set account.payout to it in worker.toml",
        code="NOT_OWNER",
        component="worker",
    )


def refuse_anothers_node(market: Market, operator: str, owner: str) -> None:
    """Raise ConfigError NOT_OWNER where a key that has no node of `owner` operates somebody else's."""
    for node in market.nodes(market.port.head().hash):
        if node.operator == operator and node.owner != owner:
            raise anothers_node(node, owner)
