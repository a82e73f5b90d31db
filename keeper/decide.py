"""Decide what to send for one block: a pure function of a snapshot, a configuration and the time.

Every unit that has not ended, the next untouched lease of every array and every node that fell silent yields an
action or a `Skip` with its reason, so that a user can see why nothing happens. An action is emitted only where the
contracts' guards hold at `now` (and, for a guard that ends, still after `latency`), where its reward is worth its
gas, and once this keeper's share of the jitter has passed: two keepers hash the same thing to different delays, so
that each takes part of the work first and the other all that is left. What proposals may be lost to a job or a node is
bounded by `keeper.trust`. Source: protocol.md "Units", keeper-program.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from hearth.protocol import formulas, parents
from hearth.protocol.formulas import Ask
from hearth.protocol.gas import (
    CLOSE_GAS,
    EXPIRE_GAS,
    IMPROVE_GAS,
    LIVENESS_BATCH_GAS,
    LIVENESS_ITEM_GAS,
    PROPOSE_GAS,
    PROPOSE_NEXT_GAS,
    RECLAIM_GAS,
    SETTLE_ITEM_GAS,
    paid_checkpoints_gas,
    settling_batches,
    settling_gas,
    unlocking_gas,
)
from hearth.protocol.parents import Ended, Progress
from hearth.protocol.types import BPS, JobId, Node, NodeFlag, NodeId, State, Terms, TermsFlag, Unit
from keeper.actions import (
    ALL,
    Action,
    CheckLiveness,
    Close,
    Expire,
    Propose,
    Reclaim,
    Rest,
    Settle,
    Skip,
    Unlock,
    name_of,
    node_id,
    unit_id,
)
from keeper.config import Config
from keeper.dependents import hopes
from keeper.match import Bucket, Winner, best_bucket, draw
from keeper.snapshot import JobRow, Snapshot, UnitRow
from keeper.trust import JOB_PATIENCE, NODE_PATIENCE, Record

MAX_LIVENESS: Final = 128


def decide(snapshot: Snapshot, config: Config, now: int) -> list[Action | Skip]:
    """Return what to send at chain second `now`, in order, and why everything else is left alone.

    The best paid jobs come first, since a proposal takes a node's slot from those after it. The result does not
    depend on the order of the snapshot's rows.
    """
    return list(_Decision(snapshot, config, now).run())


def _why_unsettled(terms: Terms, unit: Unit) -> str:
    """Say why a unit that has a result cannot be settled yet."""
    if unit.state == State.DISPUTED:
        return "its judge holds it"
    if terms.flags & TermsFlag.PROVEN:
        return "its judge may confirm it"
    if terms.challenge_window:
        return "its judge may dispute it"
    return "the result of a node on probation"


@dataclass(frozen=True, slots=True)
class _Due:
    """A submitted unit that can be settled, with what it pays, and the gas that it uses beside any other's."""

    reward: int
    job: JobId
    index: int
    more_gas: int


