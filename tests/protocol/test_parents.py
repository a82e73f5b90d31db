"""What a job waits for: packed and judged as the contracts do it, on every kind of word, and by `unlock`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import product

import pytest
from eth_utils.crypto import keccak
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hearth.base.abi import encode
from hearth.protocol import words
from hearth.protocol.parents import (
    Condition,
    Ended,
    Parent,
    Progress,
    ended,
    ends_at_worst,
    pack_parents,
    parents_hash,
    progress,
    unpack_parents,
)
from hearth.protocol.types import (
    MAX_PARENTS,
    SENTINEL,
    ZERO_HASH,
    Header,
    JobId,
    NodeId,
    Outcome,
    State,
    Terms,
    Unit,
    UnitFlag,
)
from tests.kit.evm import Contract, Evm, Reverted
from tests.kit.steps import running
from tests.kit.world import DEAD_AFTER, World


@cache
def _arithmetic() -> Contract:
    return Evm().deploy("mocks/ArithmeticMock")


def _ended(word: int) -> Ended:
    """Return how a job with this word has ended, which the library and the contracts say alike."""
    found = ended(word)
    assert found == _arithmetic().call.ended(word)
    return found


@pytest.mark.parametrize(
    ("header", "end"),
    [
        (Header(touched=3, done=2, leases=3), Ended.OTHERWISE),
        (Header(touched=3, done=1, leases=3, quorum=2), Ended.OTHERWISE),
        (Header(touched=3, done=2, leases=3, quorum=2), Ended.WELL),
    ],
)
def test_ends_at_worst__header__is_the_end_of_the_job_whose_other_units_fail(header: Header, end: Ended) -> None:
    """A quorum that is reached makes it end well, whatever becomes of the others."""
    word = words.pack_header(header)
    assert (_ended(word), ends_at_worst(word)) == (Ended.NOT_YET, end)
    assert _ended(words.pack_header(replace(header, failed=header.leases - header.done))) is end


def test_ends_at_worst__job_of_one_lease__is_otherwise() -> None:
    assert ends_at_worst(words.pack_unit(Unit(state=State.OPEN))) is Ended.OTHERWISE


# ---- the list ----

_parents = st.lists(
    st.builds(Parent, st.binary(min_size=32, max_size=32).map(JobId), st.sampled_from(Condition)),
    max_size=MAX_PARENTS,
)


@given(_parents)
@example([])
@example([Parent(JobId(b"\xff" * 32), condition) for condition in [*Condition] * 5])
def test_parents__packed__unpack_to_themselves(listed: list[Parent]) -> None:
    packed = pack_parents(listed)
    assert unpack_parents(packed) == tuple(listed)
    assert len(packed) == (len(listed) + 1 if listed else 0)
    assert parents_hash(packed) == (keccak(encode(["bytes32[]"], [list(packed)])) if listed else ZERO_HASH)


def test_pack_parents__more_than_the_most__is_refused() -> None:
    with pytest.raises(ValueError, match=f"{MAX_PARENTS + 1} parents are more than {MAX_PARENTS}"):
        pack_parents([Parent(JobId(bytes(32)), Condition.ALWAYS)] * (MAX_PARENTS + 1))


def _conditions(value: int) -> bytes:
    return value.to_bytes(32, "big")


@pytest.mark.parametrize(
    "packed",
    [
        (_conditions(1),),
        (_conditions(0),),
        (_conditions(0), bytes(32)),
        (_conditions(1 << 2), bytes(32)),
        (_conditions(1 | 1 << 2), bytes(32)),
        (_conditions(1 << 2), bytes(32), bytes(32)),
        (_conditions(1 << 255 | 1), bytes(32)),
        (_conditions(4 ** (MAX_PARENTS + 1) - 1), *[bytes(32)] * (MAX_PARENTS + 1)),
    ],
)
def test_unpack_parents__list_that_no_post_takes__is_refused(packed: tuple[bytes, ...]) -> None:
    with pytest.raises(ValueError):
        unpack_parents(packed)


# ---- how a job has ended ----


NO_FLAG = UnitFlag(0)


def _unit(state: State, outcome: Outcome, flags: UnitFlag = NO_FLAG) -> int:
    return words.pack_unit(Unit(state=state, outcome=outcome, flags=flags, node=NodeId(7), started=9))


@pytest.mark.parametrize("state", State)
def test_ended__unit_in_each_state_with_each_outcome__is_what_the_contracts_say(state: State) -> None:
    """Well is SETTLED with outcome ok alone; the word of an array's unit never ends."""
    for outcome, flags in product(Outcome, (NO_FLAG, UnitFlag.ARRAY, UnitFlag.STORE | UnitFlag.FRESH)):
        word = _unit(state, outcome, flags)
        terminal = state in (State.SETTLED, State.REFUNDED, State.CANCELLED, State.EXPIRED)
        expected = Ended.OTHERWISE if terminal and flags != UnitFlag.ARRAY else Ended.NOT_YET
        if expected and (state, outcome) == (State.SETTLED, Outcome.OK):
            expected = Ended.WELL
        assert _ended(word) is expected, (state, outcome, flags)
        for condition in Condition:
            wanted = Progress.WAITS
            if expected:
                wanted = Progress.OPENS if condition & expected else Progress.FAILS
            assert _progress([(word, condition)]) is wanted


