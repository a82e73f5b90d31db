"""Attack: a node names another's state as its own, or a state that is nowhere, and what an honest one left earns none.

Three owners: `honest` runs 800 of 1,000 s and loses its lease; `thief` holds the next one without running anything, and
names the state that it was given; `last` makes the result. The oldest state has the unit's seconds first, and `last`
sees what each state leaves it: it takes up the newest that leaves it some.
"""

from __future__ import annotations

from typing import Any

import pytest

from hearth.protocol.types import State
from tests.attacks.stages import KINDS, market
from tests.kit import world as w
from tests.kit.steps import RESUMABLE, lose, other

MAX_SECONDS = 1_000


@pytest.mark.parametrize("judged", [False, True], ids=["unjudged", "judged"])
@pytest.mark.parametrize("ending", ["give_up", "reclaim"])
@pytest.mark.parametrize("kind", KINDS)
def test_theft__state_named_again_by_a_node_that_did_nothing__earns_it_no_more_than_its_slash(
    kind: str, ending: str, judged: bool
) -> None:
    found = []
    for stolen in (False, True):
        world = market(kind)
        (honest, first), (thief, second), (last, third) = (other(world, name) for name in ("honest", "thief", "last"))
        terms_of: dict[str, Any] = {"max_seconds": MAX_SECONDS, "deadline": world.evm.now + w.DAY, **RESUMABLE}
        if judged:
            terms_of |= world.judged()
        terms = world.post(**terms_of)

        def beat(world: w.World = world, pairs: object = ((honest, first), (thief, second), (last, third))) -> None:
            for node, operator in pairs:  # type: ignore[attr-defined]
                world.nodes.send.beat(node, sender=operator)

        def wealth(world: w.World = world, thief: int = thief) -> int:
            return world.credit(world.evm.account("thief")) + world.staked(thief)  # type: ignore[arg-type]

        world.claim(terms, honest, sender=first)
        world.evm.warp(800)
        beat()
        world.checkpoint(terms, sender=first)
        world.give_up(terms, sender=first)
        before, resume = wealth(), 1
        if stolen:
            world.claim(terms, thief, sender=second, resume_from=1)
            world.evm.warp(800)
            beat()
            world.checkpoint(terms, sender=second)  # the same root
            if ending == "reclaim":
                world.evm.at(world.unit(terms).mark)
                beat()
            lose(world, terms, ending, sender=second)
            kept = world.kept(terms, 2)
            resume = 2 if kept.before + kept.seconds < MAX_SECONDS else 1
        world.claim(terms, last, sender=third, resume_from=resume)
        world.evm.warp(200)
        world.submit(terms, sender=third)
        if judged:
            world.evm.warp(7_200)
            receipt = world.settle(terms)
        else:
            receipt = world.accept(terms)
        assert world.state(terms) == State.SETTLED
        pays = {event["attempt"]: event["pay"] - event["fee"] for event in receipt.events("CheckpointPaid")}
        found.append((world.credit(world.evm.account("honest")), wealth() - before, pays))
    (fair, _, _), (left, gain, pays) = found
    print(f"{kind}, {ending}, judged {judged}: honest {fair} -> {left}; the thief gains {gain}, its slash paid: {pays}")
    assert gain <= 0
    assert left == fair


@pytest.mark.parametrize("kind", KINDS)
def test_sabotage__state_that_is_nowhere__costs_its_node_what_it_destroys(kind: str) -> None:
    """As workers decide: the newest kept state is asked for, is nowhere, and the one before it is taken up."""
    world = market(kind)
    (honest, first), (thief, second), (last, third) = (other(world, name) for name in ("honest", "thief", "last"))
    terms = world.post(max_seconds=MAX_SECONDS, deadline=world.evm.now + w.DAY, **RESUMABLE)
    world.claim(terms, honest, sender=first)
    world.evm.warp(800)
    world.checkpoint(terms, sender=first)
    world.give_up(terms, sender=first)
    stake = world.staked(thief)
    for node, operator in ((thief, second), (last, third)):
        world.nodes.send.beat(node, sender=operator)
    world.claim(terms, thief, sender=second)
    world.evm.warp(1)
    world.checkpoint(terms, sender=second, root=b"\xff" * 32)
    world.give_up(terms, sender=second)
    cost = stake - world.staked(thief)
    world.claim(terms, last, sender=third, resume_from=1)
    world.evm.warp(200)
    world.submit(terms, sender=third)
    pay = world.accept(terms).event("Settled")["pay"]
    rate = world.node(honest).offer.ask
    earned = world.credit(world.evm.account("honest"))
    print(f"{kind}: it costs its node {cost}; honest earned {earned}, the submitter pays {pay} for the last 200 s")
    assert (earned, pay) == (rate * 640 // 10**6 * 95 // 100, rate * 200 // 10**6)


@pytest.mark.parametrize("kind", KINDS)
def test_theft__resuming_node_that_idles_until_its_lease_ends__leaves_what_was_kept(kind: str) -> None:
    """Its result is good and in time, so no judge and no slash answers it; of what it gains it did none."""
    found = []
    for idle in (0, 800):
        world = market(kind)
        (honest, first), (last, third) = (other(world, name) for name in ("honest", "last"))
        terms = world.post(max_seconds=MAX_SECONDS, deadline=world.evm.now + w.DAY, **RESUMABLE)
        world.claim(terms, honest, sender=first)
        world.evm.warp(800)
        world.checkpoint(terms, sender=first)
        world.give_up(terms, sender=first)
        world.nodes.send.beat(last, sender=third)
        world.claim(terms, last, sender=third, resume_from=1)
        world.evm.warp(200)  # the result is made
        world.nodes.send.beat(last, sender=third)
        world.evm.warp(idle)
        world.submit(terms, sender=third)
        world.accept(terms)
        found.append((world.credit(world.evm.account("honest")), world.credit(world.evm.account("last"))))
    print(f"{kind}: honest {found[0][0]} -> {found[1][0]}, who idles {found[0][1]} -> {found[1][1]}")
    assert found[1][0] == found[0][0]
