"""The index equals the contracts after any history, and what decide makes of it, the contracts take."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from hearth.chain.port import Log
from hearth.market.events import Checkpointed, CheckpointPaid, ToppedUp, topic_of
from hearth.protocol import formulas, words
from hearth.protocol.formulas import Immutables
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import SENTINEL, Billing, Header, JobId, NodeId, State, Terms, TermsFlag, Unit
from keeper.actions import ALL, Action, CheckLiveness, Propose, Settle, Skip, Unlock
from keeper.config import Config
from keeper.decide import decide
from keeper.fleet import encode_node
from keeper.index import Index, topics
from keeper.snapshot import ParentWord, Snapshot
from keeper.trust import Record
from tests.keeper.chain import Follower, LoggingEvm
from tests.kit.evm import CHAIN_ID, Reverted
from tests.kit.world import DEAD_AFTER, LIVENESS_FEE, MINIMUM_STAKE, SESSION, World


@pytest.fixture
def world() -> World:
    return World(LoggingEvm())


def config_of(world: World, **changes: object) -> Config:
    plain = Config(keeper=world.keeper, payee=world.keeper, jitter=0, latency=0, max_loss=10**30)
    return replace(plain, **changes)  # type: ignore[arg-type]


def snapshot_of(follower: Follower) -> Snapshot:
    now = follower.evm.now
    nodes = follower.index.fleet.at(now, Immutables(DEAD_AFTER, MINIMUM_STAKE))
    rows, records = follower.index.rows(), dict(follower.index.records)
    waited = list({one.job: None for row in rows if row.waits for one in row.parents})
    words = follower.world.lens.call.jobs(waited)
    parents = {job: ParentWord(word, 0) for job, word in zip(waited, words, strict=True)}
    return Snapshot(follower.evm.block, now, nodes, rows, LIVENESS_FEE, gas_price=0, records=records, parents=parents)


def send(world: World, index: Index, action: Action) -> None:
    """Send an action as the keeper; raises Reverted where the contracts refuse it."""
    payee = world.keeper
    if isinstance(action, CheckLiveness):
        world.nodes.send.check_liveness(list(action.nodes), payee, sender=world.keeper)
    elif isinstance(action, Settle):
        items = [(index.packed(job), number) for job, number in action.items]
        world.jobs.send.settle_batch(items, payee, sender=world.keeper)
    elif isinstance(action, Propose):
        world.jobs.send.propose(index.packed(action.job), action.index, action.node, payee, sender=world.keeper)
    elif isinstance(action, Unlock):
        world.jobs.send.unlock(index.packed(action.job), pack_parents(action.parents), payee, sender=world.keeper)
    else:
        number = SENTINEL if action.index == ALL else action.index
        function = getattr(world.jobs.send, action.kind)
        function(index.packed(action.job), number, payee, sender=world.keeper)


class History:
    """A seeded history: what submitters and nodes do by chance, with every refusal of theirs ignored."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.draw = world, random.Random(seed)
        self.nodes: list[NodeId] = []
        self.jobs: dict[JobId, Terms] = {}
        self.register()
        self.register()

    def step(self) -> None:
        """Do one thing that the market may refuse."""
        act = self.draw.choice(
            [self.post, self.post, self.register, self.beat, self.beat, self.claim, self.ack, self.ack, self.submit]
            + [
                self.decline,
                self.give_up,
                self.cancel,
                self.cancel_all,
                self.wait,
                self.wait,
                self.accept,
                self.propose,
                self.checkpoint,
                self.top_up,
            ]
        )
        try:
            act()
        except Reverted:
            return

    def post(self) -> None:
        window = self.draw.choice([0, 12, 12, 12])
        fields: dict[str, Any] = dict(
            units=self.draw.choice([1, 1, 3, 1 << 20]),
            match_window=window,
            max_seconds=self.draw.choice([60, 1_000]),
            deadline=self.world.evm.now + self.draw.choice([1_400, 5_000]),
            ceiling=self.draw.choice([60, 100]) * 10**18,
            flags=self.draw.choice([TermsFlag(0), TermsFlag.NEWCOMERS, TermsFlag.NEWCOMERS | TermsFlag.KEEP]),
        )
        if self.draw.random() < 0.5:
            fields |= {"billing": Billing.METERED, "checkpoint_every": self.draw.choice([0, 600])}
        parents = []
        if self.draw.random() < 0.4:
            parents = self.draw.sample(list(self.jobs.values()), min(len(self.jobs), self.draw.choice([1, 1, 2])))
        if parents:
            terms = self.world.post_after(*[(one, self.draw.choice([*Condition])) for one in parents], **fields)
        else:
            terms = self.world.post(**fields)
        self.jobs[self.world.id_of(terms)] = terms

    def register(self) -> None:
        if len(self.nodes) < 6:
            operator = self.world.evm.account(f"operator {len(self.nodes)}")
            ask = self.draw.choice([10, 50, 90]) * 10**18 // 4
            self.nodes.append(self.world.register(operator=operator, slots=self.draw.choice([1, 3]), ask=ask))

    def beat(self) -> None:
        for number in self.nodes:
            if self.draw.random() < 0.8:
                self.world.nodes.send.beat(number, sender=self.operator(number))

    def operator(self, number: NodeId) -> str:
        return self.world.evm.account(f"operator {number - 1}")

    def some(self) -> tuple[Terms, int]:
        terms = self.draw.choice(list(self.jobs.values()) or [self.world.terms()])
        touched = 1
        if terms.leases > 1:
            touched = self.world.header(terms).touched
        return terms, self.draw.randrange(touched + 1) if terms.leases > 1 else 0

    def claim(self) -> None:
        terms, index = self.some()
        number, packed = self.draw.choice(self.nodes), words.pack_terms(terms)
        left = self.kept(terms, index)
        self.world.jobs.send.claim(packed, index, number, SESSION, left, sender=self.operator(number))

    def kept(self, terms: Terms, index: int) -> int:
        """Return the attempt that was lost last, where its checkpoint is kept, else 0."""
        key = formulas.unit_key(self.world.id_of(terms), index, terms.leases)
        attempt = self.world.unit(terms, index).attempts
        return attempt if self.world.jobs.call.checkpoints(key, attempt) else 0

    def checkpoint(self) -> None:
        for terms, index in self.units(State.RUNNING):
            if self.draw.random() < 0.7:
                job, node = self.world.id_of(terms), self.world.unit(terms, index).node
                try:
                    self.world.jobs.send.checkpoint(job, index, b"\7" * 32, sender=self.operator(node))
                except Reverted:
                    continue

    def top_up(self) -> None:
        terms, index = self.draw.choice(self.units(State.RUNNING) or [self.some()])
        seconds = self.draw.choice([1, 60, 600])
        amount = formulas.top_up_amount(terms, self.world.unit(terms, index), seconds)
        packed, sender = words.pack_terms(terms), self.world.submitter
        self.world.pay(self.world.jobs, "top_up", packed, index, seconds, amount=amount, sender=sender)

    def ack(self) -> None:
        for terms, index in self.units(State.OPEN):
            if self.world.unit(terms, index).mark and self.draw.random() < 0.7:
                best, packed = self.world.best(terms, index), words.pack_terms(terms)
                sender, left = self.operator(best.node), self.kept(terms, index)
                try:
                    self.world.jobs.send.ack(packed, index, SESSION, left, sender=sender)
                except Reverted:
                    continue

    def submit(self) -> None:
        for terms, index in self.units(State.RUNNING, State.CLOSING):
            node = self.world.unit(terms, index).node
            if self.draw.random() < 0.4:
                self.world.submit(terms, index, outcome=self.draw.choice([1, 1, 2]), sender=self.operator(node))

    def units(self, *states: State) -> list[tuple[Terms, int]]:
        """Return the touched units in one of the states."""
        found = []
        for terms in self.jobs.values():
            touched = self.world.header(terms).touched if terms.leases > 1 else 1
            found += [(terms, i) for i in range(touched) if self.world.state(terms, i) in states]
        return found

    def propose(self) -> None:
        terms, index = self.some()
        self.world.propose(terms, self.draw.choice(self.nodes), index, sender=self.world.stranger)

    def decline(self) -> None:
        terms, index = self.some()
        self.world.decline(terms, index, sender=self.operator(self.world.unit(terms, index).node))

    def give_up(self) -> None:
        terms, index = self.some()
        self.world.give_up(terms, index, sender=self.operator(self.world.unit(terms, index).node))

    def cancel(self) -> None:
        running = self.units(State.RUNNING)
        terms, index = self.draw.choice(running) if running else self.some()
        self.world.cancel(terms, index)

    def cancel_all(self) -> None:
        self.world.cancel(self.some()[0], SENTINEL)

    def accept(self) -> None:
        self.world.accept(*self.some())

    def wait(self) -> None:
        self.world.evm.warp(self.draw.choice([1, 5, 13, 61, 400, 901]))


