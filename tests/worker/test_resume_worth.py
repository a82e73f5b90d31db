"""worker.decide: what a unit is worth that begins with a state of somebody else's, and what it shares with him.

Once it is begun with a state, a unit may bill what the state, and those that it was made of, leave of its seconds
(protocol.md "Checkpoints"), and the end of it pays for them. Who left it gains where a worker reckons with all of the
seconds: his own are paid out of a result that costs the worker more than it brings.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.protocol import formulas
from hearth.protocol.gas import (
    ACK_GAS,
    CHECKPOINT_GAS,
    CLAIM_GAS,
    FINISH_GAS,
    PAID_CHECKPOINT_GAS,
    SETTLE_GAS,
    SUBMIT_GAS,
)
from hearth.protocol.types import COIN, RATE_SCALE, Best, Outcome, State
from tests.worker.test_decide import CONFIG, ME, NODE, NOW, OTHER, POLICY, RUNNING, dear, only, reason, snapshot_of
from tests.worker.test_decide_checkpoints import HERE, LOST, NEXT, RESUMABLE, ROOT, SAVED, SAVING, metered
from worker.decide import (
    Abort,
    Ack,
    Action,
    Checkpoint,
    Claim,
    Execution,
    Gather,
    HandIn,
    Reason,
    Saved,
    Settle,
    Skip,
    Snapshot,
    Stage,
    decide,
)
from worker.decide.worth import begun_with

RATE = NODE.offer.ask
WHOLE = 600
"""Seconds of a unit, whose checkpoints are 60 s apart."""
MATCHED: tuple[dict[str, object], ...] = ({}, {"match_window": 12, "keeper_fee": 8})
"""Terms of a unit that is claimed, and of one that is acked, whose tip is next to nothing."""
TWICE = replace(LOST, attempts=2)
AGAIN = replace(NEXT, attempts=3)


def pays(seconds: int, rate: int = RATE) -> int:
    """Return what so many seconds bring, less the fee."""
    pay = rate * seconds // RATE_SCALE
    return pay - formulas.fee_of(pay, POLICY)


def gas_of(left: int, kept: int, start: int = CLAIM_GAS) -> int:
    """Return the gas of a unit that runs for the seconds that are left and pays for so many kept checkpoints."""
    return start + FINISH_GAS + CHECKPOINT_GAS * (left // 60) + PAID_CHECKPOINT_GAS * kept


def leaves(seconds: int, **changes: object) -> Saved:
    """Return a state that leaves so many of a unit's seconds."""
    return replace(SAVED, seconds=WHOLE - seconds, **changes)  # type: ignore[arg-type]


def at(pay: int, gas: int) -> int:
    """Return the highest gas price at which a pay is worth the gas."""
    return pay * COIN // gas


def decided(snapshot: Snapshot, price: int) -> list[Action | Skip]:
    return decide(snapshot, dear(price), NOW)


# ---- the attack ----


@pytest.mark.parametrize("left", [60, 120])
@pytest.mark.parametrize("won", [False, True], ids=["claim", "ack"])
def test_decide__state_that_leaves_less_than_the_gas_of_a_unit__is_not_begun_with(won: bool, left: int) -> None:
    """Begun anew the unit is worth its gas, ten checkpoints included; with the state its ends alone cost more than it
    can bring."""
    lost = replace(LOST, mark=NOW, rate=RATE) if won else LOST
    job = metered(lost, Best(node=ME, key=9) if won else None, leaves(left), **MATCHED[won])
    start = ACK_GAS if won else CLAIM_GAS
    price = at(pays(WHOLE), gas_of(WHOLE, 0, start))
    assert pays(left) < gas_of(left, 1, start) * price // COIN
    found = only(snapshot_of(job, executions=(HERE,)), dear(price))
    assert isinstance(found, Ack | Claim) and found.resumes == 0
    assert found.ceiling(1 << 200) == price, "it is worth what all of its time pays"
    if not won:
        assert isinstance(only(snapshot_of(job), dear(price)), Claim), "nor is it fetched"
    skip, _ = decided(snapshot_of(job, executions=(HERE,)), price + 1)
    assert isinstance(skip, Skip) and skip.reason is Reason.UNPROFITABLE


@pytest.mark.parametrize("won", [False, True], ids=["claim", "ack"])
def test_decide__state_that_pays__is_begun_with_and_bids_what_it_leaves(won: bool) -> None:
    lost = replace(LOST, mark=NOW, rate=RATE) if won else LOST
    job = metered(lost, Best(node=ME, key=9) if won else None, leaves(120), **MATCHED[won])
    most = at(pays(120), gas_of(120, 1, ACK_GAS if won else CLAIM_GAS))
    found = only(snapshot_of(job, executions=(HERE,)), dear(most))
    assert isinstance(found, Ack | Claim) and (found.resumes, found.ceiling(1 << 200)) == (1, most)
    dearer = only(snapshot_of(job, executions=(HERE,)), dear(most + 1))
    assert isinstance(dearer, Ack | Claim) and dearer.resumes == 0


