"""Jobs that wait for other jobs, as the client reads, posts, unlocks and cancels them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from eth_abi.abi import encode

from hearth.base.errors import ChainError, HearthError, NotFoundError, RefusedError, SpecError, UsageError
from hearth.chain.port import Block, Call
from hearth.client.job import cancelling
from hearth.client.job.parents import latest_end, look_at, waits_for
from hearth.client.job.receipt import shares_of
from hearth.client.jobs import Jobs
from hearth.client.names import Moments, Names
from hearth.client.posting.post import Posting
from hearth.client.posting.preflight import Preflight, _waiting_words
from hearth.client.posting.quick import with_parents
from hearth.client.posting.sources import Allowed
from hearth.client.records import Records, parents_of
from hearth.client.views import JobView, next_step
from hearth.jobfile import spec_from
from hearth.market.abi import codec
from hearth.market.events import Split, Unlocked
from hearth.market.reads import Policies
from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import (
    MAX_PARENTS,
    SENTINEL,
    ZERO_ADDRESS,
    Header,
    JobId,
    NodeId,
    Outcome,
    State,
    Terms,
    TermsFlag,
    Unit,
    UnitFlag,
)
from tests.kit import build
from tests.kit.scripted import ScriptedMarket
from tools import schemas

ACCOUNT = "0x" + "5b" * 20
NOWHERE = Path("/nonexistent")
LATER = 1_700_100_000
FAR = 2_000_000_000
RUNNING = Unit(state=State.RUNNING, node=NodeId(5), rate=5, started=LATER - 60, mark=LATER)
WELL = Unit(state=State.SETTLED, outcome=Outcome.OK, node=NodeId(5), attempts=1)
TRAPPED = replace(WELL, outcome=Outcome.TRAP)
BLOCKED = Unit(state=State.BLOCKED, started=5)
SUCCESS, FAILURE, ALWAYS = Condition


class Place(ScriptedMarket):
    """A scripted market whose jobs stand as a test says, and the session of somebody who looks at them and acts."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[tuple[bytes, int], tuple[int, int]] = {}
        self.units: dict[tuple[bytes, int], int] = {}
        """The touched units of arrays."""
        self.resumed: dict[bytes, list[int]] = {}
        """The checkpoints of jobs whose units were resumed."""
        self.told: list[str] = []
        self.sent: list[tuple[Call, str]] = []
        self.on("JobRegistry", "load", self._load)
        self.on("Lens", "jobs", self._jobs)
        self.on("Lens", "status", self._status)
        self.session: Any = SimpleNamespace(
            market=self.market,
            network=self.network,
            asset=self.network.asset,
            settings=SimpleNamespace(timeout=0),
            names=Names(NOWHERE, NOWHERE / "names", None, writes=False),
            moments=Moments(NOWHERE, NOWHERE / "moments.json", writes=False),
            dry_run=False,
            explorer=lambda tx: None,
            amount=lambda units: f"{units} wei",
            tell=lambda kind, facts: self.told.append(facts["text"]),
            job_id=lambda text: JobId(bytes.fromhex(text[2:])),
            key=lambda: SimpleNamespace(address=ACCOUNT, name="me"),
            require_funds=lambda *args, **options: None,
            sender=self._sender,
            send=self._send,
        )
        self.jobs = Jobs(self.session)
        self.reads = self.jobs.reads

    def post(self, word: Unit | Header, parents: Sequence[Parent] = (), **changes: Any) -> str:
        """Post a job that stands at `word`; return its id."""
        packed = pack_parents(parents)
        known = {"salt": len(self.stored) + 1, "submitter": ACCOUNT, "deadline": FAR, "match_window": 1}
        terms = build.terms(**{**known, "parents_hash": parents_hash(packed), **changes})
        self.chain.mine([self.posted(terms, parents=packed)])
        job = self.market.job_id(terms)
        header = isinstance(word, Header)
        self.stored[job, 0] = (words.pack_header(word) if header else words.pack_unit(word), 0)  # type: ignore[arg-type]
        return f"0x{job.hex()}"

    def parent(self, word: Unit | Header, condition: Condition = SUCCESS, **changes: Any) -> Parent:
        """Post a job for another one to wait for."""
        return Parent(self.session.job_id(self.post(word, **changes)), condition)

    def view(self, job: str) -> JobView:
        return self.reads.look(job)

    def waits(self, job: str) -> str:
        """Return what a blocked job says that it waits for."""
        told = self.jobs.show(job)["waits"]
        assert told is not None
        return told

    def _load(self, call: Call, block: Block) -> bytes:
        told = codec("JobRegistry").decode_input(call.data)
        assert told is not None
        word, second = self.stored.get((told[1]["job_id"], 0), (0, 0))
        return encode(["uint256"] * 4, [word, 0, second, 0])

    def _jobs(self, call: Call, block: Block) -> bytes:
        told = codec("Lens").decode_input(call.data)
        assert told is not None
        (ids,) = told[1].values()
        return encode(["uint256[]"], [[self.stored.get((one, 0), (0, 0))[0] for one in ids]])

    def _status(self, call: Call, block: Block) -> bytes:
        told = codec("Lens").decode_input(call.data)
        assert told is not None
        (places,) = told[1].values()
        page = []
        for job, index in places:
            word, second = self.stored.get((job, 0), (0, 0))
            unit = self.units.get((job, index), 0) if words.is_header(word) else word
            page.append((word, unit, second, 0, self.resumed.get(job, [])))
        return encode(["(uint256,uint256,uint256,uint256,uint256[])[]"], [page])

    @contextmanager
    def _sender(self) -> Iterator[None]:
        yield None

    def _send(self, sender: object, call: Call, key: str) -> Any:
        self.sent.append((call, key))
        facts = {"action": call.label, "tx": "0x12", "block": 3, "gas": 1, "fee": "1", "fee_text": "1 wei"}
        return {**facts, "explorer": None, "repeated": False, "dry_run": False}


