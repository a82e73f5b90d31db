"""Measure what a job would get of each GPU: a program of ours in a container as a job's (`hearth worker benchmark`)."""

from __future__ import annotations

import ctypes
import io
import platform
import re
import tarfile
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hearth.client.nodes.manifests import figures_in_words
from hearth.protocol.gpu_tiers import NVIDIA
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
from worker.runtimes.base import Check, Level, RunRequest, RunStatus, SandboxLimits
from worker.runtimes.docker import DockerRuntime
from worker.selftest import refuse_failed
from worker.settings import Settings, docker_of, given_gpus
from worker.status import lent_gpus

FOLDER: Final = Path(__file__).parent / "gpu" / "benchmark"
PLATFORMS: Final = {"x86_64": "amd64", "aarch64": "arm64"}
LIBRARIES: Final = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1")
"""Of GNU's C library: what NVIDIA's driver library needs."""
LIMITS: Final = SandboxLimits(wall_seconds=60, memory_bytes=4 << 30, out_bytes=1 << 20)
BROKEN: Final = "the card is broken, or clocked too high: until that is mended, leave it out of offer.gpus"
NO_LIBRARY: Final = "not measured: this system's C library is not GNU's, which NVIDIA's driver needs"


def benchmark(
    docker: DockerRuntime, home: Path, gpus: Sequence[GpuInfo], lent: Collection[str] = ()
) -> Iterator[Check]:
    """Measure each GPU and keep its figures in a home; yield a row for each.

    FAIL is one that a job cannot compute with, WARN one that is far from what it should be, or that was not measured.
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
    if gpu.vendor not in MEASURED:
        text = f"{gpu.name}: not measured: the program speaks to {NVIDIA.title}'s driver alone"
        return Check(name, Level.WARN, text, "nothing: jobs may have it as it is")
    with _held(gpu, lent) as who:
        if who:
            return Check(name, Level.WARN, f"{gpu.name}: not measured: {who}", "hearth worker benchmark, later")
        try:
            archive = _archive()
        except OSError as failed:
            return Check(name, Level.WARN, f"{gpu.name}: {NO_LIBRARY} ({failed})", "nothing: jobs bring their own")
        try:
            found = _measure(docker, gpu, archive)
        except Incapable as failed:
            fix = BROKEN if failed.wrong else gpu.device.refresh
            return Check(name, Level.FAIL, f"{gpu.name}: {failed}", fix)
        except Unmeasured as failed:
            return Check(name, Level.WARN, f"{gpu.name}: not measured: {failed}", "hearth worker selftest")
    words, short = f"{gpu.name}: {figures_in_words(found.figures)}", shortfalls(gpu, found)
    try:
        keep_measured(home, gpu.uuid, found)
    except OSError as failed:
        return Check(name, Level.WARN, f"{words}; not kept: {failed}", f"mend {home}; hearth worker benchmark")
    if short:
        return Check(name, Level.WARN, f"{words}; {'; '.join(short)}", "hearth worker benchmark again")
    return Check(name, Level.PASS, words)


@contextmanager
def _held(gpu: GpuInfo, lent: Collection[str]) -> Iterator[str]:
    """Keep a GPU from every worker of this machine while the context is open; yields who has it, "" for nobody."""
    locks = Locks()
    if gpu.uuid in lent or not locks.take(gpu.uuid):
        yield "a job has it now"
        return
    try:
        yield ""
    finally:
        locks.release(gpu.uuid)


def _measure(docker: DockerRuntime, gpu: GpuInfo, archive: bytes) -> Measurement:
    """Run the program in a container with one GPU. Raises Incapable, Unmeasured."""
    with tempfile.TemporaryDirectory(prefix="hearth-benchmark-") as scratch:
        folders = [Path(scratch) / name for name in ("job", "in", "out")]
        for folder in folders:
            folder.mkdir()
        result = docker.run_archive(
            archive,
            RunRequest(
                unit=f"benchmark-{gpu.uuid}",
                command=("/benchmark",),
                job_dir=folders[0],
                in_dir=folders[1],
                out_dir=folders[2],
                limits=LIMITS,
                gpus=(gpu.device,),
                outputs=(),
            ),
        )
    text = result.stdout.decode("ascii", "replace")
    if result.status is RunStatus.TIMEOUT:
        raise Unmeasured(f"it does not end within {LIMITS.wall_seconds} s in a container, after it said {text[-80:]!r}")
    if result.status in (RunStatus.OK, RunStatus.EXIT):
        return read_lines(text, gpu.driver, int(time.time()))
    raise Unmeasured(result.detail)


def _archive() -> bytes:
    """Return a tar with the program, its kernel's text and this system's C library. Raises OSError without one."""
    if platform.machine() not in PLATFORMS:
        raise OSError(f"there is no program for {platform.machine()}")
    libraries, loader = _libraries()
    program = FOLDER / f"benchmark-{PLATFORMS[platform.machine()]}"
    files = {"benchmark": program, "rate.ptx": FOLDER / "rate.ptx"}
    files |= {f"lib/hearth/{name}": path for name, path in libraries.items()}
    where = "lib64" if platform.machine() == "x86_64" else "lib"
    files[f"{where}/{loader.name}"] = loader
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, path in files.items():
            entry = tarfile.TarInfo(name)
            data = path.read_bytes()
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _libraries() -> tuple[dict[str, Path], Path]:
    """Return where this system's C library lies, by the names that programs ask for, and its loader. Raises OSError."""
    for name in LIBRARIES:
        ctypes.CDLL(name)
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape")
    paths = {Path(found).name: Path(found) for found in re.findall(r" (/\S+\.so[.\d]*)$", maps, re.MULTILINE)}
    loader = next((path for name, path in paths.items() if name.startswith("ld-linux")), None)
    lacks = [name for name in LIBRARIES if name not in paths]
    if lacks or loader is None:
        raise OSError(f"{', '.join(lacks) or 'its loader'} is not where it is asked for")
    return {name: paths[name] for name in LIBRARIES}, loader
