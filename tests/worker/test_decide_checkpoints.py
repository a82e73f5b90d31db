"""worker.decide about checkpoints: what is sent, what is resumed from, and for how long a topped-up unit runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.protocol.formulas import lease_seconds
from hearth.protocol.gas import CHECKPOINT_GAS
from hearth.protocol.types import COIN, Best, Billing, Kept, State, TermsFlag, Unit
from tests.worker.test_decide import (
    CONFIG,
    ID,
    JUDGE,
    KEY,
    ME,
    NOW,
    OPEN,
    OTHER,
    RUNNING,
    all_came_about,
    dear,
    evenly,
    job_of,
    only,
    snapshot_of,
)
from worker.decide import (
    Ack,
    Action,
    Checkpoint,
    Claim,
    Config,
    Decline,
    Execution,
    Finish,
    Flight,
    Gather,
    GiveUp,
    HandIn,
    Job,
    Kind,
    LeaseKey,
    Reason,
    Saved,
    Skip,
    Stage,
    StartRun,
    TrustedJudge,
    decide,
)
from worker.decide.open import may_begin_with
from worker.decide.worth import saved_pay

ROOT = b"\x05" * 32
RESUMABLE = replace(RUNNING, resumable=True)
SAVING = Execution(KEY, Stage.WORKING, begun=True, offered=ROOT, offers=3)
NEXT = LeaseKey(ID, 0, 2)
LOST = replace(OPEN, attempts=1)
SAVED = Saved(1, OTHER, 60, ROOT)
HERE = Execution(NEXT, Stage.GATHERED, resumes=1)


def metered(unit: object, best: Best | None = None, *saved: Saved, **overrides: object) -> Job:
    values: dict[str, object] = {"billing": Billing.METERED, "checkpoint_every": 60, **overrides}
    job = job_of(unit, best, **values)  # type: ignore[arg-type]
    return replace(job, leases=(replace(job.leases[0], saved=saved),))


# ---- sending ----


def test_decide__stored_checkpoint_of_a_running_unit__is_sent() -> None:
    assert only(snapshot_of(metered(RESUMABLE), executions=(SAVING,))) == Checkpoint(KEY, ROOT, 3)


@pytest.mark.parametrize(
    ("unit", "execution", "now"),
    [
        (RUNNING, SAVING, NOW),
        (replace(RESUMABLE, state=State.CLOSING), SAVING, NOW),
        (RESUMABLE, replace(SAVING, offered=None), NOW),
        (RESUMABLE, replace(SAVING, stage=Stage.DONE), NOW),
        (RESUMABLE, SAVING, RESUMABLE.deadline_at - 1),
        (RESUMABLE, SAVING, RESUMABLE.deadline_at),
    ],
    ids=["terms without", "closing", "none stored", "submit is next", "about to be over", "over"],
)
def test_decide__lease_that_takes_no_checkpoint__sends_none(unit: object, execution: Execution, now: int) -> None:
    assert not isinstance(only(snapshot_of(metered(unit), executions=(execution,)), now=now), Checkpoint)


def test_decide__slow_machine__sends_none_that_would_come_too_late() -> None:
    slow, late = replace(CONFIG, lead=30.0), RESUMABLE.deadline_at - 40
    snapshot = snapshot_of(metered(RESUMABLE), executions=(SAVING,))
    assert isinstance(only(snapshot, slow, late), Checkpoint)
    # The last second in which it counts is the one before the deadline, and it takes 30 s to get there.
    assert isinstance(only(snapshot, slow, RESUMABLE.deadline_at - 32), Checkpoint)
    assert not isinstance(only(snapshot, slow, RESUMABLE.deadline_at - 31), Checkpoint)
    assert not isinstance(only(snapshot, slow, late + 10), Checkpoint)


def test_decide__checkpoint_in_flight__neither_a_second_nor_a_wait_for_the_result() -> None:
    flights = (Flight(Kind.CHECKPOINT, ID, 0),)
    found = only(snapshot_of(metered(RESUMABLE), executions=(SAVING,), flights=flights))
    assert isinstance(found, Skip) and found.reason is Reason.RUNNING
    done = replace(SAVING, stage=Stage.DONE)
    assert isinstance(only(snapshot_of(metered(RESUMABLE), executions=(done,), flights=flights)), Finish)


# ---- resuming ----


def test_decide__lost_unit_with_a_state__fetches_it_before_the_claim_and_names_it() -> None:
    found = only(snapshot_of(metered(LOST, None, SAVED)))
    assert isinstance(found, Gather) and (found.attempt, found.saved) == (NEXT, (SAVED,))
    fetching = Execution(NEXT, Stage.GATHERING)
    waits = only(snapshot_of(metered(LOST, None, SAVED), executions=(fetching,)))
    assert isinstance(waits, Skip) and waits.reason is Reason.GATHERING
    claim = only(snapshot_of(metered(LOST, None, SAVED), executions=(HERE,)))
    assert isinstance(claim, Claim) and claim.resumes == 1


def test_decide__state_that_is_not_here_whole__claims_anew() -> None:
    claim = only(snapshot_of(metered(LOST, None, SAVED), executions=(replace(HERE, resumes=0),)))
    assert isinstance(claim, Claim) and claim.resumes == 0
    later = replace(metered(LOST, None, SAVED), gather_at=NOW + 9)
    claim = only(snapshot_of(later))
    assert isinstance(claim, Claim) and claim.resumes == 0


@pytest.mark.parametrize(
    ("resume", "judged", "resumes"),
    [
        ("unjudged", False, 1),
        ("unjudged", True, 0),
        ("always", False, 1),
        ("always", True, 1),
        ("never", False, 0),
        ("never", True, 0),
    ],
)
def test_decide__setting_resume__says_which_units_go_on_from_a_strangers_state(
    resume: str, judged: bool, resumes: int
) -> None:
    config = replace(CONFIG, resume=resume, judges={JUDGE: TrustedJudge()})  # type: ignore[arg-type]
    terms = {"judge": JUDGE, "flags": TermsFlag.PROVEN, "challenge_window": 3_600} if judged else {}
    won = replace(LOST, mark=NOW, rate=10**15)
    job = metered(won, Best(node=ME, key=9), SAVED, match_window=12, **terms)
    found = only(snapshot_of(job, executions=(HERE,)), config)
    assert isinstance(found, Ack) and found.resumes == resumes
    gather = only(snapshot_of(job), config)
    assert isinstance(gather, Gather) and gather.saved == ((SAVED,) if resumes else ())


@st.composite
def resumables(draw: st.DrawFn, state: State, *, led: bool) -> tuple[Unit, list[Saved], list[Execution]]:
    """Draw a unit, the states of its attempts, and this machine's attempts at it: mostly those that fit its course."""
    waits = state is State.OPEN
    unit = replace(
        OPEN if waits else RESUMABLE,
        state=state,
        attempts=draw(evenly([2, 2, 1, 0] if waits else [2, 1])),
        resume=draw(st.integers(0, 3)),
        mark=NOW + draw(evenly([0, 0, -20, 9] if waits else [800, 800, 60, 0])) if led or not waits else 0,
        seconds=draw(st.sampled_from([0, 0, 90, 900])),
    )
    attempts = draw(st.lists(st.integers(1, 8), unique=True, max_size=4))
    saved = [Saved(one, OTHER, draw(st.integers(1, 900)), ROOT) for one in attempts]
    key = LeaseKey(ID, 0, unit.attempts + waits)
    stage = Stage.GATHERED if waits else draw(evenly([Stage.WORKING, Stage.WORKING, Stage.GATHERED, Stage.REFUSED]))
    executions = [Execution(key, stage, begun=True, offered=ROOT)]
    if draw(evenly([True, True, True, False])):
        # One state is whole here that the unit can go on from.
        at = draw(st.integers(1, max(1, unit.attempts)))
        saved = [Saved(at, OTHER, draw(st.sampled_from([60, 540])), ROOT), *(one for one in saved if one.attempt != at)]
        unit = replace(unit, resume=0 if waits else draw(st.sampled_from([at, 0])))
        executions = [replace(executions[0], resumes=at)]
    if draw(evenly([True, False, False, False])):
        keys = st.builds(LeaseKey, st.just(ID), st.just(0), st.integers(1, 3))
        changed = st.builds(
            Execution,
            keys | st.just(key),
            st.sampled_from(list(Stage)),
            begun=st.booleans(),
            offered=st.sampled_from([None, ROOT]),
            resumes=st.integers(0, 8),
        )
        executions = draw(st.lists(changed, max_size=2, unique_by=lambda one: one.key))
    return unit, saved, executions


