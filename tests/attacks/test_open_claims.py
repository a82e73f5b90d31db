"""Attack: take open jobs at their ceiling before a cheaper node has had its chance.

A dear node and a cheap one stand by; what a job pays for its seconds is what the submitter loses. While any node may
claim, each price below the ceiling has its second, so the cheaper one is first at every one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hearth.protocol.types import SENTINEL, NodeId, State, Terms, TermsFlag
from tests.attacks.stages import KINDS, market
from tests.kit import world as w
from tests.kit.evm import Reverted

JOBS = 8
WINDOW = 12
ABOVE = "nodes: ask above ceiling"


@dataclass
class Two:
    """A sweeper's nodes, who ask the ceiling, and a stranger's node that asks half of it."""

    world: w.World
    dear: tuple[NodeId, ...]
    cheap: NodeId
    rival: str

    def terms(self, **overrides: object) -> Terms:
        return self.world.terms(**{"flags": TermsFlag.NEWCOMERS, **overrides})

    def beat(self) -> None:
        for node in self.dear:
            self.world.nodes.send.beat(node, sender=self.world.operator)
        self.world.nodes.send.beat(self.cheap, sender=self.rival)

    def sweep(self, terms: list[Terms], index: int = 0) -> int:
        """Claim all that is left for the dear nodes; return how many units that were."""
        taken = 0
        for one in terms:
            try:
                self.world.claim(one, self.dear[taken % len(self.dear)], index)
            except Reverted as refused:
                assert refused.reason in (ABOVE, "jobs: not open", "jobs: no such unit", "jobs: takes no claims yet")
            else:
                taken += 1
        return taken

    def undercut(self, terms: list[Terms], index: int = 0) -> int:
        """Let the cheap node claim what it can; return how many units that were."""
        taken = 0
        for one in terms:
            try:
                self.world.claim(one, self.cheap, index, sender=self.rival)
            except Reverted as refused:
                assert refused.reason in (ABOVE, "jobs: no such unit", "jobs: takes no claims yet")
            else:
                taken += 1
        return taken


def _two(kind: str) -> Two:
    world = market(kind)
    rival = world.evm.account("rival")
    dear = tuple(world.register(ask=10**20, slots=63) for _ in range(2))
    cheap = world.register(
        owner=world.evm.account("rival owner"), operator=rival, ask=5 * 10**19, slots=63, stake=1_000 * w.ETHER
    )
    return Two(world, dear, cheap, rival)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("units", [1, JOBS])
def test_sweep__fresh_jobs_in_their_first_block__gain_nothing(kind: str, units: int) -> None:
    """One block full of posts, and the sweeper is the first to call in every second from it on."""
    two = _two(kind)
    world, index = two.world, 0 if units == 1 else SENTINEL
    jobs = [world.post(two.terms(units=units)) for _ in range(JOBS // units)]
    calls = jobs * units
    posted = world.evm.now
    assert two.sweep(calls, index) == 0, "a sweep in the block of the posts"
    taken = 0
    for second in range(1, world.policy.claim_ramp + 1):
        world.evm.at(posted + second)
        assert two.sweep(calls, index) == 0, f"a sweep after {second} s"
        taken += two.undercut(calls[taken:], index)
        if taken == JOBS:
            break
    assert (taken, second) == (JOBS, world.policy.claim_ramp // 3)
    for number in range(units):
        assert {world.unit(job, number).rate for job in jobs} == {5 * 10**19}


@pytest.mark.parametrize("kind", KINDS)
def test_sweep__nobody_is_cheaper__gets_the_jobs_once_each_lower_price_had_its_second(kind: str) -> None:
    """Liveness: the price that the submitter allows is paid in the end."""
    two = _two(kind)
    world = two.world
    jobs = [world.post(two.terms()) for _ in range(JOBS)]
    world.evm.warp(world.policy.claim_ramp - 1)
    assert two.sweep(jobs) == 0
    world.evm.warp(1)
    assert two.sweep(jobs) == JOBS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lapses", [1, 2])
@pytest.mark.parametrize("late", [0, 156, 157, 227, 228, 229, 290, 299, 300, 329, 330, 500])
def test_auction__ended_by_proposals_that_nobody_acks__brings_no_ceiling_price_at_once(
    kind: str, lapses: int, late: int
) -> None:
    """The sweeper proposes its own nodes at any moment, also so that open claims begin while a proposal blocks them."""
    two = _two(kind)
    world, policy = two.world, two.world.policy
    terms = world.post(two.terms(match_window=WINDOW))
    posted = world.evm.now
    world.evm.at(posted + late)
    for node in two.dear[:lapses]:
        world.propose(terms, node)
        world.evm.warp(WINDOW + policy.ack_time)
        two.beat()
    if lapses < 2:
        world.evm.at(max(world.evm.now, posted + policy.open_claim_after))
    two.beat()
    assert two.sweep([terms]) == 0, "the first second that takes claims"
    world.evm.warp(policy.claim_ramp // 3)
    assert two.sweep([terms]) == 0
    assert two.undercut([terms]) == 1
    assert (world.state(terms), world.unit(terms).rate) == (State.RUNNING, 5 * 10**19)


@pytest.mark.parametrize("kind", KINDS)
def test_lapse__of_a_strangers_node__costs_it_nothing(kind: str) -> None:
    """Else whoever proposes a node for what it will not take would charge it."""
    two = _two(kind)
    world = two.world
    terms = world.post(two.terms(match_window=WINDOW))
    before = world.node(two.cheap)
    world.propose(terms, two.cheap, sender=world.stranger)
    world.evm.warp(WINDOW + world.policy.ack_time)
    world.propose(terms, two.dear[0], sender=world.stranger)
    assert world.node(two.cheap) == before
