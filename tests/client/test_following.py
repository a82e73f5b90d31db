"""Waiting for a job: a silent chain is asked again, and waiting ends where nobody is left to take the job."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.base.errors import ChainError, NotFoundError, NoWorkerError, WaitTimeout
from hearth.client.job import following
from hearth.client.job.gates import Opening
from hearth.protocol.types import ZERO_ADDRESS, Gate, Needs, State, TermsFlag, Unit

JOB = bytes([7]) * 32
ATTESTERS = "0x" + "77" * 20


class Reads:
    """A job reader whose chain answers by a script: a view, or an error."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers
        self.told: list[str] = []
        posted = SimpleNamespace(log=SimpleNamespace(block_number=1), job_id=JOB)
        self.session: Any = SimpleNamespace(
            job_id=lambda job: JOB,
            asset=None,
            settings=SimpleNamespace(timeout=60),
            tell=lambda kind, facts: self.told.append(facts["text"]),
            network=SimpleNamespace(contracts={"Attesters": ATTESTERS}),
            market=SimpleNamespace(port=SimpleNamespace(head=self._head), terms_of=lambda job_id: posted),
        )
        self._block = 1

    def _head(self) -> Any:
        if isinstance(self.answers[0], ChainError):
            raise self.answers.pop(0)
        self._block += 1
        return SimpleNamespace(number=self._block)

    def events(self, job_id: bytes, first: int, last: int) -> list[Any]:
        return []

    def view(self, posted: Any, head: Any) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, NotFoundError):
            raise answer
        return answer


def view(now: int, *units: Unit, untouched: int = 0, finished: bool = False) -> Any:
    terms = SimpleNamespace(deadline=10_000, flags=TermsFlag(0), judge=ZERO_ADDRESS, needs=Needs())
    return SimpleNamespace(
        posted=SimpleNamespace(job_id=JOB), terms=terms, units=units, untouched=untouched, now=now,
        finished=finished,
        blocked=any(unit.state is State.BLOCKED for unit in units),
        delivered=finished,
        unpaid_until=0,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "POLL_SECONDS", 0.0)


def test_follow__chain_falls_silent__asks_again_and_says_once_that_the_job_lives() -> None:
    silent = [ChainError("refused", retryable=True) for _ in range(3)]
    reads: Any = Reads([view(1), *silent, view(2, finished=True)])
    assert list(following.follow(reads, "0x07")) == []
    assert reads.told == ["the chain does not answer (refused); the job is alive, its money in Escrow"]


def test_follow__chain_goes_back_before_the_posting_for_a_moment__waits_for_the_job() -> None:
    gone = NotFoundError("there is no job")
    reads: Any = Reads([view(1), gone, gone, view(2, finished=True)])
    assert list(following.follow(reads, "0x07")) == []
    assert reads.told == ["the chain has gone back before job 0x070707070707 was posted; waiting for it"]


def test_follow__chain_goes_back_and_stays_so__says_what_is_locked_and_how_to_post_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(following, "GONE_SECONDS", 0.0)
    reads: Any = Reads([view(1), NotFoundError("there is no job"), NotFoundError("there is no job")])
    with pytest.raises(ChainError, match="nothing is locked for it") as caught:
        list(following.follow(reads, "0x07"))
    assert caught.value.code == "REORG" and "the same command again" in caught.value.hint


def test_follow__silent_to_the_end__says_where_the_money_is_and_what_attaches_again() -> None:
    reads: Any = Reads([ChainError("refused", retryable=True)])
    with pytest.raises(WaitTimeout, match=r"\(refused\); it is alive, its money in Escrow") as caught:
        list(following.follow(reads, "0x07", timeout=0.0))
    assert "hearth job wait 0x0707" in caught.value.hint and caught.value.exit_code == 10


def test_follow__fault_that_no_retry_helps__is_raised() -> None:
    reads: Any = Reads([ChainError("wrong chain", retryable=False)])
    with pytest.raises(ChainError, match="wrong chain"):
        list(following.follow(reads, "0x07"))


class OneWorker:
    """A fleet of one worker; by excluded node, its gate. `reads` counts how often the market was read."""

    def __init__(self) -> None:
        self.by_excluded = {0: Gate.FITS}
        self.reads = 0

    def __setitem__(self, excluded: int, gate: Gate) -> None:
        self.by_excluded[excluded] = gate

    def read(self, session: object) -> OneWorker:
        self.reads += 1
        return self

    def gates(self, terms: object, opening: Opening) -> Counter[Gate]:
        return Counter({self.by_excluded.get(opening.excluded, Gate.FITS): 1})


