"""Attack 7: two operators reach for the same unit in one block, in either order.

Exactly one wins. The other's call is refused whole: his stake, bond and slots are as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hearth.protocol.types import SENTINEL, NodeId, Terms, TermsFlag
from tests.attacks.stages import KINDS, market
from tests.kit import world as w
from tests.kit.evm import Receipt, Reverted

Call = Callable[[], Receipt]


@dataclass
class Race:
    """Two nodes of two owners, and one job that both want."""

    world: w.World
    first: NodeId
    second: NodeId
    rival: str
    terms: Terms

    def by(self, node: NodeId) -> str:
        """Return a node's operator."""
        return self.world.operator if node == self.first else self.rival

    def claim(self, node: NodeId, index: int = 0) -> Call:
        return lambda: self.world.claim(self.terms, node, index, sender=self.by(node))

    def ack(self, node: NodeId) -> Call:
        return lambda: self.world.ack(self.terms, sender=self.by(node))

    def propose(self, node: NodeId) -> Call:
        return lambda: self.world.propose(self.terms, node)


def _race(kind: str, **terms: object) -> Race:
    world = market(kind)
    rival = world.evm.account("rival")
    first = world.register()
    second = world.register(owner=world.evm.account("rival owner"), operator=rival)
    return Race(world, first, second, rival, world.terms(**{"flags": TermsFlag.NEWCOMERS, **terms}))


def _one_wins(race: Race, calls: dict[NodeId, Call], reason: str) -> None:
    """Run the calls in order at one moment: the first succeeds, the second is refused and changes nothing."""
    (winner, first), (loser, second) = calls.items()
    before = race.world.node(loser)
    first()
    settled = race.world.evm.state_hash()
    with pytest.raises(Reverted) as caught:
        second()
    assert caught.value.reason == reason
    assert race.world.evm.state_hash() == settled
    assert race.world.node(loser) == before
    assert race.world.unit(race.terms).node == winner
    assert race.world.node(winner).state.busy == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reverse", [False, True], ids=["a then b", "b then a"])
def test_race__two_claims__first_wins_and_second_loses_nothing(kind: str, reverse: bool) -> None:
    race = _race(kind)
    race.world.post(race.terms)
    order = (race.second, race.first) if reverse else (race.first, race.second)
    _one_wins(race, {node: race.claim(node) for node in order}, "jobs: not open")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reverse", [False, True], ids=["a then b", "b then a"])
def test_race__two_claims_of_an_array__take_one_unit_each_or_one_loses(kind: str, reverse: bool) -> None:
    """By index one loses; by NEXT, the form that front-runs nobody, both get a unit of their own."""
    race = _race(kind, units=3)
    race.world.post(race.terms)
    order = (race.second, race.first) if reverse else (race.first, race.second)
    with race.world.evm.isolated():
        for node in order:
            race.claim(node, SENTINEL)()
        assert [race.world.unit(race.terms, i).node for i in range(2)] == list(order)
    _one_wins(race, {node: race.claim(node) for node in order}, "jobs: not open")


@pytest.mark.parametrize("kind", KINDS)
def test_race__ack_against_a_claim__only_the_winner_of_the_match_starts(kind: str) -> None:
    """The match's winner has `ack_time` for himself: a claim cannot overtake his ack, nor another's ack."""
    race = _race(kind, match_window=30)
    race.world.post(race.terms)
    race.propose(race.first)()
    race.world.evm.warp(30)
    before = race.world.evm.state_hash()
    for call, reason in (
        (race.claim(race.second), "jobs: a proposal is live"),
        (race.claim(race.first), "jobs: a proposal is live"),
        (race.ack(race.second), "nodes: not the operator"),
    ):
        with pytest.raises(Reverted) as caught:
            call()
        assert caught.value.reason == reason
        assert race.world.evm.state_hash() == before
    _one_wins(race, {race.first: race.ack(race.first), race.second: race.ack(race.second)}, "jobs: not open")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("claim_first", [True, False])
def test_race__claim_against_a_proposal__whoever_is_first_holds_the_unit(kind: str, claim_first: bool) -> None:
    race = _race(kind, match_window=30)
    race.world.post(race.terms)
    race.world.evm.warp(w.POLICY.open_claim_after)
    if claim_first:
        _one_wins(race, {race.first: race.claim(race.first), race.second: race.propose(race.second)}, "jobs: not open")
        return
    race.propose(race.second)()
    before = race.world.node(race.first)
    with pytest.raises(Reverted, match="jobs: a proposal is live"):
        race.claim(race.first)()
    assert race.world.node(race.first) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cancel_first", [True, False])
def test_race__claim_against_the_submitters_cancel__refund_or_notice_never_both(kind: str, cancel_first: bool) -> None:
    race = _race(kind)
    world = race.world
    world.post(race.terms)
    if cancel_first:
        world.cancel(race.terms)
        with pytest.raises(Reverted, match="jobs: not open"):
            race.claim(race.first)()
        assert world.node(race.first).state.bond == 0
        assert world.lock_of(race.terms) == 0
    else:
        race.claim(race.first)()
        world.cancel(race.terms)
        assert world.unit(race.terms).flags & 8, "the node is given notice"
        assert world.lock_of(race.terms) > 0
