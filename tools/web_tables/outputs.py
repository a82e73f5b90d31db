"""What one unit may leave: entries of its outputs, bytes of each of its logs (hearth/protocol/runtimes.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.protocol.runtimes import MAX_LOG_BYTES, MAX_OUTPUT_ENTRIES


def tables() -> Mapping[str, Any]:
    """Return the bounds of who reads a result."""
    return {"MAX_OUTPUT_ENTRIES": MAX_OUTPUT_ENTRIES, "MAX_LOG_BYTES": MAX_LOG_BYTES}
