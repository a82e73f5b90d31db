"""The gateways that nodes name, as `hearth job get` and its like ask them: when, whose, how long, and what is told."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from eth_abi.abi import encode

from hearth.base.errors import BlockMissing, StorageError
from hearth.chain.port import Block, Call
from hearth.client import gateways as subject
from hearth.client.audit.verify import Verifier
from hearth.client.gateways import NodeGateways
from hearth.client.job.results import Results
from hearth.local.devnet import free_port
from hearth.market.abi import codec
from hearth.market.manifest import Manifest
from hearth.protocol import words
from hearth.protocol.types import Header, JobId, NodeId, Outcome, State, Unit, UnitFlag
from hearth.storage import canonical
from hearth.storage.stores import MemoryStore, provider_gateways
from hearth.storage.stores.gateway_server import GatewayServer
from tests.client.test_parents import Place
from tests.kit import build
from tests.kit.fake_chain import Event, Fault
from tests.kit.http import answering, send
from tests.market.test_events import own_log

pytestmark = pytest.mark.net

CLOSED = f"http://127.0.0.1:{free_port()}"
"""A gateway that is out of order."""
DONE = Unit(state=State.SETTLED, outcome=Outcome.OK, node=NodeId(3), attempts=1)


class Market(Place):
    """A market with a job whose units have results, and a session whose own store has nothing of them."""

    def __init__(self, *nodes: int, local: bool = True) -> None:
        super().__init__()
        self.store = self.session.store = MemoryStore()
        self.session.local = local
        self.on("Lens", "units", self._units)
        self.theirs = MemoryStore("theirs")
        many = len(nodes) > 1
        word: Any = Header(leases=len(nodes), touched=len(nodes), done=len(nodes)) if many else self.unit(nodes[0])
        self.name = self.post(word, units=len(nodes))
        self.job = JobId(bytes.fromhex(self.name[2:]))
        for index, node in enumerate(nodes):
            unit = self.unit(node) if not many else replace(self.unit(node), flags=UnitFlag.ARRAY)
            self.units[self.job, index] = words.pack_unit(unit)
            self.log(index, node)
        self.results = Results(self.reads)

    def _units(self, call: Call, block: Block) -> bytes:
        told = codec("Lens").decode_input(call.data)
        assert told is not None
        job, first, count = told[1].values()
        page = [(self.units[job, first + number], 0, 0) for number in range(count)]
        return encode(["(uint256,uint256,uint256)[]"], [page])

    @staticmethod
    def unit(node: int) -> Unit:
        return replace(DONE, node=NodeId(node))

    def log(self, index: int, node: int) -> None:
        """Let a unit have a result, which the theirs alone has, as its report."""
        spec = build.terms().spec.hex()
        told = {"spec": spec, "index": index, "outcome": "ok", "status": "ok", "exit_code": 0, "outputs": None}
        result, report = self.theirs.put_json(told), self.theirs.put_json({"detail": f"unit {index}"})
        word = words.pack_unit(replace(self.unit(node), state=State.SUBMITTED, mark=5))
        fields = {"job_id": self.job, "index": index, "node": node, "word": word, "result": result, "report": report}
        made = own_log("Submitted", **fields)
        self.chain.mine([Event(self.network.jobs, made.topics, made.data)])

    def names(self, node: int, *urls: str) -> None:
        """Let a node name gateways."""
        self.name_manifest(node, canonical.encode(Manifest("s", "de", (), urls).document()))

    def read(self) -> tuple[list[int], list[StorageError]]:
        """Return the units whose results can be read, and what is wrong with the others, as one command reads them."""
        view = self.results._look(self.name)
        found, unread = self.results._results(view, None)
        assert all(self.results._told(one) == {"detail": f"unit {one.index}"} for one in found)
        return [one.index for one in found], [one.error for one in unread]


@contextmanager
def served(market: Market) -> Iterator[str]:
    with GatewayServer(market.theirs) as server:
        yield server.url.removeprefix("gateway+")


def test_results__own_store_lacks_them__come_from_the_nodes_gateway_and_it_is_told() -> None:
    market = Market(3)
    with served(market) as url:
        market.names(3, CLOSED, url)
        asked = Counter(market.chain.counts)
        assert market.read() == ([0], [])
        asked = market.chain.counts - asked
    assert market.told == [
        "no store here has what node 3 made: the gateways that it names are asked, 2 in all",
        f"blocks come from {url}, a gateway of node 3",
    ]
    # One search of the chain and one call, whatever is read.
    assert (asked["transaction"], market.store.blocks) == (1, {})


def test_results__own_store_has_them__nobody_is_looked_for() -> None:
    market = Market(3)
    market.names(3, CLOSED)
    market.store.blocks |= market.theirs.blocks
    assert market.read() == ([0], []) and market.told == [] and market.chain.counts["transaction"] == 0


@pytest.mark.parametrize("named", [None, (), (CLOSED,)], ids=["no manifest", "no gateway", "out of order"])
def test_results__node_without_gateways__the_error_is_the_own_stores(named: tuple[str, ...] | None) -> None:
    market = Market(3)
    if named is not None:
        market.names(3, *named)
    found, (error,) = market.read()
    assert found == [] and "the store memory:memory does not have block" in error.message
    assert isinstance(error, BlockMissing) is (named != (CLOSED,)) and error.retryable


def test_results__market_on_no_local_chain__nobody_on_this_machine_is_asked() -> None:
    """What a provider gains by naming ports of the submitter's machine: not a byte."""
    market = Market(3, local=False)
    asked: list[str] = []
    with answering(lambda handler: asked.append(handler.path)) as port:
        market.names(3, *(f"http://{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]", "127.1")))
        _, (error,) = market.read()
    assert asked == [] and "no public address" in error.message


