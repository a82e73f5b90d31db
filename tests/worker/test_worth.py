"""worker.decide.worth: what a job's units may cost a node in gas, whatever the submitter does with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.protocol import formulas
from hearth.protocol.gas import settling_gas
from hearth.protocol.types import Best, Billing, Header, Node, State, Unit
from tests.worker import test_decide as decided
from tests.worker.test_decide import CONFIG, ID, ME, NODE, NOW, OPEN, PAYS, POLICY, RUNNING, TERMS, WASM, dear
from worker.decide import (
    Ack,
    Claim,
    Close,
    Execution,
    Flight,
    Gather,
    Job,
    Kind,
    Lease,
    LeaseKey,
    Propose,
    Reason,
    Settle,
    Skip,
    Snapshot,
    Stage,
    decide,
)
from worker.decide.worth import cost

COIN = 10**18
UNIT_GAS = 78_000 + 102_000
"""Claim and finish."""
SLOTS = 8
NET = PAYS - formulas.fee_of(PAYS, POLICY)
"""What a unit brings that bills its whole time."""
DUST = Unit(state=State.SUBMITTED, node=ME, rate=10**15, started=NOW - 3, mark=NOW - 2, attempts=1)
"""One that billed a second."""


def costing(unit: int, gas: int = UNIT_GAS) -> int:
    """Return the gas price at which a unit's transactions cost so many base units."""
    return unit * COIN // gas


def array(*units: Unit, paid: tuple[int, ...] = (), size: int = 256, **terms: object) -> Job:
    leases = tuple(Lease(index, unit) for index, unit in enumerate(units))
    header = Header(opened=NOW - 5, touched=len(units))
    return Job(ID, replace(TERMS, units=size, **terms), leases, header, WASM, paid=paid)  # type: ignore[arg-type]


def look(*jobs: Job, **changes: object) -> Snapshot:
    """Return a snapshot of a node with eight slots."""
    held = sum(lease.unit.state in decided.HELD and lease.unit.node == ME for job in jobs for lease in job.leases)
    node = replace(NODE, offer=replace(NODE.offer, slots=SLOTS), state=replace(NODE.state, busy=held))
    return decided.snapshot_of(*jobs, **{"node": node, **changes})


def taken(snapshot: Snapshot, price: int, **changes: object) -> int:
    """Count what is begun."""
    found = decide(snapshot, dear(price, **changes), NOW)
    return sum(isinstance(step, Ack | Claim | Propose) for step in found)


# ---- the first unit of a job ----

LEADS = (replace(OPEN, mark=NOW + 5), Best(node=ME, key=1))


