"""Say what a look finds on this machine, each GPU by itself, and how long it takes (`sh bench/gpu_real.sh`)."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from hearth.client.nodes.manifests import figures_in_words
from hearth.protocol.gpu_tiers import NVIDIA
from worker.benchmark import FOLDER, PLATFORMS
from worker.doctor_gpus import rows_of
from worker.gpu.figures import Incapable, Unmeasured, read_lines, shortfalls
from worker.gpu.port import UNKNOWN, GpuInfo, GpuProbe
from worker.gpu.probing import DRIVERS, Looks

ROUNDS: Final = 20


def main(folder: Path) -> None:
    """Record what each vendor's driver answers in a folder, and look again and again."""
    for driver in DRIVERS:
        with (folder / f"{driver.program.rpartition('.')[2]}.json").open("wb") as answer:
            subprocess.run([sys.executable, "-m", driver.program], stdout=answer, check=False)
        looks, took = Looks(driver), []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            found = looks.probe()
            took.append(1_000 * (time.perf_counter() - began))
        print(f"{driver.vendor.title}: {found.driver or 'no driver'}; {found.reason or 'all answer'}")
        print(f"  a look: median {statistics.median(took):.0f} ms of {ROUNDS}, the longest {max(took):.0f} ms")
        for row in rows_of(found):
            print(f"  {row.name}: {row.level.value}: {row.detail}" + (f" ({row.fix})" if row.fix else ""))
        for gpu in found.gpus if driver.vendor is NVIDIA else ():
            print(f"  gpu {gpu.label} measured: {_measured(gpu)}")
        for what in _seen(found):
            print(f"  seen: {what}")


def _measured(gpu: GpuInfo) -> str:
    """Run the worker's program on a GPU, beside no sandbox; return what it said."""
    program = FOLDER / f"benchmark-{PLATFORMS[platform.machine()]}"
    environ = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu.uuid}
    said = subprocess.run([program, FOLDER / "kernels.ptx"], env=environ, capture_output=True, text=True, check=False)
    try:
        figures = read_lines(said.stdout, int(time.time()))
    except (Incapable, Unmeasured) as failed:
        return f"{failed}; {said.stdout!r}"
    return "; ".join((figures_in_words(figures), *shortfalls(gpu, figures), repr(said.stdout)))


def _seen(found: GpuProbe) -> list[str]:
    """Name what of a look tests only play."""
    said = {
        "a GPU that does not answer": bool(found.lost),
        "a driver that answers nobody": not found.answers and not found.absent,
        "a model that is not in the table": any(UNKNOWN in one.remarks for one in found.gpus),
        "a GPU that somebody uses": any(one.users for one in found.gpus),
        "a GPU that is unfit": any(one.defects for one in found.gpus),
        "GPUs of several models": len({one.name for one in found.gpus}) > 1,
        "a slice of a GPU": any(one.part is not None for one in found.gpus),
        "what an owner could do better": any(one.remarks for one in found.gpus),
    }
    return [what for what, is_so in said.items() if is_so]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
