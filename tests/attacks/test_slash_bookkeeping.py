"""Attack 17: a slash that is only written down. What a slash says must move, unit by unit, and reach whom it names."""

from __future__ import annotations

import pytest

from hearth.protocol import words
from hearth.protocol.types import TermsFlag, Verdict
from tests.attacks.stages import KINDS, Scene, booked, holding, scene
from tests.kit import world as w
from tests.kit.evm import reverts
from tests.kit.vault import share


def _total(world: w.World) -> int:
    return words.unpack(words.TOTALS, world.nodes.call.totals())["total"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", ["overdue", "last overdue", "silent"])
@pytest.mark.parametrize("late", [0, 1, 300, 600, 100_000])
def test_slash__lock_and_credits__move_by_what_the_event_says(stage: str, kind: str, late: int) -> None:
    found = scene(stage, kind, keeper_fee=10**15)
    world = found.world
    world.evm.warp(late)
    before = (
        world.staked(found.node),
        world.credit(w.DEAD),
        world.credit(world.stranger),
        world.node(found.node).stake,
    )
    total = _total(world)
    slashed = world.reclaim(found.terms, payee=world.stranger).event("Slashed")
    taken = slashed["reward"] + slashed["burnt"]
    assert taken > 0
    assert before[0] - world.staked(found.node) == taken
    assert before[3] - world.node(found.node).stake == taken
    assert total - _total(world) == taken
    assert world.credit(w.DEAD) - before[1] == slashed["burnt"] > 0
    assert world.credit(world.stranger) - before[2] == slashed["reward"] > 0
    assert booked(found) == holding(world, world.escrow)
    # The reward is money: it can be taken out.
    had = holding(world, world.stranger)
    world.escrow.send.withdraw(world.stranger, slashed["reward"], sender=world.stranger)
    assert holding(world, world.stranger) - had == slashed["reward"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", ["disputed", "proven"])
@pytest.mark.parametrize("tenths", [0, 1, 6])
def test_verdict__lock_and_credits__move_by_what_the_event_says(stage: str, kind: str, tenths: int) -> None:
    found = scene(stage, kind)
    world = found.world
    bond, total = world.node(found.node).state.bond, _total(world)
    staked, stake = world.staked(found.node), world.node(found.node).stake
    given = share(world.stranger, bond * tenths // 10)
    rejected = world.rule(found.terms, Verdict.REJECT, shares=(given, 0, 0)).event("Rejected")
    assert rejected["burnt"] == world.credit(w.DEAD) == bond - bond * tenths // 10 > 0
    assert world.credit(world.stranger) == bond * tenths // 10
    assert staked - world.staked(found.node) == stake - world.node(found.node).stake == total - _total(world) == bond
    assert booked(found) == holding(world, world.escrow)


@pytest.mark.parametrize("kind", KINDS)
def test_slash__then_exit__owner_gets_the_rest_and_no_more(kind: str) -> None:
    found = scene("last overdue", kind)
    world = found.world
    stake = world.staked(found.node)
    slashed = world.reclaim(found.terms).event("Slashed")
    world.nodes.send.exit_start(found.node, sender=world.owner)
    world.evm.warp(w.UNBONDING)
    world.nodes.send.exit_finish(found.node, sender=world.owner)
    rest = stake - slashed["reward"] - slashed["burnt"]
    assert world.credit(world.owner) == rest
    world.escrow.send.withdraw(world.owner, rest, sender=world.owner)
    with reverts("escrow: short"):
        world.escrow.send.withdraw(world.owner, 1, sender=world.owner)


@pytest.mark.parametrize("kind", KINDS)
def test_slash__ration_used_up__burns_nothing_and_still_pays_the_reclaimer(kind: str) -> None:
    """An outage of the whole network: the hour's ration bounds what burns, and the books follow each event."""
    found = scene("open", kind, stake=1_000 * w.ETHER)
    world = found.world
    jobs = [
        world.terms(
            ceiling=10**23,
            max_seconds=3_000,
            keeper_fee=10**15,
            max_attempts=1,
            flags=TermsFlag.NEWCOMERS,
        )
        for _ in range(4)
    ]
    world.evm.at((world.evm.now // 3_600 + 1) * 3_600)
    world.nodes.send.beat(found.node, sender=world.operator)
    for terms in jobs:
        world.post(terms)
        world.claim(terms, found.node)
    Scene(world, found.node, jobs[0]).to(world.unit(jobs[0]).mark)
    burns = []
    for terms in jobs:
        staked, dead = world.staked(found.node), world.credit(w.DEAD)
        slashed = world.reclaim(terms).event("Slashed")
        assert staked - world.staked(found.node) == slashed["reward"] + slashed["burnt"]
        assert world.credit(w.DEAD) - dead == slashed["burnt"]
        assert slashed["reward"] > 0
        burns.append(slashed["burnt"])
    # One slash is above the ration of 1 % of 1,000 ether, and the last that burns.
    assert burns[0] > 10 * w.ETHER
    assert burns[1:] == [0, 0, 0]