@pytest.mark.parametrize("leases", [2, 3])
def test_ended__every_header_of_a_small_array__is_what_the_contracts_say(leases: int) -> None:
    """Well where each lease is done; otherwise once every one, or of a closed array every touched one, has ended."""
    for touched in range(leases + 1):
        for done, failed in product(range(touched + 1), repeat=2):
            if done + failed > touched:
                continue
            for closed in (False, True):
                if closed and touched == leases:
                    continue
                header = Header(closed=closed, touched=touched, done=done, failed=failed, opened=5, leases=leases)
                expected = Ended.NOT_YET
                if done == leases:
                    expected = Ended.WELL
                elif done + failed == (touched if closed else leases):
                    expected = Ended.OTHERWISE
                word = words.pack_header(header)
                assert _ended(word) is expected, header


def test_ended__waiting_array__has_not() -> None:
    word = words.pack_header(Header(waiting=True, opened=5, leases=2))
    assert _ended(word) is Ended.NOT_YET


def test_ended__largest_array__counts_all_its_bits() -> None:
    """The lanes of done, failed, touched and leases are as wide as a job is large."""
    most = 2**20
    for header, expected in (
        (Header(touched=most, done=most, leases=most), Ended.WELL),
        (Header(touched=most, done=most - 1, leases=most), Ended.NOT_YET),
        (Header(touched=most, done=most - 1, failed=1, leases=most), Ended.OTHERWISE),
        (Header(touched=most, failed=most, leases=most), Ended.OTHERWISE),
        (Header(closed=True, touched=most - 1, failed=most - 1, leases=most), Ended.OTHERWISE),
        (Header(closed=True, touched=most - 1, failed=most - 2, leases=most), Ended.NOT_YET),
    ):
        word = words.pack_header(header)
        assert _ended(word) is expected, header


def test_ended__no_job__has_not() -> None:
    assert _ended(0) is Ended.NOT_YET


_headers = st.tuples(st.booleans(), *[st.integers(0, 3)] * 4).map(
    lambda t: words.pack_header(Header(closed=t[0], touched=t[1], done=t[2], failed=t[3], leases=t[4], opened=1))
)
_units = st.builds(_unit, st.sampled_from(State), st.sampled_from(Outcome), st.sampled_from([NO_FLAG, UnitFlag.ARRAY]))


@settings(max_examples=400)
@given(st.one_of(_units, _headers))
def test_ended__any_word__is_what_the_contracts_say(word: int) -> None:
    _ended(word)


# ---- what becomes of its children ----


def _progress(asked: Sequence[tuple[int, Condition]]) -> Progress:
    """Ask about parents with these words."""
    return progress([Parent(JobId(bytes(32)), condition) for _, condition in asked], [word for word, _ in asked])


_ends = [_unit(State.SETTLED, Outcome.OK), _unit(State.CANCELLED, Outcome.NONE)]


@given(st.lists(st.tuples(st.sampled_from([*_ends, 0]), st.sampled_from(Condition)), min_size=1, max_size=MAX_PARENTS))
def test_progress__order_of_parents__does_not_matter(asked: list[tuple[int, Condition]]) -> None:
    assert _progress(asked) is _progress(asked[::-1]) is _progress(sorted(asked))


# ---- and what unlock does by it ----


@cache
def _market() -> tuple[World, list[Terms]]:
    """Return a market and jobs in many states and ends, none of which changes any more."""
    world = World()
    made = [world.terms(), world.post(), world.post(units=2), running(world)[0]]
    done, failed, lost = running(world)[0], running(world)[0], running(world, max_attempts=1)[0]
    cancelled, closed = world.post(), world.post(units=3)
    for terms, outcome in ((done, Outcome.OK), (failed, Outcome.TRAP)):
        world.submit(terms, outcome=outcome)
        world.settle(terms)
    world.cancel(cancelled)
    world.cancel(closed, SENTINEL)
    array = world.post(units=2)
    node = world.register()
    for index in range(2):
        world.claim(array, node, index)
        world.submit(array, index)
        world.settle(array, index)
    blocked = world.post_after((cancelled, Condition.SUCCESS))
    world.evm.warp(DEAD_AFTER)
    world.reclaim(lost)
    return world, [*made, done, failed, lost, cancelled, closed, array, blocked]


@settings(max_examples=150)
@given(st.data(), st.sampled_from([1, 3]))
def test_progress__random_parents_in_random_ends__is_what_unlock_does(data: st.DataObject, units: int) -> None:
    world, jobs = _market()
    ends = jobs[4:10]
    pool = st.sampled_from(ends) if data.draw(st.booleans()) else st.sampled_from(jobs)
    asked = data.draw(st.lists(st.tuples(pool, st.sampled_from(Condition)), min_size=1, max_size=MAX_PARENTS))
    with world.evm.isolated():
        terms = world.post_after(*asked, units=units)
        listed = unpack_parents(world.parents[world.id_of(terms)])
        wanted = progress(listed, world.lens.call.jobs([parent.job for parent in listed]))
        with suppress(Reverted):
            world.unlock(terms)
        word = world.load(terms)[0]
        if units == 1:
            state = world.state(terms)
            found = {State.BLOCKED: Progress.WAITS, State.OPEN: Progress.OPENS, State.CANCELLED: Progress.FAILS}[state]
        else:
            header = words.unpack_header(word)
            found = Progress.FAILS if header.closed else Progress.WAITS if header.waiting else Progress.OPENS
        assert found is wanted
