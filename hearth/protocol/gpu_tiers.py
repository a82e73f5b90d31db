"""The GPU tier table: one routing key per model, and what to do with a model that is not in it.

The key orders models by what they do for dense half-precision work, memory as tie-break: a job that asks for a tier
takes that one or a higher one. It is a routing key, not a benchmark; numbers never move once a market uses them, new
models take the gaps. Source: vendors' data sheets; protocol.md "GPU tiers".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

GIB = 1 << 30
MAX_TIER = 63
NO_GPU = 0
OLDER_TIER = 1
"""The key of every GPU older than the table's oldest generation, and of one that says nothing of itself."""
VRAM_SLACK_PERCENT = 1


@dataclass(frozen=True, slots=True)
class GpuModel:
    """Describe one model: its key, slug, the regular expression that its NVML name matches in full (without vendor and
    brand words), nominal memory in GiB and compute capability."""

    tier: int
    slug: str
    pattern: str
    vram_gib: int
    compute: tuple[int, int]


MODELS: tuple[GpuModel, ...] = (
    GpuModel(3, "t4", r"T4", 15, (7, 5)),
    GpuModel(4, "rtx-3060", r"RTX 3060", 12, (8, 6)),
    GpuModel(5, "rtx-4060", r"RTX 4060", 8, (8, 9)),
    GpuModel(6, "rtx-3060-ti", r"RTX 3060 Ti", 8, (8, 6)),
    GpuModel(7, "rtx-a4000", r"RTX A4000", 16, (8, 6)),
    GpuModel(8, "rtx-3070", r"RTX 3070", 8, (8, 6)),
    GpuModel(9, "rtx-3070-ti", r"RTX 3070 Ti", 8, (8, 6)),
    GpuModel(10, "rtx-4060-ti", r"RTX 4060 Ti", 8, (8, 9)),
    GpuModel(11, "rtx-5060", r"RTX 5060", 8, (12, 0)),
    GpuModel(12, "rtx-5060-ti", r"RTX 5060 Ti", 8, (12, 0)),
    GpuModel(13, "rtx-a5000", r"RTX A5000", 24, (8, 6)),
    GpuModel(14, "rtx-3080", r"RTX 3080", 10, (8, 6)),
    GpuModel(15, "l4", r"L4", 22, (8, 9)),
    GpuModel(16, "rtx-4070", r"RTX 4070", 12, (8, 9)),
    GpuModel(17, "a10", r"A10G?", 22, (8, 6)),
    GpuModel(18, "rtx-3080-ti", r"RTX 3080 Ti", 12, (8, 6)),
    GpuModel(19, "rtx-3090", r"RTX 3090", 24, (8, 6)),
    GpuModel(20, "rtx-4070-super", r"RTX 4070 SUPER", 12, (8, 9)),
    GpuModel(21, "rtx-a6000", r"RTX A6000", 48, (8, 6)),
    GpuModel(22, "a40", r"A40", 45, (8, 6)),
    GpuModel(23, "rtx-3090-ti", r"RTX 3090 Ti", 24, (8, 6)),
    GpuModel(24, "rtx-4070-ti", r"RTX 4070 Ti", 12, (8, 9)),
    GpuModel(25, "rtx-5070", r"RTX 5070", 12, (12, 0)),
    GpuModel(26, "rtx-4070-ti-super", r"RTX 4070 Ti SUPER", 16, (8, 9)),
    GpuModel(27, "rtx-4080", r"RTX 4080", 16, (8, 9)),
    GpuModel(28, "rtx-4080-super", r"RTX 4080 SUPER", 16, (8, 9)),
    GpuModel(29, "rtx-5070-ti", r"RTX 5070 Ti", 16, (12, 0)),
    GpuModel(30, "rtx-5080", r"RTX 5080", 16, (12, 0)),
    GpuModel(32, "rtx-4090", r"RTX 4090( D)?", 24, (8, 9)),
    GpuModel(34, "l40", r"L40", 45, (8, 9)),
    GpuModel(35, "rtx-6000-ada", r"RTX 6000 Ada Generation", 48, (8, 9)),
    GpuModel(36, "l40s", r"L40S", 45, (8, 9)),
    GpuModel(38, "rtx-5090", r"RTX 5090( D)?", 32, (12, 0)),
    GpuModel(39, "rtx-pro-6000", r"RTX PRO 6000 Blackwell.*", 96, (12, 0)),
    GpuModel(41, "a100-40gb", r"A100-(SXM4|PCIE)-40GB", 40, (8, 0)),
    GpuModel(42, "a100-80gb", r"A100-SXM4-80GB|A100 80GB PCIe", 80, (8, 0)),
    GpuModel(46, "h100", r"H100( .+)?", 80, (9, 0)),
    GpuModel(49, "h200", r"H200( .+)?", 141, (9, 0)),
    GpuModel(50, "gh200", r"GH200( .+)?", 96, (9, 0)),
    GpuModel(54, "b100", r"B100( .+)?", 180, (10, 0)),
    GpuModel(56, "b200", r"B200( .+)?", 180, (10, 0)),
    GpuModel(58, "gb200", r"GB200( .+)?", 185, (10, 0)),
)

TIERS: Mapping[str, int] = MappingProxyType({model.slug: model.tier for model in MODELS})
"""Slug -> key, as `resources.gpu.tier` of a job spec names them."""

_SLUGS = {model.tier: model.slug for model in MODELS}
_BRAND = re.compile(r"^(NVIDIA |Tesla |GeForce |Quadro |Graphics Device )+")


def slug_of(tier: int) -> str:
    """Return the slug of a key, or `tier-N` for one without a model of its own."""
    return _SLUGS.get(tier, f"tier-{tier}")


def find_model(name: str) -> GpuModel | None:
    """Return the model of an NVML product name such as "NVIDIA GeForce RTX 4090", or None (laptop parts too)."""
    bare = _BRAND.sub("", name.strip())
    return next((model for model in MODELS if re.fullmatch(model.pattern, bare)), None)


def tier_of(name: str, vram_gib: int, compute: tuple[int, int]) -> int:
    """Return the routing key of a GPU from its name, memory and compute capability.

    A name that is not in the table gets the weakest known model of its generation (the nearest compute capability at
    or below its own) that has at least its memory; with more memory than any of them, the weakest of the largest.
    """
    model = find_model(name)
    if model is not None:
        return model.tier
    generations = [known.compute for known in MODELS if known.compute <= compute]
    if not generations:
        return OLDER_TIER
    peers = [known for known in MODELS if known.compute == max(generations)]
    enough = [known for known in peers if known.vram_gib >= vram_gib]
    largest = max(known.vram_gib for known in peers)
    return min(known.tier for known in (enough or [known for known in peers if known.vram_gib == largest]))


def vram_gib(total_bytes: int) -> int:
    """Return whole GiB of memory as an offer states them: rounded down, but a card within 1 % of the next GiB has it.

    Drivers keep a little for themselves: a 24 GiB card reports 24,564 MiB, and must match a job that asks for 24 GiB.
    """
    return (total_bytes * 100 // (100 - VRAM_SLACK_PERCENT)) // GIB