@pytest.mark.parametrize("billing", list(Billing))
def test_decide__job_of_which_nothing_was_paid__one_unit_is_taken(billing: Billing) -> None:
    """What it pays is its submitter's choice in every kind of billing: one that is cancelled bills what it ran."""
    job = array(*[OPEN] * 12, billing=billing)
    assert taken(look(job), costing(PAYS // 20)) == 1
    assert taken(look(job), costing(PAYS // 20), max_loss=PAYS // 20) == SLOTS, "who may lose it on each asks for none"
    assert taken(look(job), costing(PAYS // 20), max_loss=None) == SLOTS


@pytest.mark.parametrize(
    "snapshot",
    [
        look(array(RUNNING, OPEN, OPEN)),
        look(array(replace(RUNNING, state=State.CLOSING), OPEN, OPEN)),
        *(
            look(array(OPEN, OPEN, OPEN), flights=(Flight(kind, ID, 0),))
            for kind in (Kind.ACK, Kind.CLAIM, Kind.PROPOSE)
        ),
    ],
    ids=["runs", "is being cancelled", "ack on its way", "claim on its way", "proposal on its way"],
)
def test_decide__first_unit_is_not_paid_yet__no_second_is_taken(snapshot: Snapshot) -> None:
    assert taken(snapshot, costing(PAYS // 20)) == 0
    skips = [step for step in decide(snapshot, dear(costing(PAYS // 20)), NOW) if isinstance(step, Skip)]
    told = [step.detail for step in skips if step.reason is Reason.UNPROFITABLE]
    assert told and all("1 of the job's units run here and have not paid yet" in detail for detail in told)


def test_decide__window_that_is_led__counts_as_a_unit_that_was_taken() -> None:
    unit, best = LEADS
    led = replace(array(unit, OPEN, OPEN, match_window=12), leases=(Lease(0, unit, best), Lease(1, OPEN)))
    assert taken(look(led), costing(PAYS // 20)) == 0
    due = replace(led, leases=tuple(Lease(index, replace(OPEN, mark=NOW - 1), best) for index in range(3)))
    here = tuple(Execution(LeaseKey(due.id, index, 1), Stage.GATHERED) for index in range(3))
    for executions, step in (((), Gather), (here, Ack)):
        found = decide(replace(look(due), executions=executions), dear(costing(PAYS // 20)), NOW)
        assert sum(isinstance(one, step) for one in found) == 1


# ---- what an honest submitter sees ----


def test_decide__first_unit_was_paid__the_array_is_taken_with_all_slots() -> None:
    job = array(*[OPEN] * 12, paid=(NET,))
    assert taken(look(job), costing(NET // 8)) == SLOTS == taken(look(job), 0, max_loss=None)
    waits = replace(DUST, started=NOW - 700, mark=NOW - 100)
    unsettled = array(waits, *[OPEN] * 12)
    assert taken(look(unsettled), costing(NET // 8)) == SLOTS, "what is submitted is known before it is settled"


def test_decide__units_that_bring_twice_their_gas__are_taken_two_then_four_at_a_time() -> None:
    begun: list[int] = []
    paid = 0
    while not begun or begun[-1] < SLOTS:
        begun.append(taken(look(array(*[OPEN] * 12, paid=(NET,) * paid)), costing(NET // 2)))
        paid += begun[-1]
    assert begun == [1, 2, 4, 8]


# ---- profit: what a submitter can make a node lose ----


def _simulate(billing: Billing, price: int, ends: list[tuple[int, int]]) -> tuple[int, int, int]:
    """Let a submitter end units as it likes: which of those that run, and what that one brings. Return what the node's
    gas cost and what came in, both at the worst moment, and how many units it took."""
    units: list[Unit] = []
    paid: list[int] = []
    spent, worst, at_worst, count = 0, 0, (0, 0), 0
    for which, pay in ends:
        job = array(*units, OPEN, OPEN, OPEN, OPEN, OPEN, OPEN, OPEN, OPEN, paid=tuple(paid), billing=billing)
        for step in decide(look(job), dear(price), NOW):
            if isinstance(step, Claim):
                count += 1
                spent += UNIT_GAS * price // COIN
                units.append(RUNNING)
        if spent - sum(paid) > worst:
            worst, at_worst = spent - sum(paid), (spent, sum(paid))
        if units:
            del units[which % len(units)]
            paid.append(pay)
    return *at_worst, count


CANCELLED = 10**15 * (60 + 1) // 10**6
"""What a unit brings that is cancelled in its first second, where the notice is one second."""

SUBMITTERS: dict[str, Callable[[int], int]] = {
    "cancels each at once": lambda _: CANCELLED,
    "pays dust": lambda _: 10**9,
    "brings data that cannot be read": lambda _: 0,
    "pays the first one, then dust": lambda turn: NET if turn == 0 else 1,
    "pays each eighth": lambda turn: NET if turn % 8 == 0 else 0,
}


@pytest.mark.parametrize("cost", [CANCELLED * 2, NET // 8, NET])
@pytest.mark.parametrize("how", SUBMITTERS)
def test_decide__array_of_a_submitter_who_does_not_want_to_pay__costs_one_units_gas(how: str, cost: int) -> None:
    """The profit test: 256 units, eight slots. What the submitter spares is the node's loss: one unit."""
    ends = [(0, SUBMITTERS[how](turn)) for turn in range(24)]
    for billing in (Billing.METERED, Billing.FIXED):
        spent, earned, count = _simulate(billing, costing(cost), ends)
        assert spent <= earned + cost
        assert count >= 1, "it was worth a try"


@pytest.mark.hypothesis
@given(
    st.lists(st.tuples(st.integers(0, SLOTS), st.sampled_from([0, 1, CANCELLED, NET // 9, NET])), max_size=16),
    st.sampled_from([CANCELLED * 2, NET // 8, NET // 2, NET]),
    st.sampled_from(list(Billing)),
)
def test_decide__any_ends_of_any_units__cost_what_they_brought_and_one_units_gas(
    ends: list[tuple[int, int]], cost: int, billing: Billing
) -> None:
    spent, earned, _ = _simulate(billing, costing(cost), ends)
    assert spent <= earned + cost


# ---- settling and closing ----


def settled(job: Job, price: int, node: Node = NODE, **changes: object) -> list[object]:
    """Return what is decided of units that are submitted."""
    return [step for step in decide(look(job, node=node), dear(price, **changes), NOW) if not isinstance(step, Claim)]


def dust(count: int, **terms: object) -> Job:
    """Return a whole array of units that bring one second's pay each, and no reward."""
    return array(*[replace(DUST, mark=NOW)] * count, size=count, keeper_fee=0, **terms)


def brings(job: Job) -> int:
    """Return what settling the first unit brings the owner."""
    pay = formulas.pay_at_settle(job.terms, job.leases[0].unit)
    return pay - formulas.fee_of(pay, POLICY)


def test_decide__settling_costs_more_than_it_brings__waits_and_says_for_what() -> None:
    job = dust(1, billing=Billing.METERED)
    pay = brings(job)
    (paying,) = settled(job, costing(pay, 104_000))
    assert isinstance(paying, Settle) and paying.ceiling(1 << 200) == costing(pay, 104_000)
    (waits,) = settled(job, costing(pay, 104_000) + 1)
    assert isinstance(waits, Skip) and waits.reason is Reason.AWAITS_KEEPER
    assert waits.detail.startswith("settling it brings 0.00") and "it waits for cheaper gas" in waits.detail
    (lost,) = settled(job, costing(pay, 104_000) + 1, max_loss=pay)
    assert isinstance(lost, Settle)
    rewarded = replace(job, terms=replace(job.terms, keeper_fee=8 * pay))
    (both,) = settled(rewarded, costing(2 * pay, 104_000))
    assert isinstance(both, Settle), "the settler's reward is this worker's too"


def test_decide__units_that_pay_for_a_batch__are_settled_in_one() -> None:
    one, many = dust(1, billing=Billing.METERED), dust(20, billing=Billing.METERED)
    price = costing(brings(one), 60_000)
    assert [type(step) for step in settled(one, price)] == [Skip]
    (batch,) = settled(many, price)
    assert isinstance(batch, Settle) and len(batch.items) == 20
    assert batch.ceiling(1 << 200) == brings(one) * 20 * COIN // settling_gas(20)


@pytest.mark.parametrize(
    ("job", "node", "changes"),
    [
        (dust(64), NODE, {}),
        (dust(2), replace(NODE, stake=2 * formulas.bond(dust(2).terms) * 4 - 1), {}),
        (dust(2), replace(NODE, exit_at=NOW - 9), {}),
        (dust(2), NODE, {"hold": Reason.DRAINING}),
    ],
    ids=["a batch is full", "they bind a quarter of the stake", "the node leaves", "the worker drains"],
)
def test_decide__units_that_do_not_pay_for_their_settling__do_not_wait_for_ever(
    job: Job, node: Node, changes: dict[str, object]
) -> None:
    """Else a stranger's units would hold a node's stake, its exit or its drain, for the price of posting them."""
    price = costing(PAYS * 9)
    (all_of_them,) = settled(job, price, node, **changes)
    assert isinstance(all_of_them, Settle) and len(all_of_them.items) == len(job.leases)
    assert all_of_them.ceiling(100) == 50
    fewer = replace(job, leases=job.leases[1:])
    kept = settled(fewer, price, replace(node, exit_at=0))
    assert {type(step) for step in kept} == {Skip}, "one less, and they wait"


def test_decide__closing_costs_more_than_it_brings__waits_until_the_slot_is_worth_it() -> None:
    """A cancelled unit that nobody closes would keep its slot: what that could earn meanwhile is counted."""
    closing = replace(RUNNING, state=State.CLOSING, started=NOW - 2, mark=NOW)
    job = replace(decided.job_of(closing), terms=replace(TERMS, keeper_fee=0))
    pay = formulas.pay_at_close(job.terms, closing)
    per_second = closing.rate // 10**6
    config = dear(costing(pay - formulas.fee_of(pay, POLICY) + 100 * per_second, 89_000))

    def at(second: int) -> object:
        (step,) = decide(look(job), config, NOW + second)
        return step

    waits, closes = at(99), at(101)
    assert isinstance(waits, Skip) and waits.reason is Reason.AWAITS_KEEPER and "closing it brings" in waits.detail
    assert isinstance(closes, Close) and config.gas_price < closes.ceiling(1 << 200) < config.gas_price * 11 // 10
    drains = replace(config, hold=Reason.DRAINING)
    assert [type(step) for step in decide(look(job), drains, NOW)] == [Close]


@pytest.mark.parametrize(
    ("gas", "price", "coin_price", "units"),
    [(0, 5, COIN, 0), (21_000, 2, COIN, 42_000), (21_000, 2, COIN // 1_000, 42), (1, 1, 1, 1)],
)
def test_cost__gas__is_in_base_units_and_rounded_up(gas: int, price: int, coin_price: int, units: int) -> None:
    assert cost(gas, replace(CONFIG, gas_price=price, coin_price=coin_price)) == units
