"""What this process may have of the machine: its own control group's limits, and those of every group above it.

A worker in a container, or under a service manager's quota, has less than the machine, and promises no more. Versions 1
and 2, also side by side. What cannot be read limits nothing. Source: cgroups(7), the kernel's cgroup-v1 and
cgroup-v2 documents.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAX_FILE: Final = 1 << 20
"""Bytes that are read of a file of the kernel's: a machine of many mounts has a long list."""
ROOT: Final = Path("/")
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


def memory_bytes(root: Path = ROOT) -> int:
    """Return the bytes of memory that this process may use: the machine's, or less by a control group's limit."""
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for version, folder in groups("memory", root):
        limit = _number(folder / ("memory.max" if version == 2 else "memory.limit_in_bytes"))
        most = most if limit is None else min(most, limit)
    return most


def usable_cores(root: Path = ROOT) -> int:
    """Return the whole CPU cores that this process may use: those that it may run on, or fewer by a quota of time."""
    most = len(os.sched_getaffinity(0))  # a cpuset's among them
    for version, folder in groups("cpu", root):
        if version == 2:
            quota, period = ([*_text(folder / "cpu.max").split(), "", ""])[:2]
        else:
            quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
        if quota.isdecimal() and period.isdecimal() and int(period):
            most = min(most, int(quota) // int(period))
    return most


def groups(controller: str, root: Path = ROOT) -> Iterator[tuple[int, Path]]:
    """Yield the folders of this process's control group and of those above it, that a controller may limit it by.

    Each comes with the version of its hierarchy; the innermost comes first.
    """
    paths = _paths(controller, root)
    for version, top, shown in _mounts(controller, root):
        path = paths.get(version)
        if path is None:
            continue
        inside = [part for part in path.split("/") if part]
        above = [part for part in top.split("/") if part]
        # Of another namespace's group nothing but what is mounted can be seen.
        below = inside[len(above) :] if inside[: len(above)] == above and ".." not in inside else []
        for depth in range(len(below), -1, -1):
            yield version, shown.joinpath(*below[:depth])


def _paths(controller: str, root: Path) -> dict[int, str]:
    """Return the path of this process's group in the hierarchy of each version."""
    found: dict[int, str] = {}
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if number == "0" and not names:
            found[2] = path
        elif controller in names.split(","):
            found[1] = path
    return found


def _mounts(controller: str, root: Path) -> Iterator[tuple[int, str, Path]]:
    """Yield where hierarchies that may hold a controller are mounted: version, the group at the top, folder."""
    for line in _text(root / "proc/self/mountinfo").splitlines():
        mount, _, source = line.partition(" - ")
        fields, kind = mount.split(), source.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        top, shown = (_OCTAL.sub(lambda found: chr(int(found[1], 8)), field) for field in fields[3:5])
        if kind[0] == "cgroup2":
            yield 2, top, root / shown.lstrip("/")
        elif kind[0] == "cgroup" and controller in kind[2].split(","):
            yield 1, top, root / shown.lstrip("/")


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdecimal() and text.isascii() else None


def _text(path: Path) -> str:
    """Return what a file of the kernel's holds, "" where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE).decode("utf-8", "replace").strip()
    except OSError:
        return ""
