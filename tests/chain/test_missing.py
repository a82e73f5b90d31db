"""Every field of a provider's answers missing, null, zero and garbled: what each comes to. What is missing is never 0.

The table is complete: a field that the code reads and that has no row fails the last test here.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest

from hearth.base.errors import HearthError
from hearth.chain.endpoint import Endpoint, _Http
from hearth.chain.port import Call, Signed
from hearth.chain.rpc import RpcChain
from tests.kit.evm import ROOT

ADDRESS: Final = "0x" + "ab" * 20
HASH: Final = "0x" + "cd" * 32
TX: Final = bytes.fromhex(HASH[2:])
ASIDE: Final = "RPC_BROKEN"
"""The provider is set aside with its fault, and the next one is asked."""
MISSING: Final = object()

BLOCK: Final[dict[str, Any]] = {
    "number": "0x7",
    "hash": HASH,
    "parentHash": HASH,
    "timestamp": "0x64",
    "baseFeePerGas": "0x3",
    "logsBloom": "0x" + "ff" * 256,
}
LOG: Final[dict[str, Any]] = {
    "address": ADDRESS,
    "topics": [HASH],
    "data": "0x12",
    "blockNumber": "0x7",
    "blockHash": HASH,
    "transactionHash": HASH,
    "transactionIndex": "0x1",
    "logIndex": "0x2",
    "removed": False,
}
ANY_RECEIPT: Final[dict[str, Any]] = {
    "transactionHash": HASH,
    "blockNumber": "0x7",
    "blockHash": HASH,
    "status": "0x1",
    "gasUsed": "0x64",
    "effectiveGasPrice": "0x4",
    "from": ADDRESS,
    "to": ADDRESS,
    "contractAddress": ADDRESS,
    "logs": [LOG],
    "l1Fee": "0x9",
    "operatorFee": "0x8",
    "operatorFeeScalar": "0xf4240",
    "operatorFeeConstant": "0x5",
    "daFootprintGasScalar": "0x1",
}
RECEIPT, RECEIPT_OF_PARTS = ({**ANY_RECEIPT} for _ in range(2))
for name in ("operatorFeeScalar", "operatorFeeConstant", "daFootprintGasScalar"):
    del RECEIPT[name]
del RECEIPT_OF_PARTS["operatorFee"]
TRANSACTION: Final[dict[str, Any]] = {
    "hash": HASH,
    "from": ADDRESS,
    "to": ADDRESS,
    "nonce": "0x1",
    "value": "0x1",
    "input": "0x12",
    "gas": "0x64",
    "gasPrice": "0x4",
    "maxFeePerGas": "0x6",
    "maxPriorityFeePerGas": "0x1",
    "blockNumber": "0x7",
    "blockHash": HASH,
}
LEGACY: Final = {name: value for name, value in TRANSACTION.items() if not name.startswith("max")}
SIGNED: Final = Signed(1_000, 9, 2)
"""At the block's base fee of 3 it pays 5 for each gas."""
ANSWERS: Final[dict[str, Any]] = {
    "eth_chainId": "0x5",
    "eth_getBlockByNumber": BLOCK,
    "eth_getBlockByHash": BLOCK,
    "eth_getLogs": [LOG],
    "eth_getTransactionReceipt": RECEIPT,
    "eth_getTransactionByHash": TRANSACTION,
    "eth_getBalance": "0x5",
    "eth_getTransactionCount": "0x5",
    "eth_estimateGas": "0x5",
    "eth_maxPriorityFeePerGas": "0x5",
    "eth_gasPrice": "0x5",
    "eth_getCode": "0x12",
    "eth_call": "0x12",
    "eth_sendRawTransaction": "0x" + "00" * 32,
}


def _receipt(port: RpcChain) -> Any:
    found = port.receipt(TX, signed=SIGNED)
    return found and (found.ok, found.gas_used, found.gas_price, found.rollup_fee, len(found.logs))


def _block(port: RpcChain) -> Any:
    found = port.block(7)
    return found and (found.timestamp, found.base_fee, len(found.bloom), any(found.bloom))


def _transaction(port: RpcChain) -> Any:
    found = port.transaction(TX)
    return found and (found.gas, found.max_fee, found.priority_fee, found.block_number)


