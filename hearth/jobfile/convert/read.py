"""Read a file of another system: YAML or JSON, as it comes, into plain values.

Other systems allow what a job file does not (unquoted decimals, anchors, several documents), so this reader is lenient,
and bounded: a size, a depth, no recursion, an alias is the same object and not a copy. A decimal stays text.
Whoever walks over the values meets no end of the stack: what an alias names counts for the depth, and is never around
the alias itself.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from hearth.base.untrusted_json import refuse_deep

MAX_BYTES: Final = 64 << 10
"""More than any file of the kind has: whatever is refused as a job file is read once more here."""
MAX_DEPTH: Final = 64

_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_CONSTANTS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class Unreadable(Exception):
    """Say that text is neither YAML nor JSON, or beyond the bounds, and why."""


def read_documents(raw: bytes) -> list[Any]:
    """Return the documents of a file: each None, a bool, an int, text, a list or a mapping with text for keys.

    Raises Unreadable.
    """
    if len(raw) > MAX_BYTES:
        raise Unreadable(f"has {len(raw)} bytes; at most {MAX_BYTES} are read")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("is not UTF-8 text") from error
    if text.lstrip().startswith("{"):
        try:
            # What begins like JSON may still be YAML in its flow style.
            refuse_deep(raw, MAX_DEPTH)
            value = json.loads(text, parse_float=str, parse_constant=str)
            json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair has no UTF-8
            return [value]
        except ValueError:
            pass
    return _Builder().build(text)


class _Builder:
    """Build values from YAML events; a stack of open collections stands in for recursion."""

    def __init__(self) -> None:
        self._documents: list[Any] = []
        self._anchors: dict[str, Any] = {}
        self._stack: list[tuple[Any, list[str]]] = []
        """Open collections, each with the key that waits for its value."""
        self._depths: dict[int, int] = {}
        """How deep each collection is, by its identity: an open one as far as it was read."""

    def build(self, text: str) -> list[Any]:
        """Return the documents of YAML text."""
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError

        try:
            for event in YAML(typ="safe", pure=True).parse(text):
                self._take(type(event).__name__, event)
        except (YAMLError, ValueError, OverflowError) as error:  # the latter two for an escape beyond Unicode
            raise Unreadable("is neither YAML nor JSON") from error
        return self._documents

    def _take(self, kind: str, event: Any) -> None:
        if kind == "DocumentStartEvent":
            self._anchors = {}
        elif kind == "AliasEvent":
            if event.anchor not in self._anchors:
                raise Unreadable(f"names the anchor {event.anchor}, which is not there")
            value = self._anchors[event.anchor]
            if any(value is around for around, _ in self._stack):
                raise Unreadable(f"refers to itself: *{event.anchor} stands inside of &{event.anchor}")
            self._hold(self._depths[id(value)] if isinstance(value, list | dict) else 0)
            self._add(value)
        elif kind == "ScalarEvent":
            # YAML escapes write what is beyond 16 bits as a pair of surrogates, like JSON's.
            try:
                event.value = event.value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
            except UnicodeDecodeError as error:
                raise Unreadable("holds half a surrogate pair, which is no text") from error
            value = _scalar(event)
            self._remember(event, value)
            self._add(value, event.value)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._hold(1)
            value = {} if kind == "MappingStartEvent" else []
            self._depths[id(value)] = 1
            self._remember(event, value)
            self._add(value)
            self._stack.append((value, []))
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            closed, _ = self._stack.pop()
            self._hold(self._depths[id(closed)])
            if isinstance(closed, dict):
                _merge(closed)

    def _hold(self, depth: int) -> None:
        """Count something so deep into the innermost open collection. Raises Unreadable."""
        if len(self._stack) + depth > MAX_DEPTH:
            raise Unreadable(f"is nested deeper than {MAX_DEPTH}")
        if self._stack:
            around = id(self._stack[-1][0])
            self._depths[around] = max(self._depths[around], depth + 1)

    def _remember(self, event: Any, value: Any) -> None:
        if event.anchor:
            self._anchors[event.anchor] = value

    def _add(self, value: Any, key: str | None = None) -> None:
        if not self._stack:
            self._documents.append(value)
            return
        top, waiting = self._stack[-1]
        if isinstance(top, list):
            top.append(value)
        elif waiting:
            top[waiting.pop()] = value
        elif key is None:
            raise Unreadable("has a key that is not text")
        else:
            waiting.append(key)


def _scalar(event: Any) -> Any:
    text: str = event.value
    if event.style is not None:
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    return int(text) if _INTEGER.fullmatch(text) else text


def _merge(mapping: dict[str, Any]) -> None:
    """Do what the key `<<` asks: take over the keys of other mappings that are not there."""
    merged = mapping.pop("<<", None)
    for source in merged if isinstance(merged, list) else [merged]:
        if isinstance(source, dict):
            for key, value in source.items():
                mapping.setdefault(key, value)
