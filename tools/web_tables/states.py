"""The enumerations of the chain's values, and the gates' words (hearth/protocol/types.py, hearth/client/gates.py)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, IntFlag
from typing import Any

from hearth.client.gates import FLEET_WORDS, PASSING
from hearth.protocol import types


def tables() -> Mapping[str, Any]:
    """Return the values of each enumeration by name, and what is said of a worker that a gate keeps out."""
    return {
        "STATE": _values(types.State),
        "OUTCOME": _values(types.Outcome),
        "BILLING": _values(types.Billing),
        "VERDICT": _values(types.Verdict),
        "STATUS": _values(types.Status),
        "GATE": _values(types.Gate),
        "RUNTIME": _values(types.Runtime),
        "TERMS_FLAG": _values(types.TermsFlag),
        "UNIT_FLAG": _values(types.UnitFlag),
        "NODE_FLAG": _values(types.NodeFlag),
        "GATE_WORDS": {gate: FLEET_WORDS[gate] for gate in sorted(FLEET_WORDS)},
        "PASSING_GATES": sorted(PASSING),
    }


def _values(enumeration: type[IntEnum] | type[IntFlag]) -> dict[str, int]:
    return {str(member.name): int(member) for member in enumeration}
