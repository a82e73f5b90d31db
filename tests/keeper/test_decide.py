"""What the keeper decides: never what a guard refuses, and never nothing without a reason."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import fleets, plain
from hearth.protocol import formulas, parents
from hearth.protocol.gas import PAID_CHECKPOINT_GAS, RECLAIM_GAS, SETTLE_GAS, settling_gas, unlocking_gas
from hearth.protocol.parents import Condition, Ended, Parent, Progress, progress
from hearth.protocol.types import (
    MAX_PARENTS,
    Best,
    Billing,
    Gate,
    Header,
    Node,
    NodeFlag,
    NodeId,
    Outcome,
    State,
    TermsFlag,
    Unit,
    UnitFlag,
)
from keeper.actions import (
    ALL,
    Action,
    CheckLiveness,
    Close,
    Expire,
    Propose,
    Reclaim,
    Rest,
    Settle,
    Skip,
    Unlock,
    node_id,
    unit_id,
)
from keeper.config import Config
from keeper.decide import decide
from keeper.explain import explain_job
from keeper.snapshot import JobRow, ParentWord, Snapshot, UnitRow
from keeper.trust import Record
from tests.keeper.markets import (
    FAILED,
    IMMUTABLES,
    KEEPER,
    NOW,
    OTHER,
    RUNS,
    WELL,
    Case,
    case_of,
    cases,
    job,
    node,
    open_unit,
    parent,
)

FREE = Config(keeper=KEEPER, payee=KEEPER, jitter=0, latency=0, max_loss=10**30)
configs = st.builds(
    Config,
    keeper=st.sampled_from([KEEPER, OTHER]),
    payee=st.just(KEEPER),
    jitter=st.sampled_from([0, 0, 5, 60]),
    latency=st.sampled_from([0, 3]),
    max_loss=st.sampled_from([0, 10**30]),
    burst=st.sampled_from([1, 3]),
)


def refusal(action: Action, case: Case, now: int) -> str:
    """Return why the contracts would refuse an action, "" where they take it. Written from the protocol's guards."""
    rows = {row.id: row for row in case.snapshot.jobs}
    nodes = {node.id: node for node in case.nodes}
    if isinstance(action, CheckLiveness):
        for number in action.nodes:
            hot = nodes[number].state
            if (
                hot.beat == 0
                or now < hot.beat + IMMUTABLES.dead_after
                or hot.status & (NodeFlag.LAPSED | NodeFlag.EXITING)
            ):
                return f"node {number} is not newly silent"
        return "" if 0 < len(set(action.nodes)) == len(action.nodes) <= 128 else "bad batch"
    if isinstance(action, Settle):
        for job_id, index in action.items:
            unit, of = _row(rows[job_id], index).unit, rows[job_id]
            since = unit.mark + of.terms.challenge_window
            if unit.state == State.DISPUTED:
                since += 30 * 86_400
            if of.terms.flags & TermsFlag.PROVEN:
                since = max(since, of.terms.deadline + of.terms.challenge_window)
            elif unit.flags & UnitFlag.FRESH:
                since = max(since, unit.mark + formulas.policy_of(of.terms).fresh_delay)
            if unit.state not in (State.SUBMITTED, State.DISPUTED) or now < since:
                return "not submitted, or held"
        return "" if 0 < len(set(action.items)) == len(action.items) <= 64 else "bad batch"
    row = rows[action.job]
    terms = row.terms
    if isinstance(action, Expire) and action.index != ALL:
        # A unit that was topped up needs as much time more.
        terms = replace(terms, max_seconds=terms.max_seconds + _row(row, action.index).unit.seconds)
    if isinstance(action, Expire):
        if now + formulas.lease_seconds(terms) + formulas.grace(terms) <= terms.deadline:
            return "time is left"
        if action.index == ALL:
            header = row.header
            if header is None:
                return "" if row.units[0].unit.state in (State.OPEN, State.BLOCKED) else "not open"
            return "closed or touched" if header.closed or header.touched >= terms.leases else ""
        return "" if _row(row, action.index).unit.state in (State.OPEN, State.BLOCKED) else "not open"
    if isinstance(action, Unlock):
        waits = row.header.waiting if row.header else row.units[0].unit.state == State.BLOCKED
        if not waits or now + formulas.lease_seconds(terms) + formulas.grace(terms) > terms.deadline:
            return "not blocked, or no time left"
        if action.parents != row.parents or action.index != (ALL if row.header else 0):
            return "not as posted"
        seen = case.snapshot.parents
        found = progress(row.parents, [seen[one.job].word for one in row.parents])
        return "" if found is (Progress.OPENS if action.opens else Progress.FAILS) else "a parent has not ended"
    if isinstance(action, Close):
        unit = _row(row, action.index).unit
        return "" if unit.state == State.CLOSING and now >= unit.mark else "notice not over"
    if isinstance(action, Reclaim):
        unit = _row(row, action.index).unit
        beat = nodes[unit.node].state.beat if unit.node in nodes else 0
        dead = now >= max(beat, unit.started) + IMMUTABLES.dead_after
        return "" if unit.state == State.RUNNING and (now >= unit.mark or dead) else "not reclaimable"
    assert isinstance(action, Propose)
    touched = row.header.touched if row.header else 1
    if action.index >= touched:
        unit, best = Unit(state=State.OPEN), Best()
    else:
        unit, best = _row(row, action.index).unit, _row(row, action.index).best
    if row.header and (row.header.closed or action.index >= terms.leases):
        return "closed"
    read = formulas.with_lapse(terms, unit, best, now)
    if not formulas.proposable(terms, read, now):
        return "not proposable"
    gate = formulas.fit(terms, unit, best, nodes[action.node], now, IMMUTABLES)
    if gate != Gate.FITS:
        return gate.name
    seed = formulas.seed(row.id, action.index, unit.attempts)
    rate = formulas.ask_in_force(nodes[action.node], now)
    hot, offer = nodes[action.node].state, nodes[action.node].offer
    if action.key != formulas.key(formulas.score(terms.needs, terms.ceiling, rate, offer, hot), seed, action.node):
        return "wrong key"
    live = formulas.has_live_proposal(terms, unit, now)
    if live and (action.key <= best.key or action.node == best.node):
        return "not better"
    return "" if action.improves == live else "wrongly named"


