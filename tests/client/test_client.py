"""The client's pure parts: words, verdicts, books, documents, names of sources."""

from __future__ import annotations

import stat
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.base.errors import BadDocument, ChainError, ConfigError, StorageError, UsageError
from hearth.chain.port import Log
from hearth.client.audit.verify import Books
from hearth.client.job.gates import GATE_LABELS, workers_in_words
from hearth.client.job.results import Results, UnitResult, _end_words, check_result, kept_until, nothing_left, words_in
from hearth.client.judges.attested import Attested
from hearth.client.posting.post import Posting
from hearth.client.posting.preflight import Preflight
from hearth.client.posting.quick import RunOptions, _input_of, _name_of, spec_of_run
from hearth.client.reading import JobReader
from hearth.client.records import Records, terms_of
from hearth.client.session import Session
from hearth.client.views import OUTCOME_LABELS, JobView, event_facts, moment, next_step, until, verification
from hearth.config.settings import Settings
from hearth.jobfile.model import Gpu
from hearth.market import events as e
from hearth.market.events import CreditLocked, Locked, Ruled, Split, Withdrawn
from hearth.market.identity import Identity
from hearth.market.profiles import DEVNET, PUBLIC
from hearth.market.reads import Posted, UnitView
from hearth.protocol.formulas import lock_key
from hearth.protocol.types import (
    LOCAL_CHAIN_ID,
    Accused,
    Billing,
    Gate,
    Header,
    JobId,
    Needs,
    NodeId,
    Offer,
    Outcome,
    Policy,
    Runtime,
    State,
    Terms,
    TermsFlag,
    Unit,
    UnitFlag,
)
from hearth.protocol.types import Verdict as Ruling
from hearth.protocol.units import NATIVE, Asset, parse_rate
from hearth.protocol.words import pack_offer, pack_policy, pack_terms, pack_unit
from hearth.storage.stores import MemoryStore
from tests.kit import build
from tests.kit.fake_chain import FakeChain
from tools import schemas

LOG = Log("0x" + "00" * 20, (), b"", 1, bytes(32), bytes(32), 0)
NOW = 1_800_000_000
COIN = Asset("ETH", 18)


def _terms(**changes: Any) -> Terms:
    plain = {"salt": 7, "spec": bytes([5]) * 32, "needs": Needs(cores=1), "deadline": NOW + 3_600, "match_window": 1}
    return build.terms(**{"submitter": "0x" + "11" * 20, "keeper_fee": 10**12, **plain, **changes})


def _view(
    units: list[Unit],
    *,
    leases: int = 1,
    closed: bool = False,
    now: int = NOW,
    second: int = 0,
    policy: Policy = DEVNET.policy,
) -> JobView:
    terms = _terms(units=leases, policy=pack_policy(policy))
    posted = Posted(JobId(bytes(32)), terms, pack_terms(terms), (), LOG)
    header = Header(closed=closed, touched=len(units)) if leases > 1 else None
    seen = tuple(UnitView(unit, second, Accused()) for unit in units)
    return JobView(posted, header, tuple(units), seen, 10, now)


OK = Unit(state=State.SETTLED, outcome=Outcome.OK)
BAD = Unit(state=State.SETTLED, outcome=Outcome.TRAP)
BACK = Unit(state=State.REFUNDED)


@pytest.mark.parametrize(
    ("units", "leases", "closed", "verdict"),
    [
        ([OK], 1, False, "ok"),
        ([BAD], 1, False, "failed"),
        ([BACK], 1, False, "refunded"),
        ([Unit(state=State.OPEN)], 1, False, "pending"),
        ([Unit(state=State.SUBMITTED, outcome=Outcome.OK)], 1, False, "pending"),
        ([OK, OK], 2, False, "ok"),
        ([OK], 2, False, "pending"),
        ([OK], 2, True, "refunded"),
        ([OK, BAD, BACK], 3, False, "failed"),
        ([OK, BACK], 2, False, "refunded"),
        ([Unit(state=State.EXPIRED)], 1, False, "refunded"),
    ],
)
def test_job_view__units__verdict(units: list[Unit], leases: int, closed: bool, verdict: str) -> None:
    view = _view(units, leases=leases, closed=closed)
    assert view.verdict == verdict
    assert sum(view.counts.values()) == leases


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ((Outcome.OK, Outcome.OK, None), "ok"),
        ((Outcome.OK, Outcome.OK, Outcome.EXIT), "ok"),
        ((Outcome.OK, Outcome.EXIT, None), "failed"),
        ((Outcome.OK, None, None), "refunded"),
    ],
)
def test_job_view__replicas__are_ok_from_their_quorum_on(outcomes: tuple[Outcome | None, ...], verdict: str) -> None:
    """As their children see them: the others may have failed or been refunded."""
    units = [
        Unit(state=State.REFUNDED) if outcome is None else Unit(state=State.SETTLED, outcome=outcome)
        for outcome in outcomes
    ]
    view = _view(units, leases=3)
    terms = _terms(replicas=3, quorum=2)
    assert replace(view, posted=replace(view.posted, terms=terms)).verdict == verdict


