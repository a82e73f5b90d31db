"""Rules' constructor: the policy's bounds, and what can be read back."""

from __future__ import annotations

from hearth.protocol import words
from tests.kit.evm import reverts
from tests.kit.world import POLICY, ZERO, World


def test_constructor__world__reads_back_every_parameter(market: World) -> None:
    rules = market.rules.call
    assert rules.NODES() == market.nodes.address
    assert (rules.governor(), rules.offered_governor(), rules.paused_until()) == (market.deployer, ZERO, 0)
    assert tuple(rules.policies()) == (words.pack_policy(POLICY), 0, 0, 0, 0)


def test_constructor__policy_out_of_range__reverts(world: World) -> None:
    with reverts("rules: policy out of range"):
        world.evm.deploy("Rules", world.nodes, 0, world.deployer)


def test_constructor__policy_and_governor__are_logged(world: World) -> None:
    policy = words.pack_policy(POLICY)
    rules = world.evm.deploy("Rules", world.nodes, policy, world.stranger)
    assert [(log.name, log.args, log.address) for log in world.evm.last_logs] == [
        ("PolicyChanged", {"policy": policy, "previous": 0, "until": 0}, rules.address),
        ("GovernorChanged", {"governor": world.stranger}, rules.address),
    ]
