"""Read and write human units exactly: amounts, rates, durations and sizes, in integers from end to end.

Amounts are base units of the market's asset, rates are base units x 1e6 per second and per unit of work (protocol.md
"Definitions"), durations are seconds, sizes are bytes. No float is made on the way, in or out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from hearth.base.errors import UsageError
from hearth.protocol.types import RATE_SCALE

SHOWN_DIGITS: Final = 6
"""Significant digits of an amount that is shown to people; with --json it stands in base units beside it."""
SMALL_FROM: Final = 512
"""From so many on, a number without a unit is thought to count MiB: few ask for that many GiB."""
KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40

_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PER = {"h": 3_600, "min": 60, "s": 1, "d": 86_400}
_PER_WORDS = {
    **dict.fromkeys(("hr", "hour", "hours"), "h"),
    **dict.fromkeys(("m", "minute", "minutes"), "min"),
    **dict.fromkeys(("sec", "second", "seconds"), "s"),
    **dict.fromkeys(("day", "days"), "d"),
}
"""What people write for a rate's unit of time."""
_BYTES = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB, "Ki": KIB, "Mi": MIB, "Gi": GIB, "Ti": TIB}

_ETHER_DECIMALS: Final = {"wei": 0, "gwei": 9, "ether": 18}
"""Decimals of the Ethereum units that a native coin of 18 decimals is also written in."""

_AMOUNT = re.compile(r"([0-9]{1,40})(?:\.([0-9]{1,40}))?(?: ?([A-Za-z][A-Za-z0-9.]{0,15}))?")
_DURATION = re.compile(r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?")
_COMMA = re.compile(r"([0-9]),([0-9]{1,2}(?![0-9])|[0-9]{4,})")
_FRACTION = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?([dhms])?")
_NEAR_SIZE = re.compile(r"([0-9]{1,18})(\.[0-9]{1,12})? ?(?:([KMGTBkmgtb])[A-Za-z]*)?")
_SIZE = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,12}))? ?([A-Za-z]+)")


@dataclass(frozen=True, slots=True)
class Asset:
    """Name the one asset of a deployment: its symbol, its decimals 0..36, its token address or None for native."""

    symbol: str
    decimals: int
    address: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.decimals <= 36:
            raise ValueError(f"asset {self.symbol} has {self.decimals} decimals, outside 0..36")


NATIVE: Final = Asset("ETH", 18)
"""The coin of a chain that says nothing else."""


def parse_amount(text: str, asset: Asset) -> int:
    """Return base units of `asset` for text such as "0.60", "0.60 ETH" or, of a native coin, "5 gwei" or "7 wei".

    Raises UsageError BAD_AMOUNT for a sign, an exponent, more decimals than the unit has, or another symbol.
    """
    whole, fraction, said = split_amount(text, asset.symbol)
    symbol = said or asset.symbol
    decimals = _decimals_of(symbol, asset)
    if decimals is None:
        raise _bad_amount(
            text,
            f"is in {symbol}, and this market pays in {asset.symbol}",
            # The number is not repeated: with another unit it would be another amount.
            f'amounts are in {asset.symbol}, such as "0.60 {asset.symbol}"',
        )
    digits = fraction.rstrip("0")
    if len(digits) > decimals:
        raise _bad_amount(
            text,
            f"has {len(digits)} decimals, and {symbol} has {decimals}",
            f"the smallest amount is {format_amount(1, asset)}",
        )
    scale: int = 10**decimals
    return int(whole) * scale + int(digits.ljust(decimals, "0") or "0")


def split_amount(text: str, symbol: str = NATIVE.symbol) -> tuple[str, str, str]:
    """Return the digits before and after the point and the unit, as far as they are written. Raises UsageError.

    `symbol` is that of the example of how an amount is written.
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        pointed = with_point(text.strip())
        if _AMOUNT.fullmatch(pointed):
            raise _bad_amount(text, 'is not an amount: a decimal point is "."', f'did you mean "{pointed}"?')
        raise _bad_amount(text, "is not an amount", f'write it as "0.60" or "0.60 {symbol}"')
    return match[1], match[2] or "", match[3] or ""


def with_point(text: str) -> str:
    """Return a number with a point for a decimal comma; "1,000" is left alone, which may mean a thousand."""
    return _COMMA.sub(r"\1.\2", text, count=1)


def _decimals_of(symbol: str, asset: Asset) -> int | None:
    """Return the decimals of a unit that the asset's amounts may be written in, None where it is no such unit."""
    if symbol.lower() == asset.symbol.lower():
        return asset.decimals
    if asset.address is None and asset.decimals == _ETHER_DECIMALS["ether"]:
        return _ETHER_DECIMALS.get(symbol.lower())
    return None


