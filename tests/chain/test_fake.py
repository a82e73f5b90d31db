"""The scripted chain behaves as a node does: the same checks run on it and on a real anvil."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from eth_account import Account
from eth_utils.address import to_checksum_address

from hearth.base.errors import ChainError, FundsError, HearthError, RefusedError
from hearth.chain.port import Block, Call, ChainPort, refused
from hearth.chain.rpc import RpcChain
from hearth.local import devnet
from tests.kit.anvil import bare_chain, need_anvil
from tests.kit.fake_chain import Event, FakeChain, Fault, bloom_of, decode_raw

ACCOUNT = devnet.account(0)
ADDRESS = ACCOUNT.address.lower()
TO = "0x" + "fa" * 20
GWEI = 10**9
ETHER = 10**18


class Node:
    """A chain that mines on demand, scripted or real."""

    port: ChainPort

    def mine(self, count: int = 1) -> None:
        raise NotImplementedError

    def sign(
        self, nonce: int, *, max_fee: int = 20 * GWEI, tip: int = GWEI, value: int = 1, key: Any = ACCOUNT
    ) -> bytes:
        fields = {
            "type": 2,
            "chainId": 31337,
            "nonce": nonce,
            "gas": 50_000,
            "maxFeePerGas": max_fee,
            "maxPriorityFeePerGas": tip,
            "value": value,
            "to": to_checksum_address(TO),
        }
        return bytes(key.sign_transaction(fields).raw_transaction)


class Fake(Node):
    def __init__(self) -> None:
        self.chain = FakeChain()
        self.chain.set_balance(ADDRESS, 10_000 * ETHER)
        self.port = self.chain

    def mine(self, count: int = 1) -> None:
        self.chain.mine(count=count)


class Real(Node):
    def __init__(self, url: str) -> None:
        self.web3 = RpcChain([url], timeout=10, attempts=1)
        self.port = self.web3

    def mine(self, count: int = 1) -> None:
        self.web3.rpc("anvil_mine", hex(count))


@pytest.fixture(params=["fake", pytest.param("anvil", marks=pytest.mark.e2e)])
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    if request.param == "fake":
        yield Fake()
        return
    need_anvil()
    with bare_chain("--no-mining") as url:
        yield Real(url)


def code_of(raw: bytes, node: Node) -> str:
    """Return the error code that sending earns."""
    with pytest.raises(HearthError) as caught:
        node.port.send_raw(raw)
    return caught.value.code


def test_conformance__blocks__are_linked_and_found_by_number_hash_and_tag(node: Node) -> None:
    node.mine(3)
    head = node.port.head()
    assert head.number == 3 and head == node.port.block(3) == node.port.block(head.hash) == node.port.block("latest")
    before = node.port.block(2)
    assert before is not None and head.parent_hash == before.hash and head.timestamp >= before.timestamp
    assert node.port.block(99) is None and node.port.block(b"\x01" * 32) is None
    genesis = node.port.block(0)
    assert genesis is not None and node.port.genesis_hash() == genesis.hash
    assert node.port.chain_id() == 31337


def test_conformance__a_transfer__from_pool_to_receipt(node: Node) -> None:
    raw = node.sign(0, value=7)
    tx_hash = node.port.send_raw(raw)
    assert tx_hash == decode_raw(raw).hash
    assert node.port.receipt(tx_hash) is None
    assert (node.port.nonce(ADDRESS), node.port.nonce(ADDRESS, pending=True)) == (0, 1)
    waiting = node.port.transaction(tx_hash)
    assert waiting is not None and (waiting.block_number, waiting.nonce, waiting.to) == (None, 0, TO)
    node.mine()
    receipt, mined = node.port.receipt(tx_hash), node.port.transaction(tx_hash)
    assert receipt is not None and mined is not None
    assert receipt.ok and receipt.sender == ADDRESS and receipt.to == TO and receipt.block_number == 1
    assert mined.block_hash == receipt.block_hash == node.port.head().hash
    assert (mined.value, mined.max_fee, mined.priority_fee) == (7, 20 * GWEI, GWEI)
    assert node.port.nonce(ADDRESS) == 1 and node.port.balance(TO) == 7
    assert node.port.balance(ADDRESS) == 10_000 * ETHER - 7 - receipt.fee


def test_conformance__what_a_pool_refuses__has_the_same_code(node: Node) -> None:
    first = node.sign(0)
    node.port.send_raw(first)
    assert code_of(first, node) == "ALREADY_KNOWN"
    assert code_of(node.sign(0, max_fee=19 * GWEI), node) == "UNDERPRICED"
    better = node.sign(0, max_fee=23 * GWEI, tip=2 * GWEI)
    node.port.send_raw(better)
    node.mine()
    assert node.port.receipt(decode_raw(first).hash) is None
    assert node.port.receipt(decode_raw(better).hash) is not None
    assert code_of(node.sign(0, value=9), node) == "NONCE_TOO_LOW"
    poor = Account.from_key(b"\x42" * 32)
    assert code_of(node.sign(0, key=poor), node) == "FUNDS_SHORT"


def test_conformance__a_gap_in_the_nonces__waits(node: Node) -> None:
    later = node.port.send_raw(node.sign(1))
    node.mine()
    assert node.port.receipt(later) is None and node.port.nonce(ADDRESS, pending=True) == 0
    node.port.send_raw(node.sign(0))
    node.mine()
    assert node.port.receipt(later) is not None and node.port.nonce(ADDRESS) == 2


def test_conformance__reads_of_what_is_not_there__are_empty(node: Node) -> None:
    assert node.port.code(TO) == b"" and node.port.balance(TO) == 0
    assert node.port.call(Call(TO, b"\x01\x02\x03\x04")) == b""
    assert node.port.logs([TO], from_block=0, to_block=0) == []
    with pytest.raises(ChainError) as caught:
        node.port.call(Call(TO, b""), b"\x01" * 32)
    assert caught.value.retryable


# ---- what only the scripted chain has ----


def test_call__scripted__answers_or_reverts_with_its_label() -> None:
    chain = FakeChain()

    def handler(call: Call, block: Block) -> bytes:
        if call.value:
            raise refused("jobs: not open")
        return block.number.to_bytes(32, "big")

    chain.on_call(TO, b"\1\2\3\4", handler)
    chain.mine()
    assert chain.call(Call(TO, b"\1\2\3\4rest"), 0) == bytes(32)
    assert chain.call(Call(TO, b"\1\2\3\4")) == (1).to_bytes(32, "big")
    for act in (chain.call, lambda call: chain.estimate_gas(call, ADDRESS)):
        with pytest.raises(RefusedError) as caught:
            act(Call(TO, b"\1\2\3\4", 1, "jobs.claim"))
        assert caught.value.details["reason"] == "jobs: not open"


def test_fail__faults__meet_the_methods_they_name_and_run_out() -> None:
    chain = FakeChain()
    chain.fail(Fault("timeout", "balance", times=2), Fault("down"))
    for _ in range(2):
        with pytest.raises(ChainError):
            chain.balance(TO)
    with pytest.raises(ChainError):
        chain.head()
    assert chain.balance(TO) == 0 and chain.head().number == 0


def test_reorg__transactions__go_back_to_the_pool_with_their_balances() -> None:
    node = Fake()
    chain = node.chain
    node.mine()
    tx_hash = chain.send_raw(node.sign(0, value=5))
    node.mine()
    old = chain.head()
    orphaned = chain.reorg(1)
    assert orphaned == [old] and chain.block(old.hash) is None
    assert chain.balance(TO) == 0 and chain.nonce(ADDRESS) == 0 and chain.receipt(tx_hash) is None
    node.mine()
    receipt = chain.receipt(tx_hash)
    assert receipt is not None and receipt.block_hash != old.hash and chain.balance(TO) == 5
    with pytest.raises(ValueError, match="cannot reorg"):
        chain.reorg(99)


def test_logs__topics__match_as_on_a_node() -> None:
    chain = FakeChain()
    one, two, three = (bytes([n]) * 32 for n in (1, 2, 3))
    chain.mine([Event(TO, (one, two)), Event(TO, (one, three)), Event("0x" + "bb" * 20, (one,))])

    def found(*topics: Any) -> int:
        return len(chain.logs([TO], topics, from_block=0, to_block=9))

    assert (found(), found(one), found(two), found(None, two), found(one, [two, three])) == (2, 2, 0, 1, 2)
    assert found(one, None, None) == 0
    assert len(chain.logs([], from_block=0, to_block=9)) == 3
    head = chain.head()
    assert chain.logs([TO], block_hash=head.hash) == chain.logs([TO], from_block=1, to_block=1)
    assert head.bloom == bloom_of([Event(TO, (one, two, three)), Event("0x" + "bb" * 20, ())])


@pytest.mark.parametrize(("max_fee", "tip", "taken"), [(22, 1.1, True), (21, 2, False), (30, 1, False)])
def test_send_raw__a_replacement__raises_both_fees_by_a_tenth_as_geth_asks(
    max_fee: int, tip: float, taken: bool
) -> None:
    node = Fake()
    node.port.send_raw(node.sign(0))
    raw = node.sign(0, max_fee=max_fee * GWEI, tip=int(tip * GWEI))
    if taken:
        node.port.send_raw(raw)
    else:
        assert code_of(raw, node) == "UNDERPRICED"


def test_send_raw__funds__count_value_and_gas() -> None:
    node = Fake()
    node.chain.set_balance(ADDRESS, 50_000 * 20 * GWEI)
    with pytest.raises(FundsError):
        node.chain.send_raw(node.sign(0, value=1))
    node.chain.send_raw(node.sign(0, value=0))
