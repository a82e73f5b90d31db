"""Values of parameters for people, by their units."""

from __future__ import annotations

from typing import Any

from hearth.client.governance.parameters import in_words
from hearth.protocol.units import Asset

TOKEN = Asset(symbol="USD", decimals=6, address="0x" + "0a" * 20)


def cases() -> list[dict[str, Any]]:
    """Return the words of each unit's values, the least and odd ones among them."""
    values = {
        "amount": (0, 1, 1_230_000, 10**12),
        "span": (0, 1, 60, 3_661, 86_400, 604_800),
        "share": (0, 1, 10, 100, 101, 250, 500, 5_000, 10_000, 65_535),
        "number": (0, 1, 2**40),
    }
    return [
        {"unit": unit, "value": str(value), "out": in_words(unit, value, TOKEN)}  # type: ignore[arg-type]
        for unit, many in values.items()
        for value in many
    ]
