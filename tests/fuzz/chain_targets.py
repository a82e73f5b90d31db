"""Answers of JSON-RPC providers, the logs, words and calldata in them, and the HTTP that carries them."""

from __future__ import annotations

import gzip
import http.client
import io
import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache
from typing import Any, Final

from eth_abi.exceptions import DecodingError

from hearth.base import abi
from hearth.base.errors import ChainError, HearthError
from hearth.chain import answers, endpoint
from hearth.chain.answers import MALFORMED, ProviderFailed, TooMuch
from hearth.chain.endpoint import Endpoint
from hearth.chain.port import Call, Log, revert_reason
from hearth.market import events
from hearth.market.abi import codec, type_of
from hearth.market.contracts import CONTRACTS
from hearth.market.reads import NODE_BYTES, Market, node_of
from hearth.protocol import words
from hearth.protocol.types import NodeId
from keeper.fleet import Fleet, decode_node, encode_node
from keeper.index import Index
from tests.fuzz.target import Finding, Target, same
from tests.kit import build
from tests.kit.fake_chain import FakeChain
from worker.flights import read_call

NETWORK: Final = build.network(FakeChain())
MARKET: Final = Market(FakeChain(), NETWORK)
_ADDRESS: Final = "0x" + "ab" * 20
_HASH: Final = "0x" + "cd" * 32


# ---- what a provider's JSON means ----


def _json(parse: Callable[[Any], Any]) -> Callable[[bytes], Any]:
    return lambda data: parse(endpoint.read_json(data))


def _log_json(**changes: Any) -> dict[str, Any]:
    plain = {
        "address": _ADDRESS,
        "topics": [_HASH, "0x" + "00" * 32],
        "data": "0x" + "11" * 64,
        "blockNumber": "0x10",
        "blockHash": _HASH,
        "transactionHash": _HASH,
        "logIndex": "0x0",
        "removed": False,
    }
    return {**plain, **changes}


_BLOCK: Final = {
    "number": "0x10",
    "hash": _HASH,
    "parentHash": _HASH,
    "timestamp": "0x6553f100",
    "baseFeePerGas": "0x7",
    "logsBloom": "0x" + "00" * 256,
}
_RECEIPT: Final = {
    "transactionHash": _HASH,
    "blockNumber": "0x10",
    "blockHash": _HASH,
    "status": "0x1",
    "gasUsed": "0x5208",
    "effectiveGasPrice": "0x7",
    "from": _ADDRESS,
    "to": None,
    "contractAddress": _ADDRESS,
    "logs": [_log_json()],
}
_TRANSACTION: Final = {
    "hash": _HASH,
    "from": _ADDRESS,
    "to": _ADDRESS,
    "nonce": "0x1",
    "value": "0x" + "f" * 64,
    "input": "0x1234",
    "gas": "0x5208",
    "gasPrice": "0x7",
    "maxFeePerGas": "0x9",
    "maxPriorityFeePerGas": "0x1",
    "blockNumber": "0x10",
    "blockHash": _HASH,
}
_REVERT: Final = "0x08c379a0" + abi.encode(["string"], ["token: paused"]).hex()
_PANIC: Final = "0x4e487b71" + abi.encode(["uint256"], [0x11]).hex()
_REFUSED: Final = "0x590a5151" + abi.encode(["uint256"], [1037]).hex()
_ERRORS: Final = (
    {"code": 3, "message": "execution reverted", "data": _REFUSED},
    {"code": 3, "message": "execution reverted: token: paused", "data": _REVERT},
    {"code": -32000, "message": "nonce too low"},
    {"code": -32005, "message": "query returned more than 10000 results"},
    {"code": -32603, "message": "VM Exception: revert", "data": {"data": "Reverted " + _REVERT, "result": _REVERT}},
    {"code": -32000, "message": "insufficient funds for gas * price + value"},
    {"code": 429, "message": "compute units"},
    {"code": -32601, "message": "no such method"},
    {"code": -32001, "message": "header not found"},
)


def _vars(one: Any) -> Iterator[tuple[str, Any]]:
    return ((field.name, getattr(one, field.name)) for field in fields(one))


