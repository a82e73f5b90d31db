"""Rules' views. What `check`, `topped` and `ruled` refuse is demanded of `post`, `top_up` and `rule` too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import (
    MAX_PARENTS,
    Billing,
    Header,
    JobId,
    NodeId,
    Outcome,
    State,
    TermsFlag,
    Unit,
    UnitFlag,
    Verdict,
)
from tests.kit.evm import reverts
from tests.kit.world import POLICY, World


@pytest.mark.parametrize("units", [1, 7, 2**20])
def test_check__terms__says_the_first_word_and_the_funding(world: World, units: int) -> None:
    terms = world.terms(units=units)
    word, funding = world.rules.call.check(words.pack_terms(terms), [])
    if units == 1:
        assert words.unpack_unit(word) == Unit(state=State.OPEN, started=world.evm.now)
    else:
        assert words.unpack_header(word) == Header(opened=world.evm.now, leases=units)
    assert funding == formulas.escrow_at_post(terms)
    world.post(terms)
    assert world.load(terms)[0] == word


def test_check__whoever_asks__is_answered_the_same(world: World) -> None:
    """It is no secret what would be taken: the submitter's own call is compared by `post`."""
    packed = words.pack_terms(world.terms())
    assert world.rules.call.check(packed, [], sender=world.stranger) == world.rules.call.check(packed, [])
    with reverts("jobs: policy not current"):
        world.rules.call.check(words.pack_terms(world.terms(policy=1)), [])


def test_policies__fresh__is_the_current_alone(world: World) -> None:
    assert tuple(world.rules.call.policies()) == (words.pack_policy(POLICY), 0, 0, 0, 0)


def test_policies__replaced__names_the_previous_and_its_end(world: World) -> None:
    newer = words.pack_policy(replace(POLICY, fee_bps=400))
    world.rules.send.set_policy(newer)
    until = world.evm.now + 86_400
    assert tuple(world.rules.call.policies()) == (newer, 0, words.pack_policy(POLICY), until, 0)


@pytest.mark.parametrize("units", [1, 7])
def test_check__parents__cost_one_keeper_fee_more(world: World, units: int) -> None:
    packed = pack_parents([Parent(JobId(b"\x01" * 32), Condition.FAILURE)])
    terms = world.terms(units=units, parents_hash=parents_hash(packed))
    plain = formulas.escrow_at_post(replace(terms, parents_hash=bytes(32)))
    word, funding = world.rules.call.check(words.pack_terms(terms), packed)
    assert funding == plain + terms.keeper_fee
    if units == 1:
        assert words.unpack_unit(word) == Unit(state=State.BLOCKED, started=world.evm.now)
    else:
        assert words.unpack_header(word) == Header(opened=world.evm.now, waiting=True, leases=units)
    with reverts("jobs: parents not as hashed"):
        world.rules.call.check(words.pack_terms(terms), [])


@pytest.mark.parametrize(("count", "taken"), [(MAX_PARENTS, True), (MAX_PARENTS + 1, False)])
def test_check__parents__are_so_many_at_most(world: World, count: int, taken: bool) -> None:
    """JobRegistry takes no more either; Rules holds to it by itself."""
    conditions = sum(Condition.ALWAYS << 2 * at for at in range(count))
    packed = (conditions.to_bytes(32, "big"), *(bytes([at + 1]) * 32 for at in range(count)))
    terms = words.pack_terms(world.terms(parents_hash=parents_hash(packed)))
    if taken:
        assert words.unpack_unit(world.rules.call.check(terms, packed)[0]).state is State.BLOCKED
    else:
        with reverts(""):
            world.rules.call.check(terms, packed)


# ---- what a unit's word is next ----

RUNNING = Unit(state=State.RUNNING, node=NodeId(3), rate=7, attempts=1)


def _topped(world: World, seconds: int, unit: Unit | None = None, **overrides: Any) -> tuple[Unit, int]:
    terms = world.terms(**{"billing": Billing.METERED, **overrides})
    packed = words.pack_terms(terms)
    mark = world.evm.now + 1_300
    word = words.pack_unit(unit or replace(RUNNING, started=world.evm.now, mark=mark))
    found, amount = world.rules.call.topped(packed[3], packed[4], word, seconds)
    return words.unpack_unit(found), amount


def test_topped__running__grows_lease_and_price(world: World) -> None:
    before = replace(RUNNING, started=world.evm.now, mark=world.evm.now + 1_300, seconds=5)
    terms = world.terms(billing=Billing.METERED)
    unit, amount = _topped(world, 60, before)
    assert unit == replace(before, seconds=65, mark=before.mark + 60)
    assert amount == formulas.top_up_amount(terms, before, 60)


@pytest.mark.parametrize("state", [state for state in State if state not in (State.RUNNING, State.NONE)])
def test_topped__unit_that_does_not_run__reverts(world: World, state: State) -> None:
    with reverts("jobs: not running"):
        _topped(world, 60, replace(RUNNING, state=state, mark=world.evm.now + 9))


def test_topped__what_it_may_not_have__is_told(world: World) -> None:
    now = world.evm.now
    with reverts("jobs: not metered"):
        _topped(world, 60, billing=Billing.FIXED)
    with reverts("jobs: too late to submit"):
        _topped(world, 60, replace(RUNNING, started=now - 9, mark=now))
    for seconds in (0, 30 * 86_400 - 1_000 + 1, 2**256 - 1):
        with reverts("jobs: max_seconds out of range"):
            _topped(world, seconds)
    with reverts("jobs: deadline too near"):
        _topped(world, 61, deadline=now + 1_360)
    assert _topped(world, 60, deadline=now + 1_360)[0].seconds == 60


