"""hearth.client.job.checkpoints: what a job's attempts left, by its events."""

from __future__ import annotations

from typing import Any

import pytest

from hearth.client.job.checkpoints import checkpoints_in
from hearth.market.events import Checkpointed, CheckpointPaid, Reclaimed, Settled, Started
from hearth.protocol import words
from hearth.protocol.types import JobId, NodeId, State, Unit
from hearth.protocol.units import NATIVE

JOB = JobId(b"\xaa" * 32)
NODE = NodeId(3)
LOG: Any = None
"""No event here is looked up by its log."""


def word(state: State, attempts: int) -> int:
    return words.pack_unit(Unit(state=state, node=NODE, attempts=attempts))


LOST = (
    Started(LOG, JOB, 0, NODE, word(State.RUNNING, 1), bytes(32)),
    Checkpointed(LOG, JOB, 0, NODE, word(State.RUNNING, 1), 60, b"\x07" * 32),
    Reclaimed(LOG, JOB, 0, NODE, word(State.OPEN, 1)),
)
SETTLED = Settled(LOG, JOB, 0, NODE, word(State.SETTLED, 2), 10, 1)
PAID = CheckpointPaid(LOG, JOB, 0, NODE, 1, 5, 1)


@pytest.mark.parametrize(
    ("then", "kept", "pay"),
    [((), True, None), ((SETTLED,), False, None), ((PAID, SETTLED), True, "5"), ((SETTLED, PAID), True, "5")],
    ids=["open", "ended without it", "paid before", "paid after"],
)
def test_checkpoints_in__lost_attempt__is_kept_until_the_unit_ends_without_it(
    then: tuple[Any, ...], kept: bool, pay: str | None
) -> None:
    ((row,),) = checkpoints_in([*LOST, *then], NATIVE).values()
    assert (row["kept"], row["pay"]) == (kept, pay)
