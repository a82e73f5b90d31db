"""File systems of their own for what jobs write: a fixed pool below a worker's home, made once by root.

A container can take room that no list of files shows: blocks beyond a file's end, files without a name. Only a file
system bounds it. Mounting needs root and a worker is a plain user, so `hearth worker volumes` makes as many as there
are slots, as ext4 images whose blocks are all allocated, and a worker lends each to one attempt at a time. Without
them a job is stopped when it is seen to take too much, and the worker's reserve (`worker/disk.py`) protects the rest.

    volumes/0.img, 1.img, ...   the images, root's, mode 600
    volumes/0, 1, ...           where they are mounted: nosuid, nodev, owned by the worker's user
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hearth.base.errors import ConfigError
from hearth.base.files import free_bytes
from hearth.protocol.units import format_size
from worker.home import is_running
from worker.runtimes.base import BLOCKS_SLACK_BYTES

FOLDER: Final = "volumes"
MIN_BYTES: Final = 256 << 20
INODES: Final = 65_536
"""Names on one volume: four times what /out may hold."""
OPTIONS: Final = "loop,nosuid,nodev,noatime"
# A boot does not fail for a volume, the worker starts after it, and no trim makes holes in the image.
BOOT_OPTIONS: Final = f"{OPTIONS},nofail,x-systemd.before=hearth-worker.service,X-fstrim.notrim"
_SBIN: Final = "/usr/sbin:/sbin"
_PATH: Final = f"{os.environ.get('PATH', '/usr/bin:/bin')}:{_SBIN}"


@dataclass(frozen=True, slots=True)
class Volume:
    """One volume of a home: where it is mounted (or would be), its image, and the image's size and blocks in bytes."""

    path: Path
    image: Path
    size: int
    blocks: int

    @property
    def mounted(self) -> bool:
        """Say whether it can be lent."""
        return os.path.ismount(self.path)

    @property
    def sparse(self) -> bool:
        """Say whether the image lacks blocks, so that the disk could be full before the volume is."""
        return self.blocks < self.size

    @property
    def fstab(self) -> str:
        """Return the line of /etc/fstab that mounts it at boot."""
        where = [re.sub(r"[ \t\n\\]", _octal, str(path)) for path in (self.image, self.path)]
        return f"{where[0]} {where[1]} ext4 {BOOT_OPTIONS} 0 2"


def _octal(found: re.Match[str]) -> str:
    """Write a character as fstab(5) does: what would end a field, or begin such a number."""
    return f"\\{ord(found[0]):03o}"


# ---- what a worker uses ----


def volumes_of(home: Path) -> list[Volume]:
    """Return the volumes whose images lie below a home, by their numbers."""
    images = [path for path in (home / FOLDER).glob("*.img") if path.stem.isdigit()]
    volumes = []
    for image in sorted(images, key=lambda path: int(path.stem)):
        info = image.stat()
        volumes.append(Volume(image.with_suffix(""), image, info.st_size, info.st_blocks * 512))
    return volumes


def mounted(home: Path) -> tuple[Path, ...]:
    """Return the volumes that can be lent."""
    return tuple(volume.path for volume in volumes_of(home) if volume.mounted)


def size_of(volume: Path) -> int:
    """Return the bytes that a job can write on an empty volume, in however many files it may make."""
    facts = os.statvfs(volume)
    return max(0, facts.f_blocks * facts.f_frsize - BLOCKS_SLACK_BYTES)


def room_under(home: Path) -> int:
    """Return the bytes of disk that a home has for jobs: what is free, and its volumes."""
    return free_bytes(home) + sum(size_of(volume) for volume in mounted(home))


# ---- what root does once ----


def as_root(command: str) -> str:
    """Return a command of ours as root runs it: sudo has a path of its own, without this program's environment."""
    program = Path(sys.executable).with_name("hearth")
    return f"sudo {shlex.quote(str(program)) + command.removeprefix('hearth') if program.is_file() else command}"


def making(home: Path, count: int, size: str) -> str:
    """Return the command that makes volumes of a size, such as "20GiB"."""
    return as_root(f"hearth worker volumes --home {shlex.quote(str(home))} --slots {count} --size {size}")


def plan(home: Path, count: int, size: int) -> list[Volume]:
    """Return what `make` would leave: the volumes that are there, and those that are missing."""
    there = volumes_of(home)
    known = {volume.image.name for volume in there}
    images = [home / FOLDER / f"{number}.img" for number in range(count)]
    return there + [Volume(one.with_suffix(""), one, size, 0) for one in images if one.name not in known]