def test_index__random_histories__follow_the_contracts_and_their_actions_are_taken() -> None:
    sent = set[str]().union(*map(_followed, range(6)))
    assert "ToppedUp" in sent, "no history in which a unit was topped up"
    sent -= {"Checkpointed", "CheckpointPaid", "ToppedUp"}
    work = {"propose", "improve", "settle", "reclaim", "expire", "close", "check_liveness"}
    assert sent == work | {"unlock: True, 0", "unlock: False, 0", "unlock: True, -1", "unlock: False, -1"}


def _followed(seed: int) -> set[str]:
    """Follow one history, do what is due in it, compare after every step, and return the kinds of what was done."""
    world = World(LoggingEvm())
    history, follower = History(world, seed), Follower(world, world.keeper)
    sent: set[str] = set()
    for _ in range(80):
        for _ in range(4):
            history.step()
        assert follower.follow() == []
        check_words(history, follower)
        said = decide(snapshot_of(follower), config_of(world, burst=2), world.evm.now)
        assert all(one.reason for one in said if isinstance(one, Skip))
        for action in said:
            if not isinstance(action, Skip):
                send(world, follower.index, action)
                more = f": {action.opens}, {action.index}" if isinstance(action, Unlock) else ""
                sent.add(action.kind + more)
        assert follower.follow() == []
        check_words(history, follower)
    assert follower.compare(follower.index.live()) == []
    assert follower.index.credited == world.credit(world.keeper) > 0
    kinds = {log.topics[0] for log in world.evm.logs}  # type: ignore[attr-defined]
    return sent | {cls.__name__ for cls in (Checkpointed, CheckpointPaid, ToppedUp) if topic_of(cls) in kinds}


