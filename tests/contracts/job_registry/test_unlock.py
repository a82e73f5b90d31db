"""JobRegistry.unlock: what each end of a parent makes of its child, to the wei, and every refusal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from hearth.protocol import formulas
from hearth.protocol.parents import Condition, Ended, Parent, Progress, pack_parents, parents_hash
from hearth.protocol.types import MAX_PARENTS, SENTINEL, Header, JobId, Outcome, State, Terms, Unit, UnitFlag, Verdict
from tests.kit.evm import reverts
from tests.kit.steps import (
    BUDGET,
    KEEPER_FEE,
    LEASE,
    around,
    credited,
    disputed,
    proven,
    running,
    submitted,
)
from tests.kit.world import DEAD_AFTER, World

CONDITIONS = {
    (Condition.SUCCESS, Ended.WELL): Progress.OPENS,
    (Condition.SUCCESS, Ended.OTHERWISE): Progress.FAILS,
    (Condition.FAILURE, Ended.WELL): Progress.FAILS,
    (Condition.FAILURE, Ended.OTHERWISE): Progress.OPENS,
    (Condition.ALWAYS, Ended.WELL): Progress.OPENS,
    (Condition.ALWAYS, Ended.OTHERWISE): Progress.OPENS,
}


# ---- parents, in every state that a job can be in ----


def _settled(world: World, outcome: Outcome = Outcome.OK) -> Terms:
    terms, _ = running(world)
    world.submit(terms, outcome=outcome)
    world.settle(terms)
    return terms


def _accepted(world: World) -> Terms:
    terms, _ = submitted(world)
    world.accept(terms)
    return terms


def _lost(world: World) -> Terms:
    terms, _ = running(world, max_attempts=1)
    world.evm.warp(DEAD_AFTER)
    world.reclaim(terms)
    return terms


def _declined(world: World) -> Terms:
    terms, _ = running(world, max_attempts=1)
    world.decline(terms)
    return terms


def _cancelled(world: World) -> Terms:
    terms = world.post()
    world.cancel(terms)
    return terms


def _noticed(world: World) -> Terms:
    terms, _ = running(world)
    world.cancel(terms)
    return terms


def _closed(world: World) -> Terms:
    terms = _noticed(world)
    world.evm.warp(120)
    world.close(terms)
    return terms


def _expired(world: World) -> Terms:
    terms = world.post(deadline=world.evm.now + LEASE)
    world.evm.warp(1)
    world.expire(terms)
    return terms


def _ruled(world: World, verdict: Verdict) -> Terms:
    terms, _ = disputed(world)
    world.rule(terms, verdict)
    return terms


def _unproven(world: World) -> Terms:
    terms, _ = proven(world, deadline=world.evm.now + 3_000)
    world.evm.at(terms.deadline + terms.challenge_window)
    world.settle(terms)
    return terms


def _reopened(world: World) -> Terms:
    terms, _ = running(world)
    world.decline(terms)
    return terms


def _blocked(world: World) -> Terms:
    return world.post_after((world.terms(), Condition.SUCCESS))


def _failed(world: World) -> Terms:
    terms = world.post_after((_cancelled(world), Condition.SUCCESS))
    world.unlock(terms)
    return terms


def _array(world: World, *outcomes: Outcome, units: int = 2, close: bool = False) -> Terms:
    """Post an array, settle its first units with these outcomes, and cancel the untouched rest."""
    node, terms = world.register(), world.post(units=units)
    for index, outcome in enumerate(outcomes):
        world.claim(terms, node, index)
        world.submit(terms, index, outcome=outcome)
        world.settle(terms, index)
    if close:
        world.cancel(terms, SENTINEL)
    return terms


def _array_runs(world: World, *, close: bool = False) -> Terms:
    node, terms = world.register(), world.post(units=2)
    world.claim(terms, node, 0)
    if close:
        world.cancel(terms, SENTINEL)
    return terms


def _array_reopened_and_closed(world: World) -> Terms:
    node, terms = world.register(), world.post(units=2)
    world.claim(terms, node, 0)
    world.decline(terms, 0)
    world.cancel(terms, SENTINEL)
    return terms


def _array_closed_after_its_last(world: World) -> Terms:
    terms = _array_runs(world, close=True)
    world.submit(terms, 0)
    world.settle(terms, 0)
    return terms


def _array_expired(world: World) -> Terms:
    terms = world.post(units=2, deadline=world.evm.now + LEASE)
    world.evm.warp(1)
    world.expire(terms, SENTINEL)
    return terms


def _array_waits(world: World) -> Terms:
    return world.post_after((world.terms(), Condition.ALWAYS), units=2)


def _array_waited(world: World) -> Terms:
    terms = _array_waits(world)
    world.cancel(terms, SENTINEL)
    return terms


def _array_failed(world: World) -> Terms:
    terms = world.post_after((_cancelled(world), Condition.SUCCESS), units=2)
    world.unlock(terms)
    return terms


OK, ERROR = Outcome.OK, Outcome.EXIT
PARENTS: dict[str, tuple[Callable[[World], Terms], Ended]] = {
    "never posted": (lambda w: w.terms(), Ended.NOT_YET),
    "open": (lambda w: w.post(), Ended.NOT_YET),
    "blocked": (_blocked, Ended.NOT_YET),
    "running": (lambda w: running(w)[0], Ended.NOT_YET),
    "reopened": (_reopened, Ended.NOT_YET),
    "closing": (_noticed, Ended.NOT_YET),
    "submitted": (lambda w: submitted(w)[0], Ended.NOT_YET),
    "disputed": (lambda w: disputed(w)[0], Ended.NOT_YET),
    "settled": (_settled, Ended.WELL),
    "accepted": (_accepted, Ended.WELL),
    "confirmed": (lambda w: _ruled(w, Verdict.CONFIRM), Ended.WELL),
    "settled with an error": (lambda w: _settled(w, ERROR), Ended.OTHERWISE),
    "rejected": (lambda w: _ruled(w, Verdict.REJECT), Ended.OTHERWISE),
    "void": (lambda w: _ruled(w, Verdict.VOID), Ended.OTHERWISE),
    "unproven": (_unproven, Ended.OTHERWISE),
    "lost": (_lost, Ended.OTHERWISE),
    "declined": (_declined, Ended.OTHERWISE),
    "cancelled": (_cancelled, Ended.OTHERWISE),
    "closed": (_closed, Ended.OTHERWISE),
    "expired": (_expired, Ended.OTHERWISE),
    "failed by its own parent": (_failed, Ended.OTHERWISE),
    "array": (lambda w: w.post(units=2), Ended.NOT_YET),
    "array running": (_array_runs, Ended.NOT_YET),
    "array half done": (lambda w: _array(w, OK), Ended.NOT_YET),
    "array half failed": (lambda w: _array(w, ERROR), Ended.NOT_YET),
    "array done": (lambda w: _array(w, OK, OK), Ended.WELL),
    "array done but for one": (lambda w: _array(w, OK, ERROR, OK, units=3), Ended.OTHERWISE),
    "array all failed": (lambda w: _array(w, ERROR, ERROR), Ended.OTHERWISE),
    "array closed untouched": (lambda w: _array(w, close=True), Ended.OTHERWISE),
    "array closed half done": (lambda w: _array(w, OK, close=True), Ended.OTHERWISE),
    "array closed while one runs": (lambda w: _array_runs(w, close=True), Ended.NOT_YET),
    "array closed while one is open again": (_array_reopened_and_closed, Ended.NOT_YET),
    "array closed, then its last one done": (_array_closed_after_its_last, Ended.OTHERWISE),
    "array expired": (_array_expired, Ended.OTHERWISE),
    "array waiting": (_array_waits, Ended.NOT_YET),
    "array cancelled while it waited": (_array_waited, Ended.OTHERWISE),
    "array failed by its own parent": (_array_failed, Ended.OTHERWISE),
}


# ---- the child ----


@dataclass
class Child:
    """One of the two kinds of job that may wait."""

    name: str
    units: int
    index: int

    def left(self, world: World, terms: Terms) -> int:
        """Return what the job's lock holds."""
        return world.lock_of(terms)

    def is_blocked(self, world: World, terms: Terms) -> bool:
        """Say whether it waits."""
        if self.units == 1:
            return world.state(terms) == State.BLOCKED
        return world.header(terms).waiting

    def is_open(self, world: World, terms: Terms, since: int) -> bool:
        """Say whether it is open since a second, and nothing else."""
        if self.units == 1:
            return world.unit(terms) == Unit(state=State.OPEN, started=since)
        return world.header(terms) == Header(opened=since, leases=self.units)

    def is_ended(self, world: World, terms: Terms, opened: int) -> bool:
        """Say whether it has ended as CANCELLED, and nothing else changed."""
        if self.units == 1:
            return world.unit(terms) == Unit(state=State.CANCELLED, started=opened)
        return world.header(terms) == Header(closed=True, opened=opened, leases=self.units)


