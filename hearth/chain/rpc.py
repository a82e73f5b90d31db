"""The chain port over JSON-RPC: what each method of the port asks the providers, and which answer it takes.

Where there are several providers, a read at the newest block is a read at the newest one that they agree on, so that
their answers can be compared. Logs outside of what was asked for are no answer. A range is asked for in pieces that
halve as providers refuse.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from hearth.base.errors import ChainError, RefusedError
from hearth.chain import answers, rollup
from hearth.chain.answers import ProviderFailed, TooMuch
from hearth.chain.fees import usual_tip
from hearth.chain.port import (
    Block,
    BlockRef,
    Call,
    Fees,
    Log,
    Receipt,
    Signed,
    Topics,
    Transaction,
    hex_of,
    match_topics,
    reason_of,
    refused,
)
from hearth.chain.providers import OnFault, Providers, optional_block

MAX_SPAN: Final = 10_000
"""Blocks that one eth_getLogs asks for at most; halved as a provider refuses, down to one."""
_GROW_AFTER: Final = 8


class RpcChain:
    """Read and write one chain through `urls`, in order of preference.

    `chain_id` and `genesis_hash` pin the chain: a provider that serves another one is set aside, and where none ever
    served this one it is refused with WRONG_CHAIN. `timeout` is seconds for one whole answer, `attempts` the rounds
    over all providers, `rate` requests per second and URL. `on_fault` hears which provider is set aside, and why.
    """

    def __init__(
        self,
        urls: Sequence[str],
        timeout: float = 10.0,
        *,
        chain_id: int | None = None,
        genesis_hash: bytes | None = None,
        attempts: int = 3,
        rate: float = 200.0,
        burst: float = 200.0,
        max_span: int = MAX_SPAN,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        on_fault: OnFault = lambda name, why: None,
    ) -> None:
        self._providers = Providers(
            urls,
            timeout,
            chain_id=chain_id,
            genesis_hash=genesis_hash,
            attempts=attempts,
            rate=rate,
            burst=burst,
            clock=clock,
            wall=wall,
            sleep=sleep,
            on_fault=on_fault,
        )
        self._max_span = self._span = max_span
        self._smooth = 0
        self._fees: tuple[bytes, Fees] | None = None
        self._oracle: str | None = None
        """The rollup's contract that estimates what it takes beside gas, "" for none, None where nobody has looked."""

    def ask_instead(self, other: RpcChain) -> None:
        """Ask from now on those that `other` asks, which must be of the same chain; what was learnt of the old goes."""
        self._providers = other._providers
        self._fees = None
        self._span, self._smooth = self._max_span, 0

    @property
    def counts(self) -> Counter[str]:
        """Return counts of requests, failovers, throttled, halved and outvoted, for metrics."""
        return self._providers.counts

    def begin_cycle(self) -> None:
        """Ask for the head anew, and the most preferred provider that is not set aside before the others."""
        self._providers.begin_cycle()

    # ---- reads ----

    def chain_id(self) -> int:
        """Return the chain id."""
        return self._providers.first("eth_chainId", [], answers.quantity)

    def genesis_hash(self) -> bytes:
        """Return the hash of block 0."""
        genesis = self.block(0)
        if genesis is None:
            raise ChainError("the provider has no block 0", code="WRONG_CHAIN", retryable=False, hint="hearth doctor")
        return genesis.hash

    def verify(self) -> None:
        """Check every provider that answers against the pinned chain. Raises ChainError WRONG_CHAIN, or the
        last failure where none answers."""
        self._providers.verify()

    def head(self) -> Block:
        """Return the newest block, of several providers the newest that more than half of those that answer know."""
        return self._providers.newest()

    def block(self, at: BlockRef) -> Block | None:
        """Return a block, or None where the provider does not know it."""
        if at == "latest":
            return self._providers.newest()
        heard: list[Block] = []

        def parse(raw: Any) -> Block | None:
            found = optional_block(raw)
            if found is not None and not isinstance(at, str) and at not in (found.number, found.hash):
                raise ValueError("another block")
            heard.extend([] if found is None else [found])
            return found

        method, ref = _block_request(at)
        try:
            found = self._providers.agreed(method, [ref, False], parse)
            return None if found is None else found.announcing(heard)
        except ChainError as error:
            if error.code == "BLOCK_UNKNOWN":
                return None
            raise

    def logs(
        self,
        addresses: Sequence[str],
        topics: Topics = (),
        *,
        from_block: int | None = None,
        to_block: int | None = None,
        block_hash: bytes | None = None,
    ) -> list[Log]:
        """Return logs in chain order: a range is asked for in pieces that halve as the provider refuses."""
        wanted = [a.lower() for a in addresses]
        query: dict[str, Any] = {"address": wanted, "topics": [_topic(t) for t in topics]}

        def ask(where: dict[str, str], fits: Callable[[Log], bool], *, wide: bool = False) -> list[Log]:
            def parse(raw: Any) -> list[Log]:
                found = answers.logs(raw)
                for log in found:
                    if (wanted and log.address not in wanted) or not match_topics(log.topics, topics) or not fits(log):
                        raise ValueError("a log that was not asked for")
                if len({(log.block_hash, log.tx_hash, log.log_index) for log in found}) != len(found):
                    raise ValueError("a log twice")
                return found

            return self._providers.agreed("eth_getLogs", [{**query, **where}], parse, wide=wide)

        if block_hash is not None:
            return ask({"blockHash": hex_of(block_hash)}, lambda log: log.block_hash == block_hash)
        if from_block is None or to_block is None:
            raise ValueError("logs need a range or a block hash")
        result: list[Log] = []
        start = from_block
        while start <= to_block:
            piece = range(start, min(to_block, start + self._span - 1) + 1)
            where = {"fromBlock": hex(piece[0]), "toBlock": hex(piece[-1])}
            try:
                result += ask(where, lambda log, piece=piece: log.block_number in piece, wide=len(piece) > 1)  # type: ignore[misc]
            except TooMuch:
                self.counts["halved"] += 1
                self._span = max(1, len(piece) // 2)
                self._smooth = 0
                continue
            start = piece[-1] + 1
            self._smooth += 1
            if self._smooth >= _GROW_AFTER:
                self._span, self._smooth = min(self._max_span, self._span * 2), 0
        return result

    def call(self, call: Call, block: BlockRef = "latest", *, sender: str | None = None) -> bytes:
        """Run a call without sending it. Raises RefusedError with the contract's reason where it reverts."""
        try:
            return self._providers.agreed("eth_call", [_tx(call, sender), self._at(block)], answers.data)
        except RefusedError as error:
            raise refused(reason_of(error), label=call.label) from error

    def code(self, address: str, block: BlockRef = "latest") -> bytes:
        """Return a contract's runtime code."""
        return self._providers.agreed("eth_getCode", [address, self._at(block)], answers.data)

    def balance(self, address: str, block: BlockRef = "latest") -> int:
        """Return an account's native balance in wei."""
        return self._providers.agreed("eth_getBalance", [address, self._at(block)], answers.amount)

    def nonce(self, address: str, *, pending: bool = False) -> int:
        """Return an account's next nonce; with the pool's transactions, what more than half say at least."""
        if pending:
            found = self._providers.numbers("eth_getTransactionCount", [address, "pending"])
            return found[(len(found) - 1) // 2]
        return self._providers.agreed("eth_getTransactionCount", [address, self._at("latest")], answers.quantity)

    def estimate_gas(self, call: Call, sender: str) -> int:
        """Return the gas that a call needs: of several words the middle one, of two the larger.

        Raises RefusedError with the contract's reason where it reverts: of several providers, where it does for more
        than half, since an estimate is only a number.
        """
        if not self._providers.alone:
            self.call(call, sender=sender)
        try:
            found = self._providers.numbers("eth_estimateGas", [_tx(call, sender)], parse=answers.gas)
        except RefusedError as error:
            raise refused(reason_of(error), label=call.label) from error
        return found[len(found) // 2]

    def fees(self) -> Fees:
        """Suggest fees: the newest block's base fee, and the providers' priority fee, of two the smaller.

        One that does not serve the question counts for the usual tip: else the word of the only one that does would be
        nobody's to outvote. Where headers have no base fee, it is the providers' price of gas, of two the larger. Asked
        once a block: what they suggest is made of blocks.
        """
        newest = self._providers.recent()
        if self._fees is None or self._fees[0] != newest.hash:
            base_fee = newest.base_fee
            if base_fee is None:
                prices = self._providers.numbers("eth_gasPrice", [])
                base_fee = prices[len(prices) // 2]
            tips = self._providers.numbers("eth_maxPriorityFeePerGas", [], instead=usual_tip(base_fee))
            typical = self.rollup_fee(bytes(rollup.TYPICAL_BYTES), rollup.TYPICAL_GAS)
            beside = -(-typical // rollup.TYPICAL_GAS)
            self._fees = newest.hash, Fees(base_fee, tips[(len(tips) - 1) // 2], beside)
        return self._fees[1]

    def rollup_fee(self, data: bytes, gas: int) -> int:
        """Estimate the wei that a rollup takes for a transaction beside its gas, by the chain's own contract.

        0 where the chain has none that Hearth knows, which is found out once.
        """
        if self._oracle is None:
            found = (
                one for one in rollup.ORACLES if rollup.said(self._ask_oracle(one, rollup.asks_l1_fee(b""))) is not None
            )
            self._oracle = next(found, "")
        if not self._oracle:
            return 0
        questions = rollup.asks_l1_fee(data), rollup.asks_operator_fee(gas)
        return sum(rollup.said(self._ask_oracle(self._oracle, one)) or 0 for one in questions)

    def _ask_oracle(self, oracle: str, question: bytes) -> bytes:
        try:
            return self.call(Call(oracle, question))
        except RefusedError:  # it has no such function, as OP Stack chains before Isthmus, and Scroll
            return b""

    # ---- writes ----

    def send_raw(self, raw: bytes) -> bytes:
        """Broadcast a signed transaction by every provider, so that none can keep it back, and return its hash."""
        from eth_utils.crypto import keccak

        tx_hash = keccak(raw)

        def parse(said: Any) -> bytes:
            if answers.digest(said) != tx_hash:
                raise ValueError("the hash of another transaction")
            return tx_hash

        return self._providers.tell("eth_sendRawTransaction", [hex_of(raw)], parse)

    def receipt(self, tx_hash: bytes, *, signed: Signed | None = None) -> Receipt | None:
        """Return a mined transaction's receipt, or None.

        Of several providers it is that of the newest block that they agree on: in a later one it is not mined yet. One
        with more gas, or wei per gas, than was signed for is its provider's failure, RPC_LIES. Of price and of what a
        rollup took, more than half say what counts, also that there is nothing to say. Where there is no price, it is
        the one that was signed for, at its block's base fee.
        """
        method, request = "eth_getTransactionReceipt", [hex_of(tx_hash)]
        newest = self._newest_of_several()
        heard: list[Receipt] = []

        def parse(raw: Any) -> Receipt | None:
            found = None if raw is None else answers.receipt(raw)
            if found is None:
                return None
            if found.tx_hash != tx_hash:
                raise ValueError("the receipt of another transaction")
            if signed is not None and (found.gas_used > signed.gas or (found.gas_price or 0) > signed.max_fee):
                told, meant = f"{found.gas_used} gas at {found.gas_price} wei", f"{signed.gas} at {signed.max_fee}"
                raise ProviderFailed(f"its receipt says {told}; signed for: {meant}", code="RPC_LIES")
            heard.append(found)
            return found if newest is None or found.block_number <= newest.number else None

        try:
            found = self._providers.agreed(method, request, parse, or_none=True)
            if found is None:
                return None
            price, beside = found.gas_price, found.rollup_fee
            if len({(one.gas_price, one.rollup_fee) for one in heard if one == found}) > 1:
                every = self._providers.every(method, request, parse)
                words = {one: said for one, said in every.items() if said == found}
                if not words:
                    return None
                prices = {one: said.gas_price for one, said in words.items()}
                price = self._providers.counted(method, prices, or_none=True)  # what was signed tells it as well
                beside = self._providers.counted(method, {one: said.rollup_fee for one, said in words.items()})
        except ChainError as error:
            # A geth that crashed names a block for the transaction, above its head, and then does not find it.
            if error.code == "BLOCK_UNKNOWN":
                return None
            raise
        return replace(found, gas_price=price or self._price_of(found, signed), rollup_fee=beside)

    def _price_of(self, receipt: Receipt, signed: Signed | None) -> int:
        """Return the price of a receipt that says none: of what was signed, as its block and its kind have it."""
        if signed is None:
            sent = self.transaction(receipt.tx_hash)
            if sent is None:
                why = f"the RPC has the receipt of transaction {hex_of(receipt.tx_hash)}, and not the transaction"
                raise ChainError(why, code="RPC_LAGS", hint="hearth doctor")
            signed = Signed(sent.gas, sent.max_fee, sent.priority_fee)
        block = self.block(receipt.block_hash)
        return signed.price_at(None if block is None else block.base_fee)

    def transaction(self, tx_hash: bytes) -> Transaction | None:
        """Return a transaction that a node knows, of several more than half of those that have the newest block."""
        self._newest_of_several()

        def parse(raw: Any) -> Transaction | None:
            found = None if raw is None else answers.transaction(raw)
            if found is not None and found.hash != tx_hash:
                raise ValueError("another transaction")
            return found

        return self._providers.agreed("eth_getTransactionByHash", [hex_of(tx_hash)], parse, or_none=True)

    def rpc(self, method: str, *params: Any) -> Any:
        """Send any JSON-RPC method, for local chains' own ones such as anvil_reorg."""
        return self._providers.first(method, list(params), lambda raw: raw)

    def _at(self, block: BlockRef) -> Any:
        """Name a block for a read; a hash goes as EIP-1898 with requireCanonical, so that a reorg is an error."""
        if block == "latest":
            newest = self._newest_of_several()
            block = block if newest is None else newest.hash
        if isinstance(block, bytes):
            return {"blockHash": hex_of(block), "requireCanonical": True}
        return hex(block) if isinstance(block, int) else block

    def _newest_of_several(self) -> Block | None:
        """Return the newest block that the providers agree on; None where there is one provider, whose word it is."""
        return None if self._providers.alone else self._providers.recent()


def _block_request(at: BlockRef) -> tuple[str, str]:
    if isinstance(at, bytes):
        return "eth_getBlockByHash", hex_of(at)
    return "eth_getBlockByNumber", hex(at) if isinstance(at, int) else at


def _tx(call: Call, sender: str | None) -> dict[str, str]:
    tx = {"data": hex_of(call.data)}
    if call.to is not None:
        tx["to"] = call.to
    if call.value:
        tx["value"] = hex(call.value)
    if sender is not None:
        tx["from"] = sender
    return tx


def _topic(topic: bytes | Sequence[bytes] | None) -> Any:
    if topic is None:
        return None
    return hex_of(topic) if isinstance(topic, bytes) else [hex_of(one) for one in topic]
