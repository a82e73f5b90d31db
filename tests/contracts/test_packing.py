"""The bit layouts of contracts/packing.vy are those of hearth.protocol.words; each word packs and unpacks to itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.protocol import words
from hearth.protocol.types import HotStatus, Runtime, State, TermsFlag, UnitFlag
from tests.evm import CONTRACTS


def _constants() -> dict[str, int]:
    """Evaluate the constants of packing.vy, whose expressions are Python's too."""
    found: dict[str, int] = {}
    source = (CONTRACTS / "packing.vy").read_text(encoding="utf-8")
    for name, expression in re.findall(r"^(\w+): constant\(uint256\) = ([^#\n]+)", source, re.MULTILINE):
        assert re.fullmatch(r"[0-9*+() -]+", expression), f"{name} is not plain arithmetic"
        found[name] = eval(expression, {"__builtins__": {}})
    assert len(found) == source.count(": constant(uint256)")
    return found


PACKING = _constants()

# Lane of hearth.protocol.words -> constant of packing.vy. Lanes that start with _ stay zero and have none.
SIZES = {
    "tier": "TIER",
    "gpu_count": "GPU_COUNT",
    "vram_gib": "VRAM",
    "cores": "CORES",
    "ram_gib": "RAM",
    "disk_gib": "DISK",
    "runtimes": "RUNTIMES",
}
LAYOUTS: dict[str, tuple[words.Lanes, dict[str, str]]] = {
    "needs": (words.NEEDS, {**SIZES, "zone_mask": "ZONE_MASK", "home": "HOME"}),
    "offer": (words.OFFER, {**SIZES, "zone": "ZONE", "slots": "SLOTS", "pending": "2**PENDING", "ask": "ASK"}),
    "hot": (
        words.HOT,
        {
            "beat": "BEAT",
            "busy": "BUSY",
            "bond": "BOND",
            "r": "REP_R",
            "s": "REP_S",
            "rep_time": "REP_TIME",
            "cusum": "CUSUM",
            "quarantine": "QUARANTINE",
            "trips": "TRIPS",
            "status": "2**LAPSED",
            "seasoned": "2**SEASONED",
            "count": "COUNT",
        },
    ),
    "unit": (
        words.UNIT,
        {
            "state": "STATE",
            "outcome": "OUTCOME",
            "node": "NODE",
            "rate": "RATE",
            "started": "STARTED",
            "mark": "MARK",
            "seconds": "SECONDS",
            "attempts": "ATTEMPTS",
            "tips": "TIPS",
            "lapses": "LAPSES",
            "flags": "2**FUEL",
            "resume": "RESUME",
        },
    ),
    "header": (
        words.HEADER,
        {
            "state": "STATE",
            "closed": "2**CLOSED",
            "touched": "TOUCHED",
            "done": "DONE",
            "failed": "FAILED",
            "opened": "OPENED",
        },
    ),
    "best": (words.BEST, {"node": "BEST_NODE", "key": "BEST_KEY", "extensions": "EXTENSIONS"}),
    "money": (words.MONEY, {"ceiling": "CEILING", "keeper_fee": "KEEPER_FEE"}),
    "limits": (
        words.LIMITS,
        {
            "max_seconds": "MAX_SECONDS",
            "deadline": "DEADLINE",
            "units": "UNITS",
            "chunk": "CHUNK",
            "replicas": "REPLICAS",
            "quorum": "QUORUM",
            "match_window": "MATCH_WINDOW",
            "challenge_window": "CHALLENGE_WINDOW",
            "checkpoint_every": "CHECKPOINT_EVERY",
            "max_attempts": "MAX_ATTEMPTS",
            "billing": "BILLING",
            "flags": "2**CONFIDENTIAL",
        },
    ),
    "policy": (
        words.POLICY,
        {
            "version": "VERSION",
            "fee_bps": "FEE_BPS",
            "bond_none_bps": "BOND_NONE",
            "bond_optimistic_bps": "BOND_OPTIMISTIC",
            "bond_redundant_bps": "BOND_REDUNDANT",
            "bond_proof_bps": "BOND_PROOF",
            "min_price": "MIN_PRICE",
            "min_keeper_fee": "MIN_KEEPER_FEE",
            "probation_price": "PROBATION_PRICE",
            "min_match_window": "MIN_MATCH_WINDOW",
            "ack_time": "ACK_TIME",
            "open_claim_after": "OPEN_CLAIM_AFTER",
            "cancel_notice": "CANCEL_NOTICE",
            "grace_floor": "GRACE_FLOOR",
            "start_fee_seconds": "START_FEE",
            "min_challenge_window": "MIN_CHALLENGE_WINDOW",
            "key_timeout": "KEY_TIMEOUT",
            "audit_share_bps": "AUDIT_SHARE",
            "min_jurors": "MIN_JURORS",
            "min_checkpoint": "MIN_CHECKPOINT",
        },
    ),
    "totals": (words.TOTALS, {"next_id": "NEXT_ID", "hour": "HOUR", "burnt": "BURNT", "total": "TOTAL"}),
}


