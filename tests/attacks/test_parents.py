"""Attack: what anybody gains by the end of a job that others wait for, or by opening and ending those that wait.

`unlock` pays one keeper fee once, which the job was funded with besides. Whoever ends a parent decides what becomes of
its children, so who waits for a stranger's job risks that fee, and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import SENTINEL, Outcome, State, Terms, TermsFlag, Verdict
from tests.attacks.reentry import REENTER, Attack
from tests.attacks.stages import KINDS, market
from tests.kit import world as w
from tests.kit.anvil import AnvilEvm, need_anvil
from tests.kit.evm import Reverted, reverts
from tests.kit.steps import BUDGET, FEE, KEEPER_FEE, PAY, credited, running, submitted

SUCCESS, FAILURE, ALWAYS = Condition
UNITS = {"one lease": 1, "array": 3}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_child = pytest.mark.parametrize("units", UNITS.values(), ids=UNITS.keys())


def _all(units: int) -> int:
    """Name all of a job that waits, in cancel and expire."""
    return 0 if units == 1 else SENTINEL


def _ended(world: w.World) -> Terms:
    """Post a job and cancel it."""
    terms = world.post()
    world.cancel(terms)
    return terms


# ---- the fee ----


@each_kind
@each_child
def test_unlock__by_everybody_in_one_second__pays_one_fee_once(units: int, kind: str) -> None:
    """Four keepers, each for himself and for another, of a job that opens and of one that ends."""
    world = market(kind)
    keepers = [world.evm.account(f"keeper {at}") for at in range(4)]
    for condition in (FAILURE, SUCCESS):
        terms = world.post_after((_ended(world), condition), units=units)
        before = {account: world.credit(account) for account in (*keepers, world.submitter)}
        for _ in range(2):
            for sender, payee in zip(keepers, keepers[1:] + keepers[:1], strict=True):
                with suppress(Reverted):
                    world.unlock(terms, sender=sender, payee=payee)
        got = {account: world.credit(account) - before[account] for account in before}
        refund = units * BUDGET if condition == SUCCESS else 0
        assert got == {keepers[0]: 0, keepers[1]: KEEPER_FEE, keepers[2]: 0, keepers[3]: 0, world.submitter: refund}
        assert world.lock_of(terms) == units * BUDGET - refund


@each_kind
@each_child
@pytest.mark.parametrize("early", [-700, -1, 0, 1, 600, 10**6])
def test_unlock__then_expire__brings_a_keeper_both_only_while_an_attempt_can_still_start(
    early: int, units: int, kind: str
) -> None:
    """The control expires without parents. What can only expire is not opened first, in any order of the two calls."""
    found = {}
    for order in (("unlock", "expire"), ("expire", "unlock"), ("unlock", "unlock", "expire", "expire")):
        world = market(kind)
        deadline = world.evm.now + 10_000
        terms = world.post_after((_ended(world), ALWAYS), units=units, deadline=deadline)
        plain = world.post(units=units, deadline=deadline)
        due = formulas.expirable_from(terms)
        world.evm.at(due + early)
        with credited(world) as got:
            for name in order:
                with suppress(Reverted):
                    world.unlock(terms) if name == "unlock" else world.expire(terms, _all(units))
            if early < 0:
                world.evm.at(due + 600)
                with suppress(Reverted):
                    world.expire(terms, _all(units))
        world.evm.at(max(due + early, due + 600) if early < 0 else due + early)
        with credited(world) as control:
            world.expire(plain, _all(units))
        assert world.lock_of(terms) == 0
        assert got["keeper"] + got["submitter"] == units * BUDGET + KEEPER_FEE
        found[order] = got["keeper"]
        if early < 0:
            assert got["keeper"] == control["keeper"] + KEEPER_FEE, "it was opened for a fee, and expired for another"
        else:
            assert got["keeper"] == control["keeper"] <= KEEPER_FEE
    print(f"{early} s from its last second, {units} units: {found}")


@each_kind
def test_unlock__child_whose_condition_is_met_already__only_pays_whom_its_submitter_pays(kind: str) -> None:
    """A submitter who opens it himself has the fee back; nobody else's credit moves."""
    world = market(kind)
    parent = _ended(world)
    for sender in (world.submitter, world.stranger):
        with credited(world) as got:
            terms = world.post_after((parent, FAILURE))
            world.unlock(terms, sender=sender)
            world.cancel(terms)
        fees = {"submitter": BUDGET + KEEPER_FEE}
        assert got == (fees if sender == world.submitter else {"submitter": BUDGET, "stranger": KEEPER_FEE})


