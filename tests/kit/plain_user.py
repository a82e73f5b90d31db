"""Run a program as a user with no rights but those of its groups, on a machine whose tests run as root.

What it must read may lie below folders that only root enters (an interpreter in /root, say). In a mount namespace of
its own, each of these is an empty folder with nothing in it but what is read: no mode on the machine changes.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PLAIN_UID = 60_501
"""Neither root nor the user that guests have in their containers."""


def _closed_above(path: Path) -> Path | None:
    """Return the topmost folder above a path that others cannot enter."""
    above = [parent for parent in reversed(path.parents) if not parent.stat().st_mode & stat.S_IXOTH]
    return above[0] if above else None


def _opening(paths: Sequence[Path], sees: Sequence[Path], scratch: Path) -> Iterator[str]:
    """Yield the commands that make paths reachable in this mount namespace, those of `sees` with their modes."""
    wanted = [path for path in dict.fromkeys(path.resolve() for path in sees) if _closed_above(path)]
    for path in dict.fromkeys(path.resolve() for path in paths):
        # A folder that is closed itself is one to put what it holds into.
        inside = sorted(path.iterdir()) if path.is_dir() and not path.stat().st_mode & stat.S_IXOTH else [path]
        wanted += [each for each in inside if _closed_above(each)]
    aside: dict[Path, Path] = {}
    for path in wanted:
        closed = _closed_above(path)
        assert closed is not None
        if closed not in aside:
            aside[closed] = scratch / str(len(aside))
            yield shlex.join(["mkdir", str(aside[closed])])
            yield shlex.join(["mount", "--rbind", str(closed), str(aside[closed])])
            yield shlex.join(["mount", "-t", "tmpfs", "-o", "mode=755", "none", str(closed)])
        source = aside[closed] / path.relative_to(closed)
        if path.is_dir():
            yield shlex.join(["mkdir", "-p", str(path)])
        else:
            yield shlex.join(["mkdir", "-p", str(path.parent)])
            yield shlex.join(["touch", str(path)])
        yield shlex.join(["mount", "--rbind", str(source), str(path)])


@contextmanager
def plain_home() -> Iterator[Path]:
    """Return a scratch folder that the plain user owns."""
    with tempfile.TemporaryDirectory(prefix="hearth-plain-", dir="/tmp") as name:
        os.chown(name, PLAIN_UID, PLAIN_UID)
        yield Path(name)


def run_plain(
    arguments: Sequence[str],
    *,
    home: Path,
    groups: Sequence[int] = (),
    reads: Sequence[Path] = (),
    sees: Sequence[Path] = (),
    cwd: Path,
) -> subprocess.CompletedProcess[str]:
    """Run this Python with arguments as the plain user, who may read `reads`; `groups` are its further groups.

    `sees` are folders that it finds in their place, on their own disk and with their own modes.
    """
    with tempfile.TemporaryDirectory(prefix="hearth-mounts-", dir="/tmp") as scratch:
        lines = list(_opening([Path(sys.prefix), Path(sys.base_prefix), cwd, *reads], sees, Path(scratch)))
        user = ["setpriv", f"--reuid={PLAIN_UID}", f"--regid={PLAIN_UID}", "--no-new-privs"]
        user += [f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"]
        lines.append(f"cd {shlex.quote(str(cwd))}")
        lines.append("exec " + shlex.join([*user, "--", sys.executable, *arguments]))
        return subprocess.run(
            ["unshare", "--mount", "--propagation", "slave", "sh", "-e", "-c", "\n".join(lines)],
            env={**os.environ, "HOME": str(home), "USER": "plain", "LOGNAME": "plain", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
