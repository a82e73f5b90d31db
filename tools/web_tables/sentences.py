"""Words for outcomes and for conditions, and bounds of what is said of times (hearth/client/views.py, parents.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.client import views
from hearth.client.job import parents


def tables() -> Mapping[str, Any]:
    """Return the words by outcome and by condition; times are seconds."""
    return {
        "OUTCOME_LABELS": {int(outcome): words for outcome, words in views.OUTCOME_LABELS.items()},
        "ASKED": {int(condition): words for condition, words in parents.ASKED.items()},
        "FINISHED": views.FINISHED,
        "YEAR_10000": views.YEAR_10000,
        "LONG_SECONDS": views.LONG_SECONDS,
    }
