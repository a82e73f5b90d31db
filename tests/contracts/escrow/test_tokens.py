"""Escrow on awkward tokens: what each does to deposits, and that none stops the books.

The twelve kinds: fee, no answer, false answer, refusing, freezing, pausable, rebasing up and down, hooks, gas burner,
long answer, refusing nothing, and 0, 2 or 36 decimals. Hooks that come back into Escrow: tests/attacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.kit.evm import Contract, Evm, Reverted, reverts
from tests.kit.vault import LIMIT, Vault, key, share, shares

FEE, SILENT, LIE, REVERT, FREEZE, PAUSE, HOOK, BURN, NO_ZERO = (1 << n for n in range(9))


@dataclass(frozen=True)
class Zoo:
    """An Escrow of an awkward token that was plain while the controller locked 500 and the operator got 500."""

    vault: Vault
    token: Contract
    controller: str
    operator: str
    payer: str

    def transfer(self, amount: int) -> None:
        """Move the payer's tokens to Escrow, as a controller would before it locks."""
        # The answer has no fixed shape here, so it is not decoded.
        self.vault.evm.raw_call(self.token, self.token.encode("transfer", self.vault.escrow, amount), sender=self.payer)

    def lock(self, amount: int) -> None:
        self.vault.escrow.send.lock(key("new"), amount, sender=self.controller)

    def withdraw(self, amount: int, to: str | None = None) -> None:
        self.vault.escrow.send.withdraw(to or self.operator, amount, sender=self.operator)

    def books(self) -> int:
        """Return all that Escrow owes."""
        vault = self.vault
        locks = vault.locked(self.controller, "a") + vault.locked(self.controller, "new")
        return locks + vault.locked(self.operator, "own") + vault.credit(self.operator)

    def move_within(self) -> None:
        """Do what the market does with locked money: nothing here may depend on the token."""
        escrow, before = self.vault.escrow, self.vault.credit(self.operator)
        escrow.send.split(key("a"), shares(share(self.operator, 30)), sender=self.controller)
        escrow.send.lock_credit(key("own"), 10, sender=self.operator)
        assert self.vault.credit(self.operator) == before + 20
        assert self.books() == escrow.call.tracked()


@pytest.fixture
def zoo(evm: Evm, controller: str, operator: str) -> Iterator[Zoo]:
    token = evm.deploy("mocks/ZooToken", 18)
    zoo = Zoo(Vault(evm, evm.deploy("Escrow", token), token), token, controller, operator, evm.account("payer"))
    token.send.mint(zoo.payer, 10_000)
    zoo.transfer(1_000)
    zoo.vault.escrow.send.lock(key("a"), 1_000, sender=controller)
    zoo.vault.escrow.send.split(key("a"), shares(share(operator, 500)), sender=controller)
    yield zoo
    # Whatever a test did, the count is that of the books, and moving within them needs no token.
    zoo.move_within()


@pytest.mark.parametrize("fee_bps", [2, 100, 10_000])
def test_fee__deposit_of_less_than_named__reverts(zoo: Zoo, fee_bps: int) -> None:
    zoo.token.send.set_traits(FEE)
    zoo.token.send.set_fee(fee_bps)
    zoo.transfer(9_000)
    received = 9_000 - 9_000 * fee_bps // 10_000
    assert received < 9_000 and zoo.vault.holding(zoo.vault.escrow) == 1_000 + received
    with reverts("escrow: not funded"):
        zoo.lock(9_000)
    with reverts("escrow: not funded"):
        zoo.lock(received + 1)
    zoo.lock(received)


def test_fee__on_the_way_out__is_the_receivers(zoo: Zoo) -> None:
    zoo.token.send.set_traits(FEE)
    zoo.token.send.set_fee(100)
    zoo.withdraw(200)
    assert zoo.vault.holding(zoo.operator) == 198
    assert zoo.vault.holding(zoo.vault.escrow) == zoo.books() == 800


def test_silent__deposit_and_withdrawal__succeed(zoo: Zoo) -> None:
    zoo.token.send.set_traits(SILENT)
    zoo.transfer(7)
    zoo.lock(7)
    zoo.withdraw(200)
    assert zoo.vault.holding(zoo.operator) == 200


def test_lie__deposit__reverts(zoo: Zoo) -> None:
    zoo.token.send.set_traits(LIE)
    zoo.transfer(7)
    with reverts("escrow: not funded"):
        zoo.lock(7)


def test_lie__withdrawal__reverts_and_keeps_the_credit(zoo: Zoo) -> None:
    zoo.token.send.set_traits(LIE)
    before = zoo.vault.evm.state_hash()
    with reverts("escrow: token refused"):
        zoo.withdraw(200)
    assert zoo.vault.evm.state_hash() == before
    zoo.token.send.set_traits(0)
    zoo.withdraw(500)
    assert zoo.vault.holding(zoo.operator) == 500


