"""Which characters a screen does not show, or shows in another order, as ranges (hearth/base/text.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hearth.base.text import UNSEEN


def tables() -> Mapping[str, Any]:
    """Return the ranges, first and last."""
    return {"UNSEEN": list(_unseen())}


def _unseen() -> Iterator[tuple[int, int]]:
    """Read the ranges off the class that the library's expression is."""
    text = UNSEEN.pattern[1:-1]
    at = 0
    while at < len(text):
        last = text[at + 2] if text[at + 1 : at + 2] == "-" else text[at]
        yield ord(text[at]), ord(last)
        at += 3 if text[at + 1 : at + 2] == "-" else 1
