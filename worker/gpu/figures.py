"""What was measured of this machine's GPUs: kept in the worker's home, a file for each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from hearth.base.errors import StorageError
from hearth.base.files import read_bounded, replace_text
from hearth.base.text import one_line
from hearth.market.manifest import Figures, figures_of
from hearth.protocol.gpu_tiers import NVIDIA, model_of
from hearth.storage import canonical
from worker.gpu.port import GpuInfo

FOLDER: Final = "gpus"
MEASURED: Final = (NVIDIA,)
"""The vendors to whose drivers the program speaks."""
REACH: Final = {7: 1.0, 8: 1.0, 9: 0.6, 12: 1.0}
"""The share of the published rate that one instruction for all generations reaches, by the first number of the compute
capability: on Hopper another one is faster. One that is not here is not judged. Source: NVIDIA's PTX manual, wgmma."""
LOW: Final = 0.5
"""Of what is usual for a tier's model: below that its owner is told."""
SPARE_MIB: Final = 1024
SPARE_SHARE: Final = 0.03
"""Of memory, what a driver, error correction and a program's context may take."""
MOST: Final = 120
"""Characters of what a program says that are told."""


class Unmeasured(Exception):
    """A GPU was not measured: the sentence on why."""


class Incapable(Exception):
    """No program computes with a GPU: the sentence on why, and whether it is the GPU that computes `wrong`."""

    def __init__(self, why: str, *, wrong: bool = False) -> None:
        super().__init__(why)
        self.wrong = wrong


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a benchmark found of a GPU with a driver: its figures, else why no program computes with it."""

    driver: str
    figures: Figures | None
    why: str = ""


def read_lines(text: str, at: int) -> Figures:
    """Return the figures that the benchmark's program printed, and then "done". Raises Incapable, Unmeasured."""
    said: dict[str, int] = {"at": at}
    *lines, last = text.splitlines() or [""]
    name, _, words = last.partition(" ")
    if name in ("none", "wrong"):
        raise Incapable(one_line(words)[:MOST], wrong=name == "wrong")
    if last != "done":
        raise Unmeasured(one_line(words)[:MOST] if name == "fault" else f"its program ended after {last[:MOST]!r}")
    for line in lines:
        name, _, words = line.partition(" ")
        if name in said or not (words.isascii() and words.isdigit() and len(words) < MOST):
            raise Unmeasured(f"its program said {line[:MOST]!r}")
        said[name] = int(words)
    figures = figures_of(said)
    if figures is None or said != asdict(figures):
        raise Unmeasured(f"its program said {', '.join(said)[:MOST]!r}, out of bounds")
    return figures


def keep_measured(home: Path, gpu: GpuInfo, measured: Measurement) -> None:
    """Keep what was found of a GPU in place of what was before. Raises OSError."""
    for folder in (home, home / FOLDER):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_text(_file(home, gpu), canonical.encode(asdict(measured)).decode())


def measured_now(gpu: GpuInfo, home: Path) -> Measurement | None:
    """Return what was found of a GPU with the driver that it has now, None for nothing, and for a damaged file."""
    try:
        told = canonical.decode(read_bounded(_file(home, gpu), canonical.MAX_DOCUMENT_BYTES))
        found = Measurement(told["driver"], figures_of(told["figures"]), one_line(told["why"])[:MOST])
    except (OSError, StorageError, LookupError, TypeError, AttributeError):
        return None
    whole = (found.figures is None) is bool(found.why)
    return found if whole and found.driver == gpu.driver else None


def lacking_figures(gpus: Iterable[GpuInfo], home: Path) -> list[GpuInfo]:
    """Return those of some GPUs that could be measured and have no figures with their driver."""
    found = [(gpu, measured_now(gpu, home)) for gpu in gpus if gpu.vendor in MEASURED]
    return [gpu for gpu, measured in found if measured is None or measured.figures is None]


def shortfalls(gpu: GpuInfo, figures: Figures) -> list[str]:
    """Say what a GPU was measured to have far less of than its offer promises."""
    model, reach, found = model_of(gpu.vendor, gpu.tier), REACH.get(gpu.compute[0]), []
    if model is not None and reach is not None:
        usual = model.tflops * reach
        if figures.half_gflops < LOW * usual * 1_000:
            has = f"{figures.half_gflops / 1_000:.0f} TFLOP/s of the {usual:.0f} that are usual for {model.slug}"
            found.append(f"it makes {has}: it may be hot, short of power, or used by somebody")
    if figures.memory_mib + SPARE_MIB < (gpu.vram_gib << 10) * (1 - SPARE_SHARE):
        found.append(f"a program gets {figures.memory_mib / 1024:.1f} GiB of the {gpu.vram_gib} that are offered")
    return found


def _file(home: Path, gpu: GpuInfo) -> Path:
    return home / FOLDER / f"{gpu.uuid}.json"
