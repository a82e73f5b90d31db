"""Fresh markets: `world` keeps its money in the native coin, `market` runs a test once on each kind of asset."""

from __future__ import annotations

import pytest

from tests.world import World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(params=["native", "erc20"])
def market(request: pytest.FixtureRequest) -> World:
    return World(erc20=request.param == "erc20")
