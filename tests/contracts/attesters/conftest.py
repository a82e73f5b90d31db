"""A market with attesters: three members, of whom two must sign."""

from __future__ import annotations

import pytest

from tests.kit.attesters import Attested
from tests.kit.world import World


@pytest.fixture
def attested(world: World) -> Attested:
    return Attested(world)