@pytest.mark.parametrize(
    ("unit", "second", "now", "words"),
    [
        (OK, 0, NOW, "finished"),
        (Unit(state=State.RUNNING, node=NodeId(3), started=NOW, mark=NOW + 60), 0, NOW, "node 3 runs it"),
        (Unit(state=State.RUNNING, node=NodeId(3), started=NOW, mark=NOW + 60), 0, NOW + 60, "anyone may reclaim"),
        (Unit(state=State.CLOSING, node=NodeId(3), started=NOW, mark=NOW + 3), 0, NOW + 3, "anyone may close"),
        (Unit(state=State.SUBMITTED, mark=NOW), 0, NOW, "nobody can challenge"),
        (Unit(state=State.OPEN, started=NOW), 0, NOW, "anyone may propose"),
        (Unit(state=State.OPEN, started=NOW), 0, NOW + 6, "any fitting worker may claim"),
        (
            Unit(state=State.OPEN, node=NodeId(7), started=NOW, attempts=1),
            0,
            NOW + 6,
            "node 7 is excluded, since it had",
        ),
        (Unit(state=State.OPEN, node=NodeId(7), started=NOW, attempts=1), 0, NOW, "node 7 is excluded, since"),
        (Unit(state=State.OPEN, started=NOW), 0, NOW + 3_600, "expire"),
        (Unit(state=State.OPEN, started=NOW, mark=NOW + 1, lapses=2), 0, NOW + 100, "claim"),
    ],
)
def test_next_step__each_state__says_who_may_act(unit: Unit, second: int, now: int, words: str) -> None:
    assert words in next_step(_view([unit], now=now, second=second), 0, {}, 6)


MONTH = 30 * 86_400


@pytest.mark.parametrize(
    ("state", "flags", "now", "words"),
    [
        (State.SUBMITTED, TermsFlag(0), NOW + 59, "may dispute it; anyone may settle it from"),
        (State.SUBMITTED, TermsFlag(0), NOW + 60, "anyone may settle it now; hearth job accept"),
        (State.DISPUTED, TermsFlag(0), NOW + 60 + MONTH - 1, "looks at it; without a ruling anyone may settle it from"),
        (State.DISPUTED, TermsFlag(0), NOW + 60 + MONTH, "has not ruled in time: anyone may settle it now"),
        (State.SUBMITTED, TermsFlag.PROVEN, NOW + 3_659, "may confirm it until"),
        (State.SUBMITTED, TermsFlag.PROVEN, NOW + 3_660, "anyone may refund it, since nobody has proven it now"),
        (State.DISPUTED, TermsFlag.PROVEN, NOW + 60 + MONTH, "anyone may refund it, since nobody has proven it now"),
    ],
)
def test_next_step__judged_unit__names_what_its_judge_may_do_and_until_when(
    state: State, flags: TermsFlag, now: int, words: str
) -> None:
    unit = Unit(state=state, outcome=Outcome.OK, node=NodeId(3), mark=NOW)
    assert words in next_step(_judged(_view([unit], now=now), flags), 0, {}, 6)


def test_next_step__attested_unit__names_the_commands_and_an_open_one_who_may_claim_it() -> None:
    unit = Unit(state=State.SUBMITTED, outcome=Outcome.OK, node=NodeId(3), mark=NOW)
    view = _judged(_view([unit]), TermsFlag.PROVEN)
    said = next_step(view, 0, {}, 6, judge=Attested())
    assert "hearth job attest JOB" in said and "hearth job confirm JOB FILE --attesters FILE" in said
    assert "attest" not in next_step(view, 0, {}, 6)
    view = _judged(_view([Unit(state=State.OPEN, started=NOW)], now=NOW + 6), TermsFlag.PROVEN)
    assert next_step(view, 0, {}, 6).startswith("any fitting worker whose provider accepts its judge may claim it")


def _judged(view: JobView, flags: TermsFlag) -> JobView:
    terms = replace(view.terms, judge="0x" + "77" * 20, judge_data=9, challenge_window=60, flags=flags)
    return replace(view, posted=replace(view.posted, terms=terms))


