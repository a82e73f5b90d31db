"""Why a contract refuses, and which command shows more (protocol/reasons.py, chain/port.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.chain import port
from hearth.protocol import reasons


def tables() -> Mapping[str, Any]:
    """Return the texts of reasons by number, of panics by code, and what else a reader of a revert's data needs.

    `HINTS` is by a whole reason, or by the part of it before its colon.
    """
    return {
        "REASONS": {number: {"name": one.name, "text": one.text} for number, one in reasons.REASONS.items()},
        "REFUSED": port._REFUSED,
        "ERROR": port._ERROR,
        "PANIC": port._PANIC,
        "PANICS": port._PANICS,
        "HINTS": port._HINTS,
    }
