"""What NVIDIA's driver said of a machine, in the worker's terms: pure, so that recorded machines are tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hearth.protocol.gpu_tiers import find_model, slug_of, tier_of, vram_gib
from worker.gpu.port import GPU_UUID, GpuInfo, GpuProbe

MISMATCH: Final = 18
"""NVML's code for a library and a kernel module of two drivers."""
UPGRADED: Final = "the NVIDIA driver was upgraded and its kernel module was not: restart this machine"


def parse(record: Mapping[str, Any]) -> GpuProbe:
    """Turn a record into GPUs."""
    if record.get("code") == MISMATCH:
        return GpuProbe((), reason=UPGRADED)
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
