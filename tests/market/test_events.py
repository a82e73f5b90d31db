"""Every event of the four contracts, decoded by its class and by the fast path; eth_abi is the oracle."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from hearth.base.errors import ChainError, HearthError
from hearth.chain.port import Log
from hearth.market import events
from hearth.market.abi import Codec, codec, signature_of, type_of
from hearth.market.contracts import CONTRACTS

ADDRESS = "0x" + "ab" * 20


def every_event() -> list[tuple[str, dict[str, Any]]]:
    return [(name, dict(entry)) for name in CONTRACTS for entry in codec(name).abi if entry["type"] == "event"]


def sample(kind: str, seed: int) -> Any:
    """Return a value of an ABI type that differs with its seed."""
    if kind == "address":
        return f"0x{seed + 1:040x}"
    if kind == "bytes32":
        return bytes([seed + 1]) * 32
    if kind == "uint256":
        return 2**255 + seed
    if kind == "bytes32[]":
        return (b"\x01" * 32, b"\x02" * 32)
    if kind == "uint256[4]":
        return (seed, 2, 3, 2**256 - 1)
    if kind.startswith("("):
        return tuple(sample(part, seed + i) for i, part in enumerate(kind[1:-1].split(",")))
    raise AssertionError(kind)


def make_log(entry: dict[str, Any], values: dict[str, Any]) -> Log:
    """Encode a log as a contract would, by eth_abi."""
    indexed = [p for p in entry["inputs"] if p["indexed"]]
    plain = [p for p in entry["inputs"] if not p["indexed"]]
    topics = [keccak(text=signature_of(entry))] + [encode([type_of(p)], [values[p["name"]]]) for p in indexed]
    data = encode([type_of(p) for p in plain], [values[p["name"]] for p in plain])
    return Log(ADDRESS, tuple(topics), data, 7, b"\x07" * 32, b"\x08" * 32, 3)


@pytest.mark.parametrize(("contract", "entry"), every_event(), ids=lambda v: v if isinstance(v, str) else v["name"])
def test_decode__each_event_of_each_contract__equals_what_was_encoded(contract: str, entry: dict[str, Any]) -> None:
    values = {p["name"]: sample(type_of(p), i) for i, p in enumerate(entry["inputs"])}
    log = make_log(entry, values)
    event = events.decode(log)
    assert type(event).__name__ == entry["name"]
    assert event is not None and event.log is log
    assert {f.name: getattr(event, f.name) for f in fields(event) if f.name != "log"} == values


def test_events__every_class__is_in_some_contract() -> None:
    assert set(events.EVENTS) == {entry["name"] for _, entry in every_event()}


def test_decode__a_topic_of_another_contract__is_none() -> None:
    assert events.decode(Log(ADDRESS, (b"\x01" * 32,), b"", 1, b"", b"", 0)) is None
    assert events.decode(Log(ADDRESS, (), b"", 1, b"", b"", 0)) is None


@pytest.mark.parametrize(("contract", "entry"), every_event(), ids=lambda v: v if isinstance(v, str) else v["name"])
def test_decode__a_cut_log__is_refused(contract: str, entry: dict[str, Any]) -> None:
    log = make_log(entry, {p["name"]: sample(type_of(p), i) for i, p in enumerate(entry["inputs"])})
    cuts = [log._replace(topics=(*log.topics, b"\0" * 32))]
    if log.data:
        cuts.append(log._replace(data=log.data[:-1]))
    for cut in cuts:
        with pytest.raises(ChainError) as caught:
            events.decode(cut)
        assert caught.value.code == "RPC_BROKEN"


def test_decode__an_array_that_points_outside__is_refused() -> None:
    entry = next(e for _, e in every_event() if e["name"] == "JobPosted")
    log = make_log(entry, {p["name"]: sample(type_of(p), i) for i, p in enumerate(entry["inputs"])})
    wild = log.data[:288] + (2**255).to_bytes(32, "big") + log.data[320:]
    long = log.data[:320] + (2**64).to_bytes(32, "big") + log.data[352:]
    for data in (wild, long):
        with pytest.raises(ChainError):
            events.decode(log._replace(data=data))


def test_decoder_of__an_event_that_differs_from_its_class__is_refused() -> None:
    entry = next(e for _, e in every_event() if e["name"] == "Paused")
    renamed = {**entry, "inputs": [{**entry["inputs"][0], "name": "later"}]}
    with pytest.raises(HearthError):
        events._decoder_of(renamed)
    with pytest.raises(HearthError):
        events._decoder_of({**entry, "name": "Unheard"})


def test_unit_row__every_unit_event__equals_the_decoded_one() -> None:
    seen = 0
    for _, entry in every_event():
        log = make_log(entry, {p["name"]: sample(type_of(p), i) for i, p in enumerate(entry["inputs"])})
        row, event = events.unit_change(log), events.decode(log)
        if isinstance(event, events.UnitEvent):
            seen += 1
            assert row is not None
            assert (row.event, row.job_id, row.lease) == (type(event), event.job_id, event.index)
            assert row.node == getattr(event, "node", 0) and row.word == getattr(event, "word")  # noqa: B009
        else:
            assert row is None
    assert seen == 10


def test_unit_row__a_cut_log__is_refused() -> None:
    entry = next(e for _, e in every_event() if e["name"] == "Closing")
    log = make_log(entry, {p["name"]: sample(type_of(p), i) for i, p in enumerate(entry["inputs"])})
    with pytest.raises(ChainError):
        events.unit_change(log._replace(data=b""))
    with pytest.raises(ChainError):
        events.unit_change(log._replace(topics=log.topics[:3]))


def test_unit_row__against_eth_abi__is_many_times_faster() -> None:
    """Compare with the generic decoder in the same run: the machine's speed cancels out."""
    from eth_abi.abi import decode

    entry = next(e for _, e in every_event() if e["name"] == "Settled")
    log = make_log(entry, {p["name"]: sample(type_of(p), i) for i, p in enumerate(entry["inputs"])})
    kinds = [type_of(p) for p in entry["inputs"]]

    def fast() -> None:
        for _ in range(2_000):
            events.unit_change(log)

    def slow() -> None:
        for _ in range(2_000):
            decode(kinds, b"".join(log.topics[1:]) + log.data)

    def took(work: Any) -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    fast()
    assert min(took(fast) for _ in range(3)) * 5 < min(took(slow) for _ in range(3))


