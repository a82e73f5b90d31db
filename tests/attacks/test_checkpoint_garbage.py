"""Attack: checkpoints that are worth nothing, and nodes in league that let a unit be billed twice.

What a kept checkpoint earns comes out of the seconds that the result left, so that a league bills no more than one of
its nodes would by padding: by holding its lease to the end. Everything else about checkpoints only costs.
"""

from __future__ import annotations

from typing import Any

import pytest

from hearth.protocol import formulas
from hearth.protocol.types import Kept, NodeId, State, Terms
from tests.attacks.stages import KINDS, market
from tests.kit import world as w
from tests.kit.evm import reverts
from tests.kit.steps import RESUMABLE, lose, other

LOW, HIGH = 25 * 10**18, 100 * 10**18
"""The asks of a league's nodes: a quarter of the ceiling, which claims at once, and all of it."""
MAX_SECONDS = 1_000
ENDINGS = ["give_up", "reclaim"]


def _stakes(world: w.World) -> int:
    nodes = range(1, world.nodes.call.totals() & 0xFFFFFFFF)
    return sum(world.staked(NodeId(node)) for node in nodes)


def _wealth(world: w.World, *more: str) -> int:
    """Return what the owner of all nodes has, with that of accounts in league with him."""
    return _stakes(world) + sum(world.credit(who) for who in (world.owner, *more))


def _claim(world: w.World, terms: Terms, node: NodeId, resume_from: int = 0) -> None:
    """Claim in the first second in which open claims have risen to the node's ask."""
    due = formulas.claimable_from(terms, world.unit(terms), world.node(node).offer.ask)
    assert due is not None
    world.evm.at(max(due, world.evm.now))
    world.nodes.send.beat(node, sender=world.operator)
    world.claim(terms, node, resume_from=resume_from)


