"""The test machine itself: gas as on a chain, undone histories, decoded results."""

from __future__ import annotations

import pytest

from tests.kit.evm import NATIVE, Evm, Reverted, reverts
from tests.kit.vault import key, share, shares

COUNTER = """
# pragma version 0.4.3
struct Point:
    block: uint256
    who: address
event Counted:
    by: indexed(address)
    count: uint256
    at: uint256
count: public(uint256)
started: transient(bool)
@external
@payable
def add(by: uint256, times: uint256 = 1) -> uint256:
    assert by != 13, "counter: unlucky"
    assert not self.started, "counter: twice in one transaction"
    self.started = True
    self.count += by * times
    log Counted(by=msg.sender, count=self.count, at=block.timestamp)
    return self.count
@view
@external
def where() -> (Point, uint256[2]):
    return Point(block=block.number, who=self), [block.timestamp, chain.id]
@external
def spin():
    for i: uint256 in range(10**9):
        self.count = i
"""


@pytest.fixture(params=[False, True], ids=["warm", "exact"])
def evm(request: pytest.FixtureRequest) -> Evm:
    return Evm(exact_gas=request.param)


def test_send__default__returns_value_and_log(evm: Evm) -> None:
    counter, alice = evm.deploy(COUNTER), evm.account("alice")
    receipt = counter.send.add(5, sender=alice, value=7)
    assert receipt.value == 5 and evm.balance(counter) == 7
    assert receipt.event("Counted") == {"by": alice, "count": 5, "at": evm.now}
    assert counter.send.add(2, 3).value == counter.call.count() == evm.storage_at(counter, 0) == 11


def test_call__state__is_kept(evm: Evm) -> None:
    counter = evm.deploy(COUNTER)
    before = evm.state_hash()
    assert counter.call.add(5) == 5
    point, (at, chain) = counter.call.where()
    assert (point.block, point.who, at, chain) == (evm.block, counter.address, evm.now, 31337)
    assert counter.call.where(at=evm.now + 9)[1][0] == evm.now + 9
    assert evm.state_hash() == before
    counter.send.add(1)
    assert evm.state_hash() != before


def test_revert__each_kind__is_named_and_changes_nothing(evm: Evm) -> None:
    counter = evm.deploy(COUNTER)
    before = evm.state_hash()
    with reverts("counter: unlucky"):
        counter.send.add(13)
    counter.send.add(1)
    with evm.isolated(), reverts(""):
        counter.send.add(2**255, 2)
    with pytest.raises(Reverted) as caught:
        counter.send.spin(gas=60_000)
    assert caught.value.reason.startswith("halt: OutOfGas")
    with pytest.raises(AssertionError), reverts("counter: other words"):
        counter.send.add(13)
    assert counter.call.count() == 1 and evm.state_hash() != before


def test_isolated__nested__is_undone(evm: Evm) -> None:
    counter = evm.deploy(COUNTER)
    counter.send.add(1)
    before, now = evm.state_hash(), evm.now
    with evm.isolated():
        evm.warp(100)
        counter.send.add(1)
        with evm.isolated():
            counter.send.add(40)
            other = evm.deploy(COUNTER)
            assert counter.call.count() == 42 and other.call.count() == 0
        assert counter.call.count() == 2
        counter.send.add(1)
        assert counter.call.count() == 3
    assert (counter.call.count(), evm.state_hash(), evm.now) == (1, before, now)


def test_create_address__predicted__is_where_it_lands(evm: Evm) -> None:
    first, second = evm.create_address(evm.deployer), evm.create_address(evm.deployer, ahead=1)
    assert evm.deploy(COUNTER).address == first
    assert evm.deploy("Escrow", NATIVE).address == second
    assert len(evm.code_at(second)) > len(evm.code_at(first)) > 0 == len(evm.code_at(evm.deployer))


def test_gas_used__warm_machine__is_refused() -> None:
    receipt = Evm().deploy(COUNTER).send.add(1)
    assert receipt.warm_gas > 21_000
    with pytest.raises(RuntimeError, match="exact_gas"):
        _ = receipt.gas_used


def test_gas_used__exact_machine__charges_as_a_chain_does() -> None:
    """Cold words, refunds and intrinsic gas are all in: differences that EIP-2929 and EIP-3529 fix."""
    evm = Evm(exact_gas=True)
    escrow = evm.deploy("Escrow", NATIVE)
    controller, account = evm.account("controller"), evm.account("account")
    first = escrow.send.lock(key("a"), 10**18, sender=controller, value=10**18).gas_used
    again = escrow.send.lock(key("a"), 10**18, sender=controller, value=10**18).gas_used
    # A first write of a word costs 20,000 where a change costs 2,900; both are cold.
    assert first - again == 17_100
    word = shares(share(account, 10**18))
    opened = escrow.send.split(key("a"), word, sender=controller).gas_used
    added = escrow.send.split(key("a"), word, sender=controller).gas_used
    assert opened - added == 17_100
    part = escrow.send.withdraw(account, 10**18, sender=account).gas_used
    whole = escrow.send.withdraw(account, 10**18, sender=account).gas_used
    assert part - whole == 0
    # No word of Escrow returns to zero; an answer that a registry forgets does, and earns back 4,800.
    token = evm.deploy("mocks/MockToken", "Test Dollar", "TUSD", 18)
    token.send.mint(controller, 9)
    token.send.mint(account, 9)
    part = token.send.transfer(account, 4, sender=controller).gas_used
    whole = token.send.transfer(account, 5, sender=controller).gas_used
    assert part - whole == 4_800
