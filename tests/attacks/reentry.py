"""A market in which a contract is submitter, owner, operator and governor, and is called back whenever money moves.

Each payment or deposit of the market is an outer call; while the money moves, the attacker makes an inner call, any
function of any contract, with arguments that would be valid at that moment.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hearth.protocol import formulas, words
from hearth.protocol.formulas import MAX_UINT
from hearth.protocol.parents import Condition
from hearth.protocol.types import Billing, Terms, TermsFlag, Verdict
from tests.attacks.stages import HOOK, holding, market
from tests.kit import world as w
from tests.kit.evm import Contract, Reverted
from tests.kit.steps import RESUMABLE
from tests.kit.vault import key, share, shares

REENTER = 1 << 2
PURSE = 10**20
CREDIT, TAKEN = 10**15, 10**14
MORE = 60
"""Seconds of a top-up."""
Args = Callable[["Attack"], tuple[Any, ...]]


class Attack:
    """The market, its attacker, and what is at stake in it."""

    def __init__(self, kind: str) -> None:
        self.world = world = market(kind)
        self.evm = evm = world.evm
        self.attacker: Contract = evm.deploy("mocks/Receiver")
        self.address = self.attacker.address
        self._fill()
        self.victim_node = world.register(stake=100 * w.ETHER)
        self.node = int.from_bytes(
            self.run(
                world.nodes,
                "register",
                self.address,
                words.pack_offer(w.OFFER),
                bytes(32),
                100 * w.ETHER,
                value=100 * w.ETHER,
            )[-32:],
            "big",
        )
        self.run(world.nodes, "beat", self.node)
        self.jobs: dict[str, Terms] = {}
        # The attacker's own jobs, run by the victim's node.
        for name in ("mine open", "mine running", "mine submitted"):
            terms = self._terms(self.address, billing=Billing.METERED)
            self.run(world.jobs, "post", words.pack_terms(terms), (), value=formulas.escrow_at_post(terms))
            self.jobs[name] = terms
            if name != "mine open":
                world.claim(terms, self.victim_node)
            if name == "mine submitted":
                world.submit(terms)
        # One that he judges himself.
        own = self.world.policy.min_challenge_window
        flags = TermsFlag.NEWCOMERS | TermsFlag.PROVEN
        terms = self._terms(self.address, judge=self.address.lower(), challenge_window=own, flags=flags)
        self.run(world.jobs, "post", words.pack_terms(terms), (), value=formulas.escrow_at_post(terms))
        self.jobs["mine judged"] = terms
        world.claim(terms, self.victim_node)
        world.submit(terms)
        # The victim's jobs, run by the attacker's node.
        for name in ("open", "running", "submitted", "last"):
            terms = self._terms(world.submitter, max_attempts=1 if name == "last" else 3, **RESUMABLE)
            self.jobs[name] = world.post(terms)
            if name in ("running", "submitted"):
                self.run(world.jobs, "claim", words.pack_terms(terms), 0, self.node, bytes(32), 0)
            if name == "submitted":
                self.run(world.jobs, "submit", world.id_of(terms), 0, w.RESULT, w.REPORT, 1, 0)
        self.jobs["won"] = world.post(self._terms(world.submitter, match_window=12))
        world.propose(self.jobs["won"], self.node)  # type: ignore[arg-type]
        # One whose first attempt left a checkpoint.
        self.jobs["resumable"] = world.post(self._terms(world.submitter, **RESUMABLE))
        world.claim(self.jobs["resumable"], self.victim_node)
        evm.warp(1)
        world.checkpoint(self.jobs["resumable"])
        world.give_up(self.jobs["resumable"])
        # One that anyone may open: its parent has been cancelled.
        self.jobs["parent"] = world.post(self._terms(world.submitter))
        world.cancel(self.jobs["parent"])
        parent = self.jobs["parent"], Condition.FAILURE
        self.jobs["blocked"] = world.post_after(parent, flags=TermsFlag.NEWCOMERS, keeper_fee=10**14)
        self.jobs["fresh"] = self._terms(self.address)
        self.jobs["second"] = self._terms(self.address)
        evm.warp(12)
        self._gift()
        for registry in (world.nodes, world.rules):
            registry.send.offer_governor(self.address, sender=world.deployer)
            self.run(registry, "accept_governor")
            self.run(registry, "offer_governor", self.address)
        world.nodes.send.offer_owner(self.victim_node, self.address, sender=world.owner)
        self.calls = 1
        if world.token is not None:
            self.calls = 2
            world.token.send.set_hooked(self.attacker)
            world.token.send.set_traits(HOOK)

    def _terms(self, submitter: str, **overrides: Any) -> Terms:
        return self.world.terms(
            **{"submitter": submitter.lower(), "flags": TermsFlag.NEWCOMERS, "keeper_fee": 10**14, **overrides}
        )

    def _fill(self) -> None:
        """Give the attacker money, and approvals to spend it in every deposit."""
        world = self.world
        if world.token is None:
            self.evm.set_balance(self.address, 10 * PURSE)
            return
        world.token.send.mint(self.address, 10 * PURSE)
        for spender in (world.nodes, world.jobs):
            self.run(world.token, "approve", spender, 2**255)

    def _gift(self) -> None:
        """Credit the attacker and the victim."""
        world, payer = self.world, self.evm.account("payer")
        if world.token is not None:
            world.token.send.mint(world.escrow, 2 * CREDIT)
        value = 0 if world.token is not None else 2 * CREDIT
        world.escrow.send.lock(key("gift"), 2 * CREDIT, sender=payer, value=value)
        gifts = shares(share(self.address, CREDIT), share(world.submitter, CREDIT))
        world.escrow.send.split(key("gift"), gifts, sender=payer)
        self.run(world.escrow, "lock_credit", key("own"), CREDIT // 4)

    def run(self, contract: Contract, name: str, *args: Any, value: int = 0) -> bytes:
        """Make a call as the attacker; `value` goes along where the asset is the native coin."""
        sent = value if self.world.token is None else 0
        answer: bytes = self.attacker.send.run(contract, contract.encode(name, *args), sent).value
        return answer

    def contracts(self) -> dict[str, Contract]:
        """Return the market's contracts by name."""
        world = self.world
        return {
            "Escrow": world.escrow,
            "NodeRegistry": world.nodes,
            "Rules": world.rules,
            "JobRegistry": world.jobs,
            "Lens": world.lens,
        }

    def packed(self, name: str) -> words.TermsWords:
        """Return a job's terms as calldata."""
        return words.pack_terms(self.jobs[name])

    def listed(self, name: str) -> tuple[bytes, ...]:
        """Return a job's parents as calldata."""
        return self.world.parents[self.world.id_of(self.jobs[name])]

    def id(self, name: str) -> bytes:
        """Return a job's id."""
        return self.world.id_of(self.jobs[name])

    # the books

    def wealth(self) -> int:
        """Return all that the attacker owns: in hand, credited, locked, staked, and in jobs that he posted."""
        world = self.world
        nodes = range(1, world.nodes.call.totals() & 0xFFFFFFFF)
        return (
            holding(world, self.attacker)
            + world.credit(self.address)
            + world.escrow.call.locked(self.attacker, key("own"))
            + sum(world.staked(n) for n in nodes if world.nodes.call.get(n).owner == self.address)
            + world.locked(self.address)
        )

    def check_books(self) -> None:
        """The sum of all locks and credits is what Escrow counts, and what it has."""
        world = self.world
        people = {world.submitter, world.owner, world.operator, world.keeper, world.treasury, world.stranger}
        people |= {self.address, world.deployer, self.evm.account("payer"), w.DEAD}
        booked = sum(world.credit(who) for who in people) + world.escrow.call.locked(self.attacker, key("own"))
        booked += sum(world.staked(n) for n in range(1, world.nodes.call.totals() & 0xFFFFFFFF))
        booked += sum(world.locked(who) for who in {terms.submitter for terms in self.jobs.values()})
        assert holding(world, world.escrow) == booked
        if world.token is not None:
            assert world.escrow.call.tracked() == booked

    # the strike

    def strike(self, outer: str, contract: str, name: str) -> tuple[bool, list[tuple[bool, bytes]]]:
        """Make the outer call with the inner one in its callbacks: (whether it stood, what came of each callback)."""
        target = self.contracts()[contract]
        args = INNER[contract, name](self)
        value = VALUES.get((contract, name), lambda a: 0)(self) if self.world.token is None else 0
        self.attacker.send.prepare(target, target.encode(name, *args), value, self.calls)
        self.attacker.send.set_mood(REENTER)
        try:
            OUTER[outer](self)
        except Reverted:
            self.attacker.send.set_mood(0)
            return False, []
        self.attacker.send.set_mood(0)
        made = self.calls - self.attacker.call.left()
        return True, [(self.attacker.call.succeeded(n), self.attacker.call.answers(n)) for n in range(made)]

    def inner(self, contract: str, name: str) -> None:
        """Make the inner call on its own, for comparison."""
        target = self.contracts()[contract]
        value = VALUES.get((contract, name), lambda a: 0)(self)
        self.run(target, name, *INNER[contract, name](self), value=value)

    def most(self, outer: str, contract: str, name: str) -> int:
        """Return the most that the attacker has after the same calls one after the other."""
        steps = {"o": lambda: OUTER[outer](self), "i": lambda: self.inner(contract, name)}
        found = [self.wealth()]
        for order in ("oi", "ii", "oii"):
            with self.evm.isolated():
                for step in order:
                    with suppress(Reverted):
                        steps[step]()
                found.append(self.wealth())
        return max(found)


