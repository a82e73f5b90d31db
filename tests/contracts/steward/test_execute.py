"""Steward.execute: anyone carries out what is due, once, for 14 days."""

from __future__ import annotations

import pytest

from hearth.protocol import words
from tests.kit.evm import reverts
from tests.kit.steps import around
from tests.kit.steward import DELAY, LIFE, NEW_POLICY, NONE, Op, Stewarded
from tests.kit.world import POLICY, World


def test_execute__policy__is_in_force_for_new_jobs(stewarded: Stewarded) -> None:
    receipt = stewarded.change(Op.POLICY, NEW_POLICY)
    change = stewarded.id_of(Op.POLICY, NEW_POLICY)
    assert receipt.event("ChangeExecuted") == {"change": change, "op": Op.POLICY, "word": NEW_POLICY}
    assert stewarded.world.rules.call.policies()[0] == NEW_POLICY
    stewarded.world.post(policy=NEW_POLICY)
    assert stewarded.state(change) == 2


def test_execute__minimum_stake__is_asked_of_new_nodes(stewarded: Stewarded) -> None:
    stewarded.change(Op.STAKE, 3 * 10**18)
    assert stewarded.world.nodes.call.minimum_stake() == 3 * 10**18


@pytest.mark.parametrize(("op", "name"), [(Op.POSTS, "rules"), (Op.REGISTRATIONS, "nodes")])
def test_execute__offer_of_the_rights__reaches_that_contract_alone(stewarded: Stewarded, op: Op, name: str) -> None:
    world = stewarded.world
    stewarded.change(op, int(world.keeper, 16))
    offered = {which: getattr(world, which).call.offered_governor() for which in ("rules", "nodes")}
    assert offered == {"rules": NONE, "nodes": NONE} | {name: world.keeper}
    getattr(world, name).send.accept_governor(sender=world.keeper)
    assert getattr(world, name).call.governor() == world.keeper


def test_execute__guardian__changes_the_seat_or_empties_it(stewarded: Stewarded) -> None:
    world = stewarded.world
    receipt = stewarded.change(Op.GUARDIAN, int(world.keeper, 16))
    assert receipt.event("GuardianChanged") == {"guardian": world.keeper}
    assert stewarded.contract.call.guardian() == world.keeper
    with reverts("steward: not council or guardian"):
        stewarded.contract.send.pause(True, False, sender=stewarded.guardian)
    stewarded.change(Op.GUARDIAN, 0)
    assert stewarded.contract.call.guardian() == NONE


def test_execute__council__is_an_offer_only(stewarded: Stewarded) -> None:
    world = stewarded.world
    receipt = stewarded.change(Op.COUNCIL, int(world.keeper, 16))
    assert receipt.event("CouncilOffered") == {"council": world.keeper}
    assert stewarded.contract.call.council() == stewarded.council
    assert stewarded.contract.call.offered_council() == world.keeper


def test_execute__time__from_the_due_second_for_fourteen_days(stewarded: Stewarded) -> None:
    world = stewarded.world
    due = stewarded.state(stewarded.queue(Op.STAKE, 10**18))
    assert due == world.evm.now + DELAY
    for offset in around(world, due):
        with world.evm.isolated():
            if offset < 0:
                with reverts("steward: not due yet"):
                    stewarded.execute(Op.STAKE, 10**18)
            else:
                stewarded.execute(Op.STAKE, 10**18)
    for offset in around(world, due + LIFE):
        with world.evm.isolated():
            if offset < 0:
                stewarded.execute(Op.STAKE, 10**18)
            else:
                with reverts("steward: no longer due"):
                    stewarded.execute(Op.STAKE, 10**18)


def test_execute__twice_or_never_queued_or_dropped__reverts(stewarded: Stewarded) -> None:
    with reverts("steward: not queued"):
        stewarded.execute(Op.STAKE, 10**18)
    stewarded.change(Op.STAKE, 10**18)
    with reverts("steward: was executed"):
        stewarded.execute(Op.STAKE, 10**18)
    change = stewarded.queue(Op.STAKE, 10**18, 1)
    stewarded.contract.send.drop(change, sender=stewarded.guardian)
    stewarded.world.evm.warp(DELAY)
    with reverts("steward: was dropped"):
        stewarded.execute(Op.STAKE, 10**18, 1)


@pytest.mark.parametrize(
    ("op", "reason"), [(Op.POLICY, "rules: policy out of range"), (Op.STAKE, "nodes: minimum out of range")]
)
def test_execute__what_the_bounds_refuse__reverts_and_stays(stewarded: Stewarded, op: Op, reason: str) -> None:
    change = stewarded.queue(op, 0)
    due = stewarded.state(change)
    stewarded.world.evm.warp(DELAY)
    with reverts(reason):
        stewarded.execute(op, 0)
    assert stewarded.state(change) == due


def test_execute__two_policies_in_a_day__the_second_is_refused_and_can_be_tried_again(stewarded: Stewarded) -> None:
    stewarded.queue(Op.POLICY, NEW_POLICY)
    back = words.pack_policy(POLICY)
    stewarded.queue(Op.POLICY, back)
    stewarded.world.evm.warp(DELAY)
    stewarded.execute(Op.POLICY, NEW_POLICY)
    with reverts("rules: changed lately"):
        stewarded.execute(Op.POLICY, back)
    stewarded.world.evm.warp(24 * 3600)
    stewarded.execute(Op.POLICY, back)
    assert stewarded.world.rules.call.policies()[0] == back


def test_execute__every_change__moves_no_posted_job_and_no_money(market: World) -> None:
    stewarded = Stewarded(market)
    node = market.register()
    terms = market.post(deadline=market.evm.now + 30 * 24 * 3600)
    market.claim(terms, node)
    market.submit(terms)
    for op in Op:
        stewarded.queue(op, stewarded.word(op))
    market.evm.warp(DELAY)

    def held() -> tuple[object, ...]:
        return (
            market.load(terms),
            market.node(node),
            market.lock_of(terms),
            market.staked(node),
            market.escrow.call.tracked(),
        )

    before = held()
    for op in Op:
        stewarded.execute(op, stewarded.word(op))
    assert held() == before