@pytest.fixture
def place() -> Place:
    return Place()


# ---- what it stands at ----


@pytest.mark.parametrize(
    ("parent", "condition", "text"),
    [
        (RUNNING, SUCCESS, "running, node 5 may submit until 02:00:00 UTC"),
        (replace(RUNNING, state=State.SUBMITTED), SUCCESS, "result in, its result may be settled from"),
        (Unit(state=State.OPEN), SUCCESS, "waiting for a machine, until 2033-05-18 03:33:25 UTC at most"),
        (BLOCKED, ALWAYS, "waiting for other jobs, until 2033-05-18"),
        (
            Header(leases=3, waiting=True),
            SUCCESS,
            "waiting for other jobs, 0 of 3 units done so far, until 2033-05-18",
        ),
        (Header(touched=3, leases=3, done=2), SUCCESS, "running, 2 of 3 units done so far"),
        (Header(leases=3), SUCCESS, "waiting for a machine, 0 of 3 units done so far"),
    ],
)
def test_show__job_whose_parent_runs__says_what_that_does_and_until_when(
    place: Place, parent: Unit | Header, condition: Condition, text: str
) -> None:
    one = place.parent(parent, condition, units=3 if isinstance(parent, Header) else 1)
    for word in (BLOCKED, Header(leases=2, waiting=True)):
        job = place.post(word, [one], units=1 if isinstance(word, Unit) else 2)
        facts = place.jobs.show(job)
        schemas.validate(facts)
        assert (facts["state"], facts["verdict"], facts["counts"]) == (
            "blocked",
            "pending",
            {"blocked": facts["units"]},
        )
        assert place.waits(job).startswith(f"waits for 0x{one.job.hex()[:12]} ({text}")
        (row,) = facts["parents"]
        assert (row["condition"], row["ended"], row["as_asked"]) == (condition.name.lower(), None, None)
        assert [lease["next"] for lease in facts["leases"]] == [facts["waits"]] * isinstance(word, Unit)


