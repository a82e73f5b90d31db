"""Random histories of the whole market beside `tests.kit.model`: words, credits and reasons, after every step.

Each rule asks the model first: where it refuses, the contract must refuse with the same reason and change nothing;
where it does not, the contract must succeed and end in the model's state. Invariants (threats.md "Invariants") then
read both. At the end of a history every unit is brought to an end by calls that anyone may make, everybody withdraws,
and Escrow holds what was burnt and donated, to the unit.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, ClassVar

import pytest
from eth_utils import to_checksum_address
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import (
    MAX_PARENTS,
    SENTINEL,
    Accused,
    Best,
    Billing,
    Gate,
    JobId,
    Kept,
    NodeId,
    Outcome,
    Runtime,
    State,
    TermsFlag,
    Unit,
    UnitFlag,
    Verdict,
)
from tests.kit import world as w
from tests.kit.evm import START, Contract, Evm, Reverted, reverts
from tests.kit.model import Job, Model, Refusal
from tests.kit.vault import share

pytestmark = pytest.mark.stateful

# Which state may follow which (protocol.md "States"); OPEN to OPEN is a proposal, RUNNING to RUNNING a top-up.
ALLOWED = {
    (State.NONE, State.OPEN),
    (State.NONE, State.BLOCKED),
    (State.BLOCKED, State.OPEN),
    (State.BLOCKED, State.CANCELLED),
    (State.BLOCKED, State.EXPIRED),
    (State.OPEN, State.OPEN),
    (State.OPEN, State.RUNNING),
    (State.OPEN, State.CANCELLED),
    (State.OPEN, State.EXPIRED),
    (State.RUNNING, State.RUNNING),
    (State.RUNNING, State.SUBMITTED),
    (State.RUNNING, State.SETTLED),
    (State.RUNNING, State.OPEN),
    (State.RUNNING, State.REFUNDED),
    (State.RUNNING, State.CLOSING),
    (State.CLOSING, State.SUBMITTED),
    (State.CLOSING, State.SETTLED),
    (State.CLOSING, State.CANCELLED),
    (State.SUBMITTED, State.SETTLED),
    (State.SUBMITTED, State.REFUNDED),
    (State.SUBMITTED, State.DISPUTED),
    (State.DISPUTED, State.SUBMITTED),
    (State.DISPUTED, State.SETTLED),
    (State.DISPUTED, State.REFUNDED),
}
# How often each action of the machine is taken.
WEIGHTS = {
    "wait": 7,
    "wait_long": 3,
    "everybody_beats": 6,
    "beat": 2,
    "register": 2,
    "add_stake": 2,
    "owner_acts": 6,
    "exit_finish": 4,
    "check_liveness": 3,
    "post": 10,
    "post_again": 1,
    "propose": 16,
    "ack": 14,
    "claim": 14,
    "checkpoint": 14,
    "top_up": 8,
    "hand_over": 12,
    "submit": 22,
    "finish": 16,
    "decline": 10,
    "give_up": 5,
    "settle": 8,
    "settle_late": 12,
    "dispute": 24,
    "rule": 22,
    "settle_batch": 3,
    "accept": 3,
    "cancel": 11,
    "close": 16,
    "reclaim": 8,
    "expire": 9,
    "unlock": 18,
    "withdraw": 3,
    "donate": 1,
    "pause": 1,
}
# What must have succeeded as often as each move is seen.
SEEN = ("checkpoint", "top_up", "ack to resume", "claim to resume")
LATE = 2**31 + 2**30
# What `make test` plays on one asset, and how often each move is then seen; what `make deep` plays on the other.
HISTORIES, LEAST = 120, 3
DEEP_HISTORIES, DEEP_LEAST = 360, 20
FUZZ_HISTORIES, FUZZ_LEAST = 2_000, 100
STEPS = 120
POLICY = replace(w.POLICY, fresh_delay=60, min_challenge_window=60)
FULL = os.environ.get("HEARTH_HYPOTHESIS") == "fuzz"
# A mutant is tried on a few histories, too few to count what they reach.
SHORT = os.environ.get("HEARTH_HYPOTHESIS") == "mutation"
SHORT_HISTORIES = 15


def _time(data: Random) -> dict[str, Any]:
    """Draw how a job's seconds are billed; of metered ones most may checkpoint, and seldom one that may not."""
    billing = Billing(data.choice([0, 1, 2, 2, 2]))
    every = data.choice([0, 60, 60, 60, 2**24 - 1]) if billing == Billing.METERED else 0
    if data.randint(0, 59) == 0:
        every = data.choice([59, 60])
    return {"billing": billing, "checkpoint_every": every}


class Tally:
    """What the rules of one machine class came to, over all of its histories."""

    def __init__(self) -> None:
        self.attempted: Counter[str] = Counter()
        self.succeeded: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.visits: Counter[tuple[State, State]] = Counter()
        # Of kept checkpoints: paid to an owner, or nobody's since he left.
        self.checkpoints: Counter[str] = Counter()
        # Of finishes that asked for the next unit: whether they got it.
        self.finished: Counter[str] = Counter()
        self.endings = 0
        self.longest_ending = 0

    def report(self) -> str:
        """Return the table that docs/ASSURANCE.md quotes."""
        rows = [f"{name:16} {self.succeeded[name]:6} of {n:6}" for name, n in sorted(self.attempted.items())]
        moves = [f"{a.name} -> {b.name}: {n}" for (a, b), n in sorted(self.visits.items())]
        reasons = [f"{n:6} {reason}" for reason, n in sorted(self.refused.items(), key=lambda one: (-one[1], one[0]))]
        return "\n".join(
            [
                *rows,
                *reasons,
                *moves,
                f"checkpoints of results: {self.checkpoints['paid']} paid, {self.checkpoints['left']} of who left",
                f"finishes that claim: {self.finished['took the next']} got it, {self.finished['took none']} not",
                f"histories ended: {self.endings}, most calls to an end: {self.longest_ending}",
            ]
        )


