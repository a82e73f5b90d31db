"""GPU vendors and their models: one routing key a model, and what to do with a model that is not in the table.

A key is 64 x log2 of the published rate of dense half-precision products that are summed in single precision, in
TFLOP/s: who asks for a model takes it or one whose key is higher. Models of one rate have neighbouring keys, the one
with more memory the higher. It is a routing key, not a benchmark; numbers never move once a market uses them. Source:
vendors' data sheets; protocol.md "GPU tiers".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from hearth.protocol.types import Runtime

VendorName = Literal["nvidia", "amd"]
"""A vendor as job files and their canonical documents spell it."""
GIB = 1 << 30
MAX_TIER = 1023
OTHER_TIER = 1
"""The key of every GPU that the table lacks, and of a part of one."""
VRAM_SLACK_PERCENT = 1


@dataclass(frozen=True, slots=True)
class GpuModel:
    """Describe one model: its key and slug, a regular expression that matches in full what its driver calls it (see
    Vendor), its rate in TFLOP/s, the GiB of memory that it leaves a program, and its generation."""

    tier: int
    slug: str
    pattern: str
    tflops: float
    vram_gib: int
    generation: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Vendor:
    """Who makes GPUs: the name in job files, the title in sentences, the bit of `runtimes`, and the models.

    NVIDIA's patterns match NVML's names without the words of brands, and a generation is a compute capability. AMD's
    match the PCI device and revision, and a generation is the version of the instruction set: gfx90a is (9, 0, 10).
    """

    name: VendorName
    title: str
    flag: Runtime
    models: tuple[GpuModel, ...]


_NVIDIA: Final = (
    GpuModel(267, "a2", r"A2", 18, 15, (8, 6)),
    GpuModel(268, "a16", r"A16", 18, 15, (8, 6)),
    GpuModel(269, "rtx-3050", r"RTX 3050", 18.2, 8, (8, 6)),
    GpuModel(299, "rtx-3060", r"RTX 3060", 25.5, 12, (8, 6)),
    GpuModel(311, "rtx-4060-laptop", r"RTX 4060 Laptop GPU", 29, 8, (8, 9)),
    GpuModel(315, "rtx-4060", r"RTX 4060", 30.2, 8, (8, 9)),
    GpuModel(320, "rtx-a2000", r"RTX A2000( 12GB)?", 31.9, 12, (8, 6)),
    GpuModel(321, "rtx-3060-ti", r"RTX 3060 Ti", 32.4, 8, (8, 6)),
    GpuModel(337, "rtx-5060", r"RTX 5060", 38.4, 8, (12, 0)),
    GpuModel(342, "rtx-3070", r"RTX 3070", 40.6, 8, (8, 6)),
    GpuModel(343, "rtx-5070-laptop", r"RTX 5070 Laptop GPU", 41, 8, (12, 0)),
    GpuModel(346, "jetson-orin", r"Orin \(nvgpu\)", 42.5, 61, (8, 7)),
    GpuModel(348, "rtx-3070-ti", r"RTX 3070 Ti", 43.5, 8, (8, 6)),
    GpuModel(350, "rtx-4060-ti", r"RTX 4060 Ti", 44.1, 8, (8, 9)),
    GpuModel(356, "rtx-5060-ti", r"RTX 5060 Ti", 47.4, 8, (12, 0)),
    GpuModel(368, "rtx-2080-ti", r"RTX 2080 Ti", 53.8, 11, (7, 5)),
    GpuModel(375, "rtx-4070", r"RTX 4070", 58.3, 12, (8, 9)),
    GpuModel(377, "rtx-3080", r"RTX 3080", 59.5, 10, (8, 6)),
    GpuModel(381, "rtx-5070", r"RTX 5070", 61.7, 12, (12, 0)),
    GpuModel(384, "rtx-5090-laptop", r"RTX 5090 Laptop GPU", 64, 24, (12, 0)),
    GpuModel(385, "t4", r"T4", 65, 15, (7, 5)),
    GpuModel(387, "rtx-4090-laptop", r"RTX 4090 Laptop GPU", 66, 16, (8, 9)),
    GpuModel(390, "rtx-pro-2000", r"RTX PRO 2000 Blackwell", 68, 16, (12, 0)),
    GpuModel(391, "rtx-3080-ti", r"RTX 3080 Ti", 68.2, 12, (8, 6)),
    GpuModel(392, "a10g", r"A10G", 70, 22, (8, 6)),
    GpuModel(394, "rtx-4070-super", r"RTX 4070 SUPER", 71, 12, (8, 9)),
    GpuModel(395, "rtx-3090", r"RTX 3090", 71.2, 24, (8, 6)),
    GpuModel(401, "rtx-a4000", r"RTX A4000", 76.7, 16, (8, 6)),
    GpuModel(405, "rtx-3090-ti", r"RTX 3090 Ti", 80, 24, (8, 6)),
    GpuModel(406, "rtx-4070-ti", r"RTX 4070 Ti", 80.2, 12, (8, 9)),
    GpuModel(413, "rtx-5070-ti", r"RTX 5070 Ti", 87.9, 16, (12, 0)),
    GpuModel(414, "rtx-4070-ti-super", r"RTX 4070 Ti SUPER", 88.2, 16, (8, 9)),
    GpuModel(420, "rtx-a4500", r"RTX A4500", 94.6, 20, (8, 6)),
    GpuModel(423, "rtx-4080", r"RTX 4080", 97.5, 16, (8, 9)),
    GpuModel(429, "rtx-4080-super", r"RTX 4080 SUPER", 104.4, 16, (8, 9)),
    GpuModel(431, "rtx-4000-ada", r"RTX 4000 Ada Generation", 106.9, 20, (8, 9)),
    GpuModel(435, "rtx-a5000", r"RTX A5000", 111.1, 24, (8, 6)),
    GpuModel(436, "rtx-5080", r"RTX 5080", 112.6, 16, (12, 0)),
    GpuModel(442, "l20", r"L20", 119.5, 45, (8, 9)),
    GpuModel(443, "l4", r"L4", 121, 22, (8, 9)),
    GpuModel(446, "a10", r"A10", 125, 22, (8, 6)),
    GpuModel(447, "v100", r"V100-.*", 125, 32, (7, 0)),
    GpuModel(448, "gb10", r"GB10", 125, 119, (12, 1)),
    GpuModel(450, "rtx-8000", r"RTX 8000", 130.5, 48, (7, 5)),
    GpuModel(461, "rtx-pro-4000", r"RTX PRO 4000 Blackwell", 147, 24, (12, 0)),
    GpuModel(462, "rtx-4090-d", r"RTX 4090 D", 147.1, 24, (8, 9)),
    GpuModel(463, "h20", r"H20", 148, 96, (9, 0)),
    GpuModel(464, "a40", r"A40", 149.7, 45, (8, 6)),
    GpuModel(466, "rtx-a6000", r"RTX A6000", 154.8, 48, (8, 6)),
    GpuModel(471, "a30", r"A30", 165, 24, (8, 0)),
    GpuModel(472, "rtx-4090", r"RTX 4090", 165.2, 24, (8, 9)),
    GpuModel(480, "l40", r"L40", 181, 45, (8, 9)),
    GpuModel(493, "rtx-5090-d", r"RTX 5090 D", 209.4, 32, (12, 0)),
    GpuModel(494, "rtx-5090", r"RTX 5090", 209.5, 32, (12, 0)),
    GpuModel(495, "rtx-pro-4500", r"RTX PRO 4500 Blackwell", 211, 32, (12, 0)),
    GpuModel(513, "rtx-pro-5000", r"RTX PRO 5000 Blackwell", 258, 48, (12, 0)),
    GpuModel(514, "jetson-thor", r"Thor", 258, 122, (11, 0)),
    GpuModel(515, "rtx-5000-ada", r"RTX 5000 Ada Generation", 261.1, 32, (8, 9)),
    GpuModel(530, "a100-40gb", r"A100-(SXM4|PCIE)-40GB|A800 40GB Active", 312, 40, (8, 0)),
    GpuModel(531, "a100-64gb", r"A100-SXM-64GB", 312, 64, (8, 0)),
    GpuModel(532, "a100-80gb", r"A[18]00-SXM4-80GB|A100-PCIE-80GB|A[18]00 80GB PCIe|A100X|PG509-210", 312, 80, (8, 0)),
    GpuModel(544, "l40s", r"L40S", 362.1, 45, (8, 9)),
    GpuModel(545, "rtx-6000-ada", r"RTX 6000 Ada Generation", 364.2, 48, (8, 9)),
    GpuModel(562, "rtx-pro-6000-max-q", r"RTX PRO 6000 Blackwell Max-Q Workstation Edition", 438.9, 96, (12, 0)),
    GpuModel(568, "rtx-pro-6000-server", r"RTX PRO 6000 Blackwell Server Edition", 468, 96, (12, 0)),
    GpuModel(575, "rtx-pro-6000", r"RTX PRO 6000 Blackwell Workstation Edition", 503.8, 96, (12, 0)),
    GpuModel(612, "h100-pcie", r"H[18]00 PCIe", 756, 80, (9, 0)),
    GpuModel(621, "h100-nvl", r"H100 NVL", 835, 94, (9, 0)),
    GpuModel(637, "h100", r"H100 80GB HBM3|H800", 989, 80, (9, 0)),
    GpuModel(638, "gh200", r"GH200 .+", 989, 96, (9, 0)),
    GpuModel(639, "h200", r"H200( NVL)?", 989, 141, (9, 0)),
    GpuModel(689, "b100", r"B100", 1750, 180, (10, 0)),
    GpuModel(713, "b200", r"B200", 2250, 180, (10, 0)),
    GpuModel(722, "gb200", r"GB200", 2500, 185, (10, 0)),
    GpuModel(723, "b300", r"B300( .+)?", 2500, 267, (10, 3)),
    GpuModel(724, "gb300", r"GB300", 2500, 277, (10, 3)),
)
_AMD: Final = (
    GpuModel(428, "rx-7900-xt", r"744c:cc", 103, 19, (11, 0, 0)),
    GpuModel(444, "w7900", r"7448:00|7449:00", 122.6, 44, (11, 0, 0)),
    GpuModel(445, "rx-7900-xtx", r"744c:c8", 122.8, 23, (11, 0, 0)),
    GpuModel(459, "rx-9070", r"7550:c3", 144.5, 15, (12, 0, 1)),
    GpuModel(480, "mi210", r"740f:02", 181, 63, (9, 0, 10)),
    GpuModel(481, "mi250", r"740c:01", 181, 63, (9, 0, 10)),
    GpuModel(485, "r9700", r"7551:c0", 191, 31, (12, 0, 1)),
    GpuModel(486, "mi250x", r"7408:00", 191.5, 63, (9, 0, 10)),
    GpuModel(487, "rx-9070-xt", r"7550:c0", 194.6, 15, (12, 0, 1)),
    GpuModel(636, "mi300a", r"74a0:00", 980.6, 127, (9, 4, 2)),
    GpuModel(663, "mi300x", r"74(a1|a9|b5):00", 1307.4, 191, (9, 4, 2)),
    GpuModel(664, "mi325x", r"74(a5|b9):00", 1307.4, 255, (9, 4, 2)),
    GpuModel(715, "mi350x", r"75a0:00", 2306.9, 287, (9, 5, 0)),
    GpuModel(723, "mi355x", r"75a3:00", 2516.6, 287, (9, 5, 0)),
)

NVIDIA: Final = Vendor("nvidia", "NVIDIA", Runtime.NVIDIA, _NVIDIA)
AMD: Final = Vendor("amd", "AMD", Runtime.AMD, _AMD)
VENDORS: Final[Mapping[str, Vendor]] = MappingProxyType({vendor.name: vendor for vendor in (NVIDIA, AMD)})
"""Every vendor by its name; the first is that of a job that names none."""

TIERS: Final[Mapping[str, int]] = MappingProxyType(
    {model.slug: model.tier for vendor in VENDORS.values() for model in vendor.models}
)
"""Slug -> key, as `resources.gpu.tier` of a job spec names them."""

_SLUGS: Final = {
    vendor.name: MappingProxyType({model.tier: model.slug for model in vendor.models}) for vendor in VENDORS.values()
}
_BRAND: Final = re.compile(r"^(NVIDIA |Tesla |GeForce |Quadro |Graphics Device )+")
_PART: Final = re.compile(r"MIG [0-9]|-[0-9]+(A|B4?|C|CME|Q)$|^GRID ")
"""What NVIDIA's driver calls a part of a GPU: a MIG slice, or a vGPU."""


