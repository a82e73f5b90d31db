"""What a GPU is to the rest of the worker, whoever made it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

GPU_UUID: Final = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


@dataclass(frozen=True)
class GpuInfo:
    """Describe one GPU. `problems` are reasons not to give it to a job now; empty means it is fit.

    What the driver does not say is None, or a problem where a job depends on it: never a zero. `processes` are those
    that use it, None where nobody can say.
    """

    index: int
    name: str
    uuid: str
    vram_bytes: int
    vram_gib: int
    tier: int
    slug: str
    compute: tuple[int, int]
    driver: str
    ecc_enabled: bool | None
    processes: tuple[tuple[int | None, int | None], ...] | None
    problems: tuple[str, ...]


@dataclass(frozen=True)
class GpuProbe:
    """Hold what was found: the GPUs, and why there are none or fewer than expected."""

    gpus: tuple[GpuInfo, ...]
    driver: str = ""
    reason: str = ""
