"""What a worker risks on judged jobs: whom it trusts, how much it waits for, and what ends its waiting."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from hearth.protocol import formulas
from hearth.protocol.types import Header, Outcome, State, TermsFlag, Unit
from tests.worker.test_decide import (
    CONFIG,
    ID,
    JUDGE,
    KEY,
    NODE,
    NOW,
    OPEN,
    RUNNING,
    TERMS,
    WASM,
    job_of,
    only,
    reason,
    snapshot_of,
)
from worker.build import trusted_judges
from worker.decide import (
    Claim,
    Execution,
    Finish,
    Job,
    Lease,
    Reason,
    Settle,
    Skip,
    Stage,
    SubmitResult,
    TrustedJudge,
    decide,
)
from worker.decide.policy import refuse_terms
from worker.settings import Accept

DAY = 86_400
SETS = TrustedJudge("accept.attesters", frozenset({7}))
TRUSTING = replace(CONFIG, judges={JUDGE: SETS, "0x" + "45" * 20: TrustedJudge()})
ATTESTED = {"judge": JUDGE, "judge_data": 7, "challenge_window": 7_200, "flags": TermsFlag.PROVEN}
DISPUTED = {"judge": "0x" + "45" * 20, "challenge_window": 7_200}


@pytest.mark.parametrize(("named", "state"), [(ATTESTED, State.SUBMITTED), (DISPUTED, State.DISPUTED)])
def test_decide__units_that_wait_for_their_judge__have_paid_nothing_yet(named: dict[str, object], state: State) -> None:
    """Else a job whose units nobody ever confirms would be taken unit after unit."""
    aware = replace(TRUSTING, max_loss=0, coin_price=10**18, gas_price=2_000_000)
    terms = replace(TERMS, units=1_000, **named)  # type: ignore[arg-type]
    for count, taken in ((0, True), (1, False), (50, False)):
        held = tuple(Lease(index, replace(RUNNING, state=state, mark=NOW - 50)) for index in range(count))
        job = Job(ID, terms, held, header=Header(touched=count, opened=NOW - 500), spec=WASM)
        found = decide(snapshot_of(job), aware, NOW)
        assert sum(isinstance(one, Claim) for one in found) == taken, "one, however many slots are free"
        unprofitable = [one for one in found if isinstance(one, Skip) and one.reason == Reason.UNPROFITABLE]
        assert unprofitable, "what comes behind it is not taken in trust"


def _unproven(**changes: int) -> tuple[Job, Unit]:
    terms = replace(TERMS, **{**ATTESTED, **changes})  # type: ignore[arg-type]
    unit = replace(RUNNING, state=State.SUBMITTED, mark=NOW)
    return Job(ID, terms, (Lease(0, unit),), spec=WASM), unit


@pytest.mark.parametrize("leaves", [True, False])
def test_decide__unproven_unit_of_a_node_that_leaves__is_ended_for_its_slash(leaves: bool) -> None:
    job, unit = _unproven()
    node = replace(NODE, exit_at=NOW + 100) if leaves else NODE
    due = formulas.settleable_from(job.terms, unit)
    assert reason(snapshot_of(job, node=node), TRUSTING, due - 1) == Reason.AWAITS_JUDGE
    found = only(snapshot_of(job, node=node), TRUSTING, due)
    assert found == (Settle(((ID, 0),)) if leaves else Skip(ID, 0, Reason.AWAITS_JUDGE))


def test_decide__unproven_unit_that_binds_much_of_the_stake__is_ended_for_its_slash() -> None:
    job, unit = _unproven(bond_bps=2**24 - 1, ceiling=5 * 10**19, max_seconds=1_000)
    assert formulas.bond(job.terms) * 4 > NODE.stake
    due = formulas.settleable_from(job.terms, unit)
    assert only(snapshot_of(job), TRUSTING, due) == Settle(((ID, 0),))


@pytest.mark.parametrize(("named", "submits"), [(ATTESTED, False), (DISPUTED, True), ({}, True)])
def test_decide__result_within_a_notice__is_kept_where_the_notice_pays_for_certain(
    named: dict[str, object], submits: bool
) -> None:
    """A submitter who cancels an attested job may leave its result without a proof; its time is paid by `close`."""
    closing = replace(RUNNING, state=State.CLOSING, mark=NOW + 60)
    done = Execution(KEY, Stage.DONE, Outcome.OK, bytes(31) + b"\1", bytes(31) + b"\2", 0)
    node = replace(NODE, state=replace(NODE.state, busy=1))
    found = only(snapshot_of(job_of(closing, **named), node=node, executions=(done,)), TRUSTING)
    assert isinstance(found, SubmitResult | Finish) is submits
    assert submits or (isinstance(found, Skip) and found.reason == Reason.NOTICE)


@pytest.mark.parametrize("named", [(JUDGE,), ()], ids=["as a judge too", "by its sets alone"])
def test_refuse_terms__attesters__are_trusted_for_the_sets_that_are_named_alone(named: tuple[str, ...]) -> None:
    accept = Accept(judges=named, attesters=(f"{7:#066x}",))
    config = replace(CONFIG, judges=trusted_judges(accept, SimpleNamespace(attesters=JUDGE)))  # type: ignore[arg-type]
    assert refuse_terms(replace(TERMS, **ATTESTED), config, 10**15) is None  # type: ignore[arg-type]
    other = replace(TERMS, **{**ATTESTED, "judge_data": 666})  # type: ignore[arg-type]
    assert refuse_terms(other, config, 10**15) == (
        Reason.JUDGE_UNKNOWN,
        f"accept.attesters does not name the set {666:#066x}",
    )


def test_refuse_terms__judge_that_accept_judges_names__is_trusted_with_whatever_it_judges_by() -> None:
    accept = Accept(judges=("0x" + "45" * 20,))
    config = replace(CONFIG, judges=trusted_judges(accept, SimpleNamespace(attesters=JUDGE)))  # type: ignore[arg-type]
    other = replace(TERMS, **{**DISPUTED, "judge_data": 666})  # type: ignore[arg-type]
    assert refuse_terms(other, config, 10**15) is None


def test_refuse_terms__judged_bond_above_the_providers_bound__is_refused() -> None:
    """Its judge may leave it without a ruling, and it stays bound until the deadline and longer."""
    named = replace(TERMS, **ATTESTED)  # type: ignore[arg-type]
    assert refuse_terms(replace(named, bond_bps=100_000), TRUSTING, 10**15) is None
    refused = refuse_terms(replace(named, bond_bps=100_001), TRUSTING, 10**15)
    assert refused is not None and refused[0] is Reason.BOND_TOO_LARGE and "accept.max_bond is 10 times" in refused[1]
    assert refuse_terms(replace(named, bond_bps=100_001), replace(TRUSTING, max_bond=11), 10**15) is None
    # The market's least bond goes by the keeper fee too, and is no reason.
    dear = replace(named, keeper_fee=2 * formulas.price(named))
    assert formulas.bond(dear) > 10 * formulas.price(dear)
    assert refuse_terms(dear, TRUSTING, 10**15) is None


def test_refuse_terms__large_bond_without_a_judge__is_refused() -> None:
    """Nobody could take it: it would only bind the stake."""
    least = formulas.base_bond(TERMS)
    assert refuse_terms(replace(TERMS, bond_bps=1), CONFIG, 10**15) is None
    refused = refuse_terms(replace(TERMS, bond_bps=10_000_000), CONFIG, 10**15)
    assert formulas.bond(replace(TERMS, bond_bps=10_000_000)) > least
    assert refused is not None and refused[0] is Reason.NOT_SUPPORTED
    assert isinstance(only(snapshot_of(job_of(OPEN))), Claim)