def vendor_of(runtimes: Runtime) -> Vendor | None:
    """Return whose GPUs a job or an offer with these runtimes means, None for nobody's."""
    return next((vendor for vendor in VENDORS.values() if vendor.flag & runtimes), None)


def vendor_of_slug(slug: str) -> Vendor | None:
    """Return who makes a model, None for a slug that is not in the table."""
    return next((vendor for vendor in VENDORS.values() if any(model.slug == slug for model in vendor.models)), None)


def slug_of(vendor: Vendor | None, tier: int) -> str:
    """Return the slug of a vendor's key, or `tier-N` for one without a model of its own."""
    return _SLUGS[vendor.name].get(tier, f"tier-{tier}") if vendor is not None else f"tier-{tier}"


def model_of(vendor: Vendor, tier: int) -> GpuModel | None:
    """Return the model whose key this is, or None."""
    return next((model for model in vendor.models if model.tier == tier), None)


def find_model(vendor: Vendor, name: str) -> GpuModel | None:
    """Return the model of what a driver calls a GPU, such as "NVIDIA GeForce RTX 4090" or "744c:c8", or None."""
    bare = _BRAND.sub("", name.strip())
    return next((model for model in vendor.models if re.fullmatch(model.pattern, bare)), None)


def tier_of(vendor: Vendor, name: str) -> int:
    """Return the routing key of a GPU from what its driver calls it.

    A part of a GPU, and a model that is not in the table, get OTHER_TIER: their memory decides. Each guess was too high
    for some card, whose owner was then paid for a better one.
    """
    model = None if is_part(name) else find_model(vendor, name)
    return OTHER_TIER if model is None else model.tier


def is_part(name: str) -> bool:
    """Tell whether this is what NVIDIA's driver calls a part of a GPU."""
    return bool(_PART.search(name.strip()))


def vram_gib(total_bytes: int) -> int:
    """Return whole GiB of memory as an offer states them: rounded down, but a card within 1 % of the next GiB has it.

    Drivers keep a little for themselves: a 24 GiB card reports 24,564 MiB, and must match a job that asks for 24 GiB.
    """
    return (total_bytes * 100 // (100 - VRAM_SLACK_PERCENT)) // GIB