@each_kind
def test_unlock__array_of_any_size__pays_one_fee(kind: str) -> None:
    for units in (2, 1_000):
        world = market(kind)
        world.evm.set_balance(world.submitter, 2**100)
        terms = world.post_after((_ended(world), SUCCESS), units=units)
        with credited(world) as got:
            world.unlock(terms)
        assert got == {"keeper": KEEPER_FEE, "submitter": units * BUDGET}


# ---- what waits is left alone ----


@each_kind
@each_child
def test_waiting_job__every_call_of_a_stranger__changes_nothing(units: int, kind: str) -> None:
    """Nobody touches a unit of it, so that it could be paid for, held or ended."""
    world = market(kind)
    node = world.register(owner=world.stranger, operator=world.stranger)
    terms = world.post_after((world.post(), SUCCESS), units=units, match_window=30)
    packed = words.pack_terms(terms)
    world.evm.warp(700)
    world.nodes.send.beat(node, sender=world.stranger)
    before, tried = world.evm.state_hash(), 0
    for index in (*range(units + 1), SENTINEL):
        calls: list[Callable[[], Any]] = [
            lambda at=index: world.propose(terms, node, at, sender=world.stranger),
            lambda at=index: world.claim(terms, node, at, sender=world.stranger),
            lambda at=index: world.ack(terms, at, sender=world.stranger),
            lambda at=index: world.submit(terms, at, sender=world.stranger),
            lambda at=index: world.decline(terms, at, sender=world.stranger),
            lambda at=index: world.give_up(terms, at, sender=world.stranger),
            lambda at=index: world.settle(terms, at, sender=world.stranger),
            lambda at=index: world.close(terms, at, sender=world.stranger),
            lambda at=index: world.reclaim(terms, at, sender=world.stranger),
            lambda at=index: world.expire(terms, at, sender=world.stranger),
            lambda at=index: world.cancel(terms, at, sender=world.stranger),
            lambda at=index: world.accept(terms, at, sender=world.stranger),
            lambda at=index: world.jobs.send.dispute(packed, at, sender=world.stranger),
            lambda: world.unlock(terms, sender=world.stranger),
        ]
        for call in calls:
            with pytest.raises(Reverted):
                call()
            tried += 1
    assert world.evm.state_hash() == before
    print(f"{tried} calls of a stranger, {units} units: nothing moved")


@each_kind
@each_child
def test_waiting_job__parent_that_never_ends__holds_nobodys_money(units: int, kind: str) -> None:
    """Its submitter may have all of it back at any time; once it cannot run, anyone ends it for what expiring pays."""
    world = market(kind)
    deadline = world.evm.now + 10_000
    for parent in (world.terms(), world.post(), world.post(units=2)):
        own, left = (world.post_after((parent, ALWAYS), units=units, deadline=deadline) for _ in range(2))
        with credited(world) as got:
            world.cancel(own, _all(units))
        assert got == {"submitter": units * BUDGET + KEEPER_FEE}
        with world.evm.isolated():
            world.evm.at(formulas.expirable_from(left) + 10**6)
            with credited(world) as got:
                world.expire(left, _all(units))
            assert got == {"keeper": KEEPER_FEE, "submitter": units * BUDGET}
            assert world.lock_of(left) == 0


# ---- whoever ends a parent ----


PARENT_ENDS: dict[str, Callable[[w.World, str], Terms]] = {
    "a lease cancelled": lambda world, who: _cancelled_by(world, who),
    "an array closed untouched": lambda world, who: _cancelled_by(world, who, units=2),
    "a waiting array closed": lambda world, who: _cancelled_by(world, who, units=2, waits=True),
}


