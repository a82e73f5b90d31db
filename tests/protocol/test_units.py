"""Human units: exact in both directions, and a hint with every refusal."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.base.errors import UsageError
from hearth.protocol.units import (
    GIB,
    MIB,
    Asset,
    amount_at_least,
    amount_at_most,
    format_amount,
    format_duration,
    format_rate,
    format_size,
    gib_ceil,
    mib_ceil,
    parse_amount,
    parse_duration,
    parse_rate,
    parse_size,
    rate_at_least,
    rate_at_most,
    show_amount,
    show_at_least,
    show_rate,
)

ETH = Asset("ETH", 18)
USD = Asset("USDX", 6, "0x" + "11" * 20)
WHOLE = Asset("PT", 0)
ASSETS = st.builds(Asset, st.just("TOK"), st.integers(0, 36))
BASE_UNITS = st.integers(0, 2**96 - 1)


@pytest.mark.parametrize(
    ("text", "asset", "base"),
    [
        ("0.60", USD, 600_000),
        ("60.60", USD, 60_600_000),
        ("1", ETH, 10**18),
        ("1.5 ETH", ETH, 15 * 10**17),
        ("1.5eth", ETH, 15 * 10**17),
        (" 0.000000000000000001 ", ETH, 1),
        ("0.1000000000000000000000", ETH, 10**17),
        ("7", WHOLE, 7),
        ("7.000", WHOLE, 7),
        ("0", ETH, 0),
        ("1000gwei", ETH, 10**12),
        ("1.5 Gwei", ETH, 15 * 10**8),
        ("50000000 wei", ETH, 50_000_000),
        ("2 ether", Asset("POL", 18), 2 * 10**18),
    ],
)
def test_parse_amount__human_text__exact_base_units(text: str, asset: Asset, base: int) -> None:
    assert parse_amount(text, asset) == base


@pytest.mark.parametrize(
    ("text", "why", "hint"),
    [
        ("", "not an amount", "0.60"),
        ("-1", "not an amount", "0.60"),
        ("1e3", "1e3", "USDX"),
        (".5", "not an amount", "0.60"),
        ("5.", "not an amount", "0.60"),
        ("1,000", "not an amount", "0.60"),
        ("1_000", "not an amount", "0.60"),
        ("0x10", "0x10", "USDX"),
        ("nan", "not an amount", "0.60"),
        ("Infinity", "not an amount", "0.60"),
        ("\u0661", "not an amount", "0.60"),  # ARABIC-INDIC DIGIT ONE is a digit to int()
        ("1 ETH", "is in ETH, and this market pays in USDX", 'amounts are in USDX, such as "0.60 USDX"'),
        ("0.0000001", "has 7 decimals, and USDX has 6", "0.000001 USDX"),
        ("9" * 41, "not an amount", "0.60"),
    ],
)
def test_parse_amount__not_an_amount__refused_with_hint(text: str, why: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_amount(text, USD)
    assert refused.value.code == "BAD_AMOUNT"
    assert why in refused.value.message
    assert hint in refused.value.hint


@pytest.mark.parametrize("text", ["1000gwei", "1000 wei", "1000 ether", "1000 EUR"])
@pytest.mark.parametrize("asset", [USD, Asset("WETH", 18, "0x" + "11" * 20), Asset("OLD", 8)])
def test_parse_amount__another_unit__the_number_is_not_offered_in_this_one(text: str, asset: Asset) -> None:
    with pytest.raises(UsageError) as refused:
        parse_amount(text, asset)
    assert refused.value.hint == f'amounts are in {asset.symbol}, such as "0.60 {asset.symbol}"'


@pytest.mark.parametrize("text", ["0.5 wei", "0.0000000001 gwei"])
def test_parse_amount__less_than_a_wei__refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"has \d+ decimals, and g?wei has [09]"):
        parse_amount(text, ETH)


@given(BASE_UNITS, ASSETS)
def test_format_amount__any_amount__parses_back(base: int, asset: Asset) -> None:
    assert parse_amount(format_amount(base, asset), asset) == base
    assert parse_amount(format_amount(base, asset, symbol=False), asset) == base


@pytest.mark.parametrize(
    ("base", "asset", "text"),
    [
        (600_000, USD, "0.6 USDX"),
        (-600_000, USD, "-0.6 USDX"),
        (10**18, ETH, "1 ETH"),
        (0, ETH, "0 ETH"),
        (1_234_567, USD, "~1.23457 USDX"),
        (1_234_560, USD, "1.23456 USDX"),
        (-1_234_565, USD, "~-1.23457 USDX"),
        (999_999_500_000, USD, "~1000000 USDX"),
        (12_345_678_900_000, USD, "~12345700 USDX"),
        (31_415_926_535_897, ETH, "~0.0000314159 ETH"),
        (999_999, USD, "0.999999 USDX"),
        (1_234_567, WHOLE, "~1234570 PT"),
    ],
)
def test_show_amount__more_than_six_digits__rounds_half_up_and_says_so(base: int, asset: Asset, text: str) -> None:
    assert show_amount(base, asset) == text
    assert show_amount(base, asset, symbol=False) == text.split()[0]


def _digits(text: str) -> int:
    """Count the significant digits of an amount's number."""
    return len(re.sub("[^0-9]", "", text.split()[0]).strip("0"))


