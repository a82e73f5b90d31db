"""What tests of the client share: a market on the real contracts, in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.evm_chain import RealMarket, Shop


@pytest.fixture
def market(tmp_path: Path) -> RealMarket:
    """A market in the native coin without a node, and a home with two keys."""
    return RealMarket(tmp_path / "home")


@pytest.fixture
def token_market(tmp_path: Path) -> RealMarket:
    """The same, in a token."""
    return RealMarket(tmp_path / "home", erc20=True)


@pytest.fixture
def shop(market: RealMarket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """That market with a node, seen from the folder of a job."""
    monkeypatch.chdir(tmp_path)
    return Shop(market, tmp_path)
