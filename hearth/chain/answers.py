"""What a JSON-RPC provider's answers mean: values of the port's types, or what went wrong, by name.

Answers come from strangers. A parser here returns a value that was looked at whole, or raises one of `MALFORMED`; an
error object becomes the refusal of a contract, of a pool, or the failure of this one provider. Quantities are bounded
by what the chain's own rules and our databases hold.
"""

from __future__ import annotations

import re
import time
from email.utils import parsedate_to_datetime
from typing import Any, Final

from hearth.base.errors import ChainError, FundsError, HearthError, RefusedError
from hearth.base.text import plain
from hearth.chain import rollup
from hearth.chain.port import Block, Log, Receipt, Transaction, revert_reason
from hearth.chain.port import refused as refused_by_contract

MALFORMED: Final = (KeyError, IndexError, TypeError, ValueError, AttributeError)
"""What a parser raises for an answer that is not what was asked for."""
MAX_QUANTITY: Final = 2**63 - 1
"""No height, second, nonce, gas or fee is beyond it (EIP-2681 bounds nonces by 2**64 - 1); SQLite holds it."""
MAX_SECOND: Final = 2**37
"""Seconds since 1970, in the year 6325; today's time in milliseconds is far beyond it."""
_TEXT: Final = 500
"""Characters of a stranger's message that are repeated."""

_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
# What clients say of one and the same case. Whose words an alternative is, and what they come to, is a row of
# tests/chain/test_answers.py; tests/chain/test_clients.py brings the cases about on anvil and geth.
_OUT_OF_GAS = re.compile(r"out ?of ?gas|gas required exceeds", re.I)
_REVERT = re.compile(rf"revert|vm execution error|invalid ?(fe)? ?opcode|{_OUT_OF_GAS.pattern}", re.I)
_LOGS_LIMIT: Final = -32005
_LIMITED: Final = (429, _LOGS_LIMIT, -32007, -32029)
"""Codes of errors that mean "slow down": EIP-1474's limit, which for logs is one of results, and providers' own."""
_UNSERVED: Final = (-32601, -32004)
"""Codes of a method that is not there: JSON-RPC's, and EIP-1474's of one that is not supported."""
_NO_METHOD = re.compile(
    r"\bmethod\b.{0,60} not (found|supported|available|enabled|whitelisted)|\bmethod\b.{0,60} does not exist|"
    r"unsupported method",
    re.I,
)
_RATE = re.compile(
    r"rate.?limit|too many requests|requests? (rate|limit|count|capacity)|\brps\b|throughput limit|compute units",
    re.I,
)
_TOO_WIDE = re.compile(r"\brange\b|query returned|response size|too large|too big", re.I)
_TOO_MUCH = re.compile(r"exceed|limit|time(d )?out", re.I)
_BEYOND_HEAD = re.compile(r"beyond current head|out ?of ?range", re.I)
# No bare "not found": a project, a key and a method are not found either, and say nothing of the chain.
_UNKNOWN_BLOCK = re.compile(
    r"\b(block|header|receipt|transaction)( (for|with|hash|number|(0x)?[0-9a-f]+))* not found|resource not found|"
    rf"unknown block|missing trie node|historical state|world state unavailable|not currently canonical|"
    rf"{_BEYOND_HEAD.pattern}",
    re.I,
)
_KNOWN = re.compile(r"already ?known|known transaction|already imported|already in mempool", re.I)
_NONCE_LOW = re.compile(r"nonce (is )?too low|old ?nonce", re.I)
_UNDERPRICED = re.compile(
    r"underpriced|fee ?too ?low|less than block base fee|below current base fee|gas price below (configured )?minimum",
    re.I,
)
_POOL_FULL = re.compile(
    r"\b(tx|transaction |sub-)pool (is )?full|due to pool size constraints|too many transactions in the queue", re.I
)
_FUNDS = re.compile(
    r"insufficient (funds|balance)|doesn't have enough funds|lack of funds|upfront cost exceeds account balance", re.I
)
_NEVER = re.compile(
    r"intrinsic gas|gas limit too high|exceeds block gas limit|priority fee per gas higher|configured cap|"
    r"invalid sender|chain id for signer|oversized data|initcode size|transaction type not supported|failed to decode",
    re.I,
)


class ProviderFailed(Exception):
    """One provider did not answer, or not with what was asked for; another may.

    `wait` is the seconds that it asked to be left alone, `throttled` says that it is asked too often, and `code` is
    that of the error where no other answers either.
    """

    def __init__(
        self,
        why: str,
        wait: float = 0.0,
        *,
        code: str = "RPC_UNAVAILABLE",
        timeout: bool = False,
        throttled: bool = False,
    ) -> None:
        self.why = plain(why)
        super().__init__(self.why)
        self.wait = wait
        self.code = code
        self.timeout = timeout
        self.throttled = throttled


class TooMuch(Exception):
    """The provider will not serve a range this wide."""


# ---- values ----


