"""A machine with GPUs that the driver of tools/gpu plays, and the CDI spec by which the engine of the test service
`gpu` gives them to containers.

Each machine has cards of its own, in a spec of its own: tests that share the engine do not see each other's.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hearth.base.files import replace_text
from tests.kit.require import require
from tools.services.gpu import CUDA, LIBRARY, SMI

HOST: Final = os.environ.get("HEARTH_GPU_DOCKER_HOST", "")
SPECS: Final = os.environ.get("HEARTH_GPU_SPECS", "")
DRIVER: Final = os.environ.get("HEARTH_GPU_DRIVER", "")
PROGRAMS: Final = Path(os.environ.get("HEARTH_GPU_PROGRAMS", ""))
GIB: Final = 1 << 30
SPEC_SECONDS: Final = 0.5
"""Within which the engine reads a spec again that was written."""
INSIDE: Final = "/run/played-gpu"
"""Where a container sees the folder of its machine."""
VERSION: Final = "570.133.20"
"""Of the driver, as tools/gpu/machine.h says it."""
LIBRARIES: Final = f"usr/lib/{os.uname().machine}-linux-gnu"
FILES: Final = {
    SMI: f"usr/bin/{SMI}",
    **{name: f"{LIBRARIES}/{name.removesuffix('.1')}.{VERSION}" for name in (CUDA, LIBRARY)},
}
"""The driver's files, and where its installer puts them."""
LINKS: Final = {f"{LIBRARIES}/{name}": FILES[name] for name in (CUDA, LIBRARY)}
"""What programs ask for, and the file: NVIDIA's hooks make these links, and the kit's spec mounts them instead."""
CONTROL: Final = ("nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools", "nvidiactl")
"""The driver's nodes that every container with a GPU gets."""
OPTIONS: Final = ("ro", "nosuid", "nodev", "rbind", "rprivate")


def need_gpu() -> None:
    """Skip the calling test where the service `gpu` does not run, or fail it where CI says so."""
    require("gpu", bool(HOST and SPECS and DRIVER), "HEARTH_GPU_DOCKER_HOST is not set (make services-up)")


@dataclass
class Card:
    """A GPU: what the driver says of it by the keys of tools/gpu/machine.h, over what it says of an RTX 4090."""

    uuid: str = field(default_factory=lambda: f"GPU-{uuid.uuid4()}")
    says: dict[str, str | int | Sequence[str]] = field(default_factory=dict)

    @property
    def slices(self) -> list[str]:
        """Return the UUIDs of the slices into which MIG has cut it."""
        return [value.partition(":")[0] for key, value in _pairs(self.says) if key == "slice"]

    def lines(self) -> Iterator[str]:
        """Yield the card's lines of the machine's file."""
        yield f"gpu={self.uuid}"
        yield from _lines(self.says)


def card(name: str = "NVIDIA GeForce RTX 4090", gib: float = 24, **says: str | int | Sequence[str]) -> Card:
    """Return a card of a name and memory."""
    return Card(says={"name": name, "total": int(gib * GIB), **says})


def _pairs(says: Mapping[str, str | int | Sequence[str]]) -> Iterator[tuple[str, str]]:
    for key, value in says.items():
        for one in (value,) if isinstance(value, str | int) else value:
            yield key, str(one)


def _lines(says: Mapping[str, str | int | Sequence[str]]) -> Iterator[str]:
    return (f"{key}={value}" for key, value in _pairs(says))


