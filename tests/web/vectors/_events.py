"""Logs that the contracts could write, by chance: every event, every layout, with values at and within their bounds."""

from __future__ import annotations

import random
from dataclasses import fields
from typing import Any

from hearth.base.abi import encode
from hearth.chain.port import Log
from hearth.market import events
from hearth.market.abi import codec, type_of
from hearth.market.changes import Change, ChangeOp
from hearth.market.contracts import CONTRACTS
from hearth.protocol import words
from hearth.protocol.types import SENTINEL, Header, Offer, Outcome, State, Terms, Unit, Verdict
from tests.web.vectors._plain import plain
from tools.web_tables.words import camel

WITH_RESULT = ("Submitted", "Settled", "Finished", "Disputed", "Ruled", "Unproven")
ADDRESS = "0x" + "c0" * 20
_ENTRIES = {
    (contract, entry["name"]): entry
    for contract in CONTRACTS
    for entry in codec(contract).abi
    if entry["type"] == "event"
}


def every_event() -> list[tuple[str, str]]:
    """Return (contract, event) of all that are written."""
    return list(_ENTRIES)


def chance_log(contract: str, name: str, draw: random.Random) -> Log:
    """Return a log of an event with values by chance that this contract could write."""
    inputs = _ENTRIES[contract, name]["inputs"]
    values = {parameter["name"]: _value(type_of(parameter), draw) for parameter in inputs}
    values |= {key: value for key, value in _bounded(name, draw).items() if key in values}
    if name == "Withdrawn" and draw.random() < 0.5:
        values["to"] = values["account"]
    return log_of(contract, name, values, draw)


def log_of(contract: str, name: str, values: dict[str, Any], draw: random.Random) -> Log:
    """Encode a log as a contract would, anywhere in a chain."""
    inputs = _ENTRIES[contract, name]["inputs"]
    indexed = [encode([type_of(p)], [values[p["name"]]]) for p in inputs if p["indexed"]]
    shown = [p for p in inputs if not p["indexed"]]
    return Log(
        address=ADDRESS,
        topics=(events.topic_of(events.EVENTS[name]), *indexed),
        data=encode([type_of(p) for p in shown], [values[p["name"]] for p in shown]),
        block_number=draw.randrange(1 << 32),
        block_hash=draw.randbytes(32),
        tx_hash=draw.randbytes(32),
        log_index=draw.randrange(500),
    )


def raw(log: Log) -> dict[str, Any]:
    """Return a log as a provider sends it."""
    return {
        "address": log.address,
        "topics": ["0x" + topic.hex() for topic in log.topics],
        "data": "0x" + log.data.hex(),
        "blockNumber": hex(log.block_number),
        "blockHash": "0x" + log.block_hash.hex(),
        "transactionHash": "0x" + log.tx_hash.hex(),
        "logIndex": hex(log.log_index),
    }


def shown(event: events.Event) -> dict[str, Any]:
    """Return a decoded event as the vectors have it, its log aside."""
    values = {camel(f.name): plain(getattr(event, f.name)) for f in fields(event) if f.name != "log"}
    return {"name": type(event).__name__, **values}


def chance_unit(draw: random.Random, *, ended: bool = False) -> Unit:
    """Return a unit with any state; with an outcome where it has a result."""
    lanes = {lane.name: draw.getrandbits(lane.width) for lane in words.UNIT.lanes}
    lanes |= {"state": draw.choice(list(State)), "outcome": draw.choice(list(Outcome)[1:] if ended else list(Outcome))}
    if draw.random() < 0.7:
        lanes |= {"started": draw.randrange(2**31), "mark": draw.randrange(2**32), "resume": draw.randrange(2)}
    return words.unpack_unit(words.pack(words.UNIT, lanes))


def chance_header(draw: random.Random) -> Header:
    """Return an array's header."""
    lanes = {lane.name: 0 if lane.is_zero else draw.getrandbits(lane.width) for lane in words.HEADER.lanes}
    return words.unpack_header(words.pack(words.HEADER, {**lanes, "state": words.HEADER_STATE}))


def chance_terms(draw: random.Random) -> Terms:
    """Return terms with any value in each lane, but for a chunk that counts."""
    lanes = {name: _lanes(words.WORDS[name], draw) for name in ("needs", "money", "limits", "submitter", "judge")}
    lanes["limits"] |= {"billing": draw.randrange(3), "chunk": draw.randrange(1, 1 << 16)}
    packed = {name: words.pack(words.WORDS[name], values) for name, values in lanes.items()}
    return words.unpack_terms(
        (
            *(packed["submitter"], draw.randbytes(32), packed["needs"], packed["money"], packed["limits"]),
            *(draw.getrandbits(256), packed["judge"], draw.getrandbits(256), draw.randbytes(32)),
        )
    )


def _lanes(layout: words.Word, draw: random.Random) -> dict[str, int]:
    return {lane.name: draw.getrandbits(lane.width) for lane in layout.lanes if not lane.is_zero}


def _bounded(name: str, draw: random.Random) -> dict[str, Any]:
    """Return values of an event that its contract keeps within bounds."""
    index = draw.choice([0, 1, 7, events.MAX_UNITS - 1])
    word = words.pack_unit(chance_unit(draw, ended=name in WITH_RESULT))
    if name in ("Cancelled", "Expired", "Unlocked") and draw.random() < 0.5:
        index, word = SENTINEL, words.pack_header(chance_header(draw))
    op = draw.choice(list(ChangeOp))
    time = draw.choice([0, 1, draw.randrange(2**31), draw.randrange(2**31), 253_402_300_799, events.MAX_TIME])
    bounded = {
        "index": index,
        "word": word,
        "node": draw.choice([1, 3, draw.getrandbits(32), events.MAX_NODE - 1]),
        "attempt": draw.randrange(16),
        "seconds": draw.choice([0, 90, draw.getrandbits(24)]),
        "verdict": draw.choice(list(Verdict)),
        "offer": words.pack_offer(_offer(draw)),
        "terms": words.pack_terms(chance_terms(draw)),
        **dict.fromkeys(("at", "until", "due"), time),
    }
    if name.startswith("Change"):
        salt, word = draw.getrandbits(256), draw.choice([0, draw.getrandbits(160 if op.names_an_address else 256)])
        bounded |= {"op": int(op), "word": word, "salt": salt}
        bounded["change"] = Change(op, word, salt).id if name == "ChangeQueued" else draw.randbytes(32)
    return bounded


def _offer(draw: random.Random) -> Offer:
    lanes = _lanes(words.OFFER, draw)
    return words.unpack_offer(words.pack(words.OFFER, {**lanes, "slots": draw.choice([1, lanes["slots"]])}))


def _value(kind: str, draw: random.Random) -> Any:
    """Return a value of an ABI type."""
    if kind == "address":
        return f"0x{draw.choice([0, draw.getrandbits(160)]):040x}"
    if kind == "bytes32":
        return draw.choice(
            [draw.randbytes(32), draw.getrandbits(32).to_bytes(32, "big"), bytes(12) + draw.randbytes(20)]
        )
    if kind == "bytes32[]":
        return [draw.randbytes(32) for _ in range(draw.choice([0, 2, 5]))]
    if kind.startswith("uint256["):
        return [draw.choice([0, draw.getrandbits(160), draw.getrandbits(256)]) for _ in range(int(kind[8:-1]))]
    if kind.startswith("("):
        return None  # terms are packed from their lanes
    return draw.choice(
        [0, 1, 2**53, 2**53 + 1, draw.getrandbits(256), *(draw.randrange(10**18, 10**21) for _ in range(5))]
    )