class _Decision:
    """One call of `decide`: what it has reserved, and the buckets that it has already looked up."""

    def __init__(self, snapshot: Snapshot, config: Config, now: int) -> None:
        self.snapshot, self.config, self.now = snapshot, config, now
        self.fleet, self.immutables = snapshot.nodes.fleet, snapshot.nodes.immutables
        self.reserved: dict[NodeId, list[int]] = {}
        self.buckets: dict[tuple[Ask, str, frozenset[int]], Bucket | None] = {}
        self.due: list[_Due] = []
        self.known: dict[NodeId, Node] = {}
        self.nodes = dict(snapshot.records)
        self.jobs = {job.id: job.record for job in snapshot.jobs}
        self.waiting: Counter[NodeId | JobId] = Counter()
        """This keeper's proposals that may still be acked, by node and by job."""
        self.resting: dict[NodeId, int] = {}
        self.hopes = hopes(snapshot, config, now)

    def run(self) -> Iterator[Action | Skip]:
        jobs = sorted(self.snapshot.jobs, key=lambda job: (-formulas.tip(job.terms), job.id))
        for job in jobs:
            for row in job.units:
                self.take_stock(job, row)
        yield from self.rests()
        # Before any lease is taken back: the silence of a node that runs nothing any more pays nothing.
        yield from self.liveness()
        for job in jobs:
            for row in sorted(job.units, key=lambda row: row.index):
                yield from self.unit(job, row)
            yield from self.rest(job)
        yield from self.settlements()

    # ---- units ----

    def unit(self, job: JobRow, row: UnitRow) -> Iterator[Action | Skip]:
        name, unit = unit_id(job.id, row.index), row.unit
        if unit.state.terminal or unit.state == State.NONE:
            return
        if unit.state in (State.OPEN, State.BLOCKED):
            yield self.open(job, row, name)
        elif unit.state == State.RUNNING:
            yield self.running(job, row, name)
        elif unit.state == State.CLOSING:
            yield self.closing(job, row, name)
        else:
            said = self.settlement(job, row, name)
            if said is not None:
                yield said

    def settlement(self, job: JobRow, row: UnitRow, name: str) -> Action | Skip | None:
        """Decide about a unit that has a result; None where it is settled together with others."""
        since = formulas.settleable_from(job.terms, row.unit)
        waits = self.waits(name, since, f"{_why_unsettled(job.terms, row.unit)}, to be settled from {since} on")
        if waits:
            return waits
        if not job.terms.flags & TermsFlag.PROVEN:
            reward = formulas.settle_reward(job.terms, self.now - since)
            self.due.append(_Due(reward, job.id, row.index, paid_checkpoints_gas(row.unit)))
            return None
        # Without its proof it ends as a lease that is reclaimed does.
        slash = formulas.slash_of(job.terms)
        reward = formulas.reclaim_reward(job.terms, slash, self.now - since)
        return self.worth(name, reward, RECLAIM_GAS) or Settle(((job.id, row.index),), reward=reward, gas=RECLAIM_GAS)

    def open(self, job: JobRow, row: UnitRow, name: str) -> Action | Skip:
        expired = self.expired(job, row, name)
        if expired:
            return expired
        if row.unit.state == State.BLOCKED:
            return self.blocked(job, row.index, name, row.unit.started)
        return self.proposal(job, row, name, follows=False)

    def blocked(self, job: JobRow, index: int, name: str, since: int) -> Action | Skip:
        """Decide about a job that waits for its parents since `since`: a unit or, for index ALL, an array."""
        seen = [self.snapshot.parents.get(parent.job) for parent in job.parents]
        read = [one for one in seen if one is not None]
        if len(read) < len(seen):
            return Skip(name, "waits for its parents, which are read in a later cycle")
        found = parents.progress(job.parents, [one.word for one in read])
        if found is Progress.WAITS:
            return Skip(name, f"waits for {self.not_ended(job)}")
        expirable = formulas.expirable_from(job.terms)
        if self.now + self.config.latency >= expirable:
            return Skip(name, f"no time is left; it can be expired from {expirable}")
        # A parent that goes on, as an array's header does with each unit, says nothing of when the others ended.
        ends = [one.since for one in read if parents.ended(one.word) is not Ended.NOT_YET]
        waits = self.waits(name, max([since, *ends]), "")
        if waits:
            return waits
        reward, gas = formulas.unlock_fee(job.terms), unlocking_gas(len(job.parents))
        opens = found is Progress.OPENS
        return self.worth(name, reward, gas) or Unlock(job.id, index, job.parents, opens, reward=reward, gas=gas)

    def not_ended(self, job: JobRow) -> str:
        """Name the parents of a job that have not ended."""
        words = self.snapshot.parents
        running = [one.job for one in job.parents if parents.ended(words[one.job].word) is Ended.NOT_YET]
        return name_of([f"0x{one.hex()}" for one in running])

    def expired(self, job: JobRow, row: UnitRow | None, name: str) -> Action | Skip | None:
        """Decide about the end of an open unit, or of an array's untouched ones, whose time is over; None before it."""
        terms = job.terms if row is None else formulas.topped(job.terms, row.unit)
        since = formulas.expirable_from(terms)
        if self.now < since:
            return None
        waits = self.waits(name, since, "")
        if waits:
            return waits
        index, unit = (ALL, None) if row is None else (row.index, row.unit)
        own = formulas.expire_reward(job.terms, unit, self.now - since)
        if not own and job.id not in self.hopes:
            return Skip(name, "its end pays nobody: its submitter cancels it")
        reward = own + self.hopes.get(job.id, 0)
        return self.worth(name, reward, EXPIRE_GAS) or Expire(job.id, index, reward=reward, gas=EXPIRE_GAS)

    def running(self, job: JobRow, row: UnitRow, name: str) -> Action | Skip:
        unit = row.unit
        node = self.node(unit.node)
        beat = node.state.beat if node else unit.started
        since = formulas.reclaimable_from(unit, beat, self.immutables.dead_after)
        waits = self.waits(name, since, f"runs on node {unit.node}, which may submit until {unit.deadline_at}")
        if waits:
            return waits
        slash = formulas.slash_of(job.terms)
        reward = formulas.reclaim_reward(job.terms, slash, self.now - since)
        return self.worth(name, reward, RECLAIM_GAS) or Reclaim(
            job.id, row.index, unit.node, reward=reward, gas=RECLAIM_GAS
        )

    def closing(self, job: JobRow, row: UnitRow, name: str) -> Action | Skip:
        since = row.unit.deadline_at
        waits = self.waits(name, since, f"cancelled with notice until {since}")
        if waits:
            return waits
        reward = formulas.settle_reward(job.terms, self.now - since)
        return self.worth(name, reward, CLOSE_GAS) or Close(job.id, row.index, reward=reward, gas=CLOSE_GAS)

    # ---- matching ----

    def rest(self, job: JobRow) -> Iterator[Action | Skip]:
        """Yield what to do about the leases of an array that nobody has touched."""
        header = job.header
        if header is None or header.closed or header.touched >= job.terms.leases:
            return
        everything = unit_id(job.id, ALL)
        expired = self.expired(job, None, everything)
        if expired:
            yield expired
            return
        if header.waiting:
            yield self.blocked(job, ALL, everything, header.opened)
            return
        last = min(header.touched + self.config.burst, job.terms.leases)
        for index in range(header.touched, last):
            fresh = UnitRow(index, Unit(state=State.OPEN, started=max(header.opened, job.since)))
            name = unit_id(job.id, index)
            said = self.proposal(job, fresh, name, follows=index > header.touched, untouched=True)
            if isinstance(said, Skip):
                if index == header.touched:
                    yield said
                return
            yield said

    def proposal(
        self, job: JobRow, row: UnitRow, name: str, *, follows: bool, untouched: bool = False
    ) -> Action | Skip:
        terms, now, config = job.terms, self.now, self.config
        read = formulas.with_lapse(terms, row.unit, row.best, now)
        live = formulas.has_live_proposal(terms, row.unit, now)
        own = live and row.own
        refusal = self.no_proposal(job, read, live)
        if refusal:
            return Skip(name, refusal)
        refused = self.distrusts(job, name, own)
        if refused:
            return refused
        lapsed = 0 if live else formulas.lapses_at(terms, row.unit)
        wait = None if follows else self.waits(name, max(read.started, lapsed), "")
        if wait:
            return wait
        match = self.match(job, row, read)
        if match is None:
            return self.unmatched(job, row, read, name)
        if live and (match.key <= row.best.key or match.node == row.best.node):
            return Skip(name, f"node {row.best.node} is the best proposal until {read.window_end}")
        gas = IMPROVE_GAS if live else PROPOSE_NEXT_GAS if untouched else PROPOSE_GAS
        reward = 0 if own else formulas.tip(terms) * config.ack_bps // BPS
        refused = self.worth(name, reward, gas)
        if refused:
            return refused
        self.reserve(match.node, formulas.bond(terms))
        self.waiting.update((job.id, match.node))
        return Propose(job.id, row.index, match.node, match.key, live, follows, reward=reward, gas=gas)

    def no_proposal(self, job: JobRow, read: Unit, live: bool) -> str:
        """Return why a unit (its lapse applied) takes no proposal of ours now, "" where it does."""
        terms, soon = formulas.topped(job.terms, read), self.now + self.config.latency
        if terms.match_window == 0:
            return "open claim: nodes come by themselves"
        if terms.replicas > 1:
            return "replicas: only their judge knows who may run one, so nodes come by themselves once claims open"
        if job.header is not None and job.header.closed:
            return "its job is closed"
        if read.lapses >= formulas.MAX_LAPSES:
            return "two nodes let it lapse: claims only"
        if live and self.now >= read.window_end:
            return f"its node may ack until {formulas.lapses_at(terms, read)}"
        if live and soon >= read.window_end:
            return f"its window closes at {read.window_end}, too soon to improve"
        answered_by = (read.window_end if live else soon + terms.match_window) + formulas.policy_of(terms).ack_time
        if not formulas.has_time(terms, answered_by):
            return (
                "no time is left for an ack before its deadline; "
                f"it can be expired from {formulas.expirable_from(terms)}"
            )
        return ""

    def match(self, job: JobRow, row: UnitRow, read: Unit) -> Winner | None:
        """Return the node to propose: of a job that has lost proposals, one that owes none where one fits."""
        shut = {*self.resting, *self.busy_nodes(), *self.full(formulas.ask_of(job.terms)), int(read.node)}
        if self.jobs[job.id].score < 0:
            owing = {number for number, record in self.nodes.items() if record.score < 0}
            found = self.winner(job, row, shut | owing)
            if found is not None:
                return found
        return self.winner(job, row, shut)

    def winner(self, job: JobRow, row: UnitRow, barred: Iterable[int]) -> Winner | None:
        ask = formulas.ask_of(job.terms)
        key = (ask, job.terms.submitter, frozenset(barred))
        if key not in self.buckets:
            self.buckets[key] = best_bucket(self.snapshot.nodes, ask, job.terms.submitter, sorted(key[2]))
        bucket = self.buckets[key]
        return None if bucket is None else draw(bucket, formulas.seed(job.id, row.index, row.unit.attempts))

    def unmatched(self, job: JobRow, row: UnitRow, read: Unit, name: str) -> Skip:
        """Say why no node is proposed, and of one that fits but is not trusted now, until when."""
        last = "let it pass, and can only claim it" if read.lapses else "is excluded, since it had the unit last"
        why = "no node can be proposed now" + (f"; node {read.node} {last}" if read.node else "")
        fits = self.winner(job, row, {*self.full(formulas.ask_of(job.terms)), int(read.node)})
        if fits is None:
            return Skip(name, why)
        if fits.node in self.resting:
            return Skip(name, f"{why}; {self.rest_of(fits.node)}")
        return Skip(name, f"{why}; node {fits.node} has {self.waiting[fits.node]} proposals of ours to answer first")

    # ---- trust ----

    def take_stock(self, job: JobRow, row: UnitRow) -> None:
        """Count a unit's proposal: as a slot that it will take, and, where it is ours, as waiting or lapsed."""
        if row.unit.state != State.OPEN or not row.unit.window_end:
            return
        node, until = row.best.node, formulas.lapses_at(job.terms, row.unit)
        live = self.now < until
        if live:
            self.reserve(node, formulas.bond(job.terms))
        if row.own and live:
            self.waiting.update((job.id, node))
        elif row.own:
            self.jobs[job.id] = self.jobs[job.id].lost(until)
            self.nodes[node] = self.nodes.get(node, Record()).lost(until)

    def rests(self) -> Iterator[Skip]:
        """Yield the ready nodes that are left out, and remember them."""
        for number, record in sorted(self.nodes.items()):
            until = record.rests_until(NODE_PATIENCE)
            if self.now < until:
                self.resting[number] = until
        for number in self.snapshot.nodes.ids[np.isin(self.snapshot.nodes.ids, list(self.resting))]:
            yield Rest(node_id(NodeId(int(number))), self.rest_of(NodeId(int(number))))

    def rest_of(self, node: NodeId) -> str:
        more, until = -self.nodes[node].score, self.resting[node]
        return f"node {node} let {more} more of our proposals lapse than it acked: none until {until}"

    def room(self, record: Record) -> int:
        """Return how many proposals of one job, or of one node, may wait at once.

        Who may lose a burst of gas takes that risk with all of whom nothing bad is known.
        """
        risk = self.config.cost_of(self.config.burst * PROPOSE_NEXT_GAS, self.snapshot.gas_price)
        if record.score >= 0 and self.config.max_loss >= risk:
            return max(self.config.burst, record.room)
        return record.room

    def distrusts(self, job: JobRow, name: str, own: bool) -> Skip | None:
        """Return why no proposal is risked on a job now; `own`: it would replace one of ours."""
        record, waiting = self.jobs[job.id], self.waiting[job.id] - own
        until = record.rests_until(JOB_PATIENCE)
        if self.now < until:
            return Rest(name, f"its job lost {-record.score} more of our proposals than it acked: none until {until}")
        if waiting >= self.room(record):
            return Skip(name, f"{waiting} proposals of ours for its job are to be acked first")
        return None

    def busy_nodes(self) -> Iterator[NodeId]:
        """Yield the nodes that have as many proposals of ours to answer as they are trusted with."""
        for number in self.reserved:
            if self.waiting[number] >= self.room(self.nodes.get(number, Record())):
                yield number

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
            newcomer = state.seasoned or formulas.may_newcomer(ask, state.bond + bonded)
            if no_slot or no_stake or not newcomer:
                yield number

    # ---- many at once ----

    def settlements(self) -> Iterator[Action | Skip]:
        price = self.snapshot.gas_price
        due: list[_Due] = []
        for item in sorted(self.due, key=lambda item: (-item.reward, item.job, item.index)):
            need = SETTLE_ITEM_GAS + item.more_gas
            if self.config.is_worth(item.reward, need, price):
                due.append(item)
            else:
                yield self.unworthy(unit_id(item.job, item.index), item.reward, need)
        for part in settling_batches(due, lambda item: item.more_gas):
            reward = sum(item.reward for item in part)
            need = settling_gas(len(part)) + sum(item.more_gas for item in part)
            if self.config.is_worth(reward, need, price):
                yield Settle(tuple((item.job, item.index) for item in part), reward=reward, gas=need)
            else:
                for item in part:
                    yield self.unworthy(unit_id(item.job, item.index), reward, need)

    def liveness(self) -> Iterator[Action | Skip]:
        price, paid = self.snapshot.gas_price, self.snapshot.liveness_fee
        beat, status = self.fleet.column("beat"), self.fleet.column("status")
        silent = (beat != 0) & (self.now - beat >= self.immutables.dead_after) & (self.fleet.column("exited") == 0)
        silent &= status & (NodeFlag.LAPSED | NodeFlag.EXITING) == 0
        batch: list[tuple[int, NodeId]] = []
        for row in np.flatnonzero(silent):
            number = NodeId(int(row) + 1)
            name = node_id(number)
            node = self.fleet.node(number)
            waits = self.waits(name, node.state.beat + self.immutables.dead_after, "")
            fee = formulas.liveness_fee(node, paid)
            if waits:
                yield waits
            elif not fee:
                yield Skip(name, "silent, and recording it pays nothing")
            elif self.config.is_worth(fee, LIVENESS_ITEM_GAS, price):
                batch.append((fee, number))
            else:
                yield self.unworthy(name, fee, LIVENESS_ITEM_GAS)
        for start in range(0, len(batch), MAX_LIVENESS):
            part = batch[start : start + MAX_LIVENESS]
            reward = sum(fee for fee, _ in part)
            need = LIVENESS_BATCH_GAS + LIVENESS_ITEM_GAS * len(part)
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
