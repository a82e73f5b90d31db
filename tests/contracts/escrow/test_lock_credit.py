"""Escrow.lock_credit: an account's credit becomes its own lock."""

from __future__ import annotations

import pytest

from tests.kit.evm import Reverted, reverts
from tests.kit.vault import Vault, key


@pytest.mark.parametrize(("amount", "left"), [(0, 100), (1, 99), (99, 1), (100, 0)])
def test_lock_credit__within_the_credit__moves_it(vault: Vault, operator: str, amount: int, left: int) -> None:
    vault.pay(operator, 100)
    count = vault.escrow.call.tracked()
    receipt = vault.escrow.send.lock_credit(key("a"), amount, sender=operator)
    assert (vault.credit(operator), vault.locked(operator, "a")) == (left, amount)
    assert receipt.event("CreditLocked") == {"controller": operator, "key": key("a"), "amount": amount}
    assert [log.name for log in receipt.logs] == ["CreditLocked"]
    assert vault.holding(vault.escrow) == 100
    assert vault.escrow.call.tracked() == count


def test_lock_credit__on_top_of_a_lock__adds_up(vault: Vault, operator: str) -> None:
    vault.lock(operator, "a", 7)
    vault.pay(operator, 100)
    vault.escrow.send.lock_credit(key("a"), 30, sender=operator)
    assert vault.locked(operator, "a") == 37


@pytest.mark.parametrize("amount", [101, 2**96, 2**256 - 1])
def test_lock_credit__above_the_credit__reverts(vault: Vault, operator: str, amount: int) -> None:
    vault.pay(operator, 100)
    with reverts("escrow: short"):
        vault.escrow.send.lock_credit(key("a"), amount, sender=operator)


def test_lock_credit__credit_of_another__reverts(vault: Vault, operator: str, stranger: str) -> None:
    vault.pay(operator, 100)
    with reverts("escrow: short"):
        vault.escrow.send.lock_credit(key("a"), 1, sender=stranger)


def test_lock_credit__with_value__reverts(vault: Vault, operator: str) -> None:
    vault.pay(operator, 100)
    with pytest.raises(Reverted):
        vault.escrow.send.lock_credit(key("a"), 1, sender=operator, value=1)
