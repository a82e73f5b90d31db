"""The version of CAR files that are written (commands.md "Files of blocks, and gateways"; hearth/storage/car.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.storage import car


def tables() -> Mapping[str, Any]:
    """Return the version."""
    return {"VERSION": car.VERSION}
