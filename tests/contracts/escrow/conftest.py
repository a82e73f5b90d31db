"""Escrow on each kind of asset, and the parties that use it."""

from __future__ import annotations

import pytest

from tests.kit.evm import Evm
from tests.kit.vault import Vault


@pytest.fixture
def evm() -> Evm:
    return Evm()


@pytest.fixture(params=["native", "erc20"])
def vault(request: pytest.FixtureRequest, evm: Evm) -> Vault:
    return Vault.native(evm) if request.param == "native" else Vault.erc20(evm)


@pytest.fixture
def native(evm: Evm) -> Vault:
    return Vault.native(evm)


@pytest.fixture
def erc20(evm: Evm) -> Vault:
    return Vault.erc20(evm)


@pytest.fixture
def controller(evm: Evm) -> str:
    return evm.account("controller")


@pytest.fixture
def submitter(evm: Evm) -> str:
    return evm.account("submitter")


@pytest.fixture
def operator(evm: Evm) -> str:
    return evm.account("operator")


@pytest.fixture
def stranger(evm: Evm) -> str:
    return evm.account("stranger")
