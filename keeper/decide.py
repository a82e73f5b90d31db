"""Decide what to send for one block: a pure function of a snapshot, a configuration and the time.

Every unit that has not ended, the next untouched lease of every array and every node that fell silent yields an
action or a `Skip` with its reason, so that a user can see why nothing happens. An action is emitted only where the
contracts' guards hold at `now` (and, for a guard that ends, still after `latency`), where its reward is worth its
gas, and once this keeper's share of the jitter has passed: two keepers hash the same thing to different delays, so
that each takes part of the work first and the other all that is left. Source: SPEC sections "Units" and "Keeper".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from hearth.protocol import formulas
from hearth.protocol.formulas import Ask
from hearth.protocol.types import BPS, JobId, Node, NodeFlag, NodeId, State, Unit
from keeper.actions import (
    ALL,
    Action,
    CheckLiveness,
    Close,
    Expire,
    Propose,
    Reclaim,
    Settle,
    Skip,
    node_id,
    unit_id,
)
from keeper.config import Config
from keeper.match import Bucket, Winner, best_bucket, draw
from keeper.snapshot import JobRow, Snapshot, UnitRow

MAX_SETTLE: Final = 64
MAX_LIVENESS: Final = 128


def decide(snapshot: Snapshot, config: Config, now: int) -> list[Action | Skip]:
    """Return what to send at chain second `now`, in order, and why everything else is left alone.

    The best paid jobs come first, since a proposal takes a node's slot from those after it. The result does not
    depend on the order of the snapshot's rows.
    """
    return list(_Decision(snapshot, config, now).run())


@dataclass(frozen=True, slots=True)
class _Due:
    """A submitted unit that can be settled, with what it pays."""

    reward: int
    job: JobId
    index: int


class _Decision:
    """One call of `decide`: what it has reserved, and the buckets that it has already looked up."""

    def __init__(self, snapshot: Snapshot, config: Config, now: int) -> None:
        self.snapshot, self.config, self.now = snapshot, config, now
        self.fleet, self.immutables = snapshot.nodes.fleet, snapshot.nodes.immutables
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
            since = unit.submitted_at + job.terms.challenge_window
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
        return self.worth(name, reward, gas) or Expire(job.id, index, reward=reward, gas=gas)

    def running(self, job: JobRow, row: UnitRow, name: str) -> Action | Skip:
        unit = row.unit
        node = self.node(unit.node)
        beat = node.state.beat if node else unit.started
        since = formulas.reclaimable_from(unit, beat, self.immutables.dead_after)
        waits = self.waits(name, since, f"runs on node {unit.node}, which may submit until {unit.deadline_at}")
        if waits:
            return waits
        slash = formulas.slash_of(formulas.bond(job.terms, job.policy))
        reward, gas = formulas.reclaim_reward(job.terms, slash, self.now - since), self.config.gas.reclaim
        return self.worth(name, reward, gas) or Reclaim(job.id, row.index, unit.node, reward=reward, gas=gas)

    def closing(self, job: JobRow, row: UnitRow, name: str) -> Action | Skip:
        since = row.unit.deadline_at
        waits = self.waits(name, since, f"cancelled with notice until {since}")
        if waits:
            return waits
        reward, gas = formulas.settle_reward(job.terms, self.now - since), self.config.gas.close
        return self.worth(name, reward, gas) or Close(job.id, row.index, reward=reward, gas=gas)

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
        last = min(header.touched + self.burst(job), job.terms.leases)
        for index in range(header.touched, last):
            fresh = UnitRow(index, Unit(state=State.OPEN, started=max(header.opened, job.since)))
            name = unit_id(job.id, index)
            said = self.proposal(job, fresh, name, stopped, follows=index > header.touched, untouched=True)
            if isinstance(said, Skip):
                if index == header.touched:
                    yield said
                return
            yield said

    def burst(self, job: JobRow) -> int:
        """Return how many of an array's leases are proposed for at once: one, until a node has taken one of them.

        A stranger with an array and a node that never acks would else cost this keeper a burst of gas for one post,
        which only one that may lose so much takes the risk of.
        """
        assert job.header is not None
        taken = job.header.touched > len(job.units) or any(row.unit.attempts for row in job.units)
        gas = self.config.burst * self.config.gas.propose_next
        risk = self.config.cost_of(gas, self.snapshot.gas_price)
        return self.config.burst if taken or self.config.max_loss >= risk else 1

    def proposal(
        self, job: JobRow, row: UnitRow, name: str, stopped: str, *, follows: bool, untouched: bool = False
    ) -> Action | Skip:
        terms, policy, now, config = job.terms, job.policy, self.now, self.config
        read = formulas.with_lapse(row.unit, row.best, policy, now)
        live = formulas.has_live_proposal(row.unit, policy, now)
        refusal = self.no_proposal(job, read, live, stopped)
        if refusal:
            return Skip(name, refusal)
        lapsed = row.unit.window_end + policy.ack_time if row.unit.window_end and not live else 0
        wait = None if follows else self.waits(name, max(read.started, lapsed), "")
        if wait:
            return wait
        match = self.match(job, row, read)
        if match is None:
            excluded = f"; node {read.node} is excluded, since it had the unit last" if read.node else ""
            return Skip(name, f"no node can take it now{excluded}")
        if live and (match.key <= row.best.key or match.node == row.best.node):
            return Skip(name, f"node {row.best.node} is the best proposal until {read.window_end}")
        gas = config.gas.improve if live else config.gas.propose_next if untouched else config.gas.propose
        own = live and row.best.payee.lower() == config.payee.lower()
        reward = 0 if own else formulas.tip(terms) * config.ack_bps // BPS
        refused = self.worth(name, reward, gas)
        if refused:
            return refused
        self.reserve(match.node, formulas.bond(terms, policy))
        return Propose(job.id, row.index, match.node, match.key, live, follows, reward=reward, gas=gas)

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
        if live and self.now >= read.window_end:
            return f"its node may ack until {read.window_end + policy.ack_time}"
        if live and soon >= read.window_end:
            return f"its window closes at {read.window_end}, too soon to improve"
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

    def match(self, job: JobRow, row: UnitRow, read: Unit) -> Winner | None:
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
            state = node.state
            no_slot = state.busy + count >= node.offer.slots
            no_stake = node.stake - state.bond - bonded < ask.bond
            if no_slot or no_stake or (ask.probation and not state.seasoned):
                yield number

    # ---- many at once ----

    def settlements(self) -> Iterator[Action | Skip]:
        gas, price = self.config.gas, self.snapshot.gas_price
        due: list[_Due] = []
        for item in sorted(self.due, key=lambda item: (-item.reward, item.job, item.index)):
            if self.config.is_worth(item.reward, gas.settle_item, price):
                due.append(item)
            else:
                yield self.unworthy(unit_id(item.job, item.index), item.reward, gas.settle_item)
        for start in range(0, len(due), MAX_SETTLE):
            part = due[start : start + MAX_SETTLE]
            reward = sum(item.reward for item in part)
            need = gas.settle if len(part) == 1 else gas.settle_batch + gas.settle_item * len(part)
            if self.config.is_worth(reward, need, price):
                yield Settle(tuple((item.job, item.index) for item in part), reward=reward, gas=need)
            else:
                for item in part:
                    yield self.unworthy(unit_id(item.job, item.index), reward, need)

    def liveness(self) -> Iterator[Action | Skip]:
        gas, price, paid = self.config.gas, self.snapshot.gas_price, self.snapshot.liveness_fee
        beat, status = self.fleet.column("beat"), self.fleet.column("status")
        silent = (beat != 0) & (self.now - beat >= self.immutables.dead_after) & (self.fleet.column("exited") == 0)
        silent &= status & (NodeFlag.LAPSED | NodeFlag.EXITING) == 0
        batch: list[tuple[int, NodeId]] = []
        for row in np.flatnonzero(silent):
            number = NodeId(int(row) + 1)
            name = node_id(number)
            node = self.fleet.node(number)
            waits = self.waits(name, node.state.beat + self.immutables.dead_after, "")
            fee = min(paid, node.stake - node.state.bond)
            if waits:
                yield waits
            elif self.config.is_worth(fee, gas.liveness_item, price):
                batch.append((fee, number))
            else:
                yield self.unworthy(name, fee, gas.liveness_item)
        for start in range(0, len(batch), MAX_LIVENESS):
            part = batch[start : start + MAX_LIVENESS]
            reward = sum(fee for fee, _ in part)
            need = gas.liveness_batch + gas.liveness_item * len(part)
            if self.config.is_worth(reward, need, price):
                yield CheckLiveness(tuple(number for _, number in part), reward=reward, gas=need)
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
        turn = since + self.config.delay_of(name)
        return Skip(name, f"left to other keepers until {turn}") if self.now < turn else None

    def worth(self, name: str, reward: int, gas: int) -> Skip | None:
        if self.config.is_worth(reward, gas, self.snapshot.gas_price):
            return None
        return self.unworthy(name, reward, gas)

    def unworthy(self, name: str, reward: int, gas: int) -> Skip:
        cost = self.config.cost_of(gas, self.snapshot.gas_price)
        return Skip(name, f"not worth its gas: earns {reward}, costs {cost}")
