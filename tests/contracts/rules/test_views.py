"""Rules' views: check, fails, policies. What they refuse is demanded of `post` and `unlock` (in ../job_registry)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import JobId, Terms
from tests.kit.evm import Reverted, reverts
from tests.kit.steps import submitted
from tests.kit.world import POLICY, World

# Says of a job what the market's JobRegistry says.
REGISTRY = """
# pragma version 0.4.3
interface IJobs:
    def word(job_id: bytes32) -> uint256: view

interface IRules:
    def fails(parents_hash: bytes32, parents: DynArray[bytes32, 16]) -> bool: view

JOBS: immutable(IJobs)

@deploy
def __init__(jobs: IJobs):
    JOBS = jobs

@view
@external
def word(job_id: bytes32) -> uint256:
    return staticcall JOBS.word(job_id)

@view
@external
def ask(rules: IRules, parents_hash: bytes32, parents: DynArray[bytes32, 16]) -> bool:
    return staticcall rules.fails(parents_hash, parents)
"""


@pytest.mark.parametrize("units", [1, 7, 2**20])
def test_check__terms__says_leases_and_funding(world: World, units: int) -> None:
    terms = world.terms(units=units)
    found = world.rules.call.check(words.pack_terms(terms), [])
    assert tuple(found) == (units, formulas.escrow_at_post(terms))


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
    assert tuple(world.rules.call.check(words.pack_terms(terms), packed)) == (units, plain + terms.keeper_fee)
    with reverts("jobs: parents not as hashed"):
        world.rules.call.check(words.pack_terms(terms), [])


def _asked(world: World, *asked: tuple[Terms, Condition], hashed: bytes | None = None) -> bool:
    """Ask `fails` as a JobRegistry with the market's words does."""
    packed = pack_parents([Parent(world.id_of(terms), condition) for terms, condition in asked])
    hashed = parents_hash(packed) if hashed is None else hashed
    found: bool = world.evm.deploy(REGISTRY, world.jobs).call.ask(world.rules, hashed, packed)
    return found


def test_fails__ended_parents__says_whether_one_ended_otherwise_than_asked(world: World) -> None:
    done, cancelled = submitted(world)[0], world.post()
    world.settle(done)
    world.cancel(cancelled)
    assert not _asked(world, (done, Condition.SUCCESS), (cancelled, Condition.FAILURE))
    assert _asked(world, (done, Condition.SUCCESS), (cancelled, Condition.SUCCESS))
    assert _asked(world, (done, Condition.FAILURE), (world.post(), Condition.SUCCESS))
    with reverts("jobs: a parent has not ended"):
        _asked(world, (done, Condition.SUCCESS), (world.post(), Condition.SUCCESS))
    with reverts("jobs: parents not as hashed"):
        _asked(world, (done, Condition.SUCCESS), hashed=b"\x01" * 32)


def test_fails__whoever_is_no_job_registry__is_answered_by_itself(world: World) -> None:
    """It reads the words of its caller: an account has none, and nobody's answer touches a job."""
    packed = pack_parents([Parent(JobId(b"\x01" * 32), Condition.SUCCESS)])
    for sender in (world.stranger, world.deployer, world.keeper):
        with pytest.raises(Reverted):
            world.rules.call.fails(parents_hash(packed), packed, sender=sender)
