"""Read a market at one block: its logs into the index, its nodes into the fleet.

All reads name the block by its hash, so a reorg in between is an error and not a mixture. What turns out to be wrong,
by a reorg or by an RPC that lies, costs a rebuild of the index and nothing else.
"""

from __future__ import annotations

import structlog

from hearth.base.errors import ChainError
from hearth.chain.follow import Cursor
from hearth.chain.port import Block, ChainPort
from hearth.market.network import Network
from hearth.market.reads import Market
from hearth.protocol.formulas import Immutables
from keeper.health import KeeperMetrics
from keeper.index import Index, topics
from keeper.snapshot import JobRow, Snapshot

log = structlog.get_logger("keeper")


class Reader:
    """Follow one market. `index` is what is known of it, `head` the block of the last look at the logs."""

    def __init__(
        self, port: ChainPort, market: Market, network: Network, *, payee: str, span: int, metrics: KeeperMetrics
    ) -> None:
        """Begin before the market's first block; `span` is the number of blocks asked for at once."""
        self._port, self._market, self._network = port, market, network
        self._payee, self._span, self._metrics = payee, span, metrics
        self._rows: tuple[JobRow, ...] = ()
        self._followed = False
        self.head: Block | None = None
        self._begin()

    def sync(self, *, compare_all: bool = False) -> Block:
        """Bring the index to the newest block that the providers agree on, and return that block.

        `compare_all` compares every job's word with the chain's, not only those of fresh jobs.
        """
        try:
            head = self._follow()
            self._read_nodes(head)
            self._compare(head, compare_all)
            self._rows = self.index.rows()
        except ChainError as error:
            if error.code in ("RPC_BROKEN", "RPC_LIES"):
                self._rebuild(error.code.lower())
            raise
        except ValueError as error:  # words that no contract writes: packed lanes out of range, short data, a gap
            self._rebuild("rpc_broken")
            raise ChainError(f"the RPC serves words that cannot be: {error}", code="RPC_BROKEN") from error
        return head

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
        if not jobs:
            return
        wrong = self.index.compare(jobs, self._market.job_words(jobs, head.hash))
        if wrong:
            self._rebuild("mismatch")
            raise ChainError(
                f"{len(wrong)} jobs are not what their logs say, 0x{wrong[0].hex()} among them", code="RPC_BROKEN"
            )

    def _rebuild(self, cause: str) -> None:
        log.warning("index.rebuild", cause=cause)
        self._metrics.rebuilds.labels(cause).inc()
        self._cursor.close()
        self._begin()

    def _begin(self) -> None:
        """Start an empty index, and a cursor before the market's first block."""
        self.index = Index(self._network.chain_id, self._network.jobs, self._payee)
        addresses = [self._network.jobs, self._network.escrow]
        self._cursor = Cursor(self._port, addresses, self._network.deploy_block, topics=topics(), span=self._span)
        self._followed = False

    def snapshot(self, head: Block) -> Snapshot:
        """Return the market as `decide` takes it; `head` is what `sync` returned."""
        parameters = self._network.node_parameters
        view = self.index.fleet.at(head.timestamp, Immutables(parameters.dead_after, parameters.minimum_stake))
        fees = self._port.fees()
        price = fees.base_fee + fees.priority_fee
        fee, records = parameters.liveness_fee, dict(self.index.records)
        return Snapshot(head.number, head.timestamp, view, self._rows, fee, price, records)
