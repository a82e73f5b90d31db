"""NodeRegistry.update_offer: the slot's sizes change while nothing runs; the ask never does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import words
from hearth.protocol.types import Runtime
from tests.kit.evm import reverts
from tests.kit.steps import engage, from_jobs
from tests.kit.world import ASK_NOTICE, OFFER, World

MANIFEST = b"\x66" * 32
BIGGER = replace(OFFER, cores=32, slots=2, zone=5, ask=0)


def _update(seated: World, node: int, offer: int, *, sender: str | None = None) -> dict[str, object]:
    receipt = seated.nodes.send.update_offer(node, offer, MANIFEST, sender=sender or seated.owner)
    return receipt.event("OfferChanged")


def test_update_offer__default__keeps_the_ask(seated: World) -> None:
    node = seated.register()
    event = _update(seated, node, words.pack_offer(BIGGER))
    expected = replace(BIGGER, ask=OFFER.ask)
    assert event == {"node": node, "offer": words.pack_offer(expected), "manifest": MANIFEST}
    assert seated.node(node).offer == expected


def test_update_offer__ask_of_80_bits__is_kept_whole(seated: World) -> None:
    node = seated.register(ask=2**80 - 1)
    _update(seated, node, words.pack_offer(BIGGER))
    assert seated.node(node).offer.ask == 2**80 - 1


def test_update_offer__pending_ask__stays_pending(seated: World) -> None:
    node = seated.register()
    seated.nodes.send.set_ask(node, 7, sender=seated.owner)
    _update(seated, node, words.pack_offer(BIGGER))
    assert seated.node(node).offer == replace(BIGGER, ask=OFFER.ask, pending=True)
    seated.evm.warp(ASK_NOTICE)
    seated.nodes.send.beat(node, sender=seated.operator)
    assert engage(seated, node).value[0] == 7


def test_update_offer__not_the_owner__reverts(seated: World) -> None:
    node = seated.register()
    for sender in (seated.operator, seated.stranger, seated.deployer):
        with reverts("nodes: not the owner"):
            _update(seated, node, words.pack_offer(BIGGER), sender=sender)


def test_update_offer__with_an_ask__reverts(seated: World) -> None:
    node = seated.register()
    with reverts("nodes: ask has its own call"):
        _update(seated, node, words.pack_offer(replace(BIGGER, ask=1)))


@pytest.mark.parametrize("bit", [10, 95, 176])
def test_update_offer__spare_bits__revert(seated: World, bit: int) -> None:
    node = seated.register()
    with reverts("nodes: spare bits set"):
        _update(seated, node, words.pack_offer(BIGGER) | 1 << bit)


def test_update_offer__no_slots_or_runtime__reverts(seated: World) -> None:
    node = seated.register()
    with reverts("nodes: no slots"):
        _update(seated, node, words.pack_offer(replace(BIGGER, slots=0)))
    with reverts("nodes: no runtime"):
        _update(seated, node, words.pack_offer(replace(BIGGER, runtimes=Runtime(0))))


def test_update_offer__while_a_lease_runs__reverts_until_it_is_submitted(seated: World) -> None:
    node = seated.register()
    engage(seated, node)
    with reverts("nodes: busy"):
        _update(seated, node, words.pack_offer(BIGGER))
    from_jobs(seated, "submitted", node, seated.operator)
    _update(seated, node, words.pack_offer(BIGGER))


def test_update_offer__while_many_leases_run__reverts(seated: World) -> None:
    node = seated.register(slots=32)
    for _ in range(32):
        engage(seated, node, bond=0)
    with reverts("nodes: busy"):
        _update(seated, node, words.pack_offer(BIGGER))
