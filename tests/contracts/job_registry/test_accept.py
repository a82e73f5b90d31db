"""JobRegistry.accept: the submitter settles at once and pays no settler."""

from __future__ import annotations

from hearth.protocol.types import State
from tests.kit.evm import reverts
from tests.kit.steps import BUDGET, FEE, PAY, credited, node_state, submitted
from tests.kit.world import World


def test_accept__submitted__pays_without_a_settler(market: World) -> None:
    terms, node = submitted(market)
    market.evm.warp(10_000)
    with credited(market) as got:
        receipt = market.accept(terms)
    assert got == {"owner": PAY - FEE, "treasury": FEE, "submitter": BUDGET - PAY}
    event = receipt.event("Settled")
    assert (event["pay"], event["fee"], event["word"]) == (PAY, FEE, market.load(terms)[1])
    assert market.state(terms) == State.SETTLED
    assert market.lock_of(terms) == 0
    state = node_state(market, node)
    assert (state.bond, state.r) == (0, 0), "a newcomer's owner may have posted it"


def test_accept__not_the_submitter__reverts(world: World) -> None:
    terms, _ = submitted(world)
    for sender in (world.owner, world.operator, world.keeper, world.deployer):
        with reverts("jobs: not the submitter"):
            world.accept(terms, sender=sender)


def test_accept__not_submitted__reverts(world: World) -> None:
    terms = world.post()
    with reverts("jobs: not submitted"):
        world.accept(terms)
    world.claim(terms, world.register())
    with reverts("jobs: not submitted"):
        world.accept(terms)
    world.submit(terms)
    world.accept(terms)
    with reverts("jobs: not submitted"):
        world.accept(terms)


def test_accept__never_posted__reverts(world: World) -> None:
    with reverts("jobs: not submitted"):
        world.accept(world.terms())


def test_accept__index_of_no_unit__reverts(world: World) -> None:
    terms, _ = submitted(world)
    with reverts("jobs: no such unit"):
        world.accept(terms, 1)
