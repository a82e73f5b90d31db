"""The folders that a container shares with the host: lent to the guest's user, and taken back."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterable
from pathlib import Path

from worker.runtimes.base import measure
from worker.runtimes.docker_request import GUEST_UID


def share_inputs(folders: Iterable[Path]) -> None:
    """Let the guest's user read the input folders: the worker's umask hides them from every other user."""
    for folder in folders:
        for here, _, files in os.walk(folder):
            os.chmod(here, stat.S_IMODE(os.lstat(here).st_mode) | 0o055)
            for name in files:
                path = os.path.join(here, name)
                mode = os.lstat(path).st_mode
                if stat.S_ISREG(mode):
                    os.chmod(path, stat.S_IMODE(mode) | 0o044)


def lend_output(folder: Path) -> None:
    """Let the guest's user write the output folder and what an earlier attempt left in it."""
    if os.geteuid() != 0:
        os.chmod(folder, 0o777)  # the folder above keeps everyone else out
        return
    _own(folder, GUEST_UID, GUEST_UID)


def take_output(folder: Path) -> str:
    """Give the outputs to the worker's user, readable, without set-id bits; links are left for `check_outputs`.

    A tree too deep for tools that go by path names is deleted instead, and the reason returned.
    """
    tree = measure(folder)
    if tree.too_deep:
        with os.scandir(folder) as found:
            paths = [entry.path for entry in found]
        subprocess.run(["rm", "-rf", "--", *paths], check=True)  # unlike shutil, it has no limit on depth
        return tree.offence
    if os.geteuid() != 0:
        return ""
    _own(folder, os.geteuid(), os.getegid())
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(here, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode):
                os.chmod(path, 0o700)
            elif stat.S_ISREG(mode):
                os.chmod(path, 0o600)
    os.chmod(folder, 0o700)
    return ""


def _own(folder: Path, uid: int, gid: int) -> None:
    os.chown(folder, uid, gid)
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(os.path.join(here, name), uid, gid, follow_symlinks=False)
