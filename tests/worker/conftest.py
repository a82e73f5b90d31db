"""What the worker's tests on a real chain share: one market per module, one node per test."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from unittest import mock

import pytest

from tests.kit.anvil import need_anvil
from tests.kit.exchange import Exchange, Scenario


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchange]:
    """A local chain with the market on it."""
    need_anvil()
    made = Exchange(tmp_path_factory.mktemp("market"))
    # Workers in this process have the home folder that those in processes of their own have.
    with mock.patch.dict(os.environ, {"HEARTH_HOME": str(made.user_home)}):
        yield made
    made.close()


@pytest.fixture
def scenario(exchange: Exchange, request: pytest.FixtureRequest) -> Iterator[Scenario]:
    """A registered node with its key, home folder and module; parameters go to `Exchange.scenario`."""
    name = "n" + hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:8]
    made = exchange.scenario(name, **getattr(request, "param", {}))
    yield made
    if made.process is not None and made.process.poll() is None:
        made.kill()
