"""What real clients say, and what Hearth makes of it: every case on anvil and on geth, by their own words.

The words of a client are matched in one place, `hearth.chain.answers`; this is the table of what they must come to.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.crypto import keccak

from hearth.base.errors import ChainError, FundsError, HearthError, RefusedError
from hearth.chain.port import Call, Fees
from hearth.chain.rpc import RpcChain
from hearth.chain.tx import GWEI, Sender, SenderConfig
from hearth.chain.tx_journal import TxJournal
from hearth.client.session import MAX_FEE
from hearth.local import devnet
from tests.kit.anvil import bare_chain, need_anvil
from tests.kit.geth import CHAIN_ID, shared_chain
from tests.kit.running import wait

pytestmark = pytest.mark.net

FAUCET = devnet.account(devnet.FAUCET)
PAYMENT = {"type": 2, "chainId": CHAIN_ID, "gas": 21_000, "maxFeePerGas": 10 * GWEI, "maxPriorityFeePerGas": GWEI}
NOBODY = "0x" + "99" * 20
NEVER_SEEN = b"\xab" * 32
# Programs that a creation runs: what they return, and how they fail, is all in these bytes.
LOOP = bytes.fromhex("5b600056")
NO_OPCODE = bytes.fromhex("fe")


def _error(reason: bytes) -> bytes:
    """Return a token's Error(reason)."""
    return (
        bytes.fromhex("08c379a0") + (32).to_bytes(32, "big") + len(reason).to_bytes(32, "big") + reason.ljust(32, b"\0")
    )


def _refused(number: int) -> bytes:
    """Return a contract's Refused(number)."""
    return bytes.fromhex("590a5151") + number.to_bytes(32, "big")


def _reverts(said: bytes) -> bytes:
    """Return a program that reverts with `said`."""
    store = b"".join(
        b"\x7f" + said[at : at + 32].ljust(32, b"\0") + bytes([0x60, at, 0x52]) for at in range(0, len(said), 32)
    )
    return store + bytes([0x60, len(said), 0x60, 0, 0xFD])


@dataclass
class Client:
    """One client's chain, and an account on it that nobody else uses."""

    name: str
    chain: RpcChain
    account: LocalAccount

    def sign(self, **changes: Any) -> bytes:
        """Sign a payment of one wei with the account's next nonce; `changes` replaces fields."""
        nonce = self.chain.nonce(self.account.address)
        fields = {**PAYMENT, "nonce": nonce, "to": FAUCET.address, "value": 1, **changes}
        return bytes(self.account.sign_transaction(fields).raw_transaction)

    def mined(self, raw: bytes) -> bool:
        """Send a transaction and wait until it is in a block; say whether it did what it was for."""
        sent = self.chain.send_raw(raw)
        return bool(wait(lambda: self.chain.receipt(sent), "mined", 30).ok)


@dataclass
class Place:
    """A client that runs, and the accounts with ten coins each that its tests take one after the other."""

    name: str
    url: str
    accounts: list[LocalAccount]


def _accounts(chain: RpcChain, count: int) -> list[LocalAccount]:
    """Make accounts and give them coins, in one block."""
    made: list[LocalAccount] = [Account.create() for _ in range(count)]
    nonce = chain.nonce(FAUCET.address, pending=True)
    for number, account in enumerate(made):
        payment = {**PAYMENT, "nonce": nonce + number, "to": account.address, "value": 10**19}
        chain.send_raw(bytes(FAUCET.sign_transaction(payment).raw_transaction))
    wait(lambda: all(chain.balance(account.address) for account in made), "funded", 30)
    return made


ACCOUNTS = 40


@pytest.fixture(scope="module")
def anvil() -> Iterator[Place]:
    need_anvil()
    with bare_chain("--chain-id", str(CHAIN_ID), "--block-time", "1") as url:
        yield Place("anvil", url, _accounts(RpcChain([url]), ACCOUNTS))


@pytest.fixture(scope="module")
def geth() -> Place:
    url = shared_chain()
    return Place("geth", url, _accounts(RpcChain([url]), ACCOUNTS))


@pytest.fixture(params=["anvil", "geth"])
def client(request: pytest.FixtureRequest) -> Client:
    place: Place = request.getfixturevalue(request.param)
    return Client(place.name, RpcChain([place.url], attempts=1), place.accounts.pop())


ON_GETH = pytest.mark.parametrize("client", ["geth"], indirect=True)


def refusal(do: Callable[[], object]) -> HearthError:
    with pytest.raises(HearthError) as caught:
        do()
    return caught.value


# ---- the pool ----