def quantity(raw: Any) -> int:
    """Return a number of at most 63 bits."""
    value = amount(raw)
    if value > MAX_QUANTITY:
        raise ValueError("a number beyond reason")
    return value


def amount(raw: Any) -> int:
    """Return an amount of wei, of at most 256 bits."""
    if not _QUANTITY.fullmatch(raw):
        raise ValueError("no hexadecimal number")
    return int(raw, 16)


def data(raw: Any) -> bytes:
    """Return bytes of any length."""
    if not raw.startswith("0x"):
        raise ValueError("no 0x prefix")
    return bytes.fromhex(raw[2:])


def digest(raw: Any) -> bytes:
    """Return a hash."""
    value = data(raw)
    if len(value) != 32:
        raise ValueError(f"a hash of {len(value)} bytes")
    return value


def gas(raw: Any) -> int:
    """Return what a call uses, of which none uses nothing."""
    value = quantity(raw)
    if not value:
        raise ValueError("no gas")
    return value


def _second(raw: Any) -> int:
    """Return a block's Unix time in seconds; there are chains that count milliseconds, and no contract of ours does."""
    value = quantity(raw)
    if value >= MAX_SECOND:
        raise ValueError("a time that is in milliseconds, or beyond reason")
    return value


def _address(raw: Any) -> str:
    if not _ADDRESS.fullmatch(raw):
        raise ValueError("no address")
    return str(raw).lower()


def _optional_address(raw: Any) -> str | None:
    return None if raw is None else _address(raw)


def block(raw: Any) -> Block:
    """Return a block's header."""
    bloom, base_fee = raw.get("logsBloom"), raw.get("baseFeePerGas")
    bloom = b"" if bloom is None else data(bloom)
    if len(bloom) not in (0, 256):
        raise ValueError(f"a bloom of {len(bloom)} bytes")
    return Block(
        number=quantity(raw["number"]),
        hash=digest(raw["hash"]),
        parent_hash=digest(raw["parentHash"]),
        timestamp=_second(raw["timestamp"]),
        base_fee=None if base_fee is None else quantity(base_fee),
        bloom=bloom,
    )


def logs(raw: Any) -> list[Log]:
    """Return logs in chain order, those that are marked as removed left out.

    There are chains whose log indexes count in each transaction: where the transaction's own place is told, it counts
    before them.
    """
    if not isinstance(raw, list):
        raise ValueError("no list of logs")
    if any(item.get("removed") not in (None, False, True) for item in raw):
        raise ValueError("a log that may be removed")
    raw = [item for item in raw if not item.get("removed")]
    turns = [0 if (turn := item.get("transactionIndex")) is None else int(turn, 16) for item in raw]
    fromhex = bytes.fromhex
    found = [
        Log(
            item["address"].lower(),
            tuple([fromhex(topic[2:]) for topic in item["topics"]]),
            fromhex(item["data"][2:]),
            int(item["blockNumber"], 16),
            fromhex(item["blockHash"][2:]),
            fromhex(item["transactionHash"][2:]),
            int(item["logIndex"], 16),
        )
        for item in raw
    ]
    for log in found:
        if any(len(topic) != 32 for topic in log.topics) or len(log.topics) > 4:
            raise ValueError("topics that no log has")
        if len(log.block_hash) != 32 or len(log.tx_hash) != 32:
            raise ValueError("a hash of another length")
        if not (0 <= log.block_number <= MAX_QUANTITY and 0 <= log.log_index <= MAX_QUANTITY):
            raise ValueError("a number beyond reason")
    order = sorted(range(len(found)), key=lambda at: (found[at].block_number, turns[at], found[at].log_index))
    return [found[at] for at in order]


def receipt(raw: Any) -> Receipt | None:
    """Return a mined transaction's receipt, None of one that no block has yet: many give it from the pool on.

    Its price is None where the provider says none. A price of zero says nothing either: there are providers that write
    it for what they do not know, and of what was signed for nothing it comes out again.
    """
    if raw.get("blockNumber") is None:
        return None
    price, gas_used = raw.get("effectiveGasPrice"), quantity(raw["gasUsed"])
    return Receipt(
        tx_hash=digest(raw["transactionHash"]),
        block_number=quantity(raw["blockNumber"]),
        block_hash=digest(raw["blockHash"]),
        ok=quantity(raw["status"]) == 1,
        gas_used=gas_used,
        gas_price=(None if price is None else quantity(price)) or None,
        sender=_address(raw["from"]),
        to=_optional_address(raw.get("to")),
        contract=_optional_address(raw.get("contractAddress")),
        logs=tuple(logs(raw["logs"])),
        rollup_fee=rollup.fee_in(raw, gas_used, amount),
    )


