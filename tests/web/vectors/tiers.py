"""The slug of every key of a GPU, and the key of every slug."""

from __future__ import annotations

from typing import Any

from hearth.protocol import gpu_tiers


def cases() -> dict[str, Any]:
    """Return slugs by key, and keys by slug, None for what is no slug."""
    slugs = [*gpu_tiers.TIERS, "tier-2", "RTX-4090", "", "__proto__", "constructor", "t4 "]
    return {
        "slugs": [gpu_tiers.slug_of(tier) for tier in range(gpu_tiers.MAX_TIER + 2)],
        "tiers": [{"in": slug, "out": gpu_tiers.TIERS.get(slug)} for slug in slugs],
    }
