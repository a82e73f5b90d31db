"""What bounds a CAR file (SPEC, "Job spec"; hearth/storage/car.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.storage import car


def tables() -> Mapping[str, Any]:
    """Return the version, and the most of a header, of roots and of a section."""
    return {
        "VERSION": car.VERSION,
        "MAX_HEADER_BYTES": car.MAX_HEADER_BYTES,
        "MAX_ROOTS": car.MAX_ROOTS,
        "MAX_SECTION_BYTES": car.MAX_SECTION_BYTES,
    }
