"""What NVIDIA's driver said of a machine, in the worker's terms: pure, so that recorded machines are tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hearth.protocol.gpu_tiers import NVIDIA, find_model, slug_of, tier_of, vram_gib
from hearth.protocol.units import format_size
from worker.gpu.port import GPU_UUID, GpuInfo, GpuProbe

MISMATCH: Final = 18
"""NVML's code for a library and a kernel module of two drivers."""
NO_DRIVER: Final = (9, 12)
"""NVML's codes for a driver that is not loaded, and for a library that is not there."""
PROHIBITED: Final = 2
EXCLUSIVE: Final = 3
"""NVML's compute modes in which no program may use a GPU, and one process alone."""
UPGRADED: Final = "the NVIDIA driver was upgraded and its kernel module was not: restart this machine"


def parse(record: Mapping[str, Any]) -> GpuProbe:
    """Turn a record into GPUs."""
    if record.get("code") == MISMATCH:
        return GpuProbe((), reason=UPGRADED, answers=False)
    if "unavailable" in record:
        absent = record.get("code") in NO_DRIVER
        asked, why = record.get("asked", True), f"no NVIDIA driver: {record['unavailable']}"
        return GpuProbe((), reason=why, answers=False, asked=asked, absent=absent)
    devices = list(enumerate(record["devices"]))
    driver, cuda = record["driver"], _version(record["cuda"])
    gpus = tuple(_gpu(index, device, driver, cuda) for index, device in devices if "lost" not in device)
    lost = tuple((index, device["lost"]) for index, device in devices if "lost" in device)
    words = "; ".join(f"GPU {index} does not answer: {why}" for index, why in lost)
    return GpuProbe(gpus, driver, words or ("" if gpus else "the NVIDIA driver shows no GPU"), lost=lost)


def _version(cuda: int | None) -> str:
    """Return CUDA's version in words: NVML's 12080 is 12.8."""
    return f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else ""


def _gpu(index: int, device: Mapping[str, Any], driver: str, cuda: str) -> GpuInfo:
    name = device["name"] or "a GPU without a name"
    model = find_model(NVIDIA, name)
    found = device["compute"] or [0, 0]
    # The generation is the model's where a driver does not say it.
    compute = tuple(found) if found[0] else model.generation if model is not None else (0, 0)
    # What a desktop shows takes memory that no job gets.
    shown = sum(one["memory"] or 0 for one in device.get("graphics") or ())
    size = vram_gib(max(0, (device["memory_total"] or 0) - shown))
    tier = tier_of(NVIDIA, name, compute)
    processes = device["processes"]
    return GpuInfo(
        index=index,
        name=name,
        uuid=device["uuid"] or "",
        vram_bytes=device["memory_total"] or 0,
        vram_gib=size,
        tier=tier,
        slug=slug_of(NVIDIA, tier),
        compute=compute,
        driver=driver,
        ecc_enabled=None if device["ecc_enabled"] is None else bool(device["ecc_enabled"]),
        processes=None if processes is None else tuple((one["pid"], one["memory"]) for one in processes),
        defects=tuple(_defects(device, compute)),
        used_bytes=device["memory_used"],
        cuda=cuda,
        watts=None if device["power_limit_mw"] is None else device["power_limit_mw"] // 1000,
        remarks=tuple(_remarks(device, shown)),
    )


def _remarks(device: Mapping[str, Any], shown: int) -> list[str]:
    """Name what an owner could do better."""
    found = []
    if device.get("compute_mode") == EXCLUSIVE:
        found.append("compute mode EXCLUSIVE_PROCESS: a job's second process gets none of it: nvidia-smi -c DEFAULT")
    if device.get("persistence") == 0:
        found.append("persistence mode is off, and each use begins slowly: nvidia-smi -pm 1")
    if shown:
        found.append(f"a desktop has {format_size(shown)} of it, which is not offered")
    return found


def _defects(device: Mapping[str, Any], compute: tuple[int, ...]) -> list[str]:
    """Name what makes a GPU unfit for any job, and what no job can be promised without."""
    found = []
    if not GPU_UUID.match(device["uuid"] or ""):
        found.append("the driver names no UUID of it, by which a container would get it")
    if not device["memory_total"]:
        found.append("the driver does not say how much memory it has")
    if not compute[0]:
        found.append("the driver does not say its compute capability, and its name is not known")
    if device.get("compute_mode") == PROHIBITED:
        found.append("compute mode PROHIBITED: no program may use it: nvidia-smi -c DEFAULT")
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
    return found