@given(BASE_UNITS, ASSETS)
def test_shown__any_amount__has_six_digits_and_what_must_be_enough_is(base: int, asset: Asset) -> None:
    near, enough = show_amount(base, asset), amount_at_least(base, asset)
    assert show_at_least(base, asset) == ("" if parse_amount(enough, asset) == base else "~") + enough
    assert max(_digits(near), _digits(enough)) <= 6
    step = 10 ** max(0, len(str(base)) - 6)
    assert base <= parse_amount(enough, asset) < base + step
    assert near.startswith("~") == (parse_amount(near.removeprefix("~"), asset) != base)
    assert abs(2 * (parse_amount(near.removeprefix("~"), asset) - base)) <= step


@pytest.mark.parametrize("decimals", [-1, 37])
def test_asset__decimals_out_of_range__refused(decimals: int) -> None:
    with pytest.raises(ValueError, match="decimals"):
        Asset("X", decimals)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("3.6/h", 1_000 * 10**6),  # 3.6 USDX an hour is 1000 base units a second
        ("3.6 USDX/h", 1_000 * 10**6),
        ("3.6 / h", 1_000 * 10**6),
        ("0.001/s", 1_000 * 10**6),
        ("0.06/min", 1_000 * 10**6),
        ("86.4/d", 1_000 * 10**6),
        ("1/h", 277_777_777),
        ("0/h", 0),
    ],
)
def test_parse_rate__per_time_unit__rounds_down(text: str, rate: int) -> None:
    assert parse_rate(text, USD) == rate