ONE, ARRAY = Child("one lease", 1, 0), Child("array", 3, SENTINEL)
each_child = pytest.mark.parametrize("child", [ONE, ARRAY], ids=lambda child: child.name)


def _after(world: World, child: Child, *parents: tuple[Terms, Condition]) -> Terms:
    return world.post_after(*parents, units=child.units)


def _after_ids(world: World, *ids: bytes) -> Terms:
    """Post a job after the success of whatever has these ids."""
    packed = pack_parents([Parent(JobId(one), Condition.SUCCESS) for one in ids])
    terms = world.terms(parents_hash=parents_hash(packed))
    world.post_receipt(terms, parents=packed)
    world.parents[world.id_of(terms)] = packed
    return terms


def _demand(world: World, child: Child, terms: Terms, wanted: Progress) -> None:
    """Unlock a job and compare all that this does with what is wanted."""
    opened = world.unit(terms).started if child.units == 1 else world.header(terms).opened
    whole = child.units * BUDGET
    assert child.is_blocked(world, terms) and child.left(world, terms) == whole + KEEPER_FEE
    world.evm.warp(5)
    if wanted is Progress.WAITS:
        before = world.evm.state_hash()
        with reverts("jobs: a parent has not ended"):
            world.unlock(terms)
        assert world.evm.state_hash() == before
        return
    with credited(world) as got:
        receipt = world.unlock(terms)
    fails = wanted is Progress.FAILS
    assert got == ({"keeper": KEEPER_FEE, "submitter": whole} if fails else {"keeper": KEEPER_FEE})
    assert receipt.event("Unlocked") == {
        "job_id": world.id_of(terms),
        "index": child.index,
        "word": world.load(terms)[0],
        "refund": whole if fails else 0,
    }
    assert child.left(world, terms) == (0 if fails else whole)
    if fails:
        assert child.is_ended(world, terms, opened)
    else:
        assert child.is_open(world, terms, world.evm.now)