configs = st.builds(
    lambda resume, lead: replace(CONFIG, resume=resume, lead=lead),
    st.sampled_from(["unjudged", "always", "never"]),
    st.sampled_from([0.0, 5.0, 60.0]),
)


@pytest.mark.hypothesis
@pytest.mark.parametrize(
    ("state", "led", "resuming", "others"),
    [
        (State.OPEN, True, (Ack,), ()),
        (State.OPEN, False, (Claim,), ()),
        (State.RUNNING, False, (StartRun,), (Checkpoint, Decline, GiveUp)),
        (State.CLOSING, False, (), (HandIn,)),
    ],
)
def test_decide__any_unit__resumes_only_from_what_is_here_and_saves_only_while_it_runs(
    state: State, led: bool, resuming: tuple[type, ...], others: tuple[type, ...]
) -> None:
    seen: Counter[type] = Counter()
    resumed: Counter[type] = Counter()

    @given(
        resumables(state, led=led),
        configs,
        evenly([NOW, NOW, NOW, NOW, NOW + 100, NOW + 780, NOW + 1_000, NOW - 50]),
        st.integers(0, 30),
        st.sampled_from([0, 0, NOW, NOW + 9]),
    )
    def resumes(
        drawn: tuple[Unit, list[Saved], list[Execution]], config: Config, now: int, later: int, gather_at: int
    ) -> None:
        steps = resume_what_is_here(*drawn, config, led, now + later, gather_at)
        seen.update(map(type, steps))
        resumed.update(type(one) for one in steps if isinstance(one, Ack | Claim) and one.resumes)
        resumed.update(type(one) for one in steps if isinstance(one, StartRun) and one.state is not None)

    resumes()
    all_came_about(resumed, resuming)
    all_came_about(seen, others)


