"""worker.decide: a result that is settled with its submit, and the array's next unit taken by the same call."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from hearth.protocol import formulas, words
from hearth.protocol.types import SENTINEL, Gate, Header, JobId, Node, Outcome, State, TermsFlag, UnitFlag
from tests.worker.test_decide import (
    CONFIG,
    COURSES,
    ID,
    JUDGE,
    NODE,
    NOW,
    OPEN,
    POLICY,
    RUNNING,
    TERMS,
    WASM,
    configs,
    courses,
    dear,
    evenly,
    job_of,
    only,
    snapshot_of,
    snapshots,
)
from worker.decide import (
    ChainAction,
    Claim,
    Config,
    Execution,
    Finish,
    Flight,
    Job,
    Kind,
    Lease,
    LeaseKey,
    Reason,
    Skip,
    Snapshot,
    Stage,
    SubmitResult,
    Target,
    decide,
)
from worker.decide.own import submitted

BOND = formulas.bond(TERMS)
AT = LeaseKey(ID, 2, 1)
DONE = Execution(AT, Stage.DONE, Outcome.OK, b"\x01" * 32, b"\x02" * 32)
NEXT = Claim(ID, 3, 0, BOND, SENTINEL)
HEADER = Header(touched=3, opened=NOW - 100, leases=9)
ONE_SLOT = replace(NODE, offer=replace(NODE.offer, slots=1), state=replace(NODE.state, busy=1, bond=BOND))


def array(header: Header = HEADER, **terms: Any) -> Job:
    """Return an array whose unit 2 is this node's and has its result, and whose next one is unit 3."""
    known = replace(TERMS, units=9, **terms)
    return Job(ID, known, (Lease(2, replace(RUNNING, flags=UnitFlag(0))),), header, WASM)


def finishing(job: Job, node: Node = ONE_SLOT, **changes: Any) -> Snapshot:
    return snapshot_of(job, node=node, executions=(DONE,), **changes)


def ended(snapshot: Snapshot, config: Config = CONFIG) -> Finish:
    """Return the one finish that is decided."""
    (found,) = [step for step in decide(snapshot, config, NOW) if isinstance(step, Finish)]
    return found


def test_decide__array_with_a_unit_left__finishes_and_takes_it_in_the_slot_that_is_freed() -> None:
    found = ended(finishing(array()))
    assert found == Finish(AT, DONE.result, DONE.report, Outcome.OK, 0, NEXT)
    assert found.begins == LeaseKey(ID, 3, 1)


def test_decide__node_that_was_silent_with_a_unit_left__takes_it_since_the_end_of_one_is_a_sign_of_life() -> None:
    node = replace(ONE_SLOT, state=replace(ONE_SLOT.state, beat=NOW - 10_000, silent=True))
    assert ended(finishing(array(), node)).next == NEXT


@pytest.mark.parametrize("used", [0, 7])
def test_submitted__unit__has_its_outcome_and_the_seconds_that_it_used_too(used: int) -> None:
    action = replace(ended(finishing(array())), used=used, outcome=Outcome.EXIT)
    before = Lease(2, replace(RUNNING, seconds=100))
    after = submitted(before, action, NOW).unit
    assert (after.state, after.outcome, after.mark, after.seconds) == (State.SUBMITTED, Outcome.EXIT, NOW, 100 + used)


@pytest.mark.parametrize(
    ("unit", "terms", "config"),
    [
        (replace(RUNNING, flags=UnitFlag.FRESH), {}, CONFIG),
        (RUNNING, {"judge": JUDGE, "challenge_window": 60}, CONFIG),
        (RUNNING, {"judge": JUDGE, "challenge_window": 60, "flags": TermsFlag.PROVEN}, CONFIG),
    ],
)
def test_decide__result_that_somebody_may_look_at_first__is_submitted_alone(
    unit: Any, terms: dict[str, Any], config: Config
) -> None:
    done = replace(DONE, key=replace(AT, index=0))
    found = only(snapshot_of(job_of(unit, **terms), node=ONE_SLOT, executions=(done,)), config)
    assert found == SubmitResult(done.key, done.result, done.report, Outcome.OK, 0)
    several = replace(array(**terms), leases=(Lease(2, unit),))
    assert not [one for one in decide(finishing(several), config, NOW) if isinstance(one, Finish | Claim)]