def check_words(history: History, follower: Follower) -> None:
    """Every unit that the index keeps is the contracts' own, and every unit that it lacks has ended."""
    world = history.world
    rows = {row.id: row for row in follower.index.rows()}
    for job, terms in history.jobs.items():
        word = world.load(terms)[0]
        assert job not in rows or pack_parents(rows[job].parents) == world.parents.get(job, ())
        if job not in rows:
            if terms.leases > 1:
                header = words.unpack_header(word)
                assert header.done + header.failed == (header.touched if header.closed else terms.leases)
            else:
                assert words.unpack_unit(word).state.terminal
            continue
        held = {unit.index: unit for unit in rows[job].units}
        touched = 1
        if terms.leases > 1:
            header = words.unpack_header(word)
            mine = rows[job].header
            assert mine is not None
            assert header.done + header.failed < (header.touched if header.closed else terms.leases)
            assert mine == replace(header, done=0, failed=0)
            touched = header.touched
        for index in range(touched):
            unit = world.unit(terms, index)
            assert (index in held) == (not unit.state.terminal)
            if index in held:
                assert held[index].unit == unit
                if unit.state == State.OPEN and unit.mark:
                    assert held[index].best == world.best(terms, index)


def test_apply__unit_that_was_resumed_and_paid_for__ends_once_and_leaves_no_stray(world: World) -> None:
    terms, other = world.terms(billing=Billing.METERED, checkpoint_every=600), world.evm.account("other")
    nodes = world.register(), world.register(operator=other)
    world.post(terms)
    follower, packed = Follower(world, world.keeper), words.pack_terms(terms)
    world.claim(terms, nodes[0])
    world.evm.warp(5)
    world.jobs.send.checkpoint(world.id_of(terms), 0, b"\7" * 32, sender=world.operator)
    world.give_up(terms)
    world.jobs.send.claim(packed, 0, nodes[1], SESSION, 1, sender=other)
    assert follower.follow() == []
    world.submit(terms, sender=other)
    world.evm.warp(5)
    world.settle(terms)
    assert any(log.topics[0] == topic_of(CheckpointPaid) for log in world.evm.logs)  # type: ignore[attr-defined]
    assert follower.follow() == []
    assert (follower.index.rows(), follower.index.strays, follower.index.doubts) == ((), 0, set())


