"""What bounds a result and a report that are read (commands.md "Reading results"; hearth/client/job/results.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.client.job import results


def tables() -> Mapping[str, Any]:
    """Return the characters of a report's texts, and the first second that is too late to be believed."""
    return {"MAX_DETAIL": results.MAX_DETAIL, "FAR_MOMENT": results.FAR_MOMENT}
