"""Attack: one lock for all of a submitter's jobs is played off against itself, or against another submitter's.

Inside a token's callback of a post the job is there and its funding is not, so what it splits then comes out of his
other jobs. Whatever he does there, and in whatever order and however often he or a node in league ends his units, each
lock stays what its owner's units hold, and nobody else's money moves.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product
from typing import Any

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import SENTINEL, State, Terms, TermsFlag
from tests.attacks.reentry import REENTER, Attack
from tests.attacks.stages import KINDS, holding, market
from tests.kit import world as w
from tests.kit.evm import Reverted, reverts
from tests.kit.vault import share


def equation(world: w.World, posted: list[Terms]) -> None:
    """Each submitter's lock is what the units of his jobs hold by their words."""
    for submitter in {terms.submitter for terms in posted}:
        held = sum(world.holds(terms) for terms in posted if terms.submitter == submitter)
        assert world.locked(submitter) == held, submitter


# ---- within a token's callback ----


class Callback(Attack):
    """The market of the re-entrancy attacks, in a token with hooks; the attacker is about to post."""

    def __init__(self) -> None:
        super().__init__("erc20")
        world = self.world
        assert world.token is not None
        world.token.send.set_traits(0)
        parent = pack_parents([Parent(world.id_of(self.jobs["parent"]), Condition.FAILURE)])
        blocked = self._terms(self.address, parents_hash=parents_hash(parent))
        # Ends before the others, and can only expire by now.
        soon = world.evm.now + world.evm.now - formulas.expirable_from(w.replace(blocked, deadline=world.evm.now))
        old, array = self._terms(self.address, deadline=soon + 100), self._terms(self.address, units=5)
        mine = (("mine blocked", blocked, parent), ("mine old", old, ()), ("mine array", array, ()))
        for name, terms, listed in mine:
            self.run(world.jobs, "post", words.pack_terms(terms), listed)
            self.jobs[name] = terms
        self.parent = parent
        world.claim(array, self.victim_node, SENTINEL)
        world.evm.warp(101)
        world.token.send.set_traits(1 << 6)

    @property
    def posted(self) -> list[Terms]:
        return [terms for name, terms in self.jobs.items() if name not in ("second",)]


def _of(name: str, job: str, *args: Any) -> Callable[[Callback], tuple[str, tuple[Any, ...]]]:
    return lambda a: (name, (a.packed(job), *args))


ENDS: dict[str, Callable[[Callback], tuple[str, tuple[Any, ...]]]] = {
    **{f"cancel {job}": _of("cancel", job, 0) for job in ("fresh", "mine open", "mine blocked", "mine old")},
    "cancel mine array": _of("cancel", "mine array", SENTINEL),
    "cancel mine running": _of("cancel", "mine running", 0),
    **{f"expire {job}": _of("expire", job, 0, w.ZERO) for job in ("fresh", "mine open", "mine old")},
    **{f"settle {job}": _of("settle", job, 0, w.ZERO) for job in ("fresh", "mine submitted")},
    **{f"accept {job}": _of("accept", job, 0) for job in ("fresh", "mine submitted")},
    "reclaim mine running": _of("reclaim", "mine running", 0, w.ZERO),
    "rule mine judged": lambda a: ("rule", (a.packed("mine judged"), 0, 2, 0, [0, 0, 0], w.ZERO)),
    "unlock fresh": lambda a: ("unlock", (a.packed("fresh"), a.parent, w.ZERO)),
    "unlock mine blocked": lambda a: ("unlock", (a.packed("mine blocked"), a.parent, w.ZERO)),
    "post second": lambda a: ("post", (a.packed("second"), ())),
}
THROUGH = {
    *("cancel fresh", "cancel mine open", "cancel mine blocked", "cancel mine old", "cancel mine array"),
    *("cancel mine running", "expire mine old", "settle mine submitted", "accept mine submitted"),
    *("rule mine judged", "unlock mine blocked"),
}