class MarketMachine(RuleBasedStateMachine):
    """The machine; the two classes at the end of the file bind it to an asset."""

    erc20: ClassVar[bool] = False
    tally: ClassVar[Tally]

    @initialize(history=st.integers(0, 2**64 - 1))
    def start(self, history: int) -> None:
        # Every other history is of a time whose highest bit in a lane of 32 is set.
        self.w = w.World(Evm(now=LATE if history % 2 else START), erc20=self.erc20, policy=POLICY)
        evm = self.w.evm
        self.submitters = [self.w.submitter, evm.account("submitter 2")]
        self.owners = [self.w.owner, evm.account("owner 2")]
        self.operators = [self.w.operator, evm.account("operator 2"), evm.account("operator 3")]
        self.keepers = [self.w.keeper, evm.account("keeper 2")]
        self.other_judge = evm.deploy("mocks/MockJudge", self.w.jobs)
        self.m = Model(POLICY, w.NODES, self.w.treasury, words.pack_policy(POLICY), evm.now)
        self.donated = 0
        self.history, self.steps = history, 0
        self.jobs: list[Job] = []
        self.compared: dict[tuple[JobId, int], tuple[Unit, dict[int, Kept]]] = {}
        for i, operator in enumerate(self.operators):
            self._register(self.owners[i % 2], operator, stake=(60 + 50 * i) * w.ETHER, slots=1 + 2 * i)
        # Only what is no lease of a newcomer is finished: without help few nodes would get that far.
        for node in (NodeId(2), NodeId(3)):
            self._season(node)
        first = Random(0)
        for _ in range(4):
            self.post(first)

    # ---- helpers ----

    def _register(self, owner: str, operator: str, *, stake: int, slots: int) -> None:
        offer = replace(w.OFFER, slots=slots, ask=(20 + 5 * slots) * 10**18)
        node = self.m.register(owner, operator, offer, stake)
        assert (
            self.w.register(owner=owner, operator=operator, stake=stake, beat=False, slots=slots, ask=offer.ask) == node
        )
        self.m.beat(operator, node)
        self.w.nodes.send.beat(node, sender=operator)

    def _season(self, node: NodeId) -> None:
        """End a node's probation by the units of an array, all settled at their time."""
        operator, rate = self.m.nodes[node].operator, self.m.nodes[node].offer.ask
        terms = self.w.terms(units=5, ceiling=4 * rate, max_seconds=2_000)
        self.w.post(terms)
        self.m.now = self.w.evm.now
        self.m.post(self.w.submitter, terms, self.w.id_of(terms))
        job = self.m.jobs[self.w.id_of(terms)]
        for at in range(terms.leases):
            self._season_by(operator, node, job, at)
        assert self.m.nodes[node].state.seasoned

    def _season_by(self, operator: str, node: NodeId, job: Job, at: int) -> None:
        self._alike(
            lambda: self.m.claim(operator, job, at, node), lambda: self.w.claim(job.terms, node, at, sender=operator)
        )
        self._alike(
            lambda: self.m.submit(operator, job, at, Outcome.OK, 0),
            lambda: self.w.submit(job.terms, at, sender=operator),
        )
        self.w.evm.warp(POLICY.fresh_delay)
        self._alike(lambda: self.m.settle(self.w.keeper, job, at), lambda: self.w.settle(job.terms, at))

    def _alike(self, modelled: Callable[[], Any], real: Callable[[], Any]) -> None:
        """Make a call that succeeds on both sides."""
        self.m.now = self.w.evm.now
        modelled()
        real()

    def _try(self, name: str, modelled: Callable[[], Any], real: Callable[[], Any]) -> bool:
        """Run one call on both sides; return whether it succeeded."""
        self.tally.attempted[name] += 1
        self.m.now = self.w.evm.now
        before = self.m.visits.copy()
        try:
            modelled()
        except Refusal as refusal:
            self.m.visits = before
            self.tally.refused[f"{name}: {refusal.reason}"] += 1
            # A payer's tokens are minted and approved as part of the call, so its refusal is no stand-still.
            pays = self.erc20 and name in ("post", "post after others", "register", "add_stake", "top_up")
            checked = self.tally.attempted[name] % 16 == 0 and not pays
            state = self.w.evm.state_hash() if checked else ""
            try:
                real()
            except Reverted as reverted:
                assert reverted.reason == refusal.reason, f"{name}: {reverted.reason!r}, model {refusal.reason!r}"
            else:
                raise AssertionError(f"{name} succeeded; the model refuses: {refusal.reason}") from None
            assert not checked or self.w.evm.state_hash() == state, f"{name} was refused but changed state"
            return False
        real()
        self.tally.succeeded[name] += 1
        moved = self.m.visits - before
        for move, count in moved.items():
            assert move in ALLOWED, move
            self.tally.visits[move] += count
        return True

    def _unit(self, data: Random, wanted: tuple[State, ...], *, fresh: bool = False) -> tuple[Job, int] | None:
        """Draw a unit, most of the time one in a wanted state; `fresh` adds the arrays' next untouched ones."""
        everything = [(job, at) for job in self.jobs for at in job.units]
        fitting = [(job, at) for job, at in everything if job.units[at].state in wanted]
        if fresh:
            waits = State.BLOCKED in wanted or data.randint(0, 9) == 0
            fitting += [
                (job, SENTINEL) for job in self.jobs if self._untouched(job) and (waits or not self.m.is_blocked(job))
            ]
        pool = fitting if data.randint(0, 9) else everything
        return data.choice(pool) if pool else None

    def _open_unit(self, data: Random) -> tuple[Job, int] | None:
        """Draw an OPEN unit, half of the time one that a lost lease left a checkpoint of."""
        kept = [(job, at) for job in self.jobs for at in job.kept if job.units[at].state == State.OPEN]
        return data.choice(kept) if kept and data.randint(0, 1) else self._unit(data, (State.OPEN,), fresh=True)

    def _ready(self, data: Random) -> None:
        """Let every operator beat, most of the time: a dead network refuses everything alike."""
        if data.randint(0, 5):
            self.everybody_beats(data)

    @staticmethod
    def _untouched(job: Job) -> int:
        return 0 if job.header is None or job.header.closed else job.terms.leases - job.header.touched

    @classmethod
    def _unended(cls, job: Job) -> bool:
        return bool(cls._untouched(job)) or not all(unit.state.terminal for unit in job.units.values())

    def _operator_of(self, data: Random, job: Job, at: int) -> str:
        """Draw the operator of a unit's node, seldom somebody else."""
        node = self.m.nodes.get(job.units[at].node) if at in job.units else None
        if node is None or data.randint(0, 9) == 0:
            return data.choice([*self.operators, *self.submitters])
        return node.operator

    # ---- the only rule ----

    @rule(seed=st.integers(0, 2**64 - 1))
    def act(self, seed: int) -> None:
        """Take one weighted action: hypothesis would switch whole rules off in most histories."""
        # Seeds are often small ones, over and over: each step of each history makes something else of them.
        self.steps += 1
        data = Random(f"{self.history} {self.steps} {seed}")
        name = data.choices(list(WEIGHTS), weights=list(WEIGHTS.values()))[0]
        getattr(self, name)(data)

    # ---- time ----

    def wait(self, data: Random) -> None:
        """Let time pass: a little, or to just before, at or just after something that is due."""
        now = self.w.evm.now
        steps = [1, 1, 7, 12, 60, 120, 300]
        for job in self.jobs:
            for unit in job.units.values():
                if unit.state in (State.SUBMITTED, State.DISPUTED):
                    steps += [formulas.settleable_from(job.terms, unit) - now + d for d in (-1, 0)]
                    steps += [formulas.challenge_end(job.terms, unit) - now + d for d in (-1, 0)]
                if unit.state in (State.OPEN, State.RUNNING, State.CLOSING) and unit.mark:
                    steps += [unit.mark - now + d for d in (-1, 0, 1)]
                    steps += [unit.mark + POLICY.ack_time - now + d for d in (-1, 0)]
                if unit.state == State.RUNNING:
                    steps += [formulas.declinable_until(job.terms, unit) - now + d for d in (-1, 0)]
                    beat = self.m.nodes[unit.node].state.beat
                    steps += [max(beat, unit.started) + w.DEAD_AFTER - now + d for d in (-1, 0)]
        self.w.evm.warp(data.choice(sorted({step for step in steps if 0 < step < 2_000})))

    def wait_long(self, data: Random) -> None:
        """Let a deadline or an unbonding time come, now and then."""
        if data.randint(0, 5):
            return
        now = self.w.evm.now
        due = [formulas.expirable_from(job.terms) - now + d for job in self.jobs for d in (-1, 0, 200)]
        due += [node.exit_at - now + d for node in self.m.nodes.values() if node.exit_at for d in (-1, 0)]
        due = sorted({step for step in due if step > 0})
        if due:
            self.w.evm.warp(data.choice(due))

    # ---- nodes ----

    def everybody_beats(self, data: Random) -> None:
        """Keep the network alive; the operators' own batch calls."""
        for operator in self.operators:
            nodes = [node.id for node in self.m.nodes.values() if node.operator == operator]
            if data.randint(0, 3) == 0:
                nodes += [node for node, offered in self.m.offered_operator.items() if offered == operator]
            if nodes:
                self._try(
                    "heartbeat",
                    lambda o=operator, n=nodes: self.m.heartbeat(o, n),
                    lambda o=operator, n=nodes: self.w.nodes.send.heartbeat(n, sender=o),
                )

    def beat(self, data: Random) -> None:
        node = NodeId(data.randint(1, self.m.next_id))
        operator = data.choice(self.operators)
        self._try("beat", lambda: self.m.beat(operator, node), lambda: self.w.nodes.send.beat(node, sender=operator))

    def register(self, data: Random) -> None:
        if len(self.m.nodes) >= 6:
            return
        owner, operator = data.choice(self.owners), data.choice(self.operators)
        stake = data.choice([w.ETHER - 1, w.ETHER, 80 * w.ETHER])
        offer = replace(w.OFFER, slots=data.randint(0, 3), ask=data.randint(0, 3) * 30 * 10**18)
        self._try(
            "register",
            lambda: self.m.register(owner, operator, offer, stake),
            lambda: self.w.register(
                owner=owner, operator=operator, stake=stake, beat=False, slots=offer.slots, ask=offer.ask
            ),
        )

    def add_stake(self, data: Random) -> None:
        node, amount = NodeId(data.randint(1, self.m.next_id)), data.choice([0, 1, w.ETHER])
        payer = data.choice(self.keepers)
        owner = self.m.nodes[node].owner if node in self.m.nodes and data.random() < 0.9 else payer
        self._try(
            "add_stake",
            lambda: self.m.add_stake(payer, node, owner, amount),
            lambda: self.w.pay(self.w.nodes, "add_stake", node, owner, amount, amount=amount, sender=payer),
        )

    def owner_acts(self, data: Random) -> None:
        """Change an offer, an ask or an operator, leave, or stay after all."""
        act = data.choice(["update_offer", "set_ask", "set_operator", "exit_start", "exit_cancel"])
        leaving = [node.id for node in self.m.nodes.values() if node.exit_at]
        node = NodeId(data.randint(1, self.m.next_id - 1))
        if act == "exit_cancel" and not leaving and data.randint(0, 4):
            return
        if act == "exit_cancel" and leaving and data.randint(0, 4):
            node = data.choice(leaving)
        record = self.m.nodes.get(node)
        owner = record.owner if record and data.randint(0, 9) else data.choice(self.owners)
        nodes = self.w.nodes.send
        if act == "update_offer":
            offer = replace(w.OFFER, slots=data.randint(1, 4), cores=data.choice([2, 16, 16]), ask=0)
            self._try(
                act,
                lambda: self.m.update_offer(owner, node, offer),
                lambda: nodes.update_offer(node, words.pack_offer(offer), b"\x66" * 32, sender=owner),
            )
        elif act == "set_ask":
            ask = data.choice([0, 10**18, 30 * 10**18, 59 * 10**18, 70 * 10**18])
            self._try(act, lambda: self.m.set_ask(owner, node, ask), lambda: nodes.set_ask(node, ask, sender=owner))
        elif act == "set_operator":
            operator = data.choice(self.operators)
            self._try(
                act,
                lambda: self.m.set_operator(owner, node, operator),
                lambda: nodes.set_operator(node, operator, sender=owner),
            )
        elif act == "exit_cancel" or len(self.m.nodes) > 2:
            self._try(
                act,
                lambda: getattr(self.m, act)(owner, node),
                lambda: getattr(nodes, act)(node, sender=owner),
            )

    def exit_finish(self, data: Random) -> None:
        leaving = [node.id for node in self.m.nodes.values() if node.exit_at and not node.state.bond]
        if data.randint(0, 9) == 0:
            leaving = [node.id for node in self.m.nodes.values() if node.exit_at]
        if leaving:
            node, anyone = data.choice(leaving), data.choice(self.keepers)
            if data.randint(0, 2) == 0:
                self.w.evm.warp(max(0, self.m.nodes[node].exit_at - self.w.evm.now))
            self._try(
                "exit_finish",
                lambda: self.m.exit_finish(anyone, node),
                lambda: self.w.nodes.send.exit_finish(node, sender=anyone),
            )

    def check_liveness(self, data: Random) -> None:
        if data.randint(0, 2) == 0:
            self.w.evm.warp(w.DEAD_AFTER)
        keeper = data.choice(self.keepers)
        nodes = [NodeId(n) for n in range(1, self.m.next_id + 1)]
        self._try(
            "check_liveness",
            lambda: self.m.check_liveness(keeper, nodes),
            lambda: self.w.nodes.send.check_liveness(nodes, keeper, sender=keeper),
        )

    # ---- jobs ----

    def post(self, data: Random) -> None:
        # What has ended stays to be compared; what is open and fits nobody must not crowd out the rest.
        if len(self.jobs) >= 40 or sum(map(self._unended, self.jobs)) >= 12:
            return
        submitter = data.choice(self.submitters)
        max_seconds = data.choice([1, 1_000, 1_003, 20_000])
        start = formulas.grace(self.w.terms(max_seconds=max_seconds)) + max_seconds
        flags = TermsFlag.NEWCOMERS if data.randint(0, 19) else TermsFlag(0)
        if data.randint(0, 3) == 0:
            flags |= TermsFlag.KEEP
        judged: dict[str, Any] = {}
        far = 4 * w.DAY
        if data.randint(0, 2):
            window = data.choice([60, 400, 400, 400, 7 * w.DAY])
            judged = self.w.judged(challenge_window=window, judge_data=data.getrandbits(256))
            if data.randint(0, 1):
                flags |= TermsFlag.PROVEN
                far = 5_000
            if data.randint(0, 5) == 0 and (flags & TermsFlag.PROVEN or data.randint(0, 9) == 0):
                judged |= data.choice([{"replicas": 3, "quorum": 2}, {"replicas": 3, "quorum": 3}])
                self._bar(data)
        terms = self.w.terms(
            **judged,
            bond_bps=data.choice([0, 0, 4_000, 20_000, 200_000]),
            submitter=submitter.lower(),
            ceiling=data.choice([60 * 10**18 + 1, 100 * 10**18]),
            max_seconds=max_seconds,
            deadline=self.w.evm.now + start + data.choice([-1, 0, 900, 3_000, *[far] * 14]),
            keeper_fee=data.choice([10**11, 10**13 + 7]),
            units=data.choice([1, 1, 3, 5]) if "replicas" not in judged else data.choice([*[1] * 9, 3]),
            max_attempts=data.choice([1, 2, 3, 3, 4]),
            match_window=data.choice([0, 12, 30]),
            **_time(data),
            flags=flags,
            needs=replace(w.NEEDS, runtimes=Runtime.WASM, cores=data.choice([1, 4])),
        )
        parents: tuple[bytes, ...] = ()
        if data.randint(0, 2) == 0:
            parents = pack_parents(self._parents(data))
            terms = replace(terms, parents_hash=parents_hash(parents))
            if data.randint(0, 29) == 0:
                parents = data.choice([(), parents[:2], (*parents, bytes(32)), parents[::-1]])[: MAX_PARENTS + 1]
        job_id = self.w.id_of(terms)
        self._try(
            "post after others" if parents else "post",
            lambda: self.m.post(submitter, terms, job_id, parents),
            lambda: self.w.post_receipt(terms, parents=parents),
        )
        if job_id in self.m.jobs:
            self.jobs.append(self.m.jobs[job_id])

    def _bar(self, data: Random) -> None:
        """Let the market's judge bar a node from all replicas, or no longer."""
        node = NodeId(data.randint(1, self.m.next_id))
        barred = node not in self.m.barred and len(self.m.barred) < 2
        self.w.judge.send.bar(node, barred)
        (self.m.barred.add if barred else self.m.barred.discard)(node)

    def _parents(self, data: Random) -> list[Parent]:
        """Draw what a job waits for: mostly one or two of the run's jobs, seldom what never ends."""
        listed = []
        for _ in range(data.choice([1, 1, 1, 2, 2, 3, 15])):
            ended = [job for job in self.jobs if self.m.ended(job.id)]
            pool = ended if ended and data.randint(0, 2) else self.jobs
            job_id = data.choice(pool).id if pool else JobId(data.randbytes(32))
            kind = data.randint(0, 29)
            if kind == 0:
                job_id = JobId(data.randbytes(32))
            elif kind == 1:
                job_id = JobId(formulas.unit_key(job_id, 0, 2))
            # What would end the job at once is asked less often: it must be able to open, too.
            met = [one for one in Condition if one & self.m.ended(job_id)] or list(Condition)
            listed.append(Parent(job_id, data.choice(met if data.randint(0, 2) else list(Condition))))
        return listed

    def unlock(self, data: Random) -> None:
        """Open or end a job by its parents; most of the time one that waits and whose parents have ended."""
        waiting = [job for job in self.jobs if self.m.is_blocked(job)]
        ready = [job for job in waiting if all(self.m.ended(job_id) for job_id in job.parents[1:])]
        pool = ready if data.randint(0, 9) else waiting if data.randint(0, 3) else self.jobs
        if not pool:
            return
        job, keeper = data.choice(pool), data.choice(self.keepers)
        parents = job.parents
        if data.randint(0, 11) == 0:
            parents = data.choice([(), parents[:-1], parents[::-1], data.choice(self.jobs).parents])
        self._try(
            "unlock" if job.header is None else "unlock an array",
            lambda: self.m.unlock(keeper, job, parents),
            lambda: self.w.unlock(job.terms, parents=parents, sender=keeper),
        )

    def post_again(self, data: Random) -> None:
        """The same terms are refused for ever."""
        if self.jobs:
            job = data.choice(self.jobs)
            submitter = to_checksum_address(job.terms.submitter)
            with pytest.raises(Reverted, match="jobs: posted before"):
                self.w.post(job.terms)
            with pytest.raises(Refusal):
                self.m.post(submitter, job.terms, job.id)

    def propose(self, data: Random) -> None:
        unit = self._open_unit(data)
        if unit is None:
            return
        job, at = unit
        if job.terms.match_window == 0 and data.randint(0, 9):
            return
        self._ready(data)
        nodes = sorted(self.m.nodes) if data.randint(0, 9) else [NodeId(self.m.next_id)]
        node, keeper = data.choice(nodes), data.choice(self.keepers)
        self._try(
            "propose",
            lambda: self.m.propose(keeper, job, at, node),
            lambda: self.w.propose(job.terms, node, at, sender=keeper),
        )

    def ack(self, data: Random) -> None:
        now = self.w.evm.now
        waiting = [
            (job, at)
            for job in self.jobs
            for at, unit in job.units.items()
            if unit.state == State.OPEN
            if formulas.has_live_proposal(job.terms, unit, now) or (unit.mark and data.randint(0, 4) == 0)
        ]
        if not waiting:
            return
        kept = [(job, at) for job, at in waiting if at in job.kept]
        job, at = data.choice(kept if kept and data.randint(0, 3) else waiting)
        if data.randint(0, 4):
            self.w.evm.warp(max(0, job.units[at].mark - self.w.evm.now))
            self._ready(data)
        best = self.m.nodes.get(job.best[at].node)
        operator = best.operator if best and data.randint(0, 9) else data.choice(self.operators)
        resume = self._resume(data, job, at)
        self._try(
            "ack to resume" if resume else "ack",
            lambda: self.m.ack(operator, job, at, resume),
            lambda: self.w.ack(job.terms, at, resume_from=resume, sender=operator),
        )

    def _resume(self, data: Random, job: Job, at: int) -> int:
        """Draw the attempt to resume from: most of the time one that left a checkpoint, seldom any."""
        kept = sorted(job.kept.get(at, {}))
        if data.randint(0, 39) == 0:
            return data.choice([1, 2, 15, 16, 2**200])
        return data.choice([*kept, kept[-1]]) if kept and data.randint(0, 7) else 0

    def claim(self, data: Random) -> None:
        unit = self._open_unit(data)
        if unit is None or not self.m.nodes:
            return
        job, at = unit
        if job.terms.match_window and data.randint(0, 5):
            opened = job.units[at].started if at in job.units else job.header.opened if job.header else 0
            live = at in job.units and formulas.has_live_proposal(job.terms, job.units[at], self.w.evm.now)
            if live:
                return
            self.w.evm.warp(max(0, opened + POLICY.open_claim_after - self.w.evm.now))
        if data.randint(0, 5):
            # Often long enough for the dearest.
            self.w.evm.warp(data.randint(0, POLICY.claim_ramp))
        self._ready(data)
        idle = [node.id for node in self.m.nodes.values() if not node.state.busy and not node.exit_at]
        node = data.choice(idle if idle and data.randint(0, 5) else sorted(self.m.nodes))
        operator = self.m.nodes[node].operator
        if data.randint(0, 9) == 0:
            operator = data.choice([*self.operators, *self.submitters])
        resume = self._resume(data, job, at)
        self._try(
            "claim to resume" if resume else "claim",
            lambda: self.m.claim(operator, job, at, node, resume),
            lambda: self.w.claim(job.terms, node, at, resume_from=resume, sender=operator),
        )

    def checkpoint(self, data: Random) -> None:
        """Checkpoint, most of the time a lease that may; some time after its start."""
        leased = (State.RUNNING,) if data.randint(0, 5) else (State.RUNNING, State.CLOSING)
        able = [
            (job, at)
            for job in self.jobs
            for at, unit in job.units.items()
            if unit.resumable and unit.state in leased and self.w.evm.now < unit.mark
        ]
        unit = data.choice(able) if able and data.randint(0, 9) else self._unit(data, leased)
        if unit is None:
            return
        job, at = unit
        if data.randint(0, 3):
            left = job.units[at].mark - self.w.evm.now - 1 if at in job.units else 0
            self.w.evm.warp(max(0, min(left, data.choice([1, 1, 7, 60, 300]))))
        operator, root = self._operator_of(data, job, at), data.randbytes(32)
        seconds = self.w.evm.now - job.units[at].started
        done = self._try(
            "checkpoint",
            lambda: self.m.checkpoint(operator, job, at),
            lambda: self.w.checkpoint(job.terms, at, root=root, sender=operator),
        )
        assert not done or job.checkpoint[at] == seconds > 0

    def hand_over(self, data: Random) -> None:
        """Take a unit from one node to the next, with a checkpoint: by chance alone few would get that far."""
        self.everybody_beats(data)
        now = self.w.evm.now
        able = [
            (job, at)
            for job in self.jobs
            for at, unit in job.units.items()
            if job.terms.checkpoint_every and unit.attempts + (unit.state == State.OPEN) < job.terms.max_attempts
            if (unit.state == State.OPEN and not unit.mark) or (unit.state == State.RUNNING and now + 10 < unit.mark)
        ]
        if not able:
            return
        job, at = data.choice(able)
        if job.units[at].state == State.OPEN and not self._take(data, job, at):
            return
        unit = job.units[at]
        operator = self.m.nodes[unit.node].operator
        self.w.evm.warp(data.choice([1, 5, 9]))
        root = data.randbytes(32)
        self._try(
            "checkpoint",
            lambda: self.m.checkpoint(operator, job, at),
            lambda: self.w.checkpoint(job.terms, at, root=root, sender=operator),
        )
        self._try(
            "give_up",
            lambda: self.m.give_up(operator, job, at),
            lambda: self.w.give_up(job.terms, at, sender=operator),
        )
        if (
            job.units[at].state == State.OPEN
            and data.randint(0, 5)
            and self._take(data, job, at)
            and data.randint(0, 3)
        ):
            last = self.m.nodes[job.units[at].node].operator
            self.w.evm.warp(data.choice([0, 1, 200]))
            outcome = Outcome(data.choice([1, 1, 1, 2]))
            self._try(
                "submit",
                lambda: self.m.submit(last, job, at, outcome, 0),
                lambda: self.w.submit(job.terms, at, outcome=outcome, used=0, sender=last),
            )

    def _take(self, data: Random, job: Job, at: int) -> bool:
        """Let a node that is free start an OPEN unit by a match or a claim; say whether it did."""
        unit = job.units[at]
        free = [
            n for n in self.m.nodes.values() if n.id != unit.node and not n.exit_at and n.state.busy < n.offer.slots
        ]
        if not free:
            return False
        node = data.choice(free)
        resume = self._resume(data, job, at)
        if job.terms.match_window and unit.lapses < formulas.MAX_LAPSES and data.randint(0, 2):
            keeper = data.choice(self.keepers)
            if not self._try(
                "propose",
                lambda: self.m.propose(keeper, job, at, node.id),
                lambda: self.w.propose(job.terms, node.id, at, sender=keeper),
            ):
                return False
            self.w.evm.warp(job.terms.match_window)
            self.everybody_beats(data)
            return self._try(
                "ack to resume" if resume else "ack",
                lambda: self.m.ack(node.operator, job, at, resume),
                lambda: self.w.ack(job.terms, at, resume_from=resume, sender=node.operator),
            )
        due = formulas.claimable_from(job.terms, unit, formulas.ask_in_force(node, self.w.evm.now))
        self.w.evm.warp(max(0, (due or 0) - self.w.evm.now))
        self.everybody_beats(data)
        return self._try(
            "claim to resume" if resume else "claim",
            lambda: self.m.claim(node.operator, job, at, node.id, resume),
            lambda: self.w.claim(job.terms, node.id, at, resume_from=resume, sender=node.operator),
        )

    def top_up(self, data: Random) -> None:
        """Top a lease up, most of the time one that bills time and runs: by a little, or to just what is allowed."""
        able = [
            (job, at)
            for job in self.jobs
            for at, unit in job.units.items()
            if job.terms.billing == Billing.METERED and unit.state == State.RUNNING and self.w.evm.now < unit.mark
        ]
        unit = data.choice(able) if able and data.randint(0, 9) else self._unit(data, (State.RUNNING,))
        if unit is None:
            return
        job, at = unit
        stored = job.units.get(at, Unit())
        room = max(0, job.terms.deadline - stored.mark)
        seconds = data.choice([0, 1, 1, 60, 60, 977, room, room + 1, formulas.MAX_SECONDS - job.terms.max_seconds])
        sender = to_checksum_address(job.terms.submitter)
        if data.randint(0, 9) == 0:
            sender = data.choice(self.submitters)
        amount = formulas.top_up_amount(job.terms, stored, seconds)
        self._try(
            "top_up",
            lambda: self.m.top_up(sender, job, at, seconds),
            lambda: self.w.top_up(job.terms, seconds, at, amount=amount, sender=sender),
        )

    def submit(self, data: Random) -> None:
        unit = self._unit(data, (State.RUNNING, State.CLOSING) if data.randint(0, 3) else (State.CLOSING,))
        if unit is None:
            return
        job, at = unit
        if at in job.units and self.w.evm.now >= job.units[at].mark and data.randint(0, 5):
            return
        operator, outcome = self._operator_of(data, job, at), Outcome(data.choice([*[1] * 12, 2, 3, 4, 5, 6]))
        used = data.choice([1, 500, 2_000]) if job.terms.billing == Billing.FUEL else 0
        if data.randint(0, 19) == 0:
            used = 1 - min(used, 1)
        self._try(
            "submit",
            lambda: self.m.submit(operator, job, at, outcome, used),
            lambda: self.w.submit(job.terms, at, outcome=outcome, used=used, sender=operator),
        )

    def finish(self, data: Random) -> None:
        """Finish a lease, most of the time one that may be, often of an array that has a unit left to go on with."""
        if data.randint(0, 3):
            self._begin_seasoned(data)
        leased = [
            (job, at)
            for job in self.jobs
            for at, unit in job.units.items()
            if unit.state in (State.RUNNING, State.CLOSING) and self.w.evm.now < unit.mark
        ]
        able = [
            (job, at) for job, at in leased if job.terms.judge == w.ZERO and not job.units[at].flags & UnitFlag.FRESH
        ]
        closing = [(job, at) for job, at in able if job.units[at].state == State.CLOSING]
        pool = able if data.randint(0, 19) else leased
        if closing and data.randint(0, 1):
            pool = closing
        if not pool:
            return
        job, at = data.choice(pool)
        operator, outcome = self._operator_of(data, job, at), Outcome(data.choice([*[1] * 12, 2, 3, 4, 5, 6]))
        used = data.choice([1, 500, 2_000]) if job.terms.billing == Billing.FUEL else 0
        if data.randint(0, 19) == 0:
            used = 1 - min(used, 1)
        if job.units[at].state == State.RUNNING and data.randint(0, 4) == 0:
            # A notice that comes before a result changes nothing of it.
            sender = to_checksum_address(job.terms.submitter)
            self._try(
                "cancel", lambda: self.m.cancel(sender, job, at), lambda: self.w.cancel(job.terms, at, sender=sender)
            )
        claims = bool(data.randint(0, 3))
        if claims and job.header is not None and data.randint(0, 2):
            # Open claims that have risen to the ask are what it goes on with.
            left = job.units[at].mark - self.w.evm.now - 1
            self.w.evm.warp(min(left, POLICY.claim_ramp))
        taken: list[int | None] = []
        done = self._try(
            "finish and claim" if claims and self._untouched(job) else "finish",
            lambda: taken.append(self.m.finish(operator, job, at, outcome, used, claims=claims)),
            lambda: self.w.finish(job.terms, at, outcome=outcome, used=used, claims=claims, sender=operator),
        )
        if done and claims:
            self.tally.finished["took the next" if taken[0] is not None else "took none"] += 1

    def _begin_seasoned(self, data: Random) -> None:
        """Let a node that is on probation no more claim a unit without a judge: by chance alone few would."""
        free = [n for n in self.m.nodes.values() if n.state.seasoned and not n.exit_at and n.state.busy < n.offer.slots]
        jobs = [job for job in self.jobs if job.terms.judge == w.ZERO and not self.m.is_blocked(job)]
        units = [(job, at) for job in jobs for at, unit in job.units.items() if unit.state == State.OPEN]
        units += [(job, SENTINEL) for job in jobs if self._untouched(job)]
        if not free or not units:
            return
        (job, at), node = data.choice(units), data.choice(free)
        opened = job.header.opened if job.header else 0
        unit = job.units[at] if at in job.units else Unit(state=State.OPEN, started=opened)
        due = formulas.claimable_from(job.terms, unit, formulas.ask_in_force(node, self.w.evm.now))
        self.w.evm.warp(max(0, (due or 0) - self.w.evm.now))
        self.everybody_beats(data)
        self._try(
            "claim",
            lambda: self.m.claim(node.operator, job, at, node.id),
            lambda: self.w.claim(job.terms, node.id, at, sender=node.operator),
        )

    def decline(self, data: Random) -> None:
        unit = self._unit(data, (State.RUNNING, State.CLOSING))
        if unit is None or data.randint(0, 2):
            return
        job, at = unit
        operator, outcome = self._operator_of(data, job, at), Outcome(data.choice([6, 7, 8, 5]))
        self._try(
            "decline",
            lambda: self.m.decline(operator, job, at, outcome),
            lambda: self.w.decline(job.terms, at, outcome=outcome, sender=operator),
        )

    def give_up(self, data: Random) -> None:
        marked = [
            (job, at)
            for job in self.jobs
            for at, unit in job.units.items()
            if unit.state == State.RUNNING and job.checkpoint.get(at)
        ]
        unit = data.choice(marked) if marked and data.randint(0, 3) else self._unit(data, (State.RUNNING,))
        if unit is None or (unit not in marked and data.randint(0, 2)):
            return
        job, at = unit
        operator = self._operator_of(data, job, at)
        self._try(
            "give_up",
            lambda: self.m.give_up(operator, job, at),
            lambda: self.w.give_up(job.terms, at, sender=operator),
        )

    def settle(self, data: Random) -> None:
        unit = self._unit(data, (State.SUBMITTED,))
        if unit is None:
            return
        job, at = unit
        if at in job.units and job.units[at].state == State.SUBMITTED and data.randint(0, 3):
            due = formulas.settleable_from(job.terms, job.units[at]) - self.w.evm.now
            self.w.evm.warp(due if 0 < due < 10_000 else 0)
        keeper = data.choice(self.keepers)
        self._try("settle", lambda: self.m.settle(keeper, job, at), lambda: self.w.settle(job.terms, at, sender=keeper))

    def _settleable(self, job: Job, unit: Unit) -> bool:
        if unit.state not in (State.SUBMITTED, State.DISPUTED):
            return False
        return self.w.evm.now >= formulas.settleable_from(job.terms, unit)

    def settle_late(self, data: Random) -> None:
        """Settle what nobody has proven, or what a judge has held for too long: seldom at its time, which is far."""
        held = [(job, at) for job in self.jobs for at, unit in job.units.items() if unit.state == State.DISPUTED]
        bare = [(job, at) for job in self.jobs for at, unit in job.units.items() if unit.state == State.SUBMITTED]
        stale = [(job, at) for job, at in held if not job.terms.flags & TermsFlag.PROVEN]
        unproven = [(job, at) for job, at in held + bare if job.terms.flags & TermsFlag.PROVEN]
        waiting = stale or unproven
        if not waiting:
            return
        job, at = data.choice(waiting)
        unit, keeper = job.units[at], data.choice(self.keepers)
        if data.randint(0, 1):
            due = formulas.settleable_from(job.terms, unit) + data.choice([-1, 0, 0, 77])
            self.w.evm.warp(max(0, due - self.w.evm.now))
        name = "settle unproven" if job.terms.flags & TermsFlag.PROVEN else "settle stale"
        self._try(name, lambda: self.m.settle(keeper, job, at), lambda: self.w.settle(job.terms, at, sender=keeper))

    def _judge_of(self, data: Random) -> Contract | str:
        """Draw the judge, seldom another one or an account."""
        if data.randint(0, 14):
            return self.w.judge
        return data.choice([self.other_judge, *self.submitters, *self.owners])

    def _held(self, data: Random, *states: State) -> tuple[Job, int] | None:
        """Draw a unit for its judge, most of the time one of a job that has one, in one of the states."""
        fitting = [
            (job, at)
            for job in self.jobs
            for at, unit in job.units.items()
            if job.terms.judge != w.ZERO and unit.state in states
        ]
        if data.randint(0, 14):
            return data.choice(fitting) if fitting else None
        return self._unit(data, states)

    def dispute(self, data: Random) -> None:
        unit = self._held(data, State.SUBMITTED)
        if unit is None:
            return
        job, at = unit
        judge = self._judge_of(data)
        packed = words.pack_terms(job.terms)
        if isinstance(judge, str):
            real = lambda: self.w.jobs.send.dispute(packed, at, sender=judge)  # noqa: E731
        else:
            real = lambda: judge.send.dispute(packed, at)  # noqa: E731
        sender = judge if isinstance(judge, str) else judge.address
        self._try("dispute", lambda: self.m.dispute(sender, job, at), real)

    def rule(self, data: Random) -> None:
        """Rule at random: any verdict, other fields, shares up to six tenths of the bond and beyond."""
        unit = self._held(data, *(State.DISPUTED,) if data.randint(0, 1) else (State.DISPUTED, State.SUBMITTED))
        if unit is None:
            return
        job, at = unit
        judge, verdict = (
            self._judge_of(data),
            data.choice([*Verdict, *Verdict, *Verdict, Verdict.RELEASE, Verdict.RELEASE, 4]),
        )
        fields = (0, 0)
        if data.randint(0, 11) == 0 or (verdict == Verdict.CONFIRM and data.randint(0, 1)):
            fuel = job.terms.billing == Billing.FUEL
            used = data.choice([1, 700, 2**24 - 1]) if fuel else 0
            fields = (data.choice([1, 1, 1, 2, 3, 4, 5, 0, 6]), used if data.randint(0, 9) else 1 - min(1, used))
        most = formulas.bond(job.terms) * 6 // 10
        total = data.choice([0, most // 2, most, most, most + 1] if verdict == Verdict.REJECT else [0, most])
        cut = sorted(data.randint(0, total) for _ in range(2))
        people = [to_checksum_address(job.terms.submitter), self.w.judge.address, data.choice(self.keepers)]
        if data.randint(0, 14) == 0:
            people[0] = w.ZERO
        shares = list(zip(people, (cut[0], cut[1] - cut[0], total - cut[1]), strict=True))
        payee = data.choice(self.keepers)
        args = (
            words.pack_terms(job.terms),
            at,
            int(verdict),
            words.pack(words.FIELDS, {"outcome": fields[0], "seconds": fields[1]}),
            [share(who, amount) for who, amount in shares],
            payee,
        )
        if isinstance(judge, str):
            real = lambda: self.w.jobs.send.rule(*args, sender=judge)  # noqa: E731
        else:
            real = lambda: judge.send.rule(*args)  # noqa: E731
        sender = judge if isinstance(judge, str) else judge.address
        name = f"rule {verdict.name.lower()}" if isinstance(verdict, Verdict) else "rule"
        if name == "rule":
            with pytest.raises(Refusal) as refused:
                self.m.rule(sender, job, at, 4, fields, shares, payee)
            with reverts(refused.value.reason):
                real()
            return
        self._try(name, lambda: self.m.rule(sender, job, at, verdict, fields, shares, payee), real)

    def settle_batch(self, data: Random) -> None:
        everything = [(job, at) for job in self.jobs for at in job.units]
        if everything:
            due = [(job, at) for job, at in everything if self._settleable(job, job.units[at])]
            if not due and data.randint(0, 19):
                return
            items = data.choices(everything + due * 8, k=data.randint(1, 4))
            keeper = data.choice(self.keepers)
            packed = [(words.pack_terms(job.terms), at) for job, at in items]
            self._try(
                "settle_batch",
                lambda: self.m.settle_batch(keeper, items),
                lambda: self.w.jobs.send.settle_batch(packed, keeper, sender=keeper),
            )

    def accept(self, data: Random) -> None:
        unit = self._unit(data, (State.SUBMITTED,))
        if unit is None:
            return
        job, at = unit
        sender = to_checksum_address(job.terms.submitter)
        if data.randint(0, 9) == 0:
            sender = data.choice(self.submitters)
        self._try("accept", lambda: self.m.accept(sender, job, at), lambda: self.w.accept(job.terms, at, sender=sender))

    def cancel(self, data: Random) -> None:
        unit = self._unit(data, (data.choice([State.RUNNING] * 16 + [State.OPEN] * 8 + [State.BLOCKED]),))
        if unit is None:
            return
        job, at = unit
        if job.header is not None and data.randint(0, 3) == 0:
            at = SENTINEL
        sender = to_checksum_address(job.terms.submitter)
        if data.randint(0, 9) == 0:
            sender = data.choice(self.submitters)
        self._try("cancel", lambda: self.m.cancel(sender, job, at), lambda: self.w.cancel(job.terms, at, sender=sender))

    def close(self, data: Random) -> None:
        unit = self._unit(data, (State.CLOSING,))
        if unit is None:
            return
        job, at = unit
        stored = job.units[at]
        if stored.state == State.CLOSING and data.randint(0, 3):
            self.w.evm.warp(max(0, stored.mark - self.w.evm.now) + data.choice([0, 0, 90]))
        keeper = data.choice(self.keepers)
        self._try("close", lambda: self.m.close(keeper, job, at), lambda: self.w.close(job.terms, at, sender=keeper))

    def reclaim(self, data: Random) -> None:
        unit = self._unit(data, (State.RUNNING,))
        if unit is None:
            return
        job, at = unit
        stored = job.units[at]
        if stored.state == State.RUNNING and data.randint(0, 2) == 0:
            beat = self.m.nodes[stored.node].state.beat
            due = formulas.reclaimable_from(stored, beat, w.DEAD_AFTER)
            self.w.evm.warp(max(0, due - self.w.evm.now) + data.choice([0, 0, 77]))
        keeper = data.choice(self.keepers)
        self._try(
            "reclaim", lambda: self.m.reclaim(keeper, job, at), lambda: self.w.reclaim(job.terms, at, sender=keeper)
        )

    def expire(self, data: Random) -> None:
        blocked = not data.randint(0, 1)
        wanted = (State.BLOCKED,) if blocked else (State.OPEN, State.BLOCKED)
        unit = self._unit(data, wanted, fresh=True)
        if unit is None:
            return
        job, at = unit
        due = formulas.expirable_from(job.terms) - self.w.evm.now
        if due > 0 and not blocked and data.randint(0, 3):
            return
        if due < 4_000 or data.randint(0, 1 if blocked else 3) == 0:
            self.w.evm.warp(max(0, due))
        keeper = data.choice(self.keepers)
        self._try("expire", lambda: self.m.expire(keeper, job, at), lambda: self.w.expire(job.terms, at, sender=keeper))

    # ---- money ----

    def withdraw(self, data: Random) -> None:
        account = data.choice([*self.owners, *self.submitters, *self.keepers, self.w.treasury])
        credit = self.m.credits[account]
        amount = data.choice([credit, credit // 2, credit, credit + 1])
        self._try(
            "withdraw",
            lambda: self.m.withdraw(account, amount),
            lambda: self.w.escrow.send.withdraw(account, amount, sender=account),
        )

    def donate(self, data: Random) -> None:
        """Force money upon Escrow: it must not disturb anybody's books."""
        amount = data.randint(1, 10**18)
        if self.w.token is None:
            self.w.evm.set_balance(self.w.escrow, self.w.evm.balance(self.w.escrow) + amount)
            self.donated += amount

    def pause(self, data: Random) -> None:
        """Pause posts or registrations, rarely; exits go on."""
        if data.randint(0, 11):
            return
        if data.random() < 0.5:
            self._try("pause", self.m.pause_jobs, self.w.rules.send.pause)
        else:
            self._try("pause", self.m.pause_nodes, self.w.nodes.send.pause)

    # ---- invariants ----

    @invariant()
    def books_are_equal(self) -> None:
        """1, 2, 4, 9, 12, 15, 17, 26, 28, 29: locks, credits and balance equal the model, per key."""
        if not hasattr(self, "m"):
            return
        w_, m = self.w, self.m
        for job in m.jobs.values():
            assert job.funded == job.paid + m.job_lock(job)
        for submitter, lock in m.locks().items():
            assert w_.locked(submitter) == lock, submitter
        for node in m.nodes.values():
            assert w_.staked(node.id) == node.stake
        for node_id in m.exited:
            assert w_.staked(node_id) == 0
        for account, credit in m.credits.items():
            assert w_.credit(account) == credit, account
        held = sum(m.job_lock(job) for job in m.jobs.values()) + m.stake_total + sum(m.credits.values())
        assert held == m.deposited - m.withdrawn
        if w_.token is None:
            assert w_.evm.balance(w_.escrow) == held + self.donated
        else:
            assert w_.token.call.balanceOf(w_.escrow) == held + self.donated
            assert w_.escrow.call.tracked() == held

    @invariant()
    def words_are_equal(self) -> None:
        """6, 7, 10, 11, 13, 19, 34, 35: every unit, header, proposal and node record equals the model."""
        if not hasattr(self, "m"):
            return
        for job in self.m.jobs.values():
            if job.header is not None and not job.units:
                assert self.w.header(job.terms) == job.header
            for at, unit in job.units.items():
                job_word, word, second, accused = self.w.load(job.terms, at)
                assert words.unpack_unit(word) == unit
                if unit.state == State.OPEN and unit.mark:
                    assert words.unpack_best(second) == job.best[at]
                if unit.resumable and unit.state in (State.RUNNING, State.CLOSING):
                    assert second == job.checkpoint.get(at, 0)
                self._kept_is_equal(job, at, unit)
                if unit.flags & UnitFlag.STORE and unit.state in (State.SUBMITTED, State.DISPUTED, State.SETTLED):
                    assert second == int.from_bytes(w.RESULT, "big")
                assert words.unpack_accused(accused) == job.accused.get(at, Accused())
                if job.header is not None:
                    assert words.unpack_header(job_word) == job.header
        for node in self.m.nodes.values():
            assert self.w.node(node.id) == node
            assert self.w.nodes.call.offered_operator(node.id) == self.m.offered_operator.get(node.id, w.ZERO)
            assert node.state.bond == self.m.bond_of(node.id) <= node.stake
            assert node.state.busy == self.m.busy_of(node.id) <= node.offer.slots or node.state.busy == 0
        totals = words.unpack(words.TOTALS, self.w.nodes.call.totals())
        assert totals["next_id"] == self.m.next_id
        assert totals["total"] == self.m.stake_total
        assert (totals["hour"], totals["burnt"]) == (self.m.hour, self.m.burnt)

    def _kept_is_equal(self, job: Job, at: int, unit: Unit) -> None:
        """What a unit's lost leases left is read again once the unit has changed, and at the end of the history."""
        kept = job.kept.get(at, {})
        if self.compared.get((job.id, at)) == (unit, kept):
            return
        self.compared[job.id, at] = (unit, dict(kept))
        for attempt in range(unit.attempts + 2):
            assert self.w.kept(job.terms, attempt, at) == kept.get(attempt, Kept())

    @invariant()
    def judges_are_bounded(self) -> None:
        """21, 22, 23: only what names a judge is held, no verdict gives more than six tenths, each unit ends once."""
        if not hasattr(self, "m"):
            return
        for job in self.m.jobs.values():
            if job.terms.judge == w.ZERO:
                assert not any(unit.state == State.DISPUTED for unit in job.units.values())
            for at, unit in job.units.items():
                assert self.m.ends[job.id, at] == unit.state.terminal
        assert all(10 * given <= 6 * bond for bond, given in self.m.verdicts)

    @invariant()
    def views_answer(self) -> None:
        """38: Lens agrees with the reference implementation about who fits, and never reverts."""
        if not hasattr(self, "m"):
            return
        now = self.w.evm.now
        for job in list(self.m.jobs.values())[-2:]:
            for at, unit in list(job.units.items())[-1:]:
                if job.header is not None and job.header.closed:
                    continue
                best, packed = job.best.get(at, Best()), words.pack_terms(job.terms)
                for node in list(self.m.nodes.values())[:2]:
                    for claim in (False, True):
                        gate = formulas.fit(job.terms, unit, best, node, now, w.MARKET, claim=claim)
                        if gate == Gate.FITS and job.terms.replicas > 1 and node.id in self.m.barred:
                            gate = Gate.EXCLUDED
                        assert self.w.lens.call.fit(packed, at, node.id, claim) == gate
                    rate = formulas.ask_in_force(node, now)
                    opens = formulas.claimable_from(job.terms, unit, rate) if unit.state is State.OPEN else None
                    assert self.w.lens.call.claimable_from(packed, at, rate) == (SENTINEL if opens is None else opens)

    # ---- the end ----

    def teardown(self) -> None:
        """30, 31: anyone can end every unit within six calls, then everybody leaves with all that is theirs."""
        if not hasattr(self, "m"):
            return
        self.tally.endings += 1
        self.compared.clear()
        self.words_are_equal()
        for job in self.jobs:
            for at in list(job.units):
                self._end(job, at)
            if self._untouched(job):
                self._pass(formulas.expirable_from(job.terms))
                self._must(
                    "expire all", lambda j=job: self.m.expire(self.w.stranger, j, SENTINEL), "expire", job, SENTINEL
                )
        for node in list(self.m.nodes.values()):
            if not node.exit_at:
                self.m.now = self.w.evm.now
                self.m.exit_start(node.owner, node.id)
                self.w.nodes.send.exit_start(node.id, sender=node.owner)
            self._pass(self.m.nodes[node.id].exit_at)
            self.m.exit_finish(self.w.stranger, node.id)
            self.w.nodes.send.exit_finish(node.id, sender=self.w.stranger)
        self.books_are_equal()
        for account, credit in list(self.m.credits.items()):
            if credit and account != w.DEAD:
                self.m.withdraw(account, credit)
                if account == self.w.judge.address:
                    self.w.judge.send.run(self.w.escrow, self.w.escrow.encode("withdraw", self.w.stranger, credit))
                else:
                    self.w.escrow.send.withdraw(account, credit, sender=account)
        self.books_are_equal()
        assert sum(self.m.credits.values()) == self.m.credits[w.DEAD]
        self.tally.checkpoints += self.m.checkpoints

    def _pass(self, until: int) -> None:
        self.w.evm.warp(max(0, until - self.w.evm.now))
        self.m.now = self.w.evm.now

    def _must(self, what: str, modelled: Callable[[], Any], name: str, job: Job, at: int) -> None:
        self.m.now = self.w.evm.now
        modelled()
        self.w.call(name, job.terms, at, sender=self.w.stranger)

    def _end(self, job: Job, at: int) -> None:
        """Bring one unit to an end as a stranger."""
        calls = 0
        while not job.units[at].state.terminal:
            unit: Unit = job.units[at]
            if unit.state in (State.OPEN, State.BLOCKED):
                self._pass(formulas.expirable_from(job.terms))
                self._must("expire", lambda: self.m.expire(self.w.stranger, job, at), "expire", job, at)
            elif unit.state == State.RUNNING:
                self._pass(unit.mark)
                self._must("reclaim", lambda: self.m.reclaim(self.w.stranger, job, at), "reclaim", job, at)
            elif unit.state == State.CLOSING:
                self._pass(unit.mark)
                self._must("close", lambda: self.m.close(self.w.stranger, job, at), "close", job, at)
            else:
                self._pass(formulas.settleable_from(job.terms, unit))
                self._must("settle", lambda: self.m.settle(self.w.stranger, job, at), "settle", job, at)
            calls += 1
        assert calls <= 6
        self.tally.longest_ending = max(self.tally.longest_ending, calls)


def play(machine: MarketMachine, history: int) -> None:
    """Play one history without hypothesis, most of whose few hundred histories would be cut from a handful."""
    machine.start(history)
    checks = (machine.books_are_equal, machine.words_are_equal, machine.judges_are_bounded, machine.views_answer)
    try:
        for _ in range(STEPS):
            machine.act(0)
            for check in checks:
                check()
        machine.teardown()
    except Exception as error:
        error.add_note(f"in history {history}, step {machine.steps}")
        raise


def _run(erc20: bool, histories: int, least: int) -> None:
    """Run the machine on one asset, then refuse a run that proves little: rare successes, unvisited moves."""
    tally = Tally()
    machine = type("Machine", (MarketMachine,), {"erc20": erc20, "tally": tally})
    if FULL:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=FUZZ_HISTORIES,
                stateful_step_count=STEPS,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    else:
        for history in range(SHORT_HISTORIES if SHORT else histories):
            play(machine(), history)
        if SHORT:
            return
    print(tally.report())
    short = shortcomings(tally, FUZZ_LEAST if FULL else least)
    assert not short, f"{short}\n{tally.report()}"


def shortcomings(tally: Tally, least: int) -> list[str]:
    """Return what a run saw fewer than `least` times, and which rules succeed in less than 5 % of their tries."""
    rare = {n: tally.succeeded[n] for n, tries in sorted(tally.attempted.items()) if tally.succeeded[n] < 0.05 * tries}
    seen = {
        "rules": {name: tally.succeeded[name] for name in SEEN},
        "checkpoints": {"paid": tally.checkpoints["paid"]},
        "finishes that claim": {how: tally.finished[how] for how in ("took the next", "took none")},
        "moves": {f"{a.name} to {b.name}": tally.visits[a, b] for a, b in sorted(ALLOWED)},
    }
    few = {what: {n: count for n, count in found.items() if count < least} for what, found in seen.items()}
    return [
        *([f"rules that succeed in fewer than 5 % of tries: {rare}"] if rare else []),
        *(f"{what} seen fewer than {least} times: {found}" for what, found in few.items() if found),
    ]


def test_market__random_histories_native__equal_the_model() -> None:
    _run(erc20=False, histories=HISTORIES, least=LEAST)


@pytest.mark.deep
def test_market__random_histories_erc20__equal_the_model() -> None:
    _run(erc20=True, histories=DEEP_HISTORIES, least=DEEP_LEAST)
