"""JobRegistry's views: job_id_of, word and load."""

from __future__ import annotations

from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition
from hearth.protocol.types import SENTINEL, Header, UnitFlag
from tests.kit.evm import CHAIN_ID
from tests.kit.world import World


def test_job_id_of__terms__is_the_librarys_id(world: World) -> None:
    terms = world.terms()
    assert world.jobs.call.job_id_of(words.pack_terms(terms)) == world.id_of(terms)
    assert CHAIN_ID == 31337


def test_job_id_of__other_registry__is_another_id(world: World) -> None:
    terms = world.terms()
    other = World(world.evm)
    assert other.jobs.call.job_id_of(words.pack_terms(terms)) != world.id_of(terms)


def test_load__unknown_job__is_all_zero(world: World) -> None:
    assert world.load(world.terms()) == (0, 0, 0, 0)


def test_load__one_lease__is_the_same_at_every_index(world: World) -> None:
    terms = world.post()
    first = world.load(terms, 0)
    assert first[0] == first[1] != 0
    assert world.load(terms, 7) == world.load(terms, SENTINEL) == first


def test_load__array__gives_header_and_unit(world: World) -> None:
    node, terms = world.register(), world.post(units=3)
    world.claim(terms, node, 0)
    job, unit, _, _ = world.load(terms, 0)
    assert words.is_header(job) and words.unpack_unit(unit).node == node
    assert world.load(terms, 1) == (job, 0, 0, 0)
    assert world.load(terms, SENTINEL) == (job, 0, 0, 0)


def test_word__any_id__is_the_jobs_own_word(world: World) -> None:
    """That of an array's unit stands under its key, which is no job's; it says so."""
    node, single, array, unknown = world.register(), world.post(), world.post(units=3), world.terms()
    world.claim(array, node, 0)
    for terms in (single, array, unknown):
        assert world.jobs.call.word(world.id_of(terms)) == world.load(terms)[0]
    unit = world.jobs.call.word(formulas.unit_key(world.id_of(array), 0, 3))
    assert unit == world.load(array, 0)[1] and words.unpack_unit(unit).flags & UnitFlag.ARRAY


def test_load__waiting_array__gives_its_header_and_no_unit(world: World) -> None:
    terms = world.post_after((world.post(), Condition.SUCCESS), units=3)
    job = world.load(terms)[0]
    assert words.unpack_header(job) == Header(opened=world.evm.now, waiting=True, leases=3)
    assert world.load(terms, 0) == world.load(terms, 2) == (job, 0, 0, 0)
