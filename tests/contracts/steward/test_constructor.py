"""Steward's constructor: who sits where, and what can be read back."""

from __future__ import annotations

import pytest

from tests.kit.evm import reverts
from tests.kit.steward import DELAY, NONE, Stewarded
from tests.kit.world import DAY, World


def test_constructor__seats_and_delay__read_back(stewarded: Stewarded) -> None:
    steward, world = stewarded.contract.call, stewarded.world
    assert (steward.NODES(), steward.RULES()) == (world.nodes.address, world.rules.address)
    assert steward.DELAY() == DELAY
    assert (steward.council(), steward.guardian()) == (stewarded.council, stewarded.guardian)
    assert steward.offered_council() == NONE
    assert world.nodes.call.governor() == world.rules.call.governor() == stewarded.contract.address


def test_constructor__no_guardian__is_nobody(world: World) -> None:
    steward = world.evm.deploy("Steward", world.nodes, world.rules, world.keeper, NONE, 1)
    assert steward.call.guardian() == NONE
    with reverts("steward: not council or guardian"):
        steward.send.pause(True, True, sender=world.stranger)


def test_constructor__no_council__reverts(world: World) -> None:
    with reverts("steward: council zero"):
        world.evm.deploy("Steward", world.nodes, world.rules, NONE, world.keeper, DELAY)


@pytest.mark.parametrize(("delay", "fits"), [(0, False), (1, True), (30 * DAY, True), (30 * DAY + 1, False)])
def test_constructor__delay__is_a_second_to_thirty_days(world: World, delay: int, fits: bool) -> None:
    if fits:
        assert world.evm.deploy("Steward", world.nodes, world.rules, world.keeper, NONE, delay).call.DELAY() == delay
    else:
        with reverts("steward: delay out of range"):
            world.evm.deploy("Steward", world.nodes, world.rules, world.keeper, NONE, delay)


def test_constructor__council_and_guardian__are_logged(world: World) -> None:
    steward = world.evm.deploy("Steward", world.nodes, world.rules, world.keeper, world.stranger, DELAY)
    assert [(log.name, log.args, log.address) for log in world.evm.last_logs] == [
        ("CouncilChanged", {"council": world.keeper}, steward.address),
        ("GuardianChanged", {"guardian": world.stranger}, steward.address),
    ]
