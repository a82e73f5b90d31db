"""The slug of every key of a GPU, and the key of every slug."""

from __future__ import annotations

from typing import Any

from hearth.protocol.gpu_tiers import MAX_TIER, TIERS, slug_of, vendor_of, vendor_of_slug
from hearth.protocol.types import Runtime


def cases() -> dict[str, Any]:
    """Return slugs by vendor and key, and keys by slug, None for what is no slug."""
    slugs = [*TIERS, "tier-2", "RTX-4090", "", "__proto__", "constructor", "t4 "]
    return {
        "slugs": [
            {"runtimes": int(flags), "slugs": [slug_of(vendor_of(flags), tier) for tier in range(MAX_TIER + 2)]}
            for flags in (Runtime.WASM, Runtime.DOCKER | Runtime.NVIDIA, Runtime.AMD | Runtime.JUROR, Runtime(4095))
        ],
        "tiers": [{"in": slug, "out": TIERS.get(slug), "vendor": _vendor(slug)} for slug in slugs],
    }


def _vendor(slug: str) -> str | None:
    vendor = vendor_of_slug(slug)
    return None if vendor is None else vendor.name
