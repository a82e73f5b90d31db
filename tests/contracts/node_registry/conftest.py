"""Markets whose NodeRegistry can be called as its JobRegistry calls it, by a plain account."""

from __future__ import annotations

import pytest

from tests.kit.steps import seat
from tests.kit.world import World


@pytest.fixture
def seated() -> World:
    return seat(World())


@pytest.fixture(params=["native", "erc20"])
def seated_market(request: pytest.FixtureRequest) -> World:
    return seat(World(erc20=request.param == "erc20"))