def _cancelled_by(world: w.World, who: str, *, units: int = 1, waits: bool = False) -> Terms:
    """Post a job of somebody's whose end he keeps in his hand: `world.cancel` ends it."""
    parents = pack_parents([Parent(world.id_of(world.terms()), ALWAYS)]) if waits else ()
    terms = world.terms(submitter=who.lower(), units=units, parents_hash=parents_hash(parents))
    world.post_receipt(terms, parents=parents)
    return terms


@each_kind
@each_child
@pytest.mark.parametrize("end", PARENT_ENDS)
def test_parent__closed_by_its_submitter_who_keeps__costs_each_child_one_fee(end: str, units: int, kind: str) -> None:
    """It is what one risks who waits for a stranger's job: his keeper fee, and nothing else."""
    world = market(kind)
    attacker, children = world.stranger, 3
    parent = PARENT_ENDS[end](world, attacker)
    posted = [world.post_after((parent, SUCCESS), units=units) for _ in range(children)]
    parent_holds = world.lock_of(parent)
    with credited(world) as got:
        world.cancel(parent, SENTINEL if parent.leases > 1 else 0, sender=attacker)
        for terms in posted:
            world.unlock(terms, sender=attacker)
    assert got == {"stranger": parent_holds + children * KEEPER_FEE, "submitter": children * units * BUDGET}
    print(f"{end}: {children} children lost {got['stranger'] - parent_holds} together, of {children * units * BUDGET}")


@each_kind
@pytest.mark.parametrize("depth", [1, 5])
def test_chain__of_blocked_jobs__costs_one_fee_a_job_and_ends_in_order(depth: int, kind: str) -> None:
    """Each is opened or ended once, after the one before it; whoever does it all has a keeper fee of each."""
    world = market(kind)
    root = world.post()
    chain = [world.post_after((root, SUCCESS))]
    while len(chain) < depth:
        chain.append(world.post_after((chain[-1], SUCCESS)))
    for terms in chain:
        with reverts("jobs: a parent has not ended"):
            world.unlock(terms)
    world.cancel(root)
    for terms in reversed(chain[1:]):
        with reverts("jobs: a parent has not ended"):
            world.unlock(terms)
    with credited(world) as got:
        for terms in chain:
            world.unlock(terms)
            assert world.state(terms) == State.CANCELLED
    assert got == {"keeper": depth * KEEPER_FEE, "submitter": depth * BUDGET}
    assert not any(world.lock_of(terms) for terms in chain)


@each_kind
def test_chain__that_works__pays_each_lease_and_each_unlock_once(kind: str) -> None:
    world = market(kind)
    node = world.register()
    chain = [world.post()]
    while len(chain) < 5:
        chain.append(world.post_after((chain[-1], SUCCESS)))
    with credited(world) as got:
        for terms in chain:
            if terms.parents_hash != bytes(32):
                world.unlock(terms, sender=world.stranger)
            world.claim(terms, node)
            world.submit(terms)
            world.settle(terms, payee=world.deployer)
    assert got["stranger"] == 4 * KEEPER_FEE
    assert (got["owner"], got["treasury"]) == (5 * (PAY - FEE), 5 * FEE)
    assert sum(got.values()) == 5 * BUDGET + 4 * KEEPER_FEE
    assert not any(world.lock_of(terms) for terms in chain)


@each_kind
@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.EXIT])
def test_node__that_reports_a_failure_to_start_its_own_child__pays_for_it(kind: str, outcome: Outcome) -> None:
    """Its owner posts a child after the victim's failure. What the league has at the end is not more than without it.

    The victim pays the same for a failed result, child or none.
    """
    wealth, victim = {}, {}
    for with_child in (False, True):
        world = market(kind)
        parent, node = running(world)
        before = world.credit(world.owner), world.credit(world.submitter)
        paid = 0
        if with_child:
            world.evm.set_balance(world.owner, 10**24)
            child = world.post_after((parent, FAILURE), submitter=world.owner.lower())
            paid = BUDGET + KEEPER_FEE
        world.evm.warp(100)
        world.submit(parent, outcome=outcome)
        world.settle(parent)
        if with_child:
            with credited(world) as got:
                world.unlock(child, sender=world.owner)
            if outcome == Outcome.EXIT:
                assert got == {"owner": KEEPER_FEE}
                world.claim(child, node)
                world.submit(child)
                world.accept(child, sender=world.owner)
            else:
                assert got == {"owner": KEEPER_FEE + BUDGET}
        wealth[with_child] = world.credit(world.owner) - before[0] - paid
        victim[with_child] = world.credit(world.submitter) - before[1]
    lost = FEE if outcome == Outcome.EXIT else 0
    assert wealth[True] == wealth[False] - lost, "the market's fee of its own child"
    assert victim[True] == victim[False]