def test_apply__flood_of_checkpoints__is_not_asked_for_and_costs_nothing(world: World) -> None:
    """Whoever runs a unit may log one a second: a keeper has no use for them, nor for what they earned."""
    assert {topic_of(Checkpointed), topic_of(CheckpointPaid)}.isdisjoint(topics())
    terms, node = world.terms(billing=Billing.METERED, checkpoint_every=600), world.register()
    world.post(terms)
    world.claim(terms, node)
    follower, job = Follower(world, world.keeper), world.id_of(terms)
    follower.follow()
    (before,), size = follower.index.rows(), len(follower.index._keys)
    for _ in range(20):
        world.evm.warp(1)
        world.jobs.send.checkpoint(job, 0, b"\7" * 32, sender=world.operator)
    assert follower.follow() == []
    assert follower.index.rows() == (before,) and follower.index.rows()[0] is before
    assert (follower.index.strays, follower.index.doubts, len(follower.index._keys)) == (0, set(), size)


@pytest.mark.parametrize("page", [1, 7, 1000])
def test_apply__pages_of_any_length__end_the_same(page: int) -> None:
    world = World(LoggingEvm())
    history, whole, paged = History(world, 9), Follower(world, world.keeper), Follower(world, world.keeper)
    for _ in range(80):
        history.step()
    whole.follow()
    while paged.read < len(world.evm.logs):  # type: ignore[attr-defined]
        paged.follow(page)
    one = {row.id: replace(row, since=0) for row in whole.index.rows()}
    assert {row.id: replace(row, since=0) for row in paged.index.rows()} == one
    assert len(one) > 3
    assert paged.index.states() == whole.index.states()


def test_apply__array_of_a_million_units__is_one_entry(world: World) -> None:
    world.register()
    terms = world.post(units=1 << 20, match_window=12, flags=TermsFlag.NEWCOMERS)
    follower = Follower(world, world.keeper)
    follower.follow()
    (row,) = follower.index.rows()
    assert row.units == ()
    assert row.header is not None and row.header.touched == 0 and row.terms == terms
    said = decide(snapshot_of(follower), config_of(world), world.evm.now)
    assert [one.index for one in said if isinstance(one, Propose)] == [0, 1, 2, 3]  # the node's four slots


def test_apply__lease_of_an_array__dates_the_next_one(world: World) -> None:
    node = world.register()
    terms = world.post(units=3, flags=TermsFlag.NEWCOMERS)
    follower = Follower(world, world.keeper)
    follower.follow()
    world.evm.warp(70)
    world.claim(terms, node)
    follower.follow()
    assert follower.index.rows()[0].since == world.evm.now
    world.evm.warp(10)
    world.submit(terms)
    follower.follow()
    assert follower.index.rows()[0].since == world.evm.now - 10


