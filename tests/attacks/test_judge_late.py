"""Attack: a judge waits until a node believes itself safe. After its window it takes nothing that it did not hold."""

from __future__ import annotations

import pytest

from hearth.protocol.types import TermsFlag, Verdict
from tests.attacks.stages import KINDS, market, scene
from tests.kit import world as w
from tests.kit.evm import reverts
from tests.kit.steps import STALE, WINDOW


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("late", [0, 1, 600, STALE, 10 * STALE])
def test_late__after_the_window_undisputed__can_only_pay(kind: str, late: int) -> None:
    found = scene("judged", kind)
    world = found.world
    world.evm.at(world.unit(found.terms).mark + WINDOW + late)
    with reverts("jobs: too late to dispute"):
        world.dispute(found.terms)
    for verdict in (Verdict.RELEASE, Verdict.REJECT, Verdict.VOID):
        with reverts("jobs: not disputed"):
            world.rule(found.terms, verdict)
    stake = world.node(found.node).stake
    world.rule(found.terms, Verdict.CONFIRM)
    assert world.node(found.node).stake == stake


@pytest.mark.parametrize("released", [False, True])
def test_late__released_after_the_window__cannot_be_held_again(released: bool) -> None:
    found = scene("disputed")
    world = found.world
    world.evm.warp(WINDOW if released else WINDOW - 1)
    world.rule(found.terms, Verdict.RELEASE)
    if released:
        with reverts("jobs: too late to dispute"):
            world.dispute(found.terms)
        with reverts("jobs: not disputed"):
            world.rule(found.terms, Verdict.REJECT)
        world.settle(found.terms)
    else:
        world.dispute(found.terms)


@pytest.mark.parametrize("verdict", [Verdict.REJECT, Verdict.VOID])
def test_late__proven_and_settled_as_unproven__is_not_taken_twice(verdict: Verdict) -> None:
    """A keeper ends it and takes a tenth; the judge that comes after finds an end."""
    found = scene("unproven")
    world = found.world
    world.settle(found.terms)
    stake = world.node(found.node).stake
    with reverts("jobs: not submitted"):
        world.rule(found.terms, verdict)
    assert world.node(found.node).stake == stake


@pytest.mark.parametrize("verdict", [Verdict.CONFIRM, Verdict.REJECT, Verdict.VOID])
def test_late__proven_and_nobody_settles__its_judge_may_still_rule(verdict: Verdict) -> None:
    world = market("native")
    node = world.register()
    terms = world.post(**world.judged(flags=TermsFlag.NEWCOMERS | TermsFlag.PROVEN))
    world.claim(terms, node)
    world.submit(terms)
    world.evm.at(terms.deadline + WINDOW + 100 * w.DAY)
    world.rule(terms, verdict)
    assert world.state(terms).terminal