def _row(row: JobRow, index: int) -> UnitRow:
    return next(unit for unit in row.units if unit.index == index)


def actions_of(said: list[Action | Skip]) -> list[Action]:
    return [one for one in said if not isinstance(one, Skip)]


def reason_for(said: list[Action | Skip], name: str) -> str:
    (skip,) = [one for one in said if isinstance(one, Skip) and one.id == name]
    return skip.reason


KINDS = {"propose", "improve", "reclaim", "expire", "unlock", "close", "settle", "check_liveness"}
"""All that a keeper does."""

# Each property below is looked at in an inner function, and then at what came about in its examples: of actions that
# none of them has, it would prove nothing.


@pytest.mark.hypothesis
def test_decide__any_market__emits_nothing_that_a_guard_refuses() -> None:
    met: Counter[str] = Counter()

    @given(cases(), configs)
    def look(case: Case, config: Config) -> None:
        seen: set[tuple[bytes, int]] = set()
        for action in actions_of(decide(case.snapshot, config, NOW)):
            met[action.kind] += 1
            assert refusal(action, case, NOW) == ""
            if isinstance(action, Propose):  # a lease beyond the next needs the ones before it, in order
                row = next(row for row in case.snapshot.jobs if row.id == action.job)
                touched = row.header.touched if row.header else 1
                if action.index > touched:
                    met["follows"] += 1
                    assert action.follows
                    assert (action.job, action.index - 1) in seen
                seen.add((action.job, action.index))

    look()
    assert not {*KINDS, "follows"} - met.keys()


@pytest.mark.hypothesis
def test_decide__any_market__names_everything_once_with_a_reason() -> None:
    met: Counter[str] = Counter()

    @given(cases(), configs)
    def look(case: Case, config: Config) -> None:
        said = decide(case.snapshot, config, NOW)
        named: list[str] = []
        for one in said:
            if isinstance(one, Skip):
                met[type(one).__name__] += 1
                assert one.reason
                named.append(one.id)
            else:
                met[one.kind] += 1
                named.extend(one.ids)
        assert len(named) == len(set(named))
        for row in case.snapshot.jobs:
            for unit in row.units:
                assert (unit_id(row.id, unit.index) in named) == (not unit.unit.state.terminal)
            header = row.header
            if header and not header.closed and header.touched < row.terms.leases:
                assert {unit_id(row.id, header.touched), unit_id(row.id, ALL)} & set(named)
        for one_node in case.nodes:
            hot = one_node.state
            silent = hot.beat != 0 and hot.beat + IMMUTABLES.dead_after <= NOW
            silent &= not hot.status & (NodeFlag.LAPSED | NodeFlag.EXITING)
            rests = any(isinstance(one, Rest) and one.id == node_id(one_node.id) for one in said)
            met["rests"] += rests
            assert (node_id(one_node.id) in named) == (silent or rests)
            assert not (silent and rests)

    look()
    assert met["rests"]
    assert not {*KINDS, "Skip", "Rest"} - met.keys()


@pytest.mark.hypothesis
def test_decide__rows_in_any_order__same_result() -> None:
    met: Counter[str] = Counter()

    @given(cases(), configs, st.randoms(use_true_random=False))
    def look(case: Case, config: Config, shuffle: random.Random) -> None:
        first = decide(case.snapshot, config, NOW)
        jobs = [replace(row, units=tuple(shuffle.sample(row.units, len(row.units)))) for row in case.snapshot.jobs]
        shuffle.shuffle(jobs)
        if tuple(jobs) != case.snapshot.jobs:
            met.update(one.kind for one in actions_of(first))
        assert decide(replace(case.snapshot, jobs=tuple(jobs)), config, NOW) == first

    look()
    assert not KINDS - met.keys()


@pytest.mark.hypothesis
def test_decide__paid_market__never_acts_below_its_allowed_loss() -> None:
    met: Counter[str] = Counter()

    @given(cases(), configs, st.sampled_from([1, 50]), st.sampled_from([0, 0, 10**5]))
    def look(case: Case, config: Config, price: int, loss: int) -> None:
        config = replace(config, max_loss=loss)
        for action in actions_of(decide(replace(case.snapshot, gas_price=price), config, NOW)):
            met[action.kind] += 1
            assert action.reward - config.cost_of(action.gas, price) >= -loss

    look()
    assert not KINDS - met.keys()