def test_decide__on_the_contracts__first_proposal_is_the_one_that_cannot_be_improved(world: World) -> None:
    operators = [world.evm.account(f"op{i}") for i in range(5)]
    for i, operator in enumerate(operators):
        world.register(operator=operator, ask=(40 + i) * 10**18)
    terms = world.post(match_window=12)
    follower = Follower(world, world.keeper)
    follower.follow()
    (action,) = decide(snapshot_of(follower), config_of(world), world.evm.now)
    assert isinstance(action, Propose)
    send(world, follower.index, action)
    assert world.best(terms).key == action.key
    for number in range(1, 6):
        if number != action.node:
            with pytest.raises(Reverted, match="not a better key"):
                world.propose(terms, NodeId(number))


def test_records__own_proposals_on_the_contracts__are_acked_lapsed_or_replaced(world: World) -> None:
    """An ack, a claim, a cancel and a proposal after a lapse, and a better proposal of others."""
    dear = world.register(operator=world.evm.account("dear"), ask=90 * 10**18, slots=9)
    array = world.post(units=9, match_window=12, flags=TermsFlag.NEWCOMERS)
    follower = Follower(world, world.keeper)
    for index in range(4):
        world.propose(array, dear, index, sender=world.keeper, payee=world.keeper)
    world.propose(array, dear, 4, sender=world.stranger, payee=world.stranger)
    world.evm.warp(12)
    world.ack(array, 0, sender=world.evm.account("dear"))
    world.ack(array, 4, sender=world.evm.account("dear"))
    follower.follow()
    (row,) = follower.index.rows()
    assert (row.record, follower.index.records) == (Record(1), {dear: Record(1)}), "its own alone"

    lapse = world.unit(array, 1).window_end + world.policy.ack_time
    world.evm.warp(60)
    cheap = world.register(operator=world.evm.account("cheap"), ask=10 * 10**18, slots=9)
    world.propose(array, cheap, 1, sender=world.keeper, payee=world.keeper)
    world.cancel(array, 2)
    world.evm.warp(1_000)
    world.nodes.send.beat(dear, sender=world.evm.account("dear"))
    world.claim(array, dear, 3, sender=world.evm.account("dear"))
    follower.follow()
    (row,) = follower.index.rows()
    assert (row.record, follower.index.records) == (Record(-2, lapse), {dear: Record(-2, lapse)})

    world.nodes.send.beat(cheap, sender=world.evm.account("cheap"))
    world.propose(array, dear, 5, sender=world.keeper, payee=world.keeper)
    until = world.unit(array, 5).window_end + world.policy.ack_time
    world.propose(array, cheap, 5, sender=world.stranger, payee=world.stranger)
    follower.follow()
    (row,) = follower.index.rows()
    assert row.record == Record(-3, until), "a better proposal costs the job a proposal of ours"
    assert follower.index.records == {dear: Record(-2, lapse)}, "and is no fault of its node"


def test_compare__word_that_an_event_did_not_carry__is_named_and_taken_over(world: World) -> None:
    node = world.register()
    terms = world.post()
    follower = Follower(world, world.keeper)
    follower.follow()
    world.claim(terms, node)
    job = world.id_of(terms)
    assert follower.index.compare([job], [world.load(terms)[0]]) == [job]
    assert follower.index.rows()[0].units[0].unit == world.unit(terms)
    with pytest.raises(ValueError, match="shorter"):
        follower.index.compare([job], [])


