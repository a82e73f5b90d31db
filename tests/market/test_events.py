"""Every event of the contracts, decoded by its class; eth_abi is the oracle."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from hearth.base.errors import ChainError, HearthError
from hearth.chain.port import Log
from hearth.market import events
from hearth.market.abi import Codec, codec, signature_of, type_of
from hearth.market.changes import Change, ChangeOp
from hearth.market.contracts import CONTRACTS
from hearth.market.profiles import DEVNET
from hearth.protocol import words
from hearth.protocol.types import SENTINEL, Header, NodeId, Offer, Outcome, State, Unit
from tests.kit import build

ADDRESS = "0x" + "ab" * 20
RUNNING = words.pack_unit(Unit(state=State.RUNNING, node=NodeId(3), rate=5, started=10, mark=20))
DONE = words.pack_unit(Unit(state=State.SUBMITTED, outcome=Outcome.OK, node=NodeId(3), rate=5, started=10, mark=20))
FLAT = replace(DEVNET.policy, claim_ramp=0)
HEADER = words.pack_header(Header(closed=True, touched=2, opened=99))


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
    if kind.startswith("uint256["):
        return (seed, 2**256 - 1, *range(2, int(kind[8:-1])))
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
    long = log.data[:384] + (2**64).to_bytes(32, "big") + log.data[416:]
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


# ---- what a contract writes ----

OWN: dict[str, str] = {name: contract for contract, entry in every_event() for name in [entry["name"]]}
"""A contract that logs each event."""


WITH_RESULT = ("Submitted", "Settled", "Finished", "Disputed", "Ruled", "Unproven")
"""The events whose units have a result."""


def own_log(name: str, **changed: Any) -> Log:
    """Return a log of an event with values that its contract could write, but for those `changed`."""
    entry = next(e for _, e in every_event() if e["name"] == name)
    values: dict[str, Any] = {p["name"]: sample(type_of(p), i) for i, p in enumerate(entry["inputs"])}
    word = DONE if name in WITH_RESULT else RUNNING
    plain: dict[str, Any] = {
        "node": 3,
        "index": 1,
        "at": 9,
        "until": 9,
        "verdict": 3,
        "attempt": 1,
        "seconds": 9,
        "word": word,
        "offer": words.pack_offer(Offer(slots=2)),
    }
    plain |= {"terms": words.pack_terms(build.terms())}
    if name.startswith("Change"):
        plain |= {"op": 6, "word": 7, "salt": 8, "due": 9, "change": Change(ChangeOp.SEAT_GUARDIAN, 7, 8).id}
    return make_log(entry, {name: changed.get(name, plain.get(name, value)) for name, value in values.items()})


@pytest.mark.parametrize("name", events.EVENTS)
def test_decode_of__event_of_its_contract__is_the_decoded_one(name: str) -> None:
    log = own_log(name)
    assert events.decode_of(log, OWN[name]) == events.decode(log)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("Started", {"word": HEADER}),
        ("Started", {"word": 2**256 - 1}),
        ("Started", {"index": SENTINEL, "word": HEADER}),
        ("Started", {"index": events.MAX_UNITS}),
        ("Started", {"node": events.MAX_NODE}),
        *((name, {"word": RUNNING}) for name in WITH_RESULT),
        ("Ruled", {"verdict": 4}),
        ("Rejected", {"node": events.MAX_NODE}),
        ("Rejected", {"until": events.MAX_TIME + 1}),
        ("Cancelled", {"index": SENTINEL}),
        ("Cancelled", {"word": HEADER}),
        ("JobPosted", {"terms": (2**256 - 1, bytes(32), *[2**256 - 1] * 6, bytes(32))}),
        ("JobPosted", {"terms": words.pack_terms(build.terms(chunk=0))}),
        ("JobPosted", {"terms": words.pack_terms(build.terms(ceiling=0))}),
        ("JobPosted", {"terms": words.pack_terms(build.terms(policy=words.pack_policy(FLAT)))}),
        ("NodeRegistered", {"offer": 2**256 - 1}),
        ("OfferChanged", {"offer": 2**256 - 1}),
        ("OfferChanged", {"node": events.MAX_NODE}),
        ("ExitStarted", {"at": events.MAX_TIME + 1}),
        ("Paused", {"until": events.MAX_TIME + 1}),
        ("ChangeQueued", {"change": b"\1" * 32}),
        ("ChangeQueued", {"salt": 9}),
        ("ChangeQueued", {"op": 7}),
        ("ChangeQueued", {"word": 2**160}),
        ("ChangeQueued", {"due": events.MAX_TIME + 1}),
        ("ChangeExecuted", {"op": 0}),
        ("ChangeExecuted", {"word": 2**160}),
    ],
)
def test_decode_of__what_no_contract_writes__is_refused(name: str, changed: dict[str, Any]) -> None:
    log = own_log(name, **changed)
    assert events.decode(log) is not None, "each of these was taken for an event"
    with pytest.raises(ValueError):
        events.decode_of(log, OWN[name])


def test_decode_of__all_units_of_an_array__takes_its_header() -> None:
    log = own_log("Cancelled", index=SENTINEL, word=HEADER)
    assert isinstance(events.decode_of(log, "JobRegistry"), events.Cancelled)


def test_decode_of__event_of_another_contract_or_of_none__is_refused() -> None:
    with pytest.raises(ValueError, match="Escrow writes no such event"):
        events.decode_of(own_log("Started"), "Escrow")
    with pytest.raises(ValueError, match="JobRegistry writes no such event"):
        events.decode_of(own_log("Started")._replace(topics=()), "JobRegistry")
    with pytest.raises(ValueError, match="JobRegistry writes no such event"):
        events.decode_of(own_log("Paused"), "JobRegistry")
    for contract in ("Rules", "NodeRegistry"):
        assert isinstance(events.decode_of(own_log("Paused"), contract), events.Paused)


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