def _size(lanes: words.Lanes) -> int:
    return sum(width for _, width in lanes)


@pytest.mark.parametrize("name", LAYOUTS)
def test_packing__lanes__start_where_the_contracts_say(name: str) -> None:
    lanes, constants = LAYOUTS[name]
    for lane, constant in constants.items():
        shift = words.shift_of(lanes, lane)
        expected = PACKING[constant[3:]] if constant.startswith("2**") else 1 << PACKING[constant]
        assert 1 << shift == expected, f"{name}.{lane} and {constant}"
    unnamed = {lane for lane, _ in lanes if not lane.startswith("_")} - set(constants)
    assert unnamed == ({"payee"} if name == "best" else set())
    assert _size(lanes) <= 256


def test_packing__totals_of_bits__are_the_contracts() -> None:
    assert _size(words.NEEDS) == PACKING["NEEDS_BITS"]
    assert _size(words.OFFER) == PACKING["OFFER_BITS"]
    assert _size(words.MONEY) == PACKING["MONEY_BITS"]
    assert _size(words.LIMITS) == PACKING["LIMITS_BITS"]
    for name in ("hot", "unit", "policy", "totals"):
        assert _size(LAYOUTS[name][0]) == 256, name


def test_packing__masks__are_all_ones_of_their_width() -> None:
    masks = {name: value for name, value in PACKING.items() if re.fullmatch(r"U\d+", name)}
    assert len(masks) == 20
    for name, value in masks.items():
        assert value == (1 << int(name[1:])) - 1


def test_packing__widths_in_the_comments__are_the_lanes() -> None:
    source = (CONTRACTS / "packing.vy").read_text(encoding="utf-8")
    stated = dict(re.findall(r"^(\w+): constant\(uint256\) = \d+  # (\d+) bits", source, re.MULTILINE))
    widths = {
        constant: words.width_of(lanes, lane) for lanes, names in LAYOUTS.values() for lane, constant in names.items()
    }
    compared = {name: int(width) for name, width in stated.items() if name in widths}
    assert len(compared) > 25
    assert {name: widths[name] for name in compared} == compared


def test_packing__guards_and_sizes__part_the_lowest_69_bits() -> None:
    guards = sum(1 << words.shift_of(words.NEEDS, lane) for lane, _ in words.NEEDS if lane.startswith("_guard"))
    assert (
        guards
        == PACKING["GUARDS"]
        == sum(1 << words.shift_of(words.OFFER, lane) for lane, _ in words.OFFER if lane.startswith("_guard"))
    )
    assert PACKING["SIZES"] == (1 << 69) - 1 - guards
    assert words.shift_of(words.NEEDS, "runtimes") == words.shift_of(words.OFFER, "runtimes") == 69


def test_packing__states__are_numbered_alike() -> None:
    assert {state.name: int(state) for state in State if state} == {
        state.name: PACKING[state.name] for state in State if state
    }
    assert PACKING["HEADER"] == words.HEADER_STATE


def test_packing__flags__are_the_same_bits() -> None:
    at = words.shift_of(words.UNIT, "flags")
    assert {flag.name: flag << at for flag in UnitFlag} == {
        str(flag.name): PACKING[str(flag.name)] for flag in UnitFlag
    }
    at = words.shift_of(words.LIMITS, "flags")
    assert [flag << at for flag in TermsFlag] == [PACKING[str(flag.name)] for flag in TermsFlag]
    at = words.shift_of(words.HOT, "status")
    assert [flag << at for flag in HotStatus] == [PACKING[str(flag.name)] for flag in HotStatus]
    assert [int(flag) for flag in Runtime] == [1, 2, 4, 8]


# ---- round trips ----


def _values(lanes: words.Lanes) -> st.SearchStrategy[dict[str, int]]:
    """Draw a value for each lane, its extremes often."""
    return st.fixed_dictionaries(
        {
            name: st.one_of(st.sampled_from([0, 1, (1 << width) - 1]), st.integers(0, (1 << width) - 1))
            for name, width in lanes
            if not name.startswith("_")
        }
    )


@pytest.mark.parametrize("name", LAYOUTS)
def test_pack__any_values__unpack_to_themselves(name: str) -> None:
    lanes, _ = LAYOUTS[name]

    @given(_values(lanes))
    def check(values: dict[str, int]) -> None:
        word = words.pack(lanes, values)
        assert words.unpack(lanes, word) == values
        shifted = sum(value << words.shift_of(lanes, lane) for lane, value in values.items())
        assert word == shifted < 1 << _size(lanes)

    check()


@pytest.mark.parametrize("name", LAYOUTS)
def test_pack__value_beyond_its_lane__is_refused_by_name(name: str) -> None:
    lanes, _ = LAYOUTS[name]
    zeros = {lane: 0 for lane, _ in lanes}
    for lane, width in lanes:
        if lane.startswith("_"):
            continue
        words.pack(lanes, {**zeros, lane: (1 << width) - 1})
        for value in (1 << width, -1):
            with pytest.raises(ValueError, match=rf"^{lane} = "):
                words.pack(lanes, {**zeros, lane: value})


