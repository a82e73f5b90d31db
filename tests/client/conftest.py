"""What tests of the client share: a market on the real contracts, in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.evm_chain import RealMarket, Shop


@pytest.fixture
def market(tmp_path: Path, request: pytest.FixtureRequest) -> RealMarket:
    """A market without a node, and a home with two keys: in the native coin, or as IN_TOKEN and IN_BOTH say."""
    return RealMarket(tmp_path / "home", erc20=getattr(request, "param", False))


@pytest.fixture
def shop(market: RealMarket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """That market with a node, seen from the folder of a job."""
    monkeypatch.chdir(tmp_path)
    return Shop(market, tmp_path)
