"""JobRegistry.checkpoint: a running attempt names the files of which another could resume it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from hearth.protocol import words
from hearth.protocol.types import Billing, Kept, NodeId, State, Terms, TermsFlag, UnitFlag
from tests.kit.evm import reverts
from tests.kit.steps import RESUMABLE, around, credited, lost, node_state, other, running, submitted, won
from tests.kit.world import RESULT, ROOT_DIGEST, World

RANGE = "jobs: checkpoint out of range"


def test_checkpoint__running__stores_its_seconds_and_nothing_else(market: World) -> None:
    terms, node = running(market, **RESUMABLE)
    job, word, second, accused = market.load(terms)
    hot = node_state(market, node)
    assert second == 0
    market.evm.warp(77)
    with credited(market) as got:
        receipt = market.checkpoint(terms)
    assert receipt.event("Checkpointed") == {
        "job_id": market.id_of(terms),
        "index": 0,
        "node": node,
        "word": word,
        "seconds": 77,
        "root": ROOT_DIGEST,
    }
    assert market.load(terms) == (job, word, 77, accused)
    assert got == {} and node_state(market, node) == hot, "it is no beat"


def test_checkpoint__no_later_second__reverts(world: World) -> None:
    """In its first second a lease has nothing to name, and of two checkpoints in a second the first stands."""
    terms, _ = running(world, **RESUMABLE)
    with reverts(RANGE):
        world.checkpoint(terms)
    for second in (1, 2, 500):
        world.evm.at(world.unit(terms).started + second)
        world.checkpoint(terms)
        with reverts(RANGE):
            world.checkpoint(terms, root=b"\x01" * 32)
        assert world.load(terms)[2] == second


def test_checkpoint__root_zero__reverts(world: World) -> None:
    terms, _ = running(world, **RESUMABLE)
    world.evm.warp(9)
    with reverts(RANGE):
        world.checkpoint(terms, root=bytes(32))


@pytest.mark.parametrize("billing", Billing)
def test_checkpoint__job_without_checkpoints__reverts(world: World, billing: Billing) -> None:
    terms, _ = running(world, billing=billing)
    assert not world.unit(terms).resumable
    world.evm.warp(100)
    with reverts(RANGE):
        world.checkpoint(terms)


def test_checkpoint__until_the_lease_is_over(world: World) -> None:
    terms, node = running(world, **RESUMABLE)
    for offset in around(world, world.unit(terms).mark):
        world.nodes.send.beat(node, sender=world.operator)
        if offset < 0:
            world.checkpoint(terms)
        else:
            with reverts("jobs: too late to submit"):
                world.checkpoint(terms)


def test_checkpoint__closing__is_taken(world: World) -> None:
    terms, _ = running(world, **RESUMABLE)
    world.evm.warp(50)
    world.cancel(terms)
    world.evm.warp(5)
    assert world.checkpoint(terms).event("Checkpointed")["seconds"] == 55
    assert world.state(terms) == State.CLOSING


def test_checkpoint__not_leased__reverts(world: World) -> None:
    reopened, _ = lost(world)
    proposed, _ = won(world, **RESUMABLE)
    settled, _ = submitted(world, **RESUMABLE)
    world.settle(settled)
    for terms in (
        *(reopened, proposed, settled, submitted(world, **RESUMABLE)[0]),
        *(world.terms(**RESUMABLE), world.post(**RESUMABLE), world.post(units=2, **RESUMABLE)),
    ):
        with reverts("jobs: not running"):
            world.checkpoint(terms)


def test_checkpoint__not_the_operator__reverts(world: World) -> None:
    terms, _ = running(world, **RESUMABLE)
    _, stranger = other(world)
    world.evm.warp(9)
    for sender in (world.owner, world.submitter, world.keeper, stranger):
        with reverts("nodes: not the operator"):
            world.checkpoint(terms, sender=sender)


def test_checkpoint__operator_that_was_replaced__reverts_and_the_new_one_goes_on(world: World) -> None:
    terms, node = running(world, **RESUMABLE)
    world.evm.warp(9)
    world.nodes.send.set_operator(node, world.stranger, sender=world.owner)
    world.nodes.send.beat(node, sender=world.stranger)
    with reverts("nodes: not the operator"):
        world.checkpoint(terms)
    assert world.checkpoint(terms, sender=world.stranger).event("Checkpointed")["node"] == node


def test_checkpoint__index_of_no_unit__reverts(world: World) -> None:
    terms, _ = running(world, **RESUMABLE)
    world.evm.warp(9)
    for index in (1, 2**256 - 1):
        with reverts("jobs: no such unit"):
            world.checkpoint(terms, index)


def test_checkpoint__units_of_an_array__have_each_their_own(market: World) -> None:
    node, terms = market.register(), market.post(units=3, **RESUMABLE)
    market.claim(terms, node, 0)
    market.evm.warp(10)
    market.claim(terms, node, 1)
    market.evm.warp(5)
    assert market.checkpoint(terms, 1).event("Checkpointed")["index"] == 1
    assert [market.load(terms, index)[2] for index in (0, 1)] == [0, 5]
    assert market.checkpoint(terms, 0).event("Checkpointed")["seconds"] == 15
    assert [market.load(terms, index)[2] for index in (0, 1)] == [15, 5]
    with reverts("jobs: not running"):
        market.checkpoint(terms, 2)


def test_checkpoint__key_of_an_arrays_unit__reverts(world: World) -> None:
    node, terms = world.register(), world.post(units=2, **RESUMABLE)
    world.claim(terms, node, 0)
    world.evm.warp(5)
    key = keccak(encode(["bytes32", "uint256"], [world.id_of(terms), 0]))
    with reverts("jobs: not running"):
        world.jobs.send.checkpoint(key, 0, ROOT_DIGEST, sender=world.operator)


def _claimed_after_a_lapse(world: World, terms: Terms, node: NodeId) -> None:
    """What a proposal wrote lies in the slot still when its unit is claimed."""
    world.evm.warp(world.policy.ack_time + world.policy.open_claim_after)
    world.nodes.send.beat(node, sender=world.operator)
    assert world.load(terms)[2] != 0
    world.claim(terms, node)


@pytest.mark.parametrize("start", [lambda world, terms, _: world.ack(terms), _claimed_after_a_lapse])
@pytest.mark.parametrize("ending", ["give_up", "reclaim"])
def test_checkpoint__proposal_in_its_slot__is_never_read_as_one(
    market: World, start: Callable[[World, Terms, NodeId], object], ending: str
) -> None:
    terms, node = won(market, **RESUMABLE)
    assert words.unpack_best(market.load(terms)[2]).node == node
    start(market, terms, node)
    assert market.load(terms)[2] == 0
    with market.evm.isolated():
        market.evm.warp(1)
        market.checkpoint(terms)
        assert market.load(terms)[2] == 1
    if ending == "reclaim":
        market.evm.at(market.unit(terms).mark)
    getattr(market, ending)(terms)
    assert market.state(terms) == State.OPEN
    assert market.kept(terms, 1) == Kept()


def test_checkpoint__of_the_attempt_before__is_none_of_the_next(world: World) -> None:
    terms, _ = lost(world, seconds=200)
    node, operator = other(world)
    world.claim(terms, node, sender=operator)
    assert world.load(terms)[2] == 0
    with world.evm.isolated():
        world.give_up(terms, sender=operator)
        assert world.kept(terms, 2) == Kept()
    world.evm.warp(1)
    assert world.checkpoint(terms, sender=operator).event("Checkpointed")["seconds"] == 1


def test_checkpoint__job_without_checkpoints__keeps_its_old_proposal_in_the_slot(world: World) -> None:
    """What nobody reads is not cleared: it would cost each claim."""
    terms, node = won(world)
    world.ack(terms)
    assert words.unpack_best(world.load(terms)[2]).node == node
    world.give_up(terms)
    assert world.kept(terms, 1) == Kept()


def test_checkpoint__result_that_is_kept__takes_the_slot(world: World) -> None:
    terms, _ = running(world, flags=TermsFlag.NEWCOMERS | TermsFlag.KEEP, **RESUMABLE)
    world.evm.warp(30)
    world.checkpoint(terms)
    world.submit(terms)
    assert world.unit(terms).flags & UnitFlag.STORE
    assert world.load(terms)[2] == int.from_bytes(RESULT, "big")
