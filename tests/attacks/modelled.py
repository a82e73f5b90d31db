"""One job on the contracts and in tests.kit.model at once: after every call, every field of both must be equal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hearth.protocol import formulas, words
from hearth.protocol.types import Accused, Outcome, Policy, State, Terms, TermsFlag
from tests.attacks.stages import market
from tests.kit import world as w
from tests.kit.evm import Reverted
from tests.kit.model import Job, Model, Refusal

# More than any sum of the amounts that the contracts take.
PURSE = 2**128


class Modelled:
    """A market and its model, with one node; `job` is the posted job."""

    def __init__(self, policy: Policy, *, ask: int, stake: int, kind: str = "native") -> None:
        self.world = market(kind, policy=policy)
        world = self.world
        for account in (world.submitter, world.owner):
            world.evm.set_balance(account, PURSE)
        self.model = Model(policy, w.NODES, world.treasury, words.pack_policy(policy), world.evm.now)
        self.calls = 0
        offer = replace(w.OFFER, ask=ask)
        self.node = self.model.register(world.owner, world.operator, offer, stake)
        assert world.register(stake=stake, ask=ask, beat=False) == self.node
        self.step(
            lambda m: m.beat(world.operator, self.node), lambda: world.nodes.send.beat(self.node, sender=world.operator)
        )
        self.job: Job

    def step(self, modelled: Callable[[Model], Any], real: Callable[[], Any]) -> str:
        """Make one call on both sides and compare everything; return the reason where both refuse."""
        self.calls += 1
        self.model.now = self.world.evm.now
        reason = ""
        try:
            modelled(self.model)
        except Refusal as refusal:
            reason = refusal.reason
        try:
            real()
        except Reverted as reverted:
            assert reverted.reason == reason, f"reverted with {reverted.reason!r}, the model says {reason!r}"
        else:
            assert not reason, f"succeeded, the model refuses: {reason}"
        self.compare()
        return reason

    def compare(self) -> None:
        """Every field of every word, every lock and every credit."""
        world, model = self.world, self.model
        for node in model.nodes.values():
            assert world.node(node.id) == node
            assert world.staked(node.id) == node.stake
            assert world.nodes.call.offered_operator(node.id) == model.offered_operator.get(node.id, w.ZERO)
        totals = words.unpack(words.TOTALS, world.nodes.call.totals())
        assert totals == {
            "next_id": model.next_id,
            "hour": model.hour,
            "burnt": model.burnt,
            "total": model.stake_total,
        }
        for job in model.jobs.values():
            for index, unit in job.units.items():
                job_word, word, second, accused = world.load(job.terms, index)
                assert words.unpack_unit(word) == unit
                assert words.unpack_accused(accused) == job.accused.get(index, Accused())
                if unit.state == State.OPEN and unit.mark:
                    assert words.unpack_best(second) == job.best[index]
                if job.header is not None:
                    assert words.unpack_header(job_word) == job.header
        for submitter, lock in model.locks().items():
            assert world.locked(submitter) == lock
        accounts = {*model.credits, world.submitter, world.owner, world.treasury, world.keeper, w.DEAD}
        for account in accounts:
            assert world.credit(account) == model.credits[account], account
        held = sum(model.job_lock(job) for job in model.jobs.values()) + model.stake_total
        held += sum(model.credits.values())
        assert world.evm.balance(world.escrow) == held if world.token is None else True

    def terms(self, **overrides: Any) -> Terms:
        """Build terms that the one node may take."""
        base: dict[str, Any] = {"flags": TermsFlag.NEWCOMERS, "deadline": self.world.evm.now + 90 * w.DAY}
        return self.world.terms(**{**base, **overrides})

    def post(self, terms: Terms) -> None:
        """Post on both sides; the contract's refusals of large amounts are not the model's, so they raise."""
        world = self.world
        world.post(terms)
        self.model.now = world.evm.now
        self.model.post(world.submitter, terms, world.id_of(terms))
        self.job = self.model.jobs[world.id_of(terms)]
        self.compare()

    def by(self, name: str, *args: Any, sender: str | None = None, **real: Any) -> str:
        """Make the call `name` on unit 0 on both sides; `args` follow the index."""
        world, job = self.world, self.job
        roles = {
            **dict.fromkeys(("claim", "ack", "submit", "decline"), world.operator),
            **dict.fromkeys(("cancel", "accept"), world.submitter),
        }
        who = sender or roles.get(name, world.keeper)
        if name == "submit":
            outcome, used = args
            return self.step(
                lambda m: m.submit(who, job, 0, Outcome(outcome), used),
                lambda: world.submit(job.terms, outcome=outcome, used=used, sender=who),
            )
        if name == "decline":
            return self.step(
                lambda m: m.decline(who, job, 0, Outcome(args[0])),
                lambda: world.decline(job.terms, outcome=args[0], sender=who),
            )
        if name in ("claim", "propose"):
            return self.step(
                lambda m: getattr(m, name)(who, job, 0, self.node),
                lambda: getattr(world, name)(job.terms, self.node, sender=who),
            )
        return self.step(lambda m: getattr(m, name)(who, job, 0), lambda: getattr(world, name)(job.terms, sender=who))

    def wait_until(self, moment: int) -> None:
        """Let time pass."""
        self.world.evm.at(max(moment, self.world.evm.now))

    @property
    def mark(self) -> int:
        """Return the moment in the unit's lane `mark`, whatever it means now."""
        return self.job.units[0].mark

    @property
    def expirable(self) -> int:
        """Return the first second of expiry."""
        return formulas.expirable_from(self.job.terms)


