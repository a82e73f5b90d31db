"""Logs that no contract of the market writes, in front of the client: each is counted and named, and stops nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from eth_abi.abi import encode
from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.base.errors import ChainError, NotFoundError
from hearth.chain.port import Block, Call, Receipt
from hearth.cli.__main__ import main
from hearth.client.audit.verify import Verifier
from hearth.client.job import following
from hearth.client.job.receipt import _transactions, shares_of
from hearth.client.net import Net
from hearth.client.reading import JobReader
from hearth.client.session import Session
from hearth.client.views import event_facts
from hearth.config.settings import Settings
from hearth.market.abi import codec
from hearth.market.events import EVENTS, JobPosted, Settled, Started, Submitted, topic_of
from hearth.protocol import words
from hearth.protocol.formulas import lock_key
from hearth.protocol.types import SENTINEL, Header, JobId, NodeId, Outcome, State, Unit
from tests.kit import build
from tests.kit.fake_chain import Event
from tests.kit.nonsense import nonsense
from tests.kit.scripted import ScriptedMarket
from tests.market.test_events import OWN, own_log
from tools import schemas

SUBMITTER = "0x" + "5b" * 20
TERMS = build.terms(submitter=SUBMITTER, salt=7)
RUNNING = Unit(state=State.RUNNING, node=NodeId(3), rate=5, started=10, mark=20)
DONE = Unit(state=State.SUBMITTED, outcome=Outcome.OK, node=NodeId(3), rate=5, started=10, mark=20)


class World(ScriptedMarket):
    """A scripted market with one posted job, as the client reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.job = self.market.job_id(TERMS)
        self.words: dict[bytes, int] = {self.job: words.pack_unit(RUNNING)}
        self.said: list[str] = []
        self.session: Any = SimpleNamespace(
            market=self.market,
            network=self.network,
            asset=self.network.asset,
            settings=SimpleNamespace(timeout=60),
            tell=lambda kind, facts: self.said.append(facts["text"]),
            job_id=lambda text: self.job,
        )
        self.reads = JobReader(self.session)
        self.answer("JobRegistry", "load", ["uint256"] * 4, [words.pack_unit(RUNNING), 0, 0, 0])
        self.on("Lens", "status", self._status)
        self.post = self.posted(TERMS)
        self.start = self.unit_event("Started", RUNNING)
        self.end = self.unit_event("Submitted", DONE)

    def _status(self, call: Call, block: Block) -> bytes:
        told = codec("Lens").decode_input(call.data)
        assert told is not None
        found = [self.words.get(job, 0) for job, _ in told[1]["places"]]
        return encode(["(uint256,uint256,uint256,uint256,uint256[])[]"], [[(one, one, 0, 0, []) for one in found]])

    def unit_event(self, name: str, unit: Unit, index: int = 0, job: JobId | None = None) -> Event:
        log = own_log(name, job_id=job or self.job, index=index, node=3, word=words.pack_unit(unit))
        return Event(self.network.jobs, log.topics, log.data)

    def nonsense(self, seed: int) -> list[Event]:
        """Return logs under the registry's address: impossible ones, and true ones changed by chance."""
        real = [(list(one.topics), one.data) for one in (self.post, self.start, self.end)]
        return [Event(self.network.jobs, tuple(topics), data) for topics, data in nonsense(self.job, real, seed)]

    @property
    def head(self) -> int:
        return self.chain.head().number


@pytest.fixture
def world() -> World:
    return World()


def test_events__nonsense_about_a_known_job__is_stepped_over_and_counted(world: World) -> None:
    for seed in range(5):
        world.chain.mine([world.post, world.start, *world.nonsense(seed), world.end])
    posted = world.market.terms_of(world.job)
    found = world.reads.events(posted, 0, world.head)
    assert {JobPosted, Started, Submitted} <= {type(event) for event in found}
    assert all(getattr(event, "index", 0) == 0 for event in found), "a job of one unit has no other"
    for event in found:
        schemas.validate(event_facts(event, world.network.asset))
    assert len(world.market.strays) > 5 * 30


