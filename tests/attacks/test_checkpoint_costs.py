"""Attack: what checkpoints and top-ups of a stranger's job cost the worker that runs it."""

from __future__ import annotations

from dataclasses import replace

from hearth.protocol import formulas
from hearth.protocol.gas import CHECKPOINT_GAS, CLAIM_GAS, FINISH_GAS, PAID_CHECKPOINT_GAS, SETTLE_GAS
from hearth.protocol.types import JobId, Outcome, State, Unit
from tests.worker.test_decide import CONFIG, ME, NODE, NOW, OPEN, dear, job_of, only, reason, snapshot_of
from tests.worker.test_decide_checkpoints import LOST, NEXT, RESUMABLE, SAVED, SAVING, metered
from worker.decide import Checkpoint, Claim, Execution, Reason, Settle, Skip, Stage, decide
from worker.decide.open import STATE_SECONDS
from worker.decide.worth import cost, most_pay, settle_pay

COIN = 10**18


def test_checkpoint__gas_dearer_than_all_that_the_unit_pays__is_left_out() -> None:
    """It earns nothing; the unit was taken when gas was cheap, and its program changes its state each time."""
    job = metered(RESUMABLE)
    pays = most_pay(job.terms, RESUMABLE.rate)
    price = 10 * pays * COIN // CHECKPOINT_GAS
    config = dear(price, max_loss=0)
    assert reason(snapshot_of(metered(OPEN)), config) is Reason.UNPROFITABLE, "it would not be taken at this price"
    found = only(snapshot_of(job, executions=(SAVING,)), config)
    if isinstance(found, Checkpoint):
        checkpoints = formulas.lease_seconds(job.terms) // job.terms.checkpoint_every
        spent = checkpoints * cost(CHECKPOINT_GAS, config)
        print(
            f"{checkpoints} checkpoints cost {spent / pays:.0f} times what the unit pays; bid: {found.ceiling(10**12)}"
        )
    assert not isinstance(found, Checkpoint)


def test_settle__result_made_of_others_checkpoints__is_reckoned_with_the_gas_that_it_uses() -> None:
    """Each kept checkpoint that a settle pays costs its sender 36,500 gas: more than twice the rest for seven."""
    done = Unit(
        state=State.SUBMITTED, node=ME, rate=10**15, started=NOW - 300, mark=NOW - 200, attempts=8, outcome=Outcome.OK
    )
    resumed = replace(done, resume=7)
    pay = settle_pay(metered(done).terms, done, NOW)
    gas = SETTLE_GAS + 7 * PAID_CHECKPOINT_GAS
    price = 2 * pay * COIN // gas
    config = dear(price, max_loss=0)
    found = only(snapshot_of(metered(resumed)), config)
    if isinstance(found, Settle):
        print(f"it settles for {pay}, and its gas costs {cost(gas, config)}: a loss of {cost(gas, config) - pay}")
    assert isinstance(found, Skip) and found.reason is Reason.AWAITS_KEEPER


def test_take__unit_topped_up_past_max_runtime__is_left_alone() -> None:
    """The submitter's own node took attempt 1, was topped up by 29 days, and gave up: the next lease has them."""
    config = replace(CONFIG, max_seconds=3_600)
    job = metered(replace(OPEN, attempts=1, seconds=29 * 86_400), deadline=NOW + 60 * 86_400)
    assert formulas.lease_seconds(formulas.topped(job.terms, job.leases[0].unit)) > 29 * 86_400
    found = only(snapshot_of(job), config)
    if isinstance(found, Claim):
        print("claimed: a lease of 29 days 10 min where accept.max_runtime is 1 h")
    assert isinstance(found, Skip) and found.reason is Reason.TOO_LONG


def test_take__lost_unit_that_was_topped_up__is_as_profitable_as_its_pay_says() -> None:
    """Ten times the time is ten times the pay and ten times the checkpoints; nobody resumes it, and who left one for
    it is not paid."""
    plain = metered(replace(OPEN, attempts=1))
    topped = metered(replace(OPEN, attempts=1, seconds=9 * plain.terms.max_seconds), deadline=NOW + 90_000)
    pay = most_pay(plain.terms, 10**15)
    gas = CLAIM_GAS + FINISH_GAS + CHECKPOINT_GAS * (plain.terms.max_seconds // 60)
    config = dear(pay * COIN // (2 * gas), max_loss=0)
    assert isinstance(only(snapshot_of(plain), config), Claim), "at half of its pay"
    found = only(snapshot_of(topped), config)
    if isinstance(found, Skip):
        whole = most_pay(formulas.topped(topped.terms, topped.leases[0].unit), 10**15)
        print(f"{found.reason}: {found.detail}; its time pays {whole}")
    assert isinstance(found, Claim)


def test_take__state_that_does_not_come__keeps_no_slot_from_a_unit_that_can_be_claimed() -> None:
    """Of a stranger's unit that anybody may claim meanwhile: nothing is promised, and nothing is paid for the wait."""
    node = replace(NODE, offer=replace(NODE.offer, slots=1), state=replace(NODE.state, beat=NOW + STATE_SECONDS))
    waits = metered(LOST, None, SAVED)
    honest = replace(job_of(OPEN), id=JobId(b"\xbb" * 32))
    kept_from = []
    for second in range(0, STATE_SECONDS, 100):
        snapshot = snapshot_of(waits, honest, node=node, executions=(Execution(NEXT, Stage.GATHERING),))
        steps = [step for step in decide(snapshot, CONFIG, NOW + second) if isinstance(step, Skip | Claim)]
        kept_from += [(second, str(step.reason)) for step in steps if step.job == honest.id and isinstance(step, Skip)]
    print(f"a unit that pays is left alone: {kept_from}")
    assert not kept_from