@pytest.mark.parametrize(
    ("words_of", "text"),
    [
        ([(WELL, SUCCESS)], "what it waited for has ended as asked: anyone may start it"),
        ([(TRAPPED, FAILURE), (WELL, ALWAYS)], "what it waited for has ended as asked: anyone may start it"),
        ([(RUNNING, SUCCESS), (TRAPPED, SUCCESS)], "was to end well, and ended otherwise: failed: the program trapped"),
        ([(RUNNING, SUCCESS), (WELL, FAILURE)], "was to fail, and ended well: anyone may end this one for a refund"),
        ([(replace(WELL, outcome=Outcome.NONE), SUCCESS)], "ended otherwise: without an outcome"),
        ([(Unit(state=State.EXPIRED), SUCCESS)], "was to end well, and ended otherwise: expired: anyone may end"),
        ([(RUNNING, FAILURE), (WELL, SUCCESS)], "waits for 0x"),
    ],
)
def test_show__job_whose_parents_ended__says_what_anyone_may_do(
    place: Place, words_of: list[tuple[Unit, Condition]], text: str
) -> None:
    job = place.post(BLOCKED, [place.parent(word, condition) for word, condition in words_of])
    assert text in place.waits(job)


def test_show__parent_that_is_no_job_of_this_market__never_ends(place: Place) -> None:
    unknown, unit = Parent(JobId(b"\x66" * 32), SUCCESS), Parent(JobId(b"\x67" * 32), ALWAYS)
    # An array's unit stands under a key that looks like a job's id.
    place.stored[unit.job, 0] = (words.pack_unit(replace(WELL, flags=UnitFlag.ARRAY)), 0)
    facts = place.jobs.show(place.post(BLOCKED, [unknown, unit]))
    assert [row["text"] for row in facts["parents"]] == ["no job of this market: it never ends"] * 2
    assert [row["state"] for row in facts["parents"]] == [None, None] and "it never ends" in (facts["waits"] or "")


def test_waits_for__no_attempt_can_end_in_time__it_can_only_expire(place: Place) -> None:
    parent = place.parent(WELL)
    job = place.post(BLOCKED, [parent], deadline=place.chain.head().timestamp + 30)
    assert "anyone may expire it for a refund" in place.waits(job)
    view = place.view(job)
    parents = look_at(place.reads, [parent], place.chain.head())
    assert "may start it" in waits_for(replace(view, now=view.now - 3_600), parents)


def test_show__ended_array__counts_its_units(place: Place) -> None:
    for header, text in (
        (Header(touched=2, done=1, failed=1, leases=2), "ended otherwise: 1 of 2 units done"),
        (Header(touched=2, done=2, leases=2), "ended well"),
        (Header(closed=True, leases=2), "ended otherwise: 0 of 2 units done"),
    ):
        # The array's own word is enough: an array of a million units is not read.
        job = place.post(BLOCKED, [place.parent(header, units=2)])
        (row,) = place.jobs.show(job)["parents"]
        assert (row["text"], row["state"]) == (text, "ended")


def test_show__job_that_ran__names_its_parents_and_waits_for_nothing(place: Place) -> None:
    facts = place.jobs.show(place.post(WELL, [place.parent(WELL)]))
    assert facts["waits"] is None and facts["parents"][0]["as_asked"] is True
    assert place.jobs.show(place.post(WELL))["parents"] == []


def test_list__blocked__is_a_state_of_its_own(place: Place) -> None:
    job = place.post(BLOCKED, [place.parent(RUNNING)])
    array = place.post(Header(leases=2, waiting=True), [place.parent(RUNNING)], units=2)
    assert {row["job"] for row in place.jobs.list(state="blocked", everyone=True)["jobs"]} == {job, array}