@pytest.mark.parametrize("index", [1, 1 << 20, SENTINEL])
def test_events__of_a_unit_that_the_job_has_not__is_a_stray(world: World, index: int) -> None:
    known = world.unit_event("Started", RUNNING, index=index)
    if index == SENTINEL:
        log = own_log("Cancelled", job_id=world.job, index=index, word=words.pack_header(Header(closed=True)))
        known = Event(world.network.jobs, log.topics, log.data)
    world.chain.mine([world.post, known, world.start])
    found = world.reads.events(world.market.terms_of(world.job), 0, world.head)
    assert [type(event) for event in found] == [JobPosted, Started]
    (why,) = world.market.strays.first
    assert why.startswith(f"log 1 of block {world.head}: ") and "has no unit" in why


def test_follow__nonsense_in_between__goes_on_to_the_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "POLL_SECONDS", 0.0)
    ended = words.pack_unit(replace(DONE, state=State.SETTLED))
    world.answer("JobRegistry", "load", ["uint256"] * 4, [ended, 0, 0, 0])
    world.chain.mine([world.post, *world.nonsense(9), world.start, world.end])
    told = [facts["event"] for facts in following.follow(world.reads, "0x07", timeout=5.0)]
    assert told[0] == "JobPosted" and told[-2:] == ["Started", "Submitted"]
    assert world.market.strays


def test_views__job_that_the_chain_does_not_know__is_a_stray(world: World) -> None:
    """Anyone can compute the id of terms; that it was posted only the registry's storage says."""
    invented = world.posted(replace(TERMS, salt=8))
    world.chain.mine([invented, world.post])
    head = world.chain.head()
    views = world.reads.views(world.reads.posted(head), head)
    assert [view.posted.job_id for view in views] == [world.job]
    (why,) = world.market.strays.first
    assert why.endswith(" is not on the chain")


def test_views__word_that_no_contract_writes__is_the_providers_fault(world: World) -> None:
    world.chain.mine([world.post])
    head = world.chain.head()
    for word in (1 << 255, 1 << 254 | words.HEADER_STATE):
        world.words[world.job] = word
        with pytest.raises(ChainError) as caught:
            world.reads.views(world.reads.posted(head), head)
        assert caught.value.code == "RPC_BROKEN"


def test_jobs__last_of_a_list_that_no_contract_writes__is_told_in_words(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    world.tell_end(1 << 255)
    monkeypatch.setattr(Session, "market", world.market)
    assert main(["jobs", "--all", "--last", "1", "--json", "--network", "devnet"]) == 4
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "RPC_BROKEN"


def test_read__books_with_nonsense_between__have_what_can_be_placed(world: World) -> None:
    two = replace(TERMS, salt=9, units=2)
    array, unknown = world.market.job_id(two), JobId(b"\x5a" * 32)
    good = [world.post, world.posted(two), world.start, world.unit_event("Started", RUNNING, 1, array), world.end]
    bad = [
        world.posted(TERMS),
        world.unit_event("Reclaimed", RUNNING, 2, array),
        world.unit_event("Reclaimed", RUNNING, 0, unknown),
        world.unit_event("Submitted", DONE, 1),
        Event(world.network.jobs, own_log("Split").topics, own_log("Split").data),
        Event(world.network.escrow, world.start.topics, world.start.data),
        Event(world.network.escrow, own_log("Locked").topics, own_log("Locked").data[:-1]),
        Event(world.network.escrow, (b"\x01" * 32,), b""),
        Event(world.network.escrow, (), b""),
    ]
    plain = World()
    plain.chain.mine(good)
    world.chain.mine([good[0], *bad[1:], *good[1:], bad[0]])
    verifier, quiet = Verifier(world.reads), Verifier(plain.reads)
    verifier._end = quiet._end = float("inf")
    history, other = verifier._read(world.chain.head()), quiet._read(plain.chain.head())
    assert list(history.posted) == list(other.posted) == [world.job, array]
    assert history.words == other.words and set(history.submitted) == set(other.submitted) == {(world.job, 0)}
    assert history.reclaimed == other.reclaimed == 0 and history.books == other.books
    assert len(verifier._market.strays) == len(bad) and not quiet._market.strays
    assert not world.market.strays, "what these books could not place is no news of another command's"


def test_net_events__nonsense_of_every_contract__each_true_event_is_told(world: World) -> None:
    true = [own_log(name) for name in EVENTS if name != "JobPosted"]
    placed = [Event(world.network.contracts[OWN[name]], log.topics, log.data) for name, log in
              zip([name for name in EVENTS if name != "JobPosted"], true, strict=True)]  # fmt: skip
    cut = [one._replace(data=one.data[:-1]) for one in placed if one.data]
    world.chain.mine([world.post, *cut, *world.nonsense(4), *placed])
    net = Net(SimpleNamespace(session=world.session, reads=world.reads))  # type: ignore[arg-type]
    report = net.events()
    schemas.validate(dict(report))
    assert [facts["event"] for facts in report["events"]][-len(placed) :] == [n for n in EVENTS if n != "JobPosted"]
    assert report["strays"]["count"] >= len(cut) and len(report["strays"]["first"]) == 5


def _mutated(draw: random.Random) -> Iterator[tuple[str, Event]]:
    """Yield a log of each event with some of its bytes, topics or its length changed."""
    for name in EVENTS:
        log = own_log(name)
        topics, data = [*log.topics], bytearray(log.data)
        for _ in range(draw.randrange(1, 4)):
            kind = draw.randrange(4)
            if kind == 0 and len(topics) > 1:
                at = draw.randrange(1, len(topics))
                topics[at] = draw.choice([bytes(32), b"\xff" * 32, draw.randbytes(32)])
            elif kind == 1 and data:
                at = draw.randrange(0, len(data), 32)
                data[at : at + 32] = draw.choice([bytes(32), b"\xff" * 32, draw.randbytes(32)])
            elif kind == 2 and data:
                data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            else:
                del data[draw.randrange(len(data) + 1) :]
                topics = topics[: draw.randrange(1, len(topics) + 1)]
        yield name, Event("", tuple(topics), bytes(data))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 32))
