"""What GPUs this machine has, read through NVML; no GPU is a normal state with a reason.

`Nvml.read()` is the edge: it returns one JSON-ready record of what the driver said, and everything else is a pure
function of such a record, so that recorded machines are tests. A value that a GPU does not support is null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from hearth.protocol.gpu_tiers import NO_GPU, slug_of, tier_of, vram_gib
from hearth.protocol.types import LOCAL_CHAIN_ID
from worker.runtimes.base import Check, Level

TOOLKIT_MINIMUM = "1.17.8"
"""Below: CVE-2024-0132, CVE-2025-23359, CVE-2025-23266 (a container's file can run code as root on the host)."""
RUNC_MINIMUM = {(1, 2): "1.2.8", (1, 3): "1.3.3", (1, 4): "1.4.0-rc.3"}
"""Below: CVE-2025-31133, CVE-2025-52565, CVE-2025-52881 (writes through masked paths); per release line."""
_VERSION = re.compile(r"(?<![0-9])([0-9]{1,6})\.([0-9]{1,6})\.([0-9]{1,6})(?![0-9])(?:[-~]rc\.?([0-9]{1,6}))?")
"""Bounded, so that no text is searched longer than it is."""


class Nvml(Protocol):
    """Read the driver's state once."""

    def read(self) -> dict[str, Any]:
        """Return {"driver", "cuda", "devices": [...]} or {"unavailable": reason}."""


class DriverNvml:
    """Read NVML of this machine through pynvml (the distribution nvidia-ml-py)."""

    def read(self) -> dict[str, Any]:
        """Return the record; a machine without driver or library gives {"unavailable": reason}."""
        import pynvml

        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as failed:
            return {"unavailable": str(failed)}
        try:
            return {
                "driver": _text(pynvml.nvmlSystemGetDriverVersion()),
                "cuda": pynvml.nvmlSystemGetCudaDriverVersion_v2(),
                "devices": [self._device_or_loss(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())],
            }
        finally:
            pynvml.nvmlShutdown()

    def _device_or_loss(self, pynvml: Any, index: int) -> dict[str, Any]:
        try:
            return self._device(pynvml, index)
        except pynvml.NVMLError as failed:  # one GPU that fell off the bus must not hide the others
            return {"lost": str(failed)}

    @staticmethod
    def _device(pynvml: Any, index: int) -> dict[str, Any]:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)

        def ask(call: Callable[[], Any]) -> Any:
            try:
                return call()
            except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound):
                return None

        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        uncorrected, volatile = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
        processes = ask(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(handle)) or []
        return {
            "name": _text(pynvml.nvmlDeviceGetName(handle)),
            "uuid": _text(pynvml.nvmlDeviceGetUUID(handle)),
            "memory_total": memory.total,
            "memory_used": memory.used,
            "compute": list(pynvml.nvmlDeviceGetCudaComputeCapability(handle)),
            "mig": ask(lambda: pynvml.nvmlDeviceGetMigMode(handle)[0]),
            "ecc_enabled": ask(lambda: pynvml.nvmlDeviceGetEccMode(handle)[0]),
            "ecc_uncorrected": ask(lambda: pynvml.nvmlDeviceGetTotalEccErrors(handle, uncorrected, volatile)),
            "remapped_rows": ask(lambda: list(pynvml.nvmlDeviceGetRemappedRows(handle))),
            "power_limit_mw": ask(lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle)),
            "processes": [{"pid": process.pid, "memory": process.usedGpuMemory} for process in processes],
        }


