"""Lens.status: units at many places as stored, with the checkpoints that their attempts were resumed from."""

from __future__ import annotations

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.types import Accused, JobId, State, Terms, TermsFlag, UnitFlag
from tests.kit.evm import Reverted
from tests.kit.scripted import ScriptedMarket
from tests.kit.steps import RESUMABLE, lose, lost, other, running, submitted
from tests.kit.world import REPORT, RESULT, World


def _status(world: World, *places: tuple[Terms, int]) -> list[tuple[int, int, int, int, list[int]]]:
    page = world.lens.call.status([(world.id_of(terms), index) for terms, index in places])
    return [(one.job, one.word, one.second, one.accused, list(one.kept)) for one in page]


def _chain(world: World, terms: Terms, index: int = 0) -> list[int]:
    """Return the words of the checkpoints that a unit's attempt goes back to, read one by one."""
    found, attempt = [], world.unit(terms, index).resume
    while attempt:
        kept = world.kept(terms, attempt, index)
        found.append(words.pack_kept(kept))
        attempt = kept.resume
    return found


def test_status__several__are_the_units_as_stored_in_their_order(world: World) -> None:
    kept, node = submitted(world, flags=TermsFlag.NEWCOMERS | TermsFlag.KEEP)
    array, unknown = world.post(units=4, match_window=30), world.terms()
    world.propose(array, node, 0)
    world.propose(array, node, 1)
    world.evm.warp(500)  # both have lapsed, which the stored words do not say
    places = [(array, 1), (unknown, 0), (kept, 0), (array, 0), (array, 2), (array, 3), (array, 9), (array, 1)]
    page = _status(world, *places)
    assert page == [(*world.load(terms, index), []) for terms, index in places]
    assert page[0] == page[-1] and page[1] == (0, 0, 0, 0, [])
    assert page[2][2].to_bytes(32, "big") == RESULT and words.unpack_unit(page[2][1]).flags & UnitFlag.STORE
    assert words.is_header(page[3][0]) and page[3][1] != 0 == page[4][1] == page[6][1]


def test_status__declined__shows_the_accused(world: World) -> None:
    terms, node = running(world)
    world.jobs.send.decline(words.pack_terms(terms), 0, 6, REPORT, sender=world.operator)
    ((_, word, _, accused, _),) = _status(world, (terms, 0))
    assert (words.unpack_unit(word).state, words.unpack_accused(accused)) == (
        State.OPEN,
        Accused(node, world.evm.now),
    )


@pytest.mark.parametrize("index", [1, 2, 2**20, 2**256 - 1])
def test_status__index_that_a_one_lease_job_does_not_have__is_empty_but_for_the_job(world: World, index: int) -> None:
    terms, _ = running(world)
    assert _status(world, (terms, index)) == [(world.load(terms)[0], 0, 0, 0, [])]


@pytest.mark.parametrize("resumed", [0, 1, 2, 7])
def test_status__resumed_again_and_again__names_each_checkpoint_back_to_the_first(world: World, resumed: int) -> None:
    """Of eight attempts, the most that a job has, the last can go back to seven."""
    terms, operator = world.post(**{**RESUMABLE, "max_attempts": 8}), ""
    for attempt in range(resumed + 1):
        node, operator = other(world, f"provider {attempt}")
        world.evm.warp(world.policy.claim_ramp)
        world.claim(terms, node, resume_from=attempt, sender=operator)
        world.evm.warp(60)
        world.checkpoint(terms, sender=operator)
        if attempt < resumed:
            lose(world, terms, "give_up", sender=operator)
    ((_, _, _, _, kept),) = _status(world, (terms, 0))
    assert len(kept) == resumed and kept == _chain(world, terms)
    assert [words.unpack_kept(word).resume for word in kept] == list(range(resumed - 1, -1, -1))
    world.submit(terms, sender=operator)
    assert _status(world, (terms, 0))[0][4] == kept


def test_status__lost_and_open_again__goes_back_to_none(world: World) -> None:
    terms, _ = lost(world)
    assert world.kept(terms, 1).seconds == 100
    assert _status(world, (terms, 0)) == [(*world.load(terms), [])]


def test_status__units_of_an_array__have_checkpoints_of_their_own(world: World) -> None:
    node, terms = world.register(), world.post(units=3, **RESUMABLE)
    for index in (0, 1):
        world.claim(terms, node, index)
        world.evm.warp(70 + index)
        world.checkpoint(terms, index)
        world.give_up(terms, index)
    taker, operator = other(world)
    for index in (0, 1):
        world.evm.warp(world.policy.claim_ramp)
        world.claim(terms, taker, index, sender=operator, resume_from=1)
    page = _status(world, (terms, 1), (terms, 0), (terms, 2))
    assert [one[4] for one in page] == [_chain(world, terms, 1), _chain(world, terms, 0), []]
    assert [[words.unpack_kept(word).seconds for word in one[4]] for one in page] == [[71], [70], []]


@pytest.mark.parametrize("count", [0, 1, 255, 256])
def test_status__page__holds_256_at_most(world: World, count: int) -> None:
    job = world.id_of(world.post(units=300))
    page = world.lens.call.status([(job, index) for index in range(count)])
    assert len(page) == count and {one.job for one in page} <= {world.jobs.call.load(job, 0)[0]}


def test_status__more_than_256__is_no_call_of_the_abi(world: World) -> None:
    job = world.id_of(world.post())
    with pytest.raises(Reverted):
        world.lens.call.status([(job, 0)] * 257)


def test_status__asked_through_the_library__is_what_its_single_reads_say(world: World) -> None:
    """Also of an array's untouched units, closed or not, and of a unit that was resumed."""
    single, node = submitted(world)
    array, resumed = world.post(units=3), world.post(**RESUMABLE)
    world.claim(array, node, 0)
    taker, operator = other(world)
    world.claim(resumed, taker, sender=operator)
    world.evm.warp(60)
    world.checkpoint(resumed, sender=operator)
    lose(world, resumed, "give_up", sender=operator)
    second, hand = other(world, "another")
    world.evm.warp(world.policy.claim_ramp)
    world.claim(resumed, second, resume_from=1, sender=hand)
    closed = world.post(units=2)
    world.cancel(closed, 2**256 - 1)
    place = ScriptedMarket()
    for contract, target, name in (("Lens", world.lens, "status"), ("JobRegistry", world.jobs, "load")):
        place.on(contract, name, lambda call, block, target=target: world.evm.raw_call(target, call.data))  # type: ignore[misc]
    wanted = [(single, 0), (array, 0), (array, 2), (closed, 1), (resumed, 0)]
    places = [(JobId(world.id_of(terms)), index) for terms, index in wanted]
    found = place.market.statuses(places)
    assert [(one.job, one.view) for one in found] == [
        (place.market.job_word(job), place.market.unit(job, index)) for job, index in places
    ]
    assert [one.view.unit.state for one in found] == [
        *(State.SUBMITTED, State.RUNNING, State.OPEN, State.CANCELLED, State.RUNNING)
    ]
    assert [dict(one.kept) for one in found] == [{}, {}, {}, {}, {1: world.kept(resumed, 1)}]
    assert formulas.reserved(found[-1].view.unit, found[-1].kept) == 60
    (unknown,) = place.market.statuses([(JobId(bytes(32)), 0)])
    assert (unknown.job, unknown.view.unit.state, unknown.kept) == (0, State.NONE, {})
