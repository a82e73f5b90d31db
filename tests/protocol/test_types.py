"""A unit's lane `mark` is read by what it means in each state (protocol.md "Words")."""

from __future__ import annotations

import pytest

from hearth.protocol.types import State, Unit

MEANS = {
    State.OPEN: "window_end",
    State.RUNNING: "deadline_at",
    State.CLOSING: "deadline_at",
    State.SUBMITTED: "submitted_at",
    State.DISPUTED: "submitted_at",
    State.DISPUTED: "submitted_at",
    State.SETTLED: "submitted_at",
}


@pytest.mark.parametrize("state", State)
def test_unit__moments__are_the_states_own(state: State) -> None:
    unit = Unit(state=state, mark=1_000)
    found = {name: getattr(unit, name) for name in ("window_end", "deadline_at", "submitted_at")}
    assert found == {name: 1_000 if MEANS.get(state) == name else 0 for name in found}
