"""Attacks 1, 12, 17 and 23 as far as they concern Escrow: parties that cannot be paid, and starved withdrawals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kit.evm import NATIVE, Contract, Evm, Reverted, reverts
from tests.kit.vault import Vault, key, share, shares

REFUSE, BURN, REENTER = 1 << 0, 1 << 1, 1 << 2
FREEZE = 1 << 4
PARTIES = ("owner", "settler", "treasury", "submitter")


# ---- 1: a frozen party stops nobody's settlement ----


@pytest.mark.parametrize("frozen", PARTIES)
def test_frozen_payee__settlement__reaches_everyone(frozen: str) -> None:
    evm = Evm()
    token = evm.deploy("mocks/ZooToken", 6)
    vault = Vault(evm, evm.deploy("Escrow", token), token)
    controller = evm.account("controller")
    vault.lock(controller, "unit", 1_000)
    token.send.set_traits(FREEZE)
    token.send.freeze(evm.account(frozen), True)
    words = [share(evm.account(party), 100 * (n + 1)) for n, party in enumerate(PARTIES)]
    vault.escrow.send.split(key("unit"), words, sender=controller)
    assert vault.locked(controller, "unit") == 0
    for n, party in enumerate(PARTIES):
        account, amount = evm.account(party), 100 * (n + 1)
        if party == frozen:
            with reverts("token: frozen"):
                vault.escrow.send.withdraw(account, amount, sender=account)
            vault.escrow.send.withdraw(evm.account("elsewhere"), amount, sender=account)
            assert vault.holding(evm.account("elsewhere")) == amount
        else:
            vault.escrow.send.withdraw(account, amount, sender=account)
            assert vault.holding(account) == amount
    assert vault.escrow.call.tracked() == vault.holding(vault.escrow) == 0


# ---- 12: receivers of coin that revert, burn gas, or answer at great length ----


def _refusing(evm: Evm) -> Contract:
    receiver = evm.deploy("mocks/Receiver")
    receiver.send.set_mood(REFUSE)
    return receiver


def _burning(evm: Evm) -> Contract:
    receiver = evm.deploy("mocks/Receiver")
    receiver.send.set_mood(BURN)
    return receiver


def _long_refusal(evm: Evm) -> Contract:
    receiver = evm.deploy("mocks/LongReceiver")
    receiver.send.set_refuses(True)
    return receiver


@pytest.mark.parametrize("build", [_refusing, _burning, _long_refusal])
def test_hostile_receiver__split_and_others__do_not_notice(build: Callable[[Evm], Contract]) -> None:
    evm = Evm()
    vault = Vault.native(evm)
    receiver, honest, controller = build(evm), evm.account("honest"), evm.account("controller")
    vault.lock(controller, "unit", 1_000)
    vault.escrow.send.split(key("unit"), shares(share(receiver, 400), share(honest, 600)), sender=controller)
    vault.pay(honest, 50)
    before = evm.state_hash()
    with reverts("escrow: receiver refused"):
        vault.escrow.send.withdraw(receiver, 50, sender=honest)
    assert evm.state_hash() == before
    vault.escrow.send.withdraw(honest, 650, sender=honest)
    assert vault.credit(honest) == 0
    assert vault.credit(receiver) == vault.holding(vault.escrow) == 400


def _gas(act: Callable[[], object], evm: Evm) -> int:
    """Return the gas of a transaction that may revert."""
    try:
        act()
    except Reverted as failure:
        return failure.gas_used
    return evm.last_gas


@pytest.mark.parametrize("refuses", [False, True])
def test_return_bomb__answer__is_not_copied(refuses: bool) -> None:
    evm = Evm()
    vault = Vault.native(evm)
    receiver, payer = evm.deploy("mocks/LongReceiver"), evm.account("payer")
    receiver.send.set_refuses(refuses)
    vault.pay(payer, 100)
    # What the receiver's megabyte costs the receiver, measured without Escrow.
    alone = _gas(lambda: evm.raw_call(receiver, sender=payer), evm)
    through = _gas(lambda: vault.escrow.send.withdraw(receiver, 100, sender=payer), evm)
    assert vault.credit(payer) == (100 if refuses else 0)
    # One more copy of a megabyte would cost 3 gas a word and the quadratic part of memory again.
    once = 3 * 31_250 + 31_250**2 // 512
    assert through < alone + once // 2


# ---- 17: what a split takes really leaves ----


def test_slash_on_paper__value__moves(evm_asset: Vault) -> None:
    vault, evm = evm_asset, evm_asset.evm
    registry, reporter, dead = evm.account("registry"), evm.account("reporter"), evm.account("dead")
    vault.lock(registry, "stake", 1_000)
    before = vault.holding(reporter)
    vault.escrow.send.split(key("stake"), shares(share(reporter, 200), share(dead, 300)), sender=registry)
    vault.escrow.send.withdraw(reporter, 200, sender=reporter)
    assert vault.holding(reporter) - before == 200
    assert vault.holding(vault.escrow) == 800
    assert vault.locked(registry, "stake") == 500
    with reverts("escrow: short"):
        vault.escrow.send.split(key("stake"), shares(share(registry, 501)), sender=registry)
    vault.escrow.send.split(key("stake"), shares(share(registry, 500)), sender=registry)
    vault.escrow.send.withdraw(registry, 500, sender=registry)
    # What is left is what was burnt, and it is the dead account's.
    assert vault.holding(vault.escrow) == vault.credit(dead) == 300


@pytest.fixture(params=[Vault.native, Vault.erc20], ids=["native", "erc20"])
def evm_asset(request: pytest.FixtureRequest) -> Vault:
    vault: Vault = request.param(Evm())
    return vault


# ---- 23: a withdrawal with any amount of gas does all or nothing ----


@pytest.mark.parametrize("asset", ["native", "erc20", "wallet"])
def test_gas_starvation__withdrawal__is_whole_or_not_at_all(asset: str) -> None:
    evm = Evm()
    vault = Vault.erc20(evm) if asset == "erc20" else Vault.native(evm)
    account = evm.account("account")
    to = account
    if asset == "wallet":
        # A receiver that has something to do with the coin, so that the inner call can run out of gas by itself.
        wallet = evm.deploy("mocks/Receiver")
        wallet.send.prepare(vault.escrow, vault.escrow.encode("credit", account), 0, 1)
        wallet.send.set_mood(REENTER)
        to = wallet.address
    vault.pay(account, 100)
    held, before = vault.holding(to), evm.state_hash()
    with evm.isolated():
        most = vault.escrow.send.withdraw(to, 100, sender=account).warm_gas
        done = evm.state_hash()
    outcomes = []
    # Below 21,000 and calldata no transaction starts; above twice the need nothing changes any more.
    for gas in [*range(23_000, most + 6_000, 97), 2 * most]:
        with evm.isolated():
            try:
                vault.escrow.send.withdraw(to, 100, sender=account, gas=gas)
            except Reverted:
                assert evm.state_hash() == before
                outcomes.append(False)
            else:
                assert evm.state_hash() == done
                assert (vault.credit(account), vault.holding(to)) == (0, held + 100)
                outcomes.append(True)
    assert not outcomes[0] and outcomes[-1]
    assert outcomes == sorted(outcomes), "more gas never turns success into failure"


def test_burn__credit_of_the_dead_address__stays(evm_asset: Vault) -> None:
    """Zero is no place to burn to: nobody's share for it is refused, so a burn is always visible as a credit."""
    vault, controller = evm_asset, evm_asset.evm.account("controller")
    vault.lock(controller, "a", 10)
    with reverts("escrow: share for nobody"):
        vault.escrow.send.split(key("a"), shares(share(NATIVE, 10)), sender=controller)