@each_kind
def test_judge__of_a_parent__ends_the_child_by_its_verdict_and_earns_a_fee_at_most(kind: str) -> None:
    """Each verdict, by a judge that then unlocks: the child's submitter loses one keeper fee, as by anyone's unlock."""
    for verdict, opens in ((Verdict.CONFIRM, True), (Verdict.REJECT, False), (Verdict.VOID, False)):
        world = market(kind)
        parent, _ = submitted(world, **world.judged())
        child = world.post_after((parent, SUCCESS))
        world.dispute(parent)
        with reverts("jobs: a parent has not ended"):
            world.unlock(child)
        world.rule(parent, verdict)
        judge, before = world.judge.address, world.credit(world.judge.address)
        listed = world.parents[world.id_of(child)]
        data = world.jobs.encode("unlock", words.pack_terms(child), listed, w.ZERO)
        world.judge.send.run(world.jobs, data, sender=world.stranger)
        assert world.credit(judge) - before == KEEPER_FEE
        assert world.state(child) == (State.OPEN if opens else State.CANCELLED)
        assert world.lock_of(child) == (BUDGET if opens else 0)


# ---- orders ----


def _race(world: w.World, order: tuple[str, ...]) -> tuple[Terms, Terms]:
    """Take the steps of a parent's and its child's parties in this order; those that are refused are left out."""
    parent, _ = submitted(world)
    child = world.post_after((parent, SUCCESS))
    steps: dict[str, Callable[[], Any]] = {
        "settle": lambda: world.settle(parent, payee=world.deployer),
        "cancel the parent": lambda: world.cancel(parent),
        "cancel the child": lambda: world.cancel(child),
        "unlock": lambda: world.unlock(child, sender=world.stranger),
        "unlock again": lambda: world.unlock(child, sender=world.keeper),
    }
    for name in order:
        with suppress(Reverted):
            steps[name]()
    return parent, child


@each_kind
def test_unlock__any_order_of_five_calls_in_one_second__moves_no_more_than_a_fee(kind: str) -> None:
    """All 120 orders of a settle, two cancels and two unlocks: the child's submitter has its money, less a fee."""
    seen: set[tuple[State, int]] = set()
    for order in permutations(("settle", "cancel the parent", "cancel the child", "unlock", "unlock again")):
        world = market(kind)
        parent, child = _race(world, order)
        keepers = world.credit(world.stranger) + world.credit(world.keeper)
        left = world.lock_of(child)
        assert keepers in (0, KEEPER_FEE)
        assert world.state(parent) == State.SETTLED, "a submitted result cannot be called back"
        state = world.state(child)
        assert left == {State.OPEN: BUDGET, State.CANCELLED: 0, State.BLOCKED: BUDGET + KEEPER_FEE}[state]
        # What is not in the lock and not a keeper's is its submitter's again; the parent gave him what it always does.
        owed = world.credit(world.submitter) + left + keepers
        seen.add((state, owed))
    assert len({owed for _, owed in seen}) == 1, seen
    assert {state for state, _ in seen} >= {State.CANCELLED}


# ---- callbacks ----


