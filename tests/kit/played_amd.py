"""The files by which a kernel tells of AMD's GPUs, in a folder of a test's own, and a process that finds
them at /sys. Source of their names: the kernel's documentation of amdgpu and of its compute driver.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

from tests.kit.played_gpu import GIB, PublishedSpec, becomes_dev, device_node, need_gpu
from tests.kit.require import require

MI300X: Final = {"device": "0x74a1", "revision": "0x00", "gfx": 90402, "product_name": "AMD Instinct MI300X OAM"}
RX_7900_XTX: Final = {"device": "0x744c", "revision": "0xc8", "gfx": 110000}
FIRST_RENDER: Final = 128
RENDER_GROUP: Final = 993
"""The group of the host that may open a GPU, as distributions have it."""


@dataclass
class AmdCard:
    """A GPU: its memory, and what its files hold over those of an RX 7900 XTX; None for a file that is not there."""

    gib: float = 24
    says: dict[str, Any] = field(default_factory=dict)
    unique_id: str | None = field(default_factory=lambda: os.urandom(8).hex())

    @property
    def uuid(self) -> str:
        """Return its name for owners and in reports."""
        return f"GPU-{self.unique_id}"


class AmdMachine:
    """A machine whose kernel tells of these cards, from the next look on after each `write`."""

    def __init__(self, folder: Path, cards: Sequence[AmdCard]) -> None:
        self.folder = folder
        self.cards = list(cards)
        self._published = PublishedSpec(folder.name)
        folder.chmod(0o755)
        self.write()

    @property
    def sys(self) -> Path:
        """Return the folder that stands for /sys."""
        return self.folder / "sys"

    @property
    def dev(self) -> Path:
        """Return the folder that stands for /dev."""
        return self.folder / "dev"

    def place(self, index: int) -> Path:
        """Return the folder of a card."""
        return self.sys / "module/amdgpu/drivers/pci:amdgpu" / f"0000:{index + 3:02x}:00.0"

    def write(self) -> None:
        """Let the kernel say what the cards hold now."""
        _put(self.sys / "module/amdgpu/version", "6.12.12")
        _node(self.dev / "kfd")
        (self.sys / "class/kfd/kfd/proc").mkdir(parents=True, exist_ok=True)
        _put(self.sys / "class/kfd/kfd/topology/nodes/0/gpu_id", 0)
        for index, card in enumerate(self.cards):
            self._write(index, card)

    def _write(self, index: int, card: AmdCard) -> None:
        says = {**RX_7900_XTX, "used": GIB >> 4, "partition": None, "ue": 0, "power": 355_000_000, **card.says}
        place, render = self.place(index), FIRST_RENDER + index
        files: dict[str, Any] = {
            "device": says["device"],
            "revision": says["revision"],
            "unique_id": card.unique_id,
            "product_name": says.get("product_name"),
            "mem_info_vram_total": says.get("total", int(card.gib * GIB)),
            "mem_info_vram_used": says["used"],
            "current_compute_partition": says["partition"],
            "ras/umc_err_count": None if says["ue"] is None else f"ue: {says['ue']}\nce: 7",
            f"hwmon/hwmon{index}/power1_cap": says["power"],
            f"drm/renderD{render}/dev": f"226:{render}",
        }
        for name, text in files.items():
            _put(place / name, text)
        _node(self.dev / "dri" / f"renderD{render}")
        node = self.sys / f"class/kfd/kfd/topology/nodes/{index + 1}"
        _put(node / "gpu_id", 5000 + index)
        gfx = "" if says["gfx"] is None else f"gfx_target_version {says['gfx']}\n"
        _put(node / "properties", f"simd_count 192\n{gfx}drm_render_minor {render}\n")
        for pid, size in says.get("procs", {}).items():
            _put(self.sys / f"class/kfd/kfd/proc/{pid}/vram_{5000 + index}", size)

    def change(self, index: int, **says: Any) -> None:
        """Let a card say something else."""
        self.cards[index].says.update(says)
        self.write()

    def spec(self) -> dict[str, Any]:
        """Return the CDI specification of the cards, shaped as `amd-ctk cdi generate` does."""
        kfd = {"path": "/dev/kfd", "hostPath": str(self.dev / "kfd")}
        nodes = [f"renderD{FIRST_RENDER + index}" for index in range(len(self.cards))]
        return {
            "cdiVersion": "0.6.0",
            "kind": "amd.com/gpu",
            "devices": [
                {
                    "name": str(index),
                    "containerEdits": {
                        "deviceNodes": [
                            {
                                "path": f"/dev/dri/{node}",
                                "hostPath": str(self.dev / "dri" / node),
                                "permissions": "rwm",
                            },
                            kfd,
                        ]
                    },
                }
                for index, node in enumerate(nodes)
            ],
        }

    def publish(self, spec: Mapping[str, Any] | None = None) -> None:
        """Put a specification where the engine reads it: by default the right one."""
        self._published.put(spec or self.spec())

    def withdraw(self) -> None:
        """Take the specification away."""
        self._published.withdraw()

    def inside(self, *arguments: str) -> list[str]:
        """Return Python's arguments by which it runs with others on this machine: see `_enter`."""
        return ["-m", "tests.kit.played_amd", str(self.folder), *arguments]


def _enter(folder: Path, arguments: Sequence[str]) -> NoReturn:
    """Become a Python in a mount namespace of its own, in which a machine's folders are /sys and /dev."""
    lines = [
        "set -e",
        f"mount --bind {folder}/sys /sys",
        *becomes_dev(folder / "dev"),
        f"exec {shlex.join([sys.executable, *arguments])}",
    ]
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", "sh", "-c", "\n".join(lines)])


def _put(file: Path, text: object) -> None:
    """Write a file, or take it away."""
    if text is None:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n")


def _node(path: Path) -> None:
    """Make a node that its group alone may open."""
    device_node(path, 0o660, RENDER_GROUP)


def amd_card(gib: float = 24, **says: Any) -> AmdCard:
    """Return a card."""
    return AmdCard(gib, says)


@contextmanager
def amd_machine(*cards: AmdCard) -> Iterator[AmdMachine]:
    """Play a machine while the context is open, with its spec where the engine of the service `gpu` reads it."""
    need_gpu()
    require("mounts", os.geteuid() == 0, "only root makes device nodes and mount namespaces")
    with tempfile.TemporaryDirectory(prefix="hearth-amd-") as name:
        machine = AmdMachine(Path(name), cards)
        machine.publish()
        try:
            yield machine
        finally:
            machine.withdraw()


if __name__ == "__main__":
    _enter(Path(sys.argv[1]), sys.argv[2:])