def format_amount(base_units: int, asset: Asset, *, symbol: bool = True) -> str:
    """Return an amount in human units, exact and without trailing zeros: "0.6 ETH"; `parse_amount` reads it back."""
    sign, scale = ("-" if base_units < 0 else ""), 10**asset.decimals
    whole, fraction = divmod(abs(base_units), scale)
    digits = str(fraction).rjust(asset.decimals, "0").rstrip("0") if asset.decimals else ""
    number = f"{sign}{whole}{'.' + digits if digits else ''}"
    return f"{number} {asset.symbol}" if symbol else number


def show_amount(base_units: int, asset: Asset, *, symbol: bool = True) -> str:
    """Return an amount for people: to SHOWN_DIGITS significant digits, half up, with a leading "~" where inexact."""
    step: int = 10 ** max(0, len(str(abs(base_units))) - SHOWN_DIGITS)
    rounded = (abs(base_units) + step // 2) // step * step
    inexact = "" if rounded == abs(base_units) else "~"
    return inexact + format_amount(rounded if base_units >= 0 else -rounded, asset, symbol=symbol)


def parse_rate(text: str, asset: Asset) -> int:
    """Return base units x 1e6 per second for text such as "1.20/h" or "1.20 ETH/h" (also /min, /s, /d).

    Rounds down, asks and ceilings alike, so that equal texts meet: a ceiling never pays more than its text, and an ask
    earns less than its text by not even a millionth of a base unit per second. One base unit per day is still a rate of
    11, so no rate above zero rounds to zero.
    Raises UsageError BAD_RATE without a time unit, or with another one.
    """
    amount, seconds = split_rate(text)
    _, _, said = split_amount(amount, asset.symbol)
    if said and _decimals_of(said, asset) is None:
        hint = f'rates are in {asset.symbol}, such as "1.20 {asset.symbol}/h"'
        raise _bad_amount(text, f"is in {said}, and this market pays in {asset.symbol}", hint)
    return parse_amount(amount, asset) * RATE_SCALE // seconds


def split_rate(text: str) -> tuple[str, int]:
    """Return the amount of a rate, as it is written, and the seconds that it is for. Raises UsageError BAD_RATE."""
    amount, slash, per = text.strip().rpartition("/")
    near = near_rate(text)
    if slash and per.strip() in _PER:
        if not near or _AMOUNT.fullmatch(amount.strip()):
            return amount.strip(), _PER[per.strip()]
        why = 'a decimal point is "."'
    else:
        why = f'"{per.strip()}" is no unit of a rate: /s, /min, /h or /d' if slash else "it names no time unit"
    hint = f'did you mean "{near}"?' if near else 'write it per hour, as "1.20/h"'
    raise UsageError(f'"{text}" is not a rate: {why}', hint=hint, code="BAD_RATE")


def near_rate(text: str) -> str:
    """Return the rate that a text is near to: one with a comma, per hour where it names no time; "" for none."""
    amount, _, per = text.strip().rpartition("/") if "/" in text else (text.strip(), "", "h")
    unit = per.strip() if per.strip() in _PER else _PER_WORDS.get(per.strip().lower(), "")
    pointed = with_point(amount.strip())
    return f"{pointed}/{unit}" if unit and _AMOUNT.fullmatch(pointed) else ""


def format_rate(rate: int, asset: Asset) -> str:
    """Return a rate per hour, to the nearest base unit: "1.2 ETH/h"; undoes `parse_rate` for whole base units."""
    return f"{format_amount(_per_hour(rate), asset)}/h"


def show_rate(rate: int, asset: Asset) -> str:
    """Return a rate per hour for people, as `show_amount` does."""
    return f"{show_amount(_per_hour(rate), asset)}/h"


def _per_hour(rate: int) -> int:
    return (rate * _PER["h"] + RATE_SCALE // 2) // RATE_SCALE


def amount_at_least(base_units: int, asset: Asset) -> str:
    """Return the smallest amount of at most SHOWN_DIGITS significant digits that covers `base_units`, not negative."""
    step: int = 10 ** max(0, len(str(base_units)) - SHOWN_DIGITS)
    return format_amount(-(-base_units // step) * step, asset)


def amount_at_most(base_units: int, asset: Asset) -> str:
    """Return the largest amount of at most SHOWN_DIGITS significant digits that `base_units` cover, not negative."""
    step: int = 10 ** max(0, len(str(base_units)) - SHOWN_DIGITS)
    return format_amount(base_units // step * step, asset)


def show_at_least(base_units: int, asset: Asset) -> str:
    """Return what `amount_at_least` does for people: with a leading "~" where it is more than `base_units`."""
    text = amount_at_least(base_units, asset)
    return text if text == format_amount(base_units, asset) else f"~{text}"


def rate_at_least(rate: int, asset: Asset) -> str:
    """Return the smallest rate per hour of so many digits that `parse_rate` reads as not below `rate`."""
    return f"{amount_at_least(-(-rate * _PER['h'] // RATE_SCALE), asset)}/h"


def rate_at_most(rate: int, asset: Asset) -> str:
    """Return the largest rate per hour of so many digits that `parse_rate` reads as not above `rate`."""
    return f"{amount_at_most(rate * _PER['h'] // RATE_SCALE, asset)}/h"


def parse_duration(text: str) -> int:
    """Return seconds for text such as "30m", "6h", "90s", "2h30m" or "1d12h"; "0s" is zero.

    Raises UsageError BAD_DURATION for a number without a unit, fractions, or units out of order.
    """
    stripped = text.strip()
    match = _DURATION.fullmatch(stripped)
    if match is None or not any(match.groups()):
        near = near_duration(stripped)
        hint = f'did you mean "{near}"?' if near else 'write "2h30m", "90s", "7d"'
        raise UsageError(f'"{text}" is not a duration', hint=hint, code="BAD_DURATION")
    return sum(int(part) * scale for part, scale in zip(match.groups(), _SECONDS.values(), strict=True) if part)


def near_duration(text: str) -> str:
    """Return the duration that a number is near to, "" for none: seconds where it is whole, hours where it is not.

    One with a unit counts in that: "1.5d" is "1d12h".
    """
    match = _FRACTION.fullmatch(with_point(text))
    if match is None:
        return ""
    scale = _SECONDS[match[3] or ("h" if match[2] else "s")]
    seconds, rest = divmod(int(match[1] + (match[2] or "")) * scale, 10 ** len(match[2] or ""))
    if rest or (match[3] and not match[2]):
        return ""
    return format_duration(seconds) if match[2] else f"{match[1]}s"


def format_duration(seconds: int) -> str:
    """Return a duration as `parse_duration` reads it: "2h30m"; negative ones keep their sign."""
    if seconds == 0:
        return "0s"
    rest, parts = abs(seconds), []
    for unit, scale in _SECONDS.items():
        count, rest = divmod(rest, scale)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if seconds < 0 else "") + "".join(parts)


def parse_size(text: str) -> int:
    """Return bytes for text such as "16GiB", "1.5 GiB", "512MiB", "16Gi" or "100B".

    Raises UsageError BAD_SIZE for decimal units ("16GB" names another number on every system), a missing unit, or a
    fraction that is not a whole number of bytes.
    """
    stripped = text.strip()
    match = _SIZE.fullmatch(stripped)
    if match is None or match[3] not in _BYTES:
        near = near_size(stripped)
        hint = f'did you mean "{near}"?' if near else 'write "16GiB" or "512MiB"'
        raise UsageError(f'"{text}" is not a size: the units are B, KiB, MiB, GiB, TiB', hint=hint, code="BAD_SIZE")
    whole, fraction, scale = match[1], match[2] or "", _BYTES[match[3]]
    denominator: int = 10 ** len(fraction)
    part, rest = divmod(int(fraction or "0") * scale, denominator)
    if rest:
        raise UsageError(f'"{text}" is not a whole number of bytes', hint="use a smaller unit", code="BAD_SIZE")
    return int(whole) * scale + part


def near_size(text: str, unit: str = "GiB") -> str:
    """Return the size that a text is near to, "" for none. A bare number is of `unit`, from SMALL_FROM on of MiB."""
    match = _NEAR_SIZE.fullmatch(with_point(text))
    if match is None:
        return ""
    letter, fraction = (match[3] or "").upper(), match[2] or ""
    if letter:
        unit = "B" if letter == "B" else f"{letter}iB"
    elif int(match[1]) >= SMALL_FROM:
        unit = "MiB"
    whole = int(fraction[1:] or "0") * _BYTES[unit] % 10 ** len(fraction[1:]) == 0
    return f"{match[1]}{fraction}{unit}" if whole else ""


def format_size(size: int) -> str:
    """Return bytes in the largest unit that holds them as a whole number: "16GiB", "1536MiB", "100B"."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size and size % _BYTES[unit] == 0:
            return f"{size // _BYTES[unit]}{unit}"
    return f"{size}B"


def gib_ceil(size: int) -> int:
    """Return bytes in whole GiB, rounded up."""
    return -(-size // GIB)


def mib_ceil(size: int) -> int:
    """Return bytes in whole MiB, rounded up."""
    return -(-size // MIB)


def _bad_amount(text: str, why: str, hint: str) -> UsageError:
    return UsageError(f'"{text}" {why}', hint=hint, code="BAD_AMOUNT")
