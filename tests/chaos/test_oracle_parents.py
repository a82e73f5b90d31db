"""Control of the oracle for jobs that wait for others: what an unlock pays, and when it is an end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth.chain.port import Log
from hearth.market.events import Cancelled, Event, JobPosted, Split, Unlocked
from hearth.protocol import formulas, words
from hearth.protocol.types import JobId, State, Unit
from tests.chaos import oracle
from tests.chaos.oracle import Facts
from tests.kit import build

JOBS, KEEPER = "0x" + "ab" * 20, "0x" + "ee" * 20
JOB = JobId(b"\x07" * 32)
TERMS = build.terms(parents_hash=b"\x01" * 32)
FEE = TERMS.keeper_fee
OPENED, CANCELLED = Unit(state=State.OPEN, started=5), Unit(state=State.CANCELLED)


def log(block: int) -> Log:
    return Log(JOBS, (), b"", block, bytes(32), bytes([block]) * 32, 0)


def split(block: int, **amounts: int) -> Split:
    accounts = {"submitter": TERMS.submitter, "keeper": KEEPER}
    packed = tuple(amount << 160 | int(accounts[name], 16) for name, amount in amounts.items())
    return Split(log(block), JOBS, formulas.lock_key(TERMS.submitter), packed)


def facts(*events: Event, unit: Unit = CANCELLED, **changes: Any) -> Facts:
    posted = JobPosted(log(1), JOB, TERMS.submitter, words.pack_terms(TERMS), (), 1, 0)
    made = Facts(
        jobs_contract=JOBS,
        treasury="0x" + "77" * 20,
        posted={JOB: TERMS},
        events=(posted, *events),
        seconds={number: 1_000 + number for number in range(9)},
        units={JOB: unit},
        owners={},
        sent=(),
        heartbeats="",
        verification={},
    )
    return replace(made, **changes)


HELD = formulas.escrow_at_post(TERMS)
REFUNDED = (
    Unlocked(log(2), JOB, 0, words.pack_unit(CANCELLED), HELD - FEE),
    split(2, submitter=HELD - FEE, keeper=FEE),
)
STARTED = (Unlocked(log(2), JOB, 0, words.pack_unit(OPENED), 0), split(2, keeper=FEE))


def cancelled(refund: int) -> tuple[Event, Event]:
    return Cancelled(log(3), JOB, 0, words.pack_unit(CANCELLED), refund), split(3, submitter=refund)


@pytest.mark.parametrize(
    "events", [REFUNDED, (*STARTED, *cancelled(HELD - FEE)), cancelled(HELD)], ids=["refunded", "opened", "cancelled"]
)
def test_judge__job_that_waited_and_ended_as_the_model__is_in_order(events: tuple[Event, ...]) -> None:
    assert oracle.judge(facts(*events)) == []


@pytest.mark.parametrize(
    ("events", "rule"),
    [
        ((REFUNDED[0], split(2, submitter=HELD - 1, keeper=1)), "pays_as_the_model"),
        ((STARTED[0], split(2, keeper=FEE + 1), *cancelled(HELD - FEE)), "pays_as_the_model"),
        ((*STARTED, *cancelled(HELD)), "pays_as_the_model"),
        (cancelled(HELD - FEE), "pays_as_the_model"),
        ((*REFUNDED, *cancelled(0)), "ends_once"),
        (STARTED, "lost"),
    ],
)
def test_judge__unlock_that_pays_or_ends_otherwise__is_seen(events: tuple[Event, ...], rule: str) -> None:
    said = oracle.judge(facts(*events))
    assert said and all(one.startswith(f"{rule}: ") or rule == "ends_once" for one in said), said
    assert any(one.startswith(f"{rule}: ") for one in said), said


def test_judge__job_that_an_unlock_opened__is_not_ended_by_it() -> None:
    (lost,) = oracle.judge(facts(*STARTED, unit=OPENED))
    assert lost.startswith("lost: ") and lost.endswith("is OPEN")
