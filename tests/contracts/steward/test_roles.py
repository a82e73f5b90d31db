"""Who may do what on a Steward: every function by every account, and every change by every account at every time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.kit.evm import Reverted
from tests.kit.steward import DELAY, LIFE, Op, Stewarded

SALT: Final = 9
Args = Callable[[Stewarded], tuple[Any, ...]]
FUNCTIONS: Final[dict[str, tuple[Args, frozenset[str]]]] = {
    "queue": (lambda s: (Op.STAKE, 10**18, SALT + 1), frozenset({"council"})),
    "drop": (lambda s: (s.id_of(Op.STAKE, 10**18, SALT),), frozenset({"council", "guardian"})),
    "drop_previous_policy": (lambda s: (), frozenset({"council", "guardian"})),
    "pause": (lambda s: (True, True), frozenset({"council", "guardian"})),
    "accept_council": (lambda s: (), frozenset({"offered"})),
    "execute": (lambda s: (Op.STAKE, 10**18, SALT), frozenset({"anyone"})),
    "accept_governor": (lambda s: (True, True), frozenset({"anyone"})),
}


def accounts(stewarded: Stewarded) -> dict[str, str]:
    """Return everybody who takes part; `offered` is offered the council's seat."""
    world = stewarded.world
    return {
        "council": stewarded.council,
        "guardian": stewarded.guardian,
        "offered": world.keeper,
        "deployer": world.deployer,
        "owner": world.owner,
        "stranger": world.stranger,
    }


def prepared(stewarded: Stewarded) -> Stewarded:
    """Let a change be due, the council's seat and both contracts' rights be offered."""
    world = stewarded.world
    stewarded.change(Op.COUNCIL, int(world.keeper, 16))
    for op in (Op.POSTS, Op.REGISTRATIONS):
        stewarded.change(op, int(stewarded.contract.address, 16))
    stewarded.queue(Op.STAKE, 10**18, SALT)
    world.evm.warp(DELAY)
    return stewarded


@pytest.mark.parametrize("name", FUNCTIONS)
def test_roles__each_function__is_for_those_that_the_table_names(stewarded: Stewarded, name: str) -> None:
    args, rightful = FUNCTIONS[name]
    prepared(stewarded)
    world = stewarded.world
    allowed = set()
    for role, account in accounts(stewarded).items():
        with world.evm.isolated():
            before = world.evm.state_hash()
            try:
                getattr(stewarded.contract.send, name)(*args(stewarded), sender=account)
            except Reverted as reverted:
                assert reverted.reason.startswith("steward: not"), reverted.reason
                assert world.evm.state_hash() == before
            else:
                allowed.add(role)
    assert allowed == (set(accounts(stewarded)) if "anyone" in rightful else rightful)


def test_roles__table__names_every_function_that_writes(stewarded: Stewarded) -> None:
    writing = {function.name for function in stewarded.contract.all_functions() if not function.is_view}
    assert writing == set(FUNCTIONS)


@pytest.mark.parametrize("after", [0, DELAY - 1, DELAY, DELAY + LIFE - 1, DELAY + LIFE])
@pytest.mark.parametrize("op", Op)
def test_roles__each_change_by_anybody__works_in_its_time_alone(stewarded: Stewarded, op: Op, after: int) -> None:
    world, word = stewarded.world, stewarded.word(op)
    stewarded.queue(op, word)
    world.evm.warp(after)
    done = []
    for account in accounts(stewarded).values():
        with world.evm.isolated():
            try:
                stewarded.execute(op, word, sender=account)
            except Reverted:
                continue
            done.append(account)
    assert len(done) == (len(accounts(stewarded)) if DELAY <= after < DELAY + LIFE else 0)
