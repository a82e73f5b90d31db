"""Where the example jobs are."""

from __future__ import annotations

from pathlib import Path


def examples_folder() -> Path:
    """Return the folder of examples: inside the package where it is installed, beside it in a clone (setup.py)."""
    package = Path(__file__).parents[1]
    installed = package / "examples"
    return installed if installed.is_dir() else package.parent / "examples"
