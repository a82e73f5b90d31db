"""What the commands tell a running worker, in a file of its home: to run, to pause or to drain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from hearth.base.files import replace_text

CONTROL_FILE: Final = "control.json"
MODES: Final = ("run", "pause", "drain")
MODE_LABELS: Final = {"pause": "paused", "drain": "draining"}
"""What a worker's owner reads of it beside the chain's word: nobody else knows of it."""


def set_mode(home: Path, mode: str) -> None:
    """Tell a running worker to "run", to "pause" (take nothing new) or to "drain" (finish, then stop)."""
    if mode not in MODES:
        raise ValueError(f"{mode} is none of {MODES}")
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_text(home / CONTROL_FILE, json.dumps({"mode": mode}))


def read_mode(home: Path) -> str:
    """Return what the worker is told to do; "run" where nothing was said."""
    try:
        mode = json.loads((home / CONTROL_FILE).read_text(encoding="utf-8")).get("mode")
    except (OSError, ValueError, AttributeError):
        return "run"
    return mode if mode in MODES else "run"
