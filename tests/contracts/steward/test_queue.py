"""Steward.queue: the council announces a change; `changes` says from when on it is due."""

from __future__ import annotations

import pytest

from tests.kit.evm import reverts
from tests.kit.steward import DELAY, NEW_POLICY, NONE, Op, Stewarded


@pytest.mark.parametrize("op", Op)
def test_queue__each_change__waits_for_its_delay(stewarded: Stewarded, op: Op) -> None:
    word = stewarded.word(op)
    receipt = stewarded.contract.send.queue(op, word, 5, sender=stewarded.council)
    change, due = stewarded.id_of(op, word, 5), stewarded.world.evm.now + DELAY
    assert receipt.event("ChangeQueued") == {"change": change, "op": op, "word": word, "salt": 5, "due": due}
    assert stewarded.state(change) == due


def test_changes__unknown__is_zero(stewarded: Stewarded) -> None:
    assert stewarded.state(bytes(32)) == 0


def test_queue__anybody_else__reverts(stewarded: Stewarded) -> None:
    world = stewarded.world
    for sender in (stewarded.guardian, world.deployer, world.stranger):
        with reverts("steward: not the council"):
            stewarded.queue(Op.POLICY, NEW_POLICY, sender=sender)


@pytest.mark.parametrize("op", [0, 7, 2**256 - 1])
def test_queue__no_known_change__reverts(stewarded: Stewarded, op: int) -> None:
    with reverts("steward: no such change"):
        stewarded.queue(op, 1)


@pytest.mark.parametrize("op", [Op.POSTS, Op.REGISTRATIONS, Op.COUNCIL, Op.GUARDIAN])
def test_queue__word_that_is_no_address__reverts(stewarded: Stewarded, op: Op) -> None:
    with reverts("steward: not an address"):
        stewarded.queue(op, 2**160)
    stewarded.queue(op, 2**160 - 1)


def test_queue__again_while_it_waits__reverts_and_keeps_its_time(stewarded: Stewarded) -> None:
    change = stewarded.queue(Op.GUARDIAN, int(NONE, 16))
    due = stewarded.state(change)
    stewarded.world.evm.warp(10)
    with reverts("steward: queued already"):
        stewarded.queue(Op.GUARDIAN, int(NONE, 16))
    assert stewarded.state(change) == due
    # Another salt is another change.
    assert stewarded.state(stewarded.queue(Op.GUARDIAN, int(NONE, 16), 1)) == due + 10


def test_queue__what_was_dropped_or_executed__needs_another_salt(stewarded: Stewarded) -> None:
    dropped = stewarded.queue(Op.STAKE, 10**18)
    stewarded.contract.send.drop(dropped, sender=stewarded.council)
    with reverts("steward: was dropped"):
        stewarded.queue(Op.STAKE, 10**18)
    stewarded.change(Op.STAKE, 10**18, 1)
    with reverts("steward: was executed"):
        stewarded.queue(Op.STAKE, 10**18, 1)
    stewarded.change(Op.STAKE, 10**18, 2)
