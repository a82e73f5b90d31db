"""Attack: the storage key of an array's unit is called as if it were a job's id.

The operator of a lease moved its unit with one call of 40,000 gas, under a job that was never posted: no keeper could
place the event, the array never heard of its end, and no reader of logs could go on. A unit is reached through its
array alone, and what is called by its key is refused as a job that nobody posted is.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from hearth.protocol.types import SENTINEL, NodeId, State, Terms, TermsFlag, UnitFlag
from tests.attacks.stages import KINDS, market
from tests.kit import world as w
from tests.kit.evm import reverts


def claimed(world: w.World, terms: Terms, node: NodeId) -> None:
    world.claim(terms, node, 0)


def acked(world: w.World, terms: Terms, node: NodeId) -> None:
    world.propose(terms, node, 0)
    world.evm.warp(world.unit(terms).window_end - world.evm.now)
    world.ack(terms, 0)


def claimed_again(world: w.World, terms: Terms, node: NodeId) -> None:
    """A lease that another node gave back: its unit was opened again, and has been declined once."""
    other = world.register(owner=world.evm.account("other owner"), operator=world.evm.account("other"))
    world.claim(terms, other, 0, sender=world.evm.account("other"))
    world.decline(terms, 0, sender=world.evm.account("other"))
    world.claim(terms, node, 0)


def noticed(world: w.World, terms: Terms, node: NodeId) -> None:
    world.claim(terms, node, 0)
    world.cancel(terms, 0)


@pytest.mark.parametrize("index", [0, SENTINEL], ids=["0", "NEXT"])
@pytest.mark.parametrize(
    ("begin", "window"),
    [(claimed, 0), (acked, 12), (claimed_again, 0), (noticed, 0)],
    ids=["claimed", "acked", "claimed-again", "noticed"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_submit__key_of_an_arrays_unit__is_refused_and_its_own_way_stays(
    kind: str, begin: Callable[[w.World, Terms, NodeId], None], window: int, index: int
) -> None:
    world = market(kind)
    node = world.register()
    terms = world.post(units=3, match_window=window, flags=TermsFlag.NEWCOMERS)
    begin(world, terms, node)
    key = keccak(encode(["bytes32", "uint256"], [world.id_of(terms), 0]))
    before = world.evm.state_hash()

    with reverts("jobs: not running" if index == 0 else "jobs: no such unit"):
        world.jobs.send.submit(key, index, w.RESULT, w.REPORT, 1, 0, sender=world.operator)
    assert world.evm.state_hash() == before

    # The control: through its array the same call moves the same unit, and the array counts its end.
    receipt = world.submit(terms, 0)
    assert receipt.event("Submitted")["job_id"] == world.id_of(terms)
    world.call("settle", terms, 0)
    unit = world.unit(terms, 0)
    assert unit.state == State.SETTLED and unit.flags & UnitFlag.ARRAY
    assert world.header(terms).done == 1


def test_load__unit_of_a_job_of_one__bears_no_mark() -> None:
    world = market(KINDS[0])
    node = world.register()
    terms = world.post(flags=TermsFlag.NEWCOMERS)
    world.claim(terms, node)
    assert not world.unit(terms).flags & UnitFlag.ARRAY
