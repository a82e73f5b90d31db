"""Names that are one name, or two, once case and ways of composing accents are put aside: Python's casefold."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator
from typing import Any

from tests.web.vectors import _chance

_FOLDED = "aAbI\u0130i\u00df\u1e9es\u017fS\u03c3\u03c2\u03a3\u00e9\u00c9"
_FOLDED += "\u1f80\u1f88\u03b1\u03b9\u0345\ufb01fk\u212aK\u01c5\u10a0\u13a0\uab70"


def cases() -> dict[str, Any]:
    """Return pairs of names, and whether they are one."""
    return {"folded": list(_folded(_chance.source(5)))}


def _folded(source: random.Random) -> Iterator[list[Any]]:
    for _ in _chance.rows(40):
        one = "".join(source.choices(_FOLDED, k=source.randrange(1, 4)))
        other = source.choice((one.upper(), one.lower(), one.swapcase(), unicodedata.normalize("NFD", one), one[::-1]))
        same = unicodedata.normalize("NFC", one).casefold() == unicodedata.normalize("NFC", other).casefold()
        yield [one, other, same]
