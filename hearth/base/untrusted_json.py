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
_NESTING: Final = re.compile(rb'(?:[^"\[\]{}]|"(?:[^"\\]|\\.)*+"?)*+([\[\]{}]|\Z)', re.DOTALL)
"""Up to the next bracket outside of texts, or to the end; it matches from anywhere, so no byte is looked at twice."""

_STEPS: Final = {b"[": 1, b"{": 1, b"]": -1, b"}": -1, b"": 0}


def read_json(raw: bytes | str, *, max_bytes: int = MAX_BYTES, max_values: int = MAX_BYTES) -> Any:
    """Return the value of JSON text that anyone may have written.

    Raises ValueError for what is no JSON in UTF-8, for more than `max_bytes`, or more values than about `max_values`
    (three bytes may be a value, which takes seventy), nesting beyond 64, numbers that are not finite or pass 256 bits,
    and half surrogate pairs, which no file or database can hold.
    """
    try:
        data = raw.encode() if isinstance(raw, str) else raw
        if len(data) > max_bytes:
            raise ValueError(f"it has {len(data)} bytes, and {max_bytes} are read")
        # Each value but the first comes after one of these; those within texts are counted too.
        if data.count(b",") + data.count(b"[") + data.count(b"{") > max_values:
            raise ValueError(f"it holds more than {max_values} values")
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
    for found in _NESTING.finditer(data):
        depth += _STEPS[found[1]]
        if depth > limit:
            raise ValueError(f"it is nested deeper than {limit}")


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
