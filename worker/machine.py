"""What the workers of this machine offer together: each names its share in a folder of the user's while it runs.

One worker's offer is checked against the machine by `worker.settings.make_offer`; two workers, each within it, can
promise more than there is. An entry counts while a worker holds the home that it names, so none has to be removed.
Workers of another user, or of another HEARTH_HOME, are not seen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import structlog

from hearth.base.errors import ConfigError
from hearth.base.files import make_private, replace_text
from hearth.base.locks import holder
from hearth.protocol.types import Offer
from hearth.protocol.units import GIB
from worker.cgroups import memory_bytes, usable_cores
from worker.home import LOCK_FILE, is_running
from worker.volumes import room_under

FOLDER: Final = "running"
MAX_BYTES: Final = 1 << 16

log = structlog.get_logger("worker")


@dataclass(frozen=True, slots=True)
class Share:
    """What one worker offers, all slots together: sizes in GiB, GPUs by UUID. `home` names it."""

    home: str
    cores: int
    memory_gib: int
    disk_gib: int
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Room:
    """What there is to offer: cores, memory and free disk in bytes."""

    cores: int
    memory: int
    disk: int


def share_of(home: Path, offer: Offer, gpus: Sequence[str]) -> Share:
    """Return the share of a worker whose slots each hold what `offer` says."""
    slots = offer.slots
    return Share(str(home.resolve()), offer.cores * slots, offer.ram_gib * slots, offer.disk_gib * slots, tuple(gpus))


def room_of(home: Path) -> Room:
    """Return what this machine has for the workers whose homes are beside `home`."""
    return Room(usable_cores(), memory_bytes(), room_under(home))


def announce(user_home: Path, share: Share) -> None:
    """Name a worker's share, in the user's home folder; where that cannot be written, say so and go on."""
    name = hashlib.sha256(share.home.encode()).hexdigest()[:32]
    try:
        folder = make_private(make_private(user_home) / FOLDER)
        replace_text(folder / f"{name}.json", json.dumps(asdict(share)))
    except (OSError, ConfigError) as error:
        log.warning("other workers' doctor will not see this one", why=str(error))


def others(user_home: Path, home: Path) -> list[Share]:
    """Return the shares of the workers that run besides the one of `home`; what is no entry is passed over."""
    found: list[Share] = []
    for path in sorted((user_home / FOLDER).glob("*.json")):
        with suppress(OSError, ValueError, TypeError, KeyError):
            with path.open("rb") as file:
                raw = json.loads(file.read(MAX_BYTES))
            cores, memory, disk = (int(raw[name]) for name in ("cores", "memory_gib", "disk_gib"))
            share = Share(str(raw["home"]), cores, memory, disk, tuple(str(gpu) for gpu in raw["gpus"]))
            if share.home != str(home.resolve()) and is_running(Path(share.home)):
                found.append(share)
    return found


def home_of(user_home: Path, home: Path, process: int | None) -> str | None:
    """Return the home of the worker that a process is, of those that run besides that of `home`; None for no worker."""
    homes = (one.home for one in others(user_home, home)) if process is not None else ()
    return next((one for one in homes if holder(Path(one) / LOCK_FILE) == process), None)


def overbooked(own: Share, besides: Sequence[Share], room: Room) -> list[str]:
    """Return what this worker and the others promise that is not there, in words; nothing where nobody is besides."""
    if not besides:
        return []
    count = len(besides) + 1
    disk = own.disk_gib + sum(one.disk_gib for one in besides if _same_disk(own.home, one.home))
    sums = (
        (own.memory_gib + sum(one.memory_gib for one in besides), room.memory // GIB, "GiB of memory"),
        (own.cores + sum(one.cores for one in besides), room.cores, "cores"),
        (disk, room.disk // GIB, "GiB of free disk"),
    )
    found = [f"{count} workers offer {promised} of {has} {what}" for promised, has, what in sums if promised > has]
    shared = sorted(set(own.gpus) & {gpu for one in besides for gpu in one.gpus})
    return found + ([f"another worker offers the same GPUs: {', '.join(shared)}"] if shared else [])


def _same_disk(a: str, b: str) -> bool:
    """Say whether two homes lie on one file system; where that cannot be seen, yes."""
    try:
        return Path(a).stat().st_dev == Path(b).stat().st_dev
    except OSError:
        return True
