"""What clients and providers say when something is wrong, word by word, and what Hearth makes of it.

The words of anvil and geth are brought about on the clients themselves by test_clients.py; those of others are taken
from their sources or their documentation. Every alternative of every pattern is somebody's words, or it goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from hearth.base.errors import ChainError, RefusedError
from hearth.chain import answers, rollup
from hearth.chain.answers import ProviderFailed, TooMuch, failure_of
from hearth.chain.port import hex_of
from tests.chain.test_rpc import ADDRESS, Provider, Rpc, block_json, chain, log_json, serving

HASH = "0x" + "ab" * 32
SEND, CALL, LOGS, TIP = "eth_sendRawTransaction", "eth_call", "eth_getLogs", "eth_maxPriorityFeePerGas"
RECEIPT, BLOCK, BALANCE = "eth_getTransactionReceipt", "eth_getBlockByNumber", "eth_getBalance"
# What an error may come to: the name of the exception, and its code.
KNOWN, LOW = ("ChainError", "ALREADY_KNOWN"), ("ChainError", "NONCE_TOO_LOW")
CHEAP, FULL = ("ChainError", "UNDERPRICED"), ("ChainError", "POOL_FULL")
NEVER, FUNDS = ("RefusedError", "TX_REFUSED"), ("FundsError", "FUNDS_SHORT")
REVERT, UNKNOWN = ("RefusedError", "REFUSED"), ("ChainError", "BLOCK_UNKNOWN")
NO_METHOD, WIDE = ("ChainError", "RPC_UNSUPPORTED"), ("TooMuch", "")
SLOW_DOWN, FAILED = ("ProviderFailed", "throttled"), ("ProviderFailed", "RPC_UNAVAILABLE")


class Row(NamedTuple):
    """Who says what to which method, and what it comes to."""

    who: str
    method: str
    code: int
    words: str
    means: tuple[str, str]


ROWS = [
    # The pool.
    Row("geth", SEND, -32000, "already known", KNOWN),
    Row("Nethermind", SEND, -32010, "AlreadyKnown", KNOWN),
    Row("Besu", SEND, -32000, "Known transaction", KNOWN),
    Row("OpenEthereum", SEND, -32010, "Transaction with the same hash was already imported.", KNOWN),
    Row("Cosmos", SEND, -32000, "tx already in mempool", KNOWN),
    Row("geth", SEND, -32000, "nonce too low: next nonce 5, tx nonce 3", LOW),
    Row("OpenEthereum", SEND, -32010, "Transaction nonce is too low. Try incrementing the nonce.", LOW),
    Row("Nethermind", SEND, -32010, "OldNonce, Current nonce: 5, nonce of rejected tx: 3", LOW),
    Row("geth", SEND, -32000, "replacement transaction underpriced", CHEAP),
    Row("Nethermind", SEND, -32010, "FeeTooLow, MaxFeePerGas too low", CHEAP),
    Row("geth", SEND, -32000, "max fee per gas less than block base fee: address 0x9999, maxFeePerGas: 1", CHEAP),
    Row("Besu", SEND, -32009, "Gas price below current base fee", CHEAP),
    Row("geth", SEND, -32000, "transaction gas price below minimum: gas tip cap 0, minimum needed 1", CHEAP),
    Row("Besu", SEND, -32009, "Gas price below configured minimum gas price", CHEAP),
    Row("geth", SEND, -32000, "txpool is full", FULL),
    Row("Conflux", SEND, -32602, "Failed imported to deferred pool: Transaction Pool is full", FULL),
    Row("reth", SEND, -32003, "queued sub-pool is full", FULL),
    Row("reth", SEND, -32003, "transaction discarded outright due to pool size constraints", FULL),
    Row("OpenEthereum", SEND, -32010, "There are too many transactions in the queue. Try increasing the fee.", FULL),
    Row("geth", SEND, -32000, "intrinsic gas too low: gas 20999, minimum needed 21000", NEVER),
    Row("geth", SEND, -32000, "transaction gas limit too high (cap: 16777216, tx: 31000000)", NEVER),
    Row("geth", SEND, -32000, "exceeds block gas limit", NEVER),
    Row("geth", SEND, -32000, "max priority fee per gas higher than max fee per gas", NEVER),
    Row("geth", SEND, -32000, "tx fee (1.50 ether) exceeds the configured cap (1.00 ether)", NEVER),
    Row("geth", SEND, -32000, "invalid sender", NEVER),
    Row("geth", SEND, -32000, "invalid chain id for signer: have 5 want 1337", NEVER),
    Row("geth", SEND, -32000, "oversized data: transaction size 131255, limit 131072", NEVER),
    Row("geth", SEND, -32000, "max initcode size exceeded: code size 49153, limit 49152", NEVER),
    Row("geth", SEND, -32000, "transaction type not supported", NEVER),
    Row("reth", SEND, -32602, "failed to decode signed transaction", NEVER),
    # Contracts.
    Row("geth", CALL, 3, "execution reverted: jobs: not open", REVERT),
    Row("OpenEthereum", CALL, -32015, "VM execution error.", REVERT),
    Row("geth", CALL, -32000, "invalid opcode: INVALID", REVERT),
    Row("anvil", CALL, -32603, "EVM error InvalidFEOpcode", REVERT),
    Row("geth", CALL, -32000, "out of gas", REVERT),
    Row("anvil", CALL, -32603, "EVM error OutOfGas", REVERT),
    Row("geth", "eth_estimateGas", -32000, "gas required exceeds allowance (30000000)", REVERT),
    # Funds.
    Row("geth", SEND, -32000, "insufficient funds for gas * price + value: balance 0, tx cost 1", FUNDS),
    Row("geth", CALL, -32000, "insufficient balance for transfer", FUNDS),
    Row("Ganache", SEND, -32000, "sender doesn't have enough funds to send tx. The upfront cost is: 9", FUNDS),
    Row("revm", CALL, -32003, "lack of funds (0) for max fee (1)", FUNDS),
    # How often, and how much at once.
    Row("Infura", BALANCE, -32005, "daily request count exceeded, request rate limited", SLOW_DOWN),
    Row("Infura", BALANCE, -32005, "project ID request rate exceeded", SLOW_DOWN),
    Row("Infura", BALANCE, -32005, "Too Many Requests", SLOW_DOWN),
    Row("proxyd (OP stack)", BALANCE, -32016, "over rate limit", SLOW_DOWN),
    Row("QuickNode", BALANCE, -32007, "50/second request limit reached - reduce calls per second", SLOW_DOWN),
    Row("Chainstack", BALANCE, -32005, "You've exceeded the RPS limit available on the current plan.", SLOW_DOWN),
    Row("Alchemy", BALANCE, 429, "Your app has exceeded its throughput limit", SLOW_DOWN),
    Row("Alchemy", BALANCE, 429, "Your app has exceeded its compute units per second capacity", SLOW_DOWN),
    Row("Alchemy", BALANCE, 429, "Your app has exceeded its concurrent requests capacity.", SLOW_DOWN),
    Row("Infura", LOGS, -32005, "query returned more than 10000 results", WIDE),
    Row("BNB Chain", LOGS, -32000, "exceed maximum block range: 5000", WIDE),
    Row("QuickNode", LOGS, -32614, "eth_getLogs is limited to a 10,000 range", WIDE),
    Row("Alchemy", LOGS, -32602, "Log response size exceeded.", WIDE),
    Row("geth", LOGS, -32003, "response too large", WIDE),
    Row("jsonrpsee (reth)", LOGS, -32008, "Response is too big", WIDE),
    Row("reth", LOGS, -32602, "query exceeds max results 20000", WIDE),
    Row("EIP-1474", LOGS, -32005, "Limit", WIDE),
    Row("geth", LOGS, -32002, "request timed out", WIDE),
    Row("Infura", LOGS, -32000, "query timeout exceeded", WIDE),
    # Blocks.
    Row("geth", CALL, -32000, "header not found", UNKNOWN),
    Row("geth", CALL, -32000, "header for hash not found", UNKNOWN),
    Row("reth", CALL, -32001, f"block not found: hash {HASH}", UNKNOWN),
    Row("geth's tracers", CALL, -32000, f"block {'ab' * 32} not found", UNKNOWN),
    Row("geth", RECEIPT, -32000, f"receipt not found, 140, {'c0' * 32}, 0", UNKNOWN),
    Row("reth", RECEIPT, -32001, "transaction not found", UNKNOWN),
    Row("anvil", CALL, -32001, "Resource not found", UNKNOWN),
    Row("geth", LOGS, -32000, "unknown block", UNKNOWN),
    Row("geth", BALANCE, -32000, f"missing trie node {'ab' * 32} (path ) state {HASH} is not available", UNKNOWN),
    Row("geth", BALANCE, -32000, f"historical state {'ab' * 32} is not available", UNKNOWN),
    Row("Besu", BALANCE, -32000, "World state unavailable", UNKNOWN),
    Row("geth", CALL, -32000, "hash is not currently canonical", UNKNOWN),
    Row("geth", LOGS, -32000, "block range extends beyond current head block", UNKNOWN),
    Row("anvil", LOGS, -32602, "BlockOutOfRangeError: block height is 9 but requested was 59", UNKNOWN),
    # Methods.
    Row("geth", TIP, -32601, f"the method {TIP} does not exist/is not available", NO_METHOD),
    Row("a gateway", TIP, -32000, f"the method {TIP} does not exist", NO_METHOD),
    Row("a gateway", TIP, -32000, f"the method {TIP} is not found", NO_METHOD),
    Row("Besu", TIP, -32604, "Method not enabled", NO_METHOD),
    Row("proxyd (OP stack)", TIP, -32001, "rpc method is not whitelisted", NO_METHOD),
    Row("Alchemy", TIP, -32600, f"Unsupported method: {TIP}.", NO_METHOD),
    Row("EIP-1474", TIP, -32004, "Method not supported", NO_METHOD),
    # No words of ours: a failure of this provider alone, so that another is asked.
    Row("Infura", RECEIPT, -32000, "project not found", FAILED),
    Row("a gateway", RECEIPT, -32000, "API key not found", FAILED),
    Row("a gateway", BLOCK, -32000, "block explorer key not found", FAILED),
    Row("a gateway", BLOCK, -32001, "upstream not found", FAILED),
    Row("geth", RECEIPT, -32000, "transaction indexing is in progress", FAILED),
    Row("JSON-RPC", BALANCE, -32603, "Internal error", FAILED),
    # Two cases in one message: which comes first (the order in `failure_of`).
    Row("pool before a limit's code", SEND, -32005, "Transaction gas limit exceeds block gas limit", NEVER),
    Row("pool before a contract", SEND, -32000, "already known: execution reverted", KNOWN),
    Row("funds before a method's code", SEND, -32004, "Upfront cost exceeds account balance", FUNDS),
    Row("a pool's words of a call", CALL, -32000, "nonce too low", FAILED),
    Row("contract before a limit", CALL, 3, "execution reverted: rate limit exceeded", REVERT),
    Row("contract before a limit's code", CALL, -32005, "execution reverted", REVERT),
    Row("contract before funds", CALL, -32000, "execution reverted: ERC20: insufficient balance", REVERT),
    Row("contract before a block", CALL, -32000, "execution reverted: block not found", REVERT),
    Row("contract before a method", CALL, -32601, "execution reverted: method not found", REVERT),
    Row("range before a limit", LOGS, -32000, "block range too large, capacity 1000, request limit 10 rps", WIDE),
    Row("range, no limit at all", LOGS, -32000, "block range too large, capacity 1000", WIDE),
    Row("a limit's words before its code", LOGS, -32005, "project ID request rate exceeded", SLOW_DOWN),
    Row("a limit before anything too much", LOGS, -32000, "too many requests, limit exceeded", SLOW_DOWN),
    Row("the head before a range's code", LOGS, -32005, "block range extends beyond current head block", UNKNOWN),
    Row("too much, of another method", BALANCE, -32000, "query returned more than 10000 results", FAILED),
    Row("a block before a method", CALL, -32000, "method eth_call failed: header not found", UNKNOWN),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.who}: {row.words[:40]}")
def test_failure_of__a_clients_words__are_the_case_that_they_mean(row: Row) -> None:
    """With the code that comes with them, and with one that says nothing, as gateways have it."""
    for number in (row.code, -32000):
        found = failure_of({"code": number, "message": row.words}, row.method)
        code = "throttled" if getattr(found, "throttled", False) else getattr(found, "code", "")
        assert (type(found).__name__, code) == row.means, number


def _alternatives(pattern: str) -> list[str]:
    """Split a pattern at the bars that stand in no group."""
    parts, depth = [""], 0
    for character in pattern:
        depth += (character == "(") - (character == ")")
        if character == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


PATTERNS = {
    "_REVERT": REVERT,
    "_NO_METHOD": NO_METHOD,
    "_RATE": SLOW_DOWN,
    "_TOO_WIDE": WIDE,
    "_TOO_MUCH": WIDE,
    "_UNKNOWN_BLOCK": UNKNOWN,
    "_KNOWN": KNOWN,
    "_NONCE_LOW": LOW,
    "_UNDERPRICED": CHEAP,
    "_POOL_FULL": FULL,
    "_FUNDS": FUNDS,
    "_NEVER": NEVER,
}


@pytest.mark.parametrize("name", PATTERNS)
def test_words__every_alternative__is_what_somebody_says_and_what_decides_there(name: str) -> None:
    """Each has a row whose words meet no other alternative of its pattern: without it the row came out otherwise."""
    found = _alternatives(getattr(answers, name).pattern)
    said = [row.words for row in ROWS if row.means == PATTERNS[name]]
    met = {words: [one for one in found if re.search(one, words, re.I)] for words in said}
    alone = {one for (one, *others) in filter(None, met.values()) if not others}
    assert set(found) - alone == set()


def test_words__every_pattern_of_the_module__is_in_the_table() -> None:
    parts = {"_QUANTITY", "_ADDRESS", "_OUT_OF_GAS", "_BEYOND_HEAD"}  # no words, or a part of another pattern
    assert {name for name, value in vars(answers).items() if isinstance(value, re.Pattern)} - parts == set(PATTERNS)


# ---- what a caller sees ----


def refusing(code: int, words: str) -> Callable[..., Any]:
    def answer(*_: Any) -> Any:
        raise Rpc(code, words)

    return answer


DEAD_KEYS = [(-32000, "project not found"), (-32000, "API key not found"), (-32001, "key not found")]


@pytest.mark.net
@pytest.mark.parametrize(("code", "words"), DEAD_KEYS)
def test_receipt_and_block__the_providers_key_is_dead__is_no_word_about_the_chain(code: int, words: str) -> None:
    """Taken for "no such receipt", one provider without a key would have every transaction sent again."""
    with serving() as dead:
        for method in ("eth_getTransactionReceipt", "eth_getBlockByHash"):
            dead.on(method, refusing(code, words))
        port = chain(dead, attempts=1)
        for read in (lambda: port.receipt(b"\1" * 32), lambda: port.block(b"\1" * 32)):
            with pytest.raises(ChainError, match=words) as caught:
                read()
            assert caught.value.code == "RPC_UNAVAILABLE" and caught.value.retryable


@pytest.mark.net
def test_block__one_of_two_has_a_dead_key__is_set_aside_by_name_and_the_other_answers() -> None:
    heard: list[str] = []
    with serving() as dead, serving() as good:
        dead.on("eth_getBlockByHash", refusing(-32000, "project not found"))
        good.on("eth_getBlockByHash", lambda *_: block_json(4))
        port = chain(dead, good, on_fault=lambda name, why: heard.append(why))
        for _ in range(2):
            found = port.block(bytes.fromhex(block_json(4)["hash"][2:]))
            assert found is not None and found.number == 4
        assert dead.counts["eth_getBlockByHash"] == 1 and heard == ["eth_getBlockByHash: project not found"]


@pytest.mark.net
def test_fees__the_method_is_not_found_in_other_words__falls_back() -> None:
    with serving() as provider:
        provider.on(TIP, refusing(-32000, f"the method {TIP} is not found"))
        provider.on("eth_getBlockByNumber", lambda *_: {**block_json(4), "baseFeePerGas": hex(10**9)})
        assert chain(provider).fees().priority_fee == 10**9


@pytest.mark.net
def test_logs__a_range_beyond_a_capacity__halves_and_nobody_rests() -> None:
    def serve(provider: Provider) -> None:
        def answer(query: dict[str, Any]) -> Any:
            first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
            if last - first >= 8:
                raise Rpc(-32000, "block range too large, capacity 8")
            return [log_json(number) for number in range(first, last + 1)]

        provider.on("eth_getLogs", answer)

    with serving() as provider:
        serve(provider)
        port = chain(provider)
        assert len(port.logs([ADDRESS], from_block=0, to_block=31)) == 32
        assert port.counts["halved"] > 0 and port.counts["throttled"] == 0


def test_failure_of__an_error_that_is_no_object__is_this_providers_failure() -> None:
    assert type(failure_of("broken", CALL)) is ProviderFailed
    assert type(failure_of({"message": hex_of(b"\1")}, CALL)) is ProviderFailed


@pytest.mark.parametrize("code", [429, -32005, -32007, -32029])
def test_failure_of__a_limits_code_alone__is_enough(code: int) -> None:
    found = failure_of({"code": code, "message": "no"}, BALANCE, 7.0)
    assert isinstance(found, ProviderFailed) and found.throttled and found.wait == 7.0
    assert isinstance(failure_of({"code": -32005, "message": "no"}, LOGS), TooMuch)


@pytest.mark.parametrize("code", [-32601, -32004])
def test_failure_of__a_missing_methods_code_alone__is_enough(code: int) -> None:
    found = failure_of({"code": code, "message": "no"}, TIP)
    assert isinstance(found, ChainError) and found.code == "RPC_UNSUPPORTED" and not found.retryable


def test_failure_of__a_reverts_code_alone__is_enough() -> None:
    assert isinstance(failure_of({"code": 3, "message": ""}, CALL), RefusedError)


# ---- what is missing is never 0 ----


def receipt_fields(**changes: Any) -> dict[str, Any]:
    return {
        "transactionHash": HASH,
        "blockNumber": "0x3",
        "blockHash": block_json(3)["hash"],
        "status": "0x1",
        "gasUsed": hex(50_000),
        "effectiveGasPrice": "0x7",
        "from": ADDRESS,
        "to": ADDRESS,
        "contractAddress": None,
        "logs": [],
        **changes,
    }


def transaction_fields() -> dict[str, Any]:
    fees = {"gas": hex(60_000), "maxFeePerGas": "0x9", "maxPriorityFeePerGas": "0x1", "gasPrice": "0x6"}
    where = {"blockNumber": "0x3", "blockHash": block_json(3)["hash"]}
    return {
        "hash": HASH,
        "from": ADDRESS,
        "to": ADDRESS,
        "nonce": "0x0",
        "value": "0x0",
        "input": "0x",
        **fees,
        **where,
    }


@pytest.mark.parametrize(
    ("fields", "fee"),
    [
        ({}, None),
        ({"l1Fee": None}, None),
        ({"l1Fee": "0x5"}, 5),
        ({"l1Fee": "0x5", "operatorFee": "0x6"}, 11),
        ({"l1Fee": "0x0", "operatorFeeScalar": hex(3 * 10**6), "operatorFeeConstant": "0x9"}, 150_009),
        ({"l1Fee": "0x1", "operatorFeeScalar": "0x3", "daFootprintGasScalar": "0x190"}, 15_000_001),
        ({"l1Fee": "0x1", "operatorFeeConstant": "0x2"}, 3),
        ({"l1Fee": hex(2**200)}, 2**200),
        ({"gasUsedForL1": "0x5", "l1BlockNumber": "0x9"}, None),  # Arbitrum, whose gas has it already
    ],
)
def test_receipt__of_a_rollup__tells_what_it_took_beside_gas(fields: dict[str, Any], fee: int | None) -> None:
    found = answers.receipt(receipt_fields(**fields))
    assert found is not None and found.rollup_fee == fee and found.fee == 50_000 * 7 + (fee or 0)


@pytest.mark.net
def test_receipt__of_several_providers__what_one_leaves_out_another_says_and_most_are_believed() -> None:
    with serving() as one, serving() as two, serving() as three:
        every = (one, two, three)
        for provider in every:
            provider.on("eth_getBlockByNumber", lambda at, _: block_json(9 if at == "latest" else int(at, 16)))
            provider.on("eth_getTransactionReceipt", lambda _: receipt_fields(l1Fee="0x5"))
        digest = bytes.fromhex(HASH[2:])
        one.on("eth_getTransactionReceipt", lambda _: receipt_fields(effectiveGasPrice=None))
        heard: list[str] = []
        found = chain(*every, on_fault=lambda name, why: heard.append(why)).receipt(digest)
        assert found is not None and (found.gas_price, found.rollup_fee) == (7, 5) and heard == []
        one.on("eth_getTransactionReceipt", lambda _: receipt_fields())
        assert chain(one, two).receipt(digest).rollup_fee == 5, "what is missing is never 0"  # type: ignore[union-attr]
        one.on("eth_getTransactionReceipt", lambda _: receipt_fields(l1Fee=hex(10**30)))
        for order in (every, every[::-1], (two, one, three)):
            found = chain(*order, on_fault=lambda name, why: heard.append(why)).receipt(digest)
            assert found is not None and found.rollup_fee == 5, "a liar would end a budget for a day"
        with pytest.raises(ChainError) as caught:
            chain(one, two).receipt(digest)
        assert caught.value.code == "NO_QUORUM"


@pytest.mark.net
@pytest.mark.parametrize("liar", range(3))
def test_receipt__one_of_three_tells_fees_that_the_others_say_nothing_of__they_do_not_count(liar: int) -> None:
    """One voice against silence won: an L1 fee on a chain without one took a key's balance and budget for a day."""
    with serving() as one, serving() as two, serving() as three:
        every = [one, two, three]
        for provider in every:
            provider.on("eth_getBlockByNumber", lambda at, _: block_json(9 if at == "latest" else int(at, 16)))
            provider.on("eth_getBlockByHash", lambda *_: block_json(3))
            provider.on("eth_getTransactionReceipt", lambda _: receipt_fields(effectiveGasPrice=None))
            provider.on("eth_getTransactionByHash", lambda _: transaction_fields())
        lies = {"l1Fee": hex(10**30), "effectiveGasPrice": hex(10**18)}
        every[liar].on("eth_getTransactionReceipt", lambda _: receipt_fields(**lies))
        found = chain(*every).receipt(bytes.fromhex(HASH[2:]))
        assert found is not None and (found.gas_price, found.rollup_fee) == (5 + 1, None)
        pair = chain(every[liar], every[liar - 1]).receipt(bytes.fromhex(HASH[2:]))
        assert pair is not None and pair.gas_price == 5 + 1, "of two, the transaction tells the price"