@each_child
@pytest.mark.parametrize("condition", list(Condition), ids=lambda condition: condition.name)
@pytest.mark.parametrize("parent", PARENTS)
def test_unlock__parent_in_each_state__opens_ends_or_waits(
    world: World, parent: str, condition: Condition, child: Child
) -> None:
    make, ended = PARENTS[parent]
    terms = _after(world, child, (make(world), condition))
    _demand(world, child, terms, CONDITIONS.get((condition, ended), Progress.WAITS))


@each_child
@pytest.mark.parametrize("outcome", [one for one in Outcome if one.is_result], ids=lambda outcome: outcome.name)
def test_unlock__result_with_each_outcome__is_a_success_only_if_ok(
    world: World, outcome: Outcome, child: Child
) -> None:
    terms = _after(world, child, (_settled(world, outcome), Condition.SUCCESS))
    _demand(world, child, terms, Progress.OPENS if outcome == OK else Progress.FAILS)


@each_child
def test_unlock__both_assets__pays_the_caller_and_refunds_the_submitter(market: World, child: Child) -> None:
    """The exact money, opened and failed, then to the last unit's end: nothing stays in the lock."""
    parent = _settled(market)
    for condition, wanted in ((Condition.SUCCESS, Progress.OPENS), (Condition.FAILURE, Progress.FAILS)):
        terms = _after(market, child, (parent, condition))
        _demand(market, child, terms, wanted)
        if wanted is Progress.OPENS:
            with credited(market) as got:
                market.cancel(terms, child.index)
            assert got == {"submitter": child.units * BUDGET}
        assert child.left(market, terms) == 0


@each_child
def test_unlock__payee__is_paid_in_the_callers_stead(market: World, child: Child) -> None:
    parent = _settled(market)
    for condition in (Condition.SUCCESS, Condition.FAILURE):
        terms = _after(market, child, (parent, condition))
        with credited(market) as got:
            market.unlock(terms, payee=market.stranger)
        assert got.pop("submitter", 0) == (child.units * BUDGET if condition == Condition.FAILURE else 0)
        assert got == {"stranger": KEEPER_FEE}


