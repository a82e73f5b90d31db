"""The contracts of a market in the order of deployment, and what a network file holds (hearth/market/network.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from hearth.market.contracts import CONTRACTS
from hearth.market.network import PROTOCOL_VERSION, NodeParameters


def tables() -> Mapping[str, Any]:
    """Return what a network file must name."""
    return {
        "CONTRACTS": list(CONTRACTS),
        "NODE_PARAMETERS": [field.name for field in fields(NodeParameters)],
        "PROTOCOL_VERSION": PROTOCOL_VERSION,
    }
