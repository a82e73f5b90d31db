"""Keepers and jobs that wait: nobody keeps them from being unlocked, by what else he posts, touches or runs."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.formulas import Immutables
from hearth.protocol.gas import EXPIRE_GAS
from hearth.protocol.parents import Condition, Parent
from hearth.protocol.types import MAX_PARENTS, Best, Header, State, Unit, UnitFlag
from keeper.actions import Expire, Skip, Unlock
from keeper.config import Config
from keeper.decide import decide
from keeper.reader import Reader
from keeper.snapshot import JobRow, ParentWord, Snapshot, UnitRow
from tests.keeper.chain import Follower, LoggingEvm
from tests.keeper.markets import FAILED, NOW, RUNS, case_of, job, node, parent
from tests.keeper.test_decide import BLOCKED, FREE, NAME
from tests.keeper.test_index import config_of, send
from tests.kit.world import DEAD_AFTER, LIVENESS_FEE, MINIMUM_STAKE, World

BLOCK = 2


# ---- a parent that goes on keeps one that failed from being seen ----


def test_decide__failed_parent_beside_an_array_that_runs__is_unlocked_within_the_jitter() -> None:
    """The array's header changes with each unit. The delay is counted from the last change of any parent's word."""
    row = job(BLOCKED, parents=(parent(0), parent(1)))
    config = replace(FREE, jitter=12, keeper=next(_far_keepers(12)))
    assert config.delay_of(NAME) > BLOCK
    for seconds in range(0, 3_600, BLOCK):
        word = words.pack_header(Header(touched=1 + seconds // BLOCK, done=seconds // BLOCK, leases=1 << 20))
        seen = {parent(0).job: ParentWord(FAILED, NOW), parent(1).job: ParentWord(word, NOW + seconds)}
        snapshot = replace(case_of((node(1),), (row,), parents=seen).snapshot, time=NOW + seconds)
        if any(isinstance(said, Unlock) for said in decide(snapshot, config, NOW + seconds)):
            assert seconds <= config.jitter + BLOCK
            return
    pytest.fail("no unlock in an hour, while its keeper fee could have been had since the first second")


def _far_keepers(jitter: int) -> Iterator[str]:
    for number in range(100):
        address = f"0x{number:040x}"
        if replace(FREE, jitter=jitter, keeper=address).delay_of(NAME) > BLOCK:
            yield address


# ---- an array that nobody is paid to end ----


def _snapshot_of(follower: Follower) -> Snapshot:
    now, rows = follower.evm.now, follower.index.rows()
    nodes = follower.index.fleet.at(now, Immutables(DEAD_AFTER, MINIMUM_STAKE))
    load = follower.world.jobs.call.load
    ends = {one.job: ParentWord(load(one.job, 0)[0], 0) for row in rows if row.waits for one in row.parents}
    return Snapshot(follower.evm.block, now, nodes, rows, LIVENESS_FEE, gas_price=0, parents=ends)


def _cycle(world: World, follower: Follower, config: Config) -> list[str]:
    """Let a keeper that takes anything that pays read, decide and send; return the kinds of what it sent."""
    follower.follow()
    done = []
    for said in decide(_snapshot_of(follower), config, world.evm.now):
        if not isinstance(said, Skip):
            send(world, follower.index, said)
            done.append(said.kind)
    return done


@pytest.mark.parametrize("touches", [False, True], ids=["nobody touches it", "a stranger proposes his node"])
@pytest.mark.parametrize("condition", [Condition.ALWAYS, Condition.FAILURE])
def test_child__of_an_array_that_is_over__is_opened_by_a_keeper(condition: Condition, touches: bool) -> None:
    """A stranger's one proposal in the array's last second touches its last unit, whose end then pays nobody."""
    world = World(LoggingEvm())
    mine = world.register()
    strangers = world.register(owner=world.stranger, operator=world.stranger)
    array = world.post(units=2, match_window=30, deadline=world.evm.now + 5_000)
    child = world.post_after((array, condition), match_window=30)
    world.propose(array, mine, 0)
    world.evm.warp(30)
    world.ack(array, 0)
    world.submit(array, 0)
    world.settle(array, 0)
    over = formulas.expirable_from(array)
    world.evm.at(over - 1)
    world.nodes.send.beat(strangers, sender=world.stranger)
    if touches:
        world.propose(array, strangers, 1, sender=world.stranger)
    follower = Follower(world, world.keeper)
    config = replace(config_of(world), jitter=0, max_loss=0)
    sent = []
    for at in (over, over + 1_000, array.deadline + 1, array.deadline + 86_400, child.deadline - 4_000):
        world.evm.at(at)
        sent += _cycle(world, follower, config)
        sent += _cycle(world, follower, config)
    assert world.state(child) == State.OPEN, sent


@pytest.mark.parametrize("touched", [1, 40])
def test_expire__touched_units_of_an_array_that_is_waited_for__share_what_the_unlock_pays(touched: int) -> None:
    """Many touched units are no bait: what all of their ends cost is below what the unlock after the last one pays."""
    units = tuple(
        UnitRow(index, Unit(state=State.OPEN, started=1, flags=UnitFlag.ARRAY), Best()) for index in range(touched)
    )
    array = job(units[0].unit, number=1, units=touched)
    array = replace(array, units=units, header=Header(touched=touched, leases=touched))
    dependent = job(BLOCKED, number=2, parents=(Parent(array.id, Condition.ALWAYS),))
    over = formulas.expirable_from(array.terms)
    dependent = replace(dependent, terms=replace(dependent.terms, deadline=over + 10**6, keeper_fee=4 * EXPIRE_GAS))
    seen = {array.id: ParentWord(words.pack_header(array.header or Header()), 0)}
    config = replace(FREE, max_loss=0, coin_price=10**18)
    said = decide(replace(case_of((), (array, dependent), parents=seen).snapshot, time=over, gas_price=1), config, over)
    assert [one.index for one in said if isinstance(one, Expire)] == ([0] if touched == 1 else [])


# ---- what waits costs time ----


def test_decide__many_jobs_after_the_same_parents__reads_each_parents_end_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A post with the most parents costs its submitter nothing that he does not get back, but for its gas."""
    looked = 0
    plain = words.unpack_unit

    def counted(word: int) -> Unit:
        nonlocal looked
        looked += 1
        return plain(word)

    monkeypatch.setattr(words, "unpack_unit", counted)
    listed = tuple(parent(number) for number in range(MAX_PARENTS))
    rows = tuple(job(BLOCKED, number=number, parents=listed) for number in range(1, 201))
    seen = {one.job: ParentWord(RUNS, 0) for one in listed}
    decide(case_of((node(1),), rows, parents=seen).snapshot, FREE, NOW)
    assert looked <= MAX_PARENTS + len(rows), f"{looked} looks at {MAX_PARENTS} words, by {len(rows)} jobs"


def test_read_parents__list_whose_length_a_stranger_changes__reaches_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose turn it is goes by a number modulo the list's length: one post or cancel a block keeps one job unread."""
    monkeypatch.setattr("keeper.reader.PARENTS", 2)
    reader: Any = object.__new__(Reader)
    reader._turn, reader._turns, reader._parents = 0, {}, {}
    reader._market = SimpleNamespace(job_words=lambda jobs, block: [RUNS] * len(jobs))
    rows = [job(BLOCKED, number=number, parents=(parent(number), parent(100 + number))) for number in range(1, 12)]
    victim, last = rows[1], 0
    head: Any = SimpleNamespace(timestamp=NOW, hash=b"")

    def is_read(by: Any, shown: list[JobRow]) -> bool:
        by._rows = tuple(shown)
        return victim.parents[0].job in by._read_parents(head)

    for cycle in range(1, 300):
        # Ten jobs or eleven: the one of the two at which it is not the victim's turn, where there is one.
        shown = next((some for some in (rows[:10], rows) if not is_read(copy(reader), some)), rows)
        if is_read(reader, shown):
            last = cycle
        assert cycle - last <= len(rows), (
            f"not read since cycle {last}, while each of {len(rows)} has a turn in as many"
        )
