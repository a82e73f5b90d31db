"""worker.decide: a result settles itself where that pays for its gas, and waits where it does not.

What is not worth settling is left to keepers, whom the job's keeper fee pays (`worker.decide.own._settle`). A submitter
whose program ends at once would have their work done by the node else: 58,000 gas for a second's pay, up to all of its
cap.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import formulas
from hearth.protocol.gas import CLAIM_GAS, FINISH_CLAIMS_GAS, FINISH_GAS, PAID_CHECKPOINT_GAS, SUBMIT_GAS
from hearth.protocol.types import COIN, Billing, Outcome, State
from tests.worker import test_following as following
from tests.worker.test_decide import ID, KEY, NODE, NOW, PAYS, POLICY, RUNNING, dear, job_of, only, snapshot_of
from tests.worker.test_decide_checkpoints import SAVED, metered
from worker.decide import (
    Claim,
    Config,
    Execution,
    Finish,
    Job,
    Lease,
    LeaseKey,
    Reason,
    Settle,
    Skip,
    Snapshot,
    Stage,
    SubmitResult,
    decide,
)
from worker.decide.worth import settle_pay

DONE = Execution(KEY, Stage.DONE, Outcome.OK, b"\x01" * 32, b"\x02" * 32)
MORE_GAS = FINISH_GAS - SUBMIT_GAS
"""What a settlement uses that a submit does besides."""
DUST = replace(RUNNING, started=NOW - 1)
WAITS = replace(DUST, state=State.SUBMITTED, outcome=Outcome.OK, mark=NOW)


def brings(job: Job, seconds: int = 1) -> int:
    """Return what settling a unit of a job brings that billed so many seconds."""
    return settle_pay(job.terms, replace(WAITS, started=NOW - seconds), NOW)


def dust(seconds: int = 1) -> Job:
    return job_of(replace(DUST, started=NOW - seconds), billing=Billing.METERED, keeper_fee=8)


@pytest.mark.parametrize("seconds", [1, 5])
def test_decide__result_that_bills_dust__is_not_settled_for_more_gas_than_that_brings(seconds: int) -> None:
    """The control is the same unit as a submitted one, of a node on probation say: its settlement is left alone."""
    job = dust(seconds)
    price = 3 * brings(job, seconds) * COIN // MORE_GAS
    control = only(snapshot_of(replace(job, leases=(Lease(0, replace(WAITS, started=NOW - seconds)),))), dear(price))
    assert isinstance(control, Skip), "what was submitted is not settled at that price"
    found = only(snapshot_of(job, executions=(DONE,)), dear(price))
    assert found == SubmitResult(KEY, DONE.result, DONE.report, Outcome.OK, 0)


def test_decide__result_that_pays_for_its_settlement__settles_itself_up_to_that_price() -> None:
    job = dust()
    most = brings(job) * COIN // MORE_GAS
    snapshot = snapshot_of(job, executions=(DONE,))
    assert isinstance(only(snapshot, dear(most)), Finish)
    assert isinstance(only(snapshot, dear(most + 1)), SubmitResult)
    assert isinstance(only(snapshot, dear(most + 1, max_loss=brings(job))), Finish), "a loss that is allowed"
    for unasked in ({"coin_price": 0}, {"max_loss": None}):
        assert isinstance(only(snapshot, dear(most * 99, **unasked)), Finish), "where the provider does not ask"


def test_decide__result_made_of_anothers_state__is_reckoned_with_what_that_costs_and_left() -> None:
    """It ran for 100 s, of which its state left 60; its settlement pays for the state besides."""
    unit = replace(RUNNING, attempts=2, resume=1)
    job = metered(unit, None, replace(SAVED, seconds=540), keeper_fee=0)
    done = replace(DONE, key=LeaseKey(ID, 0, 2))
    pay = formulas.pay_at_settle(job.terms, replace(unit, state=State.SUBMITTED, mark=NOW), 540)
    most = (pay - formulas.fee_of(pay, POLICY)) * COIN // (MORE_GAS + PAID_CHECKPOINT_GAS)
    assert isinstance(only(snapshot_of(job, executions=(done,)), dear(most)), Finish)
    assert isinstance(only(snapshot_of(job, executions=(done,)), dear(most + 1)), SubmitResult)
    failed = replace(done, outcome=Outcome.TIMEOUT)
    assert isinstance(only(snapshot_of(job, executions=(failed,)), dear(most + 1)), Finish), "it pays for none"


# ---- the next unit ----


def ending(price: int) -> tuple[list[Finish | SubmitResult], list[Claim]]:
    """Return how a result of dust ends at a gas price whose array has paid well before, and what is claimed."""
    job = following.array(billing=Billing.METERED, keeper_fee=0)
    job = replace(job, leases=(Lease(2, DUST),), paid=(PAYS,) * 9)
    steps = decide(following.finishing(job), dear(price), NOW)
    return [s for s in steps if isinstance(s, Finish | SubmitResult)], [s for s in steps if isinstance(s, Claim)]


def test_decide__result_of_dust_with_a_next_unit__settles_itself_for_the_claim_that_it_spares() -> None:
    """One call instead of a submit and a claim uses 13,000 gas more, not 58,000."""
    pay = brings(following.array(billing=Billing.METERED, keeper_fee=0))
    spared = FINISH_CLAIMS_GAS - CLAIM_GAS - SUBMIT_GAS
    (found,), claims = ending(pay * COIN // spared)
    assert isinstance(found, Finish) and found.next is not None and not claims
    (found,), claims = ending(pay * COIN // spared + 1)
    assert isinstance(found, SubmitResult) and not claims, "its slot is free once that is mined"


def test_decide__results_of_dust_and_a_free_slot__claim_the_next_unit_in_its_own_place() -> None:
    """A result that is submitted takes no unit: the claim beside it is for the next one, not for the one behind."""
    job = following.array(billing=Billing.METERED, keeper_fee=0)
    job = replace(job, leases=(Lease(2, DUST),), paid=(PAYS,) * 9)
    node = replace(NODE, offer=replace(NODE.offer, slots=2), state=replace(NODE.state, busy=1, bond=following.BOND))
    price = brings(job) * COIN // (FINISH_CLAIMS_GAS - CLAIM_GAS - SUBMIT_GAS) + 1
    steps = decide(following.finishing(job, node), dear(price), NOW)
    assert [type(step) for step in steps] == [SubmitResult, Claim]
    assert [step.behind for step in steps if isinstance(step, Claim)] == [0]


# ---- not for ever ----


def crowd(waiting: int, done: int, **changes: object) -> Snapshot:
    """Return a node with dust of one array: so many results that wait for their settlement, and so many to come."""
    units = [WAITS] * waiting + [DUST] * done
    leases = tuple(Lease(index, unit) for index, unit in enumerate(units))
    job = replace(following.array(billing=Billing.METERED, keeper_fee=0), leases=leases)
    job = replace(job, header=replace(following.HEADER, touched=9), paid=(0,))
    executions = tuple(replace(DONE, key=LeaseKey(ID, index, 1)) for index in range(waiting, waiting + done))
    node = replace(NODE, state=replace(NODE.state, busy=done))
    return snapshot_of(job, **{"node": node, "executions": executions, **changes})


DEAR = dear(PAYS * 9 * COIN)


def ends(snapshot: Snapshot, config: Config = DEAR) -> list[str]:
    return [type(s).__name__ for s in decide(snapshot, config, NOW) if isinstance(s, Finish | SubmitResult | Settle)]


def test_decide__dust_that_would_fill_a_batch__settles_itself() -> None:
    assert ends(crowd(61, 2)) == ["SubmitResult"] * 2
    assert ends(crowd(61, 3)) == ["SubmitResult"] * 2 + ["Finish"]
    assert ends(crowd(63, 1)) == ["Finish"]
    assert ends(crowd(64, 1)) == ["SubmitResult", "Settle"], "those that wait are settled, and none is left"


def test_decide__dust_that_would_bind_a_quarter_of_the_stake__settles_itself() -> None:
    stake = 4 * 3 * formulas.bond(crowd(1, 2).jobs[0].terms)
    assert ends(crowd(1, 2, node=replace(NODE, stake=stake))) == ["SubmitResult"] * 2
    assert ends(crowd(1, 2, node=replace(NODE, stake=stake - 1))) == ["SubmitResult", "Finish"]


def test_decide__dust_of_a_node_that_leaves_or_drains__settles_itself() -> None:
    assert ends(crowd(0, 2, node=replace(NODE, exit_at=NOW - 9))) == ["Finish"] * 2
    assert ends(crowd(0, 2), replace(DEAR, hold=Reason.DRAINING)) == ["Finish"] * 2
    assert ends(crowd(0, 2), replace(DEAR, hold=Reason.PAUSED)) == ["SubmitResult"] * 2
