"""What a keeper may lose to nodes that do not ack: little, and honest nodes are proposed all the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.protocol.types import Node, State, Terms
from keeper.trust import FIRST_REST, LONGEST_REST, NODE_CREDIT, Record
from tests.keeper.league import Habit, League
from tests.keeper.markets import NOW, RATE, node, terms

DAY = 86_400


def array(units: int, salt: int = 1) -> Terms:
    return terms(salt=salt, units=units, deadline=NOW + 40 * DAY)


def league(habits: list[Habit], jobs: list[Terms], slots: int = 8) -> League:
    """Return a market in which earlier nodes ask less, so that keepers prefer them."""
    nodes: list[tuple[Node, Habit]] = [
        (node(number, ask=number * RATE, slots=slots), habit) for number, habit in enumerate(habits, 1)
    ]
    return League(nodes, jobs)


def rests_within(seconds: int) -> int:
    """Return how many rests, one after another, are over within so many seconds."""
    count, left = 0, seconds
    while (left := left - min(LONGEST_REST, FIRST_REST * 4**count)) >= 0:
        count += 1
    return count


def never(_: int) -> bool:
    return False


def always(_: int) -> bool:
    return True


def first_only(count: int) -> bool:
    return count == 0


def every_other(count: int) -> bool:
    return count % 2 == 0


patterns = st.lists(st.booleans(), min_size=1, max_size=5).map(lambda seq: lambda count: seq[count % len(seq)])
sizes = st.lists(st.sampled_from([1, 1, 3, 9]), min_size=1, max_size=3)


@settings(max_examples=8)
@given(st.lists(patterns, min_size=1, max_size=4), sizes, st.sampled_from([600, 4_000, 30_000]))
def test_decide__nodes_that_do_as_they_like__cost_a_bounded_number_of_proposals(
    habits: list[Habit], units: list[int], seconds: int
) -> None:
    market = league(habits, [array(count, salt) for salt, count in enumerate(units, 1)])
    market.run(seconds)
    rests = rests_within(seconds)
    for job in market.terms:
        assert market.lost[job] <= market.acked[job] + 2 + rests
    for number in market.nodes:
        assert market.lost[number] <= market.acked[number] + 1 + rests


@settings(max_examples=8)
@given(st.lists(patterns, max_size=3), sizes)
def test_decide__honest_node_among_any_others__is_proposed_for_everything_in_the_end(
    habits: list[Habit], units: list[int]
) -> None:
    market = league([*habits, always], [array(count, salt) for salt, count in enumerate(units, 1)])
    market.run(DAY // 4)
    for job, posted in market.terms.items():
        for index in range(posted.leases):
            unit, _ = market.units[job, index]
            assert unit.state == State.SETTLED or unit.lapses + (unit.window_end != 0) >= 2, "or it takes claims only"


@settings(max_examples=5)
@given(st.lists(patterns, min_size=1, max_size=3), sizes, st.integers(60, 2_000))
def test_index__restart_at_any_moment__knows_what_it_knew(habits: list[Habit], units: list[int], seconds: int) -> None:
    market = league(habits, [array(count, salt) for salt, count in enumerate(units, 1)])
    market.run(seconds)
    fresh = market.reread()
    assert fresh.records == market.index.records
    assert {row.id: row.record for row in fresh.rows()} == {row.id: row.record for row in market.index.rows()}
    assert set(fresh._sent.values()) == set(market.index._sent.values())


# ---- who gains what at the keeper's cost ----


def test_profit__submitter_and_silent_node_in_league__seven_proposals_in_a_day() -> None:
    market = league([never], [array(1 << 20)], slots=63)
    market.run(40)
    assert market.proposals == 1
    market.run(DAY)
    assert market.proposals <= 1 + rests_within(DAY)


def test_profit__node_that_acks_one_and_lets_the_others_lapse__three_more_within_the_hour() -> None:
    market = league([first_only], [array(1 << 20)], slots=63)
    market.run(1_000)
    assert market.acked.total() == 2 and market.proposals - 1 <= 2 + rests_within(1_000)


def test_profit__two_silent_nodes_that_take_turns__are_one_job_to_it() -> None:
    market = league([never, never], [array(1 << 20)], slots=63)
    market.run(50)
    assert market.proposals == 1
    market.run(100)
    assert market.proposals == 2
    market.run(DAY)
    assert market.proposals <= 2 + rests_within(DAY)


def test_profit__many_jobs_and_one_silent_node__cost_no_more_than_one_job() -> None:
    market = league([never], [array(1, salt) for salt in range(1, 40)], slots=63)
    market.run(1_000)
    assert market.proposals <= 1 + rests_within(1_000)


def test_profit__node_that_acks_every_other__is_never_more_than_two_ahead_of_its_tips() -> None:
    market = league([every_other], [array(20)], slots=63)
    market.run(DAY // 8)
    (job,) = market.terms
    assert market.lost[job] <= market.acked[job] + 2


def test_profit__node_that_turns_bad_after_much_good_work__costs_no_more_than_its_credit() -> None:
    market = league([lambda count: count < 25], [array(1, salt) for salt in range(1, 60)], slots=63)
    market.run(1_000)
    assert market.acked[1] == 25 and market.lost[1] <= NODE_CREDIT + 1 + rests_within(1_000)


def test_decide__honest_node_that_restarts_once__is_trusted_again_after_a_minute() -> None:
    """The way back: its rest, and one ack."""
    market = league([lambda count: count != 0], [array(20)], slots=8)
    market.run(400)
    (job,) = market.terms
    assert market.lost[job] == 1 and market.acked[job] == 19


def test_decide__silent_nodes_that_ask_less__hold_an_honest_array_up_for_minutes_only() -> None:
    market = league([never, never, always], [array(40)], slots=8)
    market.run(2_000)
    (job,) = market.terms
    assert market.acked[job] >= 38 and market.lost[job] <= 2 * (1 + rests_within(2_000))


def test_decide__honest_array__is_matched_as_fast_as_it_earns_trust() -> None:
    market = league([always] * 20, [array(100)])
    market.run(150)
    assert market.acked.total() == 2 * 100


@pytest.mark.parametrize(("lost", "until"), [(1, 0), (2, 160), (3, 340), (4, 1_060)])
def test_record__losses_beyond_the_acks__rest_four_times_as_long_each(lost: int, until: int) -> None:
    record = Record()
    for _ in range(lost):
        record = record.lost(100)
    assert record.rests_until(2) == until
    assert record.acked().rests_until(2) == (0 if lost < 3 else until - (FIRST_REST << 2 * (lost - 2)) * 3 // 4)
    assert record.room == 1


def test_record__many_acks__count_for_a_node_up_to_its_credit() -> None:
    record = Record()
    for _ in range(100):
        record = record.acked().capped()
    assert (record.score, record.room) == (NODE_CREDIT, NODE_CREDIT + 1)
