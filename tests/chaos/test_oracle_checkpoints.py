"""Control of the oracle for a unit that was resumed and topped up: what its end pays for the checkpoint."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.market.events import (
    Checkpointed,
    CheckpointPaid,
    Event,
    JobPosted,
    Reclaimed,
    Settled,
    Split,
    Started,
    Submitted,
    ToppedUp,
)
from hearth.protocol import formulas, words
from hearth.protocol.types import Billing, JobId, Kept, NodeId, Outcome, State, Unit
from tests.chaos import oracle
from tests.chaos.oracle import Facts
from tests.chaos.test_oracle_parents import JOBS, log
from tests.kit import build

TERMS = build.terms(billing=Billing.METERED, checkpoint_every=2, max_seconds=600, max_attempts=3)
JOB = JobId(b"\x07" * 32)
POLICY = words.unpack_policy(TERMS.policy)
OWNERS = {1: "0x" + "11" * 20, 2: "0x" + "22" * 20}
TREASURY, KEEPER = "0x" + "77" * 20, "0x" + "ee" * 20
RATE = 10**18
FIRST = Unit(State.RUNNING, node=NodeId(1), rate=RATE, started=1_002, mark=2_000, attempts=1, resumable=True)
OPENED = Unit(State.OPEN, node=NodeId(1), started=1_004, attempts=1)
SECOND = replace(FIRST, node=NodeId(2), started=1_005, attempts=2, resume=1)
TOPPED = replace(SECOND, mark=2_300, seconds=300)
DONE = replace(TOPPED, state=State.SUBMITTED, outcome=Outcome.OK, mark=1_107)
ENDED = replace(DONE, state=State.SETTLED)
(DUE,) = formulas.checkpoint_pays(TERMS, DONE, {1: Kept(40, RATE, NodeId(1))})
PAY = formulas.pay_at_settle(TERMS, DONE)
FEE = formulas.fee_of(PAY, POLICY)
HELD = formulas.escrow_at_post(TERMS) + formulas.top_up_amount(TERMS, SECOND, 300)
REWARD = formulas.settle_reward(TERMS, 0)


def split(*shares: tuple[str, int]) -> Split:
    packed = tuple(amount << 160 | int(account, 16) for account, amount in shares)
    return Split(log(8), JOBS, formulas.lock_key(TERMS.submitter), packed)


def facts(paid: int, *, owners: dict[int, str] = OWNERS, rest: int = HELD - PAY - DUE.pay - REWARD) -> Facts:
    """Return a market whose one unit was lost, resumed, topped up and settled; `paid` went to the first owner."""
    word = words.pack_unit
    told: list[Event] = [
        JobPosted(log(1), JOB, TERMS.submitter, words.pack_terms(TERMS), (), 1, 0),
        Started(log(2), JOB, 0, NodeId(1), word(FIRST), bytes(32)),
        Checkpointed(log(3), JOB, 0, NodeId(1), word(FIRST), 40, b"\x01" * 32),
        Reclaimed(log(4), JOB, 0, NodeId(1), word(OPENED)),
        Started(log(5), JOB, 0, NodeId(2), word(SECOND), bytes(32)),
        ToppedUp(log(6), JOB, 0, NodeId(2), word(TOPPED), 1),
        Submitted(log(7), JOB, 0, NodeId(2), word(DONE), bytes(32), bytes(32)),
        Settled(log(8), JOB, 0, NodeId(2), word(ENDED), PAY, FEE),
    ]
    if 1 in owners:
        told += [CheckpointPaid(log(8), JOB, 0, NodeId(1), 1, DUE.pay, DUE.fee)]
        told += [split((owners[1], paid), (TREASURY, DUE.fee))]
    told += [split((owners[2], PAY - FEE), (TREASURY, FEE), (KEEPER, REWARD), (TERMS.submitter, rest))]
    return Facts(
        jobs_contract=JOBS,
        treasury=TREASURY,
        posted={JOB: TERMS},
        events=tuple(told),
        seconds={**{number: 1_000 + number for number in range(7)}, 7: 1_107, 8: 1_107},
        units={JOB: ENDED},
        owners=owners,
        sent=(),
        heartbeats="",
        verification={},
    )


def judged(given: Facts) -> list[str]:
    return [one for one in oracle.judge(given) if not one.startswith("slashes: ")]


def test_judge__checkpoint_paid_with_the_end_of_its_unit__is_in_order() -> None:
    assert DUE.pay > DUE.fee > 0
    assert judged(facts(DUE.pay - DUE.fee)) == []


def test_judge__checkpoint_of_a_node_that_left__stays_with_the_submitter() -> None:
    assert judged(facts(0, owners={2: OWNERS[2]}, rest=HELD - PAY - REWARD)) == []


@pytest.mark.parametrize("more", [-1, 1, DUE.fee - DUE.pay])
def test_judge__checkpoint_that_earned_another_sum__is_seen(more: int) -> None:
    (said,) = judged(facts(DUE.pay - DUE.fee + more))
    assert said.startswith("pays_as_the_model: Settled of")


def test_judge__what_was_topped_up_is_kept_back__is_seen() -> None:
    rest = HELD - PAY - DUE.pay - REWARD - formulas.top_up_amount(TERMS, SECOND, 300)
    assert any(one.startswith("pays_as_the_model") for one in judged(facts(DUE.pay - DUE.fee, rest=rest)))


def test_judge__checkpoint_paid_after_the_end_by_another_transaction__is_seen() -> None:
    given = facts(DUE.pay - DUE.fee)
    late = CheckpointPaid(log(3), JOB, 0, NodeId(1), 1, DUE.pay, DUE.fee)
    assert any(one.startswith("ends_once") for one in judged(replace(given, events=(*given.events, late))))
