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

DATA = Path(__file__).parents[2] / "data" / "web"


def names() -> list[str]:
    """Return the names of all vectors, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def written(name: str) -> str:
    """Return the text of a vector's file as the library of now would have it."""
    module = importlib.import_module(f"{__name__}.{name}")
    return json.dumps(module.cases(), indent=1, ensure_ascii=True) + "\n"
