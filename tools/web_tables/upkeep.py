"""Upkeep as Lens takes it: its kinds by their numbers (hearth/market/calls.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.market.calls import UpkeepOp


def tables() -> Mapping[str, Any]:
    """Return the kinds of upkeep."""
    return {"UPKEEP": {one.name: int(one) for one in UpkeepOp}}
