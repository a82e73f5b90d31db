"""The one transaction path over the scripted chain: every answer that a pool can give, crashes, reorgs and spikes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from hearth.base.errors import ChainError, FundsError, RefusedError, StorageError
from hearth.chain import tx_journal
from hearth.chain.fees import Bid
from hearth.chain.port import Block, Call, Receipt, Transaction, hex_of, refused
from hearth.chain.tx import GWEI, LOOKS, MAX_GAP, Reconciled, Sender, SenderConfig
from hearth.chain.tx_journal import Intent, TxJournal, TxState
from hearth.client.session import MAX_FEE
from tests.kit.fake_chain import Effect, Event, FakeChain, Fault, decode_raw

ACCOUNT = Account.from_key(b"\x11" * 32)
ADDRESS = ACCOUNT.address.lower()
TARGET = "0x" + "cd" * 20
CALL = Call(TARGET, b"\x01\x02\x03\x04", 0, "jobs.claim")
ETHER = 10**18


class Rig:
    """A fake chain, a journal and a sender whose sleeps mine blocks."""

    def __init__(self, folder: Path, **config: Any) -> None:
        self.folder = folder
        self.chain = FakeChain()
        self.chain.set_balance(ADDRESS, 10 * ETHER)
        self.chain.on_call(TARGET, CALL.data[:4], lambda call, block: b"")
        self.now = 0.0
        self.mining = True
        self.config = SenderConfig(**{"max_fee": MAX_FEE, "timeout": 100, "replace_after": 10, "poll": 1, **config})
        self.open()

    def open(self) -> None:
        genesis = self.chain.genesis_hash()
        self.journal = TxJournal(self.folder / "tx.db", chain_id=31337, genesis_hash=genesis, address=ADDRESS)
        self.sender = Sender(self.chain, ACCOUNT, self.journal, self.config, clock=lambda: self.now, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.mining:
            self.chain.mine()

    def crash(self, *, lose_journal: bool = False) -> None:
        """Start again from what is on disk."""
        self.journal.close()
        if lose_journal:
            for file in self.folder.iterdir():
                file.unlink()
        self.open()

    def mined(self) -> list[Transaction]:
        """List the account's mined transactions."""
        return [tx for mined in self.chain._blocks for tx, _, _ in mined.transactions]

    def state(self, key: str) -> TxState:
        found = self.journal.find(key)
        assert found is not None
        return found.state


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.journal.close()


# ---- the straight path ----


def test_send__nothing_wrong__is_mined_once_and_told(rig: Rig) -> None:
    outcome = rig.sender.send(replace(CALL, value=7), key="k")
    (tx,) = rig.mined()
    assert (tx.hash, tx.to, tx.value, tx.data, tx.nonce) == (outcome.tx_hash, TARGET, 7, CALL.data, 0)
    assert outcome.gas_used == 50_000 and outcome.fee == 50_000 * (rig.chain.base_fee + rig.chain.priority_fee)
    assert outcome.block_number == rig.chain.head().number and not outcome.repeated
    assert tx.gas == rig.chain.gas_estimate * 12 // 10
    assert rig.state("k") is TxState.MINED


def test_send__the_same_key_again__sends_nothing(rig: Rig) -> None:
    event = Event(TARGET, (b"\1" * 32,), b"")
    rig.chain.on_send(TARGET, CALL.data[:4], lambda tx, block: Effect(events=(event,)))
    first = rig.sender.send(CALL, key="k")
    again = rig.sender.send(CALL, key="k")
    assert again.logs == first.logs != () and again.block_number == first.block_number
    assert again.repeated and again.tx_hash == first.tx_hash and again.fee == first.fee
    assert len(rig.mined()) == 1 and len(rig.chain.sent) == 1