def _post(a: Attack) -> None:
    terms = a.jobs["fresh"]
    a.run(a.world.jobs, "post", words.pack_terms(terms), (), value=formulas.escrow_at_post(terms))


def _more(a: Attack) -> int:
    terms = a.jobs["mine running"]
    return formulas.top_up_amount(terms, a.world.unit(terms), MORE)


def _top_up(a: Attack) -> None:
    a.run(a.world.jobs, "top_up", a.packed("mine running"), 0, MORE, value=_more(a))


def _register(a: Attack) -> None:
    a.run(a.world.nodes, "register", a.address, words.pack_offer(w.OFFER), bytes(32), w.ETHER, value=w.ETHER)


# Every call in which money moves and somebody else's code runs. In the native coin only a payment runs any.
OUTER: dict[str, Callable[[Attack], None]] = {
    "top_up": _top_up,
    "withdraw": lambda a: (a.run(a.world.escrow, "withdraw", a.attacker, TAKEN), None)[1],
    "post": _post,
    "register": _register,
    "add_stake": lambda a: (
        a.run(a.world.nodes, "add_stake", a.node, a.world.node(a.node).owner, w.ETHER, value=w.ETHER),
        None,
    )[1],
}
CASES = [("native", "withdraw"), *(("erc20", outer) for outer in OUTER)]