@pytest.mark.parametrize(
    ("job", "config"),
    [
        (array(replace(HEADER, closed=True)), CONFIG),
        (array(replace(HEADER, touched=9)), CONFIG),
        (array(replace(HEADER, opened=NOW - 5), match_window=12), CONFIG),
        (array(ceiling=10**15 - 1), CONFIG),
        (array(deadline=NOW + 500), CONFIG),
        (replace(array(), spec=None), CONFIG),
        (replace(array(), retry_at=NOW + 1), CONFIG),
        (array(), replace(CONFIG, hold=Reason.DRAINING)),
        (array(), replace(CONFIG, hold=Reason.DISK_FULL)),
        (array(), replace(CONFIG, max_slots=0)),
        (array(), replace(CONFIG, target=Target(ID, taken=True))),
        (array(), replace(CONFIG, submitters_refused=frozenset({TERMS.submitter}))),
        (array(), dear(600 * 10**9 * 10**18 // 100_000)),
    ],
    ids=str.split("closed ended window price time unread-spec resting draining disk slots errand refused gas"),
)
def test_decide__next_unit_that_would_not_be_claimed_now__is_not_taken_with_the_result(
    job: Job, config: Config
) -> None:
    assert ended(finishing(job), config).next is None


def test_decide__price_of_the_next_unit_that_rises_to_its_ask__is_taken_from_that_second() -> None:
    ramped = array(policy=words.pack_policy(replace(POLICY, claim_ramp=100)), ceiling=2 * 10**15)
    for age, taken in ((33, False), (34, True)):
        job = replace(ramped, header=replace(HEADER, opened=NOW - age))
        rises = formulas.claimable_from(job.terms, _first(job), NODE.offer.ask)
        assert (rises is not None and rises <= NOW) is taken, rises
        assert (ended(finishing(job)).next is not None) is taken


def _first(job: Job) -> Any:
    assert job.header is not None
    return replace(RUNNING, state=State.OPEN, started=job.header.opened, mark=0, rate=0, attempts=0)


def test_decide__two_results_of_one_array__each_takes_a_unit_and_so_does_each_free_slot() -> None:
    other = replace(DONE, key=replace(AT, index=1))
    job = replace(array(), leases=(Lease(1, RUNNING), Lease(2, RUNNING)))
    node = replace(NODE, state=replace(NODE.state, busy=2, bond=2 * BOND))
    steps = decide(snapshot_of(job, node=node, executions=(other, DONE)), CONFIG, NOW)
    found = [step for step in steps if isinstance(step, Finish)]
    assert [step.next for step in found] == [NEXT, replace(NEXT, index=4, behind=1)]
    claims = [step for step in steps if isinstance(step, Claim)]
    assert claims == [replace(NEXT, index=5, behind=2), replace(NEXT, index=6, behind=3)]


@pytest.mark.parametrize("flight", [Flight(Kind.CLAIM, ID, SENTINEL, BOND), Flight(Kind.FINISH, ID, SENTINEL)])
def test_decide__next_unit_that_is_being_taken__the_one_behind_it_is_asked_for(flight: Flight) -> None:
    node = replace(NODE, state=replace(NODE.state, busy=1, bond=BOND))
    assert ended(finishing(array(), node, flights=(flight,))).next == replace(NEXT, index=4, behind=1)
    last = array(replace(HEADER, touched=8))
    assert ended(finishing(last, node, flights=(flight,))).next is None, "nothing is left behind it"


def test_decide__finish_in_flight_with_the_next_unit__starts_and_claims_nothing_of_the_job() -> None:
    flights = (Flight(Kind.FINISH, ID, 2), Flight(Kind.FINISH, ID, SENTINEL))
    steps = decide(finishing(array(), replace(NODE, state=ONE_SLOT.state), flights=flights), CONFIG, NOW)
    assert [step.leases for step in steps if isinstance(step, ChainAction)] == [((ID, SENTINEL),)] * 3, "free slots"
    assert Skip(ID, 2, Reason.TX_PENDING) in steps
    one = decide(finishing(array(), flights=flights), CONFIG, NOW)
    assert {getattr(step, "reason", step) for step in one} == {Reason.TX_PENDING, Gate.NO_SLOT}


def test_decide__what_the_finishing_unit_pays__counts_for_the_next() -> None:
    """A unit that runs has paid nothing, and would keep the worker from the next one: its result has paid."""
    gas = 78_000 + 102_000
    config = dear((600 * 10**9 - formulas.fee_of(600 * 10**9, POLICY)) * 10**18 // gas)
    assert ended(finishing(array()), config).next is not None
    assert ended(finishing(array()), replace(config, gas_price=config.gas_price + 1)).next is None


def test_decide__slot_that_another_job_pays_more_for__is_not_given_to_the_next_unit() -> None:
    """The slot that a result frees is offered to every job, as at the next look."""
    assert ended(finishing(array())).next is not None
    dearer = replace(job_of(OPEN), id=JobId(b"\x77" * 32), terms=replace(TERMS, salt=77, ceiling=2 * TERMS.ceiling))
    snapshot = replace(finishing(array()), jobs=(array(), dearer))
    assert ended(snapshot).next is None


class Race:
    """One worker, an array, and rivals: what is sent is mined in its order, fails, or waits."""

    def __init__(self, units: int, slots: int) -> None:
        self.units, self.slots = units, slots
        self.touched = 0
        self.own: set[int] = set()
        self.done: set[int] = set()
        self.flying: dict[str, Claim | Finish] = {}
        self.mined: set[str] = set()

    def look(self) -> None:
        """Decide at this block, and send what is not on its way."""
        job = Job(
            ID,
            replace(TERMS, units=self.units),
            tuple(Lease(index, replace(RUNNING, flags=UnitFlag(0))) for index in sorted(self.own)),
            Header(touched=self.touched, opened=NOW - 100, leases=self.units),
            WASM,
        )
        node = replace(
            NODE,
            offer=replace(NODE.offer, slots=self.slots),
            state=replace(NODE.state, busy=len(self.own), bond=BOND * len(self.own)),
        )
        flights = tuple(
            Flight(step.kind, *where, BOND if step.kind is Kind.CLAIM else 0)
            for step in self.flying.values()
            for where in step.leases
        )
        executions = tuple(replace(DONE, key=LeaseKey(ID, index, 1)) for index in sorted(self.own & self.done))
        for step in decide(snapshot_of(job, node=node, executions=executions, flights=flights), CONFIG, NOW):
            if isinstance(step, Claim | Finish):
                assert step.key() not in self.mined, "an effect that the journal has would never be sent"
                self.flying.setdefault(step.key(), step)
        ahead = [step.next if isinstance(step, Finish) else step for step in self.flying.values()]
        wanted = sum(isinstance(step, Claim) for step in self.flying.values()) + len(self.own)
        assert wanted <= self.slots
        assert len([step for step in ahead if step is not None]) <= self.slots

    def mine(self) -> None:
        """Mine what was sent first."""
        if not self.flying:
            return
        key = next(iter(self.flying))
        step = self.flying.pop(key)
        if isinstance(step, Finish):
            self.own.remove(step.attempt.index)
        if (isinstance(step, Claim) or step.next is not None) and self.touched < self.units:
            self.own.add(self.touched)
            self.touched += 1
            assert len(self.own) <= self.slots
            self.mined.add(key)
        elif isinstance(step, Finish):
            self.mined.add(key)

    def fail(self, place: int) -> None:
        """Drop one that waits: it reverted, or was cancelled."""
        if self.flying:
            del self.flying[list(self.flying)[place % len(self.flying)]]


@pytest.mark.hypothesis
@given(
    st.integers(1, 12),
    st.integers(1, 4),
    st.lists(st.sampled_from(["look", "mine", "rival", "run", "fail"]), max_size=60),
)
def test_decide__array_among_rivals__fills_its_slots_and_names_no_effect_twice(
    units: int, slots: int, events: list[str]
) -> None:
    race = Race(units, slots)
    for place, event in enumerate(events):
        match event:
            case "look":
                race.look()
            case "mine":
                race.mine()
            case "rival" if race.touched < units:
                race.touched += 1
            case "run":
                race.done |= race.own
            case "fail":
                race.fail(place)
    for _ in range(4 * units + 4 * slots):
        race.done |= race.own
        race.look()
        race.mine()
    assert race.touched == units and not race.own, "whatever came before, all units are taken and ended"


def test_decide__call_that_is_mined_for_an_earlier_unit_than_it_was_sent_for__is_not_named_again() -> None:
    """Those before it failed, so the third has the first unit: its name must not be that of a unit still to come."""
    race = Race(9, 3)
    race.look()
    race.fail(0)
    race.fail(0)
    race.mine()
    assert race.own == {0} and not race.flying
    race.look()
    assert len(race.flying) == 2


def test_decide__array_with_free_slots__all_are_filled_at_one_look() -> None:
    race = Race(9, 4)
    race.look()
    assert len(race.flying) == 4
    for _ in range(4):
        race.mine()
    race.done |= race.own
    race.look()
    assert [step.next is not None for step in race.flying.values() if isinstance(step, Finish)] == [True] * 4


ENDING = [at for at, (unit, *_, stages) in enumerate(COURSES) if unit.state is State.RUNNING and Stage.DONE in stages]


@st.composite
def endings(draw: st.DrawFn) -> Snapshot:
    """Draw a snapshot of one job alone, whose unit mostly has its result."""
    snapshot = draw(snapshots())
    job, executions = draw(courses(ID, draw(evenly(ENDING))))
    node = replace(snapshot.node, state=replace(snapshot.node.state, busy=1))
    return replace(snapshot, node=node, jobs=(job,), executions=executions)


@pytest.mark.hypothesis
def test_decide__finish_of_any_snapshot__takes_what_a_paid_result_would_let_it_claim() -> None:
    seen: Counter[str] = Counter()

    def takes(snapshot: Snapshot, config: Config) -> None:
        take_what_may_be_claimed(snapshot, config, seen)

    for drawn in (snapshots(), endings()):
        given(drawn, configs)(takes)()
    assert seen["with the next"] and seen["alone"] and seen["alone, of an array"], seen


def take_what_may_be_claimed(snapshot: Snapshot, config: Config, seen: Counter[str]) -> None:
    """Decided anew as if each finish without a claim were mined, the worker claims no next unit that it could have had,
    unless another finish, or what was ahead in the same block, has its slot."""
    steps = decide(snapshot, config, NOW)
    note(repr(steps))
    taken = [step for step in steps if isinstance(step, Finish) and step.next is not None]
    jobs = {job.id: job for job in snapshot.jobs}
    slots = min(config.max_slots, snapshot.node.offer.slots)
    ahead = Counter(flight.job for flight in snapshot.flights if flight.index == SENTINEL)
    for step in taken:
        assert step.next is not None
        seen["with the next"] += 1
        job = jobs[step.attempt.job]
        assert job.header is not None and not job.header.closed and step.next.index < job.terms.leases
        assert step.next.behind == ahead[job.id], "each has a place of its own"
        ahead[job.id] += 1
        assert step.begins == LeaseKey(job.id, job.header.touched + step.next.behind, 1)
        assert step.next.call_index == SENTINEL
        assert config.hold is None and snapshot.node.state.busy <= slots
        opened = replace(_first(job), started=job.header.opened)
        assert formulas.claimable(job.terms, opened, NOW)
        rises = formulas.claimable_from(job.terms, opened, NODE.offer.ask)
        assert rises is not None and rises <= NOW
    for step in steps:
        if not isinstance(step, Finish) or step.next is not None or len(snapshot.jobs) > 1:
            continue
        # Alone on the market: mined, the same rules say the same.
        job = jobs[step.attempt.job]
        seen["alone"] += 1
        seen["alone, of an array"] += job.header is not None
        gone = tuple(lease for lease in job.leases if lease.index != step.attempt.index)
        state = snapshot.node.state
        later = replace(
            snapshot,
            node=replace(snapshot.node, state=replace(state, busy=state.busy - 1, beat=NOW)),
            jobs=(replace(job, leases=gone),),
            executions=tuple(one for one in snapshot.executions if one.key != step.attempt),
        )
        others = [one for one in steps if isinstance(one, Finish) and one.next is not None]
        claims = [one for one in decide(later, config, NOW) if isinstance(one, Claim)]
        assert others or len(gone) or not any(one.call_index == SENTINEL for one in claims), claims