def transaction(raw: Any) -> Transaction:
    """Return a transaction, mined or waiting."""
    number, mined, price = raw.get("blockNumber"), raw.get("blockHash"), raw.get("gasPrice")
    is_mined = number is not None and mined is not None
    return Transaction(
        hash=digest(raw["hash"]),
        sender=_address(raw["from"]),
        to=_optional_address(raw.get("to")),
        nonce=quantity(raw["nonce"]),
        value=amount(raw["value"]),
        data=data(raw["input"]),
        gas=quantity(raw["gas"]),
        max_fee=quantity(price if raw.get("maxFeePerGas") is None else raw["maxFeePerGas"]),
        priority_fee=quantity(price if raw.get("maxPriorityFeePerGas") is None else raw["maxPriorityFeePerGas"]),
        block_number=quantity(number) if is_mined else None,
        block_hash=digest(mined) if is_mined else None,
    )


# ---- errors ----


def failure_of(error: Any, method: str, wait: float = 0.0) -> Exception:
    """Turn a JSON-RPC error object into the exception that says what to do about it.

    `wait` is the seconds that the answer asks to be left alone. A message may hold the words of several cases, and a
    code mean another thing to each client, so the order counts:

    1. a pool's words, of what was sent only: Besu gives them the codes of a limit and of a method that is not there;
    2. a contract's words, which may be any: "rate limit", "insufficient balance";
    3. of logs, that the range is too wide: what says so often names a limit of requests as well;
    4. that it is asked too often, by words and codes that mean nothing else;
    5. of logs, anything else that sounds like too much, since a smaller question costs little;
    6. funds, before the code that Besu has for them;
    7. a block that is not known, before methods, which are as well "not found";
    8. a method that is not there. Whatever is left is a failure of this provider, as a key that it does not know.
    """
    if not isinstance(error, dict):
        return ProviderFailed(str(error)[:200])
    code = error.get("code")
    text = plain(str(error.get("message", ""))[:_TEXT])
    sent = _pool_refusal(text) if method == "eth_sendRawTransaction" else None
    if sent is not None:
        return sent
    if code == 3 or _REVERT.search(text):
        raw = _revert_data(error.get("data"))
        return refused_by_contract(plain(revert_reason(raw)[:_TEXT]) or _reason_in_text(text), data=raw)
    return _limit(code, text, method, wait) or _other_failure(code, text, method)


def _limit(code: Any, text: str, method: str, wait: float) -> Exception | None:
    """Say whether too much is asked for, in one request or in all of them."""
    logs_asked = method == "eth_getLogs" and not _BEYOND_HEAD.search(text)
    if logs_asked and _TOO_WIDE.search(text):
        return TooMuch(text)
    limited = code in _LIMITED and not (code == _LOGS_LIMIT and method == "eth_getLogs")
    if limited or _RATE.search(text):
        return ProviderFailed(f"it is asked too often: {text}", wait, throttled=True)
    if logs_asked and (code == _LOGS_LIMIT or _TOO_MUCH.search(text)):
        return TooMuch(text)
    return None


def _other_failure(code: Any, text: str, method: str) -> Exception:
    if _FUNDS.search(text):
        return FundsError(f"the account cannot pay for this call: {text}", hint="hearth wallet balance")
    if _UNKNOWN_BLOCK.search(text):
        return ChainError(f"the provider does not know that block: {text}", code="BLOCK_UNKNOWN", hint="hearth doctor")
    if code in _UNSERVED or _NO_METHOD.search(text):
        return ChainError(
            f"the provider does not serve {method}", code="RPC_UNSUPPORTED", hint="hearth doctor", retryable=False
        )
    return ProviderFailed(f"{method}: {text}")


def retry_after(header: str | None) -> float:
    """Read Retry-After: seconds or an HTTP date; 0 where there is none or it makes no sense."""
    if not header:
        return 0.0
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.0
    # Not a number is no wait either.
    return seconds if seconds > 0 else 0.0


def _revert_data(raw: Any) -> bytes:
    """Find the return data in the several shapes that nodes wrap it in."""
    if isinstance(raw, dict):
        raw = raw.get("data") or raw.get("result")
    if not isinstance(raw, str):
        return b""
    text = raw.removeprefix("Reverted ").strip()
    try:
        return bytes.fromhex(text[2:]) if text.startswith("0x") else b""
    except ValueError:
        return b""


def _reason_in_text(text: str) -> str:
    if _OUT_OF_GAS.search(text):
        return "out of gas"
    found = re.search(r"revert(?:ed)?\b(?: with reason string)?:? '?([^']+)'?$", text)
    return found.group(1).strip() if found else ""


def _pool_refusal(text: str) -> HearthError | None:
    if _KNOWN.search(text):
        return ChainError("the transaction is in the pool already", code="ALREADY_KNOWN", hint="hearth doctor")
    if _NONCE_LOW.search(text):
        return ChainError("the nonce is used already", code="NONCE_TOO_LOW", hint="hearth doctor")
    if _UNDERPRICED.search(text):
        return ChainError(f"the fees are too low: {text}", code="UNDERPRICED", hint="hearth doctor")
    if _POOL_FULL.search(text):
        return ChainError(f"the transaction pool has no room now: {text}", code="POOL_FULL", hint="hearth doctor")
    if _NEVER.search(text):
        return RefusedError(
            f"the RPC never takes this transaction: {text}", code="TX_REFUSED", hint="use another --rpc"
        )
    return None
