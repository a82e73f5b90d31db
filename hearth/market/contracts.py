"""The one list of a market's contracts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CONTRACTS: Final[Mapping[str, str]] = {
    "Escrow": "escrow",
    "NodeRegistry": "nodes",
    "Rules": "rules",
    "JobRegistry": "jobs",
    "Lens": "lens",
    "Attesters": "attesters",
    "Steward": "steward",
}
"""Name -> short name (in labels of calls, constructors' parameters, `Network`), in the order of deployment: each needs
only those before it, by call."""
