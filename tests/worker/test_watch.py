"""worker.watch on the scripted chain: what logs are believed for, and what reorganisations take back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from hearth.base.errors import ChainError
from hearth.market.events import Closed, Declined, Finished, Proposed, Settled, Slashed, Started, Unlocked, topic_of
from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import Best, Header, JobId, NodeId, Outcome, State, Terms, Unit
from tests.kit.build import ADDRESSES
from tests.kit.fake_chain import Event
from tests.kit.nonsense import nonsense
from tests.kit.scripted import ScriptedMarket
from tests.worker import test_decide as decided
from worker.decide import Action, Beat, Claim, LeaseKey, Reason, Skip, Snapshot, Target, decide
from worker.rows import KEEP, PAGES, never_fits
from worker.watch import MISREADS, PAID, Watcher

JOBS, NODES = ADDRESSES["JobRegistry"], ADDRESSES["NodeRegistry"]
ME = decided.ME


def word(value: int) -> bytes:
    return value.to_bytes(32, "big")


class Scripted(ScriptedMarket):
    """A scripted market whose Lens and JobRegistry answer from a dictionary of words, and a watcher of it."""

    def __init__(self) -> None:
        super().__init__()
        self.posts = 0
        self.words: dict[bytes, int] = {}
        self.units: dict[tuple[bytes, int], int] = {}
        self.on("Lens", "jobs", self._jobs)
        self.on("JobRegistry", "load", self._load)
        self.on("Lens", "units", self._page)
        self.seconds: dict[tuple[bytes, int], int] = {}
        self.calls: list[tuple[str, bytes]] = []
        """What was asked of the contracts since the last read: a view, and the job for one."""
        self.watcher = Watcher(self.market, ME)

    def _jobs(self, call: Any, block: Any) -> bytes:
        count = int.from_bytes(call.data[36:68], "big")
        self.calls.append(("jobs", b""))
        ids = [call.data[68 + 32 * i : 100 + 32 * i] for i in range(count)]
        return word(32) + word(count) + b"".join(word(self.words.get(job, 0)) for job in ids)

    def _load(self, call: Any, block: Any) -> bytes:
        job, index = call.data[4:36], int.from_bytes(call.data[36:68], "big")
        self.calls.append(("load", job))
        return word(self.words.get(job, 0)) + self._unit(job, index)

    def _page(self, call: Any, block: Any) -> bytes:
        job, first, count = call.data[4:36], *(int.from_bytes(call.data[at : at + 32], "big") for at in (36, 68))
        self.calls.append(("units", job))
        return word(32) + word(count) + b"".join(self._unit(job, first + i) for i in range(count))

    def _unit(self, job: bytes, index: int) -> bytes:
        return word(self.units.get((job, index), 0)) + word(self.seconds.get((job, index), 0)) + word(0)

    def post(self, terms: Terms, parents: Sequence[bytes] = ()) -> tuple[JobId, Event]:
        terms = replace(terms, parents_hash=parents_hash(parents))
        return self.market.job_id(terms), self.posted(terms, parents=parents)

    def event(self, kind: Any, job: JobId, unit: Unit, *rest: int, index: int = 0) -> Event:
        topics = (topic_of(kind), job, word(index), word(unit.node))
        return Event(JOBS, topics, word(words.pack_unit(unit)) + b"".join(map(word, rest)))

    def read(self, target: Target | None = None, ahead: Sequence[LeaseKey] = ()) -> dict[JobId, Any]:
        head = self.watcher.sync()
        self.calls.clear()
        return {job.id: job for job in self.watcher.read(head, decided.NODE, target, ahead)}

    def array(self, units: Sequence[Unit], *, size: int = 1 << 20, closed: bool = False, **changes: Any) -> JobId:
        """Post an array of which these units were touched, each told by an event, and mine it."""
        self.posts += 1
        job, posted = self.post(replace(decided.TERMS, units=size, salt=self.posts, **changes))
        self.words[job] = words.pack_header(Header(touched=len(units), opened=decided.NOW, closed=closed))
        self.units |= {(job, index): words.pack_unit(unit) for index, unit in enumerate(units)}
        self.chain.mine([posted] + [self.event(Started, job, unit, 0, index=i) for i, unit in enumerate(units)])
        return job

    def propose(self, job: JobId, index: int, node: NodeId) -> None:
        """Propose a node for a touched unit, for a window that is open."""
        unit = replace(decided.OPEN, mark=self.chain.head().timestamp + 1000)
        best = words.pack_best(Best(node=node, key=1))
        self.units[job, index], self.seconds[job, index] = words.pack_unit(unit), best
        topics = (topic_of(Proposed), job, word(index), word(node))
        self.chain.mine([Event(JOBS, topics, word(words.pack_unit(unit)) + word(best))])

    def asked(self, view: str) -> int:
        return sum(name == view for name, _ in self.calls)


@pytest.fixture
def world() -> Iterator[Scripted]:
    yield Scripted()


def test_read__open_job__is_read_at_the_head(world: Scripted) -> None:
    job, posted = world.post(decided.TERMS)
    world.words[job] = words.pack_unit(decided.OPEN)
    world.chain.mine([posted])
    found = world.read()[job]
    assert (found.terms, found.header) == (decided.TERMS, None)
    assert [lease.unit for lease in found.leases] == [decided.OPEN]


def test_read__job_that_the_offer_never_serves__is_not_read_but_named(world: Scripted) -> None:
    job, posted = world.post(replace(decided.TERMS, ceiling=1))
    world.words[job] = words.pack_unit(decided.OPEN)
    world.chain.mine([posted])
    assert world.read() == {}
    assert {gate.name for gate in world.watcher.never_read().values()} == {"PRICE"}


def test_sync__log_with_false_terms__is_ignored(world: Scripted) -> None:
    job, posted = world.post(decided.TERMS)
    false = Event(JOBS, posted.topics, posted.data[:64] + word(1) + posted.data[96:])
    world.words[job] = words.pack_unit(decided.OPEN)
    world.chain.mine([false])
    assert world.read() == {}
    world.chain.mine([posted])
    assert list(world.read()) == [job]


def test_read__array__shows_reopened_and_own_leases_only(world: Scripted) -> None:
    terms = replace(decided.TERMS, units=10)
    job, posted = world.post(terms)
    world.words[job] = words.pack_header(Header(touched=3, opened=decided.NOW))
    others = replace(decided.RUNNING, node=decided.OTHER)
    for index, unit in enumerate((decided.RUNNING, others, decided.OPEN)):
        world.units[job, index] = words.pack_unit(unit)
    world.chain.mine(
        [posted]
        + [
            world.event(Started, job, unit, 0, index=i)
            for i, unit in enumerate((decided.RUNNING, others, decided.OPEN))
        ]
    )
    found = world.read()[job]
    assert [lease.index for lease in found.leases] == [0, 2]
    assert found.leases[0].since == world.chain.head().number


def test_read__more_open_leases_than_are_read__own_ones_are_still_there_and_the_others_take_turns(
    world: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.rows.PAGE", 3)
    monkeypatch.setattr("worker.rows.PAGES", 1)
    job = world.array([decided.OPEN] * 6 + [decided.RUNNING] * 2, size=10)
    assert [lease.index for lease in world.read()[job].leases] == [0, 1, 2, 6, 7]
    assert world.watcher.waiting() == {job}
    world.units[job, 6] = words.pack_unit(decided.OPEN)
    world.chain.mine()
    assert [lease.index for lease in world.read()[job].leases] == [3, 4, 5, 6, 7]
    world.chain.mine()
    # It takes its turn with the others from the next block on.
    assert [lease.index for lease in world.read()[job].leases] == [6, 7]
    world.chain.mine()
    assert [lease.index for lease in world.read()[job].leases] == [0, 1, 2, 7]


PARENTS: Final = pack_parents([Parent(JobId(b"\7" * 32), Condition.SUCCESS)])


@pytest.mark.parametrize("units", [1, 9])
def test_read__job_that_waits_for_its_parents__offers_nothing_until_it_is_unlocked(world: Scripted, units: int) -> None:
    config, terms = decided.CONFIG, replace(decided.TERMS, units=units, match_window=12)
    at = world.chain.head().timestamp

    def said() -> list[Action | Skip]:
        head = world.watcher.sync()
        node = replace(decided.NODE, state=replace(decided.NODE.state, beat=head.timestamp))
        jobs = tuple(replace(job, spec=decided.WASM) for job in world.watcher.read(head, node))
        return decide(Snapshot(head.number, head.timestamp, node, decided.MARKET, jobs), config, head.timestamp)

    def word_of(state: State, since: int) -> int:
        if units == 1:
            return words.pack_unit(Unit(state=state, started=since))
        waiting, closed = state is State.BLOCKED, state is State.CANCELLED
        return words.pack_header(Header(waiting=waiting, closed=closed, opened=since, leases=units))

    job, posted = world.post(replace(terms, deadline=at + 50_000), PARENTS)
    world.words[job] = word_of(State.BLOCKED, at)
    world.chain.mine([posted])
    for wait in (400, 800, 1200):
        world.chain.mine(timestamp=at + wait)
        assert [one for one in said() if not isinstance(one, Beat)] == [Skip(job, None, Reason.AWAITS_PARENTS)]
    opened = world.chain.head().timestamp
    index = word(0) if units == 1 else b"\xff" * 32
    world.words[job] = word_of(State.OPEN, opened)
    unlocked = Event(JOBS, (topic_of(Unlocked), job, index), word(world.words[job]) + word(0))
    world.chain.mine([unlocked], timestamp=opened + 299)
    assert not any(isinstance(one, Claim) for one in said()), "its time to be matched begins anew"
    world.chain.mine(timestamp=opened + 300)
    assert [one.index for one in said() if isinstance(one, Claim)] == list(range(min(units, decided.NODE.offer.slots)))


@pytest.mark.parametrize("units", [1, 9])
def test_read__job_whose_parent_ended_otherwise__is_gone_and_comes_back_with_a_reorganisation(
    world: Scripted, units: int
) -> None:
    job, posted = world.post(replace(decided.TERMS, units=units), PARENTS)
    unit = replace(decided.OPEN, state=State.BLOCKED)
    waits = words.pack_unit(unit) if units == 1 else words.pack_header(Header(waiting=True, leases=units))
    ended = words.pack_unit(replace(unit, state=State.CANCELLED))
    ended = ended if units == 1 else words.pack_header(Header(closed=True, leases=units))
    world.words[job] = waits
    world.chain.mine([posted])
    assert world.read()[job].waits
    world.words[job] = ended
    index = word(0) if units == 1 else b"\xff" * 32
    world.chain.mine([Event(JOBS, (topic_of(Unlocked), job, index), word(ended) + word(1))])
    world.read()
    assert world.read() == {}
    world.words[job] = waits
    world.chain.reorg(1)
    assert world.read()[job].waits


PAGE: Final = 8
HOSTILE: Final = 40
"""Arrays of a submitter who wants every node to read."""


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of 8 units: an array of 16 is two calls, as one of 512 is else."""
    monkeypatch.setattr("worker.rows.PAGE", PAGE)


