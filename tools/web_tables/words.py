"""The lane table: what stands at which bit of the chain's words (protocol.md "Words"; hearth/protocol/words.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.protocol.words import HEADER_STATE, WORDS, Lane

_SAFE_BITS = 53
_ADDRESS_BITS = 160
_MONEY = ("base units", "base units x 1e6 per second")


def tables() -> Mapping[str, Any]:
    """Return every word with its lanes, and the state of a header."""
    return {
        "WORDS": {
            camel(name): {
                "bits": word.bits,
                "lanes": [
                    {"name": camel(lane.name), "shift": shift, "width": lane.width, "kind": kind_of(lane)}
                    for lane, shift in word.placed
                ],
            }
            for name, word in WORDS.items()
        },
        "HEADER_STATE": HEADER_STATE,
    }


def kind_of(lane: Lane) -> str:
    """Return what a lane's value is in TypeScript.

    "big" is a bigint: money and rates, and what a number could not hold. "code" is a coded amount as it is stored.
    """
    if lane.is_zero:
        return "zero"
    if lane.width == _ADDRESS_BITS:
        return "address"
    if lane.unit == "coded amount":
        return "code"
    if lane.unit in _MONEY or lane.width > _SAFE_BITS:
        return "big"
    return "bool" if lane.width == 1 else "number"


def camel(name: str) -> str:
    """Return a name of the library as TypeScript writes it: max_seconds is maxSeconds."""
    if name.startswith("_"):
        return name
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
