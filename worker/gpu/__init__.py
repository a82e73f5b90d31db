"""What GPUs this machine has, read through NVML; no GPU is a normal state with a reason.

`Nvml.read()` is the edge: it returns one JSON-ready record of what the driver said, and everything else is a pure
function of such a record, so that recorded machines are tests. A value that a GPU does not support is null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from hearth.protocol.gpu_tiers import NO_GPU, find_model, slug_of, tier_of, vram_gib

GPU_UUID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


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
            count = _count(_ask(pynvml, "nvmlDeviceGetCount"))
            if count is None:
                return {"unavailable": "it does not say how many GPUs there are"}
            return {
                "driver": _text(_ask(pynvml, "nvmlSystemGetDriverVersion")) or "",
                "cuda": _count(_ask(pynvml, "nvmlSystemGetCudaDriverVersion_v2")),
                "devices": [self._device_or_loss(pynvml, index) for index in range(count)],
            }
        finally:
            with suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()

    def _device_or_loss(self, pynvml: Any, index: int) -> dict[str, Any]:
        try:
            return self._device(pynvml, index)
        except pynvml.NVMLError as failed:  # one GPU that fell off the bus must not hide the others
            return {"lost": str(failed)}

    @staticmethod
    def _device(pynvml: Any, index: int) -> dict[str, Any]:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        memory = _ask(pynvml, "nvmlDeviceGetMemoryInfo", handle)
        uncorrected, volatile = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
        processes = _ask(pynvml, "nvmlDeviceGetComputeRunningProcesses", handle)
        return {
            "name": _text(_ask(pynvml, "nvmlDeviceGetName", handle)),
            "uuid": _text(_ask(pynvml, "nvmlDeviceGetUUID", handle)),
            "memory_total": _count(getattr(memory, "total", None)),
            "memory_used": _count(getattr(memory, "used", None)),
            "compute": _counts(_ask(pynvml, "nvmlDeviceGetCudaComputeCapability", handle), 2),
            "mig": _first(_counts(_ask(pynvml, "nvmlDeviceGetMigMode", handle), 2)),
            "ecc_enabled": _first(_counts(_ask(pynvml, "nvmlDeviceGetEccMode", handle), 2)),
            "ecc_uncorrected": _count(_ask(pynvml, "nvmlDeviceGetTotalEccErrors", handle, uncorrected, volatile)),
            "remapped_rows": _counts(_ask(pynvml, "nvmlDeviceGetRemappedRows", handle), 4),
            "power_limit_mw": _count(_ask(pynvml, "nvmlDeviceGetEnforcedPowerLimit", handle)) or None,
            "processes": _processes(processes),
        }


def _ask(pynvml: Any, name: str, *arguments: Any) -> Any:
    """Return what the library answers, None where it does not: not on this GPU, not to this user, not in this driver.

    Raises NVMLError_GpuIsLost alone.
    """
    try:
        return getattr(pynvml, name)(*arguments)
    except pynvml.NVMLError_GpuIsLost:
        raise
    except (pynvml.NVMLError, UnicodeDecodeError):
        return None


def _count(value: Any) -> int | None:
    """Return a whole number that counts something, None for what is none."""
    return value if type(value) is int and value >= 0 else None


def _counts(value: Any, length: int) -> list[int] | None:
    """Return so many counts, None for what is none."""
    if not isinstance(value, list | tuple) or len(value) != length or any(_count(one) is None for one in value):
        return None
    return list(value)


def _first(value: list[int] | None) -> int | None:
    return None if value is None else value[0]


def _processes(found: Any) -> list[dict[str, int | None]] | None:
    """Return the processes that use a GPU, None where nobody can say: that is not none of them."""
    if not isinstance(found, list | tuple):
        return None
    return [
        {"pid": _count(getattr(one, "pid", None)), "memory": _count(getattr(one, "usedGpuMemory", None))}
        for one in found
    ]


def _text(value: Any) -> str | None:
    """Return a text of the library's, whatever its bytes are; None for what is none, and for an empty one."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return value if isinstance(value, str) and value else None


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
    name = device["name"] or "a GPU without a name"
    model = find_model(name)
    found = device["compute"] or [0, 0]
    # The generation is the model's where a driver does not say it.
    compute = (found[0], found[1]) if found[0] else model.compute if model is not None else (0, 0)
    size = vram_gib(device["memory_total"] or 0)
    tier = tier_of(name, size, compute)
    processes = device["processes"]
    return GpuInfo(
        index=index,
        name=name,
        uuid=device["uuid"] or "",
        vram_bytes=device["memory_total"] or 0,
        vram_gib=size,
        tier=tier,
        slug=slug_of(tier),
        compute=compute,
        driver=driver,
        ecc_enabled=None if device["ecc_enabled"] is None else bool(device["ecc_enabled"]),
        processes=None if processes is None else tuple((one["pid"], one["memory"]) for one in processes),
        problems=tuple(_problems(device, compute)),
    )


def _problems(device: Mapping[str, Any], compute: tuple[int, int]) -> list[str]:
    """Name what makes a GPU unfit for the next job, and what no job can be promised without."""
    found = []
    if not GPU_UUID.match(device["uuid"] or ""):
        found.append("the driver names no UUID of it, by which a container would get it")
    if not device["memory_total"]:
        found.append("the driver does not say how much memory it has")
    if not compute[0]:
        found.append("the driver does not say its compute capability, and its name is not known")
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
    for process in device["processes"] or ():
        pid = "of another container" if process["pid"] is None else process["pid"]
        found.append(f"process {pid} uses it: one tenant per GPU at a time")
    return found
