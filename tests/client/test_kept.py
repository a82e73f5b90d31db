"""Results whose digests the chain itself keeps: storage says which it is, whatever a log of it says."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest

from hearth.base.abi import encode
from hearth.base.errors import NotFoundError, WaitTimeout
from hearth.client.audit.verify import Books, Verifier, _History
from hearth.client.job.results import Results
from hearth.market.reads import PAGE, Seats
from hearth.protocol import words
from hearth.protocol.types import (
    ZERO_ADDRESS,
    ZERO_HASH,
    Header,
    JobId,
    NodeId,
    Outcome,
    State,
    TermsFlag,
    Unit,
    UnitFlag,
)
from hearth.protocol.types import Kept as KeptCheckpoint
from hearth.storage.stores import MemoryStore
from tests.client.test_parents import Place
from tests.kit import build
from tests.kit.fake_chain import Event
from tests.market.test_events import own_log

DONE = Unit(state=State.SETTLED, outcome=Outcome.OK, node=NodeId(3), attempts=1, flags=UnitFlag.STORE)
REPORT = {"detail": "worked"}


class Kept(Place):
    """A market with a job whose unit has a result, which storage keeps."""

    def __init__(self, unit: Unit = DONE) -> None:
        super().__init__()
        self.store = self.session.store = MemoryStore()
        self.name = self.post(unit, flags=TermsFlag.KEEP)
        self.job = JobId(bytes.fromhex(self.name[2:]))
        self.true, self.other = (self.store.put_json(self.document(code)) for code in (0, 1))
        self.report = self.store.put_json(REPORT)
        self.stored[self.job, 0] = (words.pack_unit(unit), int.from_bytes(self.true, "big"))
        self.results = Results(self.reads)

    def document(self, code: int) -> dict[str, Any]:
        spec = build.terms().spec.hex()
        return {"spec": spec, "index": 0, "outcome": "ok", "status": "ok", "exit_code": code, "outputs": None}

    def log(self, result: bytes) -> None:
        """Let the chain's log say that the unit has a result."""
        word = words.pack_unit(replace(DONE, state=State.SUBMITTED, mark=5))
        made = own_log("Submitted", job_id=self.job, index=0, node=3, word=word, result=result, report=self.report)
        self.chain.mine([Event(self.network.jobs, made.topics, made.data)])

    def verified(self, since: Unit | None = None) -> tuple[list[str], list[str], int]:
        """Return the faults, the results that could not be read, and how many could, of `net verify`'s look at it.

        `since` is what the unit becomes once the books were read, before the results are.
        """
        verifier = Verifier(self.reads)
        verifier._market, verifier._end = self.market, float("inf")
        head, faults, unread = self.chain.head(), list[str](), list[str]()
        history = verifier._read(head)
        ((one, header, stored),) = self.market.stored(list(history.posted.values()), head.hash)
        told = verifier._verify_job(one, header, stored, _History(), defaultdict(int), faults)
        if since is not None:
            self.stored[self.job, 0] = (words.pack_unit(since), int.from_bytes(self.true, "big"))
        checked, _ = verifier._verify_results(one, told.results, history.submitted, faults, unread)
        return faults, unread, checked


def test_results__log_and_storage_agree__is_the_result_with_its_report() -> None:
    kept = Kept()
    kept.log(kept.true)
    ((one,), unread) = kept.results._results(kept.view(kept.name), None)
    assert (one.result, one.report, one.document["exit_code"], unread) == (kept.true, kept.report, 0, [])
    assert kept.verified() == ([], [], 1) and not kept.market.strays


def test_results__log_names_another__storage_counts_and_the_log_is_a_stray() -> None:
    kept = Kept()
    kept.log(kept.other)
    ((one,), unread) = kept.results._results(kept.view(kept.name), None)
    assert (one.result, one.report, one.document["exit_code"], unread) == (kept.true, ZERO_HASH, 0, [])
    (why,) = kept.market.strays.first
    assert f"has the result {kept.true.hex()[:16]} in storage, and its log names {kept.other.hex()[:16]}" in why
    assert kept.results._told(one) == {}


def test_verify__log_names_another__reads_what_storage_keeps_and_names_the_log() -> None:
    kept = Kept()
    kept.log(kept.store.put_json({"no": "result"}))
    assert kept.verified() == ([], [], 1)
    assert len(kept.market.strays) == 1


