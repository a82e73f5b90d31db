"""Attack 16: slash a node that is not bound to the job at that time.

Every stage of a job with every node of a market beside it: only the node whose lease failed pays, by a
reclaim and by nothing else.
"""

from __future__ import annotations

import pytest

from hearth.protocol.types import NodeId
from tests.attacks.stages import KINDS, STAGES, Scene, scene
from tests.kit import world as w
from tests.kit.evm import Reverted, reverts

RECLAIMABLE = {"overdue", "last overdue", "silent"}


def _others(found: Scene) -> dict[NodeId, int]:
    """Add nodes that have nothing to do with the job: one plain, one of the same owner and operator, one that left."""
    world = found.world
    owner, operator = world.evm.account("other owner"), world.evm.account("other operator")
    ids = [
        world.register(owner=owner, operator=operator),
        world.register(),
        world.register(owner=owner, operator=operator),
    ]
    world.nodes.send.exit_start(ids[2], sender=owner)
    return {node: world.node(node).stake for node in ids}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", STAGES)
def test_reclaim__each_stage__slashes_the_bound_node_or_nobody(stage: str, kind: str) -> None:
    found = scene(stage, kind)
    world = found.world
    others = _others(found)
    stake = world.node(found.node).stake
    bound = world.unit(found.terms).node
    if stage in RECLAIMABLE:
        assert bound == found.node
        slashed = world.reclaim(found.terms).event("Slashed")
        assert slashed["node"] == found.node
        assert stake - world.node(found.node).stake == slashed["reward"] + slashed["burnt"] > 0
    else:
        with pytest.raises(Reverted):
            world.reclaim(found.terms)
        assert world.node(found.node).stake == stake
    assert {node: world.node(node).stake for node in others} == others
    # Once more: the lease is over, nobody is bound.
    with reverts("jobs: not running" if stage in RECLAIMABLE else _reason(found)):
        world.reclaim(found.terms)
    assert {node: world.staked(node) for node in others} == others


def _reason(found: Scene) -> str:
    return "jobs: not reclaimable yet" if found.unit_state() == 3 else "jobs: not running"


@pytest.mark.parametrize("kind", KINDS)
def test_reclaim__after_another_nodes_lease__spares_whoever_had_the_unit_before(kind: str) -> None:
    """A declined, B let its lease end: B pays. Then A takes it again and fails: A pays, B does not."""
    found = scene("open", kind, max_attempts=3)
    world = found.world
    second = world.evm.account("operator 2")
    other = world.register(owner=world.evm.account("owner 2"), operator=second)
    world.claim(found.terms, found.node)
    world.decline(found.terms)
    world.claim(found.terms, other, sender=second)
    found.to(world.unit(found.terms).mark)
    stakes = {node: world.node(node).stake for node in (found.node, other)}
    world.reclaim(found.terms)
    assert world.node(found.node).stake == stakes[found.node]
    assert world.node(other).stake < stakes[other]

    world.nodes.send.beat(found.node, sender=world.operator)
    world.claim(found.terms, found.node)
    found.to(world.unit(found.terms).mark)
    stakes = {node: world.node(node).stake for node in (found.node, other)}
    world.reclaim(found.terms)
    assert world.node(found.node).stake < stakes[found.node]
    assert world.node(other).stake == stakes[other]


@pytest.mark.parametrize("kind", KINDS)
def test_reclaim__result_handed_in__slashes_nobody(kind: str) -> None:
    """A submit at the last second ends the duty, however long the settlement takes."""
    found = scene("running", kind)
    world = found.world
    found.to(world.unit(found.terms).mark - 1)
    world.submit(found.terms)
    stake = world.node(found.node).stake
    world.evm.warp(30 * w.DAY)
    with reverts("jobs: not running"):
        world.reclaim(found.terms)
    world.settle(found.terms)
    assert world.node(found.node).stake == stake == world.staked(found.node)
