"""The columns name the same node, with the same key, as a loop over `hearth.protocol`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import fleets, plain
from hearth import protocol
from hearth.protocol import Ask, Market
from hearth.types import (
    Best,
    Gate,
    Hot,
    HotStatus,
    JobId,
    Needs,
    Node,
    NodeId,
    Offer,
    Policy,
    Runtime,
    State,
    Terms,
    TermsFlag,
    Unit,
)
from keeper import match

TOP = 2**80 - 1
NOW = 1_000_000
OPEN = Unit(state=State.OPEN)
EDGES = [0, 1, 2, 10_000, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1, TOP - 1, TOP]

amounts = st.one_of(st.sampled_from(EDGES), st.integers(0, TOP), st.integers(0, 2**40))
near_now = st.sampled_from([0, 1, NOW - 901, NOW - 900, NOW - 899, NOW - 1, NOW, NOW + 1, NOW + 900])
sizes = st.integers(0, 3)


def build_fleet(nodes: list[Node]) -> match.Fleet:
    fleet = match.Fleet(capacity=1)
    fleet.write(NodeId(1), b"".join(match.encode_node(node) for node in nodes))
    return fleet


@st.composite
def nodes_of(draw: st.DrawFn, number: int, pool: list[int]) -> Node:
    some = st.one_of(st.sampled_from(pool), amounts)
    return Node(
        id=NodeId(number),
        owner=f"0x{number:040x}",
        operator=f"0x{draw(st.sampled_from([0x77, 0x77 | 1 << 64, 0x1000 + number])):040x}",
        stake=draw(some),
        offer=Offer(
            runtimes=Runtime(draw(st.sampled_from([1, 3, 7, 15]))),
            tier=draw(st.integers(0, 63)),
            gpu_count=draw(sizes),
            vram_gib=draw(st.sampled_from([0, 1, 7, 24, 1023])),
            cores=draw(st.sampled_from([0, 1, 3, 1023])),
            ram_gib=draw(st.sampled_from([0, 1, 3, 16383])),
            disk_gib=draw(st.sampled_from([0, 1, 131071])),
            zone=draw(st.integers(0, 15)),
            slots=draw(st.sampled_from([1, 2, 3, 63])),
            pending=draw(st.booleans()),
            ask=draw(some),
        ),
        hot=Hot(
            beat=draw(st.sampled_from([NOW, NOW - 899, NOW - 900, 0])),
            busy=draw(st.sampled_from([0, 0, 0, 1, 2, 62, 63])),
            bond=draw(st.sampled_from([0, 0, 1, *pool])),
            r=draw(st.integers(0, 50 << 20)),
            s=draw(st.integers(0, 14 << 20)),
            rep_time=draw(near_now),
            quarantine=draw(st.sampled_from([0, 0, 0, NOW, NOW + 1])),
            status=HotStatus(draw(st.sampled_from([0, 0, 0, 1, 2, 4, 7]))),
            seasoned=draw(st.booleans()),
        ),
        next_ask=draw(some),
        next_ask_at=draw(near_now),
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Node], Terms, Policy, Unit, Best, Market]:
    ceiling = max(1, draw(amounts))
    bond = draw(amounts)
    pool = [
        p
        for p in (ceiling, ceiling - 1, ceiling + 1, ceiling // 2, ceiling * 3 // 10_000, bond, bond + 1, bond - 1)
        if 0 <= p <= TOP
    ]
    terms = Terms(
        submitter=f"0x{0x77:040x}",
        salt=1,
        spec=bytes(32),
        needs=Needs(
            runtimes=Runtime(draw(st.sampled_from([0, 1, 2, 7]))),
            tier=draw(st.sampled_from([0, 0, 1, 20, 63])),
            gpu_count=draw(st.sampled_from([0, 0, 1])),
            vram_gib=draw(st.sampled_from([0, 0, 1, 5])),
            cores=draw(st.sampled_from([0, 0, 1, 3])),
            ram_gib=draw(st.sampled_from([0, 0, 1, 3])),
            disk_gib=draw(st.sampled_from([0, 0, 1])),
            zone_mask=draw(st.sampled_from([0, 0, 0xFFFF, 0x00FF])),
            home=draw(st.integers(0, 15)),
        ),
        ceiling=ceiling,
        max_seconds=draw(st.sampled_from([1, 60, 2_592_000])),
        deadline=NOW + draw(st.sampled_from([300, 360, 361, 2**23])),
        keeper_fee=min(TOP, bond // 8) if draw(st.booleans()) else 0,
        policy=fleets.POLICY_WORD,
        match_window=12,
        max_attempts=3,
        flags=TermsFlag(draw(st.sampled_from([0, 4, 4]))),
    )
    unit = Unit(
        state=State(draw(st.sampled_from([2, 2, 2, 2, 3]))),
        node=NodeId(draw(st.integers(0, 6))),
        mark=draw(st.sampled_from([0, 0, NOW - 60, NOW - 59, NOW + 5])),
        attempts=draw(st.integers(0, 3)),
        lapses=draw(st.integers(0, 2)),
    )
    best = Best(node=NodeId(draw(st.integers(0, 6))), key=5)
    minimum = draw(st.one_of(st.just(0), st.sampled_from(pool)))
    nodes = [draw(nodes_of(i, pool)) for i in range(1, draw(st.integers(0, 6)) + 1)]
    return nodes, terms, fleets.POLICY, unit, best, Market(dead_after=900, minimum_stake=minimum)


@given(cases())
def test_winner__awkward_fleets__equals_plain_loop(case: tuple[list[Node], Terms, Policy, Unit, Best, Market]) -> None:
    nodes, terms, policy, unit, best, market = case
    view = build_fleet(nodes).at(NOW, market)
    job = JobId(b"\x07" * 32)
    expected = plain.winner(nodes, terms, policy, job, 3, unit, best, NOW, market)
    assert match.winner(view, terms, policy, job, 3, unit, best) == expected


@given(cases())
def test_scores__every_ready_node_below_the_ceiling__equal_protocol(
    case: tuple[list[Node], Terms, Policy, Unit, Best, Market],
) -> None:
    nodes, terms, _, _, _, _ = case
    view = build_fleet(nodes).at(NOW, Market(dead_after=900, minimum_stake=0))
    ask = Ask(terms.needs, terms.ceiling, 0, 0)
    rows = match.candidates(view, ask, f"0x{0:040x}")
    got = dict(zip(view.ids[rows].tolist(), match.scores(view, ask, rows).tolist(), strict=True))
    expected = {}
    for node in nodes:
        if not protocol.node_gate(node, ask, NOW, 900, 0):
            rate = protocol.ask_in_force(node, NOW)
            expected[node.id] = protocol.score(terms.needs, terms.ceiling, rate, node.offer, node.hot)
    # a bond above the stake leaves a node without free stake: no gate of an ask with bond 0 in the columns, nor here
    assert got == expected


@given(
    ceiling=st.one_of(st.sampled_from([e for e in EDGES if e]), st.integers(1, TOP)),
    shares=st.lists(st.tuples(st.integers(0, 10_000), st.integers(-2, 2)), min_size=1, max_size=8),
)
def test_price_share__rates_at_a_step__exact(ceiling: int, shares: list[tuple[int, int]]) -> None:
    rates = [min(ceiling, max(0, ceiling - ceiling * part // 10_000 + shift)) for part, shift in shares]
    low = np.array([rate & 2**64 - 1 for rate in rates], np.uint64)
    high = np.array([rate >> 64 for rate in rates], np.uint64)
    got = match._price_share(match._approx(low, high), low, ceiling)
    assert got.tolist() == [(ceiling - rate) * 10_000 // ceiling for rate in rates]


@given(bound=amounts, shifts=st.lists(st.integers(-(2**42), 2**42), min_size=1, max_size=8), near=st.booleans())
def test_at_least__values_around_the_bound__exact(bound: int, shifts: list[int], near: bool) -> None:
    values = [min(TOP, max(0, bound + (shift if near else shift >> 40))) for shift in shifts]
    low = np.array([value & 2**64 - 1 for value in values], np.uint64)
    high = np.array([value >> 64 for value in values], np.uint64)
    assert match._at_least(match._approx(low, high), low, bound).tolist() == [value >= bound for value in values]


@pytest.mark.parametrize("kind", fleets.KINDS)
def test_winner__seeded_fleet__equals_plain_loop(kind: fleets.Kind) -> None:
    nodes = fleets.fleet(kind, 120)
    view = build_fleet(nodes).at(fleets.NOW, fleets.MARKET)
    found = 0
    for job in fleets.jobs(40):
        want = plain.winner(nodes, job.terms, fleets.POLICY, job.id, 0, OPEN, Best(), fleets.NOW, fleets.MARKET)
        assert match.winner(view, job.terms, fleets.POLICY, job.id, 0, OPEN, Best()) == want
        found += want is not None
    assert found > 5


def test_winner__barred_node__names_the_next(  # a node whose slot another proposal will take
) -> None:
    nodes = fleets.fleet("one tier", 60)
    view = build_fleet(nodes).at(fleets.NOW, fleets.MARKET)
    job = next(j for j in fleets.jobs(40) if match.winner(view, j.terms, fleets.POLICY, j.id, 0, OPEN, Best()))
    first = match.winner(view, job.terms, fleets.POLICY, job.id, 0, OPEN, Best())
    assert first is not None
    rest = [node for node in nodes if node.id != first.node]
    want = plain.winner(rest, job.terms, fleets.POLICY, job.id, 0, OPEN, Best(), fleets.NOW, fleets.MARKET)
    assert match.winner(view, job.terms, fleets.POLICY, job.id, 0, OPEN, Best(), [first.node]) == want


def test_gates__mixed_fleet__counts_each_node_once() -> None:
    nodes = fleets.fleet("random", 50)
    fleet = build_fleet(nodes)
    job = fleets.jobs(1)[0]
    counts = match.gates(fleet, job.terms, fleets.POLICY, fleets.NOW, fleets.MARKET)
    expected: dict[Gate, int] = {}
    for node in nodes:
        gate = protocol.fit(job.terms, fleets.POLICY, OPEN, Best(), node, fleets.NOW, fleets.MARKET)
        expected[gate] = expected.get(gate, 0) + 1
    assert counts == expected
    assert len(counts) > 2


@given(nodes_of(9, [TOP]))
def test_node__written_and_read__is_the_same(node: Node) -> None:
    fleet = build_fleet([node])
    assert match.encode_node(fleet.node(NodeId(1))) == match.encode_node(node)


def test_write__page_with_a_gap__raises() -> None:
    raw = match.encode_node(fleets.fleet("all equal", 1)[0])
    with pytest.raises(ValueError, match="do not continue"):
        match.Fleet().write(NodeId(2), raw)
    with pytest.raises(ValueError, match="do not continue"):
        match.Fleet().write(NodeId(1), raw[:-1])


def test_write__stake_of_81_bits__raises() -> None:
    raw = bytearray(match.encode_node(fleets.fleet("all equal", 1)[0]))
    raw[2 * 32 + 21] = 1
    with pytest.raises(ValueError, match="below 2\\*\\*80"):
        match.Fleet().write(NodeId(1), bytes(raw))


def test_write__row_again__replaces_it() -> None:
    nodes = fleets.fleet("random", 300)
    fleet = build_fleet(nodes)
    other = fleets.fleet("all equal", 5)
    fleet.write(NodeId(101), b"".join(match.encode_node(node) for node in other))
    assert len(fleet) == 300
    assert fleet.node(NodeId(103)).offer == other[2].offer
    assert fleet.node(NodeId(106)) == nodes[105]