@pytest.mark.parametrize(
    ("state", "flags", "delivered"),
    [
        (State.SUBMITTED, TermsFlag(0), True),  # it can be challenged for two hours, and is there
        (State.SUBMITTED, TermsFlag.PROVEN, False),
        (State.DISPUTED, TermsFlag(0), False),
    ],
)
def test_delivered__judged_result__is_waited_for_while_it_may_be_refunded(
    state: State, flags: TermsFlag, delivered: bool
) -> None:
    unit = Unit(state=state, outcome=Outcome.OK, node=NodeId(3), mark=NOW)
    view = _judged(_view([unit]), flags)
    view = replace(view, posted=replace(view.posted, terms=replace(view.terms, challenge_window=7_200)))
    assert view.delivered is delivered and view.verdict == ("ok" if delivered else "pending")


def test_verification__each_kind__is_one_sentence() -> None:
    view = _view([OK])
    assert verification(view.terms, None) == "none: nobody can challenge this result"
    judged = _judged(view, TermsFlag(0)).terms
    assert verification(judged, None) == f"judge {judged.judge} may dispute a result for 1m after it came"
    proven = _judged(view, TermsFlag.PROVEN).terms
    assert verification(proven, Attested()).startswith(f"enough attesters of the set {9:#066x} must confirm")


@pytest.mark.parametrize(
    ("verdict", "state", "text"),
    [
        (Ruling.RELEASE, State.SUBMITTED, "the judge lets node 3's result stand"),
        (Ruling.CONFIRM, State.SETTLED, "the judge confirmed it (ok), node 3's owner earned 0.095 ETH"),
        (Ruling.REJECT, State.REFUNDED, "rejected node 3's result: refunded, its bond of 0.2 ETH lost"),
        (Ruling.VOID, State.REFUNDED, "could not tell: refunded but for the start fee, node 3's owner earned 0.095"),
    ],
)
def test_event_facts__ruling__says_what_became_of_the_unit(verdict: Ruling, state: State, text: str) -> None:
    word = pack_unit(Unit(state=state, outcome=Outcome.OK, node=NodeId(3)))
    pays = verdict in (Ruling.CONFIRM, Ruling.VOID)
    pay, fee = (10**17, 5 * 10**15) if pays else (0, 0)
    taken = 2 * 10**17 if verdict is Ruling.REJECT else 0
    told = event_facts(Ruled(LOG, JobId(bytes(32)), 0, NodeId(3), word, verdict, pay, fee, taken), NATIVE)
    assert text in told["text"] and told["verdict"] == verdict.name.lower()
    assert (told["state"], told["outcome"]) == (state.name.lower(), "ok")
    assert (told["pay"], told["taken"]) == (str(pay), str(taken))


def test_next_step__open_claim__names_the_second_of_its_full_price() -> None:
    unit = Unit(state=State.OPEN, started=NOW)
    for late, cheaper in ((0, True), (DEVNET.policy.claim_ramp, False)):
        view = _view([unit], now=NOW + DEVNET.policy.open_claim_after + late)
        told = next_step(view, 0, {}, 6)
        full = until(NOW + DEVNET.policy.open_claim_after + DEVNET.policy.claim_ramp, view.now)
        assert told.startswith("any fitting worker may claim it") and (full in told) is cheaper


def test_next_step__live_proposal__names_the_node_and_the_last_moment() -> None:
    from hearth.protocol.types import Best
    from hearth.protocol.words import pack_best

    second = pack_best(Best(payee="0x" + "22" * 20, node=NodeId(9), key=5))
    unit = Unit(state=State.OPEN, started=NOW, mark=NOW + 1)
    before = next_step(_view([unit], second=second), 0, {}, 6)
    assert "better proposals until" in before and "node 9 may take it" in before
    after = next_step(_view([unit], second=second, now=NOW + 2), 0, {}, 6)
    assert after.startswith("node 9 may take it until")


def test_moment__time_that_no_calendar_has__is_named() -> None:
    assert moment(253_402_300_799) == "9999-12-31 23:59:59 UTC"
    assert moment(253_402_300_800) == moment((1 << 40) - 1) == "after the year 9999"


def test_until__past_and_future__differ() -> None:
    assert "(in 1m)" in until(NOW + 60, NOW)
    assert "(past)" in until(NOW, NOW)


def test_until__time_that_no_calendar_has__is_named() -> None:
    """A provider may tell of a unit whose 40-bit lane holds it."""
    assert until(253_402_300_799, NOW).startswith("23:59:59 UTC (in ")
    for at in (253_402_300_800, (1 << 40) - 1):
        assert until(at, NOW).startswith("after the year 9999 (in ")


