"""The market in plain Python: what every call must do, to the wei, or the reason why it is refused.

Written from protocol.md with `hearth.protocol.formulas` for the arithmetic, and with none of the contracts' packing.
The state machine (tests/stateful) runs both side by side. Accounts are checksummed addresses, times Unix seconds,
amounts base units.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from eth_utils import to_checksum_address

from hearth.market.network import NodeParameters
from hearth.protocol import formulas, reputation
from hearth.protocol.parents import Ended, parents_hash, unpack_parents
from hearth.protocol.types import (
    BPS,
    SENTINEL,
    ZERO_ADDRESS,
    Accused,
    Best,
    Billing,
    Gate,
    Header,
    JobId,
    Kept,
    Node,
    NodeFlag,
    NodeId,
    NodeState,
    Offer,
    Outcome,
    Policy,
    State,
    Terms,
    TermsFlag,
    Unit,
    UnitFlag,
    Verdict,
)
from tests.kit.world import DEAD

GATE_REASONS = {
    Gate.NOT_LIVE: "nodes: not live",
    Gate.NOT_ACTIVE: "nodes: stake below minimum",
    Gate.EXITING: "nodes: exiting",
    Gate.QUARANTINED: "nodes: quarantined",
    Gate.NO_SLOT: "nodes: no free slot",
    Gate.STAKE_SHORT: "nodes: free stake short",
    Gate.RUNTIME: "nodes: runtime missing",
    Gate.GPU_COUNT: "nodes: too few GPUs",
    Gate.VRAM: "nodes: VRAM short",
    Gate.CORES: "nodes: cores short",
    Gate.RAM: "nodes: RAM short",
    Gate.DISK: "nodes: disk short",
    Gate.TIER: "nodes: GPU tier not as asked",
    Gate.ZONE: "nodes: zone not allowed",
    Gate.PRICE: "nodes: ask above ceiling",
    Gate.PROBATION: "nodes: on probation",
}


class Refusal(Exception):
    """The call reverts with this reason."""

    @property
    def reason(self) -> str:
        return str(self.args[0])


def refuse_if(condition: bool, reason: str) -> None:
    """Raise Refusal where the condition holds."""
    if condition:
        raise Refusal(reason)


@dataclass
class Job:
    """One posted job. A one-lease job has unit 0 and no header; an array has only touched units."""

    id: JobId
    terms: Terms
    units: dict[int, Unit]
    header: Header | None
    parents: tuple[bytes, ...] = ()
    best: dict[int, Best] = field(default_factory=dict)
    accused: dict[int, Accused] = field(default_factory=dict)
    # Of each unit the seconds of its lease's last checkpoint, and by attempt what lost leases left.
    checkpoint: dict[int, int] = field(default_factory=dict)
    kept: dict[int, dict[int, Kept]] = field(default_factory=dict)
    funded: int = 0
    paid: int = 0


class Model:
    """The whole market. Every public method is one external call by `sender` at `now`."""

    def __init__(self, policy: Policy, parameters: NodeParameters, treasury: str, policy_word: int, now: int) -> None:
        self.now = now
        self.policy = policy
        self.policy_word = policy_word
        self.parameters = parameters
        self.treasury = treasury
        self.credits: Counter[str] = Counter()
        self.nodes: dict[NodeId, Node] = {}
        self.offered_operator: dict[NodeId, str] = {}
        # Whom the market's judge lets run no replica.
        self.barred: set[NodeId] = set()
        self.exited: set[NodeId] = set()
        self.jobs: dict[JobId, Job] = {}
        self.next_id = 1
        self.hour = 0
        self.burnt = 0
        self.withdrawn = 0
        self.deposited = 0
        self.jobs_paused_until = 0
        self.nodes_paused_until = 0
        self.visits: Counter[tuple[State, State]] = Counter()
        # How often each unit came to an end; of each rejected lease its bond, and what of it was given to somebody.
        self.ends: Counter[tuple[JobId, int]] = Counter()
        self.verdicts: list[tuple[int, int]] = []
        # Of kept checkpoints that a result was made of: paid to an owner, or nobody's since he left.
        self.checkpoints: Counter[str] = Counter()

    # ---- reading ----

    @property
    def stake_total(self) -> int:
        return sum(node.stake for node in self.nodes.values())

    def job_lock(self, job: Job) -> int:
        """Return what a job holds of its submitter's lock: the sum of what its units hold.

        Of an unended unit its budget less its tips, each untouched one's budget, and a keeper fee where it waits.
        """
        touched = sum(formulas.unit_holds(job.terms, unit) for unit in job.units.values())
        return touched + (formulas.rest_holds(job.terms, job.header) if job.header is not None else 0)

    def locks(self) -> Counter[str]:
        """Return what Escrow must lock for each submitter, all of his jobs together."""
        locks: Counter[str] = Counter()
        for job in self.jobs.values():
            locks[job.terms.submitter] += self.job_lock(job)
        return locks

    def is_blocked(self, job: Job) -> bool:
        """Say whether a job waits for its parents."""
        return job.header.waiting if job.header is not None else job.units[0].state == State.BLOCKED

    def ended(self, job_id: bytes) -> Ended:
        """Say how a job has ended, by its units alone; what was never posted, as an array's unit, has not."""
        job = self.jobs.get(JobId(job_id))
        if job is None or not all(unit.state.terminal for unit in job.units.values()):
            return Ended.NOT_YET
        if len(job.units) < job.terms.leases and not (job.header is not None and job.header.closed):
            return Ended.NOT_YET
        well = [unit.state == State.SETTLED and unit.outcome == Outcome.OK for unit in job.units.values()]
        return Ended.WELL if len(well) == job.terms.leases and all(well) else Ended.OTHERWISE

    def bond_of(self, node: NodeId) -> int:
        """Return the sum of bonds that a node's unended leases reserve."""
        return sum(
            formulas.bond(job.terms)
            for job in self.jobs.values()
            for unit in job.units.values()
            if unit.node == node and unit.state in (State.RUNNING, State.CLOSING, State.SUBMITTED, State.DISPUTED)
        )

    def busy_of(self, node: NodeId) -> int:
        """Return the number of leases that run on a node."""
        return sum(
            unit.node == node and unit.state in (State.RUNNING, State.CLOSING)
            for job in self.jobs.values()
            for unit in job.units.values()
        )

    # ---- nodes ----

    def register(self, sender: str, operator: str, offer: Offer, stake: int) -> NodeId:
        refuse_if(self.now < self.nodes_paused_until, "nodes: paused")
        refuse_if(offer.slots == 0, "nodes: no slots")
        refuse_if(offer.ask == 0, "nodes: ask out of range")
        refuse_if(stake < self.parameters.minimum_stake, "nodes: stake below minimum")
        node = NodeId(self.next_id)
        self.next_id += 1
        self.nodes[node] = Node(node, sender, operator, stake, offer, NodeState())
        self.deposited += stake
        return node

    def add_stake(self, sender: str, node: NodeId, owner: str, amount: int) -> None:
        refuse_if(node not in self.nodes, "nodes: unknown node")
        refuse_if(self.nodes[node].owner != owner, "nodes: node of another owner")
        refuse_if(amount == 0, "nodes: amount zero")
        self._node(node, stake=self.nodes[node].stake + amount)
        self.deposited += amount

    def update_offer(self, sender: str, node: NodeId, offer: Offer) -> None:
        self._owned(sender, node)
        old = self.nodes[node]
        refuse_if(old.state.busy != 0, "nodes: busy")
        self._node(node, offer=replace(offer, ask=old.offer.ask, pending=old.offer.pending))

    def set_ask(self, sender: str, node: NodeId, ask: int) -> None:
        self._owned(sender, node)
        refuse_if(ask == 0, "nodes: ask out of range")
        old = self.nodes[node]
        offer = old.offer
        if offer.pending:
            refuse_if(self.now < old.next_ask_at, "nodes: an ask is pending")
            offer = replace(offer, ask=old.next_ask)
        at = self.now + self.parameters.ask_notice
        self._node(node, offer=replace(offer, pending=True), next_ask=ask, next_ask_at=at)

    def set_operator(self, sender: str, node: NodeId, operator: str) -> None:
        self._owned(sender, node)
        self.offered_operator.pop(node, None)
        if operator != self.nodes[node].operator:
            self.offered_operator[node] = operator

    def exit_start(self, sender: str, node: NodeId) -> None:
        self._owned(sender, node)
        old = self.nodes[node]
        refuse_if(old.exit_at != 0, "nodes: exiting")
        hot = replace(old.state, status=old.state.status | NodeFlag.EXITING) if old.state.beat else old.state
        self._node(node, exit_at=self.now + self.parameters.unbonding, state=hot)

    def exit_cancel(self, sender: str, node: NodeId) -> None:
        self._owned(sender, node)
        old = self.nodes[node]
        refuse_if(old.exit_at == 0, "nodes: not exiting")
        self._node(node, exit_at=0, state=replace(old.state, status=old.state.status & ~NodeFlag.EXITING))

    def exit_finish(self, sender: str, node: NodeId) -> None:
        old = self.nodes.get(node)
        refuse_if(old is None or old.exit_at == 0, "nodes: not exiting")
        assert old is not None
        refuse_if(self.now < old.exit_at, "nodes: still unbonding")
        refuse_if(old.state.bond != 0, "nodes: bond outstanding")
        del self.nodes[node]
        self.offered_operator.pop(node, None)
        self.exited.add(node)
        self.credits[old.owner] += old.stake

    def beat(self, sender: str, node: NodeId) -> None:
        refuse_if(not self._beat(sender, node), "nodes: not the operator")

    def heartbeat(self, sender: str, nodes: list[NodeId]) -> None:
        done = [self._beat(sender, node) for node in nodes]
        refuse_if(not any(done), "nodes: nothing to do")

    def check_liveness(self, sender: str, nodes: list[NodeId]) -> None:
        done = False
        for node in nodes:
            old = self.nodes.get(node)
            if old is None or not old.state.beat or old.state.status & (NodeFlag.LAPSED | NodeFlag.EXITING):
                continue
            if self.now < old.state.beat + self.parameters.dead_after:
                continue
            done = True
            fee = formulas.liveness_fee(old, self.parameters.liveness_fee)
            self._node(node, stake=old.stake - fee, state=replace(old.state, status=old.state.status | NodeFlag.LAPSED))
            self.credits[sender] += fee
        refuse_if(not done, "nodes: nothing to do")

    # ---- jobs ----

    def post(self, sender: str, terms: Terms, job_id: JobId, parents: tuple[bytes, ...] = ()) -> None:
        refuse_if(job_id in self.jobs, "jobs: posted before")
        refuse_if(self.now < self.jobs_paused_until, "jobs: paused")
        refuse_if(sender.lower() != terms.submitter.lower(), "jobs: not the submitter")
        if terms.replicas > 1:
            refuse_if(not terms.flags & TermsFlag.PROVEN, "jobs: replicas need a judge")
            refuse_if(terms.units != 1, "jobs: units out of range")
        refuse_if(not formulas.has_time(terms, self.now), "jobs: deadline too near")
        every = terms.checkpoint_every
        timed = terms.billing == Billing.METERED and every >= self.policy.min_checkpoint
        refuse_if(every != 0 and not timed, "jobs: checkpoint out of range")
        refuse_if(formulas.price(terms) < self.policy.min_price, "jobs: price below minimum")
        least = self.policy.min_keeper_fee
        refuse_if(not least <= terms.keeper_fee <= max(formulas.price(terms), least), "jobs: keeper_fee out of range")
        refuse_if(parents_hash(parents) != terms.parents_hash, "jobs: parents not as hashed")
        try:
            waits = bool(unpack_parents(parents))
        except ValueError:
            raise Refusal("jobs: parents out of range") from None
        amount = formulas.escrow_at_post(terms)
        if terms.leases == 1:
            unit = Unit(state=State.BLOCKED if waits else State.OPEN, started=self.now)
            self.jobs[job_id] = Job(job_id, terms, {0: unit}, None, parents, funded=amount)
            self.visits[State.NONE, unit.state] += 1
        else:
            quorum = terms.quorum if terms.replicas > 1 else 0
            header = Header(opened=self.now, waiting=waits, leases=terms.leases, quorum=quorum)
            self.jobs[job_id] = Job(job_id, terms, {}, header, parents, funded=amount)
        self.deposited += amount

    def propose(self, sender: str, job: Job, index: int, node: NodeId) -> None:
        with _Undo(self, job):
            at = self._open(job, index)
            terms, unit = job.terms, self._read(job, at)
            refuse_if(terms.match_window == 0 or unit.lapses >= formulas.MAX_LAPSES, "jobs: takes claims only")
            refuse_if(unit.mark != 0 and self.now >= unit.mark, "jobs: window over")
            refuse_if(unit.node == node, "jobs: node excluded")
            whole = formulas.topped(terms, unit)
            refuse_if(not formulas.has_time(whole, self.now), "jobs: no time left")
            self._may_run(job, node)
            record = self._gated(job, node, job.terms.ceiling)
            refuse_if(record.operator.lower() == terms.submitter.lower(), "jobs: operator is the submitter")
            rate = formulas.ask_in_force(record, self.now)
            seed = formulas.seed(job.id, at, unit.attempts)
            score = formulas.score(terms.needs, terms.ceiling, rate, record.offer, record.state)
            key = formulas.key(formulas.ranked(terms, at, score), seed, node)
            mark, extensions = unit.mark, 0
            if mark == 0:
                mark = self.now + terms.match_window
            else:
                best = job.best[at]
                refuse_if(best.node == node, "jobs: best already")
                refuse_if(key <= best.key, "jobs: not a better key")
                extensions = best.extensions
                if extensions < formulas.MAX_EXTENSIONS and mark - self.now < terms.match_window // 3:
                    extensions += 1
                    mark += terms.match_window // 3
            job.best[at] = Best(payee=sender.lower(), node=node, key=key, extensions=extensions)
            self._write(job, at, replace(unit, rate=rate, mark=mark))

    def ack(self, sender: str, job: Job, index: int, resume_from: int = 0) -> None:
        with _Undo(self, job):
            at = self._at(job, index)
            refuse_if(self._stored(job, at).state != State.OPEN, "jobs: not open")
            unit = self._read(job, at)
            refuse_if(unit.mark == 0, "jobs: no proposal")
            refuse_if(self.now < unit.mark, "jobs: window still open")
            best = job.best[at]
            won = replace(unit, tips=unit.tips + 1)
            self._start(sender, job, at, won, best.node, unit.rate, job.terms.ceiling, resume_from)
            self._pay(job, best.payee, formulas.tip(job.terms))

    def claim(self, sender: str, job: Job, index: int, node: NodeId, resume_from: int = 0) -> int:
        with _Undo(self, job):
            at = self._open(job, index)
            stored, unit = self._stored(job, at), self._read(job, at)
            refuse_if(unit.mark != 0, "jobs: a proposal is live")
            opens = [unit.started]
            if job.terms.match_window:
                if unit.lapses < formulas.MAX_LAPSES:
                    opens.append(unit.started + self.policy.open_claim_after)
                    refuse_if(self.now < opens[-1], "jobs: takes no claims yet")
                if stored.mark:
                    opens.append(stored.mark + self.policy.ack_time)
            refuse_if(unit.lapses == 0 and unit.node == node, "jobs: node excluded")
            ceiling = formulas.claim_ceiling(job.terms, self.now - max(opens))
            self._start(sender, job, at, unit, node, 0, ceiling, resume_from)
        return at

    def checkpoint(self, sender: str, job: Job, index: int) -> None:
        at = self._at(job, index)
        unit = self._leased(job, at)
        record = self.nodes.get(unit.node)
        refuse_if(record is None or record.operator != sender, "nodes: not the operator")
        seconds = self.now - unit.started
        late = not job.terms.checkpoint_every or seconds <= job.checkpoint.get(at, 0)
        refuse_if(late, "jobs: checkpoint out of range")
        job.checkpoint[at] = seconds

    def top_up(self, sender: str, job: Job, index: int, seconds: int) -> None:
        terms = job.terms
        refuse_if(sender.lower() != terms.submitter.lower(), "jobs: not the submitter")
        at = self._at(job, index)
        unit = self._stored(job, at)
        refuse_if(unit.state != State.RUNNING, "jobs: not running")
        refuse_if(terms.billing != Billing.METERED, "jobs: not metered")
        refuse_if(self.now >= unit.mark, "jobs: too late to submit")
        whole = terms.max_seconds + unit.seconds + seconds
        refuse_if(not seconds or whole > formulas.MAX_SECONDS, "jobs: max_seconds out of range")
        refuse_if(unit.mark + seconds > terms.deadline, "jobs: deadline too near")
        amount = formulas.top_up_amount(terms, unit, seconds)
        self._write(job, at, replace(unit, mark=unit.mark + seconds, seconds=unit.seconds + seconds))
        job.funded += amount
        self.deposited += amount

    def submit(self, sender: str, job: Job, index: int, outcome: Outcome, used: int) -> None:
        at = self._at(job, index)
        unit = self._with_result(job, at, outcome, used)
        self._handed_in(sender, unit.node)
        self._write(job, at, unit)

    def finish(
        self, sender: str, job: Job, index: int, outcome: Outcome, used: int, *, claims: bool = False
    ) -> int | None:
        """End a lease with its result and pay; return the unit that the node took next, if any."""
        at = self._at(job, index)
        unit = self._with_result(job, at, outcome, used)
        early = job.terms.judge != ZERO_ADDRESS or unit.flags & UnitFlag.FRESH
        refuse_if(bool(early), "jobs: too early to settle")
        self._handed_in(sender, unit.node)
        owner = self.nodes[unit.node].owner
        self._pay_for(job, at, unit, owner, formulas.settle_reward(job.terms, 0), True)
        if not claims or job.header is None:
            return None
        visits = self.visits.copy()
        try:
            return self.claim(sender, job, SENTINEL, unit.node)
        except Refusal:
            self.visits = visits
            return None

    def decline(self, sender: str, job: Job, index: int, outcome: Outcome) -> None:
        at = self._at(job, index)
        unit = self._leased(job, at)
        refuse_if(outcome < Outcome.BAD_INPUT, "jobs: outcome out of range")
        if unit.state == State.RUNNING:
            late = self.now >= formulas.declinable_until(job.terms, unit)
            refuse_if(late, "jobs: too late to decline")
            refuse_if(self.now >= self._due(unit), "jobs: reclaimable")
        hot = self._operated(sender, unit.node).state
        self._hot(unit.node, replace(hot, busy=hot.busy - 1, bond=hot.bond - self._bond(job)))
        self._burn(unit.node, formulas.tip_to_burn(job.terms, unit))
        unit = replace(unit, outcome=outcome)
        if unit.state == State.CLOSING:
            self._refund(job, at, unit, State.CANCELLED)
        elif self._may_reopen(job, unit):
            job.accused[at] = Accused(unit.node, self.now)
            self._reopen(job, at, replace(unit, flags=unit.flags | UnitFlag.ACCUSED))
        else:
            self._refund(job, at, unit, State.REFUNDED)

    def give_up(self, sender: str, job: Job, index: int) -> None:
        at = self._at(job, index)
        unit = self._stored(job, at)
        refuse_if(unit.state != State.RUNNING, "jobs: not running")
        refuse_if(self.now >= self._due(unit), "jobs: reclaimable")
        hot = self._operated(sender, unit.node).state
        self._hot(unit.node, replace(hot, busy=hot.busy - 1, bond=hot.bond - self._bond(job)))
        fee = formulas.whole_fee(job.terms, unit)
        self._fail(unit.node, reputation.fee_weight(fee, self.parameters.fee_reference))
        self._burn(unit.node, formulas.give_up_burn(job.terms))
        self._lose(job, at, unit)

    def accept(self, sender: str, job: Job, index: int) -> None:
        refuse_if(sender.lower() != job.terms.submitter.lower(), "jobs: not the submitter")
        refuse_if(bool(self._settle(None, job, index)), "jobs: not submitted")

    def settle(self, sender: str, job: Job, index: int) -> None:
        refusal = self._settle(sender, job, index)
        refuse_if(bool(refusal), refusal)

    def settle_batch(self, sender: str, items: list[tuple[Job, int]]) -> None:
        done = [self._settle(sender, job, index) for job, index in items]
        refuse_if(all(done), "jobs: nothing to do")

    def cancel(self, sender: str, job: Job, index: int) -> None:
        refuse_if(sender.lower() != job.terms.submitter.lower(), "jobs: not the submitter")
        if index == SENTINEL and job.header is not None:
            self._pay(job, job.terms.submitter, self._close_array(job))
            return
        at = self._at(job, index)
        stored = self._stored(job, at)
        if stored.state in (State.OPEN, State.BLOCKED):
            refuse_if(self._read(job, at).mark != 0, "jobs: a proposal is live")
            self._refund(job, at, stored, State.CANCELLED)
            return
        refuse_if(stored.state != State.RUNNING, "jobs: not open")
        refuse_if(self.now >= self._due(stored), "jobs: reclaimable")
        mark = min(stored.mark, self.now + self.policy.cancel_notice)
        self._write(job, at, replace(stored, state=State.CLOSING, mark=mark, flags=stored.flags | UnitFlag.NOTICED))

    def close(self, sender: str, job: Job, index: int) -> None:
        at = self._at(job, index)
        unit = self._stored(job, at)
        refuse_if(unit.state != State.CLOSING, "jobs: not closing")
        refuse_if(self.now < unit.mark, "jobs: notice still running")
        pay = formulas.pay_at_close(job.terms, unit)
        reward = formulas.settle_reward(job.terms, self.now - unit.mark)
        node = self.nodes[unit.node]
        self._hot(unit.node, replace(node.state, busy=node.state.busy - 1, bond=node.state.bond - self._bond(job)))
        self._pay_out(job, at, unit, State.CANCELLED, pay, sender, reward, formulas.unit_holds(job.terms, unit))

    def reclaim(self, sender: str, job: Job, index: int) -> None:
        at = self._at(job, index)
        unit = self._stored(job, at)
        refuse_if(unit.state != State.RUNNING, "jobs: not running")
        due = self._due(unit)
        refuse_if(self.now < due, "jobs: not reclaimable yet")
        slash = formulas.slash_of(job.terms)
        reward = formulas.reclaim_reward(job.terms, slash, self.now - due)
        fee = formulas.whole_fee(job.terms, unit)
        self._lose(job, at, unit)
        self._slash(unit.node, self._bond(job), slash, reward, formulas.tip_to_burn(job.terms, unit), fee, sender)

    def expire(self, sender: str, job: Job, index: int) -> None:
        everything = index == SENTINEL and job.header is not None
        unit = Unit() if everything else self._stored(job, self._at(job, index))
        due = formulas.expirable_from(formulas.topped(job.terms, unit))
        refuse_if(self.now < due, "jobs: not expired")
        if everything:
            reward = formulas.expire_reward(job.terms, None, self.now - due)
            refund = self._close_array(job)
            self._pay(job, job.terms.submitter, refund - reward)
        else:
            at = self._at(job, index)
            refuse_if(unit.state not in (State.OPEN, State.BLOCKED), "jobs: not open")
            reward = formulas.expire_reward(job.terms, unit, self.now - due)
            self._pay(job, job.terms.submitter, formulas.unit_holds(job.terms, unit) - reward)
            self._end(job, at, unit, State.EXPIRED)
        self._pay(job, sender, reward)

    def unlock(self, sender: str, job: Job, parents: tuple[bytes, ...]) -> None:
        refuse_if(not self.is_blocked(job), "jobs: not blocked")
        refuse_if(not formulas.has_time(job.terms, self.now), "jobs: no time left")
        refuse_if(parents_hash(parents) != job.terms.parents_hash, "jobs: parents not as hashed")
        ends = [(self.ended(parent.job), parent.condition) for parent in unpack_parents(parents)]
        fee = formulas.unlock_fee(job.terms)
        if any(end and not condition & end for end, condition in ends):
            if job.header is not None:
                refund = self._close_array(job)
            else:
                unit = job.units[0]
                refund = formulas.unit_holds(job.terms, unit)
                self._end(job, 0, unit, State.CANCELLED)
            self._pay(job, job.terms.submitter, refund - fee)
        else:
            refuse_if(not all(end for end, _ in ends), "jobs: a parent has not ended")
            if job.header is not None:
                job.header = replace(job.header, waiting=False, opened=self.now)
            else:
                self._write(job, 0, Unit(state=State.OPEN, started=self.now))
        self._pay(job, sender, fee)

    # ---- judges ----

    def dispute(self, sender: str, job: Job, index: int) -> None:
        at, unit = self._judged(sender, job, index)
        refuse_if(unit.state != State.SUBMITTED, "jobs: not submitted")
        refuse_if(self.now >= formulas.challenge_end(job.terms, unit), "jobs: too late to dispute")
        self._write(job, at, replace(unit, state=State.DISPUTED))

    def rule(
        self,
        sender: str,
        job: Job,
        index: int,
        verdict: int,
        fields: tuple[int, int],
        shares: list[tuple[str, int]],
        payee: str,
    ) -> None:
        """Let a judge rule; `fields` are an outcome and fuel seconds, both 0 to leave them, `shares` of the bond."""
        at, unit = self._judged(sender, job, index)
        refuse_if(verdict > Verdict.VOID, "jobs: verdict out of range")
        if unit.state != State.DISPUTED:
            refuse_if(unit.state != State.SUBMITTED, "jobs: not submitted")
            taken = verdict in (Verdict.REJECT, Verdict.VOID) and job.terms.flags & TermsFlag.PROVEN
            refuse_if(verdict != Verdict.CONFIRM and not taken, "jobs: not disputed")
        refuse_if(verdict != Verdict.CONFIRM and fields != (0, 0), "jobs: outcome out of range")
        if verdict == Verdict.RELEASE:
            self._write(job, at, replace(unit, state=State.SUBMITTED))
        elif verdict == Verdict.CONFIRM:
            early = bool(unit.flags & UnitFlag.FRESH) and self.now < formulas.fresh_until(job.terms, unit)
            refuse_if(early, "jobs: too early to settle")
            if fields != (0, 0):
                unit = self._found(unit, *fields)
            self._pay_for(job, at, unit, payee, formulas.settle_reward(job.terms, 0), True)
        elif verdict == Verdict.REJECT:
            bond, given = self._bond(job), sum(amount for _, amount in shares)
            refuse_if(given > bond * formulas.MOST_SHARED // BPS, "nodes: shares too large")
            refuse_if(any(amount and who == ZERO_ADDRESS for who, amount in shares), "escrow: share for nobody")
            record = self.nodes[unit.node]
            hot = replace(record.state, bond=record.state.bond - bond)
            self._node(unit.node, stake=record.stake - bond, state=reputation.reject(hot, self.now))
            for who, amount in shares:
                self.credits[who] += amount
            self.credits[DEAD] += bond - given
            self.verdicts.append((bond, given))
            self._refund(job, at, unit, State.REFUNDED)
        else:
            self._free(job, unit)
            held, pay = formulas.unit_holds(job.terms, unit), formulas.pay_at_void(job.terms, unit)
            self._pay_out(job, at, unit, State.REFUNDED, pay, None, 0, held)

    # ---- governance ----

    def pause_jobs(self) -> None:
        self.jobs_paused_until = self._pause(self.jobs_paused_until, "rules: paused lately")

    def pause_nodes(self) -> None:
        self.nodes_paused_until = self._pause(self.nodes_paused_until, "nodes: paused lately")

    # ---- escrow ----

    def withdraw(self, sender: str, amount: int) -> None:
        refuse_if(amount > self.credits[sender], "escrow: short")
        self.credits[sender] -= amount
        self.withdrawn += amount

    # ---- the rest is private ----

    def _node(self, node: NodeId, **changes: Any) -> None:
        self.nodes[node] = replace(self.nodes[node], **changes)

    def _hot(self, node: NodeId, hot: NodeState) -> None:
        self._node(node, state=hot)

    def _owned(self, sender: str, node: NodeId) -> None:
        refuse_if(node not in self.nodes or self.nodes[node].owner != sender, "nodes: not the owner")

    def _operated(self, sender: str, node: NodeId) -> Node:
        record = self.nodes.get(node)
        refuse_if(record is None or record.operator != sender or not record.state.beat, "nodes: not the operator")
        assert record is not None
        return record

    def _beat(self, sender: str, node: NodeId) -> bool:
        record = self.nodes.get(node)
        if record is None or sender not in (record.operator, self.offered_operator.get(node)):
            return False
        if record.operator != sender:
            self._node(node, operator=self.offered_operator.pop(node))
        hot = record.state
        if not hot.beat:
            exiting = NodeFlag.EXITING if record.exit_at else NodeFlag(0)
            hot = replace(hot, rep_time=self.now, status=exiting)
        self._hot(node, replace(hot, beat=self.now, status=hot.status & ~NodeFlag.LAPSED, silent=False))
        return True

    def _bond(self, job: Job) -> int:
        return formulas.bond(job.terms)

    def _pause(self, last: int, reason: str) -> int:
        refuse_if(last != 0 and self.now < last + 23 * 86_400, reason)
        return self.now + 7 * 86_400

    def _judged(self, sender: str, job: Job, index: int) -> tuple[int, Unit]:
        refuse_if(sender.lower() != job.terms.judge.lower(), "jobs: not the judge")
        at = self._at(job, index)
        return at, self._stored(job, at)

    def _found(self, unit: Unit, outcome: int, used: int) -> Unit:
        """Return a unit with the outcome and the fuel seconds that its judge found."""
        refuse_if(not 1 <= outcome <= Outcome.TIMEOUT, "jobs: outcome out of range")
        fuel = bool(unit.flags & UnitFlag.FUEL)
        refuse_if(used >= 1 << 24 or (used == 0) == fuel, "jobs: used out of range")
        return replace(unit, outcome=Outcome(outcome), seconds=used if fuel else unit.seconds)

    def _free(self, job: Job, unit: Unit) -> None:
        """Let go of the bond of a submitted lease."""
        hot = self.nodes[unit.node].state
        self._hot(unit.node, replace(hot, bond=hot.bond - self._bond(job)))

    def _at(self, job: Job, index: int) -> int:
        if job.header is not None:
            return index
        refuse_if(index != 0, "jobs: no such unit")
        return 0

    def _stored(self, job: Job, at: int) -> Unit:
        return job.units.get(at, Unit())

    def _read(self, job: Job, at: int) -> Unit:
        return formulas.with_lapse(job.terms, self._stored(job, at), job.best.get(at, Best()), self.now)

    def _open(self, job: Job, index: int) -> int:
        if job.header is None:
            at = 0 if index == SENTINEL else self._at(job, index)
            refuse_if(self._stored(job, at).state != State.OPEN, "jobs: not open")
            return at
        refuse_if(job.header.closed, "jobs: closed")
        refuse_if(job.header.waiting, "jobs: not open")
        touched = job.header.touched
        at = touched if index == SENTINEL else index
        refuse_if(at >= job.terms.leases, "jobs: no such unit")
        refuse_if(at > touched, "jobs: not the next unit")
        if at == touched:
            job.header = replace(job.header, touched=touched + 1)
            job.units[at] = Unit(state=State.OPEN, started=job.header.opened, flags=UnitFlag.ARRAY)
        refuse_if(self._stored(job, at).state != State.OPEN, "jobs: not open")
        return at

    def _may_run(self, job: Job, node: NodeId) -> None:
        refuse_if(job.terms.replicas > 1 and node in self.barred, "jobs: node excluded")

    def _gated(self, job: Job, node: NodeId, ceiling: int) -> Node:
        record = self.nodes.get(node)
        refuse_if(record is None, "nodes: not live")
        assert record is not None
        market = self.parameters
        ask = formulas.ask_of(job.terms)._replace(ceiling=ceiling)
        gate = formulas.node_gate(record, ask, self.now, market.dead_after, market.minimum_stake)
        refuse_if(gate != Gate.FITS, GATE_REASONS.get(gate, ""))
        return record

    def _start(
        self, sender: str, job: Job, at: int, unit: Unit, node: NodeId, rate: int, ceiling: int, resume_from: int
    ) -> None:
        refuse_if(resume_from != 0 and resume_from not in job.kept.get(at, {}), "jobs: no such checkpoint")
        terms = formulas.topped(job.terms, unit)
        refuse_if(sender.lower() == terms.submitter.lower(), "jobs: operator is the submitter")
        refuse_if(not formulas.has_time(terms, self.now), "jobs: no time left")
        self._may_run(job, node)
        self._operated(sender, node)
        if rate:
            record = self.nodes[node]
            self.nodes[node] = replace(record, offer=replace(record.offer, ask=rate, pending=False))
            try:
                self._gated(job, node, ceiling)
            finally:
                self.nodes[node] = record
        else:
            record = self._gated(job, node, ceiling)
        hot = record.state
        self._hot(
            node,
            replace(
                hot,
                beat=self.now,
                status=hot.status & ~NodeFlag.LAPSED,
                silent=False,
                busy=hot.busy + 1,
                bond=hot.bond + self._bond(job),
            ),
        )
        lease_end = self.now + formulas.lease_seconds(terms) + formulas.grace(terms)
        fuel = UnitFlag.FUEL if terms.billing == Billing.FUEL else UnitFlag(0)
        marks = UnitFlag.ACKED if rate else UnitFlag(0)
        if not hot.seasoned:
            marks |= UnitFlag.FRESH
        if terms.judge != ZERO_ADDRESS or terms.flags & TermsFlag.KEEP:
            marks |= UnitFlag.STORE
        started = Unit(
            state=State.RUNNING,
            node=node,
            rate=rate or formulas.ask_in_force(record, self.now),
            started=self.now,
            mark=lease_end,
            attempts=unit.attempts + 1,
            tips=unit.tips,
            seconds=unit.seconds,
            flags=(unit.flags & (UnitFlag.ACCUSED | UnitFlag.ARRAY)) | fuel | marks,
            resume=resume_from,
            resumable=terms.checkpoint_every != 0,
        )
        job.checkpoint.pop(at, None)
        self._write(job, at, started)

    def _leased(self, job: Job, at: int) -> Unit:
        unit = self._stored(job, at)
        refuse_if(unit.state not in (State.RUNNING, State.CLOSING), "jobs: not running")
        refuse_if(self.now >= unit.mark, "jobs: too late to submit")
        return unit

    def _due(self, unit: Unit) -> int:
        return formulas.reclaimable_from(unit, self.nodes[unit.node].state.beat, self.parameters.dead_after)

    def _may_reopen(self, job: Job, unit: Unit) -> bool:
        if unit.attempts >= job.terms.max_attempts or (job.header is not None and job.header.closed):
            return False
        return formulas.has_time(formulas.topped(job.terms, unit), self.now)

    def _reopen(self, job: Job, at: int, unit: Unit) -> None:
        opened = Unit(
            state=State.OPEN,
            node=unit.node,
            started=self.now,
            attempts=unit.attempts,
            tips=unit.tips,
            seconds=unit.seconds,
            flags=unit.flags & (UnitFlag.ACCUSED | UnitFlag.ARRAY),
        )
        self._write(job, at, opened)

    def _lose(self, job: Job, at: int, unit: Unit) -> None:
        if self._may_reopen(job, unit):
            seconds = job.checkpoint.get(at, 0)
            if seconds:
                before = formulas.reserved(unit, job.kept.get(at, {}))
                kept = Kept(seconds, unit.rate, unit.node, unit.resume, before)
                job.kept.setdefault(at, {})[unit.attempts] = kept
            self._reopen(job, at, unit)
        else:
            self._refund(job, at, unit, State.REFUNDED)

    def _close_array(self, job: Job) -> int:
        assert job.header is not None
        refuse_if(job.header.closed, "jobs: closed")
        untouched = job.terms.leases - job.header.touched
        refuse_if(untouched == 0, "jobs: nothing untouched")
        held = formulas.rest_holds(job.terms, job.header)
        job.header = replace(job.header, closed=True, waiting=False)
        return held

    def _settle(self, settler: str | None, job: Job, index: int) -> str:
        """Return why a unit cannot be settled, "" once it is."""
        at = self._at(job, index)
        unit = self._stored(job, at)
        held = unit.state == State.DISPUTED and settler is not None
        if unit.state != State.SUBMITTED and not held:
            return "jobs: not submitted"
        if settler is None:
            self._pay_for(job, at, unit, None, 0, not unit.flags & UnitFlag.FRESH)
            return ""
        since = formulas.settleable_from(job.terms, unit)
        if self.now < since:
            return "jobs: too early to settle"
        if job.terms.flags & TermsFlag.PROVEN:
            slash = formulas.slash_of(job.terms)
            reward = formulas.reclaim_reward(job.terms, slash, self.now - since)
            fee = formulas.whole_fee(job.terms, unit)
            self._refund(job, at, unit, State.REFUNDED)
            self._slash(unit.node, self._bond(job), slash, reward, 0, fee, settler, busy=0)
        else:
            self._pay_for(job, at, unit, settler, formulas.settle_reward(job.terms, self.now - since), True)
        return ""

    def _with_result(self, job: Job, at: int, outcome: Outcome, used: int) -> Unit:
        unit = self._leased(job, at)
        refuse_if(not outcome.is_result, "jobs: outcome out of range")
        fuel = bool(unit.flags & UnitFlag.FUEL)
        refuse_if((used == 0) if fuel else (used != 0), "jobs: used out of range")
        return replace(unit, state=State.SUBMITTED, outcome=outcome, mark=self.now, seconds=unit.seconds + used)

    def _handed_in(self, sender: str, node: NodeId) -> None:
        """Free the slot of a lease that has a result, for which its operator is there."""
        hot = self._operated(sender, node).state
        status = hot.status & ~NodeFlag.LAPSED
        self._hot(node, replace(hot, busy=hot.busy - 1, beat=self.now, status=status, silent=False))

    def _pay_for(self, job: Job, at: int, unit: Unit, settler: str | None, reward: int, counts: bool) -> None:
        """End a submitted unit with its pay; `counts` says whether a success is one for the node's record."""
        self._free(job, unit)
        pay = formulas.pay_at_settle(job.terms, unit, formulas.reserved(unit, job.kept.get(at, {})))
        if counts and unit.outcome == Outcome.OK:
            weight = reputation.fee_weight(formulas.fee_of(pay, self.policy), self.parameters.fee_reference)
            self._hot(unit.node, reputation.observe(self.nodes[unit.node].state, True, weight, self.now))
            self._fail(reputation.accused_at_settle(job.accused.get(at, Accused()), unit), weight)
        left = formulas.unit_holds(job.terms, unit)
        for earned in formulas.checkpoint_pays(job.terms, unit, job.kept.get(at, {})):
            self.checkpoints["paid" if earned.node in self.nodes else "left"] += 1
            if earned.node in self.nodes:
                self._pay(job, self.nodes[earned.node].owner, earned.pay - earned.fee)
                self._pay(job, self.treasury, earned.fee)
                left -= earned.pay
        self._pay_out(job, at, unit, State.SETTLED, pay, settler, reward, left)

    def _fail(self, node: NodeId, weight: int) -> None:
        if node in self.nodes and weight:
            self._hot(node, reputation.observe(self.nodes[node].state, False, weight, self.now))

    def _burn(self, node: NodeId, amount: int) -> None:
        self._node(node, stake=self.nodes[node].stake - amount)
        self.credits[DEAD] += amount

    def _slash(
        self, node: NodeId, bond: int, slash: int, reward: int, least: int, fee: int, payee: str, *, busy: int = 1
    ) -> None:
        hour = self.now // 3600
        burnt = self.burnt if hour == self.hour else 0
        ration = max(self.stake_total * self.parameters.ration_bps // 10_000, 3 * self.parameters.minimum_stake)
        rationed = burnt >= ration
        burn = least if rationed else slash - reward
        self.hour, self.burnt = hour, burnt + burn
        record = self.nodes[node]
        # What was submitted was not lost by silence.
        dead = bool(busy) and self.now >= record.state.beat + self.parameters.dead_after
        weight = reputation.reclaim_weight(
            record.state, fee, self.parameters.fee_reference, dead=dead, rationed=rationed
        )
        hot = replace(record.state, busy=record.state.busy - busy, bond=record.state.bond - bond)
        self._node(node, stake=record.stake - reward - burn, state=replace(hot, silent=hot.silent or dead))
        self._fail(node, weight)
        self.credits[payee] += reward
        self.credits[DEAD] += burn

    def _pay(self, job: Job, account: str, amount: int) -> None:
        self.credits[to_checksum_address(account)] += amount
        job.paid += amount

    def _refund(self, job: Job, at: int, unit: Unit, state: State) -> None:
        self._pay(job, job.terms.submitter, formulas.unit_holds(job.terms, unit))
        self._end(job, at, unit, state)

    def _pay_out(
        self, job: Job, at: int, unit: Unit, state: State, pay: int, keeper: str | None, reward: int, held: int
    ) -> None:
        fee = formulas.fee_of(pay, self.policy)
        rest = held - pay - reward
        self._pay(job, self.nodes[unit.node].owner, pay - fee)
        self._pay(job, self.treasury, fee)
        self._pay(job, keeper or ZERO_ADDRESS, reward)
        self._pay(job, job.terms.submitter, rest)
        self._end(job, at, unit, state)

    def _end(self, job: Job, at: int, unit: Unit, state: State) -> None:
        self.ends[job.id, at] += 1
        self._write(job, at, replace(unit, state=state))
        if job.header is not None:
            if state == State.SETTLED and unit.outcome == Outcome.OK:
                job.header = replace(job.header, done=job.header.done + 1)
            else:
                job.header = replace(job.header, failed=job.header.failed + 1)

    def _write(self, job: Job, at: int, unit: Unit) -> None:
        self.visits[self._stored(job, at).state, unit.state] += 1
        job.units[at] = unit


class _Undo:
    """Put a job back as it was when a call that touched it is refused."""

    def __init__(self, model: Model, job: Job) -> None:
        self._job = job
        self._saved = (dict(job.units), job.header, dict(job.best))

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is Refusal:
            self._job.units, self._job.header, self._job.best = self._saved
