"""Others' proposals that name a keeper as their payee: they are not its own, and it improves on them.

Who is tipped for a proposal is for its maker to say, and costs him nothing: it is the submitter's money. A keeper that
took what names its payee for its own would see nothing to gain by a better one, and let a dear node win.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol.types import TermsFlag
from keeper.actions import Propose, Skip
from keeper.decide import decide
from keeper.trust import Record
from tests.keeper.chain import Follower, LoggingEvm
from tests.keeper.test_index import config_of, send, snapshot_of
from tests.kit.world import World

SECONDS = 1_000


@pytest.mark.parametrize("named", ["stranger", "keeper"])
def test_auction__dear_node_whose_owner_names_the_keeper__does_not_win_against_a_cheaper_one(named: str) -> None:
    """The owner would gain the difference of the two rates, and the submitter lose it."""
    world = World(LoggingEvm())
    cheap = world.register(ask=25 * 10**18)
    dear = world.register(owner=world.stranger, operator=world.stranger, ask=95 * 10**18)
    terms = world.post(match_window=30, max_seconds=SECONDS)
    world.propose(terms, dear, sender=world.stranger, payee=getattr(world, named))
    follower = Follower(world, world.keeper)
    config = replace(config_of(world), max_loss=0)
    for _ in range(3):
        world.evm.warp(2)
        follower.follow()
        snapshot = replace(snapshot_of(follower), gas_price=10**8)
        said = decide(snapshot, config, world.evm.now)
        for one in said:
            if not isinstance(one, Skip):
                assert isinstance(one, Propose)
                send(world, follower.index, one)
    assert world.best(terms).node == cheap


def test_auction__proposals_of_others_that_name_the_keeper_and_lapse__bring_nothing_to_rest() -> None:
    """Else the dear node's owner lets two of its proposals lapse, and has the rest of the array to itself."""
    world = World(LoggingEvm())
    dear = world.register(owner=world.stranger, operator=world.stranger, ask=95 * 10**18, slots=9)
    array = world.post(units=9, match_window=12, flags=TermsFlag.NEWCOMERS)
    for index in range(3):
        world.propose(array, dear, index, sender=world.stranger, payee=world.keeper)
    follower = Follower(world, world.keeper)
    follower.follow()
    world.evm.warp(12 + world.policy.ack_time)
    cheap = world.register(ask=25 * 10**18, slots=9)
    world.cancel(array, 0)  # the unit's next event tells that its proposal lapsed; the others are only seen to
    follower.follow()
    (row,) = follower.index.rows()
    assert (row.record, follower.index.records) == (Record(), {})
    assert not any(one.own for one in row.units)
    said = decide(snapshot_of(follower), config_of(world), world.evm.now)
    assert {one.node for one in said if isinstance(one, Propose)} == {cheap}
    assert {one.index for one in said if isinstance(one, Propose)} >= {1, 2}
