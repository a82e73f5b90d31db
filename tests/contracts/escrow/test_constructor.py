"""Escrow's constructor."""

from __future__ import annotations

import pytest

from tests.kit.evm import NATIVE, Evm, Reverted, reverts
from tests.kit.vault import Vault


def test_constructor__native__keeps_the_coin(evm: Evm) -> None:
    escrow = evm.deploy("Escrow", NATIVE)
    assert escrow.call.ASSET() == NATIVE
    assert escrow.call.tracked() == 0


def test_constructor__token__keeps_the_token(erc20: Vault) -> None:
    assert erc20.token is not None
    assert erc20.escrow.call.ASSET() == erc20.token.address


def test_constructor__address_without_code__reverts(evm: Evm) -> None:
    with reverts("escrow: no such asset"):
        evm.deploy("Escrow", evm.account("nobody"))


def test_constructor__with_value__reverts(evm: Evm) -> None:
    with pytest.raises(Reverted):
        evm.deploy("Escrow", NATIVE, value=1)
