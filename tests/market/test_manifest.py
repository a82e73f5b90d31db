"""hearth.market.manifest: what a node says of itself, where it is found, and what of a stranger's word is left out."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.base.errors import BadDocument, StorageError
from hearth.market import manifest as subject
from hearth.market.manifest import (
    MAX_BYTES,
    MAX_GATEWAYS,
    MAX_GPUS,
    MAX_TEXT,
    Figures,
    ListedGpu,
    Manifest,
    carried,
    figures_of,
    find_manifest,
    last_named,
    manifest_of,
    read_manifest,
)
from hearth.protocol.types import NodeId, Offer
from hearth.storage import canonical
from hearth.storage.stores import MemoryStore
from tests.kit.scripted import ScriptedMarket

FIGURES = Figures(
    at=1_796_000_000, memory_mib=80_000, from_host_mb_s=50_000, memory_mb_s=3_000_000, half_gflops=600_000
)
MINE = Manifest("hearth 1", "de", (ListedGpu("NVIDIA H100", "550.1", 80, FIGURES),), ("https://gpu.example.org",))
OLD = {"version": 1, "software": "hearth 0", "country": "de", "gpus": []}


def packed(document: Any) -> bytes:
    return canonical.encode(document)


@pytest.fixture
def market() -> ScriptedMarket:
    return ScriptedMarket()


# ---- the document ----


def test_manifest__written_and_read__is_the_same() -> None:
    assert read_manifest(packed(MINE.document())) == MINE
    assert set(MINE.document()) == {"version", "software", "country", "gpus", "gateways"}


@pytest.mark.parametrize("name", [field.name for field in fields(Figures)])
@pytest.mark.parametrize("odd", [None, True, 0, -1, 1.5, "1", [1], 1 << 37])
def test_manifest__figure_out_of_bounds__none_of_the_gpus_figures_counts(name: str, odd: Any) -> None:
    told = {**asdict(FIGURES), name: odd}
    found = manifest_of({**MINE.document(), "gpus": [{"name": "x", "vram_gib": 1, "measured": told}]})
    assert found.gpus == (ListedGpu("x", "", 1),)


def test_figures_of__something_else__is_none_and_unknown_keys_are_passed_over() -> None:
    assert figures_of({**asdict(FIGURES), "later": 1}) == FIGURES
    assert [figures_of(one) for one in (None, [], {}, "x", {"at": 1})] == [None] * 5


def test_manifest__of_before__names_no_gateways() -> None:
    assert manifest_of(OLD) == Manifest("hearth 0", "de")


def test_manifest__keys_that_nobody_knows__are_passed_over() -> None:
    told = {**MINE.document(), "later": {"deep": [1]}, "gpus": [{"name": "x", "vram_gib": 1, "later": 2}]}
    assert manifest_of(told) == Manifest("hearth 1", "de", (ListedGpu("x", "", 1),), MINE.gateways)


@pytest.mark.parametrize(
    "document",
    [
        *(None, [], "text", 1, {}, {"version": 2}, {"version": "1"}, {"version": True}, {"version": None}),
        *({**OLD, "gateways": one} for one in ("https://gpu.example.org", {"a": 1}, 7, None)),
        *({**OLD, "gpus": one} for one in ("GPU", {}, 7)),
    ],
)
def test_manifest__no_manifest__is_refused(document: Any) -> None:
    with pytest.raises(BadDocument, match="no manifest"):
        manifest_of(document)


@pytest.mark.parametrize(
    "odd",
    [
        *(None, 7, ["https://gpu.example.org"], {"url": "https://gpu.example.org"}, "", "gpu.example.org"),
        *("https://u:p@gpu.example.org", "http://gpu.example.org:22", "https://gpu.example.org?x", "ftp://x.example"),
        *("http://x\r\nHost: y", "https://" + "a" * 5000 + ".example", "\u202ehttps://x.example"),
    ],
)
def test_manifest__odd_addresses__are_left_out_and_the_good_one_stays(odd: Any) -> None:
    """What a cheat gains: nobody is sent to what is no address of a gateway, and his own good one is all he has."""
    told = manifest_of({**OLD, "gateways": [odd, "https://gpu.example.org", odd]})
    assert told.gateways == ("https://gpu.example.org",)


def test_manifest__more_gateways_than_one_asks__only_the_first_are_read() -> None:
    """What a cheat gains by a list without end: as many are asked as of an honest node."""
    many = [f"https://{number}.example.org" for number in range(5_000)]
    assert manifest_of({**OLD, "gateways": many}).gateways == tuple(many[:MAX_GATEWAYS])
    assert manifest_of({**OLD, "gateways": ["https://a.example"] * 9}).gateways == ("https://a.example",)
    assert len(Manifest(gateways=tuple(many)).document()["gateways"]) == MAX_GATEWAYS


def test_manifest__names_and_sizes_without_end__are_left_out() -> None:
    long, shown = "x" * (MAX_TEXT + 1), "x" * MAX_TEXT
    gpus = [
        {"name": long, "driver": shown, "vram_gib": -1},
        {"name": "\x1b[2J", "driver": 7, "vram_gib": "80"},
        {"name": None, "vram_gib": True},
        "GPU",
        *[{}] * 200,
    ]
    told = manifest_of({**OLD, "software": long, "country": ["de"], "gpus": gpus})
    assert (told.software, told.country) == ("", "")
    assert told.gpus[:3] == (ListedGpu("", shown, 0), ListedGpu("", "", 0), ListedGpu("", "", 0))
    assert len(told.gpus) == MAX_GPUS - 1
    assert len(packed(Manifest("s", "de", told.gpus * 9).document())) < MAX_BYTES


def test_read_manifest__larger_than_one_reads__is_refused() -> None:
    exact = {**OLD, "x": ""}
    exact["x"] = "a" * (MAX_BYTES - len(packed(exact)))
    assert len(packed(exact)) == MAX_BYTES and read_manifest(packed(exact)).country == "de"
    with pytest.raises(BadDocument, match=f"{MAX_BYTES + 1} bytes"):
        read_manifest(packed({**exact, "x": exact["x"] + "a"}))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=80),
        lambda inner: (
            st.lists(inner, max_size=5)
            | st.dictionaries(st.sampled_from([*MINE.document(), "name", "driver", "vram_gib", "z"]), inner, max_size=6)
        ),
        max_leaves=30,
    )
)
def test_manifest__any_document__is_read_within_bounds_or_refused(document: Any) -> None:
    try:
        told = manifest_of(document)
    except BadDocument:
        return
    assert len(told.gateways) <= MAX_GATEWAYS and len(told.gpus) <= MAX_GPUS
    assert all(subject.gateway_fault(one) == "" for one in told.gateways)
    assert read_manifest(packed(told.document())) == told


# ---- where it is found ----


@pytest.mark.parametrize("inside", [b"", b"\x6a\x76\x12\x02" + bytes(300)], ids=["owner's own", "a wallet's"])
def test_find_manifest__call_that_carries_it__no_store_is_asked(market: ScriptedMarket, inside: bytes) -> None:
    named = market.name_manifest(7, packed(MINE.document()), inside=inside)
    found = last_named(market.market, [NodeId(7)], market.chain.head(), until=time.monotonic() + 9)
    assert found == {7: named}
    assert find_manifest(market.market, named) == MINE


def test_carried__register_and_update__both_carry_it(market: ScriptedMarket) -> None:
    raw = packed(MINE.document())
    digest, calls = hashlib.sha256(raw).digest(), market.market.calls
    for call in (
        calls.register("0x" + "11" * 20, Offer(slots=1), digest, 5, raw),
        calls.update_offer(NodeId(7), Offer(slots=1), digest, raw),
    ):
        assert carried(call.data, digest) == raw
        assert carried(call.data[: -len(raw)], digest) is None and carried(call.data, bytes(32)) is None


def test_carried__other_bytes_than_the_digests__are_nobodys_manifest(market: ScriptedMarket) -> None:
    """What a cheat, or a provider of the chain, gains: nothing is read but what the digest on chain names."""
    raw = packed(MINE.document())
    digest = hashlib.sha256(raw).digest()
    for other in (raw.replace(b"gpu", b"evil"), raw[:-1], b" " + raw, b"{" + raw):
        call = market.market.calls.update_offer(NodeId(7), Offer(slots=1), digest, other)
        assert carried(call.data, digest) is None
    assert carried(market.market.calls.update_offer(NodeId(7), Offer(slots=1), digest, raw + b"}{").data, digest) == raw


def test_carried__data_made_to_be_long_to_search__ends_soon() -> None:
    digest = hashlib.sha256(b"nothing").digest()
    for data in (digest * 4096, (digest + b"{" * 31 + b"}") * 2000, (digest + b"{" + b"}" * 16_000) * 200):
        began = time.thread_time()
        assert carried(data, digest) is None
        assert time.thread_time() - began < 1


def test_find_manifest__call_without_it__is_had_from_a_store_or_not_at_all(market: ScriptedMarket) -> None:
    named = market.name_manifest(7, packed(MINE.document()), carried=False)
    store = MemoryStore()
    assert find_manifest(market.market, named) is find_manifest(market.market, named, store) is None
    store.put_json(MINE.document())
    assert find_manifest(market.market, named, store) == MINE
    gone = named._replace(tx_hash=b"\x01" * 32)
    assert find_manifest(market.market, gone, store) == MINE and find_manifest(market.market, gone) is None


@pytest.mark.parametrize(
    "raw", [b"{}", b"{" + b"[" * 5000 + b"}", b'{"version":1}\xff}', b'{"version": 1}', b'{"version":1e1}']
)
def test_find_manifest__document_that_is_none__none(market: ScriptedMarket, raw: bytes) -> None:
    assert find_manifest(market.market, market.name_manifest(7, raw)) is None


def test_last_named__several_calls_and_nodes__the_last_of_each_that_is_asked_for(
    market: ScriptedMarket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "SPAN", 4)
    market.name_manifest(7, b"{}")
    other = market.name_manifest(8, packed(OLD))
    market.chain.mine(count=9)
    last = market.name_manifest(7, packed(MINE.document()))
    market.name_manifest(9, packed(OLD))
    market.chain.mine(count=9)
    head, far = market.chain.head(), time.monotonic() + 99
    assert last_named(market.market, [NodeId(7), NodeId(8)], head, until=far) == {7: last, 8: other}
    asked = market.chain.counts["logs"]
    assert last_named(market.market, [NodeId(7)], head, until=far) == {7: last}
    # From the newest block back, and no further than where the last one is found.
    assert market.chain.counts["logs"] - asked == 3
    assert last_named(market.market, [NodeId(6)], head, until=far) == {}
    monkeypatch.setattr(subject, "MAX_IDS", 0)
    assert last_named(market.market, [NodeId(8)], head, until=far) == {8: other}
    assert last_named(market.market, [NodeId(7)], head, until=time.monotonic()) == {}


def test_manifest__bad_store__is_no_manifest(market: ScriptedMarket) -> None:
    class Broken(MemoryStore):
        def _read(self, cid: Any, timeout: float) -> bytes:
            raise StorageError("down")

    named = market.name_manifest(7, json.dumps(OLD).encode(), carried=False)
    assert find_manifest(market.market, named, Broken()) is None
