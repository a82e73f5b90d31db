"""Attack 31: two branches valid in one second. At each second around a deadline exactly one of them is open.

A branch is tried in isolation at every moment; the worker's side and the keeper's side never overlap, and never leave a
second between them in which neither may act.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.protocol import formulas
from tests.attacks.stages import KINDS, Scene, scene
from tests.kit import world as w
from tests.kit.evm import START, Reverted

Branch = Callable[[Scene], Any]
SUBMIT: Branch = lambda s: s.world.submit(s.terms)  # noqa: E731
DECLINE: Branch = lambda s: s.world.decline(s.terms)  # noqa: E731
GIVE_UP: Branch = lambda s: s.world.give_up(s.terms)  # noqa: E731
RECLAIM: Branch = lambda s: s.world.reclaim(s.terms)  # noqa: E731
CLOSE: Branch = lambda s: s.world.close(s.terms)  # noqa: E731
CANCEL: Branch = lambda s: s.world.cancel(s.terms)  # noqa: E731
PROPOSE: Branch = lambda s: s.world.propose(s.terms, 2)  # noqa: E731
ACK: Branch = lambda s: s.world.ack(s.terms)  # noqa: E731
CLAIM: Branch = lambda s: s.world.claim(s.terms, s.node)  # noqa: E731
SETTLE: Branch = lambda s: s.world.settle(s.terms)  # noqa: E731
DISPUTE: Branch = lambda s: s.world.dispute(s.terms)  # noqa: E731
EXPIRE: Branch = lambda s: s.world.expire(s.terms)  # noqa: E731
NEARBY = (-2, -1, 0, 1, 2)


def enabled(found: Scene, branch: Branch) -> bool:
    """Say whether a branch may be taken now; whatever it does is undone."""
    with found.world.evm.isolated():
        try:
            branch(found)
        except Reverted:
            return False
        return True


def _beat(found: Scene) -> None:
    """Keep the nodes alive up to now, so that a lease's own end is what counts."""
    world = found.world
    for node in range(1, (world.nodes.call.totals() & 0xFFFFFFFF)):
        world.nodes.send.beat(node, sender=world.operator)


def _lease_end(found: Scene) -> int:
    return found.world.unit(found.terms).mark


def _declines_end(found: Scene) -> int:
    return formulas.declinable_until(found.terms, found.world.unit(found.terms))


def _settleable(found: Scene) -> int:
    return formulas.settleable_from(found.terms, found.world.unit(found.terms))


EDGES: dict[str, tuple[str, Callable[[Scene], int], tuple[Branch, ...], tuple[Branch, ...]]] = {
    "lease end": ("running", _lease_end, (SUBMIT, GIVE_UP, CANCEL), (RECLAIM,)),
    "declines' end": ("running", _declines_end, (DECLINE,), ()),
    "notice end": ("closing", _lease_end, (SUBMIT, DECLINE), (CLOSE,)),
    "window end": ("proposed", _lease_end, (PROPOSE,), (ACK,)),
    "ack end": ("won", lambda s: _lease_end(s) + w.POLICY.ack_time, (ACK,), (CANCEL,)),
    "challenges' end": ("judged", _settleable, (DISPUTE,), (SETTLE,)),
    "stale": ("disputed", _settleable, (), (SETTLE,)),
    "unproven": ("proven", _settleable, (), (SETTLE,)),
    "expiry": ("open", lambda s: formulas.expirable_from(s.terms), (CLAIM,), (EXPIRE,)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("edge", EDGES)
def test_edge__each_second_around_it__opens_exactly_one_side(edge: str, kind: str) -> None:
    stage, moment, before, after = EDGES[edge]
    for offset in NEARBY:
        found = scene(stage, kind)
        # Node 2 is cheaper, so that nothing but the clock refuses its proposal.
        found.world.register(owner=found.world.evm.account("owner 2"), operator=found.world.operator, ask=10**18)
        found.to(moment(found) + offset)
        _beat(found)
        sides = [[enabled(found, branch) for branch in side] for side in (before, after)]
        assert sides == [[offset < 0] * len(before), [offset >= 0] * len(after)], (edge, offset)


@given(
    max_seconds=st.integers(1, 90_000),
    offset=st.sampled_from(NEARBY),
    cancelled=st.booleans(),
    waited=st.integers(0, 600),
)
def test_edge__any_lease__work_and_its_end_never_overlap(
    max_seconds: int, offset: int, cancelled: bool, waited: int
) -> None:
    found = scene("running", max_seconds=max_seconds, keeper_fee=10**12, deadline=START + 30 * w.DAY)
    world = found.world
    if cancelled:
        world.evm.warp(min(waited, world.unit(found.terms).mark - world.evm.now - 1))
        world.cancel(found.terms)
    found.to(max(world.unit(found.terms).mark + offset, world.evm.now))
    _beat(found)
    work = {enabled(found, SUBMIT), enabled(found, DECLINE if cancelled else GIVE_UP)}
    end = enabled(found, CLOSE if cancelled else RECLAIM)
    assert work == {not end}
    assert end == (world.evm.now >= world.unit(found.terms).mark)


@pytest.mark.parametrize("offset", NEARBY)
def test_edge__silent_node__may_be_reclaimed_and_lose_the_race_to_its_own_submit(offset: int) -> None:
    """Before the lease's end a silent node may still submit: whoever is first in the block decides, once."""
    found = scene("running", max_seconds=20_000)
    found.to(found.world.node(found.node).state.beat + w.DEAD_AFTER + offset)
    assert enabled(found, SUBMIT)
    assert enabled(found, RECLAIM) == (offset >= 0)
    with found.world.evm.isolated():
        SUBMIT(found)
        assert not enabled(found, RECLAIM)
    if offset >= 0:
        RECLAIM(found)
        assert not enabled(found, SUBMIT)
