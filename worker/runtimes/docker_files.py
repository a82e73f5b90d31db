"""The folders that a container shares with the host: lent to the guest's user, and looked after when it has ended."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from hearth.base.files import delete_tree
from worker.runtimes.base import measure


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
    """Let the guest's user, whoever that is on the host, write the output folder and the state that was put in it.

    The folder above keeps everyone else out. What is in it was written by the worker: no links.
    """
    for here, _, files in os.walk(folder):
        os.chmod(here, 0o777)
        for name in files:
            os.chmod(os.path.join(here, name), 0o666)


def own(folder: Path) -> None:
    """Give everything below a folder to root, who calls: readable, without set-id bits; links stay what they are.

    A tree too deep for tools that go by path names is left to `emptied`.
    """
    if measure(folder).too_deep:
        return
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(here, name)
            os.chown(path, os.geteuid(), os.getegid(), follow_symlinks=False)
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode):
                os.chmod(path, 0o700)
            elif stat.S_ISREG(mode):
                os.chmod(path, 0o600)


def emptied(folder: Path) -> str:
    """Empty a folder of ours that is too deep for tools that go by path names; return why, "" where it is not."""
    tree = measure(folder)
    if not tree.too_deep:
        return ""
    # As a whole: more names than a program takes as arguments would look like trouble of this machine.
    delete_tree(folder)
    folder.mkdir(mode=0o700)
    return tree.offence
