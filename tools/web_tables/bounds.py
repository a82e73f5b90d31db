"""Bounds and constants of the arithmetic: hearth/protocol/types.py, formulas.py, reputation.py, gas.py, units.py."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from hearth.protocol import formulas, gas, reputation, types, units, zones
from tools.web_tables import Big

_MONEY = ("RATE_SCALE", "BPS", "SLASH_DIVISOR", "SENTINEL", "MAX_UINT")
"""What money is multiplied with or divided by, and what fills a word: bigints."""
_UNREAD = {
    *("MAX_PROOF_SECONDS", "COIN", "VERSION", "MAX_EXTENSIONS", "MAX_SECONDS", "MOST_SHARED", "KIB", "TIB"),
    *("MAX_ATTEMPTS", "MAX_RATE", "MAX_STAKE", "MAX_VRAM_GIB", "SMALL_FROM"),
}
"""What nothing in the page asks for."""


def tables() -> Mapping[str, Any]:
    """Return the constants by name; those of the reputation and the gas each as one table."""
    flat = {**_numbers(types), **_numbers(formulas), **_numbers(zones), **_numbers(units)}
    return {
        "ZERO_ADDRESS": types.ZERO_ADDRESS,
        "ZERO_HASH": types.ZERO_HASH,
        **{name: Big(value) if name in _MONEY else value for name, value in flat.items() if name not in _UNREAD},
        "CHECKPOINT_SHARE": [Big(part) for part in formulas.CHECKPOINT_SHARE],
        "REPUTATION": {name: Big(value) for name, value in _numbers(reputation).items() if name != "BPS"},
        "GAS": _numbers(gas),
        "SECONDS_OF": {unit: units.parse_duration(f"1{unit}") for unit in ("d", "h", "m", "s")},
        "RATE_SECONDS_OF": {unit: units.split_rate(f"1/{unit}")[1] for unit in ("h", "min", "s", "d")},
        "BYTES_OF": {
            unit: Big(units.parse_size(f"1{unit}"))
            for unit in ("B", "KiB", "MiB", "GiB", "TiB", "Ki", "Mi", "Gi", "Ti")
        },
        "ETHER_DECIMALS": {
            unit: len(str(units.parse_amount(f"1 {unit}", units.NATIVE))) - 1 for unit in ("wei", "gwei", "ether")
        },
    }


def _numbers(module: ModuleType) -> dict[str, int]:
    return {name: value for name, value in vars(module).items() if name.isupper() and type(value) is int}