@dataclass(frozen=True)
class GpuInfo:
    """Describe one GPU. `problems` are reasons not to give it to a job now; empty means it is fit."""

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
    processes: tuple[tuple[int, int | None], ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class GpuProbe:
    """Hold what was found: the GPUs, and why there are none or fewer than expected."""

    gpus: tuple[GpuInfo, ...]
    driver: str = ""
    reason: str = ""

    @property
    def tier(self) -> int:
        """Return the key that an offer may state: the lowest of the GPUs (a slot may get any), 0 without."""
        return min((gpu.tier for gpu in self.gpus), default=NO_GPU)


def probe(source: Nvml | None = None) -> GpuProbe:
    """Read this machine's GPUs; never raises because there is none."""
    return parse((source or DriverNvml()).read())


def parse(record: Mapping[str, Any]) -> GpuProbe:
    """Turn a record into GPUs."""
    if "unavailable" in record:
        return GpuProbe((), reason=f"no NVIDIA driver: {record['unavailable']}")
    devices = list(enumerate(record["devices"]))
    gpus = tuple(_gpu(index, device, record["driver"]) for index, device in devices if "lost" not in device)
    lost = [f"GPU {index} does not answer: {device['lost']}" for index, device in devices if "lost" in device]
    return GpuProbe(gpus, record["driver"], "; ".join(lost) or ("" if gpus else "the NVIDIA driver shows no GPU"))


def _gpu(index: int, device: Mapping[str, Any], driver: str) -> GpuInfo:
    compute = (device["compute"][0], device["compute"][1])
    size = vram_gib(device["memory_total"])
    tier = tier_of(device["name"], size, compute)
    return GpuInfo(
        index=index,
        name=device["name"],
        uuid=device["uuid"],
        vram_bytes=device["memory_total"],
        vram_gib=size,
        tier=tier,
        slug=slug_of(tier),
        compute=compute,
        driver=driver,
        ecc_enabled=None if device["ecc_enabled"] is None else bool(device["ecc_enabled"]),
        processes=tuple((process["pid"], process["memory"]) for process in device["processes"]),
        problems=tuple(_problems(device)),
    )


def _problems(device: Mapping[str, Any]) -> list[str]:
    """Name what makes a GPU unfit for the next job."""
    found = []
    if device["mig"]:
        found.append("MIG is on: this version gives a job whole GPUs only")
    if device["ecc_uncorrected"]:
        found.append(f"{device['ecc_uncorrected']} uncorrected memory errors since the driver started")
    if device["remapped_rows"]:
        _, _, pending, failed = device["remapped_rows"]
        if failed:
            found.append("a memory row could not be remapped: replace the GPU")
        elif pending:
            found.append("a memory row waits to be remapped: reset the GPU")
    for process in device["processes"]:
        found.append(f"process {process['pid']} uses it: one tenant per GPU at a time")
    return found


def parse_version(text: str) -> tuple[int, int, int, int] | None:
    """Return (major, minor, patch, rc) of the first version in a text, or None; a final release has rc 10^6.

    Takes what tools print: "runc version 1.1.5+ds1", "1.4.0-rc.2", "NVIDIA Container Toolkit CLI version 1.17.8".
    """
    found = _VERSION.search(text)
    if found is None:
        return None
    major, minor, patch, candidate = found.groups()
    return int(major), int(minor), int(patch), int(candidate) if candidate else 10**6


def check_toolkit(version: str, chain_id: int) -> Check:
    """Judge the version of nvidia-container-toolkit; an unsafe one refuses registration, save on a local chain."""
    name, found = "nvidia-container-toolkit", parse_version(version)
    if found is None:
        return Check(
            name, Level.FAIL, f"no version in {version!r}", f"install nvidia-container-toolkit {TOOLKIT_MINIMUM}"
        )
    minimum = parse_version(TOOLKIT_MINIMUM)
    assert minimum is not None
    if found >= minimum:
        return Check(name, Level.PASS, version.strip())
    return Check(
        name,
        Level.WARN if chain_id == LOCAL_CHAIN_ID else Level.FAIL,
        f"{version.strip()} is below {TOOLKIT_MINIMUM} (CVE-2024-0132, CVE-2025-23359, CVE-2025-23266)",
        f"upgrade nvidia-container-toolkit to {TOOLKIT_MINIMUM} or newer",
    )


def check_runc(version: str, chain_id: int, patched: frozenset[str] = frozenset()) -> Check:
    """Judge the version of runc. `patched` holds exact version texts whose distribution has the fixes."""
    name, found = "runc", parse_version(version)
    if found is None:
        return Check(name, Level.FAIL, f"no version in {version!r}", "install runc 1.3.3 or newer")
    if version.strip() in patched:
        return Check(name, Level.PASS, f"{version.strip()}, patched by the distribution")
    minimum = RUNC_MINIMUM.get(found[:2]) or (RUNC_MINIMUM[1, 2] if found[:2] < (1, 2) else "0.0.0")
    lowest = parse_version(minimum)
    assert lowest is not None
    if found >= lowest:
        return Check(name, Level.PASS, version.strip())
    return Check(
        name,
        Level.WARN if chain_id == LOCAL_CHAIN_ID else Level.FAIL,
        f"{version.strip()} is below {minimum} (CVE-2025-31133, CVE-2025-52565, CVE-2025-52881)",
        f"upgrade runc to {minimum} or newer; if your distribution's has the fixes, name it in docker.patched_runc",
    )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