def test_workers_in_words__mixed_fleet__counts_each_gate_and_the_takers() -> None:
    gates = {Gate.FITS: 1, Gate.VRAM: 9, Gate.PRICE: 2, Gate.NO_SLOT: 1, Gate.NOT_LIVE: 1}
    text = workers_in_words(gates)
    assert text == "14 workers: 1 silent, 1 busy, 9 short of VRAM, 2 above your price -> 2 can take it"
    assert workers_in_words({}) == "no worker is registered on this network"
    assert workers_in_words({Gate.FITS: 1}) == workers_in_words({Gate.FITS: 1}, _terms()) == "1 worker -> 1 can take it"
    # Whose settings accept a judge, the chain does not say; where nobody fits, it does not matter.
    judged = _judged(_view([OK]), TermsFlag.PROVEN).terms
    named = "1 can take it where accept.attesters or accept.judges of its settings names the job's judge"
    assert workers_in_words({Gate.FITS: 1}, judged) == f"1 worker -> {named}"
    assert workers_in_words({Gate.PRICE: 1}, judged).endswith("-> 0 can take it")
    image = replace(judged, needs=Needs(runtimes=Runtime.DOCKER))
    allowed = "docker.registries and accept.images of its settings allow the image"
    assert workers_in_words({Gate.FITS: 1}, image) == f"1 worker -> {named}, and {allowed}"


def test_summary__outcome_of_several_ends__is_told_by_its_result() -> None:
    for status, code, said in (
        ("output_missing", 0, "failed: the program left less than the outputs that it must"),
        ("output_over_cap", 0, "failed: the program left more than its outputs may have"),
        ("exit", 3, "failed: the program ended with exit code 3"),
        ("exit", None, OUTCOME_LABELS[Outcome.EXIT]),
    ):
        document = {"status": status, "exit_code": code, "outputs": None}
        assert _end_words(UnitResult(0, Outcome.EXIT, State.SETTLED, b"", b"", document)) == said
    document = {"status": "trap", "exit_code": None, "outputs": None}
    assert _end_words(UnitResult(0, Outcome.TRAP, State.SETTLED, b"", b"", document)) == OUTCOME_LABELS[Outcome.TRAP]


def test_fingerprint__price_of_our_choice__is_no_part_of_it(tmp_path: Path) -> None:
    session = Session(Settings(home=tmp_path))
    session.__dict__["network"] = SimpleNamespace(job_chain_id=1, jobs="0x" + "aa" * 20)
    fingerprint = Preflight(JobReader(session)).fingerprint
    dear = _terms(ceiling=2 * 10**18, keeper_fee=10**13, salt=8, deadline=NOW + 9_999)
    assert fingerprint(_terms(), None, True) == fingerprint(dear, None, True)
    assert fingerprint(_terms(), None, False) != fingerprint(dear, None, False)
    assert fingerprint(_terms(), None, False) == fingerprint(_terms(salt=9), None, False)
    assert fingerprint(_terms(), None, True) != fingerprint(_terms(max_seconds=61), None, True)


def test_fingerprint__billing_of_our_choice__finds_a_job_that_was_posted_when_that_was_fixed(tmp_path: Path) -> None:
    session = Session(Settings(home=tmp_path))
    session.__dict__["network"] = SimpleNamespace(job_chain_id=1, jobs="0x" + "aa" * 20)
    fingerprint = Preflight(JobReader(session)).fingerprint
    fixed, metered = _terms(billing=Billing.FIXED), _terms(billing=Billing.METERED)
    assert fingerprint(metered, None, False, True) == fingerprint(fixed, None, False)
    assert fingerprint(metered, None, False) != fingerprint(fixed, None, False)
    assert fingerprint(_terms(billing=Billing.FUEL), None, False, True) != fingerprint(fixed, None, False)


def test_words__every_gate_of_a_node_and_every_outcome__has_some() -> None:
    node_gates = set(Gate) - {Gate.FITS, Gate.NO_TIME, Gate.NOT_OPEN}
    assert node_gates == set(GATE_LABELS)
    assert set(OUTCOME_LABELS) == set(Outcome)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("lock"), st.integers(0, 3), st.integers(0, 10**20)),
            st.tuples(st.just("split"), st.integers(0, 3), st.integers(0, 3)),
            st.tuples(st.just("withdraw"), st.integers(0, 3), st.just(0)),
            st.tuples(st.just("relock"), st.integers(0, 3), st.just(0)),
        ),
        max_size=30,
    )
)
def test_books__any_history__total_is_what_came_in_less_what_left(history: list[tuple[str, int, int]]) -> None:
    books, held = Books(), 0
    controller = "0x" + "cc" * 20
    for what, who, amount in history:
        account, key = f"0x{who + 1:040x}", bytes([who]) * 32
        if what == "lock":
            books.apply(Locked(LOG, controller, key, amount))
            held += amount
        elif what == "split":
            part = books.locks[controller, key] // 2
            books.apply(Split(LOG, controller, key, (part << 160 | (amount + 1), 0, 0, 0)))
        elif what == "withdraw":
            part = books.credits[account]
            books.apply(Withdrawn(LOG, account, account, part))
            held -= part
        else:
            part = books.credits[account]
            books.apply(CreditLocked(LOG, account, key, part))
        assert books.total == held
    assert all(value >= 0 for value in (*books.locks.values(), *books.credits.values()))