@pytest.mark.parametrize("text", ["1.20", "1.20/week", "1/2/x", "/h/", ""])
def test_parse_rate__no_time_unit__refused_with_hint(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_rate(text, USD)
    assert refused.value.code == "BAD_RATE"
    assert "/h" in refused.value.hint


@pytest.mark.parametrize(("text", "unit"), [("0.02/m", "m"), ("20 ETH/day", "day"), ("1/", "")])
def test_parse_rate__a_unit_of_something_else__is_named(text: str, unit: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_rate(text, ETH)
    assert refused.value.message.endswith(f'"{unit}" is no unit of a rate: /s, /min, /h or /d')


def test_parse_rate__gwei__counts_as_such() -> None:
    assert parse_rate("3600 gwei/h", ETH) == 10**9 * 10**6


def test_parse_rate__smallest_amount_per_day__not_zero() -> None:
    assert parse_rate("1/d", WHOLE) == 11


@given(BASE_UNITS, ASSETS)
def test_format_rate__whole_base_units_per_hour__parses_back(base: int, asset: Asset) -> None:
    text = f"{format_amount(base, asset)}/h"
    rate = parse_rate(text, asset)
    assert format_rate(rate, asset) == text
    exact = Fraction(base * 10**6, 3600)
    assert exact - 1 < rate <= exact


@given(BASE_UNITS, ASSETS)
def test_rate_at_least__any_ask__is_a_ceiling_that_reaches_it(base: int, asset: Asset) -> None:
    ask = parse_rate(f"{format_amount(base, asset)}/h", asset)
    assert parse_rate(rate_at_least(ask, asset), asset) >= ask
    if _digits(format_amount(base, asset)) <= 6:
        assert rate_at_least(ask, asset) == show_rate(ask, asset) == f"{format_amount(base, asset)}/h"


@given(BASE_UNITS, ASSETS)
def test_rate_at_most__any_bound__is_a_rate_that_it_allows(base: int, asset: Asset) -> None:
    bound = parse_rate(f"{format_amount(base, asset)}/h", asset)
    assert parse_rate(rate_at_most(bound, asset), asset) <= bound
    least, most = amount_at_least(base, asset), amount_at_most(base, asset)
    assert parse_amount(most, asset) <= base <= parse_amount(least, asset)
    assert _digits(most) <= 6


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800),
        ("6h", 21_600),
        ("90s", 90),
        ("2h30m", 9000),
        ("1d12h", 129_600),
        ("1d1h1m1s", 90_061),
        ("0s", 0),
        (" 5m ", 300),
    ],
)
def test_parse_duration__human_text__seconds(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("90", 'did you mean "90s"'),
        ("", "2h30m"),
        ("1.5h", "1h30m"),
        ("-5m", "2h30m"),
        ("30m2h", "2h30m"),
        ("1h1h", "2h30m"),
        ("5 m", "2h30m"),
        ("500ms", "2h30m"),
        ("\u0665m", "2h30m"),
        ("9999999999s", "2h30m"),
    ],
)
def test_parse_duration__not_a_duration__refused_with_hint(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_duration(text)
    assert refused.value.code == "BAD_DURATION"
    assert hint in refused.value.hint


@given(st.integers(0, 10**9))
def test_format_duration__any_seconds__parses_back(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


def test_format_duration__negative__keeps_sign() -> None:
    assert format_duration(-90) == "-1m30s"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16GiB", 16 * GIB),
        ("16Gi", 16 * GIB),
        ("16 GiB", 16 * GIB),
        ("512MiB", 512 * MIB),
        ("1.5GiB", 1536 * MIB),
        ("0.5Ki", 512),
        ("100B", 100),
        ("2TiB", 2048 * GIB),
        ("0B", 0),
    ],
)
def test_parse_size__binary_units__bytes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("16GB", 'did you mean "16GiB"'),
        ("16g", 'did you mean "16GiB"'),
        ("512m", 'did you mean "512MiB"'),
        ("16", 'did you mean "16GiB"'),
        ("GiB", "16GiB"),
        ("-1GiB", "16GiB"),
        ("", "16GiB"),
        ("0.3B", "smaller unit"),
        ("1.0000000001KiB", "smaller unit"),
    ],
)
def test_parse_size__not_a_size__refused_with_hint(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_size(text)
    assert refused.value.code == "BAD_SIZE"
    assert hint in refused.value.hint


@given(st.integers(0, 2**50))
def test_format_size__any_size__parses_back(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.integers(0, 2**50))
def test_gib_ceil__any_size__smallest_that_holds_it(size: int) -> None:
    assert (gib_ceil(size) - 1) * GIB < size <= gib_ceil(size) * GIB
    assert (mib_ceil(size) - 1) * MIB < size <= mib_ceil(size) * MIB