@pytest.fixture
def takers(monkeypatch: pytest.MonkeyPatch) -> OneWorker:
    worker = OneWorker()
    monkeypatch.setattr(following, "Fleet", worker)
    return worker


OPEN = Unit(state=State.OPEN, node=3)


def test_wait__given_back_by_the_only_worker__ends_and_says_why(takers: OneWorker) -> None:
    takers[3] = Gate.EXCLUDED
    watch = following._Chances(Reads([]))  # type: ignore[arg-type]
    for now in (100, 104, 129):
        watch.look(view(now, OPEN))
    with pytest.raises(NoWorkerError, match="1 worker: 1 excluded, since it had the unit last -> 0") as caught:
        watch.look(view(135, OPEN))
    assert (caught.value.code, caught.value.exit_code) == ("NO_WORKER_LEFT", 8)
    assert "hearth job cancel 0x0707" in caught.value.hint
    assert caught.value.hint.endswith(" --anyway waits on"), "the same command without it would end here again"


@pytest.mark.parametrize("anyway", [False, True])
def test_wait__no_worker_is_left__is_watched_for_unless_it_is_to_wait_anyway(
    anyway: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Any] = []
    monkeypatch.setattr(following._Chances, "look", lambda chances, view: looks.append(view))
    monkeypatch.setattr(following, "job_facts", lambda session, view: {})
    reads: Any = Reads([view(1, OPEN), view(2, OPEN, finished=True)])
    reads.look = lambda job: None
    following.wait(reads, "0x07", anyway=anyway)
    assert len(looks) == (0 if anyway else 1)


@pytest.mark.parametrize("anyway", [False, True])
def test_wait__result_that_waits_for_attesters__says_once_what_they_are_to_do(
    anyway: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following._Chances, "look", lambda chances, view: None)
    monkeypatch.setattr(following, "job_facts", lambda session, view: {})
    running, submitted = Unit(state=State.RUNNING, node=1), Unit(state=State.SUBMITTED, node=1)
    seen = [view(1, running), view(2, submitted), view(3, submitted), view(4, submitted, finished=True)]
    for judge, flags in ((ATTESTERS, TermsFlag.PROVEN), (ATTESTERS, TermsFlag(0)), ("0x66", TermsFlag.PROVEN)):
        for one in seen:
            one.terms.judge, one.terms.flags, one.terms.challenge_window = judge, flags, 60
        reads: Any = Reads(list(seen))
        reads.look = lambda job: None
        following.wait(reads, "0x07", anyway=anyway)
        (*told,) = reads.told
        asked = judge == ATTESTERS and bool(flags)
        assert len(told) == asked
        assert not asked or all(f"hearth job {word} 0x070707070707" in told[0] for word in ("attest", "confirm"))


@pytest.mark.parametrize(
    "busy",
    [
        view(100, OPEN, Unit(state=State.RUNNING, node=1)),
        view(100, OPEN, Unit(state=State.SUBMITTED, node=1)),
        view(100, Unit(state=State.OPEN, node=3, mark=105)),
        view(100, OPEN, untouched=2),
    ],
)
def test_wait__something_moves_or_somebody_fits__goes_on(busy: Any, takers: OneWorker) -> None:
    takers[3] = Gate.EXCLUDED
    watch = following._Chances(Reads([]))  # type: ignore[arg-type]
    for now in range(100, 1_000, 7):
        busy.now = now
        watch.look(busy)


def test_wait__a_worker_comes_back_in_time__counts_anew(takers: OneWorker) -> None:
    watch = following._Chances(Reads([]))  # type: ignore[arg-type]
    for now, gate in ((100, Gate.NOT_LIVE), (125, Gate.FITS), (131, Gate.NOT_LIVE), (160, Gate.NOT_LIVE)):
        takers[3] = gate
        watch.look(view(now, OPEN))
    with pytest.raises(NoWorkerError):
        watch.look(view(166, OPEN))


def test_wait__units_that_exclude_different_nodes__read_the_market_once(takers: OneWorker) -> None:
    others = [Unit(state=State.OPEN, node=node) for node in (3, 4, 5)]  # type: ignore[arg-type]
    for unit in others:
        takers[unit.node] = Gate.EXCLUDED
    watch = following._Chances(Reads([]))  # type: ignore[arg-type]
    watch.look(view(100, *others))
    assert (takers.reads, watch._alone_since) == (1, 100)
