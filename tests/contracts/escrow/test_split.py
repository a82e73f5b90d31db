"""Escrow.split: a controller turns its lock into credits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.evm import NATIVE, Evm, Reverted, reverts
from tests.kit.vault import LIMIT, Vault, key, share, shares


def test_split__four_shares__credits_each_and_reduces_the_lock(vault: Vault, controller: str) -> None:
    vault.lock(controller, "a", 100)
    who = [vault.evm.account(f"payee {n}") for n in range(4)]
    words = [share(account, amount) for account, amount in zip(who, (1, 20, 30, 40), strict=True)]
    receipt = vault.escrow.send.split(key("a"), words, sender=controller)
    assert [vault.credit(account) for account in who] == [1, 20, 30, 40]
    assert vault.locked(controller, "a") == 9
    assert receipt.event("Split") == {"controller": controller, "key": key("a"), "shares": words}
    assert [log.name for log in receipt.logs] == ["Split"]
    assert vault.holding(vault.escrow) == 100


def test_split__account_named_twice__gets_both_shares(vault: Vault, controller: str, operator: str) -> None:
    vault.lock(controller, "a", 100)
    words = shares(share(operator, 10), share(operator, 5), share(operator, 1))
    vault.escrow.send.split(key("a"), words, sender=controller)
    assert vault.credit(operator) == 16
    assert vault.locked(controller, "a") == 84


def test_split__on_top_of_a_credit__adds_up(vault: Vault, controller: str, operator: str) -> None:
    vault.pay(operator, 7)
    vault.lock(controller, "a", 100)
    vault.escrow.send.split(key("a"), shares(share(operator, 10)), sender=controller)
    assert vault.credit(operator) == 17


def test_split__controller_itself__is_credited(vault: Vault, controller: str) -> None:
    vault.lock(controller, "a", 100)
    vault.escrow.send.split(key("a"), shares(share(controller, 100)), sender=controller)
    assert (vault.credit(controller), vault.locked(controller, "a")) == (100, 0)


@pytest.mark.parametrize("position", range(4))
def test_split__any_position__is_read(vault: Vault, controller: str, operator: str, position: int) -> None:
    vault.lock(controller, "a", 100)
    words = [0] * 4
    words[position] = share(operator, 33)
    vault.escrow.send.split(key("a"), words, sender=controller)
    assert vault.credit(operator) == 33


@pytest.mark.parametrize(("first", "second"), [(100, 0), (0, 100), (99, 1), (50, 49)])
def test_split__up_to_the_lock__succeeds(
    vault: Vault, controller: str, operator: str, stranger: str, first: int, second: int
) -> None:
    vault.lock(controller, "a", 100)
    vault.escrow.send.split(key("a"), shares(share(operator, first), share(stranger, second)), sender=controller)
    assert [vault.credit(operator), vault.credit(stranger)] == [first, second]
    assert vault.locked(controller, "a") == 100 - first - second


@pytest.mark.parametrize(("first", "second"), [(101, 0), (0, 101), (100, 1), (51, 50), (LIMIT - 1, LIMIT - 1)])
def test_split__above_the_lock__reverts(
    vault: Vault, controller: str, operator: str, stranger: str, first: int, second: int
) -> None:
    vault.lock(controller, "a", 100)
    vault.lock(controller, "b", 1_000)
    vault.lock(stranger, "a", 1_000)
    before = vault.evm.state_hash()
    with reverts("escrow: short"):
        vault.escrow.send.split(key("a"), shares(share(operator, first), share(stranger, second)), sender=controller)
    assert vault.evm.state_hash() == before


def test_split__lock_of_another_controller__reverts(vault: Vault, controller: str, stranger: str) -> None:
    vault.lock(controller, "a", 100)
    with reverts("escrow: short"):
        vault.escrow.send.split(key("a"), shares(share(stranger, 1)), sender=stranger)


def test_split__nothing__changes_nothing(vault: Vault, controller: str) -> None:
    receipt = vault.escrow.send.split(key("a"), [0] * 4, sender=controller)
    assert receipt.event("Split")["shares"] == [0] * 4


def test_split__nothing_for_anyone__is_no_share(vault: Vault, controller: str, operator: str) -> None:
    vault.lock(controller, "a", 100)
    words = shares(share(operator, 0), share(NATIVE, 0), share(operator, 2))
    vault.escrow.send.split(key("a"), words, sender=controller)
    assert vault.credit(operator) == 2
    assert vault.locked(controller, "a") == 98


@pytest.mark.parametrize("position", range(4))
def test_split__share_for_nobody__reverts(vault: Vault, controller: str, position: int) -> None:
    vault.lock(controller, "a", 100)
    words = [0] * 4
    words[position] = share(NATIVE, 1)
    with reverts("escrow: share for nobody"):
        vault.escrow.send.split(key("a"), words, sender=controller)


def test_split__with_value__reverts(vault: Vault, controller: str, operator: str) -> None:
    vault.lock(controller, "a", 100)
    with pytest.raises(Reverted):
        vault.escrow.send.split(key("a"), shares(share(operator, 1)), sender=controller, value=1)


AMOUNTS = st.one_of(st.integers(0, 3), st.integers(0, LIMIT - 1), st.just(LIMIT - 1))


@given(
    held=st.lists(AMOUNTS, min_size=1, max_size=4),
    parts=st.lists(st.tuples(st.integers(0, 2), AMOUNTS), max_size=4),
)
def test_split__any_shares__pays_all_or_nothing(held: list[int], parts: list[tuple[int, int]]) -> None:
    evm = Evm()
    vault = Vault.native(evm)
    controller = evm.account("controller")
    payees = [evm.account(f"payee {n}") for n in range(3)]
    for amount in held:
        vault.lock(controller, "a", amount)
    words = shares(*[share(payees[who], amount) for who, amount in parts])
    total = sum(amount for _, amount in parts)
    if total > sum(held):
        with reverts("escrow: short"):
            vault.escrow.send.split(key("a"), words, sender=controller)
        total, parts = 0, []
    else:
        vault.escrow.send.split(key("a"), words, sender=controller)
    assert vault.locked(controller, "a") == sum(held) - total
    for n, payee in enumerate(payees):
        assert vault.credit(payee) == sum(amount for who, amount in parts if who == n)
