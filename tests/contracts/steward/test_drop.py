"""Steward.drop: council or guardian take back what waits, for good."""

from __future__ import annotations

import pytest

from tests.kit.evm import reverts
from tests.kit.steward import DELAY, Op, Stewarded


@pytest.mark.parametrize("seat", ["council", "guardian"])
@pytest.mark.parametrize("op", Op)
def test_drop__each_seat__takes_back_each_change(stewarded: Stewarded, seat: str, op: Op) -> None:
    """The guardian may drop his own removal: he can keep everything as it is, and change nothing."""
    change = stewarded.queue(op, stewarded.word(op))
    receipt = stewarded.contract.send.drop(change, sender=getattr(stewarded, seat))
    assert receipt.event("ChangeDropped") == {"change": change}
    assert stewarded.state(change) == 1


def test_drop__anybody_else__reverts(stewarded: Stewarded) -> None:
    change = stewarded.queue(Op.STAKE, 10**18)
    for sender in (stewarded.world.deployer, stewarded.world.stranger):
        with reverts("steward: not council or guardian"):
            stewarded.contract.send.drop(change, sender=sender)


def test_drop__nothing_that_waits__reverts(stewarded: Stewarded) -> None:
    with reverts("steward: not queued"):
        stewarded.contract.send.drop(bytes(32), sender=stewarded.council)
    change = stewarded.queue(Op.STAKE, 10**18)
    stewarded.contract.send.drop(change, sender=stewarded.council)
    with reverts("steward: was dropped"):
        stewarded.contract.send.drop(change, sender=stewarded.guardian)
    stewarded.change(Op.STAKE, 10**18, 1)
    with reverts("steward: was executed"):
        stewarded.contract.send.drop(stewarded.id_of(Op.STAKE, 10**18, 1), sender=stewarded.guardian)


def test_drop__due_change_that_nobody_executed__is_gone(stewarded: Stewarded) -> None:
    change = stewarded.queue(Op.STAKE, 10**18)
    stewarded.world.evm.warp(DELAY + 1)
    stewarded.contract.send.drop(change, sender=stewarded.guardian)
    with reverts("steward: was dropped"):
        stewarded.execute(Op.STAKE, 10**18)
