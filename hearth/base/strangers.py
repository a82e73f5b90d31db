"""What strangers wrote: JSON that is bounded before it is believed."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from hearth.base.text import plain

MAX_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 64
"""Nesting allowed, far below any interpreter's own limit."""
MAX_INTEGER: Final = 2**256 - 1
"""No amount, block or id on a chain is beyond it."""
_NESTING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
"""A string, whose brackets mean nothing and which may lack its end, or one bracket."""


def read_json(raw: bytes | str) -> Any:
    """Return the value of JSON text that anyone may have written.

    Raises ValueError for what is no JSON in UTF-8, for more than 1 MiB, nesting beyond 64, numbers that are not finite
    or pass 256 bits, and half surrogate pairs, which no file or database can hold.
    """
    try:
        data = raw.encode() if isinstance(raw, str) else raw
        if len(data) > MAX_BYTES:
            raise ValueError(f"it has {len(data)} bytes, and {MAX_BYTES} are read")
        refuse_deep(data)
        value = json.loads(data.decode(), parse_constant=_no_number)
    except UnicodeError as error:
        raise ValueError("it is not UTF-8 text") from error
    level = [value]
    for _ in range(MAX_DEPTH):
        if not level:
            return value
        level = [inner for one in level for inner in _inside(one)]
    raise ValueError(f"it is nested deeper than {MAX_DEPTH}")


def refuse_deep(data: bytes, limit: int = MAX_DEPTH) -> None:
    """Raise ValueError for JSON nested deeper than `limit`, before a parser recurses into it.

    A parser's own guard is the interpreter's recursion limit, and any library may lift that above what the stack holds.
    """
    depth = 0
    for token in _NESTING.finditer(data):
        first = token[0][:1]
        if first in b"[{":
            depth += 1
            if depth > limit:
                raise ValueError(f"it is nested deeper than {limit}")
        elif first in b"]}":
            depth -= 1


def _inside(value: Any) -> list[Any]:
    """Return what a value holds, its keys too. Raises ValueError for a value out of bounds."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, list):
        return value
    if isinstance(value, str) and plain(value) != value:
        raise ValueError("it holds half a surrogate pair, which is no text")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("it holds a number that is not finite")
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise ValueError("it holds a number of more than 256 bits")
    return []


def _no_number(name: str) -> Any:
    raise ValueError(f"it holds {name}, which is no number")
