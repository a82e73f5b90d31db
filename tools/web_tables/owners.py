"""What an owner's calls take, and what nodes say of themselves (hearth/client/prepared.py, market/manifest.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.client import prepared
from hearth.client.nodes.obstacles import START
from hearth.market import manifest
from hearth.protocol import types
from hearth.protocol.runtimes import RUNTIMES
from tools.web_tables import Big


def tables() -> Mapping[str, Any]:
    """Return gas of a call and of each byte beyond its arguments, the form of a manifest, and the runtimes by name."""
    return {
        "OWNER_GAS": Big(prepared.OWNER_GAS),
        "ARGUMENT_BYTES": prepared.ARGUMENT_BYTES,
        "BYTE_GAS": Big(prepared.BYTE_GAS),
        "MANIFEST_VERSION": manifest.VERSION,
        "MANIFEST_BYTES": manifest.MAX_BYTES,
        "MAX_STAKE": Big(types.MAX_STAKE),
        "START": START,
        "RUNTIME_NAMES": {name: int(kind.flag) for name, kind in RUNTIMES.items()},
    }
