"""A JSON-RPC provider that answers as other chains do, in front of an honest one of ours.

Each of `KINDS` changes the true answers in one way that some chain or client has. They can be joined.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.kit.liars import Asked, Liar

LATE_SECONDS: Final = 0.5
"""How long a receipt is one from the pool, beyond the looks of a sender that polls quickly."""
FIRST_BLOCK: Final = 1_000_000
"""What is added to the numbers of blocks where contracts count them otherwise."""
L1_TIMES: Final = 10
"""Times the gas fee that `l1fee` takes for the chain below."""

Change = Callable[["OtherChain", Asked, Any], Any]
"""Return what this chain answers instead of a true result."""


class OtherChain(Liar):
    """The provider at `url`; `kinds` may be changed while it runs."""

    def __init__(self, upstream: str, *kinds: str) -> None:
        super().__init__(upstream, [self._serve])
        self.kinds = kinds
        self.first_told: dict[str, float] = {}
        """When each transaction's receipt was asked for first."""
        self.l1_fees: dict[str, int] = {}
        """What `l1fee` has told of each transaction."""

    def _serve(self, asked: Asked) -> None:
        if "notip" in self.kinds and asked.method in ("eth_maxPriorityFeePerGas", "eth_feeHistory"):
            asked.refuse("the method does not exist/is not available", -32601)
            return
        if "shift" in self.kinds:
            if asked.method == "eth_getLogs" and int(asked.params[0].get("toBlock", "0x7fffffff"), 16) < FIRST_BLOCK:
                asked.say([])  # before the first block of the chain behind nothing is there
                return
            asked.params = _back(asked.method, asked.params)
        answer = json.loads(asked.forwarded())
        if "result" in answer:
            for kind in self.kinds:
                if kind in KINDS:
                    answer["result"] = KINDS[kind](self, asked, answer["result"])
            if "errornull" in self.kinds:
                answer["error"] = None
        if "stringid" in self.kinds:
            answer["id"] = str(answer["id"])
        asked.body(json.dumps(answer).encode())


@contextmanager
def other_chain(upstream: str, *kinds: str) -> Iterator[OtherChain]:
    """Run one."""
    made = OtherChain(upstream, *kinds)
    try:
        yield made
    finally:
        made.close()


def _each(value: Any, has: str, change: Callable[[dict[str, Any]], None]) -> Any:
    """Change every object below a value that has a field, in place."""
    if isinstance(value, list):
        for one in value:
            _each(one, has, change)
    elif isinstance(value, dict):
        if has in value:
            change(value)
        for one in list(value.values()):
            _each(one, has, change)
    return value


def _in_headers(name: str, value: Callable[[Any], Any]) -> Change:
    def change(_: OtherChain, __: Asked, result: Any) -> Any:
        return _each(result, "parentHash", lambda header: header.update({name: value(header[name])}))

    return change


def _in_receipts(change: Callable[[OtherChain, dict[str, Any]], None]) -> Change:
    return lambda chain, _, result: _each(result, "effectiveGasPrice", lambda receipt: change(chain, receipt))


def _without(name: str) -> Callable[[OtherChain, dict[str, Any]], None]:
    return lambda _, receipt: receipt.pop(name)


def _with_an_l1_fee(chain: OtherChain, receipt: dict[str, Any]) -> None:
    fee = L1_TIMES * int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    chain.l1_fees[receipt["transactionHash"]] = fee
    receipt["l1Fee"] = hex(fee)


def _from_the_pool(chain: OtherChain, asked: Asked, result: Any) -> Any:
    """A receipt without a block, as clients give it that know a transaction before its block."""
    if asked.method != "eth_getTransactionReceipt" or result is None:
        return result
    began = chain.first_told.setdefault(asked.params[0], time.monotonic())
    if time.monotonic() - began >= LATE_SECONDS:
        return result
    no_block = {"blockNumber": None, "blockHash": None, "transactionIndex": None, "status": None}
    return {**result, **no_block, "gasUsed": "0x0", "logs": []}


def _numbered_by_transaction(_: OtherChain, __: Asked, result: Any) -> Any:
    """Logs whose index counts from 0 in each transaction."""
    counts: dict[str, int] = {}

    def change(log: dict[str, Any]) -> None:
        index = counts.get(log["transactionHash"], 0)
        counts[log["transactionHash"]] = index + 1
        log["logIndex"] = hex(index)

    return _each(result, "logIndex", change)


def _ahead(_: OtherChain, __: Asked, result: Any) -> Any:
    """Numbers of blocks that contracts do not see."""

    def up(value: dict[str, Any], name: str) -> None:
        if value[name] is not None and int(value[name], 16):
            value[name] = hex(int(value[name], 16) + FIRST_BLOCK)

    _each(result, "blockNumber", lambda one: up(one, "blockNumber"))
    return _each(result, "parentHash", lambda one: up(one, "number"))


def _back(method: str, params: list[Any]) -> list[Any]:
    """Return what is asked of the chain behind, where blocks have lower numbers."""

    def down(value: Any) -> Any:
        if isinstance(value, dict):
            return {**value, **{name: down(value[name]) for name in ("fromBlock", "toBlock") if name in value}}
        if isinstance(value, str) and value.startswith("0x") and len(value) < 20 and int(value, 16):
            return hex(max(0, int(value, 16) - FIRST_BLOCK))
        return value

    where = {"eth_getBlockByNumber": 0, "eth_getLogs": 0, "eth_getStorageAt": 2}.get(method, 1)
    return [down(one) if place == where else one for place, one in enumerate(params)]


KINDS: Final[dict[str, Change]] = {
    # Blooms: none in Polygon's state-sync blocks, ZKsync before it filled them, Stratus; all ones on Filecoin.
    "zerobloom": _in_headers("logsBloom", lambda _: "0x" + "00" * 256),
    "onesbloom": _in_headers("logsBloom", lambda _: "0x" + "ff" * 256),
    "ms": _in_headers("timestamp", lambda second: hex(1000 * int(second, 16))),
    # Celo before it became a rollup said no price in receipts.
    "nullgasprice": _in_receipts(lambda _, receipt: receipt.update(effectiveGasPrice=None)),
    "nogasprice": _in_receipts(_without("effectiveGasPrice")),
    "l1fee": _in_receipts(_with_an_l1_fee),
    "pendingreceipt": _from_the_pool,
    "dupindex": _numbered_by_transaction,
    "shift": _ahead,
}
"""Ways of other chains; besides these `notip`, `stringid` and `errornull` are of the answer as a whole."""