def test_events_in__any_log_changed_by_chance__is_an_event_that_can_be_told_or_a_stray(seed: int) -> None:
    world = World()
    logs = [one._replace(address=world.network.contracts[OWN[name]]) for name, one in _mutated(random.Random(seed))]
    world.chain.mine(logs)
    mined = world.chain.logs([], from_block=0, to_block=world.head)
    told = list(world.market.events_in(mined))
    for event in told:
        schemas.validate(event_facts(event, world.network.asset))
    assert len(told) + len(world.market.strays) == len(mined) == len(EVENTS)


def test_receipt__transaction_with_a_strangers_log__is_added_up_all_the_same(world: World) -> None:
    """Whoever settles by a contract of his own chooses what else stands in the transaction: it stopped the receipt."""
    stranger = "0x" + "77" * 20
    shares = tuple(words.pack(words.SHARE, {"account": at, "amount": at}) for at in (1, 2, 3, 4))
    split = own_log("Split", controller=world.network.jobs, key=lock_key(SUBMITTER), shares=shares)
    settled = world.unit_event("Settled", replace(DONE, state=State.SETTLED))
    world.chain.mine(
        [
            settled,
            Event(stranger, (topic_of(Settled),), b""),
            world.unit_event("Declined", RUNNING)._replace(address=stranger),
            Event(world.network.escrow, split.topics, split.data),
        ]
    )
    logs = world.chain.logs([], from_block=0, to_block=world.head)
    assert shares_of(world.market.events_in(logs), world.job, world.network.jobs) == (4, 0, 3)
    assert not world.market.strays