A, B = "0x" + "aa" * 20, "0x" + "bb" * 20
HELD = bytes([0xAB]) * 32
OURS = lock_key(B)
NO_NODE = f"0x{1 << 32:040x}"
"""The first account whose number is too large for a node's."""
ETH = 10**18
TWO = Offer(slots=2, ask=parse_rate("0.6/h", COIN))
TIME = "2027-01-15 08:00:00 UTC"


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            e.NodeRegistered(LOG, NodeId(3), A, B, pack_offer(TWO), 20 * ETH, HELD),
            f"node 3 registered: 2 slots at 0.6 ETH/h, stake 20 ETH, owner {A}, operator {B}",
        ),
        (e.OfferChanged(LOG, NodeId(3), pack_offer(TWO), HELD), "node 3 offers 2 slots at 0.6 ETH/h"),
        (e.AskChanged(LOG, NodeId(3), parse_rate("1.2345678/h", COIN), NOW), f"node 3 asks ~1.23457 ETH/h from {TIME}"),
        (e.StakeAdded(LOG, NodeId(3), A, ETH), f"node 3 has 1 ETH more of stake, from {A}"),
        (e.ExitStarted(LOG, NodeId(3), NOW), f"node 3 leaves, from {TIME} on with its stake"),
        (e.NodeLapsed(LOG, NodeId(3), A, 10**13), f"node 3 is silent, {A} earned 0.00001 ETH by showing it"),
        (e.Slashed(LOG, NodeId(3), A, ETH, 2 * ETH), f"node 3 was slashed: 1 ETH to {A}, 2 ETH burnt"),
        (e.Quarantined(LOG, NodeId(3), NOW), f"node 3 is quarantined until {TIME}"),
        (e.MinimumStakeChanged(LOG, ETH), "new nodes stake at least 1 ETH"),
        (Locked(LOG, A, HELD, 123_456_789 * 10**10), "~1.23457 ETH locked for key 0xabababababab"),
        (Locked(LOG, A, OURS, ETH), f"1 ETH locked for the jobs of {B}"),
        (Locked(LOG, A, (7).to_bytes(32, "big"), ETH), "1 ETH locked for node 7"),
        (Locked(LOG, A, bytes(28) + b"\xff" * 4, ETH), "1 ETH locked for node 4294967295"),
        (Locked(LOG, A, lock_key(NO_NODE), ETH), f"1 ETH locked for the jobs of {NO_NODE}"),
        (CreditLocked(LOG, A, HELD, ETH), "1 ETH of credit locked for key 0xabababababab"),
        (Split(LOG, A, OURS, (ETH << 160 | int(B, 16), 0, 5 << 160 | int(A, 16))),
         f"the jobs of {B}: 1 ETH to {B}, 0.000000000000000005 ETH to {A}"),
        (Split(LOG, A, OURS, (0,)), f"the jobs of {B}: nothing to anybody"),
        (Withdrawn(LOG, A, A, ETH), f"{A} withdrew 1 ETH"),
        (Withdrawn(LOG, A, B, ETH), f"{A} withdrew 1 ETH to {B}"),
        (e.Paused(LOG, NOW), f"paused until {TIME}"),
        (e.PolicyChanged(LOG, 1, 0, 0), f"policy 0x{1:064x} for new jobs, and no other"),
        (e.PolicyChanged(LOG, 2, 1, NOW), f"policy 0x{2:064x} for new jobs, the previous one is taken until {TIME}"),
    ],
)  # fmt: skip
def test_event_facts__of_the_market__amounts_times_and_ids_as_elsewhere(event: Any, text: str) -> None:
    facts = event_facts(event, COIN)
    assert facts["text"] == text
    # For programs the same as ever: exact, in base units.
    if isinstance(event, Withdrawn):
        assert facts["amount"] == str(event.amount) and facts["account"] == A


