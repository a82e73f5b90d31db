"""JobRegistry's views: job_id_of, load and posted."""

from __future__ import annotations

from hearth.protocol import words
from hearth.protocol.parents import Condition
from hearth.protocol.types import SENTINEL, Header, Posted
from tests.kit.evm import CHAIN_ID, reverts
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


def test_load__waiting_array__gives_its_header_and_no_unit(world: World) -> None:
    terms = world.post_after((world.post(), Condition.SUCCESS), units=3)
    job = world.load(terms)[0]
    assert words.unpack_header(job) == Header(opened=world.evm.now, waiting=True, leases=3)
    assert world.load(terms, 0) == world.load(terms, 2) == (job, 0, 0, 0)


def test_posted__each_job__is_numbered_and_names_the_block_of_the_one_before(world: World) -> None:
    """From the last block on, a reader finds every job with one log query a job, whoever posts beside him."""
    assert words.unpack_posted(world.jobs.call.posted()) == Posted()
    before = 0
    for number in range(1, 5):
        # Two of them in one block, where the machine keeps its number.
        world.evm.warp(1 if number != 3 else 0)
        event = world.post_receipt(world.terms(units=number)).event("JobPosted")
        assert (event["number"], event["previous"]) == (number, before)
        posted = words.unpack_posted(world.jobs.call.posted())
        assert posted.count == number and posted.block >= before
        before = posted.block
    assert before > 0


def test_posted__job_that_is_refused__is_not_counted(world: World) -> None:
    terms = world.post()
    stood = world.jobs.call.posted()
    with reverts("jobs: posted before"):
        world.post(terms)
    with reverts("jobs: wrong value sent"):
        world.post(amount=1)
    assert world.jobs.call.posted() == stood
