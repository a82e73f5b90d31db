"""The enumerations of the chain's values, and words for them (hearth/protocol/state_labels.py, client/job/gates.py)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, IntFlag
from typing import Any

from hearth.client.job.gates import FLEET_LABELS, GATE_SENTENCES, PASSING
from hearth.protocol import state_labels, types


def tables() -> Mapping[str, Any]:
    """Return the values of each enumeration by name, and what people read of them and of a closed gate."""
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
        "FLEET_LABELS": {gate: FLEET_LABELS[gate] for gate in sorted(FLEET_LABELS)},
        "GATE_SENTENCES": {gate: GATE_SENTENCES[gate] for gate in sorted(GATE_SENTENCES)},
        "PASSING_GATES": sorted(PASSING),
        "STATE_LABELS": {int(state): word for state, word in state_labels.STATE_LABELS.items()},
        "JOB_LABELS": list(state_labels.JOB_LABELS),
        "STATUS_LABELS": {int(status): word for status, word in state_labels.STATUS_LABELS.items()},
        "END_LABELS": dict(state_labels.END_LABELS),
        "DONE": state_labels.DONE,
        "FAILED": state_labels.FAILED,
    }


def _values(enumeration: type[IntEnum] | type[IntFlag]) -> dict[str, int]:
    return {str(member.name): int(member) for member in enumeration}
