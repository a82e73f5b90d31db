"""What the library says, as JSON that the page's tests read: tests/data/web/<name>.json.

    python -m tests.web.vectors [NAME ...]   write them again

Each module here but this one and __main__ is a file: `cases()` returns its value, the same each time it is called.
Whole numbers above 2**53 stand as decimal strings, bytes as 0x-hex.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "data" / "web"


def names() -> list[str]:
    """Return the names of all vectors, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def written(name: str) -> str:
    """Return the text of a vector's file as the library of now would have it."""
    return _rows(importlib.import_module(f"{__name__}.{name}").cases()) + "\n"


def _rows(value: Any, depth: int = 2) -> str:
    """Return JSON without spaces, in which the rows of each list stand on lines of their own."""
    if depth and isinstance(value, dict):
        return "{" + ",\n".join(f"{json.dumps(key)}:{_rows(item, depth - 1)}" for key, item in value.items()) + "}"
    if depth and isinstance(value, list):
        return "[\n" + ",\n".join(_rows(item, 0) for item in value) + "]"
    return json.dumps(value, separators=(",", ":"))
