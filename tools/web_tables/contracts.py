"""The contracts of a market in the order of deployment, their code, and what a network file holds
(hearth/market/network.py). CODES are bytes and keccak of the runtime code that stands before a contract's immutables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from eth_utils.crypto import keccak

from hearth.market.abi import artifact
from hearth.market.contracts import CONTRACTS
from hearth.market.network import PROTOCOL_VERSION, NodeParameters


def tables() -> Mapping[str, Any]:
    """Return what a network file must name."""
    return {
        "CONTRACTS": list(CONTRACTS),
        "CODES": {name: _code(name) for name in CONTRACTS},
        "NODE_PARAMETERS": [field.name for field in fields(NodeParameters)],
        "PROTOCOL_VERSION": PROTOCOL_VERSION,
    }


def _code(name: str) -> dict[str, Any]:
    made = artifact(name)
    return {"bytes": made.runtime_size, "hash": f"0x{keccak(made.runtime).hex()}"}
