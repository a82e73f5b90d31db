"""Fresh markets: `world` keeps its money in the native coin, `market` runs a test once on each kind of asset."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.world import World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(params=["native", "erc20"])
def market(request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(erc20=request.param == "erc20")
    yield world
    # Whatever a test did, Escrow holds what its books say; only tokens are counted there.
    if world.token is not None:
        assert world.token.call.balanceOf(world.escrow) == world.escrow.call.tracked()
