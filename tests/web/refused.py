"""What the library refuses, as vectors say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hearth.base.errors import HearthError


def code_of(act: Callable[..., Any], *arguments: Any) -> str | None:
    """Return the code with which a call refuses, None where it refuses nothing."""
    try:
        act(*arguments)
    except HearthError as error:
        return error.code
    return None
