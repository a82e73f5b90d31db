"""What bounds a canonical document (protocol.md "Result and report"; hearth/storage/canonical.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.storage import canonical


def tables() -> Mapping[str, Any]:
    """Return the bytes of a document, and its nesting."""
    return {
        "MAX_DOCUMENT_BYTES": canonical.MAX_DOCUMENT_BYTES,
        "MAX_DEPTH": canonical.MAX_DEPTH,
    }