def _bounded(name: str) -> Callable[[bytes, Any], None]:
    """Return an oracle: every whole number of what was read is one that SQLite and the contracts hold."""

    def look(data: bytes, value: Any) -> None:
        for one in value if isinstance(value, list) else [value]:
            for field, number in one._asdict().items() if isinstance(one, Log) else _vars(one):
                most = 2**256 - 1 if field == "value" else answers.MAX_QUANTITY
                if isinstance(number, int) and not 0 <= number <= most:
                    raise Finding(f"{name}: {field} is {number}")

    return look


def _errors_of(data: bytes) -> Exception:
    """Return what a provider's error means for each kind of call that treats it in its own way."""
    error = endpoint.read_json(data)
    found = [answers.failure_of(error, method) for method in ("eth_call", "eth_getLogs", "eth_sendRawTransaction")]
    return found[-1]


def _check_failure(data: bytes, found: Exception) -> None:
    if not isinstance(found, (HearthError, ProviderFailed, TooMuch)):
        raise Finding(f"rpc-error: {type(found).__name__} is no error of the port")
    if len(str(found)) > 2_000:
        raise Finding(f"rpc-error: a message of {len(str(found))} characters")
    str(found).encode()


def _dumps(*values: Any) -> Callable[[], Iterator[bytes]]:
    return lambda: (json.dumps(value).encode() for value in values)


# ---- logs ----


def _entries() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in CONTRACTS:
        for entry in codec(name).abi:
            yield name, dict(entry)


_EVENTS: Final = [entry for _, entry in _entries() if entry["type"] == "event"]
_TOPICS: Final = [events.topic_of(events.EVENTS[entry["name"]]) for entry in _EVENTS]


def _log_of(data: bytes, at: int = 0) -> tuple[Log, int]:
    """Return the log that bytes describe, a byte each: which event, how many topics, an eighth of its data's size."""
    which, topics, count = (*data[at : at + 3], 0, 0, 0)[:3]
    at += 3
    end = at + 32 * (topics % 5)
    found = [data[i : i + 32].ljust(32, b"\0") for i in range(at, end, 32)]
    if which < len(_TOPICS):
        found = [_TOPICS[which], *found[:3]]
    size = 8 * count
    log = Log(_ADDRESS, tuple(found), data[end : end + size], 1, b"\1" * 32, b"\2" * 32, 0)
    return log, end + size


