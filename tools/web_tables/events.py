"""The events of the contracts: topics, emitters, where each value stands (hearth/market/events.py)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from hearth.market import events
from hearth.market.abi import codec, type_of
from hearth.market.contracts import CONTRACTS
from tools.web_tables import Big
from tools.web_tables.words import camel

NUMBERS: Final = frozenset({"node", "seconds", "attempt", "verdict", "op", "at", "until", "due"})
"""The values that `events.decode_of` bounds below 2**53, or at it."""
RESERVED: Final = frozenset({"name", "of", "log"})
"""What every decoded event has besides its own values."""
_KINDS: Final = {events.NodeUnitEvent: "node-unit", events.UnitEvent: "unit", events.NodeEvent: "node"}


def tables() -> Mapping[str, Any]:
    """Return the layout of each event, and the bounds that a reader checks.

    A value is a topic, or a word of the data at a byte offset. What the checks of every reader bound by 2**53 is a
    number in TypeScript, every other uint256 a bigint.
    """
    return {
        "EVENTS": [_layout(cls) for cls in events.EVENTS.values()],
        "TERMS_KINDS": _terms_kinds(),
        "BOUNDS": {
            "node": Big(events.MAX_NODE),
            "units": Big(events.MAX_UNITS),
            "attempt": Big(events.MAX_ATTEMPT),
            "seconds": Big(events.MAX_SECONDS),
            "time": Big(events.MAX_TIME),
        },
    }


def _layout(cls: type[events.Event]) -> dict[str, Any]:
    emitters = [name for name in CONTRACTS if name in events._emitters()[cls]]
    entry = next(e for e in codec(emitters[0]).abi if e["type"] == "event" and e["name"] == cls.__name__)
    topics, offset, fields = 1, 0, []
    for parameter in entry["inputs"]:
        kind, name = type_of(parameter), parameter["name"]
        number = name in NUMBERS and kind == "uint256"
        field = {"name": camel(name), "kind": "terms" if kind.startswith("(") else "number" if number else kind}
        if parameter["indexed"]:
            fields.append({**field, "topic": topics})
            topics += 1
        else:
            fields.append({**field, "offset": offset})
            offset += _width(kind)
    if (topics, offset) != (events._by_class()[cls][1].topics, events.data_bytes_of(cls)):
        raise ValueError(f"{cls.__name__} is laid out otherwise than the library reads it")
    if RESERVED & {field["name"] for field in fields}:
        raise ValueError(f"{cls.__name__} has a value by a name that every event has")
    return {
        "name": cls.__name__,
        "of": next((kind for parent, kind in _KINDS.items() if issubclass(cls, parent)), "market"),
        "topic": events.topic_of(cls),
        "topics": topics,
        "size": offset,
        "emitters": emitters,
        "fields": fields,
    }


def _terms_kinds() -> list[str]:
    """Return the kinds of the nine words of the terms."""
    entry = next(e for e in codec("JobRegistry").abi if e["type"] == "event" and e["name"] == "JobPosted")
    (terms,) = [type_of(p) for p in entry["inputs"] if p["name"] == "terms"]
    return terms[1:-1].split(",")


def _width(kind: str) -> int:
    """Return the bytes that a value's head takes in the data."""
    if kind.startswith("("):
        return 32 * len(kind[1:-1].split(","))
    fixed = re.fullmatch(r"uint256\[(\d+)\]", kind)
    return 32 * int(fixed[1]) if fixed else 32
