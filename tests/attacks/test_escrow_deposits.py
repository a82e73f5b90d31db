"""Attacks 5 and 36: deposits of less than is named, and money that comes without a call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.evm import Evm, Reverted, reverts
from tests.kit.vault import Vault, key, share, shares

FEE = 1 << 0
VICTIMS = 1_000


# ---- 5: under-funded deposits ----


@given(fee_bps=st.integers(0, 10_000), sent=st.integers(0, 10**9), off=st.integers(-2, 2))
def test_fee_on_transfer__credited__is_what_arrived_or_nothing(fee_bps: int, sent: int, off: int) -> None:
    evm = Evm()
    token = evm.deploy("mocks/ZooToken", 18)
    vault = Vault(evm, evm.deploy("Escrow", token), token)
    victim, attacker = evm.account("victim"), evm.account("attacker")
    vault.lock(victim, "a", VICTIMS)
    token.send.set_traits(FEE)
    token.send.set_fee(fee_bps)
    token.send.mint(attacker, sent)
    evm.raw_call(token, token.encode("transfer", vault.escrow, sent), sender=attacker)
    arrived = vault.holding(vault.escrow) - VICTIMS
    assert arrived == sent - sent * fee_bps // 10_000
    # What was sent, and one or two around what arrived.
    for amount in {sent, max(arrived + off, 0)}:
        with evm.isolated():
            if amount <= arrived:
                vault.escrow.send.lock(key("b"), amount, sender=attacker)
                assert vault.locked(attacker, "b") == amount
            else:
                with reverts("escrow: not funded"):
                    vault.escrow.send.lock(key("b"), amount, sender=attacker)
            assert vault.holding(vault.escrow) >= vault.escrow.call.tracked()


def test_empty_deposit__money_of_others__cannot_be_locked() -> None:
    evm = Evm()
    vault = Vault.erc20(evm)
    victim, attacker = evm.account("victim"), evm.account("attacker")
    vault.lock(victim, "a", VICTIMS)
    vault.pay(victim, VICTIMS)
    for amount in (1, VICTIMS, 2 * VICTIMS):
        with reverts("escrow: not funded"):
            vault.escrow.send.lock(key("b"), amount, sender=attacker)


def test_empty_deposit__native_money_of_others__cannot_be_locked() -> None:
    evm = Evm()
    vault = Vault.native(evm)
    victim, attacker = evm.account("victim"), evm.account("attacker")
    vault.lock(victim, "a", VICTIMS)
    for amount, value in ((1, 0), (VICTIMS, 1), (2, 1)):
        with reverts("escrow: wrong value"):
            vault.escrow.send.lock(key("b"), amount, sender=attacker, value=value)


def test_one_deposit_locked_twice__second__reverts() -> None:
    evm = Evm()
    vault = Vault.erc20(evm)
    attacker = evm.account("attacker")
    vault.lock(evm.account("victim"), "a", VICTIMS)
    vault.lock(attacker, "b", 10)
    with reverts("escrow: not funded"):
        vault.escrow.send.lock(key("b"), 10, sender=attacker)


# ---- 36: donations and forced coin ----


@pytest.fixture(params=[Vault.native, Vault.erc20], ids=["native", "erc20"])
def vault(request: pytest.FixtureRequest) -> Vault:
    built: Vault = request.param(Evm())
    return built


@pytest.mark.parametrize("amount", [1, 10**18])
def test_donation__all_functions__work_as_before(vault: Vault, amount: int) -> None:
    evm, escrow = vault.evm, vault.escrow
    owner, stranger = evm.account("owner"), evm.account("stranger")
    vault.lock(owner, "a", 100)
    vault.donate(amount)
    assert vault.holding(escrow) == 100 + amount
    assert vault.locked(owner, "a") == 100
    vault.lock(owner, "a", 20)
    escrow.send.split(key("a"), shares(share(owner, 70)), sender=owner)
    escrow.send.lock_credit(key("b"), 30, sender=owner)
    held = vault.holding(owner)
    escrow.send.withdraw(owner, 40, sender=owner)
    assert vault.holding(owner) == held + 40
    for account in (owner, stranger):
        with reverts("escrow: short"):
            escrow.send.withdraw(account, 1, sender=account)
    assert vault.holding(escrow) == 80 + amount


def test_forced_coin__nobody__can_claim_it() -> None:
    evm = Evm()
    vault = Vault.native(evm)
    attacker = evm.account("attacker")
    vault.donate(500)
    # A block reward adds to the balance in the same way.
    evm.set_balance(vault.escrow, evm.balance(vault.escrow) + 500)
    for value in (0, 1):
        with reverts("escrow: wrong value"):
            vault.escrow.send.lock(key("a"), 500, sender=attacker, value=value)
    vault.lock(attacker, "a", 3)
    vault.escrow.send.split(key("a"), shares(share(attacker, 3)), sender=attacker)
    vault.escrow.send.withdraw(attacker, 3, sender=attacker)
    assert vault.holding(vault.escrow) == 1_000


def test_forced_coin__on_an_erc20_escrow__changes_nothing() -> None:
    evm = Evm()
    vault = Vault.erc20(evm)
    evm.set_balance(vault.escrow, 10**18)
    with reverts("escrow: not funded"):
        vault.escrow.send.lock(key("a"), 1, sender=evm.account("attacker"))
    with pytest.raises(Reverted):
        evm.raw_call(vault.escrow, sender=evm.account("attacker"), value=1)
    vault.lock(evm.account("owner"), "a", 5)
    assert vault.escrow.call.tracked() == 5


def test_donated_tokens__first_to_lock__has_them_once() -> None:
    evm = Evm()
    vault = Vault.erc20(evm)
    vault.lock(evm.account("owner"), "a", 100)
    vault.donate(7)
    vault.escrow.send.lock(key("x"), 7, sender=evm.account("first"))
    with reverts("escrow: not funded"):
        vault.escrow.send.lock(key("x"), 1, sender=evm.account("second"))
    assert vault.locked(evm.account("owner"), "a") == 100