def _must(both: Modelled, name: str, *args: Any) -> None:
    assert both.by(name, *args) == "", name


def _claim(both: Modelled) -> None:
    """Claim in the first second at which open claims have risen to the node's ask, and in none before."""
    world, unit = both.world, both.job.units[0]
    due = formulas.claimable_from(both.job.terms, unit, both.model.nodes[both.node].offer.ask)
    assert due is not None
    early = world.evm.now < due
    both.wait_until(due - 1)
    both.step(
        lambda m: m.beat(world.operator, both.node), lambda: world.nodes.send.beat(both.node, sender=world.operator)
    )
    if early:
        assert both.by("claim") == "nodes: ask above ceiling"
        both.wait_until(due)
    _must(both, "claim")


def settle(both: Modelled, late: int, used: int) -> None:
    """Claim, submit, settle."""
    _claim(both)
    both.world.evm.warp(min(late, both.mark - both.world.evm.now - 1))
    _must(both, "submit", 1, used)
    both.world.evm.warp(late)
    _must(both, "settle")


def accept(both: Modelled, late: int, used: int) -> None:
    """Claim, submit a failure, accept."""
    _claim(both)
    _must(both, "submit", 3, used)
    _must(both, "accept")


def match(both: Modelled, late: int, used: int) -> None:
    """Propose, ack, submit, settle: a tip is paid before the end."""
    _must(both, "propose")
    both.wait_until(both.mark)
    _must(both, "ack")
    _must(both, "submit", 1, used)
    both.world.evm.warp(late)
    _must(both, "settle")


def lapse(both: Modelled, late: int, used: int) -> None:
    """Propose, let the match lapse, expire."""
    _must(both, "propose")
    both.wait_until(max(both.mark + both.world.policy.ack_time, both.expirable + late))
    _must(both, "expire")


def close(both: Modelled, late: int, used: int) -> None:
    """Claim, cancel, close."""
    _claim(both)
    both.world.evm.warp(min(late, both.mark - both.world.evm.now - 1, w.DEAD_AFTER - 1))
    _must(both, "cancel")
    both.wait_until(both.mark + late)
    _must(both, "close")


def submit_in_notice(both: Modelled, late: int, used: int) -> None:
    """Claim, cancel, submit before the notice is over, settle."""
    _claim(both)
    _must(both, "cancel")
    if both.mark > both.world.evm.now:
        _must(both, "submit", 1, used)
        _must(both, "settle")
    else:
        _must(both, "close")


def reclaim(both: Modelled, late: int, used: int) -> None:
    """Let every attempt fail, then expire or be refunded."""
    while both.job.units[0].state == State.OPEN and both.job.units[0].attempts == 0:
        _claim(both)
        both.wait_until(both.mark + late)
        _must(both, "reclaim")
    if both.job.units[0].state == State.OPEN:
        both.wait_until(both.expirable + late)
        _must(both, "expire")


def decline(both: Modelled, late: int, used: int) -> None:
    """Claim, decline, cancel."""
    _claim(both)
    _must(both, "decline", 6)
    if both.job.units[0].state == State.OPEN:
        _must(both, "cancel")


def expire(both: Modelled, late: int, used: int) -> None:
    """Wait until nobody can run it."""
    both.wait_until(both.expirable + late)
    _must(both, "expire")


LIVES: dict[str, Callable[[Modelled, int, int], None]] = {
    function.__name__: function
    for function in (settle, accept, match, lapse, close, submit_in_notice, reclaim, decline, expire)
}