@pytest.mark.net
@pytest.mark.parametrize("lie", [1, 10**30])
def test_receipt__one_says_no_rollup_fee_and_one_lies__the_higher_word_counts(lie: int) -> None:
    """A liar beside a provider that leaves the field out kept every receipt away: nothing that was sent ended."""
    with serving() as one, serving() as two, serving() as three:
        for provider in (one, two, three):
            provider.on("eth_getBlockByNumber", lambda at, _: block_json(9 if at == "latest" else int(at, 16)))
            provider.on("eth_getBlockByHash", lambda *_: block_json(3))
        one.on("eth_getTransactionReceipt", lambda _: receipt_fields(l1Fee="0x5"))
        two.on("eth_getTransactionReceipt", lambda _: receipt_fields())
        three.on("eth_getTransactionReceipt", lambda _: receipt_fields(l1Fee=hex(lie)))
        found = chain(one, two, three).receipt(bytes.fromhex(HASH[2:]))
        assert found is not None and found.rollup_fee == max(5, lie)


@pytest.mark.net
def test_fees__headers_without_a_base_fee__go_by_the_price_of_gas() -> None:
    with serving() as provider:
        provider.on("eth_getBlockByNumber", lambda *_: {k: v for k, v in block_json(4).items() if k[:4] != "base"})
        provider.on("eth_gasPrice", lambda: hex(7 * 10**9))
        provider.on("eth_maxPriorityFeePerGas", lambda: "0x1")
        fees = chain(provider).fees()
        assert (fees.base_fee, fees.priority_fee, fees.beside) == (7 * 10**9, 1, 0)


