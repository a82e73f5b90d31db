"""The README's commands: its fenced blocks by their marks, run as a user runs them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.kit.evm import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
SECONDS = 300
ON_FAILURE = """trap 'echo "stopped with status $? at: $BASH_COMMAND"' ERR\n"""
PHRASE = "test test test test test test test test test test test junk"
"""The recovery phrase of the public accounts."""


def blocks(mark: str, language: str) -> list[str]:
    """Return the fenced blocks that follow a comment which begins with `mark`."""
    return re.findall(rf"^<!-- {mark}[^\n]*-->\n```{language}\n(.*?)^```$", README, re.M | re.S)


def ending(said: str) -> str:
    """Return the end of what was said, for a report that may be cut short."""
    return said[-3_000:]


def play(mark: str, folder: Path, *, change: Callable[[str], str] = str, **variables: str) -> tuple[int, str]:
    """Run the blocks of a mark in a clean folder, as a user who has the clone's examples and scripts there.

    Returns the exit status (-1 after SECONDS) and everything that was said, which ends with the line that failed.
    """
    script = change("set -eu\n" + ON_FAILURE + "".join(blocks(mark, "sh")))
    (folder / "bin").mkdir()
    command = folder / "bin" / "hearth"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hearth.cli "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    for name in ("examples", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "ape-config.yaml", folder)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    environment |= {
        "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{environment.get('PATH', '')}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        **variables,
    }
    log = folder / "said.log"
    with log.open("wb") as out:
        shell = subprocess.Popen(
            ["bash", "-c", script],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = shell.wait(SECONDS)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            # Whatever still runs, of a script that failed too: the worker, the keeper and the chain are in its session.
            for stop in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(shell.pid, stop)
                except ProcessLookupError:
                    break
            shell.wait(10)
    return code, log.read_text(encoding="utf-8", errors="replace")