def resume_what_is_here(
    unit: Unit, saved: list[Saved], done: list[Execution], config: Config, led: bool, now: int, gather_at: int
) -> list[Action | Skip]:
    """Return what is decided about a unit, which begins with nothing that is not here, and saves while it runs."""
    job = metered(unit, Best(node=ME, key=9) if led else None, *saved, match_window=12 if led else 0)
    job = replace(job, gather_at=gather_at)
    (lease,) = job.leases
    snapshot = snapshot_of(job, executions=tuple(done))
    here = {one.key: one for one in done}
    actions = decide(snapshot, config, now)
    for action in actions:
        if isinstance(action, Ack | Claim) and action.resumes:
            assert action.begins is not None
            mine = here[action.begins]
            assert mine.stage is Stage.GATHERED and mine.resumes == action.resumes
            assert action.resumes in {one.attempt for one in saved if one.attempt <= lease.unit.attempts}
            assert config.resume != "never"
        if isinstance(action, Checkpoint):
            assert lease.unit.state is State.RUNNING and now + config.lead < lease.unit.deadline_at - 1
            assert here[action.attempt].stage is Stage.WORKING and here[action.attempt].offered == action.root
        if isinstance(action, StartRun):
            assert action.topped == lease.unit.seconds
            assert action.state is None or action.state.attempt == lease.unit.resume
        # Whatever a state holds, nobody is told that the job cannot be run.
        if isinstance(action, Decline | GiveUp):
            assert here[action.attempt].stage in (Stage.REFUSED, Stage.BROKEN, Stage.WORKING)
    return actions


