"""GPU tiers: the routing key of each model, and its memory (protocol.md "GPU tiers"; hearth/protocol/gpu_tiers.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.protocol import gpu_tiers


def tables() -> Mapping[str, Any]:
    """Return the key of a model that is not listed, the vendors with their bits of `runtimes`, and models by key."""
    vendors = gpu_tiers.VENDORS.values()
    return {
        "OTHER_TIER": gpu_tiers.OTHER_TIER,
        "VENDORS": [{"name": one.name, "title": one.title, "flag": int(one.flag)} for one in vendors],
        "MODELS": [
            {"vendor": vendor.name, "tier": model.tier, "slug": model.slug, "vramGib": model.vram_gib}
            for vendor in vendors
            for model in vendor.models
        ],
    }