def test_apply__logs_with_a_gap__are_counted_and_stepped_over(world: World) -> None:
    node = world.register()
    terms = world.post(units=3, flags=TermsFlag.NEWCOMERS)
    for index in range(2):
        world.claim(terms, node, index)
    logs = [log for log in world.evm.logs if log.address == world.jobs.address.lower()]  # type: ignore[attr-defined]
    job = world.id_of(terms)
    for page, strays, doubts in (
        (logs[1:], 2, set()),  # a job that was not posted
        ([logs[0], logs[2]], 1, {job}),  # lease 1 where 0 is the next
        ([logs[0], logs[0]], 1, {job}),
        (logs, 0, set()),
    ):
        index = Index(CHAIN_ID, world.jobs.address.lower())
        index.apply(page, 0)
        assert (index.strays, index.doubts) == (strays, doubts)
        assert index.logs == len(page)


def test_apply__log_of_a_whole_array_about_a_job_of_one_unit__is_stepped_over(world: World) -> None:
    terms = world.post()
    world.claim(terms, world.register())
    posting, claim = (log for log in world.evm.logs if log.address == world.jobs.address.lower())  # type: ignore[attr-defined]
    index, everything = Index(CHAIN_ID, world.jobs.address.lower()), SENTINEL.to_bytes(32, "big")
    header = words.pack_header(Header(touched=1, leases=1)).to_bytes(32, "big")
    topics = (*claim.topics[:2], everything, *claim.topics[3:])
    index.apply([posting, claim._replace(topics=topics, data=header + claim.data[32:])], 0)
    job = world.id_of(terms)
    assert (index.strays, index.doubts, index.live()) == (1, {job}, [job])


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_apply__log_without_the_topics_of_its_event__is_stepped_over(world: World, kept: int) -> None:
    """A registry's own address on a log says nothing of what else a provider put into it."""
    world.claim(world.post(flags=TermsFlag.NEWCOMERS), world.register(), 0)
    logs = [log for log in world.evm.logs if log.address == world.jobs.address.lower()]  # type: ignore[attr-defined]
    index = Index(CHAIN_ID, world.jobs.address.lower())
    for log in logs:
        cut = log._replace(topics=log.topics[:kept])
        index.apply([cut], 0)
    moves = len(logs) - 1
    # No event has no topic: that is nothing of ours. The post needs its job's id alone.
    assert (index.strays, len(index)) == ((0, 0), (len(logs), 0), (moves, 1))[kept]


def test_rows__terms_with_another_id__are_doubted_and_left_out(world: World) -> None:
    world.post()
    (log,) = (log for log in world.evm.logs if log.address == world.jobs.address.lower())  # type: ignore[attr-defined]
    altered = bytearray(log.data)
    altered[5] ^= 1
    index = Index(CHAIN_ID, world.jobs.address.lower())
    index.apply([log._replace(data=bytes(altered))], 0)
    job = JobId(log.topics[1])
    assert (index.rows(), index.doubts) == ((), {job})
    assert (index.set_aside(), index.live(), index.doubts, index.aside) == ([job], [], set(), {job})
    index.apply([log], 0)
    assert (len(index), index.strays) == (0, 1), "what is set aside stays so until everything is read anew"


def test_set_aside__own_proposal_of_a_doubted_job__is_not_answered_by_another_jobs_unit(world: World) -> None:
    """A row is used again: what becomes of the next job's unit says nothing of a proposal that was in it before."""
    node = world.register()
    follower = Follower(world, world.keeper)
    doubted = world.post(match_window=12, flags=TermsFlag.NEWCOMERS)
    world.propose(doubted, node, sender=world.keeper, payee=world.keeper)
    follower.follow()
    follower.index.doubts.add(world.id_of(doubted))
    assert follower.index.set_aside() == [world.id_of(doubted)]
    world.claim(world.post(flags=TermsFlag.NEWCOMERS), node)
    follower.follow()
    (row,) = follower.index.rows()
    assert (row.record, follower.index.records) == (Record(), {})


# ---- parents ----


def family(world: World, units: int) -> tuple[Follower, Terms, Terms]:
    """Return a follower of a running parent and of a child of it, with both jobs' terms."""
    node = world.register()
    parent = world.post(flags=TermsFlag.NEWCOMERS)
    world.claim(parent, node)
    child = world.post_after((parent, Condition.SUCCESS), units=units, flags=TermsFlag.NEWCOMERS)
    return Follower(world, world.keeper), parent, child


