"""What bounds a set of attesters and its file (protocol.md "Attesters"; hearth/client/judges/attester_files.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.client.judges import attester_files
from hearth.protocol import attest


def tables() -> Mapping[str, Any]:
    """Return the most keys of a set, the most bytes of its file, and what its refusals advise."""
    return {
        "MAX_KEYS": attest.MAX_KEYS,
        "MAX_SET_BYTES": attester_files.MAX_SET_BYTES,
        "SET_HINT": attester_files.SET_HINT,
    }
