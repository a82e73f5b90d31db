"""A market in the native coin under a Steward."""

from __future__ import annotations

import pytest

from tests.kit.steward import Stewarded
from tests.kit.world import World


@pytest.fixture
def stewarded(world: World) -> Stewarded:
    return Stewarded(world)
