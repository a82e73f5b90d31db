"""A slot of the books once used never returns to zero, and its mark is never money."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hearth.protocol import words
from tests.kit.evm import Evm, Reverted, reverts
from tests.kit.vault import Vault, key, share, shares

USED = 1 << words.shift_of(words.BOOK, "used")
MOST = USED - 1


def slots(vault: Vault) -> dict[int, int]:
    """Return Escrow's storage words that are not zero, by slot, without the count of tokens."""
    held = vault.evm.state()[vault.escrow.address][3]
    return {slot: word for slot, word in held.items() if word >> 255}


def put(vault: Vault, old: int, new: int) -> None:
    """Let the one slot that holds a word hold another."""
    (slot,) = [slot for slot, word in vault.evm.state()[vault.escrow.address][3].items() if word == old]
    vault.evm.put_storage(vault.escrow, slot, new)


def test_used__lock_that_is_split_whole_and_credit_that_is_withdrawn__keep_their_mark_alone(
    vault: Vault, controller: str, stranger: str
) -> None:
    vault.lock(controller, "a", 100)
    assert list(slots(vault).values()) == [USED | 100] and vault.locked(controller, "a") == 100
    vault.escrow.send.split(key("a"), shares(share(stranger, 100)), sender=controller)
    assert sorted(slots(vault).values()) == [USED, USED | 100]
    assert (vault.locked(controller, "a"), vault.credit(stranger)) == (0, 100)
    vault.escrow.send.withdraw(stranger, 100, sender=stranger)
    assert sorted(slots(vault).values()) == [USED, USED]
    assert (vault.locked(controller, "a"), vault.credit(stranger)) == (0, 0)


def test_used__credit_that_is_locked_again__marks_both(vault: Vault, operator: str) -> None:
    vault.pay(operator, 5)
    before = len(slots(vault))
    vault.escrow.send.lock_credit(key("own"), 5, sender=operator)
    assert len(slots(vault)) == before + 1 and sorted(slots(vault).values())[-1] == USED | 5
    assert (vault.locked(operator, "own"), vault.credit(operator)) == (5, 0)


def test_used__nothing_split_or_withdrawn_of_what_was_never_used__marks_nothing(vault: Vault, stranger: str) -> None:
    vault.escrow.send.split(key("a"), shares(share(stranger, 0)), sender=stranger)
    vault.escrow.send.withdraw(stranger, 0, sender=stranger)
    assert slots(vault) == {}


SPENDS: dict[str, Callable[[Vault, str, int], object]] = {
    "split": lambda v, who, amount: v.escrow.send.split(key("a"), shares(share(who, amount)), sender=who),
    "withdraw": lambda v, who, amount: v.escrow.send.withdraw(who, amount, sender=who),
    "lock_credit": lambda v, who, amount: v.escrow.send.lock_credit(key("b"), amount, sender=who),
}


@pytest.mark.parametrize("name", SPENDS)
def test_used__the_mark_alone__pays_nothing(vault: Vault, stranger: str, name: str) -> None:
    """Everything else in Escrow is somebody's: the mark read as an amount would pay it out."""
    vault.lock("0x" + "c1" * 20, "a", 10**6)
    if name == "split":
        vault.lock(stranger, "a", 7)
    else:
        vault.pay(stranger, 7)
    SPENDS[name](vault, stranger, 7)
    for amount in (1, 7, 10**6):
        with reverts("escrow: short"):
            SPENDS[name](vault, stranger, amount)


def test_used__amounts_at_the_mark__are_refused_and_one_less_is_not(vault: Vault, controller: str) -> None:
    vault.lock(controller, "a", 1_234_567)
    put(vault, USED | 1_234_567, USED | (MOST - 5))
    assert vault.locked(controller, "a") == MOST - 5
    vault.lock(controller, "a", 5)
    assert vault.locked(controller, "a") == MOST
    with pytest.raises(Reverted):
        vault.lock(controller, "a", 1)
    assert vault.locked(controller, "a") == MOST


def test_used__credit_at_the_mark__is_refused_and_one_less_is_not(vault: Vault, controller: str, stranger: str) -> None:
    vault.pay(stranger, 1_234_567)
    put(vault, USED | 1_234_567, USED | (MOST - 5))
    vault.lock(controller, "a", 6)
    with pytest.raises(Reverted):
        vault.escrow.send.split(key("a"), shares(share(stranger, 6)), sender=controller)
    vault.escrow.send.split(key("a"), shares(share(stranger, 5)), sender=controller)
    assert (vault.credit(stranger), vault.locked(controller, "a")) == (MOST, 1)


@pytest.mark.parametrize("name", SPENDS)
def test_used__amount_with_the_highest_bit_below_the_mark__is_spent(vault: Vault, stranger: str, name: str) -> None:
    if name == "split":
        vault.lock(stranger, "a", 1_234_567)
    else:
        vault.pay(stranger, 1_234_567)
    put(vault, USED | 1_234_567, USED | 1 << 254)
    SPENDS[name](vault, stranger, 1)
    left = vault.locked(stranger, "a") if name == "split" else vault.credit(stranger)
    assert left == (1 << 254) - 1


def test_used__second_lock_under_a_key__costs_no_new_slot() -> None:
    vault = Vault.native(Evm(exact_gas=True))
    controller, stranger = vault.evm.account("controller"), vault.evm.account("stranger")
    first = vault.lock(controller, "a", 100).gas_used
    vault.escrow.send.split(key("a"), shares(share(stranger, 100)), sender=controller)
    assert first - vault.lock(controller, "a", 100).gas_used == 17_100