def test_results__units_of_several_nodes__each_is_asked_of_its_own_node_alone() -> None:
    market = Market(3, 4, 5)
    asked: list[str] = []

    def none(handler: Any) -> None:
        asked.append(handler.path)
        send(handler, 404)

    with served(market) as url, answering(none) as port:
        market.names(3, url)
        market.names(4, f"http://127.0.0.1:{port}")
        counted = market.chain.counts["logs"]
        found, unread = market.read()
    assert found == [0] and len(unread) == 2 and len(asked) == 1
    # One for the job's post, one for its events, and one for the manifests of all three.
    assert market.chain.counts["logs"] - counted == 3


def test_results__chain_that_does_not_say__is_told_and_costs_its_own_unit_only() -> None:
    market = Market(3)
    market.names(3, CLOSED)
    market.chain.fail(Fault("down", "transaction"))
    found, (error,) = market.read()
    assert found == [] and isinstance(error, BlockMissing)
    assert market.told == ["where node 3 has gateways cannot be read: scripted fault: down"]


def test_results__gateways_of_many_nodes__a_bound_on_how_many_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a cheat gains by many nodes: as many gateways are asked as of MAX_NODES honest ones."""
    monkeypatch.setattr(subject, "MAX_NODES", 2)
    market = Market(3, 4, 5, 6)
    with served(market) as url:
        for node in (3, 4, 5, 6):
            market.names(node, url)
        found, unread = market.read()
    assert found == [0, 1] and len(unread) == 2
    assert "the gateways of 2 nodes were asked; those of node 5 are not" in market.told


def test_results__gateways_that_stall__cost_a_command_bounded_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cheats gain by silence, with as many nodes as they like: the patience of one command, once."""
    monkeypatch.setattr(provider_gateways, "BLOCK_SECONDS", 0.2)
    monkeypatch.setattr(subject, "IN_VAIN_SECONDS", 1.0)
    market = Market(*range(3, 23))
    with answering(lambda handler: time.sleep(20)) as port:
        for node in range(3, 23):
            market.names(node, *(f"http://127.0.0.1:{port}/{number}" for number in range(4)))
        began = time.monotonic()
        found, unread = market.read()
        took = time.monotonic() - began
    assert found == [] and len(unread) == 20 and took < 10
    assert any("kept us waiting for too long" in error.message for error in unread)


def test_logs__of_a_node__come_from_its_gateway() -> None:
    market = Market(3)
    with served(market) as url:
        market.names(3, url)
        (row,) = market.results.logs(market.name)["units"]
    assert row["detail"] == "unit 0" and "fault" not in row


def test_get__next_command__looks_anew() -> None:
    """A node whose gateway was out of order is no outcast: each command begins with all of its patience."""
    market = Market(3)
    market.names(3, CLOSED)
    assert market.read()[0] == []
    with served(market) as url:
        market.names(3, url)
        assert market.read() == ([0], [])


def test_verify__results_of_a_nodes_gateway__are_verified_and_the_time_for_all_bounds_it() -> None:
    market = Market(3)
    with served(market) as url:
        market.names(3, url)
        verifier = Verifier(market.reads)
        verifier._market, verifier._end = market.market, float("inf")
        head, unread = market.chain.head(), list[str]()
        history = verifier._read(head)
        ((one, _, stored),) = market.market.stored(list(history.posted.values()), head.hash)
        results = {0: stored[0].view}
        assert verifier._verify_results(one, results, history.submitted, [], unread) == (1, 0) and unread == []
    with answering(lambda handler: time.sleep(20)) as port:
        market.names(3, f"http://127.0.0.1:{port}")
        began = time.monotonic()
        verifier._nodes = NodeGateways(market.session, until=began + 1)
        assert verifier._verify_results(one, results, history.submitted, [], unread) == (0, 0) and len(unread) == 1
        assert 0.5 < time.monotonic() - began < 15
