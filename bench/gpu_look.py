"""Measure what a look at this machine's GPUs costs, on the driver that the tests play (`make bench-gpu-look`).

A look is a process of its own that asks NVML. An attempt with GPUs has one before its ack and one before its start; an
idle worker has one a minute. Written to bench/results/gpu_look.json; times are reported, never asserted.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final
from unittest import mock

import click

from bench.bench_match import machine
from tests.kit.played_gpu import card, played_machine
from worker.gpu.nvidia import DRIVER
from worker.gpu.probing import Looks

OUT: Final = Path(__file__).parent / "results" / "gpu_look.json"


def timed(act: Callable[[], object], rounds: int) -> dict[str, float]:
    """Return the median milliseconds of an act by the clock, and the mean of a core's time in its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        act()
        took.append(1_000 * (time.perf_counter() - began))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"ms": round(statistics.median(took), 1), "core_ms": round(1_000 * used / rounds, 1)}


@click.command()
@click.option("--rounds", default=40, show_default=True, help="Looks, one after another.")
def main(rounds: int) -> None:
    """Compare a look with a Python that does nothing, and write both."""
    looks = Looks(DRIVER)
    with played_machine(card(), card()) as played, mock.patch.dict(os.environ, played.environ):
        assert len(looks.probe().gpus) == 2
        look = timed(looks.probe, rounds)
    nothing = timed(lambda: subprocess.run([sys.executable, "-P", "-c", "pass"], check=True), rounds)
    found = {"machine": machine(), "rounds": rounds, "look": look, "python": nothing}
    OUT.write_text(json.dumps(found, indent=2) + "\n")
    click.echo(f"a look: {look}; a Python that does nothing: {nothing}")


if __name__ == "__main__":
    main()
