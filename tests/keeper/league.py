"""A market in memory whose nodes ack or let lapse as a test says: the real index and `decide` over the events.

Time goes from event to event, and in growing steps while nothing happens, so that a day costs some hundred decisions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from hearth.chain.port import Log
from hearth.market.events import JobPosted, Proposed, Settled, Started, topic_of
from hearth.protocol import formulas, words
from hearth.protocol.types import Best, JobId, Node, NodeId, State, Terms, Unit
from keeper.actions import Propose
from keeper.config import Config
from keeper.decide import decide
from keeper.fleet import Fleet, encode_node
from keeper.index import Index
from keeper.snapshot import Snapshot
from tests.keeper.markets import IMMUTABLES, KEEPER, NOW

CHAIN_ID = 31_337
REGISTRY = "0x" + "ab" * 20
LEASE = 20
"""Seconds after which a node that acked has submitted, and its slot is free again."""

Habit = Callable[[int], bool]
"""Say whether a node acks the n-th proposal that it wins, counted from 0."""

CAREFUL = Config(keeper=KEEPER, payee=KEEPER, jitter=0, latency=0, max_loss=0, coin_price=1)


class League:
    """Nodes with habits, jobs, and one keeper that proposes; `acked` and `lost` count its proposals by job and node."""

    def __init__(self, nodes: Sequence[tuple[Node, Habit]], jobs: Sequence[Terms], config: Config = CAREFUL) -> None:
        self.nodes, self.config, self.now = dict(enumerate(nodes, 1)), config, NOW
        self.index = Index(CHAIN_ID, REGISTRY, config.payee)
        self.logs: list[Log] = []
        self.units: dict[tuple[JobId, int], tuple[Unit, Best]] = {}
        self.terms: dict[JobId, Terms] = {}
        self.ends: dict[tuple[JobId, int], int] = {}
        self.proposals = 0
        self.acked: Counter[JobId | int] = Counter()
        self.lost: Counter[JobId | int] = Counter()
        self.won: Counter[int] = Counter()
        self.heard: set[tuple[JobId, int, int]] = set()
        self.willing: dict[tuple[JobId, int], bool] = {}
        for terms in jobs:
            self.post(terms)

    def post(self, terms: Terms) -> JobId:
        packed = words.pack_terms(terms)
        job = formulas.job_id_of_words(CHAIN_ID, REGISTRY, packed)
        body = b"".join(word if isinstance(word, bytes) else word.to_bytes(32, "big") for word in packed)
        said = (1).to_bytes(32, "big") + bytes(32)  # the first job of its market
        body += len(body + said + bytes(32)).to_bytes(32, "big") + said + bytes(32)  # no parents
        self.log(topic_of(JobPosted), job, bytes.fromhex(terms.submitter[2:]), body)
        self.terms[job] = terms
        if terms.leases == 1:
            self.units[job, 0] = Unit(state=State.OPEN, started=0), Best()
        return job

    def log(self, topic: bytes, job: JobId, third: bytes, data: bytes) -> None:
        place = (1, bytes(32), bytes(32), len(self.logs))
        log = Log(REGISTRY, (topic, job, third.rjust(32, b"\0")), data, *place)
        self.logs.append(log)
        self.index.apply([log], self.now)

    def move(self, topic: bytes, at: tuple[JobId, int], unit: Unit, best: Best) -> None:
        self.units[at] = unit, best
        data = words.pack_unit(unit).to_bytes(32, "big") + words.pack_best(best).to_bytes(32, "big")
        self.log(topic, at[0], at[1].to_bytes(32, "big"), data)

    # ---- time ----

    def run(self, seconds: int) -> None:
        """Let `seconds` pass."""
        end, idle = self.now + seconds, 4
        while self.now < end:
            self.answer()
            before = self.proposals
            self.propose()
            idle = 4 if self.proposals > before else idle + idle // 4
            moments = [self.now + idle, *self.ends.values()]
            for (job, _), (unit, _) in self.units.items():
                if unit.state == State.OPEN and unit.window_end:
                    moments += [unit.window_end, formulas.lapses_at(self.terms[job], unit)]
            self.now = min(moment for moment in moments if moment > self.now)

    def answer(self) -> None:
        """Let every node ack or not what it has won, and end what is over."""
        for at, (unit, best) in list(self.units.items()):
            if unit.state == State.OPEN and unit.window_end and self.now >= unit.window_end:
                won = (*at, unit.window_end)
                if won not in self.heard:
                    self.heard.add(won)
                    self.willing[at] = self.nodes[best.node][1](self.won[best.node])
                    self.won[best.node] += 1
                    count = self.acked if self.willing[at] else self.lost
                    count.update((at[0], int(best.node)))
                if self.willing[at]:
                    running = replace(unit, state=State.RUNNING, node=best.node, started=self.now, attempts=1, lapses=0)
                    self.move(topic_of(Started), at, running, best)
                    self.ends[at] = self.now + LEASE
            elif self.now >= self.ends.get(at, self.now + 1):
                del self.ends[at]
                self.move(topic_of(Settled), at, replace(unit, state=State.SETTLED), best)

    def propose(self) -> None:
        """Send what the keeper decides."""
        for action in decide(self.snapshot(), self.config, self.now):
            if not isinstance(action, Propose):
                continue
            at, terms = (action.job, action.index), self.terms[action.job]
            unit, best = self.units.get(at, (Unit(state=State.OPEN), Best()))
            read = formulas.with_lapse(terms, unit, best, self.now)
            assert formulas.proposable(terms, read, self.now) and read.node != action.node
            best = Best(payee=self.config.payee, node=action.node, key=action.key)
            self.move(topic_of(Proposed), at, replace(read, mark=self.now + terms.match_window), best)
            self.proposals += 1

    def snapshot(self, index: Index | None = None) -> Snapshot:
        index = index or self.index
        busy: Counter[int] = Counter(int(unit.node) for unit, _ in self.units.values() if unit.state == State.RUNNING)
        fleet = Fleet()
        seen = [
            replace(node, state=replace(node.state, beat=self.now, busy=busy[number]))
            for number, (node, _) in self.nodes.items()
        ]
        fleet.write(NodeId(1), b"".join(encode_node(node) for node in seen))
        view = fleet.at(self.now, IMMUTABLES)
        return Snapshot(1, self.now, view, index.rows(), 5, 1, dict(index.records))

    def reread(self) -> Index:
        """Return what a keeper knows that starts now, from nothing but the logs."""
        fresh = Index(CHAIN_ID, REGISTRY, self.config.payee)
        fresh.apply(self.logs, 0)
        return fresh