def make(home: Path, count: int, size: int, user: str | None = None) -> list[Volume]:
    """Make and mount `count` volumes of `size` bytes each; those that are there already stay.

    They are for a user, by default the home's owner; a home that is not there is made. Raises ConfigError NEEDS_ROOT,
    HOME_IN_USE, NO_ROOM, VOLUME_FAILED.
    """
    if size < MIN_BYTES:
        text = f"a volume of {format_size(size)} is too small: what the file system needs is not a job's"
        raise _failed(text, f"{making(home, count, format_size(MIN_BYTES))}, or more")
    owner = _owner(home, user)
    _need_root()
    if not home.is_dir():
        home.mkdir(mode=0o700, parents=True)
        os.chown(home, *owner)
    refuse_running(home)
    folder = home / FOLDER
    folder.mkdir(mode=0o755, exist_ok=True)
    _need_own(folder)
    there = {volume.image.name: volume for volume in volumes_of(home)}
    other = next((one for one in there.values() if one.size != size), None)
    if other is not None:
        text = f"{other.image} has {format_size(other.size)}"
        raise _failed(text, "hearth worker volumes --remove first, or the same --size")
    new = [volume for volume in plan(home, count, size) if volume.image.name not in there]
    lacks = len(new) * size + sum(volume.size - volume.blocks for volume in there.values() if volume.sparse)
    if lacks > free_bytes(folder):
        raise ConfigError(
            f"{format_size(lacks)} are needed under {folder}, and {format_size(free_bytes(folder) >> 20 << 20)} "
            "are free: the blocks of every volume are allocated now, so that none can lack them later",
            hint="fewer --slots, or a smaller --size",
            code="NO_ROOM",
            component="worker",
        )
    for volume in new:
        _make_image(volume.image, size, owner)
    for volume in volumes_of(home):
        if volume.sparse:
            _allocate(volume.image, volume.size)
        _mount(volume, owner)
    return volumes_of(home)


def remove(home: Path) -> list[Volume]:
    """Unmount and delete every volume of a home; return what they were.

    Raises ConfigError NEEDS_ROOT, HOME_IN_USE, VOLUME_FAILED.
    """
    _need_root()
    refuse_running(home)
    folder = home / FOLDER
    if not folder.is_dir():
        return []
    _need_own(folder)
    gone = volumes_of(home)
    for volume in gone:
        if volume.mounted:
            _run("umount", str(volume.path))
        volume.image.unlink()
        volume.path.rmdir()
    folder.rmdir()
    return gone


def refuse_running(home: Path) -> None:
    """Refuse while a worker runs in a home: it lends the volumes to jobs. Raises ConfigError HOME_IN_USE."""
    if is_running(home):
        raise ConfigError(
            f"a worker runs in {home}, and its volumes are lent to jobs",
            hint="hearth worker drain, and once it has ended the same command again",
            code="HOME_IN_USE",
            component="worker",
        )


def _need_root() -> None:
    if os.geteuid() != 0:
        raise ConfigError(
            "only root can mount a file system",
            hint=as_root("hearth worker volumes --help"),
            code="NEEDS_ROOT",
            component="worker",
        )


def _need_own(folder: Path) -> None:
    """Refuse a folder that another user could fill with links: root writes into it."""
    info = folder.lstat()
    if folder.is_symlink() or info.st_uid != 0 or info.st_mode & 0o022:
        raise _failed(f"{folder} is not root's alone", f"rm -r {folder}, then the same again")


def _owner(home: Path, user: str | None) -> tuple[int, int]:
    """Return the ids of a user, by default of a home's owner."""
    hint = "--user NAME: the account that the worker runs under"
    if user is None:
        if not home.is_dir():
            raise _failed(f"{home} does not exist, so that it has no owner", hint)
        return home.stat().st_uid, home.stat().st_gid
    try:
        found = pwd.getpwnam(user)
    except KeyError as error:
        raise _failed(f"there is no user {user}", hint) from error
    return found.pw_uid, found.pw_gid


def _make_image(image: Path, size: int, owner: tuple[int, int]) -> None:
    """Make an image whose blocks are all allocated, with an empty file system on it; whole or not at all."""
    draft = image.with_suffix(".part")
    draft.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    _allocate(draft, size)
    uid, gid = owner
    # Nothing may give the image's blocks back to the disk: not mkfs, by discarding, and not the kernel, which zeroes
    # what mkfs left of the inode tables and the journal by punching holes through the loop device.
    extended = f"nodiscard,lazy_itable_init=0,lazy_journal_init=0,root_owner={uid}:{gid}"
    _run("mkfs.ext4", "-q", "-F", "-m", "0", "-N", str(INODES), "-E", extended, str(draft))
    _allocate(draft, size)  # where a file system cannot zero a range of a file, mkfs punches it out
    draft.rename(image)


def _allocate(image: Path, size: int) -> None:
    with open(image, "r+b") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def _mount(volume: Volume, owner: tuple[int, int]) -> None:
    if not volume.mounted:
        volume.path.mkdir(mode=0o555, exist_ok=True)
        _run("mount", "-t", "ext4", "-o", OPTIONS, str(volume.image), str(volume.path))
    os.chown(volume.path, *owner)
    volume.path.chmod(0o700)


def _run(*command: str) -> None:
    """Run a program of the system's. Raises ConfigError VOLUME_FAILED with the first line that it said."""
    program = shutil.which(command[0], path=_PATH)
    if program is None:
        raise _failed(f"{command[0]} is not installed", "apt-get install e2fsprogs util-linux")
    environ: Mapping[str, str] = {"PATH": _PATH, "LC_ALL": "C"}
    ran = subprocess.run([program, *command[1:]], check=False, capture_output=True, text=True, env=environ)
    if ran.returncode != 0:
        said = (ran.stderr or ran.stdout).strip().splitlines()
        raise _failed(f"{' '.join(command)}: {said[0] if said else ran.returncode}", "the same again as root, or dmesg")


def _failed(why: str, hint: str) -> ConfigError:
    return ConfigError(why, hint=hint, code="VOLUME_FAILED", component="worker")
