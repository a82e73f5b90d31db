"""Rules' views: check and policies. What `check` refuses is demanded of `post` (tests/contracts/job_registry)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import Header, JobId, State, Unit
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
