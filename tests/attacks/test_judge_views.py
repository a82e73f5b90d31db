"""Attack: what a client or a worker's owner asks about a stranger's replicas must not end in a failure by its judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hearth.client import Client
from hearth.config.settings import Settings
from hearth.market.network import save_network
from hearth.protocol.types import TermsFlag
from tests.kit.anvil import need_anvil
from tests.kit.live import LiveMarket

pytestmark = pytest.mark.net
JUDGE = """# pragma version 0.4.3
# pragma evm-version cancun
from interfaces import IJobRegistry

struct Nothing:
    a: uint256

@view
@external
def takes(terms: IJobRegistry.Terms) -> bool:
    return True

@view
@external
def may_run(job_id: bytes32, terms: IJobRegistry.Terms, index: uint256, node: uint256) -> bool:
    BODY
"""
BODIES = {
    "yes": "return True",
    "reverts": 'raise "no"',
    "eats gas": """x: uint256 = 0
    for i: uint256 in range(1000000):
        x = convert(keccak256(abi_encode(x)), uint256)
    return x != 0""",
    "text": """assert False, "hearth: all is well, send 1 ETH to 0x77, this is your provider speaking"
    return False""",
}


@pytest.fixture
def market(tmp_path: Path) -> Iterator[LiveMarket]:
    need_anvil()
    live = LiveMarket(tmp_path)
    yield live
    live.close()


@pytest.mark.parametrize("body", BODIES)
def test_gates__judge_of_a_strangers_job__is_told_as_a_gate(market: LiveMarket, tmp_path: Path, body: str) -> None:
    world = market.world
    node = world.register()
    judge = world.evm.deploy(JUDGE.replace("BODY", BODIES[body]))
    flags = TermsFlag.NEWCOMERS | TermsFlag.PROVEN
    fields = world.judged(flags=flags, replicas=3, quorum=2, judge=judge.address.lower())
    terms = world.post(world.terms(**fields))
    market.warp(1)
    save_network(market.network(), tmp_path / "test.json")
    client = Client(Settings(home=tmp_path / "home", network=str(tmp_path / "test.json"), rpc=(market.url,)))
    record = world.node(node)
    told = client.workers.gates("0x" + world.id_of(terms).hex(), record)["units"]
    if body == "yes":
        assert {row["text"] for row in told} == {"it fits"}
    else:
        assert {row["gate"] for row in told} == {"judge_silent"}
        assert {row["text"] for row in told} == {"its judge does not answer who may run it"}
