"""Escrow.withdraw: an account takes its own credit out."""

from __future__ import annotations

import pytest

from tests.kit.evm import NATIVE, Evm, Reverted, reverts
from tests.kit.vault import Vault

# Gas of a receipt: the whole credit, native, to the account itself.
CEILING = 36_600


@pytest.mark.parametrize(("amount", "left"), [(0, 100), (1, 99), (99, 1), (100, 0)])
def test_withdraw__within_the_credit__pays(vault: Vault, operator: str, amount: int, left: int) -> None:
    vault.pay(operator, 100)
    before = vault.holding(operator)
    receipt = vault.escrow.send.withdraw(operator, amount, sender=operator)
    assert vault.credit(operator) == left
    assert vault.holding(operator) == before + amount
    assert vault.holding(vault.escrow) == left
    assert receipt.event("Withdrawn") == {"account": operator, "to": operator, "amount": amount}


def test_withdraw__to_another_address__pays_it_there(vault: Vault, operator: str, stranger: str) -> None:
    vault.pay(operator, 100)
    held = [vault.holding(operator), vault.holding(stranger)]
    receipt = vault.escrow.send.withdraw(stranger, 40, sender=operator)
    assert [vault.holding(operator), vault.holding(stranger)] == [held[0], held[1] + 40]
    assert [vault.credit(operator), vault.credit(stranger)] == [60, 0]
    assert receipt.event("Withdrawn") == {"account": operator, "to": stranger, "amount": 40}


def test_withdraw__erc20__falls_out_of_the_count(erc20: Vault, operator: str, controller: str) -> None:
    erc20.lock(controller, "a", 9)
    erc20.pay(operator, 100)
    receipt = erc20.escrow.send.withdraw(operator, 60, sender=operator)
    assert erc20.escrow.call.tracked() == erc20.holding(erc20.escrow) == 49
    assert [log.name for log in receipt.logs] == ["Withdrawn", "Transfer"]


def test_withdraw__native__keeps_no_count(native: Vault, operator: str) -> None:
    native.pay(operator, 100)
    native.escrow.send.withdraw(operator, 60, sender=operator)
    assert native.escrow.call.tracked() == 0


@pytest.mark.parametrize("amount", [101, 2**96, 2**256 - 1])
def test_withdraw__above_the_credit__reverts(vault: Vault, operator: str, amount: int) -> None:
    vault.pay(operator, 100)
    vault.pay(vault.evm.account("other"), 1_000)
    before = vault.evm.state_hash()
    with reverts("escrow: short"):
        vault.escrow.send.withdraw(operator, amount, sender=operator)
    assert vault.evm.state_hash() == before


def test_withdraw__credit_of_another__reverts(vault: Vault, operator: str, stranger: str) -> None:
    vault.pay(operator, 100)
    with reverts("escrow: short"):
        vault.escrow.send.withdraw(operator, 1, sender=stranger)


def test_withdraw__own_lock__is_not_credit(vault: Vault, controller: str) -> None:
    vault.lock(controller, "a", 100)
    with reverts("escrow: short"):
        vault.escrow.send.withdraw(controller, 1, sender=controller)


def test_withdraw__to_nobody__reverts(vault: Vault, operator: str) -> None:
    vault.pay(operator, 100)
    with reverts("escrow: bad receiver"):
        vault.escrow.send.withdraw(NATIVE, 1, sender=operator)


def test_withdraw__to_escrow__reverts(vault: Vault, operator: str) -> None:
    vault.pay(operator, 100)
    with reverts("escrow: bad receiver"):
        vault.escrow.send.withdraw(vault.escrow, 1, sender=operator)


def test_withdraw__native_receiver_that_refuses__reverts_and_keeps_the_credit(native: Vault, operator: str) -> None:
    # It has code and takes no coin.
    closed = native.evm.deploy("mocks/MockToken", "Closed", "CLO", 0)
    native.pay(operator, 100)
    before = native.evm.state_hash()
    with reverts("escrow: receiver refused"):
        native.escrow.send.withdraw(closed, 100, sender=operator)
    assert native.evm.state_hash() == before
    native.escrow.send.withdraw(operator, 100, sender=operator)
    assert native.credit(operator) == 0


def test_withdraw__to_an_account_with_code__pays(vault: Vault, operator: str) -> None:
    wallet = vault.evm.deploy("mocks/Receiver")
    vault.pay(operator, 100)
    vault.escrow.send.withdraw(wallet, 100, sender=operator)
    assert vault.holding(wallet) == 100


def test_withdraw__by_an_account_with_code__pays(vault: Vault, stranger: str) -> None:
    wallet = vault.evm.deploy("mocks/Receiver")
    vault.pay(wallet, 100)
    wallet.send.run(vault.escrow, vault.escrow.encode("withdraw", stranger, 60), 0)
    assert vault.credit(wallet) == 40


def test_withdraw__with_value__reverts(vault: Vault, operator: str) -> None:
    vault.pay(operator, 100)
    with pytest.raises(Reverted):
        vault.escrow.send.withdraw(operator, 1, sender=operator, value=1)


def test_withdraw__whole_native_credit_to_oneself__stays_below_its_gas_ceiling() -> None:
    evm = Evm(exact_gas=True)
    vault = Vault.native(evm)
    operator = evm.account("operator")
    vault.pay(operator, 10**18)
    receipt = vault.escrow.send.withdraw(operator, 10**18, sender=operator)
    assert receipt.gas_used <= CEILING
    # Well below it the measurement would be broken: a value transfer and two cold words cost this much by themselves.
    assert receipt.gas_used >= 21_000 + 6_700
