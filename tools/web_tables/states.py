"""The enumerations of the chain's values, and words for them (hearth/protocol/state_words.py, client/job/gates.py)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, IntFlag
from typing import Any

from hearth.client.job.gates import FLEET_WORDS, GATE_SENTENCES, PASSING
from hearth.protocol import state_words, types


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
        "FLEET_WORDS": {gate: FLEET_WORDS[gate] for gate in sorted(FLEET_WORDS)},
        "GATE_SENTENCES": {gate: GATE_SENTENCES[gate] for gate in sorted(GATE_SENTENCES)},
        "PASSING_GATES": sorted(PASSING),
        "STATE_WORDS": {int(state): word for state, word in state_words.STATE_WORDS.items()},
        "JOB_WORDS": list(state_words.JOB_WORDS),
        "STATUS_WORDS": {int(status): word for status, word in state_words.STATUS_WORDS.items()},
        "END_WORDS": dict(state_words.END_WORDS),
        "DONE": state_words.DONE,
        "FAILED": state_words.FAILED,
    }


def _values(enumeration: type[IntEnum] | type[IntFlag]) -> dict[str, int]:
    return {str(member.name): int(member) for member in enumeration}
