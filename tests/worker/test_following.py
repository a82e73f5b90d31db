"""worker.decide: a result that is settled with its submit, and the array's next unit taken by the same call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, note

from hearth.protocol import formulas, words
from hearth.protocol.types import SENTINEL, Header, Node, Outcome, State, TermsFlag, UnitFlag
from tests.worker.test_decide import (
    CONFIG,
    ID,
    JUDGE,
    NODE,
    NOW,
    POLICY,
    RUNNING,
    TERMS,
    WASM,
    configs,
    dear,
    job_of,
    only,
    snapshot_of,
    snapshots,
)
from worker.decide import (
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
    Snapshot,
    Stage,
    SubmitResult,
    Target,
    decide,
)

BOND = formulas.bond(TERMS, POLICY)
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
        (array(), dear(10**30)),
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
        rises = formulas.claimable_from(job.terms, words.unpack_policy(job.terms.policy), _first(job), NODE.offer.ask)
        assert (rises is not None and rises <= NOW) is taken, rises
        assert (ended(finishing(job)).next is not None) is taken


def _first(job: Job) -> Any:
    assert job.header is not None
    return replace(RUNNING, state=State.OPEN, started=job.header.opened, mark=0, rate=0, attempts=0)


def test_decide__two_results_of_one_array__one_takes_the_next_unit() -> None:
    other = replace(DONE, key=replace(AT, index=1))
    job = replace(array(), leases=(Lease(1, RUNNING), Lease(2, RUNNING)))
    node = replace(NODE, state=replace(NODE.state, busy=2, bond=2 * BOND))
    steps = decide(snapshot_of(job, node=node, executions=(other, DONE)), CONFIG, NOW)
    found = [step for step in steps if isinstance(step, Finish)]
    assert [step.next for step in found] == [NEXT, None]
    assert not any(isinstance(step, Claim) for step in steps), "the free slots wait for a block, as after a claim"


@pytest.mark.parametrize("flight", [Flight(Kind.CLAIM, ID, SENTINEL, BOND), Flight(Kind.FINISH, ID, SENTINEL)])
def test_decide__next_unit_that_is_being_taken__is_not_asked_for_again(flight: Flight) -> None:
    node = replace(NODE, state=replace(NODE.state, busy=1, bond=BOND))
    assert ended(finishing(array(), node, flights=(flight,))).next is None


def test_decide__finish_in_flight_with_the_next_unit__starts_and_claims_nothing_of_the_job() -> None:
    flights = (Flight(Kind.FINISH, ID, 2), Flight(Kind.FINISH, ID, SENTINEL))
    steps = decide(finishing(array(), replace(NODE, state=ONE_SLOT.state), flights=flights), CONFIG, NOW)
    assert {getattr(step, "reason", step) for step in steps} == {Reason.TX_PENDING}


def test_decide__what_the_finishing_unit_pays__counts_for_the_next() -> None:
    """A unit that runs has paid nothing, and would keep the worker from the next one: its result has paid."""
    gas = 78_000 + 44_000 + 104_000
    config = dear((600 * 10**9 - formulas.fee_of(600 * 10**9, POLICY)) * 10**18 // gas)
    assert ended(finishing(array()), config).next is not None
    assert ended(finishing(array()), replace(config, gas_price=config.gas_price + 1)).next is None


@pytest.mark.hypothesis
@given(snapshots(), configs)
def test_decide__finish_of_any_snapshot__takes_what_a_paid_result_would_let_it_claim(
    snapshot: Snapshot, config: Config
) -> None:
    """Decided anew as if each finish without a claim were mined, the worker claims no next unit that it could have had,
    unless another finish, or what was ahead in the same block, has its slot."""
    steps = decide(snapshot, config, NOW)
    note(repr(steps))
    taken = [step for step in steps if isinstance(step, Finish) and step.next is not None]
    jobs = {job.id: job for job in snapshot.jobs}
    slots = min(config.max_slots, snapshot.node.offer.slots)
    assert len({step.attempt.job for step in taken}) == len(taken), "an array's next unit is asked for once"
    for step in taken:
        assert step.next is not None
        job = jobs[step.attempt.job]
        assert job.header is not None and not job.header.closed and job.header.touched < job.terms.leases
        assert step.begins == LeaseKey(job.id, job.header.touched, 1) and step.next.call_index == SENTINEL
        assert config.hold is None and snapshot.node.state.busy <= slots
        opened = replace(_first(job), started=job.header.opened)
        assert formulas.claimable(job.terms, POLICY, opened, NOW)
        rises = formulas.claimable_from(job.terms, POLICY, opened, NODE.offer.ask)
        assert rises is not None and rises <= NOW
    for step in steps:
        if not isinstance(step, Finish) or step.next is not None or len(snapshot.jobs) > 1:
            continue
        # Alone on the market: mined, the same rules say the same.
        job = jobs[step.attempt.job]
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
