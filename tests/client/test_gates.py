"""Who could take a job: the node that had a unit last, one's own node, and the price of one that is on probation."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.base.errors import NoWorkerError
from hearth.cli.__main__ import main
from hearth.client.job.gates import Fleet, Opening, open_gates, open_in_words, takers, workers_in_words
from hearth.client.net import Net
from hearth.client.nodes.workers import Workers
from hearth.client.posting.preflight import Preflight
from hearth.client.posting.quick import spec_of_run
from hearth.client.views import JobView, next_step, node_words, quarantine_words
from hearth.jobfile.plan import plan_prices
from hearth.market.profiles import DEVNET
from hearth.market.reads import UnitView
from hearth.protocol import formulas
from hearth.protocol.types import (
    ZERO_ADDRESS,
    Accused,
    Best,
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
from hearth.protocol.units import Asset, amount_at_least, parse_rate, show_amount, show_rate
from hearth.protocol.words import pack_best, pack_policy

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


BOND = formulas.bond(TERMS)
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
    assert takers(one.gates(TERMS)) == 1
    assert one.gates(TERMS, Opening(3)) == {Gate.EXCLUDED: 1}


SLOW = replace(POLICY, open_claim_after=300)
SLOW_TERMS = replace(TERMS, policy=pack_policy(SLOW))
PASSED = Unit(State.OPEN, started=NOW, mark=NOW + 12)
"""A unit for which node 3 is proposed, and does not start."""


def seen(now: int, unit: Unit = PASSED, **changes: Any) -> JobView:
    terms = replace(SLOW_TERMS, match_window=12, **changes)
    posted: Any = SimpleNamespace(job_id=JobId(bytes(32)), terms=terms, packed=())
    stored = UnitView(unit, pack_best(Best(node=NodeId(3), key=1)), Accused())
    return JobView(posted, None, (formulas.with_lapse(terms, unit, stored.best, now),), (stored,), 9, now)


def test_open_gates__units_that_are_topped_up_differently__are_each_looked_at() -> None:
    """One that was let pass long ago, and topped up, hid another one that a worker can claim again."""
    now = NOW + 2000
    units = [
        Unit(State.OPEN, started=start, mark=start + 12, seconds=more) for start, more in ((NOW, 500), (NOW + 1000, 0))
    ]
    needed = formulas.lease_seconds(TERMS) + formulas.grace(TERMS)
    terms = replace(SLOW_TERMS, match_window=12, units=2, deadline=now + needed + 100)
    best = pack_best(Best(node=NodeId(3), key=1))
    stored = tuple(UnitView(unit, best, Accused()) for unit in units)
    posted: Any = SimpleNamespace(job_id=JobId(bytes(32)), terms=terms, packed=())
    shown = tuple(formulas.with_lapse(posted.terms, one.unit, one.best, now) for one in stored)
    mine = replace(node(3, TERMS.ceiling // 4), state=NodeState(beat=now, seasoned=True))
    view = JobView(posted, None, shown, stored, 9, now)
    assert takers(open_gates(replace(fleet(mine), now=now), view)) == 1


RESTS = PASSED.started + SLOW.open_claim_after - PASSED.mark - SLOW.ack_time
"""Seconds from when the proposal has lapsed until anybody may claim."""


@pytest.mark.parametrize(
    ("after", "gate"),
    [(0, Gate.NOT_OPEN), (RESTS - 1, Gate.NOT_OPEN), (RESTS, Gate.FITS)],
    ids=["at-once", "before", "due"],
)
def test_gates__node_that_let_a_proposal_pass__counts_and_hears_from_when_it_can_claim(after: int, gate: Gate) -> None:
    now = PASSED.mark + SLOW.ack_time + after
    view, mine = seen(now), node(3, TERMS.ceiling // 4)
    mine = replace(mine, state=NodeState(beat=now, seasoned=True))
    one = replace(fleet(mine), now=now)
    assert open_gates(one, view) == {gate: 1}
    assert workers_in_words(open_gates(one, view)).endswith(" -> 1 can take it")

    def fit(packed: object, index: int, number: int, *, claim: bool) -> Gate:
        best, market = view.best[0].best, formulas.Immutables(900, ETHER)
        return formulas.fit(view.terms, PASSED, best, mine, now, market, claim=claim)

    market = SimpleNamespace(fit=fit, claimable_from=lambda *_: NOW + 300)
    reads: Any = SimpleNamespace(session=SimpleNamespace(market=market), look=lambda job: view)
    told = Workers(reads).gates("0x", mine)["units"][0]["text"]
    step = next_step(view, 0, {}, 900)
    waits = gate is not Gate.FITS
    assert told.startswith("it let it pass, and can claim it again: from 08:05:00 UTC" if waits else "it fits")
    assert ("; node 3 let it pass, and can only claim it" in step) is waits
    assert "excluded" not in step


def test_gates__node_that_had_the_unit_or_whose_claim_comes_too_late__counts_not() -> None:
    one = replace(fleet(node(3, TERMS.ceiling // 4)), now=NOW + 100)
    had = Unit(State.OPEN, node=NodeId(3), started=NOW, attempts=1)
    assert open_gates(one, seen(NOW + 100, had)) == {Gate.EXCLUDED: 1}
    deadline = NOW + 300 + formulas.lease_seconds(TERMS) + formulas.grace(TERMS)
    assert open_gates(one, seen(NOW + 100, deadline=deadline)) == {Gate.NOT_OPEN: 1}
    assert open_gates(one, seen(NOW + 100, deadline=deadline - 1)) == {Gate.EXCLUDED: 1}


@pytest.mark.parametrize("state", LATER.values(), ids=LATER)
def test_gates__what_waiting_does_not_open__is_named_before_what_it_does(state: NodeState) -> None:
    dear, mine = node(3, TERMS.ceiling + 1, state=state), node(4, 10**20, state=state, operator=TERMS.submitter)
    small = node(5, 10**20, state=state, offer=Offer(cores=0, slots=2, ask=1))
    assert fleet(dear, mine, small).gates(TERMS) == {Gate.PRICE: 1, Gate.SUBMITTER: 1, Gate.CORES: 1}


def test_gates__a_quarantine_that_leaves_no_time_for_an_attempt__is_no_worker() -> None:
    last = TERMS.deadline - formulas.lease_seconds(TERMS) - formulas.grace(TERMS)
    late = fleet(node(3, 10**20, state=NodeState(beat=NOW, seasoned=True, quarantine=last + 1)))
    assert late.gates(TERMS) == {Gate.NO_TIME: 1}
    words = workers_in_words(late.gates(TERMS))
    assert words == "1 worker: 1 quarantined until too late for the deadline -> 0 can take it"
    assert late.asks(TERMS) == late.asks(TERMS, any_price=True) == []
    soon = fleet(node(3, 10**20, state=NodeState(beat=NOW, seasoned=True, quarantine=last)))
    assert soon.gates(TERMS) == {Gate.QUARANTINED: 1}
    assert soon.asks(TERMS) == [10**20]


@pytest.mark.parametrize(
    ("gpus", "offered", "gate"), [(1, 0, Gate.GPU_COUNT), (1, 1, Gate.RUNTIME), (0, 0, Gate.RUNTIME)]
)
def test_gates__a_missing_gpu__is_named_before_the_missing_runtime(gpus: int, offered: int, gate: Gate) -> None:
    one = fleet(node(3, 10**20, offer=Offer(cores=4, slots=2, ask=10**20, gpu_count=offered)))
    wanted = replace(TERMS, needs=Needs(runtimes=Runtime.DOCKER, cores=1, gpu_count=gpus))
    assert one.gates(wanted) == {gate: 1}


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
    assert all_of_them.asks(TERMS) == []
    assert all_of_them.asks(TERMS, any_price=True) == [dear, 2 * dear, rate]
    assert all_of_them.asks(replace(TERMS, ceiling=dear)) == [dear]


@pytest.mark.parametrize(
    ("nodes", "said", "hint"),
    [
        ((), "no worker is registered on this network", "hearth offers"),
        (
            (node(8, 20 * ETHER * 10**6 // 600, stake=2 * ETHER),),
            "1 worker: 1 short of free stake for the bond -> 0 can take it",
            "use a shorter --runtime, whose bond is smaller; hearth offers",
        ),
        ((node(8, 10**20, offer=Offer(ask=10**20)),), "1 worker: 1 short of cores -> 0 can take it", "hearth offers"),
        (
            (node(7, 10**22, state=NodeState(beat=NOW)),),
            "1 worker: 1 on probation -> 0 can take it",
            "hearth offers",
        ),
    ],
)
def test_auto_price__no_worker_at_its_own_ask__says_what_each_of_them_lacks(
    nodes: tuple[Node, ...], said: str, hint: str
) -> None:
    session: Any = SimpleNamespace(asset=Asset("ETH", 18))
    preflight = Preflight(SimpleNamespace(session=session))  # type: ignore[arg-type]
    policies: Any = SimpleNamespace(policy=POLICY, word=TERMS.policy)
    with pytest.raises(NoWorkerError) as caught:
        preflight._with_auto_price(spec_of_run("x.wasm").spec, TERMS.needs, policies, fleet(*nodes), TERMS.submitter)
    assert caught.value.message.endswith(f"so there is no price to go by: {said}")
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("nodes", "ceiling", "said"),
    [
        (
            (node(7, 10**20, state=NodeState(beat=NOW)),),
            20 * ETHER * 10**6 // 600,
            "workers on probation take no dearer job",
        ),
        ((node(8, 10**20, stake=2 * ETHER),), 2 * 10**22, "free stake covers no more"),
        (
            (node(7, 20 * ETHER * 10**6 // 600, state=NodeState(beat=NOW)),),
            20 * ETHER * 10**6 // 600,
            "runtime: workers on probation take jobs of at most ",
        ),
    ],
)
def test_enough__too_dear_for_who_is_there__says_why(nodes: tuple[Node, ...], ceiling: int, said: str) -> None:
    ether = Asset("ETH", 18)
    session: Any = SimpleNamespace(asset=ether, amount=lambda units: show_amount(units, ether))
    terms, workers = replace(TERMS, ceiling=ceiling), fleet(*nodes)
    loaded = SimpleNamespace(source=SimpleNamespace(name="job.yaml"), spec=spec_of_run("x.wasm").spec)
    plan: Any = SimpleNamespace(gates=workers.gates(terms), terms=terms, fleet=workers, loaded=loaded)
    preflight = Preflight(SimpleNamespace(session=session))  # type: ignore[arg-type]
    assert said in (preflight.enough(plan) or "")


def test_auto_price__stake_that_covers_the_ask_and_not_half_more__is_what_the_stake_covers() -> None:
    ether, ask = Asset("ETH", 18), 6 * 10**21
    session: Any = SimpleNamespace(asset=ether)
    preflight = Preflight(SimpleNamespace(session=session))  # type: ignore[arg-type]
    policies: Any = SimpleNamespace(policy=POLICY, word=TERMS.policy)
    spec = spec_of_run("x.wasm").spec

    def chosen(stake: int) -> tuple[int, int]:
        """Return the ceiling that is chosen for a node of so much stake, and the bond at it."""
        workers = fleet(node(3, ask, stake=stake))
        priced = preflight._with_auto_price(spec, TERMS.needs, policies, workers, TERMS.submitter)
        prices = plan_prices(priced, ether, POLICY)
        terms = replace(TERMS, ceiling=prices.ceiling, keeper_fee=prices.keeper_fee, max_seconds=spec.max_seconds)
        return prices.ceiling, formulas.bond(terms)

    dear, most = chosen(10**6 * ETHER)
    assert ask < dear <= ask * 3 // 2
    lower, bond = chosen(most * 5 // 6)
    assert ask <= lower < dear and most * 4 // 5 < bond <= most * 5 // 6


def test_backed__bond_above_every_free_stake__is_the_highest_price_that_one_can_take() -> None:
    ether = Asset("ETH", 18)
    rate = 10**20
    dear = replace(TERMS, ceiling=200 * rate)
    poor, poorer = node(3, rate, stake=2 * ETHER), node(4, rate, stake=ETHER)
    mine, small = node(5, 1, operator=TERMS.submitter), node(6, 1, offer=Offer(cores=0, slots=2, ask=1))
    text = fleet(poorer, poor, mine, small).backed(dear, ether)
    assert text is not None
    lower = replace(dear, ceiling=parse_rate(text, ether))
    more = replace(dear, ceiling=lower.ceiling * 101 // 100)
    assert formulas.bond(lower) <= 2 * ETHER < formulas.bond(more)
    assert fleet(poor, poorer).gates(lower) == {Gate.FITS: 1, Gate.STAKE_SHORT: 1}
    # A fee of a hundredth of the price, which a bond covers eight times, falls with it.
    paid = replace(dear, keeper_fee=formulas.unit_price(dear) // 100)
    assert fleet(poor).backed(paid, ether) == text
    # No help where one can take it, where all ask for more than their stake backs, and where no stake is short.
    assert fleet(poor, node(7, rate, stake=10**4 * ETHER)).backed(dear, ether) is None
    assert fleet(replace(poor, offer=replace(poor.offer, ask=199 * rate))).backed(dear, ether) is None
    assert fleet(mine, small).backed(dear, ether) is fleet().backed(dear, ether) is None


def test_open_in_words__posted_job_that_no_free_stake_backs__says_what_price_one_would_take() -> None:
    terms = replace(TERMS, ceiling=2 * 10**22)
    view: Any = SimpleNamespace(terms=terms, units=(), untouched=1)
    poor = fleet(node(3, 10**20, stake=2 * ETHER))
    lower = poor.backed(terms, Asset("ETH", 18))
    words = f"1 worker: 1 short of free stake for the bond -> 0 can take it; lower the price to {lower}, in a new job"
    assert open_in_words(poor, view, Asset("ETH", 18)) == (0, words)


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
    held_until = "quarantined until 2027-01-15 08:01:00 UTC"
    assert [quarantine_words(row) for row in offers] == ["", held_until]
    assert [node_words(row) for row in listed] == ["live", held_until]
    silent: Any = {**listed[1], "status_text": "silent"}
    assert node_words(silent) == f"silent, {held_until}"


@pytest.mark.parametrize(
    ("nodes", "max_price", "others", "said"),
    [
        ((), None, {}, "no worker is registered on this network\n  next: hearth submit FILE --anyway"),
        (
            (node(1, 10**20, state=NodeState(beat=NOW - 900)), node(2, 10**20), node(3, 1, operator=ZERO_ADDRESS)),
            "0.1/h",
            {"active": 1, "inactive": 1},
            "no live worker fits: 1 live with other offers, 1 silent; one that is stopped, or paused while idle, is "
            "silent\n  next: hearth net workers, or hearth submit FILE --anyway",
        ),
    ],
)
def test_offers__none_that_fits__says_which_workers_there_are_and_what_to_do(
    nodes: tuple[Node, ...],
    max_price: str | None,
    others: dict[str, int],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    market = SimpleNamespace(
        port=SimpleNamespace(head=lambda: SimpleNamespace(hash=b"", timestamp=NOW, number=9)), nodes=lambda block: nodes
    )
    network = SimpleNamespace(name="devnet", node_parameters=SimpleNamespace(dead_after=900, minimum_stake=1))
    reads: Any = SimpleNamespace(session=SimpleNamespace(market=market, network=network, asset=Asset("ETH", 18)))
    report = Workers(reads).offers(max_price=max_price)
    assert (report["offers"], report["others"]) == ([], others)
    monkeypatch.setattr(Workers, "offers", lambda self, **_: report)
    assert main(["offers"]) == 0
    assert said in capsys.readouterr().out


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
        view = JobView(posted, Header(touched=2, opened=NOW), (running, waiting), seen, 9, NOW)
        session: Any = SimpleNamespace(market=market, asset=Asset("ETH", 18))
        reads: Any = SimpleNamespace(session=session, look=lambda job, view=view: view)
        asked.clear()
        told = Workers(reads).gates("0x", mine)["units"]
        assert asked == [(1, claim), (2, claim)]
        words = "it can claim once the price has risen to its ask: from 08:00:30 UTC (in 30s)"
        assert {row["text"] for row in told} == {words}
    dear = Workers(reads).gates("0x", node(2, TERMS.ceiling + 1))["units"]
    asks, pays = (show_rate(rate, Asset("ETH", 18)) for rate in (TERMS.ceiling + 1, TERMS.ceiling))
    assert {row["text"] for row in dear} == {f"it asks {asks}, and the job pays at most {pays}"}


@pytest.mark.parametrize(
    ("stake", "bond", "said"),
    [
        (20 * ETHER, 20 * ETHER, "0 ETH of 20 ETH is free; more is once its leases are settled"),
        (BOND - 10**15, 0, 'which covers a job of at most {}: hearth worker stake "0.001 ETH"'),
    ],
)
def test_why__stake_that_is_short__says_the_bond_what_is_free_and_what_mends_it(
    stake: int, bond: int, said: str
) -> None:
    ether = Asset("ETH", 18)
    poor = node(2, 1, stake=stake, state=NodeState(beat=NOW, seasoned=True, bond=bond))
    posted: Any = SimpleNamespace(job_id=JobId(bytes(32)), terms=TERMS, packed=())
    unit = Unit(State.OPEN, started=NOW)
    view = JobView(posted, None, (unit,), (UnitView(unit, 0, 0),), 9, NOW)
    session: Any = SimpleNamespace(
        market=SimpleNamespace(fit=lambda *_, **__: Gate.STAKE_SHORT),
        network=SimpleNamespace(node_parameters=SimpleNamespace(dead_after=900, minimum_stake=1)),
        asset=ether,
        amount=lambda units: show_amount(units, ether),
    )
    reads: Any = SimpleNamespace(session=session, look=lambda job: view)
    (row,) = Workers(reads).gates("0x", poor)["units"]
    lower = Fleet((poor,), NOW, 900, 1).backed(TERMS, ether)
    binds = amount_at_least(BOND, ether)
    assert row["text"].startswith(f"it is short of free stake for the bond: a lease of it binds {binds}, and ")
    assert row["text"].endswith(said.format(lower)) and (lower is None) == bool(bond)