def _log_bytes(which: int, topics: list[bytes], data: bytes) -> bytes:
    return bytes([which, len(topics), len(data) // 8]) + b"".join(topics) + data


def sample(kind: str, seed: int = 1) -> Any:
    """Return a value of an ABI type."""
    if kind.endswith("[]"):
        return tuple(sample(kind[:-2], seed + i) for i in range(2))
    if kind.endswith("]"):
        head, _, count = kind[:-1].rpartition("[")
        return tuple(sample(head, seed + i) for i in range(int(count)))
    if kind.startswith("("):
        parts, depth, part = [], 0, ""
        for character in kind[1:-1] + ",":
            if character == "," and depth == 0:
                parts.append(part)
                part = ""
                continue
            depth += (character == "(") - (character == ")")
            part += character
        return tuple(sample(part, seed + i) for i, part in enumerate(parts))
    plain = {"address": f"0x{seed:040x}", "bool": True, "bytes32": bytes([seed]) * 32, "bytes": b"bytes", "string": "s"}
    return plain.get(kind, seed)


def _logs() -> Iterator[bytes]:
    for which, entry in enumerate(_EVENTS):
        kinds = [(type_of(p), p["indexed"]) for p in entry["inputs"]]
        topics = [abi.encode([kind], [sample(kind)]) for kind, indexed in kinds if indexed]
        plain = [kind for kind, indexed in kinds if not indexed]
        data = abi.encode(plain, [sample(kind) for kind in plain])
        yield _log_bytes(which, topics, data)


def _decode_log(data: bytes) -> tuple[Log, events.Event | None]:
    log, end = _log_of(data)
    log = Log(log.address, log.topics, log.data + data[end:], 1, log.block_hash, log.tx_hash, 0)
    return log, events.decode(log)


def _check_log(data: bytes, found: tuple[Log, events.Event | None]) -> None:
    """What eth_abi reads of a log is what we read."""
    log, event = found
    if event is None:
        return
    (entry,) = [one for one in _EVENTS if one["name"] == type(event).__name__][:1]
    indexed = [p for p in entry["inputs"] if p["indexed"]]
    plain = [p for p in entry["inputs"] if not p["indexed"]]
    try:
        read = dict(zip([p["name"] for p in plain], abi.decode([type_of(p) for p in plain], log.data), strict=True))
        for parameter, topic in zip(indexed, log.topics[1:], strict=True):
            (read[parameter["name"]],) = abi.decode([type_of(parameter)], topic)
    except (DecodingError, OverflowError):
        return  # it is stricter: it looks at padding
    for name, value in read.items():
        same("events", getattr(event, name), value)


def _posted(data: bytes) -> Any:
    log, end = _log_of(data)
    log = Log(log.address, log.topics, log.data + data[end:], 1, log.block_hash, log.tx_hash, 0)
    event = events.decode(log)
    if not isinstance(event, events.JobPosted):
        return None
    # With the id and the submitter that its terms have: anyone may post any terms.
    submitter = words.unpack(words.SUBMITTER, event.terms[0])["account"]
    own = Log(
        log.address,
        (log.topics[0], MARKET.job_id(event.terms), submitter.to_bytes(32, "big")),
        log.data,
        1,
        log.block_hash,
        log.tx_hash,
        0,
    )
    return MARKET.posted_in(own)


def _posts() -> Iterator[bytes]:
    which = next(place for place, entry in enumerate(_EVENTS) if entry["name"] == "JobPosted")
    kinds = [type_of(p) for p in _EVENTS[which]["inputs"] if not p["indexed"]]
    for terms, parents in ((build.terms(), ()), (build.terms(units=9, max_attempts=1), (b"\1" * 32, b"\2" * 32))):
        data = abi.encode(kinds, [words.pack_terms(terms), parents, 1, 0])
        yield _log_bytes(which, [b"\0" * 32, b"\0" * 32], data)


def _check_posted(data: bytes, posted: Any) -> None:
    if posted is not None:
        same("posted-job", words.pack_terms(posted.terms), posted.packed)
        same("posted-job", MARKET.job_id(posted.terms), posted.job_id)


def _index(data: bytes) -> Index:
    """Apply many logs to a keeper's index: few jobs and few units, so that they meet."""
    index, at = Index(NETWORK.job_chain_id, NETWORK.jobs, _ADDRESS, capacity=4), 0
    while at < len(data):
        log, at = _log_of(data, at)
        topics = list(log.topics)
        if len(topics) > 2:
            topics[1], topics[2] = topics[1][:1] * 32, bytes(31) + topics[2][31:] if topics[2][0] < 255 else topics[2]
        index.apply([Log(_ADDRESS, tuple(topics or [bytes(32)]), log.data, 1, b"", b"", 0)], 1_700_000_000)
    return index


def _check_index(data: bytes, index: Index) -> None:
    jobs = index.live()
    if len(index) != len(jobs) or not set(index.unread()) <= set(jobs):
        raise Finding(f"keeper-index: {len(index)} jobs, {len(jobs)} of them live")


def _histories() -> Iterator[bytes]:
    number = {entry["name"]: place for place, entry in enumerate(_EVENTS)}
    kinds = [type_of(p) for p in _EVENTS[number["JobPosted"]]["inputs"] if not p["indexed"]]
    posts = [
        _log_bytes(
            number["JobPosted"],
            [job * 32, bytes(32)],
            abi.encode(kinds, [words.pack_terms(build.terms(**terms)), (), 1, 0]),
        )
        for job, terms in ((b"\1", {}), (b"\2", {"units": 3}))
    ]
    running, over = ((state).to_bytes(32, "big") for state in (2, 5))
    moves = [
        _log_bytes(number["Started"], [b"\1" * 32, bytes(32), bytes(31) + b"\1"], running + bytes(32)),
        _log_bytes(number["Settled"], [b"\1" * 32, bytes(32), bytes(31) + b"\1"], over + bytes(64)),
        _log_bytes(number["Cancelled"], [b"\1" * 32, b"\xff" * 32], over + bytes(32)),
    ]
    yield b"".join([*posts, *moves[:2]])
    yield posts[1] + moves[2].replace(b"\1" * 32, b"\2" * 32)
    yield b"".join([posts[0], moves[0]])
    yield moves[0]


# ---- words and calls ----


_WORDS: Final = (
    (words.unpack_unit, words.pack_unit),
    (words.unpack_header, words.pack_header),
    (words.unpack_best, words.pack_best),
    (words.unpack_accused, words.pack_accused),
    (words.unpack_offer, words.pack_offer),
    (words.unpack_node_state, words.pack_node_state),
    (words.unpack_needs, words.pack_needs),
    (words.unpack_policy, words.pack_policy),
)


def _word(data: bytes) -> tuple[int, int, Any]:
    which = data[0] % len(_WORDS) if data else 0
    word = int.from_bytes(data[1:33], "big")
    read: Callable[[int], Any] = _WORDS[which][0]
    return which, word, read(word)


def _check_word(data: bytes, found: tuple[int, int, Any]) -> None:
    which, word, value = found
    write: Callable[[Any], int] = _WORDS[which][1]
    again = write(value)
    if write is words.pack_policy:  # one amount has several codes, of which the shortest is written
        same("words", words.unpack_policy(again), value)
    else:
        same("words", again, word)


def _some_words() -> Iterator[bytes]:
    node = build.node(1)
    whole = (words.pack_offer(node.offer), words.pack_node_state(node.state), NETWORK.policy, 2, 1 << 200)
    for which, word in itertools.product(range(len(_WORDS)), whole):
        yield bytes([which]) + word.to_bytes(32, "big")


_FLEET: Final = Fleet(1)


def _node(data: bytes) -> tuple[bytes, Any]:
    record = data[:NODE_BYTES].ljust(NODE_BYTES, b"\0")
    return record, node_of(NodeId(1), record)


def _check_node(data: bytes, found: tuple[bytes, Any]) -> None:
    record, node = found
    same("node", decode_node(NodeId(1), record), node)
    same("node", encode_node(node), record)
    try:
        _FLEET.write(NodeId(1), record)
    except ValueError:
        if node.stake < 2**80:
            raise


@cache
def _functions() -> list[tuple[str, dict[str, Any]]]:
    return [(name, entry) for name, entry in _entries() if entry["type"] == "function"]


def _output(data: bytes) -> tuple[list[str], tuple[Any, ...]]:
    name, entry = _functions()[int.from_bytes(data[:2], "big") % len(_functions())]
    values = codec(name).decode_output(entry["name"], len(entry["inputs"]), data[2:])
    return [type_of(p) for p in entry["outputs"]], values


def _check_output(data: bytes, found: tuple[list[str], tuple[Any, ...]]) -> None:
    kinds, values = found
    same("abi-output", abi.decode(kinds, abi.encode(kinds, values)), values)


def _outputs() -> Iterator[bytes]:
    for place, (_, entry) in enumerate(_functions()):
        kinds = [type_of(p) for p in entry["outputs"]]
        if kinds:
            yield place.to_bytes(2, "big") + abi.encode(kinds, [sample(kind) for kind in kinds])


def _calldata(data: bytes) -> Any:
    """Read a call of each contract as the transactions of a worker's journal are read."""
    found = None
    for name in CONTRACTS:
        found = codec(name).decode_input(data) or found
        read_call(Call(NETWORK.contracts[name], data), MARKET)
    return found


def _calls() -> Iterator[bytes]:
    for name, entry in _functions():
        kinds = [type_of(p) for p in entry["inputs"]]
        yield codec(name).encode(entry["name"], *(sample(kind) for kind in kinds))


def _check_reason(data: bytes, reason: str) -> None:
    reason.encode()
    if len(reason) > 200 + len(data):
        raise Finding("revert: a reason longer than its bytes")


# ---- HTTP ----


class Wire:
    """A socket that gives what a stranger sent."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a reader of it."""
        return io.BufferedReader(io.BytesIO(self.data))  # type: ignore[arg-type]


_ENDPOINT: Final = Endpoint("http://127.0.0.1:1", 5)
_MAX_ANSWER: Final = 8192


def _http(data: bytes) -> Any:
    """Read an answer to eth_getLogs from its first byte: status, headers, body, JSON, logs."""
    end = time.monotonic() + 60
    try:
        response = http.client.HTTPResponse(Wire(data), method="POST")  # type: ignore[arg-type]
        response.begin()
        body = endpoint._content(response, _MAX_ANSWER, end)
    except (OSError, http.client.HTTPException, endpoint.zlib.error, ValueError, endpoint._TooLong):
        return None  # what `_post` and `ask` turn into the provider's failure
    found = endpoint._Http(response.status, response.headers.get("Retry-After"), body)
    try:
        return answers.logs(_ENDPOINT._result_of(found, "eth_getLogs", 1, _MAX_ANSWER))
    except MALFORMED:
        return None


def _said() -> Iterator[bytes]:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": [_log_json()]}).encode()
    packed = gzip.compress(body, mtime=0)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    yield head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    yield head + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed
    yield head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
    error = json.dumps({"id": 1, "error": _ERRORS[2]}).encode()
    yield b"HTTP/1.1 400 Bad\r\nRetry-After: 5\r\nContent-Length: %d\r\n\r\n" % len(error) + error
    yield b"HTTP/1.1 429 Slow\r\nRetry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\nContent-Length: 0\r\n\r\n"
    yield b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n\r\n"


_RPC: Final = (HearthError, ProviderFailed, TooMuch, *MALFORMED)

TARGETS: Final = (
    Target("rpc-block", "json", "a block's header", _json(answers.block), _dumps(_BLOCK), _RPC, _bounded("rpc-block")),
    Target(
        "rpc-logs",
        "json",
        "the logs of a range",
        _json(answers.logs),
        _dumps([_log_json(), _log_json(topics=[], data="0x")], [_log_json(removed=True)]),
        _RPC,
        _bounded("rpc-logs"),
    ),
    Target(
        "rpc-receipt",
        "json",
        "a receipt",
        _json(answers.receipt),
        _dumps(_RECEIPT, {**_RECEIPT, "to": _ADDRESS, "contractAddress": None, "status": "0x0"}),
        _RPC,
        _bounded("rpc-receipt"),
    ),
    Target(
        "rpc-transaction",
        "json",
        "a transaction",
        _json(answers.transaction),
        _dumps(_TRANSACTION, {**_TRANSACTION, "blockHash": None, "blockNumber": None, "to": None}),
        _RPC,
        _bounded("rpc-transaction"),
    ),
    Target("rpc-error", "json", "an error object", _errors_of, _dumps(*_ERRORS), (ValueError,), _check_failure),
    Target("rpc-http", "bytes", "the HTTP answer of a provider", _http, _said, (HearthError, ProviderFailed, TooMuch)),
    Target("events", "bytes", "a log", _decode_log, _logs, (ChainError,), _check_log),
    Target("posted-job", "bytes", "the log of a posted job", _posted, _posts, (ChainError, ValueError), _check_posted),
    Target(
        "keeper-index",
        "bytes",
        "a history of logs",
        _index,
        _histories,
        (),
        _check_index,
        lambda index: index.strays == 0,
    ),
    Target("words", "bytes", "a packed word", _word, _some_words, (ValueError,), _check_word),
    Target("node", "bytes", "a node's record", _node, lambda: [encode_node(build.node(1))], (ValueError,), _check_node),
    Target("abi-output", "bytes", "what a contract returned", _output, _outputs, (ChainError,), _check_output),
    Target("calldata", "bytes", "a transaction's calldata", _calldata, _calls, (ValueError,)),
    Target(
        "revert",
        "bytes",
        "a revert's return data",
        revert_reason,
        lambda: [bytes.fromhex(text[2:]) for text in (_REFUSED, _REVERT, _PANIC)],
        (),
        _check_reason,
        bool,
    ),
)