@pytest.mark.parametrize("name", LAYOUTS)
def test_unpack__spare_bit__is_refused(name: str) -> None:
    lanes, _ = LAYOUTS[name]
    spare = [words.shift_of(lanes, lane) + bit for lane, width in lanes if lane.startswith("_") for bit in range(width)]
    spare += range(_size(lanes), 256)
    for bit in spare:
        with pytest.raises(ValueError, match=r"spare bits|is not zero"):
            words.unpack(lanes, 1 << bit)
    assert spare or _size(lanes) == 256


PAIRS: list[tuple[str, Callable[[int], Any], Callable[[Any], int]]] = [
    ("needs", words.unpack_needs, words.pack_needs),
    ("offer", words.unpack_offer, words.pack_offer),
    ("hot", words.unpack_hot, words.pack_hot),
    ("best", words.unpack_best, words.pack_best),
]


@pytest.mark.parametrize(("name", "unpack", "pack"), PAIRS, ids=[pair[0] for pair in PAIRS])
def test_pack__value_of_any_word__is_that_word(
    name: str, unpack: Callable[[int], Any], pack: Callable[[Any], int]
) -> None:
    lanes, _ = LAYOUTS[name]

    @given(_values(lanes))
    def check(values: dict[str, int]) -> None:
        word = words.pack(lanes, values)
        assert pack(unpack(word)) == word

    check()


@given(_values(words.UNIT), st.sampled_from(State), st.integers(0, 8))
def test_pack_unit__value_of_any_word__is_that_word(values: dict[str, int], state: State, outcome: int) -> None:
    word = words.pack(words.UNIT, {**values, "state": state, "outcome": outcome})
    assert words.pack_unit(words.unpack_unit(word)) == word


@given(_values(words.HEADER))
def test_pack_header__value_of_any_word__is_that_word(values: dict[str, int]) -> None:
    word = words.pack(words.HEADER, {**values, "state": words.HEADER_STATE})
    assert words.is_header(word) and words.pack_header(words.unpack_header(word)) == word
    with pytest.raises(ValueError):
        words.unpack_unit(word)


@given(_values(words.UNIT), st.sampled_from(State))
def test_unpack_header__unit_word__is_refused(values: dict[str, int], state: State) -> None:
    word = words.pack(words.UNIT, {**values, "state": state})
    assert not words.is_header(word)
    with pytest.raises(ValueError):
        words.unpack_header(word)


@given(_values(words.POLICY))
def test_unpack_policy__any_word__gives_the_amounts_that_the_codes_mean(values: dict[str, int]) -> None:
    policy = words.unpack_policy(words.pack(words.POLICY, values))
    for name in ("min_price", "min_keeper_fee", "probation_price"):
        assert getattr(policy, name) == (values[name] & 1023) * 10 ** (values[name] >> 10)
    assert policy.min_checkpoint == values["min_checkpoint"] and policy.version == values["version"]


@given(st.integers(0, 1023), st.integers(0, 31))
def test_encode_amount__three_digits_and_a_power__is_exact(mantissa: int, exponent: int) -> None:
    amount = mantissa * 10**exponent
    code = words.encode_amount(amount)
    assert words.decode_amount(code) == amount and code < 1 << 15


@pytest.mark.parametrize("amount", [1_024, 1_025, 10_241, 1_024 * 10**31, -1])
def test_encode_amount__not_of_that_form__is_refused(amount: int) -> None:
    with pytest.raises(ValueError):
        words.encode_amount(amount)


@given(_values(words.NEEDS), _values(words.MONEY), _values(words.LIMITS), st.data())
def test_unpack_terms__any_words__pack_to_themselves(
    needs: dict[str, int], money: dict[str, int], limits: dict[str, int], data: st.DataObject
) -> None:
    full, address, hash_ = st.integers(0, 2**256 - 1), st.integers(0, 2**160 - 1), st.binary(min_size=32, max_size=32)
    packed = (
        data.draw(full),
        data.draw(hash_),
        words.pack(words.NEEDS, needs),
        words.pack(words.MONEY, money),
        words.pack(words.LIMITS, {**limits, "billing": limits["billing"] % 3}),
        data.draw(address),
        data.draw(address),
        data.draw(full),
        data.draw(hash_),
    )
    assert words.pack_terms(words.unpack_terms(packed)) == packed


@pytest.mark.parametrize(("word", "bit"), [(2, 97), (2, 6), (3, 160), (4, 188), (5, 160), (6, 255)])
def test_unpack_terms__spare_bit__is_refused(word: int, bit: int) -> None:
    packed: list[Any] = [0, bytes(32), 0, 0, 0, 0, 0, 0, bytes(32)]
    words.unpack_terms(tuple(packed))  # type: ignore[arg-type]
    packed[word] = 1 << bit
    with pytest.raises(ValueError, match=r"spare bits|is not zero"):
        words.unpack_terms(tuple(packed))  # type: ignore[arg-type]