_ASK = (words.pack_needs(w.NEEDS), 100 * 10**18, 10**15, MAX_UINT)
# Arguments of each function, valid while the outer call is under way.
INNER: dict[tuple[str, str], Args] = {
    ("Escrow", "lock"): lambda a: (key("own"), w.ETHER),
    ("Escrow", "lock_credit"): lambda a: (key("own"), TAKEN),
    ("Escrow", "split"): lambda a: (key("own"), shares(share(a.address, 5))),
    ("Escrow", "withdraw"): lambda a: (a.attacker, TAKEN),
    ("NodeRegistry", "register"): lambda a: (a.address, words.pack_offer(w.OFFER), bytes(32), w.ETHER),
    ("NodeRegistry", "add_stake"): lambda a: (a.node, a.world.node(a.node).owner, w.ETHER),
    ("NodeRegistry", "update_offer"): lambda a: (a.node, words.pack_offer(w.replace(w.OFFER, ask=0)), bytes(32)),
    ("NodeRegistry", "set_ask"): lambda a: (a.node, 7),
    ("NodeRegistry", "set_operator"): lambda a: (a.node, a.world.keeper),
    ("NodeRegistry", "offer_owner"): lambda a: (a.node, a.world.keeper),
    ("NodeRegistry", "accept_owner"): lambda a: (a.victim_node,),
    ("NodeRegistry", "exit_start"): lambda a: (a.node,),
    ("NodeRegistry", "exit_cancel"): lambda a: (a.node,),
    ("NodeRegistry", "exit_finish"): lambda a: (a.node,),
    ("NodeRegistry", "beat"): lambda a: (a.node,),
    ("NodeRegistry", "heartbeat"): lambda a: ([a.node],),
    ("NodeRegistry", "check_liveness"): lambda a: ([a.victim_node, a.node], a.attacker),
    ("NodeRegistry", "engage"): lambda a: (a.node, a.address, _ASK, 0),
    ("NodeRegistry", "submitted"): lambda a: (a.node, a.address),
    ("NodeRegistry", "declined"): lambda a: (a.node, a.address, 1, 1),
    ("NodeRegistry", "gave_up"): lambda a: (a.node, a.address, 1, 1, 1),
    ("NodeRegistry", "settled"): lambda a: (a.node, 1, True, 1, 0),
    ("NodeRegistry", "finished"): lambda a: (a.node, a.address, 1, True, 1, 0, _ASK),
    ("NodeRegistry", "closed"): lambda a: (a.node, 1),
    ("NodeRegistry", "reclaimed"): lambda a: (a.victim_node, 1, 1, 9, 4, 0, 1, a.attacker),
    ("NodeRegistry", "slashed"): lambda a: (a.victim_node, 1, [share(a.attacker, 1), 0, 0]),
    ("NodeRegistry", "set_minimum_stake"): lambda a: (2 * w.ETHER,),
    ("NodeRegistry", "pause"): lambda a: (),
    ("NodeRegistry", "offer_governor"): lambda a: (a.attacker,),
    ("NodeRegistry", "accept_governor"): lambda a: (),
    ("JobRegistry", "post"): lambda a: (a.packed("second"), ()),
    ("JobRegistry", "top_up"): lambda a: (a.packed("mine running"), 0, MORE),
    ("JobRegistry", "accept"): lambda a: (a.packed("mine submitted"), 0),
    ("JobRegistry", "cancel"): lambda a: (a.packed("mine open"), 0),
    ("JobRegistry", "ack"): lambda a: (a.packed("won"), 0, bytes(32), 0),
    ("JobRegistry", "claim"): lambda a: (a.packed("open"), 0, a.node, bytes(32), 0),
    ("JobRegistry", "checkpoint"): lambda a: (a.id("running"), 0, w.ROOT_DIGEST),
    ("JobRegistry", "submit"): lambda a: (a.id("running"), 0, w.RESULT, w.REPORT, 1, 0),
    ("JobRegistry", "finish"): lambda a: (a.packed("running"), 0, w.RESULT, w.REPORT, 1, 0, True, bytes(32)),
    ("JobRegistry", "decline"): lambda a: (a.packed("running"), 0, 6, w.REPORT),
    ("JobRegistry", "give_up"): lambda a: (a.packed("running"), 0, w.REPORT),
    ("JobRegistry", "propose"): lambda a: (a.packed("won"), 0, a.victim_node, w.ZERO),
    ("JobRegistry", "settle"): lambda a: (a.packed("submitted"), 0, a.attacker),
    ("JobRegistry", "settle_batch"): lambda a: ([(a.packed("submitted"), 0)], a.attacker),
    ("JobRegistry", "close"): lambda a: (a.packed("mine running"), 0, a.attacker),
    ("JobRegistry", "reclaim"): lambda a: (a.packed("mine running"), 0, a.attacker),
    ("JobRegistry", "expire"): lambda a: (a.packed("open"), 0, a.attacker),
    ("JobRegistry", "unlock"): lambda a: (a.packed("blocked"), a.listed("blocked"), a.attacker),
    ("JobRegistry", "dispute"): lambda a: (a.packed("mine judged"), 0),
    ("JobRegistry", "rule"): lambda a: (
        a.packed("mine judged"),
        0,
        Verdict.REJECT,
        0,
        [share(a.attacker, formulas.bond(a.jobs["mine judged"]) * 6 // 10), 0, 0],
        a.attacker,
    ),
    ("Rules", "set_policy"): lambda a: (words.pack_policy(w.replace(w.POLICY, fee_bps=301)),),
    ("Rules", "drop_previous_policy"): lambda a: (),
    ("Rules", "pause"): lambda a: (),
    ("Rules", "offer_governor"): lambda a: (a.attacker,),
    ("Rules", "accept_governor"): lambda a: (),
    ("Lens", "performUpkeep"): lambda a: ([(1, a.packed("submitted"), 0, 0)], a.attacker),
    # views
    ("Escrow", "ASSET"): lambda a: (),
    ("Escrow", "credit"): lambda a: (a.attacker,),
    ("Escrow", "locked"): lambda a: (a.world.jobs, a.id("fresh")),
    ("Escrow", "tracked"): lambda a: (),
    ("NodeRegistry", "get"): lambda a: (a.node,),
    ("NodeRegistry", "gate"): lambda a: (a.node, _ASK),
    ("NodeRegistry", "appraise"): lambda a: (a.node, _ASK),
    ("NodeRegistry", "last_seen"): lambda a: (a.node,),
    ("NodeRegistry", "operator_of"): lambda a: (a.node,),
    ("NodeRegistry", "owner_of"): lambda a: (a.node,),
    ("NodeRegistry", "totals"): lambda a: (),
    ("JobRegistry", "job_id_of"): lambda a: (a.packed("fresh"),),
    ("JobRegistry", "load"): lambda a: (a.id("fresh"), 0),
    ("JobRegistry", "posted"): lambda a: (),
    ("JobRegistry", "checkpoints"): lambda a: (a.id("resumable"), 1),
    ("Rules", "policies"): lambda a: (),
    ("Rules", "check"): lambda a: (a.packed("second"), ()),
    ("Rules", "topped"): lambda a: (*a.packed("mine running")[3:5], a.world.load(a.jobs["mine running"])[1], MORE),
    ("Rules", "ruled"): lambda a: (
        *a.packed("mine judged")[4:8:3],
        a.world.load(a.jobs["mine judged"])[1],
        Verdict.REJECT,
        0,
    ),
    ("Lens", "units"): lambda a: (a.id("fresh"), 0, 1),
    ("Lens", "nodes"): lambda a: (a.node, 1),
    ("Lens", "jobs"): lambda a: ([a.id("fresh")],),
    ("Lens", "gates"): lambda a: (_ASK, a.node, 1),
    ("Lens", "overview"): lambda a: (),
    ("Lens", "status"): lambda a: ([(a.id("resumable"), 0)],),
    ("Lens", "locks"): lambda a: (a.world.jobs, [a.id("fresh")]),
    ("Lens", "credits"): lambda a: ([a.attacker],),
    ("Lens", "unit"): lambda a: (a.packed("fresh"), 0),
    ("Lens", "fit"): lambda a: (a.packed("fresh"), 0, a.node, True),
    ("Lens", "claimable_from"): lambda a: (a.packed("fresh"), 0, 1),
    ("Lens", "score"): lambda a: (a.packed("fresh"), 0, a.node),
    ("Lens", "checkUpkeep"): lambda a: ([(1, a.packed("submitted"), 0, 0)],),
}
# Coin that goes with an inner call.
VALUES: dict[tuple[str, str], Callable[[Attack], int]] = {
    ("Escrow", "lock"): lambda a: w.ETHER,
    ("NodeRegistry", "register"): lambda a: w.ETHER,
    ("NodeRegistry", "add_stake"): lambda a: w.ETHER,
    ("JobRegistry", "post"): lambda a: formulas.escrow_at_post(a.jobs["second"]),
    ("JobRegistry", "top_up"): _more,
}
