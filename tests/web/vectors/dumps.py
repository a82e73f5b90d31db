"""Plain values and the text that the library writes of them, which it reads back equal."""

from __future__ import annotations

import json
import random
from typing import Any

from hearth.jobfile.load import dump_values
from hearth.jobfile.text import read_text
from tests.web.vectors import _chance
from tests.web.vectors.yaml import told

TEXTS = (
    *("", " ", "no", "yes", "on", "null", "~", "true", "False", "1", "-1", "007", "1.5", "1e3", "0x10", "0o7", ".inf"),
    *("2030-01-31", "2030-01-31T12:00:00Z", "12:30", "a: b", "a:b", "a #b", "#a", " a", "a ", "\ta", "a\nb", "a\n"),
    *("- a", "? a", ": a", "[a]", "{a}", "a, b", "&a", "*a", "!a", "!!int 1", "%a", "@a", "`a`", "|", ">", "'", '"'),
    *("--- a", "...", "${", "$${", "${X}", "$$${", "$", "{", "\\", "\\n", "=", "<<", "\n", "a\r\nb", "ipfs://x/y z"),
    *("\u00e9", "\u65e5\u672c", "\U0001f525", "\u202e", "\u200b", "\ufeff", "\x7f", "\x85", "\u2028", "\ufffe", "\x01"),
    *("\x1b[1m", "\xad\u2066\ufe0f", "\U000e0041\U0001bca0", "a" * 120),
)
KEYS = (
    *("a", "A_1", "_", "null", "NULL", "True", "FALSE", "~", "1", "1.5", "a b", "a-b", "\u00e9", "", "${", "$${"),
    *("__proto__", "constructor", "a: b", "#", "'", '"', "\\", "? a", "<<", "\n", "\U0001f525", "no", "\u202e"),
)


def cases() -> list[dict[str, Any]]:
    """Return each corner by itself, as a value, an item and a key; and values of all of them by chance."""
    fixed: list[dict[str, Any]] = [
        {},
        {"version": 1, "name": "x", "l": [], "m": {}, "n": None, "b": True, "c": False},
        {"resources": {"cpus": 1, "gpu": {"count": 1}}, "l": [{"a": {}, "b": [[]]}, [1, -1, 10**17], None]},
        *({"a": text, "b": [text], "c": {"d": text}, "e": [{"f": text}]} for text in TEXTS),
        *({key: 1, "m": {key: "x"}, "l": [{key: []}]} for key in KEYS),
    ]
    drawn = _chance.source(85)
    return [_case(value) for value in [*fixed, *(_mapping(drawn, 0) for _ in _chance.rows(15))]]


def _case(value: dict[str, Any]) -> dict[str, Any]:
    text = dump_values(value)
    assert read_text(text.encode(), "job.yaml")[0] == value, text
    return {"value": json.dumps(told(value)), "text": text}


def _mapping(drawn: random.Random, depth: int) -> dict[str, Any]:
    return {drawn.choice(KEYS): _value(drawn, depth + 1) for _ in range(drawn.randrange(1, 5))}


def _value(drawn: random.Random, depth: int) -> Any:
    kind = drawn.random()
    if kind < 0.2 and depth < 5:
        return _mapping(drawn, depth)
    if kind < 0.35 and depth < 5:
        return [_value(drawn, depth + 1) for _ in range(drawn.randrange(4))]
    if kind < 0.5:
        return drawn.choice((None, True, False, 0, -7, 10**17))
    return "".join(drawn.choice(TEXTS) for _ in range(drawn.randrange(4)))