def posted(world: World) -> list[Log]:
    """Return the logs of JobRegistry so far."""
    return [log for log in world.evm.logs if log.address == world.jobs.address.lower()]  # type: ignore[attr-defined]


@pytest.mark.parametrize("units", [1, 3])
def test_apply__job_with_parents__waits_until_it_is_unlocked(world: World, units: int) -> None:
    follower, parent, child = family(world, units)
    when = world.evm.now
    assert follower.follow() == []
    row = {row.id: row for row in follower.index.rows()}[world.id_of(child)]
    assert row.waits and row.parents == (Parent(world.id_of(parent), Condition.SUCCESS),)
    if units == 1:
        assert [unit.unit for unit in row.units] == [Unit(state=State.BLOCKED, started=when)]
    else:
        assert (row.units, row.header) == ((), Header(waiting=True, opened=when, leases=3))
    world.submit(parent)
    world.settle(parent)
    world.evm.warp(50)
    world.unlock(child)
    assert follower.follow() == []
    (row,) = follower.index.rows()
    assert not row.waits
    if units == 1:
        assert [unit.unit for unit in row.units] == [Unit(state=State.OPEN, started=world.evm.now)]
    else:
        assert (row.units, row.header) == ((), Header(opened=world.evm.now, leases=3))
    assert follower.compare(follower.index.live()) == []


@pytest.mark.parametrize("units", [1, 3])
def test_apply__job_whose_parent_failed__is_gone_once_it_is_unlocked(world: World, units: int) -> None:
    follower, parent, child = family(world, units)
    world.submit(parent, outcome=2)
    world.settle(parent)
    follower.follow()
    assert follower.index.live() == [world.id_of(child)]
    world.unlock(child)
    follower.follow()
    assert (len(follower.index), follower.index.strays, follower.index.doubts) == (0, 0, set())


HEAD = 9 * 32


@pytest.mark.parametrize(
    "changed",
    [
        lambda data: data[:HEAD],
        lambda data: data[: HEAD + 31],
        lambda data: data[: HEAD + 32],
        lambda data: data[:-1],
        lambda data: data[:-32],
        lambda data: data + bytes(1),
        lambda data: data + bytes(32),
        lambda data: data[:HEAD] + bytes(32) + data[HEAD + 32 :],
        lambda data: data[:HEAD] + b"\xff" * 32 + data[HEAD + 32 :],
        lambda data: data[: HEAD + 96] + (1).to_bytes(32, "big") + data[HEAD + 128 :],
        lambda data: data[: HEAD + 96] + b"\xff" * 32 + data[HEAD + 128 :],
        lambda data: data[: HEAD + 96] + (17).to_bytes(32, "big") + bytes(17 * 32),
    ],
)
@pytest.mark.parametrize("units", [1, 3])
def test_apply__post_with_a_malformed_list_of_parents__is_stepped_over(world: World, units: int, changed: Any) -> None:
    _, _, child = family(world, units)
    log = posted(world)[-1]
    assert log.topics[1] == world.id_of(child)
    index = Index(CHAIN_ID, world.jobs.address.lower())
    index.apply([log._replace(data=changed(log.data))], 0)
    assert (index.strays, len(index), index.rows()) == (1, 0, ())
    index.apply([log], 0)
    assert (index.strays, len(index.rows())) == (1, 1)


def listed(*items: bytes) -> bytes:
    """Return the tail of a post's data: its list of parents."""
    return (HEAD + 96).to_bytes(32, "big") + bytes(64) + len(items).to_bytes(32, "big") + b"".join(items)