def test_send_raw__the_pool_knows_its_nonce__says_which_case(client: Client) -> None:
    """Behind a gap, so that no block takes them meanwhile."""
    chain, raw = client.chain, client.sign(nonce=1)
    assert chain.send_raw(raw) == keccak(raw)
    assert refusal(lambda: chain.send_raw(raw)).code == "ALREADY_KNOWN"
    rival = client.sign(nonce=1, value=2)
    assert refusal(lambda: chain.send_raw(rival)).code == "UNDERPRICED"
    only_the_tip = client.sign(nonce=1, value=2, maxPriorityFeePerGas=2 * GWEI)
    assert refusal(lambda: chain.send_raw(only_the_tip)).code == "UNDERPRICED"
    chain.send_raw(client.sign(nonce=1, value=2, maxFeePerGas=12 * GWEI, maxPriorityFeePerGas=2 * GWEI))
    assert client.mined(client.sign(nonce=0))
    wait(lambda: chain.nonce(client.account.address) == 2, "both are mined", 30)
    for used in (raw, rival):
        assert refusal(lambda used=used: chain.send_raw(used)).code == "NONCE_TOO_LOW"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "error", "code"),
    [
        ({"value": 10**24}, FundsError, "FUNDS_SHORT"),
        ({"gas": 20_999}, RefusedError, "TX_REFUSED"),
        ({"gas": 31_000_000}, RefusedError, "TX_REFUSED"),
        ({"chainId": 5}, RefusedError, "TX_REFUSED"),
        ({"maxFeePerGas": GWEI, "maxPriorityFeePerGas": 2 * GWEI}, RefusedError, "TX_REFUSED"),
        ({"to": "", "gas": 9_000_000, "data": bytes(49_153)}, RefusedError, "TX_REFUSED"),
    ],
    ids=["funds", "too-little-gas", "too-much-gas", "another-chain", "tip-above-fee", "long-code"],
)
def test_send_raw__never_taken__is_no_outage(
    client: Client, changes: dict[str, Any], error: type[HearthError], code: str
) -> None:
    found = refusal(lambda: client.chain.send_raw(client.sign(**changes)))
    assert (type(found), found.code, found.retryable) == (error, code, False)


def test_send_raw__no_transaction__is_refused(client: Client) -> None:
    assert refusal(lambda: client.chain.send_raw(b"\x12\x34")).code == "TX_REFUSED"


@ON_GETH
def test_send_raw__geths_own_limits__are_named(client: Client) -> None:
    """Anvil takes all three."""
    without_tip = client.sign(maxPriorityFeePerGas=0)
    dear = client.sign(gas=3_000_000, maxFeePerGas=500 * GWEI)
    large = client.sign(gas=16_000_000, data=bytes(131_072))
    assert refusal(lambda: client.chain.send_raw(without_tip)).code == "UNDERPRICED"
    found = refusal(lambda: client.chain.send_raw(dear))
    assert found.code == "TX_REFUSED" and "tx fee (1.50 ether) exceeds the configured cap" in found.message
    assert refusal(lambda: client.chain.send_raw(large)).code == "TX_REFUSED"


# ---- sending through it ----


@pytest.fixture
def sender(client: Client, tmp_path: Path) -> Iterator[Sender]:
    facts = {"chain_id": CHAIN_ID, "genesis_hash": client.chain.genesis_hash(), "address": client.account.address}
    journal = TxJournal(tmp_path / "tx.db", **facts)
    yield Sender(
        client.chain, client.account, journal, SenderConfig(MAX_FEE, poll=0.1, timeout=30.0, replace_after=1.5)
    )
    journal.close()


def test_send__twice_under_one_key__pays_once(client: Client, sender: Sender) -> None:
    call = Call(NOBODY, b"", 1, "pay")
    before = client.chain.balance(NOBODY)
    first, second = sender.send(call, key="pay"), sender.send(call, key="pay")
    assert not first.repeated and second.repeated and second.tx_hash == first.tx_hash
    assert client.chain.balance(NOBODY) == before + 1


