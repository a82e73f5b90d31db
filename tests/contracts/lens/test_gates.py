"""Lens.gates: which nodes could take a job that is not posted yet, a page of them at a time."""

from __future__ import annotations

from itertools import product

import pytest

from hearth.market.abi import codec
from hearth.protocol import formulas, words
from hearth.protocol.formulas import MAX_UINT, Ask
from hearth.protocol.types import Gate, Needs, NodeId, Runtime, Verdict
from tests.kit.scripted import ScriptedMarket
from tests.kit.steps import BOND, ask, disputed, season
from tests.kit.world import DEAD_AFTER, ETHER, MARKET, MINIMUM_STAKE, NEEDS, UNBONDING, World

CEILING = 100 * 10**18
NEEDY = Needs(
    Runtime.WASM | Runtime.NVIDIA,
    tier=350,
    gpu_count=1,
    vram_gib=24,
    cores=16,
    ram_gib=64,
    disk_gib=500,
    zone_mask=1 << 3,
)
ASKS = [
    Ask(NEEDY, CEILING, BOND, MAX_UINT),
    Ask(NEEDS, CEILING, 2 * ETHER, MAX_UINT),
    Ask(NEEDS, CEILING, BOND, 0),
    Ask(NEEDS, CEILING, BOND, 2 * BOND - 1),
    Ask(NEEDS, 0, 0, 0),
    Ask(Needs(), MAX_UINT, MAX_UINT, MAX_UINT),
]
ODD = (0, 1, 1 << 63, 1 << 255, MAX_UINT)


@pytest.fixture
def fleet(world: World) -> World:
    """Nodes among which each gate of NodeRegistry but one keeps somebody from a job of ASKS."""
    gone = world.register(beat=False)
    world.nodes.send.exit_start(gone, sender=world.owner)
    world.evm.warp(UNBONDING)
    world.nodes.send.exit_finish(gone)
    world.register()
    world.evm.warp(DEAD_AFTER)
    world.register(beat=False)
    leaving = world.register()
    world.nodes.send.exit_start(leaving, sender=world.owner)
    season(world, world.register())
    for slots in (1, 4):
        terms, node = world.post(), world.register(slots=slots)
        world.evm.warp(world.policy.claim_ramp)
        world.claim(terms, node)
    world.register(stake=MINIMUM_STAKE)
    for offer in (
        {"runtimes": Runtime.WASM},
        {"gpu_count": 0},
        {"vram_gib": 23},
        {"cores": 15},
        {"ram_gib": 63},
        {"disk_gib": 499},
        {"tier": 349},
        {"zone": 4},
        {"ask": CEILING + 1},
    ):
        world.register(**offer)
    pending = world.register()
    world.nodes.send.set_ask(pending, 2 * CEILING, sender=world.owner)
    judged, _ = disputed(world)
    world.rule(judged, Verdict.REJECT)
    return world


def _count(world: World) -> int:
    last: int = words.unpack(words.TOTALS, world.nodes.call.totals())["next_id"]
    return last


def _expected(world: World, wanted: Ask) -> list[Gate]:
    """Return what the reference says of each node from id 1 on."""
    nodes = [world.node(NodeId(node)) for node in range(1, _count(world))]
    return [formulas.node_gate(node, wanted, world.evm.now, *MARKET) for node in nodes]


def test_gates__mixed_fleet__are_those_of_the_reference(fleet: World) -> None:
    found: set[Gate] = set()
    for wanted in ASKS:
        page = fleet.lens.call.gates((words.pack_needs(wanted.needs), *wanted[1:]), 1, 256)
        assert page == _expected(fleet, wanted)
        found.update(Gate(code) for code in page)
    assert found == {gate for gate in Gate if gate <= Gate.PROBATION} - {Gate.NOT_ACTIVE}


def test_gates__asked_through_the_library__are_those_of_the_reference(fleet: World) -> None:
    place = ScriptedMarket()
    for contract, target, name in (("Lens", fleet.lens, "gates"), ("NodeRegistry", fleet.nodes, "totals")):
        place.on(contract, name, lambda call, block, target=target: fleet.evm.raw_call(target, call.data))  # type: ignore[misc]
    for wanted in ASKS:
        assert place.market.gates(wanted) == _expected(fleet, wanted)
    assert codec("Lens").has("gates", 3)


def test_gates__no_number__makes_it_revert(fleet: World) -> None:
    """Terms that are not posted were looked at by nobody: each node's gate is what NodeRegistry says of them."""
    count = _count(fleet)
    for needs, ceiling, bond, probation in product(ODD, repeat=4):
        odd = (needs, ceiling, bond, probation)
        page = fleet.lens.call.gates(odd, 1, 256)
        assert len(page) == count - 1
        if needs in (0, MAX_UINT):
            assert page == [fleet.nodes.call.gate(node, odd) for node in range(1, count)]


def test_gates__silent_in_its_second__follows_the_clock(world: World) -> None:
    world.register()
    dead = world.evm.now + DEAD_AFTER
    for offset in (-1, 0, 1):
        world.evm.at(dead + offset)
        assert world.lens.call.gates(ask(), 1, 1) == [Gate.FITS if offset < 0 else Gate.NOT_LIVE]


def test_gates__id_zero_and_exited__are_silent(fleet: World) -> None:
    assert fleet.lens.call.gates(ask(), 0, 2) == [Gate.NOT_LIVE] * 2
    assert tuple(fleet.lens.call.nodes(1, 1)[0])[1:] == ("0x" + "0" * 40, 0, 0, 0, 0, 0)


def test_gates__nobody_registered__is_an_empty_page(world: World) -> None:
    assert world.lens.call.gates(ask(), 1, 256) == [] == world.lens.call.nodes(1, 256)


@pytest.mark.parametrize(
    ("first", "count", "size"),
    [
        (1, 0, 0),
        (1, 1, 1),
        (1, 2, 2),
        (1, 3, 3),
        (1, 4, 3),
        (3, 1, 1),
        (3, 256, 1),
        (4, 1, 0),
        (5, 1, 0),
        (0, 4, 4),
        (0, 5, 4),
        (MAX_UINT, 1, 0),
        (MAX_UINT, MAX_UINT, 0),
        (1, MAX_UINT, 3),
    ],
)
def test_gates__page__ends_at_the_last_id_as_nodes_do(world: World, first: int, count: int, size: int) -> None:
    for slots in (1, 2, 3):
        world.register(slots=slots, beat=slots > 1)
    page = world.lens.call.gates(ask(), first, count)
    assert len(page) == size == len(world.lens.call.nodes(first, count))
    assert page == [Gate.FITS if node > 1 else Gate.NOT_LIVE for node in range(first, first + size)]


def test_gates__page__holds_256_at_most(world: World) -> None:
    for _ in range(258):
        world.register(beat=False, stake=10**18)
    for count in (255, 256, 257, 1_000, MAX_UINT):
        assert len(world.lens.call.gates(ask(), 1, count)) == min(count, 256)
    assert len(world.lens.call.gates(ask(), 257, 256)) == 2
