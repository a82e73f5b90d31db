"""NodeRegistry.pause: registrations stop for 7 days; nothing else does (its end: test_register)."""

from __future__ import annotations

from tests.contracts.steps import engage, from_jobs
from tests.evm import reverts
from tests.world import DAY, ETHER, UNBONDING, World


def test_pause__governor__sets_its_end(world: World) -> None:
    receipt = world.nodes.send.pause()
    assert receipt.event("Paused") == {"until": world.evm.now + 7 * DAY}
    assert world.nodes.call.paused_until() == world.evm.now + 7 * DAY


def test_pause__again__runs_from_the_last(world: World) -> None:
    world.nodes.send.pause()
    world.evm.warp(DAY)
    world.nodes.send.pause()
    assert world.nodes.call.paused_until() == world.evm.now + 7 * DAY


def test_pause__everything_but_register__goes_on(world: World) -> None:
    node = world.register()
    world.nodes.send.pause()
    with reverts("nodes: paused"):
        world.register()
    world.pay(world.nodes, "add_stake", node, ETHER, amount=ETHER, sender=world.owner)
    world.nodes.send.set_ask(node, 5, sender=world.owner)
    world.nodes.send.beat(node, sender=world.operator)
    engage(world, node, bond=0)
    from_jobs(world, "submitted", node, world.operator)
    world.nodes.send.exit_start(node, sender=world.owner)
    world.evm.warp(UNBONDING - 1)
    world.nodes.send.pause()
    world.evm.warp(1)
    world.nodes.send.exit_finish(node)


def test_pause__not_the_governor__reverts(world: World) -> None:
    for sender in (world.owner, world.operator, world.stranger):
        with reverts("nodes: not the governor"):
            world.nodes.send.pause(sender=sender)