def test_receipt__of_a_rollup_and_one_that_is_not_there__costs_all_of_it_and_leaves_nothing_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a receipt would add was left out of the sums where the provider had no such receipt."""
    world.chain.mine([world.unit_event("Settled", replace(DONE, state=State.SETTLED))])
    events = list(world.market.events_in(world.chain.logs([], from_block=0, to_block=world.head)))
    session = SimpleNamespace(market=world.market, network=world.network, explorer=lambda tx: None)
    reads: Any = SimpleNamespace(session=session)
    told = Receipt(bytes(32), 1, bytes(32), True, 10, 3, "0x", None, None, (), rollup_fee=7)
    monkeypatch.setattr(world.chain, "receipt", lambda tx: told)
    lines, *_ = _transactions(reads, world.job, events)
    assert [(line["gas"], line["fee"]) for line in lines] == [(10, "37")]
    monkeypatch.setattr(world.chain, "receipt", lambda tx: None)
    with pytest.raises(ChainError) as caught:
        _transactions(reads, world.job, events)
    assert caught.value.code == "RPC_LAGS" and caught.value.retryable


def test_receipt__finished_unit__gives_the_settlers_pay_to_its_owner_and_none_to_keepers(world: World) -> None:
    shares = tuple(words.pack(words.SHARE, {"account": at, "amount": at}) for at in (1, 2, 3, 4))
    split = own_log("Split", controller=world.network.jobs, key=lock_key(SUBMITTER), shares=shares)
    finished = world.unit_event("Finished", replace(DONE, state=State.SETTLED))
    # The next unit begins in the same transaction, and its start pays nobody.
    world.chain.mine([finished, Event(world.network.escrow, split.topics, split.data)])
    logs = world.chain.logs([], from_block=0, to_block=world.head)
    assert shares_of(world.market.events_in(logs), world.job, world.network.jobs) == (4, 3, 0)


def test_receipt__other_job_of_the_submitter_in_the_transaction__is_not_added(world: World) -> None:
    """Both are paid from one lock: a split is of the job that the registry told of last, and of no other controller."""
    other = world.market.job_id(replace(TERMS, salt=8))
    ended = replace(DONE, state=State.SETTLED)

    def split(part: int, controller: str = world.network.jobs) -> Event:
        shares = tuple(words.pack(words.SHARE, {"account": at, "amount": part * at}) for at in (1, 2, 3, 4))
        log = own_log("Split", controller=controller, key=lock_key(SUBMITTER), shares=shares)
        return Event(world.network.escrow, log.topics, log.data)

    mine, his = world.unit_event("Settled", ended), world.unit_event("Settled", ended, job=other)
    silent = world.unit_event("Reclaimed", RUNNING)
    world.chain.mine(
        [his, split(100), mine, split(10**6, world.network.nodes), split(1), his, split(100), silent, his, split(100)]
    )
    logs = world.chain.logs([], from_block=0, to_block=world.head)
    assert shares_of(world.market.events_in(logs), world.job, world.network.jobs) == (4, 0, 3)
    assert shares_of(world.market.events_in(logs), other, world.network.jobs) == (1_200, 0, 900)


def test_job_id__start_of_one__is_found_among_strays(world: World, tmp_path: Path) -> None:
    world.chain.mine([world.posted(TERMS), *world.nonsense(3), world.posted(TERMS)])
    session = Session(Settings(home=tmp_path), port=world.chain)
    session.__dict__["network"], session._checked = world.network, True
    assert session.job_id(world.job.hex()[:12]) == world.job
    assert session.strays
    with pytest.raises(NotFoundError):
        session.job_id("5a5a5a5a")


# ---- the verdict ----

VERIFIED = {
    "schema": "hearth.verify/1",
    "jobs": 1,
    "units": 1,
    "settled": 1,
    "failed": 0,
    "reclaimed": 0,
    "results_checked": 1,
    "solvent": True,
    "seconds": 5,
}
STRAYS = {"count": 2, "first": ["log 3 of block 9: it is malformed", "log 4 of block 9: it is malformed"]}


@pytest.mark.parametrize(
    ("found", "code", "error"),
    [
        ({}, 0, None),
        ({"strays": STRAYS}, 4, "RPC_LIES"),
        ({"strays": STRAYS, "unread": ["unit 0 of 0x01: gone"]}, 4, "RPC_LIES"),
        ({"strays": STRAYS, "unverified": 3}, 4, "RPC_LIES"),
        ({"strays": STRAYS, "solvent": False, "faults": ["short"]}, 1, "RPC_LIES"),
    ],
)
def test_net_verify__strays__books_are_doubtful_and_the_command_says_so(
    found: dict[str, Any], code: int, error: str | None, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(Net, "verify", lambda self: {**VERIFIED, **found})
    assert main(["net", "verify", "--json", "--network", "devnet"]) == code
    said = json.loads(capsys.readouterr().out)
    assert said.get("error", {}).get("code") == error
    if error:
        assert said["strays"] == STRAYS
        assert "doubtful: 2 logs have no place in them, the first is log 3 of block 9" in said["error"]["message"]
        assert "--rpc URL" in said["error"]["hint"]


def test_run__strays_were_stepped_over__says_so_at_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(Session, "strays", world.market.strays)
    monkeypatch.setattr(Net, "verify", lambda self: dict(VERIFIED))
    assert main(["net", "verify"]) == 0
    assert "warning" not in capsys.readouterr().err
    world.chain.mine([world.post._replace(data=b"")])
    list(world.market.events_in(world.chain.logs([], from_block=0, to_block=world.head)))
    assert main(["net", "verify"]) == 0
    said = capsys.readouterr().err
    assert "warning: a log under the market's addresses is none that its contracts write, and stepped over: " in said
    assert f"log 0 of block {world.head}: " in said
