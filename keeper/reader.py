"""Read a market at one block: its logs into the index, its nodes into the fleet.

All reads name the block by its hash, so a reorg in between is an error and not a mixture. What turns out to be wrong,
by a reorg or by an RPC that lies, costs a rebuild of the index and nothing else. Where everything read anew says the
same, the jobs in doubt are set aside: no log stops a keeper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from hearth.base.errors import ChainError
from hearth.chain.follow import Cursor
from hearth.chain.port import Block, ChainPort
from hearth.market.network import Network
from hearth.market.reads import PAGE, Market
from hearth.protocol import formulas
from hearth.protocol.formulas import Immutables
from hearth.protocol.parents import ended
from hearth.protocol.types import JobId
from keeper.health import KeeperMetrics
from keeper.index import Index, topics
from keeper.snapshot import JobRow, ParentWord, Snapshot

log = structlog.get_logger("keeper")

DOUBT_SECONDS: Final = 600
"""Chain time between two rebuilds for new doubts."""
ASIDE_SECONDS: Final = 3_600
"""Chain time after which everything is read anew for the jobs aside: a provider that lied may have been mended."""
PARENTS: Final = 32 * PAGE
"""Parents whose words are read per cycle: jobs whose parents are more than that take turns."""


class Reader:
    """Follow one market. `index` is what is known of it, `head` the block of the last look at the logs."""

    def __init__(
        self,
        port: ChainPort,
        market: Market,
        network: Network,
        *,
        payee: str,
        sent: Callable[[bytes], bool] | None,
        span: int,
        metrics: KeeperMetrics,
    ) -> None:
        """Begin before the market's first block; `span` is the number of blocks asked for at once.

        `sent` says by its hash whether this keeper sent a transaction, None where that is not known.
        """
        self._sent = sent
        self._port, self._market, self._network = port, market, network
        self._payee, self._span, self._metrics = payee, span, metrics
        self._rows: tuple[JobRow, ...] = ()
        self._parents: dict[JobId, ParentWord] = {}
        self._turn = 0
        self._turns: dict[JobId, int] = {}
        self._followed = False
        self._rebuilt_at: int | None = None
        self._borne = 0
        self.head: Block | None = None
        self._begin()

    def sync(self, *, compare_all: bool = False) -> Block:
        """Bring the index to the newest block that the providers agree on, and return that block.

        `compare_all` compares every job's word with the chain's, not only those of fresh jobs.
        """
        try:
            while True:
                head = self._follow()
                self._read_nodes(head)
                self._compare(head, compare_all)
                self._rows = self.index.rows()
                if not self._rebuild_for_doubts(head):
                    self._parents = self._read_parents(head)
                    return head
        except ChainError as error:
            if error.code in ("RPC_BROKEN", "RPC_LIES"):
                self._rebuild(error.code.lower())
            raise
        except ValueError as error:  # words that no contract writes: packed lanes out of range, short data, a gap
            self._rebuild("rpc_broken")
            raise ChainError(f"the RPC serves words that cannot be: {error}", code="RPC_BROKEN") from error

    def _follow(self) -> Block:
        """Apply what the chain has logged since the last cycle; a reorg below it starts the index anew."""
        while True:
            tick = self._cursor.read()
            if tick.orphaned:
                self._rebuild("reorg")
                continue
            if not tick.marks and tick.behind:
                raise ChainError(
                    f"the provider does not show block {tick.head.number - tick.behind + 1}", code="RPC_LAGS"
                )
            caught_up = tick.behind == 0
            self.index.apply(tick.logs, tick.head.timestamp if caught_up and self._followed else 0)
            self._metrics.logs.inc(len(tick.logs))
            self._cursor.advance(tick)
            if caught_up:
                self._followed = True
                self.head = tick.head
                return tick.head

    def _read_nodes(self, head: Block) -> None:
        for first, records in self._market.node_pages(head.hash):
            self.index.fleet.write(first, records)

    def _compare(self, head: Block, everything: bool) -> None:
        """Read when fresh jobs opened; compare with the chain what the index holds of them, or of every job."""
        jobs = self.index.live() if everything else self.index.unread()
        if jobs:
            self.index.compare(jobs, self._market.job_words(jobs, head.hash))

    def _read_parents(self, head: Block) -> dict[JobId, ParentWord]:
        """Read the words of the jobs that others wait for; those that wait take turns where PARENTS is too few."""
        time = head.timestamp
        waiting = [row for row in self._rows if row.waits and formulas.has_time(row.terms, time)]
        if not waiting:
            return {}
        self._turn += 1
        wanted: dict[JobId, None] = {}
        # Those that were read longest ago come first: nobody's posts can put another one's turn off.
        turns = {row.id: self._turns.get(row.id, 0) for row in waiting}
        for row in sorted(waiting, key=lambda row: turns[row.id]):
            more = {parent.job: None for parent in row.parents if parent.job not in wanted}
            if len(wanted) + len(more) > PARENTS:
                break
            wanted |= more
            turns[row.id] = self._turn
        self._turns = turns
        found: dict[JobId, ParentWord] = {}
        unreadable: list[str] = []
        for job, word in zip(wanted, self._market.job_words([*wanted], head.hash), strict=True):
            if not _is_written(word):
                unreadable.append(f"0x{job.hex()}")
                word = 0  # that of no job: it never ends
            last = self._parents.get(job)
            found[job] = last if last and last.word == word else ParentWord(word, time if last else 0)
        if unreadable:
            self._metrics.unreadable.inc(len(unreadable))
            log.warning("parents.unreadable", count=len(unreadable), first=unreadable[:8])
        return found

    def _rebuild_for_doubts(self, head: Block) -> bool:
        """Begin the index anew for what cannot be as its logs say, or where that was tried just now, set it aside."""
        index = self.index
        fresh = bool(index.doubts) or index.strays > self._borne
        pause = DOUBT_SECONDS if fresh else ASIDE_SECONDS
        if not fresh and not index.aside:
            return False
        if self._rebuilt_at is None or head.timestamp >= self._rebuilt_at + pause:
            self._rebuilt_at = head.timestamp
            self._rebuild("mismatch")
            return True
        if fresh:
            aside = [f"0x{job.hex()}" for job in index.set_aside()]
            log.warning("index.doubt", strays=index.strays, aside=aside[:8], jobs_aside=len(index.aside))
            self._borne, self._rows = index.strays, index.rows()
        return False

    def _rebuild(self, cause: str) -> None:
        log.warning("index.rebuild", cause=cause)
        self._metrics.rebuilds.labels(cause).inc()
        self._cursor.close()
        self._begin(self._cursor.blooms)

    def _begin(self, blooms: bool | None = None) -> None:
        """Start an empty index, and a cursor before the market's first block; `blooms` is what the last one found."""
        self.index = Index(self._network.job_chain_id, self._network.jobs, self._payee, sent=self._sent)
        addresses = [self._network.jobs, self._network.escrow]
        start, witness = self._network.deploy_block, self._network.bloom_witness
        self._cursor = Cursor(
            self._port, addresses, start, topics=topics(), witness=witness, blooms=blooms, span=self._span
        )
        self._followed, self._borne = False, 0

    @property
    def suspicions(self) -> int:
        """Count the times that a provider seemed to leave logs out, since the index was begun."""
        return self._cursor.suspicions

    @property
    def blooms(self) -> bool | None:
        """Whether a block's bloom saves a request here (`Cursor.blooms`)."""
        return self._cursor.blooms

    def snapshot(self, head: Block) -> Snapshot:
        """Return the market as `decide` takes it; `head` is what `sync` returned."""
        parameters = self._network.node_parameters
        view = self.index.fleet.at(head.timestamp, Immutables(parameters.dead_after, parameters.minimum_stake))
        price = self._port.fees().price
        fee, records = parameters.liveness_fee, dict(self.index.records)
        return Snapshot(head.number, head.timestamp, view, self._rows, fee, price, records, self._parents)


def _is_written(word: int) -> bool:
    """Say whether a contract may write a word as a job's own."""
    try:
        ended(word)
    except ValueError:
        return False
    return True
