"""Who could take a job: the node that had a unit last, one's own node, and the price of one that is on probation."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.cli.jobs import in_quarantine
from hearth.client.gates import Fleet, takers, workers_in_words
from hearth.client.net import Net
from hearth.client.views import JobView
from hearth.client.workers import Workers
from hearth.market.profiles import DEVNET
from hearth.market.reads import UnitView
from hearth.protocol import formulas
from hearth.protocol.types import (
    ZERO_ADDRESS,
    Gate,
    Header,
    JobId,
    Needs,
    Node,
    NodeId,
    NodeState,
    Offer,
    Runtime,
    State,
    Terms,
    Unit,
)
from hearth.protocol.units import Asset
from hearth.protocol.words import pack_policy

NOW = 1_800_000_000
ETHER = 10**18
POLICY = DEVNET.policy
TERMS = Terms(
    submitter="0x" + "0b" * 20,
    salt=0,
    spec=bytes([5]) * 32,
    needs=Needs(cores=1),
    ceiling=10**20,
    max_seconds=600,
    deadline=NOW + 3_600,
    keeper_fee=POLICY.min_keeper_fee,
    policy=pack_policy(POLICY),
)


def node(number: int, ask: int, **changes: Any) -> Node:
    one = Node(
        id=NodeId(number),
        owner="0x" + "0c" * 20,
        operator="0x" + "0a" * 20,
        stake=20 * ETHER,
        offer=Offer(cores=4, slots=2, ask=ask),
        state=NodeState(beat=NOW, seasoned=True),
    )
    return replace(one, **changes)


def fleet(*nodes: Node) -> Fleet:
    return Fleet(nodes, NOW, 900, ETHER)


BOND = formulas.bond(TERMS, POLICY)
LATER = {
    "free": NodeState(beat=NOW, seasoned=True),
    "busy": NodeState(beat=NOW, seasoned=True, busy=2),
    "quarantined": NodeState(beat=NOW, seasoned=True, quarantine=NOW + 60),
    "on probation with a lease": NodeState(beat=NOW, busy=1),
    "its stake in other leases": NodeState(beat=NOW, seasoned=True, busy=1, bond=20 * ETHER - BOND + 1),
}


@pytest.mark.parametrize("state", LATER.values(), ids=LATER)
def test_gates__the_excluded_node__takes_nothing(state: NodeState) -> None:
    one = fleet(node(3, 10**20, state=state))
    assert takers(one.gates(TERMS, POLICY)) == 1
    assert one.gates(TERMS, POLICY, excluded=3) == {Gate.EXCLUDED: 1}


@pytest.mark.parametrize("state", LATER.values(), ids=LATER)
def test_gates__what_waiting_does_not_open__is_named_before_what_it_does(state: NodeState) -> None:
    dear, mine = node(3, TERMS.ceiling + 1, state=state), node(4, 10**20, state=state, operator=TERMS.submitter)
    small = node(5, 10**20, state=state, offer=Offer(cores=0, slots=2, ask=1))
    assert fleet(dear, mine, small).gates(TERMS, POLICY) == {Gate.PRICE: 1, Gate.SUBMITTER: 1, Gate.CORES: 1}


def test_gates__a_quarantine_that_leaves_no_time_for_an_attempt__is_no_worker() -> None:
    last = TERMS.deadline - formulas.lease_seconds(TERMS) - formulas.grace(TERMS, POLICY)
    late = fleet(node(3, 10**20, state=NodeState(beat=NOW, seasoned=True, quarantine=last + 1)))
    assert late.gates(TERMS, POLICY) == {Gate.NO_TIME: 1}
    words = workers_in_words(late.gates(TERMS, POLICY))
    assert words == "1 worker: 1 in quarantine until too late for the deadline -> 0 can take it"
    assert late.asks(TERMS, POLICY) == late.asks(TERMS, POLICY, any_price=True) == []
    soon = fleet(node(3, 10**20, state=NodeState(beat=NOW, seasoned=True, quarantine=last)))
    assert soon.gates(TERMS, POLICY) == {Gate.QUARANTINED: 1}
    assert soon.asks(TERMS, POLICY) == [10**20]


@pytest.mark.parametrize(
    ("gpus", "offered", "gate"), [(1, 0, Gate.GPU_COUNT), (1, 1, Gate.RUNTIME), (0, 0, Gate.RUNTIME)]
)
def test_gates__a_missing_gpu__is_named_before_the_missing_runtime(gpus: int, offered: int, gate: Gate) -> None:
    one = fleet(node(3, 10**20, offer=Offer(cores=4, slots=2, ask=10**20, gpu_count=offered)))
    wanted = replace(TERMS, needs=Needs(runtimes=Runtime.DOCKER, cores=1, gpu_count=gpus))
    assert one.gates(wanted, POLICY) == {gate: 1}


def test_read__nodes_that_left__are_none() -> None:
    left = node(1, 5, operator=ZERO_ADDRESS)
    market = SimpleNamespace(
        port=SimpleNamespace(head=lambda: SimpleNamespace(hash=b"", timestamp=NOW)),
        nodes=lambda block: [left, node(2, 5)],
    )
    parameters = SimpleNamespace(dead_after=900, minimum_stake=1)
    session: Any = SimpleNamespace(market=market, network=SimpleNamespace(node_parameters=parameters))
    assert Fleet.read(session) == Fleet((node(2, 5),), NOW, 900, 1)


def test_asks__any_price__are_those_of_workers_that_would_take_it_at_that_price() -> None:
    dear = 3 * 10**20
    busy = node(4, 2 * dear, state=NodeState(beat=NOW, seasoned=True, busy=2))
    mine = node(5, 10, operator=TERMS.submitter)
    silent = node(6, 10, state=NodeState(beat=1, seasoned=True))
    # A lease of 20 ETH is above what a node on probation may hold, and its bond above what the last one staked.
    rate = 20 * ETHER * 10**6 // 600
    new = node(7, rate, state=NodeState(beat=NOW))
    poor = node(8, rate, stake=2 * ETHER)
    rich = node(9, rate, stake=100 * ETHER)
    all_of_them = fleet(busy, rich, mine, silent, new, poor, node(3, dear))
    assert all_of_them.asks(TERMS, POLICY) == []
    assert all_of_them.asks(TERMS, POLICY, any_price=True) == [dear, 2 * dear, rate]
    assert all_of_them.asks(replace(TERMS, ceiling=dear), POLICY) == [dear]


def test_lists__a_node_in_quarantine__say_until_when() -> None:
    held = node(2, 5, state=NodeState(beat=NOW, seasoned=True, quarantine=NOW + 60))
    market = SimpleNamespace(
        port=SimpleNamespace(head=lambda: SimpleNamespace(hash=b"", timestamp=NOW, number=9)),
        nodes=lambda block: [node(1, 5), held],
    )
    network = SimpleNamespace(name="devnet", node_parameters=SimpleNamespace(dead_after=900, minimum_stake=1))
    reads: Any = SimpleNamespace()
    reads.session = SimpleNamespace(market=market, network=network, asset=Asset("ETH", 18), amount=str)
    offers = Workers(reads).offers()["offers"]
    assert [(row["free"], row["quarantined_until"]) for row in offers] == [(2, None), (0, NOW + 60)]
    listed = Net(SimpleNamespace(session=reads.session, reads=reads)).workers()["workers"]  # type: ignore[arg-type]
    assert [row["quarantined_until"] for row in listed] == [None, NOW + 60]
    for rows in (offers, listed):
        assert [in_quarantine(row) for row in rows] == ["", " (in quarantine until 2027-01-15 08:01:00 UTC)"]


def test_why__open_claim_below_the_nodes_ask__names_its_second() -> None:
    """The chain's gate is a claim's where the unit takes claims; one that only time opens says when."""
    mine = node(2, TERMS.ceiling)
    asked: list[tuple[int, bool]] = []

    def gate(packed: object, index: int, number: int, *, claim: bool) -> Gate:
        asked.append((index, claim))
        return Gate.PRICE

    def first(packed: object, index: int, rate: int) -> int | None:
        return None if rate > TERMS.ceiling else NOW + 30

    market = SimpleNamespace(fit=gate, claimable_from=first)
    posted: Any = SimpleNamespace(job_id=JobId(bytes(32)), terms=replace(TERMS, units=3), packed=())
    running, waiting = Unit(State.RUNNING), Unit(State.OPEN, started=NOW)
    for window, claim in ((12, False), (0, True)):
        posted.terms = replace(posted.terms, match_window=window)
        seen = tuple(UnitView(unit, 0, 0) for unit in (running, waiting))
        view = JobView(posted, POLICY, Header(touched=2, opened=NOW), (running, waiting), seen, 9, NOW)
        reads: Any = SimpleNamespace(session=SimpleNamespace(market=market), look=lambda job, view=view: view)
        asked.clear()
        told = Workers(reads).gates("0x", mine)["units"]
        assert asked == [(1, claim), (2, claim)]
        words = "it can claim once the price has risen to its ask: from 08:00:30 UTC (in 30s)"
        assert {row["text"] for row in told} == {words}
    dear = Workers(reads).gates("0x", node(2, TERMS.ceiling + 1))["units"]
    assert {row["text"] for row in dear} == {"this node is above your price"}