@pytest.mark.hypothesis
def test_decide__proposals__name_the_node_that_a_plain_loop_names() -> None:
    """Of nobody's record, and before any slot is reserved, a cycle's first proposal is for the whole fleet's winner."""
    met: Counter[str] = Counter()

    @given(cases())
    def look(case: Case) -> None:
        jobs = tuple(
            replace(row, record=Record(), units=tuple(replace(unit, own=False) for unit in row.units))
            for row in case.snapshot.jobs
        )
        said = actions_of(decide(replace(case.snapshot, jobs=jobs, records={}), FREE, NOW))
        first = next((one for one in said if isinstance(one, Propose)), None)
        reserved = any(formulas.has_live_proposal(row.terms, unit.unit, NOW) for row in jobs for unit in row.units)
        if first is None or reserved:
            return
        row = next(row for row in jobs if row.id == first.job)
        touched = row.header.touched if row.header else 1
        unit = UnitRow(first.index, Unit(state=State.OPEN)) if first.index >= touched else _row(row, first.index)
        fits = [one for one in case.nodes if not formulas.fit(row.terms, unit.unit, unit.best, one, NOW, IMMUTABLES)]
        met["one fits" if len(fits) == 1 else "several fit"] += 1
        met["untouched" if first.index >= touched else "touched"] += 1
        want = plain.winner(case.nodes, row.terms, row.id, first.index, unit.unit, unit.best, NOW, IMMUTABLES)
        assert want is not None
        assert (first.node, first.key) == (want.node, want.key)

    look()
    assert met.keys() == {"one fits", "several fit", "untouched", "touched"}


@pytest.mark.hypothesis
def test_decide__any_market__unlocks_once_what_its_parents_let_it_and_what_pays() -> None:
    met: Counter[str] = Counter()

    @given(cases(("waits", "waits", "waits", "wild", "wild")), configs)
    def look(case: Case, config: Config) -> None:
        said, seen = decide(case.snapshot, config, NOW), case.snapshot.parents
        unlocks = [one for one in said if isinstance(one, Unlock)]
        wanted = []
        for row in case.snapshot.jobs:
            if not row.waits or any(one.job not in seen for one in row.parents):
                continue
            index = ALL if row.header else 0
            opened = row.header.opened if row.header else row.units[0].unit.started
            # A parent that has not ended says nothing of when the others did.
            read = [seen[one.job] for one in row.parents]
            turn = max([opened, *(one.since for one in read if parents.ended(one.word) is not Ended.NOT_YET)])
            turn += config.delay_of(unit_id(row.id, index))
            in_time = formulas.has_time(row.terms, NOW + config.latency)
            pays = config.is_worth(row.terms.keeper_fee, unlocking_gas(len(row.parents)), case.snapshot.gas_price)
            ends = progress(row.parents, [one.word for one in read])
            if ends is not Progress.WAITS and in_time and pays and turn <= NOW:
                met[f"{ends.name} {'an array' if row.header else 'a unit'}"] += 1
                wanted.append((row.id, index, ends is Progress.OPENS))
            else:
                met["left"] += 1
        assert sorted((one.job, one.index, one.opens) for one in unlocks) == sorted(wanted)
        assert all(one.reward == _job(case, one).terms.keeper_fee for one in unlocks)

    look()
    assert met.keys() == {"OPENS an array", "OPENS a unit", "FAILS an array", "FAILS a unit", "left"}


def _job(case: Case, action: Unlock) -> JobRow:
    return next(row for row in case.snapshot.jobs if row.id == action.job)


# ---- one behaviour at a time ----


def one_job(*rows: UnitRow, nodes: tuple[Node, ...] = (), **changes: object) -> Snapshot:
    return case_of(nodes or (node(1), node(2), node(3)), (job(*rows, **changes),)).snapshot  # type: ignore[arg-type]


NAME = unit_id(job().id, 0)


def test_decide__fresh_unit__proposes_the_best_node() -> None:
    cheap = node(2, ask=1)
    (action,) = decide(one_job(open_unit(), nodes=(node(1), cheap)), FREE, NOW)
    assert isinstance(action, Propose)
    assert (action.node, action.improves, action.reward) == (NodeId(2), False, 450)


def test_decide__better_node_than_the_best_proposal__improves() -> None:
    unit = open_unit(mark=NOW + 8, rate=5)
    held = replace(unit, best=Best(payee=OTHER, node=NodeId(1), key=1))
    (action,) = decide(one_job(held, nodes=(node(1), node(2, ask=1))), FREE, NOW)
    assert isinstance(action, Propose)
    assert (action.node, action.improves) == (NodeId(2), True)


def test_decide__own_proposal__improves_only_at_a_loss() -> None:
    held = replace(open_unit(mark=NOW + 8), best=Best(payee=KEEPER, node=NodeId(1), key=1), own=True)
    case = case_of((node(1), node(2, ask=1)), (job(held),), gas_price=1)
    said = decide(case.snapshot, replace(FREE, max_loss=0, coin_price=1), NOW)
    assert reason_for(said, NAME) == "not worth its gas: earns 0, costs 1"


@pytest.mark.parametrize(("score", "proposed"), [(1, 2), (0, 2), (-1, 1)])
def test_decide__job_that_has_lost_a_proposal__is_proposed_to_a_node_that_owes_none(score: int, proposed: int) -> None:
    """A node that acked as often as it let lapse owes none: the cheaper one is still the submitter's."""
    row = replace(job(open_unit()), record=Record(-1, NOW - 900))
    records = {NodeId(2): Record(score, NOW - 900)}
    (action,) = decide(case_of((node(1), node(2, ask=1)), (row,), records=records).snapshot, FREE, NOW)
    assert isinstance(action, Propose) and action.node == proposed


