"""What was measured of this machine's GPUs: kept in the worker's home, by GPU and driver."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hearth.base.files import replace_text
from hearth.base.text import one_line
from hearth.market.manifest import Figures, figures_of
from hearth.protocol.gpu_tiers import NVIDIA, model_of
from worker.gpu.port import GpuInfo

FILE: Final = "gpus.json"
MEASURED: Final = (NVIDIA,)
"""The vendors to whose drivers the program speaks."""
LINES: Final = {"memory": 1 << 20, "from_host": 10**6, "within": 10**6, "half": 10**9}
"""What the program prints, and by what a manifest counts it."""
REACH: Final = {7: 1.0, 8: 1.0, 9: 0.6, 12: 1.0}
"""The share of the published rate that one instruction for all generations reaches, by the first number of the compute
capability: on Hopper another one is faster. One that is not here is not judged. Source: NVIDIA's PTX manual, wgmma."""
MOST: Final = 120
"""Characters of what a program says that are told."""
LOW: Final = 0.5
"""Of what a tier's model has: below that its owner is told."""
SPARE_MIB: Final = 1024
"""Of memory that a driver and a program's context may take."""


class Unmeasured(Exception):
    """A GPU was not measured: the sentence on why."""


class Incapable(Exception):
    """No program computes with a GPU: the sentence on why, and whether it is the GPU that computes `wrong`."""

    def __init__(self, why: str, *, wrong: bool) -> None:
        super().__init__(why)
        self.wrong = wrong


@dataclass(frozen=True, slots=True)
class Measurement:
    """The figures of a GPU with a driver; `capability` is 89 for 8.9."""

    driver: str
    capability: int
    figures: Figures


def read_lines(text: str, driver: str, at: int) -> Measurement:
    """Return what the benchmark's program printed. Raises Incapable, Unmeasured."""
    said: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name in ("none", "wrong"):
            raise Incapable(one_line(value)[:MOST], wrong=name == "wrong")
        if name == "fault":
            raise Unmeasured(one_line(value)[:MOST])
        if name in said or name not in {"capability", *LINES} or not (value.isascii() and value.isdigit()):
            raise Unmeasured(f"its program said {line[:MOST]!r}")
        said[name] = int(value)
    told = {name: said[name] // unit for name, unit in LINES.items() if name in said}
    names = {"memory": "memory_mib", "from_host": "from_host_mb_s", "within": "memory_mb_s", "half": "half_gflops"}
    figures = figures_of({"at": at, **{names[name]: value for name, value in told.items()}})
    if figures is None or "capability" not in said:
        raise Unmeasured(f"its program said {sorted(said) or 'nothing'} alone")
    return Measurement(driver, said["capability"], figures)


def read_measured(home: Path) -> dict[str, Measurement]:
    """Return the measurements in a home by UUID; what is missing or damaged is measured anew."""
    try:
        told = json.loads((home / FILE).read_text(encoding="utf-8"))
        found = {uuid: _measurement(one) for uuid, one in told.items()}
    except (OSError, ValueError, AttributeError, TypeError, KeyError):
        return {}
    return {uuid: one for uuid, one in found.items() if one is not None}


def _measurement(told: Mapping[str, Any]) -> Measurement | None:
    figures = figures_of(told["figures"])
    return None if figures is None else Measurement(str(told["driver"]), int(told["capability"]), figures)


def keep_measured(home: Path, uuid: str, measured: Measurement) -> None:
    """Keep a GPU's measurement in place of an earlier one. Raises OSError."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = {**read_measured(home), uuid: measured}
    told = {
        name: {"driver": one.driver, "capability": one.capability, "figures": one.figures.document()}
        for name, one in found.items()
    }
    replace_text(home / FILE, json.dumps(told))


def measured_now(gpu: GpuInfo, measured: Mapping[str, Measurement]) -> Measurement | None:
    """Return a GPU's measurement with the driver that it has now, None where there is none."""
    found = measured.get(gpu.uuid)
    return found if found is not None and found.driver == gpu.driver else None


def lacking_figures(gpus: Iterable[GpuInfo], home: Path) -> list[GpuInfo]:
    """Return those of some GPUs that could be measured and have no figures in a home with their driver."""
    known = read_measured(home)
    return [gpu for gpu in gpus if gpu.vendor in MEASURED and measured_now(gpu, known) is None]


def figures_now(gpu: GpuInfo, measured: Mapping[str, Measurement]) -> Figures | None:
    """Return the figures alone."""
    found = measured_now(gpu, measured)
    return None if found is None else found.figures


def shortfalls(gpu: GpuInfo, measured: Measurement) -> list[str]:
    """Say what a GPU was measured to have far less of than its offer promises."""
    figures, model, found = measured.figures, model_of(gpu.vendor, gpu.tier), []
    reach = REACH.get(measured.capability // 10)
    if model is not None and reach is not None and figures.half_gflops is not None:
        wanted = model.tflops * reach
        if figures.half_gflops < LOW * wanted * 1_000:
            has = f"{figures.half_gflops / 1_000:.0f} TFLOP/s of the {wanted:.0f} that are usual for {model.slug}"
            found.append(f"it makes {has}: it may be hot, short of power, or used by somebody")
    if figures.memory_mib + SPARE_MIB < gpu.vram_gib << 10:
        found.append(f"a program gets {figures.memory_mib / 1024:.1f} GiB of the {gpu.vram_gib} that are offered")
    return found