def test_unlock__by_its_submitter__gives_him_the_fee_back(market: World) -> None:
    terms = _after(market, ONE, (_cancelled(market), Condition.SUCCESS))
    with credited(market) as got:
        market.unlock(terms, sender=market.submitter)
    assert got == {"submitter": BUDGET + KEEPER_FEE}


@each_child
def test_unlock__anybody__may(world: World, child: Child) -> None:
    parent = _settled(world)
    for sender in (world.submitter, world.owner, world.operator, world.keeper, world.stranger, world.deployer):
        terms = _after(world, child, (parent, Condition.SUCCESS))
        world.unlock(terms, sender=sender)
        assert child.is_open(world, terms, world.evm.now)


# ---- several parents ----


@each_child
def test_unlock__one_of_several_has_not_ended__waits_wherever_it_stands(world: World, child: Child) -> None:
    done, runs = _settled(world), world.post()
    for at in range(3):
        parents = [(runs if at == place else done, Condition.ALWAYS) for place in range(3)]
        _demand(world, child, _after(world, child, *parents), Progress.WAITS)


@each_child
def test_unlock__one_fails__ends_it_at_once_whatever_the_others_do(world: World, child: Child) -> None:
    """Before and after those that run, are open, or were never posted."""
    done = _settled(world)
    waits = [(world.post(), Condition.SUCCESS), (world.terms(), Condition.ALWAYS), (done, Condition.SUCCESS)]
    for at in range(len(waits) + 1):
        parents = [*waits[:at], (done, Condition.FAILURE), *waits[at:]]
        _demand(world, child, _after(world, child, *parents), Progress.FAILS)


@pytest.mark.parametrize("at", range(MAX_PARENTS))
def test_unlock__as_many_parents_as_may_be__each_has_its_own_condition(world: World, at: int) -> None:
    """Opposite conditions for two parents that ended otherwise; then one of them is asked for the contrary."""
    well, otherwise = _settled(world), _cancelled(world)
    ends = [(well, Condition.SUCCESS), (otherwise, Condition.FAILURE)]
    good = [ends[place % 2] for place in range(MAX_PARENTS)]
    bad = [(job, Condition(3 - asked)) if place == at else (job, asked) for place, (job, asked) in enumerate(good)]
    slow = [(world.terms(), asked) if place == at else (job, asked) for place, (job, asked) in enumerate(good)]
    _demand(world, ONE, _after(world, ONE, *good), Progress.OPENS)
    _demand(world, ONE, _after(world, ONE, *bad), Progress.FAILS)
    _demand(world, ONE, _after(world, ONE, *slow), Progress.WAITS)


def test_unlock__same_parent_twice__both_conditions_count(world: World) -> None:
    done = _settled(world)
    both = _after(world, ONE, (done, Condition.SUCCESS), (done, Condition.ALWAYS))
    _demand(world, ONE, both, Progress.OPENS)
    never = _after(world, ONE, (done, Condition.SUCCESS), (done, Condition.FAILURE))
    _demand(world, ONE, never, Progress.FAILS)


def test_unlock__key_of_an_arrays_unit__never_ends(world: World) -> None:
    """It is no job's id, however the unit ended."""
    array = _array(world, OK, OK)
    key = formulas.unit_key(world.id_of(array), 0, 2)
    terms = _after_ids(world, key)
    assert world.jobs.call.load(key, 0)[0] == world.load(array, 0)[1] != 0
    _demand(world, ONE, terms, Progress.WAITS)


def test_unlock__parent_that_is_posted_later__counts_then(world: World) -> None:
    later = world.terms()
    terms = _after(world, ONE, (later, Condition.FAILURE))
    _demand(world, ONE, terms, Progress.WAITS)
    world.post(later)
    with reverts("jobs: a parent has not ended"):
        world.unlock(terms)
    world.cancel(later)
    _demand(world, ONE, terms, Progress.OPENS)


def test_unlock__same_second_as_the_parents_settle__opens(world: World) -> None:
    parent, _ = submitted(world)
    terms = _after(world, ONE, (parent, Condition.SUCCESS))
    with reverts("jobs: a parent has not ended"):
        world.unlock(terms)
    world.settle(parent)
    world.unlock(terms)
    assert ONE.is_open(world, terms, world.evm.now)


