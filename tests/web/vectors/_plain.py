"""Values of the library as JSON that loses nothing: names as in TypeScript, numbers above 2**53 as decimal strings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from hearth.base.errors import HearthError
from tools.web_tables.words import camel

SAFE = 2**53


def plain(value: Any) -> Any:
    """Return a value of the library, with all that it holds, as the vectors write it."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < SAFE else str(int(value))
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if is_dataclass(value):
        return {camel(field.name): plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {camel(name): plain(item) for name, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {camel(key) if isinstance(key, str) else str(int(key)): plain(item) for key, item in value.items()}
    return [plain(item) for item in value]


def outcome(call: Callable[[], Any]) -> dict[str, Any]:
    """Return {"out": ...} of a call, or {"code": ...} where it refuses.

    A word that is not as it should be is a ValueError in the library, BAD_WORD in the page; a division by zero has a
    code there as well, since a stranger's word can bring one about.
    """
    try:
        return {"out": plain(call())}
    except HearthError as refused:
        return {"code": refused.code}
    except ZeroDivisionError:
        return {"code": "DIVIDE_BY_ZERO"}
    except (ValueError, KeyError):
        return {"code": "BAD_WORD"}