@pytest.mark.usefixtures("small_pages")
def test_read__arrays_that_never_fit__cost_a_glance_and_own_leases_in_them_are_read(world: Scripted) -> None:
    """Profit: who posts arrays at the least price, for nodes other than this one, takes nothing of its time."""
    for _ in range(HOSTILE):
        world.array([decided.OPEN] * PAGE, ceiling=1)
    assert world.read() == {}
    assert (world.asked("jobs"), world.asked("units"), world.asked("load")) == (1, 0, 0)
    # Taken while the node's offer still served it: also a process that knows nothing else must find it.
    mine = world.array([decided.OPEN] * 20 + [decided.RUNNING] + [decided.OPEN] * 20, ceiling=1)
    world.watcher = Watcher(world.market, ME)
    found = world.read()
    assert {job: [lease.index for lease in row.leases] for job, row in found.items()} == {mine: [20]}
    assert (world.asked("jobs"), world.asked("units"), world.asked("load")) == (1, 1, 0)
    assert found[mine].leases[0].unit == decided.RUNNING


@pytest.mark.parametrize("after", ["restart", "same process"])
def test_read__jobs_that_never_fit_and_are_over__are_forgotten_within_one_page_a_block(
    world: Scripted, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    """Profit: who posts and cancels for the price of gas leaves no worker anything to keep or to look at."""
    monkeypatch.setattr("worker.rows.GLANCE", 4)
    looked: list[JobId] = []

    def never(terms: Terms, *rest: Any) -> Any:
        looked.append(world.market.job_id(terms))
        return never_fits(terms, *rest)

    monkeypatch.setattr("worker.watch.never_fits", never)
    cancelled = words.pack_unit(replace(decided.OPEN, state=State.CANCELLED))
    closed = words.pack_header(Header(opened=decided.NOW, closed=True))
    late = world.chain.head().timestamp + 40
    kinds = [({}, cancelled), ({"units": 9}, closed), ({}, 0), ({"deadline": late}, words.pack_unit(decided.OPEN))]
    still = words.pack_unit(decided.OPEN)
    posted = {}
    for salt, (changes, word) in enumerate([*kinds * 3, ({}, still)]):
        job, event = world.post(replace(decided.TERMS, ceiling=1, salt=salt, **changes))
        posted[job] = word
        world.words[job] = still if word != closed else words.pack_header(Header(opened=decided.NOW))
        world.chain.mine([event])
    world.read()
    assert len(world.watcher.never_read()) == len(looked) == len(posted)
    world.words |= {job: word for job, word in posted.items() if word}
    world.words = {job: word for job, word in world.words.items() if posted[job]}
    if after == "restart":
        world.watcher = Watcher(world.market, ME)
    looked.clear()
    for _ in range(KEEP + 60):
        world.chain.mine()
        world.read()
        assert (world.asked("jobs"), world.asked("units"), world.asked("load")) == (1, 0, 0)
    (left,) = world.watcher.rows
    assert posted[left] == still and left in world.watcher.never_read()
    assert len(looked) == (len(posted) if after == "restart" else 0), "each is judged once by one offer"


@pytest.mark.usefixtures("small_pages")
def test_read__arrays_that_fit__share_one_bound_and_every_unit_has_its_turn(world: Scripted) -> None:
    """Profit: no array, however many and large, keeps an ack or another job's units unread for long."""
    hostile = [world.array([decided.OPEN] * 2 * PAGE) for _ in range(HOSTILE)]
    honest, wanted = world.array([decided.OPEN]), world.array([decided.OPEN])
    own = world.array([decided.RUNNING])
    single, posted = world.post(decided.TERMS)
    world.words[single] = words.pack_unit(decided.OPEN)
    world.chain.mine([posted])
    world.propose(wanted, 0, ME)
    rounds = -(-(2 * HOSTILE + 1) // (PAGES - 1)) + 1
    seen: dict[JobId, set[int]] = {}
    for turn in range(rounds):
        found = world.read()
        assert world.asked("units") <= PAGES + 1 and world.asked("load") == 0 and world.asked("jobs") == 1
        # What must not wait does not: own leases, the lease to be acked, and what the job's word alone says.
        assert all([lease.index for lease in found[job].leases] == [0] for job in (own, wanted, single)), turn
        for job, row in found.items():
            seen.setdefault(job, set()).update(lease.index for lease in row.leases)
        world.chain.mine()
    assert seen[honest] == {0}
    assert all(seen[job] == set(range(2 * PAGE)) for job in hostile)
    assert not {own, wanted, single} & world.watcher.waiting()


def test_read__proposed_without_end__what_was_gathered_for_a_match_is_read_every_time(
    world: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Profit: a lease that is not read looks lost, and what was fetched for its ack would be dropped. A rival could
    keep a node from every ack by proposing it for units of his own."""
    monkeypatch.setattr("worker.rows.PAGES", 2)
    monkeypatch.setattr("worker.rows.PAGES_LED", 1)
    monkeypatch.setattr("worker.rows.JOBS", 2)
    hostile = [world.array([decided.OPEN]) for _ in range(6)]
    mine, single = world.array([decided.OPEN] * 3), world.post(replace(decided.TERMS, salt=99))
    world.words[single[0]] = word_of = words.pack_unit(replace(decided.OPEN, mark=world.chain.head().timestamp + 1000))
    world.units[single[0], 0] = word_of
    world.chain.mine([single[1]])
    for job in (*hostile, mine):
        world.propose(job, 2 if job == mine else 0, ME)
    ahead = [LeaseKey(mine, 2, 1), LeaseKey(single[0], 0, 1)]
    for _ in range(5):
        found = world.read(ahead=ahead)
        assert 2 in {lease.index for lease in found[mine].leases}
        assert [lease.index for lease in found[single[0]].leases] == [0]
        world.chain.mine()
    # A control: without it the same lease has its turn, and is not read in the meantime.
    seen = [2 in {lease.index for lease in found[mine].leases} for _ in range(5) if mine in (found := world.read())]
    assert seen.count(True) < 5


def test_read__new_arrays_in_every_block__those_before_keep_their_turn(
    world: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Profit: nobody gets ahead by posting anew."""
    monkeypatch.setattr("worker.rows.PAGES", 2)
    old = [world.array([decided.OPEN]) for _ in range(6)]
    seen: set[JobId] = set()
    for _ in range(5):
        for _ in range(3):
            world.array([decided.OPEN])
        seen |= {job for job, row in world.read().items() if row.leases}
    assert set(old) <= seen


def test_read__proposed_for_more_leases_than_are_read__others_have_their_turn_all_the_same(
    world: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Profit: who has a node proposed without end keeps it neither from others' units nor from its own acks."""
    monkeypatch.setattr("worker.rows.PAGES", 4)
    monkeypatch.setattr("worker.rows.PAGES_LED", 3)
    led = [world.array([decided.OPEN]) for _ in range(9)]
    other = world.array([decided.OPEN])
    for job in led:
        world.propose(job, 0, ME)
    seen: set[JobId] = set()
    for _ in range(3):
        found = world.read()
        assert world.asked("units") == 4
        seen |= {job for job, row in found.items() if row.leases}
        world.chain.mine()
    assert seen == {*led, other}
    # Another node leads by now, or the time for the ack is over: no reason to hurry.
    world.propose(led[0], 0, decided.OTHER)
    world.read()
    assert world.watcher.rows[led[0]].led == {}
    world.chain.mine(timestamp=world.chain.head().timestamp + 5_000)
    world.read()
    assert not any(world.watcher.rows[job].led for job in led)


def test_read__one_lease_jobs_with_windows__share_the_bound(world: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best proposal is a call of its own."""
    monkeypatch.setattr("worker.rows.PAGES", 2)
    jobs: list[JobId] = []
    for salt in range(5):
        job, posted = world.post(replace(decided.TERMS, salt=salt))
        world.words[job] = words.pack_unit(replace(decided.OPEN, mark=decided.NOW + 9))
        world.chain.mine([posted])
        jobs.append(job)
    seen: set[JobId] = set()
    for _ in range(3):
        seen |= {job for job, row in world.read().items() if row.leases}
        assert world.asked("load") == 2
        world.chain.mine()
    assert seen == set(jobs)


def test_read__more_jobs_than_are_read__take_turns_the_newest_first_and_own_ones_always(
    world: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.rows.JOBS", 2)
    jobs: list[JobId] = []
    for salt in range(5):
        job, posted = world.post(replace(decided.TERMS, salt=salt))
        world.words[job] = words.pack_unit(decided.OPEN)
        world.chain.mine([posted])
        jobs.append(job)
    world.words[jobs[0]] = words.pack_unit(decided.RUNNING)
    world.chain.mine([world.event(Started, jobs[0], decided.RUNNING, 0)])
    turns = []
    for _ in range(3):
        turns.append(sorted(map(jobs.index, world.read())))
        world.chain.mine()
    assert turns == [[0, 3, 4], [0, 1, 2], [0, 3, 4]]
    # Who is sent for a unit does not wait for a turn.
    assert sorted(map(jobs.index, world.read(Target(jobs[3], 0)))) == [0, 1, 2, 3]


@pytest.mark.usefixtures("small_pages")
def test_read__unit_that_the_worker_is_sent_for__is_read_at_every_block(
    world: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.rows.PAGES", 1)
    for _ in range(3):
        world.array([decided.OPEN])
    job = world.array([decided.OPEN] * 3 * PAGE)
    for _ in range(3):
        assert 2 * PAGE + 1 in [lease.index for lease in world.read(Target(job, 2 * PAGE + 1))[job].leases]
        assert world.asked("units") == 1
        world.chain.mine()


@pytest.mark.usefixtures("small_pages")
def test_read__array_that_is_over_with_leases_unread__is_followed_until_all_were_read(
    world: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.rows.PAGES", 1)
    job = world.array([decided.OPEN] * 2 * PAGE, size=2 * PAGE, closed=True)
    for index in range(2 * PAGE):
        world.units[job, index] = words.pack_unit(replace(decided.OPEN, state=State.CANCELLED))
    # The last one was claimed, and the provider held that event back.
    world.units[job, 2 * PAGE - 1] = words.pack_unit(decided.RUNNING)
    assert world.read()[job].leases == ()
    assert world.watcher.rows[job].ended is None
    world.chain.mine()
    assert [lease.index for lease in world.read()[job].leases] == [2 * PAGE - 1]
    world.units[job, 2 * PAGE - 1] = words.pack_unit(replace(decided.RUNNING, state=State.SETTLED))
    world.chain.mine()
    assert world.read()[job].leases == ()
    assert world.watcher.rows[job].ended == world.chain.head().number


def test_read__own_lease_of_a_job_that_never_fits_is_settled_and_rolled_back__is_read_again(world: Scripted) -> None:
    submitted = replace(decided.RUNNING, state=State.SUBMITTED)
    job = world.array([submitted], ceiling=1)
    assert [lease.index for lease in world.read()[job].leases] == [0]
    settled = replace(submitted, state=State.SETTLED, outcome=Outcome.OK)
    world.units[job, 0] = words.pack_unit(settled)
    world.chain.mine([world.event(Settled, job, settled, 100, 5, index=0)])
    assert world.read()[job].leases == ()
    world.chain.mine()
    assert world.read() == {}
    world.units[job, 0] = words.pack_unit(submitted)
    world.chain.reorg(2)
    assert [lease.index for lease in world.read()[job].leases] == [0]


def test_read__history_of_own_leases_at_start__only_what_is_held_is_read_at_once(world: Scripted) -> None:
    """A node that has run a hundred thousand units must not read each of them before it beats again."""
    settled = replace(decided.RUNNING, state=State.SETTLED, outcome=Outcome.OK)
    job = world.array([decided.RUNNING] * 3, ceiling=1)
    for index in range(2):
        world.units[job, index] = words.pack_unit(settled)
        world.chain.mine([world.event(Settled, job, settled, 100, 5, index=index)])
    world.watcher = Watcher(world.market, ME)
    world.watcher.sync()
    assert world.watcher.rows[job].own == {2}
    # A claim that only a rollback takes away is still there for it.
    assert world.watcher.rows[job].lost.keys() == {0, 1}
    world.chain.mine(count=KEEP + 2)
    world.read()
    assert world.watcher.rows[job].lost == {}


def test_read__ended_job__is_kept_for_a_while_then_forgotten(world: Scripted) -> None:
    job, posted = world.post(decided.TERMS)
    ended = replace(decided.RUNNING, state=State.SETTLED, outcome=Outcome.OK)
    world.words[job] = words.pack_unit(ended)
    world.chain.mine([posted])
    assert world.read()[job].leases == ()
    world.chain.mine(count=KEEP)
    world.read()
    assert job in world.watcher.rows
    world.chain.mine()
    world.read()
    assert job not in world.watcher.rows


def test_earnings__settled_slashed_and_reorganised__follow_the_chain(world: Scripted) -> None:
    job, posted = world.post(decided.TERMS)
    unit = replace(decided.RUNNING, state=State.SETTLED, outcome=Outcome.OK)
    slash = Event(NODES, (topic_of(Slashed), word(ME)), bytes(32) + word(3) + word(4))
    other = world.event(Settled, job, replace(unit, node=NodeId(9)), 50, 5)
    world.words[job] = words.pack_unit(unit)
    world.chain.mine([posted])
    world.chain.mine([world.event(Settled, job, unit, 100, 5), slash, other])
    world.read()
    assert (world.watcher.earnings.paid, world.watcher.earnings.income) == (1, 95)
    assert world.watcher.earnings.slashed == 7
    world.chain.reorg(1)
    world.read()
    assert (world.watcher.earnings.paid, world.watcher.earnings.income, world.watcher.reorgs) == (0, 0, 1)


def test_earnings__finished__is_paid_with_the_settlers_pay_and_rolled_back(world: Scripted) -> None:
    terms = replace(decided.TERMS, units=1 << 20)
    job, posted = world.post(terms)
    world.words[job] = words.pack_header(Header(touched=3, opened=decided.NOW))
    unit = replace(decided.RUNNING, state=State.SETTLED, outcome=Outcome.OK)
    world.chain.mine([posted])
    world.chain.mine([world.event(Finished, job, unit, 1, 2, 100, 5)])
    world.chain.mine([world.event(Finished, job, replace(unit, outcome=Outcome.EXIT), 1, 2, 40, 2, index=1)])
    world.chain.mine([world.event(Finished, job, replace(unit, node=NodeId(9)), 1, 2, 900, 5, index=2)])
    (found,) = world.watcher.refresh(world.read().values())
    books, reward = world.watcher.earnings, formulas.settle_reward(terms, 0)
    assert reward > 0
    assert (books.paid, books.failed_theirs, books.income, books.fees) == (1, 1, 95 + 38 + 2 * reward, 7)
    assert found.paid == (95, 38), "what a unit brings is told without what settling pays"
    world.chain.reorg(2)
    world.read()
    assert (world.watcher.earnings.paid, world.watcher.earnings.income) == (1, 95 + reward)


def at(world: Scripted, job: JobId) -> int:
    """Return since when the job's only lease is this node's, as decisions read it."""
    (lease,) = world.read()[job].leases
    return lease.since


def test_read__lease_taken_again_after_a_reorganisation__is_first_seen_in_its_own_block(world: Scripted) -> None:
    job, posted = world.post(decided.TERMS)
    world.words[job] = words.pack_unit(decided.RUNNING)
    world.chain.mine(count=3)
    world.chain.mine([posted])
    world.chain.mine([world.event(Started, job, decided.RUNNING, 0)])
    first = at(world, job)
    world.chain.mine(count=20)
    # The claim is gone, and mined again far below the old block: nobody may wait until the old height is reached.
    world.chain.reorg(21, remine=[[]])
    world.words[job] = words.pack_unit(decided.OPEN)
    world.read()
    world.words[job] = words.pack_unit(decided.RUNNING)
    world.chain.mine([world.event(Started, job, decided.RUNNING, 0)])
    assert at(world, job) == world.chain.head().number == first + 1


@pytest.mark.parametrize("depth", [*range(1, 9), 33, 64, 65, 100])
def test_read__ended_job_whose_end_is_rolled_back__is_read_again(world: Scripted, depth: int) -> None:
    job, posted = world.post(decided.TERMS)
    submitted = replace(decided.RUNNING, state=State.SUBMITTED)
    world.chain.mine(count=200)
    world.chain.mine([posted])
    world.chain.mine([world.event(Started, job, submitted, 0)])
    world.words[job] = words.pack_unit(submitted)
    world.read()
    settled = replace(submitted, state=State.SETTLED, outcome=Outcome.OK)
    world.words[job] = words.pack_unit(settled)
    world.chain.mine([world.event(Settled, job, settled, 100, 5)])
    assert world.read()[job].leases == ()
    for _ in range(depth - 1):
        world.chain.mine()
    world.read()
    assert world.watcher.earnings.paid == 1
    world.words[job] = words.pack_unit(submitted)
    world.chain.reorg(depth)
    assert [lease.unit.state for lease in world.read()[job].leases] == [State.SUBMITTED]
    assert world.watcher.earnings.paid == 0


def test_read__array_lease_whose_settlement_is_rolled_back__is_read_again(world: Scripted) -> None:
    job, posted = world.post(replace(decided.TERMS, units=10))
    world.words[job] = words.pack_header(Header(touched=1, opened=decided.NOW))
    submitted = replace(decided.RUNNING, state=State.SUBMITTED)
    world.units[job, 0] = words.pack_unit(submitted)
    world.chain.mine(count=3)
    world.chain.mine([posted, world.event(Started, job, submitted, 0)])
    world.read()
    world.units[job, 0] = words.pack_unit(replace(submitted, state=State.SETTLED, outcome=Outcome.OK))
    world.chain.mine()
    assert world.read()[job].leases == ()
    world.units[job, 0] = words.pack_unit(submitted)
    world.chain.reorg(1)
    assert [lease.index for lease in world.read()[job].leases] == [0]


def test_refresh__own_units_of_a_job_are_settled__says_what_they_brought_until_that_is_rolled_back(
    world: Scripted,
) -> None:
    """What the next unit is expected to bring; another node's units say nothing about it.

    The submitter chooses how a unit ends: one that is cancelled brings what it ran, one that is given back nothing.
    """
    terms = replace(decided.TERMS, units=1 << 20)
    job, posted = world.post(terms)
    world.words[job] = words.pack_header(Header(touched=3, opened=decided.NOW))
    world.chain.mine([posted])
    unit = Unit(state=State.SETTLED, outcome=Outcome.OK, node=ME, rate=1, attempts=1)
    other = replace(unit, node=NodeId(ME + 1))
    world.chain.mine([world.event(Settled, job, unit, 100, 5, 1, index=0)])
    world.chain.mine([world.event(Settled, job, other, 900, 5, 1, index=1)])
    world.chain.mine([world.event(Settled, job, unit, 50, 2, 1, index=2)])

    def paid() -> tuple[int, ...]:
        (found,) = world.watcher.refresh(world.read().values())
        return tuple(found.paid)

    assert paid() == (95, 48)
    world.chain.reorg(1)
    assert paid() == (95,)
    world.chain.mine([world.event(Settled, job, unit, 10, 0, 1, index=index) for index in range(PAID)])
    assert paid() == (10,) * PAID, "only the last ones count"
    again = replace(unit, attempts=2)
    world.chain.mine([world.event(Declined, job, again, 6, index=3), world.event(Closed, job, again, 7, 2, 1, index=4)])
    world.chain.mine([world.event(Declined, job, replace(unit, attempts=3), 6, index=3)])
    assert paid() == (10,) * (PAID - 3) + (0, 5, 0), "each attempt at a unit counts"


def test_read__job_posted_again_after_its_post_was_rolled_back__is_followed(world: Scripted) -> None:
    job, posted = world.post(decided.TERMS)
    world.words[job] = words.pack_unit(decided.OPEN)
    world.chain.mine(count=3)
    world.chain.mine([posted])
    world.read()
    del world.words[job]
    world.chain.reorg(1)
    world.read()
    assert world.read() == {}
    world.words[job] = words.pack_unit(decided.OPEN)
    world.chain.mine([posted])
    assert list(world.read()) == [job]


@pytest.mark.parametrize("units", [0, 9])
def test_read__own_lease_of_a_job_whose_post_is_rolled_back__is_no_fault_and_comes_back(
    world: Scripted, units: int
) -> None:
    """A worker that runs a unit while the chain forgets its job works on, and has the lease again with the post."""
    if units:
        job = world.array([replace(decided.RUNNING, attempts=1)], size=units)
    else:
        job, posted = world.post(decided.TERMS)
        world.words[job] = words.pack_unit(decided.RUNNING)
        world.chain.mine([posted, world.event(Started, job, decided.RUNNING, 0)])
    kept, log = world.words[job], list(world.chain.logs([JOBS], from_block=0, to_block=world.chain.head().number))
    assert [lease.unit.node for lease in world.read()[job].leases] == [ME]
    world.words[job] = 0
    world.chain.reorg(1)
    world.chain.mine([])
    assert world.read()[job].leases == ()
    assert world.read() == {}
    world.words[job] = kept
    world.chain.mine([Event(one.address, one.topics, one.data) for one in log])
    assert [lease.unit.node for lease in world.read()[job].leases] == [ME]


def test_read__unit_denied_of_a_job_that_is_shown__is_the_providers_fault(world: Scripted) -> None:
    """One that lies may delay a worker, and not end it."""
    job, posted = world.post(decided.TERMS)
    world.words[job] = words.pack_unit(decided.RUNNING)
    world.chain.mine([posted, world.event(Started, job, decided.RUNNING, 0)])
    head = world.watcher.sync()
    world.words[job] = words.pack_unit(replace(decided.OPEN, mark=decided.NOW))
    world.on("JobRegistry", "load", lambda call, block: bytes(128))
    with pytest.raises(ChainError) as said:
        world.watcher.read(head, decided.NODE)
    assert (said.value.code, said.value.retryable) == ("RPC_LIES", True)


def test_sync__nonsense_under_the_registrys_own_events__stops_nothing(world: Scripted) -> None:
    """H1: whatever stands in a log, the next lease of this node is seen."""
    job, posted = world.post(decided.TERMS)
    world.words[job] = words.pack_unit(decided.OPEN)
    started = world.event(Started, job, decided.RUNNING, 0)
    world.chain.mine([posted])
    assert job in world.read()
    real = [(list(one.topics), one.data) for one in (posted, started)]
    failed = 0
    for topics, data in nonsense(job, real, seed=2):
        world.chain.mine([Event(JOBS, tuple(topics), data)])
        for _ in range(MISREADS):
            try:
                world.read()
            except ChainError as error:
                assert (error.code, error.retryable) == ("RPC_BROKEN", True)
                failed += 1
    assert failed == MISREADS - 1, "once it is asked for again, then stepped over"
    world.words[job] = words.pack_unit(decided.RUNNING)
    world.chain.mine([started, world.event(Started, job, decided.RUNNING, 0, index=7)])
    (lease,) = world.read()[job].leases
    assert lease.unit.node == ME
    assert world.watcher.rows[job].leases == {0}, "a job of one unit has no eighth"


def test_sync__logs_held_back_at_first__is_an_error_and_later_is_not(
    world: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has not read the market yet would take every lease of its own for lost."""
    _, posted = world.post(decided.TERMS)
    world.chain.mine()
    hidden = world.chain.mine([posted])
    world.chain.mine()
    real = world.chain.block

    def hides(where: Any) -> Any:
        found = real(where)
        return None if found == hidden else found

    with monkeypatch.context() as lying:
        lying.setattr(world.chain, "block", hides)
        with pytest.raises(ChainError, match="does not show all"):
            world.watcher.sync()
    world.watcher.sync()
    hidden = world.chain.mine()
    world.chain.mine()
    monkeypatch.setattr(world.chain, "block", hides)
    assert world.watcher.sync() == world.chain.head()