def test_unlock__posted_after_its_parents_ended__opens_in_the_same_second(world: World) -> None:
    terms = _after(world, ONE, (_settled(world), Condition.SUCCESS))
    world.unlock(terms)
    assert ONE.is_open(world, terms, world.evm.now)


# ---- the list ----


def _lists(world: World) -> dict[str, tuple[bytes, ...]]:
    """Return lists that are not the one of a job after the success of `first` and the failure of `second`."""
    first, second = world.id_of(_settled(world)), world.id_of(_cancelled(world))
    asked = [Parent(first, Condition.SUCCESS), Parent(second, Condition.FAILURE)]
    packed = pack_parents(asked)
    world.parents[JobId(bytes(32))] = packed
    return {
        "nothing": (),
        "the conditions alone": packed[:1],
        "the ids alone": packed[1:],
        "one parent less": pack_parents(asked[:1]),
        "a parent more": (*packed, bytes(first)),
        "another order": pack_parents(asked[::-1]),
        "the ids exchanged": (packed[0], packed[2], packed[1]),
        "another condition": pack_parents([asked[0], Parent(second, Condition.ALWAYS)]),
        "another job": pack_parents([asked[0], Parent(JobId(b"\x07" * 32), Condition.FAILURE)]),
        "bits beyond": ((int.from_bytes(packed[0], "big") | 1 << 4).to_bytes(32, "big"), *packed[1:]),
    }


@each_child
def test_unlock__list_that_is_not_the_posted_one__is_refused(world: World, child: Child) -> None:
    wrong = _lists(world)
    packed = world.parents.pop(JobId(bytes(32)))
    terms = world.terms(parents_hash=parents_hash(packed), units=child.units)
    world.post_receipt(terms, parents=packed)
    other = _after(world, child, (_settled(world), Condition.SUCCESS))
    wrong["that of another job"] = world.parents[world.id_of(other)]
    before = world.evm.state_hash()
    for name, parents in wrong.items():
        with reverts("jobs: parents not as hashed"):
            world.unlock(terms, parents=parents)
        assert world.evm.state_hash() == before, name
    world.unlock(terms, parents=packed)
    assert child.is_open(world, terms, world.evm.now)


# ---- what does not wait ----


@each_child
def test_unlock__twice__is_refused(market: World, child: Child) -> None:
    """Once opened, and once failed; nor does it pay a second time."""
    parent = _settled(market)
    for condition in (Condition.SUCCESS, Condition.FAILURE):
        terms = _after(market, child, (parent, condition))
        market.unlock(terms)
        with credited(market) as got, reverts("jobs: not blocked"):
            market.unlock(terms)
        assert got == {}


@each_child
def test_unlock__cancelled_or_expired__is_refused(world: World, child: Child) -> None:
    parent = _settled(world)
    for end in (world.cancel, world.expire):
        deadline = world.evm.now + LEASE
        terms = world.post_after((parent, Condition.SUCCESS), units=child.units, deadline=deadline)
        world.evm.warp(1)
        end(terms, child.index)
        with reverts("jobs: not blocked"):
            world.unlock(terms)


def test_unlock__job_in_any_later_state__is_refused(world: World) -> None:
    """What was opened is never opened again, whatever became of it."""
    parent, node = _settled(world), world.register()
    opened = [_after(world, ONE, (parent, Condition.SUCCESS)) for _ in range(4)]
    steps: list[Callable[[Terms], object]] = [
        lambda terms: world.claim(terms, node),
        lambda terms: world.submit(terms),
        lambda terms: world.settle(terms),
    ]
    for done, terms in enumerate(opened):
        world.unlock(terms)
        for step in steps[:done]:
            step(terms)
        with reverts("jobs: not blocked"):
            world.unlock(terms)
    array = _after(world, ARRAY, (parent, Condition.SUCCESS))
    world.unlock(array)
    world.claim(array, node, SENTINEL)
    with reverts("jobs: not blocked"):
        world.unlock(array)


def test_unlock__job_without_parents_or_unknown__is_refused(world: World) -> None:
    for terms in (world.post(), world.post(units=2), world.terms()):
        with reverts("jobs: not blocked"):
            world.unlock(terms, parents=())