def _document(**changes: Any) -> dict[str, Any]:
    return {"spec": "05" * 32, "index": 2, "outcome": "ok", "status": "ok", "exit_code": 0, "outputs": None} | changes


def test_check_result__the_units_own__passes() -> None:
    check_result(_document(), bytes([5]) * 32, 2, Outcome.OK)
    check_result(_document(exit_code=None), bytes([5]) * 32, 2, Outcome.OK)


def test_check_result__a_value_of_a_mebibyte__is_told_in_a_line() -> None:
    with pytest.raises(BadDocument) as refused:
        check_result(_document(index="x" * (1 << 20)), bytes([5]) * 32, 2, Outcome.OK)
    assert len(refused.value.message) < 200


@pytest.mark.parametrize(
    "document",
    [
        _document(spec="06" * 32),
        _document(index=3),
        _document(index=2.0),
        _document(outcome="exit"),
        _document(outputs={"size": 1}),
        {name: value for name, value in _document().items() if name != "exit_code"},
        _document(exit_code="0"),
        _document(exit_code=[[[]]]),
        _document(exit_code=True),
        _document(status={"a": 1}),
        _document(status="\x1b[31mok"),
        _document(outputs={"cid": "x"}),
        _document(outputs={"cid": "x", "size": "1"}),
        _document(outputs={"cid": "x", "size": True}),
        _document(outputs={"cid": "x", "size": -1}),
        [],
        None,
    ],
)
def test_check_result__another_units_or_malformed__refused(document: Any) -> None:
    with pytest.raises(BadDocument):
        check_result(document, bytes([5]) * 32, 2, Outcome.OK)


NOTICED = Unit(State.CANCELLED, attempts=1, flags=UnitFlag.NOTICED)


@pytest.mark.parametrize(
    ("unit", "what", "said"),
    [
        (Unit(State.OPEN), "logs", "has no logs yet: they come with the result"),
        (Unit(State.RUNNING, attempts=1), "result", "has no result yet: its state is running"),
        (replace(NOTICED, state=State.CLOSING), "logs", "has no logs yet: its worker hands in what it has"),
        (
            NOTICED,
            "logs",
            "no logs, and none will come: it was cancelled, and its worker, which was paid until the end",
        ),
        (NOTICED, "result", "no result, and none will come: it was cancelled"),
        (Unit(State.CANCELLED), "logs", "none will come: no worker ran it"),
        (Unit(State.EXPIRED), "result", "none will come: no worker ran it"),
        (Unit(State.REFUNDED, attempts=2), "logs", "none will come: no worker reported of it"),
    ],
)
def test_nothing_left__of_each_state__says_whether_it_may_still_come(
    unit: Unit, what: Literal["logs", "result"], said: str
) -> None:
    """A7: "no logs yet: they come with the result", of a job that had ended."""
    view = _view([unit])
    why, hint = nothing_left(view, None, what)
    assert said in why and hint.startswith("hearth job rerun" if "none will come" in why else "hearth job show")
    assert nothing_left(view, 0, what) == (why, hint)
    # A unit has ended for itself, an array with its last one.
    array = _view([unit, Unit(State.RUNNING, attempts=1)], leases=2)
    assert ("none will come" in nothing_left(array, 0, what)[0]) is ("none will come" in why)
    assert f"has no {what} yet: " in nothing_left(array, None, what)[0]


def test_check_result__true_and_false__are_no_numbers_of_units() -> None:
    for index in (0, 1):
        with pytest.raises(BadDocument, match="not this unit's"):
            check_result(_document(index=bool(index)), bytes([5]) * 32, index, Outcome.OK)


def test_report__fields_of_another_kind__say_nothing() -> None:
    for found in (None, 5, True, ["words"], {"a": "words"}):
        assert words_in({"detail": found}, "detail") == ""
    assert words_in({}, "detail") == "" and words_in({"detail": "\U0001f600" * 5000}, "detail") == "\U0001f600" * 4096
    for found in (None, True, "5", 0, -5, 1 << 40, [5]):
        assert kept_until({"kept_until": found}) is None
    assert [kept_until({"kept_until": found}) for found in (1, (1 << 40) - 1)] == [1, (1 << 40) - 1]


def test_report__that_is_none_or_is_missing__says_nothing(tmp_path: Path) -> None:
    session = Session(Settings(home=tmp_path))
    store = session.__dict__["store"] = MemoryStore()
    results = Results(JobReader(session))

    def told(digest: bytes) -> dict[str, Any]:
        return results._told(UnitResult(0, Outcome.OK, State.SETTLED, bytes(32), digest, _document()))

    assert told(store.put_json({"kept_until": 5})) == {"kept_until": 5}
    assert told(store.put_json([1])) == told(bytes(32)) == {}
    assert results._report(store.put_json("words")) == {}
    with pytest.raises(StorageError):
        results._report(bytes(32))