class PlayedMachine:
    """A machine whose driver says what its cards and `says` hold, from the next call on after each `write`."""

    def __init__(self, folder: Path, cards: Sequence[Card]) -> None:
        self.folder = folder
        self.cards = list(cards)
        self.says: dict[str, str | int | Sequence[str]] = {}
        self._published = PublishedSpec(folder.name)
        folder.mkdir(mode=0o755, exist_ok=True)
        folder.chmod(0o755)
        self._install()
        self.write()

    @property
    def file(self) -> Path:
        """Return the file that the driver reads."""
        return self.folder / "machine"

    @property
    def environ(self) -> dict[str, str]:
        """Return the variables of a process that runs on this machine."""
        return {"LD_LIBRARY_PATH": DRIVER, "PLAYED_GPU": str(self.file)}

    def write(self) -> None:
        """Let the driver say what the cards hold now; a call sees it whole or not at all."""
        lines = [*_lines(self.says), *(line for one in self.cards for line in one.lines())]
        replace_text(self.file, "\n".join(lines) + "\n")

    def change(self, index: int | None = None, **says: str | int | Sequence[str] | None) -> None:
        """Let a card, or without an index the machine, say something else; None takes a fault away again."""
        held = self.says if index is None else self.cards[index].says
        for key, value in says.items():
            if value is None:
                held.pop(key, None)
            else:
                held[key] = value
        self.write()

    def publish(self, spec: Mapping[str, Any] | str | None = None) -> None:
        """Put a spec where the engine reads it: by default the right one, and a text as it is."""
        self._published.put(spec or self.spec())

    def withdraw(self) -> None:
        """Take the spec away."""
        self._published.withdraw()

    def spec(self) -> dict[str, Any]:
        """Return the CDI spec of the cards, as `nvidia-ctk cdi generate --device-name-strategy=uuid` writes it but for
        its hooks and `all` (test_nvidia_ctk.py), what plays the machine in a container, and LINKS."""
        places = {place: place for place in FILES.values()} | LINKS
        mounts = [*((self.folder / file, f"/{place}") for place, file in places.items()), (self.folder, INSIDE)]
        return {
            "cdiVersion": "0.5.0",
            "kind": "nvidia.com/gpu",
            "devices": [
                {"name": name, "containerEdits": {"deviceNodes": [self._node(each) for each in nodes]}}
                for name, nodes in self._devices()
            ],
            "containerEdits": {
                "env": ["NVIDIA_VISIBLE_DEVICES=void", f"PLAYED_GPU={INSIDE}/machine", "PLAYED_GPU_NODES=1"],
                "deviceNodes": [self._node(name) for name in CONTROL],
                "mounts": [
                    {"hostPath": str(source), "containerPath": target, "options": list(OPTIONS)}
                    for source, target in mounts
                ],
            },
        }

    def capabilities(self) -> Iterator[tuple[str, int]]:
        """Yield the MIG capabilities of the cards' slices and their nodes' numbers, as /proc/driver/nvidia-caps has."""
        for index, one in enumerate(self.cards):
            for place, _ in enumerate(one.slices, 1):
                for at, name in enumerate((f"gi{place}", f"gi{place}/ci0")):
                    yield f"gpu{index}/{name}/access", 100 * index + 2 * place + at

    def _devices(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the name of each device and its nodes: a card that MIG has cut is its slices."""
        minors = dict(self.capabilities())
        for index, one in enumerate(self.cards):
            if not one.slices:
                yield one.uuid, (f"nvidia{index}",)
            for place, name in enumerate(one.slices, 1):
                caps = (minors[f"gpu{index}/gi{place}/{part}access"] for part in ("", "ci0/"))
                yield name, (f"nvidia{index}", *(f"nvidia-caps/nvidia-cap{minor}" for minor in caps))

    def _node(self, name: str) -> dict[str, Any]:
        """Return how a spec names a device node, which is made."""
        path = device_node(self.folder / "dev" / name)
        held = {"major": 1, "minor": 3, "fileMode": 0o666, "permissions": "rwm"}
        return {"path": f"/dev/{name}", "hostPath": str(path), **held}

    def _install(self) -> None:
        """Put the driver's files where its installer would, below the folder instead of `/`."""
        for name, place in FILES.items():
            target = self.folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(DRIVER) / name, target)


class PublishedSpec:
    """The CDI spec of a machine, where the engine of the service `gpu` reads it."""

    def __init__(self, name: str) -> None:
        self._file = Path(SPECS) / f"{name}.json"

    def put(self, spec: Mapping[str, Any] | str) -> None:
        """Write it, a text as it is.

        It is written in place: the engine does not see a file that is moved there, and needs a moment for this one.
        """
        self._file.write_text(spec if isinstance(spec, str) else json.dumps(spec))
        time.sleep(SPEC_SECONDS)

    def withdraw(self) -> None:
        """Take it away."""
        self._file.unlink(missing_ok=True)


def device_node(path: Path, mode: int = 0o666, group: int = 0) -> Path:
    """Make a device node that stands for a GPU's: it does nothing, as /dev/null."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mknod(path, mode | 0o020000, os.makedev(1, 3))
        path.chmod(mode)
        os.chown(path, 0, group)
    return path


def becomes_dev(dev: Path) -> list[str]:
    """Return the shell's lines by which a folder of device nodes is /dev, in a mount namespace of one's own."""
    nodes, places = ("null", "zero", "full", "random", "urandom", "tty"), ("shm", "pts")
    return [
        *(f"touch {dev}/{name}; mount --bind /dev/{name} {dev}/{name}" for name in nodes),
        *(f"mkdir -p {dev}/{name}; mount --rbind /dev/{name} {dev}/{name}" for name in places),
        f"mount --rbind {dev} /dev",
    ]


@contextmanager
def played_machine(*cards: Card) -> Iterator[PlayedMachine]:
    """Play a machine while the context is open, with its spec where the engine of the service `gpu` reads it."""
    need_gpu()
    with tempfile.TemporaryDirectory(prefix="hearth-gpu-") as name:
        machine = PlayedMachine(Path(name), cards)
        machine.publish()
        try:
            yield machine
        finally:
            machine.withdraw()
