"""NodeRegistry.set_ask: a new rate counts from the end of its notice; one may wait at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.kit.evm import reverts
from tests.kit.steps import around, ask
from tests.kit.world import ASK_NOTICE, OFFER, World


def _set(world: World, node: int, rate: int, *, sender: str | None = None) -> dict[str, object]:
    return world.nodes.send.set_ask(node, rate, sender=sender or world.owner).event("AskChanged")


def test_set_ask__default__waits_in_next_ask(world: World) -> None:
    node = world.register()
    at = world.evm.now + ASK_NOTICE
    assert _set(world, node, 77) == {"node": node, "ask": 77, "at": at}
    record = world.node(node)
    assert (record.next_ask, record.next_ask_at) == (77, at)
    assert record.offer == replace(OFFER, pending=True)


def test_set_ask__notice__is_in_force_from_its_last_second_on(world: World) -> None:
    node = world.register()
    _set(world, node, 77)
    for offset in around(world, world.evm.now + ASK_NOTICE):
        world.nodes.send.beat(node, sender=world.operator)
        rate, _, _ = world.nodes.call.appraise(node, ask())
        assert rate == (OFFER.ask if offset < 0 else 77)


def test_set_ask__second_before_the_notice_ends__reverts(world: World) -> None:
    node = world.register()
    _set(world, node, 77)
    for offset in around(world, world.evm.now + ASK_NOTICE):
        if offset < 0:
            with reverts("nodes: an ask is pending"):
                _set(world, node, 88)
        else:
            _set(world, node, 88)
            record = world.node(node)
            assert (record.offer.ask, record.offer.pending, record.next_ask) == (77, True, 88)


@pytest.mark.parametrize("rate", [0, 2**80, 2**256 - 1])
def test_set_ask__out_of_range__reverts(world: World, rate: int) -> None:
    node = world.register()
    with reverts("nodes: ask out of range"):
        _set(world, node, rate)


@pytest.mark.parametrize("rate", [1, 2**80 - 1])
def test_set_ask__at_the_bounds__is_taken(world: World, rate: int) -> None:
    node = world.register()
    _set(world, node, rate)
    assert world.node(node).next_ask == rate


def test_set_ask__not_the_owner__reverts(world: World) -> None:
    node = world.register()
    for sender in (world.operator, world.stranger, world.deployer):
        with reverts("nodes: not the owner"):
            _set(world, node, 1, sender=sender)