def test_unlock__in_the_callback_of_its_own_post__stands_once_and_moves_its_submitters_money_alone() -> None:
    """A token calls the submitter back while the job is posted and its funding is not locked yet."""
    attack = Attack("erc20")
    world = attack.world
    for condition, state in ((SUCCESS, State.CANCELLED), (FAILURE, State.OPEN)):
        packed = pack_parents([Parent(world.id_of(attack.jobs["parent"]), condition)])
        terms = attack._terms(attack.address, parents_hash=parents_hash(packed))
        attack.jobs[f"own {condition}"] = terms
        before, victims = attack.wealth(), world.locked(world.submitter)
        unlock = world.jobs.encode("unlock", words.pack_terms(terms), packed, attack.attacker)
        attack.attacker.send.prepare(world.jobs, unlock, 0, attack.calls)
        attack.attacker.send.set_mood(REENTER)
        attack.run(world.jobs, "post", words.pack_terms(terms), packed)
        attack.attacker.send.set_mood(0)
        made = attack.calls - attack.attacker.call.left()
        assert [attack.attacker.call.succeeded(n) for n in range(made)] == [True, False]
        assert world.state(terms) == state
        assert world.locked(world.submitter) == victims
        attack.check_books()
        assert attack.wealth() == before


# ---- reorgs, on a node ----


@pytest.fixture(scope="module")
def chain() -> Iterator[w.World]:
    need_anvil()
    evm = AnvilEvm()
    found = w.World(evm)
    found.register()
    evm.rpc("anvil_mine", "0x50")
    yield found
    evm.close()


@pytest.mark.parametrize("condition", [SUCCESS, FAILURE])
def test_reorg__of_a_parents_settle_and_its_childs_unlock__undoes_both(chain: w.World, condition: Condition) -> None:
    """Settled, unlocked, rolled back together; then the parent ends otherwise, and the child by that end alone.

    The unlock that was signed for the first chain is refused on the second until the parent has ended there.
    """
    world, evm = chain, chain.evm
    assert isinstance(evm, AnvilEvm)
    evm.catch_up()
    world.nodes.send.beat(1, sender=world.operator)
    evm.catch_up()
    parent = world.post(max_attempts=1, flags=TermsFlag.NEWCOMERS)
    evm.catch_up()
    child = world.post_after((parent, condition))
    evm.catch_up()
    world.claim(parent, w.NodeId(1))
    evm.catch_up()
    evm.rpc("anvil_mine", "0x1")
    height = int(evm.rpc("eth_blockNumber"), 16)
    evm.catch_up()
    before = {who: world.credit(who) for who in (world.keeper, world.stranger, world.submitter)}
    world.submit(parent)
    evm.catch_up()
    world.settle(parent)
    evm.catch_up()
    world.unlock(child, sender=world.stranger)
    first = State.OPEN if condition == SUCCESS else State.CANCELLED
    assert world.state(child) == first
    assert world.credit(world.stranger) - before[world.stranger] == KEEPER_FEE
    evm.rpc("anvil_reorg", int(evm.rpc("eth_blockNumber"), 16) - height, [])
    evm.catch_up()
    assert (world.state(parent), world.state(child)) == (State.RUNNING, State.BLOCKED)
    assert before == {who: world.credit(who) for who in before}
    with reverts("jobs: a parent has not ended"):
        world.unlock(child, sender=world.stranger)
    evm.catch_up()
    world.decline(parent)
    assert world.state(parent) == State.REFUNDED
    evm.catch_up()
    world.unlock(child, sender=world.stranger)
    assert world.state(child) == (State.CANCELLED if condition == SUCCESS else State.OPEN)
    assert world.credit(world.stranger) - before[world.stranger] == KEEPER_FEE
    left = world.lock_of(child)
    assert left == (0 if condition == SUCCESS else BUDGET)


def test_post__same_terms_after_other_parents__are_other_jobs_for_a_reorg(chain: w.World) -> None:
    """What was signed for a job opens no job that waits for something else."""
    world, evm = chain, chain.evm
    assert isinstance(evm, AnvilEvm)
    evm.catch_up()
    parent = world.post()
    evm.catch_up()
    world.cancel(parent)
    evm.catch_up()
    terms = world.post_after((parent, SUCCESS))
    packed = pack_parents([Parent(world.id_of(parent), FAILURE)])
    other = replace(terms, parents_hash=parents_hash(packed))
    assert world.id_of(other) != world.id_of(terms)
    evm.catch_up()
    with reverts("jobs: not blocked"):
        world.unlock(other, parents=packed)
    evm.catch_up()
    with reverts("jobs: parents not as hashed"):
        world.unlock(terms, parents=packed)
    evm.catch_up()
    world.unlock(terms)
    assert world.state(terms) == State.CANCELLED
