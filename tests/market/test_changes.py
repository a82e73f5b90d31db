"""What the library knows of the Steward's changes is what the contract does."""

from __future__ import annotations

import re

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from hearth.market.changes import DROPPED, EXECUTED, LIFE, Change, ChangeOp
from hearth.protocol.units import Asset
from tests.kit.evm import ROOT

SOURCE = (ROOT / "contracts" / "Steward.vy").read_text(encoding="utf-8")
ETH = Asset("ETH", 18)


def constant(name: str) -> int:
    found = re.search(rf"^{name}: constant\(uint256\) = ([0-9* ]+?)(?:  #.*)?$", SOURCE, re.M)
    assert found is not None, name
    product = 1
    for factor in found[1].split("*"):
        product *= int(factor)
    return product


def test_changes__numbers__are_the_contracts() -> None:
    assert {op.name: int(op) for op in ChangeOp} == {op.name: constant(op.name) for op in ChangeOp}
    assert (constant("LIFE"), constant("DROPPED"), constant("EXECUTED")) == (LIFE, DROPPED, EXECUTED)
    assert f"op > {max(ChangeOp).name}" in SOURCE and "op > SET_MINIMUM_STAKE and word" in SOURCE
    assert [op for op in ChangeOp if not op.names_an_address] == [ChangeOp.SET_POLICY, ChangeOp.SET_MINIMUM_STAKE]


@pytest.mark.parametrize("op", ChangeOp)
def test_id__of_each_operation__is_the_hash_of_three_words(op: ChangeOp) -> None:
    change = Change(op, 2**160 - 1, 2**256 - 1)
    assert change.id == keccak(encode(["uint256"] * 3, [int(op), 2**160 - 1, 2**256 - 1]))
    assert "keccak256(abi_encode(op, word, salt))" in SOURCE


@pytest.mark.parametrize(("op", "word", "salt"), [(3, 2**160, 0), (6, 2**256 - 1, 0), (1, 2**256, 0), (2, 1, 2**256)])
def test_change__that_no_steward_queues__is_refused(op: int, word: int, salt: int) -> None:
    with pytest.raises(ValueError):
        Change(ChangeOp(op), word, salt)


def test_in_words__each_operation__says_what_it_does() -> None:
    address = "0x" + "ab" * 20
    said = {op: Change(op, int(address, 16) if op.names_an_address else 2 * 10**18, 0).in_words(ETH) for op in ChangeOp}
    assert said[ChangeOp.SET_MINIMUM_STAKE] == "new nodes stake at least 2 ETH"
    assert said[ChangeOp.OFFER_POSTS] == f"the governor's rights over posts are offered to {address}"
    assert said[ChangeOp.OFFER_REGISTRATIONS] == f"the governor's rights over registrations are offered to {address}"
    assert said[ChangeOp.OFFER_COUNCIL] == f"the council's seat is offered to {address}"
    assert said[ChangeOp.SEAT_GUARDIAN] == f"{address} is the guardian"
    assert Change(ChangeOp.SEAT_GUARDIAN, 0, 0).in_words(ETH) == "nobody is the guardian"
    assert len(set(said.values())) == len(ChangeOp)
