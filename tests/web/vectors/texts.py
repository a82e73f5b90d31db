"""What Python's own library makes of texts, where the page has to do it itself: difflib, shlex, str(), casefold."""

from __future__ import annotations

import difflib
import random
import shlex
import unicodedata
from collections.abc import Iterator
from typing import Any

from hearth.protocol.gpu_tiers import TIERS
from hearth.spec.model import JobSpec
from hearth.spec.sugar import needs_shell
from tests.web.vectors.yaml import told

_FOLDED = "aAbI\u0130i\u00df\u1e9es\u017fS\u03c3\u03c2\u03a3\u00e9\u00c9"
_FOLDED += "\u1f80\u1f88\u03b1\u03b9\u0345\ufb01fk\u212aK\u01c5\u10a0\u13a0\uab70"
_SHELL = "ab 'x\"\\\t\n$|&;<>`*?()~#\u00e9\u00a0\U0001f525"
# Words in which several runs are the longest: which of them counts decides.
_TIES = (("abbacaac", "cabbbbaaa"), ("bbbaabbba", "bbacaba"), ("cabccabab", "babcab"), ("aaacc", "bacaa"))
_COMMANDS = ('"a\\\\b"', '"a\\"b"', '"a\\b"', "'a\\b'", "a\\ b", '""', "a''b ''", "a\\", '"a\\', "'a")
_VALUES = (
    *(None, True, False, 0, -7, 10**30, "", "a b", [], {}, [[]], [1, "a", None], {"a": {"b": [True]}}),
    *("it's", 'a "b"', "both ' and \"", "\\", "\n\r\t", "\x00\x1f\x7f\x80\x9f\xa0\xad", "\u2028\u200b\ue000\ufeff"),
    *("\u00e9\u4e2d\U0001f525", "\U000e0001\U0010ffff", "\u3000", "a'b\"c\\d\x07"),
)


def cases() -> dict[str, Any]:
    """Return words with the nearest names, commands with their words, values with their text, and equal names."""
    source = random.Random(5)
    return {
        "near": list(_near(source)),
        "shell": list(_shell(source)),
        "str": [[told(value), str(value)] for value in _quotable()],
        "folded": list(_folded(source)),
    }


def _quotable() -> Iterator[Any]:
    for value in _VALUES:
        yield value
        # Text by itself is shown as it is, and within something else in quotes.
        yield [value]


def _near(source: random.Random) -> Iterator[dict[str, Any]]:
    names = [list(JobSpec.model_fields), [slug.replace("-", "") for slug in TIERS], ["", "a", "ab", "ba", "aab"]]
    for _ in range(160):
        known = source.choice(names)
        word = list(source.choice(known))
        for _ in range(source.choice((0, 1, 2, 3, 5))):
            at = source.randrange(len(word) + 1)
            word[at : at + source.choice((0, 1, 1))] = source.choice(("", "a", "e", "x", "0", "\u00e9", "\U0001f525"))
        most = source.choice((1, 3))
        text = "".join(word)
        found = difflib.get_close_matches(text, known, n=most, cutoff=0.6)
        yield {"word": text, "names": names.index(known), "most": most, "found": found}
    for word, name in _TIES:
        names.append([name])
        yield {
            "word": word,
            "names": len(names) - 1,
            "most": 1,
            "found": difflib.get_close_matches(word, [name], cutoff=0.6),
        }
    yield {"lists": names}


def _shell(source: random.Random) -> Iterator[dict[str, Any]]:
    for text in (*_COMMANDS, *("".join(source.choices(_SHELL, k=source.randrange(0, 12))) for _ in range(300))):
        try:
            words: Any = shlex.split(text)
        except ValueError as error:
            words = str(error)
        yield {"text": text, "words": words, "shell": needs_shell(text)}


def _folded(source: random.Random) -> Iterator[list[Any]]:
    for _ in range(300):
        one = "".join(source.choices(_FOLDED, k=source.randrange(1, 4)))
        other = source.choice((one.upper(), one.lower(), one.swapcase(), unicodedata.normalize("NFD", one), one[::-1]))
        same = unicodedata.normalize("NFC", one).casefold() == unicodedata.normalize("NFC", other).casefold()
        yield [one, other, same]
