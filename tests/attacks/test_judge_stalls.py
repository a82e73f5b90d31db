"""Attack: a judge that disputes and never rules, so that money and bonds are held for ever."""

from __future__ import annotations

import pytest

from hearth.protocol import formulas
from hearth.protocol.types import State, TermsFlag, Verdict
from tests.attacks.stages import KINDS, booked, credits, ended, finish, holding, scene
from tests.kit import world as w
from tests.kit.evm import reverts
from tests.kit.steps import STALE

SILENT = ("judged", "disputed", "proven", "proven disputed")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", SILENT)
def test_stall__judge_that_never_rules__strangers_end_the_unit(stage: str, kind: str) -> None:
    found = scene(stage, kind)
    world = found.world
    submitted = world.unit(found.terms).mark
    finish(found)
    assert ended(found)
    assert world.node(found.node).state.bond == 0
    assert booked(found) == holding(world, world.escrow)
    latest = max(submitted + STALE, found.terms.deadline) + found.terms.challenge_window
    assert world.evm.now <= latest


@pytest.mark.parametrize("kind", KINDS)
def test_stall__dispute_and_release_by_turns__holds_no_longer_than_one_dispute(kind: str) -> None:
    """The mark stays: however often a judge disputes and releases, its window ends when it ended before."""
    found = scene("judged", kind)
    world = found.world
    end = formulas.challenge_end(found.terms, world.unit(found.terms))
    while world.evm.now < end:
        world.dispute(found.terms)
        world.evm.warp(1_000)
        world.rule(found.terms, Verdict.RELEASE)
    with reverts("jobs: too late to dispute"):
        world.dispute(found.terms)
    world.settle(found.terms, sender=world.stranger)
    assert ended(found)


@pytest.mark.parametrize("kind", KINDS)
def test_stall__stale_dispute__pays_what_no_dispute_would_have(kind: str) -> None:
    """Control: the same unit whose judge said nothing at all."""
    held, plain = scene("disputed", kind), scene("judged", kind)
    for found in (held, plain):
        finish(found)
    assert credits(held.world) == credits(plain.world)
    assert held.world.node(held.node).state.r == plain.world.node(plain.node).state.r > 0


def test_stall__in_the_last_second_of_the_window__still_ends_by_time() -> None:
    found = scene("judged")
    world = found.world
    world.evm.at(formulas.challenge_end(found.terms, world.unit(found.terms)) - 1)
    world.dispute(found.terms)
    world.evm.warp(STALE)
    with reverts("jobs: too early to settle"):
        world.settle(found.terms)
    world.evm.warp(1)
    world.settle(found.terms)


@pytest.mark.parametrize("days", [1, 30, 60])
def test_stall__proven_with_a_deadline_far_away__holds_the_bond_until_then_and_not_longer(days: int) -> None:
    """What its terms say: who takes such a job knows when its bond is free at the latest."""
    world = w.World()
    flags = TermsFlag.NEWCOMERS | TermsFlag.PROVEN
    node, terms = world.register(), world.post(**world.judged(flags=flags, deadline=world.evm.now + days * w.DAY))
    world.claim(terms, node)
    world.submit(terms)
    world.nodes.send.exit_start(node, sender=world.owner)
    world.evm.at(terms.deadline + terms.challenge_window)
    if days * w.DAY > w.UNBONDING:
        with reverts("nodes: bond outstanding"):
            world.nodes.send.exit_finish(node)
    world.settle(terms)
    assert world.state(terms) == State.REFUNDED and world.node(node).state.bond == 0
