"""Lens.checkUpkeep: a candidate is due exactly when the registry would take the call."""

from __future__ import annotations

import pytest

from hearth.protocol.parents import Condition
from hearth.protocol.types import SENTINEL
from tests.contracts.lens.upkeep import CLOSE, EXPIRE, LIVENESS, RECLAIM, SETTLE, candidate, due
from tests.kit.evm import Reverted, reverts
from tests.kit.steps import LEASE, around, running, submitted
from tests.kit.world import DEAD_AFTER, ZERO, World


def test_checkUpkeep__nothing__is_not_due(world: World) -> None:
    assert due(world) == []
    assert due(world, *(candidate(op, world.post()) for op in range(7))) == []


def test_checkUpkeep__submitted__is_due_for_settle(world: World) -> None:
    terms, _ = submitted(world)
    every = [candidate(op, terms) for op in range(7)]
    assert due(world, *every) == [candidate(SETTLE, terms)]
    world.settle(terms)
    assert due(world, *every) == []


def test_checkUpkeep__closing__is_due_at_the_end_of_its_notice(world: World) -> None:
    terms, _ = running(world)
    world.cancel(terms)
    for offset in around(world, world.unit(terms).mark):
        assert bool(due(world, candidate(CLOSE, terms))) == (offset >= 0)
        if offset < 0:
            with reverts("jobs: notice still running"):
                world.close(terms)
        else:
            world.close(terms)


@pytest.mark.parametrize("beat", [0, 800])
def test_checkUpkeep__running__is_due_when_reclaimable(world: World, beat: int) -> None:
    terms, node = running(world)
    world.evm.warp(beat)
    world.nodes.send.beat(node, sender=world.operator)
    for offset in around(world, min(world.unit(terms).mark, world.evm.now + DEAD_AFTER)):
        assert bool(due(world, candidate(RECLAIM, terms))) == (offset >= 0)
        if offset < 0:
            with reverts("jobs: not reclaimable yet"):
                world.reclaim(terms)
        else:
            world.reclaim(terms)


def test_checkUpkeep__open__is_due_once_it_cannot_finish(world: World) -> None:
    deadline = world.evm.now + 5_000 + LEASE - 1
    terms, array = world.post(deadline=deadline), world.post(deadline=deadline, units=3)
    for offset in around(world, world.evm.now + 5_000):
        found = due(world, candidate(EXPIRE, terms), candidate(EXPIRE, array), candidate(EXPIRE, array, SENTINEL))
        assert found == ([] if offset < 0 else [candidate(EXPIRE, terms), candidate(EXPIRE, array, SENTINEL)])


def test_checkUpkeep__array_all__is_due_while_something_is_untouched_and_it_is_open(world: World) -> None:
    deadline = world.evm.now + 5_000 + LEASE - 1
    node = world.register()
    full, closed = (world.post(deadline=deadline, units=2, flags=4) for _ in range(2))
    for index in (0, 1):
        world.claim(full, node, index)
    world.cancel(closed, SENTINEL)
    world.evm.warp(5_000)
    assert due(world, candidate(EXPIRE, full, SENTINEL), candidate(EXPIRE, closed, SENTINEL)) == []


def test_checkUpkeep__one_lease_by_another_index__is_never_due(world: World) -> None:
    terms, _ = submitted(world)
    named = [candidate(SETTLE, terms, index) for index in (0, 1, SENTINEL)]
    assert due(world, *named) == named[:1]


def test_checkUpkeep__silent_node__is_due_once_per_lapse(world: World) -> None:
    node = world.register()
    leaving = world.register()
    for one in (node, leaving):
        world.claim(world.post(), one)
    idle = world.register()
    world.nodes.send.exit_start(leaving, sender=world.owner)
    world.register(beat=False)
    wide = candidate(LIVENESS, index=0, count=10)
    for offset in around(world, world.evm.now + DEAD_AFTER):
        assert bool(due(world, wide)) == (offset >= 0)
        assert due(world, candidate(LIVENESS, index=node + 1, count=5)) == [], f"node {idle} runs nothing"
        assert due(world, candidate(LIVENESS, index=node, count=0)) == []
        if offset >= 0:
            world.nodes.send.check_liveness([node], world.keeper)
            assert due(world, wide) == []


def test_checkUpkeep__range_of_nodes__is_128_at_most(world: World) -> None:
    node = world.register()
    world.claim(world.post(), node)
    world.evm.warp(DEAD_AFTER)
    assert node == 1
    assert due(world, candidate(LIVENESS, index=0, count=1)) == []
    assert due(world, candidate(LIVENESS, index=0, count=2)) != []
    assert due(world, candidate(LIVENESS, index=1, count=2**200)) != []


def test_checkUpkeep__candidates__are_64_at_most(world: World) -> None:
    terms, _ = submitted(world)
    assert len(due(world, *[candidate(SETTLE, terms)] * 64)) == 64
    with pytest.raises(Reverted):
        due(world, *[candidate(SETTLE, terms)] * 65)


def test_checkUpkeep__mixed__keeps_the_due_ones_in_order(world: World) -> None:
    first, _ = submitted(world)
    idle, _ = running(world)
    last, _ = submitted(world)
    picked = due(world, *(candidate(SETTLE, terms) for terms in (last, idle, first)))
    assert picked == [candidate(SETTLE, last), candidate(SETTLE, first)]


def test_checkUpkeep__waiting_for_parents__is_due_for_expire_as_an_open_job(world: World) -> None:
    deadline = world.evm.now + 5_000 + LEASE - 1
    parent = world.post()
    terms, array = (world.post_after((parent, Condition.SUCCESS), units=units, deadline=deadline) for units in (1, 3))
    wanted = [candidate(EXPIRE, terms), candidate(EXPIRE, array, SENTINEL)]
    every = [candidate(op, job, at) for op in range(7) for job in (terms, array) for at in (0, SENTINEL)]
    for offset in around(world, world.evm.now + 5_000):
        assert [one for one in due(world, *every) if one in wanted] == ([] if offset < 0 else wanted)
        assert {one[0] for one in due(world, *every)} == (set() if offset < 0 else {EXPIRE})
        if offset >= 0:
            world.lens.send.performUpkeep(wanted, ZERO, sender=world.stranger)
            assert world.lock_of(terms) == world.lock_of(array) == 0
            assert due(world, *every) == []