def test_asks_l1_fee__of_some_data__counts_the_envelope_of_a_signed_transaction_with_it() -> None:
    """The oracle prices the bytes that it is shown: what surrounds the data is published too, and is paid for."""
    asked = rollup.asks_l1_fee(b"\xab" * 100)
    assert int.from_bytes(asked[36:68], "big") == 100 + 180 and asked[68:168] == b"\xab" * 100
    assert len(asked) == 4 + 2 * 32 + 288, "the ABI's bytes end at a whole word"


@pytest.mark.net
@pytest.mark.parametrize(
    ("oracle", "refuses", "estimate"),
    [
        (rollup.ORACLES[0], False, 100 + 70_000),
        (rollup.ORACLES[0], True, 100),
        (rollup.ORACLES[1], True, 100),
        ("", True, 0),
    ],
)
def test_rollup_fee__chain_has_an_oracle__asks_it_of_the_data_and_the_gas(
    oracle: str, refuses: bool, estimate: int
) -> None:
    def answer(call: dict[str, str], _: Any) -> str:
        if call["to"] != oracle:
            return "0x"
        if call["data"].startswith("0x49948e0e"):
            assert call["data"].count("abcdef") in (0, 1)
            return "0x" + (100).to_bytes(32, "big").hex()
        if refuses:
            raise Rpc(3, "execution reverted")
        # The ABI's one word: a contract reads the 32 bytes behind the selector, whatever follows.
        return "0x" + int(call["data"][10:74], 16).to_bytes(32, "big").hex()

    with serving() as provider:
        provider.on("eth_call", answer)
        port = chain(provider)
        assert [port.rollup_fee(b"\xab\xcd\xef", 70_000) for _ in range(2)] == [estimate] * 2
        if not oracle:
            assert provider.counts["eth_call"] == len(rollup.ORACLES), "found out once"