# ---- time ----


@each_child
def test_unlock__no_time_for_an_attempt__is_refused_from_its_first_second(market: World, child: Child) -> None:
    """From the second on in which it expires, whether it would be opened or ended: no submitter pays for both."""
    parent = _settled(market)
    start = market.evm.now
    for condition in (Condition.SUCCESS, Condition.FAILURE):
        deadline = start + 5_000 + LEASE - 1
        terms = market.post_after((parent, condition), units=child.units, deadline=deadline)
        for offset in around(market, formulas.expirable_from(terms)):
            if offset < 0:
                with reverts("jobs: not expired"):
                    market.expire(terms, child.index)
                market.unlock(terms)
            else:
                with reverts("jobs: no time left"):
                    market.unlock(terms)
                market.expire(terms, child.index)
                assert child.left(market, terms) == 0


def test_unlock__opened_late__leaves_time_for_one_attempt(world: World) -> None:
    """In the last second in which it can be opened, it can be claimed too."""
    node = world.register()
    terms = world.post_after((_settled(world), Condition.SUCCESS), deadline=world.evm.now + LEASE)
    world.unlock(terms)
    world.claim(terms, node)
    assert world.unit(terms).mark == terms.deadline


@pytest.mark.parametrize("window", [0, 30])
@each_child
def test_unlock__open_claims__count_from_it(world: World, child: Child, window: int) -> None:
    """Neither the wait of an auction nor the rise of the price has begun while the job waited."""
    node = world.register(ask=90 * 10**18)
    parent = _settled(world)
    terms = world.post_after((parent, Condition.SUCCESS), units=child.units, match_window=window)
    world.evm.warp(800)
    world.nodes.send.beat(node, sender=world.operator)
    world.unlock(terms)
    opens = world.evm.now + (world.policy.open_claim_after if window else 0)
    index = child.index if child.units > 1 else 0
    wait = formulas.claim_wait(terms, 90 * 10**18)
    assert wait > 0
    if window:
        with reverts("jobs: takes no claims yet"):
            world.claim(terms, node, index)
    for offset in around(world, opens + wait):
        world.nodes.send.beat(node, sender=world.operator)
        if offset < 0:
            with reverts("nodes: ask above ceiling"):
                world.claim(terms, node, index)
        else:
            world.claim(terms, node, index)


# ---- while it waits ----


@each_child
def test_unlock__before_it__nobody_takes_the_job(world: World, child: Child) -> None:
    node, other = world.register(), world.register()
    terms = world.post_after((_settled(world), Condition.SUCCESS), units=child.units, match_window=30)
    for index in range(child.units) if child.units > 1 else (0,):
        for call in (lambda at=index: world.propose(terms, node, at), lambda at=index: world.claim(terms, node, at)):
            with reverts("jobs: not open"):
                call()
        with reverts("jobs: not open"):
            world.ack(terms, index)
    with reverts("jobs: not open"):
        world.propose(terms, node, SENTINEL)
    world.evm.warp(600)
    for one in (node, other):
        world.nodes.send.beat(one, sender=world.operator)
        with reverts("jobs: not open"):
            world.claim(terms, one, SENTINEL)
    world.unlock(terms)
    world.propose(terms, node, SENTINEL)


@each_child
def test_unlock__then_its_life__pays_as_without_parents(market: World, child: Child) -> None:
    terms = _after(market, child, (_settled(market), Condition.SUCCESS))
    market.unlock(terms)
    node = market.register()
    for index in range(child.units):
        market.claim(terms, node, index)
        market.submit(terms, index)
        market.settle(terms, index)
        assert market.state(terms, index) == State.SETTLED
    assert child.left(market, terms) == 0
    if child.units > 1:
        assert market.header(terms).done == child.units


def test_unlock__array__opens_its_units_since_then(world: World) -> None:
    terms = _after(world, ARRAY, (_settled(world), Condition.SUCCESS))
    world.evm.warp(70)
    world.unlock(terms)
    opened, node = world.evm.now, world.register()
    world.evm.warp(9)
    touched = replace(world.header(terms), touched=1)
    world.claim(terms, node, SENTINEL)
    world.decline(terms, 0)
    assert world.header(terms) == touched and world.header(terms).opened == opened
    assert world.unit(terms, 0).flags & UnitFlag.ARRAY
