"""The job file that the page begins with, and what it brings: the first template of `hearth init`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hearth.jobfile import load_spec
from hearth.local import templates


def tables() -> Mapping[str, Any]:
    """Return the text, and by the sources' names in it each file in base64."""
    folder = Path(templates.__file__).parent / templates.DEFAULT
    spec = load_spec(folder / "job.yaml").spec
    sources = [src for src in (spec.module, *(item.src for item in spec.inputs)) if src]
    return {
        "EXAMPLE_TEXT": (folder / "job.yaml").read_text(encoding="utf-8"),
        "EXAMPLE_FILES": {src: base64.b64encode((folder / src).read_bytes()).decode() for src in sources},
    }