# ---- which one ----


def test_decide__newest_state_that_does_not_pay__an_older_one_is_fetched() -> None:
    job = metered(TWICE, None, leaves(60, attempt=2), leaves(540))
    price = at(pays(540), gas_of(540, 1))
    assert pays(60) < gas_of(60, 1) * price // COIN
    found = only(snapshot_of(job), dear(price))
    assert isinstance(found, Gather) and [one.attempt for one in found.saved] == [1]
    both = only(snapshot_of(job), dear(at(pays(60), gas_of(60, 1))))
    assert isinstance(both, Gather) and [one.attempt for one in both.saved] == [2, 1]


def test_decide__unit_that_does_not_pay_anew__is_taken_with_a_state_or_not_at_all() -> None:
    """Its job's units brought too little for ten checkpoints, and enough for four."""
    price = at(pays(240), gas_of(240, 1))
    job = replace(metered(LOST, None, leaves(240)), paid=(pays(240),))
    assert isinstance(only(snapshot_of(job), dear(price)), Gather)
    claim = only(snapshot_of(job, executions=(HERE,)), dear(price))
    assert isinstance(claim, Claim) and claim.resumes == 1
    nowhere = snapshot_of(job, executions=(replace(HERE, resumes=0),))
    skip, abort = decided(nowhere, price)
    assert isinstance(skip, Skip) and skip.reason is Reason.UNPROFITABLE
    assert isinstance(abort, Abort), "what was gathered for it goes"
    assert reason(snapshot_of(replace(job, gather_at=NOW + 1)), dear(price)) is Reason.UNPROFITABLE


def test_decide__state_that_was_made_of_another__leaves_what_both_do_and_pays_for_both() -> None:
    first, second = replace(SAVED, seconds=300), replace(SAVED, attempt=2, seconds=180, resume=1)
    job = metered(TWICE, None, second, first)
    here = (Execution(AGAIN, Stage.GATHERED, resumes=2),)
    most = at(pays(120), gas_of(120, 2))
    found = only(snapshot_of(job, executions=here), dear(most))
    assert isinstance(found, Claim) and (found.resumes, found.ceiling(1 << 200)) == (2, most)
    dearer = only(snapshot_of(job, executions=here), dear(most + 1))
    assert isinstance(dearer, Claim) and dearer.resumes == 0
    full = only(snapshot_of(metered(TWICE, None, replace(second, seconds=241), first)))
    assert isinstance(full, Gather) and full.saved == (first,), "a checkpoint's time is not left by both"


def test_decide__state_of_whose_origin_no_log_tells__is_not_begun_with() -> None:
    """What it leaves is not known: the unit may bill nothing."""
    found = only(snapshot_of(metered(TWICE, None, replace(SAVED, attempt=2, resume=1))))
    assert isinstance(found, Claim) and found.resumes == 0


@pytest.mark.parametrize(
    ("saved", "attempt", "found"),
    [
        ((), 0, (0, 0, True)),
        ((SAVED,), 1, (60, 1, True)),
        ((SAVED, Saved(3, OTHER, 5, ROOT, 1)), 3, (65, 2, True)),
        ((Saved(3, OTHER, 5, ROOT, 2),), 3, (5, 3, False)),
        ((), 7, (0, 7, False)),
        ((Saved(3, OTHER, 5, ROOT, 3),), 3, (0, 3, False)),
    ],
)
def test_begun_with__logs_of_its_checkpoints__are_summed_as_far_as_they_are_known(
    saved: tuple[Saved, ...], attempt: int, found: tuple[int, int, bool]
) -> None:
    begun = begun_with(saved, attempt)
    assert (begun.seconds, begun.kept, begun.whole) == found and begun.attempt == attempt
    assert begun.gas() == PAID_CHECKPOINT_GAS * begun.kept and begun.gas(Outcome.BAD_INPUT) == 0