# What a read comes to: fields of interest, or the code of its error.
READS: Final[dict[str, tuple[str, Callable[[RpcChain], Any], dict[str, Any]]]] = {
    "block": ("eth_getBlockByNumber", _block, BLOCK),
    "log": ("eth_getLogs", lambda port: len(port.logs([ADDRESS], from_block=7, to_block=7)), LOG),
    "receipt": ("eth_getTransactionReceipt", _receipt, RECEIPT),
    "receipt of parts": ("eth_getTransactionReceipt", _receipt, RECEIPT_OF_PARTS),
    "transaction": ("eth_getTransactionByHash", _transaction, TRANSACTION),
    "legacy transaction": ("eth_getTransactionByHash", _transaction, LEGACY),
    **{
        method: (method, read, {})
        for method, read in {
            "eth_chainId": lambda port: port.chain_id(),
            "eth_getBalance": lambda port: port.balance(ADDRESS),
            "eth_getTransactionCount": lambda port: port.nonce(ADDRESS),
            "eth_estimateGas": lambda port: port.estimate_gas(Call(ADDRESS, b""), ADDRESS),
            "eth_maxPriorityFeePerGas": lambda port: port.fees().priority_fee,
            "eth_gasPrice": lambda port: port.fees().base_fee,
            "eth_getCode": lambda port: port.code(ADDRESS),
            "eth_call": lambda port: port.call(Call(ADDRESS, b"")),
            "eth_sendRawTransaction": lambda port: port.send_raw(b"\1"),
            "eth_getLogs": lambda port: port.logs([ADDRESS], from_block=7, to_block=7),
        }.items()
    },
}


def answering(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any]) -> RpcChain:
    """Return a port whose one provider gives these results by method, without a socket."""

    def post(self: Endpoint, body: bytes, limit: int) -> _Http:
        asked = json.loads(body)
        said = {"jsonrpc": "2.0", "id": asked["id"], "result": answers[asked["method"]]}
        if said["result"] is MISSING:
            del said["result"]
        return _Http(200, None, json.dumps(said).encode())

    monkeypatch.setattr(Endpoint, "_post", post)
    return RpcChain(["http://provider"], attempts=1)


def outcome(monkeypatch: pytest.MonkeyPatch, kind: str, field: str, value: Any) -> Any:
    """Return what a read comes to where a field of its answer, or all of it for no field, is another value."""
    method, read, whole = READS[kind]
    answers, said = {**ANSWERS}, value
    if kind == "eth_gasPrice":  # asked where headers have no base fee
        answers["eth_getBlockByNumber"] = {**BLOCK, "baseFeePerGas": None}
    if field:
        said = {**whole, field: value}
        if value is MISSING:
            del said[field]
        said = [said] if kind == "log" else said
    try:
        return read(answering(monkeypatch, {**answers, method: said}))
    except HearthError as error:
        return error.code


class Row(NamedTuple):
    """What a field comes to that is missing, null, zero (or empty) and garbled."""

    missing: Any
    null: Any
    zero: Any
    garbled: Any = ASIDE


