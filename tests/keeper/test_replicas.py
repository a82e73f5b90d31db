"""Keepers and jobs of replicas: counted as their posts say, ended like an array's units, and proposed for by nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hearth.protocol import words
from hearth.protocol.types import SENTINEL, Header, State, Terms, TermsFlag, Unit
from keeper.actions import Propose, Skip
from keeper.decide import decide
from keeper.snapshot import UnitRow
from tests.keeper.chain import Follower, LoggingEvm
from tests.keeper.markets import NOW, RATE, case_of, job, node
from tests.keeper.test_decide import FREE
from tests.kit.anvil import need_anvil
from tests.kit.live import LiveMarket
from tests.kit.world import World

PROVEN = TermsFlag.NEWCOMERS | TermsFlag.PROVEN


def replicated(world: World, **overrides: Any) -> Terms:
    fields = {"flags": PROVEN, "replicas": 3, "quorum": 2, **overrides}
    return world.post(world.terms(**world.judged(**fields)))


@pytest.fixture
def market(tmp_path: Path) -> Iterator[LiveMarket]:
    need_anvil()
    live = LiveMarket(tmp_path)
    yield live
    live.close()


def test_index__replicated_job__is_what_its_logs_say() -> None:
    world = World(LoggingEvm())
    terms = replicated(world)
    follower = Follower(world, world.keeper)
    assert follower.follow() == [], "an honest post is held for a lie of the provider"
    (row,) = follower.index.rows()
    assert row.id == world.id_of(terms) and row.header is not None and row.header.leases == 3


@pytest.mark.parametrize("replicas", [3, 5, 7])
def test_decide__replicas__are_proposed_for_nobody_and_say_why(replicas: int) -> None:
    fields: dict[str, Any] = {"flags": PROVEN, "replicas": replicas, "quorum": 2, "judge": "0x" + "cc" * 20}
    nodes = tuple(node(number, ask=number * RATE, slots=8) for number in (1, 2, 3, 4))
    row = job(number=7, header=Header(touched=1, opened=NOW - 100, leases=replicas), **fields)
    opened = UnitRow(0, Unit(state=State.OPEN, started=NOW - 50, rate=RATE))
    said = decide(case_of(nodes, (replace(row, units=(opened,)),)).snapshot, FREE, NOW)
    assert not [one for one in said if isinstance(one, Propose)]
    assert [one.reason[:9] for one in said if isinstance(one, Skip)] == ["replicas:"] * 2, (
        "of a touched unit, and the next"
    )


@pytest.mark.net
def test_cycle__replica_whose_lease_is_over__is_reclaimed(market: LiveMarket) -> None:
    world = market.world
    first = world.register()
    terms = replicated(world)
    world.claim(terms, first, 0)
    keeper = market.keeper()
    keeper.start()
    keeper.cycle()
    assert world.state(terms, 0) == State.RUNNING
    market.warp(1_400)
    keeper.cycle()
    assert world.state(terms, 0) == State.OPEN, "its slot and bond stay bound"


@pytest.mark.net
def test_cycle__replicas_past_their_deadline__are_expired_for_a_keeper_fee(market: LiveMarket) -> None:
    world = market.world
    terms = replicated(world, deadline=world.evm.now + 2_000, keeper_fee=10**16)
    keeper = market.keeper()
    keeper.start()
    keeper.cycle()
    assert not world.header(terms).closed
    market.warp(2_000)
    keeper.cycle()
    assert world.header(terms).closed, "the submitter's funding stays locked"


@pytest.mark.net
def test_rebuild__replicated_post_that_is_cancelled__makes_no_keeper_read_all_logs_again(market: LiveMarket) -> None:
    """What it would cost the stranger: one post, refunded whole in the next block."""
    world = market.world
    keeper = market.keeper()
    keeper.start()
    keeper.cycle()
    world.cancel(replicated(world), SENTINEL)
    for _ in range(3):
        market.warp(3_601)
        keeper.cycle()
    assert keeper.metrics.rebuilds.labels("mismatch")._value.get() == 0
    assert not keeper.reader.index.aside


@pytest.mark.parametrize(("chunk", "replicas", "leases"), [(1, 1, 6), (2, 1, 3), (1, 3, 18), (0, 3, 0), (1, 0, 0)])
def test_leases__limits_of_any_post__are_units_by_chunks_and_replicas(chunk: int, replicas: int, leases: int) -> None:
    from keeper.index import _leases_of

    lanes = {"units": 6, "chunk": chunk, "replicas": replicas}
    limits = sum(value << words.shift_of(words.LIMITS, lane) for lane, value in lanes.items())
    assert _leases_of(bytes(4 * 32) + limits.to_bytes(32, "big")) == leases