@pytest.mark.parametrize(
    ("lane", "value", "reason"),
    [
        ("state", State.RUNNING | 8, "jobs: not running"),
        ("billing", Billing.METERED | 8, "jobs: not metered"),
        ("max_seconds", 2**23, ""),  # more than post takes
        ("mark", 2**39, None),
        ("deadline", 2**39, None),
    ],
)
def test_topped__highest_bit_of_a_lane__is_read(world: World, lane: str, value: int, reason: str | None) -> None:
    """It is a view of whatever words it is given, those of no posted job too."""
    now = world.evm.now
    fields = {"state": State.RUNNING, "mark": now + 1_300, "billing": Billing.METERED, "max_seconds": 1_000}
    fields |= {"deadline": 2**40 - 1, lane: value}

    def packed(layout: words.Word) -> int:
        return words.pack(layout, {one.name: fields.get(one.name, 0) for one in layout.lanes})

    money = words.pack_terms(world.terms())[3]
    given = (money, packed(words.LIMITS), packed(words.UNIT), 60)
    if reason is None:
        assert words.unpack_unit(world.rules.call.topped(*given)[0]).mark == fields["mark"] + 60
    else:
        with reverts(reason):
            world.rules.call.topped(*given)


@pytest.mark.parametrize("state", [State.SUBMITTED | 8, State.DISPUTED | 8])
def test_ruled__highest_bit_of_the_state__is_read(world: World, state: int) -> None:
    packed = words.pack_terms(world.terms(**world.judged()))
    word = words.pack_unit(HELD) & ~15 | state
    with reverts("jobs: not submitted"):
        world.rules.call.ruled(packed[4], packed[7], word, Verdict.CONFIRM, 0)


def _ruled(world: World, verdict: int, unit: Unit, fields: int = 0, *, proven: bool = False) -> Unit:
    flags = TermsFlag.NEWCOMERS | (TermsFlag.PROVEN if proven else TermsFlag(0))
    packed = words.pack_terms(world.terms(**world.judged(flags=flags)))
    return words.unpack_unit(world.rules.call.ruled(packed[4], packed[7], words.pack_unit(unit), verdict, fields))


HELD = replace(RUNNING, state=State.DISPUTED, outcome=Outcome.OK, started=5, mark=9)


def test_ruled__disputed__is_released_or_left_to_its_end(world: World) -> None:
    assert _ruled(world, Verdict.RELEASE, HELD) == replace(HELD, state=State.SUBMITTED)
    for verdict in (Verdict.CONFIRM, Verdict.REJECT, Verdict.VOID):
        assert _ruled(world, verdict, HELD) == HELD


def test_ruled__submitted__is_confirmed_and_where_proven_rejected_and_voided(world: World) -> None:
    bare = replace(HELD, state=State.SUBMITTED)
    assert _ruled(world, Verdict.CONFIRM, bare) == bare
    for verdict in (Verdict.REJECT, Verdict.VOID):
        assert _ruled(world, verdict, bare, proven=True) == bare
        with reverts("jobs: not disputed"):
            _ruled(world, verdict, bare)
    with reverts("jobs: not disputed"):
        _ruled(world, Verdict.RELEASE, bare, proven=True)


def test_ruled__fields__replace_outcome_and_fuel_seconds_of_a_confirmed_unit_alone(world: World) -> None:
    fuel = replace(HELD, seconds=7, flags=UnitFlag.FUEL)
    fields = words.pack(words.FIELDS, {"outcome": 2, "seconds": 5})
    assert _ruled(world, Verdict.CONFIRM, fuel, fields) == replace(fuel, outcome=Outcome.EXIT, seconds=5)
    for verdict in (Verdict.RELEASE, Verdict.REJECT, Verdict.VOID):
        with reverts("jobs: outcome out of range"):
            _ruled(world, verdict, fuel, fields)
    for outcome in (6, 9, 15):
        with reverts("jobs: outcome out of range"):
            _ruled(world, Verdict.CONFIRM, fuel, words.pack(words.FIELDS, {"outcome": outcome, "seconds": 5}))
    with reverts("jobs: used out of range"):
        _ruled(world, Verdict.CONFIRM, HELD, fields)
    with reverts("jobs: used out of range"):
        _ruled(world, Verdict.CONFIRM, fuel, words.pack(words.FIELDS, {"outcome": 2, "seconds": 0}))


def test_ruled__neither_submitted_nor_disputed_or_no_verdict__reverts(world: World) -> None:
    with reverts("jobs: verdict out of range"):
        _ruled(world, 4, HELD)
    with reverts("jobs: not submitted"):
        _ruled(world, Verdict.CONFIRM, RUNNING)


def test_ruled__seasoned_lease__is_confirmed_within_the_delay_of_a_fresh_one() -> None:
    world = World(policy=replace(POLICY, fresh_delay=60))
    for state in (State.SUBMITTED, State.DISPUTED):
        unit = replace(HELD, state=state, mark=world.evm.now)
        assert _ruled(world, Verdict.CONFIRM, unit) == unit


def test_ruled__fresh_lease__is_confirmed_only_after_its_delay() -> None:
    world = World(policy=replace(POLICY, fresh_delay=60))
    fresh = replace(HELD, mark=world.evm.now, flags=UnitFlag.FRESH)
    with reverts("jobs: too early to settle"):
        _ruled(world, Verdict.CONFIRM, fresh)
    assert _ruled(world, Verdict.RELEASE, fresh).state is State.SUBMITTED
    world.evm.warp(60)
    assert _ruled(world, Verdict.CONFIRM, fresh) == fresh
