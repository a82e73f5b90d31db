"""Attack: a submitter tops a lease up to hold a slot, a bond or time, or to be refunded what he has not paid.

A node agreed to max_seconds, its bond and its slash. A top-up pays for each further second at the rate that the node
asked, takes nothing of it, and may be answered by a submit at any moment.
"""

from __future__ import annotations

import pytest

from hearth.protocol import formulas
from hearth.protocol.types import Billing, State
from tests.attacks.stages import KINDS, market
from tests.kit import world as w
from tests.kit.steps import RESUMABLE, other


@pytest.mark.parametrize("seconds", [1, 10_000, 30 * w.DAY - 1_000])
@pytest.mark.parametrize("outcome", [1, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_top_up__node_that_wants_to_leave__submits_as_it_would_have(kind: str, outcome: int, seconds: int) -> None:
    """At the end of the time that it agreed to it is paid the same, and bond and slot are free as early."""
    found = []
    for more in (0, seconds):
        world = market(kind)
        node = world.register()
        terms = world.post(billing=Billing.METERED, deadline=world.evm.now + 50 * w.DAY)
        world.claim(terms, node)
        bond = world.node(node).state.bond
        if more:
            world.top_up(terms, more)
        world.nodes.send.exit_start(node, sender=world.owner)
        world.evm.warp(800)
        world.nodes.send.beat(node, sender=world.operator)
        world.evm.warp(200)
        world.submit(terms, outcome=outcome)
        assert world.node(node).state.busy == 0 and world.node(node).state.bond == bond
        world.evm.warp(1)
        world.settle(terms)
        state = world.node(node).state
        found.append((world.credit(world.owner), world.staked(node), state.bond, state.s, state.cusum))
        assert world.lock_of(terms) == 0
    assert found[0] == found[1]


@pytest.mark.parametrize("ending", ["give_up", "reclaim"])
@pytest.mark.parametrize("kind", KINDS)
def test_top_up__node_that_lets_the_lease_go__loses_the_slash_that_it_agreed_to(kind: str, ending: str) -> None:
    found = []
    for more in (0, 20 * w.DAY):
        world = market(kind)
        node = world.register()
        terms = world.post(billing=Billing.METERED, deadline=world.evm.now + 50 * w.DAY)
        world.claim(terms, node)
        if more:
            world.top_up(terms, more)
        if ending == "reclaim":
            world.evm.warp(w.DEAD_AFTER)
        getattr(world, ending)(terms)
        found.append((world.staked(node), world.node(node).state.bond))
    assert found[0] == found[1]


@pytest.mark.parametrize("end", ["cancel", "close", "accept", "expire", "last"])
@pytest.mark.parametrize("kind", KINDS)
def test_top_up__whatever_end__gives_back_what_was_paid_and_no_more(kind: str, end: str) -> None:
    """Thrice a top-up, then every way out: the submitter and the others have what went in, to the unit."""
    world = market(kind)
    node = world.register(ask=25 * 10**18 + 7)
    terms = world.post(
        billing=Billing.METERED, max_attempts=1 if end == "last" else 3, deadline=world.evm.now + 3 * w.DAY
    )
    world.evm.warp(1)  # open claims rise to its ask
    world.claim(terms, node)
    paid = formulas.escrow_at_post(terms)
    for seconds in (1, 59, 7_777):
        world.evm.warp(3)
        amount = formulas.top_up_amount(terms, world.unit(terms), seconds)
        world.top_up(terms, seconds)
        paid += amount
        assert world.lock_of(terms) == paid
    stakes = world.staked(node)
    if end in ("cancel", "last", "expire"):
        world.give_up(terms)
        if end == "cancel":
            world.cancel(terms)
        elif end == "expire":
            world.evm.at(terms.deadline)
            world.expire(terms)
    elif end == "close":
        world.cancel(terms)
        world.evm.at(world.unit(terms).mark)
        world.close(terms)
    else:
        world.submit(terms)
        world.accept(terms)
    assert world.state(terms).terminal and world.lock_of(terms) == 0
    people = (world.submitter, world.owner, world.keeper, world.treasury)
    assert sum(map(world.credit, people)) == paid
    assert world.credit(w.DEAD) == stakes - world.staked(node)


@pytest.mark.parametrize("kind", KINDS)
def test_top_up__to_shut_a_kept_checkpoint_out__leaves_it_what_it_earns(kind: str) -> None:
    """A submitter cannot take a checkpoint's seconds away: they come first, however many there are."""
    pays = []
    for more in (0, 400):
        world = market(kind)
        (first, operator), node = other(world), world.register()
        terms = world.post(deadline=world.evm.now + w.DAY, **RESUMABLE)
        world.claim(terms, first, sender=operator)
        world.evm.warp(600)
        world.checkpoint(terms, sender=operator)
        world.give_up(terms, sender=operator)
        world.claim(terms, node, resume_from=1)
        if more:
            world.top_up(terms, more)
        world.evm.warp(700)
        world.submit(terms)
        pays.append(sum(event["pay"] for event in world.accept(terms).events("CheckpointPaid")))
        assert world.state(terms) == State.SETTLED
    assert pays == [25 * 600 * 8 // 10 * 10**12] * 2
