"""NodeRegistry.engage: every gate holds, then bond, slot and beat are written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.types import Hot, Needs, NodeId, Runtime
from tests.contracts.steps import BOND, around, ask, engage, from_jobs, hot
from tests.evm import reverts
from tests.world import ASK_NOTICE, DEAD_AFTER, ETHER, NEEDS, OFFER, World

FULL = Needs(
    runtimes=Runtime.GPU, tier=10, gpu_count=1, vram_gib=24, cores=16, ram_gib=64, disk_gib=500, zone_mask=1 << 3
)


def test_engage__fits__reserves_bond_and_slot_and_beats(world: World) -> None:
    node = world.register()
    world.evm.warp(100)
    receipt = engage(world, node)
    assert receipt.value == OFFER.ask and receipt.logs == ()
    assert hot(world, node) == Hot(beat=world.evm.now, rep_time=world.evm.now - 100, busy=1, bond=BOND)
    engage(world, node, bond=7)
    assert (hot(world, node).busy, hot(world, node).bond) == (2, BOND + 7)


def test_engage__locked_rate__is_kept_whatever_the_ask(world: World) -> None:
    node = world.register()
    assert engage(world, node, rate=3, ceiling=3).value == 3
    with reverts("nodes: ask above ceiling"):
        engage(world, node, rate=4, ceiling=3)


def test_engage__pending_ask__is_locked_from_the_end_of_its_notice(world: World) -> None:
    node = world.register()
    world.nodes.send.set_ask(node, 9, sender=world.owner)
    for offset in around(world, world.evm.now + ASK_NOTICE):
        assert engage(world, node).value == (OFFER.ask if offset < 0 else 9)


def test_engage__lapsed_node_after_a_beat__clears_nothing_else(world: World) -> None:
    node = world.register()
    world.evm.warp(DEAD_AFTER - 1)
    engage(world, node)
    assert hot(world, node).beat == world.evm.now


def test_engage__not_the_job_registry__reverts(world: World) -> None:
    node = world.register()
    for sender in (world.owner, world.operator, world.deployer, world.stranger):
        with reverts("nodes: not the job registry"):
            world.nodes.send.engage(node, world.operator, ask(), 0, sender=sender)


def test_engage__not_the_operator_or_never_beat__reverts(world: World) -> None:
    node = world.register()
    for operator in (world.owner, world.stranger):
        with reverts("nodes: not the operator"):
            engage(world, node, operator=operator)
    with reverts("nodes: not the operator"):
        engage(world, NodeId(node + 1))
    with reverts("nodes: not the operator"):
        engage(world, world.register(beat=False))


def test_engage__liveness__holds_until_dead_after(world: World) -> None:
    node = world.register()
    for offset in around(world, world.evm.now + DEAD_AFTER):
        if offset < 0:
            engage(world, node)
        else:
            with reverts("nodes: not live"):
                engage(world, node)


def test_engage__slots__are_filled_and_no_further(world: World) -> None:
    node = world.register(slots=2)
    engage(world, node)
    engage(world, node)
    with reverts("nodes: no free slot"):
        engage(world, node)
    from_jobs(world, "submitted", node, world.operator)
    engage(world, node)


def test_engage__free_stake__is_needed_to_the_unit(world: World) -> None:
    node = world.register(stake=ETHER)
    engage(world, node, bond=ETHER - 10)
    with reverts("nodes: free stake short"):
        engage(world, node, bond=11)
    engage(world, node, bond=10)
    with reverts("nodes: free stake short"):
        engage(world, node, bond=1)
    engage(world, node, bond=0)


def test_engage__stake_fallen_below_the_minimum__reverts_until_it_is_filled_up(world: World) -> None:
    node = world.register(stake=ETHER)
    world.evm.warp(DEAD_AFTER)
    world.nodes.send.check_liveness([node], world.keeper)
    world.nodes.send.beat(node, sender=world.operator)
    with reverts("nodes: stake below minimum"):
        engage(world, node)
    missing = ETHER - world.node(node).stake
    world.pay(world.nodes, "add_stake", node, missing, amount=missing, sender=world.owner)
    engage(world, node)


def test_engage__exiting__reverts_until_cancelled(world: World) -> None:
    node = world.register()
    world.nodes.send.exit_start(node, sender=world.owner)
    with reverts("nodes: exiting"):
        engage(world, node)
    world.nodes.send.exit_cancel(node, sender=world.owner)
    engage(world, node)


def test_engage__quarantine__bars_until_its_last_second(world: World) -> None:
    node = world.register(slots=63)
    for _ in range(3):
        engage(world, node)
    for _ in range(3):
        from_jobs(world, "reclaimed", node, BOND, BOND // 10, 0, world.keeper)
    until = hot(world, node).quarantine
    assert until == world.evm.now + 3_600
    world.evm.at(until - 1)
    world.nodes.send.beat(node, sender=world.operator)
    for offset in around(world, until):
        if offset < 0:
            with reverts("nodes: quarantined"):
                engage(world, node)
        else:
            engage(world, node)


SIZES: list[tuple[str, str]] = [
    ("gpu_count", "nodes: too few GPUs"),
    ("vram_gib", "nodes: VRAM short"),
    ("cores", "nodes: cores short"),
    ("ram_gib", "nodes: RAM short"),
    ("disk_gib", "nodes: disk short"),
    ("tier", "nodes: GPU tier too low"),
]


@pytest.mark.parametrize(("size", "reason"), SIZES)
def test_engage__size__is_enough_when_equal(world: World, size: str, reason: str) -> None:
    node = world.register()
    offered = getattr(OFFER, size)
    engage(world, node, needs=FULL)
    engage(world, node, needs=replace(FULL, **{size: offered - 1}))
    with reverts(reason):
        engage(world, node, needs=replace(FULL, **{size: offered + 1}))


def test_engage__several_gates_fail__names_the_first(world: World) -> None:
    node = world.register()
    needs = Needs(
        runtimes=Runtime.JUROR, tier=63, gpu_count=63, vram_gib=1023, cores=1023, ram_gib=16_383, disk_gib=131_071
    )
    with reverts("nodes: runtime missing"):
        engage(world, node, needs=needs)
    for size, reason in SIZES:
        with reverts(reason):
            engage(world, node, needs=replace(needs, runtimes=Runtime.WASM))
        needs = replace(needs, **{size: 0})
    engage(world, node, needs=replace(needs, runtimes=Runtime.WASM))


@pytest.mark.parametrize("runtime", list(Runtime))
def test_engage__runtime__must_be_offered(world: World, runtime: Runtime) -> None:
    node = world.register()
    needs = replace(NEEDS, runtimes=runtime)
    if runtime in OFFER.runtimes:
        engage(world, node, needs=needs)
    else:
        with reverts("nodes: runtime missing"):
            engage(world, node, needs=needs)


@pytest.mark.parametrize("zone", range(16))
def test_engage__zone__must_be_in_the_mask(world: World, zone: int) -> None:
    node = world.register(zone=zone)
    engage(world, node, needs=replace(NEEDS, zone_mask=1 << zone))
    engage(world, node, needs=replace(NEEDS, zone_mask=0, home=15))
    with reverts("nodes: zone not allowed"):
        engage(world, node, needs=replace(NEEDS, zone_mask=0xFFFF ^ 1 << zone))


def test_engage__ask__may_equal_the_ceiling(world: World) -> None:
    node = world.register()
    engage(world, node, ceiling=OFFER.ask)
    with reverts("nodes: ask above ceiling"):
        engage(world, node, ceiling=OFFER.ask - 1)


def test_engage__probation__lets_a_newcomer_hold_one_lease(world: World) -> None:
    node = world.register()
    with reverts("nodes: on probation"):
        engage(world, node, probation=2)
    engage(world, node, probation=1)
    with reverts("nodes: on probation"):
        engage(world, node, probation=1)
    engage(world, node, probation=0)


def test_engage__seasoned__is_off_probation(world: World) -> None:
    node = world.register()
    for number in range(5):
        assert not hot(world, node).seasoned, f"seasoned after {number}"
        engage(world, node)
        from_jobs(world, "submitted", node, world.operator)
        from_jobs(world, "settled", node, BOND, True, 10**15, 0)
    assert hot(world, node).seasoned
    engage(world, node, probation=2)
    engage(world, node, probation=2)
