"""worker.decide.actions: each action's key and call; worker.flights: what a call on disk is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.chain.port import Call
from hearth.market.abi import codec
from hearth.protocol import words
from hearth.protocol.gas import CLAIM_GAS
from hearth.protocol.types import SENTINEL, JobId, NodeId, Outcome
from hearth.protocol.words import TermsWords
from tests.worker import test_decide as decided
from tests.worker.test_watch import Scripted
from worker.decide import (
    Abort,
    Ack,
    Action,
    Beat,
    Caller,
    ChainAction,
    Checkpoint,
    Claim,
    Close,
    Decline,
    Finish,
    Gather,
    GiveUp,
    HandIn,
    Kind,
    LeaseKey,
    LocalStep,
    Propose,
    ReadSpec,
    Reason,
    Saved,
    SetAside,
    Settle,
    Skip,
    StartRun,
    SubmitResult,
    Withdraw,
)
from worker.flights import read_call

ID, OTHER = decided.ID, JobId(b"\xbb" * 32)
KEY = LeaseKey(ID, 3, 2)
A, B = "aa" * 32, "bb" * 32
PAYOUT = "0x" + "99" * 20
RESULT, REPORT = b"\x01" * 32, b"\x02" * 32

SAVED = Saved(1, NodeId(9), 60, RESULT)

# Journals on disk hold these strings: a key that changed would be signed for a second time.
KEYS: list[tuple[ChainAction, str]] = [
    (Beat(NodeId(3), 1_800_000_000), "beat/3/1800000000"),
    (Beat(NodeId(3), 0), "beat/3/0"),
    (Propose(ID, 3, 1, 2), f"propose/{A}/3/1/2"),
    (Ack(ID, 3, 1, 5), f"ack/{A}/3/1"),
    (Claim(ID, 3, 1, 5, 3), f"claim/{A}/3/3/1"),
    (Claim(ID, 3, 0, 5, SENTINEL), f"claim/{A}/next/3/0"),
    (Claim(ID, 5, 0, 5, SENTINEL, behind=2), f"claim/{A}/next/3/2"),
    (Checkpoint(KEY, RESULT, 1), f"checkpoint/{A}/3/2/1/{RESULT.hex()}"),
    (SubmitResult(KEY, RESULT, REPORT, Outcome.OK, 7), f"submit/{A}/3/2"),
    (Finish(KEY, RESULT, REPORT, Outcome.OK, 7), f"finish/{A}/3/2"),
    (Finish(KEY, RESULT, REPORT, Outcome.OK, 7, Claim(ID, 4, 0, 5, SENTINEL)), f"finish/{A}/3/2"),
    (Decline(KEY, REPORT, Outcome.BAD_INPUT), f"decline/{A}/3/2"),
    (GiveUp(KEY, REPORT), f"give_up/{A}/3/2"),
    (Settle(((ID, 3),)), f"settle/{A}:3"),
    (Settle(((ID, 3), (OTHER, 0))), f"settle/{A}:3,{B}:0"),
    (Close(ID, 3), f"close/{A}/3"),
    (Withdraw(7, 100), "withdraw/100/7"),
]


@pytest.mark.parametrize(("action", "key"), KEYS)
def test_key__each_action__is_what_journals_hold(action: ChainAction, key: str) -> None:
    assert action.key() == key


def test_key__every_kind__is_pinned() -> None:
    assert {action.kind for action, _ in KEYS} == set(Kind)


@pytest.mark.parametrize("action", [action for action, _ in KEYS])
def test_begins__ack_and_claim__name_the_next_attempt_and_others_none(action: ChainAction) -> None:
    wanted = LeaseKey(ID, 3, 2) if action.kind in (Kind.ACK, Kind.CLAIM) else None
    if isinstance(action, Claim) and action.call_index == SENTINEL:
        wanted = LeaseKey(ID, 3 + action.behind, 1)
    if isinstance(action, Finish) and action.next is not None:
        wanted = LeaseKey(ID, 4, 1)
    assert action.begins == wanted


class Market:
    """A market whose jobs are posted by their salt, and the caller that a worker of it is."""

    def __init__(self) -> None:
        self.market = Scripted().market
        self.posted: dict[JobId, TermsWords] = {}
        self.caller = Caller(self.market.calls, decided.ME, PAYOUT, self.posted.__getitem__)

    def job(self, salt: int) -> JobId:
        terms = words.pack_terms(replace(decided.TERMS, salt=salt))
        job = self.market.job_id(terms)
        self.posted[job] = terms
        return job

    def sees(self, action: ChainAction) -> dict[str, Any]:
        """Return the arguments that the contract gets."""
        call = action.call(self.caller)
        contract = next(name for name, at in self.market.network.contracts.items() if at == call.to)
        decoded = codec(contract).decode_input(call.data)
        assert decoded is not None
        return {"function": f"{contract}.{decoded[0]}"} | decoded[1]


def test_call__each_action__reaches_the_contract_with_its_arguments() -> None:
    market = Market()
    job, other = market.job(1), market.job(2)
    terms, second = market.posted[job], market.posted[other]
    key, nobody = LeaseKey(job, 3, 2), "0x" + "00" * 20
    session = {"session_key": bytes(32), "resume_from": 0}
    registry = "JobRegistry"
    for action, wanted in (
        (Beat(decided.ME, 9), {"function": "NodeRegistry.beat", "node": decided.ME}),
        (
            Propose(job, 3, 1, 0),
            {"function": f"{registry}.propose", "terms": terms, "index": 3, "node": decided.ME, "payee": nobody},
        ),
        (Ack(job, 3, 1, 5), {"function": f"{registry}.ack", "terms": terms, "index": 3} | session),
        (
            Ack(job, 3, 1, 5, 1),
            {"function": f"{registry}.ack", "terms": terms, "index": 3, "session_key": bytes(32), "resume_from": 1},
        ),
        (
            Claim(job, 3, 2, 5, 3, 2),
            {"function": f"{registry}.claim", "terms": terms, "index": 3, "node": decided.ME}
            | {"session_key": bytes(32), "resume_from": 2},
        ),
        (
            Checkpoint(key, RESULT, 1),
            {"function": f"{registry}.checkpoint", "job_id": job, "index": 3, "root": RESULT},
        ),
        (
            Claim(job, 3, 1, 5, SENTINEL),
            {"function": f"{registry}.claim", "terms": terms, "index": SENTINEL, "node": decided.ME} | session,
        ),
        (
            SubmitResult(key, RESULT, REPORT, Outcome.EXIT, 7),
            {"function": f"{registry}.submit", "job_id": job, "index": 3, "result": RESULT, "report": REPORT}
            | {"outcome": int(Outcome.EXIT), "used": 7},
        ),
        *(
            (
                Finish(key, RESULT, REPORT, Outcome.EXIT, 7, following),
                {"function": f"{registry}.finish", "terms": terms, "index": 3, "result": RESULT, "report": REPORT}
                | {"outcome": int(Outcome.EXIT), "used": 7, "claims": claims, "session_key": bytes(32)},
            )
            for following, claims in ((None, False), (Claim(job, 4, 0, 5, SENTINEL), True))
        ),
        (
            Decline(key, REPORT, Outcome.BAD_INPUT),
            {"function": f"{registry}.decline", "terms": terms, "index": 3}
            | {"outcome": int(Outcome.BAD_INPUT), "report": REPORT},
        ),
        (Settle(((job, 3),)), {"function": f"{registry}.settle", "terms": terms, "index": 3, "payee": nobody}),
        (
            Settle(((job, 3), (other, 0))),
            {"function": f"{registry}.settle_batch", "items": ((terms, 3), (second, 0)), "payee": nobody},
        ),
        (Close(job, 3), {"function": f"{registry}.close", "terms": terms, "index": 3, "payee": nobody}),
        (Withdraw(7, 100), {"function": "Escrow.withdraw", "to": PAYOUT, "amount": 7}),
    ):
        assert market.sees(action) == wanted


indices = st.integers(0, (1 << 24) - 1)
batches = st.lists(st.tuples(st.integers(0, 9), indices), min_size=1, max_size=64, unique=True)


@pytest.mark.hypothesis
@given(
    indices, st.integers(0, 8), st.lists(st.tuples(st.integers(0, 9), indices), min_size=1, max_size=64, unique=True)
)
def test_read_call__call_of_any_action__names_its_leases(
    index: int, attempts: int, settled: list[tuple[int, int]]
) -> None:
    market = Market()
    job = market.job(1)
    items = tuple((market.job(salt), number) for salt, number in settled)
    key = LeaseKey(job, index, attempts)
    cases: list[tuple[ChainAction, tuple[Kind, tuple[tuple[JobId, int], ...]]]] = [
        (Propose(job, index, attempts, 1), (Kind.PROPOSE, ((job, index),))),
        (Ack(job, index, attempts, 5), (Kind.ACK, ((job, index),))),
        (Claim(job, index, attempts, 5, index), (Kind.CLAIM, ((job, index),))),
        (Claim(job, index, attempts, 5, SENTINEL), (Kind.CLAIM, ((job, SENTINEL),))),
        (SubmitResult(key, RESULT, REPORT, Outcome.OK, 0), (Kind.SUBMIT, ((job, index),))),
        (Finish(key, RESULT, REPORT, Outcome.OK, 0), (Kind.FINISH, ((job, index),))),
        (Decline(key, REPORT, Outcome.BAD_INPUT), (Kind.DECLINE, ((job, index),))),
        (GiveUp(key, REPORT), (Kind.GIVE_UP, ((job, index),))),
        (Checkpoint(key, RESULT, 1), (Kind.CHECKPOINT, ((job, index),))),
        (Settle(items), (Kind.SETTLE, items)),
        (Close(job, index), (Kind.CLOSE, ((job, index),))),
        (Beat(decided.ME, 0), (Kind.BEAT, ())),
        (Withdraw(7, 1), (Kind.WITHDRAW, ())),
    ]
    keys = [action.key() for action, _ in cases]
    assert len(set(keys)) == len(keys)
    for action, flight in cases:
        assert read_call(action.call(market.caller), market.market) == flight
        assert (action.kind, action.leases) == flight


def test_read_call__finish_that_takes_the_next_lease__names_both() -> None:
    """A restarted worker knows of the claim by the bytes of the call alone."""
    market = Market()
    job = market.job(1)
    action = Finish(LeaseKey(job, 3, 2), RESULT, REPORT, Outcome.OK, 0, Claim(job, 4, 0, 5, SENTINEL))
    assert read_call(action.call(market.caller), market.market) == (Kind.FINISH, ((job, 3), (job, SENTINEL)))
    assert action.leases == ((job, 3), (job, SENTINEL))


def test_spare_gas__finish_that_takes_the_next_lease__holds_a_claim_that_no_estimate_saw() -> None:
    plain = Finish(KEY, RESULT, REPORT, Outcome.OK, 0)
    assert (plain.spare_gas, replace(plain, next=Claim(ID, 4, 0, 5, SENTINEL)).spare_gas) == (0, CLAIM_GAS)
    assert {action.spare_gas for action, _ in KEYS if not isinstance(action, Finish)} == {0}


def test_read_call__call_of_another_program__is_nothing() -> None:
    market = Market()
    calls, jobs = market.market.calls, market.market.network.jobs
    gap = Call(decided.NODE.operator, b"", 0, "cancel")
    unknown = Call(jobs, b"\x00" * 4, 0, "jobs.unknown")
    for call in (gap, unknown, calls.exit_start(decided.ME), calls.accept(decided.TERMS, 0)):
        assert read_call(call, market.market) is None


class Hands:
    """Hands that write down what they are told."""

    def __init__(self) -> None:
        self.did: list[tuple[Any, ...]] = []

    def read_spec(self, *told: Any) -> None:
        self.did.append(("read", *told))

    def gather(self, *told: Any) -> None:
        self.did.append(("gather", *told))

    def start_attempt(self, *told: Any) -> None:
        self.did.append(("start", *told))

    def stop_attempt(self, *told: Any) -> None:
        self.did.append(("stop", *told))

    def hand_in(self, *told: Any) -> None:
        self.did.append(("hand in", *told))

    def set_aside(self, *told: Any) -> None:
        self.did.append(("aside", *told))


@pytest.mark.parametrize(
    ("step", "did"),
    [
        (ReadSpec(ID), ("read", ID)),
        (Gather(KEY, 1_000), ("gather", KEY, 100, (), 0)),
        (Gather(KEY, 800, (SAVED,), 70), ("gather", KEY, 0, (SAVED,), 70)),
        (StartRun(KEY, 1_000, 2, 950), ("start", KEY, 100, 2, 50, 0, None)),
        (StartRun(KEY, 1_000, 2, 950, 60, SAVED), ("start", KEY, 100, 2, 50, 60, SAVED)),
        (Abort(KEY, "lost"), ("stop", KEY, "lost")),
        (HandIn(KEY, 950, 7), ("hand in", KEY, 50, 7)),
        (HandIn(KEY, 800), ("hand in", KEY, 0, 0)),
        (SetAside(KEY, "over"), ("aside", KEY, "over")),
    ],
)
def test_perform__each_local_step__asks_the_hands_once(step: LocalStep, did: tuple[Any, ...]) -> None:
    hands = Hands()
    step.perform(hands, 900)
    assert hands.did == [did]
    assert not hasattr(step, "call")


@pytest.mark.parametrize(
    ("step", "jobs"),
    [
        (Beat(NodeId(3), 0), set()),
        (Withdraw(7, 100), set()),
        (Settle(((ID, 3), (OTHER, 0))), {ID, OTHER}),
        (Claim(ID, 3, 1, 5, SENTINEL), {ID}),
        (Decline(KEY, REPORT, Outcome.BAD_INPUT), {ID}),
        (GiveUp(KEY, REPORT), {ID}),
        (ReadSpec(OTHER), {OTHER}),
        (Abort(KEY, ""), {ID}),
        (Skip(OTHER, None, Reason.PAUSED), {OTHER}),
    ],
)
def test_concerns__each_step__is_about_its_jobs_only(step: Action | Skip, jobs: set[JobId]) -> None:
    assert {job for job in (ID, OTHER, JobId(bytes(32))) if step.concerns(job)} == jobs
