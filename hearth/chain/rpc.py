"""The chain port over web3.py's JSON-RPC transport: several providers, failover, range halving, rate limits.

One provider is sticky for a cycle, so that a cycle's reads agree with each other. A provider that fails is set aside
with jittered backoff and the next one takes over; a throttled one is left alone for what its Retry-After asks.
Answers come from strangers: they are parsed into types here, and logs outside of what was asked for are refused.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from hearth.base.errors import ChainError, ConfigError, FundsError, HearthError, RefusedError
from hearth.chain.port import Block, BlockRef, Call, Fees, Log, Receipt, Topics, Transaction, hex_of, revert_reason
from hearth.chain.port import refused as refused_by_contract

if TYPE_CHECKING:
    from web3 import HTTPProvider

Parsed = TypeVar("Parsed")

MAX_SPAN: Final = 10_000
"""Blocks that one eth_getLogs asks for at most; halved as a provider refuses, down to one."""
MAX_LAG: Final = 64
"""Blocks that a provider may be behind the best one and still count in a quorum."""
_MAX_WAIT: Final = 30.0
"""Seconds: the longest Retry-After that is honoured by waiting."""
_GROW_AFTER: Final = 8

_REVERT = re.compile(r"revert|vm execution error|invalid opcode|out of gas", re.I)
_RATE = re.compile(r"rate.?limit|too many requests|requests? per|throughput|compute units|capacity", re.I)
_TOO_MUCH = re.compile(
    r"too many|more than|exceed|limit|range|too large|too big|size|query returned|timed? ?out|timeout|narrow", re.I
)
_UNKNOWN_BLOCK = re.compile(
    r"header not found|unknown block|block not found|could not find block|out ?of ?range|missing trie|not found", re.I
)
_KNOWN = re.compile(r"already known|known transaction|already imported|already in (the )?(mem)?pool|alreadyknown", re.I)
_NONCE_LOW = re.compile(r"nonce (is )?too low|old ?nonce|nonce.*already (been )?used", re.I)
_UNDERPRICED = re.compile(r"underpriced|fee too low|less than block base fee|feecaptoolow|below (the )?base fee", re.I)
_FUNDS = re.compile(r"insufficient (funds|balance)|doesn't have enough funds|not enough funds", re.I)


class _ProviderFailed(Exception):
    """One provider did not answer; another may. `wait` is the seconds that it asked to be left alone."""

    def __init__(self, why: str, wait: float = 0.0, *, timeout: bool = False, too_much: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.wait = wait
        self.timeout = timeout
        self.too_much = too_much


class _TooMuch(Exception):
    """The provider will not serve a range this wide."""


class TokenBucket:
    """Let through `rate` requests a second, `burst` at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._rate, self._burst = rate, burst
        self._clock, self._sleep = clock, sleep
        self._tokens, self._at = burst, clock()
        self._lock = threading.Lock()

    def take(self) -> None:
        """Take one token, waiting for it where there is none."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate) - 1
            self._at = now
            wait = max(0.0, -self._tokens / self._rate)
        if wait:
            self._sleep(wait)


class _Endpoint:
    """One RPC URL with its health. The URL may carry a secret: only `name` is ever shown."""

    def __init__(self, url: str, timeout: float, bucket: TokenBucket) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"{parts.scheme or 'this'} is no RPC address", hint="use --rpc http://host:port", code="BAD_RPC_URL"
            )
        self.url = url
        self.name = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
        self.timeout = timeout
        self.bucket = bucket
        self.down_until = 0.0
        self.failures = 0
        self.verified = False
        self._provider: HTTPProvider | None = None

    def provider(self) -> HTTPProvider:
        """Return the transport, made at first use since importing web3 takes a second."""
        if self._provider is None:
            from web3 import HTTPProvider

            self._provider = HTTPProvider(
                self.url, request_kwargs={"timeout": self.timeout}, exception_retry_configuration=None
            )
        return self._provider


class Web3Chain:
    """Read and write one chain through `urls`, in order of preference.

    `chain_id` and `genesis_hash` pin the chain: a provider that serves another one is refused with WRONG_CHAIN.
    `timeout` is seconds per request, `attempts` the rounds over all providers, `rate` requests per second and URL.
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
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not urls:
            raise ConfigError("no RPC address is configured", hint="use --rpc URL", code="NO_RPC")
        self._endpoints = [_Endpoint(url, timeout, TokenBucket(rate, burst, clock, sleep)) for url in urls]
        self._want_chain, self._want_genesis = chain_id, genesis_hash
        self._attempts = attempts
        self._clock, self._sleep = clock, sleep
        self._current = 0
        self._max_span = self._span = max_span
        self._smooth = 0
        self.counts: Counter[str] = Counter()
        """requests, failovers, throttled, halved: for metrics."""

    # ---- transport ----

    def begin_cycle(self) -> None:
        """Go back to the most preferred provider that is not set aside."""
        now = self._clock()
        self._current = next((i for i, e in enumerate(self._endpoints) if e.down_until <= now), self._current)

    def _request(self, method: str, params: list[Any], *, wide: bool = False) -> Any:
        """Ask the sticky provider, then the others, `attempts` times. `wide` requests report time-outs at once."""
        last = _ProviderFailed("no provider was asked")
        for attempt in range(self._attempts):
            for position in self._order():
                endpoint = self._endpoints[position]
                try:
                    result = self._ask(endpoint, method, params)
                except _ProviderFailed as failed:
                    last = failed
                    self._set_aside(endpoint, failed)
                    if wide and failed.timeout:
                        raise _TooMuch(failed.why) from failed
                    continue
                except _TooMuch as refused:
                    # A single block cannot be asked for in halves: another provider, or the same later.
                    if wide:
                        raise
                    last = _ProviderFailed(str(refused), too_much=True)
                    self._set_aside(endpoint, last)
                    continue
                if position != self._current:
                    self.counts["failovers"] += 1
                    self._current = position
                endpoint.failures = 0
                endpoint.down_until = 0.0
                return result
            if attempt + 1 < self._attempts:
                self._sleep(min(_MAX_WAIT, last.wait or random.uniform(0.5, 1.0) * 0.25 * 2**attempt))
        names = ", ".join(e.name for e in self._endpoints)
        if last.too_much:
            raise ChainError(
                f"no provider serves the logs of a single block: {last.why}",
                code="RPC_LOGS_LIMIT",
                hint="hearth doctor",
            )
        raise ChainError(f"no RPC provider answers {method} ({names}): {last.why}", hint="hearth doctor")

    def _order(self) -> list[int]:
        """List the providers to ask: from the sticky one on, those set aside left out unless all are."""
        count = len(self._endpoints)
        order = [(self._current + step) % count for step in range(count)]
        now = self._clock()
        return [i for i in order if self._endpoints[i].down_until <= now] or order

    def _set_aside(self, endpoint: _Endpoint, failed: _ProviderFailed) -> None:
        endpoint.failures += 1
        endpoint.verified = False
        backoff = random.uniform(0.5, 1.0) * min(60.0, 0.5 * 2 ** min(endpoint.failures, 7))
        endpoint.down_until = self._clock() + max(failed.wait, backoff)

    def _ask(self, endpoint: _Endpoint, method: str, params: list[Any]) -> Any:
        if not endpoint.verified:
            self._verify(endpoint)
        return self._post(endpoint, method, params)

    def _verify(self, endpoint: _Endpoint) -> None:
        """Refuse a provider of another chain, before its first answer is used and after every outage."""
        if self._want_chain is not None:
            served = _int(self._post(endpoint, "eth_chainId", []))
            if served != self._want_chain:
                raise _wrong_chain(endpoint, f"chain id {served}, not {self._want_chain}")
        if self._want_genesis is not None:
            genesis = self._post(endpoint, "eth_getBlockByNumber", ["0x0", False])
            if genesis is None or _bytes(genesis["hash"]) != self._want_genesis:
                raise _wrong_chain(endpoint, "another genesis block")
        endpoint.verified = True

    def _post(self, endpoint: _Endpoint, method: str, params: list[Any]) -> Any:
        """Send one request. Raises _ProviderFailed, _TooMuch, or the typed error of a chain's refusal."""
        import requests
        from web3.types import RPCEndpoint

        endpoint.bucket.take()
        self.counts["requests"] += 1
        try:
            answer: Any = endpoint.provider().make_request(RPCEndpoint(method), params)
        except requests.HTTPError as error:
            raise self._http_failure(error, method) from error
        except requests.Timeout as error:
            raise _ProviderFailed(f"{endpoint.name} timed out", timeout=True) from error
        except requests.ConnectionError as error:
            raise _ProviderFailed(f"{endpoint.name} cannot be reached") from error
        except (requests.RequestException, ValueError) as error:
            # A cut-off body or one that is no JSON.
            raise _ProviderFailed(f"{endpoint.name} sent a broken answer") from error
        if not isinstance(answer, dict):
            raise _ProviderFailed(f"{endpoint.name} sent no JSON-RPC answer")
        if answer.get("error") is not None:
            raise self._rpc_failure(answer["error"], method)
        if "result" not in answer:
            raise _ProviderFailed(f"{endpoint.name} sent an answer without a result")
        return answer["result"]

    def _http_failure(self, error: Any, method: str) -> Exception:
        response = error.response
        status = response.status_code
        if status == 429:
            self.counts["throttled"] += 1
            return _ProviderFailed("rate limited (429)", _retry_after(response.headers.get("Retry-After")))
        if status == 413 and method == "eth_getLogs":
            return _TooMuch("413")
        try:
            body = response.json()
        except ValueError:
            body = None
        # Some providers wrap ordinary JSON-RPC errors in HTTP 400.
        if isinstance(body, dict) and body.get("error") is not None:
            return self._rpc_failure(body["error"], method)
        return _ProviderFailed(f"HTTP status {status}", _retry_after(response.headers.get("Retry-After")))

    def _rpc_failure(self, error: Any, method: str) -> Exception:
        """Turn a JSON-RPC error object into the exception that says what to do about it."""
        if not isinstance(error, dict):
            return _ProviderFailed(str(error)[:200])
        code = error.get("code")
        text = str(error.get("message", ""))[:500]
        data = error.get("data")
        if code == 429 or (_RATE.search(text) and not _REVERT.search(text)):
            self.counts["throttled"] += 1
            return _ProviderFailed(f"rate limited: {text}")
        if method == "eth_getLogs" and (code == -32005 or _TOO_MUCH.search(text)):
            return _TooMuch(text)
        if method == "eth_sendRawTransaction":
            sent = _pool_refusal(text)
            if sent is not None:
                return sent
        if _FUNDS.search(text):
            return FundsError(f"the account cannot pay for this call: {text}", hint="hearth wallet balance")
        if code == 3 or _REVERT.search(text):
            raw = _revert_data(data)
            return refused_by_contract(revert_reason(raw) or _reason_in_text(text), data=raw)
        if code == -32601:
            return ChainError(
                f"the provider does not serve {method}", code="RPC_UNSUPPORTED", hint="hearth doctor", retryable=False
            )
        if _UNKNOWN_BLOCK.search(text):
            return ChainError(
                f"the provider does not know that block: {text}", code="BLOCK_UNKNOWN", hint="hearth doctor"
            )
        return _ProviderFailed(f"{method}: {text}")

    # ---- reads ----

    def chain_id(self) -> int:
        """Return the chain id."""
        return _parse("eth_chainId", _int, self._request("eth_chainId", []))

    def genesis_hash(self) -> bytes:
        """Return the hash of block 0."""
        genesis = self.block(0)
        if genesis is None:
            raise ChainError("the provider has no block 0", code="WRONG_CHAIN", retryable=False, hint="hearth doctor")
        return genesis.hash

    def verify(self) -> None:
        """Check every provider that answers against the pinned chain. Raises ChainError WRONG_CHAIN, or the
        last failure where none answers."""
        answered = 0
        last: _ProviderFailed | None = None
        for endpoint in self._endpoints:
            try:
                self._verify(endpoint)
                answered += 1
            except _ProviderFailed as failed:
                last = failed
                self._set_aside(endpoint, failed)
        if not answered:
            names = ", ".join(e.name for e in self._endpoints)
            why = last.why if last else "none is configured"
            raise ChainError(f"no RPC provider answers ({names}): {why}", hint="hearth doctor")

    def head(self) -> Block:
        """Return the newest block."""
        found = self.block("latest")
        if found is None:
            raise ChainError("the provider has no newest block", hint="hearth doctor")
        return found

    def agreed_head(self) -> Block:
        """Return the newest block that a majority of the answering providers knows by the same hash.

        With one provider that is its head. A provider more than MAX_LAG blocks behind does not count.
        """
        if len(self._endpoints) == 1:
            return self.head()
        heads: list[tuple[_Endpoint, Block]] = []
        for endpoint in self._endpoints:
            found = self._block_of(endpoint, "latest")
            if found is not None:
                heads.append((endpoint, found))
        if not heads:
            return self.head()
        best = max(block.number for _, block in heads)
        fresh = [(endpoint, block) for endpoint, block in heads if best - block.number <= MAX_LAG]
        number = min(block.number for _, block in fresh)
        for height in range(number, max(-1, number - MAX_LAG), -1):
            votes: Counter[bytes] = Counter()
            seen: dict[bytes, Block] = {}
            for endpoint, block in fresh:
                known = block if block.number == height else self._block_of(endpoint, height)
                if known is not None:
                    votes[known.hash] += 1
                    seen[known.hash] = known
            if votes:
                winner, count = votes.most_common(1)[0]
                if 2 * count > len(fresh):
                    return seen[winner]
        raise ChainError("the RPC providers do not agree on a chain", code="NO_QUORUM", hint="hearth doctor")

    def _block_of(self, endpoint: _Endpoint, at: BlockRef) -> Block | None:
        """Ask one provider for a block; None where it does not answer."""
        if endpoint.down_until > self._clock():
            return None
        method, ref = _block_request(at)
        try:
            raw = self._ask(endpoint, method, [ref, False])
        except _ProviderFailed as failed:
            self._set_aside(endpoint, failed)
            return None
        return None if raw is None else _parse(method, _block, raw)

    def block(self, at: BlockRef) -> Block | None:
        """Return a block, or None where the provider does not know it."""
        method, ref = _block_request(at)
        try:
            raw = self._request(method, [ref, False])
        except ChainError as error:
            if error.code == "BLOCK_UNKNOWN":
                return None
            raise
        return None if raw is None else _parse(method, _block, raw)

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
        wanted = [_topic(t) for t in topics]
        query: dict[str, Any] = {"address": [a.lower() for a in addresses], "topics": wanted}
        allowed = frozenset(query["address"])
        if block_hash is not None:
            found = self._logs({**query, "blockHash": hex_of(block_hash)}, allowed, wide=False)
            if any(log.block_hash != block_hash for log in found):
                raise _malformed("eth_getLogs", "a log of another block")
            return found
        if from_block is None or to_block is None:
            raise ValueError("logs need a range or a block hash")
        result: list[Log] = []
        start = from_block
        while start <= to_block:
            end = min(to_block, start + self._span - 1)
            try:
                piece = {**query, "fromBlock": hex(start), "toBlock": hex(end)}
                found = self._logs(piece, allowed, wide=end > start)
            except _TooMuch:
                self.counts["halved"] += 1
                self._span = max(1, (end - start + 1) // 2)
                self._smooth = 0
                continue
            if any(not start <= log.block_number <= end for log in found):
                raise _malformed("eth_getLogs", "a log outside of the range")
            result.extend(found)
            start = end + 1
            self._smooth += 1
            if self._smooth >= _GROW_AFTER:
                self._span, self._smooth = min(self._max_span, self._span * 2), 0
        return result

    def _logs(self, query: dict[str, Any], allowed: frozenset[str], *, wide: bool) -> list[Log]:
        raw = self._request("eth_getLogs", [query], wide=wide)
        found = _parse("eth_getLogs", _logs_of, raw)
        if allowed and any(log.address not in allowed for log in found):
            raise _malformed("eth_getLogs", "a log of another contract")
        found.sort(key=lambda log: (log.block_number, log.log_index))
        return found

    def call(self, call: Call, block: BlockRef = "latest", *, sender: str | None = None) -> bytes:
        """Run a call without sending it. Raises RefusedError with the contract's reason where it reverts."""
        return _parse("eth_call", _bytes, self._labelled("eth_call", [_tx(call, sender), _ref(block)], call))

    def _labelled(self, method: str, params: list[Any], call: Call) -> Any:
        """Send a request, naming the call in a refusal."""
        try:
            return self._request(method, params)
        except RefusedError as error:
            raise refused_by_contract(str(error.details.get("reason", "")), label=call.label) from error

    def code(self, address: str, block: BlockRef = "latest") -> bytes:
        """Return a contract's runtime code."""
        return _parse("eth_getCode", _bytes, self._request("eth_getCode", [address, _ref(block)]))

    def balance(self, address: str, block: BlockRef = "latest") -> int:
        """Return an account's native balance in wei."""
        return _parse("eth_getBalance", _int, self._request("eth_getBalance", [address, _ref(block)]))

    def nonce(self, address: str, *, pending: bool = False) -> int:
        """Return an account's next nonce."""
        tag = "pending" if pending else "latest"
        return _parse("eth_getTransactionCount", _int, self._request("eth_getTransactionCount", [address, tag]))

    def estimate_gas(self, call: Call, sender: str) -> int:
        """Return the gas that a call needs."""
        return _parse("eth_estimateGas", _int, self._labelled("eth_estimateGas", [_tx(call, sender)], call))

    def fees(self) -> Fees:
        """Suggest fees: the newest block's base fee and the provider's priority fee."""
        base_fee = self.head().base_fee
        try:
            priority = _parse("eth_maxPriorityFeePerGas", _int, self._request("eth_maxPriorityFeePerGas", []))
        except ChainError as error:
            if error.code != "RPC_UNSUPPORTED":
                raise
            priority = 10**9
        return Fees(base_fee, priority)

    # ---- writes ----

    def send_raw(self, raw: bytes) -> bytes:
        """Broadcast a signed transaction and return its hash."""
        return _parse("eth_sendRawTransaction", _bytes, self._request("eth_sendRawTransaction", [hex_of(raw)]))

    def receipt(self, tx_hash: bytes) -> Receipt | None:
        """Return a mined transaction's receipt, or None."""
        raw = self._request("eth_getTransactionReceipt", [hex_of(tx_hash)])
        return None if raw is None else _parse("eth_getTransactionReceipt", _receipt, raw)

    def transaction(self, tx_hash: bytes) -> Transaction | None:
        """Return a transaction that the node knows, or None."""
        raw = self._request("eth_getTransactionByHash", [hex_of(tx_hash)])
        return None if raw is None else _parse("eth_getTransactionByHash", _transaction, raw)

    def rpc(self, method: str, *params: Any) -> Any:
        """Send any JSON-RPC method, for local chains' own ones such as anvil_reorg."""
        return self._request(method, list(params))


# ---- parsing what strangers send ----


def _parse(method: str, parser: Callable[[Any], Parsed], raw: Any) -> Parsed:
    try:
        return parser(raw)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _malformed(method, str(error)) from error


def _malformed(method: str, why: str) -> ChainError:
    return ChainError(f"the provider's answer to {method} is malformed: {why}", code="RPC_BROKEN", hint="hearth doctor")


def _wrong_chain(endpoint: _Endpoint, why: str) -> ChainError:
    return ChainError(
        f"{endpoint.name} serves another chain: {why}", code="WRONG_CHAIN", retryable=False, hint="hearth doctor"
    )


def _int(raw: Any) -> int:
    return int(raw, 16)


def _bytes(raw: Any) -> bytes:
    if not raw.startswith("0x"):
        raise ValueError("no 0x prefix")
    return bytes.fromhex(raw[2:])


def _optional_address(raw: Any) -> str | None:
    return None if raw is None else str(raw).lower()


def _block(raw: Any) -> Block:
    return Block(
        number=_int(raw["number"]),
        hash=_bytes(raw["hash"]),
        parent_hash=_bytes(raw["parentHash"]),
        timestamp=_int(raw["timestamp"]),
        base_fee=_int(raw.get("baseFeePerGas") or "0x0"),
        bloom=_bytes(raw.get("logsBloom") or "0x"),
    )


def _logs_of(raw: Any) -> list[Log]:
    fromhex = bytes.fromhex
    return [
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
        if not item.get("removed")
    ]


def _receipt(raw: Any) -> Receipt:
    return Receipt(
        tx_hash=_bytes(raw["transactionHash"]),
        block_number=_int(raw["blockNumber"]),
        block_hash=_bytes(raw["blockHash"]),
        ok=_int(raw["status"]) == 1,
        gas_used=_int(raw["gasUsed"]),
        gas_price=_int(raw.get("effectiveGasPrice") or "0x0"),
        sender=str(raw["from"]).lower(),
        to=_optional_address(raw.get("to")),
        contract=_optional_address(raw.get("contractAddress")),
        logs=tuple(_logs_of(raw["logs"])),
    )


def _transaction(raw: Any) -> Transaction:
    mined = raw.get("blockHash")
    price = raw.get("gasPrice") or "0x0"
    return Transaction(
        hash=_bytes(raw["hash"]),
        sender=str(raw["from"]).lower(),
        to=_optional_address(raw.get("to")),
        nonce=_int(raw["nonce"]),
        value=_int(raw["value"]),
        data=_bytes(raw["input"]),
        gas=_int(raw["gas"]),
        max_fee=_int(raw.get("maxFeePerGas") or price),
        priority_fee=_int(raw.get("maxPriorityFeePerGas") or price),
        block_number=None if mined is None else _int(raw["blockNumber"]),
        block_hash=None if mined is None else _bytes(mined),
    )


def _block_request(at: BlockRef) -> tuple[str, str]:
    if isinstance(at, bytes):
        return "eth_getBlockByHash", hex_of(at)
    return "eth_getBlockByNumber", hex(at) if isinstance(at, int) else at


def _ref(at: BlockRef) -> Any:
    """Name a block for a read; a hash goes as EIP-1898 with requireCanonical, so that a reorg is an error."""
    if isinstance(at, bytes):
        return {"blockHash": hex_of(at), "requireCanonical": True}
    return hex(at) if isinstance(at, int) else at


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


def _retry_after(header: str | None) -> float:
    """Read Retry-After: seconds or an HTTP date; 0 where there is none or it makes no sense."""
    if not header:
        return 0.0
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return 0.0


def _revert_data(data: Any) -> bytes:
    """Find the return data in the several shapes that nodes wrap it in."""
    if isinstance(data, dict):
        data = data.get("data") or data.get("result")
    if not isinstance(data, str):
        return b""
    text = data.removeprefix("Reverted ").strip()
    try:
        return bytes.fromhex(text[2:]) if text.startswith("0x") else b""
    except ValueError:
        return b""


def _reason_in_text(text: str) -> str:
    found = re.search(r"revert(?:ed)?(?: with reason string)?:? '?([^']+)'?$", text)
    return found.group(1).strip() if found else ""


def _pool_refusal(text: str) -> HearthError | None:
    if _KNOWN.search(text):
        return ChainError("the transaction is in the pool already", code="ALREADY_KNOWN", hint="hearth doctor")
    if _NONCE_LOW.search(text):
        return ChainError("the nonce is used already", code="NONCE_TOO_LOW", hint="hearth doctor")
    if _UNDERPRICED.search(text):
        return ChainError(f"the fees are too low: {text}", code="UNDERPRICED", hint="hearth doctor")
    return None
