"""What every call costs, in steady state, with the terms that the command line makes of examples/digits.

`measure` runs on a real anvil (the benchmark) and in process (the snapshot test). Owner, operator, submitter, settler
and treasury differ in every sample; the fee is on, keeper_fee > 0 and reputation is written. Steady state means that
credits, node states and the hour's burn word are already non-zero. A sample is void where its receipt lacks its
step's event.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hearth.jobfile import (
    Blob,
    JobSpec,
    ResolvedSpec,
    load_spec,
    local_sources,
    needs_of,
    plan_prices,
    resolve,
    spec_digest,
    terms_of,
)
from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import MAX_PARENTS, SENTINEL, NodeId, State, Terms, TermsFlag, Verdict
from hearth.protocol.units import Asset
from hearth.storage.stores import MemoryStore
from tests.kit import world as w
from tests.kit.attesters import Attested
from tests.kit.evm import ROOT, Receipt
from tests.kit.steps import RESUMABLE, season
from tests.kit.vault import share

# The ceilings; docs/GAS.md shows them beside the figures.
CEILINGS = {
    "post": 85_500,
    "claim": 51_800,
    "submit": 41_300,
    "settle": 88_500,
    "life": 266_000,
    "finish": 83_000,
    "life_finish": 220_000,
    "array_finish": 87_500,
    "finish_claims": 120_000,
    "settle_accused": 99_500,
    "settle_batch_50": 51_000,
    "propose": 74_700,
    "improve": 57_400,
    "propose_after_lapse": 57_400,
    "ack": 70_800,
    "checkpoint": 56_900,
    "checkpoint_next": 39_400,
    "top_up": 55_000,
    "settle_resumed": 106_000,
    "decline": 71_000,
    "decline_acked": 100_000,
    "give_up": 79_900,
    "cancel": 52_400,
    "cancel_running": 41_100,
    "close": 82_300,
    "reclaim": 88_400,
    "reclaim_final": 102_000,
    "expire": 58_000,
    "reclaim_checkpoint": 112_500,
    "beat": 27_200,
    "beats_100": 5_900,
    "register": 140_400,
    "withdraw": 36_600,
    "array_claim": 75_300,
    "array_submit": 43_600,
    "array_settle": 91_000,
    "confirm_2_of_3": 113_500,
    "submit_store": 64_200,
    "life_judged": 287_900,
    "dispute": 36_400,
    "rule_release": 41_500,
    "rule_confirm": 94_500,
    "rule_reject": 114_000,
    "rule_void": 86_500,
    "settle_unproven": 100_000,
    "post_after_1": 88_000,
    "post_after_most": 104_500,
    "unlock_1_parents": 55_000,
    "unlock_5_parents": 68_700,
    "unlock_most_parents": 101_900,
    "unlock_refund": 61_900,
    "cancel_blocked": 53_000,
}
POST_10000_EXTRA = 500
BATCH = 50


@cache
def _digits() -> tuple[JobSpec, ResolvedSpec]:
    loaded = load_spec(ROOT / "examples" / "digits" / "job.yaml", {})
    store = MemoryStore()
    blobs = {}
    for _, source in local_sources(loaded.spec):
        entry = store.add_path(loaded.folder / source)
        blobs[source] = Blob(cid=str(entry.cid), size=entry.size)
    return loaded.spec, resolve(loaded.spec, blobs)


def digits_terms(world: w.World, **overrides: Any) -> Terms:
    """Return the terms that `hearth submit examples/digits/job.yaml` posts now, with another salt at every call."""
    spec, resolved = _digits()
    base = world.terms()
    terms = terms_of(
        spec,
        submitter=world.submitter.lower(),
        salt=base.salt,
        digest=spec_digest(resolved),
        needs=needs_of(resolved.resources, resolved.runtime),
        prices=plan_prices(spec, Asset("ETH", 18), world.policy),
        policy=world.policy,
        policy_word=words.pack_policy(world.policy),
        now=world.evm.now,
    )
    return w.replace(terms, **overrides)


class Bench:
    """Samples on one world. The nodes ask at most a quarter of the digits job's ceiling, so that they claim at once."""

    def __init__(self, world: w.World) -> None:
        self.world = world
        self.figures: dict[str, int] = {}
        ask = digits_terms(world).ceiling // 4
        self.ask = ask
        self.attested = Attested(world)
        self.node = world.register(ask=ask)
        self.other_owner = world.evm.account("owner b")
        self.other_operator = world.evm.account("operator b")
        self.reader = world.evm.deploy("mocks/Receiver")
        self.other = self._register(self.other_owner, self.other_operator, ask - 10**12)

    def _register(self, owner: str, operator: str, ask: int) -> NodeId:
        return self.world.register(owner=owner, operator=operator, ask=ask, slots=63)

    def sample(self, key: str, event: str, receipt: Receipt, *, per: int = 1) -> Receipt:
        """Record one figure; void samples raise."""
        assert len(receipt.events(event)) >= 1, f"{key}: the receipt lacks {event}"
        self.figures[key] = receipt.gas_used // per
        return receipt

    def terms(self, **overrides: Any) -> Terms:
        """Return a fresh open-claim job's terms unless told otherwise; both operators have just beaten."""
        self.beat()
        return digits_terms(self.world, **{"match_window": 0, "flags": TermsFlag.NEWCOMERS, **overrides})

    def beat(self) -> None:
        """Let both operators beat."""
        nodes = self.world.nodes.send
        nodes.beat(self.node, sender=self.world.operator)
        nodes.beat(self.other, sender=self.other_operator)

    def life(self, record: bool) -> None:
        """Post, claim, submit and settle by a paid keeper."""
        world = self.world
        note: Callable[..., Receipt] = self.sample if record else (lambda key, event, receipt: receipt)
        terms = self.terms()
        note("post", "JobPosted", world.post_receipt(terms))
        note("claim", "Started", world.claim(terms, self.node))
        world.evm.warp(5)
        note("submit", "Submitted", world.submit(terms, used=4))
        world.evm.warp(1)
        receipt = note("settle", "Settled", world.settle(terms))
        shares = receipt.event("Split")["shares"]
        assert all(share >> 160 for share in shares), "owner, treasury, settler and submitter are all paid"
        if record:
            self.figures["life"] = sum(self.figures[key] for key in ("post", "claim", "submit", "settle"))

    def finished(self, record: bool) -> None:
        """Post, claim and finish; then finish an array's unit, and one whose node takes the next in the same call."""
        world = self.world
        note: Callable[..., Receipt] = self.sample if record else (lambda key, event, receipt: receipt)
        self.beat()
        season(world, self.node)
        terms = self.terms()
        parts = [world.post_receipt(terms), world.claim(terms, self.node)]
        world.evm.warp(5)
        parts.append(note("finish", "Finished", world.finish(terms, used=4)))
        shares = parts[-1].event("Split")["shares"]
        assert all(share >> 160 for share in shares), "owner, treasury and submitter are all paid"
        if record:
            self.figures["life_finish"] = sum(part.gas_used for part in parts)
        terms = self.terms(units=20)
        world.post(terms)
        world.claim(terms, self.node, SENTINEL)
        world.finish(terms, 0, used=4, claims=True)
        note("finish_claims", "Started", world.finish(terms, 1, used=4, claims=True))
        note("array_finish", "Finished", world.finish(terms, 2, used=4))
        world.cancel(terms, SENTINEL)

    def matched(self, record: bool) -> None:
        """Propose, improve, lapse, propose again, ack."""
        world = self.world
        note: Callable[..., Receipt] = self.sample if record else (lambda key, event, receipt: receipt)
        terms = self.terms(match_window=30)
        world.post(terms)
        low, high = self._by_key(terms)
        note("propose", "Proposed", world.propose(terms, low))
        note("improve", "Proposed", world.propose(terms, high, sender=world.stranger))
        world.evm.warp(30 + w.POLICY.ack_time)
        self.beat()
        note("propose_after_lapse", "Proposed", world.propose(terms, low))
        world.evm.warp(30)
        self.beat()
        operator = world.operator if low == self.node else self.other_operator
        note("ack", "Started", world.ack(terms, sender=operator))
        world.submit(terms, used=4, sender=operator)
        world.accept(terms)

        terms = self.terms(match_window=30)
        world.post(terms)
        world.propose(terms, self.node)
        world.evm.warp(30)
        self.beat()
        world.ack(terms)
        note("decline_acked", "Declined", world.decline(terms))
        world.cancel(terms)

    def _by_key(self, terms: Terms) -> tuple[NodeId, NodeId]:
        packed = words.pack_terms(terms)
        keys = {node: self.world.lens.call.score(packed, 0, node)[2] for node in (self.node, self.other)}
        low, high = sorted(keys, key=lambda node: keys[node])
        return low, high

    def ends(self, record: bool) -> None:
        """Take every other way out of a unit."""
        world = self.world
        note: Callable[..., Receipt] = self.sample if record else (lambda key, event, receipt: receipt)
        terms = self.terms()
        world.post(terms)
        world.claim(terms, self.node)
        note("decline", "Declined", world.decline(terms))
        world.claim(terms, self.other, sender=self.other_operator)
        world.submit(terms, used=4, sender=self.other_operator)
        world.evm.warp(1)
        note("settle_accused", "Settled", world.settle(terms))

        terms = self.terms()
        world.post(terms)
        note("cancel", "Cancelled", world.cancel(terms))

        terms = self.terms()
        world.post(terms)
        world.claim(terms, self.node)
        note("cancel_running", "Closing", world.cancel(terms))
        world.evm.warp(w.POLICY.cancel_notice + 1)
        note("close", "Closed", world.close(terms))

        # Both failures fall into one clock hour and stay below the ration, so both burn.
        world.evm.at((world.evm.now // 3_600 + 1) * 3_600)
        first, last = self.terms(), self.terms(max_attempts=1)
        for terms in (first, last):
            world.post(terms)
            world.claim(terms, self.other, sender=self.other_operator)
        world.evm.warp(w.DEAD_AFTER)
        note("reclaim", "Reclaimed", world.reclaim(first))
        # Only the first reclaim of a silence is a failure.
        world.nodes.send.beat(self.other, sender=self.other_operator)
        world.evm.warp(w.DEAD_AFTER)
        note("reclaim_final", "Reclaimed", world.reclaim(last))
        world.cancel(first)
        # A node of its own: with the failures of the others it would soon be in quarantine.
        third = self._register(self.other_owner, self.other_operator, self.ask)
        world.nodes.send.beat(third, sender=self.other_operator)
        terms = self.terms()
        world.post(terms)
        world.claim(terms, third, sender=self.other_operator)
        note("give_up", "GaveUp", world.give_up(terms, sender=self.other_operator))
        world.cancel(terms)
        world.evm.warp(2 * w.DAY)

        terms = self.terms()
        world.post(terms)
        world.evm.at(formulas.expirable_from(terms) + 1)
        note("expire", "Expired", world.expire(terms))

    def checkpoints(self, record: bool) -> None:
        """Checkpoint and top up a lease, lose it, and settle the result of the one that resumed it."""
        world = self.world
        note: Callable[..., Receipt] = self.sample if record else (lambda key, event, receipt: receipt)
        # A node of its own: with the failures of the others it would soon be in quarantine.
        lost = self._register(self.other_owner, self.other_operator, self.ask)
        terms = self.terms(max_seconds=20_000, deadline=world.evm.now + w.DAY, **RESUMABLE)
        world.nodes.send.beat(lost, sender=self.other_operator)
        world.post(terms)
        world.claim(terms, lost, sender=self.other_operator)
        for key in ("checkpoint", "checkpoint_next"):
            world.evm.warp(5)
            note(key, "Checkpointed", world.checkpoint(terms, sender=self.other_operator))
        note("top_up", "ToppedUp", world.top_up(terms, 60))
        world.evm.warp(w.DEAD_AFTER)
        note("reclaim_checkpoint", "Reclaimed", world.reclaim(terms))
        assert world.kept(terms, 1).seconds == 10
        self.beat()
        world.claim(terms, self.node, resume_from=1)
        world.evm.warp(5)
        world.submit(terms)
        world.evm.warp(1)
        note("settle_resumed", "CheckpointPaid", world.settle(terms))

    def confirms(self, record: bool) -> None:
        """Have two of three attesters confirm a result."""
        world, attested = self.world, self.attested
        note: Callable[..., Receipt] = self.sample if record else (lambda key, event, receipt: receipt)
        terms = self.terms(**attested.named(), deadline=world.evm.now + w.DAY)
        world.post(terms)
        world.claim(terms, self.node)
        world.evm.warp(5)
        world.submit(terms, used=4)
        receipt = note("confirm_2_of_3", "Ruled", attested.confirm(terms, attested.signed(terms)))
        shares = receipt.event("Split")["shares"]
        assert all(share >> 160 for share in shares), "owner, treasury, settler and submitter are all paid"

    def arrays(self, record: bool) -> None:
        """Take the second unit of an array through its life."""
        world = self.world
        note: Callable[..., Receipt] = self.sample if record else (lambda key, event, receipt: receipt)
        terms = self.terms(units=20)
        world.post(terms)
        for at, key in enumerate(("warm", "array_")):
            keep = note if key == "array_" else (lambda _key, _event, receipt: receipt)
            keep("array_claim", "Started", world.claim(terms, self.node, SENTINEL))
            keep("array_submit", "Submitted", world.submit(terms, at, used=4))
            world.evm.warp(1)
            keep("array_settle", "Settled", world.settle(terms, at))
        world.cancel(terms, SENTINEL)

    def judged(self, record: bool) -> None:
        """Take jobs that name a judge through their life, and every verdict, of a judge that does nothing else."""
        world = self.world
        note: Callable[..., Receipt] = self.sample if record else (lambda key, event, receipt: receipt)
        # A judge that reads nothing of its own when it is asked.
        terms = self.terms(**world.judged(judge=self.reader.address.lower()))
        parts = [world.post_receipt(terms), world.claim(terms, self.node)]
        parts.append(note("submit_store", "Submitted", world.submit(terms, used=4)))
        world.evm.warp(terms.challenge_window)
        parts.append(world.settle(terms))
        assert parts[-1].events("Settled")
        if record:
            self.figures["life_judged"] = sum(part.gas_used for part in parts)

        terms = self._submitted(self.node)
        note("dispute", "Disputed", world.dispute(terms))
        note("rule_release", "Ruled", world.rule(terms, Verdict.RELEASE))
        note("rule_confirm", "Ruled", world.rule(terms, Verdict.CONFIRM, payee=world.keeper))
        terms = self._submitted(self.node)
        note("rule_void", "Ruled", world.rule(terms, Verdict.VOID))
        # Nodes of their own: what is rejected or not proven sets a node aside.
        for key in ("rule_reject", "settle_unproven"):
            node = self._register(self.other_owner, self.other_operator, self.ask)
            world.nodes.send.beat(node, sender=self.other_operator)
            terms = self._submitted(node, deadline=world.evm.now + w.DAY)
            if key == "rule_reject":
                part = formulas.bond(terms) // 10
                given = [share(who, part) for who in (world.submitter, world.keeper, self.other_owner)]
                note(key, "Rejected", world.rule(terms, Verdict.REJECT, shares=(given[0], given[1], given[2])))
            else:
                world.evm.at(terms.deadline + terms.challenge_window)
                note(key, "Unproven", world.settle(terms))

    def parents(self, record: bool) -> None:
        """Post jobs that wait for others, open them, end one by its parent, and cancel one."""
        world = self.world
        note: Callable[..., Receipt] = self.sample if record else (lambda key, event, receipt: receipt)
        ended = self.ended(MAX_PARENTS)
        for count in (1, 5, MAX_PARENTS):
            number = "most" if count == MAX_PARENTS else count
            terms, packed = self.waiting(ended[:count], Condition.FAILURE)
            receipt = world.post_receipt(terms, parents=packed)
            if count != 5:
                note(f"post_after_{number}", "JobPosted", receipt)
            note(f"unlock_{number}_parents", "Unlocked", world.unlock(terms, parents=packed))
            assert world.state(terms) == State.OPEN
            world.cancel(terms)
        terms, packed = self.waiting(ended[:1], Condition.SUCCESS)
        world.post_receipt(terms, parents=packed)
        receipt = note("unlock_refund", "Unlocked", world.unlock(terms, parents=packed))
        assert receipt.event("Unlocked")["refund"] and world.state(terms) == State.CANCELLED
        terms, packed = self.waiting(ended[:1], Condition.SUCCESS)
        world.post_receipt(terms, parents=packed)
        note("cancel_blocked", "Cancelled", world.cancel(terms))

    def ended(self, count: int) -> list[Terms]:
        """Post so many jobs and cancel them."""
        found = []
        for _ in range(count):
            found.append(self.world.post(self.terms()))
            self.world.cancel(found[-1])
        return found

    def waiting(self, parents: list[Terms], condition: Condition, **overrides: Any) -> tuple[Terms, tuple[bytes, ...]]:
        """Return the terms of a job that waits for these, and its list."""
        packed = pack_parents([Parent(self.world.id_of(terms), condition) for terms in parents])
        return self.terms(parents_hash=parents_hash(packed), **overrides), packed

    def _submitted(self, node: NodeId, **overrides: Any) -> Terms:
        """Submit a unit whose judge has to confirm it."""
        world, operator = self.world, self.world.operator if node == self.node else self.other_operator
        flags = TermsFlag.NEWCOMERS | TermsFlag.PROVEN
        terms = self.terms(**world.judged(flags=flags, **overrides))
        world.post(terms)
        world.claim(terms, node, sender=operator)
        world.submit(terms, used=4, sender=operator)
        return terms

    def nodes(self) -> None:
        """Beat, register and withdraw."""
        world = self.world
        world.evm.warp(5)
        receipt = world.nodes.send.beat(self.node, sender=world.operator)
        self.figures["beat"] = receipt.gas_used
        farm, owner = world.evm.account("farm"), world.evm.account("farm owner")
        ids = [world.register(owner=owner, operator=farm, stake=w.ETHER) for _ in range(100)]
        world.evm.warp(5)
        before = world.node(ids[-1]).state.beat
        receipt = world.nodes.send.heartbeat(ids, sender=farm)
        assert world.node(ids[-1]).state.beat > before
        self.figures["beats_100"] = receipt.gas_used // 100
        offer = words.pack_offer(w.replace(w.OFFER, ask=self.ask))
        receipt = world.pay(
            world.nodes, "register", farm, offer, b"\x55" * 32, w.ETHER, amount=w.ETHER, sender=self.other_owner
        )
        self.sample("register", "NodeRegistered", receipt)
        credit = world.credit(self.other_owner)
        assert credit > 0
        receipt = world.escrow.send.withdraw(self.other_owner, credit, sender=self.other_owner)
        self.sample("withdraw", "Withdrawn", receipt)

    def batch(self) -> None:
        """Settle 50 jobs at once, all owners and submitters distinct, each credited before."""
        world = self.world
        parties = []
        for i in range(BATCH):
            owner, operator = world.evm.account(f"owner {i}"), world.evm.account(f"operator {i}")
            parties.append(
                (owner, operator, world.evm.account(f"submitter {i}"), self._register(owner, operator, self.ask))
            )
        for record in (False, True):
            items = []
            for _, operator, submitter, node in parties:
                world.nodes.send.beat(node, sender=operator)
                terms = digits_terms(world, match_window=0, flags=TermsFlag.NEWCOMERS, submitter=submitter.lower())
                world.post(terms)
                world.claim(terms, node, sender=operator)
                world.submit(terms, used=4, sender=operator)
                items.append((words.pack_terms(terms), 0))
            world.evm.warp(1)
            receipt = world.jobs.send.settle_batch(items, world.keeper, sender=world.keeper)
            assert len(receipt.events("Settled")) == BATCH
            if record:
                self.figures["settle_batch_50"] = receipt.gas_used // BATCH

    def posts(self) -> None:
        """Post 10,000 units."""
        world = self.world
        terms = self.terms(units=10_000)
        self.sample("post_10000", "JobPosted", world.post_receipt(terms))


def measure(world: w.World, *, batch: bool = True) -> dict[str, int]:
    """Return gas by key; each path is walked once before it is measured, so that its state is steady."""
    return walk(Bench(world), batch=batch).figures


def walk(bench: Bench, *, batch: bool) -> Bench:
    """Take every path of a bench, once for its state and once for its figures; return the bench."""
    for record in (False, True):
        bench.life(record)
        bench.matched(record)
        bench.ends(record)
        bench.finished(record)
        bench.checkpoints(record)
        bench.confirms(record)
        bench.arrays(record)
        bench.judged(record)
        bench.parents(record)
    bench.nodes()
    bench.posts()
    if batch:
        bench.batch()
    return bench


def measure_dearest(world: w.World) -> dict[str, int]:
    """Return the gas of each call for the dearest kind of unit, by its name in hearth.protocol.gas.

    That is a unit of an array, of other people each time in a batch; it is settled and reclaimed as what an earlier
    holder gave back or the last attempt lost. What a batch costs is by `..._BATCH` and `..._ITEM` of two and of ten.
    """
    bench = Bench(world)
    bench.life(False)
    bench.matched(False)
    bench.ends(False)
    found: dict[str, int] = {}
    _match_array(bench, found)
    _settle_accused(bench, found)
    _finish_accused(bench, found)
    _end_array(bench, found)
    _reclaim_checkpointed(bench, found)
    _settle_strangers(bench, found)
    _check_silent(bench, found)
    _unlock(bench, found)
    return found


def _match_array(bench: Bench, found: dict[str, int]) -> None:
    world, terms = bench.world, bench.terms(units=20, match_window=30)
    world.post(terms)
    low, high = bench._by_key(terms)
    operator = world.operator if high == bench.node else bench.other_operator
    for index in range(2):  # the first unit pays its tip to a new account
        bench.beat()
        found["PROPOSE_NEXT"] = world.propose(terms, low, SENTINEL).gas_used
        found["IMPROVE"] = world.propose(terms, high, index, sender=world.stranger).gas_used
        world.evm.warp(30)
        bench.beat()
        found["ACK"] = world.ack(terms, index, sender=operator).gas_used
        found["SUBMIT"] = world.submit(terms, index, used=4, sender=operator).gas_used
    judged = bench.terms(units=20, match_window=0, **world.judged())
    world.post(judged)
    for index in range(2):
        bench.beat()
        world.claim(judged, bench.node, SENTINEL)
        found["SUBMIT_JUDGED"] = world.submit(judged, index, used=4).gas_used


def _settle_accused(bench: Bench, found: dict[str, int]) -> None:
    world, terms = bench.world, bench.terms(units=20)
    world.post(terms)
    for index in range(2):
        bench.beat()
        found["CLAIM"] = world.claim(terms, bench.node, SENTINEL).gas_used
        world.decline(terms, index)
        world.claim(terms, bench.other, index, sender=bench.other_operator)
        world.submit(terms, index, used=4, sender=bench.other_operator)
        world.evm.warp(1)
        found["SETTLE"] = world.settle(terms, index).gas_used
    world.evm.warp(2 * w.DAY)


def _finish_accused(bench: Bench, found: dict[str, int]) -> None:
    """Finish units of an array that another node declined, without and with the next lease."""
    world, terms = bench.world, bench.terms(units=20)
    bench.beat()
    season(world, bench.other, operator=bench.other_operator)
    world.post(terms)
    bench.beat()
    for index, key in enumerate(("", "FINISH", "FINISH_CLAIMS")):
        at = world.header(terms).touched
        world.claim(terms, bench.node, SENTINEL)
        world.decline(terms, at)
        world.claim(terms, bench.other, at, sender=bench.other_operator)
        receipt = world.finish(terms, at, used=4, claims=index == 2, sender=bench.other_operator)
        assert len(receipt.events("Started")) == (index == 2)
        if key:
            found[key] = receipt.gas_used
    world.evm.warp(2 * w.DAY)


def _end_array(bench: Bench, found: dict[str, int]) -> None:
    world, terms = bench.world, bench.terms(units=20, max_attempts=1)
    world.post(terms)
    for _ in range(2):
        bench.beat()
        world.claim(terms, bench.node, SENTINEL)
    world.cancel(terms, 0)
    world.evm.warp(w.POLICY.cancel_notice + 1)
    found["CLOSE"] = world.close(terms, 0).gas_used
    world.evm.warp(w.DEAD_AFTER)
    found["RECLAIM"] = world.reclaim(terms, 1).gas_used
    world.evm.at(formulas.expirable_from(terms) + 1)
    found["EXPIRE"] = world.expire(terms, SENTINEL).gas_used


def _reclaim_checkpointed(bench: Bench, found: dict[str, int]) -> None:
    """Reclaim a unit of an array that opens again with a checkpoint to keep: dearer than one that ends it."""
    world = bench.world
    node = bench._register(bench.other_owner, bench.other_operator, bench.ask)
    terms = bench.terms(units=20, max_seconds=20_000, deadline=world.evm.now + w.DAY, **RESUMABLE)
    world.post(terms)
    world.nodes.send.beat(node, sender=bench.other_operator)
    world.claim(terms, node, SENTINEL, sender=bench.other_operator)
    world.evm.warp(5)
    found["CHECKPOINT"] = world.checkpoint(terms, 0, sender=bench.other_operator).gas_used
    world.evm.warp(w.DEAD_AFTER)
    found["RECLAIM"] = max(found["RECLAIM"], world.reclaim(terms, 0).gas_used)


def _settle_strangers(bench: Bench, found: dict[str, int]) -> None:
    """Settle the second units of arrays, all owners and submitters distinct, each credited before."""
    world = bench.world
    parties = []
    for i in range(10):
        owner, operator = world.evm.account(f"owner {i}"), world.evm.account(f"operator {i}")
        parties.append((operator, world.evm.account(f"submitter {i}"), bench._register(owner, operator, bench.ask)))
    for count in (10, 2, 10):
        items = []
        for operator, submitter, node in parties[:count]:
            terms = bench.terms(submitter=submitter.lower(), units=20)
            world.post(terms)
            for index in range(2):
                world.nodes.send.beat(node, sender=operator)
                world.claim(terms, node, SENTINEL, sender=operator)
                world.submit(terms, index, used=4, sender=operator)
                if index == 0:
                    world.evm.warp(1)
                    world.settle(terms, index)
            items.append((words.pack_terms(terms), 1))
        world.evm.warp(1)
        receipt = world.jobs.send.settle_batch(items, world.keeper, sender=world.keeper)
        assert len(receipt.events("Settled")) == count
        found[f"SETTLE of {count}"] = receipt.gas_used


def _unlock(bench: Bench, found: dict[str, int]) -> None:
    """End what waits by the last of its parents: a refund, with one parent and with the most."""
    world, ended = bench.world, bench.ended(MAX_PARENTS)
    for count in (MAX_PARENTS, 1, MAX_PARENTS):
        for units in (1, 20):
            # All but the last ended as asked, so that each of them is read.
            asked = [Condition.FAILURE] * (count - 1) + [Condition.SUCCESS]
            packed = pack_parents(
                [Parent(world.id_of(one), how) for one, how in zip(ended[:count], asked, strict=True)]
            )
            terms = bench.terms(units=units, parents_hash=parents_hash(packed))
            world.post_receipt(terms, parents=packed)
            receipt = world.unlock(terms, parents=packed)
            assert receipt.event("Unlocked")["refund"]
            key = f"UNLOCK of {count}"
            found[key] = max(receipt.gas_used, found.get(key, 0) if units > 1 else 0)


def _check_silent(bench: Bench, found: dict[str, int]) -> None:
    world, farm = bench.world, bench.world.evm.account("silent farm")
    ids = [world.register(owner=world.evm.account(f"silent {i}"), operator=farm, stake=w.ETHER) for i in range(10)]
    world.nodes.send.heartbeat(ids, sender=farm)
    terms = world.post(units=len(ids), flags=TermsFlag.NEWCOMERS)  # the dearest pay a fee, as they run something
    for index, node in enumerate(ids):
        world.claim(terms, node, index, sender=farm)
    for count in (10, 2, 10):
        world.nodes.send.heartbeat(ids, sender=farm)
        world.evm.warp(w.DEAD_AFTER + 1)
        receipt = world.nodes.send.check_liveness(ids[:count], world.keeper, sender=world.keeper)
        found[f"LIVENESS of {count}"] = receipt.gas_used


def measure_checkpointed(native: w.World, token: w.World) -> dict[str, int]:
    """Return the gas of what a job with checkpoints needs besides, by its name in hearth.protocol.gas: what settling
    uses for one that it pays, and a unit's first top-up, which is dearer where a `token` pays."""
    settled = []
    bench = Bench(native)
    for number, resumed in enumerate((0, 0, 1)):  # the first settlement credits accounts anew
        loser = native.evm.account(f"loser {number}")
        node = bench._register(loser, loser, bench.ask)
        terms = bench.terms(units=20, max_seconds=20_000, deadline=native.evm.now + w.DAY, **RESUMABLE)
        native.post(terms)
        native.nodes.send.beat(node, sender=loser)
        native.claim(terms, node, SENTINEL, sender=loser)
        native.evm.warp(5)
        native.checkpoint(terms, 0, sender=loser)
        native.give_up(terms, 0, sender=loser)
        bench.beat()
        native.claim(terms, bench.node, 0, resume_from=resumed)
        native.evm.warp(5)
        native.submit(terms, 0)
        native.evm.warp(1)
        settled.append(native.settle(terms, 0).gas_used)
    bench = Bench(token)
    terms = bench.terms(units=20, max_seconds=20_000, deadline=token.evm.now + w.DAY, **RESUMABLE)
    token.post(terms)
    bench.beat()
    token.claim(terms, bench.node, SENTINEL)
    return {"PAID_CHECKPOINT": settled[2] - settled[1], "TOP_UP": token.top_up(terms, 60, 0).gas_used}
