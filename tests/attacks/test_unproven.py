"""Attack: results that nobody proves. Neither node, keeper, judge nor submitter gains by letting a proof be missing."""

from __future__ import annotations

import pytest

from hearth.protocol import formulas
from hearth.protocol.types import State, TermsFlag, Verdict
from tests.attacks.stages import KINDS, market, scene
from tests.kit import world as w
from tests.kit.evm import reverts
from tests.kit.steps import WINDOW

PROVEN = TermsFlag.NEWCOMERS | TermsFlag.PROVEN


@pytest.mark.parametrize("kind", KINDS)
def test_unproven__junk_submitted__is_paid_by_nobody_however_long_it_waits(kind: str) -> None:
    found = scene("proven", kind)
    world = found.world
    for moment in (WINDOW, 5 * w.DAY, found.terms.deadline + WINDOW - 1 - world.evm.now):
        with world.evm.isolated():
            world.evm.warp(moment)
            with reverts("jobs: too early to settle"):
                world.settle(found.terms)
    world.evm.at(found.terms.deadline + WINDOW)
    world.settle(found.terms)
    assert world.credit(world.owner) == 0
    assert world.credit(world.submitter) == formulas.escrow_at_post(found.terms)


@pytest.mark.parametrize("kind", KINDS)
def test_unproven__node_settles_its_own__gets_a_quarter_of_its_slash_at_most(kind: str) -> None:
    for late in (0, 600, 10**6):
        found = scene("proven", kind, keeper_fee=10**16)
        world = found.world
        world.evm.at(found.terms.deadline + WINDOW + late)
        stake = world.node(found.node).stake
        world.settle(found.terms, sender=world.operator, payee=world.owner)
        lost, back = stake - world.node(found.node).stake, world.credit(world.owner)
        assert lost == formulas.slash_of(found.terms) and 4 * back <= lost


@pytest.mark.parametrize("edge", [-1, 0, 1])
def test_unproven__one_submitted_while_another_still_may_run__waits_for_the_deadline(edge: int) -> None:
    """From the deadline, not from the submit: whoever is early is not failed while others may still prove it."""
    world = market("native")
    node = world.register()
    terms = world.post(**world.judged(flags=PROVEN, units=2, max_attempts=1))
    world.claim(terms, node, 0)
    world.submit(terms, 0)
    early = world.unit(terms, 0).mark
    world.evm.at(early + WINDOW + 600)
    with reverts("jobs: too early to settle"):
        world.settle(terms, 0)
    world.evm.at(terms.deadline + WINDOW + edge)
    if edge < 0:
        with reverts("jobs: too early to settle"):
            world.settle(terms, 0)
        world.rule(terms, Verdict.CONFIRM, 0)
        assert world.state(terms, 0) == State.SETTLED
    else:
        world.settle(terms, 0)
        assert world.state(terms, 0) == State.REFUNDED


def test_unproven__hundreds_in_one_hour__burn_no_more_than_an_outage_may() -> None:
    """A judge that breaks must not burn down the nodes that trusted it."""
    world = market("native")
    node = world.register(stake=5_000 * w.ETHER, slots=63)
    terms = world.post(**world.judged(flags=PROVEN, units=30, ceiling=10**23, deadline=world.evm.now + 9 * w.DAY))
    for index in range(30):
        world.claim(terms, node, index)
        world.submit(terms, index)
    world.evm.at((terms.deadline + WINDOW) // 3_600 * 3_600 + 3_600)
    before = world.credit(w.DEAD)
    for index in range(30):
        world.settle(terms, index)
    slash = formulas.slash_of(terms)
    ration = max(world.node(node).stake // 100, 3 * w.MINIMUM_STAKE)
    assert world.credit(w.DEAD) - before <= ration + slash < 30 * slash // 2
