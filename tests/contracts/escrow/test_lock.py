"""Escrow.lock: money that has just arrived becomes the caller's lock."""

from __future__ import annotations

import pytest

from tests.kit.evm import reverts
from tests.kit.vault import LIMIT, Vault, key, share, shares


def test_lock__new_money__is_the_callers_lock(vault: Vault, controller: str) -> None:
    receipt = vault.lock(controller, "a", 70)
    assert vault.locked(controller, "a") == 70
    assert vault.holding(vault.escrow) == 70
    assert receipt.event("Locked") == {"controller": controller, "key": key("a"), "amount": 70}
    assert [log.name for log in receipt.logs] == ["Locked"]


def test_lock__again_under_the_key__adds_up(vault: Vault, controller: str) -> None:
    vault.lock(controller, "a", 70)
    vault.lock(controller, "a", 5)
    assert vault.locked(controller, "a") == 75


def test_lock__same_key_of_two_controllers__stays_apart(vault: Vault, controller: str, stranger: str) -> None:
    vault.lock(controller, "a", 70)
    vault.lock(stranger, "a", 5)
    vault.lock(controller, "b", 1)
    assert [vault.locked(controller, "a"), vault.locked(stranger, "a"), vault.locked(controller, "b")] == [70, 5, 1]


def test_lock__nothing__is_allowed_and_changes_no_books(vault: Vault, controller: str) -> None:
    receipt = vault.lock(controller, "a", 0)
    assert vault.locked(controller, "a") == 0
    assert receipt.event("Locked")["amount"] == 0


@pytest.mark.parametrize("amount", [LIMIT - 2, LIMIT - 1])
def test_lock__just_below_the_limit__is_locked(vault: Vault, controller: str, amount: int) -> None:
    vault.lock(controller, "a", amount)
    assert vault.locked(controller, "a") == amount


@pytest.mark.parametrize("amount", [LIMIT, LIMIT + 1, 2**256 - 1])
def test_lock__at_the_limit_or_above__reverts(vault: Vault, controller: str, amount: int) -> None:
    if vault.token is None:
        # No chain has so much coin that it could be sent; the limit is looked at before the value.
        vault.evm.set_balance(controller, min(amount, 2**200))
        value = min(amount, 2**200)
    else:
        vault.token.send.mint(vault.escrow, amount)
        value = 0
    with reverts("escrow: too large"):
        vault.escrow.send.lock(key("a"), amount, sender=controller, value=value)


def test_lock__sums_above_the_limit__are_kept_and_split(vault: Vault, controller: str, operator: str) -> None:
    for _ in range(3):
        vault.lock(controller, "a", LIMIT - 1)
    assert vault.locked(controller, "a") == 3 * (LIMIT - 1)
    most = share(operator, LIMIT - 1)
    vault.escrow.send.split(key("a"), shares(most, most, most), sender=controller)
    assert vault.credit(operator) == 3 * (LIMIT - 1)
    vault.escrow.send.withdraw(operator, 3 * (LIMIT - 1), sender=operator)
    assert vault.credit(operator) == 0


@pytest.mark.parametrize("value", [0, 69, 71])
def test_lock__native_value_off_the_amount__reverts(native: Vault, controller: str, value: int) -> None:
    with reverts("escrow: wrong value"):
        native.escrow.send.lock(key("a"), 70, sender=controller, value=value)


def test_lock__native__keeps_no_count(native: Vault, controller: str) -> None:
    native.lock(controller, "a", 70)
    assert native.escrow.call.tracked() == 0


def test_lock__erc20_with_value__reverts(erc20: Vault, controller: str) -> None:
    erc20.bring(controller, 70)
    with reverts("escrow: not native"):
        erc20.escrow.send.lock(key("a"), 70, sender=controller, value=1)


def test_lock__erc20_one_token_short__reverts(erc20: Vault, controller: str, stranger: str) -> None:
    erc20.lock(stranger, "before", 1_000)
    erc20.bring(controller, 69)
    with reverts("escrow: not funded"):
        erc20.escrow.send.lock(key("a"), 70, sender=controller)
    erc20.bring(controller, 1)
    erc20.escrow.send.lock(key("a"), 70, sender=controller)
    assert erc20.locked(controller, "a") == 70


def test_lock__erc20__counts_what_it_locks(erc20: Vault, controller: str) -> None:
    erc20.lock(controller, "a", 70)
    erc20.lock(controller, "b", 5)
    assert erc20.escrow.call.tracked() == 75


def test_lock__erc20_surplus__belongs_to_whoever_locks_it(erc20: Vault, controller: str, stranger: str) -> None:
    erc20.lock(controller, "a", 70)
    erc20.donate(7)
    with reverts("escrow: not funded"):
        erc20.escrow.send.lock(key("a"), 8, sender=stranger)
    erc20.escrow.send.lock(key("a"), 7, sender=stranger)
    assert erc20.locked(stranger, "a") == 7
    assert erc20.locked(controller, "a") == 70
    assert erc20.escrow.call.tracked() == erc20.holding(erc20.escrow) == 77
