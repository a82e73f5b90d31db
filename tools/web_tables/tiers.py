"""GPU tiers: the routing key of each model, and its memory (protocol.md "GPU tiers"; hearth/protocol/gpu_tiers.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.protocol import gpu_tiers


def tables() -> Mapping[str, Any]:
    """Return the models in the order of their keys."""
    return {
        "MODELS": [
            {"tier": model.tier, "slug": model.slug, "vramGib": model.vram_gib}
            for model in sorted(gpu_tiers.MODELS, key=lambda model: model.tier)
        ]
    }
