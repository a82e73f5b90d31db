"""Amounts, rates, durations and sizes, both ways: what people write, what nobody should, and drawn ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from hearth.base.errors import HearthError
from hearth.protocol import units
from hearth.protocol.units import NATIVE, Asset
from tests.web.vectors import _chance
from tests.web.vectors._plain import plain

ASSETS = (
    NATIVE,
    Asset("USDX", 6, "0x" + "11" * 20),
    Asset("PT", 0),
    Asset("WETH", 18, "0x" + "22" * 20),
    Asset("TOK", 36),
    Asset("\u212aelvin", 2),
    Asset("\u00dfq", 18),
)


def _split(text: str) -> list[str]:
    """Return texts without spaces, other white space being part of them."""
    return text.split(" ")


_AMOUNTS = _split(
    "0.60 60.60 1 0 7 7.000 1.5eth 1.5ETH 1.5Eth 5gwei 5GWEI 7wei 0.5wei 2ether 1000gwei 1EUR 0.0000001 "
    "00012.50 1.USDX 0.0000000001gwei 1pt 1kelvin -1 +1 -0 1e3 1E3 1e 0x10 nan Infinity .5 5. 1,000 1_000 "
    "1..2 1.2.3 1/h \u0661 1\u0661 \uff11 1\u00b2 1\u00bd \u2460 1\u2003 \u2003 1\u00a0ETH 1\ufeff \ufeff1 "
    "\x1c1 1\x85 1\x00 \ud800 1\ud800 \U0001f600 __proto__ constructor 1constructor 1__proto__ 1toString "
    "1\u212aelvin 1\u00dfq 1\u0130 '' \"\" 1a.b 1a.b.c.d.e.f.g.h1"
)
_SPACED = (
    *(" 1", "1 ", "\t1 ETH\n", "1\n", "1\r\n", "1\n\n", "1  ETH", "1 \tETH", "1 ETH ETH", "1 E TH", "", " ", "1 .5"),
    *("\x1c1\x1f", "\x851\x85", "1 \x1e", "1\v\f", "1\u1680", "1\u180e", "1\u200b", "\u20281\u2029", "1 eth\u3000"),
    *("9" * 40, "9" * 41, "9" * 39 + "." + "9" * 40, "0." + "0" * 39 + "1", "0." + "0" * 40, "1." + "0" * 41),
    *("1 " + "a" * 16, "1 " + "a" * 17, "0" * 40 + ".0", "9" * 5000),
)
_PER = ("/h", "/min", "/s", "/d", " / h ", "/ d", "/H", "/hour", "/", "//h", "/h/h", "", "/__proto__", "/m", "/\u0127")
_DURATIONS = _split(
    "30m 6h 90s 2h30m 1d12h 0s 0d0h0m0s 1d2h3m4s 90 0 999999999 9999999999 1.5h -5m +5m 5 m 5m5h 5s5s 5M 5ms "
    "5min 1w 999999999d999999999h999999999m999999999s 9999999999d 1d\u0661h \uff15m d h m s dhms 1d1 1h1 "
    "__proto__ 1e3s 0x5s 007s \u0665m 5\u017f \x1c5m 5m\ufeff 1_0s 1d12 12 \ud800 5\u200bm"
)
_SIZES = _split(
    "16GiB 1.5GiB 512MiB 16Gi 100B 1Ki 1Mi 1Ti 1TiB 0B 0GiB 16GB 16gb 16 16G 16m 16k 16T 16P 1.5 1..5GiB "
    "1.5.2G .5GiB 5.GiB 0.5B 1.1KiB 0.0009765625KiB 0.000000000001TiB 1.000000000000B 1.0000000000000B "
    "999999999999999999TiB 9999999999999999999B -1GiB +1GiB 1e3B 0x10B 1GiBB 1Gib 1GIB 1gib GiB B __proto__ "
    "1__proto__ 1constructor 1toString \u0661GiB 1\uff11B 1\u1e97 1\u212a 1\u00b5 1\u00df 1\u03c4B 1\x1c "
    "1\ufeffB 1\U0001f600 1\ud800 ... 1.GiB 007GiB"
)
_SPACED_SIZES = (
    "1 GiB",
    "1  GiB",
    " 1GiB ",
    "1\tGiB",
    "1GiB\n",
    "1 k",
    "1  k",
    "1\u2003m",
    "1 \ud83d",
    "",
    " ",
    "1. 5GiB",
)
_LETTERS = "0123456789.dhms /KMGTiBETHgwei-+e\u0661\u2003\x1c\ufeff"


def cases() -> dict[str, Any]:
    """Return the calls of every function by its name: what it takes, and what it gives or refuses with."""
    random = _chance.source("units")
    noise = ["".join(random.choices(_LETTERS, k=random.randrange(1, 9))) for _ in _chance.rows(12)]
    numbers = [_number(random) for _ in _chance.rows(8)]
    amounts = [*_AMOUNTS, *_SPACED, *noise]
    rates = [number + per for number in ("1.20", "1.20 ETH", "", " 7 ", "-1", "0.0000001 gwei") for per in _PER]
    rates += [f"{number}{random.choice(_PER)}" for number in numbers] + noise
    durations = [*_DURATIONS, *noise, "1d\n", "\n", "", " 5m ", "5 m", "5m 5s", "\x1f5m", "\u30005m", "5m\u180e"]
    durations += [units.format_duration(random.getrandbits(random.randrange(1, 40))) for _ in _chance.rows(6)]
    sizes = [*_SIZES, *_SPACED_SIZES, *noise, *(f"{number}{random.choice(('GiB', 'KiB', 'B'))}" for number in numbers)]
    bases = [
        0,
        1,
        -1,
        999_999,
        1_000_000,
        1_234_565,
        1_234_564,
        -1_234_565,
        10**18,
        999_999_500_000,
        *_drawn(random, 12),
    ]
    positive = [abs(base) for base in bases]
    seconds = [0, 1, -1, 59, 60, 3_599, 86_400, -90_061, 2**40, *(random.getrandbits(24) for _ in _chance.rows(6))]
    bytes_ = [0, 1, 1024, 1536 << 20, 1 << 40, 5 << 50, (1 << 30) + 1, *(abs(one) for one in _drawn(random, 6))]
    return {
        "assets": [plain(asset) for asset in ASSETS],
        "parseAmount": _with_assets(random, units.parse_amount, [*amounts, *numbers]),
        "splitAmount": [_call(units.split_amount, text) for text in amounts],
        "formatAmount": _with_assets(random, units.format_amount, bases),
        "showAmount": _with_assets(random, units.show_amount, bases),
        "bareAmount": _with_assets(random, lambda base, asset: units.show_amount(base, asset, symbol=False), bases),
        "parseRate": _with_assets(random, units.parse_rate, rates),
        "splitRate": [_call(units.split_rate, text) for text in rates],
        "formatRate": _with_assets(random, units.format_rate, bases),
        "showRate": _with_assets(random, units.show_rate, bases),
        "amountAtLeast": _with_assets(random, units.amount_at_least, positive),
        "amountAtMost": _with_assets(random, units.amount_at_most, positive),
        "showAtLeast": _with_assets(random, units.show_at_least, positive),
        "rateAtMost": _with_assets(random, units.rate_at_most, positive),
        "rateAtLeast": _with_assets(random, units.rate_at_least, positive),
        "parseDuration": [_call(units.parse_duration, text) for text in durations],
        "formatDuration": [_call(units.format_duration, one) for one in seconds],
        "parseSize": [_call(units.parse_size, text) for text in sizes],
        "formatSize": [_call(units.format_size, size) for size in bytes_],
        "gibCeil": [_call(units.gib_ceil, size) for size in bytes_],
        "mibCeil": [_call(units.mib_ceil, size) for size in bytes_],
    }


def _number(random: Random) -> str:
    whole = str(random.getrandbits(random.randrange(1, 90)))
    fraction = "".join(random.choices("0123456789", k=random.randrange(20)))
    return f"{whole}.{fraction}" if fraction else whole


def _drawn(random: Random, count: int) -> list[int]:
    return [random.choice((-1, 1)) * random.getrandbits(random.randrange(1, 128)) for _ in _chance.rows(count)]


def _with_assets(random: Random, call: Callable[[Any, Asset], Any], values: Sequence[Any]) -> list[dict[str, Any]]:
    """Call with each value and an asset of which the case says the number; the native coin most often."""
    found = []
    for value in values:
        number = random.choice((0, 0, 0, *range(len(ASSETS))))
        found.append({"asset": number, **_call(lambda value, number=number: call(value, ASSETS[number]), value)})
    return found


def _call(call: Callable[[Any], Any], value: Any) -> dict[str, Any]:
    """Return what a call gives, or its refusal's code."""
    try:
        return {"in": plain(value), "out": plain(call(value))}
    except HearthError as refused:
        return {"in": value, "code": refused.code}
