"""worker.cgroups on played trees of /proc and /sys: what a limited process may offer, in both versions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from worker import cgroups
from worker.cgroups import memory_bytes, usable_cores

GIB = 1 << 30
MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
V2 = "30 23 0:26 {top} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
V1 = "31 23 0:27 {top} /sys/fs/cgroup/{name} rw,nosuid shared:9 - cgroup cgroup rw,{name}\n"
NONE = str(0x7FFFFFFFFFFFF000)
"""What version 1 says where there is no limit."""


@pytest.fixture(autouse=True)
def _many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)))
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PAGE_SIZE": 4096}.get(name, 64 * GIB // 4096))


def tree(root: Path, own: str, mounts: str, files: dict[str, str]) -> Path:
    """Play a machine: /proc/self/cgroup, /proc/self/mountinfo, and files below /sys/fs/cgroup."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(own)
    (root / "proc/self/mountinfo").write_text("22 1 8:1 / / rw - ext4 /dev/sda1 rw\nnonsense\n" + mounts)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


V1_MOUNTS = V1.format(name="memory", top="{top}") + V1.format(name="cpu,cpuacct", top="{top}")


@pytest.mark.parametrize(
    ("own", "mounts", "files", "cores", "gib"),
    [
        ("0::/", V2.format(top="/"), {"memory.max": "max", "cpu.max": "max 100000"}, 64, 64),
        ("0::/", V2.format(top="/"), {"memory.max": str(2 * GIB), "cpu.max": "250000 100000"}, 2, 2),
        # a service manager's group: its own files are below the root, which has none
        ("0::/a.slice/x.service", V2.format(top="/"), {"a.slice/x.service/memory.max": str(3 * GIB)}, 64, 3),
        ("0::/a.slice/x.service", V2.format(top="/"), {"a.slice/x.service/cpu.max": "400000 100000"}, 4, 64),
        # the least of every level, wherever it stands
        (
            "0::/a/b/c",
            V2.format(top="/"),
            {"a/memory.max": str(4 * GIB), "a/b/memory.max": "max", "a/b/c/memory.max": str(8 * GIB)},
            64,
            4,
        ),
        ("0::/a/b", V2.format(top="/"), {"a/cpu.max": "300000 100000", "a/b/cpu.max": "800000 100000"}, 3, 64),
        # a container without a namespace of its own: its group is what is mounted
        ("0::/docker/ab", V2.format(top="/docker/ab"), {"memory.max": str(GIB), "cpu.max": "100000 100000"}, 1, 1),
        ("0::/../x", V2.format(top="/.."), {"memory.max": str(GIB), "cpu.max": "100000 100000"}, 1, 1),
        ("0::/", V2.format(top="/"), {"cpu.max": "50000 100000"}, 0, 64),
        # version 1
        (
            "5:memory:/docker/ab\n4:cpu,cpuacct:/docker/ab\n1:name=systemd:/x\n0::/x",
            V1_MOUNTS.format(top="/docker/ab"),
            {
                "memory/memory.limit_in_bytes": str(6 * GIB),
                "cpu,cpuacct/cpu.cfs_quota_us": "550000",
                "cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            5,
            6,
        ),
        (
            "5:memory:/a/b\n4:cpu,cpuacct:/a/b",
            V1_MOUNTS.format(top="/"),
            {
                "memory/memory.limit_in_bytes": NONE,
                "memory/a/memory.limit_in_bytes": str(7 * GIB),
                "memory/a/b/memory.limit_in_bytes": NONE,
                "cpu,cpuacct/a/cpu.cfs_quota_us": "-1",
                "cpu,cpuacct/a/cpu.cfs_period_us": "100000",
                "cpu,cpuacct/a/b/cpu.cfs_quota_us": "200000",
                "cpu,cpuacct/a/b/cpu.cfs_period_us": "100000",
            },
            2,
            7,
        ),
        # both at once, as a hybrid: memory by 1, time by 2
        (
            "5:memory:/a\n0::/a",
            V1.format(name="memory", top="/") + V2.format(top="/").replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified"),
            {"memory/a/memory.limit_in_bytes": str(GIB), "unified/a/cpu.max": "700000 100000"},
            7,
            1,
        ),
        # what is no limit, or cannot be read
        ("0::/", V2.format(top="/"), {"memory.max": "garbage", "cpu.max": ""}, 64, 64),
        ("0::/", V2.format(top="/"), {"memory.max": "-5", "cpu.max": "100000 0"}, 64, 64),
        ("", "", {}, 64, 64),
        ("0::/gone/x", V2.format(top="/"), {}, 64, 64),
    ],
)
def test_limits__of_a_played_tree__are_those_of_every_level(
    tmp_path: Path, own: str, mounts: str, files: dict[str, str], cores: int, gib: int
) -> None:
    root = tree(tmp_path, own, mounts, files)
    assert (usable_cores(root), memory_bytes(root)) == (cores, gib * GIB)


def test_usable_cores__cpuset_or_affinity__counts_beside_a_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(tmp_path, "0::/", V2.format(top="/"), {"cpu.max": "800000 100000"})
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 5, 7})
    assert usable_cores(root) == 3


def test_limits__of_this_process__are_at_most_the_machine() -> None:
    command = "import os; from worker import cgroups as c; print(c.usable_cores(), c.memory_bytes(), os.cpu_count())"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    cores, memory, count = map(int, done.stdout.split())
    assert 0 <= cores <= count and 0 < memory <= MACHINE
    assert Path("/") == cgroups.ROOT