def _strike(attack: Callback, ends: str, withdraw: bool) -> list[bool]:
    """Post "fresh", and within its callbacks make a call and then, if wanted, withdraw more than one job's funding."""
    world, attacker = attack.world, attack.attacker
    name, args = ENDS[ends](attack)
    attacker.send.prepare(world.jobs, world.jobs.encode(name, *args), 0, attack.calls)
    if withdraw:
        budget = formulas.escrow_at_post(attack.jobs["fresh"])
        attacker.send.follow(world.escrow, world.escrow.encode("withdraw", attacker, budget))
    attacker.send.set_mood(REENTER)
    attack.run(world.jobs, "post", attack.packed("fresh"), ())
    attacker.send.set_mood(0)
    made = (attack.calls - attacker.call.left()) * (2 if withdraw else 1)
    return [attacker.call.succeeded(n) for n in range(made)]


@pytest.mark.parametrize("withdraw", [False, True], ids=["", "and withdraw"])
@pytest.mark.parametrize("blocked", [False, True], ids=["open", "blocked"])
@pytest.mark.parametrize("ends", ENDS)
def test_callback__any_end_of_the_submitters_units_while_he_posts__sums_stay_right(
    ends: str, blocked: bool, withdraw: bool
) -> None:
    attack = Callback()
    world = attack.world
    if blocked:
        attack.jobs["fresh"] = attack._terms(attack.address, parents_hash=parents_hash(attack.parent))
        post = attack.run
        attack.run = lambda c, name, *a, **o: (
            post(c, name, a[0], attack.parent, **o) if name == "post" else post(c, name, *a, **o)
        )  # type: ignore[method-assign]
    others = {who: world.locked(who) for who in {t.submitter for t in attack.posted} - {attack.address.lower()}}
    victims = {who: world.credit(who) for who in (world.submitter, world.stranger)}
    equation(world, attack.posted)
    passed = _strike(attack, ends, withdraw)
    assert (ends in THROUGH or (blocked and ends == "unlock fresh")) == any(passed[:: 2 if withdraw else 1]), passed
    equation(world, attack.posted)
    attack.check_books()
    assert {who: world.locked(who) for who in others} == others
    assert {who: world.credit(who) for who in victims} == victims


def test_callback__other_jobs_hold_too_little__the_split_is_refused_and_the_post_stands() -> None:
    """What is not funded yet can be ended only with the submitter's own money."""
    world = market("erc20")
    assert world.token is not None
    attacker = world.evm.deploy("mocks/Receiver")
    victim, mine = world.post(), world.terms(submitter=attacker.address.lower())
    world.token.send.mint(attacker, 10**20)
    attacker.send.run(world.token, world.token.encode("approve", world.jobs, 2**255), 0)
    world.token.send.set_hooked(attacker)
    world.token.send.set_traits(1 << 6)
    attacker.send.prepare(world.jobs, world.jobs.encode("cancel", words.pack_terms(mine), 0), 0, 2)
    attacker.send.set_mood(REENTER)
    attacker.send.run(world.jobs, world.jobs.encode("post", words.pack_terms(mine), ()), 0)
    assert [attacker.call.succeeded(n) for n in range(2)] == [False, False]
    equation(world, [victim, mine])
    assert world.state(mine) == State.OPEN and world.credit(attacker.address) == 0


# ---- a fault of one submitter's units ----


@pytest.mark.parametrize("kind", KINDS)
def test_fault__unit_that_comes_to_life_again_and_again__costs_its_submitter_alone(kind: str) -> None:
    """Whatever the registry got wrong about one submitter's units, all that it can split is his lock."""
    world = market(kind)
    node = world.register()
    broken, his = world.post(), world.post(units=2)
    others = [world.post(submitter=world.stranger.lower()) for _ in range(4)]
    for terms in (broken, *others):
        world.claim(terms, node)
        world.submit(terms)
        world.evm.warp(1)
    word = world.load(broken)[1]
    (slot,) = [at for at, held in world.evm.state()[world.jobs.address][3].items() if held == word]
    before = world.locked(world.stranger), world.credit(world.stranger), world.staked(node)
    # The bonds of the others let the node's side pass: what ends it is his lock, which three leases' budgets were in.
    for _ in range(3):
        world.settle(broken)
        world.evm.put_storage(world.jobs, slot, word)
    with reverts("escrow: short"):
        world.settle(broken)
    assert world.locked(world.submitter) == 0 and not world.header(his).closed
    assert (world.locked(world.stranger), world.credit(world.stranger), world.staked(node)) == before
    for terms in others[:2]:
        world.settle(terms)
    equation(world, others)


