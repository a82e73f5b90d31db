"""Lens's constructor: the pair that it looks at."""

from __future__ import annotations

from tests.kit.world import World


def test_constructor__world__names_the_pair(world: World) -> None:
    assert world.lens.call.JOBS() == world.jobs.address
    assert world.lens.call.NODES() == world.nodes.address
    assert world.lens.call.RULES() == world.rules.address
    assert world.lens.call.ESCROW() == world.escrow.address