def test_records__written_terms__are_found_until_their_end_is_seen(tmp_path: Path) -> None:
    records = Records(tmp_path / "home", tmp_path / "home" / "jobs")
    assert list(records.unseen("same")) == [] and not (tmp_path / "home").exists()
    first = records.write("0x01", "same", "a.yaml", _terms(units=4))
    schemas.validate(first)
    records.write("0x02", "other", "b.yaml", _terms())
    second = records.write("0x03", "same", "a.yaml", _terms(salt=8))
    assert [record["job"] for record in records.unseen("same")] == ["0x03", "0x01"]
    assert (terms_of(first), terms_of(second)) == (_terms(units=4), _terms(salt=8))
    records.mark_seen("0x03")
    records.mark_seen("0x04")
    assert list(records.unseen("same")) == [first]
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


def test_records__of_a_spec__are_the_newest_whatever_was_seen(tmp_path: Path) -> None:
    records = Records(tmp_path / "home", tmp_path / "home" / "jobs")
    assert records.of_spec(bytes([5]) * 32, 8) == []
    for number in range(4):
        records.write(f"0x0{number}", "same", "a.yaml", _terms(salt=number))
    records.write("0x04", "same", "a.yaml", _terms(spec=bytes([6]) * 32))
    records.mark_seen("0x00")
    (tmp_path / "home" / "jobs" / "0x09.json").write_text('{"job": "0x09"}')
    assert [record["job"] for record in records.of_spec(bytes([5]) * 32, 2)] == ["0x00", "0x03"]
    assert len(records.of_spec(bytes([5]) * 32, 8)) == 4


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", '{"fingerprint": 1}'])
def test_records__file_that_is_no_record__is_passed_over(tmp_path: Path, text: str) -> None:
    records = Records(tmp_path / "home", tmp_path / "home" / "jobs")
    good = records.write("0x01", "same", "a.yaml", _terms())
    (tmp_path / "home" / "jobs" / "0x02.json").write_text(text)
    assert list(records.unseen("same")) == [good]
    records.mark_seen("0x02")


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("x/digits.wasm", "digits"),
        ("registry.example:5000/team/train:1.2", "train"),
        ("python@sha256:" + "ab" * 32, "python"),
        ("ipfs://bafy", "bafy"),
        ("___.wasm", "job"),
        ("my-tool(2).wasm", "my-tool-2"),
    ],
)
def test_name_of__program__becomes_a_job_name(program: str, name: str) -> None:
    assert _name_of(program) == name


def test_spec_of_run__every_option__is_in_the_spec() -> None:
    options = RunOptions(
        gpu=2,
        tier="rtx-4090",
        vram="24GiB",
        cpus=3,
        memory="2GiB",
        runtime="5m",
        max_total="1",
        max_rate="2/h",
        inputs=("./a:/in/a",),
        outputs=("/out/b",),
        env={"E": "1"},
    )
    assert set(options) == set(RunOptions.__annotations__)
    spec = spec_of_run("team/train:1", ("python", "x.py"), **options).spec
    assert (spec.kind, spec.image, spec.command, spec.env) == ("docker", "team/train:1", ["python", "x.py"], {"E": "1"})
    assert (spec.resources.cpus, spec.resources.memory, spec.limits.runtime) == (3, "2GiB", "5m")
    assert spec.resources.gpu == Gpu(count=2, tier="rtx-4090", vram="24GiB")
    assert (spec.price.max_total, spec.price.max_rate) == ("1", "2/h")
    assert [item.dst for item in spec.inputs] == ["/in/a"]
    assert [(item.path, item.required) for item in spec.outputs] == [("/out/b", True)]
    plain = spec_of_run("./x.wasm").spec
    assert (plain.kind, plain.resources.cpus, plain.resources.memory, plain.limits.runtime) == (
        "wasm",
        1,
        "1GiB",
        "10m",
    )
    assert [(item.path, item.required) for item in plain.outputs] == [("/out", False)]


def test_spec_of_run__option_that_is_none__is_a_type_error() -> None:
    with pytest.raises(TypeError, match="cpu: a run has no such option"):
        spec_of_run("./x.wasm", cpu=2)  # type: ignore[call-arg]


def test_input_of__source_with_colons__splits_at_the_last() -> None:
    assert _input_of("https://a.b:1/c:/in/x") == {"src": "https://a.b:1/c", "dst": "/in/x"}
    with pytest.raises(UsageError):
        _input_of("./data")


