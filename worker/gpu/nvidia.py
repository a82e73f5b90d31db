"""What NVIDIA's driver said of a machine, in the worker's terms: pure, so that recorded machines are tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hearth.protocol.gpu_tiers import NVIDIA, OTHER_TIER, find_model, is_part, tier_of, vram_gib
from hearth.protocol.units import format_size
from worker.gpu.port import UNKNOWN, Device, Driver, GpuInfo, GpuProbe

UUID: Final = re.compile(r"(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
REFRESH: Final = "nvidia-ctk cdi generate --device-name-strategy=uuid --output=/etc/cdi/nvidia.yaml"
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
    whole = [(index, device) for index, device in devices if "lost" not in device]
    gpus = tuple(_gpu(index, each, driver, cuda, part) for index, device in whole for part, each in _parts(device))
    lost = tuple((index, device["lost"]) for index, device in devices if "lost" in device)
    words = "; ".join(f"GPU {index} does not answer: {why}" for index, why in lost)
    return GpuProbe(gpus, driver, words or ("" if gpus else "the NVIDIA driver shows no GPU"), lost=lost)


def _parts(device: Mapping[str, Any]) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    """Yield what jobs may get of a GPU: the whole, or each slice into which MIG has cut it, with its place."""
    slices = device.get("slices") or ()
    if not slices:
        yield None, device
    for place, one in enumerate(slices):
        # A desktop, a power limit and a compute mode are the whole's.
        yield place, {**device, **one, "mig": 0, "graphics": None, "power_limit_mw": None, "persistence": None}


def _version(cuda: int | None) -> str:
    """Return CUDA's version in words: NVML's 12080 is 12.8."""
    return f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else ""


def _gpu(index: int, device: Mapping[str, Any], driver: str, cuda: str, part: int | None) -> GpuInfo:
    name = device["name"] or "a GPU without a name"
    model = find_model(NVIDIA, name)
    found = device["compute"] or [0, 0]
    # The generation is the model's where a driver does not say it.
    compute = tuple(found) if found[0] else model.generation if model is not None else (0, 0)
    # What a desktop shows takes memory that no job gets.
    shown = sum(one["memory"] or 0 for one in device.get("graphics") or ())
    size = vram_gib(max(0, (device["memory_total"] or 0) - shown))
    tier = tier_of(NVIDIA, name) if part is None else OTHER_TIER
    processes = device["processes"]
    return GpuInfo(
        index=index,
        part=part,
        name=name,
        device=device_of(device["uuid"] or ""),
        vendor=NVIDIA,
        vram_bytes=device["memory_total"] or 0,
        vram_gib=size,
        tier=tier,
        compute=compute,
        driver=driver,
        processes=None if processes is None else tuple((one["pid"], one["memory"]) for one in processes),
        defects=tuple(_defects(device, compute)),
        used_bytes=device["memory_used"],
        cuda=cuda,
        watts=None if device["power_limit_mw"] is None else device["power_limit_mw"] // 1000,
        remarks=(
            *(() if model is not None or part is not None or is_part(name) else (UNKNOWN,)),
            *_remarks(device, shown),
        ),
    )


def device_of(uuid: str) -> Device:
    """Return how a container asks for the GPU, or the MIG slice, of a UUID."""
    return Device(uuid=uuid, cdi=f"nvidia.com/gpu={uuid}", nodes="/dev/nvidia", refresh=REFRESH)


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
    if not UUID.match(device["uuid"] or ""):
        found.append("the driver names no UUID of it, by which a container would get it")
    if not device["memory_total"]:
        found.append("the driver does not say how much memory it has")
    if not compute[0]:
        found.append("the driver does not say its compute capability, and its name is not known")
    if device.get("compute_mode") == PROHIBITED:
        found.append("compute mode PROHIBITED: no program may use it: nvidia-smi -c DEFAULT")
    if device["mig"]:
        found.append("MIG is on, and it has no slices: nvidia-smi mig -cgi PROFILE -C, or nvidia-smi -mig 0")
    if device["ecc_uncorrected"]:
        found.append(f"{device['ecc_uncorrected']} uncorrected memory errors since the driver started")
    if device["remapped_rows"]:
        _, _, pending, failed = device["remapped_rows"]
        if failed:
            found.append("a memory row could not be remapped: replace the GPU")
        elif pending:
            found.append("a memory row waits to be remapped: reset the GPU")
    return found


DRIVER: Final = Driver(NVIDIA, "worker.gpu.nvml", parse, UUID, "nvidia-smi -L")
