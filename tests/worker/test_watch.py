"""worker.watch on the scripted chain: what logs are believed for, and what reorganisations take back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from hearth.base.errors import ChainError
from hearth.market.events import Closed, Declined, Settled, Slashed, Started, topic_of
from hearth.protocol import words
from hearth.protocol.types import Header, JobId, NodeId, Outcome, State, Terms, Unit
from tests.kit.build import ADDRESSES
from tests.kit.fake_chain import Event
from tests.kit.scripted import ScriptedMarket
from tests.worker import test_decide as decided
from worker.watch import KEEP, PAID, Watcher

JOBS, NODES = ADDRESSES["JobRegistry"], ADDRESSES["NodeRegistry"]
ME = decided.ME


def word(value: int) -> bytes:
    return value.to_bytes(32, "big")


class Scripted(ScriptedMarket):
    """A scripted market whose Lens and JobRegistry answer from a dictionary of words, and a watcher of it."""

    def __init__(self) -> None:
        super().__init__()
        self.words: dict[bytes, int] = {}
        self.units: dict[tuple[bytes, int], int] = {}
        self.on("Lens", "jobs", self._jobs)
        self.on("JobRegistry", "load", self._load)
        self.watcher = Watcher(self.market, ME)

    def _jobs(self, call: Any, block: Any) -> bytes:
        count = int.from_bytes(call.data[36:68], "big")
        ids = [call.data[68 + 32 * i : 100 + 32 * i] for i in range(count)]
        return word(32) + word(count) + b"".join(word(self.words.get(job, 0)) for job in ids)

    def _load(self, call: Any, block: Any) -> bytes:
        job, index = call.data[4:36], int.from_bytes(call.data[36:68], "big")
        return word(self.words.get(job, 0)) + word(self.units.get((job, index), 0)) + word(0) + word(0)

    def post(self, terms: Terms) -> tuple[JobId, Event]:
        return self.market.job_id(terms), self.posted(terms)

    def event(self, kind: Any, job: JobId, unit: Unit, *rest: int, index: int = 0) -> Event:
        topics = (topic_of(kind), job, word(index), word(unit.node))
        return Event(JOBS, topics, word(words.pack_unit(unit)) + b"".join(map(word, rest)))

    def read(self) -> dict[JobId, Any]:
        head = self.watcher.sync()
        return {job.id: job for job in self.watcher.read(head, decided.NODE)}


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


def test_read__more_open_leases_than_are_read__own_ones_are_still_there(
    world: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.watch.MAX_READ", 3)
    job, posted = world.post(replace(decided.TERMS, units=10))
    world.words[job] = words.pack_header(Header(touched=8, opened=decided.NOW))
    units = [decided.OPEN] * 6 + [decided.RUNNING] * 2
    world.units |= {(job, index): words.pack_unit(unit) for index, unit in enumerate(units)}
    world.chain.mine([posted] + [world.event(Started, job, unit, 0, index=i) for i, unit in enumerate(units)])
    assert [lease.index for lease in world.read()[job].leases] == [6, 7, 0]
    world.units[job, 6] = words.pack_unit(decided.OPEN)
    world.chain.mine()
    # It gives way to the others from the next block on.
    assert [lease.index for lease in world.read()[job].leases] == [6, 7, 0]
    world.chain.mine()
    assert [lease.index for lease in world.read()[job].leases] == [7, 0, 1]


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
