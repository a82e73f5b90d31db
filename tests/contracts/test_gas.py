"""Gas stays within its ceilings, within 1 % of the committed snapshot, and does not grow with the market."""

from __future__ import annotations

import json

import pytest

from tests.kit import world as w
from tests.kit.evm import ROOT, Evm
from tests.kit.gas import CEILINGS, POST_10000_EXTRA, measure
from worker.decide import worth

SNAPSHOT = ROOT / "bench" / "results" / "gas.json"
CROWD = 10_000


@pytest.fixture(scope="module")
def figures() -> dict[str, int]:
    """Measure in process: gas equals a receipt's on anvil (tests/contracts/test_evm.py)."""
    return measure(w.World(Evm(exact_gas=True)), batch=False)


def test_gas__every_call__within_ceiling(figures: dict[str, int]) -> None:
    over = {key: gas for key, gas in figures.items() if gas > CEILINGS.get(key, gas)}
    assert not over
    assert figures["post_10000"] - figures["post"] <= POST_10000_EXTRA


def test_gas__every_call__within_snapshot(figures: dict[str, int]) -> None:
    snapshot = json.loads(SNAPSHOT.read_text())
    assert set(CEILINGS) <= set(snapshot), "run make bench-gas"
    risen = {key: (snapshot[key], gas) for key, gas in figures.items() if gas > snapshot[key] * 1.01}
    assert not risen, "gas rose by more than 1 %; if that is meant, run make bench-gas and commit its result"


def test_gas__what_a_worker_reckons_with__is_the_ceiling_of_the_dearer_kind() -> None:
    assert CEILINGS["array_claim"] == worth.CLAIM_GAS and CEILINGS["array_submit"] == worth.SUBMIT_GAS
    assert CEILINGS["ack"] == worth.ACK_GAS
    # No array is measured here: it costs a proposal what it costs a claim more.
    assert CEILINGS["propose"] + CEILINGS["array_claim"] - CEILINGS["claim"] <= worth.PROPOSE_GAS


@pytest.mark.slow
def test_gas__ten_thousand_nodes_and_jobs__moves_less_than_five_percent(figures: dict[str, int]) -> None:
    world = w.World(Evm())
    offer = w.words.pack_offer(w.OFFER)
    for _ in range(CROWD):
        world.nodes.send.register(world.stranger, offer, b"\x55" * 32, w.ETHER, sender=world.stranger, value=w.ETHER)
        world.post(units=3)
    world.evm.exact_gas = True
    crowded = measure(world, batch=False)
    moved = {key: (figures[key], gas) for key, gas in crowded.items() if abs(gas - figures[key]) > 0.05 * figures[key]}
    assert not moved