def test_codec__named_and_positional_arguments__encode_the_same() -> None:
    jobs = codec("JobRegistry")
    positional = jobs.encode("submit", b"\1" * 32, 2, b"\3" * 32, b"\4" * 32, 1, 9)
    named = jobs.encode("submit", used=9, outcome=1, report=b"\4" * 32, result=b"\3" * 32, index=2, job_id=b"\1" * 32)
    assert positional == named
    assert jobs.decode_input(positional) == (
        "submit",
        {"job_id": b"\1" * 32, "index": 2, "result": b"\3" * 32, "report": b"\4" * 32, "outcome": 1, "used": 9},
    )


def test_codec__wrong_arguments__are_refused() -> None:
    nodes = codec("NodeRegistry")
    with pytest.raises(ValueError, match="no function beat of 2"):
        nodes.encode("beat", 1, 2)
    with pytest.raises(ValueError, match="beat"):
        nodes.encode("beat", -1)
    with pytest.raises(ValueError, match="missing"):
        nodes.encode("beat", nod=1)
    assert nodes.decode_input(b"\0\0\0\0") is None
    with pytest.raises(ValueError, match="malformed"):
        nodes.decode_input(nodes.selector("beat") + b"\1")


def test_decode_output__no_contract__says_so() -> None:
    with pytest.raises(ChainError) as caught:
        codec("Escrow").decode_output("credit", 1, b"")
    assert caught.value.code == "WRONG_CONTRACTS" and not caught.value.retryable


def test_encode_constructor__by_name__takes_the_abi_order() -> None:
    abi = [
        {
            "type": "constructor",
            "inputs": [{"name": "_second", "type": "uint256"}, {"name": "first", "type": "uint256"}],
            "outputs": [],
        }
    ]
    made = Codec("X", abi)
    assert made.encode_constructor({"first": 1, "second": 2, "unused": 3}) == encode(["uint256", "uint256"], [2, 1])
    with pytest.raises(ValueError, match="first"):
        made.encode_constructor({"second": 2})
