"""Every word: drawn ones, all ones, one bit beyond each bound; and the values that are made of them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from hearth.protocol import words
from tests.web.vectors import _chance
from tests.web.vectors._plain import outcome, plain
from tools.web_tables.words import camel

DRAWN = 3
_TYPED: dict[str, tuple[str, Callable[[int], Any], Callable[[Any], int] | None]] = {
    "needs": ("needs", words.unpack_needs, words.pack_needs),
    "offer": ("offer", words.unpack_offer, words.pack_offer),
    "node_state": ("hot", words.unpack_node_state, words.pack_node_state),
    "unit": ("unit", words.unpack_unit, words.pack_unit),
    "header": ("header", words.unpack_header, words.pack_header),
    "best": ("best", words.unpack_best, words.pack_best),
    "accused": ("accused", words.unpack_accused, words.pack_accused),
    "kept": ("kept", words.unpack_kept, words.pack_kept),
    "posted": ("posted", words.unpack_posted, None),
    "policy": ("policy", words.unpack_policy, words.pack_policy),
}
"""Values by name: the layout of their word, and how it is read and written."""


def cases() -> dict[str, Any]:
    """Return layouts with words and values, lanes that are too small for a value, and the words of whole values."""
    random = _chance.source("words")
    return {
        "unpack": [case for name, layout in words.WORDS.items() for case in _unpacked(random, name, layout)],
        "pack": [case for name, layout in words.WORDS.items() for case in _packed(name, layout)],
        "typed": [case for name in _TYPED for case in _typed(random, name)],
        "terms": [_terms(random, spoilt) for spoilt in (None, None, None, None, 0, 2, 3, 4, 6)],
        "headers": [
            {"word": hex(word), "out": words.is_header(word)} for word in (0, 15, 14, 31, 2**256 - 1, 255 << 4)
        ],
    }


def _any_word(random: Random, layout: words.Word) -> int:
    return sum(random.getrandbits(lane.width) << shift for lane, shift in layout.placed if not lane.is_zero)


def _all_ones(layout: words.Word) -> int:
    return sum((1 << lane.width) - 1 << shift for lane, shift in layout.placed if not lane.is_zero)


def _unpacked(random: Random, name: str, layout: words.Word) -> list[dict[str, Any]]:
    full = _all_ones(layout)
    taken = [0, full, *(_any_word(random, layout) for _ in _chance.rows(DRAWN))]
    refused = [1 << layout.bits, full | 1 << layout.bits, 1 << 300, -1]
    return [
        {"layout": camel(name), "word": hex(word), **outcome(lambda word=word: words.unpack(layout, word))}
        for word in taken + refused
    ]


def _packed(name: str, layout: words.Word) -> list[dict[str, Any]]:
    """Return each lane with what just fits, and with what does not."""
    rest = dict.fromkeys((lane.name for lane in layout.lanes), 0)
    return [
        {
            "layout": camel(name),
            "lane": camel(lane.name),
            "value": str(value),
            **_word(lambda lane=lane, value=value: words.pack(layout, {**rest, lane.name: value})),
        }
        for lane in layout.lanes
        if not lane.is_zero
        for value in ((1 << lane.width) - 1, 1 << lane.width, -1)
    ]


def _word(call: Callable[[], int]) -> dict[str, Any]:
    """Return the word that a call packs, in hexadecimal, or its refusal."""
    found = outcome(call)
    return {"word": hex(int(found["out"]))} if "out" in found else found


def _typed(random: Random, name: str) -> list[dict[str, Any]]:
    lanes, unpack, pack = _TYPED[name]
    layout = words.WORDS[lanes]
    drawn = [_any_word(random, layout) for _ in _chance.rows(2)]
    if name == "unit":
        drawn += [word & ~0xFF | state | result << 4 for word in drawn for state, result in ((2, 1), (10, 8), (11, 0))]
    if name == "header":
        drawn += [word & ~0xF | words.HEADER_STATE for word in drawn]
    found: list[dict[str, Any]] = []
    for word in [0, _all_ones(layout), *drawn]:
        said = outcome(lambda word=word: unpack(word))
        again = pack(unpack(word)) if pack and "out" in said else None
        found.append({"type": name, "word": hex(word), **said, **({"again": hex(again)} if again is not None else {})})
    return found


def _terms(random: Random, spoilt: int | None) -> dict[str, Any]:
    """Return nine words of terms and what they say; with `spoilt`, one bit of that word stands beyond its lanes."""
    layouts = [words.SUBMITTER, None, words.NEEDS, words.MONEY, words.LIMITS, None, words.JUDGE, None, None]
    packed: list[Any] = [random.getrandbits(256) if lanes is None else _any_word(random, lanes) for lanes in layouts]
    packed[4] &= ~(0xF << words.shift_of(words.LIMITS, "billing"))
    packed[4] |= random.randrange(3) << words.shift_of(words.LIMITS, "billing")
    for place in (1, 8):
        packed[place] = packed[place].to_bytes(32, "big")
    if spoilt == 4:
        packed[4] |= 3 << words.shift_of(words.LIMITS, "billing")
    elif spoilt is not None:
        packed[spoilt] |= 1 << layouts[spoilt].bits  # type: ignore[union-attr]
    shown = [hex(word) if isinstance(word, int) else plain(word) for word in packed]
    return {"words": shown, **outcome(lambda: words.unpack_terms(tuple(packed)))}  # type: ignore[arg-type]
