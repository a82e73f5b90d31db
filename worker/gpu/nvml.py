"""A program: read NVML once and print what the driver said, as one JSON object.

It is a process of its own since a driver that hangs holds whoever asked it, and a library that crashes ends it; and so
that each look loads the library that lies on the disk now. A value that a GPU does not support is null.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from functools import partial
from typing import Any


def read() -> dict[str, Any]:
    """Return {"driver", "cuda", "devices": [...]}; without a driver that answers {"unavailable": reason, "code"}, the
    code being NVML's."""
    import pynvml

    try:
        pynvml.nvmlInit()
        try:
            return _machine(pynvml)
        finally:
            with suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()
    except pynvml.NVMLError as failed:
        return {"unavailable": str(failed), "code": failed.value}


def _machine(pynvml: Any) -> dict[str, Any]:
    count = _count(_ask(pynvml, "nvmlDeviceGetCount"))
    if count is None:
        return {"unavailable": "it does not say how many GPUs there are"}
    return {
        "driver": _text(_ask(pynvml, "nvmlSystemGetDriverVersion")) or "",
        "cuda": _count(_ask(pynvml, "nvmlSystemGetCudaDriverVersion_v2")),
        "devices": [_device_or_loss(pynvml, index) for index in range(count)],
    }


def _device_or_loss(pynvml: Any, index: int) -> dict[str, Any]:
    try:
        return _device(pynvml, index)
    except pynvml.NVMLError as failed:  # one GPU that fell off the bus must not hide the others
        return {"lost": str(failed)}


def _device(pynvml: Any, index: int) -> dict[str, Any]:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    ask = partial(_ask, pynvml, gone=(pynvml.NVMLError_GpuIsLost, pynvml.NVMLError_ResetRequired))
    memory = ask("nvmlDeviceGetMemoryInfo", handle)
    uncorrected, volatile = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
    processes = ask("nvmlDeviceGetComputeRunningProcesses", handle)
    return {
        "name": _text(ask("nvmlDeviceGetName", handle)),
        "uuid": _text(ask("nvmlDeviceGetUUID", handle)),
        "memory_total": _count(getattr(memory, "total", None)),
        "memory_used": _count(getattr(memory, "used", None)),
        "compute": _counts(ask("nvmlDeviceGetCudaComputeCapability", handle), 2),
        "mig": _first(_counts(ask("nvmlDeviceGetMigMode", handle), 2)),
        "ecc_uncorrected": _count(ask("nvmlDeviceGetTotalEccErrors", handle, uncorrected, volatile)),
        "remapped_rows": _counts(ask("nvmlDeviceGetRemappedRows", handle), 4),
        "power_limit_mw": _count(ask("nvmlDeviceGetEnforcedPowerLimit", handle)) or None,
        "compute_mode": _count(ask("nvmlDeviceGetComputeMode", handle)),
        "persistence": _count(ask("nvmlDeviceGetPersistenceMode", handle)),
        "processes": _processes(processes),
        "graphics": _processes(ask("nvmlDeviceGetGraphicsRunningProcesses", handle)),
        "slices": _slices(pynvml, handle),
    }


def _slices(pynvml: Any, handle: Any) -> list[dict[str, Any]]:
    """Return the parts into which a GPU is cut by MIG: none of a whole one."""
    found = []
    for place in range(_count(_ask(pynvml, "nvmlDeviceGetMaxMigDeviceCount", handle)) or 0):
        part = _ask(pynvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, place)
        if part is None:
            continue
        memory = _ask(pynvml, "nvmlDeviceGetMemoryInfo", part)
        found.append(
            {
                "name": _text(_ask(pynvml, "nvmlDeviceGetName", part)),
                "uuid": _text(_ask(pynvml, "nvmlDeviceGetUUID", part)),
                "memory_total": _count(getattr(memory, "total", None)),
                "memory_used": _count(getattr(memory, "used", None)),
                "processes": _processes(_ask(pynvml, "nvmlDeviceGetComputeRunningProcesses", part)),
            }
        )
    return found


def _ask(pynvml: Any, name: str, *arguments: Any, gone: tuple[type[Exception], ...] = ()) -> Any:
    """Return what the library answers, None where it does not: not on this GPU, not to this user, not in this driver.

    Raises the errors of `gone` alone.
    """
    try:
        return getattr(pynvml, name)(*arguments)
    except gone:
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


if __name__ == "__main__":
    json.dump(read(), sys.stdout)
