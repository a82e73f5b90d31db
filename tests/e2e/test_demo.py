"""A demo that is stopped in the middle; the whole one is run from the wheel (test_wheel.py)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.kit.town import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def _environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT), "HEARTH_HOME": str(tmp_path / "home")}


def left_behind(tmp_path: Path) -> list[str]:
    """Return the command lines of processes that still work in the demo's folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(tmp_path).encode() in line and b"hearth-demo-" in line:
                found.append(line.decode(errors="replace"))
    return found


def test_demo__terminated_in_the_middle__stops_what_it_started(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "hearth.cli", "demo"],
        cwd=ROOT,
        env=_environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "is node 1" in line:
            break
    process.send_signal(signal.SIGTERM)
    process.stderr.read()
    assert process.wait(timeout=60) == 130
    end = time.monotonic() + 20
    while left_behind(tmp_path) and time.monotonic() < end:
        time.sleep(0.2)
    assert left_behind(tmp_path) == []
    assert not list(tmp_path.glob("hearth-demo-*"))