def _run(world: w.World, node: NodeId, seconds: int) -> None:
    """Let a lease run, alive to its end."""
    for step in (seconds // 2, seconds - seconds // 2):
        world.evm.warp(step)
        world.nodes.send.beat(node, sender=world.operator)


def _settle(world: w.World, terms: Terms, by: str) -> None:
    if by == "submitter":
        world.accept(terms)
    else:
        world.evm.warp(1)
        world.settle(terms)


def _padding(kind: str, ask: int, by: str, *accounts: str, **overrides: Any) -> int:
    """Return what one node of the league earns alone, that holds its lease for as long as it may bill."""
    world = market(kind)
    node = world.register(ask=ask)
    terms = world.post(**{"max_seconds": MAX_SECONDS, **RESUMABLE, **overrides})
    before = _wealth(world, *(getattr(world, name) for name in accounts))
    _claim(world, terms, node)
    _run(world, node, MAX_SECONDS)
    world.submit(terms)
    _settle(world, terms, by)
    return _wealth(world, *(getattr(world, name) for name in accounts)) - before


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("asks", [(LOW, HIGH), (HIGH, LOW), (HIGH, HIGH), (LOW, LOW)])
@pytest.mark.parametrize("by", ["settler", "keeper", "submitter"])
@pytest.mark.parametrize("kind", KINDS)
def test_league__two_nodes_and_a_checkpoint__bill_no_more_than_one_that_pads(
    kind: str, by: str, asks: tuple[int, int], ending: str
) -> None:
    """With every split of the time, cheap first and dear then, and with the keeper who reclaims and settles."""
    accounts = ("keeper",) if by == "keeper" else ()
    alone = _padding(kind, max(asks), by, *accounts)
    most = 0
    for first in (1, 300, 600, 999, 1_299):
        for second in (1, 400, 700, 1_000):
            world = market(kind)
            nodes = [world.register(ask=ask) for ask in asks]
            terms = world.post(max_seconds=MAX_SECONDS, **RESUMABLE)
            league = [getattr(world, name) for name in accounts]
            before = _wealth(world, *league)
            _claim(world, terms, nodes[0])
            _run(world, nodes[0], first)
            world.checkpoint(terms)
            lose(world, terms, ending)
            _claim(world, terms, nodes[1], resume_from=1)
            _run(world, nodes[1], second)
            world.submit(terms)
            _settle(world, terms, by)
            assert world.state(terms) == State.SETTLED and world.lock_of(terms) == 0
            most = max(most, _wealth(world, *league) - before)
    print(f"{kind}, {by}, {ending}, {asks[0] // 10**18} then {asks[1] // 10**18}: {most / alone:.3f} of padding alone")
    assert most <= alone


@pytest.mark.parametrize("ending", ENDINGS)
def test_league__chain_of_nodes__bills_no_more_than_one_that_pads(ending: str) -> None:
    """Every attempt but the last leaves a checkpoint of all its time, and names the one before."""
    alone = _padding("native", HIGH, "settler", "keeper", max_attempts=8)
    for last in (1, 500, 1_000):
        world = market("native")
        nodes = [world.register(ask=ask) for ask in (LOW, HIGH)]
        terms = world.post(max_seconds=MAX_SECONDS, max_attempts=8, deadline=world.evm.now + 400 * w.DAY, **RESUMABLE)
        before = _wealth(world, world.keeper)
        for attempt in range(8):
            node = nodes[attempt % 2]
            world.evm.at(max(world.evm.now, world.node(node).state.quarantine))
            _claim(world, terms, node, resume_from=attempt)
            if attempt == 7:
                break
            _run(world, node, 700)
            world.checkpoint(terms)
            lose(world, terms, ending)
        _run(world, nodes[1], last)
        world.submit(terms)
        pays = [event["pay"] for event in world.accept(terms).events("CheckpointPaid")]
        earned = _wealth(world, world.keeper) - before
        print(f"{ending}, {last} s: {len(pays)} checkpoints, {earned / alone:.3f} of padding alone")
        assert earned <= alone


@pytest.mark.parametrize("kind", KINDS)
def test_league__with_the_submitter__moves_its_own_money_only(kind: str) -> None:
    """All that it may share is what it posted, less the treasury's fees and what its lost leases burn."""
    world = market(kind)
    nodes = [world.register(ask=HIGH) for _ in range(2)]
    terms = world.post(max_seconds=MAX_SECONDS, **RESUMABLE)
    funded = formulas.escrow_at_post(terms)
    before = _wealth(world, world.submitter, world.keeper) + funded
    _claim(world, terms, nodes[0])
    _run(world, nodes[0], 600)
    world.checkpoint(terms)
    lose(world, terms, "reclaim")
    _claim(world, terms, nodes[1], resume_from=1)
    world.top_up(terms, 500)
    funded = formulas.top_up_amount(terms, world.unit(terms), 500)
    _run(world, nodes[1], 100)
    world.submit(terms)
    world.accept(terms)
    assert _wealth(world, world.submitter, world.keeper) < before + funded
    assert world.credit(world.treasury) > 0 and world.credit(w.DEAD) > 0


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_garbage__checkpoint_that_no_result_is_made_of__earns_nothing_and_costs_the_slash(
    kind: str, ending: str
) -> None:
    """The next node finds no files, starts anew, and is paid alone."""
    world = market(kind)
    node, (second, operator) = world.register(), other(world)
    terms = world.post(max_seconds=MAX_SECONDS, **RESUMABLE)
    before = world.credit(world.owner) + world.staked(node)
    world.claim(terms, node)
    world.evm.warp(800)
    world.checkpoint(terms, root=b"\xff" * 32)
    lose(world, terms, ending)
    world.nodes.send.beat(second, sender=operator)
    world.claim(terms, second, sender=operator)
    world.evm.warp(100)
    world.submit(terms, sender=operator)
    world.accept(terms)
    lost = before - world.credit(world.owner) - world.staked(node)
    slash = formulas.slash_of(terms)
    assert world.credit(world.owner) == 0 and lost >= slash - slash // 4


@pytest.mark.parametrize("kind", KINDS)
def test_garbage__checkpoint_just_before_the_reclaim__binds_nobody(kind: str) -> None:
    """A node sees its reclaim on its way and names garbage first; whoever is next need not name it."""
    world = market(kind)
    node, (second, operator) = world.register(), other(world)
    terms = world.post(max_seconds=MAX_SECONDS, **RESUMABLE)
    world.claim(terms, node)
    mark = world.unit(terms).mark
    world.evm.at(mark - 1)
    world.checkpoint(terms, root=b"\xff" * 32)
    for late in (0, 1):
        world.evm.at(mark + late)
        with reverts("jobs: too late to submit"):
            world.checkpoint(terms, root=b"\xff" * 32)
    stake = world.staked(node)
    world.reclaim(terms)
    assert stake - world.staked(node) == formulas.slash_of(terms), "it costs what it did without one"
    assert world.kept(terms, 1).seconds == mark - 1 - (mark - 1_300)
    with reverts("jobs: not running"):
        world.checkpoint(terms)
    world.nodes.send.beat(second, sender=operator)
    world.claim(terms, second, sender=operator)
    world.evm.warp(10)
    world.submit(terms, sender=operator)
    assert world.accept(terms).events("CheckpointPaid") == []


@pytest.mark.parametrize("kind", KINDS)
def test_garbage__checkpoint_spam__earns_no_more_than_its_last(kind: str) -> None:
    """A lease has one slot: each checkpoint overwrites the one before, and its sender pays the gas."""
    world = market(kind, exact_gas=True)
    node, (second, operator) = world.register(), other(world)
    terms = world.post(max_seconds=MAX_SECONDS, **RESUMABLE)
    world.claim(terms, node)
    beat, gas = world.node(node).state.beat, 0
    for _ in range(100):
        world.evm.warp(1)
        gas += world.checkpoint(terms).gas_used
    assert world.node(node).state.beat == beat, "it keeps no lease alive"
    world.give_up(terms)
    assert world.kept(terms, 1) == Kept(100, LOW, node)
    world.claim(terms, second, sender=operator, resume_from=1)
    world.evm.warp(10)
    world.submit(terms, sender=operator)
    (paid,) = world.accept(terms).events("CheckpointPaid")
    assert paid["pay"] == LOW * 100 * 8 // 10 // 10**6
    print(f"{gas // 100} gas for each of a hundred checkpoints")


@pytest.mark.parametrize("kind", KINDS)
def test_garbage__declined_after_a_checkpoint__keeps_none(kind: str) -> None:
    """A decline costs a node nothing, so it leaves nothing: else garbage were free."""
    world = market(kind)
    node, (second, operator) = world.register(), other(world)
    terms = world.post(max_seconds=MAX_SECONDS, **RESUMABLE)
    world.claim(terms, node)
    world.evm.warp(50)
    world.checkpoint(terms)
    world.decline(terms)
    assert world.kept(terms, 1) == Kept()
    with reverts("jobs: no such checkpoint"):
        world.claim(terms, second, sender=operator, resume_from=1)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_league__node_that_resumes_its_own__bills_no_more_than_one_that_pads(kind: str, ending: str) -> None:
    """It is excluded from the next attempt; after another's decline it may take the one after that, and resume."""
    alone = _padding(kind, LOW, "settler")
    for first, second in ((300, 700), (999, 1), (999, 1_000)):
        world = market(kind)
        node, helper = world.register(ask=LOW), world.register(ask=LOW)
        terms = world.post(max_seconds=MAX_SECONDS, **RESUMABLE)
        before = _wealth(world)
        world.claim(terms, node)
        _run(world, node, first)
        world.checkpoint(terms)
        lose(world, terms, ending)
        world.evm.at(max(world.evm.now, world.node(node).state.quarantine))
        world.nodes.send.heartbeat([node, helper], sender=world.operator)
        with reverts("jobs: node excluded"):
            world.claim(terms, node, resume_from=1)
        world.claim(terms, helper)
        world.decline(terms)
        world.claim(terms, node, resume_from=1)
        _run(world, node, second)
        world.submit(terms)
        receipt = world.accept(terms)
        paid = sum(event["pay"] for event in receipt.events("CheckpointPaid"))
        assert receipt.event("Settled")["pay"] + paid <= LOW * MAX_SECONDS // 10**6
        assert _wealth(world) - before <= alone


@pytest.mark.parametrize("kind", KINDS)
def test_cancel__submitter_who_has_a_checkpoint__pays_the_node_that_runs(kind: str) -> None:
    """He cannot make a node lose its lease: what runs is paid to its submit or its notice, checkpoint or not."""
    found = []
    for checkpointed in (False, True):
        world = market(kind)
        node = world.register()
        terms = world.post(max_seconds=MAX_SECONDS, **RESUMABLE)
        world.claim(terms, node)
        world.evm.warp(800)
        if checkpointed:
            world.checkpoint(terms)
        world.cancel(terms)
        world.evm.at(world.unit(terms).mark)
        world.close(terms)
        found.append((world.credit(world.owner), world.credit(world.submitter), world.staked(node)))
    assert found[0] == found[1] and found[0][0] > 0


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_cancel__submitter_after_a_lost_lease__is_refunded_as_without_its_checkpoint(kind: str, ending: str) -> None:
    """What a lost lease leaves earns only by a result: a cancel pays no more and no less than it did."""
    found = []
    for checkpointed in (False, True):
        world = market(kind)
        terms = world.post(max_seconds=MAX_SECONDS, **RESUMABLE)
        world.claim(terms, world.register())
        world.evm.warp(300)
        if checkpointed:
            world.checkpoint(terms)
        lose(world, terms, ending)
        world.cancel(terms)
        found.append((world.credit(world.owner), world.credit(world.submitter)))
    assert found[0] == found[1] == (0, formulas.escrow_at_post(terms))
