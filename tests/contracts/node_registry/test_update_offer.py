"""NodeRegistry.update_offer: the slot's sizes change while nothing runs; the ask never does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth import words
from hearth.types import Runtime
from tests.contracts.steps import engage, from_jobs
from tests.evm import reverts
from tests.world import ASK_NOTICE, OFFER, World

MANIFEST = b"\x66" * 32
BIGGER = replace(OFFER, cores=32, slots=2, zone=5, ask=0)


def _update(world: World, node: int, offer: int, *, sender: str | None = None) -> dict[str, object]:
    receipt = world.nodes.send.update_offer(node, offer, MANIFEST, sender=sender or world.owner)
    return receipt.event("OfferChanged")


def test_update_offer__default__keeps_the_ask(world: World) -> None:
    node = world.register()
    event = _update(world, node, words.pack_offer(BIGGER))
    expected = replace(BIGGER, ask=OFFER.ask)
    assert event == {"node": node, "offer": words.pack_offer(expected), "manifest": MANIFEST}
    assert world.node(node).offer == expected


def test_update_offer__pending_ask__stays_pending(world: World) -> None:
    node = world.register()
    world.nodes.send.set_ask(node, 7, sender=world.owner)
    _update(world, node, words.pack_offer(BIGGER))
    assert world.node(node).offer == replace(BIGGER, ask=OFFER.ask, pending=True)
    world.evm.warp(ASK_NOTICE)
    world.nodes.send.beat(node, sender=world.operator)
    assert engage(world, node).value == 7


def test_update_offer__not_the_owner__reverts(world: World) -> None:
    node = world.register()
    for sender in (world.operator, world.stranger, world.deployer):
        with reverts("nodes: not the owner"):
            _update(world, node, words.pack_offer(BIGGER), sender=sender)


def test_update_offer__with_an_ask__reverts(world: World) -> None:
    node = world.register()
    with reverts("nodes: ask has its own call"):
        _update(world, node, words.pack_offer(replace(BIGGER, ask=1)))


@pytest.mark.parametrize("bit", [6, 87, 168])
def test_update_offer__spare_bits__revert(world: World, bit: int) -> None:
    node = world.register()
    with reverts("nodes: spare bits set"):
        _update(world, node, words.pack_offer(BIGGER) | 1 << bit)


def test_update_offer__no_slots_or_runtime__reverts(world: World) -> None:
    node = world.register()
    with reverts("nodes: no slots"):
        _update(world, node, words.pack_offer(replace(BIGGER, slots=0)))
    with reverts("nodes: no runtime"):
        _update(world, node, words.pack_offer(replace(BIGGER, runtimes=Runtime(0))))


def test_update_offer__while_a_lease_runs__reverts_until_it_is_submitted(world: World) -> None:
    node = world.register()
    engage(world, node)
    with reverts("nodes: busy"):
        _update(world, node, words.pack_offer(BIGGER))
    from_jobs(world, "submitted", node, world.operator)
    _update(world, node, words.pack_offer(BIGGER))