@pytest.mark.parametrize(("trait", "reason"), [(REVERT, "token: refused"), (PAUSE, "token: paused")])
def test_refusing_or_paused__withdrawal__waits(zoo: Zoo, trait: int, reason: str) -> None:
    zoo.token.send.set_traits(trait)
    before = zoo.vault.evm.state_hash()
    with reverts(reason):
        zoo.withdraw(200)
    with reverts(reason):
        zoo.transfer(7)
    with reverts("escrow: not funded"):
        zoo.lock(7)
    assert zoo.vault.evm.state_hash() == before
    zoo.move_within()
    zoo.token.send.set_traits(0)
    zoo.withdraw(520)
    assert zoo.vault.holding(zoo.operator) == 520


def test_frozen__account__withdraws_elsewhere(zoo: Zoo, stranger: str) -> None:
    zoo.token.send.set_traits(FREEZE)
    zoo.token.send.freeze(zoo.operator, True)
    with reverts("token: frozen"):
        zoo.withdraw(200)
    zoo.withdraw(200, to=stranger)
    assert zoo.vault.holding(stranger) == 200


def test_frozen__escrow__withdraws_after_the_thaw(zoo: Zoo) -> None:
    zoo.token.send.set_traits(FREEZE)
    zoo.token.send.freeze(zoo.vault.escrow, True)
    with reverts("token: frozen"):
        zoo.withdraw(200)
    zoo.move_within()
    zoo.token.send.freeze(zoo.vault.escrow, False)
    zoo.withdraw(200)
    assert zoo.vault.holding(zoo.operator) == 200


def test_rebase_up__growth__is_a_donation(zoo: Zoo) -> None:
    zoo.token.send.rebase(3, 2)
    assert zoo.vault.holding(zoo.vault.escrow) == 1_500
    with reverts("escrow: not funded"):
        zoo.lock(501)
    zoo.lock(500)
    zoo.withdraw(500)


def test_rebase_down__deposits_stop_until_the_gap_is_filled(zoo: Zoo) -> None:
    zoo.token.send.rebase(1, 2)
    assert zoo.vault.holding(zoo.vault.escrow) == 500
    with reverts("escrow: not funded"):
        zoo.lock(0)
    zoo.transfer(499)
    with reverts("escrow: not funded"):
        zoo.lock(0)
    zoo.transfer(1)
    zoo.lock(0)
    with reverts("escrow: not funded"):
        zoo.lock(1)


def test_gas_burner__withdrawal__fails_whole(zoo: Zoo) -> None:
    zoo.token.send.set_traits(BURN)
    before = zoo.vault.evm.state_hash()
    with pytest.raises(Reverted):
        zoo.withdraw(200)
    assert zoo.vault.evm.state_hash() == before
    zoo.move_within()


def test_refusing_nothing__only_a_withdrawal_of_nothing_fails(zoo: Zoo) -> None:
    zoo.token.send.set_traits(NO_ZERO)
    with reverts("token: nothing to move"):
        zoo.withdraw(0)
    zoo.lock(0)
    zoo.withdraw(1)


def test_hooks__harmless_ones__change_nothing(zoo: Zoo) -> None:
    zoo.token.send.set_traits(HOOK)
    zoo.token.send.set_hooked(zoo.vault.evm.deploy("mocks/Receiver"))
    zoo.transfer(7)
    zoo.lock(7)
    zoo.withdraw(200)
    assert zoo.vault.holding(zoo.operator) == 200


def test_long_answer__withdrawal__is_paid_and_not_copied(evm: Evm, operator: str) -> None:
    token = evm.deploy("mocks/LongToken")
    vault = Vault(evm, evm.deploy("Escrow", token), token)
    vault.pay(operator, 100)
    receipt = vault.escrow.send.withdraw(operator, 100, sender=operator)
    assert vault.holding(operator) == 100
    # The token's own memory for the answer costs 3 * 31,250 + 31,250**2 / 512 gas and is filled twice; a caller that
    # copied it would pay as much once more.
    once = 3 * 31_250 + 31_250**2 // 512
    assert receipt.warm_gas < _cost_of_the_answer(evm, token) + once // 2


def _cost_of_the_answer(evm: Evm, token: Contract) -> int:
    """Measure a transfer of the token by itself."""
    payer = evm.account("payer")
    token.send.mint(payer, 1)
    receipt = evm.transact(
        token, evm.contract_at("mocks/MockToken", token.address).function("transfer"), (payer, 1), sender=payer
    )
    return receipt.warm_gas


@pytest.mark.parametrize("decimals", [0, 2, 36])
@pytest.mark.parametrize("amount", [1, 10**28, LIMIT - 1])
def test_decimals__any__amounts_are_base_units(evm: Evm, operator: str, decimals: int, amount: int) -> None:
    vault = Vault.erc20(evm, decimals)
    vault.pay(operator, amount)
    vault.escrow.send.withdraw(operator, amount, sender=operator)
    assert vault.holding(operator) == amount
    assert vault.escrow.call.tracked() == 0


def test_decimals__supply_above_96_bits__does_not_disturb(evm: Evm, operator: str) -> None:
    vault = Vault.erc20(evm)
    vault.donate(2**255)
    vault.pay(operator, 100)
    vault.escrow.send.withdraw(operator, 100, sender=operator)
    assert vault.holding(operator) == 100
