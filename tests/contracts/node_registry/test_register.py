"""NodeRegistry.register: a record, an id, and stake locked in Escrow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import words
from hearth.protocol.types import NodeId, NodeState, Runtime
from tests.kit.evm import NATIVE, Receipt, reverts
from tests.kit.steps import LIE, SILENT, around, awkward, set_totals
from tests.kit.world import DAY, ETHER, MINIMUM_STAKE, OFFER, UNBONDING, World

MANIFEST = b"\x55" * 32
PACKED = words.pack_offer(OFFER)


def _register(
    world: World, *, operator: str | None = None, offer: int = PACKED, stake: int = ETHER, amount: int | None = None
) -> Receipt:
    operator = world.operator if operator is None else operator
    paid = stake if amount is None else amount
    return world.pay(world.nodes, "register", operator, offer, MANIFEST, stake, amount=paid, sender=world.owner)


def test_register__default__writes_the_record_and_locks_the_stake(market: World) -> None:
    node = NodeId(_register(market, stake=7 * ETHER).value)
    assert node == 1
    record = market.node(node)
    assert (record.owner, record.operator, record.stake) == (market.owner, market.operator, 7 * ETHER)
    assert (record.offer, record.state, record.exit_at) == (OFFER, NodeState(), 0)
    assert (record.next_ask, record.next_ask_at) == (0, 0)
    assert market.staked(node) == 7 * ETHER
    totals = words.unpack(words.TOTALS, market.nodes.call.totals())
    assert totals == {"next_id": 2, "hour": 0, "burnt": 0, "total": 7 * ETHER}


def test_register__default__logs_every_field(market: World) -> None:
    assert _register(market).event("NodeRegistered") == {
        "node": 1,
        "owner": market.owner,
        "operator": market.operator,
        "offer": PACKED,
        "stake": ETHER,
        "manifest": MANIFEST,
    }


def test_register__again__counts_ids_and_total_on(world: World) -> None:
    ids = [_register(world, stake=n * ETHER).value for n in (1, 2, 3)]
    assert ids == [1, 2, 3]
    assert words.unpack(words.TOTALS, world.nodes.call.totals())["total"] == 6 * ETHER


def test_register__id_of_an_exited_node__is_not_used_again(world: World) -> None:
    node = world.register()
    world.nodes.send.exit_start(node, sender=world.owner)
    world.evm.warp(UNBONDING)
    world.nodes.send.exit_finish(node)
    assert _register(world).value == node + 1


def test_register__operator_zero__reverts(world: World) -> None:
    with reverts("nodes: operator zero"):
        _register(world, operator=NATIVE)


@pytest.mark.parametrize("bit", [10, 17, 28, 39, 54, 72, 95, 176, 255])
def test_register__spare_or_pending_bit__reverts(world: World, bit: int) -> None:
    with reverts("nodes: spare bits set"):
        _register(world, offer=PACKED | 1 << bit)


def test_register__no_slots__reverts(world: World) -> None:
    _register(world, offer=words.pack_offer(replace(OFFER, slots=63)))
    with reverts("nodes: no slots"):
        _register(world, offer=words.pack_offer(replace(OFFER, slots=0)))


def test_register__no_runtime__reverts(world: World) -> None:
    with reverts("nodes: no runtime"):
        _register(world, offer=words.pack_offer(replace(OFFER, runtimes=Runtime(0))))


def test_register__ask__is_one_to_80_bits(world: World) -> None:
    _register(world, offer=words.pack_offer(replace(OFFER, ask=1)))
    _register(world, offer=words.pack_offer(replace(OFFER, ask=2**80 - 1)))
    with reverts("nodes: ask out of range"):
        _register(world, offer=words.pack_offer(replace(OFFER, ask=0)))


def test_register__stake_around_the_minimum__is_taken_from_it_on(world: World) -> None:
    with reverts("nodes: stake below minimum"):
        _register(world, stake=MINIMUM_STAKE - 1)
    _register(world, stake=MINIMUM_STAKE)
    _register(world, stake=MINIMUM_STAKE + 1)


def test_register__minimum_raised__counts_for_new_nodes(world: World) -> None:
    world.nodes.send.set_minimum_stake(2 * ETHER)
    with reverts("nodes: stake below minimum"):
        _register(world, stake=2 * ETHER - 1)
    _register(world, stake=2 * ETHER)


def test_register__stake_above_80_bits__reverts(world: World) -> None:
    world.evm.set_balance(world.owner, 2**81)
    _register(world, stake=2**80 - 1)
    with reverts("nodes: stake too large"):
        _register(world, stake=2**80)


@pytest.mark.parametrize("difference", [-1, 1])
def test_register__native_value_not_the_stake__reverts(world: World, difference: int) -> None:
    with reverts("nodes: wrong value sent"):
        _register(world, amount=ETHER + difference)


def test_register__value_beside_tokens__reverts() -> None:
    world = World(erc20=True)
    with reverts("nodes: wrong value sent"):
        world.nodes.send.register(world.operator, PACKED, MANIFEST, ETHER, sender=world.owner, value=1)


def test_register__tokens_not_approved__reverts() -> None:
    world = World(erc20=True)
    with reverts("token: allowance short"):
        _register(world, amount=ETHER - 1)


def test_register__token_that_answers_false__reverts(world: World) -> None:
    token, nodes, _ = awkward(world)
    token.send.mint(world.owner, ETHER)
    token.send.approve(nodes, ETHER, sender=world.owner)
    token.send.set_traits(LIE)
    with reverts("nodes: transfer failed"):
        nodes.send.register(world.operator, PACKED, MANIFEST, ETHER, sender=world.owner)


def test_register__token_that_answers_nothing__takes_the_stake(world: World) -> None:
    token, nodes, _ = awkward(world)
    token.send.mint(world.owner, ETHER)
    token.send.approve(nodes, ETHER, sender=world.owner)
    token.send.set_traits(SILENT)
    nodes.send.register(world.operator, PACKED, MANIFEST, ETHER, sender=world.owner)
    assert token.call.balanceOf(world.owner) == 0


def test_register__paused__waits_until_the_pause_ends(world: World) -> None:
    world.nodes.send.pause()
    for offset in around(world, world.evm.now + 7 * DAY):
        if offset < 0:
            with reverts("nodes: paused"):
                _register(world)
        else:
            _register(world)


def test_register__last_id__is_kept_back(world: World) -> None:
    set_totals(world, next_id=2**32 - 2)
    assert _register(world).value == 2**32 - 2
    with reverts("nodes: no ids left"):
        _register(world)
    assert words.unpack(words.TOTALS, world.nodes.call.totals())["next_id"] == 2**32 - 1
