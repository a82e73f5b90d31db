"""A provider answers a read of the market with words that no contract writes.

Every read says that it raises ChainError, which commands tell in words (exit 4) and programs survive; a ValueError
would end a command with a trace, and an embedding program with it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from eth_abi.abi import encode

from hearth.base.errors import ChainError
from hearth.market.calls import Upkeep, UpkeepOp
from hearth.market.reads import Market, UnitView, job_of
from hearth.protocol import words
from hearth.protocol.formulas import ask_of
from hearth.protocol.types import Accused, Gate, Header, JobId, NodeId, State, Unit
from tests.kit import build
from tests.kit.scripted import ScriptedMarket

JOB = JobId(b"\xaa" * 32)
KEPT = {"seconds": 60, "rate": 1, "node": 3, "resume": 0, "before": 0}
TERMS = words.pack_terms(build.terms())
READS: dict[str, Callable[[Market], Any]] = {
    "newest": lambda market: market.newest(1, market.port.head()),
    "header": lambda market: market.header(JOB),
    "unit": lambda market: market.unit(JOB),
    "units": lambda market: market.units(JOB, 0, 1, header=Header(touched=1)),
    "statuses": lambda market: market.statuses([(JOB, 0)]),
    "overview": lambda market: market.overview(),
    "unit_now": lambda market: market.unit_now(TERMS, 0),
    "job_words": lambda market: job_of(market.job_words([JOB])[0]),
    "fit": lambda market: market.fit(TERMS, 0, NodeId(1)),
    "score": lambda market: market.score(TERMS, 0, NodeId(1)),
    "policy": lambda market: market.policy(),
    "totals": lambda market: market.totals(),
    "node": lambda market: market.node(NodeId(1)),
    "kept": lambda market: market.kept(JOB, 0, 1, 1),
    "credit": lambda market: market.credit("0x" + "11" * 20),
    "last_seen": lambda market: market.last_seen(NodeId(1)),
}
ANY = {"score", "policy", "totals", "credit", "last_seen"}
"""Those of which a contract may write every word."""
SHAPES = {
    "all ones": b"\xff" * 32,
    "one spare bit": (1 << 255).to_bytes(32, "big"),
    "a header of nothing": (1 << 254 | words.HEADER_STATE).to_bytes(32, "big"),
}
WORDS = {
    "JobRegistry": {"load": 4, "checkpoints": 1},
    "NodeRegistry": {"get": 7, "totals": 1, "last_seen": 1},
    "Rules": {"policies": 5},
    "Escrow": {"credit": 1},
    "Lens": {"overview": 14, "unit": 3, "fit": 1, "score": 3},
}
"""What each view answers, in words."""


def _serving(word: bytes) -> Market:
    """Return a market of whose views each answers a word again and again."""
    rig = ScriptedMarket()
    rig.chain.mine()

    def say(contract: str, name: str, data: bytes) -> None:
        rig.on(contract, name, lambda call, block: data)

    for contract, views in WORDS.items():
        for name, count in views.items():
            say(contract, name, word * count)
    page = (32).to_bytes(32, "big") + (1).to_bytes(32, "big")
    status = encode(["(uint256,uint256,uint256,uint256,uint256[])[]"], [[(*[int.from_bytes(word, "big")] * 4, [])]])
    say("Lens", "status", status)
    say("Lens", "overview", word * 3 + bytes(32) + word * 10)
    say("Lens", "units", page + word * 3)
    say("Lens", "jobs", page + word)
    return rig.market


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("read", READS)
def test_read__words_that_no_contract_writes__are_the_providers_fault(read: str, shape: str) -> None:
    market = _serving(SHAPES[shape])
    if read in ANY:
        READS[read](market)
        return
    with pytest.raises(ChainError) as caught:
        READS[read](market)
    assert (caught.value.code, caught.value.exit_code, caught.value.hint) == ("RPC_BROKEN", 4, "hearth doctor")
    assert caught.value.retryable


def test_nodes__record_that_no_contract_writes__is_the_providers_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    market = _serving(b"\xff" * 32)
    monkeypatch.setattr(market, "node_pages", lambda block, end: iter([(NodeId(1), b"\xff" * 32 * 7)]))
    with pytest.raises(ChainError, match="no contract writes"):
        market.nodes("latest")


def test_statuses__checkpoint_that_no_contract_writes__is_the_providers_fault() -> None:
    rig = ScriptedMarket()
    rig.chain.mine()
    word = words.pack_unit(Unit(state=State.RUNNING, attempts=2, resume=1))
    for kept in (words.pack(words.KEPT, KEPT), 1 << 255):
        told = [(word, word, 0, 0, [kept])]
        rig.answer("Lens", "status", ["(uint256,uint256,uint256,uint256,uint256[])[]"], [told])
        with nullcontext() if kept < 1 << 255 else pytest.raises(ChainError, match="no contract writes"):
            (found,) = rig.market.statuses([(JOB, 0)])
            assert found.kept[1].seconds == KEPT["seconds"]


def test_gates__gate_that_no_contract_has__is_the_providers_fault() -> None:
    rig = ScriptedMarket()
    rig.chain.mine()
    rig.answer("NodeRegistry", "totals", ["uint256"], [2])
    for code in (0, max(Gate) + 1):
        rig.answer("Lens", "gates", ["uint256[]"], [[code]])
        with nullcontext() if code == 0 else pytest.raises(ChainError, match="no contract writes"):
            assert rig.market.gates(ask_of(build.terms())) == [Gate.FITS]


def test_check_upkeep__operation_that_no_contract_has__is_the_providers_fault() -> None:
    rig = ScriptedMarket()
    rig.chain.mine()
    work = "(uint256,(uint256,bytes32,uint256,uint256,uint256,uint256,uint256,uint256,bytes32),uint256,uint256)"
    for op in (UpkeepOp.EXPIRE, max(UpkeepOp) + 1):
        rig.answer("Lens", "checkUpkeep", ["bool", f"{work}[]"], [True, [(op, TERMS, 0, 1)]])
        with nullcontext() if op in list(UpkeepOp) else pytest.raises(ChainError, match="no contract writes"):
            assert rig.market.check_upkeep([]) == [Upkeep(UpkeepOp.EXPIRE, TERMS, 0, 1)]


def test_best__proposal_that_no_contract_writes__is_the_providers_fault() -> None:
    view = UnitView(Unit(state=State.OPEN, mark=1), (1 << 256) - 1, Accused())
    assert view.unit.window_end
    with pytest.raises(ChainError, match="no contract writes"):
        assert view.best
