"""What the kernel said of AMD's GPUs, in the worker's terms: pure, so that recorded machines are tests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from hearth.protocol.gpu_tiers import AMD, find_model, tier_of, vram_gib
from hearth.protocol.units import format_size
from worker.gpu.port import UNKNOWN, Device, Driver, GpuInfo, GpuProbe

UNIQUE_ID: Final = re.compile(r"[0-9a-f]{16}\Z")
WHOLE: Final = "SPX"
"""The partition mode in which a GPU is one device."""
OWN_BYTES: Final = 1 << 30
"""What the kernel and firmware take of a GPU's memory, at most."""
ELSEWHERE: Final = "of it are used by what computes nothing, such as a desktop, and not offered"
REFRESH: Final = "amd-ctk cdi generate --output=/etc/cdi/amd.json"


def parse(record: Mapping[str, Any]) -> GpuProbe:
    """Turn a record into GPUs."""
    if "unavailable" in record:
        why = f"no AMD driver: {record['unavailable']}"
        absent, asked = record.get("absent", False), record.get("asked", True)
        return GpuProbe((), reason=why, answers=False, asked=asked, absent=absent)
    driver, devices = f"amdgpu {record['driver']}", record["devices"]
    gpus = tuple(_gpu(device, driver) for device in devices if "lost" not in device)
    lost = tuple((device["index"], device["lost"]) for device in devices if "lost" in device)
    words = "; ".join(f"GPU {index} does not answer: {why}" for index, why in lost)
    reason = words or ("" if gpus else "the AMD driver shows no GPU with memory of its own")
    return GpuProbe(gpus, driver, reason, absent=record["absent"], lost=lost)


def _gpu(device: Mapping[str, Any], driver: str) -> GpuInfo:
    chip = f"{device['device']}:{device['revision']}"
    model = find_model(AMD, chip)
    version = device["gfx"] or 0
    generation = (version // 10_000, version // 100 % 100, version % 100) if version else (0,)
    tier = tier_of(AMD, chip)
    known = _has_id(device)
    shown = _shown(device)
    return GpuInfo(
        index=device["index"],
        name=device["name"] or f"AMD {model.slug if model is not None else chip}",
        device=Device(
            # As ROCm names it, by which programs choose one.
            uuid=f"GPU-{device['unique_id']}" if known else "",
            cdi=f"amd.com/gpu={device['index']}",
            nodes="/dev/dri/renderD",
            number=device["render"],
            groups=tuple(device["groups"]),
            refresh=REFRESH,
        ),
        vendor=AMD,
        vram_bytes=device["memory_total"],
        vram_gib=vram_gib(max(0, device["memory_total"] - shown)),
        tier=tier,
        compute=generation,
        driver=driver,
        processes=None if device["processes"] is None else tuple((u["pid"], u["memory"]) for u in device["processes"]),
        defects=tuple(_defects(device)),
        used_bytes=device["memory_used"],
        remarks=(
            *(() if model is not None else (UNKNOWN,)),
            *((f"{format_size(shown)} {ELSEWHERE}",) if shown else ()),
        ),
        watts=None if device["power_limit_uw"] is None else device["power_limit_uw"] // 10**6,
    )


def _has_id(device: Mapping[str, Any]) -> bool:
    """Tell whether a GPU is told from others by its id."""
    said = device["unique_id"] or ""
    return bool(UNIQUE_ID.match(said) and said.strip("0"))


def _shown(device: Mapping[str, Any]) -> int:
    """Return the bytes that no process of the compute driver has: a desktop's, above what the kernel takes itself."""
    if device["processes"] is None or device["memory_used"] is None:
        return 0
    other = int(device["memory_used"] - sum(one["memory"] for one in device["processes"]))
    return other if other > OWN_BYTES else 0


def _defects(device: Mapping[str, Any]) -> list[str]:
    """Name what makes a GPU unfit for any job, and what no job can be promised without."""
    found = []
    if not _has_id(device):
        found.append("the driver names no unique id of it, by which it is told from others")
    if device["closed"]:
        found.append(f"no job can open {' or '.join(device['closed'])}: give it mode 0660 and a group, such as render")
    if device["partition"] not in (None, WHOLE):
        mend = f"amd-smi set --compute-partition {WHOLE}"
        found.append(f"it is partitioned ({device['partition']}), and a job gets whole GPUs only: {mend}")
    if device["uncorrected"]:
        found.append(f"{device['uncorrected']} uncorrected memory errors since the driver started")
    return found


DRIVER: Final = Driver(AMD, "worker.gpu.amdgpu", parse, re.compile(r"GPU-[0-9a-f]{16}\Z"), "rocm-smi --showuniqueid")