LOGS, ONE = 1, (True, 100, 4, 17, 1)
SENT = (100, 6, 1, 7)
DIGEST, NOBODY, DATA = "0x" + "00" * 32, "0x" + "00" * 20, "0x"
ROWS: Final[dict[tuple[str, str], tuple[Any, Row]]] = {
    # A block without number, hash or time is none. One without a base fee is of a chain that has none: the price of gas
    # is asked for. One without a bloom, or with an empty one, is asked for its logs (tests/chain/test_follow.py).
    ("block", "number"): ("0x0", Row(ASIDE, ASIDE, ASIDE)),
    ("block", "hash"): (DIGEST, Row(ASIDE, ASIDE, (100, 3, 256, True))),
    ("block", "parentHash"): (DIGEST, Row(ASIDE, ASIDE, (100, 3, 256, True))),
    ("block", "timestamp"): ("0x0", Row(ASIDE, ASIDE, (0, 3, 256, True))),
    ("block", "baseFeePerGas"): ("0x0", Row((100, None, 256, True), (100, None, 256, True), (100, 0, 256, True))),
    ("block", "logsBloom"): ("0x" + "00" * 256, Row((100, 3, 0, False), (100, 3, 0, False), (100, 3, 256, False))),
    ("log", "address"): (NOBODY, Row(ASIDE, ASIDE, ASIDE)),
    ("log", "topics"): ([], Row(ASIDE, ASIDE, LOGS)),
    ("log", "data"): (DATA, Row(ASIDE, ASIDE, LOGS)),
    ("log", "blockNumber"): ("0x0", Row(ASIDE, ASIDE, ASIDE)),
    ("log", "blockHash"): (DIGEST, Row(ASIDE, ASIDE, LOGS)),
    ("log", "transactionHash"): (DIGEST, Row(ASIDE, ASIDE, LOGS)),
    ("log", "transactionIndex"): ("0x0", Row(LOGS, LOGS, LOGS)),
    ("log", "logIndex"): ("0x0", Row(ASIDE, ASIDE, LOGS)),
    ("log", "removed"): (False, Row(LOGS, LOGS, LOGS)),
    # No number of a block means that none has it yet. No price, and one of 0, is the price that was signed for. No gas
    # is what was signed for, in the journal (tests/chain/test_tx_journal.py), and so is a rollup's fee that is missing.
    ("receipt", "transactionHash"): (DIGEST, Row(ASIDE, ASIDE, ASIDE)),
    ("receipt", "blockNumber"): ("0x0", Row(None, None, ONE)),
    ("receipt", "blockHash"): (DIGEST, Row(ASIDE, ASIDE, ONE)),
    ("receipt", "status"): ("0x0", Row(ASIDE, ASIDE, (False, *ONE[1:]))),
    ("receipt", "gasUsed"): ("0x0", Row(ASIDE, ASIDE, (True, 0, 4, 17, 1))),
    ("receipt", "effectiveGasPrice"): ("0x0", Row(*[(True, 100, 5, 17, 1)] * 3)),
    ("receipt", "from"): (NOBODY, Row(ASIDE, ASIDE, ONE)),
    ("receipt", "to"): (NOBODY, Row(ONE, ONE, ONE)),
    ("receipt", "contractAddress"): (NOBODY, Row(ONE, ONE, ONE)),
    ("receipt", "logs"): ([], Row(ASIDE, ASIDE, (True, 100, 4, 17, 0))),
    ("receipt", "l1Fee"): ("0x0", Row(*[(True, 100, 4, 8, 1)] * 3)),
    ("receipt", "operatorFee"): ("0x0", Row(*[(True, 100, 4, 9, 1)] * 3)),
    ("receipt of parts", "operatorFeeScalar"): ("0x0", Row(*[(True, 100, 4, 14, 1)] * 3)),
    ("receipt of parts", "operatorFeeConstant"): ("0x0", Row(*[(True, 100, 4, 9 + 10**10, 1)] * 3)),
    ("receipt of parts", "daFootprintGasScalar"): (
        "0x0",
        Row((True, 100, 4, 114, 1), (True, 100, 4, 114, 1), *[(True, 100, 4, 14 + 10**10, 1)] * 2),
    ),
    ("transaction", "hash"): (DIGEST, Row(ASIDE, ASIDE, ASIDE)),
    ("transaction", "from"): (NOBODY, Row(ASIDE, ASIDE, SENT)),
    ("transaction", "to"): (NOBODY, Row(SENT, SENT, SENT)),
    ("transaction", "nonce"): ("0x0", Row(ASIDE, ASIDE, SENT)),
    ("transaction", "value"): ("0x0", Row(ASIDE, ASIDE, SENT)),
    ("transaction", "input"): (DATA, Row(ASIDE, ASIDE, SENT)),
    ("transaction", "gas"): ("0x0", Row(ASIDE, ASIDE, (0, 6, 1, 7))),
    ("transaction", "maxFeePerGas"): ("0x0", Row((100, 4, 1, 7), (100, 4, 1, 7), (100, 0, 1, 7))),
    ("transaction", "maxPriorityFeePerGas"): ("0x0", Row((100, 6, 4, 7), (100, 6, 4, 7), (100, 6, 0, 7))),
    ("transaction", "blockNumber"): ("0x0", Row((100, 6, 1, None), (100, 6, 1, None), (100, 6, 1, 0))),
    ("transaction", "blockHash"): (DIGEST, Row((100, 6, 1, None), (100, 6, 1, None), SENT)),
    ("legacy transaction", "gasPrice"): ("0x0", Row(ASIDE, ASIDE, (100, 0, 0, 7))),
    # Whole answers. A list of logs that is missing is not an empty one, and no call uses no gas.
    ("eth_chainId", ""): ("0x0", Row(ASIDE, ASIDE, 0)),
    ("eth_getBalance", ""): ("0x0", Row(ASIDE, ASIDE, 0)),
    ("eth_getTransactionCount", ""): ("0x0", Row(ASIDE, ASIDE, 0)),
    ("eth_estimateGas", ""): ("0x0", Row(ASIDE, ASIDE, ASIDE)),
    ("eth_maxPriorityFeePerGas", ""): ("0x0", Row(ASIDE, ASIDE, 0)),
    ("eth_gasPrice", ""): ("0x0", Row(ASIDE, ASIDE, 0)),
    ("eth_getCode", ""): (DATA, Row(ASIDE, ASIDE, b"")),
    ("eth_call", ""): (DATA, Row(ASIDE, ASIDE, b"")),
    ("eth_sendRawTransaction", ""): (DIGEST, Row(ASIDE, ASIDE, ASIDE)),
    ("eth_getLogs", ""): ([], Row(ASIDE, ASIDE, [])),
}