def test_verify__unit_is_ruled_since__its_result_is_read_as_the_books_have_it() -> None:
    """A ruling may change a unit's outcome; the books are those of one block."""
    kept = Kept(replace(DONE, state=State.SUBMITTED))
    kept.log(kept.true)
    assert kept.verified(replace(DONE, outcome=Outcome.EXIT)) == ([], [], 1)


def test_verify__time_ends_among_the_events__says_nothing_of_the_books() -> None:
    kept = Kept()
    verifier = Verifier(kept.reads)  # whose time is over
    with pytest.raises(WaitTimeout, match=r"the market's books are not verified: .* too short for its events"):
        verifier._read(kept.chain.head())


def test_results__log_is_withheld__is_had_all_the_same() -> None:
    kept = Kept()
    ((one,), _) = kept.results._results(kept.view(kept.name), None)
    assert (one.result, one.report) == (kept.true, ZERO_HASH)


@pytest.mark.parametrize(
    ("unit", "second"),
    [
        (replace(DONE, flags=UnitFlag(0)), None),
        (replace(DONE, state=State.RUNNING, outcome=Outcome.NONE), None),
        (replace(DONE, state=State.REFUNDED), None),
        (replace(DONE, state=State.DISPUTED), 9),
        (replace(DONE, state=State.SUBMITTED), 9),
    ],
)
def test_kept__auxiliary_slot__is_a_digest_from_the_submit_on_only(unit: Unit, second: int | None) -> None:
    place = Place()
    job = JobId(bytes.fromhex(place.post(unit)[2:]))
    place.stored[job, 0] = (words.pack_unit(unit), 9)
    assert place.market.unit(job).kept == (None if second is None else second.to_bytes(32, "big"))


def test_results__nothing_is_kept__the_log_is_all_there_is() -> None:
    kept = Kept(replace(DONE, flags=UnitFlag(0)))
    assert kept.results._results(kept.view(kept.name), None) == ([], [])
    kept.log(kept.other)
    ((one,), _) = kept.results._results(kept.view(kept.name), None)
    assert one.result == kept.other and not kept.market.strays


def test_get_and_logs__unit_that_the_job_has_not__is_named_as_such() -> None:
    kept = Kept()
    for ask in (kept.results.get, kept.results.logs):
        with pytest.raises(NotFoundError) as caught:
            ask(kept.name, unit=1)
        assert caught.value.message == f"job {kept.name[:14]} has no unit 1: 0 to 0"


def test_results__unit_that_nobody_touched__has_none() -> None:
    kept = Kept()
    assert kept.results._results(kept.view(kept.name), 7) == ([], [])


def test_books__jobs_that_wait__hold_the_fee_of_their_unlock_and_are_no_fault() -> None:
    from hearth.protocol import formulas

    place = Place()
    parents = [place.parent(DONE)]
    jobs = [
        place.post(Unit(state=State.BLOCKED), parents),
        place.post(Header(leases=3, waiting=True), parents, units=3),
    ]
    verifier = Verifier(place.reads)
    verifier._market, verifier._end = place.market, float("inf")
    funded: defaultdict[bytes, int] = defaultdict(int)
    holds: defaultdict[bytes, int] = defaultdict(int)
    head, faults = place.chain.head(), list[str]()
    page = [place.market.terms_of(place.session.job_id(job)) for job in jobs]
    for posted, header, stored in place.market.stored(page, head.hash):
        verifier._verify_job(posted, header, stored, _History(), holds, faults)
        funded[formulas.lock_key(posted.terms.submitter)] += formulas.escrow_at_post(posted.terms)
    assert holds == funded and faults == []
    books = Books()
    books.locks[place.network.jobs, b"\x07" * 32] = 0
    stored = {**funded, b"\x07" * 32: 0}
    place.market.locks = lambda who, keys, block="latest": [stored[key] for key in keys]  # type: ignore[method-assign,assignment]
    assert verifier._compare_holds(books, holds, head) == []
    stored = {key: lock + 1 for key, lock in stored.items()}
    faults = verifier._compare_holds(books, holds, head)
    assert len(faults) == len(funded) + 1 and all("the units of these jobs hold" in one for one in faults)