def test_list__newest_of_everybody__says_how_many_are_left_out(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = place.post(WELL), place.post(WELL, submitter="0x" + "66" * 20)
    found = [place.market.terms_of(place.session.job_id(job)) for job in (other, mine)]
    monkeypatch.setattr(place.market, "newest", lambda last, head: found[:last])
    assert [row["job"] for row in place.jobs.list(last=2)["jobs"]] == [mine]
    assert place.told == ["1 of the market's newest 2 jobs are this account's; --all shows all"]
    assert len(place.jobs.list(last=2, everyone=True)["jobs"]) == 2 and len(place.told) == 1


def test_show__open_job__says_who_could_take_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place.market, "nodes", lambda block: [])
    monkeypatch.setattr(place.market, "last_seen", lambda node: LATER)
    for word, count in ((Unit(state=State.OPEN), 1), (Header(leases=3), 3)):
        facts = place.jobs.show(place.post(word, units=count))
        schemas.validate(facts)
        assert facts["workers"] == "no worker is registered on this network"
    # Nobody takes what runs, waits, has ended, or can only expire.
    for word in (RUNNING, WELL):
        assert place.jobs.show(place.post(word))["workers"] is None
    assert place.jobs.show(place.post(BLOCKED, [place.parent(RUNNING)]))["workers"] is None
    late = place.chain.head().timestamp + 30
    assert place.jobs.show(place.post(Unit(state=State.OPEN), deadline=late))["workers"] is None


def test_next_step__blocked__has_words_without_its_parents(place: Place) -> None:
    view = place.view(place.post(BLOCKED, [place.parent(RUNNING)]))
    assert next_step(view, 0, {}, 6) == "waits for other jobs"


@pytest.mark.parametrize("flags", [TermsFlag(0), TermsFlag.KEEP])
def test_show__kept_results__says_so(place: Place, flags: TermsFlag) -> None:
    assert place.jobs.show(place.post(WELL, flags=flags))["kept"] is bool(flags)


def test_posted__list_that_is_not_the_one_of_the_terms__is_a_stray(place: Place) -> None:
    asked = pack_parents([Parent(JobId(b"\x01" * 32), SUCCESS)])
    other = pack_parents([Parent(JobId(b"\x01" * 32), ALWAYS)])
    out_of_range = (b"\xff" * 32, b"\x01" * 32)
    for at, (hashed, listed) in enumerate([(asked, other), (asked, ()), ((), asked), (out_of_range, out_of_range)]):
        terms = build.terms(salt=900 + at, parents_hash=parents_hash(hashed))
        place.chain.mine([place.posted(terms, parents=listed)])
        assert place.market.posted(from_block=0, to_block=place.chain.head().number) == []
        assert len(place.market.strays) == at + 1
    assert "waits for other jobs than it was posted for" in place.market.strays.first[0]


def test_unit__untouched_lease_of_an_array_that_waits__is_blocked(place: Place) -> None:
    array = JobId(bytes.fromhex(place.post(Header(leases=2, waiting=True, opened=7), units=2)[2:]))
    assert place.market.unit(array, 1).unit == Unit(state=State.BLOCKED, started=7)


@pytest.mark.parametrize("word", [12, SENTINEL, words.pack_unit(RUNNING) | (1 << 40) - 1 << 4])
def test_show__parents_word_that_no_contract_writes__is_the_providers_fault(place: Place, word: int) -> None:
    parent = place.parent(RUNNING)
    job = place.post(BLOCKED, [parent])
    place.stored[parent.job, 0] = (word, 0)
    with pytest.raises(ChainError) as caught:
        place.jobs.show(job)
    assert caught.value.code == "RPC_BROKEN" and parent.job.hex() in caught.value.message


