"""A market on the real contracts, in process, that keeps every log as a keeper would read it."""

from __future__ import annotations

from typing import Any

from hearth.chain.port import Log
from hearth.protocol.types import JobId, NodeId
from keeper.fleet import encode_node
from keeper.index import Index
from tests.kit.evm import CHAIN_ID, Contract, Evm
from tests.kit.world import World


class LoggingEvm(Evm):
    """An `Evm` that records the raw logs of every transaction that succeeds."""

    def __init__(self) -> None:
        super().__init__()
        self.logs: list[Log] = []
        self.senders: dict[bytes, str] = {}
        """Who sent the transactions, one a block, that logs are of, by their hashes."""

    def raw_call(self, to: str | Contract, data: bytes = b"", **options: Any) -> bytes:
        """Send one transaction and record its logs."""
        answer = super().raw_call(to, data, **options)
        self.senders[self.block.to_bytes(32, "big")] = str(options.get("sender") or self.deployer).lower()
        for log in self._machine.result.logs:
            topics, payload = log.data
            position = len(self.logs)
            self.logs.append(
                Log(
                    log.address.lower(),
                    tuple(bytes(topic) for topic in topics),
                    bytes(payload),
                    self.block,
                    self.block.to_bytes(32, "big"),
                    self.block.to_bytes(32, "big"),
                    position,
                )
            )
        return answer


class Follower:
    """The index of a keeper, who is his own payee, that follows a world's logs, page by page."""

    def __init__(self, world: World, payee: str, capacity: int = 1) -> None:
        assert isinstance(world.evm, LoggingEvm)
        self.world, self.evm = world, world.evm
        senders, keeper = self.evm.senders, payee.lower()
        jobs = world.jobs.address.lower()
        self.index = Index(CHAIN_ID, jobs, payee, capacity, sent=lambda digest: senders[digest] == keeper)
        self.read = 0

    def follow(self, count: int = 10**9) -> list[JobId]:
        """Apply the next `count` logs; at the newest one, also read nodes and fresh jobs. Return jobs held wrongly."""
        page = self.evm.logs[self.read : self.read + count]
        self.read += len(page)
        market = {self.world.jobs.address.lower(), self.world.escrow.address.lower()}
        self.index.apply([log for log in page if log.address in market], self.evm.now)
        if self.read < len(self.evm.logs):
            return []
        last = self.world.nodes.call.totals() & 0xFFFFFFFF
        raw = b"".join(encode_node(self.world.node(NodeId(i))) for i in range(1, last))
        if raw:
            self.index.fleet.write(NodeId(1), raw)
        return self.compare(self.index.unread())

    def compare(self, jobs: list[JobId]) -> list[JobId]:
        """Compare jobs with the contracts' words; return those that the index held wrongly."""
        return self.index.compare(jobs, [self.world.jobs.call.load(job, 0)[0] for job in jobs])
