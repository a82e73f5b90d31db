"""Decide what to send for one block: a pure function of a snapshot, a configuration and the time.

Every unit that has not ended, the next untouched lease of every array and every node that fell silent yields an
action or a `Skip` with its reason, so that a user can see why nothing happens. An action is emitted only where the
contracts' guards hold at `now` (and, for a guard that ends, still after `latency`), where its reward is worth its
gas, and once this keeper's share of the jitter has passed: two keepers hash the same thing to different delays, so
that each takes part of the work first and the other all that is left. Source: SPEC sections "Units" and "Keeper".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from eth_utils.crypto import keccak

from hearth.protocol import formulas
from hearth.protocol.formulas import Ask
from hearth.protocol.types import BPS, Best, Gate, Header, HotStatus, JobId, Node, NodeId, Policy, State, Terms, Unit
from keeper.match import Bucket, Match, Nodes, best_bucket, draw, gates

if TYPE_CHECKING:
    from keeper.reports import Explanation, UnitPlan

ALL: Final = -1
"""The index of an action or a Skip that means the untouched rest of an array."""
MAX_SETTLE: Final = 64
MAX_LIVENESS: Final = 128
COIN: Final = 10**18
"""Wei in one native coin."""


# ---- what decide reads ----


@dataclass(frozen=True, slots=True)
class UnitRow:
    """A unit that has not ended, as stored on chain; `best` counts only while it is OPEN."""

    index: int
    unit: Unit
    best: Best = field(default_factory=Best)


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job with its units that have been touched and have not ended; a one-lease job has exactly one.

    `header` is None for a one-lease job. `since` is the chain second from which an array's next lease is untouched
    and first in line.
    """

    id: JobId
    terms: Terms
    policy: Policy
    units: tuple[UnitRow, ...]
    header: Header | None = None
    since: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The market at one block. `liveness_fee` is base units, `gas_price` wei per gas."""

    block: int
    time: int
    nodes: Nodes
    jobs: tuple[JobRow, ...]
    liveness_fee: int
    gas_price: int


@dataclass(frozen=True, slots=True)
class Gas:
    """What each action is expected to use, before it is estimated against the chain (docs/GAS.md)."""

    propose: int = 77_000
    propose_next: int = 103_000
    improve: int = 60_000
    reclaim: int = 95_000
    expire: int = 53_000
    close: int = 79_000
    settle: int = 92_000
    settle_batch: int = 35_000
    settle_item: int = 45_000
    liveness_batch: int = 35_000
    liveness_item: int = 15_000


@dataclass(frozen=True, slots=True)
class Config:
    """How this keeper works.

    `keeper` is its address (the jitter's seed), `payee` the account that its rewards are credited to. `jitter` is the
    longest time, in seconds, that it leaves to others; `latency` the seconds until a sent transaction is mined.
    `coin_price` is base units of the market's asset for one native coin (10**18 wei). An action may lose at most
    `max_loss` base units. `ack_bps` is the share of proposals that end in an ack, and so in a tip. `burst` is the
    number of leases of one array that a cycle proposes for.
    """

    keeper: str
    payee: str
    jitter: int = 12
    latency: int = 3
    coin_price: int = COIN
    max_loss: int = 0
    ack_bps: int = 9_000
    burst: int = 8
    gas: Gas = field(default_factory=Gas)


# ---- what decide says ----


@dataclass(frozen=True, slots=True)
class _OnUnit:
    """An action on one unit; index ALL is the untouched rest of an array."""

    job: JobId
    index: int

    @property
    def id(self) -> str:
        """Name the unit."""
        return unit_id(self.job, self.index)


@dataclass(frozen=True, slots=True)
class Propose(_OnUnit):
    """Propose a node for a unit, or improve the best proposal. `follows`: an earlier lease must be proposed first."""

    node: NodeId
    key: int
    reward: int
    gas: int
    improves: bool = False
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Reclaim(_OnUnit):
    """Take a unit from a node that fell silent or ran out of time."""

    node: NodeId
    reward: int
    gas: int


@dataclass(frozen=True, slots=True)
class Expire(_OnUnit):
    """Refund a unit, or for index ALL the untouched rest of an array, that cannot end before its deadline."""

    reward: int
    gas: int


@dataclass(frozen=True, slots=True)
class Close(_OnUnit):
    """End a unit whose notice is over."""

    reward: int
    gas: int


@dataclass(frozen=True, slots=True)
class Settle:
    """Settle up to 64 submitted units at once."""

    items: tuple[tuple[JobId, int], ...]
    reward: int
    gas: int

    @property
    def id(self) -> str:
        """Name the first unit and the number of the others."""
        return unit_id(*self.items[0]) + (f" and {len(self.items) - 1} more" if len(self.items) > 1 else "")


@dataclass(frozen=True, slots=True)
class CheckLiveness:
    """Record that up to 128 nodes fell silent."""

    nodes: tuple[NodeId, ...]
    reward: int
    gas: int

    @property
    def id(self) -> str:
        """Name the first node and the number of the others."""
        return node_id(self.nodes[0]) + (f" and {len(self.nodes) - 1} more" if len(self.nodes) > 1 else "")


Action = Propose | Reclaim | Expire | Close | Settle | CheckLiveness


@dataclass(frozen=True, slots=True)
class Skip:
    """Say why nothing is done about a unit ("0x.../3", "0x.../all") or a node ("node 7")."""

    id: str
    reason: str


def unit_id(job: JobId, index: int) -> str:
    """Return the name of a unit in actions, skips and logs."""
    return f"0x{job.hex()}/{'all' if index == ALL else index}"


def node_id(node: NodeId) -> str:
    """Return the name of a node in actions, skips and logs."""
    return f"node {node}"


def ids_of(action: Action) -> tuple[str, ...]:
    """Return the names of everything that an action touches."""
    if isinstance(action, Settle):
        return tuple(unit_id(job, index) for job, index in action.items)
    if isinstance(action, CheckLiveness):
        return tuple(node_id(node) for node in action.nodes)
    return (action.id,)


def delay_of(config: Config, name: str) -> int:
    """Return how many seconds this keeper leaves `name` to others: 0..jitter, differing by keeper and by name."""
    digest = keccak(bytes.fromhex(config.keeper.removeprefix("0x").rjust(40, "0")) + name.encode())
    return int.from_bytes(digest[:8], "big") % (config.jitter + 1)


def cost_of(gas: int, gas_price: int, config: Config) -> int:
    """Return what `gas` costs in base units of the market's asset, rounded up."""
    return formulas.ceil_div(gas * gas_price * config.coin_price, COIN)


def is_worth(reward: int, gas: int, gas_price: int, config: Config) -> bool:
    """Say whether a reward covers its gas, less the loss that the configuration allows."""
    return reward - cost_of(gas, gas_price, config) >= -config.max_loss


# ---- the decision ----


def decide(snapshot: Snapshot, config: Config, now: int) -> list[Action | Skip]:
    """Return what to send at chain second `now`, in order, and why everything else is left alone.

    The best paid jobs come first, since a proposal takes a node's slot from those after it. The result does not
    depend on the order of the snapshot's rows.
    """
    return list(_Cycle(snapshot, config, now).run())


@dataclass(frozen=True, slots=True)
class _Due:
    """A submitted unit that can be settled, with what it pays."""

    reward: int
    job: JobId
    index: int


class _Cycle:
    """One call of `decide`: what it has reserved, and the buckets that it has already looked up."""

    def __init__(self, snapshot: Snapshot, config: Config, now: int) -> None:
        self.snapshot, self.config, self.now = snapshot, config, now
        self.fleet, self.market = snapshot.nodes.fleet, snapshot.nodes.market
        self.reserved: dict[NodeId, list[int]] = {}
        self.buckets: dict[tuple[Ask, str, frozenset[int]], Bucket | None] = {}
        self.due: list[_Due] = []
        self.known: dict[NodeId, Node] = {}

    def run(self) -> Iterator[Action | Skip]:
        jobs = sorted(self.snapshot.jobs, key=lambda job: (-formulas.tip(job.terms), job.id))
        for job in jobs:
            for row in job.units:
                if formulas.has_live_proposal(row.unit, job.policy, self.now):
                    self.reserve(row.best.node, formulas.bond(job.terms, job.policy))
        for job in jobs:
            stopped = self.lapsed_twice(job)
            for row in sorted(job.units, key=lambda row: row.index):
                yield from self.unit(job, row, stopped)
            yield from self.rest(job, stopped)
        yield from self.settlements()
        yield from self.liveness()

    # ---- units ----

    def unit(self, job: JobRow, row: UnitRow, stopped: str) -> Iterator[Action | Skip]:
        name, unit = unit_id(job.id, row.index), row.unit
        if unit.state.terminal or unit.state == State.NONE:
            return
        if unit.state in (State.OPEN, State.BLOCKED):
            yield self.open(job, row, name, stopped)
        elif unit.state == State.RUNNING:
            yield self.running(job, row, name)
        elif unit.state == State.CLOSING:
            yield self.closing(job, row, name)
        elif unit.state == State.SUBMITTED:
            since = unit.mark + job.terms.challenge_window
            waits = self.waits(name, since, f"challenge window open until {since}")
            if waits:
                yield waits
            else:
                self.due.append(_Due(formulas.settle_reward(job.terms, self.now - since), job.id, row.index))
        else:
            yield Skip(name, "in dispute")

    def open(self, job: JobRow, row: UnitRow, name: str, stopped: str) -> Action | Skip:
        expired = self.expired(job, row.index, name)
        if expired:
            return expired
        if row.unit.state == State.BLOCKED:
            return Skip(name, "waits for its parents")
        return self.proposal(job, row, name, stopped, follows=False)

    def expired(self, job: JobRow, index: int, name: str) -> Action | Skip | None:
        since = formulas.expirable_from(job.terms, job.policy)
        if self.now < since:
            return None
        waits = self.waits(name, since, "")
        if waits:
            return waits
        gas = self.config.gas.expire
        reward = formulas.expire_reward(job.terms, self.now - since)
        return self.worth(name, reward, gas) or Expire(job.id, index, reward, gas)

    def running(self, job: JobRow, row: UnitRow, name: str) -> Action | Skip:
        unit = row.unit
        node = self.node(unit.node)
        beat = node.hot.beat if node else unit.started
        since = formulas.reclaimable_from(unit, beat, self.market.dead_after)
        waits = self.waits(name, since, f"runs on node {unit.node}, which may submit until {unit.mark}")
        if waits:
            return waits
        slash = formulas.slash_of(formulas.bond(job.terms, job.policy))
        reward, gas = formulas.reclaim_reward(job.terms, slash, self.now - since), self.config.gas.reclaim
        return self.worth(name, reward, gas) or Reclaim(job.id, row.index, unit.node, reward, gas)

    def closing(self, job: JobRow, row: UnitRow, name: str) -> Action | Skip:
        since = row.unit.mark
        waits = self.waits(name, since, f"cancelled with notice until {since}")
        if waits:
            return waits
        reward, gas = formulas.settle_reward(job.terms, self.now - since), self.config.gas.close
        return self.worth(name, reward, gas) or Close(job.id, row.index, reward, gas)

    # ---- matching ----

    def rest(self, job: JobRow, stopped: str) -> Iterator[Action | Skip]:
        """Yield what to do about the leases of an array that nobody has touched."""
        header = job.header
        if header is None or header.closed or header.touched >= job.terms.leases:
            return
        everything = unit_id(job.id, ALL)
        expired = self.expired(job, ALL, everything)
        if expired:
            yield expired
            return
        last = min(header.touched + self.config.burst, job.terms.leases)
        for index in range(header.touched, last):
            fresh = UnitRow(index, Unit(state=State.OPEN, started=max(header.opened, job.since)))
            name = unit_id(job.id, index)
            said = self.proposal(job, fresh, name, stopped, follows=index > header.touched, untouched=True)
            if isinstance(said, Skip):
                if index == header.touched:
                    yield said
                return
            yield said

    def proposal(
        self, job: JobRow, row: UnitRow, name: str, stopped: str, *, follows: bool, untouched: bool = False
    ) -> Action | Skip:
        terms, policy, now, config = job.terms, job.policy, self.now, self.config
        read = formulas.with_lapse(row.unit, row.best, policy, now)
        live = formulas.has_live_proposal(row.unit, policy, now)
        refusal = self.no_proposal(job, read, live, stopped)
        if refusal:
            return Skip(name, refusal)
        lapsed = row.unit.mark + policy.ack_time if row.unit.mark and not live else 0
        wait = None if follows else self.waits(name, max(read.started, lapsed), "")
        if wait:
            return wait
        match = self.match(job, row, read)
        if match is None:
            return Skip(name, "no node that fits has a free slot")
        if live and (match.key <= row.best.key or match.node == row.best.node):
            return Skip(name, f"node {row.best.node} is the best proposal until {read.mark}")
        gas = config.gas.improve if live else config.gas.propose_next if untouched else config.gas.propose
        own = live and row.best.payee.lower() == config.payee.lower()
        reward = 0 if own else formulas.tip(terms) * config.ack_bps // BPS
        refused = self.worth(name, reward, gas)
        if refused:
            return refused
        self.reserve(match.node, formulas.bond(terms, policy))
        return Propose(job.id, row.index, match.node, match.key, reward, gas, improves=live, follows=follows)

    def no_proposal(self, job: JobRow, read: Unit, live: bool, stopped: str) -> str:
        """Return why a unit (its lapse applied) takes no proposal of ours now, "" where it does."""
        terms, policy, soon = job.terms, job.policy, self.now + self.config.latency
        if terms.match_window == 0:
            return "open claim: nodes come by themselves"
        if job.header is not None and job.header.closed:
            return "its job is closed"
        if read.lapses >= formulas.MAX_LAPSES:
            return "two nodes let it lapse: claims only"
        if stopped:
            return stopped
        if live and self.now >= read.mark:
            return f"its node may ack until {read.mark + policy.ack_time}"
        if live and soon >= read.mark:
            return f"its window closes at {read.mark}, too soon to improve"
        if not formulas.has_time(terms, policy, soon):
            return (
                f"no time is left before its deadline; it can be expired from {formulas.expirable_from(terms, policy)}"
            )
        return ""

    def lapsed_twice(self, job: JobRow) -> str:
        """Return why the job is no longer proposed for: two different nodes let its units lapse. "" otherwise."""
        silent: set[int] = set()
        for row in job.units:
            read = formulas.with_lapse(row.unit, row.best, job.policy, self.now)
            if read.state == State.OPEN and read.lapses:
                silent.add(read.node)
                if read.lapses > 1:  # the node of the first lapse was barred from the second proposal
                    silent.add(0)
        return "two nodes let this job lapse" if len(silent) > 1 else ""

    def match(self, job: JobRow, row: UnitRow, read: Unit) -> Match | None:
        ask = formulas.ask_of(job.terms, job.policy)
        barred = frozenset({int(read.node), *self.full(ask)})
        key = (ask, job.terms.submitter, barred)
        if key not in self.buckets:
            self.buckets[key] = best_bucket(self.snapshot.nodes, ask, job.terms.submitter, sorted(barred))
        bucket = self.buckets[key]
        return None if bucket is None else draw(bucket, formulas.seed(job.id, row.index, row.unit.attempts))

    def reserve(self, node: NodeId, bond: int) -> None:
        held = self.reserved.setdefault(node, [0, 0])
        held[0] += 1
        held[1] += bond

    def full(self, ask: Ask) -> Iterator[int]:
        """Yield the nodes that could not ack one lease of the ask more, once they have acked what is proposed."""
        for number, (count, bonded) in self.reserved.items():
            node = self.node(number)
            if node is None:
                continue
            hot = node.hot
            no_slot = hot.busy + count >= node.offer.slots
            no_stake = node.stake - hot.bond - bonded < ask.bond
            if no_slot or no_stake or (ask.probation and not hot.seasoned):
                yield number

    # ---- many at once ----

    def settlements(self) -> Iterator[Action | Skip]:
        gas, price = self.config.gas, self.snapshot.gas_price
        due: list[_Due] = []
        for item in sorted(self.due, key=lambda item: (-item.reward, item.job, item.index)):
            if is_worth(item.reward, gas.settle_item, price, self.config):
                due.append(item)
            else:
                yield self.unworthy(unit_id(item.job, item.index), item.reward, gas.settle_item)
        for start in range(0, len(due), MAX_SETTLE):
            part = due[start : start + MAX_SETTLE]
            reward = sum(item.reward for item in part)
            need = gas.settle if len(part) == 1 else gas.settle_batch + gas.settle_item * len(part)
            if is_worth(reward, need, price, self.config):
                yield Settle(tuple((item.job, item.index) for item in part), reward, need)
            else:
                for item in part:
                    yield self.unworthy(unit_id(item.job, item.index), reward, need)

    def liveness(self) -> Iterator[Action | Skip]:
        gas, price, paid = self.config.gas, self.snapshot.gas_price, self.snapshot.liveness_fee
        beat, status = self.fleet.column("beat"), self.fleet.column("status")
        silent = (beat != 0) & (self.now - beat >= self.market.dead_after) & (self.fleet.column("exited") == 0)
        silent &= status & (HotStatus.LAPSED | HotStatus.EXITING) == 0
        batch: list[tuple[int, NodeId]] = []
        for row in np.flatnonzero(silent):
            number = NodeId(int(row) + 1)
            name = node_id(number)
            node = self.fleet.node(number)
            waits = self.waits(name, node.hot.beat + self.market.dead_after, "")
            fee = min(paid, node.stake - node.hot.bond)
            if waits:
                yield waits
            elif is_worth(fee, gas.liveness_item, price, self.config):
                batch.append((fee, number))
            else:
                yield self.unworthy(name, fee, gas.liveness_item)
        for start in range(0, len(batch), MAX_LIVENESS):
            part = batch[start : start + MAX_LIVENESS]
            reward = sum(fee for fee, _ in part)
            need = gas.liveness_batch + gas.liveness_item * len(part)
            if is_worth(reward, need, price, self.config):
                yield CheckLiveness(tuple(number for _, number in part), reward, need)
            else:
                for _, number in part:
                    yield self.unworthy(node_id(number), reward, need)

    # ---- helpers ----

    def node(self, number: NodeId) -> Node | None:
        if not 1 <= number <= len(self.fleet):
            return None
        if number not in self.known:
            self.known[number] = self.fleet.node(number)
        return self.known[number]

    def waits(self, name: str, since: int, early: str) -> Skip | None:
        """Return a Skip until `since` (for the reason `early`), and then until this keeper's delay has passed."""
        if self.now < since:
            return Skip(name, early)
        turn = since + delay_of(self.config, name)
        return Skip(name, f"left to other keepers until {turn}") if self.now < turn else None

    def worth(self, name: str, reward: int, gas: int) -> Skip | None:
        if is_worth(reward, gas, self.snapshot.gas_price, self.config):
            return None
        return self.unworthy(name, reward, gas)

    def unworthy(self, name: str, reward: int, gas: int) -> Skip:
        cost = cost_of(gas, self.snapshot.gas_price, self.config)
        return Skip(name, f"not worth its gas: earns {reward}, costs {cost}")


# ---- for people ----


def explain(snapshot: Snapshot, config: Config, now: int, job: JobId) -> Explanation:
    """Return, ready for JSON, what the keeper would do about one job at `now` and why, and how the fleet fits it.

    Raises KeyError where the snapshot has no such job: it ended, or was never posted.
    """
    row = next((row for row in snapshot.jobs if row.id == job), None)
    if row is None:
        raise KeyError(job.hex())
    prefix = f"0x{job.hex()}/"
    lines: list[UnitPlan] = []
    for said in decide(snapshot, config, now):
        if isinstance(said, Skip):
            if said.id.startswith(prefix):
                lines.append({"id": said.id, "does": "nothing", "why": said.reason})
        else:
            for name in ids_of(said):
                if name.startswith(prefix):
                    lines.append({"id": name, "does": verb_of(said), "why": _reason_of(said)})
    fits = gates(snapshot.nodes.fleet, row.terms, row.policy, now, snapshot.nodes.market)
    return {
        "job": f"0x{job.hex()}",
        "block": snapshot.block,
        "time": now,
        "leases": row.terms.leases,
        "touched": row.header.touched if row.header else 1,
        "units": [{"index": unit.index, "state": unit.unit.state.name} for unit in _by_index(row.units)],
        "keeper": lines,
        "nodes": {gate.name.lower(): count for gate, count in sorted(fits.items())},
        "nodes_that_fit": fits.get(Gate.FITS, 0),
    }


def verb_of(action: Action) -> str:
    """Return an action's name for logs, metrics and people."""
    if isinstance(action, Propose):
        return "improve" if action.improves else "propose"
    if isinstance(action, CheckLiveness):
        return "check_liveness"
    return type(action).__name__.lower()


def _reason_of(action: Action) -> str:
    who = f"node {action.node}, " if isinstance(action, Propose | Reclaim) else ""
    return f"{who}earns {action.reward}"


def _by_index(rows: Iterable[UnitRow]) -> list[UnitRow]:
    return sorted(rows, key=lambda row: row.index)
