"""JobRegistry: results of nodes on probation, which wait before anyone may settle them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import words
from hearth.protocol.reputation import ONE
from hearth.protocol.types import NodeId, State, TermsFlag, UnitFlag
from tests.contracts.lens.upkeep import SETTLE, candidate, due
from tests.kit.evm import Reverted, reverts
from tests.kit.steps import BUDGET, FEE, PAY, SETTLE_PAY, around, credited, node_state, submitted
from tests.kit.world import ETHER, POLICY, World

DELAY = 3_600


@pytest.fixture
def world() -> World:
    return World(policy=replace(POLICY, fresh_delay=DELAY))


def _season(world: World, node: NodeId) -> None:
    """Let a node settle as many full successes as end probation."""
    while not node_state(world, node).seasoned:
        world.nodes.send.beat(node, sender=world.operator)
        terms = world.post(flags=TermsFlag.NEWCOMERS)
        world.claim(terms, node)
        world.submit(terms)
        world.evm.warp(DELAY)
        world.settle(terms)
    world.nodes.send.beat(node, sender=world.operator)


def test_settle__newcomer__waits_for_the_delay(world: World) -> None:
    terms, node = submitted(world)
    mark = world.unit(terms).mark
    for offset in around(world, mark + DELAY):
        if offset < 0:
            with reverts("jobs: too early to settle"):
                world.settle(terms)
        else:
            world.settle(terms)
            assert node_state(world, node).r == ONE


@pytest.mark.parametrize(("overdue", "reward"), [(0, SETTLE_PAY), (200, 2 * SETTLE_PAY), (600, 4 * SETTLE_PAY)])
def test_settle__newcomer__pays_the_settler_from_the_second_it_is_due(world: World, overdue: int, reward: int) -> None:
    terms, _ = submitted(world)
    world.evm.warp(DELAY + overdue)
    with credited(world) as got:
        world.settle(terms)
    assert got == {"owner": PAY - FEE, "treasury": FEE, "keeper": reward, "submitter": BUDGET - PAY - reward}


def test_settle__seasoned__is_due_at_once(world: World) -> None:
    node = world.register()
    _season(world, node)
    terms = world.post()
    world.claim(terms, node)
    assert world.unit(terms).flags == UnitFlag(0)
    world.submit(terms)
    world.settle(terms)


def test_settle__seasoned_since_its_lease_began__waits_all_the_same(world: World) -> None:
    node = world.register()
    terms = world.post(flags=TermsFlag.NEWCOMERS, max_seconds=86_400, deadline=world.evm.now + 200_000)
    world.claim(terms, node)
    _season(world, node)
    world.submit(terms)
    with reverts("jobs: too early to settle"):
        world.settle(terms)


def test_settle_batch__newcomer__is_stepped_over_until_it_is_due(world: World) -> None:
    seasoned = world.register()
    _season(world, seasoned)
    known = world.post()
    world.claim(known, seasoned)
    world.submit(known)
    fresh, _ = submitted(world)
    items = [(words.pack_terms(terms), 0) for terms in (fresh, known)]
    world.jobs.send.settle_batch(items, world.keeper, sender=world.keeper)
    assert (world.state(fresh), world.state(known)) == (State.SUBMITTED, State.SETTLED)
    with reverts("jobs: nothing to do"):
        world.jobs.send.settle_batch(items, world.keeper, sender=world.keeper)


def test_accept__newcomer__pays_at_once_and_adds_nothing_to_its_name(world: World) -> None:
    terms, node = submitted(world)
    with credited(world) as got:
        world.accept(terms)
    assert got == {"owner": PAY - FEE, "treasury": FEE, "submitter": BUDGET - PAY}
    state = node_state(world, node)
    assert (state.r, state.s, state.bond, state.count) == (0, 0, 0, 0)


def test_accept__newcomer_after_a_decline__accuses_nobody(world: World) -> None:
    """A submitter who owns a newcomer would else have every node that declined his job observed as a failure."""
    first, second = world.register(), world.register()
    terms = world.post()
    world.claim(terms, first)
    world.decline(terms)
    world.claim(terms, second)
    world.submit(terms)
    world.accept(terms)
    assert node_state(world, first).s == 0


def test_accept__seasoned__counts(world: World) -> None:
    node = world.register()
    _season(world, node)
    before, terms = node_state(world, node).r, world.post()
    world.claim(terms, node)
    world.submit(terms)
    world.accept(terms)
    assert node_state(world, node).r > before


def test_lens__newcomers_result__is_due_when_the_registry_takes_it(world: World) -> None:
    terms, _ = submitted(world)
    for offset in around(world, world.unit(terms).mark + DELAY):
        assert bool(due(world, candidate(SETTLE, terms))) == (offset >= 0)


def test_newcomer__twenty_jobs_at_once__gets_as_many_as_reserve_what_one_of_the_probation_price_does(
    world: World,
) -> None:
    """A stake of 1 claimed, submitted junk for and settled twenty jobs of 0.5 in one second, and was seasoned by it."""
    node = world.register(stake=ETHER, slots=63, ask=10**18)
    taken = 0
    for _ in range(20):
        terms = world.post(ceiling=10**19, flags=TermsFlag(0))  # half of the probation price
        try:
            world.claim(terms, node)
        except Reverted as refused:
            assert refused.reason == "nodes: on probation"
            continue
        world.submit(terms)
        taken += 1
        with reverts("jobs: too early to settle"):
            world.settle(terms)
    assert taken == 2
    assert not node_state(world, node).seasoned


@pytest.mark.xfail(
    reason="a bond goes by the ceiling and the time, and what is paid for it by the node's rate", strict=True
)
def test_newcomer__one_second_of_work_at_a_high_ceiling__does_not_bar_it_from_other_jobs() -> None:
    """Attack: a job of the probation price for one second pays a millionth of it, and reserves all that is allowed."""
    world = World(policy=replace(POLICY, fresh_delay=DELAY))
    rate = 139 * 10**15
    node = world.register(ask=rate, slots=4)
    terms = world.post(ceiling=2 * 10**22, max_seconds=1, keeper_fee=10**11, flags=TermsFlag(0))
    world.claim(terms, node)
    world.submit(terms)
    honest = world.post(ceiling=4 * rate, max_seconds=3_600, keeper_fee=10**11, flags=TermsFlag(0))
    world.claim(honest, node)
