"""What a job's attempts left for the next ones, and what came of it: by its events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hearth.client.views import state_cid
from hearth.market.events import Cancelled, Checkpointed, CheckpointPaid, Expired, GaveUp, NodeUnitEvent, Reclaimed
from hearth.protocol import words
from hearth.protocol.types import SENTINEL, State
from hearth.protocol.units import show_amount

if TYPE_CHECKING:
    from hearth.client.reports import CheckpointRow, PaidCheckpoint
    from hearth.market.events import Event
    from hearth.protocol.units import Asset


def checkpoints_in(events: Iterable[Event], asset: Asset) -> dict[int, list[CheckpointRow]]:
    """Return by unit the last checkpoint of each attempt that has one, oldest attempt first.

    It is kept once the attempt is lost and its unit open again, and paid for once a result that was made of it is
    settled. What no result was made of is kept no more once the unit has ended.
    """
    found: defaultdict[int, dict[int, CheckpointRow]] = defaultdict(dict)
    ended: set[int] = set()
    for event in events:
        if isinstance(event, NodeUnitEvent | Cancelled | Expired) and event.index != SENTINEL:
            unit = words.unpack_unit(event.word)
            (ended.add if unit.state.terminal else ended.discard)(event.index)
        if isinstance(event, Checkpointed):
            unit = words.unpack_unit(event.word)
            found[event.index][unit.attempts] = {
                "attempt": unit.attempts,
                "node": event.node,
                "seconds": event.seconds,
                "root": state_cid(event.root),
                "resumed_from": unit.resume or None,
                "kept": False,
                "pay": None,
                "fee": None,
                "earned_text": None,
            }
        elif isinstance(event, Reclaimed | GaveUp):
            unit = words.unpack_unit(event.word)
            row = found[event.index].get(unit.attempts)
            if row is not None and unit.state is State.OPEN:
                row["kept"] = True
        elif isinstance(event, CheckpointPaid):
            row = found[event.index].get(event.attempt)
            if row is not None:
                row |= {"pay": str(event.pay), "fee": str(event.fee)}
                row["earned_text"] = show_amount(event.pay - event.fee, asset)
    for index in ended & found.keys():
        for row in found[index].values():
            row["kept"] = row["kept"] and row["pay"] is not None
    return {index: [row for _, row in sorted(rows.items())] for index, rows in found.items() if rows}


def paid_in(events: Iterable[Event]) -> list[PaidCheckpoint]:
    """Return what was paid for checkpoints, in the order of their payment."""
    return [
        {
            "unit": event.index,
            "attempt": event.attempt,
            "node": event.node,
            "pay": str(event.pay),
            "fee": str(event.fee),
        }
        for event in events
        if isinstance(event, CheckpointPaid)
    ]
