"""Words for outcomes, and bounds of what is said of times (hearth/client/views.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.client import views


def tables() -> Mapping[str, Any]:
    """Return the words by outcome; times are seconds."""
    return {
        "OUTCOME_WORDS": {int(outcome): words for outcome, words in views.OUTCOME_WORDS.items()},
        "YEAR_10000": views.YEAR_10000,
        "LONG_SECONDS": views.LONG_SECONDS,
    }
