"""Gas under the rules of later forks, on geth: what bench/results/forks.json and docs/GAS.md say is what geth says.

The geth that every test shares runs Osaka's rules too: tests/chaos/test_geth.py and tests/e2e/test_readme.py take a
market on it through its whole life by the public commands.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from bench import bench_forks
from bench.sections import part
from hearth.chain.rpc import RpcChain
from tests.kit.geth import need_geth, shared_chain
from tests.kit.geth_evm import MOST_GAS, GethEvm
from tools.services import geth

COUNT_ZEROS = "0x60011e60005260206000f3"
"""Creation code that answers with the count of leading zeros of 1: an instruction that Osaka brought (EIP-7939)."""


@pytest.fixture(scope="module")
def committed() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bench_forks.RESULT.read_text())
    return found


@pytest.fixture(
    scope="module",
    params=[pytest.param(one, marks=[pytest.mark.deep] if one == "amsterdam" else []) for one in geth.RULES],
)
def rules(request: pytest.FixtureRequest) -> str:
    need_geth()
    return str(request.param)


@pytest.fixture(scope="module")
def measured(rules: str) -> dict[str, Any]:
    return bench_forks.measure_geth(rules)


@pytest.fixture
def evm(rules: str) -> Iterator[GethEvm]:
    made = GethEvm(rules)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.slow
def test_forks__every_call__within_a_hundredth_of_the_committed_figure(
    rules: str, measured: dict[str, Any], committed: dict[str, Any]
) -> None:
    for kind in ("gas", "deploy"):
        ours, theirs = measured[kind], committed[rules][kind]
        assert ours.keys() == theirs.keys(), "run make bench-forks"
        moved = {key: (theirs[key], gas) for key, gas in ours.items() if abs(gas - theirs[key]) > theirs[key] / 100}
        assert not moved, "gas moved by more than 1 %; if that is meant, run make bench-forks and commit its result"


@pytest.mark.slow
def test_forks__a_job__makes_one_new_slot_and_none_after_its_post(measured: dict[str, Any]) -> None:
    slots = measured["slots"]
    assert slots["post"] == slots["life"] == slots["life_finish"] == 1
    assert {slots[key] for key in ("claim", "submit", "settle", "finish", "ack", "reclaim")} == {0}
    assert {slots[key] for key in ("propose", "submit_store", "array_claim", "checkpoint")} == {1}


@pytest.mark.slow
def test_forks__a_traced_calls_gas__is_split_without_a_rest(rules: str, measured: dict[str, Any]) -> None:
    assert tuple(measured["split"]) == bench_forks.TRACED
    for key, split in measured["split"].items():
        assert sum(split.values()) == measured["gas"][key]
        assert split["new slots"] == (bench_forks.SLOT_GAS * measured["slots"][key] if rules == "amsterdam" else 0)
    # What a transaction costs before its data is left over; under Amsterdam's rules one that sends value pays more.
    sent = {key: split["sent"] for key, split in measured["split"].items()}
    least = 21_000 if rules == "osaka" else 15_000
    assert sent == dict.fromkeys(bench_forks.TRACED, least) | {"post": 21_000}


@pytest.mark.slow
def test_forks__amsterdams_ceilings__are_held(rules: str, measured: dict[str, Any]) -> None:
    if rules == "amsterdam":
        assert bench_forks.above({"amsterdam": measured}) == {}


def test_above__figure_over_its_ceiling__is_named() -> None:
    most = bench_forks.CEILINGS["post"]
    assert bench_forks.above({"amsterdam": {"gas": {"post": most}}}) == {}
    assert bench_forks.above({"amsterdam": {"gas": {"post": most + 1}}}) == {"post": most + 1}


def test_page__its_part__is_what_the_committed_figures_say(committed: dict[str, Any]) -> None:
    assert part(bench_forks.PAGE, "forks") == bench_forks.said_of(committed), "run make bench-forks"


def test_osaka__against_cancun__costs_the_same(committed: dict[str, Any]) -> None:
    """But for a few bytes of addresses and what depends on seconds."""
    cancun, osaka = committed["cancun"]["gas"], committed["osaka"]["gas"]
    assert cancun.keys() == osaka.keys()
    apart = {key: (gas, osaka[key]) for key, gas in cancun.items() if abs(gas - osaka[key]) > gas / 50}
    assert not apart


def test_geth_evm__its_rules__are_those_that_it_was_asked_for(evm: GethEvm) -> None:
    """A payment to nobody makes an account: 120 bytes of state at 1,530 under Amsterdam's rules."""
    assert int(evm.rpc("eth_call", {"data": COUNT_ZEROS}, "latest"), 16) == 255
    evm.set_balance("0x" + "77" * 20, 5)
    assert evm.balance("0x" + "77" * 20) == 5
    paid = int(evm.rpc("eth_getTransactionReceipt", evm.last)["gasUsed"], 16)
    assert paid == {"osaka": 21_000, "amsterdam": 21_000 + 120 * 1_530}[evm.rules]
    assert int(evm.rpc("eth_getTransactionByHash", evm.last)["gas"], 16) <= MOST_GAS[evm.rules]


def test_geth_evm__time__is_what_the_test_says(evm: GethEvm) -> None:
    evm.warp(1_000_000)
    for more in (0, 1):  # a block is later than the one before it
        now = evm.now + more
        evm.account(f"account {more}")
        block = evm.rpc("eth_getBlockByNumber", "latest", False)
        assert int(block["timestamp"], 16) == evm.now == now
    assert len(block["transactions"]) == 1


def test_geth_evm__new_slots__are_those_that_were_zero(evm: GethEvm) -> None:
    source = "a: public(uint256)\nb: public(uint256)\n\n@external\ndef put(a: uint256, b: uint256):\n"
    box = evm.deploy(source + "    self.a = a\n    self.b = b\n")
    for values, fresh in (((1, 0), 1), ((2, 3), 1), ((4, 5), 0), ((0, 6), 0)):
        box.send.put(*values)
        assert evm.new_slots() == fresh
        assert (box.call.a(), box.call.b()) == values


def test_shared_geth__its_rules__are_osakas() -> None:
    chain = RpcChain([shared_chain()])
    assert int(chain.rpc("eth_call", {"data": COUNT_ZEROS}, "latest"), 16) == 255
    # Amsterdam's blocks name their slot.
    assert chain.rpc("eth_getBlockByNumber", "latest", False).get("slotNumber") is None
