"""What Hearth adds to the work itself: a worker's start, a container, a gibibyte in and out.

Worker: from the start of its process until the chain has its first beat, the chain mining each transaction at once.
Container: a unit in the worker's container runtime beside the bare container of the same image and command, by the same
engine, in turns. Data: an attempt that fetches an input, copies it inside the WebAssembly sandbox and stores the
output, and the most resident memory of the worker's process and of its sandbox. Written to bench/results/overhead.json
with the machine's description; absolute times are reported, never asserted. `bench.bench_wasm` has the same of a
WebAssembly unit, over the bare engine. The container needs an engine and its test image (make services-up).
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bench.bench_match import machine
from tests.kit.exchange import Exchange
from tests.worker.attempt.copying import measured
from tests.worker.runtimes.engines import BUSYBOX, HOST, rules, runtime_of
from worker.runtimes.base import OutputRule, RunRequest, SandboxLimits

OUT = Path(__file__).parent / "results" / "overhead.json"
COMMAND = ("true",)
LOOK = 0.005
"""Seconds between two looks at the chain."""


def first_beats(rounds: int) -> list[tuple[float, float]]:
    """Start a worker again and again; return the seconds until its first beat, and those of a processor until then."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        exchange = Exchange(Path(folder))
        try:
            exchange.chain.rpc("evm_setIntervalMining", 0)
            exchange.chain.rpc("evm_setAutomine", True)
            for number in range(rounds):
                scenario = exchange.scenario(f"beat{number}")
                before = exchange.market.last_seen(scenario.node)
                began = time.monotonic()
                scenario.start()
                try:
                    while exchange.market.last_seen(scenario.node) == before:
                        if time.monotonic() > began + 60:
                            raise click.ClickException(f"no beat within 60 s\n{scenario.log()[-2000:]}")
                        time.sleep(LOOK)
                    assert scenario.process is not None
                    found.append((time.monotonic() - began, processor_seconds(scenario.process.pid)))
                finally:
                    scenario.stop()
        finally:
            exchange.close()
    return found


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken so far, user and system."""
    # The name of the program, in brackets, may hold spaces; utime and stime are fields 14 and 15 of proc(5).
    after = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(after[11]) + int(after[12])) / os.sysconf("SC_CLK_TCK")


def timed(work: Callable[[], None]) -> float:
    """Return the seconds that a piece of work takes."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


def containers(root: Path, rounds: int) -> list[tuple[float, float]]:
    """Return the seconds of a bare container and of a unit with the same image and command, in turns."""
    import docker

    runtime = runtime_of(rules())
    client = docker.DockerClient(base_url=HOST)

    def bare() -> None:
        client.containers.run(BUSYBOX, list(COMMAND), remove=True)

    def unit() -> None:
        folder = Path(tempfile.mkdtemp(dir=root))
        for name in ("in", "job", "out"):
            (folder / name).mkdir(mode=0o700)
        result = runtime.run(
            RunRequest(
                unit="bench",
                command=COMMAND,
                job_dir=folder / "job",
                in_dir=folder / "in",
                out_dir=folder / "out",
                limits=SandboxLimits(wall_seconds=60, memory_bytes=64 << 20),
                image=BUSYBOX,
                outputs=(OutputRule("/out", required=False),),
            ),
            threading.Event(),
        )
        if not result.ok:
            raise click.ClickException(f"{result.status}: {result.detail}")

    try:
        unit()  # the image, and what the engine keeps of it, are there from now on
        return [(timed(bare), timed(unit)) for _ in range(rounds)]
    finally:
        client.close()


def summary(seconds: list[float], name: str) -> dict[str, float]:
    """Return the median, the best and the worst, in ms."""
    ms = [1000 * one for one in seconds]
    return {
        f"{name}_ms": round(statistics.median(ms), 1),
        f"{name}_ms_best": round(min(ms), 1),
        f"{name}_ms_worst": round(max(ms), 1),
    }


def load() -> dict[str, float]:
    """Return how many processes wanted a core meanwhile, the last minute's mean: above the cores, times are longer."""
    return {"load": round(os.getloadavg()[0], 1)}


@click.command()
@click.option("--rounds", default=10, show_default=True, help="Containers to run, and half as many workers to start.")
@click.option("--mib", default=1024, show_default=True, help="Data in and out; an eighth of it is the other size.")
@click.option("--only", type=click.Choice(["worker", "container", "data"]), help="Measure one part, keep the others.")
def main(rounds: int, mib: int, only: str | None) -> None:
    """Write what a worker's start, a container and a job's data cost beside the work itself."""
    result: dict[str, Any] = json.loads(OUT.read_text(encoding="utf-8")) if only and OUT.exists() else {}
    result["machine"] = machine()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if only in (None, "worker"):
            beats = first_beats(max(1, rounds // 2))
            waits, worked = zip(*beats, strict=True)
            result["worker"] = {
                "rounds": len(beats),
                **summary(list(waits), "start_to_beat"),
                **summary(list(worked), "processor"),
                **load(),
            }
        if only in (None, "container"):
            pairs = containers(root, rounds)
            bare, unit = (statistics.median(column) for column in zip(*pairs, strict=True))
            result["container"] = {
                "rounds": len(pairs),
                **summary([one for one, _ in pairs], "bare"),
                **summary([one for _, one in pairs], "unit"),
                "over_bare_ms": round(1000 * (unit - bare), 1),
                "aim_ms": round(1000 * (0.1 * bare + 0.15), 1),
                **load(),
            }
        if only in (None, "data"):
            rows = []
            for size in (mib // 8, mib):
                place = root / str(size)
                place.mkdir()
                rows.append(measured(place, size << 20))
            result["data"] = {"attempts": rows, **load()}
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    click.echo(json.dumps({name: part for name, part in result.items() if name != "machine"}, indent=2))


if __name__ == "__main__":
    main()
