"""`make demo` from start to end, and that nothing of it is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.town import ROOT
from tools import schemas

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def _environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT), "HEARTH_HOME": str(tmp_path / "home")}


def _left_behind(tmp_path: Path) -> list[str]:
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


def test_demo__whole_run__last_line_is_a_solvent_verification(tmp_path: Path) -> None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "hearth.cli", "demo"],
        cwd=ROOT,
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    took = time.monotonic() - began
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.splitlines()) == 1
    report = json.loads(done.stdout)
    schemas.validate(report)
    assert report["schema"] == "hearth.verify/1"
    assert report["solvent"] is True
    # The clock's seconds of the whole, but for what Python takes to start; the chain's run from the first posting.
    assert took - 15 < report["wall_seconds"] < took
    assert 0 < report["setup_seconds"] < report["wall_seconds"]
    assert report["seconds"] < report["wall_seconds"] - report["setup_seconds"] + 2
    assert report["failed"] == 1 and report["reclaimed"] >= 1
    assert report["units"] == report["settled"] == report["results_checked"] >= 26
    assert "it beats no more" in done.stderr and "late or silent" in done.stderr
    assert "349 of 360" in done.stderr or '"correct":349' in done.stderr
    assert "words" in done.stderr and "balances" in done.stderr and "gas per transaction" in done.stderr
    assert _left_behind(tmp_path) == []
    assert not list(tmp_path.glob("hearth-demo-*"))


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
    while _left_behind(tmp_path) and time.monotonic() < end:
        time.sleep(0.2)
    assert _left_behind(tmp_path) == []
    assert not list(tmp_path.glob("hearth-demo-*"))