@pytest.mark.parametrize("fails", ["signed", "broadcast"])
def test_send__disk_takes_no_journal_for_a_moment__the_same_key_goes_on(
    rig: Rig, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that are not on disk are not sent; those that are sent are never signed for twice."""

    def full(*arguments: Any) -> Any:
        raise StorageError("full", code="JOURNAL", retryable=True)

    with monkeypatch.context() as patched:
        patched.setattr(rig.journal, fails, full)
        with pytest.raises(StorageError):
            rig.sender.start(CALL, key="k")
    assert len(rig.chain.sent) == (0 if fails == "signed" else 1)
    rig.sender.send(CALL, key="k")
    assert len(rig.mined()) == 1 and rig.state("k") is TxState.MINED


def test_send__two_keys__take_two_nonces(rig: Rig) -> None:
    first, second = rig.sender.start(CALL, key="a"), rig.sender.start(CALL, key="b")
    assert [tx.nonce for tx in rig.chain.pending] == [0, 1]
    assert rig.sender.finish(second).tx_hash != rig.sender.finish(first).tx_hash


def test_send__from_many_threads__every_nonce_is_used_once(rig: Rig) -> None:
    threads = [threading.Thread(target=rig.sender.start, args=(CALL,), kwargs={"key": str(n)}) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [tx.nonce for tx in rig.chain.pending] == list(range(8))


@pytest.mark.parametrize("beside", [0, 3])
@pytest.mark.parametrize("cap", [MAX_FEE, GWEI])
def test_send__dry_run__estimates_and_sends_nothing(tmp_path: Path, beside: int, cap: int) -> None:
    rig = Rig(tmp_path, dry_run=True, max_fee=cap)
    rig.chain.rollup_fee = lambda data, gas: beside * len(data) * gas  # type: ignore[method-assign]
    estimate = beside * len(CALL.data) * 72_000
    pending = rig.sender.start(CALL, key="k")
    outcome = rig.sender.finish(pending)
    price = min(rig.chain.base_fee + rig.chain.priority_fee, cap)
    assert outcome.tx_hash is None and outcome.gas_used == 72_000 and outcome.fee == 72_000 * price + estimate
    assert (outcome.key, outcome.label, outcome.repeated) == ("k", CALL.label, False)
    intent = pending.intent
    assert (intent.key, intent.call, intent.state, intent.nonce) == ("k", CALL, TxState.INTENT, None)
    assert rig.chain.sent == [] and rig.journal.find("k") is None and rig.now == 0
    rig.sender.config = replace(rig.config, dry_run=False)
    rig.sender.start(CALL, key="sent")
    assert rig.journal.attempts(pending.intent) == [], "what was not sent is none of the journal"
    rig.journal.close()


def test_sender__told_which_chain__does_not_ask_for_it(rig: Rig) -> None:
    rig.chain.counts.clear()
    sender = Sender(rig.chain, ACCOUNT, rig.journal, rig.config, chain_id=5)
    assert rig.chain.counts["chain_id"] == 0
    rig.chain.set_balance(ADDRESS, 0)
    with pytest.raises(FundsError, match="on chain 5 is short") as caught:
        sender.start(CALL, key="k")
    assert caught.value.details["chain_id"] == 5


@pytest.mark.parametrize("spare", [0, 30_000])
def test_start__gas__is_the_estimate_with_its_margin_and_what_is_spared(rig: Rig, spare: int) -> None:
    rig.sender.config = replace(rig.config, gas_margin_bps=15_000)
    rig.sender.start(CALL, key="k", spare_gas=spare)
    assert [tx.gas for tx in rig.chain.pending] == [rig.chain.gas_estimate * 3 // 2 + spare]


@pytest.mark.parametrize("nonce", [0, 1])
def test_start__call_names_its_nonce__another_one_signs_nothing_and_frees_the_key(rig: Rig, nonce: int) -> None:
    if nonce:
        with pytest.raises(ChainError, match=r"is for nonce 1 of .*, whose next one is 0") as caught:
            rig.sender.start(CALL, key="k", nonce=nonce)
        assert caught.value.code == "NONCE_TAKEN" and rig.state("k") is TxState.FAILED and rig.chain.sent == []
    rig.sender.start(CALL, key="k", nonce=0)
    assert [tx.nonce for tx in rig.chain.pending] == [0]


# ---- refusals before a signature ----


def test_send__the_contract_refuses__nothing_is_signed(rig: Rig) -> None:
    def refuse(call: Call, block: Block) -> bytes:
        raise refused("jobs: not open")

    rig.chain.on_call(TARGET, CALL.data[:4], refuse)
    with pytest.raises(RefusedError) as caught:
        rig.sender.send(CALL, key="k")
    assert caught.value.details["reason"] == "jobs: not open" and "jobs.claim" in caught.value.message
    assert rig.journal.find("k") is None and rig.chain.sent == []


@pytest.mark.parametrize(("balance", "value"), [(ETHER - 1, ETHER), (ETHER + 1, ETHER), (1_000, 0)])
def test_send__balance_short_of_value_or_gas__says_by_how_much(rig: Rig, balance: int, value: int) -> None:
    rig.chain.set_balance(ADDRESS, balance)
    with pytest.raises(FundsError) as caught:
        rig.sender.send(replace(CALL, value=value), key="k")
    error = caught.value
    gas = 72_000 * (2 * rig.chain.base_fee + rig.chain.priority_fee)
    needed = value + (gas if balance >= value else 0)
    assert int(error.details["short_by"]) == needed - balance
    assert error.details["address"] == ADDRESS and error.details["chain_id"] == 31337
    assert (error.details["balance"], error.details["needed"]) == (str(balance), str(needed))
    assert ADDRESS in error.message and "ETH" in error.message and error.exit_code == 6
    assert ("for gas" in error.message) == (balance >= value)
    assert ("for jobs.claim" in error.message) == (" 1 ETH for jobs.claim" in error.message) == (value > 0)
    assert rig.chain.sent == [] and rig.journal.find("k") is None


def test_send__exactly_enough__is_sent(rig: Rig) -> None:
    gas = 72_000 * (2 * rig.chain.base_fee + rig.chain.priority_fee)
    rig.chain.set_balance(ADDRESS, ETHER + gas)
    assert rig.sender.send(replace(CALL, value=ETHER), key="k").tx_hash is not None


def test_send__base_fee_above_the_cap__waits_instead(rig: Rig) -> None:
    rig.chain.base_fee = 501 * GWEI
    with pytest.raises(ChainError) as caught:
        rig.sender.send(CALL, key="k")
    assert caught.value.code == "FEE_CAP" and rig.chain.sent == []
    assert caught.value.details["for_all"] is True, "no other call may be sent either"
    rig.chain.base_fee = rig.config.max_fee
    assert rig.sender.start(CALL, key="k").intent.state is TxState.BROADCAST


# ---- what a pool can answer ----


def test_send__reverts_in_its_block__is_refused_with_the_reason(rig: Rig) -> None:
    taken: list[bool] = []

    def lost_race(tx: Transaction, block: Block) -> Effect:
        taken.append(True)
        raise refused("jobs: not open")

    def check(call: Call, block: Block) -> bytes:
        if taken:
            raise refused("jobs: not open")
        return b""

    rig.chain.on_send(TARGET, CALL.data[:4], lost_race)
    rig.chain.on_call(TARGET, CALL.data[:4], check)
    with pytest.raises(RefusedError) as caught:
        rig.sender.send(CALL, key="k")
    assert caught.value.details["reason"] == "jobs: not open" and caught.value.details["mined"] is True
    assert rig.state("k") is TxState.FAILED
    taken.clear()
    rig.chain.on_send(TARGET, CALL.data[:4], lambda tx, block: Effect())
    assert not rig.sender.send(CALL, key="k").repeated, "the key is free after a failure"
    assert [tx.nonce for tx in rig.mined()] == [0, 1]


def test_send__rpc_down_at_broadcast__keeps_the_bytes_and_sends_them_later(rig: Rig) -> None:
    rig.chain.fail(Fault("down", "send_raw"))
    with pytest.raises(ChainError):
        rig.sender.send(CALL, key="k")
    assert rig.state("k") is TxState.SIGNED and rig.chain.sent == []
    (attempt,) = rig.journal.attempts(rig.journal.intents(TxState.SIGNED)[0])
    rig.sender.start(replace(CALL, label="other"), key="other")
    assert rig.chain.sent[0] == attempt.raw, "what waits goes first, or the later nonce would hang"
    rig.sender.send(CALL, key="k")
    assert [tx.nonce for tx in rig.mined()] == [0, 1]
    assert len(rig.journal.attempts(rig.journal.intents(TxState.MINED)[0])) == 1


def test_send__rpc_down_while_waiting__is_survived(rig: Rig) -> None:
    pending = rig.sender.start(CALL, key="k")
    rig.chain.fail(Fault("down", times=5), Fault("throttled", "receipt", times=3))
    assert rig.sender.finish(pending).tx_hash is not None


def test_send__already_known__is_success(rig: Rig) -> None:
    rig.mining = False
    pending = rig.sender.start(CALL, key="k")
    rig.sender.reconcile()
    assert len(rig.chain.sent) == 2 and rig.chain.sent[0] == rig.chain.sent[1]
    rig.mining = True
    assert rig.sender.finish(pending).tx_hash is not None and len(rig.mined()) == 1


def test_send__funds_gone_at_broadcast__gives_the_nonce_back(rig: Rig) -> None:
    real = rig.chain.nonce

    def spend_meanwhile(address: str, *, pending: bool = False) -> int:
        rig.chain.set_balance(ADDRESS, 5)
        return real(address, pending=pending)

    rig.chain.nonce = spend_meanwhile  # type: ignore[method-assign]
    with pytest.raises(FundsError):
        rig.sender.send(CALL, key="k")
    rig.chain.nonce = real  # type: ignore[method-assign]
    assert rig.state("k") is TxState.FAILED
    rig.chain.set_balance(ADDRESS, ETHER)
    rig.sender.send(CALL, key="k")
    assert [tx.nonce for tx in rig.mined()] == [0]


def foreign(nonce: int = 0) -> bytes:
    """Return the bytes of a transaction of the same account that another process signed."""
    fields = {"type": 2, "chainId": 31337, "nonce": nonce, "gas": 21_000, "maxFeePerGas": 10 * GWEI, "value": 1}
    signed = ACCOUNT.sign_transaction({**fields, "maxPriorityFeePerGas": GWEI, "to": "0x" + "99" * 20})
    return bytes(signed.raw_transaction)


def test_reconcile__another_process_used_the_nonce__is_told_after_as_many_looks(rig: Rig) -> None:
    rig.sender.start(CALL, key="k")
    rig.chain.drop_pool()
    rig.chain.send_raw(foreign())
    rig.chain.mine()
    rig.mining = False
    assert rig.sender.reconcile() == Reconciled(replaced=1) and rig.state("k") is TxState.REPLACED
    assert rig.now == LOOKS - 1 and rig.sender.reconcile() == Reconciled()


def test_reconcile__provider_lacks_the_block_of_a_receipt__it_is_none(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.sender.start(CALL, key="k")
    rig.chain.mine()
    with monkeypatch.context() as lacks:
        lacks.setattr(rig.chain, "block", lambda at: None)
        assert rig.sender.reconcile().mined == 0 and rig.state("k") is TxState.BROADCAST
    assert rig.sender.reconcile().mined == 1


def given_up(rig: Rig) -> Intent:
    """Return an intent that was given up, since a transaction used its nonce that the journal does not know."""
    rig.sender.start(CALL, key="k")
    rig.chain.drop_pool()
    rig.chain.send_raw(foreign())
    rig.chain.mine()
    rig.mining = False
    rig.sender.reconcile()
    rig.mining = True
    lost = rig.journal.newest("k", replaced=True)
    assert lost is not None and lost.state is TxState.REPLACED
    return lost


def test_look_again__its_nonce_was_used_by_what_nobody_knows__is_unclear(rig: Rig) -> None:
    lost = given_up(rig)
    (attempt,) = rig.journal.attempts(lost)
    with pytest.raises(ChainError, match="its nonce 0 is used") as caught:
        rig.sender.look_again(lost)
    assert caught.value.code == "TX_UNCLEAR"
    assert (caught.value.details["nonce"], caught.value.details["tx_hashes"]) == (0, [hex_of(attempt.hash)])


def test_look_again__its_nonce_was_used_by_another_of_the_journal__is_nobodys(rig: Rig) -> None:
    lost = given_up(rig)
    rig.chain.reorg(1, remine=[])
    rig.chain.drop_pool()
    rig.sender.send(OTHER, key="other")
    assert [(tx.nonce, tx.to) for tx in rig.mined()] == [(0, ADDRESS), (1, TARGET)], "it was filled as a gap"
    rig.sender.reconcile()
    assert rig.sender.look_again(lost) is None


def test_look_again__its_nonce_is_free_again__waits_once_more(rig: Rig) -> None:
    lost = given_up(rig)
    rig.chain.reorg(1, remine=[])
    rig.chain.drop_pool()
    found = rig.sender.look_again(lost)
    assert found is not None and (found.id, found.state) == (lost.id, TxState.BROADCAST)


def test_look_again__was_mined_after_all__says_so(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.sender.start(CALL, key="k")
    rig.chain.mine()
    with monkeypatch.context() as lags:
        lags.setattr(rig.chain, "receipt", lambda tx_hash, **_: None)
        lags.setattr(rig.chain, "transaction", lambda tx_hash: None)
        assert rig.sender.reconcile().replaced == 1
    lost = rig.journal.newest("k", replaced=True)
    assert lost is not None
    found = rig.sender.look_again(lost)
    assert found is not None and found.state is TxState.MINED and rig.state("k") is TxState.MINED


def test_send__another_process_uses_the_nonce__is_told_and_not_repeated(rig: Rig) -> None:
    rig.mining = False
    pending = rig.sender.start(CALL, key="k")
    rig.chain.drop_pool()
    rig.chain.send_raw(foreign())
    rig.mining = True
    with pytest.raises(ChainError) as caught:
        rig.sender.finish(pending)
    assert caught.value.code == "NONCE_TAKEN" and rig.state("k") is TxState.REPLACED
    assert rig.now == LOOKS, "a provider that lags is given so many polls"
    rig.sender.send(CALL, key="k")
    assert [(tx.nonce, tx.to) for tx in rig.mined()] == [(0, "0x" + "99" * 20), (1, TARGET)]


# ---- stuck, dropped, spiked ----


def test_finish__fee_spike__replaces_with_both_fees_raised_an_eighth(rig: Rig) -> None:
    pending = rig.sender.start(CALL, key="k")
    (first,) = rig.chain.pending
    rig.chain.base_fee *= 8
    outcome = rig.sender.finish(pending)
    (tx,) = rig.mined()
    assert tx.nonce == 0 and tx.hash == outcome.tx_hash != first.hash
    assert tx.max_fee * 8 >= first.max_fee * 9 and tx.priority_fee * 8 >= first.priority_fee * 9
    assert tx.max_fee <= rig.config.max_fee
    assert all(decode_raw(raw).nonce == 0 for raw in rig.chain.sent)


def test_finish__stuck_for_long__never_passes_the_cap_and_stays_alive(rig: Rig) -> None:
    pending = rig.sender.start(CALL, key="k")
    rig.chain.base_fee = 10_000 * GWEI
    rig.sender.config = replace(rig.config, timeout=2_000)
    with pytest.raises(ChainError) as caught:
        rig.sender.finish(pending)
    assert caught.value.code == "TX_PENDING" and caught.value.retryable
    fees = [decode_raw(raw).max_fee for raw in rig.chain.sent]
    assert max(fees) <= rig.config.max_fee and max(fees) > rig.config.max_fee * 8 // 10
    rig.chain.base_fee = GWEI
    assert rig.sender.send(CALL, key="k").tx_hash is not None
    assert len(rig.mined()) == 1


@pytest.mark.parametrize(("refused_at_first", "signed"), [(True, 4), (False, 3)])
def test_finish__provider_takes_no_transactions_for_a_while__bids_more_only_in_its_time(
    rig: Rig, refused_at_first: bool, signed: int
) -> None:
    """What no pool has seen was not too cheap: else such an outage would raise the bid to the cap within seconds."""
    pending = rig.sender.start(CALL, key="k")
    pending.urgent = refused_at_first
    rig.chain.drop_pool()
    rig.chain.fail(Fault("down", "send_raw", 100))
    rig.sender.config = replace(rig.config, timeout=25)
    with pytest.raises(ChainError) as caught:
        rig.sender.finish(pending)
    assert caught.value.code == "TX_PENDING"
    # At once where a pool had refused the first bid, and then every 10 seconds.
    assert len(rig.journal.attempts(pending.intent)) == signed


def test_finish__dropped_from_the_pool__is_broadcast_again(rig: Rig) -> None:
    rig.mining = False
    pending = rig.sender.start(CALL, key="k")
    rig.chain.drop_pool()
    rig.mining = True
    assert rig.sender.finish(pending).tx_hash is not None
    assert len(rig.mined()) == 1


def test_finish__pointless_meanwhile__is_cancelled_on_its_nonce(rig: Rig) -> None:
    pending = rig.sender.start(CALL, key="k")
    base = rig.chain.base_fee
    rig.chain.base_fee *= 8

    def refuse(call: Call, block: Block) -> bytes:
        raise refused("jobs: not open")

    rig.chain.on_call(TARGET, CALL.data[:4], refuse)
    with pytest.raises(RefusedError) as caught:
        rig.sender.finish(pending)
    assert "cancelled" in caught.value.message
    (tx,) = rig.mined()
    assert (tx.nonce, tx.to, tx.value, tx.data, tx.gas) == (0, ADDRESS, 0, b"", 21_000)
    assert rig.state("k") is TxState.FAILED
    rig.chain.base_fee = base
    rig.chain.on_call(TARGET, CALL.data[:4], lambda call, block: b"")
    rig.sender.send(CALL, key="k")
    assert [tx.nonce for tx in rig.mined()] == [0, 1]


def test_finish__the_first_attempt_wins_after_a_replacement__is_found_by_its_hash(rig: Rig) -> None:
    rig.mining = False
    pending = rig.sender.start(CALL, key="k")
    first = rig.chain.sent[0]
    rig.sender.config = replace(rig.config, timeout=25)
    with pytest.raises(ChainError):
        rig.sender.finish(pending)
    assert len(rig.journal.attempts(pending.intent)) > 1
    rig.chain.drop_pool()
    rig.chain.send_raw(first)
    rig.chain.mine()
    outcome = rig.sender.send(CALL, key="k")
    assert outcome.tx_hash == decode_raw(first).hash and len(rig.mined()) == 1


# ---- crashes ----


def test_reconcile__crash_before_broadcast__sends_the_same_bytes(rig: Rig) -> None:
    rig.chain.fail(Fault("down", "send_raw"))
    with pytest.raises(ChainError):
        rig.sender.start(CALL, key="k")
    signed = rig.journal.attempts(rig.journal.intents(TxState.SIGNED)[0])[0].raw
    rig.crash()
    assert rig.sender.reconcile().rebroadcast == 1
    assert rig.chain.sent == [signed]
    assert rig.sender.send(CALL, key="k").tx_hash is not None and len(rig.mined()) == 1


def test_reconcile__crash_after_broadcast__finds_the_receipt(rig: Rig) -> None:
    rig.sender.start(CALL, key="k")
    rig.chain.mine()
    rig.crash()
    assert rig.sender.reconcile().mined == 1 and rig.state("k") is TxState.MINED
    assert rig.sender.send(CALL, key="k").repeated and len(rig.chain.sent) == 1


def test_reconcile__crash_before_signing__frees_the_key(rig: Rig) -> None:
    rig.journal.intend("k", CALL)
    rig.crash()
    assert rig.sender.reconcile().dropped == 1 and rig.state("k") is TxState.FAILED
    assert rig.sender.reconcile().dropped == 0
    assert rig.sender.send(CALL, key="k").tx_hash is not None


def test_start__crash_before_signing_and_nobody_reconciled__sends_it_once(rig: Rig) -> None:
    rig.journal.intend("k", CALL)
    rig.crash()
    assert rig.sender.send(CALL, key="k").tx_hash is not None
    assert rig.journal.intents(TxState.INTENT) == [] and len(rig.mined()) == 1


def test_reconcile__journal_lost_with_the_key_kept__adopts_the_chains_nonce(rig: Rig) -> None:
    rig.sender.send(CALL, key="k")
    rig.mining = False
    rig.sender.start(CALL, key="l")
    rig.crash(lose_journal=True)
    assert rig.sender.reconcile() == Reconciled()

    def refuse(call: Call, block: Block) -> bytes:
        raise refused("jobs: not open")

    rig.chain.on_call(TARGET, CALL.data[:4], refuse)
    for key in ("k", "l"):
        with pytest.raises(RefusedError):
            rig.sender.send(CALL, key=key)
    assert len(rig.chain.sent) == 2, "the contract's guard and the simulation stop the repeat"
    rig.chain.on_call(TARGET, b"\x05" * 4, lambda call, block: b"")
    rig.mining = True
    rig.sender.send(Call(TARGET, b"\x05" * 4), key="m")
    assert [tx.nonce for tx in rig.mined()] == [0, 1, 2]


def test_finish__journal_lost_and_the_old_transaction_pays_too_little__fills_the_gap(rig: Rig) -> None:
    rig.sender.start(CALL, key="k")
    rig.crash(lose_journal=True)
    rig.chain.base_fee *= 8
    outcome = rig.sender.send(Call(TARGET, b"\x06" * 4), key="l")
    assert outcome.tx_hash is not None
    assert [(tx.nonce, tx.to) for tx in rig.mined()] == [(0, ADDRESS), (1, TARGET)]
    rig.sender.reconcile()
    assert rig.journal.intents(TxState.SIGNED, TxState.BROADCAST) == []
    gap = rig.journal.find("gap/0")
    assert gap is not None and gap.note.startswith("it only used a nonce up")


def test_reconcile__waiting_too_long__replaces(rig: Rig) -> None:
    rig.mining = False
    rig.sender.start(CALL, key="k")
    rig.journal._db.execute("UPDATE attempts SET at = at - 1000")
    rig.crash()
    rig.sender.reconcile()
    assert len({decode_raw(raw).hash for raw in rig.chain.sent}) == 2
    assert len(rig.chain.pending) == 1


# ---- reorgs ----


def test_reconcile__reorg_removes_the_block__waits_and_is_mined_once_more(rig: Rig) -> None:
    rig.chain.mine(count=3)
    first = rig.sender.send(CALL, key="k")
    rig.chain.reorg(1)
    assert rig.sender.reconcile().reorged == 1 and rig.state("k") is TxState.BROADCAST
    again = rig.sender.send(CALL, key="k")
    assert again.tx_hash == first.tx_hash and again.block_hash != first.block_hash
    assert len(rig.mined()) == 1


def test_reconcile__another_block_at_its_height__is_a_reorg_whoever_asks(rig: Rig) -> None:
    rig.chain.mine(count=3)
    rig.sender.send(CALL, key="k")
    rig.chain.reorg(1, remine=[[]])
    assert rig.sender.reconcile().reorged == 1 and rig.state("k") is TxState.BROADCAST


def test_start__reorg_that_nobody_noticed__is_noticed_by_the_same_key(rig: Rig) -> None:
    rig.chain.mine(count=3)
    rig.sender.send(CALL, key="k")
    rig.chain.reorg(1)
    rig.chain.drop_pool()
    assert rig.sender.send(CALL, key="k").tx_hash is not None
    assert len(rig.mined()) == 1


def test_reconcile__deep_enough__is_final_and_not_looked_at_again(rig: Rig) -> None:
    rig.sender.send(CALL, key="k")
    rig.chain.mine(count=rig.config.finality - 1)
    rig.sender.reconcile()
    assert rig.state("k") is TxState.MINED
    rig.chain.mine()
    rig.sender.reconcile()
    assert rig.state("k") is TxState.FINAL
    before = rig.chain.counts["receipt"]
    rig.sender.reconcile()
    assert rig.chain.counts["receipt"] == before


def test_reconcile__many_that_are_mined_and_not_final__asks_for_each_block_once(rig: Rig) -> None:
    """A worker that sends two calls a block looks at all of them at every block until they are final."""
    rig.mining = False
    for number in range(12):
        rig.sender.start(CALL, key=f"k{number}")
        if number % 4 == 3:
            rig.chain.mine()
    head = rig.chain.mine()
    rig.sender.reconcile(head)
    assert {rig.state(f"k{number}") for number in range(12)} == {TxState.MINED}
    asked = ("block", "receipt", "transaction", "nonce")
    for newest in (head, rig.chain.mine(), rig.chain.mine()):
        rig.chain.counts.clear()
        assert rig.sender.reconcile(newest).reorged == 0
        assert [rig.chain.counts[one] for one in asked] == [0, 0, 0, 1], "a head names its parent"
    rig.chain.mine()
    head = rig.chain.mine()
    rig.chain.counts.clear()
    rig.sender.reconcile(head)
    assert [rig.chain.counts[one] for one in asked] == [4, 0, 0, 1], "a head whose parent was not seen: each block once"
    for _ in range(rig.config.finality):
        head = rig.chain.mine()
    rig.sender.reconcile(head)
    assert {rig.state(f"k{number}") for number in range(12)} == {TxState.FINAL}


def test_reconcile__block_that_is_known_and_leaves_the_chain__is_seen_at_the_next_head(rig: Rig) -> None:
    rig.sender.send(CALL, key="k")
    for _ in range(2):
        rig.sender.reconcile(rig.chain.mine())
    rig.mining = False
    rig.chain.reorg(3)
    head = rig.chain.mine(include_pool=False)
    assert rig.sender.reconcile(head).reorged == 1 and rig.state("k") is TxState.BROADCAST


def test_reconcile__chain_that_goes_to_and_fro_while_blocks_are_asked_for__nothing_is_kept_of_it(rig: Rig) -> None:
    """Else a block of the other branch is taken for one below the head, for as long as heads follow each other."""
    rig.sender.send(CALL, key="k")
    rig.chain.mine()
    head = rig.chain.mine()
    ask, seen = rig.chain.block, []

    def flips(at: Any) -> Any:
        seen.append(at)
        found = ask(at)
        assert found is not None
        # Its last answer, that of the head's own number, is the other branch's.
        return replace(found, hash=b"\xee" * 32) if at == head.number else found

    rig.chain.block = flips  # type: ignore[method-assign]
    rig.sender.reconcile(head)
    assert head.number in seen
    seen.clear()
    rig.sender.reconcile(head)
    assert rig.mined()[0].nonce == 0 and len([at for at in seen if at != head.number]) == 1, "asked for once more"


def test_reconcile__a_lagging_provider__is_no_reorg(rig: Rig) -> None:
    rig.sender.send(CALL, key="k")
    newest = rig.chain._blocks.pop()
    assert rig.sender.reconcile().reorged == 0 and rig.state("k") is TxState.MINED
    rig.chain._blocks.append(newest)
    rig.sender.reconcile()
    assert rig.state("k") is TxState.MINED


# ---- rollbacks of any depth ----


@pytest.mark.parametrize("depth", [*range(1, 9), 16, 33, 63, 64, 65, 600])
def test_reconcile__rollback_of_any_depth__sends_again_what_the_chain_forgot(rig: Rig, depth: int) -> None:
    rig.chain.mine(count=3)
    first = rig.sender.send(CALL, key="k")
    for _ in range(depth - 1):
        rig.chain.mine()
    rig.sender.reconcile()
    assert rig.state("k") is (TxState.FINAL if depth > rig.config.finality else TxState.MINED)
    rig.chain.reorg(depth)
    rig.chain.drop_pool()
    assert rig.sender.reconcile().reorged == 1 and rig.state("k") is TxState.BROADCAST
    again = rig.sender.send(CALL, key="k")
    assert again.tx_hash == first.tx_hash and again.block_hash != first.block_hash and len(rig.mined()) == 1


@pytest.mark.parametrize("knows_head", [True, False])
def test_reconcile__chain_now_shorter__is_gone_back_only_where_the_caller_knows_the_head(
    rig: Rig, knows_head: bool
) -> None:
    rig.chain.mine(count=3)
    rig.sender.send(CALL, key="k")
    rig.chain.mine(count=100)
    rig.sender.reconcile()
    rig.chain.reorg(101, remine=[])
    rig.chain.drop_pool()
    found = rig.sender.reconcile(rig.chain.head() if knows_head else None)
    assert found.reorged == knows_head and rig.state("k") is (TxState.BROADCAST if knows_head else TxState.FINAL)


@pytest.mark.parametrize("depth", [1, 5, 101])
def test_send__chain_now_shorter_than_where_it_was_mined__says_nothing_before_it_is_as_long(
    rig: Rig, depth: int
) -> None:
    """Below that block a provider that lags and a chain that went back look alike: "mined" may be wrong."""
    rig.chain.mine(count=100)
    first = rig.sender.send(CALL, key="k")
    rig.chain.reorg(depth, remine=[])
    rig.chain.drop_pool()
    again = rig.sender.send(CALL, key="k")
    assert again.tx_hash == first.tx_hash and again.block_hash != first.block_hash
    block = rig.chain.block(again.block_number or 0)
    assert block is not None and block.hash == again.block_hash
    assert len(rig.mined()) == 1


def test_send__another_block_takes_its_place_while_it_is_waited_for__is_sent_once_more(rig: Rig) -> None:
    first = rig.sender.send(CALL, key="k")
    rig.chain.reorg(1, remine=[])
    rig.chain.drop_pool()
    rig.chain.fail(Fault("down", "send_raw"))
    again = rig.sender.send(CALL, key="k")
    assert again.tx_hash == first.tx_hash and again.block_hash != first.block_hash
    assert rig.chain.sent == [rig.chain.sent[0]] * 2 and len(rig.mined()) == 1


def test_send__provider_lags_behind_where_it_was_mined__waits_and_believes_the_journal(rig: Rig) -> None:
    first = rig.sender.send(CALL, key="k")
    newest = rig.chain._blocks.pop()
    rig.mining = False

    def catches_up(seconds: float) -> None:
        rig.now += seconds
        if rig.now == 5:
            rig.chain._blocks.append(newest)

    rig.sender._sleep = catches_up
    again = rig.sender.send(CALL, key="k")
    assert again.repeated and again.block_hash == first.block_hash and rig.now == 5 and len(set(rig.chain.sent)) == 1


def test_send__chain_stays_shorter_than_where_it_was_mined__says_so(rig: Rig) -> None:
    rig.chain.mine(count=9)
    rig.sender.send(CALL, key="k")
    rig.chain.reorg(4, remine=[])
    rig.mining = False
    with pytest.raises(
        ChainError, match=r"mined in block 10, .* newest block is 6: it lags, or .* went back"
    ) as caught:
        rig.sender.send(CALL, key="k")
    assert caught.value.code == "RPC_LAGS" and caught.value.retryable
    assert rig.config.timeout <= rig.now <= rig.config.timeout + 2


@pytest.mark.parametrize("blocks", [0, 5], ids=["its-chain-is-shorter", "its-chain-is-longer"])
def test_reconcile__receipt_of_a_chain_that_the_node_lost__is_none(rig: Rig, blocks: int) -> None:
    """A geth that was killed goes back, and serves the receipts of what it lost, however long its new chain is."""
    rig.chain.mine(count=3)
    first = rig.sender.send(CALL, key="k")
    dead = rig.chain.receipt(first.tx_hash or b"")
    rig.chain.reorg(1, remine=[])
    rig.chain.drop_pool()
    for _ in range(blocks):
        rig.chain.mine()
    alive = rig.chain.receipt
    rig.chain.receipt = lambda tx_hash, **_: alive(tx_hash) or dead  # type: ignore[method-assign]
    assert rig.sender.reconcile(rig.chain.head()).reorged == 1 and rig.state("k") is TxState.BROADCAST
    again = rig.sender.send(CALL, key="k")
    assert again.tx_hash == first.tx_hash and again.block_hash != first.block_hash and len(rig.mined()) == 1


def test_finish__receipt_of_a_block_that_left_the_chain__another_transaction_used_the_nonce(rig: Rig) -> None:
    rig.chain.mine(count=3)
    first = rig.sender.send(CALL, key="k")
    dead = rig.chain.receipt(first.tx_hash or b"")
    rig.chain.reorg(1, remine=[])
    rig.chain.drop_pool()
    rig.sender.reconcile(rig.chain.head())
    rig.chain.drop_pool()
    foreign = ACCOUNT.sign_transaction(
        {
            "type": 2,
            "chainId": rig.chain.chain_id(),
            "nonce": 0,
            "gas": 21_000,
            "to": "0x" + "66" * 20,
            "value": 1,
            "data": b"",
            "maxFeePerGas": 10**11,
            "maxPriorityFeePerGas": 10**10,
        }
    )
    rig.chain.send_raw(bytes(foreign.raw_transaction))
    rig.chain.mine()
    alive = rig.chain.receipt
    rig.chain.receipt = lambda tx_hash, **_: alive(tx_hash) or dead  # type: ignore[method-assign]
    with pytest.raises(ChainError) as caught:
        rig.sender.send(CALL, key="k")
    assert caught.value.code == "NONCE_TAKEN"


@pytest.mark.parametrize("late", [False, True])
def test_reconcile__mined_since_the_caller_looked__stays_mined(rig: Rig, late: bool) -> None:
    before = rig.chain.head()
    rig.sender.send(CALL, key="k")
    rig.chain.late = lambda _: late
    assert rig.sender.reconcile(before).reorged == 0 and rig.state("k") is TxState.MINED


def test_start__final_key_that_the_chain_forgot__is_sent_again(rig: Rig) -> None:
    """Whoever decides by the chain asks for the effect once more; the journal must not answer that it is done."""
    rig.chain.mine(count=3)
    rig.sender.send(CALL, key="k")
    rig.chain.mine(count=100)
    rig.sender.reconcile()
    rig.chain.reorg(101)
    rig.chain.drop_pool()
    assert rig.sender.start(CALL, key="k").intent.state is TxState.BROADCAST


def test_start__final_key_whose_receipt_is_pruned__is_done(rig: Rig) -> None:
    rig.sender.send(CALL, key="k")
    rig.chain.mine(count=100)
    rig.sender.reconcile()
    rig.chain.receipt = lambda tx_hash, **_: None  # type: ignore[method-assign]
    assert rig.sender.start(CALL, key="k").intent.state is TxState.FINAL
    again = rig.sender.send(CALL, key="k")
    assert again.repeated and again.logs == () and len(rig.chain.sent) == 1


def test_reconcile__reverted_transaction_rolled_back__holds_up_nothing(rig: Rig) -> None:
    def fail(tx: Transaction, block: Block) -> Effect:
        raise refused("jobs: not open")

    rig.chain.mine(count=3)
    rig.chain.on_send(TARGET, CALL.data[:4], fail)
    with pytest.raises(RefusedError):
        rig.sender.send(CALL, key="k")
    rig.chain.reorg(1)
    rig.chain.drop_pool()
    rig.sender.reconcile()
    rig.sender.send(Call(TARGET, b"\x05" * 4), key="l")
    assert [tx.nonce for tx in rig.mined()] == [0]


def test_finish__earlier_transaction_leaves_the_chain_meanwhile__is_sent_again_and_holds_up_nothing(rig: Rig) -> None:
    """Both left the chain while the later one was waited for: a command that only waits looks no journal through."""
    rig.chain.mine(count=3)
    first = rig.sender.send(CALL, key="k")
    second = Call(TARGET, b"\x05" * 4)
    pending = rig.sender.start(second, key="l")
    rig.chain.reorg(1)
    rig.chain.drop_pool()
    assert rig.sender.finish(pending).tx_hash is not None
    assert [(tx.nonce, tx.hash == first.tx_hash) for tx in rig.mined()] == [(0, True), (1, False)]


# ---- lies about nonces and receipts ----


def lie_about_nonces(rig: Rig, monkeypatch: pytest.MonkeyPatch, mined: int, pending: int) -> None:
    said = {False: mined, True: pending}
    monkeypatch.setattr(rig.chain, "nonce", lambda address, *, pending=False: said[pending])


@pytest.mark.parametrize("ahead", [1, MAX_GAP])
def test_send__one_lie_about_the_nonce__is_healed_by_filling_the_gap(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    with monkeypatch.context() as lying:
        lie_about_nonces(rig, lying, 0, ahead)
        pending = rig.sender.start(CALL, key="k")
    assert pending.intent.nonce == ahead
    assert rig.sender.finish(pending).tx_hash is not None
    assert [tx.nonce for tx in rig.mined()] == list(range(ahead + 1))
    rig.sender.reconcile()
    rig.sender.send(replace(CALL, label="other"), key="l")
    assert rig.mined()[-1].nonce == ahead + 1


def test_send__pool_beyond_reason__is_refused_and_nothing_signed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as lying:
        lie_about_nonces(rig, lying, 0, MAX_GAP + 1)
        with pytest.raises(ChainError) as caught:
            rig.sender.send(CALL, key="k")
    assert caught.value.code == "RPC_LIES" and caught.value.retryable and rig.chain.sent == []
    rig.sender.send(CALL, key="k")
    assert [tx.nonce for tx in rig.mined()] == [0]


@pytest.mark.parametrize(
    ("waiting", "mined", "pending", "is_believed"),
    [
        (2, 0, 2 + MAX_GAP, True),
        (2, 0, 3 + MAX_GAP, False),
        (0, 3, 3 + MAX_GAP, True),
        (0, 3, 4 + MAX_GAP, False),
        (2, 0, 1, True),
    ],
)
def test_start__nonce_that_an_rpc_names__may_be_a_full_pool_ahead_of_the_journal_or_of_what_is_mined(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, waiting: int, mined: int, pending: int, is_believed: bool
) -> None:
    for number in range(waiting):
        rig.sender.start(CALL, key=str(number))
    with monkeypatch.context() as lying:
        lie_about_nonces(rig, lying, mined, pending)
        if is_believed:
            started = rig.sender.start(CALL, key="k")
            assert started.intent.nonce == max(waiting, pending)
        else:
            with pytest.raises(ChainError, match=f"has {pending - mined} transactions waiting") as caught:
                rig.sender.start(CALL, key="k")
            assert caught.value.code == "RPC_LIES" and len(rig.chain.sent) == waiting
    if is_believed and not mined:
        assert rig.sender.finish(started).tx_hash is not None, "no more of them are to be filled than a pool keeps"


@pytest.mark.parametrize("crash", [True, False])
def test_send__nonce_out_of_reach_was_signed__is_given_up_and_the_key_goes_on(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, crash: bool
) -> None:
    """What an RPC alone can lie a sender into: both counts are false."""
    with monkeypatch.context() as lying:
        lie_about_nonces(rig, lying, 10**9, 10**9)
        pending = rig.sender.start(CALL, key="k")
    assert pending.intent.nonce == 10**9
    if crash:
        rig.journal._db.execute("UPDATE attempts SET at = at - 1000")
        rig.crash()
        assert rig.sender.reconcile().replaced == 1
    else:
        with pytest.raises(ChainError, match="out of reach") as caught:
            rig.sender.finish(pending)
        assert caught.value.code == "NONCE_TAKEN"
    assert rig.state("k") is TxState.REPLACED and rig.journal.next_nonce() == 0
    rig.sender.send(CALL, key="k")
    assert [tx.nonce for tx in rig.mined()] == [0]


def test_reconcile__more_wait_than_a_gap_may_be_wide__none_is_given_up_since_all_are_our_own(rig: Rig) -> None:
    for number in range(MAX_GAP + 3):
        rig.sender.start(CALL, key=str(number))
    rig.now += rig.config.replace_after
    assert rig.sender.reconcile() == Reconciled(rebroadcast=MAX_GAP + 3)


def test_look_again__nonce_out_of_reach__is_unclear_since_its_bytes_are_out(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as lying:
        lie_about_nonces(rig, lying, 10**9, 10**9)
        pending = rig.sender.start(CALL, key="send/a/0")
    with pytest.raises(ChainError):
        rig.sender.finish(pending)
    last = rig.journal.newest("send/a/", replaced=True)
    assert last is not None
    with pytest.raises(ChainError) as caught:
        rig.sender.look_again(last)
    assert caught.value.code == "TX_UNCLEAR" and "out of reach" in caught.value.message


def test_finish__receipt_before_the_nonce_is_used__is_not_believed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    pending = rig.sender.start(CALL, key="k")
    (tx,) = rig.chain.pending
    head = rig.chain.head()
    # It names a block that the chain has.
    forged = Receipt(tx.hash, head.number, head.hash, True, 21_000, 1, ADDRESS, TARGET, None, ())
    rig.mining = False
    with monkeypatch.context() as lying:
        lying.setattr(rig.chain, "receipt", lambda tx_hash, **_: forged)
        rig.sender.reconcile()
        assert rig.state("k") is TxState.BROADCAST
    rig.mining = True
    sent = rig.sender.finish(pending)
    assert sent.block_hash != forged.block_hash
    # Nor once it was mined, and its block has left the chain.
    rig.chain.reorg(1, remine=[])
    with monkeypatch.context() as lying:
        lying.setattr(rig.chain, "receipt", lambda tx_hash, **_: forged)
        assert rig.sender.reconcile(rig.chain.head()).reorged == 1 and rig.state("k") is TxState.BROADCAST


def test_send__dearest_tip_that_an_rpc_can_ask_for__is_the_cap(rig: Rig) -> None:
    rig.chain.priority_fee = 2**62
    rig.chain.set_balance(ADDRESS, 10**6 * ETHER)
    rig.sender.send(CALL, key="k")
    (tx,) = rig.mined()
    assert tx.max_fee == tx.priority_fee == rig.config.max_fee


@pytest.mark.e2e
def test_reconcile__a_real_chain_goes_back_by_1_to_64_blocks__everything_is_mined_again(tmp_path: Path) -> None:
    """Each round leaves the transactions of all rounds before it deeper, so that final ones are taken back as well."""
    from hearth.chain.rpc import RpcChain
    from hearth.local import devnet
    from tests.kit.anvil import bare_chain, need_anvil

    need_anvil()
    with bare_chain() as url:
        chain, account = RpcChain([url], timeout=10), devnet.account(0)
        chain.rpc("anvil_mine", "0x50")
        journal = TxJournal(
            tmp_path / "tx.db", chain_id=31337, genesis_hash=chain.genesis_hash(), address=account.address
        )
        sender = Sender(chain, account, journal, SenderConfig(MAX_FEE, timeout=20, poll=0.02, finality=8))
        keys: list[str] = []
        for depth in (1, 2, 7, 33, 64):
            keys.append(f"k/{depth}")
            sender.send(Call(TARGET, b"", depth, "pay"), key=keys[-1])
            mined = journal.find(keys[-1])
            assert mined is not None and mined.block_number is not None
            if depth > 1:
                chain.rpc("anvil_mine", hex(mined.block_number + depth - 1 - chain.head().number))
            sender.reconcile()
            chain.rpc("anvil_reorg", depth, [])
            assert sender.reconcile().reorged >= 1
        for key in keys:
            assert sender.send(Call(TARGET, b"", int(key[2:]), "pay"), key=key).tx_hash is not None
        assert chain.nonce(account.address) == len(keys)
        assert chain.balance(TARGET) == sum(int(key[2:]) for key in keys)
        journal.close()


# ---- what may be spent ----

OTHER = Call(TARGET, b"\x07\x08\x09\x0a", 0, "nodes.beat")
"""What must be sent at any price that the settings allow; CALL stands for what has a ceiling."""


def test_start__ceiling_below_the_base_fee__is_refused_before_a_signature(rig: Rig) -> None:
    rig.chain.base_fee = 30 * GWEI
    with pytest.raises(ChainError) as caught:
        rig.sender.start(CALL, key="k", ceiling=29 * GWEI)
    assert caught.value.code == "FEE_CAP" and caught.value.retryable and rig.chain.sent == []
    assert caught.value.details["for_all"] is False, "what is worth more may be sent"
    assert rig.sender.start(OTHER, key="l").intent.state is TxState.BROADCAST


def test_reconcile__fees_rise_above_a_ceiling__it_never_bids_more(rig: Rig) -> None:
    ceiling = 20 * GWEI
    rig.sender.start(CALL, key="k", ceiling=ceiling)
    rig.chain.base_fee = 100 * GWEI
    for _ in range(30):
        rig.sleep(rig.config.replace_after)
        rig.sender.reconcile()
    assert max(decode_raw(raw).max_fee for raw in rig.chain.sent) <= ceiling
    assert rig.state("k") is TxState.BROADCAST, "it waits for lower fees"
    rig.chain.base_fee = GWEI
    rig.chain.mine()
    rig.sender.reconcile()
    assert rig.state("k") is TxState.MINED


@pytest.mark.parametrize("cap", [MAX_FEE, 100 * GWEI])
def test_reconcile__what_is_too_dear_is_in_front__is_cancelled_for_what_must_be_sent(rig: Rig, cap: int) -> None:
    """Nonces are mined in their order: a claim that waits for lower fees must not hold up a beat."""
    rig.sender.config = replace(rig.config, max_fee=cap)
    claim = rig.sender.start(CALL, key="claim", ceiling=20 * GWEI)
    rig.chain.base_fee = 100 * GWEI
    rig.sender.start(OTHER, key="beat")
    for _ in range(3):
        rig.sleep(rig.config.replace_after)
        rig.sender.reconcile()
    assert rig.state("beat") is TxState.MINED and rig.state("claim") is TxState.FAILED
    first, second = rig.mined()
    assert (first.nonce, first.to, first.data, first.gas) == (0, ADDRESS, b"", 21_000)
    assert (second.nonce, second.data) == (1, OTHER.data)
    with pytest.raises(RefusedError, match="too dear"):
        rig.sender.finish(claim)


@pytest.mark.parametrize(
    ("cap", "ceiling", "first", "base_fee", "is_parked"),
    [
        (MAX_FEE, 20, 12, 20, False),
        (MAX_FEE, 20, 12, 21, True),
        (MAX_FEE, 20, 1, 20, False),
        (MAX_FEE, 20, 1, 21, True),
        (MAX_FEE, None, 1, 100, False),
        (3 * GWEI, None, 3, 3, False),
        (3 * GWEI, None, 3, 4, True),
    ],
)
def test_is_parked__bids_less_than_the_base_fee_and_may_not_bid_more(
    tmp_path: Path, cap: int, ceiling: int | None, first: int, base_fee: int, is_parked: bool
) -> None:
    rig = Rig(tmp_path, max_fee=cap)
    rig.chain.base_fee = first * GWEI
    intent = rig.sender.start(CALL, key="k", ceiling=ceiling and ceiling * GWEI).intent
    assert rig.sender.is_parked(intent, base_fee * GWEI) is is_parked
    rig.journal.close()


def test_cancel__waits_behind_a_ceiling__uses_its_nonce_up_at_a_fee_that_others_pay(rig: Rig) -> None:
    intent = rig.sender.start(CALL, key="k", ceiling=20 * GWEI).intent
    rig.chain.base_fee = 100 * GWEI
    assert rig.sender.is_parked(intent, rig.chain.base_fee)
    rig.sender.cancel(intent)
    assert not rig.sender.is_parked(intent, 10**6 * GWEI), "a cancel has no ceiling"
    rig.chain.mine()
    (tx,) = rig.mined()
    assert (tx.nonce, tx.to, tx.value, tx.data, tx.gas) == (0, ADDRESS, 0, b"", 21_000)
    assert rig.sender.reconcile().failed == 1 and rig.state("k") is TxState.FAILED


def test_cancel__was_replaced_already__bids_more_than_its_last_attempt(rig: Rig) -> None:
    rig.mining = False
    intent = rig.sender.start(CALL, key="k").intent
    rig.sleep(rig.config.replace_after)
    rig.sender.reconcile()
    rig.sender.cancel(intent)
    fees = [decode_raw(raw).max_fee for raw in rig.chain.sent]
    assert len(fees) == 3 and fees[2] * 8 >= fees[1] * 9 > fees[1] * 8 >= fees[0] * 9
    assert [(tx.to, tx.gas) for tx in rig.chain.pending] == [(ADDRESS, 21_000)]


def test_cancel__no_pool_would_take_what_may_be_bid__leaves_it_waiting(rig: Rig) -> None:
    rig.chain.base_fee = rig.config.max_fee
    intent = rig.sender.start(CALL, key="k").intent
    rig.sender.cancel(intent)
    assert len(rig.chain.sent) == 1 and rig.state("k") is TxState.BROADCAST


@pytest.mark.parametrize("ceiling", [None, 40 * GWEI])
@pytest.mark.parametrize("seen", [0, 10**9])
def test_why_capped__price_or_budget__says_which_from_the_first_wei_on(
    tmp_path: Path, ceiling: int | None, seen: int
) -> None:
    rig = Rig(tmp_path)
    if seen:
        rig.chain.rollup_fee_of = lambda tx: seen
        rig.sender.send(CALL, key="first")
    gas, price = 50_000, 8 * GWEI
    needed, spent = gas * price + seen, rig.journal.spent()
    budget = needed + spent if ceiling is None else -(-(needed + spent) * 4 // 3)
    most = rig.config.max_fee if ceiling is None else ceiling
    assert rig.sender.why_capped(most, gas, ceiling) == "", "no budget"
    told = rig.sender.why_capped(most + 1, gas, ceiling)
    assert told.endswith(f"{most // GWEI:,} gwei") and ("its share of" in told) == (ceiling is not None)
    rig.sender.config = replace(rig.config, day_budget=budget)
    assert rig.sender.why_capped(price, gas, ceiling) == ""
    rig.sender.config = replace(rig.config, day_budget=budget - 1)
    assert "24 hours" in rig.sender.why_capped(price, gas, ceiling)
    rig.journal.close()


@pytest.mark.parametrize("named", [None, 7 * GWEI])
def test_base_fee__head_without_one__is_what_gas_costs_now(rig: Rig, named: int | None) -> None:
    head = replace(rig.chain.head(), base_fee=named)
    assert rig.sender.base_fee(head) == (named or rig.chain.base_fee)


@pytest.mark.parametrize(("base_fee", "cancels"), [(20, False), (21, True), (60, True), (61, False)])
def test_reconcile__what_is_worth_more_waits_behind__what_is_in_front_is_cancelled_where_that_may_be_paid(
    rig: Rig, base_fee: int, cancels: bool
) -> None:
    """One that bids the base fee itself can be mined; and where nothing behind may pay it, a cancel gains nothing."""
    rig.mining = False
    rig.chain.base_fee = 12 * GWEI
    for key, ceiling in (("claim", 20), ("dear", 60), ("middling", 30)):
        rig.sender.start(CALL, key=key, ceiling=ceiling * GWEI)
    rig.chain.base_fee = base_fee * GWEI
    rig.sleep(rig.config.replace_after)
    rig.sender.reconcile()
    first = rig.chain.pending[0]
    assert (first.nonce, first.data) == (0, b"" if cancels else CALL.data)


def test_replace__account_can_no_longer_pay_for_more__the_first_attempt_stands(rig: Rig) -> None:
    rig.mining = False
    rig.sender.start(CALL, key="k")
    rig.chain.set_balance(ADDRESS, 1)
    rig.sleep(rig.config.replace_after)
    rig.sender.reconcile()
    assert len(rig.chain.sent) == 2 and rig.state("k") is TxState.BROADCAST
    rig.chain.mine()
    assert rig.sender.reconcile().mined == 1


def test_reconcile__what_must_be_sent_is_in_front__what_is_too_dear_waits_on(rig: Rig) -> None:
    rig.mining = False
    for key in ("a", "b"):
        rig.sender.start(OTHER, key=key)
    rig.sender.start(CALL, key="claim", ceiling=20 * GWEI)
    rig.chain.base_fee = 100 * GWEI
    for _ in range(2):
        rig.sleep(rig.config.replace_after)
        rig.sender.reconcile()
    assert [(tx.nonce, tx.data) for tx in rig.chain.pending] == [(0, OTHER.data), (1, OTHER.data), (2, CALL.data)]


def test_replace__cancelled_once__stays_a_cancel_though_the_call_would_do_again(rig: Rig) -> None:
    """Its gas is that of a cancel: the call itself would run out of it."""

    def refuse(call: Call, block: Block) -> bytes:
        raise refused("jobs: not open")

    rig.sender.start(CALL, key="k")
    rig.chain.base_fee *= 8
    rig.mining = False
    rig.chain.on_call(TARGET, CALL.data[:4], refuse)
    rig.sleep(rig.config.replace_after)
    rig.sender.reconcile()
    rig.chain.on_call(TARGET, CALL.data[:4], lambda call, block: b"")
    rig.sleep(rig.config.replace_after)
    rig.sender.reconcile()
    last = decode_raw(rig.chain.sent[-1])
    assert len(rig.chain.sent) == 3 and (last.to, last.data, last.gas) == (ADDRESS, b"", 21_000)


def test_start__days_budget__is_kept_with_what_waits_and_the_last_quarter_is_for_what_must_be_sent(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path)
    gas = rig.chain.gas_estimate * 12 // 10
    budget = 8 * gas * (2 * rig.chain.base_fee + rig.chain.priority_fee)
    rig.sender.config = replace(rig.config, day_budget=budget)
    codes: list[tuple[str, object]] = []
    for number in range(200):
        try:
            rig.sender.send(
                CALL if number < 150 else OTHER, key=str(number), ceiling=GWEI << 20 if number < 150 else None
            )
        except ChainError as error:
            codes.append((error.code, error.details["for_all"]))
    assert set(codes) == {("SPEND_CAP", True)}
    spent = 10 * ETHER - rig.chain.balance(ADDRESS)
    fee = 50_000 * (rig.chain.base_fee + rig.chain.priority_fee)
    ceiled = sum(fee for tx in rig.mined() if tx.data == CALL.data)
    assert budget * 5 // 8 < ceiled <= budget * 3 // 4 < spent <= budget
    assert rig.journal.spent() == spent and "budget" in rig.sender.why_capped(rig.chain.base_fee * 9, 30_000)
    rig.journal._db.execute("UPDATE intents SET at = at - 86401")
    rig.sender.send(CALL, key="tomorrow", ceiling=GWEI << 20)
    rig.journal.close()


@pytest.mark.parametrize("estimated", [True, False])
def test_start__rollup_takes_a_fee_beside_gas__the_days_budget_holds_with_it_to_the_wei(
    tmp_path: Path, estimated: bool
) -> None:
    """No signature bounds that fee: what is kept for it is twice an estimate, or as much as receipts have shown."""
    rig = Rig(tmp_path)
    gas = rig.chain.gas_estimate * 12 // 10
    most = gas * (2 * rig.chain.base_fee + rig.chain.priority_fee)
    taken = 3 * most
    rig.chain.rollup_fee_of = lambda tx: taken
    rig.chain.rollup_estimate = taken * 2 // 3 if estimated else 0
    rig.sender.config = replace(rig.config, day_budget=20 * most)
    sent = 0
    with pytest.raises(ChainError) as caught:
        for sent in range(200):
            rig.sender.send(CALL, key=str(sent))
    assert caught.value.code == "SPEND_CAP" and sent > 3
    spent = 10 * ETHER - rig.chain.balance(ADDRESS)
    assert rig.journal.spent() == spent == sum(one.fee for one in rig.journal.intents(TxState.MINED, TxState.FINAL))
    assert spent <= 20 * most < spent + 2 * taken
    assert rig.sender.why_capped(rig.chain.base_fee, gas) if not estimated else True
    rig.journal.close()


@pytest.mark.parametrize("budget", [None, 10 * ETHER])
def test_start__one_receipt_told_a_rollup_fee_beyond_reason__the_key_goes_on(
    tmp_path: Path, budget: int | None
) -> None:
    """A word of 10**30 wei, once, and nothing could be paid for a day: FUNDS_SHORT, or SPEND_CAP."""
    rig = Rig(tmp_path)
    rig.sender.config = replace(rig.config, day_budget=budget)
    real = rig.chain.receipt
    rig.chain.receipt = lambda *a, **k: (  # type: ignore[method-assign]
        None if (found := real(*a, **k)) is None else replace(found, rollup_fee=10**30)
    )
    rig.sender.send(CALL, key="a")
    rig.chain.receipt = real  # type: ignore[method-assign]
    lie = rig.journal.rollup_fee()
    costs = [rig.sender.send(OTHER, key=str(number)).fee for number in range(9)]
    assert rig.journal.spent() == 10 * ETHER - rig.chain.balance(ADDRESS) + lie, (
        "it is the cost of one, not of the rest"
    )
    assert len(rig.mined()) == 10 and 0 < lie < 100 * min(costs)
    rig.journal.close()


def test_start__what_a_rollup_takes_is_more_than_the_effect_is_worth__is_not_signed(rig: Rig) -> None:
    gas = rig.chain.gas_estimate * 12 // 10
    rig.chain.rollup_estimate = gas * GWEI
    rig.sender.start(CALL, key="worth it", ceiling=3 * GWEI)
    assert [tx.max_fee for tx in rig.chain.pending] == [GWEI], "what is kept for it comes off the bid"
    with pytest.raises(ChainError) as caught:
        rig.sender.start(CALL, key="not", ceiling=3 * GWEI - 1)
    assert caught.value.code == "FEE_CAP"
    rig.chain.set_balance(ADDRESS, gas * (3 * GWEI))
    with pytest.raises(FundsError):
        rig.sender.start(CALL, key="short")
    assert len(rig.chain.sent) == 1


def test_start__what_a_rollup_takes_is_no_whole_price_per_gas__is_rounded_up_against_the_ceiling(rig: Rig) -> None:
    gas = rig.chain.gas_estimate * 12 // 10
    rig.chain.rollup_estimate = gas * GWEI // 2 + 1
    with pytest.raises(ChainError) as caught:
        rig.sender.start(CALL, key="not", ceiling=rig.chain.base_fee + GWEI)
    assert caught.value.code == "FEE_CAP" and not caught.value.details["for_all"]
    rig.sender.start(CALL, key="worth it", ceiling=rig.chain.base_fee + GWEI + 1)
    assert [tx.max_fee for tx in rig.chain.pending] == [rig.chain.base_fee]


def test_finish__receipt_comes_later_than_the_transaction__is_waited_for(rig: Rig) -> None:
    """It was given up after three looks: `submit` failed though the job was posted, and its gas was free."""
    hidden = [True]
    rig.chain.late = lambda _: hidden[0] and rig.now < 30
    assert rig.sender.send(CALL, key="k").fee == 10 * ETHER - rig.chain.balance(ADDRESS) == rig.journal.spent()
    assert rig.now >= 30 and len(rig.mined()) == 1


def test_start__pools_are_full__the_same_bytes_again_at_the_same_fee_and_no_error(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody gains a higher fee by saying that a pool is full: it rises when the transaction has waited, as any."""
    real, said = rig.chain.send_raw, []

    def full(raw: bytes) -> bytes:
        said.append(raw)
        if len(said) < 4:
            raise ChainError("the transaction pool has no room now", code="POOL_FULL", hint="hearth doctor")
        return real(raw)

    monkeypatch.setattr(rig.chain, "send_raw", full)
    rig.sender.start(CALL, key="k")
    for _ in range(2):
        assert rig.state("k") is TxState.SIGNED
        rig.sleep(1)
        rig.sender.reconcile()
    assert rig.sender.send(CALL, key="k").tx_hash == decode_raw(said[0]).hash
    assert len(said) == 4 and len(set(said)) == 1


def test_start__pools_were_full_until_it_was_replaced__its_last_attempt_is_what_is_sent_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(raw: bytes) -> bytes:
        raise ChainError("the transaction pool has no room now", code="POOL_FULL", hint="hearth doctor")

    with monkeypatch.context() as refusing:
        refusing.setattr(rig.chain, "send_raw", full)
        first = rig.sender.start(CALL, key="k").intent
        rig.sleep(rig.config.replace_after)
        rig.sender.reconcile()
    attempts = rig.journal.attempts(first)
    rig.sender.start(OTHER, key="other")
    assert len(attempts) == 2 and rig.chain.sent[0] == attempts[-1].raw


def test_reconcile__started_again__waits_as_long_as_it_has_not_waited(rig: Rig) -> None:
    rig.mining = False
    rig.sender.start(CALL, key="k")
    rig.crash()
    rig.sender.reconcile()
    rig.sleep(rig.config.replace_after - 0.5)
    rig.sender.reconcile()
    assert len(set(rig.chain.sent)) == 1
    rig.sleep(0.5)
    rig.sender.reconcile()
    assert len(set(rig.chain.sent)) == 2


def test_reconcile__budget_leaves_no_room__nothing_dearer_is_signed(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    gas = rig.chain.gas_estimate * 12 // 10
    most = gas * (2 * rig.chain.base_fee + rig.chain.priority_fee) * 9 // 8 + gas
    rig.sender.config = replace(rig.config, day_budget=most)
    rig.sender.start(CALL, key="k")
    rig.chain.base_fee *= 100
    for _ in range(6):
        rig.sleep(rig.config.replace_after)
        rig.sender.reconcile()
    bids = {decode_raw(raw).hash: decode_raw(raw).max_fee for raw in rig.chain.sent}
    assert len(bids) == 2 and gas * max(bids.values()) <= most
    rig.journal.close()


@pytest.mark.parametrize("jump", [86_400.0, -86_400.0, None])
def test_reconcile__wall_clock_jumps_or_stands_still__what_waits_is_replaced_in_its_time(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, jump: float | None
) -> None:
    """A clock that went back a day would have held a beat up for a day."""
    at = tx_journal.time.time()
    monkeypatch.setattr(tx_journal.time, "time", lambda: at)
    rig.mining = False
    rig.sender.start(CALL, key="k")
    if jump is not None:
        monkeypatch.setattr(tx_journal.time, "time", lambda: at + jump + rig.now)
    rig.sender.reconcile()
    assert len({decode_raw(raw).hash for raw in rig.chain.sent}) == 1, "not before its time"
    rig.sleep(rig.config.replace_after)
    rig.sender.reconcile()
    assert len({decode_raw(raw).hash for raw in rig.chain.sent}) == 2


@pytest.mark.e2e
@pytest.mark.net
def test_reconcile__base_fee_times_8_and_a_dropped_pool_on_anvil__all_is_mined_within_the_cap(tmp_path: Path) -> None:
    """What a real pool says (`already known`, `nonce too low`, `replacement transaction underpriced`) means what it
    should: nothing is lost, nothing is sent twice."""
    from hearth.chain.rpc import RpcChain
    from hearth.local import devnet
    from tests.kit.anvil import bare_chain, need_anvil

    need_anvil()
    cap = 100 * GWEI
    with bare_chain("--no-mining") as url:
        chain, account = RpcChain([url], timeout=10), devnet.account(0)
        address = account.address.lower()
        journal = TxJournal(tmp_path / "tx.db", chain_id=31337, genesis_hash=chain.genesis_hash(), address=address)
        config = SenderConfig(cap, timeout=20, poll=0.02, replace_after=0.0, finality=8)
        sender = Sender(chain, account, journal, config)
        before = chain.balance(address)

        def spike(factor: int) -> int:
            fee = chain.head().base_fee * factor
            chain.rpc("anvil_setNextBlockBaseFeePerGas", hex(fee))
            chain.rpc("evm_mine")
            chain.rpc("anvil_setNextBlockBaseFeePerGas", hex(fee))
            chain.begin_cycle()
            return fee

        for number in range(6):
            sender.start(
                Call(TARGET, b"", number + 1, "pay"), key=f"k/{number}", ceiling=None if number % 2 else cap // 2
            )
        signed = [journal.attempts(intent)[-1] for intent in journal.intents(TxState.BROADCAST)]
        with pytest.raises(ChainError) as caught:
            chain.send_raw(signed[0].raw)
        assert caught.value.code == "ALREADY_KNOWN"
        spike(8)
        assert chain.nonce(address) == 0, "none of them pays enough now"
        for attempt in signed[::2]:
            chain.rpc("anvil_dropTransaction", hex_of(attempt.hash))
        sender.reconcile()
        chain.rpc("evm_mine")
        found = sender.reconcile()
        assert (found.mined, chain.nonce(address)) == (6, 6)
        with pytest.raises(ChainError) as caught:
            chain.send_raw(signed[0].raw)
        assert caught.value.code == "NONCE_TOO_LOW"
        assert chain.balance(TARGET) == sum(range(1, 7))
        fees = [(one.gas_used or 0) * (one.gas_price or 0) for one in journal.intents(TxState.MINED)]
        assert all(0 < fee <= 21_000 * cap for fee in fees)
        assert before - chain.balance(address) == sum(fees) + chain.balance(TARGET)
        assert max(a.max_fee for one in journal.intents(TxState.MINED) for a in journal.attempts(one)) <= cap
        # A replacement that is not an eighth dearer is no loss: the next one is.
        waits = sender.start(Call(TARGET, b"", 7, "pay"), key="k/7")
        last = journal.attempts(waits.intent)[-1]
        with pytest.raises(ChainError) as caught:
            cheap = Bid(last.max_fee, last.priority_fee)
            chain.send_raw(sender._sign(Call(TARGET, b"", 8), 6, last.gas, cheap, 0).raw)
        assert caught.value.code == "UNDERPRICED"
        sender.reconcile()
        chain.rpc("evm_mine")
        assert sender.reconcile().mined == 1
        journal.close()
