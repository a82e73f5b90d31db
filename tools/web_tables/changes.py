"""What a market's Steward may be asked for, and its times in seconds (hearth/market/changes.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.market import changes


def tables() -> Mapping[str, Any]:
    """Return the operations by name, the states of a change that is over, and times in seconds."""
    return {
        "CHANGE_OP": {op.name: int(op) for op in changes.ChangeOp},
        "ADDRESS_OPS": [int(op) for op in changes.ChangeOp if op.names_an_address],
        "OFFERS": {int(op): op.offers for op in changes.ChangeOp if op.offers},
        "GOVERNED": changes.GOVERNED,
        "DROPPED": changes.DROPPED,
        "EXECUTED": changes.EXECUTED,
        "LIFE": changes.LIFE,
        "POLICY_GRACE": changes.POLICY_GRACE,
        "PAUSE_TIME": changes.PAUSE_TIME,
        "PAUSE_EVERY": changes.PAUSE_EVERY,
    }