@pytest.mark.parametrize(("left", "acts"), [(4, True), (3, False), (1, False)])
def test_decide__window_about_to_close__improves_only_with_time_to_be_mined(left: int, acts: bool) -> None:
    held = replace(open_unit(mark=NOW + left), best=Best(payee=OTHER, node=NodeId(1), key=1))
    said = decide(one_job(held, nodes=(node(1), node(2, ask=1))), replace(FREE, latency=3), NOW)
    assert bool(actions_of(said)) == acts
    if not acts:
        assert "too soon to improve" in reason_for(said, NAME)


def test_decide__key_that_only_equals_the_best__stands() -> None:
    nodes = (node(1), node(2, ask=1))
    (fresh,) = decide(one_job(open_unit(), nodes=nodes), FREE, NOW)
    assert isinstance(fresh, Propose)
    held = replace(open_unit(mark=NOW + 8), best=Best(payee=OTHER, node=NodeId(1), key=fresh.key))
    assert reason_for(decide(one_job(held, nodes=nodes), FREE, NOW), NAME).startswith("node 1 is the best proposal")


def test_decide__best_node_became_cheaper__is_not_proposed_again() -> None:
    held = replace(open_unit(mark=NOW + 8), best=Best(payee=OTHER, node=NodeId(2), key=1))
    said = decide(one_job(held, nodes=(node(1), node(2, ask=1))), FREE, NOW)
    assert reason_for(said, NAME).startswith("node 2 is the best proposal")


@pytest.mark.parametrize(("mark", "why"), [(NOW, "its node may ack until"), (NOW - 59, "its node may ack until")])
def test_decide__window_over__leaves_the_unit_to_its_node(mark: int, why: str) -> None:
    held = replace(open_unit(mark=mark), best=Best(payee=OTHER, node=NodeId(1), key=1))
    said = decide(one_job(held, nodes=(node(1), node(2, ask=1))), replace(FREE, latency=0), NOW)
    assert reason_for(said, NAME) == f"{why} {mark + 60}"


def test_decide__proposal_lapsed_once__proposes_another_node() -> None:
    lapsed = replace(open_unit(mark=NOW - 60), best=Best(payee=OTHER, node=NodeId(2), key=1))
    (action,) = decide(one_job(lapsed, nodes=(node(1), node(2, ask=1))), FREE, NOW)
    assert isinstance(action, Propose)
    assert action.node == 1


def test_decide__two_lapses_of_a_unit__leaves_it_to_claims() -> None:
    said = decide(one_job(open_unit(lapses=2, node=NodeId(1))), FREE, NOW)
    assert reason_for(said, NAME) == "two nodes let it lapse: claims only"


def lapsed_unit(index: int, number: int, *, own: bool = True) -> UnitRow:
    """Return a unit whose proposal, of node `number`, which names the keeper and is its `own` or not, just lapsed."""
    row = replace(open_unit(mark=NOW - 60), best=Best(payee=KEEPER, node=NodeId(number), key=1), own=own)
    return replace(row, index=index)


def test_decide__two_of_its_proposals_lapsed__the_whole_job_rests_for_a_minute() -> None:
    rows = (lapsed_unit(0, 1), lapsed_unit(1, 2))
    nodes = (node(1), node(2), node(3, ask=9 * 10**6))
    snapshot = one_job(*rows, nodes=nodes, header=Header(touched=2, opened=NOW - 500), units=3)
    said = decide(snapshot, FREE, NOW)
    assert not actions_of(said)
    for index in range(3):
        why = f"its job lost 2 more of our proposals than it acked: none until {NOW + 60}"
        assert reason_for(said, unit_id(job().id, index)) == why
    assert not actions_of(decide(snapshot, FREE, NOW + 59))
    (probe,) = actions_of(decide(snapshot, FREE, NOW + 60))
    assert isinstance(probe, Propose) and probe.node == 3, "of a job that lost some, a node that owes none comes first"


def test_decide__proposals_of_others_that_lapsed__are_not_this_keepers_to_judge_by() -> None:
    rows = (lapsed_unit(0, 1, own=False), lapsed_unit(1, 2, own=False))
    assert actions_of(decide(one_job(*rows, header=Header(touched=2, opened=NOW - 500), units=2), FREE, NOW))


@pytest.mark.parametrize(("score", "rest"), [(-1, 60), (-2, 240), (-3, 960), (-7, 86_400), (-300, 86_400)])
def test_decide__node_that_let_more_lapse_than_it_acked__is_left_out_by_name_and_then_tried_again(
    score: int, rest: int
) -> None:
    def said(lost_at: int) -> list[Action | Skip]:
        records = {NodeId(1): Record(score, lost_at)}
        return decide(replace(one_job(open_unit(), nodes=(node(1),)), records=records), FREE, NOW)

    resting = said(NOW - rest + 1)
    why = f"node 1 let {-score} more of our proposals lapse than it acked: none until {NOW + 1}"
    assert reason_for(resting, node_id(NodeId(1))) == why
    assert reason_for(resting, NAME) == f"no node can be proposed now; {why}"
    assert [one.id for one in resting if isinstance(one, Rest)] == ["node 1"], "its job does not rest"
    (action,) = said(NOW - rest)
    assert isinstance(action, Propose) and action.node == 1


