"""How a job ends, and the end that another one waits for (protocol.md "Parents"; hearth/protocol/parents.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.protocol import parents


def tables() -> Mapping[str, Any]:
    """Return the enumerations by name; a condition's bits are those of the ends that count."""
    kinds = {"CONDITION": parents.Condition, "ENDED": parents.Ended, "PROGRESS": parents.Progress}
    return {name: {member.name: int(member) for member in kind} for name, kind in kinds.items()}