def test_decide__state_that_leaves_less_than_min_pay__is_not_begun_with() -> None:
    """`accept.min_pay` is about what the unit may bill, which is what the state leaves."""
    config = replace(CONFIG, min_pay=RATE * 120 // RATE_SCALE)
    assert isinstance(only(snapshot_of(metered(LOST, None, leaves(120))), config), Gather)
    found = only(snapshot_of(metered(LOST, None, leaves(119)), executions=(HERE,)), config)
    assert isinstance(found, Claim) and found.resumes == 0
    longer = metered(replace(LOST, seconds=1), None, leaves(119))
    assert isinstance(only(snapshot_of(longer), config), Gather), "its top-ups count"


# ---- what it shares ----


def test_decide__result_that_bills_what_a_state_left__is_settled_for_that_and_no_more() -> None:
    """It ran for 300 s, of which its state left 60."""
    done = replace(RUNNING, state=State.SUBMITTED, started=NOW - 300, mark=NOW, attempts=2, outcome=Outcome.OK)
    price = at(pays(60), SETTLE_GAS + PAID_CHECKPOINT_GAS)

    def settled(resume: int, price: int) -> object:
        job = metered(replace(done, resume=resume), None, leaves(60), keeper_fee=0)
        return only(snapshot_of(job), dear(price))

    found = settled(1, price)
    assert isinstance(found, Settle) and found.ceiling(1 << 200) == price
    waits = settled(1, price + 1)
    assert isinstance(waits, Skip) and waits.reason is Reason.AWAITS_KEEPER
    assert isinstance(settled(0, price + 1), Settle), "alone it bills all 300"


def test_decide__results_that_wait__count_for_what_their_states_left() -> None:
    """What the next unit is expected to bring is what those bring that are submitted."""
    done = replace(RUNNING, state=State.SUBMITTED, started=NOW - 300, mark=NOW, attempts=2, outcome=Outcome.OK)
    price = at(pays(300), gas_of(WHOLE, 0))
    for resume, taken in ((0, True), (1, False)):
        job = metered(replace(done, resume=resume), None, leaves(60))
        both = replace(job, leases=(*job.leases, replace(metered(replace(LOST, attempts=0)).leases[0], index=1)))
        steps = decided(snapshot_of(both), price)
        assert any(isinstance(step, Claim) for step in steps) is taken


def test_decide__checkpoint_of_a_resumed_attempt__secures_what_its_state_left() -> None:
    """Of 600 s the state left 90, and the attempt runs for longer."""
    unit = replace(RESUMABLE, attempts=2, resume=1, started=NOW - 100)
    job = metered(unit, None, leaves(90))
    saving = replace(SAVING, key=NEXT)
    share, parts = formulas.CHECKPOINT_SHARE
    price = at(pays(90, RATE * share // parts), CHECKPOINT_GAS)
    assert isinstance(only(snapshot_of(job, executions=(saving,)), dear(price)), Checkpoint)
    assert not isinstance(only(snapshot_of(job, executions=(saving,)), dear(price + 1)), Checkpoint)


def test_decide__cancelled_unit_that_was_resumed__hands_in_where_what_its_state_left_pays_for_the_submit() -> None:
    """Of 600 s the state left 10, and the attempt ran for 100 before its submitter cancelled it."""
    unit = replace(RESUMABLE, state=State.CLOSING, attempts=2, resume=1, started=NOW - 100, mark=NOW + 60)
    job = metered(unit, None, leaves(10))
    begun = snapshot_of(job, executions=(Execution(NEXT, Stage.WORKING, begun=True),))
    price = at(pays(10) + formulas.settle_reward(job.terms, 0), SUBMIT_GAS)
    assert only(begun, dear(price)) == HandIn(NEXT, unit.mark)
    assert reason(begun, dear(price + 1)) == Reason.RUNNING
    anew = replace(unit, resume=0)
    assert isinstance(only(replace(begun, jobs=(metered(anew, None, leaves(10)),)), dear(price + 1)), HandIn)


@pytest.mark.hypothesis
@given(
    st.lists(st.tuples(st.integers(1, 600), st.integers(0, 3)), max_size=4),
    st.integers(0, 4),
    st.integers(1, 3 * gas_of(WHOLE, 0)),
    st.booleans(),
)
def test_decide__any_states_at_any_gas_price__what_is_begun_brings_its_gas(
    logs: list[tuple[int, int]], resumes: int, gas: int, won: bool
) -> None:
    """Whatever others left: what a unit may bill, as the chain reckons it, pays for all of its calls."""
    saved = tuple(Saved(at, OTHER, seconds, ROOT, min(resume, at - 1)) for at, (seconds, resume) in enumerate(logs, 1))
    unit = replace(LOST, attempts=len(saved))
    unit = replace(unit, mark=NOW, rate=RATE) if won else unit
    job = metered(unit, Best(node=ME, key=9) if won else None, *reversed(saved), **MATCHED[won])
    key = replace(NEXT, attempts=len(saved) + 1)
    here = Execution(key, Stage.GATHERED, resumes=min(resumes, len(saved)))
    config = dear(at(pays(WHOLE), gas))
    (found, *_) = decided(snapshot_of(job, executions=(here,)), config.gas_price)
    if not isinstance(found, Ack | Claim):
        assert isinstance(found, Skip) and found.reason is Reason.UNPROFITABLE
        anew = gas_of(WHOLE, 0, ACK_GAS if won else CLAIM_GAS)
        assert pays(WHOLE) * COIN // anew < config.gas_price
        return
    assert found.resumes in (0, here.resumes)
    left, kept, origin = WHOLE, 0, found.resumes
    while origin:
        left, kept, origin = left - saved[origin - 1].seconds, kept + 1, saved[origin - 1].resume
    assert left >= 60
    assert pays(left) * COIN >= gas_of(left, kept, ACK_GAS if won else CLAIM_GAS) * config.gas_price
