"""The lane table says what it always said, packing.vy has its bits, and each word packs and unpacks to itself.

The table is written out here a second time: what is deployed never changes, so neither may a shift or a width.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.protocol import words
from hearth.protocol.types import Billing, NodeFlag, Outcome, Runtime, State, TermsFlag, UnitFlag
from hearth.protocol.words import WORDS, Word
from tests.kit.evm import CONTRACTS


def _constants() -> dict[str, int]:
    """Evaluate the constants of packing.vy: numbers, powers of two, and numbers shifted."""
    source = (CONTRACTS / "packing.vy").read_text(encoding="utf-8")
    form = r"^(\w+): constant\(uint256\) = (\d+)(?: (<<) (\d+)|(\*\*)(\d+))?(?:  #.*)?$"
    found: dict[str, int] = {}
    for name, value, up, shift, power, exponent in re.findall(form, source, re.MULTILINE):
        found[name] = int(value) << int(shift) if up else int(value) ** int(exponent) if power else int(value)
    assert len(found) == source.count(": constant(uint256)")
    return found


PACKING = _constants()

_SIZES = "tier 0 10, gpu_count 11 6, vram_gib 18 10, cores 29 10, ram_gib 40 14, disk_gib 55 17, runtimes 73 12"
# word -> "lane shift width" of each lane that is not always zero.
DEPLOYED = {
    "needs": f"{_SIZES}, zone_mask 85 16, home 101 4, exact 105 1",
    "offer": f"{_SIZES}, zone 85 4, slots 89 6, pending 95 1, ask 96 80",
    "next_ask": "ask 0 80, at 80 40",
    "owner": "account 0 160, stake 160 80",
    "operator": "account 0 160, exit_at 160 40",
    "hot": "beat 0 32, busy 32 6, bond 38 80, r 118 26, s 144 26, rep_time 170 32, cusum 202 8, quarantine 210 32, "
    "trips 242 4, status 246 3, seasoned 249 1, count 250 5, silent 255 1",
    "unit": "state 0 4, outcome 4 4, node 8 32, rate 40 80, started 120 40, mark 160 40, seconds 200 24, "
    "attempts 224 4, tips 228 4, lapses 232 4, flags 236 8, resume 244 4, resumable 248 1",
    "header": "state 0 4, closed 4 1, waiting 5 1, touched 8 24, done 32 24, failed 56 24, opened 80 40, "
    "leases 120 24, quorum 144 4",
    "best": "payee 0 160, node 160 32, key 192 48, extensions 240 4",
    "accused": "node 0 32, at 32 40",
    "key": "lot 0 40, bucket 40 8",
    "kept": "seconds 0 24, rate 24 80, node 104 32, resume 136 4, before 140 28",
    "posted": "block 0 64, count 64 64",
    "share": "account 0 160, amount 160 96",
    "book": "amount 0 255, used 255 1",
    "fields": "outcome 0 4, seconds 4 24",
    "submitter": "account 0 160, salt 160 96",
    "money": "ceiling 0 80, keeper_fee 80 80",
    "limits": "max_seconds 0 24, deadline 24 40, units 64 24, chunk 88 16, replicas 104 4, quorum 108 4, "
    "match_window 112 12, challenge_window 124 24, checkpoint_every 148 24, max_attempts 172 4, billing 176 4, "
    "flags 180 8, bond_bps 188 24",
    "judge": "account 0 160",
    "policy": "version 0 8, fee_bps 8 10, min_bond_bps 18 16, claim_ramp 34 12, fresh_delay 46 16, "
    "fetch_floor 62 12, "
    "reserved 74 8, min_price 82 15, min_keeper_fee 97 15, probation_price 112 15, min_match_window 127 9, "
    "ack_time 136 10, open_claim_after 146 12, cancel_notice 158 12, grace_floor 170 12, start_fee_seconds 182 12, "
    "min_challenge_window 194 20, key_timeout 214 16, reserved_high 230 16, min_checkpoint 246 10",
    "amount": "mantissa 0 10, exponent 10 5",
    "totals": "next_id 0 32, hour 32 32, burnt 64 96, total 160 96",
}


def _named(word: Word) -> list[tuple[str, int, int]]:
    """Return (name, shift, width) of the lanes that are not always zero."""
    return [(lane.name, shift, lane.width) for lane, shift in word.placed if not lane.is_zero]


def test_words__table__is_what_is_deployed() -> None:
    shown = {name: ", ".join(" ".join(map(str, lane)) for lane in _named(word)) for name, word in WORDS.items()}
    assert shown == DEPLOYED
    assert {name for name, value in vars(words).items() if isinstance(value, Word)} == {n.upper() for n in WORDS}


@pytest.mark.parametrize("name", WORDS)
def test_packing__lanes__have_the_tables_bits(name: str) -> None:
    expected: dict[str, int] = {}
    for lane, shift, width in _named(WORDS[name]):
        prefix = f"{name}_{lane}".upper()
        if width == 1:
            expected[prefix] = 1 << shift
        else:
            expected |= {f"{prefix}_SHIFT": shift, f"{prefix}_MASK": (1 << width) - 1}
            expected[f"{prefix}_LANE"] = (1 << width) - 1 << shift
    assert {key: PACKING[key] for key in expected} == expected
    assert WORDS[name].bits <= 256
    assert PACKING.get(f"{name.upper()}_BITS", 256) == WORDS[name].bits


def test_packing__guards_and_sizes__part_the_lowest_73_bits() -> None:
    for name in ("needs", "offer"):
        word = WORDS[name]
        guards = {lane.name: shift for lane, shift in word.placed if lane.is_zero}
        prefix = name.upper()
        assert len(guards) == 6
        assert {PACKING[f"{prefix}{lane.upper()}"] for lane in guards} == {1 << shift for shift in guards.values()}
        assert PACKING[f"{prefix}_GUARDS"] == sum(1 << shift for shift in guards.values())
        assert PACKING[f"{prefix}_SIZES"] == (1 << 73) - 1 - PACKING[f"{prefix}_GUARDS"]
        # Each guard stands right above its own lane.
        for lane, shift in guards.items():
            sized = lane.removeprefix("_guard_")
            assert shift == words.shift_of(word, sized) + words.width_of(word, sized)
        assert words.shift_of(word, "runtimes") == 73
    assert PACKING["NEEDS_GUARDS"] == PACKING["OFFER_GUARDS"] and PACKING["NEEDS_SIZES"] == PACKING["OFFER_SIZES"]


def test_packing__values__are_numbered_alike() -> None:
    for prefix, enumeration in (("STATE", State), ("OUTCOME", Outcome), ("BILLING", Billing)):
        named = {key: value for key, value in PACKING.items() if re.fullmatch(rf"{prefix}_[A-Z_]+", key)}
        header = {"STATE_HEADER": words.HEADER_STATE} if enumeration is State else {}
        assert named == {f"{prefix}_{member.name}": int(member) for member in enumeration} | header
    assert words.HEADER_STATE == 15


def test_packing__flags__are_the_same_bits() -> None:
    for name, lane, enumeration in (
        ("unit", "flags", UnitFlag),
        ("limits", "flags", TermsFlag),
        ("hot", "status", NodeFlag),
        ("needs", "runtimes", Runtime),
        ("offer", "runtimes", Runtime),
    ):
        at = words.shift_of(WORDS[name], lane)
        for flag in enumeration:
            assert PACKING[f"{name.upper()}_{flag.name}"] == flag << at
    assert [int(flag) for flag in Runtime] == [1, 2, 4, 8, 16]


# ---- round trips ----


def _values(word: Word) -> st.SearchStrategy[dict[str, int]]:
    """Draw a value for each lane, its extremes often."""
    return st.fixed_dictionaries(
        {
            name: st.one_of(st.sampled_from([0, 1, (1 << width) - 1]), st.integers(0, (1 << width) - 1))
            for name, _, width in _named(word)
        }
    )


@pytest.mark.parametrize("name", WORDS)
def test_pack__any_values__unpack_to_themselves(name: str) -> None:
    layout = WORDS[name]

    @given(_values(layout))
    def check(values: dict[str, int]) -> None:
        word = words.pack(layout, values)
        assert words.unpack(layout, word) == values
        shifted = sum(value << words.shift_of(layout, lane) for lane, value in values.items())
        assert word == shifted < 1 << layout.bits

    check()


@pytest.mark.parametrize("name", WORDS)
def test_pack__value_beyond_its_lane__is_refused_by_name(name: str) -> None:
    layout = WORDS[name]
    zeros = {lane: 0 for lane, _, _ in _named(layout)}
    for lane, _, width in _named(layout):
        words.pack(layout, {**zeros, lane: (1 << width) - 1})
        for value in (1 << width, -1):
            with pytest.raises(ValueError, match=rf"^{lane} = "):
                words.pack(layout, {**zeros, lane: value})


@pytest.mark.parametrize("name", WORDS)
def test_unpack__spare_bit__is_refused(name: str) -> None:
    layout = WORDS[name]
    spare = [shift + bit for lane, shift in layout.placed if lane.is_zero for bit in range(lane.width)]
    spare += range(layout.bits, 256)
    for bit in spare:
        with pytest.raises(ValueError, match=r"spare bits|is not zero"):
            words.unpack(layout, 1 << bit)
    assert spare or layout.bits == 256


PAIRS: list[tuple[str, Callable[[int], Any], Callable[[Any], int]]] = [
    ("needs", words.unpack_needs, words.pack_needs),
    ("offer", words.unpack_offer, words.pack_offer),
    ("hot", words.unpack_node_state, words.pack_node_state),
    ("best", words.unpack_best, words.pack_best),
    ("accused", words.unpack_accused, words.pack_accused),
]


@pytest.mark.parametrize(("name", "unpack", "pack"), PAIRS, ids=[pair[0] for pair in PAIRS])
def test_pack__value_of_any_word__is_that_word(
    name: str, unpack: Callable[[int], Any], pack: Callable[[Any], int]
) -> None:
    layout = WORDS[name]

    @given(_values(layout))
    def check(values: dict[str, int]) -> None:
        word = words.pack(layout, values)
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


@pytest.mark.parametrize(("word", "bit"), [(2, 106), (2, 10), (3, 160), (4, 212), (6, 255)])
def test_unpack_terms__spare_bit__is_refused(word: int, bit: int) -> None:
    packed: list[Any] = [0, bytes(32), 0, 0, 0, 0, 0, 0, bytes(32)]
    words.unpack_terms(tuple(packed))  # type: ignore[arg-type]
    packed[word] = 1 << bit
    with pytest.raises(ValueError, match=r"spare bits|is not zero"):
        words.unpack_terms(tuple(packed))  # type: ignore[arg-type]
