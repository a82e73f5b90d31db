"""Zones and the classes of round trips between them (docs/GLOSSARY.md; hearth/protocol/zones.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.protocol import zones


def tables() -> Mapping[str, Any]:
    """Return the zones with their countries, the matrix of distances, and what people write for some countries."""
    return {
        "ZONES": [
            {"number": zone.number, "slug": zone.slug, "title": zone.title, "countries": sorted(zone.countries)}
            for zone in zones.ZONES
        ],
        "DISTANCE": zones.DISTANCE,
    }
