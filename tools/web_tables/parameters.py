"""The unit of each parameter of new jobs and of nodes (hearth/client/governance/parameters.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.client.governance.parameters import NODE_UNITS, POLICY_UNITS
from tools.web_tables.words import camel


def tables() -> Mapping[str, Any]:
    """Return each unit by the parameter's name as the page has it."""
    return {
        "POLICY_UNITS": {camel(name): unit for name, unit in POLICY_UNITS.items()},
        "NODE_UNITS": dict(NODE_UNITS),
    }
