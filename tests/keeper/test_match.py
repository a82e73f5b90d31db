"""The columns name the same node, with the same key, as a loop over `hearth.protocol.formulas`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import fleets, plain
from hearth.protocol import formulas, words
from hearth.protocol.formulas import Ask, Immutables
from hearth.protocol.types import (
    Best,
    Gate,
    JobId,
    Needs,
    Node,
    NodeFlag,
    NodeId,
    NodeState,
    Offer,
    Runtime,
    State,
    Terms,
    TermsFlag,
    Unit,
)
from keeper import columns, match
from keeper.fleet import Fleet, encode_node

TOP = 2**80 - 1
NOW = 1_000_000
OPEN = Unit(state=State.OPEN)
OWNER, OPERATOR, SUBMITTER = ("0x" + digit * 40 for digit in "123")
EDGES = [0, 1, 2, 10_000, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1, TOP - 1, TOP]

amounts = st.one_of(st.sampled_from(EDGES), st.integers(0, TOP), st.integers(0, 2**40))


def build_fleet(nodes: list[Node]) -> Fleet:
    fleet = Fleet(capacity=1)
    fleet.write(NodeId(1), b"".join(encode_node(node) for node in nodes))
    return fleet


def at_most(limit: int) -> st.SearchStrategy[int]:
    """Return amounts up to `limit`: its edges, its round parts, and anything between."""
    parts = [limit * part // 10_000 for part in (0, 1, 3, 3_333, 5_000, 9_999, 10_000)]
    near = [part + shift for part in parts for shift in (-1, 0, 1)] + EDGES
    return st.one_of(st.sampled_from([p for p in near if 0 <= p <= limit]), st.integers(0, limit))


@st.composite
def nodes_of(draw: st.DrawFn, number: int, terms: Terms, bond: int, minimum: int) -> Node:
    """Return a node that fits the terms, and most of the time one twist that lets it miss or barely pass a gate."""
    needs, hot_bond = terms.needs, draw(st.sampled_from([0, 1, 2**64, 2**79]))
    stake = max(minimum, hot_bond + bond)
    stake += draw(st.sampled_from([0, 0, 1, TOP])) if stake <= TOP else 0
    fitting = {
        name: draw(st.sampled_from([n for n in {need, need + 1, 2 * need + 1, top} if need <= n <= top]))
        for name, need, top in (
            ("tier", needs.tier, 63),
            ("gpu_count", needs.gpu_count, 63),
            ("vram_gib", needs.vram_gib, 1023),
            ("cores", needs.cores, 1023),
            ("ram_gib", needs.ram_gib, 16383),
            ("disk_gib", needs.disk_gib, 131071),
        )
    }
    zones = [z for z in range(16) if not needs.zone_mask or needs.zone_mask >> z & 1]
    slots = draw(st.sampled_from([1, 2, 3, 63]))
    offer = Offer(
        runtimes=Runtime(needs.runtimes | draw(st.sampled_from([0, 1, 8]))),
        zone=draw(st.sampled_from(zones)),
        slots=slots,
        ask=draw(at_most(terms.ceiling)),
        **fitting,
    )
    hot = NodeState(
        beat=draw(st.sampled_from([NOW, NOW - 899])),
        busy=draw(st.integers(0, slots - 1)),
        bond=hot_bond,
        r=draw(st.integers(0, 50 << 20)),
        s=draw(st.integers(0, 14 << 20)),
        seasoned=True,
    )
    operator = f"0x{0x1000 + number:040x}"
    plain_node = Node(NodeId(number), "0x" + "01" * 20, operator, min(stake, TOP), offer, hot)
    return draw(st.sampled_from(TWISTS))(draw, plain_node, terms)


def _offer(node: Node, **changes: Any) -> Node:
    return replace(node, offer=replace(node.offer, **changes))


def _hot(node: Node, **changes: Any) -> Node:
    return replace(node, state=replace(node.state, **changes))


def _pending(draw: st.DrawFn, node: Node, terms: Terms) -> Node:
    when = draw(st.sampled_from([NOW - 1, NOW, NOW + 1]))
    new = draw(st.one_of(at_most(terms.ceiling), st.sampled_from([min(TOP, terms.ceiling + 1), TOP])))
    return replace(_offer(node, pending=draw(st.booleans())), next_ask=new, next_ask_at=when)


def _smaller(draw: st.DrawFn, node: Node, terms: Terms) -> Node:
    name = draw(st.sampled_from(["tier", "gpu_count", "vram_gib", "cores", "ram_gib", "disk_gib"]))
    return _offer(node, **{name: max(0, getattr(terms.needs, name) - 1)})


Twist = Callable[[st.DrawFn, Node, Terms], Node]
TWISTS: list[Twist] = [
    lambda draw, node, terms: node,
    lambda draw, node, terms: node,
    lambda draw, node, terms: node,
    _pending,
    _pending,
    _smaller,
    lambda draw, node, terms: _offer(node, ask=min(TOP, terms.ceiling + draw(st.integers(0, 2)))),
    lambda draw, node, terms: _offer(node, runtimes=Runtime(draw(st.sampled_from([0, 1, 2, 7])))),
    lambda draw, node, terms: _offer(node, zone=draw(st.integers(0, 15))),
    lambda draw, node, terms: _hot(node, beat=draw(st.sampled_from([0, NOW - 901, NOW - 900, NOW - 899]))),
    lambda draw, node, terms: _hot(node, quarantine=draw(st.sampled_from([NOW - 1, NOW, NOW + 1]))),
    lambda draw, node, terms: _hot(node, status=NodeFlag(draw(st.integers(0, 7)))),
    lambda draw, node, terms: _hot(node, busy=min(63, node.offer.slots + draw(st.integers(-1, 1)))),
    lambda draw, node, terms: _hot(node, seasoned=False, busy=draw(st.integers(0, min(2, node.offer.slots - 1)))),
    lambda draw, node, terms: _hot(node, bond=min(TOP, max(0, node.state.bond + draw(st.integers(-1, 1))))),
    lambda draw, node, terms: replace(node, stake=max(0, node.stake - draw(st.integers(0, 2)))),
    lambda draw, node, terms: replace(node, operator=terms.submitter),
    lambda draw, node, terms: replace(node, operator=f"0x{int(terms.submitter, 16) | 1 << 64:040x}"),
]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Node], Terms, Unit, Best, Immutables]:
    terms = Terms(
        submitter=f"0x{0x77:040x}",
        salt=1,
        spec=bytes(32),
        needs=Needs(
            runtimes=Runtime(draw(st.sampled_from([0, 1, 2, 7]))),
            tier=draw(st.sampled_from([0, 1, 20, 63])),
            gpu_count=draw(st.sampled_from([0, 1])),
            vram_gib=draw(st.sampled_from([0, 1, 5, 500, 1023])),
            cores=draw(st.sampled_from([0, 1, 3, 700])),
            ram_gib=draw(st.sampled_from([0, 1, 3, 9_999])),
            disk_gib=draw(st.sampled_from([0, 1])),
            zone_mask=draw(st.sampled_from([0, 0, 0xFFFF, 0x00FF])),
            home=draw(st.integers(0, 15)),
        ),
        ceiling=max(1, draw(amounts)),
        max_seconds=draw(st.sampled_from([1, 60])),
        deadline=NOW + draw(st.sampled_from([300, 301, 360, 2**23, 2**23, 2**23, 2**23])),
        keeper_fee=draw(st.sampled_from([0, 1, 2**50, 2**76])),
        policy=fleets.POLICY_WORD,
        match_window=12,
        max_attempts=3,
        flags=TermsFlag(draw(st.sampled_from([0, 4]))),
    )
    unit = Unit(
        state=State(draw(st.sampled_from([2, 2, 2, 2, 2, 2, 3]))),
        node=NodeId(draw(st.integers(0, 6))),
        mark=draw(st.sampled_from([0, 0, NOW - 60, NOW - 59, NOW + 5])),
        attempts=draw(st.integers(0, 3)),
        lapses=draw(st.integers(0, 2)),
    )
    best = Best(node=NodeId(draw(st.integers(0, 6))), key=5)
    policy = replace(fleets.POLICY, probation_price=draw(st.sampled_from([0, 10**30])))
    terms = replace(terms, policy=words.pack_policy(policy))
    minimum = draw(st.sampled_from([0, 10**18, 2**78 + 1]))
    bond = formulas.bond(terms)
    nodes = [
        draw(nodes_of(i, terms, bond, minimum)) for i in range(1, draw(st.sampled_from([1, 2, 3, 4, 5, 6, 6, 6])) + 1)
    ]
    return nodes, terms, unit, best, Immutables(dead_after=900, minimum_stake=minimum)


def test_cases__most_fleets__have_several_fitting_nodes() -> None:
    """The strategies above would prove nothing about fleets in which no node fits."""
    several: list[bool] = []

    # Of 100 cases the share moves between 22 and 37 percent with the seed, which follows this function's own text.
    @settings(max_examples=400)
    @given(cases())
    def look(case: tuple[list[Node], Terms, Unit, Best, Immutables]) -> None:
        nodes, terms, unit, best, market = case
        fits = [n for n in nodes if not formulas.fit(terms, unit, best, n, NOW, market)]
        several.append(len(fits) > 1)

    look()
    assert sum(several) > len(several) // 4


@pytest.mark.parametrize("bond", [1, 2**53 + 1, 2**70 + 1])
@pytest.mark.parametrize("most", [0, 1, 2**64, 2**71, formulas.MAX_UINT])
@pytest.mark.parametrize("needs", [Needs(), Needs(runtimes=Runtime(0))], ids=["a runtime", "nothing"])
def test_candidates__newcomers__are_those_that_the_gate_lets_in(bond: int, most: int, needs: Needs) -> None:
    """What each has reserved is a unit around its bound; a first lease is bounded by nothing."""
    edges = {most - bond + shift for shift in (-1, 0, 1)} | {0, 1}
    held = [reserved for reserved in sorted(edges) if 0 <= reserved < 2**72]
    nodes = [
        Node(
            NodeId(at), "0x" + "11" * 20, "0x" + "22" * 20, TOP, Offer(slots=9, ask=1), NodeState(beat=NOW, bond=amount)
        )
        for at, amount in enumerate(held, start=1)
    ]
    ask = Ask(needs, 1, bond, most)
    view = build_fleet(nodes).at(NOW, Immutables(900, 0))
    found = {int(view.ids[row]) for row in match.candidates(view, ask, SUBMITTER)}
    assert found == {n.id for n in nodes if formulas.node_gate(n, ask, NOW, 900, 0) == Gate.FITS}


@given(cases())
def test_winner__awkward_fleets__equals_plain_loop(
    case: tuple[list[Node], Terms, Unit, Best, Immutables],
) -> None:
    nodes, terms, unit, best, market = case
    view = build_fleet(nodes).at(NOW, market)
    job = JobId(b"\x07" * 32)
    expected = plain.winner(nodes, terms, job, 3, unit, best, NOW, market)
    assert match.winner(view, terms, job, 3, unit, best) == expected


@given(cases())
def test_scores__every_ready_node_below_the_ceiling__equal_protocol(
    case: tuple[list[Node], Terms, Unit, Best, Immutables],
) -> None:
    nodes, terms, _, _, _ = case
    view = build_fleet(nodes).at(NOW, Immutables(dead_after=900, minimum_stake=0))
    ask = Ask(terms.needs, terms.ceiling, 0, 0)
    rows = match.candidates(view, ask, f"0x{0:040x}")
    got = dict(zip(view.ids[rows].tolist(), match.scores(view, ask, rows).tolist(), strict=True))
    expected = {}
    for node in nodes:
        if not formulas.node_gate(node, ask, NOW, 900, 0):
            rate = formulas.ask_in_force(node, NOW)
            expected[node.id] = formulas.score(terms.needs, terms.ceiling, rate, node.offer, node.state)
    assert got == expected


@given(
    ceiling=st.one_of(st.sampled_from([e for e in EDGES if e]), st.integers(1, TOP)),
    shares=st.lists(st.tuples(st.integers(0, 10_000), st.integers(-2, 2)), min_size=1, max_size=8),
)
def test_price_share__rates_at_a_step__exact(ceiling: int, shares: list[tuple[int, int]]) -> None:
    rates = [min(ceiling, max(0, ceiling - ceiling * part // 10_000 + shift)) for part, shift in shares]
    low = np.array([rate & 2**64 - 1 for rate in rates], np.uint64)
    high = np.array([rate >> 64 for rate in rates], np.uint64)
    got = match._price_share(columns.approx(low, high), low, ceiling)
    assert got.tolist() == [(ceiling - rate) * 10_000 // ceiling for rate in rates]


@given(bound=amounts, shifts=st.lists(st.integers(-(2**42), 2**42), min_size=1, max_size=8), near=st.booleans())
def test_at_least__values_around_the_bound__exact(bound: int, shifts: list[int], near: bool) -> None:
    values = [min(TOP, max(0, bound + (shift if near else shift >> 40))) for shift in shifts]
    low = np.array([value & 2**64 - 1 for value in values], np.uint64)
    high = np.array([value >> 64 for value in values], np.uint64)
    assert columns.at_least(columns.approx(low, high), low, bound).tolist() == [value >= bound for value in values]


@pytest.mark.parametrize("kind", fleets.KINDS)
def test_winner__seeded_fleet__equals_plain_loop(kind: fleets.Kind) -> None:
    nodes = fleets.fleet(kind, 120)
    view = build_fleet(nodes).at(fleets.NOW, fleets.IMMUTABLES)
    found = 0
    for job in fleets.jobs(40):
        want = plain.winner(nodes, job.terms, job.id, 0, OPEN, Best(), fleets.NOW, fleets.IMMUTABLES)
        assert match.winner(view, job.terms, job.id, 0, OPEN, Best()) == want
        found += want is not None
    assert found > 5


def test_winner__barred_node__names_the_next(  # a node whose slot another proposal will take
) -> None:
    nodes = fleets.fleet("one tier", 60)
    view = build_fleet(nodes).at(fleets.NOW, fleets.IMMUTABLES)
    job = next(j for j in fleets.jobs(40) if match.winner(view, j.terms, j.id, 0, OPEN, Best()))
    first = match.winner(view, job.terms, job.id, 0, OPEN, Best())
    assert first is not None
    rest = [node for node in nodes if node.id != first.node]
    want = plain.winner(rest, job.terms, job.id, 0, OPEN, Best(), fleets.NOW, fleets.IMMUTABLES)
    assert match.winner(view, job.terms, job.id, 0, OPEN, Best(), [first.node]) == want


def test_gates__mixed_fleet__counts_each_node_once() -> None:
    nodes = fleets.fleet("random", 50)
    fleet = build_fleet(nodes)
    job = fleets.jobs(1)[0]
    counts = match.gates(fleet, job.terms, fleets.NOW, fleets.IMMUTABLES)
    expected: dict[Gate, int] = {}
    for node in nodes:
        gate = formulas.fit(job.terms, OPEN, Best(), node, fleets.NOW, fleets.IMMUTABLES)
        expected[gate] = expected.get(gate, 0) + 1
    assert counts == expected
    assert len(counts) > 2


@given(cases())
def test_node__written_and_read__is_the_same(
    case: tuple[list[Node], Terms, Unit, Best, Immutables],
) -> None:
    fleet = build_fleet(case[0])
    assert [fleet.node(node.id) for node in case[0]] == case[0]


def test_write__page_with_a_gap__raises() -> None:
    raw = encode_node(fleets.fleet("all equal", 1)[0])
    with pytest.raises(ValueError, match="do not continue"):
        Fleet().write(NodeId(2), raw)
    with pytest.raises(ValueError, match="do not continue"):
        Fleet().write(NodeId(1), raw[:-1])


@pytest.mark.parametrize("number", [0, 4, -1])
def test_node__id_that_is_not_in_the_fleet__raises(number: int) -> None:
    with pytest.raises(IndexError):
        build_fleet(fleets.fleet("all equal", 3)).node(NodeId(number))


def test_write__stake_of_81_bits__raises() -> None:
    raw = bytearray(encode_node(fleets.fleet("all equal", 1)[0]))
    raw[2 * 32 + 21] = 1
    with pytest.raises(ValueError, match="below 2\\*\\*80"):
        Fleet().write(NodeId(1), bytes(raw))


def test_write__row_again__replaces_it() -> None:
    nodes = fleets.fleet("random", 300)
    fleet = build_fleet(nodes)
    other = fleets.fleet("all equal", 5)
    fleet.write(NodeId(101), b"".join(encode_node(node) for node in other))
    assert len(fleet) == 300
    assert fleet.node(NodeId(103)).offer == other[2].offer
    assert fleet.node(NodeId(106)) == nodes[105]