def test_decide__unit_topped_up__starts_with_its_seconds_and_its_state() -> None:
    unit = replace(RESUMABLE, attempts=2, resume=1, seconds=90)
    found = only(snapshot_of(metered(unit, None, Saved(2, ME, 5, b"x" * 32), SAVED)))
    assert isinstance(found, StartRun) and (found.topped, found.state) == (90, SAVED)
    short = only(snapshot_of(metered(unit, None, SAVED)), replace(CONFIG, max_seconds=unit_seconds() + 30))
    assert isinstance(short, StartRun) and short.topped == 30, "no longer than it would have been taken for"
    less = only(snapshot_of(metered(unit, None, SAVED)), replace(CONFIG, max_seconds=1))
    assert isinstance(less, StartRun) and less.topped == 0, "what its terms say is held to"


def unit_seconds() -> int:
    return lease_seconds(metered(OPEN).terms)


def test_decide__state_that_leaves_no_time__is_none_to_begin_with() -> None:
    """What it holds is not billed once more: it leaves the time of one checkpoint at least."""
    most = unit_seconds() - 60
    held, over = replace(SAVED, seconds=most), replace(SAVED, seconds=most + 1)
    found = only(snapshot_of(metered(LOST, None, held)))
    assert isinstance(found, Gather) and (found.saved, found.most) == ((held,), most)
    assert isinstance(only(snapshot_of(metered(LOST, None, over))), Claim)
    found = only(snapshot_of(metered(replace(LOST, seconds=100), None, over)))
    assert isinstance(found, Gather) and (found.saved, found.most) == ((over,), most + 100)


@pytest.mark.parametrize(
    ("kept", "most", "may"),
    [
        (Kept(60, 5, OTHER), 60, True),
        (Kept(60, 5, OTHER), 59, False),
        (Kept(60, 5, OTHER, 1, 40), 100, True),
        (Kept(60, 5, OTHER, 1, 41), 100, False),
        (Kept(61, 5, OTHER), 100, False),
        (Kept(60, 5, ME), 100, False),
        (Kept(), 100, False),
    ],
)
def test_may_begin_with__what_the_chain_has_kept__is_as_its_log_says_and_leaves_time(
    kept: Kept, most: int, may: bool
) -> None:
    assert may_begin_with(SAVED, kept, most) is may


# ---- gas ----


def test_decide__dear_gas__waits_until_a_checkpoint_secures_its_cost() -> None:
    """Without the loss that a unit may make: a program changes its state as often as it likes."""
    later = NOW + 400
    pay = saved_pay(metered(RESUMABLE).terms, RESUMABLE, 0, later)
    config = dear(pay * COIN // CHECKPOINT_GAS, max_loss=10**30)
    snapshot = snapshot_of(metered(RESUMABLE), executions=(SAVING,))
    found = only(snapshot, config, later - 10)
    assert isinstance(found, Skip) and found.reason is Reason.RUNNING and "it waits" in found.detail
    sent = only(snapshot, config, later)
    assert isinstance(sent, Checkpoint) and sent.ceiling(10**30) == config.gas_price
    # What the one before has secured is not counted again.
    again = snapshot_of(metered(RESUMABLE, None, Saved(1, ME, 60, b"x" * 32)), executions=(SAVING,))
    assert not isinstance(only(again, config, later), Checkpoint)
    assert isinstance(only(again, replace(config, max_loss=None), later), Checkpoint)