def test_decide__node_that_has_not_answered__is_proposed_for_nothing_else() -> None:
    """The profit test: many jobs of one submitter, and one node in league with it that never acks."""
    careful = replace(FREE, max_loss=0, coin_price=1)
    fresh = tuple(job(open_unit(), number=number) for number in range(1, 30))
    case = case_of((node(1, slots=63),), fresh, gas_price=1)
    assert len(actions_of(decide(case.snapshot, careful, NOW))) == 1
    known = replace(case.snapshot, records={NodeId(1): Record(score=5)})
    said = decide(known, careful, NOW)
    assert len(actions_of(said)) == 6, "one more for each ack"
    assert "node 1 has 6 proposals of ours to answer first" in str(said[-1])


def test_decide__time_for_a_proposal_but_not_for_its_ack__is_left() -> None:
    """The profit test: a deadline at which the proposal is taken, and no ack of it can be."""
    lasts = formulas.lease_seconds(job().terms) + formulas.grace(job().terms)
    answered = NOW + job().terms.match_window + formulas.policy_of(job().terms).ack_time
    assert actions_of(decide(one_job(open_unit(), deadline=answered + lasts), FREE, NOW))
    said = decide(one_job(open_unit(), deadline=answered + lasts - 1), FREE, NOW)
    assert reason_for(said, NAME).startswith("no time is left for an ack before its deadline")


def test_decide__array__proposes_no_more_leases_than_the_fleet_has_slots() -> None:
    snapshot = one_job(header=Header(touched=0, opened=NOW - 500), units=1 << 20, nodes=(node(1), node(2, slots=1)))
    said = actions_of(decide(snapshot, FREE, NOW))
    assert [one.index for one in said if isinstance(one, Propose)] == [0, 1, 2]
    assert sorted(one.node for one in said if isinstance(one, Propose)) == [1, 1, 2]
    assert [one.follows for one in said if isinstance(one, Propose)] == [False, True, True]


def test_decide__array_of_which_nobody_has_taken_a_lease__costs_one_proposal_at_a_time() -> None:
    """The profit test: a stranger posts an array whose tip looks good, and his own node never acks."""
    careful, nodes = replace(FREE, max_loss=0, coin_price=1), (node(1, slots=9),)

    def proposed(snapshot: Snapshot, config: Config) -> list[int]:
        said = decide(replace(snapshot, gas_price=1), config, NOW)
        return [one.index for one in actions_of(said) if isinstance(one, Propose)]

    fresh = one_job(header=Header(touched=0, opened=NOW - 500), units=1 << 20, nodes=nodes)
    assert proposed(fresh, careful) == [0]
    assert len(proposed(fresh, replace(careful, max_loss=1))) == careful.burst, "who may lose a burst takes the risk"
    waits = open_unit(mark=NOW + 5)
    lured = one_job(
        replace(waits, best=Best(payee=OTHER, node=NodeId(1), key=1 << 90)),
        header=Header(touched=1, opened=NOW - 500),
        units=1 << 20,
        nodes=nodes,
    )
    assert len(proposed(lured, careful)) <= 1
    taken = one_job(header=Header(touched=1, opened=NOW - 500), units=1 << 20, nodes=nodes)
    assert proposed(taken, careful) == [1], "that somebody took a lease earned this keeper nothing"
    for score in range(1, 10):
        (row,), known = taken.jobs, {NodeId(1): Record(score)}
        trusted = replace(taken, jobs=(replace(row, record=Record(score)),), records=known)
        assert len(proposed(trusted, careful)) == min(careful.burst, 1 + score), "each ack brings one more"
    (row,) = lured.jobs
    own = replace(row.units[0], best=replace(row.units[0].best, payee=KEEPER), own=True)
    waiting = case_of((node(1), node(2)), (replace(row, units=(own,)),)).snapshot
    assert proposed(waiting, careful) == []
    said = decide(replace(waiting, gas_price=1), careful, NOW)
    assert reason_for(said, unit_id(job().id, 1)) == "1 proposals of ours for its job are to be acked first"


def test_decide__slot_taken_by_a_live_proposal__proposes_the_other_node() -> None:
    waiting = replace(open_unit(mark=NOW - 5), best=Best(payee=OTHER, node=NodeId(1), key=200 << 40))
    nodes = (node(1, slots=1, ask=1), node(2, slots=1))
    rows = (job(waiting, number=1), job(open_unit(), number=2))
    said = actions_of(decide(case_of(nodes, rows).snapshot, FREE, NOW))
    assert [(one.job, one.node) for one in said if isinstance(one, Propose)] == [(rows[1].id, NodeId(2))]


def test_decide__stake_for_one_lease_only__is_not_promised_twice() -> None:
    lease_bond = formulas.bond(job().terms)
    nodes = (node(1, slots=5, stake=lease_bond + 1),)
    rows = (job(open_unit(), number=1), job(open_unit(), number=2))
    said = decide(case_of(nodes, rows).snapshot, FREE, NOW)
    assert len(actions_of(said)) == 1


