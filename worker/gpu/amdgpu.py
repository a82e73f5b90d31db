"""A program: read what the kernel says of AMD's GPUs once, and print it as one JSON object.

The files below /sys are those that AMD's own libraries read. It is a process of its own since the kernel may hold
whoever reads of a GPU that hangs. What a GPU does not say is null.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

SYS: Final = Path("/sys")
DEV: Final = Path("/dev")
MOST_BYTES: Final = 1 << 16
GROUP_MAY_OPEN: Final = 0o060
ALL_MAY_OPEN: Final = 0o006
INTEGRATED_BYTES: Final = 4 << 30
"""A GPU with less memory of its own than this shares the machine's, and is nobody's to rent."""


def read(sys_root: Path = SYS, dev_root: Path = DEV) -> dict[str, Any]:
    """Return {"driver", "devices": [...]}; without the kernel module {"unavailable": reason, "absent": true}."""
    module = sys_root / "module" / "amdgpu"
    if not module.is_dir():
        return {"unavailable": "the kernel module amdgpu is not loaded", "absent": True}
    compute = dict(_compute_nodes(sys_root))
    # By their addresses, without those that no program computes on: so AMD's toolkit numbers them.
    places = sorted(module.glob("drivers/pci:amdgpu/*:*"), key=lambda place: place.name)
    places = [place for place in places if _render(place) in compute]
    found = [_device(place, index, compute, sys_root, dev_root) for index, place in enumerate(places)]
    devices = [one for one in found if one is not None]
    version = _text(module / "version") or os.uname().release
    return {"driver": version, "devices": devices, "absent": not devices}


def _device(
    place: Path, index: int, compute: dict[int, dict[str, int]], sys_root: Path, dev_root: Path
) -> dict[str, Any] | None:
    """Return what is known of one, None for one that is integrated."""
    try:
        total = int((place / "mem_info_vram_total").read_text())
    except (OSError, ValueError) as failed:
        why = failed.strerror if isinstance(failed, OSError) else "it says no size of its memory"
        return {"index": index, "lost": why or type(failed).__name__}
    if total < INTEGRATED_BYTES:
        return None
    render = _render(place)
    node = compute[render]
    nodes = {f"/dev/{name}": dev_root / name for name in ("kfd", f"dri/renderD{render}")}
    errors = _pairs(place / "ras" / "umc_err_count")
    return {
        "index": index,
        "name": _text(place / "product_name"),
        "device": (_text(place / "device") or "").removeprefix("0x"),
        "revision": (_text(place / "revision") or "").removeprefix("0x"),
        "unique_id": _text(place / "unique_id"),
        "memory_total": total,
        "memory_used": _number(place / "mem_info_vram_used"),
        "gfx": node.get("gfx_target_version"),
        "partition": _text(place / "current_compute_partition"),
        "uncorrected": errors.get("ue"),
        "power_limit_uw": next((_number(file) for file in sorted(place.glob("hwmon/hwmon*/power1_cap"))), None),
        "render": render,
        "groups": sorted({group for file in nodes.values() for group in _groups(file)}),
        "closed": [name for name, file in nodes.items() if not _opens(file)],
        "processes": _processes(sys_root, node.get("gpu_id")),
    }


def _render(place: Path) -> int:
    """Return the number of a GPU's node below /dev/dri, -1 for one without."""
    return next((int(node.name[7:]) for node in sorted(place.glob("drm/renderD*")) if _is_number(node.name[7:])), -1)


def _compute_nodes(sys_root: Path) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield what the compute driver says of each GPU, by its render node."""
    for place in sys_root.glob("class/kfd/kfd/topology/nodes/*"):
        said = _pairs(place / "properties")
        gpu = _number(place / "gpu_id")
        if gpu and "drm_render_minor" in said:
            yield said["drm_render_minor"], {**said, "gpu_id": gpu}


def _processes(sys_root: Path, gpu: int | None) -> list[dict[str, int]] | None:
    """Return the processes that have memory of a GPU, None where nobody can say."""
    if gpu is None:
        return None
    try:
        users = [place for place in (sys_root / "class/kfd/kfd/proc").iterdir() if _is_number(place.name)]
    except OSError:
        return None
    has = {int(place.name): _number(place / f"vram_{gpu}") for place in users}
    return [{"pid": pid, "memory": memory} for pid, memory in sorted(has.items()) if memory]


def _opens(node: Path) -> bool:
    """Tell whether a job's user may open a device node: anybody may, or one of its groups."""
    try:
        return node.stat().st_mode & ALL_MAY_OPEN == ALL_MAY_OPEN or bool(_groups(node))
    except OSError:
        return False


def _groups(node: Path) -> list[int]:
    """Return the group that may open a device node; none where that is the host's root, or where it is not there."""
    try:
        status = node.stat()
    except OSError:
        return []
    return [status.st_gid] if status.st_gid and status.st_mode & GROUP_MAY_OPEN == GROUP_MAY_OPEN else []


def _pairs(file: Path) -> dict[str, int]:
    """Return the lines "name number" of a file; a colon after the name is passed over."""
    lines = (line.split() for line in (_text(file) or "").splitlines())
    return {words[0].removesuffix(":"): int(words[1]) for words in lines if len(words) == 2 and _is_number(words[1])}


def _number(file: Path) -> int | None:
    text = _text(file)
    return int(text) if text is not None and _is_number(text) else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def _text(file: Path) -> str | None:
    try:
        with file.open("rb") as open_file:
            return open_file.read(MOST_BYTES).decode("utf-8", "replace").strip() or None
    except OSError:
        return None


if __name__ == "__main__":
    json.dump(read(), sys.stdout)