@pytest.mark.parametrize("place", ROWS, ids=lambda place: " ".join(place))
def test_answer__field_is_missing_null_zero_or_garbled__comes_to_what_the_table_says(
    monkeypatch: pytest.MonkeyPatch, place: tuple[str, str]
) -> None:
    zero, row = ROWS[place]
    assert Row(*(outcome(monkeypatch, *place, value) for value in (MISSING, None, zero, "0xzz"))) == row


# What stands around a result: the number and the error of the answer, and what an error says.
AROUND: Final[dict[tuple[str, str], Row]] = {
    ("answer", "id"): Row(ASIDE, ASIDE, ASIDE),
    ("answer", "error"): Row(5, 5, "RPC_UNAVAILABLE", "RPC_UNAVAILABLE"),
    ("answer", "result"): Row(ASIDE, ASIDE, ASIDE),
    ("error", "code"): Row(*["RPC_UNAVAILABLE"] * 4),
    ("error", "message"): Row(*["RPC_UNAVAILABLE"] * 4),
    ("error", "data"): Row(*["RPC_UNAVAILABLE"] * 4),
    ("refusal", "data"): Row(*["REFUSED"] * 4),
}


@pytest.mark.parametrize("place", AROUND, ids=lambda place: " ".join(place))
def test_answer__what_stands_around_a_result_is_odd__comes_to_what_the_table_says(
    monkeypatch: pytest.MonkeyPatch, place: tuple[str, str]
) -> None:
    kind, field = place

    def said(value: Any) -> Any:
        def post(self: Endpoint, body: bytes, limit: int) -> _Http:
            answer: dict[str, Any] = {"id": json.loads(body)["id"], "result": "0x5"}
            error: dict[str, Any] = {"code": 3 if kind == "refusal" else -32000, "message": "no", "data": "0x"}
            part = answer if kind == "answer" else error
            part[field] = value
            if value is MISSING:
                del part[field]
            if kind != "answer":
                answer = {"id": answer["id"], "error": error}
            return _Http(200, None, json.dumps(answer).encode())

        monkeypatch.setattr(Endpoint, "_post", post)
        try:
            return RpcChain(["http://provider"], attempts=1).balance(ADDRESS)
        except HearthError as refused:
            return refused.code

    assert Row(*(said(value) for value in (MISSING, None, 0, "zz"))) == AROUND[place]


def test_table__every_field_that_the_code_reads__has_a_row() -> None:
    """Where a new field is read, say first what it comes to when it is not there."""
    known = {field for _, field in (*ROWS, *AROUND) if field}
    read: set[str] = set()
    for name in ("answers", "endpoint", "providers", "rpc", "rollup"):
        tree = ast.parse((ROOT / "hearth" / "chain" / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript):
                found = [node.slice]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
                found = node.args[:1]
            elif isinstance(node, ast.comprehension) and isinstance(node.iter, ast.Tuple):
                found = node.iter.elts
            else:
                continue
            read |= {one.value for one in found if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    headers = {
        "Authorization",
        "Retry-After",
        "Content-Encoding",
        "requests",
        "failovers",
        "throttled",
        "halved",
        "outvoted",
    }
    assert read - headers == known, "a field without a row, or a row without a field"
    methods = {kind for kind, field in ROWS if not field}
    assert {method for method, _, whole in READS.values() if not whole} == methods
