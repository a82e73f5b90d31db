"""NodeRegistry.set_minimum_stake: the governor sets what new registrations take, never less than ACTIVE takes."""

from __future__ import annotations

import pytest

from hearth.protocol.types import Gate
from tests.kit.evm import reverts
from tests.kit.steps import ask
from tests.kit.world import ETHER, MINIMUM_STAKE, World


@pytest.mark.parametrize("amount", [MINIMUM_STAKE, MINIMUM_STAKE + 1, 2**80 - 1])
def test_set_minimum_stake__in_range__is_set(world: World, amount: int) -> None:
    receipt = world.nodes.send.set_minimum_stake(amount)
    assert receipt.event("MinimumStakeChanged") == {"amount": amount}
    assert world.nodes.call.minimum_stake() == amount
    assert world.nodes.call.MINIMUM_STAKE() == MINIMUM_STAKE


@pytest.mark.parametrize("amount", [0, MINIMUM_STAKE - 1, 2**80, 2**256 - 1])
def test_set_minimum_stake__out_of_range__reverts(world: World, amount: int) -> None:
    with reverts("nodes: minimum out of range"):
        world.nodes.send.set_minimum_stake(amount)


def test_set_minimum_stake__raised__leaves_nodes_as_they_are(world: World) -> None:
    node = world.register(stake=ETHER)
    world.nodes.send.set_minimum_stake(5 * ETHER)
    assert world.nodes.call.gate(node, ask()) == Gate.FITS


def test_set_minimum_stake__not_the_governor__reverts(world: World) -> None:
    for sender in (world.owner, world.operator, world.stranger):
        with reverts("nodes: not the governor"):
            world.nodes.send.set_minimum_stake(2 * ETHER, sender=sender)
