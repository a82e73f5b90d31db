"""The Node that the page's tools run on, and whether it and they are here."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.kit.require import require
from tools.vyper_files import ROOT

WEB = ROOT / "web"
OLDEST = 22
"""The major version that the page's test runner asks for."""


@cache
def node() -> Path | None:
    """Return a Node that is new enough: of the machine, or the locked one of `make setup`."""
    found = [shutil.which("node"), ROOT / ".venv-node" / "bin" / "node"]
    for program in found:
        if program is None or not Path(program).exists():
            continue
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60).stdout
        if int(said.strip().removeprefix("v").partition(".")[0] or 0) >= OLDEST:
            return Path(program)
    return None


def require_web() -> Path:
    """Return the Node that the page's tools run on; skip or fail the test where a part is missing."""
    program = node()
    require("web", program is not None, f"no Node {OLDEST} or newer; make setup installs one")
    require("web", (WEB / "node_modules" / "vite").exists(), "web/node_modules is missing; make setup installs it")
    assert program is not None
    return program
