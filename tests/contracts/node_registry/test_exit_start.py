"""NodeRegistry.exit_start: matching stops, leases go on, the unbonding time runs."""

from __future__ import annotations

from hearth.protocol.types import Gate, NodeFlag, State
from tests.kit.evm import reverts
from tests.kit.steps import ask, node_state, running
from tests.kit.world import UNBONDING, World


def test_exit_start__default__sets_the_time_and_the_mark(world: World) -> None:
    node = world.register()
    at = world.evm.now + UNBONDING
    receipt = world.nodes.send.exit_start(node, sender=world.owner)
    assert receipt.event("ExitStarted") == {"node": node, "at": at}
    assert world.node(node).exit_at == at
    assert node_state(world, node).status == NodeFlag.EXITING
    assert world.nodes.call.gate(node, ask()) == Gate.EXITING


def test_exit_start__before_the_first_beat__marks_at_the_beat(world: World) -> None:
    node = world.register(beat=False)
    world.nodes.send.exit_start(node, sender=world.owner)
    assert node_state(world, node).beat == 0 and node_state(world, node).status == NodeFlag(0)
    world.nodes.send.beat(node, sender=world.operator)
    assert node_state(world, node).status == NodeFlag.EXITING
    assert world.nodes.call.gate(node, ask()) == Gate.EXITING


def test_exit_start__lapsed_node__keeps_both_marks(world: World) -> None:
    node = world.register()
    world.evm.warp(900)
    world.nodes.send.check_liveness([node], world.keeper)
    world.nodes.send.exit_start(node, sender=world.owner)
    assert node_state(world, node).status == NodeFlag.EXITING | NodeFlag.LAPSED


def test_exit_start__lease_running__ends_normally(world: World) -> None:
    terms, node = running(world)
    world.nodes.send.exit_start(node, sender=world.owner)
    other = world.post()
    with reverts("nodes: exiting"):
        world.claim(other, node)
    world.submit(terms)
    world.settle(terms)
    assert world.state(terms) == State.SETTLED
    assert node_state(world, node).bond == 0


def test_exit_start__twice__reverts(world: World) -> None:
    node = world.register()
    world.nodes.send.exit_start(node, sender=world.owner)
    with reverts("nodes: exiting"):
        world.nodes.send.exit_start(node, sender=world.owner)


def test_exit_start__not_the_owner__reverts(world: World) -> None:
    node = world.register()
    for sender in (world.operator, world.stranger, world.deployer):
        with reverts("nodes: not the owner"):
            world.nodes.send.exit_start(node, sender=sender)
    with reverts("nodes: not the owner"):
        world.nodes.send.exit_start(node + 1, sender=world.owner)