@pytest.mark.parametrize("kind", KINDS)
def test_fault__terms_of_another_submitter__reach_neither_his_job_nor_his_lock(kind: str) -> None:
    world = market(kind)
    mine = world.post()
    his = world.post(submitter=world.stranger.lower())
    swapped = w.replace(mine, submitter=his.submitter)
    for act in (
        lambda: world.cancel(swapped, sender=world.stranger),
        lambda: world.cancel(swapped),
        lambda: world.cancel(his),
        lambda: world.expire(swapped),
        lambda: world.claim(swapped, world.register()),
    ):
        with pytest.raises(Reverted):
            act()
    equation(world, [mine, his])


# ---- order, repetition, self-dealing ----


@pytest.mark.parametrize("kind", KINDS)
def test_salt__jobs_that_differ_in_it_alone__share_one_lock(kind: str) -> None:
    world = market(kind)
    first = world.post(salt=2**96 - 1)
    second = world.post(salt=0)
    assert world.locked(world.submitter) == 2 * formulas.escrow_at_post(first)
    world.cancel(first)
    assert world.locked(world.submitter) == formulas.escrow_at_post(second)
    with reverts("jobs: not open"):
        world.cancel(first)
    equation(world, [first, second])


def _league(kind: str) -> tuple[w.World, list[Terms], list[Terms], int]:
    """Return a market with a league that is submitter, owner, operator's friend and keeper, and a victim's jobs."""
    world = market(kind)
    node = world.register(owner=world.submitter)
    mine = [world.post(), world.post(units=2), world.post(ceiling=30 * 10**18, max_attempts=1)]
    his = [world.post(submitter=world.stranger.lower()), world.post(submitter=world.stranger.lower(), units=2)]
    return world, mine, his, node


STEPS: dict[str, Callable[[w.World, Terms, Any], Any]] = {
    "cancel": lambda world, terms, node: world.cancel(terms, SENTINEL if terms.units > 1 else 0),
    "accept": lambda world, terms, node: (world.claim(terms, node), world.submit(terms), world.accept(terms)),
    "settle": lambda world, terms, node: (
        world.claim(terms, node),
        world.submit(terms),
        world.evm.warp(1),
        world.settle(terms, sender=world.submitter),
    ),
    "decline": lambda world, terms, node: (world.claim(terms, node), world.decline(terms)),
    "give up": lambda world, terms, node: (world.claim(terms, node), world.give_up(terms)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_league__ends_in_any_order_and_each_twice__gains_nothing(kind: str, order: tuple[int, ...]) -> None:
    """A refund, a second one, pay to oneself: what the league has never grows, and the victim's lock stands still."""
    refused = 0
    for first, second in product(STEPS, repeat=2):
        world, mine, his, node = _league(kind)
        victim = world.locked(world.stranger)

        def wealth(world: w.World = world, node: Any = node) -> int:
            people = (world.submitter, world.operator)
            inside = sum(world.credit(who) for who in people) + world.locked(world.submitter) + world.staked(node)
            return inside + (sum(holding(world, who) for who in people) if world.token is not None else 0)

        most = wealth()
        for at in order:
            for name in (first, second, first, second):
                try:
                    STEPS[name](world, mine[at], node)
                except Reverted:
                    refused += 1
                equation(world, [*mine, *his])
                assert wealth() <= most, (first, second, at, name)
                assert world.locked(world.stranger) == victim
        assert world.credit(world.stranger) == 0
    assert refused > 0, "no end was tried twice"


@pytest.mark.parametrize("kind", KINDS)
def test_credit__share_to_oneself_of_a_lock__is_the_same_money(kind: str) -> None:
    """An account that is controller and submitter has three places in the books, and none counts for another."""
    world = market(kind)
    mine = world.post()
    world.cancel(mine)
    credit = world.credit(world.submitter)
    world.escrow.send.lock_credit(formulas.lock_key(world.submitter), credit, sender=world.submitter)
    assert (world.locked(world.submitter), world.credit(world.submitter)) == (0, 0)
    with reverts("escrow: short"):
        world.escrow.send.withdraw(world.submitter, 1, sender=world.submitter)
    with reverts("jobs: not open"):
        world.cancel(mine)
    back = [share(world.submitter, credit), 0, 0, 0]
    world.escrow.send.split(formulas.lock_key(world.submitter), back, sender=world.submitter)
    assert world.credit(world.submitter) == credit and TermsFlag.NEWCOMERS in mine.flags