def test_send__the_fee_was_below_what_blocks_cost__is_replaced(
    client: Client, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anvil does not take it, geth lets it wait for ever: both end in a replacement that is mined."""
    base = client.chain.fees().base_fee
    with monkeypatch.context() as patch:
        patch.setattr(client.chain, "fees", lambda: Fees(max(1, base // 8), 1))
        pending = sender.start(Call(NOBODY, b"", 1, "pay"), key="pay")
    assert client.chain.nonce(client.account.address) == 0
    sent = sender.finish(pending)
    assert sent.block_number is not None
    assert len(sender.journal.attempts(sender.journal.current(pending.intent))) > 1


@ON_GETH
def test_send__the_rpc_never_takes_it__the_key_and_its_nonce_are_free(client: Client, sender: Sender) -> None:
    """A fee above geth's own cap: the next send of the account is not held up by it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client.chain, "fees", lambda: Fees(250 * GWEI, 1))
        patch.setattr(client.chain, "estimate_gas", lambda call, who: 3_000_000)
        assert refusal(lambda: sender.send(Call(NOBODY, b"", 1, "dear"), key="dear")).code == "TX_REFUSED"
    assert sender.send(Call(NOBODY, b"", 1, "pay"), key="pay").tx_hash
    assert client.chain.nonce(client.account.address) == 1


# ---- calls ----


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (_reverts(_refused(1037)), "jobs: not open"),
        (_reverts(_refused(999)), "refused with reason 999"),
        (_reverts(_error(b"token: paused")), "token: paused"),
        (LOOP, "out of gas"),
        (NO_OPCODE, ""),
    ],
    ids=["reason", "unknown-reason", "token", "endless", "no-opcode"],
)
def test_call_and_estimate__the_contract_fails__refused_with_its_reason(
    client: Client, code: bytes, reason: str
) -> None:
    call = Call(None, code, 0, "test")
    for do in (lambda: client.chain.call(call, sender=NOBODY), lambda: client.chain.estimate_gas(call, NOBODY)):
        found = refusal(do)
        assert isinstance(found, RefusedError) and found.details["reason"] == reason


def test_call__the_sender_cannot_pay__is_short_of_funds(client: Client) -> None:
    assert isinstance(refusal(lambda: client.chain.call(Call(FAUCET.address, b"", 10**30), sender=NOBODY)), FundsError)


def test_estimate__a_payment__is_21000(client: Client) -> None:
    assert client.chain.estimate_gas(Call(FAUCET.address, b"", 1), client.account.address) == 21_000


# ---- blocks, logs, fees ----


@pytest.mark.parametrize("block", [NEVER_SEEN, 10**6], ids=["hash", "number"])
def test_reads__at_a_block_that_is_not_there__say_so(client: Client, block: bytes | int) -> None:
    chain = client.chain
    assert chain.block(block) is None
    for read in (
        lambda: chain.call(Call(NOBODY, b""), block),
        lambda: chain.balance(NOBODY, block),
        lambda: chain.code(NOBODY, block),
    ):
        found = refusal(read)
        assert isinstance(found, ChainError) and (found.code, found.retryable) == ("BLOCK_UNKNOWN", True)


def test_logs__beyond_the_head_or_of_an_unknown_block__no_span_is_halved(client: Client) -> None:
    """A chain that was rolled back ends below what was asked for: that is no limit of the provider's."""
    chain, head = client.chain, client.chain.head().number
    found = refusal(lambda: chain.logs([NOBODY], from_block=head + 50, to_block=head + 99))
    assert found.code == "BLOCK_UNKNOWN" and not chain.counts["halved"]
    assert refusal(lambda: chain.logs([NOBODY], block_hash=NEVER_SEEN)).code == "BLOCK_UNKNOWN"
    assert chain.logs([NOBODY], from_block=0, to_block=head) == []


def test_blocks__by_every_name__are_ordered_and_chained(client: Client) -> None:
    chain = client.chain
    head = chain.head()
    before = chain.block(head.number - 1)
    assert before is not None and before.hash == head.parent_hash and before.timestamp < head.timestamp
    known = chain.block(head.hash)
    assert known is not None and (known.number, known.bloom) == (head.number, head.bloom) and len(head.bloom) == 256
    named = [chain.block(tag) for tag in ("earliest", "finalized", "safe")]
    numbers = [block.number for block in named if block is not None]
    assert len(numbers) == 3 and numbers == sorted(numbers) and numbers[0] == 0


def test_fees__blocks_are_empty__the_base_fee_falls_and_a_tip_is_named(client: Client) -> None:
    first = client.chain.fees()
    wait(lambda: client.chain.fees().base_fee < first.base_fee or first.base_fee <= 7, "the base fee falls", 10)
    assert client.chain.fees().priority_fee >= (1 if client.name == "geth" else 0)


def test_nonce__with_a_gap__waits_for_what_is_missing(client: Client) -> None:
    chain, who = client.chain, client.account.address
    chain.send_raw(client.sign(nonce=1))
    time.sleep(0.2)
    assert (chain.nonce(who), chain.nonce(who, pending=True)) == (0, 0)
    chain.send_raw(client.sign(nonce=0))
    wait(lambda: chain.nonce(who) == 2, "both mined", 30)


def test_rpc__a_method_of_another_client__is_unsupported(client: Client) -> None:
    method = "anvil_mine" if client.name == "geth" else "debug_setHead"
    assert refusal(lambda: client.chain.rpc(method, "0x1")).code == "RPC_UNSUPPORTED"