@pytest.mark.parametrize("rounds", [1, 75, 150])
def test_verify__many_jobs__are_read_by_pages_and_not_one_by_one(monkeypatch: pytest.MonkeyPatch, rounds: int) -> None:
    """Of 600 jobs a quarter each keeps a result, is an array, and was resumed: 3 pages of 256, and 3 of their units."""
    place, plain = Place(), replace(DONE, flags=UnitFlag(0))
    array = Header(leases=4, touched=3, done=3)
    for _ in range(rounds):
        place.post(plain)
        place.post(DONE)
        several = place.session.job_id(place.post(array, units=4))
        place.units |= {(several, index): words.pack_unit(plain) for index in range(3)}
        resumed = place.session.job_id(place.post(replace(plain, resume=1)))
        place.resumed[resumed] = [words.pack_kept(KeptCheckpoint(9, 1, NodeId(8)))]
    asked: list[str] = []
    call = place.market._raw

    def raw(contract: str, name: str, *args: Any, block: Any) -> bytes:
        asked.append(name)
        if name == "locks":
            return encode(["uint256[]"], [[0] * len(args[1])])
        return call(contract, name, *args, block=block)

    monkeypatch.setattr(place.market, "_raw", raw)
    verifier = Verifier(place.reads)
    verifier._market = place.market
    monkeypatch.setattr(place.session.settings, "timeout", 60)
    monkeypatch.setattr(verifier, "_compare_books", lambda books, head: [])
    monkeypatch.setattr(place.market, "nodes", lambda block: [])
    monkeypatch.setattr("hearth.client.audit.verify.governance_faults", lambda *_: [])
    monkeypatch.setattr("hearth.client.audit.verify.creation_faults", lambda *_: ([], []))
    monkeypatch.setattr(place.market, "seats", lambda block: Seats(ZERO_ADDRESS, ZERO_ADDRESS, ZERO_ADDRESS, 5))
    report = verifier.verify()
    assert (report["jobs"], report["settled"], report["solvent"]) == (4 * rounds, 6 * rounds, False)
    pages = -(-4 * rounds // PAGE)
    assert sorted(asked) == ["locks"] + ["status"] * (2 * pages)
    assert place.chain.counts["call"] == 2 * pages


def test_verify__arrays_that_share_pages__have_their_own_units() -> None:
    """None of one that nobody touched, and none of a job that the chain does not know."""
    place, sizes = Place(), (PAGE + 44, 0, None, 1, 4)
    jobs = [
        place.post(replace(DONE, node=NodeId(77)))
        if touched is None
        else place.post(Header(leases=2 * PAGE, touched=touched), units=2 * PAGE)
        for touched in sizes
    ]
    for at, job in enumerate(jobs):
        key = place.session.job_id(job)
        for index in range(2 * PAGE):
            unit = replace(DONE, node=NodeId(10_000 * at + index + 1), flags=UnitFlag.STORE | UnitFlag.ARRAY)
            place.units[key, index] = words.pack_unit(unit)
    unknown = place.session.job_id(place.post(DONE))
    del place.stored[unknown, 0]
    head = place.chain.head()
    before = place.chain.counts["call"]
    posted = place.market.posted(from_block=0, to_block=head.number)
    found = list(place.market.stored(posted, head.hash))
    assert [f"0x{one.job_id.hex()}" for one, _, _ in found] == jobs
    assert [None if header is None else header.touched for _, header, _ in found] == list(sizes)
    nodes = [[one.view.unit.node for one in stored] for _, _, stored in found]
    assert nodes == [
        [77] if touched is None else [10_000 * at + index + 1 for index in range(touched)]
        for at, touched in enumerate(sizes)
    ]
    assert place.chain.counts["call"] - before == 1 + 2
    assert len(place.market.strays.first) == 1


def test_summary__job_that_a_parent_ended__says_that_it_never_ran() -> None:
    place = Place()
    ended = Unit(state=State.CANCELLED)
    for refund, failed in ((7, True), (0, False)):
        name = place.post(ended, [place.parent(DONE)])
        made = own_log(
            "Unlocked", job_id=place.session.job_id(name), index=0, word=words.pack_unit(ended), refund=refund
        )
        place.chain.mine([Event(place.network.jobs, made.topics, made.data)])
        assert Results(place.reads).summary(name, None)["parents_failed"] is failed
    free = place.post(ended)
    assert Results(place.reads).summary(free, None)["parents_failed"] is False
