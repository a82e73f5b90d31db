"""NodeRegistry's views: last_seen, appraise, gate, get and totals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth import protocol, words
from hearth.types import Gate
from tests.contracts.steps import around, ask, engage
from tests.evm import NATIVE, reverts
from tests.world import ASK_NOTICE, DEAD_AFTER, ETHER, NEEDS, OFFER, World


def test_last_seen__before_and_after_a_beat__is_zero_then_its_second(world: World) -> None:
    node = world.register(beat=False)
    assert world.nodes.call.last_seen(node) == 0
    world.nodes.send.beat(node, sender=world.operator)
    assert world.nodes.call.last_seen(node) == world.evm.now
    assert world.nodes.call.last_seen(node + 1) == world.nodes.call.last_seen(0) == 0


def test_appraise__fits__gives_rate_score_and_operator(world: World) -> None:
    node = world.register(gpu_count=0, vram_gib=0, tier=0)
    # price 5000, reputation 5000, hardware (4x10000 + 2x10000 + 1250 + 2500) // 8, distance 10000, no load
    expected = 4_000 * 5_000 + 3_000 * 5_000 + 2_000 * 7_968 + 1_000 * 10_000
    assert world.nodes.call.appraise(node, ask()) == (OFFER.ask, expected, world.operator)


def test_appraise__load__lowers_the_score(world: World) -> None:
    node = world.register(slots=4)
    free = world.nodes.call.appraise(node, ask())[1]
    engage(world, node)
    assert world.nodes.call.appraise(node, ask())[1] == free - 300 * 2_500


def test_appraise__gate_fails__reverts_with_its_reason(world: World) -> None:
    node = world.register()
    with reverts("nodes: cores short"):
        world.nodes.call.appraise(node, ask(needs=replace(NEEDS, cores=17)))
    with reverts("nodes: not live"):
        world.nodes.call.appraise(node + 1, ask())


@pytest.mark.parametrize("home", range(16))
def test_appraise__zone_mask__counts_the_distance_from_home(world: World, home: int) -> None:
    node = world.register(zone=7)
    needs = replace(NEEDS, zone_mask=0xFFFF, home=home)
    record = world.node(node)
    expected = protocol.score(needs, 100 * 10**18, OFFER.ask, record.offer, record.hot)
    assert world.nodes.call.appraise(node, ask(needs=needs))[1] == expected


def test_gate__live_node__is_zero_until_dead_after(world: World) -> None:
    node = world.register()
    for offset in around(world, world.evm.now + DEAD_AFTER):
        assert world.nodes.call.gate(node, ask()) == (Gate.FITS if offset < 0 else Gate.NOT_LIVE)


def test_gate__pending_ask__counts_from_the_end_of_its_notice(world: World) -> None:
    node = world.register()
    world.nodes.send.set_ask(node, 2 * OFFER.ask, sender=world.owner)
    for offset in around(world, world.evm.now + ASK_NOTICE):
        assert world.nodes.call.gate(node, ask(ceiling=OFFER.ask)) == (Gate.FITS if offset < 0 else Gate.PRICE)


def test_gate__unknown_node__is_not_live(world: World) -> None:
    assert world.nodes.call.gate(0, ask()) == world.nodes.call.gate(9, ask()) == Gate.NOT_LIVE


def test_get__unknown_node__is_all_zero(world: World) -> None:
    assert tuple(world.nodes.call.get(1)) == (NATIVE, NATIVE, 0, 0, 0, 0, 0)


def test_totals__after_two_registrations__counts_ids_and_stake(world: World) -> None:
    world.register(stake=ETHER)
    world.register(stake=2 * ETHER)
    assert words.unpack(words.TOTALS, world.nodes.call.totals()) == {
        "next_id": 3,
        "hour": 0,
        "burnt": 0,
        "total": 3 * ETHER,
    }
