"""Measure what a job would get of each GPU: a program of ours in a container as a job's (`hearth worker benchmark`)."""

from __future__ import annotations

import ctypes
import os
import platform
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hearth.client.nodes.manifests import figures_in_words
from hearth.market.manifest import Figures
from worker.gpu.figures import (
    MEASURED,
    Incapable,
    Measurement,
    Unmeasured,
    keep_measured,
    lacking_figures,
    read_lines,
    shortfalls,
)
from worker.gpu.locks import Locks
from worker.gpu.port import GpuInfo
from worker.runtimes.base import Check, Level, RunStatus, SandboxLimits
from worker.runtimes.docker import DockerRuntime
from worker.runtimes.docker_images import image_archive
from worker.selftest import refuse_failed, request_in
from worker.settings import Settings, docker_of, given_gpus
from worker.status import lent_gpus

FOLDER: Final = Path(__file__).parent / "gpu" / "benchmark"
PLATFORMS: Final = {"x86_64": "amd64", "aarch64": "arm64"}
LIBRARIES: Final = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1")
"""Of GNU's C library: what NVIDIA's driver library needs."""
LIMITS: Final = SandboxLimits(wall_seconds=60, memory_bytes=4 << 30, out_bytes=1 << 20)
AGAIN: Final = "hearth worker benchmark"
BROKEN: Final = "the card is broken, or clocked too high: until that is mended, leave it out of offer.gpus"
LINK_MAP: Final = 2
"""What dlinfo calls the list of libraries. Source: dlinfo(3)."""


def benchmark(
    docker: DockerRuntime, home: Path, gpus: Sequence[GpuInfo], lent: Collection[str] = ()
) -> Iterator[Check]:
    """Measure each GPU and keep what was found in a home; yield a row for each.

    FAIL is one that a job cannot compute with, WARN one that has far less than it should, or that was not measured.
    """
    return (_row(docker, home, gpu, lent) for gpu in gpus)


def refuse_incapable(settings: Settings) -> None:
    """Measure the GPUs that have no figures with their driver, and refuse to offer one with which a job cannot compute.

    Raises ConfigError GPU_NOT_GIVEN.
    """
    lent = lent_gpus(settings.home)
    new = lacking_figures(given_gpus(settings, lent), settings.home)
    for row in benchmark(docker_of(settings), settings.home, new, lent):
        refuse_failed(row)


def _row(docker: DockerRuntime, home: Path, gpu: GpuInfo, lent: Collection[str]) -> Check:
    name = f"gpu {gpu.label}"
    try:
        figures = _measure(docker, gpu, lent)
    except Incapable as failed:
        found = Measurement(gpu.driver, None, str(failed))
        row = Check(name, Level.FAIL, f"{gpu.name}: {failed}", BROKEN if failed.wrong else gpu.device.refresh)
    except Unmeasured as failed:
        return Check(name, Level.WARN, f"{gpu.name}: not measured: {failed}", f"{AGAIN}, once that is mended")
    else:
        found = Measurement(gpu.driver, figures)
        words, short = f"{gpu.name}: {figures_in_words(figures)}", shortfalls(gpu, figures)
        row = Check(name, Level.WARN, "; ".join((words, *short)), AGAIN) if short else Check(name, Level.PASS, words)
    try:
        keep_measured(home, gpu, found)
    except OSError as failed:
        level = Level.FAIL if row.level is Level.FAIL else Level.WARN
        return Check(name, level, f"{row.detail}; not kept: {failed}", f"mend {home}; {AGAIN}")
    return row


def _measure(docker: DockerRuntime, gpu: GpuInfo, lent: Collection[str]) -> Figures:
    """Run the program in a container with one GPU, which no worker lends meanwhile. Raises Incapable, Unmeasured."""
    if gpu.vendor not in MEASURED:
        raise Unmeasured(f"the program does not speak to a driver of {gpu.vendor.title}")
    archive, unit = _archive(), f"benchmark-{gpu.uuid}"
    with _reserved(gpu, lent), tempfile.TemporaryDirectory(prefix="hearth-benchmark-") as scratch:
        # What a benchmark left that was killed.
        docker.sweep(unit)
        request = request_in(Path(scratch), unit, LIMITS, command=("/benchmark",), gpus=(gpu.device,))
        result = docker.run_archive(archive, request)
    if result.status is RunStatus.TIMEOUT:
        raise Incapable(f"a program that uses it does not end, here within {LIMITS.wall_seconds} s")
    if result.status not in (RunStatus.OK, RunStatus.EXIT):
        raise Unmeasured(result.detail)
    return read_lines(result.stdout.decode("ascii", "replace"), int(time.time()))


@contextmanager
def _reserved(gpu: GpuInfo, lent: Collection[str]) -> Iterator[None]:
    """Keep a GPU from every worker of this machine while the context is open. Raises Unmeasured where one has it."""
    locks = Locks()
    if gpu.uuid in lent or not locks.take(gpu.uuid):
        raise Unmeasured("a job or another benchmark has it now")
    try:
        yield
    finally:
        locks.release(gpu.uuid)


def _archive() -> bytes:
    """Return a tar with the program, its kernels' text and this system's C library. Raises Unmeasured without one."""
    kind = PLATFORMS.get(platform.machine())
    if kind is None:
        raise Unmeasured(f"there is no program for {platform.machine()}")
    files = {"benchmark": FOLDER / f"benchmark-{kind}", "kernels.ptx": FOLDER / "kernels.ptx"}
    try:
        here = _libraries()
        loader = next(name for name in here if name.startswith("ld-linux"))
        files |= {f"lib/hearth/{name}": here[name] for name in LIBRARIES}
        files[f"{'lib64' if kind == 'amd64' else 'lib'}/{loader}"] = here[loader]
        return image_archive({name: path.read_bytes() for name, path in files.items()})
    except (OSError, StopIteration, LookupError) as failed:
        raise Unmeasured(f"this system's C library is not GNU's, which NVIDIA's driver needs: {failed}") from failed


class _Library(ctypes.Structure):
    """A library of this process, as its loader lists them. Source: dlinfo(3), `struct link_map`."""


_Library._fields_ = [
    ("address", ctypes.c_void_p),
    ("name", ctypes.c_char_p),
    ("section", ctypes.c_void_p),
    ("next", ctypes.POINTER(_Library)),
    ("previous", ctypes.POINTER(_Library)),
]


def _libraries() -> dict[str, Path]:
    """Return where the libraries of this process were found, GNU's C library among them. Raises OSError."""
    *_, opened = [ctypes.CDLL(name) for name in LIBRARIES]
    at = ctypes.POINTER(_Library)()
    if ctypes.CDLL("libdl.so.2").dlinfo(ctypes.c_void_p(opened._handle), LINK_MAP, ctypes.byref(at)):
        raise OSError("its loader does not list libraries")
    while at.contents.previous:
        at = at.contents.previous
    found = {}
    while at:
        path = Path(os.fsdecode(at.contents.name))
        found[path.name] = path
        at = at.contents.next
    return found