def test_show__many_parents__searches_the_logs_no_more_often_than_for_one(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's list would make whoever shows his job search the whole chain once for each parent."""
    asked: list[Any] = []
    plain = place.chain.logs
    monkeypatch.setattr(place.chain, "logs", lambda *args, **options: asked.append(args) or plain(*args, **options))
    counts = []
    for number in (1, MAX_PARENTS):
        parents = [place.parent(RUNNING) for _ in range(number)]
        job = place.post(BLOCKED, parents)
        asked.clear()
        rows = place.jobs.show(job)["parents"]
        counts.append(len(asked))
        assert [(row["job"], row["state"]) for row in rows] == [(f"0x{one.job.hex()}", "running") for one in parents]
    assert counts[0] == counts[1]


# ---- unlocking ----


@pytest.mark.parametrize(("parent", "opens"), [(WELL, True), (TRAPPED, False)])
@pytest.mark.parametrize("word", [BLOCKED, Header(leases=2, waiting=True)])
def test_unlock__parents_have_ended__sends_the_list_as_posted(
    place: Place, parent: Unit, opens: bool, word: Unit | Header
) -> None:
    parents = [place.parent(parent), place.parent(WELL, ALWAYS)]
    job = place.post(word, parents, units=1 if isinstance(word, Unit) else 2)

    def gas_alone(address: str, *, asset_units: int, gas: int, what: str) -> None:
        # Whoever unlocks has coin for it, and may hold nothing of what the market pays in.
        assert (address, asset_units) == (ACCOUNT, 0) and gas > 0

    place.session.require_funds = gas_alone
    report = place.jobs.unlock(job)
    schemas.validate(report)
    assert report["opens"] is opens and report["fee"] == str(build.terms().keeper_fee)
    ((call, key),) = place.sent
    told = codec("JobRegistry").decode_input(call.data)
    assert told is not None and told[0] == "unlock" and key == f"unlock/{job[2:]}"
    assert tuple(told[1]["parents"]) == pack_parents(parents) and told[1]["payee"] == ZERO_ADDRESS


def refused(call: Any, code: str, kind: type[HearthError] = RefusedError) -> HearthError:
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.code == code and caught.value.hint
    return caught.value


def test_unlock__too_early_or_for_nothing__is_refused_with_what_is_missing(place: Place) -> None:
    runs, ended = place.parent(RUNNING), place.parent(WELL)
    early = place.post(BLOCKED, [ended, runs])
    error = refused(lambda: place.jobs.unlock(early), "PARENT_RUNS")
    assert f"0x{runs.job.hex()[:12]} (running, node 5 may submit until" in error.message
    assert error.hint == f"hearth job wait 0x{runs.job.hex()[:12]}" and f"{ended.job.hex()[:12]}" not in error.message
    unknown = place.post(BLOCKED, [Parent(JobId(b"\x66" * 32), ALWAYS)])
    error = refused(lambda: place.jobs.unlock(unknown), "PARENT_RUNS")
    assert "it never ends" in error.message and error.hint.startswith("hearth job cancel")
    opened = place.post(Unit(state=State.OPEN), [ended])
    assert "its state is waiting for a machine" in refused(lambda: place.jobs.unlock(opened), "NOT_BLOCKED").message
    late = place.post(BLOCKED, [ended], deadline=place.chain.head().timestamp + 30)
    assert "only expire" in refused(lambda: place.jobs.unlock(late), "NO_TIME").message
    assert place.sent == []


# ---- cancelling, waiting, adding up ----


def test_cancel__job_that_waits__is_cancelled_whole(place: Place) -> None:
    parents = [place.parent(RUNNING)]
    assert cancelling.wanted(place.view(place.post(BLOCKED, parents)), None) == [0]
    array = place.view(place.post(Header(leases=3, waiting=True), parents, units=3))
    assert cancelling.wanted(array, None) == [SENTINEL]


@pytest.mark.parametrize("word", [BLOCKED, Header(leases=2, waiting=True)])
def test_wait__blocked__looks_for_no_worker(place: Place, word: Unit | Header, monkeypatch: pytest.MonkeyPatch) -> None:
    from hearth.client.job import following

    looked: list[int] = []
    monkeypatch.setattr(following.Fleet, "read", lambda session: looked.append(1))
    view = place.view(place.post(word, [place.parent(RUNNING)], units=1 if isinstance(word, Unit) else 2))
    watch = following._Chances(place.reads)
    for now in range(100, 1_000, 7):
        watch.look(replace(view, now=now))
    assert looked == []


@pytest.mark.parametrize(("refund", "shares"), [(0, (0, 7, 0, 0)), (90, (90, 7, 0, 0))])
def test_receipt__unlock__pays_whoever_did_it_and_refunds_the_rest(refund: int, shares: tuple[int, ...]) -> None:
    job = JobId(b"\x07" * 32)
    log: Any = None
    split = Split(
        log,
        ACCOUNT,
        formulas.lock_key(ACCOUNT),
        tuple(words.pack(words.SHARE, {"account": 1, "amount": one}) for one in shares),
    )
    assert shares_of([Unlocked(log, job, 0, words.pack_unit(WELL), refund), split], job, ACCOUNT) == (refund, 0, 7)


# ---- posting ----


def loaded(*parents: Parent) -> Any:
    after = [{"job": f"0x{one.job.hex()}", "if": one.condition.name.lower()} for one in parents]
    return spec_from({"image": "x", "after": after}, "job.yaml")


def plan(place: Place, *parents: Parent) -> Any:
    seen = look_at(place.reads, parents, place.chain.head())
    return SimpleNamespace(parents=tuple(seen), loaded=loaded(*parents))


def test_require_parents__that_run_or_ended_as_asked__pass(place: Place) -> None:
    good = [
        place.parent(RUNNING, FAILURE),
        place.parent(WELL),
        place.parent(TRAPPED, FAILURE),
        place.parent(WELL, ALWAYS),
    ]
    Preflight(place.reads).require_parents(plan(place, *good))


@pytest.mark.parametrize(
    ("word", "condition", "code", "message"),
    [
        (TRAPPED, SUCCESS, "PARENT_ENDED", "was to end well, and has ended otherwise: failed: the program trapped"),
        (WELL, FAILURE, "PARENT_ENDED", "was to fail, and has ended well: this job would be refunded at once"),
        (None, ALWAYS, "NO_PARENT", "on testnet: one that waits for it would never start"),
    ],
)
def test_require_parents__job_that_could_never_run__is_refused_with_its_place(
    place: Place, word: Unit | None, condition: Condition, code: str, message: str
) -> None:
    place.session.network = SimpleNamespace(name="testnet")
    bad = Parent(JobId(b"\x66" * 32), condition) if word is None else place.parent(word, condition)
    made = plan(place, place.parent(RUNNING), bad)
    error = refused(lambda: Preflight(place.reads).require_parents(made), code, SpecError)
    assert message in error.message and error.details["field"] == "after[1]"
    assert f"job 0x{bad.job.hex()}" in error.message and error.message.startswith("job.yaml: after[1]: ")


def test_require_parents__named_by_an_option__are_refused_in_its_words(place: Place) -> None:
    good, bad = place.parent(RUNNING), place.parent(TRAPPED)
    text = f"0x{bad.job.hex()}:success"
    job = with_parents(place.session, loaded(good), [text])
    made = SimpleNamespace(parents=look_at(place.reads, [good, bad], place.chain.head()), loaded=job)
    error = refused(lambda: Preflight(place.reads).require_parents(made), "PARENT_ENDED", SpecError)  # type: ignore[arg-type]
    assert error.message.startswith(f'--after "{text}": job 0x') and "job.yaml" not in error.message
    again = refused(lambda: with_parents(place.session, loaded(bad), [text]), "BAD_SPEC", SpecError)
    assert again.message.startswith(f'--after "{text}": names a job twice')
    # What the file itself says wrong stays the file's.
    made.parents = look_at(place.reads, [bad, good], place.chain.head())
    error = refused(lambda: Preflight(place.reads).require_parents(made), "PARENT_ENDED", SpecError)  # type: ignore[arg-type]
    assert error.message.startswith("job.yaml: after[0]: ")


def test_waiting_words__parents__say_whose_word_it_is_and_what_comes_too_late(place: Place) -> None:
    now = place.chain.head().timestamp
    terms: Terms = build.terms(deadline=now + 3_600)
    judged = {"judge": "0x" + "aa" * 20, "judge_data": 7, "flags": TermsFlag.PROVEN}

    def said(parent: Parent) -> list[str]:
        return list(_waiting_words(terms, look_at(place.reads, [parent], place.chain.head())))

    assert [line.partition("; ")[2] for line in said(place.parent(RUNNING, deadline=now + 60))] == [
        "how it ends is its worker's word, which nobody can challenge"
    ]
    assert "; " not in said(place.parent(RUNNING, ALWAYS, deadline=now + 60))[0]
    assert "; " not in said(place.parent(RUNNING, deadline=now + 60, **judged))[0]
    # What has ended is told in one line, however it did: it takes no more time, and its end is nobody's word to give.
    assert [line.partition(": ")[2] for line in said(place.parent(WELL))] == ["ended well"]
    assert [line.partition(": ")[2] for line in said(place.parent(TRAPPED, deadline=now + 7_200))] == [
        "ended otherwise: failed: the program trapped"
    ]
    policy = words.unpack_policy(terms.policy)
    last = formulas.expirable_from(terms) - 1
    # A newcomer's result is held for so long after it came.
    assert len(said(place.parent(RUNNING, deadline=last - policy.fresh_delay))) == 1
    (_, late) = said(place.parent(RUNNING, deadline=last - policy.fresh_delay + 1))
    assert "leaves this one no time before its deadline" in late and "raise limits.deadline" in late
    # What asks for a proof may wait for it as long as its window, whoever ran it.
    assert len(said(place.parent(RUNNING, deadline=last - 10, challenge_window=10, **judged))) == 1
    assert len(said(place.parent(RUNNING, deadline=last - 10, challenge_window=11, **judged))) == 2


@pytest.mark.parametrize(
    ("flags", "delay"), [(TermsFlag(0), 3_600), (TermsFlag.NEWCOMERS, 3_600), (TermsFlag.PROVEN, 60)]
)
def test_latest_end__result_of_a_newcomer_at_the_deadline__is_settled_then(flags: TermsFlag, delay: int) -> None:
    """A price below probation's lets newcomers in without their flag; what asks for a proof waits for it alone."""
    judged = {"judge": "0x" + "aa" * 20, "judge_data": 7} if flags & TermsFlag.PROVEN else {}
    policy = replace(words.unpack_policy(build.terms().policy), fresh_delay=3_600)
    for window in (60, 7_200):
        terms = build.terms(
            deadline=FAR, challenge_window=window, policy=words.pack_policy(policy), flags=flags, **judged
        )
        last = replace(RUNNING, state=State.SUBMITTED, mark=FAR, flags=UnitFlag.FRESH)
        assert latest_end(terms) == formulas.settleable_from(terms, last) == FAR + max(window, delay)


def test_submit__parent_that_fails_while_sources_are_stored__is_refused_before_it_is_paid(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be refunded at once, less a keeper fee."""
    parent = place.parent(RUNNING)
    packed = pack_parents([parent])
    made = plan(place, parent)
    made.lines, made.gates, made.fingerprint, made.auto_price, made.packed = (), {}, "print", False, packed
    made.terms = build.terms(submitter=ACCOUNT, salt=0, parents_hash=parents_hash(packed))
    made.paused_until, made.fleet = 0, SimpleNamespace(now=0)
    place.session.records = Records(tmp_path, tmp_path / "posted")
    place.session.unlocked = lambda key: None
    posting = Posting(place.reads, SimpleNamespace())  # type: ignore[arg-type]
    monkeypatch.setattr(posting._preflight, "planned", lambda loaded, allowed: nullcontext(made))
    monkeypatch.setattr(posting, "_require_price", lambda *args: 0)
    monkeypatch.setattr(posting, "_finish", lambda job, *args, **options: job)

    def submit() -> Any:
        return posting._submit(made.loaded, Allowed(), True, True, False, None, False)

    monkeypatch.setattr(posting, "_upload", lambda plan: None)
    submit()
    assert [call.label for call, _ in place.sent] == ["jobs.post"]
    ended = (words.pack_unit(TRAPPED), 0)
    monkeypatch.setattr(posting, "_upload", lambda plan: place.stored.update({(parent.job, 0): ended}))
    refused(submit, "PARENT_ENDED", SpecError)
    assert len(place.sent) == 1 and len(list(place.session.records.unseen("print"))) == 1


def test_pending__job_on_its_way_under_the_policy_before__is_not_posted_a_second_time(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chain takes the policy that was replaced for a day more."""
    terms = build.terms(submitter=ACCOUNT, salt=7)
    place.session.records = Records(tmp_path, tmp_path / "posted")
    posting = Posting(place.reads, SimpleNamespace())  # type: ignore[arg-type]
    record = place.session.records.write("0x" + place.market.job_id(terms).hex(), "print", "job.yaml", terms, 0, ())
    now = place.chain.head().timestamp

    def found(word: int, previous: int, until: int) -> Any:
        monkeypatch.setattr(place.market, "policies", lambda: Policies(word, previous, until, 0))
        return posting._pending("print")

    other = words.pack_policy(replace(words.unpack_policy(terms.policy), fee_bps=501))
    assert found(terms.policy, other, 0) == record
    assert found(other, terms.policy, now + 1) == record
    assert found(other, terms.policy, now) is None
    assert found(other, other, now + 1) is None


def test_calls__job_that_waits__is_posted_with_its_list_now_and_after_a_crash(place: Place, tmp_path: Path) -> None:
    packed = pack_parents([place.parent(RUNNING, FAILURE), place.parent(RUNNING)])
    terms = build.terms(submitter=ACCOUNT, salt=77, parents_hash=parents_hash(packed))
    place.session.records = Records(tmp_path, tmp_path / "posted")
    posting = Posting(place.reads, SimpleNamespace())  # type: ignore[arg-type]
    job, _ = posting._post(terms, packed, "print", "job.yaml", 0, "the same command finds it")
    (record,) = place.session.records.unseen("print")
    schemas.validate(record)
    assert parents_of(record) == packed and record["job"] == job
    posting._repost(record)
    for call, key in place.sent:
        told = codec("JobRegistry").decode_input(call.data)
        assert told is not None and tuple(told[1]["parents"]) == packed and key == f"post/{job[2:]}"
        assert (
            call.value
            == formulas.escrow_at_post(terms)
            == terms.leases * formulas.lease_budget(terms) + terms.keeper_fee
        )
    assert len(place.sent) == 2
    del record["parents"]  # as a version that knew none wrote it
    assert parents_of(record) == ()


def test_rerun__of_a_job_that_waited__waits_for_nothing_and_says_so(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = place.post(WELL, [place.parent(WELL)])
    posting = Posting(place.reads, SimpleNamespace())  # type: ignore[arg-type]
    posted: list[tuple[Terms, Any]] = []
    policies = SimpleNamespace(word=build.terms().policy, policy=None, paused_until=0)
    monkeypatch.setattr(type(place.market), "policies", lambda self: policies)
    monkeypatch.setattr("hearth.client.posting.post.Fleet.read", lambda session: SimpleNamespace(gates=lambda *_: {}))
    monkeypatch.setattr(posting, "_require_price", lambda terms, use_credit: 0)
    monkeypatch.setattr(
        posting, "_post", lambda terms, parents, *rest: posted.append((terms, parents)) or ("0x" + "01" * 32, [])
    )
    posting.rerun(job, anyway=True)
    ((terms, parents),) = posted
    assert terms.parents_hash == bytes(32) and parents == ()
    assert place.told == [f"job {job[:14]} was to wait for others; this one runs at once"]


def test_with_parents__of_the_command_line__come_after_those_of_the_file(place: Place) -> None:
    one, two, three = (f"0x{number:064x}" for number in (1, 2, 3))
    made = with_parents(place.session, loaded(Parent(JobId(bytes.fromhex(one[2:])), ALWAYS)), [two, f"{three}:failure"])
    found = [(parent.job, parent.condition) for parent in made.spec.after]
    assert found == [(one, "always"), (two, "success"), (three, "failure")]
    same = loaded()
    assert with_parents(place.session, same, ()) is same


def test_with_parents__what_names_no_end_or_a_job_twice__is_refused(place: Place) -> None:
    one = f"0x{1:064x}"
    error = refused(lambda: with_parents(place.session, loaded(), [f"{one}:ok"]), "USAGE", UsageError)
    assert "ok is no end of a job" in error.message
    with pytest.raises(SpecError, match="names a job twice"):
        with_parents(place.session, loaded(), [one, f"{one}:failure"])

    def unknown(text: str) -> JobId:
        raise NotFoundError(f"no job starts with {text}", hint="hearth jobs --all")

    place.session.job_id = unknown
    refused(lambda: with_parents(place.session, loaded(), ["0xab"]), "NOT_FOUND", NotFoundError)