@pytest.mark.parametrize(
    ("store", "url"),
    [
        ("/ip4/127.0.0.1/tcp/5001", "kubo://127.0.0.1:5001"),
        ("/ip6/::1/tcp/5001/http", "kubo://[::1]:5001"),
        ("http://127.0.0.1:5001/", "kubo://127.0.0.1:5001"),
    ],
)
def test_store_urls__each_spelling__opens_that_store(tmp_path: Path, store: str, url: str) -> None:
    from hearth.client.session import _store_url

    assert _store_url(Settings(home=tmp_path, store=store)) == url
    assert _store_url(Settings(home=tmp_path)) == f"folder://{tmp_path}/store"
    with pytest.raises(ConfigError):
        _store_url(Settings(home=tmp_path, store="/ip4/127.0.0.1"))


@pytest.mark.parametrize("text", ["", "0x", "xyz", "0x" + "a" * 65])
def test_job_id__no_id__refused_before_any_look_at_the_chain(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as refused:
        Session(Settings(home=tmp_path)).job_id(text)
    assert refused.value.code == "BAD_ID"


@pytest.mark.parametrize("enough", [None, 'write max_rate: "0.6 ETH/h"'])
def test_check__another_price_would_do__says_which(enough: str | None) -> None:
    posting: Any = object.__new__(Posting)
    posting.session = None
    posting._preflight = SimpleNamespace(
        planned=lambda loaded, allowed: nullcontext(SimpleNamespace(paused_until=0, fleet=SimpleNamespace(now=1))),
        require_open=lambda paused_until, now: None,
        require_parents=lambda plan: None,
        facts=lambda plan: {"text": ["a line"], "enough": enough},
    )
    said = posting.check({"image": "x"})["text"]
    assert said == ["a line", *([f"for a worker to take it: {enough}"] if enough else [])]


@pytest.mark.parametrize(
    ("flags", "waited", "delivered", "verdict"),
    [
        (UnitFlag(0), 0, False, "pending"),  # anyone may settle it now: a keeper will
        (UnitFlag.FRESH, 0, True, "ok"),
        (UnitFlag.FRESH, 3_539, True, "ok"),
        (UnitFlag.FRESH, 3_540, False, "pending"),  # soon it is settled
        (UnitFlag.FRESH, 3_600, False, "pending"),
    ],
)
def test_delivered__result_that_waits_long_for_its_settlement__is_not_waited_for(
    flags: UnitFlag, waited: int, delivered: bool, verdict: str
) -> None:
    unit = Unit(state=State.SUBMITTED, outcome=Outcome.OK, node=NodeId(3), mark=1_000, flags=flags)
    view = _view([unit], now=1_000 + waited, policy=PUBLIC.policy)
    assert (view.delivered, view.verdict, view.finished) == (delivered, verdict, False)
    assert view.unpaid_until == (4_600 if flags and waited < 3_600 else 0)
    failed = replace(view, units=(replace(unit, outcome=Outcome.EXIT),))
    assert failed.verdict == ("failed" if delivered else "pending")


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({}, "hearth devnet up"),
        ({"rpc": ("http://127.0.0.1:9545",)}, "hearth devnet up --port 9545"),
        ({"name": "mymarket"}, "hearth doctor"),
        ({"chain_id": 5}, "hearth doctor"),
    ],
)
def test_market__local_chain_that_does_not_run__is_started_by_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], hint: str
) -> None:
    (tmp_path / "networks").mkdir()
    (tmp_path / "networks" / "devnet.json").touch()
    network = build.network(FakeChain())
    known = {"name": "devnet", "chain_id": LOCAL_CHAIN_ID, "rpc": ("http://127.0.0.1:8545",)}

    def hint_of(settings: Settings, code: str = "RPC_UNAVAILABLE") -> str:
        session = Session(settings)
        session.__dict__["network"] = replace(network, **{**known, **changes})

        def silent(identity: Identity) -> None:
            raise ChainError("nobody answers", code=code, hint="hearth doctor")

        monkeypatch.setattr(Identity, "check", silent)
        with pytest.raises(ChainError) as caught:
            _ = session.market
        return caught.value.hint

    assert hint_of(Settings(home=tmp_path)) == hint
    # Not where the chain answers otherwise, is another one, or its home is another.
    assert hint_of(Settings(home=tmp_path), "WRONG_CHAIN") == "hearth doctor"
    assert hint_of(Settings(home=tmp_path, rpc=("http://127.0.0.1:1",))) == "hearth doctor"
    assert hint_of(Settings(home=tmp_path / "other")) == "hearth doctor"