@pytest.mark.parametrize(
    "items",
    [(), (bytes(31) + b"\1", b"\7" * 32), (bytes(31) + b"\2",), (bytes(31) + b"\5", b"\7" * 32, b"\7" * 32)],
)
def test_rows__parents_that_the_terms_do_not_hash__are_doubted(world: World, items: tuple[bytes, ...]) -> None:
    _, _, child = family(world, 1)
    log = posted(world)[-1]
    index = Index(CHAIN_ID, world.jobs.address.lower())
    index.apply([log._replace(data=log.data[:HEAD] + listed(*items))], 0)
    assert (index.strays, index.rows(), index.doubts) == (0, (), {world.id_of(child)})


@pytest.mark.parametrize(
    "items",
    [
        (bytes(31) + b"\1",),  # no parent
        (bytes(32), b"\7" * 32),  # a condition of none
        (bytes(31) + b"\5", b"\7" * 32),  # conditions of more parents than there are
    ],
)
def test_rows__hashed_parents_that_no_post_takes__are_doubted(world: World, items: tuple[bytes, ...]) -> None:
    terms = world.terms(parents_hash=parents_hash(items))
    job = world.id_of(terms)
    world.post()
    log = posted(world)[-1]
    packed = b"".join(one if isinstance(one, bytes) else one.to_bytes(32, "big") for one in words.pack_terms(terms))
    index = Index(CHAIN_ID, world.jobs.address.lower())
    index.apply([log._replace(topics=(log.topics[0], job), data=packed + listed(*items))], 0)
    assert (index.strays, index.rows(), index.doubts) == (0, (), {job})


@pytest.mark.parametrize("change", [{"waiting": False}, {"opened": 7}, {"leases": 4}, {"closed": True}])
def test_compare__header_of_an_array_that_waits__differs_by_each_lane(world: World, change: dict[str, Any]) -> None:
    follower, _, child = family(world, 3)
    follower.follow()
    job = world.id_of(child)
    word = world.load(child)[0]
    assert follower.index.compare([job], [word]) == []
    other = words.pack_header(replace(words.unpack_header(word), **change))
    assert follower.index.compare([job], [other]) == [job]


@pytest.mark.parametrize("told", [State.OPEN, State.BLOCKED])
@pytest.mark.parametrize("held", [State.OPEN, State.BLOCKED])
def test_compare__fresh_unit__has_its_time_from_the_chain_and_not_its_state(
    world: World, held: State, told: State
) -> None:
    family(world, 1)
    if held is State.OPEN:
        world.post()
    log = posted(world)[-1]
    index, job = Index(CHAIN_ID, world.jobs.address.lower()), JobId(log.topics[1])
    index.apply([log], 0)
    word = words.pack_unit(Unit(state=told, started=9))
    assert index.compare([job], [word]) == ([] if told is held else [job])


def test_rows__word_that_waits_where_nothing_can__is_doubted(world: World) -> None:
    """A log may say BLOCKED of a job without parents, or of one unit of an array."""
    node = world.register()
    single, array = world.post(), world.post(units=3, flags=TermsFlag.NEWCOMERS)
    world.claim(single, node)
    world.claim(array, node)
    logs = posted(world)
    blocked = words.pack_unit(Unit(state=State.BLOCKED)).to_bytes(32, "big")
    index = Index(CHAIN_ID, world.jobs.address.lower())
    index.apply(logs[:2] + [log._replace(data=blocked + log.data[32:]) for log in logs[2:]], 0)
    assert (index.strays, index.rows(), index.doubts) == (0, (), {world.id_of(single), world.id_of(array)})


def test_packed__job_of_the_index__has_the_jobs_id(world: World) -> None:
    terms = world.post()
    follower = Follower(world, world.keeper)
    follower.follow()
    job = world.id_of(terms)
    assert follower.index.packed(job) == words.pack_terms(terms)
    assert formulas.job_id_of_words(CHAIN_ID, world.jobs.address, follower.index.packed(job)) == job


def test_write__node_of_the_contracts__reads_back(world: World) -> None:
    node = world.register()
    follower = Follower(world, world.keeper)
    follower.follow()
    assert encode_node(follower.index.fleet.node(node)) == encode_node(world.node(node))