def test_decide__unit_past_its_lease__reclaims_with_the_growing_reward() -> None:
    running = open_unit(state=State.RUNNING, node=NodeId(1), mark=NOW - 100, started=NOW - 1_000)
    (action,) = decide(one_job(running, keeper_fee=80), FREE, NOW)
    assert isinstance(action, Reclaim)
    lease_bond = formulas.bond(job(keeper_fee=80).terms)
    assert action.reward == min(lease_bond // 10 // 4, 10 * 1_500 // 1_000)


def test_decide__silent_node__reclaims_before_the_lease_ends() -> None:
    running = open_unit(state=State.RUNNING, node=NodeId(1), mark=NOW + 9_000, started=NOW - 2_000)
    said = actions_of(decide(one_job(running, nodes=(node(1, beat=NOW - 900, busy=1),)), FREE, NOW))
    assert [type(one) for one in said] == [CheckLiveness, Reclaim]
    said = actions_of(decide(one_job(running, nodes=(node(1, beat=NOW - 899, busy=1),)), FREE, NOW))
    assert said == []


def test_decide__130_silent_nodes__two_batches() -> None:
    nodes = tuple(node(i, beat=NOW - 900, busy=1) for i in range(1, 131))
    said = decide(case_of(nodes, ()).snapshot, FREE, NOW)
    assert [len(one.nodes) for one in said if isinstance(one, CheckLiveness)] == [128, 2]


def test_decide__silent_node_that_runs_nothing__is_left_alone() -> None:
    said = decide(case_of((node(1, beat=NOW - 900),), ()).snapshot, FREE, NOW)
    assert actions_of(said) == [] and reason_for(said, node_id(NodeId(1))) == "silent, and recording it pays nothing"


def test_decide__70_submitted_units__settle_in_batches_best_paid_first() -> None:
    rows = tuple(job(open_unit(state=State.SUBMITTED, node=NodeId(1), mark=NOW - i), number=i + 1) for i in range(70))
    said = [one for one in decide(case_of((node(1),), rows).snapshot, FREE, NOW) if isinstance(one, Settle)]
    assert [len(one.items) for one in said] == [64, 6]
    assert said[0].items[0] == (rows[69].id, 0)
    assert said[0].reward > said[1].reward


@pytest.mark.parametrize(
    ("changes", "wait", "why"),
    [
        ({"challenge_window": 60}, 60, "its judge may dispute it"),
        ({"challenge_window": 60, "flags": TermsFlag.PROVEN}, 86_400 + 60, "its judge may confirm it"),
        ({"flags": TermsFlag.NEWCOMERS}, fleets.POLICY.fresh_delay, "the result of a node on probation"),
    ],
)
def test_decide__judged_result__is_settled_once_its_judge_has_no_time_left(
    changes: dict[str, Any], wait: int, why: str
) -> None:
    fresh = UnitFlag.FRESH if "challenge_window" not in changes else UnitFlag(0)
    row = job(open_unit(state=State.SUBMITTED, node=NodeId(1), mark=NOW, flags=fresh), judge=OTHER, **changes)
    snapshot = case_of((node(1),), (row,)).snapshot
    assert reason_for(decide(snapshot, FREE, NOW + wait - 1), NAME).startswith(
        f"{why}, to be settled from {NOW + wait}"
    )
    (said,) = actions_of(decide(snapshot, FREE, NOW + wait))
    assert isinstance(said, Settle) and said.items == ((row.id, 0),)


def test_decide__result_in_dispute__is_settled_a_month_after_its_window() -> None:
    row = job(open_unit(state=State.DISPUTED, node=NodeId(1), mark=NOW), judge=OTHER, challenge_window=60)
    snapshot, end = case_of((node(1),), (row,)).snapshot, NOW + 60 + 30 * 86_400
    assert reason_for(decide(snapshot, FREE, end - 1), NAME).startswith("its judge holds it")
    assert actions_of(decide(snapshot, FREE, end))


def test_decide__unit_that_nobody_has_proven__pays_a_part_of_its_slash() -> None:
    proven = {"judge": OTHER, "challenge_window": 60, "flags": TermsFlag.PROVEN}
    row = job(open_unit(state=State.SUBMITTED, node=NodeId(1), mark=NOW), **proven)
    config = replace(FREE, max_loss=0, coin_price=1_800_000_000_000_000)
    slash = formulas.slash_of(row.terms)
    assert slash // 4 < row.terms.keeper_fee // 2, "the slash is what bounds it once the ramp has grown"
    late = NOW + 86_400 + 60 + 600
    (said,) = actions_of(decide(case_of((node(1),), (row,)).snapshot, config, late))
    assert (said.reward, said.gas) == (min(slash // 4, 500), RECLAIM_GAS)


@pytest.mark.parametrize(("resume", "outcome", "paid"), [(1, Outcome.OK, 1), (7, Outcome.OK, 7), (3, Outcome.EXIT, 0)])
def test_decide__result_made_of_checkpoints__is_settled_once_it_is_worth_their_gas_too(
    resume: int, outcome: Outcome, paid: int
) -> None:
    made = open_unit(state=State.SUBMITTED, node=NodeId(1), mark=NOW, resume=resume, outcome=outcome)
    row = job(made, keeper_fee=8_000, billing=Billing.METERED)
    config = replace(FREE, max_loss=0, coin_price=10**15)
    price = 1_000 * 1_000 // (SETTLE_GAS + paid * PAID_CHECKPOINT_GAS)
    worth = case_of((node(1),), (row,), gas_price=price).snapshot
    (said,) = actions_of(decide(worth, config, NOW))
    assert said.gas == SETTLE_GAS + paid * PAID_CHECKPOINT_GAS
    dear = case_of((node(1),), (row,), gas_price=price + 1).snapshot
    assert "not worth its gas" in reason_for(decide(dear, config, NOW), NAME)


def test_decide__results_made_of_many_checkpoints__fill_a_batch_by_their_gas() -> None:
    made = open_unit(state=State.SUBMITTED, node=NodeId(1), mark=NOW, resume=9, outcome=Outcome.OK)
    rows = tuple(job(made, number=i + 1, billing=Billing.METERED) for i in range(64))
    said = [one for one in decide(case_of((node(1),), rows).snapshot, FREE, NOW) if isinstance(one, Settle)]
    assert all(one.gas <= settling_gas(64) for one in said) and len(said) > 1
    assert sorted(item for one in said for item in one.items) == sorted((row.id, 0) for row in rows)


def test_decide__unit_that_was_topped_up__expires_by_the_time_that_it_needs() -> None:
    """Its seconds and the grace of them end before the deadline that much sooner; the reward is the same."""
    more, floor = open_unit(seconds=5_000), formulas.policy_of(job().terms).grace_floor
    terms = {"billing": Billing.METERED, "max_seconds": 60, "deadline": NOW + 5_060 + max(floor, 506)}
    assert not any(isinstance(one, Expire) for one in decide(one_job(more, **terms), FREE, NOW))
    (said,) = actions_of(decide(one_job(more, **terms), FREE, NOW + 1))
    assert isinstance(said, Expire) and said.reward == formulas.expire_reward(job().terms, more.unit, 0)
    assert not any(isinstance(one, Expire) for one in decide(one_job(open_unit(), **terms), FREE, NOW + 1))


def test_decide__settlement_below_its_gas__waits_until_the_ramp_pays() -> None:
    row = job(open_unit(state=State.SUBMITTED, node=NodeId(1), mark=NOW), keeper_fee=800)
    snapshot = case_of((node(1),), (row,), gas_price=1).snapshot
    config = replace(FREE, max_loss=0, coin_price=1_800_000_000_000_000)  # 104,000 gas cost 188
    assert reason_for(decide(snapshot, config, NOW), NAME) == "not worth its gas: earns 100, costs 188"
    later = NOW + 176  # ramp: 100 x (1000 + 5 x 176) / 1000 = 188
    assert reason_for(decide(snapshot, config, later - 1), NAME) == "not worth its gas: earns 187, costs 188"
    assert actions_of(decide(snapshot, config, later))


def test_decide__array_past_its_deadline__expires_the_rest_and_no_touched_unit() -> None:
    """The end of one pays nobody."""
    rows = (
        open_unit(attempts=1),
        replace(open_unit(), index=2),
        replace(open_unit(state=State.RUNNING, mark=NOW + 5, node=NodeId(1)), index=1),
    )
    snapshot = one_job(*rows, header=Header(touched=3, opened=NOW - 500), units=9, deadline=NOW + 359)
    said = [one for one in decide(snapshot, FREE, NOW) if isinstance(one, Expire)]
    assert [one.index for one in said] == [ALL]
    assert {one.reward for one in said} == {formulas.expire_reward(job().terms, None, 0)}


def test_decide__notice_over__closes() -> None:
    closing = open_unit(state=State.CLOSING, node=NodeId(1), mark=NOW, started=NOW - 50)
    (action,) = decide(one_job(closing), FREE, NOW)
    assert isinstance(action, Close)
    assert reason_for(decide(one_job(closing), FREE, NOW - 1), NAME) == f"cancelled with notice until {NOW}"


def test_decide__two_keepers_with_jitter__share_the_work() -> None:
    rows = tuple(job(open_unit(started=NOW - 6), number=i) for i in range(1, 41))
    snapshot = case_of(tuple(node(i) for i in range(1, 31)), rows).snapshot
    one = {a.id for a in actions_of(decide(snapshot, replace(FREE, jitter=12, keeper=KEEPER), NOW))}
    two = {a.id for a in actions_of(decide(snapshot, replace(FREE, jitter=12, keeper=OTHER), NOW))}
    assert one - two
    assert two - one
    late = decide(snapshot, replace(FREE, jitter=12), NOW + 12)  # alone, a keeper does everything in the end
    assert len(actions_of(late)) == 40


# ---- parents ----

ENDED = ParentWord(WELL, 0)
STILL = ParentWord(RUNS, 0)
TWO = (parent(0), parent(1))
BLOCKED = UnitRow(0, Unit(state=State.BLOCKED, started=NOW - 100))
WAITING = Header(waiting=True, opened=NOW - 100, leases=9)


def family(row: JobRow, *seen: ParentWord, gas_price: int = 0) -> Snapshot:
    """Return a market with one job whose parents, in their order, are seen so."""
    words = {one.job: word for one, word in zip(row.parents, seen, strict=True)}
    return case_of((node(1),), (row,), parents=words, gas_price=gas_price).snapshot


@pytest.mark.parametrize(
    ("row", "name", "index"),
    [
        (job(BLOCKED, parents=TWO), NAME, 0),
        (job(header=WAITING, units=9, parents=TWO), unit_id(job().id, ALL), ALL),
    ],
    ids=["unit", "array"],
)
def test_decide__job_that_waits__is_unlocked_once_its_parents_have_ended(row: JobRow, name: str, index: int) -> None:
    first, second = (f"0x{one.job.hex()}" for one in TWO)
    for seen, why in (
        ((STILL, STILL), f"waits for {first} and 1 more"),
        ((ENDED, STILL), f"waits for {second}"),
        ((STILL, ENDED), f"waits for {first}"),
    ):
        assert decide(family(row, *seen), FREE, NOW) == [Skip(name, why)], "nothing is proposed for it either"
    reward, gas = row.terms.keeper_fee, unlocking_gas(2)
    unlock = Unlock(row.id, index, TWO, True, reward=reward, gas=gas)
    assert decide(family(row, ENDED, ENDED), FREE, NOW) == [unlock]
    ended_otherwise = decide(family(row, STILL, ParentWord(FAILED, 0)), FREE, NOW)
    assert ended_otherwise == [replace(unlock, opens=False)], "at once, whatever the other does"
    assert explain_job(family(row, ENDED, ENDED), FREE, NOW, row.id)["keeper"] == [
        {"id": name, "does": "unlock", "why": f"its parents ended as asked, earns {reward}"}
    ]


@pytest.mark.parametrize(
    ("condition", "word", "opens"),
    [
        (Condition.FAILURE, FAILED, True),
        (Condition.FAILURE, WELL, False),
        (Condition.ALWAYS, FAILED, True),
        (Condition.SUCCESS, FAILED, False),
    ],
)
def test_decide__parent_that_ended__opens_or_refunds_by_its_condition(
    condition: Condition, word: int, opens: bool
) -> None:
    (said,) = decide(family(job(BLOCKED, parents=(parent(0, condition),)), ParentWord(word, 0)), FREE, NOW)
    assert isinstance(said, Unlock) and said.opens is opens


@pytest.mark.parametrize("row", [job(BLOCKED, parents=TWO), job(header=WAITING, units=9, parents=TWO)])
def test_decide__job_that_waits_without_time__is_expired_and_not_unlocked(row: JobRow) -> None:
    row = replace(row, terms=replace(row.terms, deadline=NOW + 400))
    expirable = formulas.expirable_from(row.terms)
    snapshot, config = family(row, ENDED, ENDED), replace(FREE, latency=3)
    assert isinstance(decide(snapshot, config, expirable - 4)[0], Unlock)
    for late in (expirable - 3, expirable - 1):
        (skip,) = decide(snapshot, config, late)
        assert isinstance(skip, Skip) and skip.reason == f"no time is left; it can be expired from {expirable}"
    (said,) = decide(snapshot, config, expirable)
    assert isinstance(said, Expire) and said.index == (ALL if row.header else 0)


def test_decide__parents_that_were_not_read__are_no_reason_to_unlock() -> None:
    row = job(BLOCKED, parents=TWO)
    snapshot = replace(family(row, ENDED, ENDED), parents={TWO[0].job: ENDED})
    assert reason_for(decide(snapshot, FREE, NOW), NAME) == "waits for its parents, which are read in a later cycle"


def test_decide__unlock_below_its_gas__is_left() -> None:
    most: tuple[Parent, ...] = tuple(parent(number) for number in range(MAX_PARENTS))
    cost = unlocking_gas(MAX_PARENTS)
    config = replace(FREE, max_loss=0, coin_price=10**18)
    for fee, acts in ((cost, True), (cost - 1, False)):
        row = job(BLOCKED, parents=most, keeper_fee=fee)
        said = decide(family(row, *[ENDED] * MAX_PARENTS, gas_price=1), config, NOW)
        assert bool(actions_of(said)) == acts
    assert reason_for(said, NAME) == f"not worth its gas: earns {cost - 1}, costs {cost}"


def test_decide__unlock__is_left_to_others_for_a_while_since_the_last_parent_was_seen_to_end() -> None:
    row, config = job(BLOCKED, parents=TWO), replace(FREE, jitter=60)
    turn = NOW + config.delay_of(NAME)
    assert turn > NOW
    snapshot = family(row, ParentWord(WELL, NOW), ParentWord(WELL, NOW - 90))
    assert reason_for(decide(snapshot, config, turn - 1), NAME) == f"left to other keepers until {turn}"
    assert actions_of(decide(snapshot, config, turn))


def test_explain__open_job_without_a_node__says_what_the_fleet_lacks() -> None:
    snapshot = one_job(open_unit(), nodes=(node(1, cores=0), node(2, ask=11 * 10**6), node(3, beat=NOW - 900)))
    told = explain_job(snapshot, FREE, NOW, job().id)
    assert told["nodes"] == {"cores": 1, "price": 1, "not_live": 1}
    assert told["nodes_that_fit"] == 0
    assert told["keeper"] == [{"id": NAME, "does": "nothing", "why": "no node can be proposed now"}]


def test_explain__only_node_had_the_unit_last__says_that_it_is_excluded() -> None:
    again = open_unit(node=NodeId(1), attempts=1)
    told = explain_job(one_job(again, nodes=(node(1),)), FREE, NOW, job().id)
    why = "no node can be proposed now; node 1 is excluded, since it had the unit last"
    assert told["keeper"] == [{"id": NAME, "does": "nothing", "why": why}]


def test_explain__unknown_job__raises() -> None:
    with pytest.raises(KeyError):
        explain_job(one_job(open_unit()), FREE, NOW, job(number=9).id)
